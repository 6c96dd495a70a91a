"""Densities of one code under Gaussian posteriors: of all rows together and of each slice of them.

The line is cut into dyadic panels until every Gaussian that reaches a panel is wide against it. A Gaussian is
evaluated once, on the coarsest panels that resolve it, at Gauss-Legendre nodes, and handed down to the finer panels by
polynomial interpolation, so that the cost is linear in the number of rows however much their widths differ.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray
from unbraid.metrics._shared.compiled import helper, kernel
from unbraid.metrics._shared.inputs import finite_matrix

NODES = 16  # per panel
REACH = 8.5  # standard deviations: beyond them a Gaussian is below 3e-16 of its height
PANEL = 2.0  # standard deviations: the widest panel that NODES resolve to about 1e-12
SUBSTEPS = 32  # cells per panel of the tables that samples are looked up in
TABLE = 4_000_000  # numbers in such a table at most
SHARPEST = 1e-8  # narrower posteriors, against the spread of the means, are widened to this
NARROWEST = 1e-100  # posteriors are widened to this where the means do not differ
MOST_LOG_VARIANCE = 460  # of a deviation of 1e100
DEPTH, SIDE, FROM, TO = range(4)  # of a panel that is waiting: halvings, left or right half, rows that it looks at


@dataclass(frozen=True, eq=False)
class DensityPanels:
    """Densities on panels from left to right, without those that nothing reaches; slice 0 holds all rows."""

    lefts: FloatArray  # (n_panels,)
    widths: FloatArray  # (n_panels,)
    densities: FloatArray  # (n_slices, n_panels, NODES)


def check_log_variances(log_variances: ArrayLike, shape: tuple[int, ...]) -> FloatArray | IntArray:
    """Log-variances of the posteriors whose means have this shape, of the type they have, or a ValueError."""
    checked = finite_matrix(log_variances, "log_variances", "n_codes")
    if checked.shape != shape:
        raise ValueError(f"log_variances must have the shape of codes, {shape}; got {checked.shape}")
    if checked.max() > MOST_LOG_VARIANCE:
        row, column = np.argwhere(checked > MOST_LOG_VARIANCE)[0]
        raise ValueError(
            f"log_variances must be natural logarithms of variances, at most {MOST_LOG_VARIANCE}; row {row}, column "
            f"{column} is {checked[row, column]:g}"
        )
    return checked


class Posteriors(NamedTuple):
    """Of one code."""

    means: FloatArray  # (n_samples,) about their median
    scales: FloatArray  # (n_samples,) standard deviations, at least `SHARPEST` of the spread of the means
    sharper: int  # posteriors whose deviation is below that
    centre: float


def centred_posteriors(means: FloatArray, log_variances: FloatArray) -> Posteriors:
    """Information, a gap between densities, is the same wherever the codes lie."""
    centre = float(np.median(means))
    means = means - centre
    scales, smallest = np.exp(0.5 * log_variances), max(SHARPEST * float(np.abs(means).max()), NARROWEST)
    return Posteriors(means, np.maximum(scales, smallest), int((scales < smallest).sum()), centre)


def panels(means: FloatArray, scales: FloatArray, slices: IntArray, n_slices: int) -> Iterator[DensityPanels]:
    """Densities of the mixture of all rows and of each slice, from left to right, a bounded table at a time.

    Args:
        means: (n_samples,) of the Gaussians, near 0: what is far from it is resolved less sharply.
        scales: (n_samples,) their standard deviations.
        slices: (n_samples, any) the slices 1 .. n_slices - 1 that each row belongs to; -1 for none.
        n_slices: how many there are, with slice 0, all rows.
    """
    sizes = np.bincount(slices[slices >= 0], minlength=n_slices).astype(float)
    sizes[0] = len(means)
    low, high = float((means - REACH * scales).min()), float((means + REACH * scales).max())
    bare = np.empty((0, 0, 0))
    spans = np.empty((_walk(means, scales, slices, low, high, low, high, np.empty((0, 2)), bare), 2))
    _walk(means, scales, slices, low, high, low, high, spans, bare)
    step = max(1, TABLE // (n_slices * (SUBSTEPS + 1)))
    for first in range(0, len(spans), step):
        part = spans[first : first + step]
        densities = np.zeros((n_slices, len(part), NODES))
        _walk(means, scales, slices, low, high, part[0, 0], part[-1, 1], np.empty((0, 2)), densities)
        yield DensityPanels(
            part[:, 0].copy(),
            part[:, 1] - part[:, 0],
            densities / (np.maximum(sizes, 1.0) * np.sqrt(2 * np.pi))[:, None, None],
        )


def log_ratio_moments(part: DensityPanels) -> FloatArray:
    """(n_slices, 2) integrals of p_v log(p_v / p) and p_v log(p_v / p)^2 over these panels; for slice 0, with log p."""
    densities, logs = part.densities, np.log(np.where(part.densities > 0.0, part.densities, 1.0))
    logs[1:] -= logs[0]
    terms = densities * logs * (0.5 * part.widths[:, None] * _legendre()[1])
    return np.stack([terms.sum(axis=(1, 2)), (terms * logs).sum(axis=(1, 2))], axis=1)


def log_ratio_table(part: DensityPanels, largest: FloatArray) -> FloatArray:
    """(n_slices, n_panels, SUBSTEPS + 1) log(p_v / p), at most `largest`, at even steps; for slice 0, log p."""
    table = np.log(np.maximum(part.densities @ _refinement(), 1e-300))
    table[1:] = np.minimum(table[1:] - table[0], largest[1:, None, None])
    table[part.densities.max(axis=2) <= 0.0] = 0.0
    return table


def look_up(values: FloatArray, part: DensityPanels, table: FloatArray) -> FloatArray:
    """Cubic interpolation of one slice's table at each value; 0 for values outside these panels."""
    interpolated = np.zeros(len(values))
    _look_up(values, part.lefts, part.widths, _guide(part), table, interpolated)
    return interpolated


