"""DCI-ES: DCI with explicitness, by the losses of probes of rising capacity, and size."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from unbraid._arguments import check_number, check_whole
from unbraid._shown import Shown
from unbraid.metrics._inputs import check_inputs, mean_and_deviation, standardised
from unbraid.metrics._luck import N_HELD_OUT, beats_luck
from unbraid.metrics._solvers.forest import classification_forest, regression_forest
from unbraid.metrics._solvers.trees import as_seen
from unbraid.metrics.dci import TrainValidTest, dci_from_importance, train_valid_test
from unbraid.types import ArrayLike, FloatArray, Kind

DEPTHS = (1, 2, 3, 4, 8, 10, 12, 14, 16, 18, 20, 32)
N_TREES = 100
DIGITS = 12  # of standardised codes
TOLD = 0.05  # informativeness below which a factor is not told, and its curve says nothing


@dataclass(frozen=True, eq=False, repr=False)
class DCIES(Shown):
    explicitness: float
    explicitness_published: float  # without regard to how much is told
    disentanglement: float
    completeness: float
    informativeness: float  # mean of the best of each factor, 1 at most; higher is better
    size: float  # n_factors / n_codes
    per_factor: FloatArray  # (n_factors,) explicitness
    informativeness_per_factor: FloatArray  # (n_factors,)
    importance: FloatArray  # (n_codes, n_factors) at the depth of the best mean informativeness
    capacities: FloatArray  # (n_capacities,) depths
    curves: FloatArray  # (n_capacities, n_factors) least test loss up to each depth
    notes: tuple[str, ...] = ()


def dci_es(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    n_trees: int = N_TREES,
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> DCIES:
    """How little capacity a probe needs to read each factor, beside DCI and the size of the codes.

    Random forests of growing depth predict each factor from all codes; `explicitness_from_curve` of their test losses
    is 1 where the shallowest does as well as the deepest.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors). Categorical factors are classified, all others regressed as numbers.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the split into four parts of training rows and one of test rows, and of the trees.
        n_trees: of each forest, 1 to 1000; the paper takes 100.
        test_codes: (n, n_codes) rows to test on; all rows of `codes` then train.
        test_factors: (n, n_factors) their factors.

    Returns:
        DCIES. `explicitness` in [-1, 1] is the headline, higher is better; 0 for a loss that falls in a straight line.
        A flat curve scores 1, also that of noise, which therefore beats perfect codes in `explicitness_published`; here
        a factor that no depth tells counts 0 (informativeness below .05, or rows kept out of the trees are predicted no
        better than by luck), with a note. Never rank by explicitness alone. `informativeness` is R^2 of regressed
        factors, and accuracy less that of guessing, over what it can be, of categorical ones. Chance: 0. Invariant to
        order, sign and monotone changes of codes, up to where cuts fall between values; not to rotation.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant, too few rows, or `n_trees` out of range.

    Reference:
        Eastwood et al. 2023, "DCI-ES: An Extended Disentanglement Framework with Connections to Identifiability",
        explicitness and size. Depths as theirs; one forest is read at every depth. Their other probes, perceptrons and
        random features, are not here.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (8, 9), ("ordinal", "ordinal")).grid(), (4, 1))
        >>> dci_es(grid, grid, n_trees=10).explicitness > 0.95
        True
    """
    check_whole("n_trees", n_trees, 1, 1000)
    inputs = check_inputs(codes, factors, kinds, seed)
    split = train_valid_test(inputs, seed, test_codes, test_factors, (0.8, 0.2))
    rows = split.inputs
    found = [_one_factor(split, column, seed, n_trees) for column in range(rows.n_factors)]
    losses, baselines = np.stack([each.losses for each in found], axis=1), np.array([each.baseline for each in found])
    told = 1.0 - losses / baselines
    best = told.max(axis=0)
    known = np.array([each.beats_luck for each in found]) & (best >= TOLD)
    published = _explicitness(losses, baselines)
    depth = int(told.mean(axis=1).argmax())
    importance = np.stack([each.importance[depth] for each in found], axis=1) * known
    dci = dci_from_importance(importance)
    per_factor = np.where(known, _explicitness(np.minimum(losses, baselines), baselines), 0.0)
    return DCIES(
        explicitness=float(per_factor.mean()),
        explicitness_published=float(published.mean()),
        disentanglement=dci.disentanglement,
        completeness=dci.completeness,
        informativeness=float(best.mean()),
        size=inputs.n_factors / inputs.n_codes,
        per_factor=per_factor,
        informativeness_per_factor=best,
        importance=importance,
        capacities=np.array(DEPTHS, dtype=float),
        curves=np.minimum.accumulate(losses, axis=0),
        notes=(
            *(
                f"factor {factor}: no depth tells it ({best[factor]:.2f}), so that its flat curve counts 0"
                for factor in np.flatnonzero(~known)
            ),
            *(f"factor {k} is cyclic: regressed as a number" for k, kind in enumerate(rows.kinds) if kind == "cyclic"),
            *dci.notes,
        ),
    )


def explicitness_from_curve(capacities: ArrayLike, losses: ArrayLike, baseline: float = 1.0) -> float:
    """1 - 2 A / ((largest - smallest capacity) baseline), A the area of the curve of losses above its least.

    Args:
        capacities: (n,) ascending, at least two.
        losses: (n,) of which the least so far counts at each capacity.
        baseline: loss of a constant: 1 for 1 - R^2, 1 - 1 / n_classes for wrong classes.

    Returns:
        In [-1, 1] for losses from 0 to `baseline`: 1 flat, 0 falling in a straight line, -1 falling at the end alone.

    Raises:
        ValueError: shapes disagree, capacities do not ascend, or a number is not finite.

    Example:
        >>> explicitness_from_curve([1, 2, 3], [0.5, 0.25, 0.0]), explicitness_from_curve([1, 2, 3], [1, 1, 0])
        (0.5, -0.5)
    """
    check_number("baseline", baseline, above=0.0)
    x, y = np.asarray(capacities, dtype=float), np.asarray(losses, dtype=float)
    if x.ndim != 1 or x.shape != y.shape or len(x) < 2 or not np.isfinite([x, y]).all() or (np.diff(x) <= 0).any():
        raise ValueError("capacities must ascend, with a finite loss for each, and be two at least")
    least = np.minimum.accumulate(y)
    area = np.sum(np.diff(x) * (least[1:] + least[:-1] - 2 * least[-1]) / 2)
    return float(1.0 - 2.0 * area / ((x[-1] - x[0]) * baseline))


def _explicitness(losses: FloatArray, baselines: FloatArray) -> FloatArray:
    """(n_factors,)"""
    pairs = zip(losses.T, baselines, strict=True)
    return np.array([explicitness_from_curve(DEPTHS, curve, baseline) for curve, baseline in pairs])


class _Found(NamedTuple):
    losses: FloatArray  # (n_capacities,)
    baseline: float
    importance: FloatArray  # (n_capacities, n_codes)
    beats_luck: bool


def _one_factor(split: TrainValidTest, column: int, seed: int, n_trees: int) -> _Found:
    # Values that differ by rounding alone are one value: no cut goes between them.
    codes, values = np.round(standardised(split.inputs.codes), DIGITS), split.inputs.factors[:, column]
    known, asked, learnt, truth = codes[split.train], codes[split.test], values[split.train], values[split.test]
    at = np.array(DEPTHS) - 1
    if split.inputs.kinds[column] == "categorical":
        present, classes = as_seen(learnt)
        forest = classification_forest(
            known, classes, asked, n_trees=n_trees, seed=seed, by="impurity", n_held_out=N_HELD_OUT
        )
        losses = (present[forest.predictions[at].argmax(axis=2)] != truth).mean(axis=1)
        held_out = classes[forest.held_out], np.ones(len(forest.held_out))
        baseline, centred = 1.0 - 1.0 / max(len(np.unique(values)), 2), forest.out_of_bag
    else:
        forest = regression_forest(
            known, learnt, asked, n_trees=n_trees, seed=seed, by="impurity", n_held_out=N_HELD_OUT
        )
        centre, scale = (each[0] for each in mean_and_deviation(values[:, None]))
        missed = (((forest.predictions[at, :, 0] - truth) / scale) ** 2).mean(axis=1)
        varied = (((truth - truth.mean()) / scale) ** 2).mean()
        losses, baseline = missed / varied if varied > 0 else np.ones(len(at)), 1.0
        centred = (forest.out_of_bag - centre) / scale
        held_out = np.zeros(len(forest.held_out), dtype=np.int64), (learnt[forest.held_out] - centre) / scale
    best = int(losses.argmin())
    lucky = beats_luck(centred[at[best]], held_out, split.inputs.n_factors, seed)
    return _Found(losses, baseline, forest.importance[at], lucky)
