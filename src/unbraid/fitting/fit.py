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
from unbraid.base.optional import require
from unbraid.base.types import ArrayLike, FloatArray, UInt8Array
from unbraid.datasets import from_array
from unbraid.datasets.digest import content_digest
from unbraid.datasets.image_file import brightness, square
from unbraid.files.json_records import read_object
from unbraid.files.locks import Held, locked
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
from unbraid.studies.store import LOCK
from unbraid.studies.study import Study
from unbraid.studies.study_record import StudyProgress

IMAGES, SEARCH, STUDY = "images", "search", "study"
WRITTEN = (MODEL, README, CODES, REPORT, FILE, SEARCH, STUDY, f"{SEARCH}.yaml", f"{STUDY}.yaml")  # and IMAGES
N_UNTRAINED = 3
ON_CLUSTER = ("auto", "cpu", "cuda")  # devices that the executor ray knows
MOST_MINUTES, MOST_LATENTS = 999_999, 1000  # almost two years; as many as families take
SEARCH_LIMIT, FINAL_LIMIT = 0.45, 0.95  # of the minutes: what is not trained by then is left out

# Told what is done, how much of it, and all; and what else there is to say.
Report: TypeAlias = Callable[[str, int, int, str], None]


class OutOfTime(KeyboardInterrupt):
    """The minutes are over: training ends as by Ctrl-C, its checkpoints saved."""


@dataclass(frozen=True)
class Fitted:
    """What `unbraid.fit` made: a folder, and in it the model that was chosen."""

    folder: Path
    plan: Plan
    choice: Choice
    run: Run | None  # the chosen model; None where nothing was chosen, and `choice.reason` says why
    notes: tuple[str, ...] = ()  # on the labels

    @property
    def ranking(self) -> Ranking | None:
        """Of the models of the last round, by UDR; None where they could not be compared."""
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
        """The page that shows what was found."""
        return self.folder / REPORT

    def resized(self, images: ArrayLike) -> Any:
        """Images as the model sees them: their middle square at its size, of colours their brightness where it is grey.

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
        ValueError: they are neither uint8 nor floats from 0 to 1, of another shape, or neither grey nor of 3 colours.
    """
    given, (size, _, channels) = tuple(np.shape(images)), shape  # pyright: ignore[reportArgumentType, reportCallIssue]
    if len(given) not in (3, 4) or (len(given) == 3 and given[-1] in (1, 3)):
        raise ValueError(
            f"images must be (n, height, width, channels), of one image (1, height, width, channels); got {given}"
        )
    array = from_array(images).images(np.arange(given[0]))
    draw = require("PIL.Image", "data", "resizing images").fromarray
    drawn = (draw(each[..., 0] if each.shape[-1] == 1 else each) for each in as_bytes(array))
    squares = (square(each, size) for each in drawn)
    return np.stack([each if channels > 1 else brightness(each) for each in squares])


