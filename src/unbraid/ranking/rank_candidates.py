"""Rank models by their codes alone (UDR)."""

import hashlib
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from unbraid.base.arrays import as_array, finite_sparse, is_sparse
from unbraid.base.counted import counted
from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.data.representation import NARROWEST
from unbraid.metrics import udr
from unbraid.metrics.udr import Pairs, heavy_models, notes_on_lasso, rotated_udr
from unbraid.ranking.candidate import FAINT, Candidate
from unbraid.ranking.ranking import NothingToRank, Ranking, RankingOptions
from unbraid.ranking.track_record import CAVEAT, MEASURED, trust

AGREE, NAMED = 0.6, 10  # least UDR of any two models in a group that agrees, and the largest group that is named
SAME = 0.99  # least similarity of latents to their matches for models to count as the same
MATRICES = 6_000_000  # entries of all similarity matrices; with more, only those within settings are kept

ROTATIONS = 39  # collections of rotated models; the best of them reaches a score by chance in 1 of 40 cases
MOST_TIMES = 8  # largest multiple of these, if the best was chosen among more models than a collection has
PARTNERS = 10  # other models that are drawn for the test
ROWS = 2_000  # samples that are drawn for the test


def rank_candidates(
    candidates: Iterable[Candidate],
    options: RankingOptions | None = None,
    *,
    left_out: Mapping[str, str] | None = None,
    untrained: Sequence[FloatArray] = (),
    known: Ranking | None = None,
    tested: bool = True,
    save: Callable[[Ranking], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Ranking:
    """Rank models without labels by Unsupervised Disentanglement Ranking.

    Models without a posterior (PCA) count all their latents that vary as informative.

    Args:
        candidates: the models, with codes of the same samples in the same order.
        options: how they are compared.
        left_out: runs that are not candidates, and why; the result contains them together with those left out here:
            codes that are not finite or of other samples, models without another one to compare with.
        untrained: codes (n_samples, n_codes) of the same samples by two or more untrained models of the same
            architectures, of different seeds; a model that scores no higher than they do among each other, where all
            their latents count, is never chosen.
        known: an older ranking; pairs of models that it compared with the same options are taken from it.
        tested: False skips the test against randomly rotated latents, which affects the choice but not the scores.
        save: called with the results so far, as a ranking without scores, whenever pairs have been compared.
        progress: called as progress(done, total), in models, and then in rotations of those that may be best.

    Returns:
        Ranking. Scores from 0, higher is better, 1 for models that agree; see `unbraid.metrics.udr`, and `notes` for
        those that may be above 1.

    Raises:
        NothingToRank: no two models can be compared; the message gives the reasons.
        ValueError: an option is out of range.

    Reference:
        Duan et al. 2020, "Unsupervised Model Selection for Variational Disentangled Representation Learning".
    """
    options = options or RankingOptions()
    models = list(candidates)
    reasons = dict(left_out or {}) | _unsound(models)
    models = [model for model in models if model.run not in reasons]
    reasons |= _alone(models, options)
    models = [model for model in models if model.run not in reasons]
    if not models:
        raise NothingToRank(_nothing(reasons))
    nats = [_nats(model, options) for model in models]
    latents = tuple(np.flatnonzero(values > options.kl_threshold) for values in nats)
    known_pairs = _known_pairs(models, latents, options, known)
    runs = tuple(model.run for model in models)

    def ranking(
        scores: FloatArray, pairs: FloatArray, matrices: Mapping[tuple[int, int], FloatArray], *notes: str, **more: Any
    ) -> Ranking:
        return Ranking(
            runs=runs,
            families=tuple(model.family for model in models),
            settings=tuple(model.setting for model in models),
            scores=scores,
            latents=latents,
            pairs=pairs,
            matrices=matrices,
            left_out=reasons,
            options=options,
            notes=notes,
            known_pairs=known_pairs,
            digests=tuple(model.digest for model in models),
            **more,
        )

    def save_part(known_pairs: Pairs) -> None:
        if save is not None:
            save(ranking(np.full(len(models), np.nan), known_pairs.values, known_pairs.matrices))

    result = udr(
        _Codes(models),
        kl=nats,
        similarity=options.similarity,
        alpha=options.alpha,
        aggregate=options.aggregate,
        kl_threshold=options.kl_threshold,
        groups=_groups(models, latents, options),
        n_comparisons=options.n_comparisons,
        keep_matrices=_kept_matrices(models, latents),
        seed=options.seed,
        known=known_pairs,
        save=save_part,
        progress=progress,
    )
    notes = _notes(models, result.informative, options.n_comparisons)
    notes += notes_on_lasso(runs, result.largest, result.converged)
    doubted = heavy_models(runs, result.largest)
    scores = result.scores
    if options.compare != "same-hyperparameters" and result.informative.any():
        # A median over models of all settings would be 0 if half of them have learnt nothing.
        scores = median_scores(result.pairs, result.informative)
    silent = tuple(model.run for model in models if model.tells_nothing)
    made = ranking(
        scores, result.pairs, result.matrices, *notes, doubted=doubted, silent=silent,
        untrained=_untrained_score(untrained, models, options),
    )  # fmt: skip
    made = without_copies(made)
    return with_agreeing(with_caution(_against_rotated(made, models, progress))) if tested else made


def _untrained_score(codes: Sequence[FloatArray], models: Sequence[Candidate], options: RankingOptions) -> float | None:
    """The highest score of untrained models among each other."""
    if not codes:
        return None
    codes = different_untrained(codes, len(models[0].matrix()))
    result = udr(codes, similarity=options.similarity, alpha=options.alpha, aggregate=options.aggregate)
    return float(result.scores.max())


def different(codes: Sequence[Any]) -> list[Any]:
    """The distinct codes: in many families untrained networks of one seed are the same, and agree completely."""
    distinct: dict[str, Any] = {}
    for array in codes:
        distinct.setdefault(content_of(array), array)
    return list(distinct.values())


def content_of(codes: Any) -> str:
    """Digest of codes, sparse or full: equal for equal numbers of one type."""
    if not is_sparse(codes):
        return hashlib.sha256(np.ascontiguousarray(as_array(codes)).tobytes()).hexdigest()
    sparse = finite_sparse(codes).tocsr().copy()
    sparse.eliminate_zeros()
    sparse.sort_indices()
    digest = hashlib.sha256()
    for part in (sparse.indptr.astype(np.int64), sparse.indices.astype(np.int64), sparse.data):
        digest.update(part.tobytes())
    return digest.hexdigest()


def different_untrained(codes: Sequence[Any], n_rows: int) -> list[Any]:
    """The distinct codes of untrained models, checked to be of several models and of these samples."""
    if len(codes) == 1:
        raise ValueError("untrained must be codes of two or more untrained models, which are compared with each other")
    for place, array in enumerate(codes):
        shape = np.shape(array) or getattr(array, "shape", ())
        if len(shape) != 2 or shape[0] != n_rows:
            raise ValueError(f"untrained[{place}] must be codes of the same {n_rows} samples; got {shape}")
    if len(codes := different(codes)) < 2:
        raise ValueError("untrained must be codes of models of different seeds; these are all the same")
    return codes


def _against_rotated(
    ranking: Ranking, models: Sequence[Candidate], progress: Callable[[int, int], None] | None
) -> Ranking:
    """Adds the rotation test for the first run of each family that could be best; see `Ranking.rotated`."""
    candidates = ranking._candidates()
    if isinstance(candidates, str):
        return ranking
    first: dict[str, int] = {}
    for at in candidates:
        first.setdefault(ranking.families[at], at)
    rng, options = np.random.default_rng(ranking.options.seed), ranking.options
    rotated = {}
    for family, at in first.items():
        rivals = sum(ranking.families[model] == family for model in candidates)
        partners = np.flatnonzero(np.isfinite(ranking.pairs[at]) & (ranking.informative > 0))
        drawn = rng.permutation(partners)[:PARTNERS]
        rows = rng.permutation(len(models[at].matrix()))[:ROWS]
        if len(drawn):
            codes = [
                np.asarray(models[model].matrix()[np.ix_(rows, ranking.latents[model])], float)
                for model in (at, *drawn)
            ]
            times = ROTATIONS * min(MOST_TIMES, -(-rivals // (PARTNERS + 1)))
            score, turned = rotated_udr(
                codes, similarity=options.similarity, alpha=options.alpha, aggregate=options.aggregate, times=times,
                progress=progress,
            )  # fmt: skip
            rotated[ranking.runs[at]] = score, float(turned.max())
    return replace(ranking, rotated=rotated)


def without_copies(ranking: Ranking) -> Ranking:
    """Marks families whose seeds give identical codes as doubted, and copies among models without a family.

    Whether other models without a family are seeds of one setting is not known.
    """
    similarities = {family: ranking.likeness(family) for family in dict.fromkeys(ranking.families) if family}
    copies = {family: value for family, value in similarities.items() if value is not None and value >= SAME}
    notes = [
        f"every seed of {family} gives the same codes up to order and sign (similarity of each latent to its match at "
        f"least {value:.3f}), as PCA does: UDR then scores high whether the codes are disentangled or not, and cannot "
        "choose"
        for family, value in copies.items()
    ]
    doubted = [run for run, family in zip(ranking.runs, ranking.families, strict=True) if family in copies]
    by_digest: dict[str, list[str]] = {}
    for run, family, digest in zip(ranking.runs, ranking.families, ranking.digests, strict=True):
        if not family:
            by_digest.setdefault(digest, []).append(run)
    for same in (runs for runs in by_digest.values() if len(runs) > 1):
        named = f"{', '.join(same[:-1])} and {same[-1]}"
        notes.append(f"{named} are the same codes, which agree with each other on everything: give one of them")
        doubted += same
    return replace(ranking, notes=(*ranking.notes, *notes), doubted=tuple(dict.fromkeys([*ranking.doubted, *doubted])))


def with_caution(ranking: Ranking) -> Ranking:
    """Adds a note on how good such choices were, by these options (docs/ranking.md)."""
    chosen, options = ranking.choose(), ranking.options
    if chosen is None or (options.similarity, options.alpha, options.compare) != MEASURED:
        return ranking
    return replace(ranking, notes=(*ranking.notes, f"{trust(chosen.score)}; {CAVEAT}"))


def with_agreeing(ranking: Ranking) -> Ranking:
    """Adds a note on a group of fewer than half of the models that agree, if no model agrees with most others."""
    if ranking.options.compare != "all" or ranking.scores.max() >= AGREE:
        return ranking
    sound = np.array([run not in ranking.doubted for run in ranking.runs])
    agreeing = (np.fmin(ranking.pairs, ranking.pairs.T) >= AGREE) & sound & sound[:, None]
    first = int(agreeing.sum(axis=1).argmax())
    group = [first]
    for other in np.flatnonzero(agreeing[first])[np.argsort(-ranking.pairs[first][agreeing[first]], kind="stable")]:
        if agreeing[other, group].all():
            group.append(int(other))
    if not 3 <= len(group) <= min(NAMED, (len(ranking.runs) - 1) // 2):
        return ranking
    *names, last = (ranking.runs[at] for at in sorted(group))
    n_others = counted(len(ranking.runs) - len(group), "model")
    note = (
        f"{', '.join(names)} and {last} agree with each other (UDR {AGREE} or more) but not with the other {n_others}"
    )
    return replace(ranking, notes=(*ranking.notes, note))


def median_scores(pairs: FloatArray, informative: IntArray) -> FloatArray:
    """(n_models,) the median of each row of pairs, over models with informative latents; 0 if none is known."""
    compared = np.where(informative > 0, pairs, np.nan)
    known = np.isfinite(compared).any(axis=1)
    scores = np.zeros(len(pairs))
    scores[known] = np.nanmedian(compared[known], axis=1)
    return scores


def _kept_matrices(models: Sequence[Candidate], latents: Sequence[IntArray]) -> BoolArray:
    """(n_models, n_models) whether the similarity matrix of a pair is kept."""
    if sum(map(len, latents)) ** 2 <= MATRICES:
        return np.ones((len(models), len(models)), dtype=bool)
    settings = np.unique([f"{model.family}\n{model.setting}" for model in models], return_inverse=True)[1]
    return settings[:, None] == settings


def _groups(models: Sequence[Candidate], latents: Sequence[IntArray], options: RankingOptions) -> list[Hashable]:
    """Keys of groups within which models are compared; if some are drawn, only models with an informative latent."""
    groups = [options.group(model.family, model.setting) for model in models]
    if options.n_comparisons is None or options.compare == "same-hyperparameters":
        return list(groups)
    counts = Counter(group for group, own in zip(groups, latents, strict=True) if len(own))
    return [(group, len(own) > 0 and counts[group] > 1) for group, own in zip(groups, latents, strict=True)]


def _known_pairs(
    models: Sequence[Candidate], latents: Sequence[IntArray], options: RankingOptions, known: Ranking | None
) -> Pairs:
    """Results of an older ranking for pairs that are also among these models."""
    pairs = Pairs.unknown(len(models))
    if known is None or known.known_pairs is None or _computed_with(known.options) != _computed_with(options):
        return pairs
    old = {
        (digest, run_latents.tobytes()): place
        for place, (digest, run_latents) in enumerate(zip(known.digests, known.latents, strict=True))
    }
    keys = [(model.digest, own.tobytes()) for model, own in zip(models, latents, strict=True)]
    new_indices = [place for place, key in enumerate(keys) if key in old]
    old_indices = [old[keys[place]] for place in new_indices]
    for name in ("values", "penalties", "largest", "converged"):
        getattr(pairs, name)[np.ix_(new_indices, new_indices)] = getattr(known.known_pairs, name)[
            np.ix_(old_indices, old_indices)
        ]
    places: dict[int, list[int]] = {}
    for new, place in zip(new_indices, old_indices, strict=True):
        places.setdefault(place, []).append(new)
    for (i, j), matrix in known.known_pairs.matrices.items():
        for pair in product(places.get(i, ()), places.get(j, ())):
            pairs.matrices[pair] = matrix
    np.fill_diagonal(pairs.values, np.nan)
    return pairs


def _computed_with(options: RankingOptions) -> tuple[object, ...]:
    """The options that determine the result for a pair."""
    return options.similarity, options.alpha, options.aggregate, options.seed


def _nats(model: Candidate, options: RankingOptions) -> FloatArray:
    """Nats that decide whether a latent is informative; without a posterior, above the threshold if it varies."""
    known = model.signal if options.informative == "signal" else model.kl
    return options.kl_threshold + model.varied if known is None else known


def _unsound(models: Sequence[Candidate]) -> dict[str, str]:
    """Models whose codes cannot be compared with those of most others, and why."""
    counts = Counter(model.samples for model in models)
    usual = counts.most_common(1)[0][0] if counts else ""
    like = next((model.run for model in models if model.samples == usual), "")
    reasons = {}
    for model in models:
        nats = [values for values in (model.kl, model.signal) if values is not None]
        if not (model.finite and all(np.isfinite(values).all() for values in nats)):
            reasons[model.run] = "its codes or their KL are not finite"
        elif model.samples != usual:
            reasons[model.run] = f"its rows are not the samples of {like} (same factors, same order)"
    return reasons


def _alone(models: Sequence[Candidate], options: RankingOptions) -> dict[str, str]:
    sizes = Counter(options.group(model.family, model.setting) for model in models)
    among = {"same-hyperparameters": " of its setting", "same-family": " of its family or group", "all": ""}
    where = among[options.compare]
    return {
        model.run: f"there is no other run{where} to compare it with"
        for model in models
        if sizes[options.group(model.family, model.setting)] == 1
    }


class _Codes(Sequence[FloatArray]):
    """The codes of candidates, each read on access."""

    def __init__(self, models: Sequence[Candidate]) -> None:
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, place: Any) -> Any:
        return self._models[place].matrix()


def _nothing(reasons: Mapping[str, str]) -> str:
    runs: dict[str, list[str]] = {}
    for run, reason in reasons.items():
        runs.setdefault(reason, []).append(run)
    lines = [f"{', '.join(own) if len(own) <= 3 else len(own)}: {reason}" for reason, own in runs.items()]
    why = "; ".join(lines[:5]) + (f"; and {len(lines) - 5} more" if len(lines) > 5 else "")
    return f"no two models can be compared: {why or 'there are none'}"


def _notes(models: Sequence[Candidate], informative: IntArray, n_comparisons: int | None) -> tuple[str, ...]:
    latent_counts = list(zip(models, informative.tolist(), strict=True))
    having = {
        "no informative latent and score 0": [model.run for model, own in latent_counts if not own],
        "latents that together have less than one bit of information on a sample: not chosen": [
            model.run for model, own in latent_counts if own and model.tells_nothing
        ],
        "no posterior: all latents that vary count as informative": [model.run for model in models if model.kl is None],
        f"no posterior and no code with a standard deviation above {NARROWEST:g}: perhaps collapsed": [
            model.run for model in models if model.narrow
        ],
    }
    notes = [f"{_named(runs)} {what}" for what, runs in having.items() if runs]
    if faint := [model.run for model in models if model.is_faint]:
        more = f" and {len(faint) - NAMED} more" if len(faint) > NAMED else ""
        where = "every model" if len(faint) == len(models) else f"{', '.join(faint[:NAMED])}{more}"
        notes.append(
            f"latents whose standard deviation is below {FAINT:.0%} of the largest count like the others in {where}: "
            "leave these columns out if they are noise, or give log_variances"
        )
    if n_comparisons is not None:
        drawn = counted(n_comparisons, "other")
        notes.append(f"each run was compared with {drawn} drawn at random, or with all where there are fewer")
    return tuple(notes)


def _named(runs: Sequence[str]) -> str:
    return f"{len(runs)} runs have" if len(runs) > 3 else f"{', '.join(runs)} {'has' if len(runs) == 1 else 'have'}"
