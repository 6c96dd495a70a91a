"""Perceptrons that read factors off codes.

They have one hidden layer of 256 rectified units and are trained by cross-entropy and Adam with averages .9 and
.999, as in SNC/NK 2023, section 5. The paper takes 75 epochs at the learning rate .001. A rate that falls from .01 to 0
learns as much in 20: on 40 sets of 300 to 10 000 rows, of noise, tangled and heavy-tailed codes, parities and spirals,
the accuracy is as high or higher to within .012, but for three: the parity of five codes (.68 for .72), that of three
with heavy tails (.52 for .62), and two spirals of 1000 rows (.94 for .97). The paper gives no batch size; its public
code takes 4096 rows of several hundred thousand, which makes about 10 000 steps. Batches of 64 make as many for the
8000 training rows of 10 000 samples. Weights start as in PyTorch, uniform within 1/sqrt(inputs). Codes are standardised
first, which the paper does not do, so that no probe depends on their scale; dead codes are left out.

Where codes tell nothing of a factor, a trained perceptron is right as often as guessing is. So a short one is trained
first, on part of the rows. Where what it says of the others never goes along with their levels, levels are guessed
instead, which takes a sixth of the time. This is done only where it saves enough, where rows are many for each code
(the parity of three among 50 codes of 8000 rows was missed in ten of twelve tries, among 30 in none), and where levels
occur about equally often: else a perceptron on noise is right more often than guessing, by how much it has not learnt.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from unbraid.base.threads import at_once
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.sharing import shared
from unbraid.metrics._shared.train_test_split import (
    TrainTestSplit,
    class_shares,
    live_codes,
    renumbered,
    standardised_codes,
)
from unbraid.metrics._solvers.logistic import softmax
from unbraid.metrics._solvers.perceptron import HIDDEN, perceptron_classes, perceptron_epoch

# How perceptrons are trained: at a rate that falls, or as the paper has it.
Training: TypeAlias = Literal["annealed", "paper"]
TRAININGS = get_args(Training)
EPOCHS, FIRST_RATE, BATCH = 20, 1e-2, 64
EPOCHS_OF_PAPER, RATE_OF_PAPER = 75, 1e-3
# Streams of random numbers, so that no probe depends on which others are trained.
FULL, KNOCKED_OUT, LINEAR, SHUFFLES, SHORT, GUESSES = range(6)
SHORT_STEPS, CHECKED = 400, 100  # steps of a short perceptron, and after how many it is asked each time
ASKED = 10_000  # rows at most that it is asked about
TELLING = 2.0  # standard errors from which on what it says goes along with the levels
SAVING = 5  # times as many steps as a short one must a whole training have
PER_CODE = 200  # training rows for each input, below which a perceptron is always trained
UNEVEN = 0.02  # score of always naming the commonest level above which a perceptron is always trained
IMPORTANCE_ROWS = 2000  # rows at most on which codes are shuffled


@dataclass(frozen=True, eq=False)
class Perceptrons:
    """One trained perceptron per factor."""

    parameters: tuple[FloatArray | None, ...]  # None where levels are guessed
    knocked_out: tuple[int, ...]  # live code hidden from each, or -1
    predicted: IntArray  # (n_test, n_factors) levels

    @property
    def trained(self) -> tuple[bool, ...]:
        """Of each factor, False where its levels are guessed."""
        return tuple(weights is not None for weights in self.parameters)


@shared
def perceptrons(split: TrainTestSplit, seed: int, training: Training) -> Perceptrons:
    """Perceptrons on all codes."""
    return _train(split, (seed, FULL), training, [-1] * len(split.sizes), [True] * len(split.sizes))


@shared
def knocked_out_perceptrons(
    split: TrainTestSplit, seed: int, training: Training, alignment: tuple[int, ...], trainable: tuple[bool, ...]
) -> Perceptrons:
    """Perceptrons that each lack one code, alignment[k]. Where this is -1 or a dead code, nothing is lacking.

    Levels of factors that are not `trainable`, as all codes together are uninformative, are guessed.
    """
    places = {int(code): place for place, code in enumerate(live_codes(split)[0])}
    lacking = [places.get(code, -1) for code in alignment]
    return _train(split, (seed, KNOCKED_OUT), training, lacking, trainable)


def _train(
    split: TrainTestSplit,
    seed: tuple[int, int],
    training: Training,
    knocked_out: Sequence[int],
    trainable: Sequence[bool],
) -> Perceptrons:
    inputs, (levels, names) = padded_inputs(split), renumbered(split)
    n_live = standardised_codes(split).shape[1]
    # Each from the same seed, so that no factor depends on which others stand before it.
    states = [
        _initial_state(np.random.default_rng(seed), n_live, size, n_live - (hidden >= 0))
        for size, hidden in zip(split.sizes, knocked_out, strict=True)
    ]
    labels = [np.ascontiguousarray(column) for column in levels.T]

    def trained(factor: int, stopped: threading.Event) -> FloatArray | None:
        hidden, size, state = knocked_out[factor], split.sizes[factor], states[factor]
        if not trainable[factor]:
            return None
        if training == "annealed" and not _worth_training(
            inputs, labels[factor], split.train, hidden, size, state, (*seed, SHORT)
        ):
            return None
        rng, step = np.random.default_rng((*seed, SHUFFLES)), 0
        rates = [RATE_OF_PAPER] * EPOCHS_OF_PAPER if training == "paper" else _falling(EPOCHS)
        for rate in rates:
            if stopped.is_set():
                break
            order = rng.permutation(split.train)
            step = perceptron_epoch(inputs, labels[factor], order, hidden, size, BATCH, state, step, rate)
        return state[0].copy()

    def levels_of_test(factor: int) -> IntArray:
        hidden, size, weights = knocked_out[factor], split.sizes[factor], parameters[factor]
        if weights is not None:
            return perceptron_classes(test, hidden, size, weights)
        shares = class_shares(labels[factor][split.train], size)
        guesses = np.random.default_rng((*seed, GUESSES)).choice(size, len(test), p=shares)
        # In the order of a code, so that shuffled rows are not all guessed alike.
        return guesses[np.argsort(np.argsort(test[:, 0], kind="stable"))]

    parameters = tuple(at_once(trained, range(len(labels)), split.sizes))
    test = inputs[split.test]
    predicted = [own[levels_of_test(factor)] for factor, own in enumerate(names)]
    return Perceptrons(parameters, tuple(knocked_out), np.stack(predicted, axis=1))


def _falling(parts: int) -> list[float]:
    """The learning rate of each part of a training, on a line from FIRST_RATE to 0."""
    return [FIRST_RATE * (1 - (part + 0.5) / parts) for part in range(parts)]


def _worth_training(
    inputs: FloatArray, labels: IntArray, rows: IntArray, hidden: int, size: int, state: FloatArray, seed: Sequence[int]
) -> bool:
    """Whether a short training, begun from `state`, learns anything; where that is not asked, it is worth it."""
    shares = class_shares(labels[rows], size)
    chance = np.dot(shares, shares)
    few = EPOCHS * len(rows) < SAVING * SHORT_STEPS * BATCH or len(rows) < PER_CODE * inputs.shape[1]
    if few or shares.max() - chance > UNEVEN * (1 - chance):
        return True
    rng, state, step = np.random.default_rng(seed), state.copy(), 0
    rows = rng.permutation(rows)
    judged_rows, own = np.split(rows, [len(rows) // 5])
    judged_rows = judged_rows[:ASKED]
    judged_inputs = inputs[judged_rows]
    if hidden >= 0:
        judged_inputs[:, hidden] = 0.0
    for rate in _falling(SHORT_STEPS // CHECKED):
        order = rng.permutation(own)[: CHECKED * BATCH]
        step = perceptron_epoch(inputs, labels, order, hidden, size, BATCH, state, step, rate)
        if _going_along(_probabilities(judged_inputs, size, state[0]), labels[judged_rows]) > TELLING:
            return True
    return False


def _going_along(probabilities: FloatArray, labels: IntArray) -> float:
    """How far probabilities (n, n_levels) of rows go along with their levels, in standard errors; of noise about 0.

    Of each row it is what the true level gets above what a level drawn from all rows gets: unlike the log loss, it does
    not matter that a perceptron is too sure.
    """
    size = probabilities.shape[1]
    shares = np.bincount(labels, minlength=size) / len(labels)
    own = probabilities - probabilities.mean(axis=0)
    above = own[np.arange(len(labels)), labels] - own @ shares
    error = above.std() / np.sqrt(len(labels))
    return float(above.mean() / error) if error > 0 else 0.0


def _probabilities(inputs: FloatArray, size: int, parameters: FloatArray) -> FloatArray:
    """(n_rows, size) of the levels, by a perceptron."""
    split = inputs.shape[1] * HIDDEN
    end = split + (len(parameters) - split) // (HIDDEN + 1) * HIDDEN
    first, second, bias = np.split(parameters, [split, end])
    active = inputs @ first.reshape(-1, HIDDEN)
    logits = np.maximum(active, 0.0, out=active) @ second.reshape(-1, HIDDEN)[:size].T + bias[:size]
    return softmax(logits).astype(np.float64)  # in single precision, which takes a third of the time


@shared
def padded_inputs(split: TrainTestSplit) -> FloatArray:
    """(n_rows, width) standardised codes, a column of ones for the bias, and zeros up to a multiple of 4."""
    codes = standardised_codes(split)
    n_rows, n_live = codes.shape
    inputs = np.zeros((n_rows, _fours(n_live + 1)), dtype=np.float32)
    inputs[:, :n_live] = codes
    inputs[:, n_live] = 1.0
    return inputs


def _initial_state(rng: np.random.Generator, n_live: int, size: int, n_inputs: int) -> FloatArray:
    """(3, n_parameters): weights and biases of both layers, padding at 0, then Adam's two averages at 0."""
    width, classes = _fours(n_live + 1), _fours(size)
    first, second, bias = np.zeros((width, HIDDEN)), np.zeros((classes, HIDDEN)), np.zeros(classes)
    first[: n_live + 1] = rng.uniform(-1, 1, (n_live + 1, HIDDEN)) / np.sqrt(max(n_inputs, 1))
    second[:size] = rng.uniform(-1, 1, (size, HIDDEN)) / np.sqrt(HIDDEN)
    bias[:size] = rng.uniform(-1, 1, size) / np.sqrt(HIDDEN)
    state = np.zeros((3, first.size + second.size + classes), dtype=np.float32)
    state[0] = np.concatenate([first.ravel(), second.ravel(), bias])
    return state


def importance(split: TrainTestSplit, heads: Perceptrons, factor: int, seed: int) -> FloatArray:
    """(n_codes,) how much accuracy on training rows the perceptron of a factor loses when a code is shuffled."""
    losses, parameters = np.zeros(split.codes.shape[1]), heads.parameters[factor]
    if parameters is None:
        return losses
    rng, size = np.random.default_rng((seed, FULL)), split.sizes[factor]
    rows = split.train[:IMPORTANCE_ROWS]
    inputs, levels = padded_inputs(split)[rows], renumbered(split)[0][rows, factor]
    accuracy = np.mean(perceptron_classes(inputs, -1, size, parameters) == levels)
    for position, code in enumerate(live_codes(split)[0]):
        shuffled = inputs.copy()
        shuffled[:, position] = rng.permutation(shuffled[:, position])
        losses[code] = accuracy - np.mean(perceptron_classes(shuffled, -1, size, parameters) == levels)
    return losses


def _fours(count: int) -> int:
    return -(-count // 4) * 4
