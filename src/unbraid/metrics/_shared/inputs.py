"""The one door through which codes and factors enter a metric."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unbraid.base.arguments import check_entries, check_same_rows, check_whole
from unbraid.base.arrays import CELLS, as_array, check_weights, column_names
from unbraid.base.counted import counted
from unbraid.base.errors import UnbraidError
from unbraid.base.suggest import suggestion
from unbraid.base.types import KIND_WORDS, KINDS, ArrayLike, BoolArray, FloatArray, IntArray, Kind
from unbraid.data.guessing import guess_kind, ranks_of, refuse_many_levels
from unbraid.data.labels import TURN, check_groups
from unbraid.data.row_index import refuse_other_order
from unbraid.metrics._shared.bins import bin_equal_width
from unbraid.metrics._shared.resampling import Numbers, permutation
from unbraid.metrics._shared.sharing import put_cached, shared

Columns: TypeAlias = Sequence[Sequence[int]]  # of blocks

CONTINUOUS_BINS = 20
AT_ONCE = CELLS  # numbers of codes that are made float64 at a time, where a metric reads them by columns
CELL = 8  # bytes of a float64
LARGEST, NARROWEST = 1e100, 1e-100  # of values, and of the range of a column: their squares are floats
ON_EDGE = 1e-5  # of a bin of angles, up to which below its edge a value counts as on it: float32 and arctan2 round


class NotDefined(UnbraidError, ValueError):
    """The input is sound, but this metric has no meaning on it; a score card lists it as skipped."""


@dataclass(frozen=True, eq=False)
class Inputs:
    stored: FloatArray | IntArray  # (n_samples, n_codes) codes as they are kept, often in single precision
    factors: FloatArray  # (n_samples, n_factors) float64, as given
    kinds: tuple[Kind, ...]
    weights: FloatArray | None = None  # (n_samples,) above 0: how many rows each row stands for
    groups: IntArray | None = None  # (n_samples,) 0, 1, ...: rows of one hang together

    @cached_property
    def codes(self) -> FloatArray:
        """(n_samples, n_codes) float64: all at once, for metrics that cannot do with `column_blocks`."""
        return self.stored.astype(np.float64, copy=False)

    def column_blocks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Which codes, and these as float64; `codes` themselves where they are few."""
        blocks = column_slices(*self.stored.shape)
        for columns in blocks:
            part = np.ascontiguousarray(self.stored[:, columns], dtype=np.float64) if len(blocks) > 1 else self.codes
            yield columns, part

    def code(self, column: int) -> FloatArray:
        """(n_samples,) of one code."""
        return self.stored[:, column].astype(np.float64)

    @property
    def n_samples(self) -> int:
        return self.stored.shape[0]

    @property
    def n_codes(self) -> int:
        return self.stored.shape[1]

    @property
    def n_factors(self) -> int:
        return self.factors.shape[1]

    @property
    def angles(self) -> list[int]:
        """Columns of the cyclic factors whose values are radians, 0 to 2 pi; those of the others are steps."""
        return _angles(self.kinds, self.factors)

    @property
    def steps(self) -> list[int]:
        """Columns of the cyclic factors that go around in steps 0, 1, ..."""
        angles = self.angles
        return [column for column, kind in enumerate(self.kinds) if kind == "cyclic" and column not in angles]


@dataclass(frozen=True, eq=False)
class Levels:
    """Factors as classes: what metrics over discrete factors read."""

    levels: IntArray  # (n_samples, n_factors) int64, 0 .. sizes[k] - 1, each level present
    sizes: tuple[int, ...]
    notes: tuple[str, ...]
    weights: FloatArray | None = None  # (n_samples,) as of `Inputs`


def check_inputs(
    codes: ArrayLike,
    factors: ArrayLike,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    groups: ArrayLike | None = None,
) -> Inputs:
    """Validate and convert what every metric is given.

    Without `kinds`, a factor is ordinal where its values are a few that repeat and continuous otherwise. Levels that
    are no whole numbers count by rank. Rows of weight 0 are left out. `groups` are labels of any sort.

    Raises:
        ValueError: names the argument, and the row and column where there is one.
    """
    check_whole("seed", seed, 0)
    refuse_other_order(codes=codes, factors=factors, weights=weights)
    inputs = _converted(codes, factors, kinds)
    if groups is not None and groups is not inputs.groups:
        inputs = _grouped(inputs, groups)
    return inputs if weights is None else _weighted(inputs, weights)


