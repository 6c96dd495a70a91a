"""`unbraid.fit`: look at the images, plan, search, train, choose, and hand over one folder."""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.arguments import check_number, check_whole, list_of
from unbraid.base.device import check_unnumbered, choose_device
from unbraid.base.types import ArrayLike, FloatArray, UInt8Array
from unbraid.datasets import from_array
from unbraid.datasets.digest import content_digest
from unbraid.datasets.image_file import brightness, square_of
from unbraid.datasets.own_image_rows import has_16_bits
from unbraid.families.family import NO_AUGMENTATION, TRAINING, check_value
from unbraid.files.json_records import read_object
from unbraid.files.locks import Held, locked
from unbraid.files.remote import LOCK
from unbraid.files.whole_files import write_text
from unbraid.files.yaml_files import read_text
from unbraid.fitting.choose import Candidate, Choice, best_settings, choose
from unbraid.fitting.fit_images import ABOUT, SIZES, Pictures, as_bytes, prepare, read_pictures
from unbraid.fitting.fit_images import IMAGES as ARRAY
from unbraid.fitting.hand_over import CODES, MODEL, REPORT, Labels, check_model, hand_over, read_labels
from unbraid.fitting.plan import (
    FAMILIES,
    FILE,
    LARGEST_SEED,
    STRENGTHS,
    Plan,
    Round,
    Setting,
    longer,
    make_plan,
    read_plan,
    settings_of,
    study_of,
    write_plan,
)
from unbraid.ranking.ranking import Ranking
from unbraid.runs.model_card import README
from unbraid.runs.run import Run, load_run
from unbraid.studies.execution import check_executor
from unbraid.studies.schema import mapping
from unbraid.studies.store import ABOUT as STUDY_ABOUT
from unbraid.studies.study import Study
from unbraid.studies.study_record import StudyProgress

IMAGES, SEARCH, STUDY = "images", "search", "study"
WRITTEN = (MODEL, README, CODES, REPORT, FILE, SEARCH, STUDY, f"{SEARCH}.yaml", f"{STUDY}.yaml")  # and IMAGES
N_UNTRAINED = 3
ON_CLUSTER = ("auto", "cpu", "cuda")  # devices that the executor ray knows
MOST_MINUTES, MOST_LATENTS = 999_999, 1000  # almost two years; as many as families take
SEARCH_LIMIT, FINAL_LIMIT = 0.45, 0.95  # of the minutes: models that are not trained by then are left out

# Called as report(what is done, done, all, more text).
Report: TypeAlias = Callable[[str, int, int, str], None]


class OutOfTime(KeyboardInterrupt):
    """The minutes are over: training stops as by Ctrl-C, with its checkpoints saved."""


@dataclass(frozen=True)
class Fitted:
    """The result of `unbraid.fit`: a folder, and in it the chosen model."""

    folder: Path
    plan: Plan
    choice: Choice
    run: Run | None  # the chosen model; None if nothing was chosen, and `choice.reason` says why
    notes: tuple[str, ...] = ()  # on the labels

    @property
    def ranking(self) -> Ranking | None:
        """The ranking of the last round's models by UDR; None if they could not be compared."""
        return self.choice.ranking

    def encode(self, images: ArrayLike) -> FloatArray:
        """Codes (n, n_codes) of images (n, height, width, channels), uint8 or floats from 0 to 1, of any size.

        Raises:
            ValueError: no model was chosen, or these are no such images.
        """
        return self._chosen.encode(self.resized(images))

    def decode(self, codes: ArrayLike) -> FloatArray:
        """Images (n, size, size, channels), 0 to 1, of codes (n, n_codes)."""
        return self._chosen.decode(codes)

    def report(self) -> Path:
        """The path of the HTML report."""
        return self.folder / REPORT

    def resized(self, images: ArrayLike) -> Any:
        """Images as the model sees them: cropped to their middle square, resized, and in grey if the model is.

        Raises:
            ValueError: as for `encode`.
        """
        return as_seen(images, self._chosen.config["dataset"]["image_shape"])

    @property
    def _chosen(self) -> Run:
        if self.run is None:
            raise ValueError(f"no model was chosen: {self.choice.reason}")
        return self.run


