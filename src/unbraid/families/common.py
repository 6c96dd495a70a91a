"""What the families around the VAE have in common."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

from torch import Tensor, nn

from unbraid.families.family import (
    Batch,
    Context,
    Draw,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
    OptimizerStep,
    Settings,
    Value,
    choice,
    whole,
)
from unbraid.families.gaussian_vae import GaussianVAE, VAEOutputs
from unbraid.families.likelihoods import decoded_images, negative_log_likelihood
from unbraid.families.networks import Shape, network_pair, promote

IMAGES = Draw("images", "images")
NOISE = Draw("noise", "normal", ("latents",))

COMMON: Mapping[str, Hyperparameter] = MappingProxyType(
    {
        "latents": whole(10, "number of latents", 1, 1000),
        "network": choice(
            "conv",
            "encoder and decoder; your own as package.module:function",
            "conv",
            "dense",
            "dense_norm",
            "resnet",
            "",
        ),
        "likelihood": choice("bernoulli", "of the pixels", "bernoulli", "gaussian"),
        "sigma": Hyperparameter(1.0, "standard deviation of Gaussian pixels", 1e-3, 1e3),
        "reconstruction_weight": Hyperparameter(
            1.0,
            "weight of the reconstruction term, in the curves too; (64 / size)^2 keeps the balance of published "
            "settings for 64 x 64 pixels on smaller images: 4 at 32 x 32, 16 at 16 x 16",
            0.0,
            1e6,
            later=True,
        ),
        "learning_rate": Hyperparameter(1e-4, "of Adam", 0.0, 1.0),
    }
)

# Of the presets "udr" and "lsbd": UDR judged the checkpoints of disentanglement_lib, and LSBD trained its baselines
# with that code. Its architectures give `tf.layers` no initialiser, so the layers got TensorFlow 1's default.
DISENTANGLEMENT_LIB: Mapping[str, Value] = MappingProxyType({"initialisation": "glorot"})


def vae_family(
    title: str,
    loss: Callable[[nn.ModuleDict, Batch, Hyper, Any, Context], LossOutput],
    hyperparameters: Mapping[str, Hyperparameter],
    source: str,
    presets: Mapping[str, tuple[Mapping[str, Value], ...]] | None = None,
) -> Family:
    """A family of Gaussian VAEs that one loss trains, with hyperparameters beside the common ones."""
    return Family(
        title=title,
        build=build_vae,
        optimizer_steps=(OptimizerStep("vae", ("vae",), loss, (IMAGES, NOISE)),),
        hyperparameters={**COMMON, **hyperparameters},
        encode=encode_vae,
        decode=decode_vae,
        source=source,
        presets=presets or {},
    )


def build_vae(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A GaussianVAE under the name "vae"."""
    latents = settings["latents"]
    encoder, decoder = network_pair(settings["network"], shape, 2 * latents, latents)
    return nn.ModuleDict({"vae": GaussianVAE(encoder, decoder)})


def encode_vae(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, Tensor]:
    """Posterior means and log-variances."""
    return cast(GaussianVAE, modules["vae"]).encode(images)


def decode_vae(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """The mean image."""
    return decoded_images(cast(GaussianVAE, modules["vae"]).decode(codes), settings["likelihood"])


def decode_plain(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """The mean image by a network under the name "decoder"."""
    return decoded_images(promote(modules["decoder"](codes)), settings["likelihood"])


def reconstruction_term(decoded: Tensor, images: Tensor, hyper: Hyper, settings: Settings) -> Tensor:
    """Negative log-likelihood per image (n,) in nats, times "reconstruction_weight"."""
    nll = negative_log_likelihood(decoded, images, settings["likelihood"], hyper["sigma"])
    return hyper["reconstruction_weight"] * nll


def outputs_and_reconstruction(
    modules: nn.ModuleDict, batch: Batch, hyper: Hyper, context: Context
) -> tuple[VAEOutputs, Tensor]:
    """The VAE's outputs on "images" with "noise", and the reconstruction term per image (n,)."""
    outputs = modules["vae"](batch["images"], batch["noise"])
    return outputs, reconstruction_term(outputs.decoded, batch["images"], hyper, context.settings)


def always(precision: str, settings: Settings) -> bool:
    """For `Family.diverges_when_stacked`."""
    return True


def in_half_precision(precision: str, settings: Settings) -> bool:
    """For `Family.diverges_when_stacked`."""
    return precision != "float32"
