"""ForwardVAE's objective by hand."""

import math

import pytest
import torch

from unbraid.families.forward_vae import forward_vae, plane_matrices


def test_an_action_moves_its_own_plane_alone() -> None:
    blocks = torch.tensor([[[0.0, 1.0], [2.0, 3.0]], [[5.0, 6.0], [7.0, 8.0]]])
    first, second = plane_matrices(blocks, (1, 0), 5)
    latents = torch.arange(1.0, 6.0)
    assert (first @ latents).tolist() == [1, 2, 4, 2 * 3 + 3 * 4, 5]
    assert (second @ latents).tolist() == [5 + 12, 7 + 16, 3, 4, 5]


@pytest.mark.parametrize("step", [0, 7, torch.tensor(7)])
def test_all_terms_are_means_and_the_kl_fades(step) -> None:
    """KL of N(2, 1) is 2 nats and of N(0, e) is (e - 2) / 2: their mean counts, times beta * .995 ** step."""
    mean, log_variance = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 1.0]])
    predicted, following = torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 4.0]])
    loss, logs = forward_vae(torch.tensor([0.25]), mean, log_variance, predicted, following, beta=3.0, step=step)
    kl = 2 + (math.e - 2) / 2
    assert logs["kl"].item() == pytest.approx(kl)
    assert logs["forward"].item() == pytest.approx(4.5)
    assert loss.item() == pytest.approx(0.25 + 4.5 + 3 * 0.995 ** int(step) * kl / 2)


def test_the_next_mean_learns_too() -> None:
    following = torch.zeros(1, 2, requires_grad=True)
    loss, _ = forward_vae(
        torch.zeros(1), torch.zeros(1, 2), torch.zeros(1, 2), torch.ones(1, 2), following, beta=1.0, step=0
    )
    loss.backward()
    assert following.grad is not None
    assert following.grad.tolist() == [[-1, -1]]