def sum_up(values: FloatArray, part: DensityPanels, table: FloatArray) -> FloatArray:
    """(n_slices, 2) sums of interpolated table entries and of their squares at `values` (n_slices, n_samples)."""
    guide, sums, interpolated = _guide(part), np.empty((len(table), 2)), np.empty(values.shape[1])
    for piece in range(len(table)):
        _look_up(values[piece], part.lefts, part.widths, guide, table[piece], interpolated)
        sums[piece] = interpolated.sum(), np.square(interpolated).sum()
    return sums


@cache
def _legendre() -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(NODES)


def _interpolation(targets: FloatArray) -> FloatArray:
    """(len(targets), NODES) matrix from values at the nodes to values at `targets`, both on [-1, 1]."""
    nodes = _legendre()[0]
    difference = nodes[:, None] - nodes
    np.fill_diagonal(difference, 1.0)
    weights = 1.0 / difference.prod(axis=1)
    terms = weights / (targets[:, None] - nodes)
    return terms / terms.sum(axis=1, keepdims=True)


@cache
def _halves() -> FloatArray:
    """(2, NODES, NODES): to the nodes of the left and of the right half; transposed, as the kernel reads them."""
    nodes = _legendre()[0]
    return np.ascontiguousarray([_interpolation((nodes + side) / 2).T for side in (-1, 1)])


@cache
def _refinement() -> FloatArray:
    """(NODES, SUBSTEPS + 1): to even steps."""
    return np.ascontiguousarray(_interpolation(np.linspace(-1, 1, SUBSTEPS + 1)).T)


def _guide(part: DensityPanels) -> IntArray:
    """Panel at the middle of each of many even cells; as panels are dyadic, mostly that of the whole cell."""
    start, length = part.lefts[0], part.lefts[-1] + part.widths[-1] - part.lefts[0]
    n_cells = round(min(length / part.widths.min(), 65536.0))
    middles = start + length * (np.arange(n_cells) + 0.5) / n_cells
    return np.clip(np.searchsorted(part.lefts, middles, side="right") - 1, 0, len(part.lefts) - 1)


def _walk(
    means: FloatArray,
    scales: FloatArray,
    slices: IntArray,
    low: float,
    high: float,
    start: float,
    stop: float,
    spans: FloatArray,
    densities: FloatArray,
) -> int:
    """Visit the final panels within [start, stop] in order, note their ends and densities, and count them."""
    deepest = 4 + int(np.ceil(np.log2(max((high - low) / (PANEL * scales.min()), 1.0))))
    n_slices = max(len(densities), 1)
    ends, stack = np.zeros((2, 2 * deepest)), np.zeros((4, 2 * deepest), dtype=np.int64)
    ends[:, 0], stack[TO, 0] = (low, high), len(slices)
    waiting = np.empty((deepest + 1) * len(slices), dtype=np.int32)  # most of it is never touched
    waiting[: len(slices)] = np.arange(len(slices))
    values, present = np.zeros((deepest, n_slices, NODES)), np.zeros((deepest, n_slices), dtype=bool)
    return _visit(
        means, scales, slices, start, stop, spans, densities, _halves(), _legendre()[0],
        ends, stack, waiting, values, present, np.zeros(deepest, dtype=bool), np.empty(NODES),
    )  # fmt: skip


