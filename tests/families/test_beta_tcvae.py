"""Beta-TCVAE: a step against the paper's equations, its estimators, and its learned prior."""

import math
from itertools import permutations, product

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.families.members import DATASET, Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    bernoulli,
    check,
    decoder,
    drawn,
    gaussian,
    log_normal,
    mean_of,
)
from tests.families.posteriors import normal, outputs_of, posteriors
from unbraid.families.beta_tcvae import Estimator, FactorialFlow, beta_tcvae, kl_terms, log_weights
from unbraid.families.vae import beta_vae

ONE = ["vae"]


N = len(DATASET)


def mixture_weights(n: int, estimator: str) -> list[list[float]]:
    """Of q(z_i | x_j) in log q(z_i): beta-TCVAE eq. 3, or appendix C.2 of the later version, with n - 1 = M others."""
    if estimator == "weighted":
        return [[1 / (N * n)] * n for _ in range(n)]
    others = n - 1
    rows = [[1 / others] * n for _ in range(n)]
    for i, row in enumerate(rows):
        row[i] = 1 / N
        row[(i + 1) % n] = (N - others) / (N * others)
    return rows


def flow_log_density(weights: Weights, latent: int, value: Tensor) -> Tensor:
    """Of one latent under 32 planar layers; METHODS: u w is held above -1, here at .999 (e^(uw / .999) - 1)."""
    log_derivative = torch.zeros((), dtype=torch.float64)
    for k in range(32):
        u, w, b = (weights[f"prior.{name}"][k, latent] for name in "uwb")
        if float(u.detach() * w.detach()) < 0:
            u = 0.999 * (torch.exp(u * w / 0.999) - 1) / w
        bent = torch.tanh(w * value + b)
        log_derivative = log_derivative + torch.log(1 + u * w * (1 - bent**2))
        value = value + u * bent
    return log_normal(value, torch.zeros_like(value), torch.ones_like(value)) + log_derivative


@pytest.mark.parametrize("estimator", ["weighted", "stratified"])
@pytest.mark.parametrize("prior", ["normal", "factorial_flow"])
def test_a_step_of_the_beta_tcvae(estimator: str, prior: str) -> None:
    """Chen et al. 2018, eq. 1 to 3: weights of their own for information, total correlation and dimension-wise KL."""
    latents = 2

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        posteriors = [gaussian(weights, image) for image in move.batch["images"]]
        n = len(posteriors)
        shares = mixture_weights(n, estimator)
        fits, information, correlation, dimension_wise = [], [], [], []
        for i in range(n):
            z = drawn(posteriors[i], move.batch["noise"][i])
            fits.append(bernoulli(decoder(weights, "vae.decoder", z), move.batch["images"][i]))
            log_conditional = log_prior = log_marginals = torch.zeros((), dtype=torch.float64)
            joint = torch.zeros((), dtype=torch.float64)
            for j in range(n):
                mean, log_variance = posteriors[j]
                density = torch.exp(
                    sum((log_normal(z[d], mean[d], log_variance[d].exp()) for d in range(latents)), joint * 0)
                )
                joint = joint + shares[i][j] * density
                if j == i:
                    log_conditional = torch.log(density)
            for d in range(latents):
                marginal = sum(
                    (shares[i][j] * torch.exp(log_normal(z[d], posteriors[j][0][d], posteriors[j][1][d].exp()))
                     for j in range(n)), joint * 0,
                )  # fmt: skip
                log_marginals = log_marginals + torch.log(marginal)
                own = log_normal(z[d], torch.zeros_like(z[d]), torch.ones_like(z[d]))
                log_prior = log_prior + (own if prior == "normal" else flow_log_density(weights, d, z[d]))
            information.append(log_conditional - torch.log(joint))
            correlation.append(torch.log(joint) - log_marginals)
            dimension_wise.append(log_marginals - log_prior)
        fit = mean_of(fits)
        parts = [mean_of(each) for each in (information, correlation, dimension_wise)]
        names = ("index_code_information", "total_correlation", "dimension_wise_kl")
        logs = {"reconstruction": fit, "kl": parts[0] + parts[1] + parts[2], **dict(zip(names, parts, strict=True))}
        return fit + 0.6 * parts[0] + 5.0 * parts[1] + 1.7 * parts[2], logs

    settings = {"alpha": 0.6, "beta": 5.0, "gamma": 1.7, "estimator": estimator, "prior": prior}
    trains = ("vae.", "prior.") if prior == "factorial_flow" else ("vae.",)
    played = play("beta_tcvae", latents=latents, **settings)
    assert len(played.moves[0].batch["images"]) == 4 < N
    check(played, {"vae": Mover(loss, trains)}, ONE)