def as_seen(images: ArrayLike, shape: Sequence[int]) -> UInt8Array:
    """Images (n, height, width, channels) as a model of images of this shape, (size, size, channels), sees them.

    Raises:
        ValueError: they are neither uint8 nor floats from 0 to 1, of another shape, or of other channels than the
            model's.
    """
    sizes, (size, _, channels) = tuple(np.shape(images)), shape  # pyright: ignore[reportArgumentType, reportCallIssue]
    if len(sizes) not in (3, 4) or (len(sizes) == 3 and sizes[-1] in (1, 3)):
        raise ValueError(
            f"images must be (n, height, width, channels), of one image (1, height, width, channels); got {sizes}"
        )
    if has_16_bits(np.asarray(images)):
        raise ValueError(
            "images of 16 bits must be given as floats from 0 to 1: divide them by the value that was white in the "
            "training images, which the report says"
        )
    array = from_array(images).images(np.arange(sizes[0]))
    seen = np.stack([square_of(image, size) for image in as_bytes(array)])
    if channels == 1 and seen.shape[-1] == 3:
        seen = np.stack([brightness(image) for image in seen])
    if seen.shape[-1] != channels:
        raise ValueError(f"the model takes images of {channels} channels; got {sizes}")
    return seen


def fit(
    images: Any,
    out: str | Path = "fitted",
    *,
    minutes: float = 30.0,
    size: int | None = None,
    families: Sequence[str] = FAMILIES,
    latents: int = 10,
    seed: int = 0,
    augment: str | Callable[..., Any] | None = None,
    plan: str | Path | Plan | None = None,
    labels: Any = None,
    device: str = "auto",
    executor: str | Mapping[str, Any] = "local",
    report: Report | None = None,
) -> Fitted:
    """Train models on unlabelled images for so many minutes, and choose one of them without labels.

    Small models of several families and strengths are trained first. The settings whose models agree best over seeds
    (Unsupervised Disentanglement Ranking) are then trained for longer, and on larger images if there is time. One of
    these models is chosen, see `unbraid.fitting.choose`. The same call continues after an interruption.

    Args:
        images: a folder of picture files with its subfolders, the name or path of a dataset, {"name": ..., **options}
            as for `train`, an array (n, height, width, channels), a torch Dataset, or a dataset. 500 different ones or
            more. Those of a file are taken in its order, whatever factors it has.
        out: output folder with `model/`, `codes.csv`, `report.html`, `README.md`, `plan.yaml`, and the studies and
            images behind them. A folder with other files of these names is refused.
        minutes: time limit of this call, up to 999 999; with fewer minutes than the folder's plan has, models that are
            not trained by then are left to the next call.
        size: height and width of the images that models see, 16, 32, 64, 128 or 256; by default the largest up to 64
            that leaves time to train, at most the one nearest to the size of the images.
        families: to try, of beta_tcvae, beta_vae, dip_vae_ii, factor_vae and vae.
        latents: number of codes of a model, up to 1000; those that are not needed stay uninformative.
        seed: of the first model, up to 2^63 - 20 001; the other models count up from it.
        augment: a function that changes the images of every batch, as `train` takes it; a call that continues, or that
            follows a plan with one, needs it again.
        plan: a plan.yaml, or a plan, to follow exactly, with its own `minutes`, `size`, `families`, `latents` and
            `seed`.
        labels: a table with a row per image, or a .csv or .parquet file with a column `file`; not used for the choice,
            only to score the models afterwards. Rows with a missing label are dropped.
        device: auto, cpu or cuda.
        executor: local or ray; or with its options, as under `executor` of a study.
        report: called as report(what is done, done, all, more), about twice a second.

    Returns:
        Fitted. `run` is None if no model can be called disentangled, and `choice.reason` says why.

    Raises:
        FileNotFoundError: there are no such images.
        ValueError: too few images, files that cannot be read, images that are all the same, too few minutes, labels
            that cannot be used for scores, or a folder with models of other images, with other files, or in use by
            another call.
        OSError: no room for the results.
        KeyboardInterrupt: stopped; checkpoints are saved, and the same call continues.

    Reference:
        Duan et al. 2020, "Unsupervised Model Selection for Variational Disentangled Representation Learning".
    """
    began, progress, folder = time.monotonic(), report or (lambda *_: None), Path(out)
    with ExitStack() as working:
        pictures, planned = planned_for(
            images, folder, minutes=minutes, size=size, families=families, latents=latents, seed=seed,
            augment=augment, plan=plan, device=device, executor=executor, report=progress,
            claim=lambda: working.enter_context(claimed(folder)),
        )  # fmt: skip
        return carry_out(
            folder, pictures, planned, labels=None if labels is None else read_labels(labels, pictures), device=device,
            executor=executor, report=progress, began=began if plan is None else math.inf, minutes=minutes,
        )  # fmt: skip


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Locks the folder against other calls; the lock ends with this process.

    Raises:
        ValueError: another call uses it.
    """
    try:
        with locked(folder / IMAGES / LOCK):
            yield
    except Held as error:
        raise ValueError(
            f"{folder}: {error.by} is at work in it; wait until that has ended, or give another folder with out (--out)"
        ) from None


def carry_out(
    folder: Path,
    pictures: Pictures,
    plan: Plan,
    *,
    began: float,
    minutes: float | None = None,
    labels: Labels | None = None,
    device: str = "auto",
    executor: str | Mapping[str, Any] = "local",
    report: Report,
) -> Fitted:
    """Train the models of a plan, choose one, and write the output; `began` is a monotonic time, inf without a limit.

    `minutes` is the limit, by default the plan's. A plan that is refused does not replace an earlier one.
    """
    options = {"device": device, "executor": executor}
    with _put_back(folder, FILE, f"{SEARCH}.yaml", f"{STUDY}.yaml"):
        write_plan(plan, folder / FILE)
        choice = train_and_choose(folder, pictures, plan, options, began, report, minutes)
    run, notes = hand_over(
        folder, pictures, plan, choice, labels=labels, progress=lambda what, done, total: report(what, done, total, "")
    )
    return Fitted(folder, plan, choice, run, notes)


@contextmanager
def _put_back(folder: Path, *names: str) -> Iterator[None]:
    """Restores files after a ValueError; new files are removed if nothing was trained."""
    paths = [folder / name for name in names]
    before = {path: path.read_text(encoding="utf-8") for path in paths if path.is_file()}
    try:
        yield
    except ValueError:
        for path, text in before.items():
            write_text(path, text)
        if not (folder / SEARCH).is_dir():
            for path in set(paths) - before.keys():
                path.unlink(missing_ok=True)
        raise


def planned_for(
    images: Any,
    out: str | Path,
    *,
    minutes: float,
    size: int | None,
    families: Sequence[str],
    latents: int,
    seed: int,
    augment: str | Callable[..., Any] | None = None,
    plan: str | Path | Plan | None,
    device: str,
    executor: str | Mapping[str, Any],
    report: Report,
    claim: Callable[[], object] | None = None,
) -> tuple[Pictures, Plan]:
    """The images in their cache, and the plan: the one given, the one that the folder has, or a new one.

    Nothing else is written. Arguments and errors as for `fit`; `claim` as for `prepare`.
    """
    if size is not None and size not in SIZES:
        raise ValueError(f"size must be one of {', '.join(map(str, SIZES))}; got {size}")
    check_number("minutes", minutes, above=0, most=MOST_MINUTES)
    check_whole("latents", latents, 2, MOST_LATENTS)
    check_whole("seed", seed, 0, LARGEST_SEED)
    _check_device(device, executor)
    families = list(dict.fromkeys(list_of("families", families)))
    settings_of(families)
    augmentation = NO_AUGMENTATION if augment is None else str(check_value("augment", TRAINING["augment"], augment))
    fixed_plan, folder = read_plan(Path(plan)) if isinstance(plan, str | Path) else plan, Path(out)
    earlier_plan = read_plan(folder / FILE) if fixed_plan is None and (folder / FILE).is_file() else None
    check_out(folder)
    if earlier_plan is not None:
        _check_earlier_plan(earlier_plan, folder, size=size, families=families, latents=latents, seed=seed)
    for known_plan in (fixed_plan, earlier_plan):
        if known_plan is not None and known_plan.augment != augmentation:
            raise ValueError(f"the plan has augment {known_plan.augment}, not {augmentation}; give the same")
    known = _images_of_models(folder) if read_pictures(folder / IMAGES) is None else None
    pictures = prepare(
        images, folder / IMAGES, fixed_plan.size if fixed_plan else earlier_plan.size if earlier_plan else size,
        lambda what, done, total: report(what, done, total, f"{done}/{total}"), same=(folder / SEARCH).is_dir(),
        claim=claim,
    )  # fmt: skip
    if known is not None:
        whole, seen, content = known
        # With another size in the cache they cannot be compared, and count as the same.
        if pictures.size == whole and content_digest(pictures.at(seen)) != content:
            for name in (ABOUT, ARRAY):
                (pictures.folder / name).unlink()
            raise ValueError(f"{folder} has models of other images; give another folder with out (--out)")
    if fixed_plan is not None:
        return pictures, fixed_plan
    if earlier_plan is not None:
        return pictures, earlier_plan if earlier_plan.minutes >= minutes else longer(earlier_plan, minutes)
    return pictures, make_plan(
        pictures.path, pictures.size, minutes, families, fixed_size=size is not None, seed=seed, latents=latents,
        augment=augmentation, options={"device": device, "executor": executor},
        progress=lambda what, done, total: report(f"measuring {what}", done, total, ""),
    )  # fmt: skip


def _check_device(device: str, executor: str | Mapping[str, Any]) -> None:
    """Raises ValueError for an unknown executor or device."""
    section = {"name": executor} if isinstance(executor, str) else executor
    if isinstance(name := section.get("name"), str):  # without one it is no section of a study, which says so later
        check_executor(name, {key: value for key, value in section.items() if key != "name"})
    check_unnumbered(device)
    if name != "ray":
        choose_device(device)
    elif device not in ON_CLUSTER:  # the devices of its nodes are not known yet
        raise ValueError(f"device {device!r}: one of {', '.join(ON_CLUSTER)} with the executor ray")


def _images_of_models(folder: Path) -> tuple[int, int, str] | None:
    """For the images of a folder's models: size in the cache, size seen by the models, and digest."""
    if not (folder / SEARCH / STUDY_ABOUT).is_file():
        return None
    record = read_object(folder / SEARCH / STUDY_ABOUT)
    seen = record["dataset"]["image_shape"][0]
    return seen * record["source"].get("shrink", 1), seen, record["dataset"]["content"]


