"""Unsupervised disentanglement ranking (UDR): models that agree with their siblings are disentangled."""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

import numpy as np

from unbraid.base.arguments import check_choice, check_number, check_whole
from unbraid.base.memory import check_memory
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.inputs import NotDefined, check_matrix, mean_and_scale, standardised
from unbraid.metrics._shared.metric import Metric
from unbraid.metrics._shared.udr_pairs import (
    FIXED,
    SPEARMAN,
    VALIDATED,
    Columns,
    Comparison,
    Pairs,
    bytes_of_pairs,
    compare_pairs,
)

Similarity = Literal["lasso", "spearman"]
Aggregate = Literal["paper", "dlib"]
N_FOLDS = 5
HEAVY = 1.05  # weights of uncorrelated standardised latents are at most 1
NAMED = 5  # models in one note
STANDARDISED, RANKED = 5, 6  # copies of the codes of one model while they are prepared


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
    least: FloatArray | None = None  # (n_models, n_models) least similarity of a code to its match, of `wide_udr` alone


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
    keep_matrices: bool | BoolArray = False,
    seed: int = 0,
    known: Pairs | None = None,
    save: Callable[[Pairs], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> UDR:
    """Rank models without labels by how well their latents match those of other models, one to one.

    For each two models a matrix R (latents of i, latents of j) says how much latent b of j matters for latent a
    of i. One strong entry in each row and column scores high (eq. 2):
    (sum_b max_a R^2 / sum_a R + sum_a max_b R^2 / sum_b R) / (d_i + d_j), d the numbers of informative latents.

    Args:
        codes: one (n_samples, n_codes) array per model, of the same samples in the same order. The paper takes
            10 000 samples for the lasso and 1 000 for Spearman; here all rows given are used. A sequence that reads
            its arrays as they are asked for is asked for each of them twice.
        factors: none. A score card calls every metric with codes and factors of one model; here it gets NotDefined.
        kl: one (n_codes,) array per model, mean KL of each latent to the prior in nats. None: every latent that varies
            counts as informative.
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
        keep_matrices: return the matrix R of every pair as well, or of those where this (n_models, n_models) is True.
        seed: of that draw and of the rows of each fold.
        known: pairs found before, of the same codes and arguments, which are not compared again; it is added to.
        save: called with all pairs known whenever some were found, so that they can be kept for another call.
        progress: called as progress(done, total), in models.

    Returns: UDR. `scores` from 0, higher is better: 1 for models that agree up to permutation and sign under "lasso"
        (.999 under "cv", 1 - alpha under a fixed penalty), and under "spearman" less, for unrelated latents correlate a
        little as well: .97 of three latents on 1 000 rows, .83 of ten, .56 of 32; less for rotations of each other,
        about 0 under "lasso" for unrelated ones. Under "lasso" also above 1, for models that are predicted from latents
        which depend on each other linearly (a note names them). A model without informative latents scores 0. Models
        that all fail alike agree too: PCA of the same data scores high.

    Raises:
        ValueError: fewer than two models, or one alone in its group that has informative latents; codes that are not
            matrices of the same samples; kl of other shapes; fewer than 10 rows for cross-validation; an argument out
            of range; it needs more memory than is free.
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
    check_number_of_models(len(codes))
    n_rows, varied = _check_models(codes)
    _check_choices(similarity, alpha, aggregate, n_comparisons)
    check_number("kl_threshold", kl_threshold, least=0)
    check_whole("seed", seed, 0)
    informative, n_models = _informative(varied, kl, kl_threshold), len(codes)
    rng = np.random.default_rng(seed)
    order = rng.permutation(n_rows)
    silent = [model for model, keep in enumerate(informative) if not keep.any()]
    mask, notes = _comparisons(n_models, groups, n_comparisons, rng, silent)
    comparison = _comparison(similarity, alpha, aggregate, n_rows)
    pairs = known or Pairs.unknown(n_models)
    if pairs.values.shape != (n_models, n_models):
        raise ValueError(f"known must hold the pairs of {n_models} models; it has those of {len(pairs.values)}")
    kept_of = [int(keep.sum()) for keep in informative]
    prepared = RANKED if similarity == "spearman" else STANDARDISED
    needed = bytes_of_pairs(n_rows, kept_of, len(comparison.folds) - 1, prepared)
    check_memory(needed, "give fewer rows or models")
    columns = Columns(n_rows, np.cumsum([0, *kept_of]))
    n_reported = 0

    def tell(done: int, total: int) -> None:
        nonlocal n_reported
        if save is not None:
            save(pairs)
        while progress is not None and (n_reported + 1) * total <= done * n_models:
            n_reported += 1
            progress(n_reported, n_models)

    for model, keep in enumerate(informative):
        chosen = check_matrix(codes[model], f"codes[{model}]", "n_codes")[:, keep]
        columns.put(model, (_ranks(chosen) if similarity == "spearman" else standardised(chosen))[order])
    keep_of = np.full(mask.shape, keep_matrices) if isinstance(keep_matrices, bool) else keep_matrices
    compare_pairs(columns, mask, comparison, pairs, keep=keep_of if keep_of.any() else None, progress=tell)
    notes += note_on_models("no informative latent, and so a score of 0", silent)
    values, penalties, largest = (_only(each, mask) for each in (pairs.values, pairs.penalties, pairs.largest))
    converged = pairs.converged | ~mask
    names = [f"model {place}" for place in range(n_models)]
    return UDR(
        scores=np.array([np.median(row[has]) if has.any() else 0.0 for row, has in zip(values, mask, strict=True)]),
        pairs=values,
        informative=np.array([keep.sum() for keep in informative]),
        penalties=penalties,
        largest=largest,
        converged=converged,
        notes=notes + notes_on_lasso(names, largest, converged),
        matrices={pair: pairs.matrices[pair] for pair in sorted(pairs.matrices) if mask[pair] and keep_of[pair]},
    )


def rotated_udr(
    codes: Sequence[FloatArray],
    *,
    similarity: Similarity,
    alpha: Literal["cv"] | float,
    aggregate: Aggregate,
    times: int,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[float, FloatArray]:
    """UDR of the first model among the others, and the highest of all where the latents of each are rotated at random.

    The highest, since a model that is to be called best was chosen for its score. Models of a single latent have none:
    these match each other however models are rotated.

    A rotation, uniform over all, keeps what the latents tell together, and changes which of them tells what: it gives
    what models agree on whose latents lie in arbitrary directions, as those of untrained encoders do. Arguments are as
    for `udr`; progress is called as progress(done, total), in rotations.

    Returns:
        The median over the other models, and (times,) the highest median of a model of two latents or more, rotated.
    """
    rng, n_rows = np.random.default_rng(0), len(codes[0])
    comparison, order = _comparison(similarity, alpha, aggregate, n_rows), rng.permutation(n_rows)
    prepared = [standardised(each)[order] for each in codes]
    judged = np.flatnonzero([each.shape[1] > 1 for each in prepared])

    def medians(models: Sequence[FloatArray], judged: IntArray) -> FloatArray:
        mask = np.isin(np.arange(len(models)), judged)[:, None] & ~np.eye(len(models), dtype=bool)
        pairs = Pairs.unknown(len(models))
        columns = Columns(n_rows, np.cumsum([0, *(each.shape[1] for each in models)]))
        for model, each in enumerate(models):
            columns.put(model, _ranks(each) if similarity == "spearman" else standardised(each))
        compare_pairs(columns, mask, comparison, pairs)
        return np.nanmedian(pairs.values[judged], axis=1)

    rotated = np.empty(times)
    for done in range(times):
        if progress is not None:
            progress(done, times)
        rotated[done] = medians([each @ rotation(each.shape[1], rng) for each in prepared], judged).max()
    return float(medians(prepared, np.array([0]))[0]), rotated


def rotation(n: int, rng: np.random.Generator) -> FloatArray:
    """A rotation or reflection, uniform over all."""
    axes, lengths = np.linalg.qr(rng.standard_normal((n, n)))
    return axes * np.sign(np.diag(lengths))


def _only(numbers: FloatArray, mask: BoolArray) -> FloatArray:
    """NaN where not wanted; the same array where it is so already, as thousands of models make large ones."""
    return np.where(mask, numbers, np.nan) if np.isfinite(numbers[~mask]).any() else numbers


def _comparison(similarity: Similarity, alpha: Literal["cv"] | float, aggregate: Aggregate, n_rows: int) -> Comparison:
    kind = SPEARMAN if similarity == "spearman" else VALIDATED if alpha == "cv" else FIXED
    n_folds = N_FOLDS if kind == VALIDATED else 1
    if n_rows < 2 * n_folds:
        raise ValueError(f"codes must have at least {2 * n_folds} rows for cross-validation; got {n_rows}")
    folds = np.cumsum([0, *(len(part) for part in np.array_split(np.arange(n_rows), n_folds))])
    return Comparison(kind, 0.0 if alpha == "cv" else float(alpha), aggregate == "paper", folds)


def notes_on_lasso(names: Sequence[str], largest: FloatArray, converged: BoolArray) -> tuple[str, ...]:
    """`heavy_note`, and which lassos have not converged; `largest` and `converged` are as `UDR` holds them."""
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
    where a model learned nothing. Standardised, they get weights above 1 that nearly cancel; `largest` is as `UDR`
    holds it.
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
    medians = {
        name: float(np.median(known))
        for name, row in zip(names, largest, strict=True)
        if (known := row[np.isfinite(row)]).size and np.median(known) > HEAVY
    }
    return dict(sorted(medians.items(), key=lambda item: -item[1]))


def _listed(heavy: Mapping[str, float]) -> str:
    named = [f"{name} ({weight:.2g})" for name, weight in heavy.items()]
    return ", ".join(named[:NAMED]) + (f" and {len(named) - NAMED} more" if len(named) > NAMED else "")


def varying(codes: FloatArray) -> BoolArray:
    """(n_codes,) which columns of (n_samples, n_codes) are not constant up to rounding."""
    return np.isfinite(mean_and_scale(np.asarray(codes, dtype=float))[1])


def _check_models(codes: Sequence[ArrayLike]) -> tuple[int, list[BoolArray]]:
    """The number of rows, and which columns of each vary."""
    rows, varied, first = [], [], codes[0]
    for place in range(len(codes)):
        each = first if place == 0 else codes[place]
        refuse_other_order(**{"codes[0]": first, f"codes[{place}]": each})
        matrix = check_matrix(each, f"codes[{place}]", "n_codes", 2)
        rows.append(len(matrix))
        if rows[place] != rows[0]:
            raise ValueError(
                f"codes must have the same samples; codes[0] has {rows[0]} rows, codes[{place}] {rows[place]}"
            )
        varied.append(varying(matrix))
    return rows[0], varied


def _check_choices(similarity: str, alpha: Any, aggregate: str, n_comparisons: int | None) -> None:
    check_choice("similarity", similarity, get_args(Similarity))
    if not isinstance(alpha, str) or alpha != "cv":
        check_number("alpha, where not 'cv',", alpha, least=0)
    check_choice("aggregate", aggregate, get_args(Aggregate))
    if n_comparisons is not None:
        check_whole("n_comparisons, where not None,", n_comparisons, 1)


def _informative(varied: list[BoolArray], kl: Sequence[ArrayLike] | None, threshold: float) -> list[BoolArray]:
    if kl is None:
        return varied
    if len(kl) != len(varied):
        raise ValueError(f"kl must have one array per model ({len(varied)}); got {len(kl)}")
    informative = []
    for place, (own, divergences) in enumerate(zip(varied, kl, strict=True)):
        divergences = np.asarray(divergences, dtype=float)
        if divergences.shape != own.shape or not np.isfinite(divergences).all():
            raise ValueError(
                f"kl[{place}] must be {len(own)} finite numbers, one per code of that model; got {divergences}"
            )
        informative.append(divergences > threshold)
    return informative


def check_number_of_models(n_models: int) -> None:
    """
    Raises:
        ValueError: there are fewer than two.
    """
    if n_models < 2:
        raise ValueError(f"codes must be a sequence of at least two models' codes; got {n_models}")


def compared(n_models: int, groups: Sequence[Hashable] | None) -> tuple[BoolArray, tuple[str, ...]]:
    """(n_models, n_models) which models, along the columns, each one is compared with: all others of its group.

    Raises:
        ValueError: there are fewer than two models, in all or in some group.
    """
    check_number_of_models(n_models)
    return _comparisons(n_models, groups, None, np.random.default_rng(0))


def _comparisons(
    n_models: int,
    groups: Sequence[Hashable] | None,
    n_comparisons: int | None,
    rng: np.random.Generator,
    silent: Sequence[int] = (),
) -> tuple[BoolArray, tuple[str, ...]]:
    """(n_models, n_models) which models, along the columns, each one is compared with; `silent` ones need no other."""
    if groups is not None and len(groups) != n_models:
        raise ValueError(f"groups must have one entry per model ({n_models}); got {len(groups)}")
    settings = [None] * n_models if groups is None else list(groups)
    members: dict[Hashable, list[int]] = {}
    for model, setting in enumerate(settings):
        members.setdefault(setting, []).append(model)
    mask, short = np.zeros((n_models, n_models), dtype=bool), 0
    for model, setting in enumerate(settings):
        own = np.array(members[setting])
        partners = own[own != model]
        if len(partners) == 0 and model not in silent:
            raise ValueError(f"groups: model {model} is the only one in {setting!r}; each group needs two models")
        if n_comparisons is not None:
            short += len(partners) < n_comparisons
            partners = rng.permutation(partners)[:n_comparisons]
        mask[model, partners] = True
    note = f"fewer than {n_comparisons} others to compare with, all of which were used: {short} of {n_models} models"
    return mask, (note,) if short else ()


def note_on_models(what: str, places: Sequence[int]) -> tuple[str, ...]:
    """What is so of the models at these places; none where there are none."""
    more = f" and {len(places) - NAMED} more" if len(places) > NAMED else ""
    return (f"{what}: {', '.join(f'model {place}' for place in places[:NAMED])}{more}",) if places else ()


def _ranks(columns: FloatArray) -> FloatArray:
    """Ranks of each column, equals sharing their mean, standardised; a constant column is 0."""
    from scipy.stats import rankdata

    return standardised(rankdata(columns, axis=0)) if columns.shape[1] else columns


METRIC = Metric(
    udr,
    of="models",
    title="Unsupervised disentanglement ranking",
    headline="scores",
    range=(0.0, math.inf),
    summary="How well the latents of a model match those of its siblings one to one; needs no labels.",
    limitations="Models that agree for another reason also score high, such as PCA of the same data.",
    source="Duan et al. 2020 (UDR), eq. 2-3",
    needs="needs the codes of several models",
    version=2,
    stochastic=True,
    interval="it compares all models at once",
    cites=("duan2020unsupervised",),
    formula=(
        r"\mathrm{UDR}_{ij} = \frac{1}{d_i + d_j} \left( \sum_b \frac{r_b^2 \, I_{\mathrm{KL}}(b)}{\sum_a R(a, b)} + "
        r"\sum_a \frac{r_a^2 \, I_{\mathrm{KL}}(a)}{\sum_b R(a, b)} \right)",
        r"$R(a, b)$ says how much latent $b$ of model $j$ matters for latent $a$ of model $i$; $r_a$ and $r_b$ are "
        r"the largest entries of its rows and columns, $I_{\mathrm{KL}}$ is 1 for latents whose KL is above 0.01, "
        r"and $d$ counts these. A model's score is the median over the models $j$ that it is compared with.",
    ),
)