ESTIMATORS: tuple[Estimator, ...] = ("weighted", "stratified")


def by_integration(mean: Tensor, log_variance: Tensor) -> np.ndarray:
    """The three parts of a mixture in the plane, sums over a fine grid."""
    axis = np.linspace(-9, 9, 1201)
    mean, variance = np.asarray(mean), np.exp(np.asarray(log_variance))
    curves = np.exp(-0.5 * (axis[:, None, None] - mean) ** 2 / variance) / np.sqrt(2 * np.pi * variance)
    step, n = axis[1] - axis[0], len(mean)
    joint = np.einsum("xn,yn->xy", curves[..., 0], curves[..., 1]) / n
    marginals = curves.mean(1)
    entropy_of_posteriors = 0.5 * (np.log(2 * np.pi * np.e) + np.asarray(log_variance)).sum(1).mean()
    entropy = -(joint * np.log(joint + 1e-300)).sum() * step**2
    entropies = -(marginals * np.log(marginals + 1e-300)).sum(0) * step
    cross = sum(
        (marginals[:, d] * (0.5 * axis**2 + 0.5 * np.log(2 * np.pi))).sum() * step for d in range(marginals.shape[1])
    )
    return np.array([entropy - entropy_of_posteriors, entropies.sum() - entropy, cross - entropies.sum()])


