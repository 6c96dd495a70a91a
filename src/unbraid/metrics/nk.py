"""Neuron knockout (NK)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.accuracy import noisy_perceptrons
from unbraid.metrics._shared.alignment import align_live, beyond_luck, notes_on_unaligned, training_information
from unbraid.metrics._shared.chance import Noise
from unbraid.metrics._shared.inputs import Inputs
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric
from unbraid.metrics._shared.probes import (
    TRAININGS,
    Perceptrons,
    Training,
    importance,
    knocked_out_perceptrons,
    perceptrons,
)
from unbraid.metrics._shared.train_test_split import (
    ChanceRule,
    TrainTestSplit,
    accuracies,
    adjusted,
    blind_accuracy,
    check_chance,
    notes_on_chance,
    train_test_split,
)

TIE = 1e-6  # weight, in nats, of what decides between codes that are equally informative


@dataclass(frozen=True, eq=False, repr=False)
class NK(Shown):
    score: float
    drop: float
    per_factor: FloatArray  # (n_factors,) difference of the chance-adjusted accuracies
    accuracy: FloatArray  # (n_factors,) with all codes
    knocked_out_accuracy: FloatArray  # (n_factors,) without the aligned code
    chance: FloatArray  # (n_factors,) accuracy without codes
    alignment: IntArray  # (n_factors,) code of each factor, -1 for none
    notes: tuple[str, ...] = ()


def nk(
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
) -> NK:
    """How much accuracy a classifier loses when each factor's own code is taken away.

    Factors are aligned to distinct codes as in `snc`. For each factor one perceptron reads all codes and another
    all but the aligned one.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: draws the rows (one in five) for testing, the initial weights and the batches.
        groups: (n_samples,) group of each row (trial, animal, video or session); no group is in two parts.
        chance: accuracy that counts as 0. "guessing" guesses levels as often as they occur in training (eq. 4).
            "commonest" is that or always naming the commonest level, whichever is right more often.
        training: "annealed" takes 20 epochs of Adam at a rate that falls from .01 to 0, "paper" 75 at .001.
        test_codes: rows to test on instead; `codes` are then all used for training.
        test_factors: levels of `test_codes`.

    Returns:
        NK. `score` in [-1, 1], higher is better, mean over factors of the difference of the two accuracies, each on
        the scale max(0, (a - r) / (1 - r)) with chance r: 1 when the aligned code alone tells its factor, 0 when the
        others tell as much. By "guessing" a head that lost the code of a factor of uneven levels still scores, by
        naming the commonest, so that the difference stays below 1; notes name such factors. `drop` is the mean
        difference of the plain accuracies, which are kept in `accuracy` and `knocked_out_accuracy`. Chance: 0; see
        `nk_of_noise` for how far it strays. With fewer codes than factors those left without a code score 0. Trained,
        so it varies with the seed, by about .01. "annealed" with 6 400 training rows or more, 200 or more for each code
        and levels that occur about equally often does not train a head further that learns nothing in 400 steps, nor
        that which lacks a code besides: levels are guessed instead.

    Raises:
        ValueError: what every metric refuses, or `chance` or `training` is unknown.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", section 4.3; the head is
        that of its section 5 (one hidden layer of 256), on standardised codes and in batches of 64. Its training is
        "paper"; "annealed" learns as much in a quarter of the time.
        Table 1 of the paper is `drop`, its Table 2 `score`. Where no single code tells more about a factor than luck
        would, eq. 2 leaves the alignment open: the code is taken whose shuffling costs the perceptron most.
    """
    check_chance(chance)
    check_choice("training", training, TRAININGS)
    rows = train_test_split(codes, factors, kinds, seed, test_codes, test_factors, groups=groups)
    full = perceptrons(rows, seed, training)
    alignment, notes = _alignment(rows, full, seed)
    lacking = knocked_out_perceptrons(rows, seed, training, tuple(alignment.tolist()), full.trained)
    predicted = np.where(np.array(lacking.knocked_out) >= 0, lacking.predicted, full.predicted)
    blind = blind_accuracy(rows, chance)
    accuracy, knocked_out = accuracies(full.predicted, rows), accuracies(predicted, rows)
    scores = adjusted(accuracy, blind) - adjusted(knocked_out, blind)
    return NK(
        score=float(scores.mean()),
        drop=float((accuracy - knocked_out).mean()),
        per_factor=scores,
        accuracy=accuracy,
        knocked_out_accuracy=knocked_out,
        chance=blind,
        alignment=alignment,
        notes=(*rows.notes, *notes, *notes_on_chance(rows, chance)),
    )


def nk_of_noise(inputs: Inputs) -> Noise:
    """About 0."""
    # The difference of two scores of noise, as if what one head knows said nothing about the other.
    return Noise(0.0, float(np.sqrt(2.0) * noisy_perceptrons(inputs).mean(axis=1).std()))


def _alignment(rows: TrainTestSplit, full: Perceptrons, seed: int) -> tuple[IntArray, list[str]]:
    information = training_information(rows)
    telling = beyond_luck(rows, information)
    alignment = align_live(rows, information)
    notes = []
    unsure = [k for k, code in enumerate(alignment) if code >= 0 and not telling[code, k]]
    if unsure:
        worth = np.where(telling, information, 0.0)
        for factor in unsure:
            worth[:, factor] += TIE * np.maximum(importance(rows, full, factor, seed), 0.0)
        alignment = align_live(rows, worth)
        notes.append(
            f"no unassigned code alone has information on factor {', '.join(map(str, unsure))}: aligned with the code "
            "whose shuffling lowers the accuracy of the perceptron on all codes most"
        )
    return alignment, [*notes, *notes_on_unaligned(alignment)]


METRIC = Metric(
    nk,
    title="Neuron knockout",
    question="needed",
    claims={"score": ("compactness", "alignment")},
    range=(-1.0, 1.0),
    chance=nk_of_noise,
    summary="How much accuracy a perceptron on all codes loses without the factor's own code.",
    limitations="Near 0 both when the codes have no information and when they have all of it twice.",
    source="Mahon et al. 2023 (SNC/NK), section 4.3",
    version=9,
    stochastic=True,
    slow=True,
    tolerance=0.03,
    interval=FEW_UNCHECKED_HALVES,
    cites=("mahon2023correcting",),
    formula=(
        r"\mathrm{NK} = \frac{1}{K} \sum_{k=1}^{K} \left( A_k(z) - A_k(z_{-\pi(k)}) \right), \qquad "
        r"A = \max\left(0, \frac{a - r}{1 - r}\right)",
        r"$a$ is the accuracy of a perceptron with one hidden layer of 256, once on all codes and once without the "
        r"code $\pi(k)$ that is aligned with factor $k$; $r$ is that of guessing.",
    ),
)
