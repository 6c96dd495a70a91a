"""Independence score: do steps along different factors move codes in orthogonal directions?"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.cyclic import cyclic_sizes
from unbraid.metrics._shared.inputs import Inputs, NotDefined, check_inputs
from unbraid.metrics._shared.interventions import combinations
from unbraid.metrics._shared.metric import GRID, Metric
from unbraid.metrics._shared.sharing import shared

STANDING_STILL = 1e-6  # length of a move, over the typical length of a code, that is only rounding (single precision)
CHUNK = 8192  # rows whose directions are held at once
NULL_DRAWS = 3


@dataclass(frozen=True, eq=False, repr=False)
class IndependenceScore(Shown):
    score: float
    per_subgroup: FloatArray  # (n_subgroups,) 1 less the mean overlap of each subgroup with the others
    subgroups: IntArray  # (n_subgroups,) columns of the factors that were stepped along and move the codes
    overlap: FloatArray  # (n_subgroups, n_subgroups) mean |max over steps of the cosine of their moves|
    matrices: FloatArray  # (n_subgroups, 2, n_codes, n_codes) fitted step up and step down
    fit_error: FloatArray  # (n_subgroups, 2) squared error of the fit over the squared move it explains, 0 to 1
    angles: FloatArray  # (n_subgroups, 2) radians by which each step turns its plane
    notes: tuple[str, ...] = ()


def independence_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
) -> IndependenceScore:
    """One minus the overlap between the directions in which steps along different factors move the codes.

    A step is one level up or down along one factor with the others held: around the circle for a cyclic factor, to the
    next level that there is for an ordinal one, whatever its number. Each is fitted by a linear map rho of codes that
    moves two dimensions at most. With d(z) the unit vector along z - rho z, the score is 1 - mean over samples and
    pairs of factors of |max over their steps of d_a(z) . d_b(z)|.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise; they are centred first.
        factors: (n_samples, n_factors) levels. Rows must have neighbours: rows one step away along the factor with
            all else equal. A full grid is best. Where several rows share a cell, a step leads to their mean.
        kinds: kind of each factor. Categorical and continuous factors have no steps.
        seed: unused; the score is deterministic.
        sizes: number of levels of each factor, around which cyclic ones wrap; default the highest present + 1. Where
            the last level is the first again, one less than there are (`FactorSpace.turns`).

    Returns:
        IndependenceScore. `score` in [0, 1], higher is better. Factors that move no code are left out; with fewer
        than two others the score is 0. Chance depends on the number of codes: unrelated directions are nearly
        orthogonal where there are many, so that noise scores high (`independence_of_noise`); `fit_error` near 1
        gives it away. Unchanged by rotating the whole latent space; not by scaling single codes.

    Raises:
        ValueError: what every metric refuses, or levels of a cyclic factor out of range.
        NotDefined: fewer than two factors have steps from at least twice as many rows as codes that vary.

    Reference:
        Painter et al. 2020, "Linear Disentangled Representations and Unsupervised Action Estimation", as computed by
        the authors' code. Departs from it in three ways, all to have one answer: rho, there fitted by Adam, is the
        identity plus rank 2 of least squared error, in closed form (reduced-rank regression); codes are centred; and
        directions are compared on all samples, not on those that happened to take the step.

    Example:
        >>> space = FactorSpace(("x", "y"), (8, 8), ("cyclic", "cyclic"))
        >>> angle = space.grid() * 2 * np.pi / 8
        >>> torus = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        >>> round(independence_score(torus, space.grid(), kinds=space.kinds).score, 12)
        1.0
    """
    inputs = check_inputs(codes, factors, kinds, seed)
    return _of_codes(inputs.codes, _all_steps(inputs, sizes))


def _of_codes(codes: FloatArray, steps: dict[int, "_Steps"]) -> IndependenceScore:
    """Of codes beside factors with these steps."""
    centred = codes - codes.mean(axis=0)
    fits, unfit = _fits(centred, steps)
    if len(fits) < 2:
        raise NotDefined("needs at least two cyclic or ordinal factors along which rows have neighbours" + unfit)
    n_codes = codes.shape[1]
    moving = [factor for factor, both in fits.items() if any(fit.moves for fit in both)]
    fewest = min(fit.n_rows for both in fits.values() for fit in both)
    notes = [f"steps along factors {', '.join(map(str, fits))}, each fitted on {fewest} rows or more{unfit}"]
    notes += [f"factor {factor} moves no code and is left out" for factor in fits if factor not in moving]
    if len(moving) < 2:
        notes.append("fewer than two factors move the codes: the score is 0")
    actions = [fit for factor in moving for fit in fits[factor]]
    matrices = [np.eye(n_codes) + fit.plane @ fit.free.T for fit in actions]
    groups = [[2 * group, 2 * group + 1] for group in range(len(moving))]
    planes, free = [fit.plane for fit in actions], [fit.free for fit in actions]
    score, overlap = independence_from_actions(centred, planes, free, groups)
    return IndependenceScore(
        score=score,
        per_subgroup=1 - overlap.sum(axis=1) / max(len(moving) - 1, 1) if len(moving) > 1 else np.zeros(len(moving)),
        subgroups=np.array(moving, dtype=np.int64),
        overlap=overlap,
        matrices=np.array(matrices).reshape(-1, 2, n_codes, n_codes),
        fit_error=np.array([[fit.error for fit in fits[factor]] for factor in moving]).reshape(-1, 2),
        angles=np.array([[fit.angle for fit in fits[factor]] for factor in moving]).reshape(-1, 2),
        notes=tuple(notes),
    )


def independence_of_noise(inputs: Inputs) -> Noise:
    """Higher the more codes there are."""
    # No law of its own: rows shuffled against the factors.
    rng, steps = np.random.default_rng(0), _all_steps(inputs, None)
    return drawn([_of_codes(rng.permutation(inputs.codes), steps).score for _ in range(NULL_DRAWS)])


def independence_from_actions(
    codes: FloatArray, planes: Sequence[FloatArray], free: Sequence[FloatArray], groups: Sequence[Sequence[int]]
) -> tuple[float, FloatArray]:
    """The score of given actions, and the mean overlap (n_groups, n_groups) of each two groups of them.

    Args:
        codes: (n_samples, n_codes).
        planes, free: (n_codes, rank) of each action, which takes z to z + plane @ free.T @ z.
        groups: which actions belong together, each a step along the same factor.
    """
    scale = np.sqrt((codes**2).sum(axis=1).mean())
    overlap = np.zeros((len(groups), len(groups)))
    for start in range(0, len(codes), CHUNK):
        part = codes[start : start + CHUNK]
        directions = [_directions(part, *action, STANDING_STILL * scale) for action in zip(planes, free, strict=True)]
        for one in range(len(groups)):
            for other in range(one):
                cosines = [
                    np.einsum("nr,nr->n", directions[a] @ (planes[a].T @ planes[b]), directions[b])
                    for a in groups[one]
                    for b in groups[other]
                ]
                overlap[one, other] += np.abs(np.max(cosines, axis=0)).sum() / len(codes)
    overlap += overlap.T
    n_pairs = len(groups) * (len(groups) - 1)
    return (float(np.clip(1 - overlap.sum() / n_pairs, 0.0, 1.0)) if n_pairs else 0.0), overlap


def _directions(codes: FloatArray, plane: FloatArray, free: FloatArray, still: float) -> FloatArray:
    """(n, rank) coordinates in `plane` of unit vectors along which rows move; 0 where that is less than `still`."""
    moves = -codes @ free
    lengths = np.linalg.norm(moves @ plane.T, axis=1, keepdims=True)
    # A point that the action leaves in place has no direction, and overlaps with none.
    return moves / np.where(lengths <= still, np.inf, lengths)


def _fits(centred: FloatArray, steps: dict[int, "_Steps"]) -> tuple[dict[int, list["_Action"]], str]:
    """Actions up and down along each factor that has enough steps, and a phrase about the others."""
    fits, few = {}, []
    least, products = 2 * max(1, int(np.count_nonzero(np.ptp(centred, axis=0)))), centred.T @ centred
    for factor, own in steps.items():
        fewest = min(len(rows) for rows, _ in own.both)
        if fewest >= least:
            means = own.means(centred)
            fits[factor] = [_fit(centred, products, own, means, *step) for step in own.both]
        else:
            few.append(f"{fewest} for factor {factor}")
    return fits, (f" (too few rows with neighbours: {', '.join(few)})" if few else "")


@dataclass(frozen=True, eq=False)
class _Steps:
    """Where the steps along a factor lead from each row."""

    cell_of_row: IntArray  # (n_samples,) cells are what rows with equal factors share
    counts: IntArray  # (n_cells,) rows in each
    both: list[tuple[IntArray, IntArray]]  # up and down: rows that have a neighbour, and its cell

    def means(self, codes: FloatArray) -> FloatArray:
        """(n_cells, n_codes)"""
        sums = [np.bincount(self.cell_of_row, weights=column) for column in codes.T]
        return np.stack(sums, axis=1) / self.counts[:, None]


def _all_steps(inputs: Inputs, sizes: Sequence[int] | None) -> dict[int, _Steps]:
    """Those of each factor that has any, by its column."""
    cyclic, angles = inputs.steps, inputs.angles
    wrap = dict(zip(cyclic, cyclic_sizes(inputs, cyclic, sizes), strict=True))
    return {
        factor: _steps(inputs, factor, wrap.get(factor))
        for factor, kind in enumerate(inputs.kinds)
        if kind in ("cyclic", "ordinal") and factor not in angles
    }


@shared
def _steps(inputs: Inputs, factor: int, wrap: int | None) -> _Steps:
    factors = inputs.factors
    combination = combinations(np.delete(factors, factor, axis=1))
    if wrap:
        level, size = factors[:, factor].astype(np.int64) % wrap, wrap
    else:
        present, level = np.unique(factors[:, factor], return_inverse=True)
        size = len(present)
    cells, cell_of_row, counts = np.unique(combination * size + level, return_inverse=True, return_counts=True)
    both = []
    for landing in (level + 1, level - 1):
        inside = np.full(len(level), True) if wrap else (landing >= 0) & (landing < size)
        target = combination * size + landing % size
        place = np.minimum(np.searchsorted(cells, target), len(cells) - 1)
        rows = np.flatnonzero(inside & (cells[place] == target))
        both.append((rows, place[rows]))
    return _Steps(cell_of_row, counts, both)


@dataclass(frozen=True, eq=False)
class _Action:
    n_rows: int
    plane: FloatArray  # (n_codes, 2) orthonormal; the action takes z to z + plane @ free.T @ z
    free: FloatArray  # (n_codes, 2)
    error: float
    angle: float  # radians by which the plane turns that the matrix moves
    moves: bool


def _fit(
    centred: FloatArray, products: FloatArray, steps: _Steps, means: FloatArray, rows: IntArray, cells: IntArray
) -> _Action:
    """The identity plus rank 2 that best takes the codes of these rows to the means of cells, in squared error."""
    from scipy.linalg import eigh  # a tenth of a second to import

    # From products of rows, which takes a quarter of the time of a decomposition of the rows. All rows of a cell go to
    # the same one, so that sums over cells are those over rows.
    left_out = centred[np.setdiff1d(np.arange(len(centred)), rows)]
    products = products - left_out.T @ left_out
    starts, first = np.unique(steps.cell_of_row[rows], return_index=True)
    start, landed = steps.counts[starts, None] * means[starts], means[cells[first]]
    moved = np.trace(products) + (steps.counts[starts] @ landed**2).sum() - 2 * (start * landed).sum()
    if moved <= STANDING_STILL**2 * (centred**2).sum():
        still = np.zeros((centred.shape[1], 2))
        return _Action(len(rows), still, still, 0.0, 0.0, moves=False)
    variances, axes = np.linalg.eigh(products)
    seen = variances > STANDING_STILL**2 * variances[-1]
    variances, axes = variances[seen, None], axes[:, seen]
    explained = axes.T @ (start.T @ landed - products) / np.sqrt(variances)
    plane = eigh(explained.T @ explained, subset_by_index=(max(len(axes) - 2, 0), len(axes) - 1))[1]
    free = axes @ (explained @ plane / np.sqrt(variances))
    in_plane = (means @ plane)[cells] - (centred @ plane)[rows]
    missed = np.zeros((len(centred), plane.shape[1]))
    missed[rows] = in_plane - (centred @ free)[rows]
    free += axes @ (axes.T @ (centred.T @ missed) / variances)  # what rounding has left
    error = moved - (in_plane**2).sum() + ((in_plane - (centred @ free)[rows]) ** 2).sum()
    # The angle is that of the eigenvalue farthest from 1.
    values = np.linalg.eigvals(plane.T @ free)
    angle = np.abs(np.angle(1 + values[np.abs(values).argmax()]))
    return _Action(len(rows), plane, free, max(float(error / moved), 0.0), float(angle), moves=True)


METRIC = Metric(
    independence_score,
    title="Independence score",
    question="symmetry",
    chance=independence_of_noise,
    summary="How orthogonal the directions are in which steps along different factors move the codes.",
    limitations="Noise scores high with many codes. Does not test whether a step is a rotation.",
    source="Painter et al. 2020",
    needs="needs two cyclic or ordinal factors along which rows have neighbours",
    invariant_to=frozenset({"permute", "flip", "dead"}),
    aligned=False,
    linear=False,
    version=5,
    interval=GRID,
    cites=("painter2020linear",),
    formula=(
        r"I = 1 - \frac{1}{m (m-1)} \sum_{g \ne h} \mathbb{E}_z \left| \max_{a \in G_g, \, b \in G_h} "
        r"d_a(z) \cdot d_b(z) \right|, \qquad d_a(z) = \frac{z - \rho_a z}{\| z - \rho_a z \|}",
        r"$G_g$ are the steps along factor $g$, one level up and one down, and $\rho_a$ is the linear map of rank 2 "
        r"beside the identity that fits step $a$ best.",
    ),
)
