"""A member whose gradient alone is not finite is stopped, with its weights as they were, and no other member is."""

from collections.abc import Mapping
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.families.plain import population_with


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


def changed(after: Mapping[str, Tensor], before: Mapping[str, Tensor]) -> set[str]:
    return {name for name in after if name.startswith("model/") and not torch.equal(after[name], before[name])}
