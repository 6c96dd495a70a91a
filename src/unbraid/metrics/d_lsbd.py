"""D_LSBD: how far codes are from a linear symmetry-based disentangled representation of cyclic factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.counted import counted
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.metrics._shared.chance import Noise
from unbraid.metrics._shared.cyclic import cyclic_sizes, notes_on_closed
from unbraid.metrics._shared.flags import single_code
from unbraid.metrics._shared.inputs import Inputs, NotDefined, check_inputs
from unbraid.metrics._shared.interventions import combinations
from unbraid.metrics._shared.metric import GRID, Metric

Norm = Literal["unit", "axes", "released"]
SCALES = {
    "unit": "mean squared norm 1 in the plane (appendix C), at most 1",
    "axes": "variance 1 along each axis (the paper's tables), at most 2",
    "released": "variance 1/2 along each axis (the authors' released code), at most 1",
}
STANDING_STILL = 1e-24  # of the mean squared code: variance that is only rounding
OVERLAP = np.pi / 4
EQUAL = 1e-6  # of a variance, by which equal ones may differ: codes are often in single precision
MAX_FREQUENCY = 10
MOST_FREQUENCIES = 10_000


@dataclass(frozen=True, eq=False, repr=False)
class DLSBD(Shown):
    score: float
    smallest_plane_angle: float  # radians, between any two subgroups' planes; pi / 2 where there is one subgroup
    per_subgroup: FloatArray  # (n_subgroups,)
    subgroups: IntArray  # (n_subgroups,) columns of the cyclic factors, each a subgroup SO(2)
    frequencies: IntArray  # (n_objects, n_subgroups) best |omega|; 0 where none is better than standing still
    dispersion: FloatArray  # (n_subgroups, max_frequency + 1) for each |omega|, averaged over objects
    explained: FloatArray  # (n_subgroups,) share of the variance due to the subgroup that lies in its plane
    plane_angles: FloatArray  # (n_subgroups, n_subgroups, 2) principal angles, ascending, radians, mean over objects
    planes: FloatArray  # (n_objects, n_subgroups, n_codes, 2) orthonormal axes of each plane
    projected: FloatArray  # (n_subgroups, n_samples, 2) normalised embeddings in the plane, rows as given
    angles: FloatArray  # (n_samples, n_subgroups) angle of each row's group element, radians
    notes: tuple[str, ...] = ()


def d_lsbd(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    sizes: Sequence[int] | None = None,
    max_frequency: int = MAX_FREQUENCY,
    norm: Norm = "unit",
) -> DLSBD:
    """Dispersion left in the plane of each cyclic factor after its best rotation is undone; 0 is perfect.

    For each cyclic factor: subtract from each code its mean over that factor (eq. 8), project onto the first two
    principal axes, normalise, turn each point back by omega times the angle of its level, and take the variance
    (eq. 9-10); the least over |omega| <= max_frequency, averaged over the cyclic factors. As the turned-back points
    have the squared norm of the points themselves, the variance is that norm less the squared Fourier coefficient
    at omega, and one transform over the angle gives all frequencies.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels. The rows, in any order, must fill the grid of the cyclic factors, each
            cell once, for each combination of the other factors. Such a combination is an *object* (a turntable
            picture's subject): each has its own planes and frequencies, and scores are averaged over objects.
        kinds: kind of each factor; at least one "cyclic".
        seed: unused; the score is deterministic.
        sizes: number of levels of each factor; default the highest level present + 1. Level v of a cyclic factor is
            the angle 2 pi v / size, so that v = size is level 0 again, as the last orientation of dSprites is: give
            39 for its 40 (`FactorSpace.turns`), and rows of the last are taken for those of the first, which must be
            there. Sizes of the others only serve to note how many of all objects there are.
        max_frequency: largest |omega| tried; its sign cannot be identified, since a plane has no orientation.
        norm: "unit": mean squared norm in the plane 1 (appendix C), so that the score is at most 1. "axes":
            variance 1 along each of the two axes, so that it is at most 2 and an ellipse counts as a circle.
            "released": variance 1/2 along each, of rows less one, which is what the authors' released code prints. A
            note says on which of the three scales the score is.

    Returns:
        DLSBD. `score` in [0, 1] ([0, 2] for "axes"), lower is better. Chance: 1, less what the best of the frequencies
        fits by luck, see `d_lsbd_of_noise`: .63 on the 8 levels of single objects. A factor that moves no code scores
        1. Unchanged by rotating the whole latent space; not by scaling single codes. It does not see variance outside
        the plane (`explained` does) nor whether two factors act in the same plane, which a note flags:
        z = (cos A + cos 2B, sin A + sin 2B) scores 0. Where codes vary as much along a third axis, as one-hot codes do,
        the plane is not determined, and the score depends on the order of codes, which a note says.
        A single code spans a line, on which the best is .5; but one that only tells even from odd levels scores 0, by
        the frequency of half as many turns as levels, and a note says so.

    Raises:
        ValueError: what every metric refuses, levels of a cyclic factor negative or above its size, or an argument out
            of range.
        NotDefined: no factor is cyclic, or the rows do not fill the grid of the cyclic factors.

    Reference:
        Tonnaer et al. 2022, "Quantifying and Learning Linear Symmetry-Based Disentanglement", eq. 8-10, appendices C
        and E. Entries above 1 in its tables 5-9 show "axes"; the authors' released code halves that ("released").
        Departs from appendix C, under which a subgroup that moves nothing would score 0.

    Example:
        >>> space = FactorSpace(("x", "y"), (32, 32), ("cyclic", "cyclic"))
        >>> angle = space.grid() * 2 * np.pi / 32
        >>> torus = np.concatenate([np.cos(angle), np.sin(angle)], axis=1)
        >>> round(d_lsbd(torus, space.grid(), kinds=space.kinds).score, 12)
        0.0
    """
    inputs = check_inputs(codes, factors, kinds, seed)
    check_whole("max_frequency", max_frequency, 1, MOST_FREQUENCIES, why="each is tried for every object")
    check_choice("norm", norm, SCALES)
    cyclic = inputs.steps
    if not cyclic:
        why = ", in steps: angles have no grid" if inputs.angles else ""
        raise NotDefined(f"needs at least one cyclic factor{why}")
    lengths = cyclic_sizes(inputs, cyclic, sizes)
    rows, cell_of_row = _grid(inputs, cyclic, lengths)
    embedding = inputs.codes[rows].reshape(len(rows), *lengths, inputs.n_codes)
    floor = STANDING_STILL * (embedding**2).sum(axis=-1).reshape(len(rows), -1).mean(axis=1)
    fits = [_fit(embedding, subgroup, floor, max_frequency, norm) for subgroup in range(len(cyclic))]

    projected = np.empty((len(cyclic), inputs.n_samples, 2))
    for subgroup, fit in enumerate(fits):
        projected[subgroup] = fit.projected.reshape(-1, 2)[cell_of_row]
    planes = np.stack([fit.plane for fit in fits], axis=1)
    moves = np.stack([fit.moves for fit in fits], axis=1)
    plane_angles = _plane_angles(planes, moves)
    pairs = [(one, other) for one in range(len(cyclic)) for other in range(one)]
    per_subgroup = np.array([fit.score.mean() for fit in fits])
    return DLSBD(
        score=float(per_subgroup.mean()),
        smallest_plane_angle=float(min((plane_angles[pair][0] for pair in pairs), default=np.pi / 2)),
        per_subgroup=per_subgroup,
        subgroups=np.array(cyclic),
        frequencies=np.stack([fit.frequency for fit in fits], axis=1),
        dispersion=np.stack([fit.dispersion.mean(axis=0) for fit in fits]),
        explained=np.array([fit.explained.mean() for fit in fits]),
        plane_angles=plane_angles,
        planes=planes,
        projected=projected,
        angles=2 * np.pi * (inputs.factors[:, cyclic] % lengths) / lengths,
        notes=(
            f"scale: {SCALES[norm]}",
            *single_code(inputs, "it is a line and not a plane: the best possible score is .5"),
            *notes_on_closed(inputs, cyclic, lengths),
            *_note_on_objects(len(rows), cyclic, sizes),
            *_notes(cyclic, lengths, fits, max_frequency, plane_angles, pairs),
        ),
    )


def turned_back(points: FloatArray, angles: FloatArray, frequency: int) -> FloatArray:
    """Points (n, 2) of a plane, each turned back by `frequency` times its angle (n,): what D_LSBD is the dispersion of.

    A plane has no orientation: of the two senses that one is taken which leaves less dispersion.
    """
    numbers = points[:, 0] + 1j * points[:, 1]
    senses = [numbers * np.exp(1j * sense * frequency * angles) for sense in (-1, 1)]
    back = max(senses, key=lambda turned: abs(turned.mean()))
    return np.stack([back.real, back.imag], axis=1)


def _grid(inputs: Inputs, cyclic: Sequence[int], lengths: tuple[int, ...]) -> tuple[IntArray, IntArray]:
    """(n_objects, n_cells) the row of each cell, and (n_samples,) the cell of each row, all objects in one line."""
    objects = combinations(np.delete(inputs.factors, cyclic, axis=1))
    n_objects, n_cells = int(objects.max()) + 1, prod(lengths)
    if n_objects * n_cells > np.iinfo(np.int64).max:
        raise NotDefined(f"rows must fill the grid of the cyclic factors, and it has {n_objects * n_cells} cells")
    levels = inputs.factors[:, cyclic].astype(np.int64)
    first = np.flatnonzero((levels < lengths).all(axis=1))
    cell_of_row = objects * n_cells + np.ravel_multi_index(tuple((levels % lengths).T), lengths)
    places, rows = np.unique(cell_of_row[first], return_index=True)
    missing = n_objects * n_cells - len(places)
    if missing:
        raise NotDefined(
            f"rows must fill the grid of the cyclic factors: {missing} of {n_objects * n_cells} cells missing"
        )
    if repeats := len(first) - len(places):
        raise NotDefined(
            "rows must fill the grid of the cyclic factors, each cell once: "
            f"{counted(repeats, 'row')} {'repeats' if repeats == 1 else 'repeat'} a cell"
        )
    return first[rows].reshape(n_objects, n_cells), cell_of_row


@dataclass(frozen=True, eq=False)
class _SubgroupFit:
    """One subgroup, over all objects."""

    score: FloatArray  # (n_objects,)
    frequency: IntArray  # (n_objects,)
    dispersion: FloatArray  # (n_objects, max_frequency + 1)
    explained: FloatArray  # (n_objects,)
    plane: FloatArray  # (n_objects, n_codes, 2)
    tied: BoolArray  # (n_objects,) whether a third axis has as much variance as the second
    moves: FloatArray  # (n_objects, 2) 1 where there is variance along the axis, else 0
    projected: FloatArray  # (n_objects, n_cells, 2)


def _fit(embedding: FloatArray, subgroup: int, floor: FloatArray, max_frequency: int, norm: Norm) -> _SubgroupFit:
    n_objects, n_codes = len(embedding), embedding.shape[-1]
    axis = subgroup + 1
    centred = embedding - embedding.mean(axis=axis, keepdims=True)
    flat = centred.reshape(n_objects, -1, n_codes)
    covariance = flat.swapaxes(1, 2) @ flat / flat.shape[1]
    variances, vectors = np.linalg.eigh(covariance)
    plane = np.zeros((n_objects, n_codes, 2))
    plane[..., : min(2, n_codes)] = vectors[..., ::-1][..., :2]
    along = np.zeros((n_objects, 2))
    along[:, : min(2, n_codes)] = variances[:, ::-1][:, :2]
    moves = along > floor[:, None]
    along = np.where(moves, along, 0.0)
    third = variances[:, -3] if n_codes > 2 else np.zeros(n_objects)
    rows = flat.shape[1]
    axes = {"axes": 1.0, "released": 2 * rows / (rows - 1)}
    scale = axes[norm] * along if norm in axes else np.broadcast_to(along.sum(axis=1, keepdims=True), along.shape)
    weights = np.where(moves, 1 / np.sqrt(np.where(moves, scale, 1.0)), 0.0)
    projected = (flat @ plane) * weights[:, None, :]

    points = (projected[..., 0] + 1j * projected[..., 1]).reshape(embedding.shape[:-1])
    other_axes = tuple(a for a in range(1, points.ndim) if a != axis)
    length = points.shape[axis]
    spectrum = np.abs(np.fft.fft(points.mean(axis=other_axes), axis=1) / length) ** 2
    tried = np.arange(max_frequency + 1)
    fitted = np.maximum(spectrum[:, tried % length], spectrum[:, -tried % length])
    squared_norm = (along * weights**2).sum(axis=1)
    dispersion = np.maximum(squared_norm[:, None] - fitted, 0.0)
    dispersion[~moves.any(axis=1)] = 1.0
    # Frequencies that alias differ by rounding alone; the slowest of them is reported.
    frequency = (dispersion <= dispersion.min(axis=1, keepdims=True) + 1e-12).argmax(axis=1)
    total = np.trace(covariance, axis1=1, axis2=2)
    return _SubgroupFit(
        score=dispersion.min(axis=1),
        frequency=frequency,
        dispersion=dispersion,
        explained=np.where(moves.any(axis=1), along.sum(axis=1) / np.where(total > 0, total, 1.0), 0.0),
        plane=plane,
        tied=moves[:, 1] & (third >= (1 - EQUAL) * along[:, 1]),
        moves=moves.astype(float),
        projected=projected,
    )


def _plane_angles(planes: FloatArray, moves: FloatArray) -> FloatArray:
    """Principal angles between each two subgroups' planes, only along axes that the subgroup moves."""
    n_subgroups = planes.shape[1]
    axes = planes * moves[:, :, None, :]
    angles = np.zeros((n_subgroups, n_subgroups, 2))
    for one in range(n_subgroups):
        for other in range(n_subgroups):
            if one != other:
                cosines = np.linalg.svd(axes[:, one].swapaxes(1, 2) @ axes[:, other], compute_uv=False)
                angles[one, other] = np.arccos(np.clip(cosines, 0.0, 1.0)).mean(axis=0)
    return angles


def d_lsbd_of_noise(inputs: Inputs) -> Noise:
    """Below 1 by what the best frequency fits by luck: the more, the fewer rows."""
    cyclic = inputs.steps
    lengths = cyclic_sizes(inputs, cyclic, None)
    n_objects = inputs.n_samples / prod(lengths)
    fitted, spread = [], []
    for length in lengths:
        # Power 1 / (length - 1) at each frequency on average, of which the greatest of exponential ones is fitted.
        tried = np.arange(1, 1 + min(2 * MAX_FREQUENCY, length - 1))
        unit = length / (length - 1) / prod(lengths)
        fitted.append(unit * (1 / tried).sum())
        spread.append(unit * np.sqrt((1 / tried**2).sum()))
    return Noise(1 - float(np.mean(fitted)), float(np.linalg.norm(spread)) / len(lengths) / n_objects**0.5)


def _note_on_objects(n_objects: int, cyclic: Sequence[int], sizes: Sequence[int] | None) -> tuple[str, ...]:
    if n_objects == 1:
        return ()
    of_all = prod(size for factor, size in enumerate(sizes or ()) if factor not in cyclic)
    of = f" of {of_all}" if of_all > n_objects else ""
    return (f"averaged over {n_objects}{of} combinations of the other factors, each with its own planes",)


def _notes(
    cyclic: Sequence[int],
    lengths: Sequence[int],
    fits: Sequence[_SubgroupFit],
    max_frequency: int,
    plane_angles: FloatArray,
    pairs: Sequence[tuple[int, int]],
) -> tuple[str, ...]:
    notes = []
    for factor, length, fit in zip(cyclic, lengths, fits, strict=True):
        if (2 * fit.frequency == length).any() and length > 2:
            notes.append(
                f"factor {factor}: at the best frequency, half its {length} levels, a rotation is a change of sign, "
                "which tells even from odd levels and nothing else"
            )
        if fit.tied.any():
            notes.append(
                f"factor {factor}: the codes vary as much along a third axis as along the second, so that its plane, "
                "and the score, depend on the order of the codes"
            )
        still = int((fit.moves[:, 0] == 0).sum())
        if still:
            where = "" if len(fit.moves) == 1 else f" in {still} of {len(fit.moves)} combinations of the other factors"
            notes.append(f"factor {factor} moves no code{where}: scored 1")
        if length <= 2 * max_frequency:
            notes.append(
                f"factor {factor} has {length} levels: frequencies above {length // 2} alias with lower ones, "
                "and the lowest is reported"
            )
    for one, other in pairs:
        if plane_angles[one, other, 0] < OVERLAP:
            notes.append(
                f"factors {cyclic[other]} and {cyclic[one]} act in overlapping planes (smallest angle "
                f"{np.degrees(plane_angles[one, other, 0]):.0f} degrees): a low score does not mean that they are apart"
            )
    return tuple(notes)


METRIC = Metric(
    d_lsbd,
    title="Linear symmetry-based disentanglement",
    question="symmetry",
    best=0.0,
    higher_is_better=False,
    ranges={"norm=axes": (0.0, 2.0)},
    chance=d_lsbd_of_noise,
    summary="How far a step around a cyclic factor is from a rotation in a plane of the codes.",
    limitations="Ignores variance outside that plane, and that factors may share a plane. Three scales are in use.",
    source="Tonnaer et al. 2022 (LSBD), eq. 8-10, appendices C and E",
    needs="needs at least one cyclic factor, and rows that fill the grid of the cyclic factors",
    invariant_to=frozenset({"permute", "flip", "dead"}),
    aligned=False,
    whole_objects=True,
    version=3,
    interval=GRID,
    cites=("tonnaer2022quantifying",),
    formula=(
        r"\mathcal{D}_{\mathrm{LSBD}} = \frac{1}{K} \sum_{k=1}^{K} \min_{\omega} \frac{1}{N} \sum_{n} "
        r"\left\| \rho_{\omega}(g_n)^{-1} z_{n,k} - \frac{1}{N} \sum_{m} \rho_{\omega}(g_m)^{-1} z_{m,k} \right\|^2",
        r"$z_{n,k}$ is code $n$, minus its mean over factor $k$, in the plane of its two first principal axes and "
        r"scaled to mean squared norm 1; $\rho_{\omega}(g)$ turns that plane by $\omega$ times the angle of the "
        r"factor's level, $|\omega| \leq 10$. $K$ counts the cyclic factors.",
    ),
)
