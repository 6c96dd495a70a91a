"""Linear classifiers that read factors off codes."""

from dataclasses import dataclass

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.probes import BATCH, EPOCHS_OF_PAPER, LINEAR, RATE_OF_PAPER, SHUFFLES, padded_inputs
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_test_split import (
    TrainTestSplit,
    most_and_rest,
    renumbered,
    standardised_codes,
    training_codes,
)
from unbraid.metrics._solvers.logistic import Regression, softmax_regressions, validated_regressions
from unbraid.metrics._solvers.perceptron import linear_classes, linear_epoch


@dataclass(frozen=True, eq=False)
class LinearHeads:
    """The best linear classifier of each factor."""

    logits: tuple[FloatArray, ...]  # (n_test, size) each
    notes: tuple[str, ...]

    @property
    def predicted(self) -> IntArray:
        """(n_test, n_factors) levels."""
        return np.stack([logits.argmax(axis=1) for logits in self.logits], axis=1)


@shared
def linear_heads(split: TrainTestSplit) -> LinearHeads:
    """Linear classifiers with the penalty of scikit-learn's default, trained to their optimum."""
    return _heads(split, softmax_regressions(*_training_rows(split)))


@shared
def validated_linear_heads(split: TrainTestSplit, seed: int) -> LinearHeads:
    """Linear classifiers with the penalty, and the codes, that do best on a fifth of the training rows.

    Whole groups are held back for validation, unless all training rows are of one group.

    Raises:
        ValueError: there are fewer than three training rows.
    """
    groups = split.inputs.groups
    groups = None if groups is None else np.unique(groups[split.train], return_inverse=True)[1]
    if groups is not None and not groups.any():
        groups = None
    fit, validation = most_and_rest(len(split.train), seed, groups)
    return _heads(split, validated_regressions(*_training_rows(split), fit, validation))


def _training_rows(split: TrainTestSplit) -> tuple[FloatArray, IntArray, tuple[int, ...]]:
    return training_codes(split), split.levels.levels[split.train], split.sizes


def _heads(split: TrainTestSplit, heads: list[Regression]) -> LinearHeads:
    test = standardised_codes(split)[split.test]
    return LinearHeads(
        # Not a matrix product: its sums would depend on the number of threads.
        tuple(np.einsum("nd,dc->nc", test, head.weights[:-1]) + head.weights[-1] for head in heads),
        tuple(
            f"factor {factor}: the linear classifier has not converged"
            for factor, head in enumerate(heads)
            if not head.converged
        ),
    )


@shared
def adam_linear_predictions(split: TrainTestSplit, seed: int) -> IntArray:
    """(n_test, n_factors) levels that linear heads trained as the paper trains them predict."""
    inputs, (levels, names) = padded_inputs(split), renumbered(split)
    n_live = standardised_codes(split).shape[1]
    starts = np.concatenate([[0], np.cumsum(split.sizes)])
    # Whole vectors of columns: the rest of a loop would be done one by one.
    weights = np.zeros((inputs.shape[1], -(-starts[-1] // 64) * 64))
    for start, size in zip(starts, split.sizes, strict=False):
        drawn = np.random.default_rng((seed, LINEAR)).uniform(-1, 1, (size, n_live + 1))
        weights[: n_live + 1, start : start + size] = drawn.T / np.sqrt(max(n_live, 1))
    state = np.zeros((3, weights.size), dtype=np.float32)
    state[0] = weights.ravel()
    rng, step = np.random.default_rng((seed, LINEAR, SHUFFLES)), 0
    for _ in range(EPOCHS_OF_PAPER):
        step = linear_epoch(inputs, levels, rng.permutation(split.train), starts, BATCH, state, step, RATE_OF_PAPER)
    predicted = linear_classes(inputs[split.test], starts, state[0].reshape(weights.shape))
    return np.stack([own[column] for own, column in zip(names, predicted.T, strict=True)], axis=1)
