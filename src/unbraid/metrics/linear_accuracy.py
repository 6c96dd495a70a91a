"""Accuracy of a linear head on all codes."""

from collections.abc import Sequence
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.types import ArrayLike, Kind
from unbraid.metrics._shared.accuracy import Accuracy, accuracy_of, noisy_scores
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.inputs import Inputs
from unbraid.metrics._shared.linear_heads import adam_linear_predictions, linear_heads, validated_linear_heads
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.train_test_split import TRAIN_FRACTION, ChanceRule, check_chance, train_test_split

WITHOUT_WEIGHTS = 1e-6  # freedom of a head that names the commonest level


def linear_accuracy(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    chance: ChanceRule = "guessing",
    training: Literal["validated", "optimum", "paper"] = "validated",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> Accuracy:
    """How well a linear classifier on all codes predicts the level of each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, those for validation, and for "paper" the initial weights and
            the batches.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        chance: accuracy that scores 0. "guessing" guesses levels as often as they occur in training (eq. 4).
            "commonest" is that or always naming the commonest level, whichever is right more often.
        training: "validated" fits softmax regression to its optimum on standardised codes. The L2 penalty (1/C of
            scikit-learn: 10 000, 1 000, 100, 10 or 1) has the lowest log loss on a fifth of the training rows. Where
            less than half of the codes have level means that differ (F-test, p < .05 / n_codes), these alone are
            tried as well. So irrelevant codes cost little, and models of different widths can be compared.
            "optimum" takes all codes and scikit-learn's default penalty (C = 1): lower where codes are many for
            the rows. "paper" takes 75 epochs of Adam at .001 in batches of 64.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        Accuracy. `score` in [0, 1], higher is better, mean of `per_factor`: max(0, (a - r) / (1 - r)) with accuracy a
        on test rows and chance r, both kept. Noise scores 0 where levels are equally common; where they are not, a head
        learns to name the commonest, which by "guessing" scores (p - s) / (1 - s) with p the share of that level and
        s the sum of the squares of all shares: .38 for shares of .8 and .2. Notes name such factors. By "commonest"
        noise scores 0. Invariant to rotation where at least half of the codes are informative, and with "optimum": it
        says that the codes tell the factors, not that each tells one. Information that is spread over many codes takes
        more rows to find than in few.

    Raises:
        ValueError: what every metric refuses, or `training` or `chance` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3, eq. 4 and Table 2. The
        default of `training` differs: the paper's ends far from the best linear head on few rows (.47 of eight levels
        of perfect codes at 2 304 rows, where the optimum reads all), and has no penalty.
    """
    check_choice("training", training, ("validated", "optimum", "paper"))
    check_chance(chance)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    if training == "paper":
        return accuracy_of(adam_linear_predictions(rows, seed), rows, chance)
    heads = linear_heads(rows) if training == "optimum" else validated_linear_heads(rows, seed)
    return accuracy_of(heads.predicted, rows, chance, heads.notes)


def linear_of_noise(inputs: Inputs) -> Noise:
    """About 0 on even classes; (p - s) / (1 - s) where the commonest has share p and shares squared sum to s."""
    inputs_per_row = inputs.n_codes / (TRAIN_FRACTION * inputs.n_samples)
    # Without a row for each input it is the penalty that limits weights. On noise, validation prefers a head without
    # weights about half of the time.
    freedoms = min(inputs_per_row, 0.4), WITHOUT_WEIGHTS
    return drawn(np.concatenate([noisy_scores(inputs, freedom) for freedom in freedoms]).mean(axis=1))


METRIC = Metric(
    linear_accuracy,
    title="Accuracy of a linear head",
    question="told",
    claims={"score": ("explicitness",)},
    chance=linear_of_noise,
    summary="How well a linear classifier on all codes predicts each factor's level, above chance.",
    limitations="Blind to rotation. Noise scores above 0 with unequal classes, and on few rows.",
    source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
    version=4,
    stochastic=True,
    slow=True,
    tolerance=2e-3,
    aligned=False,
    linear=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("mahon2023correcting",),
    formula=(
        r"\mathrm{score} = \frac{1}{K} \sum_{k=1}^{K} \max\left(0, \frac{a_k - r_k}{1 - r_k}\right)",
        r"$a_k$ is the accuracy on test rows of penalised softmax regression on the codes, $r_k$ that of guessing.",
    ),
)
