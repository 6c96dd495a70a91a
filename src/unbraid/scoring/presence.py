"""Whether a factor is present: held-out predictions, and labels that have nothing to do with them."""

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.scoring.readings import Reading, Splits, Target

LEVEL = 0.01  # of the test that a factor is present, over all factors
SHUFFLES = 4_000  # of labels, where two approximations of p disagree
ENOUGH_SHUFFLED = 20  # of which so many do as well


def presence_p(target: Target, reading: Reading, splits: Splits, groups: IntArray | None, *, in_time: bool) -> float:
    """Of labels that have nothing to do with the predictions, being predicted as well.

    Predictions and labels, each less the mean of its part, are multiplied. Their sum over groups of rows is
    compared with its own spread, or with that of the same sum when labels are shifted in time.

    Args:
        target: the labels.
        reading: held-out predictions of them.
        splits: of the rows, as `HeldOut` has them.
        groups: (n_rows,) of rows that depend on each other; None where none do.
        in_time: whether neighbouring rows are alike, so that labels are shifted.
    """
    from scipy.special import stdtr

    scale = np.sqrt(np.maximum((target.columns**2).mean(axis=0), 1e-12))
    predicted, true = reading.predictions / scale, target.columns / scale
    for _, test in splits:
        predicted[test] -= predicted[test].mean(axis=0)
    if in_time:
        return _shifted(predicted, true, splits)
    true = true.copy()
    for _, test in splits:
        true[test] -= true[test].mean(axis=0)
    products = (predicted * true).sum(axis=1)
    products = products if groups is None else np.bincount(groups, weights=products)
    total, spread = float(products.sum()), float(np.sqrt((products**2).sum()))
    if spread == 0 or total <= 0:
        return 1.0
    by_products = float(stdtr(len(products) - 1, -total / spread))
    if groups is not None:
        return by_products
    # The spread over all orders of the labels, in which a few rows of a rare class count for what they are.
    orders = np.sqrt(((predicted.T @ predicted) * (true.T @ true)).sum() / (len(true) - 1))
    by_orders = float(stdtr(1e6, -total / orders))
    if max(by_products, by_orders) < LEVEL / 100 or min(by_products, by_orders) > 5 * LEVEL:
        return max(by_products, by_orders)
    return _shuffled(predicted, true, total, splits)


def _shifted(predicted: FloatArray, true: FloatArray, splits: Splits) -> float:
    """By the sums of products when labels are shifted against predictions, within each part."""
    from scipy.special import stdtr

    shortest = min(len(test) for _, test in splits)
    sums = np.zeros(shortest)
    for _, test in splits:
        part = test[:shortest]
        known, answer = predicted[part], true[part] - true[part].mean(axis=0)
        spectrum = np.fft.rfft(known - known.mean(axis=0), axis=0).conj() * np.fft.rfft(answer, axis=0)
        sums += np.fft.irfft(spectrum.sum(axis=1), shortest)
    margin = shortest // 10
    shifted = sums[margin : shortest - margin]
    by_rank = float((1 + (shifted >= sums[0]).sum()) / (1 + len(shifted)))
    by_spread = float(stdtr(1e6, -(sums[0] - shifted.mean()) / max(float(shifted.std()), 1e-300)))
    return by_spread if by_rank <= LEVEL else max(by_rank, by_spread)


def _shuffled(predicted: FloatArray, true: FloatArray, total: float, splits: Splits) -> float:
    """Share of orders of the labels, within parts, in which the products sum to as much.

    No more are drawn once it is plain that the share is above `LEVEL` / 2 (Besag and Clifford 1991, "Sequential
    Monte Carlo p-values").
    """
    rng, at_least = np.random.default_rng(0), 0
    for batch in range(SHUFFLES // 100):
        order = np.empty((100, len(true)), dtype=int)
        for _, test in splits:
            order[:, test] = rng.permuted(np.tile(test, (100, 1)), axis=1)
        products = [column[order] @ answer for column, answer in zip(predicted.T, true.T, strict=True)]
        at_least += np.count_nonzero(np.sum(products, axis=0) >= total * (1 - 1e-9))
        if at_least >= ENOUGH_SHUFFLED:
            return at_least / (100 * (batch + 1))
    return (1 + at_least) / (1 + SHUFFLES)
