"""Blocks of codes and of factors, as people write them and as metrics take them; and units, which are such blocks."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from unbraid.base.comma_lists import joined, separated
from unbraid.data import Representation
from unbraid.data.representation import Blocks as AsGiven
from unbraid.metrics import BLOCKED, Metric
from unbraid.metrics._shared.inputs import check_blocks

RANGE = re.compile(r"(\d+)-(\d+)")
REDUCED = "codes are the first principal components of"  # begins the note on units
CONSTANT = 1e-12  # of its largest value: a column that varies less is constant but for rounding
LEAST_EXPLAINED = 0.95  # of a unit's variance, below which a note names the component


@dataclass(frozen=True)
class Blocks:
    codes: tuple[tuple[int, ...], ...]
    factors: tuple[tuple[int, ...], ...]
    text_of_codes: str
    text_of_factors: str

    @property
    def note(self) -> str:
        """For the card: which metrics read them, and what the others do."""
        return (
            f"{' and '.join(BLOCKED)} read blocks (codes {self.text_of_codes}; factors {self.text_of_factors}), all "
            "other metrics single columns"
        )

    @property
    def rows(self) -> dict[str, Metric]:
        """The metrics that read blocks, of these."""
        blocks = {"code_blocks": self.codes, "factor_blocks": self.factors}
        return {name: replace(row, function=partial(row.function, **blocks)) for name, row in BLOCKED.items()}


def blocks_of(representation: Representation) -> Blocks | None:
    """Its blocks by columns; where only one side has any, each column of the other is a block. None without any.

    Raises:
        ValueError: a block is written wrongly or names a code or factor that is not there.
    """
    code_blocks, factor_blocks = representation.code_blocks, representation.factor_blocks
    if code_blocks is None and factor_blocks is None:
        return None
    if not representation.names:
        raise ValueError("blocks need factors, and these codes have none")
    codes = _columns("code_blocks", code_blocks, representation.code_names, representation.codes.shape[1])
    factors = _columns("factor_blocks", factor_blocks, representation.names, len(representation.names))
    return Blocks(
        tuple(columns for _, columns in codes),
        tuple(columns for _, columns in factors),
        _as_text(codes, ()),
        _as_text(factors, representation.names),
    )


def by_units(representation: Representation, method: str) -> Representation:
    """One code for each block of codes: the projection of its columns on the direction in which they vary most.

    Rows count by their weights. The sign is that of the largest loading. A note says how much of the variance of a unit
    it leaves out.

    Args:
        representation: whose columns the units are made of; posteriors, which have no such projection, are left out.
        method: "pca".

    Raises:
        ValueError: another `method`, no blocks, codes that are not finite, or fewer than two rows.
    """
    if representation.code_blocks is None:
        raise ValueError("units are the second axis of codes (n_samples, n_units, size), or the blocks of code_blocks")
    if method != "pca":
        raise ValueError(f"units must be 'pca'; got {method!r}")
    if len(representation) < 2 or not np.isfinite(representation.codes).all():
        raise ValueError(f"codes of units must be finite, in two rows or more; got {len(representation)} rows")
    n_codes = representation.codes.shape[1]
    blocks = _columns("code_blocks", representation.code_blocks, representation.code_names, n_codes)
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


def without_factors(representation: Representation, names: Sequence[str]) -> Representation:
    """The same without these factors; blocks of the others by their names, since places change."""
    blocks = None if representation.factor_blocks is None else blocks_of(representation)
    rest = representation.keep_factors([name for name in representation.names if name not in names])
    return rest if blocks is None else replace(rest, factor_blocks=blocks.text_of_factors)


Named: TypeAlias = list[tuple[str, tuple[int, ...]]]  # name of each block, or "", and its columns


def _columns(argument: str, blocks: AsGiven | None, names: tuple[str, ...], count: int) -> Named:
    if blocks is None:
        return [("", (column,)) for column in range(count)]
    if isinstance(blocks, str):
        listed = [_block(argument, part, names, count) for part in separated(blocks)]
    elif isinstance(blocks, Mapping):
        listed = list(blocks.items())
    elif isinstance(blocks, Sequence):
        listed = [("", block) for block in blocks]
    else:
        raise ValueError(f"{argument} must be a list of blocks, such as [[0, 1], [2]]; got {blocks!r}")
    named: Named = []
    for name, block in listed:
        if isinstance(block, str) or not isinstance(block, Sequence) or not len(block):
            raise ValueError(f"{argument}: a block is a list of columns or names; got {block!r}")
        if unknown := [member for member in block if isinstance(member, str) and member not in names]:
            of = "factor" if argument == "factor_blocks" else "code"
            available = ", ".join(names) if names else f"columns 0 to {count - 1}"
            raise ValueError(f"{argument} names no {of} {unknown[0]!r}; there are {available}")
        named.append((name, tuple(names.index(member) if isinstance(member, str) else member for member in block)))
    check_blocks(argument, [columns for _, columns in named], count, f"{argument.removesuffix('_blocks')}s")
    return named


def _block(argument: str, part: str, names: tuple[str, ...], count: int) -> tuple[str, list[int | str]]:
    """Name, or "", and members of a block of text, such as position=x+y or 0-1."""
    name, equals, text = part.partition("=")
    name, text = (name.strip(), text) if equals and part not in names else ("", part)
    if text.strip() in names:
        return name, [text.strip()]
    members: list[int | str] = []
    for member in (each.strip() for each in text.split("+")):
        if not member:
            raise ValueError(f"{argument}: write blocks as 0-1,2 or position=x+y,shape; got {text!r}")
        if member not in names and (ends := RANGE.fullmatch(member)):
            low, high = (int(end) for end in ends.groups())
            if high - low >= count:
                raise ValueError(f"{argument} has a block of {high - low + 1} columns; there are {count}")
            members += list(range(low, high + 1)) or [member]
        else:
            members.append(int(member) if member.isdecimal() and member not in names else member)
    return name, members


def _as_text(blocks: Named, names: tuple[str, ...]) -> str:
    """As the command line takes them."""

    def block_text(columns: tuple[int, ...]) -> str:
        if len(columns) > 1 and not names and columns == tuple(range(columns[0], columns[-1] + 1)):
            return f"{columns[0]}-{columns[-1]}"
        return "+".join(names[column] if 0 <= column < len(names) else str(column) for column in columns)

    return joined(f"{name}={block_text(columns)}" if name else block_text(columns) for name, columns in blocks)
