"""Where the images of a user's own dataset come from: an array, an .npy file, picture files, a torch Dataset."""

import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from unbraid.base.arrays import as_array
from unbraid.base.memory import free_memory
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data.image_dataset import FEW_CHANNELS, MOST_CHANNELS, ImageShape
from unbraid.datasets.containers import flattened, opened, pixels_of_16_bits, white_of
from unbraid.files.tables import map_npy
from unbraid.files.whole_files import with_home

PAGES = ("first", "channels")
SLAB = 4096  # images whose largest value is looked for at a time
MOST_READ = 1 << 33  # bytes of images that are read into memory
REPEATABLE = (
    "leave out shuffling and random transforms, since an interrupted training must find the images that it began with"
)


class Rows(Protocol):
    """Images by their row in the user's table."""

    white: int | None  # of images of 16 bits, which are read as floats

    @property
    def image_shape(self) -> ImageShape: ...

    def __len__(self) -> int: ...

    def read(self, rows: IntArray) -> UInt8Array: ...


class ArrayRows:
    """Images in memory, or floats of a table."""

    def __init__(self, array: Any, white: int | None = None) -> None:
        self.array = array
        self.white = _white_of_array(array) if white is None and has_16_bits(array) else white

    @property
    def image_shape(self) -> ImageShape:
        return self.array.shape[1:]

    def __len__(self) -> int:
        return len(self.array)

    def read(self, rows: IntArray) -> UInt8Array:
        return _bright(self.array[rows], self.white)


def has_16_bits(array: Any) -> bool:
    """Whether it holds whole numbers of 16 bits without a sign, in any order of bytes."""
    return array.dtype.kind == "u" and array.dtype.itemsize == 2


def _white_of_array(array: Any) -> int:
    most = max(int(array[start : start + SLAB].max()) for start in range(0, len(array), SLAB))
    return white_of(most)


def _bright(values: Any, white: int | None) -> Any:
    """Values of 16 bits as floats from 0 to 1; others, which have no `white`, as they are."""
    return values if white is None else values.astype(np.float32) / np.float32(white)


class MappedRows(ArrayRows):
    """The rows of an .npy file; a worker process maps the file anew."""

    def __init__(self, path: Path, alone: bool = False, white: int | None = None) -> None:
        self.path, self.alone = with_home(path), alone
        if not self.path.is_file():
            raise FileNotFoundError(f"{self.path}: no such file")
        super().__init__(checked_images(np.asarray(map_npy(self.path)), f"{self.path}: images", alone), white)

    def __reduce__(self) -> tuple[type["MappedRows"], tuple[Path, bool, int | None]]:
        return MappedRows, (self.path, self.alone, self.white)


class PagesWarning(UserWarning):
    """Files have several pages, of which one is read."""


