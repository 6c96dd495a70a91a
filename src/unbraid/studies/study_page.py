"""The page of a study: every run, sorted, filtered, compared and looked at, in one file."""

import math
import os
import shlex
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

from unbraid.base.types import DataFrame, Progress
from unbraid.base.version import VERSION
from unbraid.files.run_files import WEIGHTS
from unbraid.runs.live.decoder import live_models
from unbraid.runs.live.small_picture import pictures
from unbraid.runs.run import Run, open_run
from unbraid.scoring.baselines import ABOVE, MARK
from unbraid.scoring.score_page_content import number_text
from unbraid.scoring.setting_names import with_brief_settings
from unbraid.show.html import render
from unbraid.studies import study_page_columns as _study_columns
from unbraid.studies import study_page_matrices as _study_matrices
from unbraid.studies.snapshot import StudySnapshot
from unbraid.studies.study_baselines import no_better_runs, scored_baselines, summaries

TABLE_ROWS = 20
PICTURED = 500  # runs whose pictures a page holds: they take most of its time
RUN_COLUMNS = ("run", "family", "setting", "seed", "state", "reason")


def study_page(
    snapshot: StudySnapshot, frame: DataFrame, *, base: Path | None = None, progress: Progress | None = None
) -> str:
    """A standalone HTML document: no network, no fonts, no scripts of others.

    Args:
        snapshot: of the study, finished or as far as it has come.
        frame: its results.
        base: the folder that the page will lie in, so that it can link to the folders of runs; by default the
            folder of the study.
        progress: called as progress(what is done, done, all) where that takes long.
    """
    return render("study.html", page_content(snapshot, frame, base or snapshot.folder, progress=progress))


def table(name: str, frame: DataFrame | None) -> str:
    """The ranking as a fragment with its own styles, in the colours of the notebook around it; no script.

    Args:
        name: of the study.
        frame: its results; None before it is run.
    """
    if frame is None:
        return render("study_table.html", {"name": name, "states": "not run yet", "rows": []})
    frame = with_brief_settings(frame)
    shown = [column for column in _study_columns.columns(frame) if column["shown"]]
    if shown:
        frame = frame.sort_values(shown[0]["id"], ascending=shown[0]["higher"] is False, kind="stable")
    counts, names = frame["state"].value_counts(), [column["id"] for column in shown]
    worse = no_better_runs(frame)
    rows = [
        {column: _text(row[column]) for column in RUN_COLUMNS}
        | {"numbers": [_text(row[column]) + MARK * (row["run"] in worse.get(column, ())) for column in names]}
        for row in frame.head(TABLE_ROWS).to_dict("records")
    ]
    content = {
        "name": name,
        "states": ", ".join(f"{count} {state}" for state, count in counts.items()) or "no runs",
        "heads": [column["label"] for column in shown],
        "rows": rows,
        "more": len(frame) - len(rows),
        "marked": any(worse.values()),
    }
    return render("study_table.html", content)


