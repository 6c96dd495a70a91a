"""Representations of a user's own that enter a study: scored, ranked and compared like its runs."""

import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml

from unbraid.base.arguments import list_of
from unbraid.base.counted import counted
from unbraid.base.types import IntArray, Progress
from unbraid.data import Representation, Space
from unbraid.data.space import level_names
from unbraid.datasets.own_images import LABELS
from unbraid.families.family_table import FAMILIES, find_family
from unbraid.files.json_records import check_record
from unbraid.files.remote import changing
from unbraid.files.run_files import ADDED_CODES, CONFIG, WORKING
from unbraid.files.trust import Trusted
from unbraid.files.whole_files import with_home
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.runs.folder import read_codes, read_folder
from unbraid.runs.foreign_models import code_path, config_columns, is_run
from unbraid.runs.grouping import is_seed, name_of, run_columns, varying
from unbraid.runs.model_list import Models
from unbraid.runs.run import N_CODES
from unbraid.scoring.encoding import drawn, encoded
from unbraid.scoring.score import without_presets
from unbraid.studies import store
from unbraid.studies.expand import metric_names, setting_of, setting_text
from unbraid.studies.run_scores import complete_scores
from unbraid.studies.snapshot import RunView, StudySnapshot
from unbraid.studies.store import is_study
from unbraid.studies.study import Study
from unbraid.studies.study_baselines import score_baselines
from unbraid.studies.study_json import AddedRecord
from unbraid.studies.study_ranking import rank_when_done
from unbraid.studies.study_table import write_results

__all__ = ["add", "begin", "encode_sample", "sample_of"]

METRICS = ("mig", "dci_lasso", "sap", "modularity", "mcc")  # default of a study of codes alone
NAME = re.compile(r"\w[\w.+-]*")
STRANGE = re.compile(r"[^\w.+-]+")  # in the names of models: beta=4,seed=0 of Hydra becomes beta-4-seed-0


def begin(
    folder: str | Path,
    labels: str | Path,
    *,
    metrics: str | Sequence[str] = METRICS,
    kinds: Mapping[str, str] | None = None,
) -> Study:
    """Begin a study of codes alone: it has labels but no images, and trains nothing.

    Args:
        folder: of the study; it must not exist yet.
        labels: .csv or .parquet file with one row for each row of the codes that will be added.
        metrics: names of metrics and presets; each must be defined for these factors.
        kinds: of factors, by name; others are guessed, as `unbraid.datasets.from_array` does.

    Returns:
        The study, with its folder written; `add` adds models to it.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds no labels, or a column that is the same in all rows; or the folder holds a study, or
            something else, already.
    """
    if is_study(folder):
        raise ValueError(f"{folder}: there is a study already; its labels cannot be chosen")
    path = with_home(labels).absolute()
    if path.suffix.lower() not in LABELS:
        raise ValueError(f"{labels}: labels of a study are a {' or '.join(LABELS)} file")
    options = {} if kinds is None else {"kinds": dict(kinds)}
    named = [metrics] if isinstance(metrics, str) else list(metrics)
    content = {
        "name": Path(folder).absolute().name,
        "dataset": {"name": str(path), **options},
        "families": [],
        "metrics": list(without_presets(named)),
        "udr": {},
    }
    with TemporaryDirectory() as place:
        file = Path(place) / store.YAML
        file.write_text(yaml.safe_dump(content, sort_keys=False, allow_unicode=True), encoding="utf-8")
        study = Study.load(file, out=folder)
        space = study.part().dataset().space
        for name, levels in zip(space.names, space.factors(np.arange(len(space))).T, strict=True):
            if (levels == levels[0]).all():
                raise ValueError(
                    f"{labels}: column {name!r} is the same in all rows: nothing can be measured against it"
                )
        study.run()
    return study


