"""Accuracy of a linear and of a perceptron head on all codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid._shown import Shown
from unbraid.metrics._chance import Noise, drawn
from unbraid.metrics._inputs import Inputs, as_levels
from unbraid.metrics._probes import (
    adam_linear_predictions,
    best_linear_predictions,
    notes_on_linear_heads,
    perceptrons,
)
from unbraid.metrics._trial import (
    TRAIN_FRACTION,
    Trial,
    accuracies,
    adjusted,
    blind_accuracy,
    notes_on_test_rows,
    trial,
)
from unbraid.types import ArrayLike, FloatArray, IntArray, Kind

NULL_DRAWS = 500


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy(Shown):
    score: float
    mean_accuracy: float
    per_factor: FloatArray  # (n_factors,) chance-adjusted accuracy
    accuracy: FloatArray  # (n_factors,)
    chance: FloatArray  # (n_factors,) accuracy without codes
    notes: tuple[str, ...] = ()


def linear_accuracy(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    training: Literal["optimum", "paper"] = "optimum",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> Accuracy:
    """How well a linear classifier on all codes names the level of each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, and for "paper" the initial weights and the batches.
        training: "optimum" fits softmax regression to its optimum, with the penalty of scikit-learn's default
            (C = 1 on standardised codes). "paper" takes 75 epochs of Adam at .001 in batches of 64.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        Accuracy. `score` in [0, 1], higher is better, mean of `per_factor`: max(0, (a - r) / (1 - r)) with accuracy a
        on test rows and r without codes, both kept. Chance: about 0 on many rows, see `accuracy_of_noise`; below 0
        nothing scores. Invariant to rotation: it says that the codes tell the factors, not that each tells one.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, or
            `training` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3 and Table 2. r guesses levels
        as often as they occur (eq. 4), or always names the commonest where that is right more often: by eq. 4 alone
        noise scores .38 on classes of .8 and .2. The default differs from the paper: 75 epochs at .001 end far from
        the best linear head, the farther the fewer rows there are, and do not even read perfect codes (.47 of eight
        levels at 2 304 rows, where the optimum reads all).
    """
    if training not in ("optimum", "paper"):
        raise ValueError(f"training must be 'optimum' or 'paper'; got {training!r}")
    rows = trial(codes, factors, kinds, seed, test_codes, test_factors)
    if training == "paper":
        return _accuracy(adam_linear_predictions(rows, seed), rows)
    return _accuracy(best_linear_predictions(rows), rows, notes_on_linear_heads(rows))


def mlp_accuracy(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> Accuracy:
    """How well a perceptron on all codes names the level of each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, the initial weights and the batches.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        Accuracy. `score` in [0, 1], higher is better, mean of `per_factor`: max(0, (a - r) / (1 - r)) with accuracy a
        on test rows and r without codes, both kept. Chance: about 0 on many rows, see `accuracy_of_noise`; below 0
        nothing scores. Says how much the codes tell at all, in whatever tangle: rotated and entangled codes may
        score 1. Trained, so it varies with the seed, by about .01.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3 and Table 2; training as in its
        section 5 (one hidden layer of 256, Adam at .001, 75 epochs) on standardised codes, in batches of 64. r as in
        `linear_accuracy`.
    """
    rows = trial(codes, factors, kinds, seed, test_codes, test_factors)
    return _accuracy(perceptrons(rows, seed).predicted, rows)


def _accuracy(predicted: IntArray, rows: Trial, notes: tuple[str, ...] = ()) -> Accuracy:
    accuracy, chance = accuracies(predicted, rows), blind_accuracy(rows).copy()
    scores = adjusted(accuracy, chance)
    notes = (*rows.notes, *notes, *notes_on_test_rows(rows))
    return Accuracy(float(scores.mean()), float(accuracy.mean()), scores, accuracy, chance, notes)


def accuracy_of_noise(inputs: Inputs) -> Noise:
    """About 0 on many rows."""
    return drawn(noisy_scores(inputs).mean(axis=1))


def noisy_scores(inputs: Inputs) -> FloatArray:
    """(NULL_DRAWS, n_factors) chance-adjusted accuracies of answers that name levels as often as these occur."""
    n_test, rng = max(1, round((1 - TRAIN_FRACTION) * inputs.n_samples)), np.random.default_rng(0)
    scores = []
    for levels in as_levels(inputs).levels.T:
        shares = np.bincount(levels) / inputs.n_samples
        true = rng.multinomial(n_test, shares, NULL_DRAWS)
        right = rng.binomial(true, shares).sum(axis=1)
        blind = np.maximum(true @ shares, true[:, shares.argmax()])
        scores.append(adjusted(right / n_test, blind / n_test))
    return np.stack(scores, axis=1)
