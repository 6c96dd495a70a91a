"""The compiled steps of the probes against gradients and optimisers that we did not write."""

import llvmlite.binding
import numba
import numpy as np
import pytest

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.compiled import kernel
from unbraid.metrics._solvers import perceptron
from unbraid.metrics._solvers.perceptron import (
    HIDDEN,
    VECTORISED,
    linear_classes,
    linear_epoch,
    perceptron_classes,
    perceptron_epoch,
    room_for_powers,
)
from unbraid.metrics._solvers.vectors import aligned, widest_vectors

# Parts of compiled functions, compiled by themselves.
adam = kernel(fastmath=VECTORISED)(perceptron.adam)
linear_gradient = kernel(fastmath=VECTORISED)(perceptron.linear_gradient)
softmax_errors = kernel(fastmath=VECTORISED)(perceptron.softmax_errors)

WIDTH, CLASSES, PADDED, ROWS = 8, 6, 8, 12  # 5 codes and the ones, in 8 columns; 10 of 12 rows count


def batch(seed: int = 0) -> tuple[FloatArray, IntArray, FloatArray]:
    rng = np.random.default_rng(seed)
    inputs = np.zeros((ROWS, WIDTH), dtype=np.float32)
    inputs[:10, :5], inputs[:10, 5] = rng.standard_normal((10, 5)), 1.0
    labels = rng.integers(0, CLASSES, ROWS)
    parameters = rng.standard_normal((WIDTH + PADDED) * HIDDEN + PADDED).astype(np.float32) * 0.3
    parameters[(WIDTH + CLASSES) * HIDDEN : (WIDTH + PADDED) * HIDDEN] = 0
    parameters[-2:] = 0
    return inputs, labels, parameters


def gradient_of(inputs: FloatArray, labels: IntArray, parameters: FloatArray) -> FloatArray:
    """Adam's average of slopes after one step, a tenth of the gradient."""
    state = np.zeros((3, len(parameters)), np.float32)
    state[0] = parameters
    perceptron_epoch(inputs, labels, np.arange(10), -1, CLASSES, ROWS, state, 0, 1e-3)
    return state[1] * 10


def test_perceptron_gradient_is_that_of_autograd() -> None:
    torch = pytest.importorskip("torch")
    inputs, labels, parameters = batch()
    leaf = torch.tensor(parameters, dtype=torch.float64, requires_grad=True)
    first = leaf[: WIDTH * HIDDEN].reshape(WIDTH, HIDDEN)
    second = leaf[WIDTH * HIDDEN : (WIDTH + CLASSES) * HIDDEN].reshape(CLASSES, HIDDEN)
    hidden = torch.relu(torch.tensor(inputs[:10], dtype=torch.float64) @ first)
    logits = hidden @ second.T + leaf[-PADDED:][:CLASSES]
    torch.nn.functional.cross_entropy(logits, torch.tensor(labels[:10])).backward()
    np.testing.assert_allclose(gradient_of(inputs, labels, parameters), leaf.grad.numpy(), atol=2e-6)


def test_padding_rows_and_classes_get_no_gradient() -> None:
    inputs, labels, parameters = batch()
    gradient = gradient_of(inputs, labels, parameters)
    assert not gradient[6 * HIDDEN : WIDTH * HIDDEN].any()
    assert not gradient[(WIDTH + CLASSES) * HIDDEN : -PADDED].any()
    assert not gradient[-2:].any()


@pytest.mark.parametrize("n_classes", [1, 5, 16, 17, 40])  # the highest is sought 16 at a time
@pytest.mark.parametrize("spread", [1.0, 30.0, 1e4])
def test_softmax_errors_keep_single_precision(spread: float, n_classes: int) -> None:
    rng, rows, end = np.random.default_rng(0), 64, 3 + n_classes
    logits = (rng.standard_normal((rows + 1, end + 4)) * spread).astype(np.float32)
    labels = rng.integers(0, n_classes, rows + 1)
    exact = np.exp(logits[:, 3:end].astype(float) - logits[:, 3:end].max(axis=1, keepdims=True))
    exact /= exact.sum(axis=1, keepdims=True)
    exact[np.arange(rows + 1), labels] -= 1
    kept = logits.copy()
    softmax_errors(logits, labels, rows, 3, n_classes, room_for_powers(n_classes))
    np.testing.assert_allclose(logits[:rows, 3:end], exact[:rows] / rows, atol=1e-7 * 8 / rows)
    assert not logits[rows, 3:end].any()
    others = np.r_[:3, end : end + 4]
    np.testing.assert_array_equal(logits[:, others], kept[:, others])


@pytest.mark.parametrize("place", [0, 1, 15, 16, 17])
def test_a_logit_that_is_no_number_leaves_no_gradient(place: int) -> None:
    logits = np.zeros((2, 18), dtype=np.float32)
    logits[0, place] = np.nan
    softmax_errors(logits, np.zeros(2, int), 2, 0, 18, room_for_powers(18))
    assert np.isnan(logits[0]).all()
    assert np.isfinite(logits[1]).all()