def add(
    study: Study,
    files: Sequence[str | Path] | Models,
    *,
    dataset: str | None = None,
    family: str | None = None,
    setting: Mapping[str, float | int | str] | None = None,
    seed: int | None = None,
    names: Sequence[str] | None = None,
    progress: Progress | None = None,
) -> list[RunView]:
    """Add representations to a study, each as added/<name>/, and score them by the study's metrics.

    Args:
        study: with a folder.
        dataset: label of the dataset, in a study of several.
        files: representation files or codes alone (.npy, .npz, .csv, ...; nothing then tells another order of rows),
            or folders of runs that `unbraid.train` made; or the folder of a model of another framework, or one that
            holds such folders: codes under their usual names, a config.yaml or config.json beside them. Of `Models`
            those that can be read are added, and its `failed` names the others. Their rows are the images of the study:
            `sample_of(study)` says which, `encode_sample` encodes them.
        family: of all of them; a run folder brings its own. Files need one, and so do models whose config names no
            `family`.
        setting: hyperparameters of all of them; a run folder brings its own, and of several models of another framework
            it is what varies in their configs.
        seed: of the first; the others count on from it. By default a run folder or a config says it, and files count on
            from the seeds that the study has of their family and setting.
        names: of the folders; by default the names of the files without suffix.
        progress: called as progress(what is done, done, all).

    Returns:
        The runs added, in the order of the files, with their scores in place, and why a metric could not be computed.
        All of them or, where one is refused, none; of `Models` those that can be read.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no representation, or not one of the images of the study in their order; a name is taken.
    """
    part = study.part(dataset)
    folder, space = part.require_folder(), part.dataset().space
    if not (folder / store.ABOUT).exists():
        raise ValueError(f"{folder}: the study has not started; start it with unbraid study run")
    part.check_trust()
    if seed is not None and seed < 0:
        raise ValueError(f"seed must be 0 or more; got {seed}")
    models = files if isinstance(files, Models) else Models([*map(Path, list_of("files", files))], strict=True)
    paths = models.paths
    names = names_of(paths) if names is None else list(list_of("names", names))
    if len(names) != len(paths):
        raise ValueError(f"names (--name) must be one per model ({len(paths)}); got {len(names)}")
    snapshot = part.snapshot()
    _check_names(snapshot, names, paths)
    name_of_path = dict(zip(paths, names, strict=True))
    models.map(lambda path: run_columns(path) if path.is_dir() else {})  # a damaged config
    records = _records(snapshot, models.paths, family, setting, seed)
    record_of_path = dict(zip(models.paths, records, strict=True))
    representations = models.map(lambda path: _checked(_read(path, space), space, str(path)))
    names, checked = [name_of_path[path] for path in models.paths], list(representations.values())
    records = [record_of_path[path] for path in models.paths]
    begun = [folder / store.ADDED / f".{name}{WORKING}" for name in names]
    entered: list[Path] = []
    with changing(folder):
        try:
            for number, (working, representation, record) in enumerate(zip(begun, checked, records, strict=True)):
                if progress:
                    progress(f"scoring {names[number]}", number, len(names))
                shutil.rmtree(working, ignore_errors=True)
                working.mkdir(parents=True)
                representation.save(working / ADDED_CODES)
                store.write_json(working / CONFIG, record)
                complete_scores(working, metric_names(part.config), held_out=part.config.held_out)
            for working, name in zip(begun, names, strict=True):
                store.forget_failure(folder, name)
                entered.append(working.rename(folder / store.ADDED / name))
            snapshot = part.snapshot(around=snapshot.environment, files=snapshot.files)
            if score_baselines(part, snapshot, progress):
                snapshot = part.snapshot(around=snapshot.environment, files=snapshot.files)
            rank_when_done(part, snapshot, progress)
            write_results(snapshot)
        except Exception:  # after an interruption they stay: only the ranking is missing by then
            begun += entered
            raise
        finally:
            for working in begun:
                shutil.rmtree(working, ignore_errors=True)
    runs = {run.id: run for run in snapshot.runs}
    return [runs[name] for name in names]


