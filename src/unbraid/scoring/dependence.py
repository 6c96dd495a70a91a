"""Whether neighbouring rows depend on each other, as those of a recording do."""

from dataclasses import replace

import numpy as np

from unbraid.base.types import BoolArray, FloatArray, IntArray
from unbraid.data import Representation

ALIKE = 0.3  # autocorrelation of codes and of factors from which on: both widen what a correlation strays by 1.1
SERIES = 0.25  # product of both from which on rows are a time series: what a correlation strays by grows by 1.3
REPEATED = 0.1  # share of the rows from which on it matters that they repeat others
FEW_STRETCHES, IN_STRETCH = 10, 20  # stretches of rows in order, and else rows of each, of equal ones elsewhere
FEWEST_UNEQUAL = 20  # rows, of which codes are told to be continuous
SPREADS = 5.0  # and how many of its standard deviations, 1 / sqrt(n_samples), it must be from 0


def note_on_neighbours(representation: Representation, *, null: bool, confidence: bool) -> tuple[str, ...]:
    """That rows hang together, of p-values by rows that were shuffled each by itself and of intervals by such parts.

    Of codes and of factors the largest first-order autocorrelation counts. Rows in the order of their factors, as of
    a grid or of several, are alike for that reason alone: then codes count by what is left of them among rows of equal
    factors.
    """
    affected = [word for word, applies in (("p-values", null), ("intervals", confidence)) if applies]
    strongest = _strongest_neighbours(representation) if affected else None
    if strongest is None:
        return ()
    code, of_code, factor, of_factor = strongest
    advice = "give groups= (--groups)"
    advice += ", or of a time series null='shift' (--null shift)" if null else ""
    return (
        f"neighbouring rows are alike (autocorrelation {of_code:.2f} of {code}, {of_factor:.2f} of {factor}), and "
        f"{' and '.join(affected)} take rows as independent; {advice}",
    )


def neighbours_alike(representation: Representation) -> bool:
    """Whether rows without groups depend on their neighbours, as those of a time series, and not as sorted rows do."""
    strongest = None if in_order(representation.factors) else _strongest_neighbours(representation)
    return strongest is not None and strongest[1] * strongest[3] >= SERIES


def _strongest_neighbours(representation: Representation) -> tuple[str, float, str, float] | None:
    """The code and the factor of the largest autocorrelations, and these, where both matter."""
    least = max(ALIKE, SPREADS / np.sqrt(max(len(representation), 1)))
    if not representation.names or representation.groups is not None or len(representation) < 3:
        return None
    equal = (representation.factors[1:] == representation.factors[:-1]).all(axis=1)
    sorted_rows = in_order(representation.factors)
    runs = None if sorted_rows else _runs_of_levels(representation.factors)
    of_factors = np.array([_autocorrelation(columns, runs) for columns in _as_columns(representation)])
    if sorted_rows:
        if equal.mean() > 0.1:
            runs = np.append(0, np.cumsum(~equal))
        elif len(representation.names) > 1:
            return None
    elif equal.mean() < 0.1 and (n_stretches := _stretches_in_order(representation.factors)):
        levels = np.unique(representation.factors, axis=0, return_inverse=True)[1]
        if levels.max() < len(levels) // 2 and n_stretches <= len(levels) // IN_STRETCH:
            representation = replace(representation, codes=_less_means(representation.codes, levels))
        elif n_stretches <= FEW_STRETCHES:
            return None
    of_codes = _of_codes(representation, runs)
    if of_factors.max() < least or of_codes.max(initial=0.0) < least:
        return None
    code, factor = int(of_codes.argmax()), int(of_factors.argmax())
    names = representation.code_labels()[code], representation.names[factor]
    return names[0], float(of_codes[code]), names[1], float(of_factors[factor])


def with_repeats_as_groups(representation: Representation) -> Representation:
    """The same with equal rows as groups, and a note, where many rows repeat others and no groups are known.

    Rows repeat others in oversampled classes, or where images were drawn with replacement. Codes of few values, such as
    those that equal the factors, have equal rows for another reason and stay as they are: one of the codes must differ
    between almost any two unequal rows.
    """
    n_rows = len(representation)
    if representation.groups is not None or not representation.names:
        return representation
    _, first, groups = np.unique(_row_hashes(representation), return_index=True, return_inverse=True)
    if len(first) < FEWEST_UNEQUAL or len(first) > (1 - REPEATED) * n_rows:
        return representation
    different = representation.codes[first]
    continuous = (different != np.rint(different)).any(axis=0)
    n_values = [len(np.unique(column)) for column in different[:, continuous].T]
    if max(n_values, default=0) < (1 - REPEATED) * len(first):
        return representation
    note = (
        f"{n_rows - len(first):,} of {n_rows:,} rows repeat the codes and labels of another row; "
        "equal rows count as one group"
    )
    return replace(representation, groups=groups, notes=(*representation.notes, note))


