"""Read images out of npz, HDF5, zip, tar and folders, a slab at a time; nothing is ever unpickled."""

import os
import re
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from math import prod
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

import numpy as np

from unbraid.base.optional import require
from unbraid.base.suggest import one_line
from unbraid.base.types import UInt8Array
from unbraid.files.tables import DAMAGED, PACKED, names_in
from unbraid.files.whole_files import below

SLAB_BYTES = 1 << 26
MOST_OF_16_BITS = 65535
MOST_MEMBER = 1 << 20  # bytes of a member that nobody minds
Convert = Callable[[Any], UInt8Array]
Key = TypeVar("Key")
NUMBERS = {"u": "unsigned whole numbers", "iu": "whole numbers", "f": "floats"}  # by kinds of their types


@contextmanager
def readable(path: Path, what: str) -> Iterator[None]:
    """Turn what the containers raise on a damaged file into one clear line."""
    faults = (zipfile.BadZipFile, *PACKED, tarfile.TarError, EOFError, RuntimeError, KeyError, struct.error)
    try:
        yield
    except (*faults, OSError) as error:
        if isinstance(error, OSError) and (error.errno is not None or not path.is_file()):
            raise  # the disk or its permissions, not the content
        reason = one_line(error) or type(error).__name__
        raise ValueError(f"{path}: damaged or not {what} ({reason}); get it again") from error


