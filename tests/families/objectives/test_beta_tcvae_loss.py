"""The estimators against enumeration of all batches, plain loops, and integrals of small mixtures."""

import math
from itertools import permutations, product

import numpy as np
import pytest
import torch
from torch import Tensor

from tests.families.objectives.posteriors import normal, outputs_of, posteriors
from unbraid.families.beta_tcvae import Estimator, KLTerms, beta_tcvae, kl_terms, log_weights
from unbraid.families.vae import VAEOutputs, beta_vae

ESTIMATORS: tuple[Estimator, ...] = ("weighted", "stratified")


def log_density(z: float, mean: float, log_variance: float) -> float:
    return -0.5 * ((z - mean) ** 2 / math.exp(log_variance) + log_variance + math.log(2 * math.pi))


def by_loops(outputs: VAEOutputs, n_train: int, estimator: Estimator) -> list[float]:
    """Straight from the definitions, image by image."""
    mean, log_variance, sample = (np.asarray(part) for part in outputs[:3])
    n, n_latents = sample.shape
    information = correlation = divergence = 0.0
    for i in range(n):
        joint, marginals = 0.0, [0.0] * n_latents
        for j in range(n):
            if estimator == "weighted":
                weight = 1 / (n_train * n)
            elif j == i:
                weight = 1 / n_train
            elif j == (i + 1) % n:
                weight = (n_train - (n - 1)) / (n_train * (n - 1))
            else:
                weight = 1 / (n - 1)
            densities = [math.exp(log_density(sample[i, d], mean[j, d], log_variance[j, d])) for d in range(n_latents)]
            joint += weight * math.prod(densities)
            marginals = [total + weight * density for total, density in zip(marginals, densities, strict=True)]
        own = sum(log_density(sample[i, d], mean[i, d], log_variance[i, d]) for d in range(n_latents))
        prior = sum(log_density(sample[i, d], 0, 0) for d in range(n_latents))
        of_marginals = sum(math.log(marginal) for marginal in marginals)
        information += (own - math.log(joint)) / n
        correlation += (math.log(joint) - of_marginals) / n
        divergence += (of_marginals - prior) / n
    return [information, correlation, divergence]


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


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_terms_are_those_of_plain_loops(estimator: Estimator) -> None:
    outputs = outputs_of(*posteriors(6, 3), normal(6, 3))
    terms = kl_terms(outputs, n_train=40, estimator=estimator)
    assert [float(term) for term in terms] == pytest.approx(by_loops(outputs, 40, estimator), rel=1e-10)


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

    noises = normal(20000, 6, 3)
    both = torch.func.grad_and_value(loss, argnums=(0, 1))
    gradients, values = torch.func.vmap(both, in_dims=(None, None, 0))(mean.detach(), log_variance.detach(), noises)
    assert float(values.mean()) == pytest.approx(float(vae.detach()), abs=4 * float(values.std()) / math.sqrt(20000))
    for draws, exact in zip(gradients, expected, strict=True):
        error = draws.std(0).max() / math.sqrt(20000)
        torch.testing.assert_close(draws.mean(0), exact, rtol=0, atol=4.5 * float(error))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_each_weight_multiplies_its_own_part(estimator: Estimator) -> None:
    outputs, reconstruction = outputs_of(*posteriors(6, 3), normal(6, 3)), torch.ones(6, dtype=torch.float64)
    terms = kl_terms(outputs, n_train=50, estimator=estimator)
    loss, logs = beta_tcvae(outputs, reconstruction, n_train=50, alpha=2.0, beta=3.0, gamma=5.0, estimator=estimator)
    assert float(loss) == pytest.approx(float(1 + 2 * terms[0] + 3 * terms[1] + 5 * terms[2]))
    assert float(logs["kl"]) == pytest.approx(float(sum(terms)))
    assert {name: float(value) for name, value in logs.items() if name in KLTerms._fields} == {
        name: float(value) for name, value in terms._asdict().items()
    }


def test_a_prior_enters_the_dimension_wise_kl_alone() -> None:
    outputs = outputs_of(*posteriors(6, 3), normal(6, 3))
    standard = kl_terms(outputs, n_train=50)
    narrow = torch.distributions.Normal(0.3, 0.5).log_prob(outputs.sample)
    other = kl_terms(outputs, n_train=50, log_prior=narrow)
    assert other[:2] == standard[:2]
    shift = torch.distributions.Normal(0.0, 1.0).log_prob(outputs.sample).sub(narrow).sum(1).mean()
    assert float(other[2] - standard[2]) == pytest.approx(float(shift))


@pytest.mark.parametrize(("n_batch", "n_train"), [(1, 10), (11, 10)])
def test_the_stratified_estimator_needs_two_images_and_no_more_than_there_are(n_batch: int, n_train: int) -> None:
    with pytest.raises(ValueError, match=f"got {n_batch} of {n_train}"):
        log_weights(n_batch, n_train, "stratified")
    with pytest.raises(ValueError, match="'weighted' or 'stratified'"):
        log_weights(4, 10, "exact")  # pyright: ignore[reportArgumentType]
