"""Compiled steps of the trained probes: the gradient of one minibatch, and Adam.

Matrices are float32 and lie so that innermost loops run over consecutive numbers, four rows by four columns at a
time, which the compiler turns into vector instructions. There is no BLAS and no thread in it: the order of every
sum is fixed, so the same seed trains the same probe on one core or many.
"""

from typing import NamedTuple

import numpy as np

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.compiled import helper, kernel
from unbraid.metrics._solvers.vectors import LINE, aligned, widest_vectors

HIDDEN = 256
AT_ONCE = 128  # rows that are classified together, a multiple of 4
DEEP = 256  # rows of weights that stay in the cache, a multiple of 4
DECAY_MEAN, DECAY_SQUARE, EPSILON = 0.9, 0.999, 1e-8

# Sums in any order that the compiler fixes, fused products; infinities and NaN keep their meaning.
VECTORISED = {"reassoc", "contract", "nsz", "arcp"}
ZERO, HALF, ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
LOG2_E = np.float32(1.4426950408889634)
# Below this an exponential no longer counts beside 1 in float32, and its power of two would leave the format.
LOWEST = np.float32(-80.0)
# Taylor coefficients of 2^f, good to a unit in the last place for f in [-1/2, 1/2].
EXP2 = tuple(np.float32(np.log(2.0) ** k / f) for k, f in enumerate((1, 1, 2, 6, 24, 120, 720)))


class Powers(NamedTuple):
    """Scratch for `softmax_errors`: powers of 2 as their bits, the same memory as numbers, and a few numbers."""

    bits: IntArray  # (n_classes,) int32
    numbers: FloatArray  # (n_classes,) float32
    lanes: FloatArray  # (LINE,) float32


def room_for_powers(n_classes: int) -> Powers:
    bits = np.empty(n_classes, dtype=np.int32)
    return Powers(bits, bits.view(np.float32), np.empty(LINE, dtype=np.float32))


