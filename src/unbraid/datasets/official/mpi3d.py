"""MPI3D, the official files: a robot arm drawn simply, drawn realistically, and photographed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

from unbraid.base.arguments import check_choice
from unbraid.base.types import Kind
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ReadingProgress
from unbraid.datasets.containers import npz_slabs
from unbraid.datasets.image_store import Content, StoredImages
from unbraid.datasets.official_files import OfficialFile, official_opener, open_official

VERSION = 1
_NAMES = (
    "object_color", "object_shape", "object_size", "camera_height", "background_color", "horizontal_axis",
    "vertical_axis",
)  # fmt: skip
# The arm does not turn full circle.
_KINDS: tuple[Kind, ...] = (
    "categorical", "categorical", "ordinal", "ordinal", "categorical", "ordinal", "ordinal",
)  # fmt: skip


def _space(colours: tuple[str, ...], shapes: tuple[str, ...]) -> FactorSpace:
    values = (
        colours,
        shapes,
        ("small", "large"),
        ("top", "centre", "bottom"),
        ("purple", "sea green", "salmon"),
        tuple(map(float, range(40))),
        tuple(map(float, range(40))),
    )
    return FactorSpace(_NAMES, tuple(map(len, values)), _KINDS, values)


SPACE = _space(
    ("white", "green", "red", "blue", "brown", "olive"),
    ("cone", "cube", "cylinder", "hexagonal", "pyramid", "sphere"),
)
EARLY = _space(("green", "red", "blue", "brown"), ("cone", "cube", "hexagonal", "sphere"))
COMPLEX = _space(("yellow", "green", "olive", "red"), ("coffee cup", "tennis ball", "croissant", "beer cup"))

_FINAL_ADDRESS = "https://huggingface.co/datasets/waleedgondal/mpi3d/resolve/main/"
_EARLY_ADDRESS = "https://storage.googleapis.com/disentanglement_dataset/data_npz/"
_MD5 = {
    "mpi3d_toy": "55889cb7c7dfc655d6e0277beee88868",
    "mpi3d_realistic": "59a6225b88b635365f70c91b3e52f70f",
    "mpi3d_real": "0f33f609918fb5c97996692f91129802",
}
FINAL_FILES = {
    name: OfficialFile(f"{name}.npz", f"{_FINAL_ADDRESS}{name}.npz", md5=md5, downloads=True)
    for name, md5 in _MD5.items()
}
EARLY_FILES = {
    name: OfficialFile(
        f"sim_{style}_64x_ordered_without_heldout_factors.npz",
        f"{_EARLY_ADDRESS}sim_{style}_64x_ordered_without_heldout_factors.npz",
        downloads=True,
        option="release=early",
    )
    for name, style in (("mpi3d_toy", "toy"), ("mpi3d_realistic", "realistic"))
}
COMPLEX_FILE = OfficialFile(
    "real3d_complicated_shapes_ordered.npz",
    "https://drive.google.com/file/d/1Tp8eTdHxgUMtsZv5uAoYAbJR1BOa_OQm/view",
    how="Open the page in a browser, as Google Drive wants, and download it",
)


def read(path: Path, space: FactorSpace = SPACE) -> Content:
    """The content of a file. It holds images alone: their number is all that tells the releases apart."""
    return Content(space, (64, 64, 3), npz_slabs(path, "images", (len(space), 64, 64, 3), "u"))


def _opener(name: str) -> Callable[..., StoredImages]:
    """What opens a set that was released twice."""

    def opener(
        root: Path,
        *,
        progress: ReadingProgress | None = None,
        file: str | Path | None = None,
        verify: bool = True,
        release: str = "final",
    ) -> StoredImages:
        """Open MPI3D as it was drawn.

        Args:
            root: folder of all datasets.
            progress: told of bytes checked, then of images converted, the first time.
            file: where the .npz is, when not in `root`; read once.
            verify: compare the file with its known size and checksum before it is converted.
            release: "final" (1 036 800 images: 6 colours, 6 shapes) or "early" (460 800: 4 and 4).
        """
        check_choice("release", release, ("final", "early"))
        early = release == "early"
        return open_official(
            name,
            ((EARLY_FILES if early else FINAL_FILES)[name],),
            partial(read, space=EARLY if early else SPACE),
            root,
            version=VERSION,
            file=file,
            verify=verify,
            progress=progress,
            cache_options={"release": release} if early else None,
        )

    return opener


open_mpi3d_toy, open_mpi3d_realistic = _opener("mpi3d_toy"), _opener("mpi3d_realistic")
open_mpi3d_real = official_opener("mpi3d_real", (FINAL_FILES["mpi3d_real"],), read, VERSION)
open_mpi3d_real_complex = official_opener("mpi3d_real_complex", (COMPLEX_FILE,), partial(read, space=COMPLEX), VERSION)
