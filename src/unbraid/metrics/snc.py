"""Single-neuron classification (SNC)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.alignment import BINS, align_live, notes_on_unaligned, training_information
from unbraid.metrics._shared.bins import ROUNDING, Binning, but_for_rounding
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_bins
from unbraid.metrics._shared.inputs import Inputs, as_levels
from unbraid.metrics._shared.metric import HALVES, Metric
from unbraid.metrics._shared.train_test_split import (
    TRAIN_FRACTION,
    TrainTestSplit,
    adjusted,
    guessing,
    in_order,
    train_test_split,
)

NULL_DRAWS = 200
MOST_BINS = 1000  # of bins="paper"; the assignment of bins to classes takes the cube of their number
BITS = 40  # of a code in its unit
BEARABLE = 5000  # where min_bin_size asks for more of them; the assignment holds the square of their number


@dataclass(frozen=True, eq=False, repr=False)
class SNC(Shown):
    score: float
    mean_accuracy: float
    per_factor: FloatArray  # (n_factors,) chance-adjusted accuracy
    accuracy: FloatArray  # (n_factors,)
    chance: FloatArray  # (n_factors,)
    alignment: IntArray  # (n_factors,) code of each factor, -1 for none
    mutual_information: FloatArray  # (n_codes, n_factors), nats; what the alignment maximises
    notes: tuple[str, ...] = ()


def snc(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    bins: Literal["classes", "paper"] = "classes",
    min_bin_size: int | None = None,
    binning: Binning = "width",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> SNC:
    """How well one code alone, cut into intervals, predicts the level of its factor.

    Factors are aligned to distinct codes by the largest total mutual information on training rows (codes in 20
    equal-width bins); of alignments as good as each other what codes and factors hold picks one, and not the order of
    columns. The aligned code is cut into intervals, each of one class, whose accuracy other rows measure.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        bins: "classes" cuts one interval per class that holds as many rows as the class, in the order of the
            classes' mean codes. "paper" cuts intervals of equal counts, the greatest common divisor of the class
            counts, and a class may own as many of them as its count asks for.
        min_bin_size: rows per interval that "paper" keeps at least; None takes the square root of the smallest
            class, and at most 1000 intervals. There may be 5000.
        binning: of the codes whose information decides the alignment: bins of equal "width", or of equal "mass", on
            which outliers have no hold.
        test_codes: rows to test on instead; `codes` are then all used to choose the intervals.
        test_factors: levels of `test_codes`.

    Returns:
        SNC. `score` in [0, 1], higher is better, mean of `per_factor`: max(0, (a - r) / (1 - r)) with accuracy a and
        chance r, both kept. Chance: see `snc_of_noise`, about 0 on many rows; below 0 nothing scores, so that few test
        rows leave noise above it (.13 on 10 of two classes). With fewer codes than factors those left without a code
        score 0. Not invariant to rotation; blind to what only several codes tell together, which is its purpose.

    Raises:
        ValueError: what every metric refuses, or `bins` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 2-4. Its Table 1 is
        `accuracy - chance`. Differs: "classes" is the paper's rule for balanced classes, and gives 1 to a perfect code
        whatever the counts, where intervals of a common divisor would hold a row each. Rows of equal code are never
        parted; where some class is therefore named more often than it occurs, r is the agreement of these answers by
        luck, if larger than eq. 4. a is measured on test rows, and r guesses with the training frequencies.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid(), (20, 1))
        >>> snc(grid, grid).score
        1.0
    """
    check_choice("bins", bins, ("classes", "paper"))
    if min_bin_size is not None:
        check_whole("min_bin_size, where not None,", min_bin_size, 1)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    information = training_information(rows, binning)
    alignment = align_live(rows, information)
    accuracy, chance = _accuracies(rows, alignment, bins, min_bin_size)
    scores = adjusted(accuracy, chance)
    notes = (*rows.notes, *notes_on_bins(rows.inputs, BINS, binning), *notes_on_unaligned(alignment))
    return SNC(float(scores.mean()), float(accuracy.mean()), scores, accuracy, chance, alignment, information, notes)


def _accuracies(
    rows: TrainTestSplit, alignment: IntArray, bins: str, min_bin_size: int | None
) -> tuple[FloatArray, FloatArray]:
    """(n_factors,) each: accuracy on the test rows by each factor's own code, and chance."""
    chance = guessing(rows).copy()
    accuracy, levels = chance.copy(), rows.levels.levels
    for factor in np.flatnonzero(alignment >= 0).tolist():
        values = _rounded(rows.rows.code(alignment[factor]))
        train, true = in_order(values, rows.train), levels[rows.test, factor]
        known, classes, test = values[train], levels[train, factor], values[rows.test]
        # Where equal values or counts leave a choice, the code and its mirror image choose otherwise: both count half.
        sides = (known, classes, test), (-known[::-1], classes[::-1].copy(), -test)
        judged = [_judge(*side, true, rows.sizes[factor], bins, min_bin_size) for side in sides]
        accuracy[factor], by_luck = np.mean(judged, axis=0)
        chance[factor] = max(chance[factor], by_luck)
    return accuracy, chance