def sample_of(study: Study, dataset: str | None = None) -> IntArray:
    """(n,) positions in the dataset of the images that every run of the study is encoded on, 10 000 at most."""
    return drawn(len(study.part(dataset).dataset()), N_CODES, 0)


def encode_sample(
    encode: Callable[[Any], Any], study: Study, *, dataset: str | None = None, batch_size: int = 256
) -> Representation:
    """Codes of the study's images by your own encoder, ready to be saved and added.

    Args:
        encode: images, uint8 (n, height, width, channels), to codes (n, n_codes), or to (codes, log_variances).
        study: whose images are encoded.
        dataset: label of the dataset, in a study of several.
        batch_size: images per call.
    """
    return encoded(encode, study.part(dataset).dataset(), N_CODES, batch_size, 0)


def names_of(paths: Sequence[Path]) -> list[str]:
    """Names for the folders of models: those of their files or folders, with the parent folder where two are equal."""
    names = [name_of(path) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.absolute().parent.name}-{name}" for path, name in zip(paths, names, strict=True)]
    return [STRANGE.sub("-", name).strip("-") for name in names]


def _check_names(snapshot: StudySnapshot, names: Sequence[str], files: Sequence[Path]) -> None:
    ids, paths = {run.id for run in snapshot.runs}, dict[str, Path]()
    for name, file in zip(names, files, strict=True):
        if name in paths:
            raise ValueError(
                f"{paths[name]} and {file} would both be called {name!r}; give each a name of its own by names (--name)"
            )
        paths[name] = file
        if not NAME.fullmatch(name):
            raise ValueError(f"{file}: {name!r} is no name for a folder; give a name of letters, digits, - _ + .")
        if name in ids:
            place = snapshot.folder / store.ADDED / name
            how = f", or delete {place}" if place.exists() else ""
            raise ValueError(f"{file}: the study has {name!r} already; give another name (--name){how}")


def _records(
    snapshot: StudySnapshot,
    files: Sequence[Path],
    family: str | None,
    setting: Mapping[str, Any] | None,
    seed: int | None,
) -> list[dict[str, Any]]:
    """The content of config.json for each file or folder."""
    content = snapshot.environment.dataset["content"]
    last_seeds: dict[tuple[str, str], int] = {}
    for run in snapshot.runs:
        last_seeds[run.family, run.setting] = max(run.seed, last_seeds.get((run.family, run.setting), -1))
    configs = {file: config_columns(file) for file in files if file.is_dir() and not is_run(file)}
    known = {name for run in snapshot.runs for name in run.hyperparameters}  # these distinguish one more model, too
    every = dict.fromkeys([*varying(list(configs.values())), *sorted(known)])
    varied = [name for name in every if not is_seed(name) and name != "family"]
    records = []
    for number, file in enumerate(files):
        columns = configs.get(file, {})
        hyperparameters = (
            {name: columns[name] for name in varied if name in columns} if setting is None and columns else setting
        )
        record = _record(file, family or columns.get("family"), hyperparameters, content, snapshot.trusted)
        key = record["family"], record["setting"]
        own = record.get("run", {}).get("seed", _seed(columns))
        record["seed"] = seed + number if seed is not None else own if own is not None else last_seeds.get(key, -1) + 1
        last_seeds[key] = max(record["seed"], last_seeds.get(key, -1))
        check_record(AddedRecord, record, file)
        records.append(record)
    return records


def _seed(columns: Mapping[str, Any]) -> int | None:
    """The seed that the config of a model names; None without exactly one."""
    seeds = {value for name, value in columns.items() if is_seed(name)}
    only = seeds.pop() if len(seeds) == 1 else None
    return only if isinstance(only, int) and not isinstance(only, bool) and only >= 0 else None


