"""Codes whose faults are known, because they were made on purpose, with the factors that they code."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TypeAlias

import numpy as np

from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.data import FactorSpace, Representation
from unbraid.metrics.udr import rotation
from unbraid.scoring.processes import PROCESS_CASES

SPACE = FactorSpace(("shape", "size", "height", "hue"), (3, 4, 5, 8), ("categorical", "ordinal", "ordinal", "cyclic"))
SIZES = np.array(SPACE.sizes)
REPEATS = 8  # of each combination
FEW = 240  # rows
WIDE_ROWS = 200
RARE = 20  # classes of half a percent
DICTIONARY = 64  # codes
GAP = "size > 1 and height > 2"  # for what needs one
LOG_VARIANCE = -4.0

Codes: TypeAlias = Callable[[IntArray, np.random.Generator], FloatArray]
Case: TypeAlias = Callable[[np.random.Generator], Representation]


def standard(factors: ArrayLike) -> FloatArray:
    """Each factor in one code of variance 1."""
    columns = np.asarray(factors, dtype=float)
    return (columns - columns.mean(axis=0)) / columns.std(axis=0)


def rotated(factors: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """Every factor in every code."""
    codes = standard(factors)
    return codes @ rotation(codes.shape[1], rng)


def split(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """Each factor in two codes, neither of which tells anything alone: a random number, and the factor plus it."""
    shift = rng.integers(0, SIZES, factors.shape)
    return np.concatenate([standard(shift), standard((factors + shift) % SIZES)], axis=1)


def circle(factors: ArrayLike, _rng: np.random.Generator) -> FloatArray:
    """Hue as a point on a circle, the others in one code each."""
    columns = np.asarray(factors)
    angle = 2 * np.pi * columns[:, 3] / SPACE.sizes[3]
    return np.column_stack([standard(columns)[:, :3], np.sqrt(2) * np.cos(angle), np.sqrt(2) * np.sin(angle)])


def noisy(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """Each factor in one code, with noise of a third of its spread."""
    return standard(factors) + 0.3 * rng.standard_normal(factors.shape)


def noise(factors: ArrayLike, rng: np.random.Generator) -> FloatArray:
    """As many codes as factors, of which none tells anything."""
    return rng.standard_normal(np.shape(factors))


# On the grid of all combinations.
SITUATIONS: Mapping[str, Codes] = MappingProxyType(
    {
        "perfect": lambda factors, _: standard(factors),
        "noisy": noisy,
        "circle": circle,
        "twice": lambda factors, _: np.concatenate([standard(factors), -2.0 * standard(factors)], axis=1),
        "one lost": lambda factors, _: standard(factors)[:, 1:],
        "two in one": lambda factors, _: standard(
            np.column_stack([factors[:, 0] + SPACE.sizes[0] * factors[:, 1], factors[:, 2:]])
        ),
        "split": split,
        "rotated": rotated,
        "noise": noise,
    }
)

# Of noisy codes: what must leave a score as it is.
CHANGES: Mapping[str, Codes] = MappingProxyType(
    {
        "reordered and flipped": lambda factors, rng: -noisy(factors, rng)[:, ::-1],
        "scaled": lambda factors, rng: noisy(factors, rng) * 10.0 ** np.arange(-2, 2),
        # One has no variance, the other what rounding makes of none.
        "with idle codes": lambda factors, rng: np.column_stack(
            [noisy(factors, rng), np.full((len(factors), 2), (0.5, 0.7))]
        ),
    }
)


def grid_case(codes: Codes, repeats: int = REPEATS) -> Case:
    """These codes of the grid."""

    def case(rng: np.random.Generator) -> Representation:
        factors = np.tile(SPACE.grid(), (repeats, 1))
        return coded(codes(factors, rng), factors)

    return case


def _uneven(rng: np.random.Generator) -> IntArray:
    """Levels half as frequent as the one before."""
    shares = [0.5 ** np.arange(size) for size in SPACE.sizes]
    drawn = [rng.choice(len(share), REPEATS * len(SPACE), p=share / share.sum()) for share in shares]
    return np.stack(drawn, axis=1)


def _dependent(rng: np.random.Generator) -> IntArray:
    """Three rows in ten have the height that their size would have it."""
    factors = np.tile(SPACE.grid(), (REPEATS, 1))
    tied = rng.random(len(factors)) < 0.3
    factors[tied, 2] = factors[tied, 1]
    return factors


def _few(rng: np.random.Generator) -> IntArray:
    return rng.integers(0, SIZES, (FEW, len(SIZES)))


def _wide_noise(rng: np.random.Generator) -> Representation:
    """Half as many codes as rows."""
    factors = rng.integers(0, SIZES, (WIDE_ROWS, len(SIZES)))
    return coded(rng.standard_normal((WIDE_ROWS, WIDE_ROWS // 2)), factors)


def _heavy_noise(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """Without a variance: a few rows lie far beyond the others."""
    return rng.standard_cauchy(factors.shape)


def _rare(rng: np.random.Generator) -> Representation:
    """Of 2 000 rows, twenty classes hold ten each; 128 codes tell nothing."""
    kinds = np.repeat(np.arange(2 + RARE), [900, 900] + [10] * RARE)
    factors = np.column_stack([rng.permutation(kinds), rng.integers(0, 2, len(kinds))])
    codes = rng.standard_normal((len(kinds), 128))
    return Representation(
        codes, factors, log_variances=np.full(codes.shape, LOG_VARIANCE), names=("class", "batch"),
        kinds=("categorical", "categorical"),
    )  # fmt: skip


def _constant(factors: IntArray, _rng: np.random.Generator) -> FloatArray:
    """All dead: each code has one value."""
    return np.full(factors.shape, (0.0, 0.5, -1.0, 0.7))


def _nearly_constant(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """A mean is all that was learnt: each code has one value, but for a billionth that tells nothing."""
    return 0.5 + 1e-9 * rng.standard_normal(factors.shape)


def _all_alike(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """One code many times over: all factors at once, and noise."""
    code = standard(factors).sum(axis=1) + rng.standard_normal(len(factors))
    return np.repeat(code[:, None], DICTIONARY, axis=1)


def _one_copied(factors: IntArray, _rng: np.random.Generator) -> FloatArray:
    """The last factor in every code, the others in none."""
    return np.repeat(standard(factors)[:, -1:], 2 * factors.shape[1], axis=1)


def _sparse(factors: IntArray, rng: np.random.Generator) -> FloatArray:
    """Many codes that are mostly zero, and tell nothing."""
    shape = len(factors), DICTIONARY
    return np.where(rng.random(shape) < 0.1, np.abs(rng.standard_normal(shape)), 0.0)


def _real(rng: np.random.Generator) -> FloatArray:
    return rng.random((REPEATS * len(SPACE), len(SIZES))) * SIZES


def _angle(rng: np.random.Generator) -> Representation:
    factors = _real(rng)
    codes = circle(factors, rng)
    factors[:, 3] *= 2 * np.pi / SPACE.sizes[3]
    return coded(codes, factors, ("continuous", "continuous", "continuous", "cyclic"))


GROUPS: Mapping[str, Mapping[str, Case]] = MappingProxyType(
    {
        "faults": {
            **{name: grid_case(make) for name, make in {**SITUATIONS, **CHANGES}.items()},
            "beside codes of noise": grid_case(
                lambda factors, rng: np.column_stack([standard(factors), noise(factors, rng)])
            ),
        },
        "factors": {
            "uneven levels": lambda rng: coded(standard(factors := _uneven(rng)), factors),
            "dependent factors": lambda rng: coded(standard(factors := _dependent(rng)), factors),
            "dependent factors, rotated": lambda rng: coded(rotated(factors := _dependent(rng), rng), factors),
            "few rows": lambda rng: coded(standard(factors := _few(rng)), factors),
            "continuous factors": lambda rng: coded(standard(factors := _real(rng)), factors, ("continuous",) * 4),
            "continuous, rotated": lambda rng: coded(rotated(factors := _real(rng), rng), factors, ("continuous",) * 4),
            "angle on a circle": _angle,
        },
        "noise": {
            "uneven levels, noise": lambda rng: coded(noise(factors := _uneven(rng), rng), factors),
            "few rows, noise": lambda rng: coded(noise(factors := _few(rng), rng), factors),
            "heavy-tailed noise": grid_case(_heavy_noise),
            "many codes, few rows, noise": _wide_noise,
            "rare classes, noise": _rare,
        },
        "null": {
            "constant": grid_case(_constant),
            "nearly constant": grid_case(_nearly_constant),
            "sparse noise": grid_case(_sparse, 1),
            "all alike": grid_case(_all_alike, 1),
            "one factor copied": grid_case(_one_copied),
        },
        "processes": PROCESS_CASES,
    }
)
CASES: Mapping[str, Case] = MappingProxyType({name: case for group in GROUPS.values() for name, case in group.items()})


def coded(codes: FloatArray, factors: ArrayLike, kinds: tuple[Kind, ...] = SPACE.kinds) -> Representation:
    """Codes and their factors, with all that any metric asks for."""
    whole = kinds == SPACE.kinds
    return Representation(
        codes, np.asarray(factors), log_variances=np.full(codes.shape, LOG_VARIANCE),
        names=SPACE.names, kinds=kinds, sizes=SPACE.sizes if whole else None,
    )  # fmt: skip


def upper_corner(factors: FloatArray) -> BoolArray:
    """A gap of other factors than the grid's: where the first two are above their middle."""
    return (factors[:, :2] > (factors[:, :2].min(axis=0) + factors[:, :2].max(axis=0)) / 2).all(axis=1)


def in_halves(case: Representation) -> Representation:
    """The same codes beside attributes of two values: whether each factor is in its upper half."""
    middle = (case.factors.min(axis=0) + case.factors.max(axis=0)) / 2
    kinds: tuple[Kind, ...] = ("categorical",) * len(case.names)
    return Representation(case.codes, (case.factors > middle) + 0, names=case.names, kinds=kinds)
