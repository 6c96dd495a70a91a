"""InfoGAN with a Wasserstein critic, as in DCI 2018."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from unbraid.families.common import COMMON, IMAGES, always
from unbraid.families.divergences import log_standard_normal
from unbraid.families.family import (
    Adam,
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
    OptimizerStep,
    Settings,
    choice,
)
from unbraid.families.likelihoods import decoded_images
from unbraid.families.networks import Shape, network_pair, promote
from unbraid.families.resnet import layer_norm, resnet_decoder, resnet_encoder


def gradient_penalty(critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, mix: Tensor) -> Tensor:
    """Mean squared distance from 1 of the length of the critic's gradient, between real and made images.

    Args:
        critic: images (n, ...) -> scores (n,), each of its own image only (no batch norm).
        real, fake: (n, ...) images; gradients reach neither.
        mix: (n,) on [0, 1], where between a real (0) and a made image (1) to look.

    Reference:
        Gulrajani et al. 2017, "Improved Training of Wasserstein GANs", eq. 3 and algorithm 1.
    """
    real, fake = real.detach(), fake.detach()
    between = real + mix.reshape(-1, *[1] * (real.ndim - 1)) * (fake - real)
    slopes = torch.func.grad(lambda images: critic(images).sum())(between)
    # A critic that is flat somewhere has no direction there; the root's derivative at 0 would be infinite.
    lengths = (slopes.flatten(1).square().sum(1) + 1e-12).sqrt()
    return (lengths - 1).square().mean()


def code_information(mean: Tensor, codes: Tensor, *, code_entropy: float) -> Tensor:
    """Lower bound on the information that made images carry about their codes, nats: E log Q(c|x) + H(c).

    Q is normal with standard deviation 1 as in DCI 2018, so the bound saturates at H(c) - log(2 pi) / 2 per code, which
    is below 0 for codes uniform on (-1, 1): only its changes mean something.

    Args:
        mean: (n, n_codes), Q's on made images.
        codes: (n, n_codes) that the images were made from.
        code_entropy: entropy of one code, nats: log 2 on (-1, 1) uniform, log(2 pi e) / 2 standard normal.

    Reference:
        Chen et al. 2016, "InfoGAN", eq. 5.
    """
    return (log_standard_normal(codes - mean) + code_entropy).sum(-1).mean()


ENTROPY = {"uniform": math.log(2), "normal": 0.5 * math.log(2 * math.pi * math.e)}  # of one code, nats


def code_draws(move: str) -> tuple[Draw, ...]:
    """Codes for one optimizer step: the generator is not judged on those that the critic has just been trained on."""
    shape = ("latents",)
    return Draw(f"{move} normal codes", "normal", shape), Draw(f"{move} uniform codes", "uniform", shape)


def build_info_gan(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """Generator, and critic whose first output is the score and whose others are Q's means.

    The encoder of the network chosen becomes the critic; it must see images one by one, so the residual one gets
    layer norm.

    Raises:
        ValueError: the network has batch norm.
    """
    latents, network = settings["latents"], settings["network"]
    if network == "dense_norm":
        raise ValueError("the critic of info_gan sees images one by one, so that its network has no batch norm: dense")
    if network == "resnet":
        critic, generator = resnet_encoder(shape, 1 + latents, layer_norm), resnet_decoder(shape, latents)
    else:
        critic, generator = network_pair(network, shape, 1 + latents, latents)
    return nn.ModuleDict({"critic": critic, "generator": generator})


def decode_info_gan(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """The generator's image."""
    return decoded_images(promote(modules["generator"](codes)), settings["likelihood"])


