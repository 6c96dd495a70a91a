"""How a study is printed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unbraid.analysis.settings import brief_settings
from unbraid.cli._terminal import Terminal

if TYPE_CHECKING:
    from unbraid.studies.estimate import Estimate
    from unbraid.studies.index import StudyStatus
    from unbraid.studies.state import StudyRun
    from unbraid.studies.store import Failure
    from unbraid.studies.study import Study

STATES = ("finished", "diverged", "failed", "waiting")


def summary(study: "Study", runs: "Sequence[StudyRun]", folder: Path) -> str:
    """How a study ended."""
    from unbraid.studies.store import failures

    counts = Counter(run.state for run in runs)
    line = ", ".join(f"{counts[state]} {state}" for state in STATES if counts[state]) + f": {folder}"
    failed = {run.id: run.reason for run in runs if run.state == "failed"}
    listed = {run.id for run in runs}
    folders = [part.require_folder() for part in study.parts().values()]
    beside = {each.id: each.reason for own in folders for each in failures(own) if each.id not in listed}
    if beside:
        line += f"\n{len(beside)} more failed, of those that see fewer images"
    if failed or beside:
        line += f"\nthe first that failed: {next(iter({**failed, **beside}.values()))}"
    metrics = failed_metrics(runs)
    line += "".join(f"\n{each}" for each in metrics)
    if failed or beside or metrics:
        line += f"\nunbraid study status {folder} tells why each failed; --retry failed tries these again"
    return line


def failed_metrics(runs: "Sequence[StudyRun]") -> list[str]:
    """For each metric that failed, of how many runs and why."""
    reasons: dict[str, list[str]] = {}
    for run in runs:
        for name, reason in run.failed_metrics.items():
            reasons.setdefault(name, []).append(reason)
    lines = []
    for name, said in reasons.items():
        others = len(set(said)) - 1
        more = f" (and {others} other reasons)" if others else ""
        lines.append(f"metric {name} failed for {len(said)} of {len(runs)} runs: {said[0]}{more}")
    return lines


def described(run: "StudyRun") -> dict[str, Any]:
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


def print_status(status: "StudyStatus") -> None:
    """Counts by family and setting, then what failed or diverged, and how far hold-outs are."""
    console, runs = Terminal(), status.runs
    groups: dict[tuple[str, str], Counter[str]] = {}
    for run in runs:
        groups.setdefault((run.family, run.setting), Counter())[run.state] += 1
    console.print(_counts(status.name, groups))
    for state in ("failed", "diverged"):
        for run in runs:
            if run.state == state:
                _tell(console, state, run)
    for failure in status.beside:
        _tell(console, "failed", failure)
    for line in failed_metrics(runs):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for kind, (done, expected) in status.answered.items():
        console.print(f"{kind}: {done} of {expected} runs without some images have been asked", highlight=False)
    if status.left:
        console.print(f"{status.left} runs in the folder are no longer in the YAML; they stay, outside the results")


def _tell(console: Console, state: str, run: "StudyRun | Failure") -> None:
    where = " ".join(filter(None, (run.family, run.setting, f"seed {run.seed}")))
    console.print(f"{state} {run.id} ({where}): {run.reason}", markup=False, highlight=False, soft_wrap=True)


def _counts(title: str, groups: "dict[tuple[str, str], Counter[str]]") -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", box=SIMPLE_HEAD, pad_edge=False, show_footer=True
    )
    total = sum(groups.values(), Counter())
    table.add_column("family", footer="all")
    table.add_column("setting")
    for state in STATES:
        table.add_column(state, justify="right", footer=str(total[state]))
    brief = brief_settings(groups)
    for (family, setting), counts in groups.items():
        table.add_row(family, brief[family, setting], *(str(counts[state] or "-") for state in STATES))
    return table


def in_all(found: "Sequence[Estimate]") -> str:
    """What a study of several datasets will cost, one after the other."""
    to_do, runs, steps = (sum(getattr(each, name) for each in found) for name in ("waiting", "runs", "steps"))
    seconds, disk = sum(each.seconds for each in found), sum(each.disk for each in found)
    return (
        f"in all {to_do} of {runs} runs to do, {steps:,} steps: about {duration(seconds)} and {disk / 1e6:,.0f} MB "
        f"of disk for {len(found)} datasets"
    )


def print_estimate(found: "Estimate", title: str = "") -> None:
    """What a study will cost."""
    console = Terminal()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title or None, title_justify="left", title_style="bold")
    table.add_column("family")
    table.add_column("setting")
    for name in ("runs", "to do", "steps", "ms/step", "core hours"):
        table.add_column(name, justify="right")
    brief = brief_settings((row.family, row.setting) for row in found.rows)
    for row in found.rows:
        table.add_row(
            row.family, brief[row.family, row.setting], str(row.runs), str(row.waiting), f"{row.steps:,}",
            f"{1000 * row.seconds_per_step:.2f}", f"{row.hours:.2f}",
        )  # fmt: skip
    console.print(table)
    for line in sentences(found):
        console.print(line, highlight=False, soft_wrap=True)


def sentences(found: "Estimate") -> Iterable[str]:
    """The totals, and what they rest on."""
    yield f"{found.waiting} of {found.runs} runs to do, {found.steps:,} steps"
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