def page_content(
    snapshot: StudySnapshot,
    frame: DataFrame,
    base: Path,
    *,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """What the page shows, as a plain dictionary; `data` is what its script reads.

    Args:
        snapshot, frame, base, progress: as for `study_page`.
    """
    data, models = study_data(snapshot, frame, base), _models(snapshot)
    return {
        "name": snapshot.config.name,
        "dataset": ", ".join(sorted({str(name) for name in frame["dataset"].dropna()})),
        "version": VERSION,
        "yaml": snapshot.text,
        "reproduce": shlex.join(["unbraid", "study", "run", "study.yaml", "--out", snapshot.folder.resolve().name]),
        "data": data,
        "pictures": _pictures(frame, models, progress),
        "duel": duel(frame, models, data["not_best"]),
    }


def study_data(snapshot: StudySnapshot, frame: DataFrame, base: Path) -> dict[str, Any]:
    """The tables of the page: runs, the columns of numbers with their meaning, and what follows from them.

    Args:
        snapshot, frame, base: as for `study_page`.
    """
    rankings, verdict = _study_matrices.rankings(snapshot, frame), _study_matrices.verdict(snapshot, frame)
    folders = {run.id: run.path for run in snapshot.runs}
    frame = with_brief_settings(frame)
    columns, settings = _study_columns.columns(frame), _study_columns.settings(frame)
    runs: dict[str, list[Any]] = {name: _study_columns.values(frame[name]) for name in RUN_COLUMNS}
    for name in ("family", "setting", "state", "reason"):
        runs[name] = [cell or "" for cell in runs[name]]
    runs["folder"] = [_link(folders.get(run), base) for run in runs["run"]]
    return {
        "groups": list(_study_columns.GROUPS.items()),
        "columns": columns,
        "settings": settings,
        "runs": runs,
        "values": {column["id"]: _study_columns.values(frame[column["id"]]) for column in columns},
        "agreement": _study_matrices.correlations(frame),
        "udr": rankings,
        **verdict,
        **_baselines(snapshot, frame),
    }


def _baselines(snapshot: StudySnapshot, frame: DataFrame) -> dict[str, Any]:
    """Scores of the baselines, and indices of the runs that are no better; empty without baselines."""
    if ABOVE not in frame.columns or not frame[ABOVE].notna().to_numpy().any():
        return {"baselines": [], "no_better": {}}
    places = {run: place for place, run in enumerate(frame["run"])}
    worse = {column: sorted(places[run] for run in runs) for column, runs in no_better_runs(frame).items()}
    return {"baselines": summaries(scored_baselines(snapshot)), "no_better": worse}


def _pictures(
    frame: DataFrame, models: Mapping[str, Callable[[], Run]], progress: Progress | None
) -> dict[str, dict[str, Any]]:
    """The picture of each run; with more than PICTURED, only those of the best by the ranking's first column."""
    if len(models) <= PICTURED:
        return pictures(models, progress)
    first, known = _first_shown(frame), frame.loc[frame["run"].isin(list(models))]
    if first is not None:
        known = known.sort_values(first["id"], ascending=first["higher"] is False, kind="stable")
    drawn = {run: models[run] for run in known["run"].tolist()[:PICTURED]}
    by = f"best {PICTURED:,} by {first['label']}" if first else f"first {PICTURED:,}"
    missing = f"Of {len(models):,} models this page has pictures of the {by}; unbraid report RUN draws any."
    return pictures(drawn, progress) | {run: {"missing": missing} for run in models if run not in drawn}


def _first_shown(frame: DataFrame) -> dict[str, Any] | None:
    """The first numeric column that the ranking shows; texts, such as whether a run has collapsed, rank nothing."""
    return next((column for column in _study_columns.columns(frame) if column["shown"] and column["number"]), None)


def duel(
    frame: DataFrame, models: Mapping[str, Callable[[], Run]], not_best: Collection[int] = ()
) -> dict[str, Any] | None:
    """The best and the worst model by the first column of the ranking, decoded by the same sliders.

    None if there are no two models of the same images, if a page cannot run their decoders, or if UDR names no best.

    Args:
        frame: the results.
        models: what opens each run that has a model, by its id.
        not_best: places in the frame of runs that are not best by UDR whatever they score.
    """
    if (first := _first_shown(frame)) is None:
        return None
    barred = set(frame["run"].iloc[list(not_best)]) if first["id"] == "udr.score" else set()
    frame = with_brief_settings(frame)
    ranked = frame.loc[frame["run"].isin(list(models)) & frame[first["id"]].notna()]
    ranked = ranked.sort_values(first["id"], ascending=first["higher"] is False, kind="stable")
    good = ranked.loc[~ranked["run"].isin(list(barred))]
    if len(ranked) < 2 or good.empty or good["run"].iloc[0] == ranked["run"].iloc[-1]:
        return None
    ends = [*good.iloc[:1].to_dict("records"), *ranked.iloc[-1:].to_dict("records")]
    try:
        live = live_models([models[row["run"]]() for row in ends])
    except (ValueError, OSError):  # the pictures of these runs say what is wrong
        return None
    if any(model["reason"] for model in live["models"]):
        return None
    for slider in live["sliders"]:
        slider["factors"] = []
    for place, row, model in zip(("Best", "Worst"), ends, live["models"], strict=True):
        model["name"] = f"{place} by {first['label']}: {row['family']} {row['setting']}, seed {row['seed']}"
    return live | {"brief": True}


def _text(value: Any) -> str:
    if isinstance(value, float):
        return number_text(value) if math.isfinite(value) else "–"
    return "–" if value is None else str(value)


def _models(snapshot: StudySnapshot) -> dict[str, Callable[[], Run]]:
    """What opens the model of each finished run that has one; added representations have none."""
    return {
        run.id: partial(open_run, run.path, device="cpu", trust=snapshot.trusted, records=(run.config, run.status))
        for run in snapshot.runs
        if run.state == "finished" and (run.path / WEIGHTS).is_file()
    }


def _link(path: Path | None, base: Path) -> str | None:
    """Where the page finds a folder, as a relative address; None where there is no such folder."""
    if path is None or not path.is_dir():
        return None
    return quote(Path(os.path.relpath(path, base)).as_posix()) + "/"
