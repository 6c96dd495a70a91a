"""Losses of probes of rising capacity, for DCI-ES: forests of growing depth, perceptrons and random features."""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from unbraid.base.arguments import check_whole
from unbraid.base.threads import at_once
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.factor_forest import factor_forest
from unbraid.metrics._shared.inputs import mean_and_deviation, mean_and_scale, standardised
from unbraid.metrics._shared.regression import least_squares
from unbraid.metrics._shared.train_valid_test import TrainValidTest
from unbraid.metrics._solvers.forest import MAX_DEPTH, SortedCodes, sorted_codes
from unbraid.metrics._solvers.logistic import softmax, softmax_regression
from unbraid.metrics._solvers.network import perceptron
from unbraid.metrics._solvers.trees import as_seen

DEPTHS = (1, 2, 3, 4, 8, 10, 12, 14, 16, 18, 20, 32)
UNITS = (0, 2, 4, 8, 16, 32, 64, 128, 256)  # of the hidden layer; without one the probe is linear
FEATURES = (16, 32, 64, 128, 256, 512, 1024, 2048)
# The depths, hidden units or random features of each probe where none are given, and the least and the most.
CAPACITIES: dict[str, tuple[tuple[int, ...], int, int]] = {
    "forest": (DEPTHS, 1, MAX_DEPTH),
    "mlp": (UNITS, 0, 4096),
    "rff": (FEATURES, 2, 8192),
}
CYCLES = 0.08  # of random features within a standard deviation of a code
PENALTY = 1.0  # on the squared weights of random features, beside the sum of squared errors
DIGITS = 12  # of standardised codes

Probe = Callable[[FloatArray], FloatArray]  # predictions (n, n_columns) of codes (n, n_codes)


class Curves(NamedTuple):
    capacities: FloatArray  # (n_capacities,)
    losses: FloatArray  # (n_capacities, n_factors) on test rows
    baselines: FloatArray  # (n_factors,) loss of a constant
    importance: Callable[[int], FloatArray]  # (n_codes, n_factors) at one capacity


def check_capacities(probe: str, capacities: Iterable[int] | None) -> tuple[int, ...]:
    """Two or more ascending numbers of a probe; its own where None are given."""
    own, least, most = CAPACITIES[probe]
    if capacities is None:
        return own
    numbers = tuple(check_whole(f"capacities[{i}]", each, least, most) for i, each in enumerate(capacities))
    if len(numbers) < 2 or any(one >= other for one, other in pairwise(numbers)):
        raise ValueError(f"capacities must be at least two ascending whole numbers; got {list(numbers)}")
    if probe == "rff" and any(number % 2 for number in numbers):
        raise ValueError(f"capacities of rff must be even (cosines and sines); got {list(numbers)}")
    return numbers


def by_forests(split: TrainValidTest, seed: int, n_trees: int, depths: Sequence[int]) -> Curves:
    """One forest a factor, read at every depth; importance is the share of impurity."""
    factors = split.inputs.factors.T
    costs = [len(np.unique(each)) for each in factors]
    # Values that differ by rounding alone are one value: no cut goes between them.
    rounded = np.round(standardised(split.inputs.codes), DIGITS)
    codes = sorted_codes(rounded[split.train], rounded[split.test])
    results = at_once(
        lambda column, _: _forest(split, codes, column, seed, n_trees, depths), range(len(factors)), costs
    )
    losses, baselines, importances = zip(*results, strict=True)
    return Curves(
        np.array(depths, dtype=float),
        np.stack(losses, axis=1),
        np.array(baselines),
        lambda place: np.stack([each[place] for each in importances], axis=1),
    )


def _forest(
    split: TrainValidTest, codes: SortedCodes, column: int, seed: int, n_trees: int, depths: Sequence[int]
) -> tuple[FloatArray, float, FloatArray]:
    values = split.inputs.factors[:, column]
    scale = float(mean_and_deviation(values[:, None])[1][0])
    forest = factor_forest(
        split,
        column,
        codes,
        split.test,
        scale=scale,
        n_trees=n_trees,
        seed=seed,
        max_depth=max(depths),
    )
    at, truth = np.array(depths) - 1, values[split.test]
    losses, baseline = forest.errors[at].mean(axis=1), 1.0
    if split.inputs.kinds[column] == "categorical":
        baseline = _wrong_by_guessing(values)
    else:
        varied = (((truth - truth.mean()) / scale) ** 2).mean()
        losses = losses / varied if varied > 0 else np.ones(len(at))
    return losses, baseline, forest.importance[at]


def _wrong_by_guessing(values: FloatArray) -> float:
    return 1.0 - 1.0 / max(len(np.unique(values)), 2)


def by_perceptrons(split: TrainValidTest, seed: int, widths: Sequence[int]) -> Curves:
    """A perceptron a factor and width; capacity is the log of its parameters, of all factors on average."""
    (_, codes), targets = _live_codes(split), _targets(split)
    known = codes[split.train]
    columns = np.mean([target.learnt.shape[1] for target in targets])
    d = known.shape[1]
    n_parameters = [(d + 1) * units + (units + 1) * columns if units else (d + 1) * columns for units in widths]

    def probe(units: int) -> Probe:
        heads = [_head(known, target, units, seed) for target in targets]
        return lambda inputs: np.concatenate([head(inputs) for head in heads], axis=1)

    return _judged(split, seed, np.log(n_parameters), [probe(units) for units in widths])


