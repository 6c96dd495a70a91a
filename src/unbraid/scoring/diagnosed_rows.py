"""The rows that a diagnosis looks at, and the parts of them that are predicted from each other."""

from typing import Any, NamedTuple

import numpy as np

from unbraid.base.types import IntArray
from unbraid.data import Representation
from unbraid.data.representation import INFORMATIVE
from unbraid.scoring.dependence import neighbours_alike, with_repeats_as_groups

MOST_ROWS = 5_000  # that are looked at, drawn at random
PARTS_OF_FEW, PARTS = 5, 3  # of which each is predicted from the others
FEW_ROWS = 1_500
FEWEST_OF_MANY, MANY_FACTORS = 2_000, 20  # rows that are looked at where factors are many, and how many that is
STRETCHES = 5  # parts, where neighbouring rows are alike: each predicted from the others, and shifted in itself


def most_rows(n_factors: int) -> int:
    return min(MOST_ROWS, max(FEWEST_OF_MANY, MOST_ROWS * MANY_FACTORS // max(n_factors, 1)))


class Sample(NamedTuple):
    """The rows that are looked at."""

    representation: Representation
    matrix: Any  # (n_rows, n_codes) codes, as an array or sparse
    groups: IntArray | None  # rows that are never parted
    in_time: bool  # whether neighbouring rows are alike


def sample_of(representation: Representation, seed: int) -> Sample:
    """At most `MOST_ROWS` rows in their order, drawn by weight where rows have weights."""
    data = with_repeats_as_groups(representation)
    in_time = data.groups is None and neighbours_alike(data)
    rng, groups, most = np.random.default_rng(seed), data.groups, most_rows(len(data.names))
    if data.weights is not None:
        rows = np.sort(rng.choice(len(data), min(len(data), most), p=data.weights / data.weights.sum()))
        groups = rows if groups is None else groups[rows]
    else:
        rows = np.arange(len(data))
        if len(data) > most:
            rows = np.sort(rng.choice(len(data), most, replace=False))
        groups = None if groups is None else groups[rows]
    if groups is not None:
        groups = np.unique(groups, return_inverse=True)[1]
    data = data if len(rows) == len(data) and data.weights is None else data.keep_rows(rows)
    return Sample(data, data.codes, groups, in_time)


def dead_codes(representation: Representation) -> IntArray:
    """Codes that do not vary or, where log-variances are known, have next to no information on a row."""
    low, high = representation.codes.min(axis=0), representation.codes.max(axis=0)
    idle = high.astype(float) - low <= 1e-12 * np.maximum(np.abs(low), np.abs(high))
    signal = representation.signal()
    return np.flatnonzero(idle if signal is None else idle | (signal <= INFORMATIVE))


def parts_of(sample: Sample, rng: np.random.Generator) -> IntArray:
    """(n_rows,) the part of each row: whole groups, or stretches where neighbouring rows are alike."""
    n_rows = len(sample.representation)
    n_parts = PARTS_OF_FEW if n_rows < FEW_ROWS else PARTS
    if sample.in_time:
        return np.arange(n_rows) * STRETCHES // n_rows
    if sample.groups is None:
        return rng.permutation(np.arange(n_rows) % n_parts)
    sizes = np.bincount(sample.groups)
    order = rng.permutation(len(sizes))
    of_groups = np.empty(len(sizes), dtype=int)
    of_groups[order] = np.minimum(np.cumsum(sizes[order]) * n_parts // (n_rows + 1), n_parts - 1)
    return np.unique(of_groups[sample.groups], return_inverse=True)[1]
