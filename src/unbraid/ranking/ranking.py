"""Ranking of models by their codes alone (UDR), and the choice of the best."""

import hashlib
from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import compress, product
from typing import Any, Literal, get_args

import numpy as np

from unbraid.base.arrays import as_array, finite_sparse, is_sparse
from unbraid.base.counted import counted
from unbraid.base.errors import UnbraidError
from unbraid.base.natural_order import natural
from unbraid.base.repr import Shown
from unbraid.base.types import BoolArray, DataFrame, FloatArray, IntArray
from unbraid.data import Representation
from unbraid.data.representation import BIT, NARROWEST, hardly_vary
from unbraid.metrics import udr
from unbraid.metrics.udr import Pairs, Similarity, heavy_models, notes_on_lasso, rotated_udr, varying
from unbraid.ranking.choice_stability import Resampled, resample
from unbraid.ranking.track_record import CAVEAT, MEASURED, trust

__all__ = ["Candidate", "Choice", "NothingToRank", "Ranking", "RankingOptions", "rank_models"]

Compare = Literal["same-hyperparameters", "same-family", "all"]
Informative = Literal["signal", "kl"]

AGREE, NAMED = 0.6, 10  # least UDR of any two models in a group that agrees, and the largest group that is named
FAINT = 0.05  # latents with less than this share of the largest standard deviation may be noise
FEWEST_RESAMPLED = 4  # models; with three, all samples that count are the same
SAME = 0.99  # least similarity of latents to their matches for models to count as the same
MATRICES = 6_000_000  # entries of all similarity matrices; with more, only those within settings are kept

ROTATIONS = 39  # collections of rotated models; the best of them reaches a score by chance in 1 of 40 cases
MOST_TIMES = 8  # largest multiple of these, if the best was chosen among more models than a collection has
PARTNERS = 10  # other models that are drawn for the test
ROWS = 2_000  # samples that are drawn for the test


class NothingToRank(UnbraidError, ValueError):
    """No two models can be compared."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A model to be ranked."""

    run: str
    family: str
    setting: str  # its hyperparameters as text, "beta=4"
    codes: FloatArray | Callable[[], FloatArray]  # (n_samples, n_codes), or a function that reads them when needed
    kl: FloatArray | None = None  # (n_codes,) nats; None for a model without a posterior
    samples: str = ""  # the same for two candidates when their rows are the same samples
    signal: FloatArray | None = None  # (n_codes,) nats; see `Representation.signal`
    n_codes: int = field(init=False)
    finite: bool = field(init=False)
    digest: str = field(init=False)  # of the codes
    narrow: bool = field(init=False)  # whether it has no posterior, and codes that hardly vary
    varied: BoolArray = field(init=False)  # (n_codes,) whether a code varies; all True with a posterior
    is_faint: bool = field(init=False)  # whether it has no posterior, and some codes vary far less than others

    def __post_init__(self) -> None:
        codes = np.ascontiguousarray(self.matrix())
        _check_codes(self.run, codes)
        object.__setattr__(self, "n_codes", codes.shape[1])
        object.__setattr__(self, "finite", bool(np.isfinite(codes).all()))
        object.__setattr__(self, "narrow", self.kl is None and self.finite and hardly_vary(codes))
        known = self.kl is not None or not self.finite
        object.__setattr__(self, "varied", np.ones(self.n_codes, dtype=bool) if known else varying(codes))
        spreads = np.ones(1) if known or not self.varied.any() else codes[:, self.varied].std(axis=0)
        object.__setattr__(self, "is_faint", bool(spreads.min() < FAINT * spreads.max()))
        content = hashlib.sha256(f"{codes.dtype} {codes.shape}".encode() + codes.tobytes())
        object.__setattr__(self, "digest", content.hexdigest())

    @classmethod
    def from_representation(
        cls,
        run: str,
        family: str,
        setting: str,
        representation: Representation,
        codes: Callable[[], FloatArray] | None = None,
    ) -> "Candidate":
        """The model of a representation; `codes` reads its codes again if they are too large for memory."""
        _check_codes(run, representation.codes)
        factors = np.ascontiguousarray(representation.factors, dtype=float)
        samples = hashlib.sha256(factors.tobytes()).hexdigest() + str(factors.shape)
        samples = samples if representation.names else f"{len(factors)} rows"  # without factors only their number
        kl, signal = representation.mean_kl(), representation.signal()
        return cls(run, family, setting, codes or representation.codes, kl, samples, signal)

    @property
    def tells_nothing(self) -> bool:
        """As `Representation.tells_nothing`."""
        return self.signal is not None and bool(self.signal.sum() < BIT)

    def matrix(self) -> FloatArray:
        return self.codes() if callable(self.codes) else self.codes


