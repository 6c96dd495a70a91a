"""Latents that take one of a few learned values, as QLAE and QVAE have them."""

from typing import cast

from torch import Tensor, nn

from unbraid.families.family import Part, Settings
from unbraid.families.networks import promote


def gumbel_softmax(logits: Tensor, uniform: Tensor, temperature: Tensor | float) -> Tensor:
    """Nearly one-hot samples (..., n_classes) of these logits, through which gradients pass.

    Args:
        logits: (..., n_classes).
        uniform: of the same shape, on (0, 1).
        temperature: above 0; the lower, the nearer to one-hot.

    Reference:
        Jang et al. 2017, "Categorical Reparameterization with Gumbel-Softmax", eq. 2.
    """
    return ((logits - (-uniform.log()).log()) / temperature).softmax(-1)


class Codebook(nn.Module):
    """The values that latents can take; learned.

    Args:
        values: (n_latents, n_values), where they start; (1, n_values) for values that all latents share.
    """

    def __init__(self, values: Tensor) -> None:
        super().__init__()
        self.values = nn.Parameter(values)

    def nearest(self, latents: Tensor) -> Tensor:
        """The value nearest to each latent (n, n_latents), the first of those alike; gradients reach the values."""
        values = self.values.expand(latents.shape[-1], -1)
        chosen = (latents.detach()[..., None] - values).abs().argmin(-1, keepdim=True)
        return values.expand(latents.shape[0], -1, -1).gather(-1, chosen).squeeze(-1)

    def draw(self, uniform: Tensor) -> Tensor:
        """Values (n, n_latents), all of a latent equally often, from numbers (n, n_latents) on (0, 1)."""
        values = self.values.expand(uniform.shape[-1], -1)
        chosen = (uniform * values.shape[-1]).long().clamp(max=values.shape[-1] - 1)
        return values.expand(uniform.shape[0], -1, -1).gather(-1, chosen[..., None]).squeeze(-1)

    def log_shares(self, latents: Tensor) -> Tensor:
        """Logarithms of the probabilities (n, n_latents, n_values) of values: softmax of minus squared distances."""
        return (-(latents[..., None] - self.values).square()).log_softmax(-1)

    def relaxed(self, log_shares: Tensor, uniform: Tensor, temperature: Tensor | float) -> Tensor:
        """Nearly one value of each latent (n, n_latents), drawn; gradients reach the shares and the values.

        Args:
            log_shares: (n, n_latents, n_values), of `log_shares`.
            uniform: of the same shape, on (0, 1).
            temperature: of `gumbel_softmax`.
        """
        weights = gumbel_softmax(log_shares, uniform, temperature)
        return (weights * self.values).sum(-1)  # no matrix product, which autocast would take in half precision


def codebook_of(modules: nn.ModuleDict) -> Codebook:
    return cast(Codebook, modules["codebook"])


def encode_quantized(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    """The values nearest to the encoder's outputs."""
    return codebook_of(modules).nearest(promote(modules["encoder"](images))), None


def draw_values(modules: nn.ModuleDict, settings: Settings, normal: Tensor, uniform: Tensor) -> Tensor:
    """Every value of a latent equally often."""
    return codebook_of(modules).draw(uniform)


def quantized_parts(settings: Settings) -> tuple[Part, ...]:
    return (Part("latents", "quantized", settings["latents"]),)
