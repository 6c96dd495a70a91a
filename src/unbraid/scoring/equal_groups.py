"""Score models with groups of rows on as many whole groups each, of about as many rows."""

from collections.abc import Mapping, Sequence

import numpy as np

from unbraid.base.types import IntArray
from unbraid.data import Representation
from unbraid.metrics._shared.resampling import permutation
from unbraid.scoring.equal_rows import AS_MANY, MOST_SUBSETS, effective_rows


def subsets_of_groups(models: Mapping[str, Representation], seed: int) -> dict[str, list[IntArray]]:
    """Rows of disjoint subsets of the groups of each model, as many groups as the model with the fewest has.

    Of a model with more rows per group than that with the fewest has on average, the same share of the rows of each
    group is drawn. All rows where neither is needed.
    """
    fewest = min(map(n_groups, models.values()))
    least = min(map(_rows_per_group, models.values()))
    subsets = {}
    for name, model in models.items():
        share = least / _rows_per_group(model)
        share = 1.0 if AS_MANY * share >= 1 else share
        n_chosen = n_groups(model) if n_groups(model) <= AS_MANY * fewest else fewest
        n_subsets = min(MOST_SUBSETS, n_groups(model) // n_chosen)
        chosen = permutation(n_groups(model), seed)[: n_chosen * n_subsets].reshape(n_subsets, n_chosen)
        groups = _groups(model)
        rows = _some_of_each_group(groups, share, seed)
        subsets[name] = [rows[np.isin(groups[rows], own)] for own in chosen]
    return subsets


def why_fewer_groups(models: Mapping[str, Representation], subsets: Mapping[str, Sequence[IntArray]]) -> list[str]:
    """A note on each model of which not all rows are scored at once."""
    fewest = min(models, key=lambda name: n_groups(models[name]))
    shortest = min(models, key=lambda name: _rows_per_group(models[name]))
    notes = []
    for name, own in subsets.items():
        n_rows, n_all = len(own[0]), len(models[name])
        if n_rows == n_all:
            continue
        groups = _groups(models[name])
        n_own = len(np.unique(groups[own[0]]))
        scope, why = f"{name} is scored on {n_rows:,} of its {n_all:,} rows", []
        if n_own < n_groups(models[name]):
            scope = f"{name} is scored on {n_own:,} of its {n_groups(models[name]):,} groups ({n_rows:,} rows)"
            why = [f"{fewest} has as many groups"]
        if len(own) > 1:
            scope = (
                f"{name} is scored on {len(own)} disjoint subsets of {n_own:,} of its {n_groups(models[name]):,} "
                f"groups ({n_rows:,} rows in the first), and its scores are means over them"
            )
        if n_rows < np.isin(groups, groups[own[0]]).sum():
            scope += ", some rows of each group"
            why.append(f"{shortest} has fewer rows per group")
        notes.append(f"scores depend on the number of groups and rows: {scope}, drawn with the seed: {', '.join(why)}")
    return notes


def n_groups(representation: Representation) -> int:
    return int(_groups(representation).max()) + 1


def _groups(representation: Representation) -> IntArray:
    """(n_samples,); each row is a group where none are known."""
    return np.arange(len(representation)) if representation.groups is None else representation.groups


def _rows_per_group(representation: Representation) -> float:
    return effective_rows(representation) / n_groups(representation)


def _some_of_each_group(groups: IntArray, share: float, seed: int) -> IntArray:
    """Rows in their order: of each group this share, and at least one."""
    order = permutation(len(groups), seed)
    order = order[np.argsort(groups[order], kind="stable")]
    sizes = np.bincount(groups)
    place = np.arange(len(groups)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    n_drawn = np.maximum(1, np.rint(share * sizes))
    return np.sort(order[place < np.repeat(n_drawn, sizes)])