def npz_slabs(
    path: Path, member: str, shape: tuple[int, ...], dtypes: str, convert: Convert | None = None, lead: int = 1
) -> Iterator[UInt8Array]:
    """One array of an .npz file as slabs (n, *shape[lead:]): its first `lead` axes count images, in C order.

    `dtypes` are the kinds of numbers that it may hold, such as "u" or "iu"; `convert` is applied to each slab.

    Raises:
        ValueError: the array is missing, of another shape or type, pickled, or cut short.
    """
    with readable(path, "an .npz file"), _npz_member(path, member) as source:
        stored_shape, dtype = _npy_header(path, member, source)
        _check_array(path, member, stored_shape, dtype, shape, dtypes)
        row, n_rows = prod(shape[lead:]) * dtype.itemsize, prod(shape[:lead])
        step = max(1, SLAB_BYTES // row)
        for start in range(0, n_rows, step):
            count = min(step, n_rows - start)
            data = source.read(count * row)
            if len(data) < count * row:
                raise ValueError(f"{path}: array {member!r} is cut short; get the file again")
            slab = np.frombuffer(data, dtype=dtype).reshape(count, *shape[lead:])
            yield slab if convert is None else convert(slab)
        if source.read(1):  # also makes zipfile compare its checksum
            raise ValueError(f"{path}: array {member!r} is longer than its header says")


@contextmanager
def _npz_member(path: Path, member: str) -> Iterator[IO[bytes]]:
    with zipfile.ZipFile(path) as archive:
        if f"{member}.npy" not in archive.namelist():
            available = ", ".join(name.removesuffix(".npy") for name in archive.namelist()) or "nothing"
            raise ValueError(f"{path}: no array {member!r}; it holds {available}")
        with archive.open(f"{member}.npy") as source:
            yield source


def _npy_header(path: Path, member: str, source: IO[bytes]) -> tuple[tuple[int, ...], np.dtype[Any]]:
    try:
        version = np.lib.format.read_magic(source)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_column, dtype = read(source)
    except DAMAGED as error:
        raise ValueError(f"{path}: array {member!r} has no sound .npy header ({one_line(error)})") from error
    if dtype.hasobject:
        raise ValueError(f"{path}: array {member!r} holds pickled objects, which are never loaded")
    if by_column and len(shape) > 1:
        raise ValueError(f"{path}: array {member!r} is in Fortran order; C order was expected")
    return shape, dtype


def _check_array(
    path: Path, member: str, stored_shape: tuple[int, ...], dtype: Any, shape: tuple[int, ...], dtypes: str
) -> None:
    if tuple(stored_shape) != tuple(shape) or dtype.kind not in dtypes:
        expected = f"{NUMBERS[dtypes]} {tuple(shape)}"
        raise ValueError(f"{path}: array {member!r} is {dtype} {tuple(stored_shape)} where {expected} were expected")


def hdf5_slabs(
    path: Path, member: str, shape: tuple[int, ...], dtypes: str, convert: Convert | None = None
) -> Iterator[UInt8Array]:
    """One dataset of an HDF5 file as slabs (n, *shape[1:]), each made of whole chunks.

    Raises:
        ValueError: the dataset is missing, of another shape or type, or damaged.
        ImportError: h5py is not installed.
    """
    h5py = require("h5py", "data", "reading HDF5 files")
    with readable(path, "an HDF5 file"), h5py.File(path, "r") as file:
        source = _hdf5_member(h5py, path, file, member)
        _check_array(path, member, source.shape, source.dtype, shape, dtypes)
        # A slab that cuts through chunks would have each of them read and unpacked twice.
        chunk = source.chunks[0] if source.chunks else 1
        row = prod(shape[1:]) * source.dtype.itemsize
        step = max(1, SLAB_BYTES // row // chunk) * chunk
        for start in range(0, shape[0], step):
            slab = source[start : start + step]
            yield slab if convert is None else convert(slab)


def _hdf5_member(h5py: Any, path: Path, file: Any, member: str) -> Any:
    """A dataset whose data lie in this file: links and data elsewhere could be any file of this machine."""
    source = file
    for part in member.split("/"):
        links = source.id.links if isinstance(source, h5py.Group) else ()
        if not links or not links.exists(part.encode()):
            raise ValueError(f"{path}: no dataset {member!r}; it holds {', '.join(file) or 'nothing'}")
        if links.get_info(part.encode()).type != h5py.h5l.TYPE_HARD:
            raise ValueError(f"{path}: {member!r} is a link, which is not followed")
        source = source[part]
    if not isinstance(source, h5py.Dataset):
        raise ValueError(f"{path}: no dataset {member!r}; it holds {', '.join(file) or 'nothing'}")
    if source.external or source.is_virtual:
        raise ValueError(f"{path}: the data of {member!r} lie in another file")
    return source


def hdf5_names(path: Path) -> list[str]:
    """Every dataset of an HDF5 file, with its path inside."""
    h5py = require("h5py", "data", "reading HDF5 files")
    names: list[str] = []
    with readable(path, "an HDF5 file"), h5py.File(path, "r") as file:
        file.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
    return names


class Arrays(NamedTuple):
    """How the arrays of a file are read: their names, and one of them in slabs."""

    names: Callable[[Path], list[str]]
    slabs: Callable[..., Iterator[Any]]

    def whole(self, path: Path, member: str, shape: tuple[int, ...], dtypes: str) -> Any:
        """A small array, whole."""
        return np.concatenate(list(self.slabs(path, member, shape, dtypes)))


NPZ, HDF5 = Arrays(names_in, npz_slabs), Arrays(hdf5_names, hdf5_slabs)


def arrays_of(path: Path) -> Arrays:
    """As .npz if the file is called so, else as HDF5."""
    return NPZ if path.suffix.lower() == ".npz" else HDF5


class Bundle(NamedTuple):
    """Many small files in a folder, a zip or a tar: their paths inside, and what reads one of them."""

    names: list[str]
    read: Callable[[str], bytes]


def file_of_each(path: Path, names: Iterable[str], key: Callable[[str], Key | None]) -> dict[Key, str]:
    """The file that has each key, of those that have one.

    Raises:
        ValueError: two have the same, so that nobody knows which is meant.
    """
    files: dict[Key, str] = {}
    for name in names:
        if (file_key := key(name)) is not None and files.setdefault(file_key, name) != name:
            raise ValueError(f"{path}: {files[file_key]} and {name} are two files for one; take one of them away")
    return files


def paths_below(folder: Path) -> Iterator[str]:
    """All that lies below a folder and is not hidden, / between the parts of a path; links to folders are not entered.

    Raises:
        OSError: a folder in it cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise error  # what cannot be seen would else be left out unseen

    for where, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        above = "/".join(Path(where).relative_to(folder).parts)
        for name in (*folders, *files):
            if not name.startswith("."):
                yield f"{above}/{name}" if above else name


def _zip_bytes(archive: zipfile.ZipFile, length: int, name: str) -> bytes:
    info = archive.getinfo(name)
    if info.compress_size > length or info.file_size > max(MOST_MEMBER, 1100 * info.compress_size):
        # What is declared is allocated before anything is read; deflate makes 1032 bytes of one at most.
        raise zipfile.BadZipFile(f"{name} cannot have the {info.file_size:,} bytes that it declares")
    return archive.read(name)


def _tar_bytes(archive: tarfile.TarFile, member: tarfile.TarInfo) -> bytes:
    source = archive.extractfile(member)
    data = b"" if source is None else source.read()
    if len(data) != member.size:
        raise EOFError(f"{member.name} is cut short")
    return data


@contextmanager
def bundle(path: Path) -> Iterator[Bundle]:
    """Open a folder, .zip or .tar.

    Raises:
        ValueError: the file is damaged or no such container.
    """
    with readable(path, f"a {path.suffix or 'folder'} archive"):
        if path.is_dir():
            names = [name for name in paths_below(path) if (path / name).is_file()]
            yield Bundle(names, lambda name: below(path, name).read_bytes())
        elif path.suffix == ".zip":
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
                yield Bundle(names, partial(_zip_bytes, archive, path.stat().st_size))
        else:
            with tarfile.open(path, "r:") as archive:
                members = {member.name: member for member in archive if member.isfile()}
                yield Bundle(list(members), lambda name: _tar_bytes(archive, members[name]))


def walk_tar_gz(path: Path, pattern: re.Pattern[str]) -> Iterator[tuple[str, bytes]]:
    """Files of a compressed tar whose path matches, in the order in which they lie: it can only be read forwards."""
    with readable(path, "a .tar.gz archive"), tarfile.open(path, "r|gz") as archive:
        for member in archive:
            if member.isfile() and pattern.search(member.name):
                yield member.name, _tar_bytes(archive, member)


def opened(data: bytes, name: str) -> Any:
    """A picture file as a Pillow image.

    Raises:
        ValueError: no image that Pillow can read.
        ImportError: Pillow is not installed.
    """
    images = require("PIL.Image", "data", "reading image files")
    try:
        image = images.open(BytesIO(data))
        image.load()
    except (OSError, SyntaxError, ValueError, ArithmeticError, struct.error, images.DecompressionBombError) as error:
        unknown = isinstance(error, images.UnidentifiedImageError)  # whose own words name an object of Python
        reason = "its format is unknown" if unknown else one_line(error) or type(error).__name__
        raise ValueError(f"{name} is not a readable image ({reason})") from error
    return image


def decoded(data: bytes, name: str, mode: str | None = "RGB") -> Any:
    """A picture file as a Pillow image, `flattened`.

    Raises:
        ValueError: as `opened` and `flattened`.
    """
    image = opened(data, name)
    try:
        return flattened(image, mode)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from error


def flattened(image: Any, mode: str | None = None, white: int = MOST_OF_16_BITS) -> Any:
    """A Pillow image of this mode, or of "L" or "RGB" as it is grey or not; transparency is laid on white.

    Values of 16 bits become 8, `white` being 255.

    Raises:
        ValueError: its pixels are floats, or whole numbers of more than 16 bits.
    """
    if image.mode.startswith(("I", "F")):  # Pillow itself cuts these off at 255
        image = _with_8_bits(image, white)
    grey = image.mode in {"1", "L", "LA"}
    if image.mode in {"RGBA", "LA", "PA"} or "transparency" in image.info:
        images = require("PIL.Image", "data", "reading image files")
        image = image.convert("RGBA")
        white = images.new("RGBA", image.size, (255, 255, 255, 255))
        image = images.alpha_composite(white, image)
    return image.convert(mode or ("L" if grey else "RGB"))


def pixels_of_16_bits(image: Any) -> Any:
    """The values (height, width) of a Pillow image of 16 bits, as they stand in the file.

    None of one of 8 bits, or with a transparent grey, which `flattened` lays on white.

    Raises:
        ValueError: its pixels are floats, or whole numbers of more than 16 bits.
    """
    if not image.mode.startswith(("I", "F")) or "transparency" in image.info:
        return None
    return _checked_16_bits(image).astype(np.uint16)


def white_of(most: int) -> int:
    """What is white in images of 16 bits: the largest number of 8, 10, 12, 14 or 16 bits, which hold `most`.

    `most` is the largest value of the whole set, so that all of its images keep their brightness.
    """
    return next((1 << bits) - 1 for bits in (8, 10, 12, 14, 16) if most < 1 << bits)


def _checked_16_bits(image: Any) -> Any:
    values = np.asarray(image).astype(np.float64)
    if image.mode == "F" or values.min(initial=0) < 0 or values.max(initial=0) > MOST_OF_16_BITS:
        least, most = values.min(initial=np.inf), values.max(initial=-np.inf)
        raise ValueError(
            f"pixels of 8 or 16 bits were expected; got mode {image.mode!r} with values of {least:g} to {most:g}. Save "
            "it with 8 bits per channel"
        )
    return values


def _with_8_bits(image: Any, white: int) -> Any:
    images = require("PIL.Image", "data", "reading image files")
    values = _checked_16_bits(image)
    values[values == image.info.get("transparency", -1)] = white  # one grey of a PNG may be transparent
    return images.fromarray((values.clip(max=white) / white * 255 + 0.5).astype(np.uint8))


def resized(image: Any, size: tuple[int, int]) -> UInt8Array:
    """(height, width, channels) of a Pillow image at this width and height, by Lanczos resampling."""
    images = require("PIL.Image", "data", "reading image files")
    array = np.asarray(image if image.size == size else image.resize(size, images.Resampling.LANCZOS))
    return array[..., None] if array.ndim == 2 else array


def centre_crop(image: Any, size: int, name: str) -> Any:
    """The middle square of a Pillow image.

    Raises:
        ValueError: it is smaller.
    """
    if min(image.size) < size:
        too_small = f"{name} has {image.width} x {image.height} pixels, and the middle {size} x {size} were to be taken"
        raise ValueError(f"{too_small}; preprocessing='resize' takes the whole image")
    left, top = (image.width - size) // 2, (image.height - size) // 2
    return image.crop((left, top, left + size, top + size))


def stacked(images: Iterator[UInt8Array]) -> Iterator[UInt8Array]:
    """Slabs of single images."""
    slab: list[UInt8Array] = []
    for image in images:
        slab.append(image)
        if len(slab) == 256:
            yield np.stack(slab)
            slab = []
    if slab:
        yield np.stack(slab)