class PictureRows:
    """Picture files; the first of them sets size, channels, and whether they have 8 or 16 bits.

    If it is grey, none may have colour. With pages="channels" the pages of each file, all grey, are its channels.
    """

    def __init__(self, folder: Path, files: tuple[str, ...], pages: str = "first") -> None:
        if pages not in PAGES:
            raise ValueError(f"pages must be {' or '.join(PAGES)}; got {pages!r}")
        self.folder, self.files, self.pages, self.white = folder, files, pages, None
        n_pages = getattr(self._opened(0), "n_frames", 1)
        if pages == "first" and n_pages > 1:
            warnings.warn(
                f"{folder / files[0]} has {n_pages} pages: only the first of each file is read; pages='channels' "
                "(--data pages=channels) takes them as channels",
                PagesWarning,
                stacklevel=2,
            )
        first = self._pixels(0)
        self.image_shape: ImageShape = first.shape
        self._dtype = first.dtype
        if has_16_bits(first):
            self.white = white_of(max(int(self._like_the_first(row).max()) for row in range(len(files))))

    def __len__(self) -> int:
        return len(self.files)

    def read(self, rows: IntArray) -> UInt8Array:
        out: Any = np.empty((len(rows), *self.image_shape), dtype=self._dtype)
        for place, row in enumerate(rows):
            out[place] = self._like_the_first(int(row))
        return _bright(out, self.white)

    def _like_the_first(self, row: int) -> Any:
        pixels, (height, width, channels) = self._pixels(row), self.image_shape
        name, as_in = self.folder / self.files[row], f"as in {self.files[0]}"
        if pixels.shape[:2] != (height, width):
            size = f"{pixels.shape[1]} x {pixels.shape[0]}"
            raise ValueError(f"{name} is {size} pixels where {width} x {height} was expected, {as_in}")
        if pixels.dtype != self._dtype:
            bits = [8 * dtype.itemsize for dtype in (pixels.dtype, self._dtype)]
            raise ValueError(f"{name} has {bits[0]} bits where {bits[1]} were expected, {as_in}")
        if pixels.shape[2] == channels:
            return pixels
        if self.pages == "channels":
            raise ValueError(f"{name} has {pixels.shape[2]} pages where {channels} were expected, {as_in}")
        if (pixels != pixels[..., :1]).any():  # made grey, a picture with colour would lose it unseen
            raise ValueError(f"{name} has colours where grey was expected, {as_in}; save all in colour, or all in grey")
        return np.repeat(pixels[..., :1], channels, axis=-1)

    def _opened(self, row: int) -> Any:
        path = self.folder / self.files[row]
        return opened(path.read_bytes(), str(path))

    def _pixels(self, row: int) -> Any:
        """(height, width, channels) of a file, uint8 or uint16."""
        image = self._opened(row)
        try:
            return _pages(image) if self.pages == "channels" else _page(image)
        except ValueError as error:
            raise ValueError(f"{self.folder / self.files[row]}: {error}") from error


def _page(image: Any) -> Any:
    """(height, width, 1 or 3) of a Pillow image, uint8, or uint16 if it has 16 bits."""
    values = pixels_of_16_bits(image)
    values = np.asarray(flattened(image)) if values is None else values
    return values[..., None] if values.ndim == 2 else values


def _pages(image: Any) -> Any:
    """(height, width, n_pages) of a Pillow image whose pages are grey."""
    n_pages = getattr(image, "n_frames", 1)
    if n_pages > MOST_CHANNELS:
        raise ValueError(f"it has {n_pages} pages; images have 1 to {MOST_CHANNELS} channels")
    pages = []
    for number in range(n_pages):
        image.seek(number)
        pages.append(_page(image))
        if pages[number].shape[2] != 1 or (pages[number].shape, pages[number].dtype) != (
            pages[0].shape,
            pages[0].dtype,
        ):
            raise ValueError(f"page {number + 1} of {n_pages} is in colour, or not like the first; channels are grey")
    return np.concatenate(pages, axis=-1)


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
        deep = has_16_bits(first)
        self.white = white_of(max(int(self._like_the_first(row).max()) for row in range(len(self)))) if deep else None

    def __len__(self) -> int:
        return len(self.dataset)

    def read(self, rows: IntArray) -> UInt8Array:
        out: Any = np.empty((len(rows), *self.image_shape), dtype=self._dtype)
        for place, row in enumerate(rows):
            out[place] = self._like_the_first(int(row))
        return _bright(out, self.white)

    def _like_the_first(self, row: int) -> Any:
        image = self._image(row)
        if image.shape != self.image_shape or image.dtype != self._dtype:
            raise ValueError(
                f"item {row} of the dataset is {image.dtype} {image.shape} where "
                f"{self._dtype} {self.image_shape} was expected, as in item 0"
            )
        return image

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
        image = _page(image)
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
    """Images (n, height, width, channels), uint8 or uint16; those without factors may be floats, or rows of a table.

    Raises:
        ValueError: another type or shape, or floats that are not between 0 and 1.
    """
    array = as_array(images)
    if array.dtype == np.bool_:
        array = array.astype(np.uint8) * np.uint8(255)
    if array.dtype != np.uint8 and not has_16_bits(array) and not (alone and array.dtype.kind == "f"):
        expected = "uint8, 0 to 255, uint16" + (", or floats from 0 to 1" if alone else "")
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
