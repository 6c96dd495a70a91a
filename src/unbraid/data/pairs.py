"""Images that belong together: pairs that share factors, and series of which each step is known.

Weak supervision (`weak_pairs`) knows only that few factors differ. Supervision by transformation (`Series`) knows
how each image comes from the first of its series, in steps along cyclic factors: labelled pairs, whole turntables,
random walks.
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice, check_draws, check_whole, generator
from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.data.objects import cyclic_columns
from unbraid.data.sampling import rank_within
from unbraid.data.space import FactorSpace, check_grid


@dataclass(frozen=True, eq=False)
class WeakPairs:
    """Pairs of images of which some factors are the same."""

    first: IntArray  # (n,) positions
    second: IntArray  # (n,)
    changed: BoolArray  # (n, n_factors): the factor differs within the pair


@dataclass(frozen=True, eq=False)
class Series:
    """n series of m images, each a known number of steps away from the first of its series.

    `first` moved by `steps` levels along every factor, around where the factor is cyclic, is `index`.
    """

    index: IntArray  # (n, m) positions
    steps: IntArray  # (n, m, n_factors), 0 in the first image
    sizes: tuple[int, ...]  # steps of a full turn of each factor
    actions: IntArray | None = None  # (n, m - 1) action between neighbours, for walks

    @property
    def turns(self) -> FloatArray:
        """(n, m, n_factors) the steps as fractions of a full turn, the group element g of x = g x_1."""
        return self.steps / np.asarray(self.sizes)

    def transitions(self) -> tuple[IntArray, IntArray, IntArray]:
        """Every step of walks, as position (k,), action (k,) and next position (k,), walk after walk.

        Raises:
            ValueError: these are no walks.
        """
        if self.actions is None:
            raise ValueError("only walks have actions; see unbraid.data.pairs.walks")
        return self.index[:, :-1].ravel(), self.actions.ravel(), self.index[:, 1:].ravel()


def weak_pairs(
    space: FactorSpace,
    n: int,
    *,
    changed: int | None = None,
    rule: Literal["one-or-k", "exact"] = "one-or-k",
    seed: int = 0,
) -> WeakPairs:
    """Pairs for Ada-GVAE and Ada-ML-VAE: the second image is the first with some factors drawn anew.

    Args:
        space: of the dataset.
        n: how many pairs, with replacement.
        changed: k, how many factors may change; n_factors - k are shared. Default: drawn for each pair from
            1 .. n_factors - 1.
        rule: "one-or-k" is what the published code does (disentanglement_lib, `simple_dynamics`): 1 or k factors
            with equal odds, each drawn from all its levels, so that it may keep its level and a pair may even be
            equal. "exact": k factors, and every one of them takes another level.
        seed: same seed, same pairs.

    Raises:
        ValueError: k is not within 1 .. n_factors, or, under "exact", a factor has a single level.

    Reference:
        Locatello et al. 2020, "Weakly-Supervised Disentanglement Without Compromises". The LSBD paper (appendix
        F.2) lets two factors change: changed=2.
    """
    check_grid(space)
    n_factors = len(space.sizes)
    check_draws(n_factors, 0, n=n)
    if changed is not None:
        check_whole("changed, where not None,", changed, 1, n_factors, why="the number of factors")
    check_choice("rule", rule, ("one-or-k", "exact"))
    if rule == "exact" and min(space.sizes) < 2:
        raise ValueError("a factor with one level cannot change; take rule='one-or-k'")
    if changed is None and n_factors < 2:
        raise ValueError("one factor alone leaves none to share; give changed=1")
    rng = generator(seed)
    sizes = np.asarray(space.sizes)
    levels = rng.integers(sizes, size=(n, n_factors))
    counts = rng.integers(1, n_factors, size=n) if changed is None else np.full(n, changed)
    if rule == "one-or-k":
        counts = np.where(rng.random(n) < 0.5, 1, counts)
    # The factors of each pair in random order: those at the front are drawn anew.
    chosen = rng.permuted(np.tile(np.arange(n_factors), (n, 1)), axis=1) < counts[:, None]
    if rule == "exact":
        anew = (levels + rng.integers(1, sizes, size=(n, n_factors))) % sizes
    else:
        anew = rng.integers(sizes, size=(n, n_factors))
    moved = np.where(chosen, anew, levels)
    return WeakPairs(space.index(levels), space.index(moved), moved != levels)


def labelled_pairs(space: FactorSpace, n: int, *, seed: int = 0) -> Series:
    """`n` disjoint pairs with the step between their images along every cyclic factor; the other factors agree.

    No image is in two pairs. With every factor cyclic, these are random disjoint pairs of all images.

    Args:
        space: of the dataset, with at least one cyclic factor.
        n: how many; half the number of images at most.
        seed: same seed, same pairs.

    Returns:
        Series of 2 images; steps from 0 to one less than once around.

    Raises:
        ValueError: no factor is cyclic, or there are fewer disjoint pairs.

    Reference:
        Tonnaer et al. 2022 (LSBD), section 6: L = 0, 256, ..., 2048 pairs of 4096 images.

    Example:
        >>> space = FactorSpace(("y", "x"), (64, 64), ("cyclic", "cyclic"))
        >>> pairs = labelled_pairs(space, 256)
        >>> pairs.index.shape, len(np.unique(pairs.index)), bool(pairs.steps[:, 0].any())
        ((256, 2), 512, False)
    """
    check_grid(space)
    rng = generator(seed)
    order = rng.permutation(len(space))
    shared = space.factors(order)
    shared[:, cyclic_columns(space)] = 0
    orbits = space.index(shared)
    # Within an orbit, neighbours in random order are partners; the odd one out of an orbit stays alone.
    by_orbit = np.argsort(orbits, kind="stable")
    ranks = rank_within(orbits)[by_orbit]
    leads = np.flatnonzero((ranks[:-1] % 2 == 0) & (ranks[1:] == ranks[:-1] + 1))
    check_whole("n", n, 0, len(leads), why="there are no more disjoint pairs")
    leads = rng.permutation(leads)[:n]
    index = order[by_orbit[np.stack([leads, leads + 1], axis=1)]]
    return _series(space, index)


def turntables(space: FactorSpace, factor: str, n: int | None = None, *, seed: int = 0) -> Series:
    """Every level of one cyclic factor, for `n` random combinations of the others: objects seen from all around.

    Args:
        space: of the dataset.
        factor: the cyclic factor that turns.
        n: how many objects, without replacement; default all, in the order of the grid.
        seed: same seed, same objects.

    Returns:
        Series of as many images as the factor has levels, in the order of the levels from 0.

    Raises:
        ValueError: the factor is unknown or not cyclic, or there are fewer objects.
    """
    check_grid(space)
    column = space.column(factor)
    if space.kinds[column] != "cyclic":
        raise ValueError(f"factor {factor!r} is {space.kinds[column]} and does not turn")
    grid = np.moveaxis(np.arange(len(space)).reshape(space.sizes), column, -1).reshape(-1, space.sizes[column])
    if n is not None:
        check_whole("n, where not None,", n, 1, len(grid), why="there are no more objects to turn")
        grid = grid[generator(seed).permutation(len(grid))[:n]]
    return _series(space, grid)


def walks(space: FactorSpace, n: int = 50, length: int = 100, *, step: int = 1, seed: int = 0) -> Series:
    """Random walks: at each step one cyclic factor, chosen at random, moves up or down by `step` levels.

    Action 2 k moves the k-th of the cyclic factors up by `step`, action 2 k + 1 moves it down.

    Args:
        space: of the dataset.
        n: how many walks, each from a random image.
        length: images of each walk, the first included.
        step: levels per action. The LSBD paper walks 50 paths of 100 images with 3 / 64 of a turn: step=3 on 64
            levels. Flatland is walked with step=1.
        seed: same seed, same walks.

    Raises:
        ValueError: no factor is cyclic, or the walks are too short.

    Example:
        >>> space = FactorSpace(("y", "x"), (64, 64), ("cyclic", "cyclic"))
        >>> paths = walks(space, step=3)
        >>> paths.index.shape, sorted({int(s) for s in np.abs(np.diff(paths.steps, axis=1)).sum(axis=2).ravel()})
        ((50, 100), [3])
    """
    check_grid(space)
    columns = np.asarray(cyclic_columns(space))
    check_draws(len(space.names), n=n, length=length)
    check_whole("length", length, 2)
    check_whole("step", step, 1, int(np.max(space.sizes)), why="the largest factor is once around")
    rng = generator(seed)
    start = space.factors(rng.integers(len(space), size=n))
    actions = rng.integers(2 * len(columns), size=(n, length - 1))
    moves = np.zeros((n, length, len(space.sizes)), dtype=np.int64)
    walk, time = np.indices(actions.shape)
    moves[walk, time + 1, columns[actions // 2]] = np.where(actions % 2 == 0, step, -step)
    steps = moves.cumsum(axis=1)
    index = space.index((start[:, None] + steps) % np.asarray(space.turns))
    return Series(index, steps, space.turns, actions)


def _series(space: FactorSpace, index: IntArray) -> Series:
    levels = space.factors(index)
    return Series(index, (levels - levels[:, :1]) % np.asarray(space.turns), space.turns)
