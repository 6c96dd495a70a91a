"""The input of `score` as one representation: rows matched, gaps left out, units and blocks made columns."""

import inspect
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unbraid.base.arrays import as_array, as_full, column_names, in_columns, in_full, is_sparse, is_wide
from unbraid.base.counted import counted
from unbraid.base.suggest import suggestion
from unbraid.base.types import ArrayLike, BoolArray, FloatArray
from unbraid.data import POSTERIOR, Representation
from unbraid.data.guessing import NUMBERS_ROWS, refuse_swapped, why_no_factor
from unbraid.data.labels import is_plain
from unbraid.data.representation import grouped_by, with_labels
from unbraid.data.row_index import match_rows
from unbraid.data.units import by_units
from unbraid.metrics._shared.inputs import all_finite, finite_matrix, real_matrix
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.dependence import with_repeats_as_groups
from unbraid.scoring.engine import Gap, Objects, gap_of_rows
from unbraid.scoring.named_blocks import Blocks, blocks_of, units_of
from unbraid.scoring.null import parse_null
from unbraid.scoring.unwanted import named, split_unwanted

Confidence: TypeAlias = float | tuple[float, int]  # the second is the number of parts of the rows
Interval: TypeAlias = tuple[float, int | None]  # its level, and from how many parts, where that was said
Baselines: TypeAlias = Mapping[str, Baseline | Representation | ArrayLike]

# What `score` takes to describe codes and labels; what of it has a row per sample; what is of labels alone; what a
# Representation may be given later; and what a matrix of numbers may come with.
DESCRIPTION = (*tuple(inspect.signature(Representation.of).parameters)[2:], "units")
WITH_ROWS = (*POSTERIOR, "weights", "groups")
OF_LABELS = ("names", "kinds", "period", "missing", "columns")
ADDED = ("weights", "groups", "code_blocks", "factor_blocks", "orbits")
PLAIN = {"names", "kinds", "sizes", "log_variances", "unwanted", *ADDED}
OF_FULL_CODES = {*DESCRIPTION, "null", "confidence", "baselines", "held_out"} - {*OF_LABELS, "dense", "key"}
FEW_COLUMNS = 128  # sparse codes of no more become a full array where one is needed


class Rows(NamedTuple):
    """The arguments that go by rows, in one order of these, and what describes them."""

    codes: Any
    factors: Any
    held_out: Any
    baselines: Mapping[str, Any]
    description: dict[str, Any]  # as `Representation.of` takes it
    unwanted: tuple[str, ...]
    units: str | None
    dense: bool
    notes: tuple[str, ...]


class Data(NamedTuple):
    """What is scored."""

    every: Representation  # with all factors
    representation: Representation  # without the unwanted ones
    unwanted: Mapping[str, Representation]  # each alone, by the name of its row
    objects: Objects | None  # encodes whole objects
    blocks: Blocks | None
    baselines: Mapping[str, Baseline]
    held_out: Gap | None


def align_rows(
    codes: Any, factors: Any, baselines: Baselines | None, held_out: Gap | None, description: Mapping[str, Any]
) -> Rows:
    """Rows of objects with an index by that index, all else by position.

    Raises:
        TypeError: an unknown name in `description`.
        ValueError: rows cannot be matched, or a column is to be both groups and a factor.
    """
    for name in description:
        if name not in DESCRIPTION:
            known = (*DESCRIPTION, "metrics", "factors")
            raise TypeError(f"score() has no argument {name!r}; {suggestion(name, known)}")
    described = {name: value for name, value in description.items() if value is not None}
    unwanted, units, dense = (described.pop(name, None) for name in ("unwanted", "units", "dense"))
    unwanted, dense = named(unwanted or ()), bool(dense)
    columns, groups = named(described.get("columns", ()), "columns"), described.get("groups")
    if isinstance(groups, str) and groups in (*columns, *unwanted):
        raise ValueError(f"groups={groups!r} makes this column no factor: leave it out of columns and unwanted")
    if "columns" in described:
        described["columns"] = list(dict.fromkeys([*columns, *unwanted]))
    baselines = baselines or {}
    if isinstance(codes, Representation):
        return Rows(codes, factors, held_out, baselines, described, unwanted, units, dense, ())
    if getattr(codes, "ndim", 2) == 3:
        if "code_blocks" in described:
            raise ValueError("codes of three axes are blocks already: leave code_blocks out")
        codes, described["code_blocks"] = in_columns(as_array(codes))
    rows = {"codes": codes, "factors": factors, **{name: described.get(name) for name in WITH_ROWS}}
    rows |= {"held_out": held_out, **{_argument_name(name): values for name, values in baselines.items()}}
    rows, notes = match_rows(rows, described.pop("key", None))
    described |= {name: rows[name] for name in WITH_ROWS if name in described}
    described |= {"unwanted": unwanted} if unwanted else {}
    baselines = {name: rows[_argument_name(name)] for name in baselines}
    return Rows(rows["codes"], rows["factors"], rows["held_out"], baselines, described, unwanted, units, dense, notes)