class _Codes(Sequence[FloatArray]):
    """The codes of candidates, each read on access."""

    def __init__(self, models: Sequence[Candidate]) -> None:
        self._models = models

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, place: Any) -> Any:
        return self._models[place].matrix()


@dataclass(frozen=True)
class RankingOptions:
    """How models are compared; the arguments are those of `unbraid.metrics.udr`.

    `informative`: which latents count. "signal": those that tell of their sample, 1/2 log(1 + Var mu / E sigma^2) above
    `kl_threshold`; "kl": those whose mean KL from the prior is above it, as in the paper, where a constant offset or a
    variance that nobody uses counts as information, and models that learnt nothing may be ranked best.
    `alpha`: .1, as the authors' code; "cv" as the paper, where latents of models that learnt nothing get weights of 10
    and more. `docs/ranking.md` says what was measured.
    `compare`: "all" compares every two models, across families; "same-family" those of a family, the paper's UDR-A2A.
    By both, models without an informative latent score 0 and are nothing that others are compared with.
    "same-hyperparameters" the seeds of one setting, the paper's UDR, which tells good settings less well.
    """

    similarity: Similarity = "lasso"
    compare: Compare = "all"
    n_comparisons: int | None = None
    alpha: Literal["cv"] | float = 0.1
    kl_threshold: float = 0.01
    aggregate: Literal["paper", "dlib"] = "paper"
    seed: int = 0
    informative: Informative = "signal"

    def __post_init__(self) -> None:
        if self.informative not in get_args(Informative):
            raise ValueError(f"informative must be one of {', '.join(get_args(Informative))}; got {self.informative!r}")
        if self.compare not in get_args(Compare):
            raise ValueError(f"compare must be one of {', '.join(get_args(Compare))}; got {self.compare!r}")

    def group(self, family: str, setting: str) -> tuple[str, ...]:
        return {"same-hyperparameters": (family, setting), "same-family": (family,), "all": ()}[self.compare]


