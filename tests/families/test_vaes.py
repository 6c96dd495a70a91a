"""VAE, beta-VAE, CCI-VAE, beta-TCVAE, DIP-VAE I and II: first steps against the equations of their papers."""

import math

import pytest
import torch
from torch import Tensor

from tests.families.members import DATASET, Move, Weights, play
from tests.families.plain import (
    Mover,
    Terms,
    bernoulli,
    check,
    decoder,
    drawn,
    gaussian,
    kl_standard,
    log_normal,
    mean_of,
    normal_pixels,
    vae_terms,
)

ONE, TWO = ["vae"], ["vae", "vae"]
N = len(DATASET)


@pytest.mark.parametrize(("family", "beta", "weight"), [("vae", 1.0, 1.0), ("beta_vae", 3.0, 1.0), ("vae", 1.0, 4.0)])
def test_two_steps_of_the_vae_and_of_the_beta_vae(family: str, beta: float, weight: float) -> None:
    """Kingma and Welling 2014, eq. 10; Higgins et al. 2017, eq. 4; UDR eq. 9."""

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        return weight * fit + beta * divergence, {"reconstruction": weight * fit, "kl": divergence}

    hyper = {"reconstruction_weight": weight} if family == "vae" else {"beta": beta}
    played = play(family, 2, **{"latents": 3, **hyper})
    check(played, {"vae": Mover(loss, ("vae.",))}, TWO)


def test_gaussian_pixels_have_the_standard_deviation_given() -> None:
    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fits, divergences = [], []
        for image, noise in zip(move.batch["images"], move.batch["noise"], strict=True):
            posterior = gaussian(weights, image)
            fits.append(normal_pixels(decoder(weights, "vae.decoder", drawn(posterior, noise)), image, 0.7))
            divergences.append(kl_standard(posterior))
        fit, divergence = mean_of(fits), mean_of(divergences)
        return fit + divergence, {"reconstruction": fit, "kl": divergence}

    played = play("vae", latents=2, likelihood="gaussian", sigma=0.7, learning_rate=1e-2)
    check(played, {"vae": Mover(loss, ("vae.",), 1e-2)}, ONE)


@pytest.mark.parametrize(
    ("first_step", "expected"), [(0, 0.0), (1, 0.05), (150, 7.5), (399, 19.95), (400, 20.0), (900, 20.0)]
)
def test_the_capacity_of_the_cci_vae_rises_in_a_straight_line_and_stays(first_step: int, expected: float) -> None:
    """Burgess et al. 2018, eq. 8; UDR eq. 10 and table 3: gamma times the distance of the KL from C.

    The KL lies above the capacity at first and below it in the end, so that both slopes are seen.
    """

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        capacity = torch.tensor(20.0 * min(move.step / 400, 1.0), dtype=torch.float64)
        assert capacity.item() == pytest.approx(expected)
        assert (divergence.item() > expected) == (first_step < 100)
        distance = torch.maximum(divergence - capacity, capacity - divergence)
        return fit + 30.0 * distance, {"reconstruction": fit, "kl": divergence, "capacity": capacity}

    played = play("cci_vae", first_step=first_step, latents=3, gamma=30.0, c_max=20.0, capacity_steps=400)
    check(played, {"vae": Mover(loss, ("vae.",))}, ONE)


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


@pytest.mark.parametrize("variant", ["i", "ii"])
def test_a_step_of_the_dip_vae(variant: str) -> None:
    """Kumar et al. 2018, eq. 6 and 7; UDR eq. 12 and 13, with the covariance of the batch, divided by its size."""
    latents = 3

    def loss(weights: Weights, move: Move) -> tuple[Tensor, Terms]:
        fit, divergence = vae_terms(weights, move)
        posteriors = [gaussian(weights, image) for image in move.batch["images"]]
        centre = [mean_of([mean[d] for mean, _ in posteriors]) for d in range(latents)]
        off_diagonal = diagonal = torch.zeros((), dtype=torch.float64)
        for i in range(latents):
            for j in range(latents):
                covariance = mean_of([(mean[i] - centre[i]) * (mean[j] - centre[j]) for mean, _ in posteriors])
                if i != j:
                    off_diagonal = off_diagonal + covariance**2
                elif variant == "i":
                    diagonal = diagonal + (covariance - 1) ** 2
                else:
                    spread = mean_of([torch.exp(log_variance[i]) for _, log_variance in posteriors])
                    diagonal = diagonal + (covariance + spread - 1) ** 2
        logs = {"reconstruction": fit, "kl": divergence, "off_diagonal": off_diagonal, "diagonal": diagonal}
        return fit + divergence + 7.0 * off_diagonal + 3.0 * diagonal, logs

    played = play(f"dip_vae_{variant}", latents=latents, lambda_od=7.0, lambda_d=3.0)
    check(played, {"vae": Mover(loss, ("vae.",))}, ONE)


def test_the_number_of_images_is_not_that_of_the_batch() -> None:
    assert (N, math.prod(DATASET.space.sizes)) == (60, 60)
