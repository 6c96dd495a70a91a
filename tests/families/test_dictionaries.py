"""Sparse autoencoders: which codes stay, by hand, the derivative of a threshold, and training that can be repeated."""

import numpy as np
import pytest
import torch

from unbraid.datasets.superposition import superposition
from unbraid.families.dictionaries import BANDWIDTH, Dictionary, _Step, train_dictionary

CODES = torch.tensor([[5.0, 1.0, 4.0, 0.0], [0.5, 0.2, 0.1, 0.3]])


def test_before_training_no_code_decodes_to_the_origin() -> None:
    assert Dictionary(3, 4).decode(torch.zeros(1, 4)).tolist() == [[0, 0, 0]]


def test_topk_keeps_the_largest_of_each_row() -> None:
    kept = Dictionary(3, 4, "topk", k=2).sparse(CODES)
    assert kept.numpy() == pytest.approx(np.array([[5, 0, 4, 0], [0.5, 0, 0, 0.3]]))


def test_batch_topk_keeps_the_largest_of_all_and_afterwards_what_is_above_a_threshold() -> None:
    model = Dictionary(3, 4, "batch_topk", k=2)
    assert model.sparse(CODES).numpy() == pytest.approx(np.array([[5, 1, 4, 0], [0.5, 0, 0, 0]]))
    assert float(model.threshold) == 0.5
    model.sparse(CODES + 1)  # keeps 6, 2, 5 and 1.5
    assert float(model.threshold) == pytest.approx(0.5 + 0.01)
    assert model.eval().sparse(CODES).numpy() == pytest.approx(np.array([[5, 1, 4, 0], [0, 0, 0, 0]]))


def test_a_threshold_learns_from_codes_near_it() -> None:
    """Each code within half a bandwidth of the threshold adds -1 / bandwidth times what comes from above."""
    threshold = torch.tensor([1.0, 1.0], requires_grad=True)
    codes = 1.0 + BANDWIDTH * torch.tensor([[0.4, 0.6], [-0.4, -2.0], [0.1, 3.0]])
    weights = torch.tensor([[1.0, 1.0], [2.0, 1.0], [4.0, 1.0]])
    (weights * _Step.apply(codes, threshold)).sum().backward()
    assert threshold.grad is not None
    assert threshold.grad.numpy() == pytest.approx([-7 / BANDWIDTH, 0.0])


@pytest.mark.parametrize("sparsity", ["topk", "batch_topk", "jump_relu"])
def test_the_same_seed_gives_the_same_and_activations_may_lie_anywhere(sparsity) -> None:
    drawn = superposition(8, 6, 500, rate=0.2)
    one, other = (train_dictionary(drawn.activations, 8, sparsity=sparsity, k=2, steps=30) for _ in range(2))
    moved = train_dictionary(10 * drawn.activations - 4, 8, sparsity=sparsity, k=2, steps=30)
    assert all(torch.equal(a, b) for a, b in zip(one.parameters(), other.parameters(), strict=True))
    x = torch.from_numpy(drawn.activations)
    np.testing.assert_allclose(one.W_dec.norm(dim=1).detach(), 1.0, rtol=1e-5)
    np.testing.assert_allclose(moved(10 * x - 4).detach(), 10 * one(x).detach() - 4, atol=2e-2)