@shared
def _grouped(inputs: Inputs, groups: ArrayLike) -> Inputs:
    return replace(inputs, groups=check_groups(groups, inputs.n_samples))


@shared
def _weighted(inputs: Inputs, weights: ArrayLike) -> Inputs:
    counted = check_weights(weights, inputs.n_samples)
    positive = counted > 0
    if not positive.all():
        groups = None if inputs.groups is None else check_groups(inputs.groups[positive], int(positive.sum()))
        inputs = Inputs(inputs.stored[positive], inputs.factors[positive], inputs.kinds, groups=groups)
        _refuse_constant(inputs.factors)
    return replace(inputs, weights=counted[positive])


@shared
def _converted(codes: ArrayLike, factors: ArrayLike, kinds: Sequence[Kind] | None) -> Inputs:
    code_matrix = finite_matrix(codes, "codes", "n_codes", 2)
    factor_matrix = check_matrix(factors, "factors", "n_factors")
    check_same_rows(code_matrix.shape, factor_matrix.shape)
    if (n_factors := factor_matrix.shape[1]) > len(factor_matrix):
        raise ValueError(
            f"factors has more columns than rows, {n_factors} factors of {len(factor_matrix)} samples: nothing can be "
            "measured on so few. Factors are (n_samples, n_factors): transpose?"
        )
    _refuse_constant(factor_matrix)
    kinds = check_kinds(kinds, factor_matrix)
    return Inputs(code_matrix, _as_read(factor_matrix, kinds), kinds)


def _as_read(factors: FloatArray, kinds: Sequence[Kind]) -> FloatArray:
    """Angles from 0 to 2 pi, and the ranks of levels that are no whole numbers, such as .1, 1 and 10."""
    read = np.array(factors)
    angles = _angles(kinds, factors)
    for column, kind in enumerate(kinds):
        if column in angles:
            read[:, column] = np.mod(factors[:, column], TURN)
        elif kind != "continuous":
            ranks = ranks_of(factors[:, column])
            refuse_many_levels(column, kind, int(ranks.max()) + 1)
            if (read[:, column] != np.rint(read[:, column])).any():
                read[:, column] = ranks
    return read


def _refuse_constant(factors: FloatArray) -> None:
    constant = np.flatnonzero((factors == factors[0]).all(axis=0))
    if len(constant):
        raise ValueError(
            f"factors column {constant[0]} is constant (always {factors[0, constant[0]]:g}): "
            "nothing can be measured against it; leave it out"
        )


def _angles(kinds: Sequence[Kind], factors: FloatArray) -> list[int]:
    cyclic = [column for column, kind in enumerate(kinds) if kind == "cyclic"]
    return [column for column in cyclic if not (factors[:, column] == np.rint(factors[:, column])).all()]


def check_matrix(values: ArrayLike, name: str, columns: str, least: int = 0) -> FloatArray:
    """(n_samples, columns) finite float64 in C order of at least so many rows, or a ValueError that names the cell."""
    return finite_matrix(values, name, columns, least).astype(np.float64, copy=False)


def finite_matrix(values: ArrayLike, name: str, columns: str, least: int = 0) -> FloatArray | IntArray:
    """`check_matrix` that leaves whole numbers, and floats of up to eight bytes, of the type that they have."""
    matrix = real_matrix(values, name, columns)
    if len(matrix) < least:
        raise ValueError(f"{name} must have at least {counted(least, 'row')}; got {len(matrix)}")
    if not (finite := np.isfinite(matrix)).all():
        row, column = np.argwhere(~finite)[0]
        raise ValueError(
            f"{name} must be finite; row {row}, column {column} is {matrix[row, column]} "
            f"({int((~finite).sum())} such values in all)"
        )
    if matrix.dtype == np.float64 and len(matrix):
        _refuse_extremes(matrix, name)
    return matrix


def _refuse_extremes(matrix: FloatArray | IntArray, name: str) -> None:
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    if (outside := np.maximum(-low, high) > LARGEST).any():
        column = int(outside.argmax())
        row = int(np.abs(matrix[:, column]).argmax())
        raise ValueError(
            f"{name} must lie within -{LARGEST:g} and {LARGEST:g}; row {row}, column {column} is "
            f"{matrix[row, column]:g}: rescale them"
        )
    spread = high - low
    if (narrow := (spread > 0) & (spread < NARROWEST)).any():
        column = int(narrow.argmax())
        raise ValueError(f"{name} column {column} varies by {spread[column]:g}, less than {NARROWEST:g}: rescale it")


