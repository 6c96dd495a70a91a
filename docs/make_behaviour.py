"""Score codes of known faults by every metric: docs/behaviour.json, which the pages about metrics show.

python docs/make_behaviour.py             a minute or two on one core
python docs/make_behaviour.py mcc r2      these anew, the others as they are
"""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from unbraid import Representation, score
from unbraid.factors import FactorSpace
from unbraid.metrics import MEASURES, METRICS, udr
from unbraid.types import FloatArray, IntArray

FILE = Path(__file__).parent / "behaviour.json"
SPACE = FactorSpace(("shape", "size", "height", "hue"), (3, 4, 5, 8), ("categorical", "ordinal", "ordinal", "cyclic"))
REPEATS = 8
GAP = "size > 1 and height > 2"
LOG_VARIANCE = -4.0
MODELS = 4  # that udr compares

Codes = Callable[[IntArray, np.random.Generator], FloatArray]


def standard(factors: IntArray) -> FloatArray:
    """Each factor in one code of variance 1."""
    return (factors - factors.mean(axis=0)) / factors.std(axis=0)


def rotation(n: int, rng: np.random.Generator) -> FloatArray:
    """A random rotation, drawn evenly."""
    turned, upper = np.linalg.qr(rng.standard_normal((n, n)))
    return turned * np.sign(np.diag(upper))


def split(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """Each factor in two codes, neither of which tells anything alone: a random number, and the factor plus it."""
    sizes = np.array(SPACE.sizes)
    shift = rng.integers(0, sizes, factors.shape)
    return np.concatenate([standard(shift), standard((factors + shift) % sizes)], axis=1)


def circle(factors: IntArray, _rng: np.random.Generator) -> FloatArray:
    """Hue as a point on a circle, the others in one code each."""
    angle = 2 * np.pi * factors[:, 3] / SPACE.sizes[3]
    return np.column_stack([standard(factors)[:, :3], np.sqrt(2) * np.cos(angle), np.sqrt(2) * np.sin(angle)])


SITUATIONS: Mapping[str, Codes] = {
    "perfect": lambda factors, _: standard(factors),
    "noisy": lambda factors, rng: standard(factors) + 0.3 * rng.standard_normal(factors.shape),
    "circle": circle,
    "twice": lambda factors, _: np.concatenate([standard(factors), -2.0 * standard(factors)], axis=1),
    "one lost": lambda factors, _: standard(factors)[:, 1:],
    "two in one": lambda factors, _: standard(
        np.column_stack([factors[:, 0] + SPACE.sizes[0] * factors[:, 1], factors[:, 2:]])
    ),
    "split": split,
    "rotated": lambda factors, rng: standard(factors) @ rotation(factors.shape[1], rng),
    "noise": lambda factors, rng: rng.standard_normal(factors.shape),
}


def scores_of(make: Codes, names: Sequence[str]) -> dict[str, float | None]:
    """Headline of these metrics; None where one has no meaning."""
    factors = np.tile(SPACE.grid(), (REPEATS, 1))
    codes = make(factors, np.random.default_rng(0))
    card = score(
        Representation(
            codes, factors, log_variances=np.full(codes.shape, LOG_VARIANCE),
            names=SPACE.names, kinds=SPACE.kinds, sizes=SPACE.sizes,
        ),
        gap=GAP, metrics=["mig", *(name for name in names if name in METRICS)],
    )  # fmt: skip
    found = {
        name: round(card.scored[name].headline, 3) if name in card.scored else None for name in names if name in METRICS
    }
    if "tad" in names:
        # Its attributes have two values: whether each factor is in its upper half.
        upper = factors >= np.array(SPACE.sizes) / 2
        found["tad"] = round(score(codes, upper + 0, metrics="tad").scored["tad"].headline, 3)
    if "udr" in names:
        # Siblings differ as trained models do: in the order and sign of their codes, and in whatever is random.
        siblings = []
        for seed in range(MODELS):
            rng = np.random.default_rng(seed)
            own = make(factors, rng)
            siblings.append((own * rng.choice([-1, 1], own.shape[1]))[:, rng.permutation(own.shape[1])])
        found["udr"] = round(float(udr(siblings).scores.mean()), 3)
    if "d_lsbd" in names:
        # Rows that repeat a cell have no symmetry to speak of: each cell once.
        once = score(make(SPACE.grid(), np.random.default_rng(0)), SPACE.grid(), kinds=SPACE.kinds, metrics="d_lsbd")
        found["d_lsbd"] = round(once.scored["d_lsbd"].headline, 3)
    return found


def main() -> None:
    """Write the file."""
    names = sys.argv[1:] or list(MEASURES)
    kept = json.loads(FILE.read_text(encoding="utf-8")) if sys.argv[1:] else dict.fromkeys(SITUATIONS, {})
    table = {}
    for situation, make in SITUATIONS.items():
        known = kept[situation] | scores_of(make, names)
        table[situation] = {name: known[name] for name in MEASURES if name in known}
    FILE.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    for name in MEASURES:
        print(f"{name:<20}", *(f"{'-' if (v := row[name]) is None else format(v, '.2f'):>7}" for row in table.values()))


if __name__ == "__main__":
    main()
