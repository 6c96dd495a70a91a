"""Representations of a user's own that enter a study: scored, ranked and compared like its runs."""

import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
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
from unbraid.files.remote import address_of, changing
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

METRICS = ("mig", "dci_lasso", "sap", "modularity", "mcc")  # of a study of codes alone, if nobody says others
NAME = re.compile(r"\w[\w.+-]*")
STRANGE = re.compile(r"[^\w.+-]+")  # in the names of models: beta=4,seed=0 of Hydra becomes beta-4-seed-0


def begin(
    folder: str | Path,
    labels: str | Path,
    *,
    metrics: str | Sequence[str] = METRICS,
    kinds: Mapping[str, str] | None = None,
) -> Study:
    """Begin a study of codes alone, in which nothing is trained: of labels, without images.

    Args:
        folder: of the study, which is not there yet.
        labels: .csv or .parquet file with a row per row of the codes that are to be added.
        metrics: names of metrics and presets; each must be defined for these factors.
        kinds: of factors, by name; others are guessed, as `unbraid.datasets.from_array` does.

    Returns:
        The study, whose folder is there; `add` adds models to it.

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
    models.each(lambda path: run_columns(path) if path.is_dir() else {})  # a damaged config
    abouts = _abouts(snapshot, models.paths, family, setting, seed)
    about_of_path = dict(zip(models.paths, abouts, strict=True))
    representations = models.each(lambda path: _checked(_read(path, space), space, str(path)))
    names, checked = [name_of_path[path] for path in models.paths], list(representations.values())
    abouts = [about_of_path[path] for path in models.paths]
    begun = [folder / store.ADDED / f".{name}{WORKING}" for name in names]
    with changing(folder), _all_or_none() as entered:
        try:
            for number, (working, representation, about) in enumerate(zip(begun, checked, abouts, strict=True)):
                if progress:
                    progress(f"scoring {names[number]}", number, len(names))
                shutil.rmtree(working, ignore_errors=True)
                working.mkdir(parents=True)
                representation.save(working / ADDED_CODES)
                store.write_json(working / CONFIG, about)
                complete_scores(working, metric_names(part.config), held_out=part.config.held_out)
            for working, name in zip(begun, names, strict=True):
                store.forget_failure(folder, name)
                entered.append(working.rename(folder / store.ADDED / name))
        finally:
            for working in begun:
                shutil.rmtree(working, ignore_errors=True)
        snapshot = part.snapshot(around=snapshot.environment, files=snapshot.files)
        if score_baselines(part, snapshot, progress):
            snapshot = part.snapshot(around=snapshot.environment, files=snapshot.files)
        rank_when_done(part, snapshot, progress)
        write_results(snapshot)
    runs = {run.id: run for run in snapshot.runs}
    return [runs[name] for name in names]


@contextmanager
def _all_or_none() -> Iterator[list[Path]]:
    """A list for folders, which are removed again where the block fails.

    Where it is interrupted they stay: what is left by then is a ranking, and their scores may have taken hours.
    """
    folders: list[Path] = []
    try:
        yield folders
    except Exception:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
        raise


def sample_of(study: Study, dataset: str | None = None) -> IntArray:
    """(n,) positions in the dataset of the images that every run of the study is encoded on, 10 000 at most."""
    return drawn(len(study.part(dataset).dataset()), N_CODES, 0)


def encode_sample(
    encode: Callable[[Any], Any], study: Study, *, dataset: str | None = None, batch_size: int = 256
) -> Representation:
    """What an encoder of one's own makes of the images of the study, ready to be saved and added.

    Args:
        encode: images, uint8 (n, height, width, channels), to codes (n, n_codes), or to (codes, log_variances).
        study: of which the images are.
        dataset: label of the dataset, in a study of several.
        batch_size: images per call.
    """
    return encoded(encode, study.part(dataset).dataset(), N_CODES, batch_size, 0)


def names_of(paths: Sequence[Path]) -> list[str]:
    """What the folders of models are called: as their files or folders, with the folder around where two are alike."""
    names = [name_of(path) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{path.absolute().parent.name}-{name}" for path, name in zip(paths, names, strict=True)]
    return [STRANGE.sub("-", name).strip("-") for name in names]


def _check_names(snapshot: StudySnapshot, names: Sequence[str], files: Sequence[Path]) -> None:
    taken, given = {run.id for run in snapshot.runs}, dict[str, Path]()
    for name, file in zip(names, files, strict=True):
        if name in given:
            raise ValueError(
                f"{given[name]} and {file} would both be called {name!r}; give each a name of its own by names (--name)"
            )
        given[name] = file
        if not NAME.fullmatch(name):
            raise ValueError(f"{file}: {name!r} is no name for a folder; give a name of letters, digits, - _ + .")
        if name in taken and not (snapshot.folder / store.ADDED / name).exists():
            raise ValueError(f"{file}: the study has {name!r} already, as a run of its own; give another name (--name)")
        if name in taken:
            place = str(snapshot.folder / store.ADDED / name)
            if url := address_of(snapshot.folder):  # what is gone on one side comes back from the other
                place = f"both {place} and {url}/{store.ADDED}/{name}"
            raise ValueError(f"{file}: the study has {name!r} already; give another name, or delete {place}")


def _abouts(
    snapshot: StudySnapshot,
    files: Sequence[Path],
    family: str | None,
    setting: Mapping[str, Any] | None,
    seed: int | None,
) -> list[dict[str, Any]]:
    """config.json of each."""
    content = snapshot.environment.dataset["content"]
    taken: dict[tuple[str, str], int] = {}
    for run in snapshot.runs:
        taken[run.family, run.setting] = max(run.seed, taken.get((run.family, run.setting), -1))
    configs = {file: config_columns(file) for file in files if file.is_dir() and not is_run(file)}
    known = {name for run in snapshot.runs for name in run.hyperparameters}  # what one more model is told apart by
    every = dict.fromkeys([*varying(list(configs.values())), *sorted(known)])
    varied = [name for name in every if not is_seed(name) and name != "family"]
    found = []
    for number, file in enumerate(files):
        columns = configs.get(file, {})
        told = {name: columns[name] for name in varied if name in columns} if setting is None and columns else setting
        about = _about(file, family or columns.get("family"), told, content, snapshot.trusted)
        key = about["family"], about["setting"]
        own = about.get("run", {}).get("seed", _seed(columns))
        about["seed"] = seed + number if seed is not None else own if own is not None else taken.get(key, -1) + 1
        taken[key] = max(about["seed"], taken.get(key, -1))
        check_record(AddedRecord, about, file)
        found.append(about)
    return found


def _seed(columns: Mapping[str, Any]) -> int | None:
    """Of the config of a model."""
    seeds = {each for name, each in columns.items() if is_seed(name)}
    only = seeds.pop() if len(seeds) == 1 else None
    return only if isinstance(only, int) and not isinstance(only, bool) and only >= 0 else None


def _about(
    file: Path,
    family: str | None,
    setting: Mapping[str, Any] | None,
    content: str,
    trusted: Sequence[Trusted],
) -> dict[str, Any]:
    """All but the seed.

    Raises:
        ValueError: nobody says of which family it is, or the run saw other images than the study's.
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
        ValueError: a table of numbers, all of them codes, has columns that are called like factors.
    """
    file = code_path(path)
    given = read_codes(file)
    among = [name for name in given.code_names if name in space.names]
    if file.suffix.lower() in LABELS and among and not given.names:
        raise ValueError(
            f"{file}: column {among[0]!r} is a factor of the study, and would count as a code; leave labels out, or "
            "call the codes code_0, code_1, ..."
        )
    return given


def _checked(given: Representation, space: Space, where: str) -> Representation:
    """The representation with the factors of the study, once they are seen to be the same.

    Raises:
        ValueError: it is of other images, or of the same in another order.
    """
    rows = drawn(len(space), N_CODES, 0)
    expected = space.factors(rows)
    if len(given) == len(space) > len(rows):
        given = given.keep_rows(rows)
    if len(given) != len(expected):
        of_all = "" if len(space) == len(rows) else f" (or all {len(space):,})"
        raise ValueError(
            f"{where}: {counted(len(given), 'row')}; runs of this study are encoded on {len(expected)} images{of_all}. "
            "unbraid.studies.added.sample_of(study) gives their positions"
        )
    if not space.names:  # images alone
        given = replace(given, factors=expected, names=(), kinds=(), sizes=None, levels=(), periods=(), notes=())
        if not np.isfinite(given.codes).all():
            raise ValueError(f"{where}: codes must be finite")
        return given
    if not given.names:  # codes alone: that their rows are those images, in that order, is the user's word
        given = replace(given, factors=expected, names=space.names, kinds=space.kinds)
    own_names = given.names != tuple(f"factor_{k}" for k in range(given.factors.shape[1]))
    if given.factors.shape[1] != len(space.names) or (own_names and given.names != space.names):
        raise ValueError(f"{where}: its factors are {', '.join(given.names)}; the study's, {', '.join(space.names)}")
    differing = np.flatnonzero(~np.isclose(given.factors, expected, rtol=1e-5, atol=1e-6).all(axis=1))
    if len(differing):
        row = int(differing[0])
        raise ValueError(
            f"{where}: row {row} has the factors {_row(given.factors[row])}, and in the study {_row(expected[row])} "
            f"({len(differing)} such rows): codes must be of the same images in the same order"
        )
    try:
        check_inputs(given.codes, expected, space.kinds)
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from None
    return replace(
        given, factors=expected, names=space.names, kinds=space.kinds, sizes=space.turns, levels=level_names(space),
        periods=(), notes=(),
    )  # fmt: skip


def _row(values: Any) -> str:
    return "(" + ", ".join(f"{value:g}" for value in values) + ")"
