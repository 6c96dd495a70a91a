"""Where the images of a user's own dataset come from: an array, an .npy file, picture files, a torch Dataset."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unbraid.base.arrays import as_array
from unbraid.base.memory import free_memory
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data.image_dataset import FEW_CHANNELS, MOST_CHANNELS, ImageShape
from unbraid.datasets.containers import decoded, flattened
from unbraid.files.tables import map_npy
from unbraid.files.whole_files import with_home

MOST_READ = 1 << 33  # bytes of images that are read into memory
REPEATABLE = (
    "leave out shuffling and random transforms, since an interrupted training must find the images that it began with"
)


class Rows(Protocol):
    """Images by their row in the user's table."""

    @property
    def image_shape(self) -> ImageShape: ...

    def __len__(self) -> int: ...

    def read(self, rows: IntArray) -> UInt8Array: ...


@dataclass(eq=False)
class ArrayRows:
    """Images in memory, or floats of a table."""

    array: UInt8Array

    @property
    def image_shape(self) -> ImageShape:
        return self.array.shape[1:]  # pyright: ignore[reportReturnType]

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: IntArray) -> UInt8Array:
        return self.array[rows]


class MappedRows(ArrayRows):
    """The rows of an .npy file; a worker process maps the file anew."""

    def __init__(self, path: Path, alone: bool = False) -> None:
        self.path, self.alone = with_home(path), alone
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: no such file")
        super().__init__(checked_images(np.asarray(map_npy(self.path)), f"{self.path}: images", alone))

    def __reduce__(self) -> tuple[type["MappedRows"], tuple[Path, bool]]:
        return MappedRows, (self.path, self.alone)


class PictureRows:
    """Picture files; the first of them sets the size, and whether they are grey: then none may have colour."""

    def __init__(self, folder: Path, files: tuple[str, ...]) -> None:
        self.folder, self.files = folder, files
        first = self._picture(0, None)
        self._mode: str = "L" if first.mode == "L" else "RGB"
        self.image_shape: ImageShape = (first.height, first.width, 1 if self._mode == "L" else 3)

    def __len__(self) -> int:
        return len(self.files)

    def read(self, rows: IntArray) -> UInt8Array:
        out = np.empty((len(rows), *self.image_shape), dtype=np.uint8)
        for place, row in enumerate(rows):
            # Converted to grey, a picture with colour would lose it unseen.
            picture = self._picture(int(row), None if self._mode == "L" else "RGB")
            if (picture.height, picture.width) != self.image_shape[:2]:
                height, width, _ = self.image_shape
                raise ValueError(
                    f"{self.folder / self.files[row]} is {picture.width} x {picture.height} pixels where "
                    f"{width} x {height} was expected, as in {self.files[0]}"
                )
            if self._mode == "L" and picture.mode == "RGB":
                pixels = np.asarray(picture)
                if (pixels != pixels[..., :1]).any():
                    raise ValueError(
                        f"{self.folder / self.files[row]} has colours where grey was expected, as in {self.files[0]}; "
                        "save all in colour, or all in grey"
                    )
                picture = picture.convert("L")
            out[place] = np.asarray(picture).reshape(self.image_shape)
        return out

    def _picture(self, row: int, mode: str | None) -> Any:
        path = self.folder / self.files[row]
        return decoded(path.read_bytes(), str(path), mode)


class TorchRows:
    """Items of a map-style torch Dataset; the first of them sets shape and type."""

    def __init__(self, dataset: Any) -> None:
        if not len(dataset):
            raise ValueError("the dataset has no images")
        self.dataset = dataset
        first = self._image(0)
        if not np.array_equal(first, self._image(0)):
            raise ValueError(f"item 0 of the dataset changes each time it is read: {REPEATABLE}")
        self._dtype, self.image_shape = first.dtype, first.shape

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, rows: IntArray) -> UInt8Array:
        out: Any = np.empty((len(rows), *self.image_shape), dtype=self._dtype)
        for place, row in enumerate(rows):
            image = self._image(int(row))
            if image.shape != self.image_shape or image.dtype != self._dtype:
                raise ValueError(
                    f"item {row} of the dataset is {image.dtype} {image.shape} where "
                    f"{self._dtype} {self.image_shape} was expected, as in item 0"
                )
            out[place] = image
        return out

    def _image(self, row: int) -> Any:
        return _image_in(self.dataset[row], row)