def many_draws(mean: Tensor, log_variance: Tensor, noises: Tensor, n_train: int, estimator: Estimator) -> Tensor:
    """(n_draws, 3) estimates, one for each noise."""

    def one(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
        return torch.stack(kl_terms(outputs_of(mean, log_variance, noise), n_train=n_train, estimator=estimator))

    return torch.func.vmap(one)(mean.expand_as(noises), log_variance.expand_as(noises), noises)


def test_weights_by_hand() -> None:
    """Ten images, batches of four: 1/10 for one's own, then (10 - 3) / (10 * 3) = 7/30, and 1/3 for the rest."""
    a, b, c = 1 / 10, 7 / 30, 1 / 3
    expected = torch.tensor([[a, b, c, c], [c, a, b, c], [c, c, a, b], [b, c, c, a]], dtype=torch.float64)
    torch.testing.assert_close(log_weights(4, 10, "stratified").exp(), expected)
    torch.testing.assert_close(log_weights(4, 10, "weighted").exp(), torch.full((4, 4), 1 / 40, dtype=torch.float64))
    pairs = torch.tensor([[0.1, 0.9], [0.9, 0.1]], dtype=torch.float64)
    torch.testing.assert_close(log_weights(2, 10, "stratified").exp(), pairs)


def test_stratified_weights_give_the_aggregate_posterior_on_average_over_all_batches() -> None:
    """Six images: for a sample of image 0, the mean over every batch of four that holds image 0 first is q(z)."""
    densities = np.random.default_rng(0).random(6)
    weights = np.asarray(log_weights(4, 6, "stratified").exp())[0]
    estimates = [weights @ densities[[0, *others]] for others in permutations(range(1, 6), 3)]
    assert np.mean(estimates) == pytest.approx(densities.mean(), rel=1e-12)


def test_weighted_weights_give_what_equation_6_says_on_average_over_all_batches() -> None:
    """Three of the four drawn with replacement: (q(z|x) + 3 q(z)) / (N M), a lower bound."""
    densities = np.random.default_rng(0).random(6)
    weights = np.asarray(log_weights(4, 6, "weighted").exp())[0]
    estimates = [weights @ densities[[0, *others]] for others in product(range(6), repeat=3)]
    assert np.mean(estimates) == pytest.approx((densities[0] + 3 * densities.mean()) / 24, rel=1e-12)


def test_a_batch_of_everything_is_exact_up_to_the_known_offset_of_the_weighted_estimator() -> None:
    """With all N images in the batch the weights are 1/N^2 for 1/N: every log q is too low by log N, exactly."""
    mean, log_variance = posteriors(7, 2)
    draws = many_draws(mean, log_variance, normal(20000, 7, 2), 7, "weighted")
    offset = math.log(7) * np.array([1, 2 - 1, -2])
    error = np.asarray(draws.std(0)) / math.sqrt(len(draws))
    exact = by_integration(mean, log_variance)
    assert (exact > 0.05).all()
    assert (error < 0.005).all()
    np.testing.assert_allclose(np.asarray(draws.mean(0)) - offset, exact, atol=4 * error.max())


def test_stratified_estimates_come_near_exact_values_and_weighted_ones_do_not() -> None:
    mean, log_variance = posteriors(200, 2)
    exact = by_integration(mean, log_variance)
    estimates = {}
    for estimator in ESTIMATORS:
        totals = []
        for seed in range(60):
            chosen = torch.randperm(200, generator=torch.Generator().manual_seed(seed))[:100]
            outputs = outputs_of(mean[chosen], log_variance[chosen], normal(100, 2, seed=seed))
            totals.append(torch.stack(kl_terms(outputs, n_train=200, estimator=estimator)))
        estimates[estimator] = np.asarray(torch.stack(totals).mean(0))
    np.testing.assert_allclose(estimates["stratified"], exact, atol=0.06)
    assert (np.abs(estimates["weighted"] - exact) > 1).all()


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_all_weights_one_is_one_draw_of_the_vae(estimator: Estimator) -> None:
    """The parts cancel to log q(z|x) - log p(z) in every draw, so loss and gradients are the VAE's in expectation."""
    mean, log_variance = posteriors(6, 3)
    reconstruction = torch.arange(6.0, dtype=torch.float64)
    noise = normal(6, 3)
    mean, log_variance = mean.requires_grad_(), log_variance.requires_grad_()
    vae, _ = beta_vae(outputs_of(mean, log_variance, noise), reconstruction)
    expected = torch.autograd.grad(vae, (mean, log_variance))

    def loss(mean: Tensor, log_variance: Tensor, noise: Tensor) -> Tensor:
        outputs = outputs_of(mean, log_variance, noise)
        return beta_tcvae(outputs, reconstruction, n_train=1000, beta=1.0, estimator=estimator)[0]

    sample = outputs_of(mean, log_variance, noise).sample.detach()
    draw = torch.distributions.Normal(mean.detach(), (0.5 * log_variance.detach()).exp()).log_prob(sample)
    draw = (draw - torch.distributions.Normal(0.0, 1.0).log_prob(sample)).sum(1).mean() + reconstruction.mean()
    torch.testing.assert_close(loss(mean, log_variance, noise).detach(), draw)

    noises = normal(5000, 6, 3)
    both = torch.func.grad_and_value(loss, argnums=(0, 1))
    gradients, values = torch.func.vmap(both, in_dims=(None, None, 0))(mean.detach(), log_variance.detach(), noises)
    assert float(values.mean()) == pytest.approx(float(vae.detach()), abs=4 * float(values.std()) / math.sqrt(5000))
    for draws, exact in zip(gradients, expected, strict=True):
        error = draws.std(0).max() / math.sqrt(5000)
        torch.testing.assert_close(draws.mean(0), exact, rtol=0, atol=4.5 * float(error))


@pytest.mark.parametrize(("n_batch", "n_train"), [(1, 10), (11, 10)])
def test_the_stratified_estimator_needs_two_images_and_no_more_than_there_are(n_batch: int, n_train: int) -> None:
    with pytest.raises(ValueError, match=f"got {n_batch} of {n_train}"):
        log_weights(n_batch, n_train, "stratified")


N_LATENTS = 4


def flow_of(scale: float, depth: int = 32, seed: int = 0) -> FactorialFlow:
    """Parameters `scale` times standard normal: 0.02 at the start of training, 1 is far from it."""
    torch.manual_seed(seed)
    flow = FactorialFlow(N_LATENTS, depth).double()
    for parameter in flow.parameters():
        nn.init.normal_(parameter, std=scale)
    return flow.requires_grad_(False)


def test_flows_begin_as_those_of_the_authors() -> None:
    """At N(0, 0.02^2): 8,000 draws, whose deviation is known to less than one per cent."""
    torch.manual_seed(0)
    for parameter in FactorialFlow(250, 32).parameters():
        assert float(parameter.detach().std()) == pytest.approx(0.02, rel=0.05)


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


def test_u_is_left_alone_where_it_may_be_and_meets_itself_at_the_border() -> None:
    flow = FactorialFlow(3, depth=1).requires_grad_(False)
    flow.w[0] = torch.tensor([2.0, -1e-7, 1.0])
    flow.u[0] = torch.tensor([5.0, 1.0, -1e-3])
    torch.testing.assert_close(flow.slopes()[0], torch.tensor([5.0, 1.0, -1e-3]), rtol=1e-3, atol=0)


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
