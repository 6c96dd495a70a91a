"""What a dataset holds, as one digest: any pixel and any factor of any image makes it another."""

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.threads import map_ordered
from unbraid.base.types import FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset, ReadingProgress
from unbraid.datasets.image_store import StoredImages
from unbraid.datasets.official.dsprites import SubGrid
from unbraid.datasets.rendering.renderer import MIXING, Composed
from unbraid.datasets.shrunk import ShrunkImages
from unbraid.datasets.sprites import VERSION as SPRITES
from unbraid.datasets.sprites import Sprites
from unbraid.datasets.subset import SubsetDataset
from unbraid.files.cache_folder import cache_root
from unbraid.files.json_records import read_object
from unbraid.files.whole_files import write_text

RULE = 1  # raised whenever the same images get another digest; notes of another rule are not read
CHUNK = 1 << 22  # pixels of the images that are hashed at a time
THREADS = 4
LARGE = 1 << 28  # bytes of images above which the digest of a drawn set is noted
NOTE, NOTES = "content.json", "contents"


def content_digest(dataset: FactorDataset, progress: ReadingProgress | None = None) -> str:
    """A digest of all images, their type and order, and all factors with their names and kinds; 16 hexadecimal digits.

    Equal content has an equal digest whether it is drawn, stored or in memory; images in floats that are bytes / 255
    have that of the bytes, since the same is learnt from both. Images that are part of another
    dataset, or made smaller, are described by the digest of the whole and by which part or how small.

    Every byte is read each time, but for two kinds of sets that this package makes. What is noted beside a stored
    set holds until a time or size of its files changes; before it is noted, the images are compared with the checksum
    taken when they were stored. Large sets drawn in code are noted in the folder of all caches, by the version of the
    drawing and its options, which decide every pixel.

    Args:
        dataset: any. Classes derived from those of this package are read like anybody's.
        progress: called as progress(images done, images in all).

    Raises:
        ValueError: a stored set is damaged.
    """
    if type(dataset) is SubsetDataset:
        return subset_digest(content_digest(dataset.dataset, progress), dataset.positions)
    # Means of bytes are rounded and those of floats are not, though the images themselves have one digest.
    if type(dataset) is ShrunkImages and dataset.images(np.arange(min(1, len(dataset)))).dtype == np.uint8:
        return _derived(content_digest(dataset.source, progress), f"shrunk by {dataset.factor}")
    if type(dataset) is SubGrid:
        return _derived(content_digest(dataset.whole, progress), f"grid of {dataset.space.sizes}")
    if type(dataset) is StoredImages:
        dataset_stamps = _stamps(dataset.folder)
        return _noted(dataset.folder / NOTE, dataset_stamps, lambda: dataset.verify() or _of_all(dataset, progress))
    key = _drawing(dataset)
    if key is None or len(dataset) * prod(dataset.image_shape) < LARGE:
        return _of_all(dataset, progress)
    return _noted(cache_root() / NOTES / f"{key}.json", {}, lambda: _of_all(dataset, progress))


def subset_digest(whole: str, positions: IntArray) -> str:
    """The digest of a SubsetDataset by that of the dataset which it is a part of."""
    return _derived(whole, "subset", np.ascontiguousarray(positions, dtype="<i8").tobytes())


def _derived(whole: str, part: str, more: bytes = b"") -> str:
    return hashlib.sha256(f"{whole} {part}\n".encode() + more).hexdigest()[:16]


def _drawing(dataset: FactorDataset) -> str | None:
    """What decides every pixel of a set that is drawn in code, as a file name; None for all other sets."""
    if type(dataset) is Sprites:
        options = ("antialias", dataset.antialias), ("drop", dataset.drop_duplicate_orientation)
        return "-".join([f"sprites-v{SPRITES}", *(name for name, chosen in options if chosen)])
    if type(dataset) is Composed:
        digest = hashlib.sha256(_header(dataset, dataset.layers))
        for array in (dataset.layers, *dataset.palettes):
            digest.update(np.ascontiguousarray(array).data)
        return f"composed-v{MIXING}-{digest.hexdigest()[:32]}"
    return None


def _of_all(dataset: FactorDataset, progress: ReadingProgress | None) -> str:
    first = dataset.images(np.arange(min(1, len(dataset))))
    if first.dtype.kind == "f" and first.ndim == 4:
        with suppress(_NotBytes):
            return _of_chunks(dataset, progress, _as_bytes)
    return _of_chunks(dataset, progress, np.asarray)


class _NotBytes(Exception):
    """Floats other than bytes / 255."""


def _as_bytes(images: FloatArray) -> UInt8Array:
    """The bytes of which these floats are 255ths, as training makes them of bytes."""
    with np.errstate(invalid="ignore"):  # NaN equals nothing below
        pixels = np.rint(np.clip(images, 0, 1) * 255).astype(np.uint8)
    if not np.array_equal(pixels / np.float32(255), images.astype(np.float32)):
        raise _NotBytes
    return pixels


def _of_chunks(dataset: FactorDataset, progress: ReadingProgress | None, pixels: Callable[[Any], UInt8Array]) -> str:
    """The digest of the digests of chunks, which are hashed while further images are read or drawn."""
    n_images, done = len(dataset), 0
    step = max(1, CHUNK // max(1, prod(dataset.image_shape)))
    digest = hashlib.sha256(_header(dataset, pixels(dataset.images(np.arange(min(1, n_images))))))

    def chunks() -> Iterator[tuple[UInt8Array, FloatArray]]:
        for start in range(0, n_images, step):
            index = np.arange(start, min(start + step, n_images))
            yield pixels(dataset.images(index)), np.asarray(dataset.space.factors(index), dtype="<f8")

    for (images, _), digest_of_chunk in map_ordered(lambda chunk, _: _of_chunk(*chunk), chunks(), THREADS):
        digest.update(digest_of_chunk)
        done += len(images)
        if progress is not None:
            progress(done, n_images)
    return digest.hexdigest()[:16]


def _header(dataset: FactorDataset, images: UInt8Array) -> bytes:
    space = dataset.space
    described = (RULE, len(dataset), images.shape[1:], images.dtype.str, space.names, space.kinds)
    return repr((*described, space.sizes if isinstance(space, FactorSpace) else None)).encode()


def _of_chunk(images: UInt8Array, factors: FloatArray) -> bytes:
    digest = hashlib.sha256(np.ascontiguousarray(images).data)
    digest.update(np.ascontiguousarray(factors).data)
    return digest.digest()


def _stamps(folder: Path) -> dict[str, list[int]]:
    """Size and times of the files of a stored set; that of the last change cannot be set to an earlier one."""
    stamps = {}
    for name in ("images.npy", "factors.npy", "meta.json"):
        if (folder / name).exists():
            stat = (folder / name).stat()
            stamps[name] = [stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns]
    return stamps


def _noted(place: Path, stamps: Mapping[str, Any], compute: Callable[[], str]) -> str:
    """The digest that is noted at `place` for these stamps; else it is computed, and noted where that can be."""
    origin = {"rule": RULE, "files": dict(stamps)}
    with suppress(ValueError):  # none that can be read: it can always be made again
        note = read_object(place)
        if note.get("about") == origin and re.fullmatch("[0-9a-f]{16}", str(note.get("content"))):
            return note["content"]
    content = compute()
    with suppress(OSError):  # a place that cannot be written: computed again next time
        place.parent.mkdir(parents=True, exist_ok=True)
        write_text(place, json.dumps({"content": content, "about": origin}) + "\n")
    return content
