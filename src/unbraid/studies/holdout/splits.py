"""Images held out of training, for questions about them afterwards."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import list_of
from unbraid.base.types import BoolArray, IntArray
from unbraid.data import Space
from unbraid.datasets.subset import Without, left_out

__all__ = ["Holdout", "compositional_holdouts", "zero_shot_holdout"]

SplitName: TypeAlias = Literal["combination", "random", "gap"]
TEST_SHARE = 0.2  # of a zero-shot study: validation and test images of the regressors, half of it each


@dataclass(frozen=True)
class Holdout:
    """Images that a model is trained without; `unbraid.datasets.leave_out(dataset, holdout.without)` are the others."""

    name: str  # "shape=1, scale=2", "random 0", or the condition of a gap
    split: SplitName
    without: Without


def compositional_holdouts(
    space: Space,
    factors: Sequence[str],
    *,
    n_combinations: int = 5,
    n_random: int | None = None,
    combinations: Sequence[Sequence[int]] | None = None,
    seed: int = 0,
) -> list[Holdout]:
    """Pairs of levels of two factors to hold out, one pair at a time, and random splits of the same sizes.

    Args:
        space: of the whole dataset.
        factors: names of two factors that have levels.
        n_combinations: pairs drawn without replacement, among those that have images while both of their levels also
            occur without the other.
        n_random: random splits, one per pair at most and by default. The k-th has the size of the k-th pair.
        combinations: the pairs themselves, instead of drawing any.
        seed: of the pairs; random split k takes seed + k.

    Raises:
        ValueError: unknown or continuous factors, fewer pairs than asked for, or more random splits than pairs.

    Reference:
        Mahon et al. 2023, "Correcting Flaws in Common Disentanglement Metrics", section 5.2 and appendix G: one pair of
        levels per model (five of dSprites, six of MPI3D, eight of 3D Shapes), and as many "normal test sets". The paper
        does not say that no pair comes twice, nor how large its random test sets are.

    Example:
        >>> from unbraid.data import FactorSpace
        >>> space = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"))
        >>> [each.name for each in compositional_holdouts(space, ["shape", "hue"], n_combinations=1)]
        ['shape=1, hue=0', 'random 0']
    """
    counts = _pair_counts(space, factors := list_of("factors", factors))
    pairs = _drawn(counts, factors, n_combinations, seed) if combinations is None else list(combinations)
    for pair in pairs:
        _check_pair(counts, factors, pair)
    held_out = [
        Holdout(f"{factors[0]}={a}, {factors[1]}={b}", "combination", {factors[0]: int(a), factors[1]: int(b)})
        for a, b in pairs
    ]
    sizes = [int(counts[a, b]) for a, b in pairs]
    n_random = len(pairs) if n_random is None else n_random
    if not 0 <= n_random <= len(pairs):
        raise ValueError(f"n_random must be 0 to {len(pairs)}, one per combination; got {n_random}")
    return held_out + [
        Holdout(f"random {k}", "random", {"random": size, "seed": seed + k}) for k, size in enumerate(sizes[:n_random])
    ]


def zero_shot_holdout(space: Space, gap: str, *, seed: int = 0) -> Holdout:
    """A gap, and with it the random images that regressors are tuned and tested on beside it.

    Args:
        space: of the whole dataset.
        gap: a condition on the factors, such as "elevation > 0.79 and red > green + 0.15".
        seed: of the random images, one in five.

    Raises:
        ValueError: the condition cannot be read, no image meets it, or too few are left.

    Reference:
        Eastwood & Williams 2018, section 4.1 and appendix B.2: images are first split into 80 % for training, 10 % for
        validation and 10 % for testing, then those of the gap are taken out of each part.
    """
    holdout = Holdout(gap, "gap", [gap, _test_images(space, seed)])
    left_out(space, holdout.without)
    return holdout


def zero_shot_parts(space: Space, gap: str, *, seed: int = 0) -> tuple[IntArray, IntArray, IntArray]:
    """Positions of validation images, test images and images in the gap; all others are for training.

    Raises:
        ValueError: as `zero_shot_holdout`, or nothing is left outside the gap to validate or to test on.
    """
    inside = left_out(space, gap)
    outside = np.flatnonzero(left_out(space, _test_images(space, seed)) & ~inside)
    if len(outside) < 2:
        raise ValueError(f"gap {gap!r} leaves {len(outside)} of the images drawn for testing outside it; 2 are needed")
    valid, test = np.array_split(np.random.default_rng(seed).permutation(outside), 2)
    return np.sort(valid), np.sort(test), np.flatnonzero(inside)


def _test_images(space: Space, seed: int) -> dict[str, int]:
    return {"random": max(2, round(TEST_SHARE * len(space))), "seed": seed}


def _pair_counts(space: Space, factors: Sequence[str]) -> IntArray:
    """(levels of the first factor, levels of the second): images of each pair."""
    if len(factors) != 2 or len(set(factors)) < 2:
        raise ValueError(f"factors must name two different factors; got {', '.join(factors) or 'none'}")
    columns = [space.column(name) for name in factors]
    for name, column in zip(factors, columns, strict=True):
        if space.kinds[column] == "continuous":
            raise ValueError(f"factor {name!r} is continuous and has no levels to hold out; hold out a gap instead")
    levels = np.asarray(space.factors(np.arange(len(space))))[:, columns].astype(np.int64)
    sizes = tuple(space.sizes[column] for column in columns)
    return np.bincount(np.ravel_multi_index(tuple(levels.T), sizes), minlength=sizes[0] * sizes[1]).reshape(sizes)


def _can_be_held_out(counts: IntArray) -> BoolArray:
    """Pairs that have images while both of their levels also occur without the other."""
    return (counts > 0) & (counts < counts.sum(axis=0)) & (counts < counts.sum(axis=1)[:, None])


def _drawn(counts: IntArray, factors: Sequence[str], n: int, seed: int) -> list[tuple[int, int]]:
    possible = np.argwhere(_can_be_held_out(counts))
    if n > len(possible):
        raise ValueError(f"{' and '.join(factors)} have {len(possible)} combinations that can be held out; got n {n}")
    # A prefix of one order, so that a larger study keeps the pairs of a smaller one.
    chosen = np.random.default_rng(seed).permutation(len(possible))[:n]
    return [(int(a), int(b)) for a, b in possible[chosen]]


def _check_pair(counts: IntArray, factors: Sequence[str], pair: Sequence[int]) -> None:
    inside = len(pair) == 2 and all(0 <= level < size for level, size in zip(pair, counts.shape, strict=True))
    if not inside or not _can_be_held_out(counts)[tuple(pair)]:
        raise ValueError(
            f"combination {list(pair)} of {' and '.join(factors)} ({counts.shape[0]} and {counts.shape[1]} levels) "
            "cannot be held out: it must have images, and both of its levels others without it"
        )
