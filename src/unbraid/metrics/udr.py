"""Unsupervised disentanglement ranking (UDR): models that agree with their siblings are disentangled."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numba
import numpy as np

from unbraid._arguments import check_number, check_whole
from unbraid._shown import Shown
from unbraid.metrics._compiled import interruptible
from unbraid.metrics._inputs import NotDefined, check_matrix, standardised
from unbraid.metrics._solvers.group_lasso import cross_validated, separate
from unbraid.types import ArrayLike, BoolArray, FloatArray, IntArray

Similarity = Literal["lasso", "spearman"]
Aggregate = Literal["paper", "dlib"]
N_FOLDS = 5
TARGETS_AT_ONCE = 32  # models whose moments with all others are held in memory
HEAVY = 1.05  # weights of uncorrelated standardised latents are at most 1
NAMED = 5  # models in one note


@dataclass(frozen=True, eq=False, repr=False)
class UDR(Shown):
    scores: FloatArray  # (n_models,) median of each row of pairs
    pairs: FloatArray  # (n_models, n_models) UDR_ij, i the targets, j the predictors; NaN where not compared
    informative: IntArray  # (n_models,) number of informative latents
    penalties: FloatArray  # (n_models, n_models) of each lasso; NaN where not compared or for "spearman"
    largest: FloatArray  # (n_models, n_models) largest entry of R; NaN where not compared. See `heavy_note`
    converged: BoolArray  # (n_models, n_models) whether the lasso has; True where there was none
    notes: tuple[str, ...] = ()
    # R of each pair (i, j), (informative latents of i, those of j), float32; none unless asked for
    matrices: Mapping[tuple[int, int], FloatArray] = field(default_factory=dict)


def udr(
    codes: Sequence[ArrayLike],
    factors: ArrayLike | None = None,
    *,
    kl: Sequence[ArrayLike] | None = None,
    similarity: Similarity = "lasso",
    alpha: Literal["cv"] | float = "cv",
    aggregate: Aggregate = "paper",
    kl_threshold: float = 0.01,
    groups: Sequence[Hashable] | None = None,
    n_comparisons: int | None = None,
    keep_matrices: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> UDR:
    """Rank models without labels by how well their latents match those of other models, one to one.

    For each two models a matrix R (latents of i, latents of j) says how much latent b of j matters for latent a
    of i. One strong entry in each row and column scores high (eq. 2):
    (sum_b max_a R^2 / sum_a R + sum_a max_b R^2 / sum_b R) / (d_i + d_j), d the numbers of informative latents.

    Args:
        codes: one (n_samples, n_codes) array per model, of the same samples in the same order. The paper takes
            10 000 samples for the lasso and 1 000 for Spearman; here all rows given are used.
        factors: none. A score card calls every metric with codes and factors of one model; here it gets NotDefined.
        kl: one (n_codes,) array per model, mean KL of each latent to the prior in nats. None: every latent counts as
            informative.
        similarity: "lasso": absolute weights of linear regressions that predict the latents of i from those of j
            (UDR-L). "spearman": absolute rank correlations (UDR-S), the same in both directions.
        alpha: "cv": one multi-task lasso for all targets, its penalty the best of 100 by five-fold cross-validation, as
            the paper. A number: one lasso per target with this penalty, as disentanglement_lib (0.1). Codes are
            standardised either way. Unused for "spearman".
        aggregate: "paper": eq. 2. "dlib": the mean over columns and the mean over rows, averaged, which differs where
            the models have different numbers of informative latents.
        kl_threshold: a latent is informative when its KL is above this. Others are zeroed before the regression and
            left out of the sums.
        groups: hyperparameter setting of each model; models are compared within their setting alone. None: all to all.
        n_comparisons: other models drawn for each model, without replacement; None: all of its group.
        keep_matrices: return the matrix R of every pair as well.
        seed: of that draw and of the rows of each fold.
        progress: called as progress(done, total), in models.

    Returns:
        UDR. `scores` from 0, higher is better: 1 for models that agree up to permutation and sign (.999 under "cv",
        whose smallest penalty shrinks a little; 1 - alpha under a fixed one), less for rotations of each other, about 0
        under "lasso" for unrelated ones. Never above 1 under "spearman"; under "lasso" also above 1, for models that
        are predicted from latents which depend on each other linearly (a note names them). A model without
        informative latents scores 0. Models that all fail alike agree too: PCA of the same data scores high. Not
        defined for a single model.

    Raises:
        ValueError: fewer than two models, or in some group; codes that are not matrices of the same samples; kl of
            other shapes; fewer than 10 rows for cross-validation; an argument out of range.
        NotDefined: called with factors.

    Reference:
        Duan et al. 2020, "Unsupervised Model Selection for Variational Disentangled Representation Learning", eq. 2-3
        and supplement, "UDR implementation details": median over comparisons. Differs: the lasso is solved to 1e-10
        instead of 1e-4, folds are of shuffled rows. disentanglement_lib: `alpha=0.1, aggregate="dlib"`.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> latents = rng.standard_normal((500, 3))
        >>> mixed = latents @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
        >>> udr([latents, -latents[:, ::-1], mixed]).scores.round(1).tolist()
        [0.7, 0.7, 0.4]
    """
    if factors is not None:
        raise NotDefined("needs the codes of several models")
    models = _check_models(codes)
    _check_choices(similarity, alpha, aggregate, n_comparisons)
    check_number("kl_threshold", kl_threshold)
    check_whole("seed", seed, 0)
    informative = _informative(models, kl, kl_threshold)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(models[0]))
    compared, notes = _comparisons(len(models), groups, n_comparisons, rng)
    n_folds = 1 if similarity == "spearman" or alpha != "cv" else N_FOLDS
    if len(order) < 2 * n_folds:
        raise ValueError(f"codes must have at least {2 * n_folds} rows for cross-validation; got {len(order)}")
    edges = np.cumsum([0, *(keep.sum() for keep in informative)])
    stacked = np.empty((len(order), edges[-1]))
    for model, keep, low, high in zip(models, informative, edges[:-1], edges[1:], strict=True):
        columns = model[:, keep]
        stacked[:, low:high] = (_ranks(columns) if similarity == "spearman" else standardised(columns))[order]
    folds = np.cumsum([0, *(len(part) for part in np.array_split(order, n_folds))])
    silent = [str(model) for model, keep in enumerate(informative) if not keep.any()]
    if silent:
        notes += (f"models {', '.join(silent)} have no informative latent and score 0",)
    matrices: dict[tuple[int, int], FloatArray] = {}
    with interruptible():
        pairs, penalties, largest, converged = _all_pairs(
            stacked, edges, folds, compared, similarity, alpha, aggregate == "paper",
            matrices if keep_matrices else None, progress,
        )  # fmt: skip
    return UDR(
        scores=np.array([np.median(pairs[model, others]) for model, others in enumerate(compared)]),
        pairs=pairs,
        informative=np.array([keep.sum() for keep in informative]),
        penalties=penalties,
        largest=largest,
        converged=converged,
        notes=notes + notes_on_lasso([f"model {place}" for place in range(len(models))], largest, converged),
        matrices=matrices,
    )


def notes_on_lasso(names: Sequence[str], largest: FloatArray, converged: BoolArray) -> tuple[str, ...]:
    """`heavy_note`, and which lassos have not converged.

    Args:
        names: of the models.
        largest, converged: as `UDR` holds them.
    """
    left = [f"{names[target]} from {names[other]}" for target, other in np.argwhere(~converged)]
    more = f" and {len(left) - NAMED} more" if len(left) > NAMED else ""
    unfinished = (f"lassos that have not converged: {', '.join(left[:NAMED])}{more}",) if left else ()
    return heavy_note(names, largest) + unfinished


def heavy_models(names: Sequence[str], largest: FloatArray) -> tuple[str, ...]:
    """The models that `heavy_note` names: those whose scores are too high, and those that make them so."""
    return tuple(dict.fromkeys([*_typical(names, largest), *_typical(names, largest.T)]))


def heavy_note(names: Sequence[str], largest: FloatArray) -> tuple[str, ...]:
    """One line where lasso weights above 1 make scores of some models too high; none where they do not.

    Latents with a KL of their own may still be (nearly) linear functions of each other: noise of a small variance,
    where a model learned nothing. Standardised, they get weights above 1 that nearly cancel.

    Args:
        names: of the models.
        largest: as `UDR` holds it.
    """
    heavy = _typical(names, largest)
    if not heavy:
        return ()
    dependent = _typical(names, largest.T)
    return (
        "lasso weights above 1 (in brackets the largest of a typical comparison) raise the scores of "
        f"{_listed(heavy)}; these are predicted from {_listed(dependent) or 'models'} whose latents are informative by "
        "their KL and yet nearly linear functions of each other. Look at all these before you choose one, or compare "
        'by similarity "spearman", which cannot exceed 1',
    )


def _typical(names: Sequence[str], largest: FloatArray) -> dict[str, float]:
    """Of models whose median over comparisons is above HEAVY that median, the largest first."""
    found = {
        name: float(np.median(known))
        for name, row in zip(names, largest, strict=True)
        if (known := row[np.isfinite(row)]).size and np.median(known) > HEAVY
    }
    return dict(sorted(found.items(), key=lambda item: -item[1]))


def _listed(heavy: Mapping[str, float]) -> str:
    named = [f"{name} ({weight:.2g})" for name, weight in heavy.items()]
    return ", ".join(named[:NAMED]) + (f" and {len(named) - NAMED} more" if len(named) > NAMED else "")


def _check_models(codes: Sequence[ArrayLike]) -> list[FloatArray]:
    models = [check_matrix(model, f"codes[{place}]", "n_codes") for place, model in enumerate(codes)]
    if len(models) < 2:
        raise ValueError(f"codes must be a sequence of at least two models' codes; got {len(models)}")
    for place, model in enumerate(models):
        if len(model) != len(models[0]):
            raise ValueError(
                f"codes must be of the same samples; codes[0] has {len(models[0])} rows, codes[{place}] {len(model)}"
            )
    if len(models[0]) < 2:
        raise ValueError(f"codes must have at least two rows (samples); got {len(models[0])}")
    return models


def _check_choices(similarity: str, alpha: Any, aggregate: str, n_comparisons: int | None) -> None:
    if similarity not in get_args(Similarity):
        raise ValueError(f"similarity must be 'lasso' or 'spearman'; got {similarity!r}")
    if not isinstance(alpha, str) or alpha != "cv":
        check_number("alpha, where not 'cv',", alpha, least=0)
    if aggregate not in get_args(Aggregate):
        raise ValueError(f"aggregate must be 'paper' or 'dlib'; got {aggregate!r}")
    if n_comparisons is not None:
        check_whole("n_comparisons, where not None,", n_comparisons, 1)


def _informative(models: Sequence[FloatArray], kl: Sequence[ArrayLike] | None, threshold: float) -> list[BoolArray]:
    if kl is None:
        return [np.ones(model.shape[1], dtype=bool) for model in models]
    if len(kl) != len(models):
        raise ValueError(f"kl must have one array per model ({len(models)}); got {len(kl)}")
    informative = []
    for place, (model, divergences) in enumerate(zip(models, kl, strict=True)):
        divergences = np.asarray(divergences, dtype=float)
        if divergences.shape != model.shape[1:] or not np.isfinite(divergences).all():
            raise ValueError(
                f"kl[{place}] must be {model.shape[1]} finite numbers, one per code of that model; got {divergences}"
            )
        informative.append(divergences > threshold)
    return informative


def _comparisons(
    n_models: int, groups: Sequence[Hashable] | None, n_comparisons: int | None, rng: np.random.Generator
) -> tuple[list[IntArray], tuple[str, ...]]:
    """The models that each one is compared with."""
    if groups is not None and len(groups) != n_models:
        raise ValueError(f"groups must have one entry per model ({n_models}); got {len(groups)}")
    settings = [None] * n_models if groups is None else list(groups)
    members: dict[Hashable, list[int]] = {}
    for model, setting in enumerate(settings):
        members.setdefault(setting, []).append(model)
    compared, short = [], 0
    for model, setting in enumerate(settings):
        others = np.array([other for other in members[setting] if other != model])
        if len(others) == 0:
            raise ValueError(f"groups: model {model} is alone in {setting!r}, with nothing to be compared with")
        if n_comparisons is not None:
            short += len(others) < n_comparisons
            others = np.sort(rng.permutation(others)[:n_comparisons])
        compared.append(others)
    note = f"{short} models have fewer than {n_comparisons} others to be compared with: all of these were taken"
    return compared, (note,) if short else ()


def _ranks(columns: FloatArray) -> FloatArray:
    """Ranks of each column, equals sharing their mean, standardised; a constant column is 0."""
    from scipy.stats import rankdata

    return standardised(rankdata(columns, axis=0)) if columns.shape[1] else columns


def _all_pairs(
    stacked: FloatArray,
    edges: IntArray,
    folds: IntArray,
    compared: Sequence[IntArray],
    similarity: Similarity,
    alpha: Literal["cv"] | float,
    paper: bool,
    matrices: dict[tuple[int, int], FloatArray] | None,
    progress: Callable[[int, int], None] | None,
) -> tuple[FloatArray, FloatArray, FloatArray, BoolArray]:
    n_models = len(compared)
    converged = np.ones((n_models, n_models), dtype=bool)
    pairs, penalties, largest = (np.full((n_models, n_models), np.nan) for _ in range(3))
    spans = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    parts = [stacked[start:stop] for start, stop in zip(folds[:-1], folds[1:], strict=True)]
    sums = np.stack([part.sum(axis=0) for part in parts])
    squares = np.stack([(part**2).sum(axis=0) for part in parts])
    counts = np.diff(folds).astype(float)
    own = [np.stack([part[:, low:high].T @ part[:, low:high] for part in parts]) for low, high in spans]
    for begin in range(0, n_models, TARGETS_AT_ONCE):
        targets = range(begin, min(begin + TARGETS_AT_ONCE, n_models))
        needed = np.unique(np.concatenate([compared[target] for target in targets]))
        places = np.cumsum([0, *np.diff(edges)[needed]])
        columns = np.concatenate([np.arange(*spans[model]) for model in needed])
        inputs = [part if len(columns) == edges[-1] else part[:, columns] for part in parts]
        # One large product for many pairs; skinny ones would wait for memory.
        wanted = slice(edges[begin], edges[targets[-1] + 1])
        moments = np.stack([known.T @ part[:, wanted] for known, part in zip(inputs, parts, strict=True)])
        for target in targets:
            low, high = spans[target]
            for other in compared[target]:
                at = int(np.searchsorted(needed, other))
                cross = moments[:, places[at] : places[at + 1], low - edges[begin] : high - edges[begin]]
                if 0 in cross.shape:
                    pairs[target, other] = largest[target, other] = 0.0
                    if matrices is not None:
                        matrices[target, int(other)] = np.zeros(cross.shape[:0:-1], dtype=np.float32)
                    continue
                if similarity == "spearman":
                    weights = cross[0] / counts[0]
                elif alpha == "cv":
                    span = slice(*spans[other])
                    weights, penalties[target, other], converged[target, other] = cross_validated(
                        own[other],
                        np.ascontiguousarray(cross),
                        squares[:, low:high].sum(axis=1),
                        np.ascontiguousarray(sums[:, span]),
                        np.ascontiguousarray(sums[:, low:high]),
                        counts,
                    )
                else:
                    gram, own_cross = own[other][0] / counts[0], cross[0] / counts[0]
                    weights, converged[target, other] = separate(gram, own_cross, float(alpha))
                    penalties[target, other] = alpha
                matrix = np.abs(weights.T)
                pairs[target, other] = agreement(matrix, paper)
                largest[target, other] = matrix.max()
                if matrices is not None:
                    matrices[target, int(other)] = matrix.astype(np.float32)
            if progress is not None:
                progress(target + 1, n_models)
    return pairs, penalties, largest, converged


@numba.njit(cache=True)
def agreement(similarity: FloatArray, paper: bool) -> float:
    """Eq. 2 of a non-negative matrix between informative latents; with `paper` false, the mean of the two means."""
    n_rows, n_columns = similarity.shape
    by_row, by_column = 0.0, 0.0
    for row in range(n_rows):
        total = similarity[row].sum()
        if total > 0.0:
            by_row += similarity[row].max() ** 2 / total
    for column in range(n_columns):
        total = similarity[:, column].sum()
        if total > 0.0:
            by_column += similarity[:, column].max() ** 2 / total
    if paper:
        return (by_row + by_column) / (n_rows + n_columns)
    return (by_row / n_rows + by_column / n_columns) / 2
