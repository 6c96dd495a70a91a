"""Beta-TCVAE, with a standard normal or a learned prior."""

import math
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import torch
from torch import Tensor, nn

from unbraid.families.common import COMMON, GLOROT, IMAGES, NOISE
from unbraid.families.divergences import log_standard_normal
from unbraid.families.family import (
    Batch,
    Context,
    Family,
    Hyper,
    Hyperparameter,
    LogDensity,
    LossOutput,
    OptimizerStep,
    Settings,
    choice,
)
from unbraid.families.networks import Shape
from unbraid.families.vae import VAEOutputs, build_vae, decode_vae, encode_vae, outputs_and_reconstruction


class _MeanLogDensities(torch.autograd.Function):
    """Means over the batch of log q(z_i|x_i), log q(z_i) and the sum over latents k of log q(z_ik).

    Of samples (n, n_latents), means and log-variances of their posteriors, and `log_weights` (n, n).
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(sample: Tensor, mean: Tensor, log_variance: Tensor, log_weights: Tensor) -> tuple[Tensor, ...]:
        _, _, logs = _logs(sample, mean, log_variance)
        mixtures = (logs + log_weights).logsumexp(-1).mean(-1)
        return logs[-1].diagonal().mean(), mixtures[-1], mixtures[:-1].sum()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG004
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> tuple[Tensor | None, ...]:
        *inputs, log_weights = ctx.saved_tensors
        own, joint, marginals = (gradient / len(log_weights) for gradient in grad_outputs)
        inverse, distance, logs = _logs(*inputs)
        shares = (logs + log_weights).softmax(-1)
        # By how much the loss changes with the log density of sample i under posterior j, by latent.
        same = torch.eye(len(log_weights), dtype=log_weights.dtype, device=log_weights.device)
        pull = shares[:-1] * marginals + (shares[-1] * joint + same * own)
        slope = pull * distance
        return (
            -(slope * inverse).sum(-1).t(),
            (slope.sum(1, keepdim=True) * inverse)[:, 0].t(),
            0.5 * ((slope * distance).sum(1) - pull.sum(1)).t(),
            None,
        )


def _logs(sample: Tensor, mean: Tensor, log_variance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """One over standard deviations, standardised distances (n_latents, sample, image), and log densities.

    The log densities are (n_latents + 1, sample, image): of each latent, and at the end of all together.
    """
    sample, mean, log_variance = (values.t().contiguous() for values in (sample, mean, log_variance))
    inverse = torch.exp(-0.5 * log_variance)[:, None]
    distance = (sample[:, :, None] - mean[:, None]) * inverse
    logs = -0.5 * torch.addcmul((log_variance + math.log(2 * math.pi))[:, None], distance, distance)
    return inverse, distance, torch.cat([logs, logs.sum(0, keepdim=True)])


Estimator: TypeAlias = Literal["weighted", "stratified"]


class KLTerms(NamedTuple):
    """The parts of the KL of posteriors from the prior, means over the batch; their sum is log q(z|x) - log p(z)."""

    index_code_information: Tensor
    total_correlation: Tensor
    dimension_wise_kl: Tensor


def log_weights(n_batch: int, n_train: int, estimator: Estimator, *, device: torch.device | str = "cpu") -> Tensor:
    """Logarithms of the weights of q(z_i | x_j) in the estimate of q(z_i), (n_batch, n_batch): rows i, columns j.

    Raises:
        ValueError: "stratified" with one image a batch or with fewer images than a batch.

    Example:
        >>> [round(float(total), 6) for total in log_weights(3, 10, "weighted").exp().sum(1)]
        [0.1, 0.1, 0.1]
        >>> [round(float(total), 6) for total in log_weights(3, 10, "stratified").exp().sum(1)]
        [1.0, 1.0, 1.0]
    """
    shape = (n_batch, n_batch)
    if estimator == "weighted":
        return torch.full(shape, -math.log(n_train * n_batch), dtype=torch.float64, device=device)
    if not 2 <= n_batch <= n_train:
        raise ValueError(
            f"the stratified estimator needs at least two images a batch and no more than there are to train on; "
            f"got {n_batch} of {n_train}"
        )
    n_others = n_batch - 1
    row = torch.arange(n_batch, device=device)
    ahead = (row - row[:, None]) % n_batch
    weights = torch.full(shape, 1 / n_others, dtype=torch.float64, device=device)
    weights = weights.masked_fill(ahead == 0, 1 / n_train)
    return weights.masked_fill(ahead == 1, (n_train - n_others) / (n_train * n_others)).log()


def kl_terms(
    outputs: VAEOutputs, *, n_train: int, estimator: Estimator = "weighted", log_prior: Tensor | None = None
) -> KLTerms:
    """Estimates of the three parts of the KL from one batch.

    The aggregate posterior q(z) is the mixture of the posteriors of all `n_train` images; both estimators weigh the
    posteriors of the batch. "weighted" underestimates: its weights sum to 1 / n_train, so that it puts log q(z) too low
    by log n_batch where posteriors do not overlap and up to log n_train where they do. By so much, once for the joint
    and once for each latent, the information comes out too high, the dimension-wise KL too low and the total
    correlation too high: gradients are meant, and values compare only between runs of equal sizes. "stratified"
    estimates q(z) without bias, and log q(z) from below by Jensen's inequality. For values to report see the metric
    `unbraid.metrics.elbo_terms`.

    Args:
        outputs: of GaussianVAE, (n, n_latents) each.
        n_train: number of images in the training set, not in the batch. No default: a wrong one is silent.
        estimator: "weighted" (eq. 5 and 7) or "stratified" (appendix of the later version of the paper).
        log_prior: (n, n_latents) log p(z_j) of `outputs.sample`; the standard normal unless given.

    Reference:
        Chen et al. 2018, "Isolating Sources of Disentanglement in VAEs", eq. 1 and appendix 5.3 (workshop version);
        the stratified estimator is in appendix C.2 of arXiv 1802.04942v5. Differs from the authors' code, which puts
        the weights 1/N and (N - M)/(NM) of the latter into the first two columns instead of the diagonal and the one
        next to it.
    """
    sample = outputs.sample
    weights = log_weights(len(sample), n_train, estimator, device=sample.device).to(sample.dtype)
    posterior, joint, marginals = _MeanLogDensities.apply(sample, outputs.mean, outputs.log_variance, weights)
    prior = log_standard_normal(sample) if log_prior is None else log_prior
    return KLTerms(posterior - joint, joint - marginals, marginals - prior.sum(-1).mean())


def beta_tcvae(
    outputs: VAEOutputs,
    reconstruction: Tensor,
    *,
    n_train: int,
    beta: Tensor | float,
    alpha: Tensor | float = 1.0,
    gamma: Tensor | float = 1.0,
    estimator: Estimator = "weighted",
    log_prior: Tensor | None = None,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction + alpha * index-code information + beta * total correlation + gamma * dimension-wise KL.

    Args:
        outputs: of GaussianVAE.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        beta: weight of the total correlation.
        alpha: weight of the information between images and latents.
        gamma: weight of the dimension-wise KL.
        n_train, estimator, log_prior: as in `kl_terms`.

    Returns:
        The loss, and by name "reconstruction", "kl" (the plain sum of the three parts: one draw of the KL),
        "index_code_information", "total_correlation" and "dimension_wise_kl". With all weights 1 the loss is the VAE's
        in expectation, by either estimator: what the parts have in common cancels.

    Reference:
        Chen et al. 2018, eq. 2.
    """
    terms = kl_terms(outputs, n_train=n_train, estimator=estimator, log_prior=log_prior)
    fit = reconstruction.mean()
    loss = fit + alpha * terms.index_code_information + beta * terms.total_correlation
    loss = loss + gamma * terms.dimension_wise_kl
    return loss, {"reconstruction": fit, "kl": torch.stack(terms).sum(), **terms._asdict()}


