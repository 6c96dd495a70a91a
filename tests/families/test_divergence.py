"""A member whose gradient alone is not finite is stopped, with its state as it was, and no other member is."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.families.members import population_with


def rooted(modules: nn.ModuleDict, batch: Any, hyper: Mapping[str, Any], step: Any, context: Any) -> tuple:  # noqa: ARG001
    """sqrt(x + beta) of one weight x, counted from where it is: at beta = 0 a loss of 0 whose slope is infinite."""
    weight = dict(modules.named_parameters())["vae.decoder.0.bias"][0]
    return torch.sqrt(weight - weight.detach() + torch.as_tensor(hyper["beta"], dtype=weight.dtype)), {}, {}


def overflowing(modules: nn.ModuleDict, batch: Any, hyper: Mapping[str, Any], step: Any, context: Any) -> tuple:  # noqa: ARG001
    """1 / beta: at beta = 0 an infinite loss whose gradient is 0."""
    weight = dict(modules.named_parameters())["vae.decoder.0.bias"][0]
    return 1 / torch.as_tensor(hyper["beta"], dtype=weight.dtype) + (weight - weight.detach()) * 0, {}, {}


@pytest.mark.parametrize(("loss", "reason"), [(rooted, "gradient"), (overflowing, "loss")])
@pytest.mark.parametrize("betas", [(0.0,), (4.0, 0.0, 1.0)], ids=["alone", "stacked"])
def test_what_is_not_finite_stops_its_member(loss: Any, reason: str, betas: tuple[float, ...]) -> None:
    population = population_with("beta_vae", loss, [{"beta": beta} for beta in betas])
    before = [population.state(number) for number in range(len(betas))]
    population.advance(0)
    for number, (beta, found) in enumerate(zip(betas, population.diverged(), strict=True)):
        after = population.state(number)
        if beta == 0:
            assert found is not None
            assert (found.step, found.reason) == (0, f"the {reason} of the vae is not finite")
            model = [name for name in after if name.startswith("model/")]
            assert all(torch.equal(after[name], before[number][name]) for name in model)
        else:
            assert found is None
            assert changed(after, before[number]) == ({"model/vae.decoder.0.bias"} if loss is rooted else set())


def normalised(modules: nn.ModuleDict, batch: Any, hyper: Mapping[str, Any], step: Any, context: Any) -> tuple:
    """As `rooted`, after a look at the images that moves running means."""
    modules["vae"](batch["images"], batch["noise"])
    return rooted(modules, batch, hyper, step, context)


@pytest.mark.parametrize("betas", [(0.0,), (4.0, 0.0, 1.0)], ids=["alone", "stacked"])
def test_running_statistics_of_a_refused_step_are_forgotten(betas: tuple[float, ...]) -> None:
    hypers = [{"beta": beta, "network": "dense_norm"} for beta in betas]
    population = population_with("beta_vae", normalised, hypers)
    before = [population.state(number) for number in range(len(betas))]
    population.advance(0)
    for number, beta in enumerate(betas):
        running = {name for name in changed(population.state(number), before[number]) if "running" in name}
        assert len(running) == (0 if beta == 0 else 8)


@pytest.mark.parametrize("n_members", [1, 2], ids=["alone", "stacked"])
def test_the_player_that_went_wrong_is_named(n_members: int) -> None:
    """One member's VAE is as it should be, its discriminator divides by a learning rate of 0."""

    def of_discriminator(modules: nn.ModuleDict, batch: Any, hyper: Any, step: Any, context: Any) -> tuple:  # noqa: ARG001
        weight = dict(modules.named_parameters())["discriminator.layers.0.bias"][0]
        rate = torch.as_tensor(hyper["discriminator_learning_rate"], dtype=weight.dtype)
        return torch.sqrt(weight - weight.detach() + rate), {}, {}

    hypers = [{"discriminator_learning_rate": rate} for rate in (0.0, 0.1)[:n_members]]
    population = population_with("factor_vae", of_discriminator, hypers, move="discriminator")
    population.advance(0)
    found = population.diverged()
    assert found[0].reason == "the gradient of the discriminator is not finite"
    assert found[1:] == [None] * (n_members - 1)


def changed(after: Mapping[str, Tensor], before: Mapping[str, Tensor]) -> set[str]:
    return {name for name in after if name.startswith("model/") and not torch.equal(after[name], before[name])}
