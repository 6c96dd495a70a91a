"""The input of `score` as one representation: rows matched, gaps left out, units and blocks made columns."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unbraid.base.arrays import as_array, as_full, column_names, in_columns, in_full, is_sparse, is_wide
from unbraid.base.counted import counted
from unbraid.base.suggest import suggestion
from unbraid.base.types import ArrayLike, BoolArray, FloatArray
from unbraid.data import POSTERIOR, Representation
from unbraid.data.representation import with_labels
from unbraid.data.row_index import match_rows
from unbraid.metrics._shared.inputs import finite_matrix, real_matrix
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.dependence import with_repeats_as_groups
from unbraid.scoring.engine import Gap, Objects, gap_of_rows
from unbraid.scoring.named_blocks import Blocks, blocks_of, by_units, without_factors
from unbraid.scoring.null import parse_null
from unbraid.scoring.unwanted import named, split_unwanted

Confidence: TypeAlias = float | tuple[float, int]  # the second is the number of parts of the rows
Interval: TypeAlias = tuple[float, int | None]  # its level, and from how many parts, where that was said
Baselines: TypeAlias = Mapping[str, Baseline | Representation | ArrayLike]

# What `score` takes to describe codes and labels; what of it has a row per sample; what reads the labels; and what a
# Representation may be given later.
DESCRIPTION = (*tuple(inspect.signature(Representation.of).parameters)[2:], "units")
WITH_ROWS = (*POSTERIOR, "weights", "groups")
OF_LABELS = ("names", "kinds", "period", "missing", "columns")
ADDED = ("weights", "groups", "code_blocks", "factor_blocks", "orbits")
OF_FULL_CODES = {*DESCRIPTION, "null", "confidence", "baselines", "held_out"} - {*OF_LABELS, "dense", "key"}
FEW_COLUMNS = 128  # sparse codes of no more become a full array where one is needed


class Data(NamedTuple):
    """What is scored."""

    every: Representation  # with all factors
    representation: Representation  # without the unwanted ones
    unwanted: Mapping[str, Representation]  # each alone, by the name of its row
    objects: Objects | None  # encodes whole objects
    blocks: Blocks | None
    baselines: Mapping[str, Baseline]
    held_out: Gap | None
    wide: Any  # codes (n_rows, n_codes) to be read by columns, of which the representations hold none; else None
    scored: BoolArray  # (n_rows,) which rows the representations hold: those that lack no label and have a weight


def read_data(
    codes: Any,
    factors: Any,
    description: Mapping[str, Any],
    *,
    null: int | str = 0,
    interval: Interval | None = None,
    baselines: Baselines | None = None,
    held_out: Any = None,
) -> Data:
    """One representation of all that was given, and the same without its unwanted factors.

    Raises:
        TypeError: an unknown name in `description`.
        ValueError: unsound input; or codes are to be read by columns, and an argument needs all of them at once.
    """
    for name in description:
        if name not in DESCRIPTION:
            known = (*DESCRIPTION, "metrics", "factors")
            raise TypeError(f"score() has no argument {name!r}; {suggestion(name, known)}")
    described = {name: value for name, value in description.items() if value is not None}
    options = {**described, "null": null, "confidence": interval, "baselines": baselines, "held_out": held_out}
    units, dense = described.pop("units", None), described.pop("dense", False)
    unwanted, columns = named(described.pop("unwanted", ())), named(described.get("columns", ()), "columns")
    if isinstance(groups := described.get("groups"), str) and groups in (*columns, *unwanted):
        raise ValueError(f"groups={groups!r} makes this column no factor: leave it out of columns and unwanted")
    baselines = dict(baselines or {})
    if isinstance(codes, Representation):
        every, wide = _with_more(codes, factors, described), None
        scored = np.ones(len(every), dtype=bool)
    else:
        if "columns" in described:
            described["columns"] = list(dict.fromkeys([*columns, *unwanted]))
        if getattr(codes, "ndim", 2) == 3:
            if "code_blocks" in described:
                raise ValueError("codes of three axes are blocks already: leave code_blocks out")
            codes, described["code_blocks"] = in_columns(as_array(codes))
        own: dict[str, Any] = {name: described.get(name) for name in WITH_ROWS}
        own |= {"held_out": held_out, **{_argument_name(name): baseline for name, baseline in baselines.items()}}
        rows, notes = match_rows({"codes": codes, "factors": factors, **own}, described.pop("key", None))
        held_out, baselines = rows["held_out"], {name: rows[_argument_name(name)] for name in baselines}
        described = {"code_names": column_names(rows["codes"]), **described, **{name: rows[name] for name in WITH_ROWS}}
        needs = [name for name, value in options.items() if name in OF_FULL_CODES and not _is_empty(value)]
        full, wide = _full_or_wide(rows["codes"], needs, dense)
        of_labels = {name: described.pop(name, None) for name in (*OF_LABELS, "sizes", "groups")}
        unlabelled = Representation(full, notes=notes, **described)
        every, scored = with_labels(
            unlabelled, rows["factors"], unwanted=unwanted, shape=(full if wide is None else wide).shape, **of_labels
        )
        finite_rows(full, "codes", scored)
    every, scored = _with_notes(every, scored)
    source = codes if isinstance(codes, Representation) else None
    baselines = {
        name: _baseline(_argument_name(name), baseline, source, every, scored) for name, baseline in baselines.items()
    }
    if np.shape(held_out) == scored.shape:  # a mask of all rows loses those that are not scored
        held_out = gap_of_rows(held_out, len(scored), np.flatnonzero(scored))
    if units is not None:
        every = by_units(every, units)
    if (null or interval) and not parse_null(null)[0]:  # shifts are of rows in their order
        every = with_repeats_as_groups(every)
    representation, views = split_unwanted(every, unwanted)
    blocks = blocks_of(representation)
    notes = (*representation.notes, *(() if blocks is None else (blocks.note,)))
    objects, representation = representation.orbits, replace(representation, orbits=None, notes=notes)
    return Data(every, representation, views, objects, blocks, baselines, held_out, wide, scored)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, int | list | tuple | Mapping) and not value)


def _full_or_wide(codes: Any, needs: Sequence[str], dense: bool) -> tuple[FloatArray, Any]:
    """Codes as a full array of floats, and None; or one without columns, and the codes to be read by columns.

    Args:
        codes: (n_rows, n_codes).
        needs: arguments for which codes must be a full array.
        dense: whether they are to be one.
    """
    if is_wide(codes):
        if not (dense or needs):
            return np.empty((codes.shape[0], 0)), codes
        if not (dense or (is_sparse(codes) and codes.shape[-1] <= FEW_COLUMNS)):
            arguments = " and ".join(needs)
            raise ValueError(
                f"a full array is needed for {arguments}, and codes {in_full(np.shape(codes))}: give dense=True "
                f"(--dense), or leave {arguments} out"
            )
        codes = as_full(codes)
    full: Any = real_matrix(codes, "codes", "n_codes")
    return (full if full.dtype.kind == "f" else full.astype(np.float64)), None  # floats as precise as they came


def _with_notes(representation: Representation, scored: BoolArray) -> tuple[Representation, BoolArray]:
    """Without rows of weight 0, which are marked as not scored; notes say what weights and groups do."""
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


def _with_more(representation: Representation, factors: Any, description: Mapping[str, Any]) -> Representation:
    """A Representation with the parts of the description that it lacks."""
    if "key" in description:
        raise ValueError("key is for frames: the rows of a Representation are matched already")
    twice = [name for name in description if name not in ADDED or getattr(representation, name) is not None]
    if twice := [*([] if factors is None else ["factors"]), *twice]:
        raise ValueError(f"a Representation brings its own {' and '.join(twice)}; give one or the other")
    if isinstance(column := description.get("groups"), str):
        if column not in representation.names:
            known = ", ".join(representation.names) or "none"
            raise ValueError(f"groups={column!r} names no factor; there are {known}")
        groups = representation.factors[:, representation.names.index(column)]
        representation, description = without_factors(representation, [column]), {**description, "groups": groups}
    return replace(representation, **description)


def finite_rows(matrix: FloatArray, name: str, rows: BoolArray) -> FloatArray:
    """The marked rows of a matrix; ValueError where one is not finite, by its place in the matrix."""
    chosen = matrix if rows.all() else matrix[rows]
    if not np.isfinite(chosen).all():
        finite_matrix(np.where(rows[:, None], matrix, 0), name, "n_codes")
    return chosen


def _argument_name(baseline: str) -> str:
    return f"baselines[{baseline!r}]"


def _baseline(
    argument: str, baseline: Any, source: Representation | None, every: Representation, scored: BoolArray
) -> Baseline:
    """A baseline on the rows that are scored, with the labels of `every`; `source` knows the factors of all rows."""
    representation, objects = baseline if isinstance(baseline, Baseline) else (baseline, None)
    if not isinstance(representation, Representation):
        representation = Representation(real_matrix(representation, argument, "n_codes").astype(np.float64, copy=False))
    if len(representation) != len(scored):
        raise ValueError(f"{argument} must have as many rows as codes ({len(scored)}); got {len(representation)}")
    if source is not None:
        known = [factor for factor in source.names if factor in representation.names]
        own, scored_codes = representation.keep_factors(known), source.keep_factors(known)
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
