"""Every objective: derivatives against finite differences, and members of a stack against the same members alone."""

from collections.abc import Callable, Mapping

import pytest
import torch
from torch import Tensor

from tests.families.posteriors import normal, outputs_of, posteriors
from unbraid.families.ada_vae import Average, share
from unbraid.families.beta_tcvae import FactorialFlow, beta_tcvae
from unbraid.families.cci_vae import cci_vae
from unbraid.families.common import discriminator_loss
from unbraid.families.delta_vae import CirclePosterior, delta_vae, random_walk, to_circle
from unbraid.families.dip_vae import dip_vae_i, dip_vae_ii
from unbraid.families.factor_vae import density_ratio, factor_vae, permute_dimensions
from unbraid.families.info_gan import code_information, critic_loss, generator_loss, gradient_penalty
from unbraid.families.lsbd_vae import lsbd_loss, lsbd_vae
from unbraid.families.mtd import mtd, swap_loss
from unbraid.families.parted_vae import PartedPosterior, class_cross_entropy, parted_vae, relaxed_classes
from unbraid.families.vae import beta_vae
from unbraid.families.weak_de import generator_loss as weak_generator
from unbraid.families.weak_de import relation_loss

N, D = 5, 3
Logs = dict[str, Tensor]
PERMUTATION = torch.tensor([[1, 0, 4], [0, 3, 2], [4, 1, 0], [2, 2, 1], [3, 4, 3]])
NOISE, REAL, FAKE = normal(N, D), normal(7, D, seed=2), normal(7, D, seed=3)
MIX = torch.linspace(0, 1, 7, dtype=torch.float64)
WALK, TURNS = normal(4, N, 1, 2), normal(1, N, 1)
UNIFORM = normal(N, D, seed=8).sigmoid()
LEVELS = torch.tensor([[0], [2], [1], [1], [0]])
FLOW = FactorialFlow(D, depth=4).double().requires_grad_(False)


