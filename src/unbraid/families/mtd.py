"""MTD, a reconstruction: a block of codes for content, and one for each labelled factor."""

import math
from collections.abc import Sequence
from itertools import combinations
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.data import Space, few_labels
from unbraid.families.common import COMMON
from unbraid.families.divergences import draw_blocks, gaussian_kl, kl_from, log_blocks
from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    Items,
    LogDensity,
    LossOutput,
    OptimizerStep,
    Part,
    Settings,
    Supervision,
    Supply,
    whole,
)
from unbraid.families.likelihoods import decoded_images
from unbraid.families.networks import Shape
from unbraid.families.supervision import by_hyperparameters, named_factors
from unbraid.families.vae import GaussianVAE, build_vae, decode_vae, encode_vae, outputs_and_reconstruction


def separation(means: Tensor, distance: Tensor | float) -> Tensor:
    """Squares of what the means (n_values, d) of a factor's values lack to be `distance` apart, summed over pairs."""
    first, second = torch.triu_indices(len(means), len(means), offset=1, device=means.device)
    # The root's derivative at 0 would be infinite.
    distances = ((means[first] - means[second]).square().sum(-1) + 1e-12).sqrt()
    return (distance - distances).clamp(min=0).square().sum()


def one_hot(levels: Tensor, size: int, like: Tensor) -> Tensor:
    """(n, size) of whole numbers (n,), of the type of `like`."""
    return (levels[:, None] == torch.arange(size, device=levels.device)).to(like.dtype)


def between_groups(values: Tensor, groups: Tensor, among: Tensor | None = None) -> Tensor:
    """How much of the variance of a block lies between groups, beyond what chance puts there.

    The squared distance of each group's mean from that of all, mean over images, less (n_groups - 1) / (n - 1) of the
    variance: so much is expected of groups that have nothing to do with the values. 0 on average for these, whatever
    the number of groups; a single batch may give less than 0.

    Args:
        values: (n, d).
        groups: (n, n_groups) one-hot; empty ones do not count.
        among: (n, n_parts) one-hot: compare only images of the same part. Default all.

    Returns:
        A scalar, in squared units of the values; summed over the d dimensions.
    """
    parts = among if among is not None else torch.ones_like(values[:, :1])
    counts = parts.sum(0)
    with torch.autocast(values.device.type, enabled=False):  # products would be taken in half precision
        means = parts.T @ values / counts.clamp(min=1)[:, None]
        within = values - parts @ means
        cells = parts.T @ groups
        sums = torch.einsum("np,ng,nd->pgd", parts, groups, within)
        total = parts.T @ within.square().sum(-1)
    between = sums.square().sum(-1).div(cells.clamp(min=1)).sum(-1)
    chance = ((cells > 0).sum(-1) - 1).clamp(min=0) / (counts - 1).clamp(min=1)
    return (between - chance * total).sum() / len(values)


def cross_covariance(blocks: Sequence[Tensor]) -> Tensor:
    """Squared covariances of codes of different blocks (n, d_1), (n, d_2), ..., summed."""
    centred = [block - block.mean(0) for block in blocks]
    with torch.autocast(blocks[0].device.type, enabled=False):
        pairs = [(one.T @ other / len(one)).square().sum() for one, other in combinations(centred, 2)]
    return torch.stack(pairs).sum()