def real_matrix(values: ArrayLike, name: str, columns: str) -> FloatArray | IntArray:
    """`finite_matrix` that lets NaN and infinity pass."""
    matrix = as_array(values)
    if matrix.dtype.kind not in "biuf":
        frame: Any = values
        not_numeric = [each for each in column_names(frame) if as_array(frame[each]).dtype.kind not in "biuf"]
        of = f" in column {not_numeric[0]!r}" if not_numeric else ""
        raise ValueError(f"{name} must be real numbers; got dtype {matrix.dtype}{of}")
    if matrix.ndim != 2:
        how = f". One column: {name}.reshape(-1, 1)" if matrix.ndim == 1 else ""
        raise ValueError(f"{name} must be a matrix (n_samples, {columns}); got shape {matrix.shape}{how}")
    if matrix.shape[1] == 0:
        raise ValueError(f"{name} has no columns; got shape {matrix.shape}")
    longer = matrix.dtype.kind == "f" and matrix.itemsize > CELL
    return np.ascontiguousarray(matrix, dtype=np.float64 if longer else None)


def check_kinds(kinds: Sequence[Kind] | None, factors: FloatArray, name: str = "factors") -> tuple[Kind, ...]:
    """The kinds of factors, checked: radians where they go around without steps.

    Raises:
        ValueError: they are not; the message calls the factors by `name`.
    """
    whole = (factors == np.rint(factors)).all(axis=0)
    if kinds is None:
        return tuple(guess_kind(column) for column in factors.T)
    check_entries("kinds", kinds, factors.shape[1])
    for column, kind in enumerate(kinds):
        if kind not in KINDS:
            raise ValueError(f"kinds[{column}] is {kind!r}; {suggestion(str(kind), KINDS, words=KIND_WORDS)}")
        if kind == "cyclic" and not whole[column] and np.abs(factors[:, column]).max() > TURN * (1 + 1e-9):
            raise ValueError(
                f"{name} column {column} is cyclic with real values, which are radians, -6.28 to 6.28; got "
                f"{factors[:, column].min():g} to {factors[:, column].max():g}. unbraid.score takes a period"
            )
    return tuple(kinds)


@shared
def as_levels(inputs: Inputs, bins: int = CONTINUOUS_BINS, n_known: int | None = None) -> Levels:
    """Factors as classes 0, 1, ...; continuous ones and angles cut into `bins` of equal width, the circle all around.

    Args:
        inputs: of which factors are read.
        bins: of continuous factors and angles.
        n_known: first rows, whose range is cut; others beyond it are in the outermost bins. Default: all.

    Raises:
        ValueError: a discrete factor has as many levels as there are rows, so that no level repeats.
        NotDefined: a continuous factor or an angle has all its values in one bin.
    """
    columns, sizes, angles = [], [], inputs.angles
    measured = [column for column, kind in enumerate(inputs.kinds) if kind == "continuous"]
    n_rows = inputs.n_samples if inputs.weights is None else inputs.weights.sum()
    for column, kind in enumerate(inputs.kinds):
        values = inputs.factors[:, column]
        if column in angles:
            values = _bins_around(values, bins)
        elif kind == "continuous":
            if n_known is not None:
                values = np.clip(values, values[:n_known].min(), values[:n_known].max())
            values = bin_equal_width(values[:, None], bins, inputs.weights)[:, 0]
        present, levels = np.unique(values, return_inverse=True)
        if len(present) == 1:
            raise NotDefined(
                f"factors column {column} has all its values in one of {bins} bins: as classes they are one level"
            )
        if kind != "continuous" and column not in angles and len(present) >= n_rows:
            raise ValueError(
                f"factors column {column} has one sample per value ({len(present)} values in {inputs.n_samples} "
                "rows): as classes they cannot be scored. If it is real-valued, its kind is 'continuous'; if it names "
                "the rows, leave it out"
            )
        columns.append(levels)
        sizes.append(len(present))
    notes = (
        *note_on(angles, f"cut into {bins} bins around the circle", "an angle", "angles"),
        *note_on(measured, f"cut into {bins} bins of equal width", "continuous"),
    )
    return Levels(np.stack(columns, axis=1).astype(np.int64), tuple(sizes), notes, inputs.weights)


