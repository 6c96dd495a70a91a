"""Baselines without training: scored once per study, in no group of runs, and not ranked by UDR.

Each baseline is a folder `baselines/<id>/` of codes and scores, named by a digest of all that determines the codes:
runs with equally many codes share the random projection and PCA, runs of one network and seed the untrained network.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from statistics import fmean
from typing import Any, TypeAlias

from unbraid.base.types import DataFrame, FloatArray, Progress
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.families.family_table import FAMILIES
from unbraid.files.run_files import ADDED_CODES, CONFIG, WORKING
from unbraid.files.score_file import Decision, SavedScores
from unbraid.ranking.rank_candidates import different
from unbraid.runs.folder import read_codes
from unbraid.runs.run import BATCH, N_CODES, open_run
from unbraid.scoring.baselines import ABOVE, COMPONENTS, PROJECTION, UNTRAINED, best_baseline, no_better
from unbraid.scoring.encoding import encoded, encoded_objects
from unbraid.scoring.pixels import MADE, principal_components, random_projection
from unbraid.scoring.result_columns import BASELINE, headline_columns, higher_is_better
from unbraid.studies import store
from unbraid.studies.expand import metric_names
from unbraid.studies.run_scores import complete_scores, current_metrics
from unbraid.studies.snapshot import NONE, RunView, StudySnapshot, missing_metrics
from unbraid.studies.study_record import StudyPart

FOLDERS = {PROJECTION: "projection", COMPONENTS: "pca", UNTRAINED: "untrained"}

Encode: TypeAlias = Callable[[], Representation]


@dataclass(frozen=True, eq=False)
class StudyBaseline:
    """A baseline of a study; `computed_with` holds all that determines its codes."""

    title: str
    n_codes: int
    computed_with: Mapping[str, Any]

    @cached_property
    def id(self) -> str:
        text = json.dumps([MADE, self.title, self.n_codes, self.computed_with], sort_keys=True)
        return f"{FOLDERS[self.title]}-{self.n_codes}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def baselines_of(run: RunView, content: str) -> list[StudyBaseline]:
    """The baselines of a finished run; an added representation has no untrained network.

    Empty for an added representation with damaged codes, which is left out of the ranking, too.

    Args:
        run: of the study.
        content: digest of the images of the study.
    """
    images = {"content": content}
    if run.is_added:
        try:
            width, networks = run.codes().codes.shape[1], None
        except (OSError, ValueError):
            return []
    else:
        config = run.config
        parts = config.get("codes") or [{"size": config["hyperparameters"]["latents"]}]
        width, networks = sum(part["size"] for part in parts), _networks(config)
    baselines = [StudyBaseline(title, width, images) for title in (PROJECTION, COMPONENTS)]
    return baselines if networks is None else [*baselines, StudyBaseline(UNTRAINED, width, images | networks)]


def _networks(config: Mapping[str, Any]) -> dict[str, Any] | None:
    """All that determines the untrained networks of a run; None for a family that is fitted."""
    row, settings = FAMILIES.get(config["family"]), config["hyperparameters"]
    made_by = [str(config["family"])]
    if row is not None:
        if row.fit:
            return None
        functions = (row.build, row.encode, *([row.log_prior] if row.log_prior else []))
        made_by = [f"{function.__module__}.{function.__qualname__}" for function in functions]
        settings = {name: value for name, value in settings.items() if row.hyperparameters[name].is_structural}
    provenance = {name: config[name] for name in ("facts", "code", "training_version") if config.get(name)}
    return {"networks": made_by, "settings": dict(settings), "seed": config["seed"], **provenance}


def score_baselines(study: StudyPart, snapshot: StudySnapshot, progress: Progress | None = None) -> bool:
    """Compute the missing scores of the baselines of finished runs.

    False if there was nothing to do: the YAML does not ask for baselines, or all are scored.
    """
    lacking: dict[str, tuple[StudyBaseline, RunView]] = {}
    for run, baseline in _of_study(snapshot):
        saved = snapshot.baselines.get(baseline.id, NONE)
        if baseline.id not in lacking and missing_metrics(saved, snapshot.requirements, retry=True):
            lacking[baseline.id] = baseline, run
    if not lacking:
        return False
    dataset = study.dataset()
    for number, (baseline, run) in enumerate(lacking.values()):
        if progress is not None:
            progress(f"scoring {baseline.title}", number, len(lacking))
        _score(study, baseline, run, dataset)
    return True


def _of_study(snapshot: StudySnapshot) -> Iterator[tuple[RunView, StudyBaseline]]:
    """Pairs of a finished run and a baseline of it; none if the YAML does not ask for baselines."""
    content = snapshot.environment.dataset["content"]
    for run in snapshot.runs if snapshot.config.baselines else ():
        if run.state == "finished":
            for baseline in baselines_of(run, content):
                yield run, baseline


def _score(study: StudyPart, baseline: StudyBaseline, run: RunView, dataset: FactorDataset) -> None:
    """Write the codes of a baseline, if they are missing, and its missing scores."""
    encode, objects = _encoders(study, baseline, run, dataset)
    folder = study.require_folder() / store.BASELINES / baseline.id
    if not folder.is_dir():
        part = folder.with_name(f".{folder.name}{WORKING}")
        shutil.rmtree(part, ignore_errors=True)
        part.mkdir(parents=True)
        encode().save(part / ADDED_CODES)
        store.write_json(part / CONFIG, asdict(baseline))
        part.rename(folder)
    complete_scores(folder, metric_names(study.config), held_out=study.config.held_out, retry=True, objects=objects)


def _encoders(study: StudyPart, baseline: StudyBaseline, run: RunView, dataset: FactorDataset) -> tuple[Encode, Encode]:
    """Encoders of a baseline: of the images on which runs are scored, and of whole objects."""
    if baseline.title == UNTRAINED:
        untrained = open_run(run.path, trust=study.trusted).untrained()
        return partial(untrained.representation, dataset), partial(untrained.objects, dataset)
    encode = (
        random_projection(dataset, baseline.n_codes, 0)
        if baseline.title == PROJECTION
        else principal_components(dataset, baseline.n_codes, BATCH, 0)
    )
    of_images = encode, dataset, N_CODES, BATCH, 0
    return partial(encoded, *of_images), partial(encoded_objects, *of_images)


def scored_baselines(snapshot: StudySnapshot) -> list[dict[str, Any]]:
    """Each baseline of a study: `baseline`, `codes`, `id`, of how many `runs`, `scores` by column of a headline."""
    order, baselines = list(FOLDERS), [baseline for _, baseline in _of_study(snapshot)]
    counts = Counter(baseline.id for baseline in baselines)
    distinct = {
        baseline.id: baseline
        for baseline in sorted(baselines, key=lambda baseline: (order.index(baseline.title), baseline.n_codes))
    }
    scored = {name: _headlines(snapshot.baselines.get(name, NONE), snapshot.requirements) for name in distinct}
    return [
        {
            "baseline": baseline.title, "codes": baseline.n_codes, "id": name, "runs": counts[name],
            "scores": {column: value for column, (value, _) in scored[name].items()},
        }
        for name, baseline in distinct.items()
    ]  # fmt: skip


def untrained_codes(snapshot: StudySnapshot) -> list[FloatArray]:
    """Codes of the untrained networks that the study keeps, each once; none where these are fewer than two."""
    names = dict.fromkeys(baseline.id for _, baseline in _of_study(snapshot) if baseline.title == UNTRAINED)
    folders = [snapshot.folder / store.BASELINES / name for name in names]
    codes = different([read_codes(folder).codes for folder in folders if (folder / ADDED_CODES).is_file()])
    return codes if len(codes) > 1 else []


def summaries(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """One for each kind of baseline and number of codes.

    `number` is how many there are, more than one of untrained networks alone, and `scores` has by column their mean,
    the least and the greatest.
    """
    kinds: dict[tuple[str, int], list[Mapping[str, float]]] = {}
    for row in rows:
        kinds.setdefault((row["baseline"], row["codes"]), []).append(row["scores"])
    entries = []
    for (title, n_codes), scores in kinds.items():
        columns = dict.fromkeys(column for numbers in scores for column in numbers)
        known = {column: [numbers[column] for numbers in scores if column in numbers] for column in columns}
        ranges = {column: (fmean(numbers), min(numbers), max(numbers)) for column, numbers in known.items()}
        entries.append({"baseline": title, "codes": n_codes, "number": len(scores), "scores": ranges})
    return entries


def baseline_columns(snapshot: StudySnapshot) -> dict[str, dict[str, Any]]:
    """above_baselines of each run, and baseline.<column>, the score of its best baseline, by metric.

    `above_baselines` is "yes", or "no: mig, sap" with the metrics by which one of its baselines scores as well.
    """
    requirements, known = snapshot.requirements, {}
    by_run: dict[str, dict[str, dict[str, float]]] = {}  # by run, column and title
    for run, baseline in _of_study(snapshot):
        if baseline.id not in known:
            known[baseline.id] = _headlines(snapshot.baselines.get(baseline.id, NONE), requirements)
        for column, (value, _) in known[baseline.id].items():
            by_run.setdefault(run.id, {}).setdefault(column, {})[baseline.title] = value
    columns_by_run: dict[str, dict[str, Any]] = {}
    for run in snapshot.runs:
        scores = by_run.get(run.id, {})
        own = _headlines(run.scores, requirements) if scores else {}
        judged = {column: headline for column, headline in own.items() if column in scores}
        if judged:
            worse = [name for name, (value, higher) in judged.items() if no_better(higher, value, scores[name])]
            verdict = f"no: {', '.join(name.rpartition('.')[0] for name in worse)}" if worse else "yes"
            best = {
                f"{BASELINE}{column}": best_baseline(higher, scores[column]) for column, (_, higher) in judged.items()
            }
            columns_by_run[run.id] = {ABOVE: verdict, **best}
    return columns_by_run


def no_better_runs(frame: DataFrame) -> dict[str, set[str]]:
    """The runs that are no better than their best baseline, by column of a headline, of a table of results."""
    runs_by_column: dict[str, set[str]] = {}
    for column in headline_columns(frame):
        if f"{BASELINE}{column}" in frame.columns:
            higher = higher_is_better(column) is not False
            rows = zip(frame["run"], frame[column], frame[f"{BASELINE}{column}"], strict=True)
            runs_by_column[column] = {
                run for run, own, best in rows if best == best and no_better(higher, own, {"": best})
            }
    return runs_by_column


def _headlines(scores: SavedScores, requirements: Mapping[str, Decision]) -> dict[str, tuple[float, bool]]:
    """By column, headline scores that meet the study's requirements, and whether higher is better."""
    current = current_metrics(scores, requirements)
    return {
        f"{name}.{metric.headline}": (metric.values[metric.headline], metric.higher_is_better)
        for name in (*requirements, *(current.keys() - requirements.keys()))
        if (metric := current.get(name))
    }
