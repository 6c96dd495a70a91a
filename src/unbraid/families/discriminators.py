"""The discriminator of FactorVAE."""

from typing import cast

from torch import Tensor, nn

from unbraid.families.networks import promote


class LatentDiscriminator(nn.Module):
    """Six hidden layers of 1000 with leaky ReLU 0.2, two logits (UDR table 4b, Kim and Mnih 2018 appendix A).

    Args:
        n_latents: of the samples it is shown.
        width, depth: of the hidden layers.
    """

    def __init__(self, n_latents: int, width: int = 1000, depth: int = 6) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for before in (n_latents, *[width] * (depth - 1)):
            layers += [nn.Linear(before, width), nn.LeakyReLU(0.2)]
        self.layers = nn.Sequential(*layers, nn.Linear(width, 2))

    def forward(self, sample: Tensor) -> Tensor:
        """Samples (n, n_latents) -> logits (n, 2): of q(z), of the product of its marginals."""
        return promote(cast(Tensor, self.layers(sample)))