def _record(
    file: Path,
    family: str | None,
    setting: Mapping[str, Any] | None,
    content: str,
    trusted: Sequence[Trusted],
) -> dict[str, Any]:
    """The content of config.json but for the seed.

    Raises:
        ValueError: the family is not known, or the run saw other images than the study's.
    """
    config, status = read_folder(file) if file.is_dir() and is_run(file) else ({}, {})
    if config and config["dataset"]["content"] != content:
        images = f"{config['dataset']['name'] or 'images in memory'} {config['dataset']['options'] or ''}".strip()
        raise ValueError(f"{file}: it was trained on other images than the study's ({images})")
    family = family or config.get("family")
    if not family:
        raise ValueError(f"{file}: say of which family it is (family=, --family)")
    hyperparameters = dict(config.get("hyperparameters", {}) if setting is None else setting)
    own = next((name for name in trusted if name == family), None)
    if (own or family in FAMILIES) and hyperparameters.keys() <= find_family(own or family).hyperparameters.keys():
        named = setting_of(own or family, hyperparameters, config.get("steps"), config.get("batch_size"))
    else:
        named = setting_text(hyperparameters, hyperparameters)
    return {
        "family": family,
        "setting": named,
        "hyperparameters": hyperparameters,
        "source": str(file),
        **({"run": config, "status": status} if config else {}),
    }


def _read(path: Path, space: Space) -> Representation:
    """The codes of a file or folder.

    Raises:
        ValueError: a table of codes alone has columns with the names of factors.
    """
    file = code_path(path)
    representation = read_codes(file)
    among = [name for name in representation.code_names if name in space.names]
    if file.suffix.lower() in LABELS and among and not representation.names:
        raise ValueError(
            f"{file}: column {among[0]!r} is a factor of the study, and would count as a code; leave labels out, or "
            "call the codes code_0, code_1, ..."
        )
    return representation


def _checked(representation: Representation, space: Space, where: str) -> Representation:
    """The representation with the factors of the study, after checking that they agree.

    Raises:
        ValueError: it is of other images, or of the same in another order.
    """
    rows = drawn(len(space), N_CODES, 0)
    expected = space.factors(rows)
    if len(representation) == len(space) > len(rows):
        representation = representation.keep_rows(rows)
    if len(representation) != len(expected):
        of_all = "" if len(space) == len(rows) else f" (or all {len(space):,})"
        raise ValueError(
            f"{where}: {counted(len(representation), 'row')}; runs of this study are encoded on {len(expected)} "
            f"images{of_all}. unbraid.studies.added.sample_of(study) gives their positions"
        )
    if not space.names:  # images alone
        representation = replace(
            representation, factors=expected, names=(), kinds=(), sizes=None, levels=(), periods=(), notes=()
        )
        if not np.isfinite(representation.codes).all():
            raise ValueError(f"{where}: codes must be finite")
        return representation
    if not representation.names:  # codes alone: that their rows are those images, in that order, is the user's word
        representation = replace(representation, factors=expected, names=space.names, kinds=space.kinds)
    own_names = representation.names != tuple(f"factor_{k}" for k in range(representation.factors.shape[1]))
    if representation.factors.shape[1] != len(space.names) or (own_names and representation.names != space.names):
        raise ValueError(
            f"{where}: its factors are {', '.join(representation.names)}; the study's, {', '.join(space.names)}"
        )
    differing = np.flatnonzero(~np.isclose(representation.factors, expected, rtol=1e-5, atol=1e-6).all(axis=1))
    if len(differing):
        row = int(differing[0])
        raise ValueError(
            f"{where}: row {row} has the factors {_row(representation.factors[row])}, and in the study "
            f"{_row(expected[row])} ({len(differing)} such rows): codes must be of the same images in the same order"
        )
    try:
        check_inputs(representation.codes, expected, space.kinds)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return replace(
        representation, factors=expected, names=space.names, kinds=space.kinds, sizes=space.turns,
        levels=level_names(space), periods=(), notes=(),
    )  # fmt: skip


def _row(values: Any) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
