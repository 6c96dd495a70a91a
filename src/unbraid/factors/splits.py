"""Training and test parts: at random, or cut along the factors."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unbraid._utils.arguments import check_number, check_whole, generator
from unbraid.factors.predicate import predicate
from unbraid.factors.space import FactorSpace, Space
from unbraid.types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Split:
    """Positions of two disjoint parts that make up the whole, each in rising order."""

    train: IntArray
    test: IntArray


def split_at_random(space: Space, test: float = 0.2, *, seed: int = 0) -> Split:
    """A random part of all images for testing.

    Args:
        space: of the dataset.
        test: fraction of images, between 0 and 1; rounded to whole images.
        seed: same seed, same split.

    Raises:
        ValueError: a part would be empty.
    """
    check_number("test", test, least=0, most=1)
    held_out = np.zeros(len(space), dtype=bool)
    held_out[generator(seed).permutation(len(space))[: round(test * len(space))]] = True
    return _split(held_out, f"test={test} of {len(space)} images")


def split_by_combination(space: Space, levels: Mapping[str, int]) -> Split:
    """Test on every image that has all of these levels; train on the rest, which has each but never all of them.

    The compositional split of Mahon et al. 2023 (SNC/NK, section 5.2) holds out one level of each of two factors.

    Args:
        space: of the dataset.
        levels: one level for each of the named factors.

    Raises:
        ValueError: an unknown name, or a part would be empty.

    Example:
        >>> space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
        >>> split_by_combination(space, {"shape": 1, "hue": 0}).test.tolist()
        [3]
    """
    factors = space.factors(np.arange(len(space)))
    held_out = np.ones(len(space), dtype=bool)
    for name, level in levels.items():
        held_out &= factors[:, space.column(name)] == level
    return _split(held_out, f"the combination {dict(levels)}")


def split_by_condition(space: Space, condition: str | Callable[[FloatArray], BoolArray]) -> Split:
    """Test on every image whose factors meet a condition; train on the rest.

    Args:
        space: of the dataset.
        condition: "elevation > 0.79 and red > green + 0.15", or a function from factors (n, n_factors) to a mask
            (n,). On a grid, factors are levels.

    Raises:
        ValueError: the condition cannot be read, gives no mask, or leaves a part empty.
    """
    holds = predicate(condition, space.names) if isinstance(condition, str) else condition
    factors = np.asarray(space.factors(np.arange(len(space))), dtype=np.float64)
    held_out = np.asarray(holds(factors))
    if held_out.shape != (len(space),) or held_out.dtype != bool:
        raise ValueError(
            f"the condition must give a mask ({len(space)},) of booleans; got {held_out.dtype} {held_out.shape}"
        )
    return _split(held_out, f"the condition {condition!r}")


def combinations(space: FactorSpace, names: Sequence[str], n: int, *, seed: int = 0) -> list[dict[str, int]]:
    """`n` different combinations of levels of the named factors, at random: what `split_by_combination` holds out.

    Raises:
        ValueError: an unknown name, or fewer combinations than asked for.
    """
    sizes = tuple(space.sizes[space.column(name)] for name in names)
    n_all = int(np.prod(sizes))
    check_whole("n", n, 1, n_all, why=f"the combinations of {' and '.join(names)}")
    cells = generator(seed).choice(n_all, size=n, replace=False)
    rows = np.stack(np.unravel_index(cells, sizes), axis=1)
    return [dict(zip(names, row, strict=True)) for row in rows.tolist()]


def _split(held_out: BoolArray, what: str) -> Split:
    split = Split(np.flatnonzero(~held_out), np.flatnonzero(held_out))
    if not len(split.train) or not len(split.test):
        empty = "training" if not len(split.train) else "test"
        raise ValueError(f"{what} leaves no image in the {empty} part")
    return split