def test_compiled_loops_are_as_wide_as_the_processor() -> None:
    """With AVX-512 registers of 512 bits are used, where numba alone would take those of 256."""

    @kernel(cache=False)  # what lies in the cache cannot be read
    def doubled(numbers: FloatArray) -> None:
        widest_vectors()
        for place in range(len(numbers)):
            numbers[place] *= np.float32(2.0)

    numbers = np.ones(100, dtype=np.float32)
    doubled(numbers)
    assert (numbers == 2).all()
    (compiled,) = doubled.dispatcher.inspect_asm().values()
    features = numba.config.CPU_FEATURES or llvmlite.binding.get_host_cpu_features().flatten()
    assert ("zmm" in compiled) == ("+avx512f" in features)


def test_scratch_lies_from_the_start_of_a_line_of_the_cache_on() -> None:
    kept = [aligned(3, columns) for columns in (5, 16, 33)]
    assert [each.shape for each in kept] == [(3, 5), (3, 16), (3, 33)]
    assert {each.ctypes.data % 64 for each in kept} == {0}
    assert all(each.flags.c_contiguous and each.dtype == np.float32 for each in kept)


def test_adam_is_that_of_torch() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    start = rng.standard_normal(37).astype(np.float32)
    own, mean, square = start.copy(), np.zeros(37, np.float32), np.zeros(37, np.float32)
    peer = torch.tensor(start, requires_grad=True)
    optimizer = torch.optim.Adam([peer], lr=1e-3, betas=(0.9, 0.999))
    for step in range(1, 21):
        gradient = (rng.standard_normal(37) * 10.0 ** rng.integers(-6, 2)).astype(np.float32)
        adam(own, gradient, mean, square, step, 1e-3)
        peer.grad = torch.tensor(gradient)
        optimizer.step()
    np.testing.assert_allclose(own, peer.detach().numpy(), atol=1e-6)


def test_an_epoch_is_one_step_of_adam_per_batch_with_the_last_one_short() -> None:
    """Ten rows in batches of 4, 4 and 2, the hidden column reading as 0, replayed through the checked pieces."""
    inputs, labels, parameters = batch(3)
    order = np.random.default_rng(0).permutation(10)
    state = np.zeros((3, len(parameters)), np.float32)
    state[0] = parameters
    assert perceptron_epoch(inputs, labels, order, 2, CLASSES, 4, state, 0, 1e-3) == 3
    expected = np.zeros_like(state)
    expected[0] = parameters
    inputs[:, 2] = 0
    for step, rows in enumerate((order[:4], order[4:8], order[8:]), start=1):
        one = np.zeros_like(state)
        one[0] = expected[0]
        perceptron_epoch(inputs, labels, rows, -1, CLASSES, 4, one, 0, 1e-3)
        adam(expected[0], one[1] * 10, expected[1], expected[2], step, 1e-3)
    np.testing.assert_allclose(state, expected, atol=1e-7)


def test_perceptron_names_the_class_of_the_highest_logit() -> None:
    inputs, _, few = batch(4)
    many = np.random.default_rng(0).standard_normal((WIDTH + 136) * HIDDEN + 136).astype(np.float32)
    cases = ((-1, few, PADDED, CLASSES), (1, few, PADDED, CLASSES), (-1, many, 136, 130))
    for knocked_out, parameters, padded, classes in cases:
        first = parameters[: WIDTH * HIDDEN].reshape(WIDTH, HIDDEN)
        second = parameters[WIDTH * HIDDEN : -padded].reshape(padded, HIDDEN)
        seen = inputs[:9].copy()
        if knocked_out >= 0:
            seen[:, knocked_out] = 0
        logits = (np.maximum(seen @ first, 0) @ second.T + parameters[-padded:])[:, :classes]
        found = perceptron_classes(inputs[:9], knocked_out, classes, parameters)
        np.testing.assert_array_equal(found, logits.argmax(axis=1))


def test_linear_gradient_is_that_of_autograd_for_each_factor() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    inputs, _, _ = batch()
    starts, columns = np.array([0, 3, 8]), 16
    labels = np.stack([rng.integers(0, 3, ROWS), rng.integers(0, 5, ROWS)], axis=1)
    weights = np.zeros((WIDTH, columns), np.float32)
    weights[:, :8] = rng.standard_normal((WIDTH, 8))
    gradient = np.empty_like(weights)
    linear_gradient(
        inputs, labels, 10, starts, weights, gradient, np.empty((ROWS, columns), np.float32), room_for_powers(16)
    )
    leaf = torch.tensor(weights, dtype=torch.float64, requires_grad=True)
    logits = torch.tensor(inputs[:10], dtype=torch.float64) @ leaf
    for factor, (start, stop) in enumerate(((0, 3), (3, 8))):
        torch.nn.functional.cross_entropy(logits[:, start:stop], torch.tensor(labels[:10, factor])).backward(
            retain_graph=True
        )
    np.testing.assert_allclose(gradient, leaf.grad.numpy(), atol=1e-6)


def test_linear_epochs_learn_separable_classes() -> None:
    rng = np.random.default_rng(0)
    inputs = np.zeros((300, 4), np.float32)
    inputs[:, :2], inputs[:, 2] = rng.standard_normal((300, 2)), 1.0
    labels = np.stack([inputs[:, 0] > 0, inputs[:, 1] > 0], axis=1).astype(np.int64)
    starts, state, step = np.array([0, 2, 4]), np.zeros((3, 4 * 64), np.float32), 0
    for _ in range(20):
        step = linear_epoch(inputs, labels, rng.permutation(300), starts, 32, state, step, 0.1)
    assert step == 20 * 10
    assert np.mean(linear_classes(inputs, starts, state[0].reshape(4, 64)) == labels) > 0.97
