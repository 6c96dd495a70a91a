"""Which factors are in the codes, where, and what is wrong: `unbraid.diagnose`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from unbraid.base.arrays import finite_sparse, is_sparse
from unbraid.base.types import ArrayLike, IntArray
from unbraid.data import Representation
from unbraid.files.score_file import FactorKind
from unbraid.scoring.diagnosed_rows import Sample, dead_codes, most_rows, parts_of, sample_of
from unbraid.scoring.diagnosis import CodeDiagnosis, Diagnosis, FactorDiagnosis
from unbraid.scoring.factor_evidence import CodeSearch
from unbraid.scoring.factor_verdicts import IN_TIME, Verdicts
from unbraid.scoring.score_data import Data, read_data

FEWEST_ROWS = 40
FEWEST_GROUPS = 5  # of rows
FEWEST_IN_TIME = 700  # rows, whose shifts are enough for a test at `LEVEL`


def diagnose(codes: ArrayLike | Representation, factors: Any = None, *, seed: int = 0, **description: Any) -> Diagnosis:
    """Say which factors are in the codes, where, and what is wrong.

    Every statement rests on held-out predictions. All codes together, and small sets of them, predict each factor: by
    local means, by a ridge regression, and by one on pieces and products of codes. A factor is present where
    predictions are better than of shuffled labels (level .01 over all factors, corrected by Holm; of whole groups where
    rows are in groups, and by shifts where neighbouring rows are alike). Its codes are the smallest set that
    holds 90 % of what all codes tell of it.

    Args:
        codes: (n_samples, n_codes) real, or a Representation, as `score` takes them. At most 5 000 rows are looked at.
        factors: (n_samples, n_factors), as `score` takes them.
        seed: of the parts of the rows and of their resamples; same seed, same answer.
        **description: what describes the data, as `score` takes it: names, kinds, groups, weights, unwanted, units, ...

    Returns:
        Diagnosis. `print` shows it; `factors[name]` has `kind`, `codes`, `strength`, `p`, `mixture`, `stability` and
        `text`, `codes[column]` what each code is about.

    Raises:
        TypeError: `description` has a name that `score` does not.
        ValueError: unsound input, or no factors.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> factors = rng.random((2000, 2))
        >>> codes = np.column_stack([factors[:, 0], rng.standard_normal(2000)])
        >>> diagnosis = diagnose(codes, factors, names=["x", "y"])
        >>> diagnosis.factors["x"].kind, diagnosis.factors["x"].codes, diagnosis.factors["y"].kind
        ('own code', (0,), 'absent')
    """
    data = read_data(codes, factors, description)
    if data.wide is not None:
        return diagnose_columns(data, seed)
    unwanted = [name for factor in data.unwanted.values() for name in factor.names]
    return diagnose_representation(data.every, seed=seed, unwanted=unwanted)


def diagnose_representation(
    representation: Representation, *, seed: int = 0, unwanted: Sequence[str] = ()
) -> Diagnosis:
    """`diagnose` of what `score` has read already.

    Raises:
        ValueError: there are no factors.
    """
    if not representation.names:
        raise ValueError("these codes have no factors to look for: give labels")
    dead = dead_codes(representation)
    return _diagnosis(sample_of(representation, seed), dead, len(representation), unwanted, seed)


def diagnose_columns(data: Data, seed: int) -> Diagnosis:
    """`diagnose` of sparse codes, or of those on the disk, which never become a full array.

    Raises:
        ValueError: there are no labels.
    """
    labelled, codes = data.representation, data.wide
    if not labelled.names:
        raise ValueError("these codes have no factors to look for: give labels")
    most, drawn = most_rows(len(labelled.names)), np.arange(len(labelled))
    if len(labelled) > most:
        drawn = np.sort(np.random.default_rng(seed).choice(len(labelled), most, replace=False))
    rows = np.flatnonzero(data.scored)[drawn]
    matrix = finite_sparse(codes, data.scored).tocsr()[rows].tocsc() if is_sparse(codes) else np.asarray(codes[rows])
    sample = Sample(labelled.keep_rows(drawn), matrix, None, in_time=False)
    return _diagnosis(sample, np.array([], dtype=int), len(labelled), (), seed)


def _diagnosis(sample: Sample, dead: IntArray, n_samples: int, unwanted: Sequence[str], seed: int) -> Diagnosis:
    n_rows, n_codes = sample.matrix.shape
    if len(dead) == n_codes:
        return _nothing(sample, dead, n_samples, unwanted, "absent", "all codes are dead")
    if n_rows < FEWEST_ROWS:
        return _nothing(sample, dead, n_samples, unwanted, "unclear", f"fewer than {FEWEST_ROWS} rows")
    if sample.in_time and n_rows < FEWEST_IN_TIME:
        return _nothing(sample, dead, n_samples, unwanted, "unclear", "too few rows of a time series")
    rng = np.random.default_rng(seed)
    parts = parts_of(sample, rng)
    few = sample.groups is not None and sample.groups.max() + 1 < FEWEST_GROUPS
    if few or n_rows - np.bincount(parts).max() < FEWEST_ROWS // 2:
        return _nothing(sample, dead, n_samples, unwanted, "unclear", "too few groups of rows")
    live = np.setdiff1d(np.arange(n_codes), dead)
    return Verdicts(CodeSearch(sample, live, parts, rng)).diagnosis(dead, n_samples, n_codes, unwanted)


def _nothing(
    sample: Sample, dead: IntArray, n_samples: int, unwanted: Sequence[str], kind: FactorKind, detail: str
) -> Diagnosis:
    """The same of all factors, where nothing can be predicted."""
    verdict = FactorDiagnosis(kind, detail=detail)
    text = f"{verdict.columns()[0]}, {detail}"
    factors = {name: replace(verdict, unwanted=name in unwanted, text=text) for name in sample.representation.names}
    codes = {int(code): CodeDiagnosis("dead") for code in dead}
    notes = (IN_TIME,) if sample.in_time else ()
    return Diagnosis(factors, codes, n_samples, sample.matrix.shape[1], sample.representation.code_names, notes)
