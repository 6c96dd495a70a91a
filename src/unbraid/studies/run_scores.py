"""scores.json of a run: missing scores are computed, and each is stored with all that determines it.

An entry, be it a number, a reason why there is none, or an error, is valid only if its `computed_with` equals what the
study requires. With another `held_out`, seed or version of a metric, or another source of a user's own metric, it is
computed again. Scores on other terms than those of the folder are not written here.
"""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from unbraid.base.types import Progress
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.files.checksum import checksummed_json
from unbraid.files.run_files import SCORES, WEIGHTS
from unbraid.files.score_file import OF_CODE, Decision, SavedMetric, SavedScores, storable
from unbraid.files.trust import Untrusted, code_of, is_code
from unbraid.files.whole_files import atomic_write
from unbraid.metrics import Metric, NotDefined
from unbraid.metrics._shared.metric_arguments import find_metric
from unbraid.metrics._shared.provenance import decision
from unbraid.runs.folder import read_codes
from unbraid.runs.whole_objects import objects_of
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.diagnose import diagnose_representation
from unbraid.scoring.engine import Objects, score_each
from unbraid.scoring.saved_card import metric_entry
from unbraid.scoring.score import choose
from unbraid.scoring.scored import FailedMetric, Scored
from unbraid.scoring.unwanted import factor_of
from unbraid.studies.snapshot import NONE, missing_metrics, read_scores


def complete_scores(
    folder: Path,
    metrics: Sequence[str],
    *,
    held_out: str | None = None,
    seed: int = 0,
    retry: bool = False,
    dataset: FactorDataset | None = None,
    objects: Objects | None = None,
    trust: Collection[str] = (),
    saved: SavedScores | None = None,
    progress: Progress | None = None,
) -> bool:
    """Compute the scores that scores.json lacks, or holds on other terms, and add them.

    With them comes the diagnosis, where it has none yet: which factors are in the codes, and where.
    A metric that cannot be computed is stored with the reason, and does not stop the others. If interrupted, the scores
    that are done are kept. Returns whether there was anything to compute.

    Args:
        folder: of a run, or of a representation that was added to a study.
        metrics: by name.
        held_out, seed, progress: as for `unbraid.score`.
        retry: try again what failed.
        dataset: of the run, for metrics that need whole objects encoded; by default opened by its name.
        objects: as for `unbraid.score`; by default of the model in the folder, where there is one.
        trust: as for `unbraid.load_run`.
        saved: content of scores.json, if it was read already.

    Raises:
        ValueError: the codes are damaged; or it would take code that the user does not trust.
        OSError: the disk is full.
    """
    rows, errors = _rows(metrics)
    requirements = score_requirements(metrics, held_out=held_out, seed=seed, rows=rows)
    saved = read_scores(folder, warn=False) if saved is None else saved
    missing = missing_metrics(saved, requirements, retry=retry)
    if not missing:
        return False
    representation = read_codes(folder)
    scored: dict[str, Scored] = {}
    skipped: dict[str, str] = {}
    failed = {name: FailedMetric.from_error(error) for name, error in errors.items() if name in missing}
    if objects is None and (folder / WEIGHTS).is_file():
        objects = objects_of(folder, dataset, trust)
    chosen = {name: rows[name] for name in missing if name in rows}
    diagnosis = diagnose_representation(representation) if saved.diagnosis is None and representation.names else None
    working = score_each(representation, chosen, seed=seed, held_out=held_out, objects=objects, progress=progress)
    try:
        with closing(working) as results:
            for name, result in results:
                if isinstance(result, Scored):
                    result = _readable(result, representation)
                if isinstance(result, Scored):
                    scored[name] = result
                elif isinstance(result, NotDefined):
                    skipped[name] = storable(result)
                else:
                    failed[name] = FailedMetric.from_error(result)
    finally:
        if scored or skipped or failed:
            decided = {name: requirements[name] for name in (*scored, *skipped, *failed)}
            card = ScoreCard(
                representation,
                scored,
                skipped,
                seed,
                held_out=held_out,
                path=folder.name,
                failed=failed,
                computed_with=decided,
            )
            _keep(folder, card.to_dict() | ({} if diagnosis is None else {"diagnosis": diagnosis.to_dict()}))
    return True