def _head(known: FloatArray, target: "_Target", units: int, seed: int) -> Probe:
    if units:
        raw = perceptron(known, target.learnt, hidden=units, seed=seed, classes=target.classes is not None)
    elif target.classes is None:
        return lambda inputs: least_squares(known, target.learnt, inputs)
    else:
        weights = softmax_regression(known, target.learnt.argmax(axis=1), target.learnt.shape[1]).weights
        raw = lambda inputs: inputs @ weights[:-1] + weights[-1]  # noqa: E731
    if target.classes is None:
        return raw
    return lambda inputs: softmax(raw(inputs))


def by_random_features(split: TrainValidTest, seed: int, numbers: Sequence[int]) -> Curves:
    """Ridge regression on cosines and sines of random directions; capacity is the log of their number."""
    from scipy.linalg import cho_factor, cho_solve

    (_, codes), targets = _live_codes(split), _targets(split)
    known, learnt = codes[split.train], np.concatenate([target.learnt for target in targets], axis=1)
    directions = 2 * np.pi * CYCLES * np.random.default_rng(seed).standard_normal((numbers[-1] // 2, known.shape[1]))

    def features(rows: FloatArray, number: int) -> FloatArray:
        angles = rows @ directions[: number // 2].T
        return np.stack([np.cos(angles), np.sin(angles)], axis=2).reshape(len(rows), number)

    # Few features are the first of many, in pairs, so that one table of products serves all capacities.
    full = features(known, numbers[-1])
    mean, centre = full.mean(axis=0), learnt.mean(axis=0)
    full -= mean
    products, answers = full.T @ full, full.T @ (learnt - centre)
    del full

    def probe(number: int) -> Probe:
        few = slice(number)
        weights = cho_solve(cho_factor(products[few, few] + PENALTY * np.eye(number)), answers[few])
        return lambda inputs: centre + (features(inputs, number) - mean[few]) @ weights

    return _judged(split, seed, np.log(numbers), [probe(number) for number in numbers])


class _Target(NamedTuple):
    learnt: FloatArray  # (n_train, n_columns) standardised values, or indicators of classes
    truth: FloatArray  # (n_test,) on the scale of `learnt`, or as given
    classes: FloatArray | None  # (n_columns,) of a categorical factor
    baseline: float

    def loss(self, predicted: FloatArray) -> float:
        if self.classes is not None:
            return float((self.classes[predicted.argmax(axis=1)] != self.truth).mean())
        varied = ((self.truth - self.truth.mean()) ** 2).mean()
        return float(((predicted[:, 0] - self.truth) ** 2).mean() / varied) if varied > 0 else 1.0


def _targets(split: TrainValidTest) -> list[_Target]:
    targets = []
    for values, kind in zip(split.inputs.factors.T, split.inputs.kinds, strict=True):
        learnt, truth = values[split.train], values[split.test]
        if kind == "categorical":
            present, classes = as_seen(learnt)
            targets.append(_Target(np.eye(len(present))[classes], truth, present, _wrong_by_guessing(values)))
        else:
            mean, scale = mean_and_scale(learnt[:, None])
            targets.append(_Target((learnt[:, None] - mean) / scale, (truth - mean) / scale, None, 1.0))
    return targets


def _live_codes(split: TrainValidTest) -> tuple[IntArray, FloatArray]:
    """Which codes vary on the training rows, and these (n_samples, n_live), of mean 0 and variance 1 there."""
    mean, scale = mean_and_scale(split.inputs.codes[split.train])
    live = np.flatnonzero(scale < np.inf)
    return live, (split.inputs.codes[:, live] - mean[live]) / scale[live]


def _judged(split: TrainValidTest, seed: int, capacities: FloatArray, probes: Sequence[Probe]) -> Curves:
    """Importance is how much the loss rises when a code is shuffled among the test rows."""
    (live, codes), targets = _live_codes(split), _targets(split)
    test_codes = codes[split.test]
    ends = np.cumsum([target.learnt.shape[1] for target in targets])[:-1]

    def losses_of(predicted: FloatArray) -> list[float]:
        return [target.loss(own) for target, own in zip(targets, np.split(predicted, ends, axis=1), strict=True)]

    losses = np.array([losses_of(probe(test_codes)) for probe in probes])

    def importance(place: int) -> FloatArray:
        rng, rises = np.random.default_rng(seed), np.zeros((split.inputs.n_codes, len(targets)))
        for position, code in enumerate(live):
            shuffled = test_codes.copy()
            shuffled[:, position] = rng.permutation(shuffled[:, position])
            rises[code] = np.maximum(losses_of(probes[place](shuffled)) - losses[place], 0.0)
        return rises

    return Curves(capacities, losses, np.array([target.baseline for target in targets]), importance)