def _hits(
    cuts: FloatArray, owner: IntArray, counts: FloatArray, values: FloatArray, true: IntArray, rounding: float
) -> tuple[int, float]:
    """How many test rows get their class, once with values a hair lower and once a hair higher; and how often by luck.

    Cuts ascend. Luck is the accuracy of the training rows' answers, shuffled.
    """
    answered = np.bincount(owner, counts.sum(axis=1), minlength=counts.shape[1])
    lower, higher = np.searchsorted(cuts, values - rounding), np.searchsorted(cuts, values + rounding)
    hits = np.count_nonzero(owner[lower] == true) + np.count_nonzero(owner[higher] == true)
    return int(hits), float(answered[true].sum()) / (float(answered.sum()) * len(values))


def snc_of_noise(inputs: Inputs) -> Noise:
    """About 0 on many rows."""
    # A share p of n test rows strays by sqrt(p (1 - p) / n), and nothing is below 0.
    shares = [np.bincount(column) / inputs.n_samples for column in as_levels(inputs).levels.T]
    chance = np.array([np.dot(share, share) for share in shares])
    n_test = max(1.0, (1 - TRAIN_FRACTION) * inputs.n_samples)
    spread = np.sqrt(chance / (1 - chance) / n_test)
    draws = np.clip(spread * np.random.default_rng(0).standard_normal((NULL_DRAWS, inputs.n_factors)), 0.0, 1.0)
    draws[:, inputs.n_codes :] = 0.0  # factors without a code
    return drawn(draws.mean(axis=1))


def single_code_predictions(rows: TrainTestSplit) -> IntArray:
    """(n_test, n_factors) levels of test rows, each told by the one code that `snc` aligns to the factor.

    Where no code is left for a factor, its commonest level.
    """
    predicted = np.empty((len(rows.test), len(rows.sizes)), dtype=int)
    for factor, code in enumerate(align_live(rows, training_information(rows, "width"))):
        if code < 0:
            predicted[:, factor] = np.bincount(rows.levels.levels[rows.train, factor]).argmax()
            continue
        values = _rounded(rows.rows.code(code))
        train = in_order(values, rows.train)
        cuts, owner, _ = _intervals(
            values[train], rows.levels.levels[train, factor], rows.sizes[factor], "classes", None
        )
        predicted[:, factor] = owner[np.searchsorted(cuts, values[rows.test])]
    return predicted


def _rounded(values: FloatArray) -> FloatArray:
    """From -1 to 1 (n_samples,); what rounding alone tells apart is equal, and so not parted by a cut."""
    unit = 2.0 ** np.frexp(np.abs(values).max())[1]
    return but_for_rounding(values / unit, BITS)


def _judge(
    values: FloatArray, classes: IntArray, test: FloatArray, true: IntArray, size: int, bins: str, least: int | None
) -> tuple[float, float]:
    """Accuracy on the test rows, and what the same answers would hit by luck; training values ascend."""
    cuts, owner, counts = _intervals(values, classes, size, bins, least)
    # A test value on a cut, which lies midway between training values, goes half to either side.
    rounding = ROUNDING * max(-values[0], values[-1], -test.min(), test.max())
    hits, by_luck = _hits(cuts, owner, counts, test, true, rounding)
    return hits / (2 * len(test)), by_luck