def iterated_rows(items: Iterable[Any]) -> ArrayRows:
    """Items of an iterable dataset, as those of `TorchRows`, read once into memory.

    Raises:
        ValueError: there are none, they differ when iterated again, or they fill half of the free memory.
    """
    images: list[Any] = []
    most, n_bytes = min(MOST_READ, (free_memory() or MOST_READ) // 2), 0
    for row, item in enumerate(items):
        images.append(_image_in(item, row))
        if (images[row].shape, images[row].dtype) != (images[0].shape, images[0].dtype):
            expected = f"{images[0].dtype} {images[0].shape} was expected, as in item 0"
            raise ValueError(f"item {row} of the dataset is {images[row].dtype} {images[row].shape} where {expected}")
        if (n_bytes := n_bytes + images[row].nbytes) > most / 2:  # stacked, there is another copy
            raise ValueError(
                f"the dataset has not ended after {row + 1:,} images, {n_bytes / 1e9:.1f} GB, and is read into memory: "
                f"say how many to take, as in itertools.islice(dataset, {10 ** (len(str(row + 1)) - 1)}), or store the "
                "images in an .npy file"
            )
    if not images:
        raise ValueError("the dataset has no images")
    again = next(iter(items), None)
    if again is not None and not np.array_equal(_image_in(again, 0), images[0]):
        raise ValueError(f"the dataset begins with another image each time: {REPEATABLE}")
    return ArrayRows(np.stack(images))


def _image_in(item: Any, row: int) -> Any:
    """The image (height, width, channels) of an item of a torch Dataset."""
    image: Any = item[0] if isinstance(item, tuple | list) and item else item
    if not hasattr(image, "detach") and not isinstance(image, np.ndarray) and not hasattr(image, "getbands"):
        raise ValueError(f"item {row} of the dataset is no image, nor (image, ...); got {type(item).__name__}")
    if hasattr(image, "getbands"):  # of Pillow
        image = np.asarray(flattened(image))
    name = f"item {row} of the dataset, taken for a single image,"
    return checked_images(channels_last(image[None]), name, alone=True)[0]


def channels_last(images: Any) -> Any:
    """A torch tensor as an array, its channels last; anything else as it is."""
    if not hasattr(images, "detach"):
        return images
    tensor = images.detach().cpu()
    array = (tensor.float() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor).numpy()
    return np.moveaxis(array, 1, -1) if array.ndim == 4 else array


def checked_images(images: Any, name: str, alone: bool = False) -> UInt8Array:
    """Images (n, height, width, channels); those without factors may be floats, or rows of a table.

    Raises:
        ValueError: another type or shape, or floats that are not between 0 and 1.
    """
    array = as_array(images)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    if array.dtype != np.uint8 and not (alone and array.dtype.kind == "f"):
        expected = "uint8, 0 to 255" + (", or floats from 0 to 1" if alone else "")
        raise ValueError(f"{name} must be {expected}; got {array.dtype}")
    if alone and array.ndim == 2 and array.dtype.kind == "f" and 0 not in array.shape:
        return array
    if array.ndim == 3:
        array = array[..., None]
    if array.ndim != 4 or 0 in array.shape:
        raise ValueError(f"{name} must be (n, height, width, channels) or (n, height, width); got {array.shape}")
    swapped = min(array.shape[1:3]) <= FEW_CHANNELS < array.shape[3]  # an axis of the image is that of the channels
    if swapped or array.shape[3] > MOST_CHANNELS:
        how = ". Channels second: np.moveaxis(images, 1, -1)" if array.shape[1] <= FEW_CHANNELS else ""
        must = f"{name} must have 1 to {MOST_CHANNELS} channels, last (of a tensor: second)"
        raise ValueError(f"{must}; got shape {array.shape}{how}")
    if array.dtype.kind == "f":
        _check_range(array, name)
    return array


def _check_range(images: Any, name: str) -> None:
    """Raises ValueError for floats (n, ...) that are no brightness, with the place of the first; NaN is none."""
    step = max(1, (1 << 24) // max(1, images[0].size))
    for start in range(0, len(images), step):
        part = images[start : start + step]
        if not (inside := (part >= 0) & (part <= 1)).all():
            place = np.argwhere(~inside)[0]
            raise ValueError(
                f"{name} in floats must lie between 0 and 1; image {start + place[0]} has {part[tuple(place)]:g}"
            )
