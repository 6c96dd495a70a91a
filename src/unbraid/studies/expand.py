"""From a study to its runs: a pure function of the YAML and of the environment."""

import math
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from unbraid.base.suggest import suggestion
from unbraid.base.types import Kind
from unbraid.families.building import Member
from unbraid.families.family import Family, check_value
from unbraid.families.family_table import find_family
from unbraid.files.trust import Untrusted
from unbraid.metrics import METRICS
from unbraid.metrics._shared.metric_arguments import find_metric, full_name, lower_is_better
from unbraid.runs.folder import run_id
from unbraid.scoring.result_columns import in_words
from unbraid.scoring.score import choose, without_presets
from unbraid.studies.schema import FamilySection, StudyConfig
from unbraid.studies.snapshot import Planned
from unbraid.studies.store import StudyEnvironment
from unbraid.training.held_out import hold_out_of
from unbraid.training.loop import Plan
from unbraid.training.schedules import check_schedules
from unbraid.training.train import code_of, config_of, members_of

MOST_RUNS = 100_000
RANGES = ("uniform", "log_uniform", "integers")
DIGITS = 4  # significant, of what is drawn


def expand(study: StudyConfig, around: StudyEnvironment) -> list[Planned]:
    """The runs of a study: families in the order given, seeds in the inner loop, equal ones once.

    Raises:
        ValueError: a family or setting that does not exist; the path of the key comes first.
    """
    runs: dict[str, tuple[Plan, Member, dict[str, Any]]] = {}
    hold_out = hold_out_of(study.hold_out, study.hold_out_every, study.patience)
    for number, section in enumerate(study.families):
        steps, batch_size = section.steps or study.steps, section.batch_size or study.batch_size
        requested = study.precision if study.precision == "auto" else ""
        plan = Plan(section.name, steps, batch_size, around.device, around.precision, hold_out, requested=requested)
        for member in family_members(section, study, f"families[{number}]"):
            try:
                check_schedules(member.hyper, steps)
            except ValueError as error:
                raise ValueError(f"families[{number}].{error}") from None
            named = {str(plan.family), *map(str, member.hyper.values())}
            code = {name: digest for name, digest in around.code.items() if name in named} | code_of(plan, member)
            config = config_of(plan, member, around.dataset, code, around.version(plan.family))
            runs.setdefault(run_id(config), (plan, member, config))
    return [
        Planned(
            name, plan.family, setting_of(plan.family, member.hyper, plan.steps, plan.batch_size), member.seed, config
        )
        for name, (plan, member, config) in runs.items()
    ]


def family_members(section: FamilySection, study: StudyConfig, path: str) -> list[Member]:
    """The members of one entry of `families`.

    Raises:
        ValueError: as `expand`.
    """
    try:
        row = find_family(section.name)
    except Untrusted:
        raise
    except ValueError as error:
        raise ValueError(f"{path}.name: {error}") from None
    for name in section.hyperparameters:
        if name not in row.hyperparameters:
            known = [*row.hyperparameters, *(set(FamilySection.model_fields) - {"name"})]
            raise ValueError(f"{path}.{name}: unknown; {suggestion(name, known)}")
    seeds = study.seeds if section.seeds is None else section.seeds
    settings = settings_of(section, path)
    for name in settings[0]:
        if name not in row.hyperparameters:
            where = "zip" if name in (section.zip or {}) else "random"
            raise ValueError(f"{path}.{where}.{name}: unknown; {suggestion(name, row.hyperparameters)}")
    lists = [len(values) for values in section.hyperparameters.values() if isinstance(values, list)]
    if (count := math.prod(lists) * len(settings) * (seeds if isinstance(seeds, int) else len(seeds))) > MOST_RUNS:
        raise ValueError(f"{path}: {count} runs; a study holds {MOST_RUNS} at most")
    try:
        members = [
            member
            for setting in settings
            for member in members_of(section.name, row, seeds, section.preset, section.hyperparameters | setting)
        ]
        return without_excluded(section, row, members, path)
    except ValueError as error:
        if str(error).startswith(path):
            raise
        names_setting = str(error).split(" ")[0] in row.hyperparameters
        raise ValueError(f"{path}{'.' if names_setting else ': '}{error}") from None


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