def fit(
    images: Any,
    out: str | Path = "fitted",
    *,
    minutes: float = 30.0,
    size: int | None = None,
    families: Sequence[str] = FAMILIES,
    latents: int = 10,
    seed: int = 0,
    plan: str | Path | Plan | None = None,
    labels: Any = None,
    device: str = "auto",
    executor: str | Mapping[str, Any] = "local",
    report: Report | None = None,
) -> Fitted:
    """Train models on unlabelled images for so many minutes, and choose one of them without labels.

    Small models of several families and strengths are trained first. The settings whose models agree best over seeds
    (Unsupervised Disentanglement Ranking) are then trained for longer, and on larger images where there is time. What
    is chosen, and how sure that is, `unbraid.fitting.choose` says. The same call continues what was interrupted.

    Args:
        images: a folder of picture files with its subfolders, the name or path of a dataset, an array
            (n, height, width, channels), a torch Dataset, or a dataset. 500 different ones or more. Those of a file
            are taken in its order, whatever factors it has.
        out: the folder of everything that is made: `model/`, `codes.csv`, `report.html`, `README.md`, `plan.yaml`, and
            the studies and the images that they rest on. One that holds something else of these names is refused.
        minutes: how long this call may take here, all in all, up to 999 999; with fewer than the folder's plan was made
            for, what is not trained by then is left to the next call.
        size: height and width of the images that models see, 16, 32 or 64; by default the largest that leaves time to
            train, and no larger than the one nearest to their own.
        families: which to try, of beta_tcvae, beta_vae, dip_vae_ii, factor_vae and vae.
        latents: how many codes a model has, up to 1000; those that are not needed stay empty.
        seed: of the first model, up to 2^63 - 20 001; those of the others count up from it.
        plan: a plan.yaml, or a plan, to be followed to the letter; `minutes`, `size`, `families`, `latents` and `seed`
            are then its own.
        labels: a table with a row per image, or a .csv or .parquet file with a column `file`; never used to choose,
            only to score the models afterwards. Rows that lack a label are left out.
        device: auto, cpu or cuda.
        executor: local or ray; or with its options, as under `executor` of a study.
        report: called as report(what is done, done, all, more), about twice a second.

    Returns:
        Fitted. `run` is None where nothing can be called disentangled, and `choice.reason` says why.

    Raises:
        FileNotFoundError: there are no such images.
        ValueError: too few images, files that cannot be read, images that are all the same, too few minutes, labels
            that nothing can be measured against, or a folder with models of other images, things of somebody else or
            another call at work.
        OSError: no room for the results.
        KeyboardInterrupt: stopped; checkpoints are saved, and the same call continues.

    Reference:
        Duan et al. 2020, "Unsupervised Model Selection for Variational Disentangled Representation Learning".
    """
    began, told, folder = time.monotonic(), report or _silent, Path(out)
    with ExitStack() as working:
        pictures, planned = planned_for(
            images, folder, minutes=minutes, size=size, families=families, latents=latents, seed=seed, plan=plan,
            device=device, executor=executor, report=told, claim=lambda: working.enter_context(claimed(folder)),
        )  # fmt: skip
        return carry_out(
            folder, pictures, planned, labels=None if labels is None else read_labels(labels, pictures), device=device,
            executor=executor, report=told, began=began if plan is None else math.inf, minutes=minutes,
        )  # fmt: skip


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Keeps other calls from the folder of one that is at work; the claim dies with this process.

    Raises:
        ValueError: another call is at work in it.
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
    """Train what a plan says, choose, and hand over; `began` is on the monotonic clock, infinite without a limit.

    `minutes` is the limit where it is another than the plan's. A plan that is refused does not replace an earlier one.
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
    """Files as they were, where the block refuses what it was given; those that it made go where it trained nothing."""
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
    given, folder = read_plan(Path(plan)) if isinstance(plan, str | Path) else plan, Path(out)
    kept = read_plan(folder / FILE) if given is None and (folder / FILE).is_file() else None
    check_out(folder)
    if kept is not None:
        _check_kept(kept, folder, size=size, families=families, latents=latents, seed=seed)
    known = _images_of_models(folder) if read_pictures(folder / IMAGES) is None else None
    pictures = prepare(
        images, folder / IMAGES, given.size if given else kept.size if kept else size,
        lambda what, done, total: report(what, done, total, f"{done}/{total}"), same=(folder / SEARCH).is_dir(),
        claim=claim,
    )  # fmt: skip
    if known is not None and known != _images_seen(pictures, known):
        for name in (ABOUT, ARRAY):
            (pictures.folder / name).unlink()
        raise ValueError(f"{folder} has models of other images; give another folder with out (--out)")
    if given is not None:
        return pictures, given
    if kept is not None:
        return pictures, kept if kept.minutes >= minutes else longer(kept, minutes)
    return pictures, make_plan(
        pictures.path, pictures.size, minutes, families, fixed_size=size is not None, seed=seed, latents=latents,
        options={"device": device, "executor": executor},
        progress=lambda what, done, total: report(f"measuring {what}", done, total, ""),
    )  # fmt: skip


def _check_device(device: str, executor: str | Mapping[str, Any]) -> None:
    """Raises ValueError where there is no such executor, or nothing can be trained on such a device."""
    about = {"name": executor} if isinstance(executor, str) else executor
    if isinstance(name := about.get("name"), str):  # without one it is no section of a study, which says so later
        check_executor(name, {key: value for key, value in about.items() if key != "name"})
    check_unnumbered(device)
    if name != "ray":
        choose_device(device)
    elif device not in ON_CLUSTER:  # what its nodes have is known once it is asked
        raise ValueError(f"device {device!r}: one of {', '.join(ON_CLUSTER)} with the executor ray")


def _images_of_models(folder: Path) -> tuple[int, int, str] | None:
    """Of the images that the models of a folder were trained on: size in the cache, size seen, and their digest."""
    if not (folder / SEARCH / STUDY_ABOUT).is_file():
        return None
    about = read_object(folder / SEARCH / STUDY_ABOUT)
    seen = about["dataset"]["image_shape"][0]
    return seen * about["source"].get("shrink", 1), seen, about["dataset"]["content"]


def _images_seen(pictures: Pictures, known: tuple[int, int, str]) -> tuple[int, int, str]:
    """The same of these images; of another size in the cache nothing can be told, and they are taken for the same."""
    whole, seen, _ = known
    return known if pictures.size != whole else (whole, seen, content_digest(pictures.at(seen)))


def check_out(folder: Path) -> None:
    """Raises ValueError where `fit` would write over what it has not made.

    A folder is its own that has a plan, and models or the images that they are to be trained on.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; out (--out) must be a folder")
    planned, foreign = _has_plan(folder), _is_foreign(folder / IMAGES)
    if planned and ((folder / SEARCH).is_dir() or (folder / IMAGES / ABOUT).is_file()):
        check_model(folder / MODEL)
        there = []
    else:
        there = [name for name in WRITTEN if (folder / name).exists() and not (planned and name == FILE)]
    if there or foreign:
        raise ValueError(
            f"{folder} holds {', '.join(there + [IMAGES] * foreign)} that `unbraid fit` did not make, and would write "
            "over; give a new folder with out (--out)"
        )


