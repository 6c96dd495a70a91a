"""How a study is printed."""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from unbraid.base.counted import counted
from unbraid.files.table_formats import Cell, Table
from unbraid.scoring.setting_names import brief_settings

if TYPE_CHECKING:
    from unbraid.studies.estimate import Estimate
    from unbraid.studies.snapshot import RunView
    from unbraid.studies.status import StudyStatus
    from unbraid.studies.store import Failure
    from unbraid.studies.study import Study

STATES = ("finished", "diverged", "failed", "waiting")


def summary(study: "Study", runs: "Sequence[RunView]", folder: Path) -> str:
    """The closing lines of `study run`."""
    from unbraid.files.marks import ReadOnce
    from unbraid.studies.snapshot import other_failures

    counts = Counter(run.state for run in runs)
    line = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]) + f": {folder}"
    failed = {run.id: run.reason for run in runs if run.state == "failed"}
    folders = [part.require_folder() for part in study.parts.values()]
    failures = {
        failure.id: failure.reason
        for part_folder in folders
        for failure in other_failures(part_folder, runs, ReadOnce())
    }
    if failures:
        line += f"\n{len(failures)} more failed, of those that see fewer images"
    if failed or failures:
        line += f"\nthe first that failed: {next(iter({**failed, **failures}.values()))}"
    metrics = failed_metrics(runs)
    line += "".join(f"\n{metric_line}" for metric_line in metrics)
    if failed or failures or metrics:
        line += f"\nunbraid study status {folder} tells why each failed; --retry failed tries these again"
    return line


def failed_metrics(runs: "Sequence[RunView]") -> list[str]:
    """One line for each metric that failed: for how many runs, and why."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for name, reason in run.failed_metrics.items():
            reasons.setdefault(name, []).append(reason)
    lines = []
    for name, own in reasons.items():
        n_others = len(set(own)) - 1
        more = f" (and {counted(n_others, 'other reason')})" if n_others else ""
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
        yield from _reasons(state, [run for run in runs if run.state == state])
    yield from _reasons("failed", status.other_failures)
    yield from failed_metrics(runs)
    for kind, (done, expected) in status.answered.items():
        yield f"{kind}: scored {done} of {counted(expected, 'run')} trained without some images"
    if status.left:
        yield f"{counted(status.left, 'run')} in the folder but no longer in the YAML: kept, outside the results"


def _reasons(state: str, runs: "Sequence[RunView | Failure]") -> "Iterator[str]":
    """A line for each reason: the first run of those that have it, and how many more."""
    by_reason: dict[str | None, list[RunView | Failure]] = {}
    for run in runs:
        by_reason.setdefault(run.reason, []).append(run)
    for reason, (first, *more) in by_reason.items():
        where = " ".join(filter(None, (first.family, first.setting, f"seed {first.seed}")))
        yield f"{state} {first.id} ({where}){f' and {len(more)} more' * bool(more)}: {reason}"


def counts(title: str, statuses: "Sequence[StudyStatus]") -> Table:
    """How many runs of each family and setting are in each state."""
    groups: dict[tuple[str, str, str], Counter[str]] = {}
    for status in statuses:
        for run in status.runs:
            groups.setdefault((status.label, run.family, run.setting), Counter())[run.state] += 1
    brief = brief_settings(key[1:] for key in groups)
    labels = ["label"] if any(status.label for status in statuses) and len(statuses) > 1 else []
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


def in_all(estimates: "Sequence[Estimate]") -> str:
    """What a study of several datasets will cost, one after the other."""
    to_do, runs, steps = (
        sum(getattr(estimate, name) for estimate in estimates) for name in ("waiting", "runs", "steps")
    )
    seconds, disk = sum(estimate.seconds for estimate in estimates), sum(estimate.disk for estimate in estimates)
    return (
        f"in all {to_do} of {counted(runs, 'run')} to do, {steps:,} steps: about {duration(seconds)} and "
        f"{disk / 1e6:,.0f} MB of disk for {len(estimates)} datasets"
    )


def estimated(estimate: "Estimate", title: str = "") -> "Iterator[Table | str]":
    """What a study will cost: by setting, in all, and the assumptions behind that."""
    brief = brief_settings((row.family, row.setting) for row in estimate.rows)
    rows = [
        [
            row.family, brief[row.family, row.setting], row.runs, row.waiting, Cell(f"{row.steps:,}", row.steps),
            Cell(f"{1000 * row.seconds_per_step:.2f}", 1000 * row.seconds_per_step),
            Cell(f"{row.hours:.2f}", row.hours),
        ]
        for row in estimate.rows
    ]  # fmt: skip
    heads = ["family", "setting", "runs", "to do", "steps", "ms/step", "core hours"]
    yield Table(heads, rows, "llrrrrr", title=title, keys=2)
    yield f"{estimate.waiting} of {counted(estimate.runs, 'run')} to do, {estimate.steps:,} steps"
    yield f"time      about {duration(estimate.seconds)} with {estimate.processes} at a time"
    if estimate.memory is not None and estimate.memory_each is not None:
        per_run = estimate.memory_each / 1e9
        yield f"memory    about {estimate.memory / 1e9:.1f} GB in all, {per_run:.2f} GB for each at work"
    yield f"disk      about {estimate.disk / 1e6:,.0f} MB for run folders"
    yield f"assumed: {estimate.assumed}"


def duration(seconds: float) -> str:
    """`3 h 20 min`, `5 min`, `40 s`."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02} min"
