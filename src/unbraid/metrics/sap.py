"""Separated attribute predictability (SAP)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import gaps
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import single_code
from unbraid.metrics._shared.inputs import Inputs, NotDefined, as_levels, note_on, standardised
from unbraid.metrics._shared.metric import PAIRS_AND_BIAS, Metric
from unbraid.metrics._shared.train_test_split import TRAIN_FRACTION, TrainTestSplit, in_order, train_test_split

PENALTY = 0.01  # C of the linear SVM in disentanglement_lib
NULL_DRAWS = 200
FEW_ROWS = 1000  # up to which the correlations of noise are those of shuffled rows


@dataclass(frozen=True, eq=False, repr=False)
class SAP(Shown):
    score: float
    per_factor: FloatArray  # (n_factors,)
    predictability: FloatArray  # (n_codes, n_factors) squared correlation or accuracy of each code alone
    notes: tuple[str, ...] = ()


def sap(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    weights: ArrayLike | None = None,
    variant: Literal["unbraid", "disentanglement_lib"] = "unbraid",
) -> SAP:
    """Gap between the two codes that alone predict each factor best.

    Ordered factors (ordinal, continuous, cyclic) are predicted by a straight line, and the squared correlation
    counts; categorical ones by a linear SVM on one code, and what counts is its balanced accuracy on test rows (the
    mean over the L classes of the share that is named rightly) above chance, (a - 1/L) / (1 - 1/L), at least 0.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels.
        kinds: kind of each factor; see `unbraid.metrics`. The levels of a cyclic factor are read as steps on a
            line, as published tables do: a code that follows the angle through a sine has no straight line.
        seed: draws the rows (one in five) on which the SVM is tested; without SVM the score is deterministic.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        weights: (n_samples,) how many rows each row stands for, whole or not; of ordered factors alone.
        variant: "disentanglement_lib" scores as that program does with its settings for discrete factors, on which
            most published tables rest: an SVM for every factor, on codes as they are, and its plain accuracy. So the
            score depends on the scale of the codes, and noise and dead codes score the share of the class that
            they are given: the gap of a perfect code is .5 on two equal classes.

    Returns:
        SAP. `score` in [0, 1], higher is better, mean of `per_factor`; the notes name factors that are not
        plain numbers. With a single code the runner-up is 0, and so is a dead code, unless a variant says otherwise.
        Chance: see `sap_of_noise`, about 0 on many rows. Ceiling: by squared correlation 1, for a code linear in its
        factor; by SVM far less, since a line cannot single out a middle level (perfect codes of factors with
        3, 6, 40, 32 and 32 levels, those of dSprites, score .24 by disentanglement_lib). Not invariant to rotation.

    Raises:
        NotDefined: `weights` beside factors that an SVM predicts.
        ValueError: what every metric refuses, or `variant` is unknown.

    Reference:
        Kumar et al. 2018, "Variational Inference of Disentangled Latent Concepts from Unlabeled Observations",
        section 3; SNC/NK section 2. SVM as in disentanglement_lib: squared hinge, C = 0.01, balanced classes,
        one against the rest. That program draws 10 000 training and 5 000 test rows; with its settings for
        continuous factors it takes squared correlations throughout, as here where every factor is ordered.

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> round(sap(grid, grid).score, 12)
        1.0
    """
    check_choice("variant", variant, ("unbraid", "disentanglement_lib"))
    plain = variant == "disentanglement_lib"
    rows = train_test_split(codes, factors, kinds, seed, weights=weights, groups=groups)
    inputs = rows.inputs
    by_svm = [plain or kind == "categorical" for kind in inputs.kinds]
    if weights is not None and any(by_svm):
        raise NotDefined(
            f"does not support weighted rows where an SVM predicts a factor, as it does factor {by_svm.index(True)}"
        )
    worth = _worth(rows, by_svm, plain)
    if plain:
        notes = ("accuracy of a linear SVM for every factor", *rows.notes)
    else:
        around = [factor for factor, kind in enumerate(inputs.kinds) if kind == "cyclic"]
        notes = (
            *note_on(np.flatnonzero(by_svm).tolist(), "balanced accuracy above chance of a linear SVM", "categorical"),
            *note_on(around, "squared correlation, treated as linear, not circular", "cyclic"),
        )
    per_factor = gaps(worth)
    single = single_code(inputs, "the runner-up of every gap is 0")
    return SAP(float(per_factor.mean()), per_factor, worth, (*notes, *single))


def sap_of_noise(inputs: Inputs) -> Noise:
    """About 0 on many rows."""
    # On many rows N r^2 is close to chi-squared with one degree of freedom, on few not where codes or levels have heavy
    # tails; a share of n rows strays by about sqrt(p (1 - p) / n).
    draws = np.random.default_rng(0).standard_normal((NULL_DRAWS, inputs.n_codes, inputs.n_factors))
    levels = as_levels(inputs)
    few = inputs.n_samples <= FEW_ROWS and inputs.n_codes <= FEW_ROWS
    for factor, kind in enumerate(inputs.kinds):
        if kind != "categorical":
            own = _of_shuffled(inputs, factor) if few else draws[..., factor] ** 2 / inputs.n_samples
            draws[..., factor] = np.minimum(own, 1.0)
            continue
        counts = np.bincount(levels.levels[:, factor]) * (1 - TRAIN_FRACTION)
        # Classes that test rows may lack leave fewer to name, of which luck names more.
        counts = np.sort(counts)[-max(2, np.count_nonzero(counts >= 1)) :]
        chance = 1 / len(counts)
        spread = np.sqrt((chance * (1 - chance) / np.maximum(counts, 1)).sum()) / len(counts) / (1 - chance)
        draws[..., factor] = np.clip(draws[..., factor] * spread, 0.0, 1.0)
    return drawn(gaps(draws).mean(axis=-1))


def _of_shuffled(inputs: Inputs, factor: int) -> FloatArray:
    """(NULL_DRAWS, n_codes) squared correlation of each code with a factor whose rows are shuffled."""
    codes, values = standardised(inputs.codes), standardised(inputs.factors[:, [factor]])[:, 0]
    shuffled = np.random.default_rng(factor).permuted(np.tile(values, (NULL_DRAWS, 1)), axis=1)
    return (shuffled @ codes / inputs.n_samples) ** 2


def _squared_correlations(rows: TrainTestSplit, columns: IntArray) -> FloatArray:
    # Sums over samples by einsum: those of a matrix product would depend on the number of threads.
    weights = rows.inputs.weights
    factors = standardised(rows.inputs.factors, weights)[:, columns]
    parts = []
    for _, values in rows.inputs.column_blocks():
        codes = standardised(values, weights)
        if weights is not None:
            codes = codes * (weights / weights.mean())[:, None]
        parts.append(np.einsum("nd,nk->dk", codes, factors) / len(codes))
    return np.clip(np.concatenate(parts) ** 2, 0.0, 1.0)


def _worth(rows: TrainTestSplit, by_svm: Sequence[bool], plain: bool) -> FloatArray:
    """(n_codes, n_factors) squared correlation of each code alone or, of the factors `by_svm`, accuracy.

    With `plain` accuracies are of codes as they are, dead ones as well, and not above chance.
    """
    worth = np.zeros((rows.inputs.n_codes, rows.inputs.n_factors))
    lines, labels = np.flatnonzero(~np.array(by_svm)), np.flatnonzero(by_svm).tolist()
    if len(lines):
        worth[:, lines] = _squared_correlations(rows, lines)
    for code in range(rows.inputs.n_codes if labels else 0):
        values = rows.rows.code(code)
        train, test = in_order(values, rows.train), values[rows.test]
        for factor in labels:
            levels, size = rows.levels.levels[:, factor], rows.sizes[factor]
            worth[code, factor] = _svm_worth(values[train], levels[train], test, levels[rows.test], size, plain)
    return worth


def _svm_worth(
    train: FloatArray, train_levels: IntArray, test: FloatArray, test_levels: IntArray, size: int, plain: bool
) -> float:
    """Balanced accuracy above chance, on test rows, of a linear SVM on a standardised code; or as it is, accuracy.

    Values to train on ascend.
    """
    if plain:
        margins = svm_margins(train, train_levels, size, test)
        return float((margins.argmax(axis=1) == test_levels).mean())
    if train[-1] - train[0] <= 1e-12 * max(abs(train[0]), abs(train[-1])):
        return 0.0
    mean, deviation = train.mean(), train.std()
    return _above_chance(
        svm_margins((train - mean) / deviation, train_levels, size, (test - mean) / deviation), test_levels
    )


def _above_chance(margins: FloatArray, levels: IntArray) -> float:
    """Balanced accuracy on a scale on which every constant answer is 0, and nothing is below.

    Classes whose margins (n_test, size) differ by rounding alone share the answer, so that no label comes first.
    """
    counts = np.bincount(levels, minlength=margins.shape[1])
    chance = 1.0 / np.count_nonzero(counts)
    if chance == 1.0:
        return 0.0
    best = margins.max(axis=1)
    near = margins >= (best - 1e-9 * (1.0 + np.abs(best)))[:, None]
    recall = (near[np.arange(len(levels)), levels] / near.sum(axis=1) / counts[levels]).sum()
    return max(0.0, float((recall * chance - chance) / (1.0 - chance)))


def _sums(in_order: FloatArray) -> FloatArray:
    """(n + 1, 3): count, sum and sum of squares of the first 0, 1, ... values."""
    sums = np.zeros((len(in_order) + 1, 3))
    sums[:, 0] = np.arange(len(sums))
    sums[1:, 1], sums[1:, 2] = np.cumsum(in_order), np.cumsum(in_order * in_order)
    return sums


def svm_margins(values: FloatArray, levels: IntArray, size: int, test: FloatArray) -> FloatArray:
    """(n_test, size) margin of each class at each test value, -inf for a class that no training row has.

    By one linear SVM per class against the rest, a single one for two classes; `values` (n_train,) ascend. The class of
    largest margin is the answer; of equals the first.
    """
    counts = np.bincount(levels, minlength=size).tolist()
    present, sums = [label for label in range(size) if counts[label]], _sums(values)
    margins = np.full((len(test), size), -np.inf)
    if len(present) == 1:
        margins[:, present[0]] = 0.0
        return margins
    two = len(present) == 2
    # As in liblinear, the class weight applies to the class itself; the rest weighs C.
    rest = PENALTY * len(values) / (2 * counts[present[0]]) if two else PENALTY
    for label in present[1:] if two else present:
        own = values[levels == label]
        weight = PENALTY * len(values) / (len(present) * counts[label])
        slope, offset = _separate(values, sums, own, _sums(own), weight, rest)
        margins[:, label] = slope * test + offset
    if two:
        margins[:, present[0]] = -margins[:, present[1]]
    return margins


def _separate(
    values: FloatArray, sums: FloatArray, class_values: FloatArray, class_sums: FloatArray, weight: float, rest: float
) -> tuple[float, float]:
    """Slope w and offset b that minimise (w^2 + b^2) / 2 + sum of C * max(0, 1 - y (w x + b))^2.

    y is 1 and C is `weight` for the `class_values`, -1 and `rest` for the other `values`; both are in
    ascending order. Newton's method in two dimensions with the step halved until the objective falls.
    """

    def objective(slope: float, offset: float) -> tuple[float, ...]:
        return _objective(values, sums, class_values, class_sums, weight, rest, slope, offset)

    slope, offset = 0.0, 0.0
    value, by_slope, by_offset, ss, so, oo = objective(slope, offset)
    for _ in range(100):
        if by_slope * by_slope + by_offset * by_offset <= 1e-20 * (1.0 + value * value):
            break
        determinant = ss * oo - so * so
        step_slope = -(oo * by_slope - so * by_offset) / determinant
        step_offset = -(ss * by_offset - so * by_slope) / determinant
        length = 1.0
        moved = objective(slope + step_slope, offset + step_offset)
        while moved[0] > value and length > 1e-10:
            length *= 0.5
            moved = objective(slope + length * step_slope, offset + length * step_offset)
        if moved[0] > value:
            break
        slope, offset = slope + length * step_slope, offset + length * step_offset
        value, by_slope, by_offset, ss, so, oo = moved
    return slope, offset


def _objective(
    values: FloatArray,
    sums: FloatArray,
    class_values: FloatArray,
    class_sums: FloatArray,
    weight: float,
    rest: float,
    slope: float,
    offset: float,
) -> tuple[float, ...]:
    """The objective, its two first and three second derivatives.

    The rows short of their margin lie on one side of a value, so that running sums give what they add up to.
    """
    value = 0.5 * (slope * slope + offset * offset)
    by_slope, by_offset, ss, so, oo = slope, offset, 1.0, 0.0, 1.0
    for sign, cost in ((1.0, weight), (-1.0, rest)):
        count, total, squares = _sums_below(class_values, class_sums, slope, sign - offset)
        if sign < 0.0:
            # Of the others those not below: all of them, less those of all values below, and these of the class.
            (n, s, q), (n_own, s_own, q_own) = sums[-1].tolist(), class_sums[-1].tolist()
            n_below, s_below, q_below = _sums_below(values, sums, slope, sign - offset)
            count += n - n_own - n_below
            total += s - s_own - s_below
            squares += q - q_own - q_below
        constant = 1.0 - sign * offset
        value += cost * (constant * constant * count - 2.0 * sign * slope * constant * total + slope * slope * squares)
        by_slope -= 2.0 * cost * (sign * constant * total - slope * squares)
        by_offset -= 2.0 * cost * (sign * constant * count - slope * total)
        ss += 2.0 * cost * squares
        so += 2.0 * cost * total
        oo += 2.0 * cost * count
    return value, by_slope, by_offset, ss, so, oo


def _sums_below(in_order: FloatArray, sums: FloatArray, slope: float, limit: float) -> list[float]:
    """Count, sum and sum of squares of the ascending values x with slope * x < limit."""
    if slope == 0.0:
        return sums[-1 if limit > 0.0 else 0].tolist()
    if slope > 0.0:
        return sums[in_order.searchsorted(limit / slope)].tolist()
    below = sums[in_order.searchsorted(limit / slope, side="right")].tolist()
    return [whole - part for whole, part in zip(sums[-1].tolist(), below, strict=True)]


METRIC = Metric(
    sap,
    title="Separated attribute predictability",
    question="own_code",
    claims={"score": ("compactness",)},
    chance=sap_of_noise,
    summary="How much better the best code alone predicts a factor than the second best.",
    limitations="Sees straight lines only. Two factors may share one code. An SVM on one code misses middle levels.",
    source="Kumar et al. 2018, section 3; Mahon et al. 2023 (SNC/NK), section 2",
    version=2,
    stochastic=True,
    interval=PAIRS_AND_BIAS,
    cites=("kumar2018variational", "mahon2023correcting"),
    formula=(
        r"\mathrm{SAP} = \frac{1}{K} \sum_{k=1}^{K} \left( S_{j_k k} - \max_{j \ne j_k} S_{jk} \right), \qquad "
        r"S_{jk} = \frac{\mathrm{Cov}(z_j, v_k)^2}{\mathrm{Var}(z_j) \, \mathrm{Var}(v_k)}",
        r"For categorical factors $S_{jk}$ is the accuracy of a linear support vector machine on $z_j$ alone; "
        r"$j_k$ is the code of largest $S_{jk}$.",
    ),
)