def _row_hashes(representation: Representation) -> IntArray:
    """(n_samples,) uint64, the same for rows of equal codes and factors: odd multiples of their bits, summed."""
    draw, total = np.random.default_rng(0), np.zeros(len(representation), dtype=np.uint64)
    for matrix in (representation.codes, representation.factors):
        odd = 2 * draw.integers(0, 2**63, matrix.shape[1], dtype=np.uint64) + 1
        for column, multiple in zip(matrix.T, odd, strict=True):
            total += np.ascontiguousarray(column, dtype=np.float64).view(np.uint64) * multiple
    return total


def in_order(factors: FloatArray | IntArray) -> bool:
    """Whether rows ascend by one factor, those equal in it by another, and so on, as those of a grid."""
    steps, left = np.diff(factors, axis=0), list(range(factors.shape[1]))
    tied: BoolArray = np.ones(len(steps), dtype=bool)
    while left:
        next_one = next((column for column in left if (steps[tied, column] >= 0).all()), None)
        if next_one is None:
            return False
        tied &= steps[:, next_one] == 0
        left.remove(next_one)
    return True


def _stretches_in_order(factors: FloatArray | IntArray) -> int:
    """How many stretches of ascending rows there are, as in a grid that is repeated; 0 where no factor is slow."""
    steps = np.diff(factors, axis=0)
    steps = steps[:, np.lexsort(((steps != 0).sum(axis=0), (steps < 0).sum(axis=0)))]
    if steps.shape[1] < 2 or (steps[:, 0] == 0).mean() < 0.5:
        return 0
    first = (steps != 0).argmax(axis=1)
    return 1 + int((steps[np.arange(len(steps)), first] < 0).sum())


def _less_means(codes: FloatArray, levels: IntArray) -> FloatArray:
    """What is left of the codes among rows of equal factors."""
    counts = np.bincount(levels)
    means = np.stack([np.bincount(levels, weights=column) / counts for column in codes.T], axis=1)
    return codes - means[levels]


def _runs_of_levels(factors: FloatArray | IntArray) -> IntArray | None:
    """(n_samples,) the run of each row, where rows are put together by the levels of some factor, as in folders.

    Each level of it then stands in one stretch of rows; None where there is no such factor.
    """
    together = [np.append(0, np.cumsum(column[1:] != column[:-1])) for column in factors.T if _in_one_stretch(column)]
    return np.unique(np.stack(together, axis=1), axis=0, return_inverse=True)[1] if together else None


def _in_one_stretch(column: FloatArray | IntArray) -> bool:
    n_levels = len(np.unique(column))
    return 1 < n_levels <= len(column) // 10 and int((column[1:] != column[:-1]).sum()) == n_levels - 1


def _as_columns(representation: Representation) -> list[FloatArray]:
    """Of each factor: a number, cosine and sine of what goes around, or an indicator of each level."""
    sizes, columns = representation.sizes or (0,) * len(representation.names), []
    for values, kind, size in zip(representation.factors.T, representation.kinds, sizes, strict=True):
        values = values.astype(float)
        if kind == "cyclic":
            whole = (values == np.rint(values)).all()
            angles = values * (2 * np.pi / (size or values.max() + 1)) if whole else values
            columns.append(np.stack([np.cos(angles), np.sin(angles)], axis=1))
        elif kind == "categorical":
            columns.append((values[:, None] == np.unique(values)).astype(float))
        else:
            columns.append(values[:, None])
    return columns


def _of_codes(representation: Representation, runs: IntArray | None) -> FloatArray:
    """(n_codes,); with `runs` (n_samples,) of what is left of the codes less the mean of each run, and within them."""
    return np.array([_autocorrelation(column[:, None].astype(float), runs) for column in representation.codes.T])


def _autocorrelation(columns: FloatArray, runs: IntArray | None = None) -> float:
    """First-order, of vectors (n_samples, n_columns); 0 of what does not vary."""
    if runs is None:
        centred, within = columns - columns.mean(axis=0), np.ones(len(columns) - 1, dtype=bool)
    else:
        centred, within = _less_means(columns, runs), runs[1:] == runs[:-1]
    squares = float((centred**2).sum())
    return float((centred[1:] * centred[:-1])[within].sum()) / squares if squares > 0 else 0.0
