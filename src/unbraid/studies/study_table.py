"""The table of a study: one row per run.

A row holds all that its numbers depend on, so that it can be merged into any other table; unknown values are missing.
Columns, in this order:
    run, family, setting, seed, state, reason
    dataset, dataset_options, content, steps, batch_size, hold_out, device, precision, training_version, unbraid
                                   what decided the weights; the images by their digest, the options as JSON
    commit, torch, numpy, processor, accelerator
                                   by which code and on what they were trained
    computed_with, ranked_by          what decided the numbers, by metric, and of UDR; as JSON
    above_baselines                "yes", or "no: mig, sap" with the metrics by which one of the run's baselines scores
                                   as well; missing where the YAML does not ask for them
    seconds                        of training
    n_rows                         that were scored, on which scores depend
    collapsed                      "yes" where all latents of a run together tell less than one bit of a sample, which a
                                   metric may score all the same; there where any run is so
    factors                        the diagnosis in short, as "2 of 6 alone, 1 missing"; missing in older scores
    hyper.<name>                   every hyperparameter; NaN where the family has none of that name
    train.<log>                    last point of the curves: train.reconstruction, train.kl, ...
    <metric id>.<value name>       mig.score, dci_lasso.disentanglement, ...; NaN where it is not defined, where it
                                   failed (`reason` says why), or where what is kept is on other terms than the study's
    <metric id>.held_out           product of what the metric says of each factor that the section compositional names,
                                   from 0: what is worse than chance counts as 0
    and what the tables of COLUMNS add, such as udr.score and baseline.mig.score, of the best.
"""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from unbraid.base.types import DataFrame
from unbraid.files.score_file import Decision
from unbraid.files.table_formats import save_frame
from unbraid.metrics._shared.metric_arguments import find_metric
from unbraid.scoring.baselines import ABOVE
from unbraid.scoring.diagnosis import diagnosis_of
from unbraid.scoring.result_columns import DIAGNOSIS, HELD_OUT, N_ROWS
from unbraid.studies import store
from unbraid.studies.holdout.held_out_runs import columns as generalisation_columns
from unbraid.studies.run_scores import current_metrics
from unbraid.studies.snapshot import NONE, RunView, StudySnapshot
from unbraid.studies.study_baselines import baseline_columns
from unbraid.studies.study_ranking import udr_columns

MADE = ("commit", "torch", "numpy", "processor", "accelerator")  # columns from a run's provenance

# Functions that add columns: from the study to {run: {column: value}}; runs without values may be left out.
Columns: TypeAlias = Callable[[StudySnapshot], Mapping[str, Mapping[str, Any]]]
COLUMNS: tuple[Columns, ...] = (
    udr_columns, generalisation_columns, baseline_columns,
)  # fmt: skip


def results(snapshot: StudySnapshot) -> DataFrame:
    """One row per run (a pandas DataFrame), those added included.

    Raises:
        ValueError: the ranking in the folder is damaged.
    """
    import pandas

    compositional, images = snapshot.config.compositional, snapshot.environment.dataset
    held_out = compositional.factors if compositional else ()
    rows = {run.id: _row(run, images) | _numbers(run, snapshot.requirements, held_out) for run in snapshot.runs}
    for columns in COLUMNS:
        for name, values in columns(snapshot).items():
            rows[name].update({key: as_text(v) if isinstance(v, dict) else v for key, v in values.items()})
    return pandas.DataFrame(list(rows.values()), columns=ordered(rows.values()))


def _row(run: RunView, images: Mapping[str, Any]) -> dict[str, Any]:
    """The columns of a run other than scores; an added representation is of the study's images."""
    status, made = run.status, run.status.get("provenance") or {}
    return {
        "run": run.id,
        "family": run.family,
        "setting": run.setting,
        "seed": run.seed,
        "state": run.state,
        "reason": run.reason,
        **conditions({**run.config, "dataset": images}),
        "unbraid": status.get("unbraid"),
        **{name: made.get(name) for name in MADE},
        **dict.fromkeys(("computed_with", "ranked_by", ABOVE)),
        "seconds": status.get("seconds"),
        N_ROWS: None,
        **{f"hyper.{name}": value for name, value in run.hyperparameters.items()},
        **{f"train.{name}": value for name, value in status.get("last", {}).items()},
    }


def conditions(config: Mapping[str, Any]) -> dict[str, Any]:
    """Columns from a run's config; None for missing keys."""
    dataset, hold_out = config["dataset"], config.get("hold_out")
    return {
        "dataset": dataset["name"],
        "dataset_options": as_text(dataset["options"]),
        "content": dataset["content"],
        "steps": config.get("steps"),
        "batch_size": config.get("batch_size"),
        "hold_out": as_text(hold_out) if hold_out else None,
        "device": config.get("device"),
        "precision": config.get("precision"),
        "training_version": config.get("training_version", 1) if "steps" in config else None,
    }


def as_text(value: Any) -> str:
    """JSON in one line, equal for equal values."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, allow_nan=False)


def product_from_0(values: Iterable[float]) -> float:
    """Product with negative values, worse than chance, as 0: two of them must not make a good one."""
    return math.prod(max(value, 0.0) for value in values)


def _numbers(run: RunView, requirements: Mapping[str, Decision], held_out: Sequence[str]) -> dict[str, Any]:
    """Values of the metrics that were computed on the study's terms; NaN for those that failed.

    With factors held out, also the product of a metric's values for these factors, where higher is better: as Mahon et
    al. 2023 do for SNC and NK in their tables 4 and 6.
    """
    scores = run.scores
    if scores is NONE:
        return {}
    numbers: dict[str, Any] = {N_ROWS: scores.input.n_samples}
    numbers |= {"collapsed": "yes"} if scores.input.collapsed else {}
    numbers |= {} if scores.diagnosis is None else {DIAGNOSIS: diagnosis_of(scores.diagnosis).column}
    numbers |= {f"{name}.{_headline(name)}": math.nan for name in run.failed_metrics}
    current = current_metrics(scores, requirements)
    for metric, entry in current.items():
        numbers |= {f"{metric}.{name}": value for name, value in entry.values.items()}
        if held_out and entry.higher_is_better and entry.per_factor and not {*held_out} - {*entry.per_factor}:
            numbers[f"{metric}.{HELD_OUT}"] = product_from_0(entry.per_factor[name] for name in held_out)
    decisions = scores.decisions()
    return numbers | (
        {"computed_with": as_text({name: decisions.get(name, {}) for name in current})} if current else {}
    )


def _headline(metric: str) -> str:
    known = find_metric(metric)
    return "score" if known is None else known.headline


def ordered(rows: Iterable[Iterable[str]]) -> list[str]:
    """Columns of all rows, in the order in which the table has them."""
    names = dict.fromkeys(name for row in rows for name in row)
    places = {"hyper": 1, "train": 2}
    return sorted(names, key=lambda name: places.get(name.partition(".")[0], 3) if "." in name else 0)


def write_results(snapshot: StudySnapshot) -> None:
    """Write the results to the folder's results.parquet; whole or not at all."""
    save_frame(results(snapshot), snapshot.folder / store.RESULTS)