def mtd(
    mean: Tensor,
    log_variance: Tensor,
    levels: Tensor,
    value_means: Sequence[Tensor],
    reconstruction: Tensor,
    swap: Tensor | float = 0.0,
    *,
    content: int,
    value_sigma: Tensor | float,
    distance: Tensor | float,
    content_weight: Tensor | float = 1.0,
    value_weight: Tensor | float = 1.0,
    separation_weight: Tensor | float = 1.0,
    independence_weight: Tensor | float = 1.0,
    bias_weight: Tensor | float = 1.0,
    swap_weight: Tensor | float = 0.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Reconstruction, a block of codes for each factor, and penalties on what blocks tell about other factors.

    Args:
        mean, log_variance: (n, content + n_factors * d) of the posterior: the content's block, then one per factor.
        levels: (n, n_factors) true levels, whole numbers.
        value_means: (n_values, d) of each factor.
        reconstruction: (n,) negative log-likelihoods of the images, nats.
        swap: squared distance of what is encoded again from the codes that were decoded, mean over images; 0 without.
        content: size of the content's block.
        value_sigma: standard deviation of the Gaussian of each value.
        distance: that the means of a factor's values should be apart.
        content_weight: of the KL of the content from the standard normal.
        value_weight: of the KL of each factor's block from the Gaussian of its value.
        separation_weight: of `separation`.
        independence_weight: of `between_groups` of each block by the levels of the factors other than its own, and of
            `cross_covariance`.
        bias_weight: of the same among images with the same level of the block's own factor, so that levels which occur
            together do not count.
        swap_weight: of `swap`.

    Returns:
        The loss, and by name "reconstruction", "kl_content", "kl_values", "separation", "leakage", "cross_covariance"
        and "bias".

    Reference:
        Reconstructed from the abstract and from SNC/NK section 2; not the authors' equations (Sha and Lukasiewicz
        2021). Means of values in other blocks are those of the batch, corrected for chance.
    """
    n_factors, size = levels.shape[1], value_means[0].shape[1]
    sizes = (content, *[size] * n_factors)
    means, log_variances = mean.split(sizes, dim=-1), log_variance.split(sizes, dim=-1)
    groups = [one_hot(levels[:, k], len(values), mean) for k, values in enumerate(value_means)]
    prior_log_variance = 2 * torch.as_tensor(value_sigma, dtype=mean.dtype, device=mean.device).log()

    fit = reconstruction.mean()
    kl_content = gaussian_kl(means[0], log_variances[0]).sum(-1).mean()
    kl_values = too_close = leakage = bias = torch.zeros_like(fit)
    for k, values in enumerate(value_means):
        own = kl_from(means[k + 1], log_variances[k + 1], values[levels[:, k]], prior_log_variance)
        kl_values = kl_values + own.sum(-1).mean()
        too_close = too_close + separation(values, distance)
        leakage = leakage + between_groups(means[0], groups[k])
        for j in range(n_factors):
            if j != k:
                leakage = leakage + between_groups(means[j + 1], groups[k])
                bias = bias + between_groups(means[j + 1], groups[k], groups[j])
    covariance = cross_covariance(means)

    loss = fit + content_weight * kl_content + value_weight * kl_values + separation_weight * too_close
    loss = loss + independence_weight * (leakage + covariance) + bias_weight * bias + swap_weight * swap
    return loss, {
        "reconstruction": fit,
        "kl_content": kl_content,
        "kl_values": kl_values,
        "separation": too_close,
        "leakage": leakage,
        "cross_covariance": covariance,
        "bias": bias,
    }


class ValueMeans(nn.Module):
    """Means of the block for each value of each factor: learned, (n_values, size) per factor, standard normal at first.

    Dozens of values must move by many units to be apart; Adam's steps on them count `speed` times.
    """

    def __init__(self, n_values: list[int], size: int, speed: float) -> None:
        super().__init__()
        self.n_values, self.speed = n_values, speed
        self.slow = nn.Parameter(torch.randn(sum(n_values), size) / speed)

    def split(self) -> tuple[Tensor, ...]:
        return (self.speed * self.slow).split(self.n_values)


def block_facts(space: Space, settings: Settings) -> dict[str, Any]:
    """Which factors have blocks, and how many values each has."""
    names = named_factors(space, settings["factors"])
    values = [space.sizes[space.column(name)] for name in names]
    return {
        "blocks": list(names),
        "values": values,
        "latents": settings["content"] + len(names) * settings["block_size"],
    }


def make_labels(space: Space, settings: Settings, seed: int) -> Supply:
    """The levels of all images, or of some drawn at random; no others are trained on."""
    n = settings["labels"]
    with by_hyperparameters(n="labels"):
        positions = few_labels(space, n, seed=seed) if n else np.arange(len(space))
    columns = [space.column(name) for name in settings["blocks"]]
    levels = space.factors(positions)[:, columns].astype(np.int64)
    return Supply({"images": Items(positions, {"levels": levels})}, {"labels": len(positions)})


def build_mtd(shape: Shape, settings: Settings) -> nn.ModuleDict:
    modules = build_vae(shape, settings)
    modules["value_means"] = ValueMeans(settings["values"], settings["block_size"], settings["value_speed"])
    return modules


def mtd_loss(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    outputs, reconstruction = outputs_and_reconstruction(modules, batch, hyper, context)
    value_means, settings = cast(ValueMeans, modules["value_means"]).split(), context.settings
    swap, extra = torch.zeros_like(reconstruction[0]), {}
    if settings["swap_weight"]:
        vae = cast(GaussianVAE, modules["vae"])
        target = swapped(outputs.mean, value_means, batch["swap factor"], batch["swap value"], settings["content"])
        again, _ = vae.encode(decoded_images(vae.decode(target), settings["likelihood"]))
        swap = (again - target).square().sum(-1).mean()
        extra = {"swap": swap}
    loss, logs = mtd(
        outputs.mean,
        outputs.log_variance,
        batch["images levels"],
        value_means,
        reconstruction,
        swap,
        content=settings["content"],
        swap_weight=settings["swap_weight"],
        **{name: hyper[name] for name in OBJECTIVE},
    )
    return loss, {**logs, **extra}, {}


def log_prior(modules: nn.ModuleDict, settings: Settings) -> LogDensity:
    """The content is standard normal; each block comes from the Gaussian of any value of its factor, all alike."""
    means = cast(ValueMeans, modules["value_means"]).split()
    spread = 2 * math.log(settings["value_sigma"])
    log_variances = [torch.full_like(mean, spread) for mean in means]
    return lambda codes: log_blocks(codes, settings["content"], means, log_variances)


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Standard normal content, and for each block the Gaussian of any value of its factor."""
    means = cast(ValueMeans, modules["value_means"]).split()
    deviations = [torch.full_like(mean, settings["value_sigma"]) for mean in means]
    return draw_blocks(normal, uniform, settings["content"], means, deviations)


