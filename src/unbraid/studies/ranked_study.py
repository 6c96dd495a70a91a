"""The runs of a study ranked without labels, as tables and lines, compared with metrics that use labels."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from unbraid.base.natural_order import natural
from unbraid.base.types import DataFrame, Progress
from unbraid.files.table_formats import Cell, Table
from unbraid.ranking.ranking import NothingToRank, Ranking
from unbraid.ranking.suitability import PUBLISHED, Suitability, suitability
from unbraid.ranking.verdicts import study_verdict
from unbraid.scoring.baselines import ABOVE, MARK
from unbraid.scoring.result_columns import DIAGNOSIS, headline_columns, higher_is_better, numbers, together
from unbraid.scoring.setting_names import brief_settings, with_brief_settings
from unbraid.studies.snapshot import StudySnapshot, failed_runs
from unbraid.studies.study_baselines import no_better_runs, scored_baselines, summaries
from unbraid.studies.study_ranking import rank_study, ranking_options
from unbraid.studies.study_table import results

# Columns of the table beside the metrics.
FIXED = {"label", "rank", "run", "family", "setting", "udr.score", "udr.informative", "seed", ABOVE, DIAGNOSIS}


def rank_parts(
    snapshots: Sequence[StudySnapshot],
    options: Mapping[str, Any],
    metric: str | None = None,
    *,
    progress: Progress | None = None,
) -> "tuple[dict[str, RankedPart], dict[str, str]]":
    """Rank the models of each dataset of a study.

    Args:
        snapshots: of each dataset.
        options: of `RankingOptions`, in place of what the YAML says.
        metric: column by which to check that seeds matter; datasets without it are ranked without this check.
        progress: called as progress(what is done, done, all).

    Returns:
        The ranked models by label of the dataset, and by label why other datasets have no two models to compare.

    Raises:
        ValueError: no dataset has such a column, or it does not hold numbers; or no dataset has two models that can be
            compared.
    """
    if metric is not None:
        tables = {snapshot.label: results(snapshot) for snapshot in snapshots}
        holding = [frame for frame in tables.values() if metric in frame.columns]
        for frame in holding or [together(tables)]:
            numbers(frame, metric)
    parts, left_out = {}, {}
    for snapshot in snapshots:
        chosen = replace(ranking_options(snapshot.config), **options)
        try:
            ranking = rank_study(snapshot, chosen, progress=progress)
        except NothingToRank as error:
            if not snapshot.label:
                raise
            left_out[snapshot.label] = str(error)
            continue
        frame = results(snapshot)
        paths = {run.id: run.path for run in snapshot.runs}
        parts[snapshot.label] = RankedPart(
            ranking, _ranked_table(frame, ranking), _checks(frame, ranking, metric), paths,
            snapshot.config.baselines, scored_baselines(snapshot), no_better_runs(frame),
            failed_runs([snapshot]) | _unreadable(snapshot, ranking),
            None if metric in {None, *frame.columns} else metric,
        )  # fmt: skip
    if not parts:
        raise ValueError(f"{snapshots[0].folder.parent}: no dataset has two runs that can be compared")
    return parts, left_out


@dataclass(frozen=True)
class RankedPart:
    """The models of one dataset."""

    ranking: Ranking
    table: DataFrame
    checks: Sequence[Suitability]
    paths: Mapping[str, Path]
    has_baselines: bool  # whether the YAML asks for baselines
    baselines: Sequence[Mapping[str, Any]]  # with their scores
    worse: Mapping[str, Collection[str]]  # by column, runs that are no better than their best baseline
    failed: Mapping[str, str]  # reasons by path
    lacking: str | None = None  # the column by which to check that seeds matter, where this dataset has none

    def tables(self, n_rows: int) -> list[Table]:
        """Runs, the best first, medians by setting, and baselines."""
        baselines = [_baselines(self.baselines, columns)] if (columns := self._measured) else []
        brief = with_brief_settings(self.table)
        settings = replace(setting_medians(self.table), title="medians by setting", all_columns=False)
        return [_runs(brief, self.worse).first(n_rows), settings, *baselines]

    @property
    def _measured(self) -> list[str]:
        """Metrics that some baseline was scored by."""
        return [name for name in _metrics(self.table) if any(name in baseline["scores"] for baseline in self.baselines)]

    def lines(self) -> list[str]:
        """Notes, the choice, and what labels say of it."""
        chosen = self.ranking.choose()
        lines = []
        if self.has_baselines and not self._measured:
            lines.append("note: the baselines that the YAML asks for are not scored yet; unbraid study run scores them")
        if any(self.worse.values()):
            lines.append(f"{MARK} no better than its best baseline")
        named = brief_settings(zip(self.table["family"], self.table["setting"], strict=True))
        lines += [*_notes(self.ranking), *filter(None, map(_check, self.checks))]
        if self.lacking is not None:
            lines.append(f"note: there are no scores by {self.lacking}, so whether seeds matter is not checked")
        lines += study_verdict(self.ranking, named, self.paths)
        if chosen is not None:
            lines += _labels(self.table, chosen.run)
            if by := [_short(column) for column, runs in self.worse.items() if chosen.run in runs]:
                lines.append(f"it is no better than its best baseline by {', '.join(by)}")
        return lines

    def content(self) -> dict[str, Any]:
        """Everything, as plain data."""
        chosen = self.ranking.choose()
        rows = [
            {name: value for name, value in row.items() if value == value} | {"path": str(self.paths[row["run"]])}
            for row in self.table.to_dict("records")
        ]
        return self.ranking.to_dict() | {
            "best_path": None if chosen is None else str(self.paths[chosen.run]),
            "best_setting": None if chosen is None else {"family": chosen.family, "setting": chosen.setting},
            "runs": rows,
            "suitability": [asdict(check) for check in self.checks],
            **({"baselines": self.baselines} if self.baselines else {}),
            "failed": [{"path": path, "reason": reason} for path, reason in self.failed.items()],
        }


def _unreadable(snapshot: StudySnapshot, ranking: Ranking) -> dict[str, str]:
    """Finished runs whose codes are damaged, with the reasons."""
    paths = {run.id: str(run.path) for run in snapshot.runs if run.state == "finished"}
    reasons = ((paths.get(run), reason) for run, reason in ranking.left_out.items())
    return {path: reason for path, reason in reasons if path is not None and path in reason}


def _ranked_table(frame: DataFrame, ranking: Ranking) -> DataFrame:
    """The ranking with seeds and the headline of each metric beside it, the best first."""
    judged = [name for name in (ABOVE, DIAGNOSIS) if name in frame and len(frame[name].dropna())]
    return ranking.to_frame().merge(frame[["run", "seed", *judged, *headline_columns(frame)]], on="run", how="left")


def _checks(frame: DataFrame, ranking: Ranking, metric: str | None) -> list[Suitability]:
    known = headline_columns(frame)
    column = metric or ("mig.score" if "mig.score" in known or not known else known[0])
    rows = frame.loc[frame["run"].isin(ranking.runs)]
    return suitability(rows, ranking, column, higher_is_better=higher_is_better(column) is not False)


def _metrics(table: DataFrame) -> list[str]:
    return [name for name in table.columns if name not in FIXED]


def _runs(table: DataFrame, worse: Mapping[str, Collection[str]]) -> Table:
    metrics, diagnosis = _metrics(table), [DIAGNOSIS] if DIAGNOSIS in table else []
    keys = ("rank", "udr.score", "udr.informative", "family", "setting", "seed", "run", *diagnosis)
    rows = [
        [
            *(row[name] for name in keys),
            *(_marked(row[name], row["run"] in worse.get(name, ())) for name in metrics),
        ]
        for row in table.to_dict("records")
    ]
    heads = ["", "UDR", "latents", "family", "setting", "seed", "run", *diagnosis, *map(_short, metrics)]
    return Table(heads, rows, "rrrllrl" + "l" * len(diagnosis) + "r" * len(metrics), keys=7, all_columns=False)


def _marked(number: float, worse: bool) -> Cell | float:
    return Cell(f"{number:.3f}{MARK}", number) if worse else number


def setting_medians(table: DataFrame) -> Table:
    """Medians of UDR and of each metric by setting."""
    metrics, brief = ["udr.score", *_metrics(table)], with_brief_settings(table)
    keys = [name for name in ("label", "family", "setting") if name in table.columns]
    groups: Any = brief.groupby(keys, sort=False)
    ordered = sorted(groups, key=lambda group: (*group[0][:-1], natural(group[0][-1])))
    rows = [[*key, len(rows), *rows[metrics].median().tolist()] for key, rows in ordered]
    heads = [*keys, "runs", "UDR", *map(_short, metrics[1:])]
    return Table(heads, rows, "l" * len(keys) + "r" * (1 + len(metrics)), keys=len(keys) + 2)


def _baselines(baselines: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> Table:
    """One row for each kind of baseline and number of codes."""
    rows = [
        [kind["baseline"], kind["codes"], kind["number"], *(_spread(kind["scores"].get(column)) for column in columns)]
        for kind in summaries(baselines)
    ]
    heads = ["baseline", "codes", "number", *map(_short, columns)]
    return Table(heads, rows, title="baselines without training", keys=3, all_columns=False)


def _spread(summary: tuple[float, float, float] | None) -> str:
    """The mean, with the range if there are several."""
    if summary is None:
        return "-"
    mean, low, high = summary
    return f"{mean:.3f}" if low == high else f"{mean:.3f} ({low:.3f} to {high:.3f})"


def _notes(ranking: Ranking) -> list[str]:
    lines = []
    for reason, count in Counter(ranking.left_out.values()).items():
        names = [run for run, why in ranking.left_out.items() if why == reason]
        lines.append(f"left out: {f'{count} runs' if count > 1 else names[0]} ({reason})")
    return [*lines, *(f"note: {note}" for note in ranking.notes)]


def _check(check: Suitability) -> str:
    if check.warning:
        return f"warning: {check.warning}"
    if check.within_seed_win_rate is None or check.across_seed_win_rate is None:
        return ""
    return (
        f"{check.family}: by {check.metric}, the best model of a seed is at least as good as a random one in "
        f"{check.within_seed_win_rate:.0%} of cases, and its setting under another seed in "
        f"{check.across_seed_win_rate:.0%} (by luck {check.within_seed_luck:.0%} and "
        f"{check.across_seed_luck:.0%}; published VAEs {PUBLISHED:.0%} of the latter, PCA 100%)"
    )


def _labels(table: DataFrame, chosen: str) -> list[str]:
    """How the choice scores by metrics that use the labels, which the ranking did not see."""
    places = []
    for name in _metrics(table):
        known = table.loc[table[name].notna(), ["run", name]]
        own = known.loc[known["run"] == chosen, name]
        if len(own):
            upward = higher_is_better(name) is not False
            better = known[name] > own.iloc[0] if upward else known[name] < own.iloc[0]
            best = known[name].max() if upward else known[name].min()
            place = f"place {1 + int(better.sum())} of {len(known)}, best {best:.3f}"
            places.append(f"{_short(name)} {own.iloc[0]:.3f} ({place})")
    return [f"the labels, opened afterwards, say of it: {', '.join(places)}"] if places else []


def _short(column: str) -> str:
    # Each metric has one headline, so that its name is enough.
    return column.rpartition(".")[0]
