"""The flow prior: a density, increasing, and turned around by bisection."""

import pytest
import torch
from torch import Tensor, nn

from unbraid.families.beta_tcvae import FactorialFlow

N_LATENTS = 4


def flow_of(scale: float, depth: int = 32, seed: int = 0) -> FactorialFlow:
    """Parameters `scale` times standard normal: 0.02 at the start of training, 1 is far from it."""
    torch.manual_seed(seed)
    flow = FactorialFlow(N_LATENTS, depth).double()
    for parameter in flow.parameters():
        nn.init.normal_(parameter, std=scale)
    return flow.requires_grad_(False)


def steep() -> FactorialFlow:
    """u w = -30 in one layer, where the map would fold back."""
    flow = flow_of(0.5, depth=3)
    flow.u[1], flow.w[1], flow.b[1] = 10.0, -3.0, 0.1
    return flow


FLOWS = {
    "start": flow_of(0.02),
    "bent": flow_of(0.4),
    "wild": flow_of(1.0),
    "shallow": flow_of(2.0, 2),
    "steep": steep(),
}


def column(values: Tensor) -> Tensor:
    return values[:, None].expand(-1, N_LATENTS)


@pytest.mark.parametrize("name", FLOWS)
def test_density_integrates_to_one(name: str) -> None:
    """Trapezoids between evenly spaced latents, and latents of evenly spaced base values: close where it is steep."""
    flow = FLOWS[name]
    steps = column(torch.linspace(0, 1, 2001, dtype=torch.float64))
    values = flow.from_base(14 * steps - 7)
    low, high = values[:1], values[-1:]
    values = torch.cat([values, low + (high - low) * steps]).sort(0).values
    density = flow(values).exp()
    for latent in range(N_LATENTS):
        assert float(torch.trapezoid(density[:, latent], values[:, latent])) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("name", FLOWS)
def test_bisection_turns_the_flow_around(name: str) -> None:
    flow = FLOWS[name]
    base = torch.randn(200, N_LATENTS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    latents = flow.from_base(base)
    torch.testing.assert_close(flow.to_base(latents)[0], base, rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", FLOWS)
def test_every_layer_increases_and_its_derivative_is_the_one_reported(name: str) -> None:
    flow = FLOWS[name]
    product = flow.slopes() * flow.w
    assert bool((product >= FactorialFlow.FLOOR - 1).all())
    values = column(torch.linspace(-6, 6, 400, dtype=torch.float64)).clone().requires_grad_()
    base, log_derivative = flow.to_base(values)
    assert bool((base.diff(dim=0) > 0).all())
    (derivative,) = torch.autograd.grad(base.sum(), values)
    torch.testing.assert_close(log_derivative, derivative.log(), rtol=1e-6, atol=1e-6)


def test_density_of_one_layer_by_hand() -> None:
    """x = z + 0.5 tanh(2 z - 1): at z = 1/2 x = 1/2 and dx/dz = 1 + 0.5 * 2; log N(1/2) + log 2."""
    flow = FactorialFlow(1, depth=1)
    nn.init.constant_(flow.u, 0.5)
    nn.init.constant_(flow.w, 2.0)
    nn.init.constant_(flow.b, -1.0)
    expected = torch.distributions.Normal(0.0, 1.0).log_prob(torch.tensor(0.5)) + torch.tensor(2.0).log()
    torch.testing.assert_close(flow(torch.tensor([[0.5]])).squeeze(), expected)


def test_u_is_left_alone_where_it_may_be_and_meets_itself_at_the_border() -> None:
    flow = FactorialFlow(3, depth=1).requires_grad_(False)
    flow.w[0] = torch.tensor([2.0, -1e-7, 1.0])
    flow.u[0] = torch.tensor([5.0, 1.0, -1e-3])
    torch.testing.assert_close(flow.slopes()[0], torch.tensor([5.0, 1.0, -1e-3]), rtol=1e-3, atol=0)


def test_derivatives_of_the_density_with_respect_to_everything() -> None:
    flow = flow_of(0.7, depth=3)
    values = torch.randn(3, N_LATENTS, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    parameters = [parameter.clone().requires_grad_() for parameter in flow.parameters()]
    names = [name for name, _ in flow.named_parameters()]

    def density(values: Tensor, *given: Tensor) -> Tensor:
        return torch.func.functional_call(flow, dict(zip(names, given, strict=True)), (values,))

    assert torch.autograd.gradcheck(density, (values.requires_grad_(), *parameters))


def test_gradients_are_finite_where_u_or_w_is_zero() -> None:
    flow = FactorialFlow(2, depth=2)
    nn.init.zeros_(flow.u)
    nn.init.zeros_(flow.w)
    flow(torch.ones(3, 2)).sum().backward()
    assert all(bool(parameter.grad.isfinite().all()) for parameter in flow.parameters() if parameter.grad is not None)


def test_training_finds_two_humps() -> None:
    """An equal mixture of N(-2, 0.25) and N(2, 0.25): far more likely under the flow than under any normal."""
    generator = torch.Generator().manual_seed(0)
    data = torch.randn(512, 1, generator=generator) * 0.5
    data = data + 2 * torch.where(torch.arange(512) % 2 == 0, 1.0, -1.0)[:, None]
    torch.manual_seed(0)
    flow = FactorialFlow(1, depth=8)
    adam = torch.optim.Adam(flow.parameters(), lr=3e-2)
    for _ in range(120):
        loss = -flow(data).mean()
        adam.zero_grad()
        loss.backward()
        adam.step()
    normal = torch.distributions.Normal(0.0, data.std()).log_prob(data).mean()
    assert -float(loss.detach()) > float(normal) + 0.3
    samples = flow.from_base(torch.randn(2000, 1, generator=generator))
    assert float((samples.abs() < 0.7).float().mean()) < 0.1
    assert float((samples > 0).float().mean()) == pytest.approx(0.5, abs=0.1)
