"""What scores take in memory, estimated before work begins; `benchmarks/memory.py` shows it beside what they took."""

from collections.abc import Iterable

import numpy as np

from unbraid._utils.memory import check_memory
from unbraid.metrics._shared.inputs import AT_ONCE

COPIES = 5  # in double precision that are held at once, beside the codes themselves: of all codes, or of some columns
FACTOR = 160  # bytes by row and factor: its levels as columns, and the codes that tell most of it
# Metrics that hold some columns in double precision at a time.
BY_COLUMNS = (
    "mig", "snc", "mcc", "modularity", "med", "sap", "factor_leakage", "jemmig", "mig_sup", "dcimig",
)  # fmt: skip


def check_memory_of_scores(metrics: Iterable[str], codes: np.ndarray, n_factors: int, others: float = 0) -> None:
    """As `check_memory`, of metrics by name.

    Args:
        metrics: with arguments or without.
        codes: (n_samples, n_codes).
        n_factors: against which they are scored.
        others: bytes that are needed besides.
    """
    few = {name.partition("(")[0] for name in metrics} <= {*BY_COLUMNS}
    advice = "give fewer rows" if few else f"give fewer rows, or metrics of single codes ({', '.join(BY_COLUMNS)})"
    doubles = min(codes.size, AT_ONCE) if few else codes.size
    check_memory(codes.nbytes + 8 * COPIES * doubles + FACTOR * len(codes) * n_factors + others, advice)
