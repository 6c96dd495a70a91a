"""The representation that is scored, from codes and labels as the user has them."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from unbraid.base.arguments import check_entries, list_of
from unbraid.base.arrays import as_array, check_weights, column_names
from unbraid.base.counted import counted
from unbraid.base.repr import with_names
from unbraid.base.suggest import suggestion
from unbraid.base.types import ArrayLike, BoolArray, FloatArray
from unbraid.data import POSTERIOR, Representation
from unbraid.data.guessing import NUMBERS_ROWS, refuse_swapped, why_no_factor
from unbraid.data.labels import check_groups, is_plain
from unbraid.data.representation import grouped_by, with_labels
from unbraid.metrics._shared.inputs import all_finite, check_inputs, finite_matrix, real_matrix
from unbraid.scoring.named_blocks import blocks_of

# What `Representation.of` takes beside codes and labels, and what `score` makes of them; what of it has a row per
# sample; what is of labels alone; and what a Representation may be given later.
ABOUT = (*tuple(inspect.signature(Representation.of).parameters)[2:], "units")
WITH_ROWS = (*POSTERIOR, "weights", "groups")
OF_LABELS = ("names", "kinds", "period", "missing", "columns")
ADDED = ("weights", "groups", "code_blocks", "factor_blocks", "orbits")
PLAIN = ("names", "kinds", "sizes", "log_variances", "unwanted", *ADDED)  # what `_of_numbers` takes


def check_description(description: Mapping[str, Any]) -> dict[str, Any]:
    """The description without arguments that are None.

    Raises:
        TypeError: a name that is unknown.
    """
    for name in description:
        if name not in ABOUT:
            raise TypeError(f"score() has no argument {name!r}; {suggestion(name, (*ABOUT, 'metrics', 'factors'))}")
    return {name: value for name, value in description.items() if value is not None}


def described(
    codes: ArrayLike | Representation, factors: Any, description: Mapping[str, Any]
) -> tuple[Representation, BoolArray]:
    """The checked representation of codes, factors and their description, and which rows (n_rows,) it holds.

    Those that lack a label, or have a weight of 0, are left out.
    """
    representation, scored = _representation(codes, factors, description)
    posterior = {name: getattr(representation, name) for name in POSTERIOR}
    checked = {name: finite_matrix(array, name, "n_codes") for name, array in posterior.items() if array is not None}
    representation = replace(representation, **checked)
    notes = list(representation.notes)
    if representation.weights is not None:
        scored[scored] = representation.weights > 0
        stood_for = representation.weights.sum()
        representation = representation.without_idle_rows()
        notes.append(f"weighted: {len(representation):,} rows stand for {stood_for:,.6g}; figures show each row once")
    if representation.groups is not None:
        groups = int(representation.groups.max()) + 1
        notes.append(f"rows in {counted(groups, 'group')}, which {'is' if groups == 1 else 'are'} never parted")
    return replace(representation, notes=tuple(notes)), scored


def _representation(
    codes: ArrayLike | Representation, factors: Any, description: Mapping[str, Any]
) -> tuple[Representation, BoolArray]:
    if isinstance(codes, Representation):
        more = _with_more(codes, {} if factors is None else {"factors": factors}, description)
        return more, np.ones(len(more), dtype=bool)
    groups, kinds = description.get("groups"), description.get("kinds")
    plain = description.keys() <= {*PLAIN} and not isinstance(groups, str) and not isinstance(kinds, Mapping)
    if factors is not None and plain and is_plain(factors):
        representation = _of_numbers(codes, factors, description)
        return representation, np.ones(len(representation), dtype=bool)
    matrix = _as_floats(real_matrix(codes, "codes", "n_codes"))
    representation, used = with_labels(matrix, factors, **{"code_names": column_names(codes), **description})
    finite_rows(matrix, "codes", used)
    return representation, used.copy()


def finite_rows(matrix: FloatArray, name: str, rows: BoolArray) -> FloatArray:
    """The marked rows of a matrix; ValueError where one is not finite, by its place in the matrix."""
    chosen = matrix if rows.all() else matrix[rows]
    if not all_finite(chosen):
        finite_matrix(np.where(rows[:, None], matrix, 0), name, "n_codes")
    return chosen


def _with_more(
    representation: Representation, factors: dict[str, Any], description: Mapping[str, Any]
) -> Representation:
    """A Representation with the parts of the description that it lacks."""
    if "key" in description:
        raise ValueError("key is for frames: the rows of a Representation are matched already")
    own = [name for name in description if name not in ADDED or getattr(representation, name) is not None]
    if twice := [*factors, *own]:
        raise ValueError(f"a Representation brings its own {' and '.join(twice)}; give one or the other")
    if isinstance(column := description.get("groups"), str):
        blocks = None if representation.factor_blocks is None else blocks_of(representation)
        representation = grouped_by(representation, column)
        if blocks is not None:  # by names: places have changed
            representation = replace(representation, factor_blocks=blocks.text_of_factors)
        description = {name: value for name, value in description.items() if name != "groups"}
    return replace(representation, **description)


def _of_numbers(codes: ArrayLike, factors: ArrayLike, description: Mapping[str, Any]) -> Representation:
    # Checked before the Representation is built, so that every wrong argument is named as score names it.
    names = None if description.get("names") is None else list_of("names", description["names"])
    try:
        inputs = check_inputs(codes, factors, description.get("kinds"))
    except ValueError as error:
        raise ValueError(with_names(str(error), () if names is None else names)) from None
    checked: dict[str, Any] = {"code_names": column_names(codes), **description}
    checked.pop("unwanted", None)
    for name in ("names", "sizes"):
        if name in description:
            check_entries(name, description[name], inputs.n_factors)
            checked[name] = tuple(description[name])
    for name, check in (("weights", check_weights), ("groups", check_groups)):
        if name in description:
            checked[name] = check(description[name], inputs.n_samples)
    if "kinds" in description:
        checked["kinds"] = inputs.kinds
    else:
        if names is None:
            refuse_swapped(inputs.stored, inputs.factors)
        for name, column in zip(names or range(inputs.n_factors), inputs.factors.T, strict=False):
            if why_no_factor("", column, text=False) == NUMBERS_ROWS:
                raise ValueError(f"factors column {name} {NUMBERS_ROWS}: leave it out, or give its kind (kinds=)")
    return Representation(_as_floats(inputs.stored), as_array(factors), **checked)


def _as_floats(codes: Any) -> FloatArray:
    """Floats as precise as they came, since in double precision they would take the more memory; all else as these."""
    return codes if codes.dtype.kind == "f" else codes.astype(np.float64)
