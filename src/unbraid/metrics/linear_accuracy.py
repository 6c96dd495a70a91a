"""Accuracy of a linear head on all codes."""

from collections.abc import Sequence
from typing import Literal

from unbraid._utils.arguments import check_choice
from unbraid.metrics._shared.accuracy import Accuracy, accuracy_of, noisy_scores
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.inputs import Inputs
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.probes import adam_linear_predictions, linear_heads
from unbraid.metrics._shared.train_test_split import TRAIN_FRACTION, ChanceRule, check_chance, train_test_split
from unbraid.types import ArrayLike, Kind


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
    """How well a linear classifier on all codes predicts the level of each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, and for "paper" the initial weights and the batches.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
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
        noise scores 0. Invariant to rotation: it says that the codes tell the factors, not that each tells one.

    Raises:
        ValueError: what every metric refuses, or `training` or `chance` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3, eq. 4 and Table 2. The
        default of `training` differs: the paper's ends far from the best linear head on few rows (.47 of eight levels
        of perfect codes at 2 304 rows, where the optimum reads all).
    """
    check_choice("training", training, ("optimum", "paper"))
    check_chance(chance)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    if training == "paper":
        return accuracy_of(adam_linear_predictions(rows, seed), rows, chance)
    heads = linear_heads(rows)
    return accuracy_of(heads.predicted, rows, chance, heads.notes)


def linear_of_noise(inputs: Inputs) -> Noise:
    """About 0 on even classes; (p - s) / (1 - s) where the commonest has share p and shares squared sum to s."""
    inputs_per_row = inputs.n_codes / (TRAIN_FRACTION * inputs.n_samples)
    # Without a row for each input it is the penalty that limits weights.
    return drawn(noisy_scores(inputs, min(inputs_per_row, 0.4)).mean(axis=1))


METRIC = Metric(
    linear_accuracy,
    title="Accuracy of a linear head",
    question="told",
    claims={"score": ("explicitness",)},
    chance=linear_of_noise,
    summary="How well a linear classifier on all codes predicts each factor's level, above chance.",
    limitations="Blind to rotation. Noise scores above 0 with unequal classes, and on few rows.",
    source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
    version=3,
    stochastic=True,
    slow=True,
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