def keep_by_hand(folder: Path, card: ScoreCard) -> list[str]:
    """Add the scores of a card to scores.json of a run, if they were computed on the default terms; return their names.

    The default terms are all factors, seed 0 and no `held_out`. Entries that the file holds already stay, as do those
    on other terms, such as the gap of a study. Scores of unwanted factors are not added.

    Args:
        folder: of the run.
        card: of its codes, with whatever factors, seed and `held_out` the user asked for.
    """
    content, saved = card.to_dict(), read_scores(folder, warn=False)
    metrics = [name for name in content["computed_with"] if factor_of(name) is None]
    plain = score_requirements(metrics, rows=_rows(metrics)[0])
    lacking = missing_metrics(saved, plain, retry=True)
    decisions = saved.decisions()
    names = [
        name
        for name in lacking
        if content["computed_with"][name] == plain[name]
        and (name not in decisions or _terms(decisions[name]) == _terms(plain[name]))
    ]
    if card.seed:
        content.pop("diagnosis", None)
    if names:
        parts = {
            part: {name: entry for name, entry in content.get(part, {}).items() if name in names} for part in _PARTS
        }
        _keep(folder, {**content, **parts}, stay=True)
    return names


def score_requirements(
    metrics: Iterable[str], *, held_out: str | None = None, seed: int = 0, rows: Mapping[str, Metric] | None = None
) -> dict[str, Decision]:
    """By metric, what its entry must have been computed with.

    Args:
        metrics: by name.
        held_out, seed: as for `unbraid.score`.
        rows: of the metrics, as `choose` gives them; by default those of the table. A user's function without a row is
            not imported, and any source of it is accepted.
    """
    known = find_metric if rows is None else rows.get
    return {name: decision(name, known(name), seed=seed, held_out=held_out) for name in metrics}


def current_metrics(scores: SavedScores, requirements: Mapping[str, Decision]) -> dict[str, SavedMetric]:
    """Metrics that were computed with what is required; those not required, with today's defaults."""
    terms = {**score_requirements(name for name in scores.metrics if name not in requirements), **requirements}
    outdated = missing_metrics(scores, terms)
    return {name: entry for name, entry in scores.metrics.items() if name not in outdated}


_PARTS = ("metrics", "skipped", "failed", "computed_with")


def _keep(folder: Path, content: dict[str, Any], *, stay: bool = False) -> None:
    """Merge new entries into scores.json; with `stay`, its other keys stay as they are."""
    saved = read_scores(folder, warn=False)  # again: another process may have added to it meanwhile
    old = {} if saved is NONE else saved.model_dump(exclude_unset=True)
    new = content["computed_with"]
    merged = {**content, **(old if stay else {"diagnosis": old["diagnosis"]} if "diagnosis" in old else {})}
    for part in _PARTS:
        unchanged = {name: entry for name, entry in old.get(part, {}).items() if name not in new}
        merged[part] = {**unchanged, **content.get(part, {})}
    gaps = [entry["held_out"] for entry in merged["computed_with"].values() if "held_out" in entry]
    merged["held_out"] = gaps[0] if gaps else None
    with atomic_write(folder / SCORES) as temporary:
        temporary.write_bytes(checksummed_json(merged))


def _terms(decided: Decision) -> dict[str, Any]:
    """What the user chose, without what comes with the code."""
    return {key: value for key, value in decided.items() if key not in ("version", *OF_CODE)}


def _rows(metrics: Iterable[str]) -> tuple[dict[str, Metric], dict[str, Exception]]:
    """The rows of metrics, and the errors of the user's own that cannot be imported."""
    rows: dict[str, Metric] = {}
    errors: dict[str, Exception] = {}
    for name in metrics:
        try:
            rows |= choose([name])
        except Exception as error:  # whatever a module of the user's raises while it is imported
            if not is_code(code_of(name)) or isinstance(error, Untrusted):
                raise
            errors[name] = error
    return rows, errors


def _readable(scored: Scored, representation: Representation) -> Scored | Exception:
    """A score, or why it could not be read back from scores.json, as may happen to one of the user's own."""
    try:
        entry = json.dumps(metric_entry(scored, representation.names), allow_nan=False)
        SavedMetric.model_validate_json(entry)
    except (ValueError, TypeError) as error:  # ValidationError is a ValueError
        return ValueError(f"what it gave cannot be kept: {error}")
    return scored
