"""Memory of scores, estimated before work begins; `evidence/benchmarks/memory.py` holds it against what they took."""

from collections.abc import Iterable

import numpy as np

from unbraid.base.memory import MARGIN, check_memory, free_memory
from unbraid.metrics._shared.inputs import AT_ONCE

# Copies in double precision that are held at once beside the codes themselves, and bytes by row and factor (its levels
# as columns, the codes that tell most of it): of metrics that read some columns at a time, and of most.
COPIES, FACTOR = 5, 160
COPIES_OF_ALL, FACTOR_OF_ALL = 7, 400
USUAL = 4e9  # bytes, where the system does not say how many are free
# Metrics that hold some columns in double precision at a time.
BY_COLUMNS = (
    "mig", "snc", "mcc", "modularity", "med", "sap", "factor_leakage", "jemmig", "mig_sup", "dcimig",
)  # fmt: skip


def check_memory_of_scores(metrics: Iterable[str], codes: np.ndarray, n_factors: int, extra: float = 0) -> None:
    """As `check_memory`, of metrics by name.

    Args:
        metrics: with arguments or without.
        codes: (n_samples, n_codes).
        n_factors: against which they are scored.
        extra: bytes that are needed in addition.
    """
    few = _by_columns(metrics)
    needed = _needed(few, codes, n_factors) + extra
    advice = "give fewer rows" if few else f"give fewer rows, or metrics of single codes ({', '.join(BY_COLUMNS)})"
    check_memory(needed, advice)


def scores_at_a_time(metrics: Iterable[str], codes: np.ndarray, n_factors: int) -> int:
    """How many scores of these rows fit into half of the free memory at a time, at least one; arguments as above."""
    free, needed = free_memory(), MARGIN * _needed(_by_columns(metrics), codes, n_factors)
    return max(1, int((USUAL if free is None else free) / 2 / needed))


def _by_columns(metrics: Iterable[str]) -> bool:
    return {name.partition("(")[0] for name in metrics} <= {*BY_COLUMNS}


def _needed(few: bool, codes: np.ndarray, n_factors: int) -> float:
    """Bytes of scores by metrics of a few columns at a time, or of all of them."""
    copies, factor = (COPIES, FACTOR) if few else (COPIES_OF_ALL, FACTOR_OF_ALL)
    doubles = min(codes.size, AT_ONCE) if few else codes.size
    return codes.nbytes + 8 * copies * doubles + factor * len(codes) * n_factors