def check_out(folder: Path) -> None:
    """Raises ValueError if `fit` would overwrite files that it did not make.

    A folder of `fit` has a plan, and models or a cache of images.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; out (--out) must be a folder")
    planned, foreign = _has_plan(folder), _is_foreign(folder / IMAGES)
    if planned and ((folder / SEARCH).is_dir() or (folder / IMAGES / ABOUT).is_file()):
        check_model(folder / MODEL)
        existing = []
    else:
        existing = [name for name in WRITTEN if (folder / name).exists() and not (planned and name == FILE)]
    if existing or foreign:
        raise ValueError(
            f"{folder} holds {', '.join(existing + [IMAGES] * foreign)} that `unbraid fit` did not make, and would "
            "write over; give a new folder with out (--out)"
        )


def _has_plan(folder: Path) -> bool:
    try:
        return {"search", "final"} <= mapping(read_text(folder / FILE), FILE).keys()
    except (OSError, ValueError):
        return False


def _is_foreign(cache: Path) -> bool:
    """Whether a folder of images is not a cache of `fit`; an interrupted cache has only hidden files."""
    if not cache.is_dir():
        return cache.exists()
    names = {path.name for path in cache.iterdir() if not path.name.startswith(".")}
    return bool(names) and not (ABOUT in names and names <= {ABOUT, ARRAY})


def train_and_choose(
    folder: Path, pictures: Pictures, plan: Plan, options: dict[str, Any], began: float, report: Report,
    minutes: float | None = None,
) -> Choice:  # fmt: skip
    """Train both rounds of a plan, and choose a model of the last.

    If none of its models can be called good, choose one of the search: larger models may have had too little time.
    """

    states: dict[str, list[str]] = {}  # of the models of each round

    def trained(name: str, planned: Round, seeds: range, settings: Sequence[Setting], share: float) -> list[Candidate]:
        """The models of a round that are finished within this share of the minutes."""
        deadline, file = began + 60 * share * (minutes or plan.minutes), folder / f"{name}.yaml"
        text = study_of(
            pictures.path.resolve(), plan.size, planned, seeds, settings, latents=plan.latents, augment=plan.augment,
            options=options, name=name,
        )  # fmt: skip
        write_text(file, text)
        study = Study.load(file, folder / name)

        def watch(sent: StudyProgress) -> None:
            if time.monotonic() > deadline:
                raise OutOfTime
            done = sent.done_steps + sum(sent.steps_taken.values())
            report(f"{name} {sent.n_done}/{sent.n_runs} models", done, sent.steps, "")

        try:
            runs = study.run(progress=watch)
        except OutOfTime:
            runs = study.runs()
        states[name] = [model.state for model in runs]
        names = {model.id: setting_name(model.family, model.hyperparameters) for model in runs}
        finished = [load_run(model.path) for model in runs if model.state == "finished"]
        return [Candidate(run, names[run.path.name], float(run.held_out()["elbo"].max())) for run in finished]

    def with_counts(name: str, choice: Choice) -> Choice:
        unfinished = sum(own.count("waiting") for own in states.values())
        return replace(choice, planned=len(states[name]), unfinished=unfinished)

    seeds = range(plan.seed, plan.seed + plan.search.seeds)
    searched_models = trained(SEARCH, plan.search, seeds, plan.search.settings, SEARCH_LIMIT)
    searched = _choice(searched_models, pictures, plan.search.size, plan.seed, report)
    if searched.ranking is not None and not searched.ranking.learnt.any():
        return with_counts(SEARCH, searched)  # larger models of the same settings would not learn either
    by_name = {setting_name(model.family, model.hyperparameters): model for model in plan.search.settings}
    best = [by_name[name] for name in best_settings(searched)] or list(plan.search.settings)
    seeds = range(seeds.stop, seeds.stop + plan.final.seeds)
    final = trained(STUDY, plan.final, seeds, plan.final.chosen(best), FINAL_LIMIT)
    if len(final) < 2:
        return with_counts(SEARCH, searched)
    chosen = _choice(final, pictures, plan.final.size, plan.seed, report)
    if chosen.chosen is None and searched.chosen is not None:
        return with_counts(SEARCH, searched)
    return with_counts(STUDY, chosen)


def _choice(candidates: Sequence[Candidate], pictures: Pictures, size: int, seed: int, report: Report) -> Choice:
    dataset, seeds = pictures.at(size), dict[int, Run]()
    for candidate in candidates:  # models of one seed begin with the same weights, whatever their setting
        seeds.setdefault(candidate.run.config["seed"], candidate.run)
    untrained = [run.untrained().representation(dataset).codes for run in [*seeds.values()][:N_UNTRAINED]]
    return choose(
        candidates, untrained if len(untrained) > 1 else [], seed,
        lambda done, total: report("comparing models", done, total, f"{done}/{total}"),
    )  # fmt: skip


def setting_name(family: str, hyperparameters: Mapping[str, Any]) -> str:
    """The name of a setting, such as "beta_vae beta=4"."""
    return f"{family} {', '.join(f'{name}={hyperparameters[name]:g}' for name in STRENGTHS[family][0])}".strip()


def _check_earlier_plan(
    earlier_plan: Plan, folder: Path, *, size: int | None, families: Sequence[str], latents: int, seed: int
) -> None:
    """Raises ValueError if the folder's plan differs from the arguments."""
    planned = list(dict.fromkeys(setting.family for setting in earlier_plan.search.settings))
    for name, requested, known in (
        ("size", size, earlier_plan.final.size if size else None), ("latents", latents, earlier_plan.latents),
        ("seed", seed, earlier_plan.seed),
        ("families", ", ".join(planned if set(planned) <= set(families) else families), ", ".join(planned)),
    ):  # fmt: skip
        if requested != known:
            raise ValueError(
                f"{folder / FILE} has {name} {known}, not {requested}; give the same, or another folder with out "
                "(--out)"
            )