@kernel()
def _visit(
    means: FloatArray,
    scales: FloatArray,
    slices: IntArray,
    start: float,
    stop: float,
    spans: FloatArray,
    densities: FloatArray,
    halves: FloatArray,
    nodes: FloatArray,
    ends: FloatArray,
    stack: IntArray,
    waiting: IntArray,
    values: FloatArray,
    present: BoolArray,
    reached: BoolArray,
    bump: FloatArray,
) -> int:
    """`_walk`, with room for the panels that are begun.

    `waiting` are rows not yet wide against the panel: those of a panel lie behind those of its parent.
    """
    n_slices = len(densities)
    with_densities = n_slices > 0
    height, n_panels = 1, 0
    while height > 0:
        height -= 1
        left, right, depth = ends[0, height], ends[1, height], stack[DEPTH, height]
        if right <= start or left >= stop:
            continue
        width, middle = right - left, 0.5 * (left + right)
        reached[depth] = depth > 0 and reached[depth - 1]
        if with_densities:
            side = stack[SIDE, height]
            for piece in range(n_slices):
                present[depth, piece] = depth > 0 and present[depth - 1, piece]
                if present[depth, piece]:
                    for target in range(NODES):
                        values[depth, piece, target] = 0.0
                    for node in range(NODES):
                        value = values[depth - 1, piece, node]
                        for target in range(NODES):
                            values[depth, piece, target] += value * halves[side, node, target]
        first = last = stack[TO, height]
        for position in range(stack[FROM, height], first):
            row = waiting[position]
            mean, scale = means[row], scales[row]
            if mean + REACH * scale <= left or mean - REACH * scale >= right:
                continue
            if width > PANEL * scale:
                waiting[last] = row
                last += 1
                continue
            reached[depth] = True
            if with_densities:
                # Its Gaussian at the nodes goes to slice 0 and to each of those of the row that is not -1.
                for node in range(NODES):
                    away = (middle - mean) / scale + 0.5 * width / scale * nodes[node]
                    bump[node] = 1.0 / scale * exp_down(-0.5 * away * away)
                for group in range(-1, slices.shape[1]):
                    piece = slices[row, group] if group >= 0 else 0
                    if piece >= 0:
                        weight = 1.0 if present[depth, piece] else 0.0
                        present[depth, piece] = True
                        for node in range(NODES):
                            values[depth, piece, node] = weight * values[depth, piece, node] + bump[node]
        if last == first and reached[depth]:
            if len(spans) > 0:
                spans[n_panels, 0], spans[n_panels, 1] = left, right
            if with_densities:
                for piece in range(n_slices):
                    if present[depth, piece]:
                        for node in range(NODES):
                            densities[piece, n_panels, node] = values[depth, piece, node]
            n_panels += 1
        if last == first:
            continue
        for side in (1, 0):
            ends[0, height] = middle if side else left
            ends[1, height] = right if side else middle
            stack[DEPTH, height], stack[SIDE, height] = depth + 1, side
            stack[FROM, height], stack[TO, height] = first, last
            height += 1
    return n_panels


@helper(fastmath=False)  # as it is, whatever the function that calls it may do
def exp_down(x: float) -> float:
    """exp(x) for -77 <= x <= 0 to a relative 1e-13, free of branches and calls so that loops over it vectorise."""
    x = x * (1.0 / 128) + 0.25
    series = 1.0
    for power in range(11, 0, -1):
        series = 1.0 + x * (1.0 / power) * series
    series *= 0.7788007830714049
    for _ in range(7):
        series *= series
    return series


@kernel()
def _look_up(
    values: FloatArray, lefts: FloatArray, widths: FloatArray, guide: IntArray, table: FloatArray, out: FloatArray
) -> None:
    start, stop, top = lefts[0], lefts[-1] + widths[-1], len(guide) - 1
    per_cell = len(guide) / (stop - start)
    for index in range(len(values)):
        out[index] = 0.0
        value = values[index]
        if value < start or value >= stop:
            continue
        panel = np.int64((value - start) * per_cell)
        panel = guide[panel if panel < top else top]
        place = (value - lefts[panel]) / widths[panel]
        if place < -1e-9 or place > 1.0 + 1e-9:
            while lefts[panel] > value:
                panel -= 1
            while panel + 1 < len(lefts) and lefts[panel + 1] <= value:
                panel += 1
            place = (value - lefts[panel]) / widths[panel]
            if place > 1.0 + 1e-9:
                continue
        place *= SUBSTEPS
        cell = np.int64(place) - 1
        cell = 0 if cell < 0 else SUBSTEPS - 3 if cell > SUBSTEPS - 3 else cell
        x = place - cell
        a, b, c = x - 1.0, x - 2.0, x - 3.0
        outer = x * a * b * table[panel, cell + 3] - a * b * c * table[panel, cell]
        inner = b * c * table[panel, cell + 1] - a * c * table[panel, cell + 2]
        out[index] = (outer + 3.0 * x * inner) / 6.0
