"""Settings other than a full grid: zipped values, excluded combinations."""

from collections.abc import Sequence
from typing import Any

from unbraid.base.suggest import suggestion
from unbraid.families.building import Member
from unbraid.families.family import Family, check_value
from unbraid.studies.schema import FamilySection


def settings_of(section: FamilySection, path: str) -> list[dict[str, Any]]:
    """The settings that `zip` gives, each to be combined with the grid; one without any where there is none.

    Raises:
        ValueError: lists of different lengths, or a hyperparameter given twice; the path of the key comes first.
    """
    together = section.zip or {}
    if len({len(values) for values in together.values()}) > 1:
        lengths = ", ".join(f"{name} has {len(values)}" for name, values in together.items())
        raise ValueError(f"{path}.zip: lists that are taken together have one length; {lengths}")
    if twice := next((name for name in section.hyperparameters if name in together), None):
        raise ValueError(f"{path}: {twice} is given twice, of itself and in zip")
    return [dict(zip(together, values, strict=True)) for values in zip(*together.values(), strict=True)] or [{}]


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