def setting_of(family: str, hyper: Mapping[str, Any], steps: int | None = None, batch_size: int | None = None) -> str:
    """The name of a setting in tables: the same in every study.

    It lists the hyperparameters that a published grid of the family varies, and all else that differs from this
    package's defaults: other hyperparameters, number of steps, batch size.
    """
    row = find_family(family)
    named = [
        name
        for name, hyperparameter in row.hyperparameters.items()
        if name in hyper and (name in row.swept or hyper[name] != hyperparameter.default)
    ]
    usual = {name: StudyConfig.model_fields[name].default for name in ("steps", "batch_size")}
    plan_settings = {"steps": steps, "batch_size": batch_size}
    named += [name for name, value in plan_settings.items() if value is not None and value != usual[name]]
    return setting_text({**hyper, **plan_settings}, named)


def setting_text(values: Mapping[str, Any], names: Iterable[str]) -> str:
    """`beta=4, latents=10`."""
    return ", ".join(f"{name}={in_words(values[name])}" for name in names if name in values)


def check_metrics(study: StudyConfig, kinds: Sequence[Kind], names: Sequence[str]) -> None:
    """Raises ValueError for a metric that does not exist, or that has no meaning on these factors."""
    if study.metrics != "all" and study.metrics:
        for position, name in enumerate(_full_names(study.metrics)):
            reason = _lacking(name, kinds, study.zero_shot is not None)
            if reason:
                described = ", ".join(f"{factor} ({kind})" for factor, kind in zip(names, kinds, strict=True))
                factors = f"the factors of the dataset are {described}" if described else "its images have none"
                raise ValueError(f"metrics[{position}]: {name} {reason}; {factors}")
        for name, row in choose(study.metrics).items():
            # Tables of results infer the direction of a column from its name alone.
            packaged = METRICS.package_of(name)
            if row.own and not packaged and not row.higher_is_better and not lower_is_better(name):
                raise ValueError(f"metrics: of {name} lower is better; write {name}(direction=lower)")


def check_snapshots(study: StudyConfig, kinds: Sequence[Kind]) -> None:
    """Raises ValueError for a metric of the snapshots that does not exist, or has no meaning on these factors."""
    for position, name in enumerate(study.snapshot_metrics if study.snapshots else ()):
        choose([name])
        if reason := _lacking(name, kinds, gap=False):
            raise ValueError(f"snapshot_metrics[{position}]: {name} {reason}")


def metric_names(study: StudyConfig) -> tuple[str, ...]:
    """The metrics every run is scored by."""
    if study.metrics == "all":
        return tuple(METRICS)
    return without_presets(_full_names(study.metrics))


def _full_names(metrics: Sequence[str]) -> list[str]:
    full_names = []
    for position, name in enumerate(metrics):
        try:
            full_names.append(full_name(name))
        except ValueError as error:
            raise ValueError(f"metrics[{position}]: {error}") from None
    return full_names


def _lacking(name: str, kinds: Sequence[Kind], gap: bool) -> str:
    if name == "udr":
        return "compares models with each other; say how under the key `udr`"
    if name == "zero_shot" and not gap:
        return "needs a gap; give one as `zero_shot: {held_out: ...}`"
    if (row := find_metric(name)) is not None and row.needs_factors and not kinds:
        return "needs factors"
    if name == "d_lsbd" and "cyclic" not in kinds:
        return "needs at least one cyclic factor"
    if name == "independence_score" and sum(kind in ("cyclic", "ordinal") for kind in kinds) < 2:
        return "needs at least two cyclic or ordinal factors"
    return ""
