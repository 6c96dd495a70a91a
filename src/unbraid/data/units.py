"""Codes of several numbers per unit (a token, a slot, a quantised vector): their first principal component."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from unbraid.data.representation import Representation

REDUCED = "codes are the first principal components of"  # begins the note on them
CONSTANT = 1e-12  # of its largest value: a column that varies less is constant but for rounding
LEAST_EXPLAINED = 0.95  # of a unit's variance, below which a note names the component


def by_units(
    representation: Representation, method: str, blocks: Sequence[tuple[str, Sequence[int]]]
) -> Representation:
    """One code for each unit: the projection of its columns on the direction in which they vary most.

    Rows count by their weights. The sign is that of the largest loading. A note says how much of the variance of a unit
    it leaves out.

    Args:
        representation: whose columns the units are made of; posteriors, which have no such projection, are left out.
        method: "pca".
        blocks: name (or "") and columns of each unit.

    Raises:
        ValueError: another `method`, codes that are not finite, or fewer than two rows.
    """
    if method != "pca":
        raise ValueError(f"units must be 'pca'; got {method!r}")
    if len(representation) < 2 or not np.isfinite(representation.codes).all():
        raise ValueError(f"codes of units must be finite, in two rows or more; got {len(representation)} rows")
    columns, explained, weights = [], [], representation.weights
    for _, block in blocks:
        part = np.asarray(representation.codes[:, list(block)], dtype=np.float64)
        centred = part - np.average(part, axis=0, weights=weights)
        centred[:, np.ptp(part, axis=0) <= CONSTANT * np.abs(part).max(axis=0)] = 0.0
        counted = centred if weights is None else centred * weights[:, None]
        variances, directions = np.linalg.eigh(counted.T @ centred)
        loadings = directions[:, -1] * np.sign(directions[np.abs(directions[:, -1]).argmax(), -1])
        columns.append(centred @ loadings)
        explained.append(variances[-1] / variances.sum() if variances.sum() > 0 else 1.0)
    names = tuple(name or f"unit {place}" for place, (name, _) in enumerate(blocks))
    least = int(np.argmin(explained))
    notes = [f"{REDUCED} {len(blocks)} units"]
    if explained[least] < LEAST_EXPLAINED:
        notes.append(
            f"these components hold {np.mean(explained):.0%} of the variance of a unit on average, "
            f"{explained[least]:.0%} of {names[least]}: what the rest says is not scored"
        )
    return replace(
        representation,
        codes=np.column_stack(columns),
        code_names=names,
        code_blocks=None,
        log_variances=None,
        prior_kl=None,
        notes=(*representation.notes, *notes),
    )