def encode_info_gan(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    """Q's means; its variances are fixed at 1."""
    return _judged(modules, _spread(images))[1], None


def of_critic(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """The critic's loss, which trains Q too because they share layers; "wasserstein" is real minus made scores.

    Reference:
        Gulrajani et al. 2017, eq. 3, with Chen et al. 2016's bound; DCI 2018 appendix A.
    """
    codes = _codes("critic", batch, context.settings)
    real = _spread(batch["images"])
    fake = _spread(decode_info_gan(modules, codes, context.settings)).detach()
    fake_scores, means = _judged(modules, fake)
    penalty = gradient_penalty(lambda images: _judged(modules, images)[0], real, fake, batch["mix"])
    distance = _judged(modules, real)[0].mean() - fake_scores.mean()
    information = code_information(means, codes, code_entropy=ENTROPY[context.settings["code_prior"]])
    loss = hyper["gradient_weight"] * penalty - distance - hyper["information_weight"] * information
    return loss, {"wasserstein": distance, "gradient_penalty": penalty, "code_information": information}, {}


def of_generator(modules: nn.ModuleDict, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """Minus the score of the generator's images, minus the weighted information about their codes."""
    codes = _codes("generator", batch, context.settings)
    scores, means = _judged(modules, _spread(decode_info_gan(modules, codes, context.settings)))
    information = code_information(means, codes, code_entropy=ENTROPY[context.settings["code_prior"]])
    score = scores.mean()
    return -score - hyper["information_weight"] * information, {"generator_score": score}, {}


def _judged(modules: nn.ModuleDict, images: Tensor) -> tuple[Tensor, Tensor]:
    outputs = promote(modules["critic"](images))
    return outputs[:, 0], outputs[:, 1:]


def _spread(images: Tensor) -> Tensor:
    """From [0, 1] to [-1, 1], where the penalty's slope of 1 is meant."""
    return 2 * images - 1


def _codes(move: str, batch: Batch, settings: Settings) -> Tensor:
    codes = batch[f"{move} {settings['code_prior']} codes"]
    return 2 * codes - 1 if settings["code_prior"] == "uniform" else codes


def draw_prior(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Codes as the generator is trained on."""
    return 2 * uniform - 1 if settings["code_prior"] == "uniform" else normal


INFO_GAN = Family(
    title="InfoGAN with a Wasserstein critic",
    build=build_info_gan,
    optimizer_steps=(
        OptimizerStep(
            "critic",
            ("critic",),
            of_critic,
            (IMAGES, *code_draws("critic"), Draw("mix", "uniform")),
            Adam("learning_rate", 0.0, 0.9),
            repeats=5,
        ),
        OptimizerStep(
            "generator", ("generator",), of_generator, code_draws("generator"), Adam("learning_rate", 0.0, 0.9)
        ),
    ),
    hyperparameters={name: row for name, row in COMMON.items() if name not in {"sigma", "reconstruction_weight"}}
    | {
        "information_weight": Hyperparameter(6.0, "of the bound on the information about codes", 0.0, 1e6),
        "gradient_weight": Hyperparameter(10.0, "of the gradient penalty", 0.0, 1e6),
        "code_prior": choice("uniform", "where codes come from: (-1, 1) or the standard normal", "uniform", "normal"),
    },
    encode=encode_info_gan,
    decode=decode_info_gan,
    draw_prior=draw_prior,
    source="Chen et al. 2016; Gulrajani et al. 2017; DCI 2018 appendix A",
    cites=("chen2016infogan", "gulrajani2017improved", "eastwood2018framework"),
    formula=(
        r"\min_{G, Q} \max_{C} \; \mathbb{E}_x C(x) - \mathbb{E}_c C(G(c)) - 10 \, \mathbb{E}_{\tilde{x}} \left( "
        r"\| \nabla C(\tilde{x}) \| - 1 \right)^2 - \lambda \, \mathbb{E}_c \log Q(c | G(c))",
        "$C$ is a Wasserstein critic with gradient penalty, $G$ the generator, and $Q$, which shares the "
        "critic's layers, names the code $c$ of an image; its mean is the representation.",
    ),
    diverges_when_stacked=always,
    presets={"dci": ({"network": "resnet", "information_weight": 6.0},)},
    notes=("With likelihood='gaussian' made images are not squashed into [0, 1].",),
)
