"""Accuracy of a linear and of a perceptron head on all codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import ndtr

from unbraid._utils.repr import Shown
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.inputs import Inputs, as_levels
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.probes import (
    adam_linear_predictions,
    best_linear_predictions,
    notes_on_linear_heads,
    perceptrons,
)
from unbraid.metrics._shared.train_test_split import (
    TRAIN_FRACTION,
    ChanceRule,
    TrainTestSplit,
    accuracies,
    adjusted,
    blind_accuracy,
    check_chance,
    notes_on_chance,
    train_test_split,
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
    groups: ArrayLike | None = None,
    chance: ChanceRule = "guessing",
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
        groups: (n_samples,) of which trial, animal, video or session each row is, where rows of one hang together: no
            two parts then have rows of one group.
        chance: accuracy that scores 0. "guessing" guesses levels as often as they occur in training (eq. 4).
            "commonest" is that or always naming the commonest level, whichever is right more often.
        training: "optimum" fits softmax regression to its optimum, with the penalty of scikit-learn's default
            (C = 1 on standardised codes). "paper" takes 75 epochs of Adam at .001 in batches of 64.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        Accuracy. `score` in [0, 1], higher is better, mean of `per_factor`: max(0, (a - r) / (1 - r)) with accuracy a
        on test rows and chance r, both kept. Noise scores 0 where levels are equally common; where they are not, a head
        learns to name the commonest, which by "guessing" scores (p - s) / (1 - s) with p the share of that level and
        s the sum of the squares of all shares: .38 for shares of .8 and .2. Notes name such factors. By "commonest"
        noise scores 0. Below 0
        nothing scores. Invariant to rotation: it says that the codes tell the factors, not that each tells one.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, or
            `training` or `chance` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3, eq. 4 and Table 2. The
        default of `training` differs from the paper: 75 epochs at .001 end far from the best linear head, the farther
        the fewer rows there are, and do not even read perfect codes (.47 of eight levels at 2 304 rows, where the
        optimum reads all).
    """
    if training not in ("optimum", "paper"):
        raise ValueError(f"training must be 'optimum' or 'paper'; got {training!r}")
    check_chance(chance)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    if training == "paper":
        return _accuracy(adam_linear_predictions(rows, seed), rows, chance)
    return _accuracy(best_linear_predictions(rows), rows, chance, notes_on_linear_heads(rows))


def mlp_accuracy(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    chance: ChanceRule = "guessing",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> Accuracy:
    """How well a perceptron on all codes names the level of each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, the initial weights and the batches.
        groups: (n_samples,) of which trial, animal, video or session each row is, where rows of one hang together: no
            two parts then have rows of one group.
        chance: accuracy that scores 0. "guessing" guesses levels as often as they occur in training (eq. 4).
            "commonest" is that or always naming the commonest level, whichever is right more often.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        Accuracy. `score` in [0, 1], higher is better, mean of `per_factor`: max(0, (a - r) / (1 - r)) with accuracy a
        on test rows and chance r, both kept. Noise scores 0 where levels are equally common; where they are not, a head
        learns to name the commonest, which by "guessing" scores (p - s) / (1 - s) with p the share of that level and
        s the sum of the squares of all shares: .38 for shares of .8 and .2. Notes name such factors. By "commonest"
        noise scores 0. Says how much the codes tell at all, in whatever tangle: rotated and entangled codes may
        score 1. Trained, so it varies with the seed, by about .01.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, or
            `chance` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3, eq. 4 and Table 2; training
        as in its section 5 (one hidden layer of 256, Adam at .001, 75 epochs) on standardised codes, in batches of 64.
    """
    check_chance(chance)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    return _accuracy(perceptrons(rows, seed).predicted, rows, chance)


def _accuracy(predicted: IntArray, rows: TrainTestSplit, chance: ChanceRule, notes: tuple[str, ...] = ()) -> Accuracy:
    accuracy, blind = accuracies(predicted, rows), blind_accuracy(rows, chance)
    scores = adjusted(accuracy, blind)
    notes = (*rows.notes, *notes, *notes_on_chance(rows, chance))
    return Accuracy(float(scores.mean()), float(accuracy.mean()), scores, accuracy, blind, notes)


def linear_of_noise(inputs: Inputs) -> Noise:
    """About 0 on even classes; (p - s) / (1 - s) where the commonest has share p and shares squared sum to s."""
    # Without a row for each input it is the penalty that limits weights.
    return drawn(noisy_scores(inputs, min(_inputs_per_row(inputs), 0.4)).mean(axis=1))


def mlp_of_noise(inputs: Inputs) -> Noise:
    """About 0 on even classes; (p - s) / (1 - s) where the commonest has share p and shares squared sum to s."""
    return drawn(noisy_perceptrons(inputs).mean(axis=1))


def noisy_perceptrons(inputs: Inputs) -> FloatArray:
    """`noisy_scores` of perceptrons, which more rows hardly keep from learning noise: their epochs take more steps."""
    # Measured on 50 to 20 000 rows of 1 to 128 codes that are noise, with even and uneven classes.
    longer = max(1.0, inputs.n_samples / 1000) ** 0.2
    return noisy_scores(inputs, min(0.01 * inputs.n_codes / longer, 0.2 * longer))


def noisy_scores(inputs: Inputs, freedom: float) -> FloatArray:
    """(NULL_DRAWS, n_factors) chance-adjusted accuracies, with "guessing" as chance, of heads on noise.

    Args:
        inputs: of which levels and number of rows are read.
        freedom: inputs that a head has for each training row.
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
    second, first = np.sort(shares)[-2:]
    leads = ndtr(np.log(first / second) / np.sqrt(freedom * (1 / first + 1 / second)))
    commonest, named = max(first, leads), shares.copy()
    named *= (1 - commonest) / (1 - first)
    named[shares.argmax()] = commonest
    return named


def _inputs_per_row(inputs: Inputs) -> float:
    return inputs.n_codes / (TRAIN_FRACTION * inputs.n_samples)


LINEAR_ACCURACY = Metric(
    linear_accuracy,
    title="Accuracy of a linear head",
    question="told",
    headline="score",
    claims={"score": ("explicitness",)},
    best=1.0,
    higher_is_better=True,
    range=(0.0, 1.0),
    chance=linear_of_noise,
    summary="How well a linear classifier on all codes names each factor's level, above chance.",
    limitations="Blind to rotation; noise scores above 0 where classes are uneven, and on few rows.",
    source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
    version=3,
    stochastic=True,
    tolerance=2e-3,
    aligned=False,
    linear=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("mahon2023correcting",),
    formula=(
        r"\mathrm{score} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right)",
        r"$a_k$ is the accuracy on test rows of softmax regression on all codes, $r_k$ that of guessing.",
    ),
)


MLP_ACCURACY = Metric(
    mlp_accuracy,
    title="Accuracy of a perceptron head",
    question="told",
    headline="score",
    claims={"score": ("explicitness",)},
    best=1.0,
    higher_is_better=True,
    range=(0.0, 1.0),
    chance=mlp_of_noise,
    summary="How well a perceptron on all codes names each factor's level, above chance.",
    limitations="Blind to every tangle that a perceptron can undo; noise scores above 0 where classes are uneven.",
    source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
    version=3,
    stochastic=True,
    tolerance=0.02,
    aligned=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("mahon2023correcting",),
    formula=(
        r"\mathrm{score} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right)",
        r"$a_k$ is the accuracy on test rows of a perceptron with one hidden layer of 256 on all codes, $r_k$ that "
        r"of guessing.",
    ),
)
