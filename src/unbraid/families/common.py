"""What the families around the VAE have in common."""

from collections.abc import Mapping
from types import MappingProxyType

from torch import Tensor, nn
from torch.nn import functional

from unbraid.families.family import Draw, Hyper, Hyperparameter, Settings, Value, choice, whole
from unbraid.families.likelihoods import decoded_images, negative_log_likelihood
from unbraid.families.networks import promote

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

# Of the presets "udr" and "lsbd*": UDR judged the checkpoints of disentanglement_lib, and LSBD trained its baselines
# with that code, LSBD-VAE with Keras. Both give their layers no initialiser, so they got TensorFlow's default.
GLOROT: Mapping[str, Value] = MappingProxyType({"initialisation": "glorot"})


def decode_plain(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """The mean image by a network under the name "decoder"."""
    return decoded_images(promote(modules["decoder"](codes)), settings["likelihood"])


def reconstruction_term(decoded: Tensor, images: Tensor, hyper: Hyper, settings: Settings) -> Tensor:
    """Negative log-likelihood per image (n,) in nats, times "reconstruction_weight"."""
    nll = negative_log_likelihood(decoded, images, settings["likelihood"], hyper["sigma"])
    return hyper["reconstruction_weight"] * nll


def discriminator_loss(true_logits: Tensor, false_logits: Tensor) -> tuple[Tensor, Tensor]:
    """Cross-entropy of telling samples of two kinds apart, the mean of both, nats; log 2 when it cannot.

    Args:
        true_logits: (n,) on samples of the kind for which they should be high.
        false_logits: (n,) on samples of the other kind.

    Returns:
        The loss, and the share of samples that are told apart.

    Reference:
        Goodfellow et al. 2014; Kim and Mnih 2018, algorithm 2; Valenti and Bacciu 2022, as in the authors' code.
    """
    loss = 0.5 * (functional.softplus(-true_logits).mean() + functional.softplus(false_logits).mean())
    right = (true_logits > 0).to(loss.dtype).mean() + (false_logits < 0).to(loss.dtype).mean()
    return loss, 0.5 * right


def always(precision: str, settings: Settings) -> bool:
    """`Family.diverges_when_stacked` of families that do in any precision."""
    return True


def in_half_precision(precision: str, settings: Settings) -> bool:
    """`Family.diverges_when_stacked` of families that do in half precision only."""
    return precision != "float32"
