"""Images on disk: one folder per dataset and preprocessing, whole or absent, read through a memory map.

A folder holds `images.npy` (uint8, one row per image; packed to bits where every pixel is 0 or 255), `meta.json`
(factors, shape, where the images come from, checksums of all files), and `factors.npy` where the factors are no grid.
"""

import errno
import hashlib
import json
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any

import numba
import numpy as np

from unbraid.base.suggest import one_line
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import FactorTable, Space
from unbraid.data.image_dataset import FactorDataset, ImageShape, ReadingProgress, check_index
from unbraid.datasets.space_json import described_space, space_of
from unbraid.datasets.subset import first_of
from unbraid.files.checksum import check_content, checksummed_json
from unbraid.files.locks import locked
from unbraid.files.tables import DAMAGED, read_npy
from unbraid.files.whole_files import atomic_folder

FORMAT = 1
SLAB = 4096  # images made, checked and written at a time
QUICK = 1 << 24  # bytes of images that are compared with their checksum whenever they are opened


def cache_folder(root: Path, name: str, version: int, **options: str | int | float | bool) -> Path:
    """Where one dataset with one preprocessing is kept.

    Args:
        version: of the code that makes the images; raise it whenever any pixel changes.
        **options: what differs from the defaults.
    """
    parts = [f"{key}={str(value).lower()}" for key, value in sorted(options.items())]
    return root / "-".join([name, f"v{version}", *parts])


@dataclass(frozen=True, eq=False)
class Content:
    """What is to be stored."""

    space: Space
    image_shape: ImageShape
    slabs: Iterable[UInt8Array]  # (n, height, width, channels) each, in the order of the index
    description: Mapping[str, Any] = field(default_factory=dict)  # JSON: source, checksum, preprocessing, seed
    binary: bool = False  # every pixel is 0 or 255: keep one bit of it


def cached(folder: Path, content: Callable[[], Content], progress: ReadingProgress | None = None) -> "StoredImages":
    """The dataset kept in a folder; where there is none, it is built first.

    Safe when several processes ask at once: one builds and the others wait, where the file system has locks. What a
    killed build left behind is never taken for a dataset, and is removed by the next build.

    Raises:
        ValueError: the folder is damaged, or the content is not what it declares.
        OSError: the disk is full or the folder cannot be written.
    """
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked(folder.parent / f".{folder.name}.lock", wait="always"):
            if not folder.exists():
                write(folder, content(), progress)
    return StoredImages(folder)