def _has_plan(folder: Path) -> bool:
    try:
        return {"search", "final"} <= mapping(read_text(folder / FILE), FILE).keys()
    except (OSError, ValueError):
        return False


def _is_foreign(cache: Path) -> bool:
    """Whether a folder of images is no cache of `fit`; where it was interrupted, nothing that can be seen is there."""
    if not cache.is_dir():
        return cache.exists()
    there = {each.name for each in cache.iterdir() if not each.name.startswith(".")}
    return bool(there) and not (ABOUT in there and there <= {ABOUT, ARRAY})


def train_and_choose(
    folder: Path, pictures: Pictures, plan: Plan, options: dict[str, Any], began: float, report: Report,
    minutes: float | None = None,
) -> Choice:  # fmt: skip
    """Both rounds of a plan, and what is chosen of the last.

    Where none of its models can be called good, what the search alone would choose: larger models may have had too
    little time.
    """

    states: dict[str, list[str]] = {}  # of the models of each round

    def trained(name: str, planned: Round, seeds: range, settings: Sequence[Setting], share: float) -> list[Candidate]:
        """The finished models of a round; not those that are unfinished after this share of the minutes."""
        deadline, file = began + 60 * share * (minutes or plan.minutes), folder / f"{name}.yaml"
        text = study_of(
            pictures.path.resolve(), plan.size, planned, seeds, settings, latents=plan.latents, options=options,
            name=name,
        )  # fmt: skip
        write_text(file, text)
        study = Study.load(file, folder / name)

        def told(sent: StudyProgress) -> None:
            if time.monotonic() > deadline:
                raise OutOfTime
            done = sent.done_steps + sum(sent.steps_taken.values())
            report(f"{name} {sent.n_done}/{sent.n_runs} models", done, sent.steps, "")

        try:
            runs = study.run(progress=told)
        except OutOfTime:
            runs = study.runs()
        states[name] = [each.state for each in runs]
        names = {each.id: called(each.family, each.hyperparameters) for each in runs}
        finished = [load_run(each.path) for each in runs if each.state == "finished"]
        return [Candidate(run, names[run.path.name], float(run.held_out()["elbo"].max())) for run in finished]

    def with_counts(name: str, choice: Choice) -> Choice:
        unfinished = sum(own.count("waiting") for own in states.values())
        return replace(choice, planned=len(states[name]), unfinished=unfinished)

    seeds = range(plan.seed, plan.seed + plan.search.seeds)
    found = trained(SEARCH, plan.search, seeds, plan.search.settings, SEARCH_LIMIT)
    searched = _choice(found, pictures, plan.search.size, plan.seed, report)
    if searched.ranking is not None and not searched.ranking.learnt.any():
        return with_counts(SEARCH, searched)  # larger models of the same settings would not learn either
    by_name = {called(each.family, each.hyperparameters): each for each in plan.search.settings}
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
    for each in candidates:  # models of one seed begin with the same weights, whatever their setting
        seeds.setdefault(each.run.config["seed"], each.run)
    untrained = [run.untrained().representation(dataset).codes for run in [*seeds.values()][:N_UNTRAINED]]
    return choose(
        candidates, untrained if len(untrained) > 1 else [], seed,
        lambda done, total: report("comparing models", done, total, f"{done}/{total}"),
    )  # fmt: skip


def called(family: str, hyperparameters: Mapping[str, Any]) -> str:
    """Such as "beta_vae beta=4"."""
    return f"{family} {', '.join(f'{name}={hyperparameters[name]:g}' for name in STRENGTHS[family][0])}".strip()


def _check_kept(
    kept: Plan, folder: Path, *, size: int | None, families: Sequence[str], latents: int, seed: int
) -> None:
    """Raises ValueError where the plan that a folder has is another than the one asked for."""
    planned = list(dict.fromkeys(each.family for each in kept.search.settings))
    for name, asked, known in (
        ("size", size, kept.final.size if size else None), ("latents", latents, kept.latents),
        ("seed", seed, kept.seed),
        ("families", ", ".join(planned if set(planned) <= set(families) else families), ", ".join(planned)),
    ):  # fmt: skip
        if asked != known:
            raise ValueError(
                f"{folder / FILE} has {name} {known}, not {asked}; give the same, or another folder with out (--out)"
            )


def _silent(what: str, done: int, total: int, more: str) -> None:
    pass
