"""CelebA, the official archive: faces with forty yes-or-no attributes, which are no generative factors."""

from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.types import IntArray, Kind, UInt8Array
from unbraid.data import FactorTable
from unbraid.data.image_dataset import FactorDataset, ReadingProgress
from unbraid.datasets.containers import bundle, centre_crop, decoded, file_of_each, resized, stacked
from unbraid.datasets.image_store import Content
from unbraid.datasets.official_files import OfficialFile, check, located, open_official

VERSION = 1
N_IMAGES = 202_599
CROP = 148  # pixels of 178 x 218 around the face
_HOW = "Follow 'Align&Cropped Images' (folders Img and Anno) there in a browser"
_ADDRESS = "https://mmlab.ie.cuhk.edu.hk/projects/CelebA.html"
IMAGES = OfficialFile(
    "img_align_celeba.zip",
    _ADDRESS,
    size=1_443_490_838,
    sha256="46fb89443c578308acf364d7d379fe1b9efb793042c0af734b6112e4fd3a8c74",
    how=_HOW,
    folder="img_align_celeba",
)
ATTRIBUTES = OfficialFile(
    "list_attr_celeba.txt",
    _ADDRESS,
    size=26_721_026,
    sha256="f0e5da289d5ccf75ffe8811132694922b60f2af59256ed362afa03fefba324d0",
    how=_HOW,
    companion=True,
)
FILES = (IMAGES, ATTRIBUTES)
# fmt: off
NAMES = (
    "5_o_Clock_Shadow", "Arched_Eyebrows", "Attractive", "Bags_Under_Eyes", "Bald", "Bangs", "Big_Lips", "Big_Nose",
    "Black_Hair", "Blond_Hair", "Blurry", "Brown_Hair", "Bushy_Eyebrows", "Chubby", "Double_Chin", "Eyeglasses",
    "Goatee", "Gray_Hair", "Heavy_Makeup", "High_Cheekbones", "Male", "Mouth_Slightly_Open", "Mustache",
    "Narrow_Eyes", "No_Beard", "Oval_Face", "Pale_Skin", "Pointy_Nose", "Receding_Hairline", "Rosy_Cheeks",
    "Sideburns", "Smiling", "Straight_Hair", "Wavy_Hair", "Wearing_Earrings", "Wearing_Hat", "Wearing_Lipstick",
    "Wearing_Necklace", "Wearing_Necktie", "Young",
)
# fmt: on
KINDS: tuple[Kind, ...] = ("categorical",) * len(NAMES)


def open_celeba(
    root: Path,
    *,
    progress: ReadingProgress | None = None,
    file: str | Path | None = None,
    verify: bool = True,
    preprocessing: str = "resize",
) -> FactorDataset:
    """Open the official CelebA (aligned), 64 x 64 in colour, in the order of list_attr_celeba.txt.

    Args:
        root: folder of all datasets.
        progress: told of bytes checked, then of images converted, the first time.
        file: where img_align_celeba.zip, or the folder unpacked from it, is, when not in `root`; read once.
            list_attr_celeba.txt is looked for beside it as well.
        verify: compare the files with their known sizes and checksums before they are converted.
        preprocessing: "resize" scales the whole 178 x 218 pixels, which narrows faces; "crop" takes the middle
            148 x 148 first. Published work does either.
    """
    check_choice("preprocessing", preprocessing, ("crop", "resize"))

    def content(path: Path) -> Content:
        neighbour = path.parent / ATTRIBUTES.name
        attributes = neighbour if neighbour.exists() else located("celeba", (ATTRIBUTES,), root, None)[1]
        if verify:
            check(attributes, ATTRIBUTES)
        return read(path, attributes, preprocessing)

    return open_official(
        "celeba",
        (IMAGES,),
        content,
        root,
        version=VERSION,
        file=file,
        verify=verify,
        progress=progress,
        preprocessing={"method": preprocessing, "size": 64, "resampling": "lanczos"},
        cache_options={"preprocessing": preprocessing} if preprocessing != "resize" else None,
    )


def read(path: Path, attributes: Path, preprocessing: str = "resize", n_images: int = N_IMAGES) -> Content:
    """The content of the archive, or of its folder, with the attributes as levels 0 (no) and 1 (yes)."""
    names, levels = read_attributes(attributes, n_images)
    return Content(FactorTable(NAMES, KINDS, levels), (64, 64, 3), stacked(_images(path, names, preprocessing)))


def read_attributes(path: Path, n_images: int = N_IMAGES) -> tuple[list[str], IntArray]:
    """File names, and levels (n_images, 40): a line with the count, one with the attributes, one per image."""
    with path.open(encoding="ascii", errors="replace") as lines:
        count, header = next(lines, "").strip(), next(lines, "").split()
        if count != str(n_images) or tuple(header) != NAMES:
            raise ValueError(f"{path}: line 1 must be {n_images} and line 2 the {len(NAMES)} attributes")
        names: list[str] = []
        levels = np.empty((n_images, len(NAMES)), dtype=np.uint8)
        for row, line in enumerate(lines):
            name, *signs = line.split() or [""]
            if row >= n_images or len(signs) != len(NAMES) or not set(signs) <= {"1", "-1"}:
                raise ValueError(f"{path}: line {row + 3} must be a file name and {len(NAMES)} times 1 or -1")
            names.append(name)
            levels[row] = [sign == "1" for sign in signs]
    if len(names) != n_images:
        raise ValueError(f"{path}: cut short, {len(names)} of {n_images} lines")
    return names, levels


def _images(path: Path, names: list[str], preprocessing: str) -> Iterator[UInt8Array]:
    with bundle(path) as files:
        last, image_names = {name: PurePosixPath(name).name for name in files.names}, set(names)
        inside = file_of_each(path, (name for name in files.names if last[name] in image_names), last.get)
        for name in names:
            if name not in inside:
                raise ValueError(f"{path}: there is no {name}")
            image: Any = decoded(files.read(inside[name]), name)
            yield resized(centre_crop(image, CROP, name) if preprocessing == "crop" else image, (64, 64))
