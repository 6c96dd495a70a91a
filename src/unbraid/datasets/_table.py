"""The table of datasets: the one source for `load`, the command line, the documentation and the tests."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from unbraid.datasets.base import FactorDataset, ImageShape
from unbraid.factors import FactorTable, Space


@dataclass(frozen=True)
class OfficialFile:
    """A file that others publish, as the user is told to get it."""

    name: str  # file name, as its authors publish it
    address: str  # where to get it
    size: int | None = None  # bytes, where known
    sha256: str = ""
    md5: str = ""  # only where no SHA-256 is known
    downloads: bool = False  # fetched on request; otherwise by hand, as `address` tells


@dataclass(frozen=True)
class Dataset:
    """One row: how to open a dataset, and what it holds with its default options.

    `open(root, *, progress=None, **options)` takes the cache folder of all datasets and gives a FactorDataset.
    Its named options are those of `load`, and its docstring describes them.
    """

    open: Callable[..., FactorDataset]
    title: str
    rendered: bool  # drawn by this package: exact factors and no files, but nobody else's images
    space: Space  # of a set that is no grid: a FactorTable without rows, for names and kinds
    image_shape: ImageShape
    source: str  # who made the images, or which published set a rendered one follows
    licence: str  # of the images
    n_images: int = 0  # of a set that is no grid
    files: tuple[OfficialFile, ...] = ()
    notes: tuple[str, ...] = ()  # what a user must know before quoting a number on it

    def __len__(self) -> int:
        return self.n_images if isinstance(self.space, FactorTable) else len(self.space)


DATASETS: Mapping[str, Dataset] = MappingProxyType({})
