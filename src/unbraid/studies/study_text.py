"""How a study is printed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbraid.base.counted import counted
from unbraid.files.table_formats import Cell, Table
from unbraid.scoring.setting_names import brief_settings

if TYPE_CHECKING:
    from unbraid.studies.estimate import Estimate
    from unbraid.studies.index import StudyStatus
    from unbraid.studies.snapshot import RunView
    from unbraid.studies.store import Failure
    from unbraid.studies.study import Study

STATES = ("finished", "diverged", "failed", "waiting")


def summary(study: "Study", runs: "Sequence[RunView]", folder: Path) -> str:
    """How a study ended."""
    from unbraid.files.marks import ReadOnce
    from unbraid.studies.snapshot import failed_beside

    counts = Counter(run.state for run in runs)
    line = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]) + f": {folder}"
    failed = {run.id: run.reason for run in runs if run.state == "failed"}
    folders = [part.require_folder() for part in study.parts.values()]
    beside = {each.id: each.reason for own in folders for each in failed_beside(own, runs, ReadOnce())}
    if beside:
        line += f"\n{len(beside)} more failed, of those that see fewer images"
    if failed or beside:
        line += f"\nthe first that failed: {next(iter({**failed, **beside}.values()))}"
    metrics = failed_metrics(runs)
    line += "".join(f"\n{each}" for each in metrics)
    if failed or beside or metrics:
        line += f"\nunbraid study status {folder} tells why each failed; --retry failed tries these again"
    return line


def failed_metrics(runs: "Sequence[RunView]") -> list[str]:
    """For each metric that failed, of how many runs and why."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for name, reason in run.failed_metrics.items():
            reasons.setdefault(name, []).append(reason)
    lines = []
    for name, own in reasons.items():
        others = len(set(own)) - 1
        more = f" (and {counted(others, 'other reason')})" if others else ""
        lines.append(f"metric {name} failed for {len(own)} of {counted(len(runs), 'run')}: {own[0]}{more}")
    return lines


def described(run: "RunView") -> dict[str, Any]:
    """A run as plain data."""
    return {
        "run": run.id,
        "family": run.family,
        "setting": run.setting,
        "seed": run.seed,
        "state": run.state,
        "reason": run.reason,
        "failed_metrics": dict(run.failed_metrics),
        "path": str(run.path),
    }


def status_of(status: "StudyStatus") -> "Iterator[Table | str]":
    """Counts by family and setting, then what failed or diverged, and how far hold-outs are."""
    runs = status.runs
    yield counts(status.name, [status])
    for state in ("failed", "diverged"):
        yield from (_why(state, run) for run in runs if run.state == state)
    yield from (_why("failed", failure) for failure in status.beside)
    yield from failed_metrics(runs)
    for kind, (done, expected) in status.answered.items():
        yield f"{kind}: scored {done} of {counted(expected, 'run')} trained without some images"
    if status.left:
        yield f"{counted(status.left, 'run')} in the folder but no longer in the YAML: kept, outside the results"


def _why(state: str, run: "RunView | Failure") -> str:
    where = " ".join(filter(None, (run.family, run.setting, f"seed {run.seed}")))
    return f"{state} {run.id} ({where}): {run.reason}"


def counts(title: str, found: "Sequence[StudyStatus]") -> Table:
    """How many runs of each family and setting are in each state."""
    groups: dict[tuple[str, str, str], Counter[str]] = {}
    for status in found:
        for run in status.runs:
            groups.setdefault((status.label, run.family, run.setting), Counter())[run.state] += 1
    brief = brief_settings(key[1:] for key in groups)
    labels = ["label"] if any(status.label for status in found) and len(found) > 1 else []
    rows = [
        [*([label] if labels else []), family, brief[family, setting], *_cells(states)]
        for (label, family, setting), states in groups.items()
    ]
    whole = sum(groups.values(), Counter[str]())
    total = ["all", *[""] * (1 + len(labels)), *(whole[state] for state in STATES)]
    heads = [*labels, "family", "setting", *STATES]
    return Table(heads, [*rows, total], "l" * (len(heads) - 4) + "rrrr", title=title, keys=len(heads) - 4)


def _cells(states: "Counter[str]") -> list[Cell]:
    return [Cell(str(states[state] or "-"), states[state]) for state in STATES]


def in_all(found: "Sequence[Estimate]") -> str:
    """What a study of several datasets will cost, one after the other."""
    to_do, runs, steps = (sum(getattr(each, name) for each in found) for name in ("waiting", "runs", "steps"))
    seconds, disk = sum(each.seconds for each in found), sum(each.disk for each in found)
    return (
        f"in all {to_do} of {counted(runs, 'run')} to do, {steps:,} steps: about {duration(seconds)} and "
        f"{disk / 1e6:,.0f} MB of disk for {len(found)} datasets"
    )


def estimated(found: "Estimate", title: str = "") -> "Iterator[Table | str]":
    """What a study will cost."""
    brief = brief_settings((row.family, row.setting) for row in found.rows)
    rows = [
        [
            row.family, brief[row.family, row.setting], row.runs, row.waiting, Cell(f"{row.steps:,}", row.steps),
            Cell(f"{1000 * row.seconds_per_step:.2f}", 1000 * row.seconds_per_step),
            Cell(f"{row.hours:.2f}", row.hours),
        ]
        for row in found.rows
    ]  # fmt: skip
    heads = ["family", "setting", "runs", "to do", "steps", "ms/step", "core hours"]
    yield Table(heads, rows, "llrrrrr", title=title, keys=2)
    yield from sentences(found)


def sentences(found: "Estimate") -> Iterable[str]:
    """The totals, and what they rest on."""
    yield f"{found.waiting} of {counted(found.runs, 'run')} to do, {found.steps:,} steps"
    yield f"time      about {duration(found.seconds)} with {found.processes} at a time"
    if found.memory is not None and found.memory_each is not None:
        yield f"memory    about {found.memory / 1e9:.1f} GB in all, {found.memory_each / 1e9:.2f} GB for each at work"
    yield f"disk      about {found.disk / 1e6:,.0f} MB for run folders"
    yield f"assumed: {found.assumed}"


def duration(seconds: float) -> str:
    """`3 h 20 min`, `5 min`, `40 s`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
