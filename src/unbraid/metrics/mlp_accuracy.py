"""Accuracy of a perceptron head on all codes."""

from collections.abc import Sequence

from unbraid.base.arguments import check_choice
from unbraid.base.types import ArrayLike, Kind
from unbraid.metrics._shared.accuracy import Accuracy, accuracy_of, noisy_perceptrons
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.inputs import Inputs
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.probes import TRAININGS, Training, perceptrons
from unbraid.metrics._shared.train_test_split import ChanceRule, check_chance, train_test_split


def mlp_accuracy(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    chance: ChanceRule = "guessing",
    training: Training = "annealed",
    test_codes: ArrayLike | None = None,
    test_factors: ArrayLike | None = None,
) -> Accuracy:
    """How well a perceptron on all codes predicts the level of each factor.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, the initial weights and the batches.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        chance: accuracy that scores 0. "guessing" guesses levels as often as they occur in training (eq. 4).
            "commonest" is that or always naming the commonest level, whichever is right more often.
        training: "annealed" takes 20 epochs of Adam at a rate that falls from .01 to 0, "paper" 75 at .001.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        Accuracy. `score` in [0, 1], higher is better, computed as by `linear_accuracy`, which says what noise scores.
        It says how much the codes tell at all, in whatever tangle: rotated and entangled codes may score 1. Trained,
        so it varies with the seed, by about .01. "annealed" with 6 400 training rows or more, 200 or more for each code
        and levels that occur about equally often does not train a head further that learns nothing in 400 steps: levels
        are guessed instead.

    Raises:
        ValueError: what every metric refuses, or `chance` or `training` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", eq. 3, eq. 4 and Table 2; the
        head is that of its section 5 (one hidden layer of 256), on standardised codes and in batches of 64. Its
        training is "paper"; "annealed" learns as much in a quarter of the time.
    """
    check_chance(chance)
    check_choice("training", training, TRAININGS)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    return accuracy_of(perceptrons(rows, seed, training).predicted, rows, chance)


def mlp_of_noise(inputs: Inputs) -> Noise:
    """About 0 on even classes; (p - s) / (1 - s) where the commonest has share p and shares squared sum to s."""
    return drawn(noisy_perceptrons(inputs).mean(axis=1))


METRIC = Metric(
    mlp_accuracy,
    title="Accuracy of a perceptron head",
    question="told",
    claims={"score": ("explicitness",)},
    chance=mlp_of_noise,
    summary="How well a perceptron on all codes predicts each factor's level, above chance.",
    limitations="Blind to any entanglement that a perceptron can undo. Noise scores above 0 with unequal classes.",
    source="Mahon et al. 2023 (SNC/NK), eq. 3 and Table 2",
    version=6,
    stochastic=True,
    slow=True,
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
