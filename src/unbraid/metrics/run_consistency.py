"""Consistency over runs: how well the codes of one training foretell those of another, by a line."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias

import numpy as np

from unbraid.base.arguments import check_choice, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.data.labels import check_groups
from unbraid.metrics._shared.inputs import check_matrix, split_rows, standardised
from unbraid.metrics._shared.regression import explained, least_squares

Fit: TypeAlias = Literal["halves", "all"]


@dataclass(frozen=True, eq=False, repr=False)
class RunConsistency(Shown):
    score: float  # mean over ordered pairs of runs
    per_pair: FloatArray  # (n_runs, n_runs) of the codes of the column from those of the row, 1 on the diagonal
    notes: tuple[str, ...] = ()


def run_consistency(
    runs: Sequence[ArrayLike], *, fit: Fit = "halves", groups: ArrayLike | None = None, seed: int = 0
) -> RunConsistency:
    """R^2 of the codes of one run, predicted by a line from those of another, over all ordered pairs of runs.

    Args:
        runs: two or more of (n_samples, n_codes) real: codes of the same samples, in the same order, by models that
            were trained apart. Numbers of codes may differ.
        fit: "halves" fits on one half of the rows and judges on the other, both ways. "all" fits and judges on all
            rows, as published: then D codes of noise foretell D / (n_samples - 1) of anything.
        groups: (n_samples,) group of each row (trial, animal, session); no group is in both halves.
        seed: of the halves.

    Returns:
        RunConsistency. `score` at most 1, higher is better; chance is 0 or a little below by "halves". Each code counts
        the same; a code of the predicted run that is constant, up to rounding, is left out, and a run that has no other
        scores 0. Invariant to linear maps of the codes that predict, so that rotated codes are consistent: whether
        single codes agree says `mcc` of one run's codes as the factors of the other, or `seed_consistency` of
        dictionaries.

    Raises:
        ValueError: fewer than two runs, other numbers of rows, values not finite, or fewer than four rows.

    Reference:
        Schneider et al. 2023, "Learnable latent embeddings for joint behavioural and neural analysis" (CEBRA), methods,
        consistency of embeddings between runs. "all" is `consistency_score(..., between="runs")` of cebra.

    Example:
        >>> z = np.random.default_rng(0).standard_normal((200, 3))
        >>> round(run_consistency([z, z @ [[1, 1, 0], [1, -1, 0], [0, 0, 2]]]).score, 6)
        1.0
    """
    check_choice("fit", fit, ("halves", "all"))
    check_whole("seed", seed, 0)
    if isinstance(runs, np.ndarray | str) or len(runs) < 2:
        raise ValueError("runs must be a list of the codes of at least two runs")
    codes = [check_matrix(each, f"runs[{place}]", "n_codes", 4) for place, each in enumerate(runs)]
    n_samples = len(codes[0])
    for place, each in enumerate(codes):
        if len(each) != n_samples:
            raise ValueError(f"runs must be codes of the same rows; runs[0] has {n_samples}, runs[{place}] {len(each)}")
    every = np.arange(n_samples)
    if fit == "all":
        splits = [(every, every)]
    else:
        numbered = None if groups is None else check_groups(groups, n_samples)
        halves = split_rows(n_samples, (0.5, 0.5), seed, numbered)
        splits = [halves, halves[::-1]]
    per_pair = np.eye(len(codes))
    for one, other in permutations(range(len(codes)), 2):
        per_pair[one, other] = np.mean([_explained(codes[one], codes[other], *way) for way in splits])
    pairs = ~np.eye(len(codes), dtype=bool)
    notes = ()
    if fit == "all":
        luck = np.mean([np.linalg.matrix_rank(standardised(each)) / (n_samples - 1) for each in codes])
        notes = (f"fitted to the rows that are judged: noise would score {luck:.2f}",)
    return RunConsistency(float(per_pair[pairs].mean()), per_pair, notes)


def _explained(one: FloatArray, other: FloatArray, known: IntArray, judged: IntArray) -> float:
    true = standardised(other)  # so that each code counts the same, whatever its scale; a constant one is 0
    true = true[:, true.any(axis=0)]
    if not true.shape[1]:
        return 0.0
    predicted = least_squares(one[known], true[known], one[judged])
    return float(explained(predicted, true[judged], np.arange(true.shape[1])).mean())
