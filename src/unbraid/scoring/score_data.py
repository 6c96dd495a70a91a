"""The input of `score` as one representation: rows matched, gaps left out, units and blocks made columns."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from unbraid.base.arrays import as_array, as_full, in_columns, in_full, is_sparse, is_wide
from unbraid.base.types import ArrayLike, BoolArray
from unbraid.data import POSTERIOR, Representation
from unbraid.data.row_index import match_rows
from unbraid.data.units import by_units
from unbraid.metrics._shared.inputs import real_matrix
from unbraid.scoring.baselines import Baseline
from unbraid.scoring.dependence import with_repeats_as_groups
from unbraid.scoring.engine import Gap, Objects, gap_of_rows
from unbraid.scoring.named_blocks import Blocks, blocks_of, units_of
from unbraid.scoring.null import parse_null
from unbraid.scoring.scored_codes import (
    ABOUT,
    OF_LABELS,
    WITH_ROWS,
    check_description,
    described,
    finite_rows,
)
from unbraid.scoring.unwanted import check_seen, named, split_unwanted

Confidence: TypeAlias = float | tuple[float, int]  # the second is the number of parts of the rows
Interval: TypeAlias = tuple[float, int | None]  # its level, and from how many parts, where that was said
Baselines: TypeAlias = Mapping[str, Baseline | Representation | ArrayLike]

OF_FULL_CODES = {*ABOUT, "null", "confidence", "baselines", "held_out"} - {*OF_LABELS, "dense", "key"}
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


def align_rows(
    codes: Any, factors: Any, baselines: Baselines | None, held_out: Gap | None, description: Mapping[str, Any]
) -> Rows:
    """Rows of objects with an index by that index, all else by position.

    Raises:
        TypeError: an unknown name in `description`.
        ValueError: rows cannot be matched, or a column is to be both groups and a factor.
    """
    description, notes = check_description(description), ()
    unwanted, units = named(description.pop("unwanted", ())), description.pop("units", None)
    codes, description = _with_units(codes, description)
    columns = named(description.get("columns", ()), "columns")
    if isinstance(groups := description.get("groups"), str) and groups in (*columns, *unwanted):
        raise ValueError(f"groups={groups!r} makes this column no factor: leave it out of columns and unwanted")
    if "columns" in description:
        description["columns"] = list(dict.fromkeys([*columns, *unwanted]))
    baselines = baselines or {}
    if not isinstance(codes, Representation):
        rows = {"codes": codes, "factors": factors, **{name: description.get(name) for name in WITH_ROWS}}
        rows |= {"held_out": held_out, **{_argument_name(name): values for name, values in baselines.items()}}
        rows, notes = match_rows(rows, description.pop("key", None))
        codes, factors, held_out = rows["codes"], rows["factors"], rows["held_out"]
        description |= {name: rows[name] for name in WITH_ROWS if name in description}
        baselines = {name: rows[_argument_name(name)] for name in baselines}
        description |= {"unwanted": unwanted} if unwanted else {}
    dense = description.pop("dense", False)
    return Rows(codes, factors, held_out, baselines, description, unwanted, units, dense, notes)


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


class Data(NamedTuple):
    """What is scored."""

    every: Representation  # with all factors
    representation: Representation  # without the unwanted ones
    unwanted: Mapping[str, Representation]  # each alone, by the name of its row
    objects: Objects | None  # encodes whole objects
    blocks: Blocks | None
    baselines: Mapping[str, Baseline]
    held_out: Gap | None


def read_data(rows: Rows, null: int | str, interval: Interval | None) -> Data:
    """One representation of all that was given, and the same without its unwanted factors."""
    every, scored = described(rows.codes, rows.factors, rows.description)
    baselines = {name: _baseline(name, codes, rows, every, scored) for name, codes in rows.baselines.items()}
    held_out, n_rows = rows.held_out, len(scored)
    if np.shape(held_out) == (n_rows,) != (len(every),):  # a mask of all rows loses those that are not scored
        held_out = gap_of_rows(held_out, n_rows, np.flatnonzero(scored))
    if rows.units is not None:
        every = by_units(every, rows.units, units_of(every))
    if (null or interval) and not parse_null(null)[0]:  # shifts are of rows in their order
        every = with_repeats_as_groups(every)
    representation, unwanted = split_unwanted(every, rows.unwanted)
    if unwanted and isinstance(held_out, str):
        check_seen(held_out, every.names, representation.names)
    blocks = blocks_of(representation)
    notes = (*rows.notes, *representation.notes, *(() if blocks is None else (blocks.note,)))
    objects, representation = representation.orbits, replace(representation, orbits=None, notes=notes)
    return Data(every, representation, unwanted, objects, blocks, baselines, held_out)


def needing_full(arguments: Mapping[str, Any]) -> list[str]:
    """Those of the arguments of `score` that are given, and for which codes must be a full array."""
    present = {name: value for name, value in arguments.items() if name in OF_FULL_CODES and value is not None}
    return [
        name for name, value in present.items() if not (isinstance(value, int | list | tuple | Mapping) and not value)
    ]


def has_few_columns(codes: Any) -> bool:
    """Whether codes are sparse, and few enough to be made a full array where one is needed."""
    return is_sparse(codes) and codes.shape[-1] <= FEW_COLUMNS


def _with_units(codes: Any, description: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Codes of three axes as columns, and these as blocks."""
    if isinstance(codes, Representation) or getattr(codes, "ndim", 2) != 3:
        return codes, description
    if "code_blocks" in description:
        raise ValueError("codes of three axes are blocks already: leave code_blocks out")
    columns, blocks = in_columns(as_array(codes))
    return columns, {**description, "code_blocks": blocks}


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
