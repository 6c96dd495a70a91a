"""Models that are to be compared: which of their rows are of one image, and what all of them must have alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from unbraid.base.suggest import listed
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation
from unbraid.scoring.dependence import with_repeats_as_groups
from unbraid.scoring.score import check_enough

Models = Mapping[str, Representation | str | Path] | Sequence[str | Path]


@dataclass(frozen=True, eq=False)
class MatchedModels:
    by_name: Mapping[str, Representation]
    paired: bool  # whether row k of each is of the same image
    notes: tuple[str, ...]


def load_models(models: Models) -> dict[str, Representation]:
    """Models by name, without rows of weight 0.

    Raises:
        FileNotFoundError, ValueError: as `unbraid.compare`.
    """
    if not isinstance(models, Mapping | list | tuple):
        expected = "a mapping from names to Representations or paths, or a list of such"
        raise ValueError(f"models must be {expected}; got {type(models).__name__}")
    pairs = (
        list(models.items())
        if isinstance(models, Mapping)
        else [
            (f"model {place}" if isinstance(model, Representation) else str(model), model)
            for place, model in enumerate(models)
        ]
    )
    named = {name: model if isinstance(model, Representation) else Representation.load(model) for name, model in pairs}
    if len(named) < len(models):
        raise ValueError("two of the models are the same file; give each once, or name them by a mapping")
    if len(named) < 2:
        raise ValueError(f"give two or more models to compare; got {len(named)}")
    # Without whole objects, which are other images than the rows that are compared.
    named = {name: replace(model, orbits=None).without_idle_rows() for name, model in named.items()}
    for name, model in named.items():
        try:
            check_enough(model)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    return named


def match_models(models: Mapping[str, Representation], paired: bool | None) -> MatchedModels:
    """The models with rows in one order, where these are of the same images, and with the same groups of rows.

    Args:
        models: with the same factors.
        paired: as for `unbraid.compare`.

    Raises:
        ValueError: as `unbraid.compare`.
    """
    matched = _matched_rows(models)
    models = _around_alike(models)
    notes, together = (), False
    if isinstance(matched, str):
        if paired:
            raise ValueError(matched)
        notes = () if paired is False else (f"unpaired: {matched}",)
    elif paired is not False:
        together = True
        models = {name: model.keep_rows(matched[name]) for name, model in models.items()}
    models = _with_repeats(models, together)
    for name in ("weights", "groups"):
        _refuse_other(name, models, together)
    return MatchedModels(models, together, notes)


def _with_repeats(models: Mapping[str, Representation], paired: bool) -> dict[str, Representation]:
    """The same with equal rows as groups, for all models where one of them has such."""
    grouped = {name: with_repeats_as_groups(each) for name, each in models.items()}
    new = [grouped[name] for name, each in models.items() if grouped[name] is not each]
    if not new or any(each.groups is not None for each in models.values()):
        return dict(models)
    if paired:  # rows are of the same images, whose codes some models may draw anew
        return {name: replace(each, groups=new[0].groups) for name, each in grouped.items()}
    return {
        name: each if each.groups is not None else replace(each, groups=np.arange(len(each)))
        for name, each in grouped.items()
    }


def _refuse_other(what: str, models: Mapping[str, Representation], paired: bool) -> None:
    """Raises ValueError where weights, or groups, are not of all models, or differ on paired rows."""
    (name, first), *rest = [(name, getattr(values, what)) for name, values in models.items()]
    for other, values in rest:
        if (first is None) != (values is None):
            with_them, without = (name, other) if values is None else (other, name)
            raise ValueError(f"{without} has no {what} of rows, which {with_them} has; give both, or neither")
        if paired and not np.array_equal(first, values):
            raise ValueError(f"the {what} of rows of {other} are not those of {name}, though the rows are")


def _matched_rows(models: Mapping[str, Representation]) -> dict[str, IntArray] | str:
    """Rows of each model such that row k is of one image; or why that cannot be told.

    Raises:
        ValueError: their factors differ.
    """
    (name, first), *rest = models.items()
    for other, second in rest:
        if second.names != first.names:
            raise ValueError(
                f"the factors of {other} ({', '.join(second.names)}) are not those of {name} "
                f"({', '.join(first.names)}): give both the same, in one order"
            )
        for factor, kind, other_kind in zip(first.names, first.kinds, second.kinds, strict=True):
            if kind != other_kind:
                raise ValueError(
                    f"factor {factor} is {kind} in {name} and {other_kind} in {other}: give both the same kinds"
                )
        for factor, levels, other_levels in zip(first.names, first.levels, second.levels, strict=False):
            if levels and other_levels and levels != other_levels:
                raise ValueError(
                    f"the levels of factor {factor} are {listed(levels)} in {name} and {listed(other_levels)} "
                    f"in {other}"
                )
    if not first.names:
        raise ValueError(f"{name} has no factors to score against: give labels (--labels)")
    orders: dict[str, IntArray] = {name: np.arange(len(first))}
    for other, second in rest:
        order = _order(first.factors, second.factors)
        if order is None:
            return f"the rows of {other} are not those of {name}: their factors do not match"
        orders[other] = order
    return orders


def _around_alike(models: Mapping[str, Representation]) -> dict[str, Representation]:
    """The same, whose cyclic factors go around as far in each: as its `sizes` say, those of another, or all rows show.

    Raises:
        ValueError: two models say otherwise.
    """
    first = next(iter(models.values()))
    stated = [(name, each.sizes) for name, each in models.items() if each.sizes is not None]
    for column in (column for column, kind in enumerate(first.kinds) if kind == "cyclic"):
        for name, sizes in stated:
            if sizes[column] != stated[0][1][column]:
                raise ValueError(
                    f"factor {first.names[column]} has {stated[0][1][column]} levels once around in {stated[0][0]} and "
                    f"{sizes[column]} in {name}: give both the same sizes"
                )
    shown = [sizes for each in models.values() if (sizes := each.known_sizes()) is not None]
    if "cyclic" not in first.kinds or not shown:
        return dict(models)
    known = stated[0][1] if stated else tuple(map(max, zip(*shown, strict=True)))
    return {name: replace(each, sizes=each.sizes or known) for name, each in models.items()}


def _order(factors: FloatArray | IntArray, other_factors: FloatArray | IntArray) -> IntArray | None:
    """Rows of `other_factors` in the order of `factors`, or None where that is ambiguous."""
    if factors.shape != other_factors.shape:
        return None
    if np.array_equal(factors, other_factors):
        return np.arange(len(factors))
    sorted_rows, other_sorted_rows = np.lexsort(factors.T), np.lexsort(other_factors.T)
    if not np.array_equal(factors[sorted_rows], other_factors[other_sorted_rows]) or len(
        np.unique(factors, axis=0)
    ) < len(factors):
        return None
    order = np.empty(len(factors), dtype=np.int64)
    order[sorted_rows] = other_sorted_rows
    return order