def full_codes(rows: Rows, null: int | str, confidence: Confidence | None) -> Any:
    """Codes as a full array, or None for sparse or wide ones that can be read by columns.

    Raises:
        ValueError: they are to be read by columns, and an argument needs all of them at once.
    """
    options = {"null": null, "confidence": confidence, "baselines": rows.baselines, "held_out": rows.held_out}
    needs = needing_full({**options, "unwanted": rows.unwanted, "units": rows.units, **rows.description})
    if rows.dense or (needs and has_few_columns(rows.codes)):
        return as_full(rows.codes)
    if isinstance(rows.codes, Representation) or not is_wide(rows.codes):
        return rows.codes
    if needs:
        arguments = " and ".join(needs)
        raise ValueError(
            f"a full array is needed for {arguments}, and codes {in_full(np.shape(rows.codes))}: give dense=True "
            f"(--dense), or leave {arguments} out"
        )
    return None


def needing_full(arguments: Mapping[str, Any]) -> list[str]:
    """Those of the arguments of `score` that are given, and for which codes must be a full array."""
    present = {name: value for name, value in arguments.items() if name in OF_FULL_CODES and value is not None}
    return [
        name for name, value in present.items() if not (isinstance(value, int | list | tuple | Mapping) and not value)
    ]


def has_few_columns(codes: Any) -> bool:
    """Whether codes are sparse, and few enough to be made a full array where one is needed."""
    return is_sparse(codes) and codes.shape[-1] <= FEW_COLUMNS


def read_data(rows: Rows, null: int | str, interval: Interval | None) -> Data:
    """One representation of all that was given, and the same without its unwanted factors."""
    every, scored = _representation(rows)
    baselines = {name: _baseline(name, codes, rows, every, scored) for name, codes in rows.baselines.items()}
    held_out = rows.held_out
    if np.shape(held_out) == scored.shape:  # a mask of all rows loses those that are not scored
        held_out = gap_of_rows(held_out, len(scored), np.flatnonzero(scored))
    if rows.units is not None:
        every = by_units(every, rows.units, units_of(every))
    if (null or interval) and not parse_null(null)[0]:  # shifts are of rows in their order
        every = with_repeats_as_groups(every)
    representation, unwanted = split_unwanted(every, rows.unwanted)
    blocks = blocks_of(representation)
    notes = (*rows.notes, *representation.notes, *(() if blocks is None else (blocks.note,)))
    objects, representation = representation.orbits, replace(representation, orbits=None, notes=notes)
    return Data(every, representation, unwanted, objects, blocks, baselines, held_out)


def _representation(rows: Rows) -> tuple[Representation, BoolArray]:
    """What is scored, and which rows (n_rows,) it holds: those that lack no label and have a weight above 0."""
    if isinstance(rows.codes, Representation):
        representation = _with_more(rows.codes, rows.factors, rows.description)
        scored = np.ones(len(representation), dtype=bool)
    else:
        codes: Any = real_matrix(rows.codes, "codes", "n_codes")
        codes = codes if codes.dtype.kind == "f" else codes.astype(np.float64)  # floats as precise as they came
        representation, scored = _with_factors(codes, rows)
        finite_rows(codes, "codes", scored)
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