def note_on(columns: Sequence[int], reading: str, one: str, several: str = "") -> tuple[str, ...]:
    """One note on how these factors are read, "factors 0 and 2 are continuous: ..."; none where there are none."""
    if len(columns) < 2:
        return tuple(f"factor {column} is {one}: {reading}" for column in columns)
    listed = ", ".join(map(str, columns[:-1]))
    return (f"factors {listed} and {columns[-1]} are {several or one}: {reading}",)


def _bins_around(angles: FloatArray, bins: int) -> FloatArray:
    return np.floor(angles / TURN * bins + ON_EDGE) % bins


def opened(inputs: Inputs, bins: int | None = None) -> FloatArray:
    """(n_samples, n_factors) factors of which those that go around begin behind the widest gap of their circle.

    So an arc has its ends at its ends, wherever on the circle it lies. With `bins` angles are numbers of so many.
    """
    factors, angles = inputs.factors.copy(), inputs.angles
    for column, kind in enumerate(inputs.kinds):
        values = factors[:, column]
        if column in angles:
            values, period = (values, TURN) if bins is None else (_bins_around(values, bins), bins)
        elif kind == "cyclic" and values.min() >= 0:
            period = values.max() + 1
        else:
            continue
        factors[:, column] = _behind_gap(values, period)
    return factors


def _behind_gap(values: FloatArray, period: float) -> FloatArray:
    present = np.unique(values)
    gaps = np.diff(present, prepend=present[-1] - period)  # before each
    # The first of those as wide as the widest, up to rounding: even steps all around begin where they are counted from.
    first = present[np.argmax(gaps >= gaps.max() - ON_EDGE * period / CONTINUOUS_BINS)]
    return values if first == present[0] else np.mod(values - first, period)


def known_as_checked(inputs: Inputs) -> None:
    """Within `sharing`, metrics that are given these `stored` codes and factors take them as they are."""
    put_cached(inputs, _converted, inputs.stored, inputs.factors, inputs.kinds)


def check_blocks(name: str, blocks: Columns, n_columns: int, axis: str) -> list[list[int]]:
    """Columns of each block, or a ValueError that says which is not there, or is named twice."""
    if not len(blocks):
        raise ValueError(f"{name} is empty; give at least one block of columns")
    checked, seen = [], set()
    for place, block in enumerate(blocks):
        columns = np.atleast_1d(np.asarray(block))
        if columns.ndim != 1 or not len(columns) or columns.dtype.kind not in "iu":
            raise ValueError(f"{name}[{place}] must be a list of columns of {axis}; got {block!r}")
        for column in columns.tolist():
            if not 0 <= column < n_columns or column in seen:
                why = "twice" if column in seen else f"and there are columns 0 to {n_columns - 1}"
                raise ValueError(f"{name}[{place}] names column {column} of {axis}, {why}")
            seen.add(column)
        checked.append(columns.tolist())
    return checked


def check_gap(mask: ArrayLike, n_samples: int, must: str = "be") -> BoolArray:
    """(n_samples,) booleans, or a ValueError that says what a gap must be, or return."""
    mask = np.asarray(mask)
    if mask.dtype != bool or mask.shape != (n_samples,):
        raise ValueError(
            f"held_out must {must} one boolean per row, shape ({n_samples},); got {mask.dtype} of shape {mask.shape}"
        )
    return mask