def swapped(mean: Tensor, value_means: tuple[Tensor, ...], factor: Tensor, value: Tensor, content: int) -> Tensor:
    """Codes (n, d) with the block of one factor of each image put to the mean of some value of it; detached.

    Args:
        mean: (n, d).
        value_means: (n_values, size) of each factor.
        factor, value: (n,) on (0, 1), which of them.
        content: size of the first block.
    """
    n_factors, size = len(value_means), value_means[0].shape[1]
    first, *blocks = mean.split((content, *[size] * n_factors), dim=-1)
    chosen = (factor * n_factors).long()
    for k, means in enumerate(value_means):
        new = means[(value * len(means)).long()]
        blocks[k] = torch.where((chosen == k)[:, None], new, blocks[k])
    return torch.cat([first, *blocks], dim=-1).detach()


OBJECTIVE = {
    "value_sigma": Hyperparameter(1.0, "standard deviation of the Gaussian of each value", 1e-3, 1e3),
    "distance": Hyperparameter(4.0, "that the means of a factor's values should be apart", 0.0, 1e6),
    "content_weight": Hyperparameter(1.0, "of the KL of the content", 0.0, 1e6),
    "value_weight": Hyperparameter(1.0, "of the KL of blocks from the Gaussians of their values", 0.0, 1e6),
    "separation_weight": Hyperparameter(1.0, "of what the means of values lack to be apart", 0.0, 1e6),
    "independence_weight": Hyperparameter(10.0, "of what blocks tell about other factors", 0.0, 1e6),
    "bias_weight": Hyperparameter(10.0, "of the same among images alike in the block's own factor", 0.0, 1e6),
}

MTD = Family(
    title="MTD, reconstructed",
    build=build_mtd,
    optimizer_steps=(
        OptimizerStep(
            "vae",
            ("vae", "value_means"),
            mtd_loss,
            (
                Draw("images", "given"),
                Draw("noise", "normal", ("latents",), of="images"),
                Draw("swap factor", "uniform", of="images"),
                Draw("swap value", "uniform", of="images"),
            ),
        ),
    ),
    hyperparameters={
        **{name: row for name, row in COMMON.items() if name != "latents"},
        "content": whole(4, "size of the content's block", 1, 1000),
        "block_size": whole(2, "size of each factor's block", 1, 1000),
        "factors": Hyperparameter("all", "factors that have a block, such as shape+scale", kind="text"),
        "labels": whole(0, "images to train on, all labelled; 0: all", 0, 1e8),
        "value_speed": Hyperparameter(
            100.0, "means of values learn this many times as fast as the networks", 1e-3, 1e6, structural=True
        ),
        **OBJECTIVE,
        "swap_weight": Hyperparameter(
            0.0, "of the swap term, which decodes and encodes once more; 0: without", 0.0, 1e6, structural=True
        ),
    },
    encode=encode_vae,
    decode=decode_vae,
    log_prior=log_prior,
    draw_prior=draw_prior,
    source="after Sha and Lukasiewicz 2021",
    cites=("sha2021multi", "mahon2023correcting"),
    formula=(
        r"-\mathbb{E}_{q(z|x)} \log p(x|z) + \mathrm{KL}_c + \sum_k \mathrm{KL}\left( q(s_k|x) \,\|\, "
        r"\mathcal{N}(m_{k, y_k}, \sigma_0^2) \right) + \sum_k \sum_{v < w} \max\left( 0, \delta - \| m_{kv} - "
        r"m_{kw} \| \right)^2 + L_{\mathrm{indep}}",
        "$c$ is a block for content and $s_k$ one per factor, whose value $y_k$ is known; $m_{kv}$ are learned. "
        r"$L_{\mathrm{indep}}$ penalises what a block tells about the factors of the others. The authors' "
        "equations are not public: this is a reconstruction.",
    ),
    supervision=Supervision("labels", "factors with levels", ("labels",), make_labels),
    facts=block_facts,
    parts=lambda settings: (
        Part("content", "gaussian", settings["content"]),
        *(Part(name, "gaussian", settings["block_size"]) for name in settings["blocks"]),
    ),
    notes=(
        "Reconstructed from the abstract and from SNC/NK section 2; not the authors' equations, which are not public. "
        "Sizes of blocks and weights are chosen here, too.",
        "Codes are the means of the content's block, then of one block per factor in order.",
        "What blocks tell about other factors is measured within each batch and corrected for chance, so that it may "
        "be negative in the curves.",
    ),
)
