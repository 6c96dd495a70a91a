"""What the accuracies of a linear and of a perceptron head share: their result, and what heads score on noise."""

from dataclasses import dataclass

import numpy as np

from unbraid.base.repr import Shown
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.inputs import Inputs, as_levels
from unbraid.metrics._shared.train_test_split import (
    TRAIN_FRACTION,
    ChanceRule,
    TrainTestSplit,
    accuracies,
    adjusted,
    blind_accuracy,
    notes_on_chance,
)

NULL_DRAWS = 500
MANY_ROWS = 4000  # from which on few codes teach a perceptron nothing but the commonest level


@dataclass(frozen=True, eq=False, repr=False)
class Accuracy(Shown):
    score: float
    mean_accuracy: float
    per_factor: FloatArray  # (n_factors,) chance-adjusted accuracy
    accuracy: FloatArray  # (n_factors,)
    chance: FloatArray  # (n_factors,) accuracy without codes
    notes: tuple[str, ...] = ()


def accuracy_of(predicted: IntArray, rows: TrainTestSplit, chance: ChanceRule, notes: tuple[str, ...] = ()) -> Accuracy:
    """The result of a head that predicted these levels of the test rows."""
    accuracy, blind = accuracies(predicted, rows), blind_accuracy(rows, chance)
    scores = adjusted(accuracy, blind)
    notes = (*rows.notes, *notes, *notes_on_chance(rows, chance))
    return Accuracy(float(scores.mean()), float(accuracy.mean()), scores, accuracy, blind, notes)


def noisy_perceptrons(inputs: Inputs) -> FloatArray:
    """`noisy_scores` of perceptrons, which more rows hardly keep from learning noise: their epochs take more steps."""
    # Measured on 50 to 50 000 rows of 1 to 128 codes that are noise, with even and uneven classes.
    longer = max(1.0, inputs.n_samples / 1000) ** 0.2
    freedom = min(0.01 * inputs.n_codes / longer, 0.2 * longer)
    if inputs.n_samples > MANY_ROWS:
        freedom = min(freedom, 0.0012 * inputs.n_codes**2 / (inputs.n_samples / MANY_ROWS) ** 0.9)
    return noisy_scores(inputs, freedom)


def noisy_scores(inputs: Inputs, freedom: float) -> FloatArray:
    """(NULL_DRAWS, n_factors) chance-adjusted accuracies, with "guessing" as chance, of heads on noise.

    Levels and the number of rows are read, and `freedom` is how many inputs a head has for each training row.
    """
    n_test, rng = max(1, round((1 - TRAIN_FRACTION) * inputs.n_samples)), np.random.default_rng(0)
    scores = []
    for levels in as_levels(inputs).levels.T:
        shares = np.bincount(levels) / inputs.n_samples
        true = rng.multinomial(n_test, shares, NULL_DRAWS)
        right = rng.binomial(true, _named_on_noise(shares, freedom)).sum(axis=1)
        scores.append(adjusted(right / n_test, true @ shares / n_test))
    return np.stack(scores, axis=1)


def _named_on_noise(shares: FloatArray, freedom: float) -> FloatArray:
    """How often a head names each level.

    The weight of an input that tells nothing has a variance of 1 / (n p) for a class of share p, by Fisher's
    information, so that the commonest class leads the next by log(p / q), give or take the root of freedom (1/p + 1/q).
    Where it does not lead, classes are named as often as they occur.
    """
    from scipy.special import ndtr

    second, first = np.sort(shares)[-2:]
    leads = ndtr(np.log(first / second) / np.sqrt(freedom * (1 / first + 1 / second)))
    commonest, named = max(first, leads), shares.copy()
    named *= (1 - commonest) / (1 - first)
    named[shares.argmax()] = commonest
    return named