def column_slices(n_samples: int, n_columns: int) -> list[slice]:
    """Columns of a matrix in parts that may be copied at will.

    At least two columns in each: of a single one NumPy adds up the rows in another order.
    """
    count = max(1, n_columns // max(2, AT_ONCE // max(n_samples, 1)))
    return [slice(*ends) for ends in pairwise(np.linspace(0, n_columns, count + 1).astype(int).tolist())]


class Part(NamedTuple):
    """Different rows of a sample, in the order of `draw_part`, as metrics take them."""

    rows: IntArray
    inputs: Inputs


def part_of(whole: Inputs, levels: Levels | None, rows: IntArray) -> Part:
    """These rows, which within `sharing` are neither checked nor, where all `levels` are among them, numbered again.

    Args:
        whole: the sample.
        levels: `levels_by_value` of it.
        rows: of the part.

    Raises:
        ValueError: a factor is constant there.
    """
    groups = None
    if whole.groups is not None:  # numbered as they come
        _, first, number = np.unique(whole.groups[rows], return_index=True, return_inverse=True)
        groups = np.argsort(np.argsort(first))[number]
    inputs = Inputs(whole.stored.take(rows, axis=0), whole.factors.take(rows, axis=0), whole.kinds, groups=groups)
    _refuse_constant(inputs.factors)
    known_as_checked(inputs)
    if levels is not None and max(levels.sizes) < len(rows):
        own = levels.levels.take(rows, axis=0)
        if all(np.bincount(column, minlength=size).all() for column, size in zip(own.T, levels.sizes, strict=True)):
            put_cached(Levels(own, levels.sizes, levels.notes), as_levels, inputs)
    return Part(rows, inputs)


# Of all rows, the seed and those of the metric's arguments that it names: what a metric says of parts of the rows.
OfParts: TypeAlias = Callable[..., Callable[[Part], Numbers]]
# Of all rows, (n_orders, n_samples) orders and those of the metric's arguments that it names: headline and `per_factor`
# with row i of the factors beside row orders[t, i] of the codes, found in the same way for every order.
OfShuffles: TypeAlias = Callable[..., list[tuple[float, FloatArray]]]


def levels_by_value(inputs: Inputs) -> Levels | None:
    """Levels that any part of the rows has as well, or None: bins depend on the ends, and repeats are missing."""
    if not inputs.n_factors or "continuous" in inputs.kinds or inputs.angles:
        return None
    try:
        return as_levels(inputs)
    except ValueError:  # as many levels as rows, of which parts may hold fewer
        return None


def standardised(matrix: FloatArray, weights: FloatArray | None = None) -> FloatArray:
    """Each column less its mean, over its standard deviation; a column that varies by rounding alone becomes 0."""
    mean, scale = mean_and_scale(matrix, weights)
    return (matrix - mean) / scale


def mean_and_deviation(values: FloatArray, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """(n_columns,) mean and standard deviation of each column, whose rows count as often as `weights` (n_rows,) say."""
    moments = []
    for columns in column_slices(*values.shape):
        part = values[:, columns]
        if weights is None:
            moments.append((part.mean(axis=0), part.std(axis=0)))
        else:
            mean = np.average(part, axis=0, weights=weights)
            moments.append((mean, np.sqrt(np.average((part - mean) ** 2, axis=0, weights=weights))))
    mean, deviation = np.concatenate(moments, axis=1)
    return mean, deviation


def mean_and_scale(values: FloatArray, weights: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation; of a column that varies by rounding alone it is infinite."""
    mean, deviation = mean_and_deviation(values, weights)
    return mean, np.where(deviation > 1e-12 * np.maximum(values.max(axis=0), -values.min(axis=0)), deviation, np.inf)


def split_rows(
    n_samples: int, fractions: tuple[float, ...], seed: int, groups: IntArray | None = None
) -> tuple[IntArray, ...]:
    """Disjoint rows in random order, one array per fraction; the last takes what is left.

    With `groups` (n_samples,), numbers 0, 1, ..., no two parts have rows of one group: groups are drawn in random
    order, and parts end where they come nearest to their fractions.

    Raises:
        ValueError: a part would be empty; NotDefined where groups are too few for that.
    """
    order = permutation(n_samples, seed)
    if groups is not None:
        part_of = _parts_of_groups(np.bincount(groups), fractions, seed)[groups[order]]
        return tuple(order[part_of == part] for part in range(len(fractions)))
    cuts = np.rint(np.cumsum(fractions[:-1]) * n_samples).astype(int)
    parts = tuple(np.split(order, cuts))
    if any(len(part) == 0 for part in parts):
        raise ValueError(f"codes must have more rows to be split into {len(fractions)} parts; got {n_samples}")
    return parts


def _parts_of_groups(sizes: IntArray, fractions: tuple[float, ...], seed: int) -> IntArray:
    """(n_groups,) the part that each group of so many rows is in, every part with one group at least."""
    n_groups, n_parts = len(sizes), len(fractions)
    if n_groups < n_parts:
        raise NotDefined(f"needs {n_parts} groups of rows, so that no group is in two parts; there are {n_groups}")
    order = permutation(n_groups, seed)
    reached = np.concatenate([[0], np.cumsum(sizes[order])])
    part_of, start = np.empty(n_groups, dtype=np.int64), 0
    for part, target in enumerate(np.cumsum(fractions[:-1]) * reached[-1]):
        end = int(np.clip(np.abs(reached - target).argmin(), start + 1, n_groups - (n_parts - 1 - part)))
        part_of[order[start:end]], start = part, end
    part_of[order[start:]] = n_parts - 1
    return part_of