def of_vae(objective: Callable[..., tuple[Tensor, Logs]]) -> Callable[..., tuple[Tensor, Logs]]:
    def loss(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:
        outputs = outputs_of(x, y - 1, NOISE)
        return objective(outputs, (x - y).square().sum(1), weight, step)

    return loss


def discriminator(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:  # noqa: ARG001
    ratios = density_ratio(x[:, :2] * weight), density_ratio(permute_dimensions(y, PERMUTATION)[:, :2])
    return discriminator_loss(*ratios)[0], {}


def critic(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:  # noqa: ARG001
    """Here x are the critic's parameters: second derivatives must reach them through the penalty."""

    def score(images: Tensor) -> Tensor:
        return (torch.tanh(images @ x.T) * y[:, 0]).sum(1)

    penalty = gradient_penalty(score, REAL, FAKE, MIX)
    information = code_information(y, x, code_entropy=0.7)
    return critic_loss(score(REAL), score(FAKE), penalty, information, gradient_weight=weight)


def ada(average: Average) -> Callable[..., tuple[Tensor, Logs]]:
    def loss(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:  # noqa: ARG001
        one, other, _ = share((x, y - 1), (y, x - 1), average)
        losses = [beta_vae(outputs_of(*each, NOISE), (x - y).square().sum(1), beta=weight) for each in (one, other)]
        return losses[0][0] + losses[1][0], losses[1][1]

    return loss


def on_circles(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:  # noqa: ARG001
    """Walks of four steps on one circle, and a line; their ends are decoded into two numbers."""
    posterior = CirclePosterior(to_circle(x[:, None, :2]), y[:, :1] - 3, x[:, 2:], y[:, 2:])
    points = random_walk(posterior.location, posterior.log_time, WALK)
    return delta_vae(posterior, weight * (points[:, 0] - y[:, 1:]).square().sum(1))


def groups(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:  # noqa: ARG001
    posterior = CirclePosterior(to_circle(x[:, None, :2]), y[:, :1] - 3, x[:, 2:], y[:, 2:])
    disorder = lsbd_loss(posterior.location[None], posterior.mean[None], TURNS)
    return lsbd_vae(posterior, y.square().sum(1), disorder, gamma=weight)


def parted(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:
    """A categorical of 3 classes, whose priors are a part of y; u is a part of x."""
    posterior = PartedPosterior(x, y - 1, x + y, x[:, None, :2], y[:, None, :2])
    fit = (relaxed_classes(x, UNIFORM, (3,)) * y).square().sum(1) + class_cross_entropy(x, LEVELS, (3,))
    weights = {
        f"gamma_{name}": weight * number for name, number in zip(("z", "u", "c", "h", "bc"), range(1, 6), strict=True)
    }
    capacities = {"z_capacity": weight, "u_capacity": 2 * weight, "capacity_steps": 1000.0, "threshold": 0.1}
    return parted_vae(posterior, x[:3, :2], y[:3, :2], fit, (3,), step=step, **capacities, **weights)


def blocks(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:  # noqa: ARG001
    """One code of content and one for each of two factors, of 3 and 2 values."""
    levels = torch.cat([LEVELS, (LEVELS + 1) % 2], dim=1)
    fit, means = (x - y).square().sum(1), (y[:3, :1], y[3:, 1:2])
    chosen = {"value_sigma": weight, "distance": 4 * weight, "independence_weight": weight, "bias_weight": weight}
    return mtd(x, y - 1, levels, means, fit, swap_loss(x.sin(), y), content=1, swap_weight=weight, **chosen)


OBJECTIVES: Mapping[str, Callable[[Tensor, Tensor, Tensor, Tensor], tuple[Tensor, Logs]]] = {
    "beta_vae": of_vae(lambda o, r, w, _: beta_vae(o, r, beta=w)),
    "cci_vae": of_vae(lambda o, r, w, s: cci_vae(o, r, step=s, gamma=w, c_max=100 * w, capacity_steps=1000)),
    "factor_vae": of_vae(lambda o, r, w, _: factor_vae(o, r, o.sample[:, :2] ** 2, gamma=w)),
    "weighted": of_vae(lambda o, r, w, _: beta_tcvae(o, r, n_train=90, beta=w, alpha=w - 1, gamma=2 * w)),
    "stratified": of_vae(lambda o, r, w, _: beta_tcvae(o, r, n_train=90, beta=w, estimator="stratified")),
    "flow": of_vae(lambda o, r, w, _: beta_tcvae(o, r, n_train=90, beta=w, log_prior=FLOW(o.sample))),
    "dip_vae_i": of_vae(lambda o, r, w, _: dip_vae_i(o, r, lambda_od=w, lambda_d=10 * w)),
    "dip_vae_ii": of_vae(lambda o, r, w, _: dip_vae_ii(o, r, lambda_od=w, lambda_d=w)),
    "ada_gvae": ada("arithmetic"),
    "ada_ml_vae": ada("harmonic"),
    "delta_vae": on_circles,
    "lsbd_vae": groups,
    "parted_vae": parted,
    "mtd": blocks,
    "weak_generator": lambda x, y, w, _: (weak_generator(w * x[:, 0] + y[:, 1]), {}),
    "weak_relations": lambda x, y, w, _: (relation_loss(x[:, None].sin(), w * y[:, None]), {}),
    "discriminator": discriminator,
    "critic": critic,
    "generator": lambda x, y, w, _: generator_loss(
        x[:, 0].sin(), code_information(x, y, code_entropy=0.7), information_weight=w
    ),
}


@pytest.mark.parametrize("name", OBJECTIVES)
def test_derivatives_are_those_of_finite_differences(name: str) -> None:
    x, y = posteriors(N, D)
    weight = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    inputs = (x.requires_grad_(), y.requires_grad_(), weight)
    assert torch.autograd.gradcheck(lambda *given: OBJECTIVES[name](*given, torch.tensor(7))[0], inputs)


@pytest.mark.parametrize("name", ["weighted", "stratified"])
def test_derivatives_written_by_hand_can_be_derived_again(name: str) -> None:
    x, y = posteriors(N, D)
    inputs = (x.requires_grad_(), y.requires_grad_())
    weight = torch.tensor(3.0, dtype=torch.float64)
    assert torch.autograd.gradgradcheck(lambda *given: OBJECTIVES[name](*given, weight, torch.tensor(7))[0], inputs)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_stacked_member_is_the_member_alone(name: str) -> None:
    members = [posteriors(N, D, seed) for seed in range(3)]
    x, y = (torch.stack(parts) for parts in zip(*members, strict=True))
    weights = torch.tensor([0.5, 2.0, 30.0], dtype=torch.float64)
    steps = torch.tensor([0, 300, 5000])

    def loss(x: Tensor, y: Tensor, weight: Tensor, step: Tensor) -> tuple[Tensor, Logs]:
        return OBJECTIVES[name](x, y, weight, step)

    stacked = torch.func.vmap(torch.func.grad_and_value(loss, argnums=(0, 1), has_aux=True))(x, y, weights, steps)
    for member in range(3):
        own = [x[member].clone().requires_grad_(), y[member].clone().requires_grad_()]
        value, logs = loss(own[0], own[1], weights[member], steps[member])
        gradients, (values, many_logs) = stacked
        torch.testing.assert_close(values[member], value)
        torch.testing.assert_close({key: many_logs[key][member] for key in logs}, logs)
        expected = torch.autograd.grad(value, own, allow_unused=True)
        for gradient, alone in zip(gradients, expected, strict=True):
            torch.testing.assert_close(gradient[member], torch.zeros_like(x[0]) if alone is None else alone)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_inputs_stay_untouched_and_no_random_number_is_drawn(name: str) -> None:
    x, y = posteriors(N, D)
    before, state = (x.clone(), y.clone()), torch.get_rng_state()
    OBJECTIVES[name](x, y, torch.tensor(3.0), torch.tensor(7))
    torch.testing.assert_close((x, y), before, rtol=0, atol=0)
    assert torch.equal(torch.get_rng_state(), state)