class FactorialFlow(nn.Module):
    """A learned prior with independent dimensions, each a one-dimensional planar flow.

    x_0 = z and x_{k+1} = x_k + u_k tanh(w_k x_k + b_k) lead from a latent to a standard normal base, so densities are
    cheap. Each layer is increasing because u_k w_k is held above -1; sampling inverts by bisection.

    Args:
        n_latents: dimensions.
        depth: layers per dimension, 32 in the paper.

    Reference:
        Chen et al. 2018 (workshop version), section 5.4; Rezende and Mohamed 2015. Starts at N(0, 0.02^2) as in the
        authors' code, which does not hold u_k w_k above -1 and does not sample.
    """

    FLOOR = 1e-3  # of a layer's derivative: no density is ever multiplied by 0

    def __init__(self, n_latents: int, depth: int = 32) -> None:
        super().__init__()
        self.u, self.w, self.b = (nn.Parameter(0.02 * torch.randn(depth, n_latents)) for _ in range(3))

    def slopes(self) -> Tensor:
        """The u in use, (depth, n_latents): the parameter where u w >= 0, else shrunk so that u w > FLOOR - 1."""
        product = self.u * self.w
        room = 1 - self.FLOOR
        below = (product / room).clamp(max=-1e-6)  # away from 0 / 0; the ratio there is 1 to 1e-6
        return self.u * torch.where(product < 0, torch.expm1(below) / below, 1.0)

    def to_base(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Latents (n, n_latents) -> base values, and the logarithm of the derivative of each; same shape."""
        u = self.slopes()
        log_derivative = torch.zeros_like(values)
        for u_k, w_k, b_k in zip(u, self.w, self.b, strict=True):
            bent = torch.tanh(w_k * values + b_k)
            log_derivative = log_derivative + torch.log1p(u_k * w_k * (1 - bent.square()))
            values = values + u_k * bent
        return values, log_derivative

    def forward(self, values: Tensor) -> Tensor:
        """Log density of each latent, (n, n_latents)."""
        base, log_derivative = self.to_base(values)
        return log_derivative + log_standard_normal(base)

    @torch.no_grad()
    def from_base(self, base: Tensor) -> Tensor:
        """Latents whose base values these are: samples of the prior from standard normal noise; (n, n_latents)."""
        reach = self.slopes().abs().sum(0)  # tanh never moves a value further
        low, high = base - reach, base + reach
        for _ in range(60):  # halvings: to the last bit
            middle = (low + high) / 2
            above = self.to_base(middle)[0] > base
            low, high = torch.where(above, low, middle), torch.where(above, middle, high)
        return (low + high) / 2


def build_beta_tcvae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE and, if the prior is learned, a FactorialFlow under the name "prior"."""
    modules = build_vae(shape, settings)
    if settings["prior"] == "factorial_flow":
        modules["prior"] = FactorialFlow(settings["latents"])
    return modules


def beta_tcvae_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    return *beta_tcvae(
        outputs,
        reconstruction,
        n_train=context.n_images,
        beta=hyper["beta"],
        alpha=hyper["alpha"],
        gamma=hyper["gamma"],
        estimator=context.settings["estimator"],
        log_prior=modules["prior"](outputs.sample) if "prior" in modules else None,
    ), {}


def log_prior(modules: nn.ModuleDict, settings: Settings) -> LogDensity | None:
    """Density under the flow; None for the standard normal."""
    return modules["prior"] if settings["prior"] == "factorial_flow" else None


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Samples of the flow; the noise itself for the standard normal."""
    return cast(FactorialFlow, modules["prior"]).from_base(normal) if settings["prior"] == "factorial_flow" else normal


def _strays(precision: str, settings: Settings) -> bool:
    return precision != "float32" or settings["prior"] == "factorial_flow"


BETA_TCVAE = Family(
    title="beta-TCVAE",
    build=build_beta_tcvae,
    optimizer_steps=(OptimizerStep("vae", ("vae", "prior"), beta_tcvae_loss, (IMAGES, NOISE)),),
    hyperparameters={
        **COMMON,
        "beta": Hyperparameter(6.0, "weight of the total correlation", 0.0, 1e6),
        "alpha": Hyperparameter(1.0, "weight of the information between images and latents", 0.0, 1e6),
        "gamma": Hyperparameter(1.0, "weight of the dimension-wise KL", 0.0, 1e6),
        "estimator": choice("weighted", "of log q(z) from a batch", "weighted", "stratified"),
        "prior": choice(
            "normal", "standard normal, or one learned normalizing flow per latent", "normal", "factorial_flow"
        ),
    },
    encode=encode_vae,
    decode=decode_vae,
    log_prior=log_prior,
    draw_prior=draw_prior,
    source="Chen et al. 2018, eq. 2",
    cites=("chen2018isolating",),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \alpha \, I_q(z; n) + \beta \, \mathrm{KL}\left( q(z) \,\|\, \prod_j "
        r"q(z_j) \right) + \gamma \sum_j \mathrm{KL}\left( q(z_j) \,\|\, p(z_j) \right)",
        r'$\log q(z)$ is estimated from the minibatch, weighted or stratified. `prior="factorial_flow"` learns '
        "each $p(z_j)$ as a normalizing flow.",
    ),
    diverges_when_stacked=_strays,
    presets={"udr": tuple({**GLOROT, "beta": float(beta)} for beta in (1, 2, 4, 6, 8, 10))},
    notes=(
        "Curves of the three parts are the estimator's: compare them between runs of equal batch and data sizes only.",
    ),
)