def _with_factors(codes: FloatArray, rows: Rows) -> tuple[Representation, BoolArray]:
    """Codes with plain numbers as they are, or with labels of any sort, and which rows lack none of these."""
    described = {"code_names": column_names(rows.codes), **rows.description}
    names, kinds = described.get("names"), described.get("kinds")
    plain = rows.description.keys() <= PLAIN and not isinstance(described.get("groups"), str)
    if rows.factors is None or not plain or isinstance(kinds, Mapping) or not is_plain(rows.factors):
        representation, used = with_labels(codes, rows.factors, **described)
        return representation, used.copy()
    described.pop("unwanted", None)
    if "sizes" in described:
        described["sizes"] = tuple(described["sizes"])
    representation = Representation(codes, rows.factors, **described)
    if kinds is None:
        if names is None:
            refuse_swapped(codes, np.asarray(representation.factors, dtype=float))
        for name, column in zip(representation.names, representation.factors.T, strict=True):
            if why_no_factor("", column, text=False) == NUMBERS_ROWS:
                raise ValueError(f"factors column {name} {NUMBERS_ROWS}: leave it out, or give its kind (kinds=)")
    return representation, np.ones(len(codes), dtype=bool)


def _with_more(representation: Representation, factors: Any, description: Mapping[str, Any]) -> Representation:
    """A Representation with the parts of the description that it lacks."""
    if "key" in description:
        raise ValueError("key is for frames: the rows of a Representation are matched already")
    twice = [name for name in description if name not in ADDED or getattr(representation, name) is not None]
    if twice := [*([] if factors is None else ["factors"]), *twice]:
        raise ValueError(f"a Representation brings its own {' and '.join(twice)}; give one or the other")
    if isinstance(column := description.get("groups"), str):
        blocks = None if representation.factor_blocks is None else blocks_of(representation)
        representation = grouped_by(representation, column)
        if blocks is not None:  # by names: places have changed
            representation = replace(representation, factor_blocks=blocks.text_of_factors)
        description = {name: value for name, value in description.items() if name != "groups"}
    return replace(representation, **description)


def finite_rows(matrix: FloatArray, name: str, rows: BoolArray) -> FloatArray:
    """The marked rows of a matrix; ValueError where one is not finite, by its place in the matrix."""
    chosen = matrix if rows.all() else matrix[rows]
    if not all_finite(chosen):
        finite_matrix(np.where(rows[:, None], matrix, 0), name, "n_codes")
    return chosen


def _argument_name(baseline: str) -> str:
    return f"baselines[{baseline!r}]"


def _baseline(name: str, baseline: Any, rows: Rows, every: Representation, scored: BoolArray) -> Baseline:
    """A baseline on the rows that are scored, with the labels of `every`."""
    representation, objects = baseline if isinstance(baseline, Baseline) else (baseline, None)
    argument = _argument_name(name)
    if not isinstance(representation, Representation):
        representation = Representation(real_matrix(representation, argument, "n_codes").astype(np.float64, copy=False))
    if len(representation) != len(scored):
        raise ValueError(f"{argument} must have as many rows as codes ({len(scored)}); got {len(representation)}")
    if isinstance(rows.codes, Representation):
        known = [factor for factor in rows.codes.names if factor in representation.names]
        own, scored_codes = representation.keep_factors(known), rows.codes.keep_factors(known)
        if not np.array_equal(own.factors, scored_codes.factors):
            raise ValueError(f"{argument} has other rows than codes: the factors differ")
    posterior = {
        part: None if (array := getattr(representation, part)) is None else finite_rows(array, part, scored)
        for part in POSTERIOR
    }
    codes = finite_rows(representation.codes, argument, scored)
    described_codes = replace(
        every, codes=codes, code_names=representation.code_names, code_blocks=None, factor_blocks=None, orbits=None,
        **posterior,
    )  # fmt: skip
    return Baseline(described_codes, objects)
