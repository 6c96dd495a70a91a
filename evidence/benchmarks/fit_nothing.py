"""How often `unbraid fit` calls a model disentangled where the images have nothing to disentangle, and where they have.

    python evidence/benchmarks/fit_nothing.py --tries 10
    python evidence/benchmarks/fit_nothing.py --tries 3 --network conv

Images of noise, of shuffled pixels, of one factor, of twenty clusters, of a rotated Gaussian mixture, and the sprites
of `make demo`, by small models at 16 x 16, four seeds of one setting. A try of all six takes about a minute on two
cores with dense layers, a quarter of an hour with convolutions.
"""

import argparse
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import numpy as np

import unbraid
from unbraid.base.types import UInt8Array
from unbraid.datasets import load
from unbraid.fitting.plan import FinalRound, Network, Plan, SearchRound, Setting

SETTING = Setting(family="beta_tcvae", strength=2)
SPRITES = load("sprites", shrink=4, without="position_y > 15 or orientation > 0")
N = 3000


STEPS: Mapping[Network, tuple[int, int]] = {"dense": (400, 1500), "conv": (2000, 8000)}  # of both rounds


def plan(network: Network, seed: int) -> Plan:
    first, last = STEPS[network]
    search = SearchRound(size=16, network=network, steps=first, seeds=2, settings=[SETTING])
    final = FinalRound(size=16, network=network, steps=last, seeds=4, settings=1, multiples=[1.0])
    return Plan(minutes=1, size=16, latents=6, seed=seed, search=search, final=final)


def sprites(rng: np.random.Generator) -> UInt8Array:
    return SPRITES.images(np.sort(rng.permutation(len(SPRITES))[:N]))


def noise(rng: np.random.Generator) -> UInt8Array:
    return rng.integers(0, 256, (N, 16, 16, 1), dtype=np.uint8)


def shuffled(rng: np.random.Generator) -> UInt8Array:
    """The pixels of every image in an order of its own."""
    images = sprites(rng)
    return rng.permuted(images.reshape(N, -1), axis=1).reshape(images.shape)


def one_factor(rng: np.random.Generator) -> UInt8Array:
    """One sprite at 32 places in a row."""
    factors = SPRITES.space.factors(np.arange(len(SPRITES)))
    row = SPRITES.images(np.flatnonzero((factors[:, 0] == 0) & (factors[:, 1] == 3) & (factors[:, 3] == 8)))
    return grainy(row[rng.integers(0, len(row), N)], rng)


def clusters(rng: np.random.Generator) -> UInt8Array:
    return grainy(rng.integers(0, 256, (20, 16, 16, 1))[rng.integers(0, 20, N)], rng)


def rotated(rng: np.random.Generator) -> UInt8Array:
    """Four Gaussian factors of equal variance: no axes are better than others."""
    mixing = np.linalg.qr(rng.normal(size=(256, 4)))[0].T
    return np.clip(128 + 300 * (rng.normal(size=(N, 4)) @ mixing), 0, 255).reshape(-1, 16, 16, 1).astype(np.uint8)


def grainy(images: np.ndarray, rng: np.random.Generator) -> UInt8Array:
    return np.clip(images + rng.normal(0, 4, images.shape), 0, 255).astype(np.uint8)


KINDS: tuple[Callable[[np.random.Generator], UInt8Array], ...] = (
    noise, shuffled, one_factor, clusters, rotated, sprites,
)  # fmt: skip


def main() -> None:
    """Print a line for each kind of images."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tries", type=int, default=3)
    parser.add_argument("--network", choices=STEPS, default="dense")
    given = parser.parse_args()
    tries = given.tries
    for kind in KINDS:
        chosen, reasons = 0, set()
        for number in range(tries):
            with tempfile.TemporaryDirectory() as out:
                found = unbraid.fit(
                    kind(np.random.default_rng(number)), Path(out), plan=plan(given.network, 10 * number)
                )
                chosen += found.run is not None
                reasons.add(found.choice.reason)
        print(f"{kind.__name__:12} chosen {chosen} of {tries}; {'; '.join(sorted(filter(None, reasons)))}", flush=True)


if __name__ == "__main__":
    main()