@dataclass(frozen=True)
class Choice:
    """The choice of a ranking: a setting, to train more seeds of, and a run, which may have another setting."""

    family: str
    setting: str
    median: float  # score of all ranked runs of the setting, as `Ranking.per_setting` has it
    run: str
    score: float  # of this run


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Shown):
    """UDR of the runs that could be compared, in their order, and why others could not."""

    runs: tuple[str, ...]
    families: tuple[str, ...]
    settings: tuple[str, ...]
    scores: FloatArray  # (n_runs,)
    latents: tuple[IntArray, ...]  # of each run, the indices of its informative latents
    pairs: FloatArray  # (n_runs, n_runs) UDR_ij, NaN where not compared
    matrices: Mapping[tuple[int, int], FloatArray]  # R of pairs compared, all or those within settings (`MATRICES`)
    left_out: Mapping[str, str]  # run -> reason
    options: RankingOptions
    notes: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # runs whose scores a note doubts; none of them is `best`
    known_pairs: Pairs | None = None  # results for all pairs, reused when further models are ranked
    digests: tuple[str, ...] = ()  # of the codes of each run
    silent: tuple[str, ...] = ()  # runs whose latents together have less than one bit of information on their sample
    untrained: float | None = None  # highest score of untrained models among each other; None if none were given
    # Of the first run of each family that could be best: its score on some samples, and the highest of `rotated_udr`.
    rotated: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # (n_runs, n_runs) least similarity of a code to its match, of codes too many for `matrices`; NaN where not compared
    least: FloatArray | None = None

    @property
    def informative(self) -> IntArray:
        """(n_runs,) number of informative latents."""
        return np.array([len(latents) for latents in self.latents])

    @property
    def best_first(self) -> list[int]:
        """Indices of the runs, the best first; ties in their order."""
        return np.argsort(-self.scores, kind="stable").tolist()

    @property
    def learnt(self) -> BoolArray:
        """(n_runs,) whether a run has an informative latent, and at least one bit of information in all its latents."""
        silent = np.isin(self.runs, self.silent)
        return (self.informative > 0) & ~silent

    @property
    def best(self) -> str | None:
        """The run that `choose` chooses; None if it chooses none, and `why_none` says why."""
        chosen = self.choose()
        return None if chosen is None else chosen.run

    @property
    def doubted_families(self) -> tuple[str, ...]:
        """Families whose runs are all in `doubted`."""
        sound = {self.families[at] for at, run in enumerate(self.runs) if run not in self.doubted}
        return tuple(sorted({*self.families} - sound))

    def not_best(self) -> list[str]:
        """The runs that `choose` excludes."""
        sound = self._sound()
        good = set() if isinstance(sound, str) else {self.runs[at] for at in sound}
        return [run for run in self.runs if run not in good]

    def likeness(self, family: str) -> float | None:
        """Similarity of seeds of one setting in a family: the least similarity of an informative latent to its match.

        1 if any two seeds have the same latents up to order and sign; None if no two were compared.
        """
        keys = list(zip(self.families, self.settings, strict=True))
        # A fixed penalty alpha shrinks the weight of a perfect match to 1 - alpha.
        alpha = self.options.alpha
        perfect = 1.0 if self.options.similarity == "spearman" or alpha == "cv" else 1.0 - float(alpha)
        if self.least is not None:
            own = np.array([key[0] == family for key in keys])
            same_setting = np.array([[one == other for other in keys] for one in keys])
            known = self.least[same_setting & own & np.isfinite(self.least)]
            return float(known.min()) if known.size else None
        within = [
            min(matrix.max(axis=1).min(), matrix.max(axis=0).min()) / perfect if matrix.size and perfect > 0 else 0.0
            for (i, j), matrix in self.matrices.items()
            if keys[i] == keys[j] and self.families[i] == family
        ]
        return float(min(within)) if within else None

    def choose(self, without: Container[str] = ()) -> Choice | None:
        """The setting of the highest median, and the run of the highest score, of those that can be called good.

        Such a run has learnt, as has more than half of its setting; no note doubts it; it has two informative latents
        or more; it scores above untrained models, where these are known; and the latents of the first such run of its
        family match those of other models better than those of the best of randomly rotated models do, which is not
        asked of codes compared by `top`. `docs/ranking.md` says what was measured, and of other ways to choose.

        Args:
            without: families to leave out.

        Returns:
            Choice. None where there is no such run; `why_none` says why.
        """
        decided = self._decided(without)
        return decided if isinstance(decided, Choice) else None

    def resampled(
        self, without: Container[str] = (), settings: Sequence[str] | None = None, seed: int = 0
    ) -> Resampled | None:
        """How often the same model is chosen when the models of each setting are resampled with replacement.

        Args:
            without: families to leave out.
            settings: a label for each run; default its family and setting.
            seed: of the draws.

        Returns:
            Resampled. None where no model is chosen, where fewer than four were compared, or where models are compared
            within their settings only.
        """
        sound = self._sound(without)
        compared = (self.informative > 0) & np.array([family not in without for family in self.families])
        few = compared.sum() < FEWEST_RESAMPLED or self.options.compare == "same-hyperparameters"
        if isinstance(sound, str) or few:
            return None
        keys = settings or ["\n".join(self._key(at)) for at in range(len(self.runs))]
        is_sound = np.isin(np.arange(len(self.runs)), sound)
        return resample(self.pairs, compared, is_sound, np.array(keys), sound[0], seed)

    def why_none(self, without: Container[str] = ()) -> str:
        """Why `choose` chooses none, in one line; empty if it chooses one."""
        decided = self._decided(without)
        return "" if isinstance(decided, Choice) else decided

    def _decided(self, without: Container[str]) -> Choice | str:
        sound = self._sound(without)
        if isinstance(sound, str):
            return sound
        medians = {self._key(at): self._median(self._key(at)) for at in sound}
        family, setting = max(medians, key=lambda key: medians[key])
        return Choice(family, setting, medians[family, setting], self.runs[sound[0]], float(self.scores[sound[0]]))

    def _sound(self, without: Container[str] = ()) -> list[int] | str:
        """Indices of the runs that can be called good, the best first; or why there are none."""
        candidates = self._candidates(without)
        if isinstance(candidates, str):
            return candidates
        reached = {run for run, (score, bound) in self.rotated.items() if score <= bound}
        rotated_families = {self.families[at]: at for at in candidates if self.runs[at] in reached}
        sound = [at for at in candidates if self.families[at] not in rotated_families]
        if sound:
            return sound
        first = min(rotated_families.values(), key=candidates.index)
        return (
            f"the latents of {self.runs[first]}, the first that could be best, match those of other models no better "
            "than randomly rotated latents do: these models do not find the same axes, as is the case of untrained, "
            "hardly trained and entangled ones"
        )

    def _candidates(self, without: Container[str] = ()) -> list[int] | str:
        """Indices of the runs that can be called good before the test in `rotated`, the best first; or why none can."""
        included = np.array([family not in without for family in self.families])
        learnt, n_runs = self.learnt & included, int(included.sum())
        if not learnt.any():
            return (
                f"none of {n_runs} models has learnt anything: the latents of each have less than one bit of "
                "information on a sample"
            )
        own: dict[tuple[str, str], list[bool]] = {}
        for at, has_learnt in zip(np.flatnonzero(included).tolist(), learnt[included], strict=True):
            own.setdefault(self._key(at), []).append(bool(has_learnt))
        settled = {key for key, has_learnt in own.items() if 2 * sum(has_learnt) > len(has_learnt)}
        if not settled:
            within = "" if len(own) == 1 else ", in each setting half or more"
            return f"{n_runs - int(learnt.sum())} of {n_runs} models have learnt nothing{within}"
        sound = [
            at
            for at in self.best_first
            if learnt[at] and self._key(at) in settled and self.runs[at] not in self.doubted
        ]
        if not sound:
            ending = "; the others have learnt nothing" if not learnt[included].all() else ""
            return f"notes question the scores of each model that has learnt{ending}"
        sound = [at for at in sound if len(self.latents[at]) > 1]
        if not sound:
            return "no model has two informative latents, and a single one is never entangled with another"
        if self.untrained is not None:
            sound = [at for at in sound if self.scores[at] > self.untrained]
            if not sound:
                return f"no model scores above untrained ones among each other ({self.untrained:.3f})"
        return sound

    def _key(self, at: int) -> tuple[str, str]:
        return self.families[at], self.settings[at]

    def _median(self, key: tuple[str, str]) -> float:
        return float(np.median([score for at, score in enumerate(self.scores) if self._key(at) == key]))

    def best_by_informative(self) -> dict[int, str]:
        """The best run for each number of informative latents: UDR favours models that learn few factors.

        Of the runs that `choose` chooses among; empty where there is none.
        """
        best: dict[int, str] = {}
        sound = self._sound()
        for place in [] if isinstance(sound, str) else sound:
            best.setdefault(len(self.latents[place]), self.runs[place])
        return dict(sorted(best.items()))

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, the best first: rank, run, family, setting, udr.score, udr.informative."""
        import pandas

        best_first = self.best_first
        return pandas.DataFrame(
            {
                "rank": range(1, len(best_first) + 1),
                "run": [self.runs[place] for place in best_first],
                "family": [self.families[place] for place in best_first],
                "setting": [self.settings[place] for place in best_first],
                "udr.score": self.scores[best_first],
                "udr.informative": self.informative[best_first],
            }
        )

    def per_setting(self) -> DataFrame:
        """A pandas DataFrame, one row per setting: family, setting, runs, median, lowest, highest.

        The median over seeds is what the paper chooses a setting by.
        """
        import pandas

        keys = list(zip(self.families, self.settings, strict=True))
        rows = []
        for family, setting in sorted(set(keys), key=lambda key: (key[0], natural(key[1]))):
            own = self.scores[[key == (family, setting) for key in keys]]
            numbers = {"median": self._median((family, setting)), "lowest": own.min(), "highest": own.max()}
            rows.append({"family": family, "setting": setting, "runs": len(own)} | numbers)
        return pandas.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The ranking as plain numbers, strings, lists and dictionaries, without the matrices."""
        return {
            "options": vars(self.options),
            "best": self.best,
            "why_none": self.why_none(),
            "learnt_nothing": list(compress(self.runs, ~self.learnt)),
            "untrained": self.untrained,
            "rotated": {run: list(pair) for run, pair in self.rotated.items()},
            "doubted": list(self.doubted),
            "best_by_informative": {str(count): run for count, run in self.best_by_informative().items()},
            "runs": self.to_frame().to_dict("records"),
            "settings": self.per_setting().to_dict("records"),
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }


def rank_models(
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


def _check_codes(run: str, codes: Any) -> None:
    if codes.ndim != 2 or codes.dtype.kind not in "biuf" or not all(codes.shape):
        raise ValueError(f"{run}: codes must be (n_samples, n_codes) numbers; got {codes.dtype} {codes.shape}")


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
