"""Images per second in random batches, beside plain ways of reading the same images.

Run: python evidence/benchmarks/datasets.py [--images 92160] [--seconds 1.0] [--json FILE]

Everything runs on one thread, on warm caches, and takes the fastest of the batches drawn within the time given:
the machine's other work slows every row alike, and the ratio to `numpy.unpackbits` is what to compare.
The readers of HDF5 and of plain arrays see the first --images images of the sprites; ours draws from the whole set.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np

from unbraid.base.types import IntArray, UInt8Array
from unbraid.datasets import load
from unbraid.datasets.image_store import StoredImages, cache_folder, content_of, write
from unbraid.datasets.sprites import VERSION, Sprites

BATCH = 64
BASELINE = "numpy.unpackbits of a memory map"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--images", type=int, default=92_160, help="images that the plain readers see")
    parser.add_argument("--seconds", type=float, default=1.0, help="time for each row")
    parser.add_argument("--json", type=Path, help="write the numbers here as well")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rates = measure(Path(folder), arguments.images, arguments.seconds)
    print(f"{'random batches of 64':<48}{'images/s':>12}{'ratio':>9}")
    for name, rate in rates.items():
        print(f"{name:<48}{rate:>12,.0f}{rate / rates[BASELINE]:>9.4f}")
    if arguments.json:
        arguments.json.write_text(json.dumps(rates, indent=1) + "\n")


def measure(root: Path, n_images: int, seconds: float) -> dict[str, float]:
    started = time.perf_counter()
    # Cached through `load` in a cold process, this would time the compiler; the store is built in the open instead.
    folder = cache_folder(root, "sprites", VERSION)
    write(folder, content_of(Sprites(), binary=True))
    built = time.perf_counter() - started
    packed = load("sprites", root)
    assert isinstance(packed, StoredImages)
    print(f"all {len(packed):,} sprites drawn and stored in {built:.1f} s, first compilation included\n")

    rows = np.load(folder / "images.npy", mmap_mode="r")
    pixels = packed.images(np.arange(n_images))
    np.save(root / "plain.npy", pixels)
    plain = np.load(root / "plain.npy", mmap_mode="r")
    with h5py.File(root / "sprites.h5", "w") as file:
        # The official dSprites file has chunks of 23 040 images by 2 rows by 4 columns.
        wide = (min(23_040, n_images), 2, 4, 1)
        file.create_dataset("wide", data=pixels, chunks=wide, compression="gzip", compression_opts=1)
        file.create_dataset("single", data=pixels, chunks=(1, 64, 64, 1), compression="gzip", compression_opts=1)

    with h5py.File(root / "sprites.h5", "r") as file:
        readers: dict[str, tuple[int, Callable[[IntArray], UInt8Array]]] = {
            "sprites, packed cache": (len(packed), packed.images),
            "sprites, drawn on demand": (len(packed), Sprites().images),
            "sprites, drawn on demand, anti-aliased": (len(packed), Sprites(antialias=True).images),
            "square, drawn on demand": (4096, load("square", root).images),
            "arrow, drawn on demand": (4096, load("arrow", root).images),
            "flatland": (100, load("flatland", root).images),
            BASELINE: (len(packed), lambda index: unpacked(rows, index)),
            "plain uint8 memory map": (n_images, lambda index: np.asarray(plain[index])),
            "HDF5, one image per chunk, gzip": (n_images, lambda index: chunked(file["single"], index)),
            "HDF5, chunks as in the official dSprites, gzip": (n_images, lambda index: chunked(file["wide"], index)),
        }
        for limit, read in list(readers.values())[6:]:
            index = np.arange(0, min(limit, n_images), n_images // 8)
            assert np.array_equal(read(index), packed.images(index)), "a reader gives other images"
        return {name: rate(read, limit, seconds) for name, (limit, read) in readers.items()}


def unpacked(rows: UInt8Array, index: IntArray) -> UInt8Array:
    return (np.unpackbits(rows[index], axis=1) * np.uint8(255)).reshape(-1, 64, 64, 1)


def chunked(dataset: h5py.Dataset, index: IntArray) -> UInt8Array:
    # h5py wants rising positions without repeats.
    distinct, order = np.unique(index, return_inverse=True)
    return dataset[distinct][order]


def rate(read: Callable[[IntArray], UInt8Array], limit: int, seconds: float) -> float:
    """Images per second of the fastest batch."""
    rng = np.random.default_rng(0)
    read(rng.integers(limit, size=BATCH))
    best, until = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < until:
        index = rng.integers(limit, size=BATCH)
        started = time.perf_counter()
        read(index)
        best = min(best, time.perf_counter() - started)
    return BATCH / best


if __name__ == "__main__":
    main()
