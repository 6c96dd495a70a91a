"""A small image with a weighted reconstruction term has the balance of a large one."""

import pytest
import torch
from torch.nn.functional import avg_pool2d

from tests.families.members import play
from unbraid.families.common import reconstruction_term
from unbraid.families.family_table import FAMILIES

WEIGHTED = [name for name, family in FAMILIES.items() if "reconstruction_weight" in family.hyperparameters]


def test_every_family_with_a_likelihood_has_the_weight() -> None:
    with_likelihood = {
        name for name, family in FAMILIES.items() if {"likelihood", "sigma"} <= set(family.hyperparameters)
    }
    assert set(WEIGHTED) == with_likelihood
    assert len(WEIGHTED) >= 15


@pytest.mark.parametrize("family", WEIGHTED)
def test_the_weight_multiplies_the_reconstruction_and_nothing_else(family: str) -> None:
    """The first step before any weights move: loss(w) - loss(1) = (w - 1) * sum of -log p(x), term by term."""
    plain, weighted = (play(family, 1, reconstruction_weight=weight).logs[0] for weight in (1.0, 4.0))
    changed = {name for name in plain if weighted[name] != pytest.approx(plain[name], rel=1e-9, abs=1e-11)}
    changed = {name for name in changed if "discriminator" not in name}  # it looks at a VAE that has moved
    terms = {name for name in changed if name.endswith("reconstruction")}
    losses = changed - terms
    assert terms
    assert all(name.startswith("loss/") for name in losses), losses
    for name in terms:
        assert weighted[name] == pytest.approx(4 * plain[name], rel=1e-9)
    rise = sum(weighted[name] - plain[name] for name in losses)
    assert rise == pytest.approx(sum(3 * plain[name] for name in terms), rel=1e-9)


@pytest.mark.parametrize("settings", [{"likelihood": "bernoulli"}, {"likelihood": "gaussian"}])
@pytest.mark.parametrize(("size", "weight"), [(32, 4.0), (16, 16.0)])
def test_a_shrunk_image_has_the_gradient_of_the_large_one(settings: dict[str, str], size: int, weight: float) -> None:
    """A decoder that knows one number per image: its gradient sums over pixels, and shrinking keeps their mean."""
    images = torch.rand(5, 1, 64, 64, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    small = avg_pool2d(images, 64 // size)
    gradients = []
    for shown, factor in ((images, 1.0), (small, weight)):
        level = torch.full((5, 1, 1, 1), 0.3, dtype=torch.float64, requires_grad=True)
        hyper = {"sigma": 0.7, "reconstruction_weight": factor}
        reconstruction_term(level.expand_as(shown), shown, hyper, settings).sum().backward()
        assert level.grad is not None
        gradients.append(level.grad)
    torch.testing.assert_close(gradients[1], gradients[0], rtol=1e-10, atol=1e-10)