@helper(fastmath=VECTORISED)
def _product(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """out (rows, HIDDEN) = left (rows, inner) @ right (inner, HIDDEN); rows and inner are multiples of 4."""
    widest_vectors()
    rows, inner = left.shape
    for first in range(0, inner, DEEP):
        for i in range(0, rows, 4):
            for row in range(i, i + 4 if first == 0 else i):
                for j in range(HIDDEN):
                    out[row, j] = ZERO
            for k in range(first, first + DEEP if first + DEEP < inner else inner, 4):
                a00, a01, a02, a03 = left[i, k], left[i, k + 1], left[i, k + 2], left[i, k + 3]
                a10, a11, a12, a13 = left[i + 1, k], left[i + 1, k + 1], left[i + 1, k + 2], left[i + 1, k + 3]
                a20, a21, a22, a23 = left[i + 2, k], left[i + 2, k + 1], left[i + 2, k + 2], left[i + 2, k + 3]
                a30, a31, a32, a33 = left[i + 3, k], left[i + 3, k + 1], left[i + 3, k + 2], left[i + 3, k + 3]
                for j in range(HIDDEN):
                    b0, b1, b2, b3 = right[k, j], right[k + 1, j], right[k + 2, j], right[k + 3, j]
                    out[i, j] += a00 * b0 + a01 * b1 + a02 * b2 + a03 * b3
                    out[i + 1, j] += a10 * b0 + a11 * b1 + a12 * b2 + a13 * b3
                    out[i + 2, j] += a20 * b0 + a21 * b1 + a22 * b2 + a23 * b3
                    out[i + 3, j] += a30 * b0 + a31 * b1 + a32 * b2 + a33 * b3


@helper(fastmath=VECTORISED)
def _dot_products(left: FloatArray, right: FloatArray, out: FloatArray) -> None:
    """out (rows, classes) = left (rows, HIDDEN) @ right.T (HIDDEN, classes); both counts are multiples of 4."""
    widest_vectors()
    for i in range(0, len(left), 4):
        for k in range(0, len(right), 4):
            s00 = s01 = s02 = s03 = s10 = s11 = s12 = s13 = ZERO
            s20 = s21 = s22 = s23 = s30 = s31 = s32 = s33 = ZERO
            for j in range(HIDDEN):
                a0, a1, a2, a3 = left[i, j], left[i + 1, j], left[i + 2, j], left[i + 3, j]
                b0, b1, b2, b3 = right[k, j], right[k + 1, j], right[k + 2, j], right[k + 3, j]
                s00 += a0 * b0
                s01 += a0 * b1
                s02 += a0 * b2
                s03 += a0 * b3
                s10 += a1 * b0
                s11 += a1 * b1
                s12 += a1 * b2
                s13 += a1 * b3
                s20 += a2 * b0
                s21 += a2 * b1
                s22 += a2 * b2
                s23 += a2 * b3
                s30 += a3 * b0
                s31 += a3 * b1
                s32 += a3 * b2
                s33 += a3 * b3
            out[i, k], out[i, k + 1], out[i, k + 2], out[i, k + 3] = s00, s01, s02, s03
            out[i + 1, k], out[i + 1, k + 1], out[i + 1, k + 2], out[i + 1, k + 3] = s10, s11, s12, s13
            out[i + 2, k], out[i + 2, k + 1], out[i + 2, k + 2], out[i + 2, k + 3] = s20, s21, s22, s23
            out[i + 3, k], out[i + 3, k + 1], out[i + 3, k + 2], out[i + 3, k + 3] = s30, s31, s32, s33


@helper(fastmath=VECTORISED)
def softmax_errors(
    logits: FloatArray, labels: IntArray, n_rows: int, start: int, n_classes: int, powers: Powers
) -> None:
    """Turn logits[:, start : start + n_classes] into the gradient of the mean cross-entropy by them, in place.

    Rows from `n_rows` on are padding and become 0.
    """
    widest_vectors()
    share, lanes = ONE / np.float32(n_rows), powers.lanes
    even = n_classes // LINE * LINE
    for row in range(n_rows):
        own = logits[row, start : start + n_classes]
        highest = own[0]
        # LINE numbers at once, which the compiler does not find; as a function of its own it would be slower.
        if even:
            for lane in range(LINE):
                lanes[lane] = own[lane]
            for first in range(LINE, even, LINE):
                for lane in range(LINE):
                    value = own[first + lane]
                    lanes[lane] = value if value > lanes[lane] else lanes[lane]
            for half in (8, 4, 2, 1):
                for lane in range(half):
                    value = lanes[lane + half]
                    lanes[lane] = value if value > lanes[lane] else lanes[lane]
            highest = lanes[0]
        for c in range(even, n_classes):
            highest = own[c] if own[c] > highest else highest
        for c in range(n_classes):
            exponent = own[c] - highest
            exponent = (LOWEST if exponent < LOWEST else exponent) * LOG2_E
            whole = np.floor(exponent + HALF)
            f = exponent - whole
            powers.bits[c] = (np.int32(whole) + np.int32(127)) << np.int32(23)
            high = (EXP2[6] * f + EXP2[5]) * f + EXP2[4]
            own[c] = (((high * f + EXP2[3]) * f + EXP2[2]) * f + EXP2[1]) * f + EXP2[0]
        total = ZERO
        for c in range(n_classes):
            own[c] *= powers.numbers[c]
            total += own[c]
        to_share = share / total
        for c in range(n_classes):
            own[c] *= to_share
        own[labels[row]] -= share
    for row in range(n_rows, len(logits)):
        for c in range(start, start + n_classes):
            logits[row, c] = ZERO


@helper(fastmath=VECTORISED)
def adam(
    parameters: FloatArray, gradient: FloatArray, mean: FloatArray, square: FloatArray, step: int, rate: float
) -> None:
    """One step of Adam in place; `step` counts from 1."""
    widest_vectors()
    length = np.float32(rate / (1.0 - DECAY_MEAN**step))
    root = np.float32(1.0 / np.sqrt(1.0 - DECAY_SQUARE**step))
    keep_mean, keep_square, epsilon = np.float32(DECAY_MEAN), np.float32(DECAY_SQUARE), np.float32(EPSILON)
    for p in range(len(parameters)):
        slope = gradient[p]
        mean[p] = keep_mean * mean[p] + (ONE - keep_mean) * slope
        square[p] = keep_square * square[p] + (ONE - keep_square) * slope * slope
        parameters[p] -= length * mean[p] / (np.sqrt(square[p]) * root + epsilon)


class Layers(NamedTuple):
    """The parameters of a perceptron, or their gradient: one line of numbers, and the parts of it."""

    flat: FloatArray
    first: FloatArray  # (width, HIDDEN)
    second: FloatArray  # (classes, HIDDEN)
    bias: FloatArray  # (classes,)


class Batch(NamedTuple):
    """Room for one minibatch."""

    inputs: FloatArray  # (batch, width)
    across: FloatArray  # (width, batch) the same
    labels: IntArray  # (batch,)
    hidden: FloatArray  # (batch, HIDDEN)
    back: FloatArray  # (batch, HIDDEN) slopes by `hidden`
    errors: FloatArray  # (batch, classes)
    errors_across: FloatArray  # (classes, batch)


def _layers(flat: FloatArray, width: int) -> Layers:
    classes = (len(flat) - width * HIDDEN) // (HIDDEN + 1)
    split, end = width * HIDDEN, (width + classes) * HIDDEN
    return Layers(flat, flat[:split].reshape(width, HIDDEN), flat[split:end].reshape(classes, HIDDEN), flat[end:])


def _room(batch: int, layers: Layers) -> Batch:
    (width, _), (classes, _) = layers.first.shape, layers.second.shape
    return Batch(
        np.empty((batch, width), dtype=np.float32),
        np.empty((width, batch), dtype=np.float32),
        np.zeros(batch, dtype=np.int64),
        aligned(batch, HIDDEN),
        aligned(batch, HIDDEN),
        aligned(batch, classes),
        aligned(classes, batch),
    )


def perceptron_epoch(
    inputs: FloatArray,
    labels: IntArray,
    order: IntArray,
    knocked_out: int,
    n_classes: int,
    batch: int,
    state: FloatArray,
    step: int,
    rate: float,
) -> int:
    """Train on every row of `order` once; returns the number of steps taken so far.

    `state` (3, n_parameters) holds the parameters and Adam's two averages. The column `knocked_out` of the inputs,
    if not negative, reads as 0. Inputs (rows, width) are padded with zeros to a multiple of 4 columns, that of the
    bias included, and batches are multiples of 4.
    """
    parameters = _layers(aligned(1, state.shape[1])[0], inputs.shape[1])
    gradient = _layers(aligned(1, state.shape[1])[0], inputs.shape[1])
    parameters.flat[:] = state[0]
    step = _run_perceptron(
        inputs, labels, order, knocked_out, n_classes, parameters, gradient, state[1], state[2], step, rate,
        _room(batch, parameters), room_for_powers(len(parameters.bias)), labels[:0],
    )  # fmt: skip
    state[0] = parameters.flat
    return step


def perceptron_classes(inputs: FloatArray, knocked_out: int, n_classes: int, parameters: FloatArray) -> IntArray:
    """Class of the highest logit for each row."""
    layers, predicted = _layers(parameters, inputs.shape[1]), np.empty(len(inputs), dtype=np.int64)
    rows, none = np.arange(len(inputs)), parameters[:0]
    _run_perceptron(
        inputs, predicted, rows, knocked_out, n_classes, layers, layers, none, none, 0, 0.0,
        _room(AT_ONCE, layers), room_for_powers(1), predicted,
    )  # fmt: skip
    return predicted


@kernel(fastmath=VECTORISED)
def _run_perceptron(
    inputs: FloatArray,
    labels: IntArray,
    order: IntArray,
    knocked_out: int,
    n_classes: int,
    parameters: Layers,
    gradient: Layers,
    mean: FloatArray,
    square: FloatArray,
    step: int,
    rate: float,
    batch: Batch,
    powers: Powers,
    predicted: IntArray,
) -> int:
    """Train on the rows of `order`, batch by batch, or, where there is room in `predicted`, classify them.

    The gradient is that of the mean cross-entropy of one minibatch.
    """
    widest_vectors()
    (rows, width), classes = batch.inputs.shape, batch.errors.shape[1]
    hidden, back, errors = batch.hidden, batch.back, batch.errors
    for start in range(0, len(order), rows):
        n_rows = rows if start + rows < len(order) else len(order) - start
        for row in range(rows):
            source = order[start + row] if row < n_rows else -1
            for k in range(width):
                number = inputs[source, k] if source >= 0 and k != knocked_out else ZERO
                batch.inputs[row, k], batch.across[k, row] = number, number
        _product(batch.inputs, parameters.first, hidden)
        for row in range(rows):
            for j in range(HIDDEN):
                hidden[row, j] = ZERO if hidden[row, j] < ZERO else hidden[row, j]
        _dot_products(hidden, parameters.second, errors)
        for row in range(rows):
            for c in range(classes):
                errors[row, c] += parameters.bias[c]
        if len(predicted) > 0:
            for row in range(n_rows):
                best = 0
                for c in range(1, n_classes):
                    best = c if errors[row, c] > errors[row, best] else best
                predicted[start + row] = best
            continue
        for row in range(n_rows):
            batch.labels[row] = labels[order[start + row]]
        softmax_errors(errors, batch.labels, n_rows, 0, n_classes, powers)
        for c in range(classes):
            gradient.bias[c] = ZERO
        for row in range(rows):
            for c in range(classes):
                errors[row, c] = errors[row, c] if c < n_classes else ZERO
                gradient.bias[c] += errors[row, c]
                batch.errors_across[c, row] = errors[row, c]
        _product(batch.errors_across, hidden, gradient.second)
        _product(errors, parameters.second, back)
        for row in range(rows):
            for j in range(HIDDEN):
                back[row, j] = back[row, j] if hidden[row, j] > ZERO else ZERO
        _product(batch.across, back, gradient.first)
        step += 1
        adam(parameters.flat, gradient.flat, mean, square, step, rate)
    return step


@helper(fastmath=VECTORISED)
def _linear(inputs: FloatArray, weights: FloatArray, logits: FloatArray) -> None:
    """logits (rows, columns) = inputs (rows, width) @ weights (width, columns); width is a multiple of 4."""
    rows, columns = logits.shape
    for i in range(rows):
        for c in range(columns):
            logits[i, c] = ZERO
        for k in range(0, inputs.shape[1], 4):
            a0, a1, a2, a3 = inputs[i, k], inputs[i, k + 1], inputs[i, k + 2], inputs[i, k + 3]
            for c in range(columns):
                logits[i, c] += a0 * weights[k, c] + a1 * weights[k + 1, c]
                logits[i, c] += a2 * weights[k + 2, c] + a3 * weights[k + 3, c]


@helper(fastmath=VECTORISED)
def linear_gradient(
    inputs: FloatArray,
    labels: IntArray,
    n_rows: int,
    starts: IntArray,
    weights: FloatArray,
    gradient: FloatArray,
    errors: FloatArray,
    powers: Powers,
) -> None:
    """Gradient of the summed mean cross-entropies of one linear head per factor, over one minibatch.

    `inputs` (rows, width) is padded with zeros to a multiple of 4 both ways, its column of ones included; the
    classes of factor k are the columns starts[k] to starts[k + 1] of `weights` (width, columns); any columns after
    them are padding.
    """
    rows, width = inputs.shape
    _linear(inputs, weights, errors)
    for factor in range(len(starts) - 1):
        size = starts[factor + 1] - starts[factor]
        softmax_errors(errors, labels[:, factor], n_rows, starts[factor], size, powers)
    for i in range(rows):
        for c in range(starts[-1], errors.shape[1]):
            errors[i, c] = ZERO
    for k in range(width):
        for c in range(errors.shape[1]):
            gradient[k, c] = ZERO
        for i in range(0, rows, 4):
            a0, a1, a2, a3 = inputs[i, k], inputs[i + 1, k], inputs[i + 2, k], inputs[i + 3, k]
            for c in range(errors.shape[1]):
                gradient[k, c] += a0 * errors[i, c] + a1 * errors[i + 1, c]
                gradient[k, c] += a2 * errors[i + 2, c] + a3 * errors[i + 3, c]


def linear_epoch(
    inputs: FloatArray,
    labels: IntArray,
    order: IntArray,
    starts: IntArray,
    batch: int,
    state: FloatArray,
    step: int,
    rate: float,
) -> int:
    """As `perceptron_epoch`, for the linear heads of all factors at once; labels are (n_samples, n_factors)."""
    width, parameters, gradient = inputs.shape[1], state[0], np.empty_like(state[0])
    columns = len(parameters) // width
    return _linear_epoch(
        inputs, labels, order, starts, state[1], state[2], step, rate, parameters, gradient,
        parameters.reshape(width, columns), gradient.reshape(width, columns),
        np.empty((batch, width), np.float32), np.zeros((batch, labels.shape[1]), np.int64),
        np.empty((batch, columns), np.float32), room_for_powers(columns),
    )  # fmt: skip


@kernel()
def _linear_epoch(
    inputs: FloatArray,
    labels: IntArray,
    order: IntArray,
    starts: IntArray,
    mean: FloatArray,
    square: FloatArray,
    step: int,
    rate: float,
    parameters: FloatArray,
    gradient: FloatArray,
    weights: FloatArray,
    slopes: FloatArray,
    chosen: FloatArray,
    chosen_labels: IntArray,
    errors: FloatArray,
    powers: Powers,
) -> int:
    """`linear_epoch`, with room for one minibatch."""
    batch, width = chosen.shape
    for start in range(0, len(order), batch):
        n_rows = batch if start + batch < len(order) else len(order) - start
        for row in range(batch):
            source = order[start + row] if row < n_rows else -1
            for k in range(width):
                chosen[row, k] = inputs[source, k] if source >= 0 else ZERO
            for factor in range(labels.shape[1] if source >= 0 else 0):
                chosen_labels[row, factor] = labels[source, factor]
        linear_gradient(chosen, chosen_labels, n_rows, starts, weights, slopes, errors, powers)
        step += 1
        adam(parameters, gradient, mean, square, step, rate)
    return step


def linear_classes(inputs: FloatArray, starts: IntArray, weights: FloatArray) -> IntArray:
    """(n_samples, n_factors) class of the highest logit of each factor."""
    predicted = np.empty((len(inputs), len(starts) - 1), dtype=np.int64)
    _linear_classes(inputs, starts, weights, np.empty((1, weights.shape[1]), dtype=np.float32), predicted)
    return predicted


@kernel()
def _linear_classes(
    inputs: FloatArray, starts: IntArray, weights: FloatArray, logits: FloatArray, predicted: IntArray
) -> None:
    for row in range(len(inputs)):
        _linear(inputs[row : row + 1], weights, logits)
        for factor in range(len(starts) - 1):
            best = starts[factor]
            for c in range(best + 1, starts[factor + 1]):
                if logits[0, c] > logits[0, best]:
                    best = c
            predicted[row, factor] = best - starts[factor]
