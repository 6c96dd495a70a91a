"""Settings other than a full grid: zipped values, random values, excluded combinations."""

import math
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unbraid.base.suggest import suggestion
from unbraid.families.building import Member
from unbraid.families.family import Family, check_value
from unbraid.studies.schema import FamilySection

RANGES = ("uniform", "log_uniform", "integers")
DIGITS = 4  # significant, of what is drawn


def settings_of(section: FamilySection, path: str) -> list[dict[str, Any]]:
    """The settings that `zip` and `random` give, each to be combined with the grid; one without any where neither is.

    Raises:
        ValueError: lists of different lengths, ranges that are none, a hyperparameter given twice; the path of the key
            comes first.
    """
    together = section.zip or {}
    if len({len(values) for values in together.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in together.items())
        raise ValueError(f"{path}.zip: lists that are taken together have one length; {lengths}")
    zipped = [dict(zip(together, values, strict=True)) for values in zip(*together.values(), strict=True)] or [{}]
    drawn = _drawn(section, f"{path}.random")
    names = [*section.hyperparameters, *together, *(drawn[0] if drawn else ())]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ValueError(f"{path}: {twice} is given twice, of itself, in zip or in random")
    return [{**one, **other} for one in zipped for other in drawn or [{}]]


def _drawn(section: FamilySection, path: str) -> list[dict[str, Any]]:
    if section.random is None:
        return []
    ranges = dict(section.random.model_extra or {})
    if not ranges:
        raise ValueError(f"{path}: names no hyperparameter, such as beta: {{log_uniform: [1, 100]}}")
    # One generator per name: adding a name, or drawing more, changes no earlier value.
    columns = {
        name: _values(
            choices, np.random.default_rng([section.random.seed, zlib.crc32(name.encode())]), section.random.n,
            f"{path}.{name}",
        )
        for name, choices in ranges.items()
    }  # fmt: skip
    return [{name: values[place] for name, values in columns.items()} for place in range(section.random.n)]


def _values(choices: Any, rng: np.random.Generator, n: int, path: str) -> list[Any]:
    if isinstance(choices, list) and choices:
        return [choices[place] for place in rng.integers(len(choices), size=n).tolist()]
    kind, ends = next(iter(choices.items())) if isinstance(choices, Mapping) and len(choices) == 1 else ("", (0, 0))
    if kind not in RANGES or not _ordered(ends, whole=kind == "integers", positive=kind == "log_uniform"):
        raise ValueError(
            f"{path}: write a list to choose from, or one of {', '.join(RANGES)} with the least and the greatest "
            "value, such as {log_uniform: [1, 100]}; those of log_uniform above 0, of integers whole"
        )
    low, high = ends
    if kind == "integers":
        return rng.integers(low, high, size=n, endpoint=True).tolist()
    unit = rng.random(n)
    drawn = low * (high / low) ** unit if kind == "log_uniform" else low + (high - low) * unit
    return [min(max(float(f"{value:.{DIGITS}g}"), low), high) for value in drawn.tolist()]


def _ordered(ends: Any, *, whole: bool, positive: bool) -> bool:
    if not isinstance(ends, Sequence) or isinstance(ends, str) or len(ends) != 2:
        return False
    kinds = int if whole else int | float
    numbers = all(isinstance(end, kinds) and not isinstance(end, bool) and math.isfinite(end) for end in ends)
    return numbers and ends[0] < ends[1] and (ends[0] > 0 or not positive)


def without_excluded(section: FamilySection, row: Family, members: Sequence[Member], path: str) -> list[Member]:
    """The members that no entry of `exclude` names.

    Raises:
        ValueError: an entry names what the family has not, or no member at all.
    """
    left = list(members)
    for number, entry in enumerate(section.exclude):
        where = f"{path}.exclude[{number}]"
        for name in entry:
            if name not in row.hyperparameters:
                raise ValueError(f"{where}.{name}: unknown; {suggestion(name, row.hyperparameters)}")
        try:
            excluded = {name: check_value(name, row.hyperparameters[name], value) for name, value in entry.items()}
        except ValueError as error:
            raise ValueError(f"{where}.{error}") from None
        if not any(excluded.items() <= dict(member.hyper).items() for member in members):
            raise ValueError(f"{where}: no run has {', '.join(f'{name}={value}' for name, value in excluded.items())}")
        left = [member for member in left if not excluded.items() <= dict(member.hyper).items()]
    if not left:
        raise ValueError(f"{path}.exclude: no run is left")
    return left
