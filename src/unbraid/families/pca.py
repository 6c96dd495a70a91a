"""Principal components as a family without training."""

import math
from collections.abc import Callable, Iterable
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.types import FloatArray
from unbraid.families.common import COMMON
from unbraid.families.family import Context, Family, ImageSource, Settings, whole
from unbraid.families.networks import Shape, channels_first

Chunks = Callable[[], Iterable[Tensor]]  # each call goes through all rows once more, (m, ...) at a time
DENSE = 1024  # features up to which the whole covariance matrix is made


class PrincipalComponents(nn.Module):
    """Encoder and decoder by the first principal components; zeros until `fit`.

    Args:
        shape: of one input without the batch: (channels, height, width) or (n_features,).
        n_components: latents.
    """

    mean: Tensor
    components: Tensor

    def __init__(self, shape: tuple[int, ...], n_components: int) -> None:
        super().__init__()
        n_features = math.prod(shape)
        self.shape = tuple(shape)
        self.register_buffer("mean", torch.zeros(n_features))
        self.register_buffer("components", torch.zeros(n_components, n_features))

    def fit(self, chunks: Chunks) -> None:
        """Set mean and components to those of the rows that `chunks()` yields."""
        mean, components, _ = principal_components(chunks, len(self.components))
        self.mean.copy_(mean)
        self.components.copy_(components)

    def encode(self, images: Tensor) -> Tensor:
        """(n, *shape) -> (n, n_components)."""
        with torch.autocast(images.device.type, enabled=False):
            return (images.flatten(1).to(self.mean) - self.mean) @ self.components.T

    def decode(self, codes: Tensor) -> Tensor:
        """(n, n_components) -> (n, *shape): back into the data's space, not clipped."""
        with torch.autocast(codes.device.type, enabled=False):
            return (codes.to(self.mean) @ self.components + self.mean).unflatten(1, self.shape)


def principal_components(chunks: Chunks, n_components: int) -> tuple[Tensor, Tensor, Tensor]:
    """The directions of most variance, from rows that need not fit into memory.

    Args:
        chunks: called for each pass over the data; yields (m, ...) tensors, the same rows in the same order each time.
        n_components: how many, at most the number of features and less than the number of rows.

    Returns:
        Mean (n_features,), components (n_components, n_features) of length 1 with their largest entry positive, and
        the variance along each, divided by the number of rows less one; as scikit-learn's PCA, double precision.
        Features are centred, not divided by their standard deviation.

    Raises:
        ValueError: too few rows or features.
    """
    n_rows = 0
    total = torch.zeros(())
    for rows in _rows(chunks):
        n_rows += len(rows)
        total = total + rows.sum(0)
    n_features = total.numel()
    if not n_components <= min(n_features, n_rows - 1):
        raise ValueError(
            f"{n_components} principal components need as many features and one row more; "
            f"got {n_rows} rows of {n_features} features"
        )
    mean = total / n_rows

    def summed(product: Callable[[Tensor], Tensor]) -> Tensor:
        return sum((product(rows - mean) for rows in _rows(chunks)), torch.zeros(())) / (n_rows - 1)

    if n_features <= DENSE:
        variances, vectors = torch.linalg.eigh(summed(lambda centred: centred.T @ centred))
    else:
        variances, vectors = _by_lanczos(summed, mean, n_components)
    variances, order = variances.sort(descending=True)
    components = vectors.T[order[:n_components]]
    largest = components.gather(1, components.abs().argmax(1, keepdim=True))
    return mean, components * largest.sign(), variances[:n_components].clamp(min=0)


def _by_lanczos(
    summed: Callable[[Callable[[Tensor], Tensor]], Tensor], mean: Tensor, n_components: int
) -> tuple[Tensor, Tensor]:
    """Largest eigenvalues and eigenvectors of the covariance by products with it, each a pass over the data."""
    from scipy.sparse.linalg import LinearOperator, eigsh  # a fifth of a second to import

    def times_covariance(vector: FloatArray) -> FloatArray:
        direction = torch.from_numpy(vector.reshape(-1)).to(mean)
        return summed(lambda centred: centred.T @ (centred @ direction)).cpu().numpy()

    n_features = len(mean)
    operator = LinearOperator((n_features, n_features), matvec=times_covariance, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    start = np.random.default_rng(0).standard_normal(n_features)
    if not times_covariance(start).any():  # nothing varies, and Lanczos' method has nowhere to go
        return torch.zeros(n_components).to(mean), torch.eye(n_features, n_components).to(mean)
    space = min(n_features, 2 * n_components + 50)  # wide, since passes cost more than memory here
    variances, vectors = eigsh(operator, n_components, which="LA", v0=start, ncv=space, tol=1e-8)  # pyright: ignore[reportArgumentType]
    return torch.from_numpy(variances).to(mean), torch.from_numpy(vectors).to(mean)


def _rows(chunks: Chunks) -> Iterable[Tensor]:
    for rows in chunks():
        yield rows.flatten(1).double()


CHUNK = 1000  # images at a time


def build_pca(shape: Shape, settings: Settings) -> nn.ModuleDict:
    """PrincipalComponents under the name "pca"."""
    return nn.ModuleDict({"pca": PrincipalComponents(channels_first(shape), settings["latents"])})


def fit_pca(modules: nn.ModuleDict, images: ImageSource, context: Context) -> None:
    """From at most `fit_images` images, evenly spaced over the dataset."""
    n_fit = min(context.n_images, context.settings["fit_images"])
    positions = torch.arange(n_fit) * context.n_images // n_fit
    cast(PrincipalComponents, modules["pca"]).fit(lambda: (images(some) for some in positions.split(CHUNK)))


def encode_pca(modules: nn.ModuleDict, images: Tensor, settings: Settings) -> tuple[Tensor, None]:
    """Coordinates along the components."""
    return cast(PrincipalComponents, modules["pca"]).encode(images), None


def decode_pca(modules: nn.ModuleDict, codes: Tensor, settings: Settings) -> Tensor:
    """Back into the space of images, not clipped."""
    return cast(PrincipalComponents, modules["pca"]).decode(codes)


PCA = Family(
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
    cites=("pearson1901lines", "eastwood2018framework"),
    formula=(
        r"z = W^{\top} (x - \bar{x}), \qquad \hat{x} = \bar{x} + W z",
        "The columns of $W$ are the first principal axes of the images. Nothing is trained.",
    ),
    fit=fit_pca,
)
