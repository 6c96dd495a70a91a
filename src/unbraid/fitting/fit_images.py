"""Images from any source, cropped and resized into one array on disk; the source is never changed."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.lib.format import open_memmap

from unbraid.base.counted import counted
from unbraid.base.optional import require
from unbraid.base.threads import n_cores
from unbraid.base.types import Progress, UInt8Array
from unbraid.data import FactorTable
from unbraid.data.image_dataset import NO_IMAGES, FactorDataset
from unbraid.datasets.containers import MOST_OF_16_BITS, paths_below, pixels_of_16_bits, white_of
from unbraid.datasets.digest import content_digest
from unbraid.datasets.image_file import open_picture, square, square_of, unreadable
from unbraid.datasets.own_images import PICTURES, OwnImages, from_array, images_of, is_path, is_stored
from unbraid.datasets.shrunk import ShrunkImages
from unbraid.files.whole_files import atomic_write, with_home, write_text
from unbraid.training.source import open_dataset

IMAGES, ABOUT = "images.npy", "images.json"
SIZES = (16, 32, 64, 128, 256)  # height and width that models see
SMALL_SIZES = SIZES[:3]  # without --size: larger images take hours where there is no GPU
FEWEST = 500  # images
MEASURED = 100  # files whose sides are read, to know how large images are
MOST_BAD = 0.01  # share of files that cannot be read
SLAB = 256  # images read at a time
NAMED = 5  # files, in one line
BESIDE = frozenset({".csv", ".json", ".md", ".parquet", ".txt"})  # tables and notes, which hold no images
DARK = 64  # of 255: darker images are probably 12 or 14 bits stored in 16

Outcome: TypeAlias = tuple[str, UInt8Array | None, str]  # name, image, or why there is none


@dataclass(frozen=True)
class Pictures:
    """The images that models are trained on, in `images.npy` of a cache folder."""

    folder: Path  # the cache
    source: str  # where they come from: a path, the name of a dataset, or a type
    state: str  # digest of what was there: of files their names, lengths and times, of others the images
    size: int  # height and width
    channels: int  # 1 where all are grey
    names: tuple[str, ...]  # of each image: its path below the source, or its number
    skipped: Mapping[str, str]  # files that cannot be read, and why
    copies: int  # images that equal an earlier one
    blank: int  # images of one colour
    digest: str  # of the pixels
    remarks: tuple[str, ...] = ()  # on what was not read, and on dark images
    white: int | None = None  # the value of white, where images have 16 bits

    @property
    def path(self) -> Path:
        return self.folder / IMAGES

    def array(self) -> UInt8Array:
        """(n, size, size, channels), read where it lies."""
        return np.load(self.path, mmap_mode="r", allow_pickle=False)

    def at(self, size: int) -> FactorDataset:
        """The images, shrunk to what models of this size see."""
        images = from_array(self.path)
        return images if size == self.size else ShrunkImages(images, self.size // size)

    def notes(self) -> list[str]:
        """Notes on the images for the user, one per line."""
        n = len(self.names)
        lines = [f"{counted(n, 'image')}, {self.size} x {self.size}, {in_colour(self.channels)}"]
        if self.skipped:
            lines.append(f"{counted(len(self.skipped), 'file')} left out: {_listed(self.skipped)}")
        if self.copies:
            lines.append(f"images that equal an earlier one: {self.copies:,}")
        if self.blank:
            lines.append(f"images of one colour: {self.blank:,}")
        if self.white is not None:
            lines.append(f"16 bits: white is {self.white}, black 0, as the largest value of the whole set asks for")
        return [*lines, *self.remarks]


@dataclass(frozen=True)
class _Source:
    """Images that are still to be read."""

    described: str  # the path of files, the name of a dataset, or the type of what holds the images in memory
    total: int
    read: Callable[[int], Iterator[Outcome]]  # yields the images, resized to this size
    state: str  # changes with any of them
    side: float  # the shorter one, in pixels; of files the median
    remarks: tuple[str, ...] = ()  # on what will not be read
    channels: int = 3  # that are read; of grey images as well
    white: int | None = None  # the value of white, where images have 16 bits


def prepare(
    source: Any, folder: Path, size: int | None, progress: Progress | None = None, *, same: bool = False,
    claim: Callable[[], object] | None = None,
) -> Pictures:  # fmt: skip
    """Read all images once and store them, `size` x `size`, in a cache folder; or reuse the folder's content.

    Images are rotated by their EXIF data, transparent ones are put on white, cropped to the middle square and resized.
    They are stored in grey if all of them are grey.

    Args:
        source: a folder of picture files, searched with its subfolders; the name or path of a dataset, or
            {"name": ..., **options}; an array, a tensor, a torch Dataset or a dataset.
        folder: of the cache, made where it is not there.
        size: height and width; by default the one of `SIZES`, up to 64, that is nearest to the images' own.
        progress: called as progress("reading images", done, all).
        same: refuse images other than those in the cache; their path may differ.
        claim: called when the folder exists, before anything is read from or written to it; locks it.

    Raises:
        FileNotFoundError: there is no such folder.
        ValueError: fewer than 500 different images, more than 1 % of the files cannot be read, or the cache would be
            inside their folder.
        OSError: no room for the cache.
    """
    images = _images(source, folder)
    described = images.described
    total, size = images.total, size or min(SMALL_SIZES, key=lambda side: abs(np.log(side / images.side)))
    if total < FEWEST:
        few = f"{described}: {counted(total, 'image')}; to find factors of variation takes {FEWEST} or more"
        raise ValueError("; ".join([few, *images.remarks]))
    folder.mkdir(parents=True, exist_ok=True)
    if claim is not None:
        claim()
    cached = read_pictures(folder)
    if cached is not None and (cached.state, cached.size) == (images.state, size):
        return cached
    earlier = cached if same else None
    if earlier and earlier.size != size and earlier.source != described:
        raise _other_images(folder, earlier)
    raw = folder / f".{IMAGES}.raw"
    try:
        names, skipped, seen, blank, grey, brightest = _write_raw(images.read(size), raw, total, progress)
        if len(skipped) > MOST_BAD * total:
            raise ValueError(
                f"{described}: {len(skipped)} of {total} files cannot be read, more than {MOST_BAD:.0%}: "
                f"{_listed(skipped)}; remove or mend them"
            )
        if len(seen) + len(skipped) < FEWEST:
            raise ValueError(
                f"{described}: of {len(names):,} images {len(names) - len(seen):,} equal an earlier one (in their "
                f"middle squares at {size} x {size}, on white where they are transparent); to find factors of "
                f"variation takes {FEWEST} or more different images"
            )
        shape = (len(names), size, size, images.channels)
        channels = 1 if grey and images.channels == 3 else images.channels
        digest = _digest(raw, shape, channels)
        # Of another size, the pixels tell nothing.
        if earlier and (earlier.names != tuple(names) or (earlier.size == size and earlier.digest != digest)):
            raise _other_images(folder, earlier)
        _write_array(folder / IMAGES, raw, shape, channels)
    finally:
        raw.unlink(missing_ok=True)
    remarks = images.remarks
    if brightest < DARK:  # the 99.9 % quantile of pixels, since some may be dead
        remarks += (
            f"the images are dark, hardly a pixel above {brightest:.0f} of 255: if a few pixels alone are brighter, "
            "scale the images first",
        )
    pictures = Pictures(
        folder, described, images.state, size, channels, tuple(names), skipped, len(names) - len(seen), blank, digest,
        remarks, images.white,
    )  # fmt: skip
    write_text(folder / ABOUT, json.dumps({**asdict(pictures), "folder": None}, indent=1))
    return pictures


def read_pictures(folder: Path) -> Pictures | None:
    """The images that `prepare` stored in a folder; None without a complete cache."""
    try:
        content = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        lists = {name: tuple(content[name]) for name in ("names", "remarks") if name in content}
        pictures = Pictures(**{**content, "folder": folder, **lists})
        shape = pictures.array().shape
    except (OSError, ValueError, TypeError, KeyError, EOFError):
        return None
    return pictures if shape == (len(pictures.names), pictures.size, pictures.size, pictures.channels) else None


def in_colour(channels: int) -> str:
    """What images of so many channels are, in words."""
    return {1: "grey", 3: "in colour"}.get(channels, f"{channels} channels")


def as_bytes(images: Any) -> UInt8Array:
    """Images as bytes, floats from 0 to 1 being 0 to 255."""
    array = np.asarray(images)
    return array if array.dtype == np.uint8 else (np.clip(array, 0, 1) * 255 + 0.5).astype(np.uint8)


def _other_images(folder: Path, cached: Pictures) -> ValueError:
    return ValueError(
        f"{folder.parent} has models of other images, from {cached.source} as it was then; give another folder with "
        "out (--out)"
    )


def _images(source: Any, cache: Path) -> _Source:
    """The images of a source, which must not lie where the cache is written."""
    options = dict(source) if isinstance(source, Mapping) else {}
    source = options.pop("name", None) if isinstance(source, Mapping) else source
    if not isinstance(source, str | Path):
        return _of_dataset(type(source).__name__, images_of(source))
    path, cache = with_home(source), with_home(cache).resolve()
    if not str(source) or not is_path(str(path), ()):
        return _of_dataset(str(source), open_dataset({"name": str(source), **options}))
    if not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    own = path.resolve()
    if own.is_relative_to(cache) or (own.is_dir() and cache.is_relative_to(own)):
        raise ValueError(
            f"{source}: what is made of the images would be written among them, to {cache}; give a folder elsewhere "
            "with out (--out)"
        )
    if options or not own.is_dir() or is_stored(own) or (own / IMAGES).exists():
        dataset = open_dataset({"name": str(own), **options})
        if isinstance(dataset, OwnImages) and dataset.rows is not None:  # in the order of a grid; here that of the file
            dataset = OwnImages(dataset.source, FactorTable((), (), np.empty((len(dataset.source), 0))))
        return _of_dataset(str(own), dataset)
    files, remarks = _files_below(path)
    side, deep, stacks = _measured(path, files)
    white = _white(path, files) if deep else None
    read, state = partial(_read_files, path, files, white or MOST_OF_16_BITS), _state_of(path, files)
    return _Source(str(own), len(files), read, state, side, stacks + remarks, white=white)


def _of_dataset(described: str, dataset: FactorDataset) -> _Source:
    if len(dataset.image_shape) != 3 or dataset.image_shape == NO_IMAGES:
        raise ValueError("these are rows of a table; `unbraid fit` takes images (codes are scored by `unbraid score`)")
    *sides, channels = dataset.image_shape
    read, state = partial(_read_dataset, dataset), content_digest(dataset, None)
    white = getattr(dataset, "white", None)
    return _Source(
        described, len(dataset), read, state, min(sides), channels=3 if channels == 1 else channels, white=white
    )


def _files_below(folder: Path) -> tuple[list[str], tuple[str, ...]]:
    """The picture files below a folder, in order; and remarks on other files and on links to folders."""
    pictures, links, endings = [], [], Counter[str]()
    for name in sorted(paths_below(folder)):
        path, ending = folder / name, Path(name).suffix.lower()
        if path.is_dir():
            links += [name] if path.is_symlink() else []
        elif ending in PICTURES:
            pictures.append(name)
        elif path.is_file():
            endings[ending or "without ending"] += 1
    remarks = []
    if not endings.keys() <= BESIDE:
        listed = ", ".join(f"{count} {ending}" for ending, count in endings.most_common(NAMED))
        more = " ..." * (len(endings) > NAMED)
        remarks.append(f"{counted(endings.total(), 'file')} of other kinds left out: {listed}{more}")
    if links:
        remarks.append(f"links to folders are not followed: {', '.join(links[:NAMED])}{' ...' * (len(links) > NAMED)}")
    if not pictures:
        none = f"{folder}: no pictures in it or in its subfolders ({', '.join(sorted(PICTURES))})"
        raise ValueError("; ".join([none, *remarks]))
    return pictures, tuple(remarks)


def _state_of(folder: Path, files: list[str]) -> str:
    digest = blake2b(str(folder.resolve()).encode(errors="surrogateescape"), digest_size=16)
    for name in files:
        try:
            stats = (folder / name).stat()
        except OSError as error:  # a link to nothing, or to itself: `_read_files` says so
            digest.update(repr((name, error.errno)).encode())
        else:
            digest.update(repr((name, stats.st_size, stats.st_mtime_ns)).encode())
    return digest.hexdigest()


def _measured(folder: Path, files: list[str]) -> tuple[float, bool, tuple[str, ...]]:
    """Of some pictures the median of the shorter side, whether any has 16 bits, and remarks.

    If none can be read, the side is the largest size.
    """
    images, sides, stack, deep = require("PIL.Image", "data", "reading image files"), [], "", False
    for name in files[:: max(1, len(files) // MEASURED)]:
        try:
            with images.open(folder / name) if (folder / name).is_file() else nullcontext() as image:
                sides += [] if image is None else [min(image.size)]
                deep = deep or (image is not None and image.mode.startswith("I"))
                if image is not None and image.format == "TIFF" and image.n_frames > 1:
                    stack = stack or f"{name} has {image.n_frames} frames"
        except unreadable():
            continue  # `_read_files` says which cannot be read, and why
    hint = "pages='channels' (--data pages=channels) takes them as channels"
    remarks = (f"only the first frame of each file is read: {stack}; {hint}",) if stack else ()
    return float(np.median(sides)) if sides else float(SMALL_SIZES[-1]), deep, remarks


def _white(folder: Path, files: list[str]) -> int:
    """The value of white in pictures of 16 bits, by the largest value of them all."""
    images, most = require("PIL.Image", "data", "reading image files"), 0
    for name in files:
        try:
            with images.open(folder / name) if (folder / name).is_file() else nullcontext() as image:
                values = None if image is None else pixels_of_16_bits(image)
        except unreadable():
            continue  # `_read_files` says which cannot be read, and why
        most = most if values is None else max(most, int(values.max()))
    return white_of(most)


def _read_files(folder: Path, files: list[str], white: int, size: int) -> Iterator[Outcome]:
    errors = unreadable()

    def read(name: str) -> Outcome:
        try:
            return name, square(open_picture(folder / name, white), size), ""
        except errors as error:
            why = (isinstance(error, OSError) and error.strerror) or error
            message = str(why).replace(repr(str(folder / name)), repr(name))  # the page may be read elsewhere
            return name, None, message.splitlines()[0] if message else type(error).__name__

    with ThreadPoolExecutor(n_cores()) as threads:  # Pillow decodes without the interpreter's lock
        waiting = iter(files)
        while slab := list(islice(waiting, SLAB)):
            yield from threads.map(read, slab)


def _read_dataset(dataset: Any, size: int) -> Iterator[Outcome]:
    names = getattr(getattr(dataset, "source", None), "files", None)  # of pictures in a folder
    for start in range(0, len(dataset), SLAB):
        rows = np.arange(start, min(start + SLAB, len(dataset)))
        for row, image in zip(rows, dataset.images(rows), strict=True):
            yield names[row] if names else str(row), square_of(as_bytes(image), size), ""


def _write_raw(
    outcomes: Iterator[Outcome], raw: Path, total: int, progress: Progress | None
) -> tuple[list[str], dict[str, str], set[bytes], int, bool, float]:
    """Write all images one after the other.

    Returns:
        Names, skipped files, digests, number of blank images, whether all are grey, and the brightness of the brightest
        image (99.9 % quantile of its pixels).
    """
    names: list[str] = []
    skipped: dict[str, str] = {}
    seen: set[bytes] = set()
    blank, grey, brightest = 0, True, 0.0
    with raw.open("wb") as file:
        for done, (name, image, reason) in enumerate(outcomes):
            if image is None:
                skipped[name] = reason
            else:
                file.write(image.tobytes())
                names.append(name)
                seen.add(blake2b(image.tobytes(), digest_size=16).digest())
                blank += int((image == image[0, 0]).all())
                grey = grey and bool((image == image[..., :1]).all())
                if brightest < DARK:
                    brightest = max(brightest, float(np.percentile(image, 99.9)))
            if progress and done % SLAB == 0:
                progress("reading images", done, total)
    return names, skipped, seen, blank, grey, brightest


def _write_array(path: Path, raw: Path, shape: tuple[int, int, int, int], channels: int) -> None:
    """Write the raw images as an .npy file with this number of channels."""
    pixels = np.memmap(raw, dtype=np.uint8, mode="r", shape=shape)
    with atomic_write(path) as temporary:
        array = open_memmap(temporary, mode="w+", dtype=np.uint8, shape=(*shape[:3], channels))
        for start in range(0, shape[0], SLAB):
            array[start : start + SLAB] = pixels[start : start + SLAB, ..., :channels]
        array.flush()


def _digest(raw: Path, shape: tuple[int, int, int, int], channels: int) -> str:
    """The digest of the pixels of raw images, with this number of channels."""
    pixels, digest = np.memmap(raw, dtype=np.uint8, mode="r", shape=shape), blake2b(digest_size=16)
    for start in range(0, shape[0], SLAB):
        digest.update(pixels[start : start + SLAB, ..., :channels].tobytes())
    return digest.hexdigest()


def _listed(skipped: Mapping[str, str]) -> str:
    first = "; ".join(f"{name} ({reason})" for name, reason in list(skipped.items())[:NAMED])
    return first + (f"; and {len(skipped) - NAMED} more" if len(skipped) > NAMED else "")