def _intervals(
    values: FloatArray, classes: IntArray, size: int, bins: str, min_bin_size: int | None
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Cuts of ascending values, the class of each interval between them, and its rows (n_intervals, n_classes)."""
    counts = np.bincount(classes, minlength=size)
    if bins == "classes":
        means = np.bincount(classes, weights=values, minlength=size) / np.maximum(counts, 1)
        borders = np.cumsum(counts[np.argsort(np.round(means, 12), kind="stable")])[:-1]
        places = np.ones(size, dtype=int)
    else:
        places = _places(counts, min_bin_size)
        borders = np.arange(1, places.sum()) * (len(values) / places.sum())
    cuts, by_class = _cut(values, classes, borders.astype(np.float64), size)
    return cuts, _owners(by_class, places), by_class


def _places(counts: IntArray, min_bin_size: int | None) -> IntArray:
    """(n_classes,) how many intervals of equal count each class may own."""
    total = int(counts.sum())
    smallest = min_bin_size if min_bin_size is not None else max(np.sqrt(counts[counts > 0].min()), total / MOST_BINS)
    n_bins = round(total / max(gcd(*counts.tolist()), smallest))
    if n_bins > BEARABLE:
        raise ValueError(
            f"min_bin_size must be at least {-(-total // BEARABLE)} on {total} rows, for {BEARABLE} intervals at most; "
            f"got {min_bin_size}"
        )
    exact = counts * (max(n_bins, len(counts)) / total)
    places = np.floor(exact + 1e-9).astype(int)
    # The largest remainders get the intervals that rounding down has left over.
    left = round(exact.sum()) - places.sum()
    places[np.argsort(places - exact, kind="stable")[:left]] += 1
    return places


def _cut(values: FloatArray, classes: IntArray, borders: FloatArray, size: int) -> tuple[FloatArray, FloatArray]:
    """Cuts (n_intervals - 1,), and between them the rows of each class (n_intervals, size).

    The counts below cuts come nearest to `borders` without parting equal values. Values and borders ascend.
    """
    starts = np.flatnonzero(np.concatenate([[True], values[1:] != values[:-1], [True]]))  # of equal values, and the end
    right = np.clip(np.searchsorted(starts, borders), 1, len(starts) - 1)
    places = np.where(borders - starts[right - 1] < starts[right] - borders, right - 1, right)
    edges = starts[np.unique(places[(places > 0) & (places < len(starts) - 1)])]
    low, high = values[edges - 1], values[edges]
    middle = low + (high - low) / 2
    interval = np.repeat(np.arange(len(edges) + 1), np.diff(edges, prepend=0, append=len(values)))
    counts = np.bincount(interval * size + classes, minlength=(len(edges) + 1) * size).reshape(-1, size)
    # Between neighbouring floats the middle rounds to one of them; a cut belongs to its left side.
    return np.where(middle < high, middle, low), counts.astype(float)


def _owners(counts: FloatArray, places: IntArray) -> IntArray:
    """(n_intervals,) class of each interval, for the most correct rows; `counts` are (n_intervals, n_classes).

    An interval that swallowed several places, because equal values may not be parted, takes part once for each
    and goes to the class that it serves best.
    """
    from scipy.optimize import linear_sum_assignment  # a fifth of a second to import

    sizes = counts.sum(axis=1)
    units = np.ones(len(counts), dtype=int)
    if (places > 1).any():
        units = np.maximum(1, np.rint(sizes * (places.sum() / sizes.sum())).astype(int))
    interval, owner = np.repeat(np.arange(len(counts)), units), np.repeat(np.arange(len(places)), places)
    gain = (counts / units[:, None])[interval][:, owner]
    chosen, columns = linear_sum_assignment(gain, maximize=True)
    served = np.full(counts.shape, -1.0)
    served[interval[chosen], owner[columns]] = 0.0
    np.add.at(served, (interval[chosen], owner[columns]), gain[chosen, columns])
    # Rounding may leave an interval without any place: it says what most of its rows are.
    return np.where((served >= 0).any(axis=1), served.argmax(axis=1), counts.argmax(axis=1))


METRIC = Metric(
    snc,
    title="Single-neuron classification",
    question="own_code",
    claims={"score": ("alignment",)},
    chance=snc_of_noise,
    summary="How well each factor's own code, cut into intervals, predicts the factor's level.",
    limitations="Does not see whether other codes have the same information, or that a level is in several intervals.",
    source="Mahon et al. 2023 (SNC/NK), eq. 2-4",
    version=4,
    stochastic=True,
    interval=HALVES,
    cites=("mahon2023correcting",),
    formula=(
        r"\mathrm{SNC} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right), \qquad "
        r"\pi = \arg\max_{\pi \text{ one to one}} \sum_k I(z_{\pi(k)}; v_k)",
        r"$a_k$ is the accuracy on test rows with which intervals of the one code $z_{\pi(k)}$ name the level of "
        r"factor $k$, $r_k$ that of guessing.",
    ),
)