def write(folder: Path, content: Content, progress: ReadingProgress | None = None) -> None:
    """Store images under a temporary name, then rename. A folder that another process finished first is kept.

    Raises:
        ValueError: slabs of another shape or type than declared, too few or too many images, or a binary image
            with grey pixels.
        OSError: the disk is full or the folder cannot be written; nothing is left behind.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    check_room(folder, content)
    try:
        with atomic_folder(folder) as temporary:
            fill(temporary, content, progress)
    except OSError:
        if not (folder / "meta.json").exists():
            raise


def check_room(folder: Path, content: Content) -> None:
    """Raises OSError where the disk has not the bytes that the images take."""
    needed, free = len(content.space) * prod(_row(content)), shutil.disk_usage(folder.parent).free
    if needed > free:
        raise OSError(
            errno.ENOSPC, f"{folder}: needs {size_in_words(needed)}, but the disk has {size_in_words(free)} left"
        )


def fill(folder: Path, content: Content, progress: ReadingProgress | None = None) -> None:
    """Write images.npy and what describes it into an empty folder.

    Raises:
        ValueError: as `write`.
    """
    meta: dict[str, Any] = {
        "format": FORMAT,
        **described_space(content.space),
        "n_images": len(content.space),
        "image_shape": list(content.image_shape),
        "packed": content.binary,
        "sha256": _write_images(folder / "images.npy", content, progress),
        "about": dict(content.description),
    }
    if isinstance(content.space, FactorTable):
        np.save(folder / "factors.npy", content.space.table, allow_pickle=False)
        meta["factors_sha256"] = _digest_of(folder / "factors.npy")
    (folder / "meta.json").write_bytes(checksummed_json(meta))


def _row(content: Content) -> tuple[int, ...]:
    """The shape of an image as it is stored, in bytes."""
    return (prod(content.image_shape) // 8,) if content.binary else content.image_shape


def content_of(
    dataset: FactorDataset,
    *,
    limit: int | None = None,
    binary: bool = False,
    description: Mapping[str, Any] | None = None,
) -> Content:
    """The first `limit` images of a dataset, or all of them, ready to be stored."""
    n_images = len(dataset) if limit is None else min(limit, len(dataset))
    space: Space = dataset.space
    if n_images < len(dataset):
        space = first_of(space, n_images)
    slabs = (dataset.images(np.arange(start, min(start + SLAB, n_images))) for start in range(0, n_images, SLAB))
    return Content(space, dataset.image_shape, slabs, description or {}, binary)


class StoredImages:
    """A stored dataset, read where it lies.

    `description` says where the images come from. Pickling keeps the folder alone; a worker process maps the file anew.
    Images of few bytes are compared with their checksum when they are opened; others by `verify`, as before a training.

    Raises:
        FileNotFoundError: there is no such dataset.
        ValueError: the folder is damaged; the message says how and what to do.
    """

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        meta = _read_meta(self.folder)
        try:
            self.image_shape: ImageShape = tuple(map(int, meta["image_shape"]))  # pyright: ignore[reportAttributeAccessIssue]
            self.description: Mapping[str, Any] = meta["about"]
            self.sha256: str = meta["sha256"]
            self.packed = bool(meta["packed"])
            self.space: Space = _read_space(self.folder, meta)
        except (*DAMAGED, KeyError, AttributeError) as error:
            raise _damaged(self.folder, f"meta.json or factors.npy cannot be read: {one_line(error)}") from error
        self._rows = _map(self.folder, len(self.space), self.image_shape, self.packed)
        if self._rows.nbytes <= QUICK:
            self.verify()

    def __len__(self) -> int:
        return len(self.space)

    def images(self, index: IntArray) -> UInt8Array:
        positions = check_index(index, len(self))
        # Gathered whole before they are unpacked: reading scattered rows byte by byte waits for memory twice as long.
        rows = self._rows[positions]
        if not self.packed:
            return rows
        pixels = np.empty((len(positions), prod(self.image_shape)), dtype=np.uint8)
        _unpack(rows, _PIXELS, pixels.view(np.uint64))
        return pixels.reshape(len(positions), *self.image_shape)

    def verify(self) -> None:
        """Read every byte and compare with the checksum taken when the images were stored.

        Raises:
            ValueError: they differ.
        """
        digest = hashlib.sha256()
        for start in range(0, len(self), SLAB):
            digest.update(np.ascontiguousarray(self._rows[start : start + SLAB]).data)
        if digest.hexdigest() != self.sha256:
            raise _damaged(self.folder, "images.npy does not match its checksum")

    def __reduce__(self) -> tuple[type["StoredImages"], tuple[Path]]:
        return StoredImages, (self.folder,)


# Eight pixels of 0 or 255 for each packed byte, highest bit first, as numpy.packbits has it.
_PIXELS = (np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * np.uint8(255)).view(np.uint64)[:, 0]


@numba.njit(cache=True)
def _unpack(rows: UInt8Array, pixels: Any, out: Any) -> None:
    for i in range(rows.shape[0]):
        for j in range(rows.shape[1]):
            out[i, j] = pixels[rows[i, j]]


def _write_images(path: Path, content: Content, progress: ReadingProgress | None) -> str:
    n_images, done, digest = len(content.space), 0, hashlib.sha256()
    with path.open("wb") as file:
        header = {"descr": "|u1", "fortran_order": False, "shape": (n_images, *_row(content))}
        np.lib.format.write_array_header_1_0(file, header)
        for slab in content.slabs:
            if slab.dtype != np.uint8 or slab.shape[1:] != content.image_shape:
                raise ValueError(f"images must be uint8 {content.image_shape}; got {slab.dtype} {slab.shape[1:]}")
            done += len(slab)
            if done > n_images:
                raise ValueError(f"more than the {n_images} images that the factors account for")
            data = np.ascontiguousarray(_pack(slab) if content.binary else slab)
            digest.update(data.data)
            file.write(data.data)
            if progress is not None:
                progress(done, n_images)
    if done != n_images:
        raise ValueError(f"{done} images for {n_images} combinations of factors")
    return digest.hexdigest()


def _pack(slab: UInt8Array) -> UInt8Array:
    if not ((slab == 0) | (slab == 255)).all():
        raise ValueError("binary images must have pixels of 0 and 255 alone")
    return np.packbits(slab.reshape(len(slab), -1), axis=1)


def _read_meta(folder: Path) -> dict[str, Any]:
    path = folder / "meta.json"
    if not path.is_file():
        if folder.is_dir():
            raise _damaged(folder, "there is no meta.json")
        raise FileNotFoundError(f"{folder}: no dataset is stored here")
    try:
        content = path.read_bytes()
        check_content(content)  # sets stored earlier have no checksum
        meta = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise _damaged(folder, f"meta.json cannot be read: {one_line(error)}") from error
    if not isinstance(meta, dict) or meta.get("format") != FORMAT:
        raise _damaged(folder, "it was written by another version")
    return meta


def _read_space(folder: Path, meta: Mapping[str, Any]) -> Space:
    def table() -> Any:
        if meta["factors_sha256"] != _digest_of(folder / "factors.npy"):
            raise ValueError("factors.npy does not match its checksum")
        return read_npy(folder / "factors.npy")

    space = space_of(meta, table)
    if len(space) != meta["n_images"]:
        raise ValueError(f"{meta['n_images']} images for {len(space)} combinations of factors")
    return space


def _map(folder: Path, n_images: int, image_shape: ImageShape, packed: bool) -> UInt8Array:
    path = folder / "images.npy"
    try:
        rows = np.lib.format.open_memmap(path, mode="r")
    except DAMAGED as error:
        raise _damaged(folder, f"images.npy cannot be read: {one_line(error)}") from error
    expected = (n_images, prod(image_shape) // 8) if packed else (n_images, *image_shape)
    if rows.shape != expected or rows.dtype != np.uint8:
        raise _damaged(folder, f"images.npy is {rows.dtype} {rows.shape} where uint8 {expected} was expected")
    surplus = path.stat().st_size - rows.offset - rows.nbytes
    if surplus:
        raise _damaged(folder, f"images.npy is {surplus} bytes too long")
    return np.asarray(rows)


def _digest_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _damaged(folder: Path, reason: str) -> ValueError:
    # What is the user's own cannot be made again: nobody may be told to delete it.
    advice = "write or copy it again; if it lies in the folder of all caches, delete it and load the dataset again"
    return ValueError(f"{folder}: not a usable dataset ({reason}); {advice}")


def size_in_words(n_bytes: int) -> str:
    return f"{n_bytes / 1e9:.2f} GB" if n_bytes >= 1e8 else f"{n_bytes / 1e6:.1f} MB"
