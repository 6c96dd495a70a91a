"""Principal components as a family without training."""

from typing import cast

import torch
from torch import Tensor, nn

from unbraid.families.common import COMMON
from unbraid.families.family import Context, Family, ImageSource, Settings, whole
from unbraid.families.networks import Shape, channels_first
from unbraid.families.pca_networks import PCA

CHUNK = 1000  # images at a time


def build_pca(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """A PCA under the name "pca"."""
    return nn.ModuleDict({"pca": PCA(channels_first(shape), settings["latents"])})


def fit_pca(modules: nn.ModuleDict, images: ImageSource, context: Context) -> None:
    """From at most `fit_images` images, evenly spaced over the dataset."""
    n_fit = min(context.n_images, context.settings["fit_images"])
    positions = torch.arange(n_fit) * context.n_images // n_fit
    cast(PCA, modules["pca"]).fit(lambda: (images(some) for some in positions.split(CHUNK)))


def encode_pca(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    """Coordinates along the components."""
    return cast(PCA, modules["pca"]).encode(images), None


def decode_pca(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """Back into the space of images, not clipped."""
    return cast(PCA, modules["pca"]).decode(codes)


PCA_FAMILY = Family(
    title="Principal component analysis",
    build=build_pca,
    optimizer_steps=(),
    hyperparameters={
        "latents": COMMON["latents"],
        "fit_images": whole(20_000, "most images that components are computed from", 2, 1e9),
    },
    encode=encode_pca,
    decode=decode_pca,
    source="Pearson 1901; DCI 2018",
    fit=fit_pca,
)
