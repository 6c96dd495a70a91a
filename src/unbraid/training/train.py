"""Train one model or a population, each into a folder of its own."""

import shutil
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import torch

from unbraid.base.arguments import check_number, check_whole
from unbraid.base.counted import counted
from unbraid.base.device import memory_advice, out_of_memory, reproducible
from unbraid.base.signals import terminable
from unbraid.base.suggest import error_line, suggestion
from unbraid.base.threads import n_cores
from unbraid.data.image_dataset import NO_IMAGES, FactorDataset
from unbraid.families.building import (
    Member,
    build_member,
    make_supply,
    recorded,
    structural_settings,
    weights_of,
)
from unbraid.families.family import Family, LossOutput, OptimizerStep, check_value, code_parts, completed
from unbraid.families.family_table import FAMILIES, find_family
from unbraid.families.networks import as_floats, as_tensor
from unbraid.files.json_records import MOST
from unbraid.files.locks import Held, locked
from unbraid.files.run_files import WORKING
from unbraid.files.trust import Trusted, imported, is_code, trusted_in, trusting
from unbraid.metrics._shared.provenance import source_digest
from unbraid.runs.folder import run_id, tidy
from unbraid.runs.run import N_CODES, Run, open_run
from unbraid.runs.run_json import FORMAT, MOST_NUMBERS
from unbraid.training.draws import check_augmentation
from unbraid.training.held_out import EVERY, HoldOut, check_elbo, check_hold_out, divided, held_out_rows, hold_out_of
from unbraid.training.loop import CHECKPOINT_SECONDS, Plan, Report, Trained
from unbraid.training.population import make_context, make_population
from unbraid.training.schedules import check_schedules
from unbraid.training.snapshots import snapshots_of
from unbraid.training.source import Source, opened_dataset
from unbraid.training.workers import train_members
from unbraid.training.writing import write_run

if TYPE_CHECKING:
    from unbraid.base.progress_bar import ProgressBar

STEPS = 30_000
LOCK = ".lock"
CHECKED = 1 << 24  # numbers of float images that are checked at a time
LOOKED_AT, FEW = 256, 0.25  # images sampled, and the share of distinct ones below which most are called copies
REHEARSED = 8  # images of the trial step with a user's own code


class CopiesWarning(UserWarning):
    """Most of the images are copies of others."""


# Estimates of the beta-TCVAE from one batch: their bias is log n_train for each latent, so that only the sum is a KL.
KL_PARTS = ("index_code_information", "total_correlation", "dimension_wise_kl")


def readable_logs(logs: Mapping[str, float]) -> dict[str, float]:
    """The numbers that say something by themselves; the curves of a run hold all."""
    biased = KL_PARTS if "dimension_wise_kl" in logs else ()
    return {name: value for name, value in logs.items() if name not in biased}


@dataclass(frozen=True)
class TrainingProgress:
    """How far a population is."""

    n_runs: int
    n_done: int  # finished or diverged, in this session or before
    steps: int  # of one run
    steps_taken: Mapping[int, int]  # steps by position, of the runs at work
    logs: Mapping[str, float] = field(default_factory=dict)  # latest means of the run that reported last
    reading: tuple[int, int] | None = None  # images done and in all, while they are opened and hashed before training

    def show_on(self, bar: "ProgressBar") -> None:
        if self.reading is not None:
            done, total = self.reading
            bar.show("reading images", done, total, f"{done:,}/{total:,}")
            return
        done, total, detail, before = bar.pace.report(
            self.n_done * self.steps,
            self.n_runs * self.steps,
            self.steps_taken,
            readable_logs(self.logs),
        )
        bar.show(f"{bar.title} {self.n_done}/{self.n_runs} runs", done, total, detail, before)


def train(
    family: str,
    dataset: Source,
    *,
    seeds: int | Sequence[int] = 1,
    steps: int = STEPS,
    batch_size: int = 64,
    device: str = "auto",
    precision: str = "auto",
    preset: str | None = None,
    out: str | Path | None = None,
    processes: int | None = None,
    checkpoint_every: float = CHECKPOINT_SECONDS,
    snapshots: int = 0,
    snapshot_metrics: str | Sequence[str] = "mig",
    hold_out: float = 0,
    hold_out_every: int = EVERY,
    patience: int = 0,
    progress: Callable[[TrainingProgress], None] | None = None,
    **hyperparameters: Any,
) -> list[Run]:
    """Train a family on images, for every combination of the settings given and every seed.

    Every run has a folder `out/<id>`, the id a hash of all that determines the weights. Finished runs are not trained
    again; interrupted ones continue from their last checkpoint and reach the same weights as without an interruption.

    Args:
        family: a name in `unbraid.families.FAMILIES`; or "package.module:name" of your own `Family` or objective.
        dataset: its name or path, {"name": ..., **options}, or a dataset; images without factors as an array
            (n, height, width) or (n, height, width, channels), uint8 or floats from 0 to 1, a tensor with its channels
            second, or a torch Dataset or DataLoader of images or (image, label); an iterable one is read once.
        seeds: how many, from 0, or which ones.
        steps: of training, for each run.
        batch_size: images per step.
        device: "auto" (CUDA where there is one), "cpu", "cuda".
        precision: "auto" (bfloat16 where the CPU is faster in it, for convolutions and large dense networks, else
            float32), "float32", "bfloat16".
        preset: name of a published grid of the family, such as "udr".
        out: folder of the run folders; default "runs" in the current folder.
        processes: on a CPU; default one per core, 0 to train in this process.
        checkpoint_every: seconds between two checkpoints of a run, the most that is lost by a kill; 0: every step.
        snapshots: number of evenly spaced steps, plus one before the first, at which metrics and informative latents
            are computed for `Run.snapshots`; runs that are finished already get none.
        snapshot_metrics: names of `unbraid.metrics.METRICS`, or one.
        hold_out: size of the hold-out set, a share below 1 or a number of images; the same images for every seed. The
            ELBO on them is stored for `Run.held_out`.
        hold_out_every: steps between two evaluations on the hold-out set.
        patience: evaluations in a row without a new best after which training stops; the run has the weights of the
            best one, also where it was not stopped. 0: it takes all steps, and has the last weights.
        progress: called with a `TrainingProgress` about twice a second.
        **hyperparameters: of the family; a list trains each of its values. Code of your own, for `network` and
            `augment`, is a function or its name, "package.module:function".

    Returns:
        One Run per combination, seeds in the inner loop; equal ones once. A run whose loss was no longer finite is
        among them, its `status` saying so.

    Raises:
        ValueError: an unknown or impossible argument, images that do not fit, or a folder that cannot be continued.
        OSError: not enough space on the disk, or in memory.
        KeyboardInterrupt: stopped by SIGINT (Ctrl-C) or SIGTERM; checkpoints are saved.
    """
    planned = prepared(
        family, dataset, seeds=seeds, steps=steps, batch_size=batch_size, device=device, precision=precision,
        preset=preset, checkpoint_every=checkpoint_every, snapshots=snapshots, snapshot_metrics=snapshot_metrics,
        hold_out=hold_out, hold_out_every=hold_out_every, patience=patience, progress=progress, **hyperparameters,
    )  # fmt: skip
    return train_into(Path("runs" if out is None else out), *planned, processes=processes, progress=progress)


class Prepared(NamedTuple):
    """A training that was checked but has not begun: plan, members and images."""

    plan: Plan
    members: list[Member]
    opened: FactorDataset
    described: dict[str, Any]  # the images, for configs


def prepared(
    family: str, dataset: Source, *, seeds: int | Sequence[int], steps: int, batch_size: int, device: str,
    precision: str, preset: str | None, checkpoint_every: float, snapshots: int, snapshot_metrics: str | Sequence[str],
    hold_out: float, hold_out_every: int, patience: int, progress: Callable[[TrainingProgress], None] | None,
    **hyperparameters: Any,
) -> Prepared:  # fmt: skip
    """The first part of `train`: check the arguments and open the images; nothing is written.

    Args and Raises: as `train`.
    """
    family = trusting(family)
    row = find_family(family)
    members = members_of(family, row, seeds, preset, trusting(hyperparameters))
    counts = check_whole("steps", steps, 1), check_whole("batch_size", batch_size, 1)
    snapshot_plan = snapshots_of(snapshots, trusting(snapshot_metrics))
    every = check_number("checkpoint_every", checkpoint_every, least=0)
    hold_out_plan = hold_out_of(hold_out, hold_out_every, patience)
    plan = Plan(family, *counts, str(device), precision, hold_out_plan, every, snapshot_plan).resolved()

    def read(done: int, total: int) -> None:
        if progress:
            progress(TrainingProgress(len(members), 0, plan.steps, {}, reading=(done, total)))

    for member in members:
        check_schedules(member.hyper, plan.steps)
    opened, described = opened_dataset(dataset, read)
    if snapshot_plan.n and not opened.space.names:
        raise ValueError("snapshots are scored by metrics, which need factors; these images have none")
    return Prepared(plan, members, opened, described)


def train_into(
    folder: Path,
    plan: Plan,
    members: Sequence[Member],
    opened: FactorDataset,
    described: Mapping[str, Any],
    *,
    processes: int | None = None,
    progress: Callable[[TrainingProgress], None] | None = None,
    begin: Callable[[Path, Member], None] | None = None,
) -> list[Run]:
    """The second part of `train`, with members and images; `described` is the dataset's entry in configs.

    `begin` is called with the working folder of each member before it is trained.
    """
    if processes is not None:
        check_whole("processes", processes, 0)
    check_out(folder)
    row = find_family(plan.family)
    check_images(row, opened, members)
    configs = configs_of(plan, members, described)
    weights = check_members(row, opened, [(plan, member) for member in members])
    folder.mkdir(parents=True, exist_ok=True)
    done = _finished(folder, configs)
    with terminable(), _claimed(folder, [name for name in configs if name not in done]), ExitStack() as stack:
        done |= _finished(folder, configs)  # another process may have finished some meanwhile
        waiting = [name for name in configs if name not in done]
        chosen = [configs[name][1] for name in waiting]
        check_space(folder, opened, weights, chosen, row)
        parts = [folder / (name + WORKING) for name in waiting]
        stack.enter_context(_working_folders(parts))
        if begin:
            for part, member in zip(parts, chosen, strict=True):
                begin(part, member)
        steps_taken: dict[int, int] = {}

        def tell(logs: Mapping[str, float]) -> None:
            if progress:
                progress(TrainingProgress(len(configs), len(done), plan.steps, dict(steps_taken), logs))

        def report(sent: Report) -> None:
            steps_taken.update(dict.fromkeys(sent.members, sent.step))
            means = {name: values[np.isfinite(values)] for name, values in sent.logs.items()}
            tell({name: float(values.mean()) for name, values in means.items() if len(values)})

        tell({})
        if waiting:
            training = train_members(plan, chosen, opened, folders=parts, report=report, processes=processes)
            with memory_advice(), closing(cast(Generator[tuple[int, Trained], None, None], training)) as results:
                for number, trained in results:
                    name = waiting[number]
                    done[name] = write_run(
                        parts[number], folder / name, configs[name][0], trained, opened, continuable=True
                    )
                    steps_taken.pop(number, None)
                    tell(done[name].status["last"])
    return [done[name] for name in configs]


def members_of(
    family: str, row: Family, seeds: int | Sequence[int], preset: str | None, hyperparameters: Mapping[str, Any]
) -> list[Member]:
    """A member for every combination of hyperparameters, seeds in the inner loop.

    Raises:
        ValueError: an unknown or impossible setting.
    """
    if preset is not None and preset not in row.presets:
        raise ValueError(f"{family} has no preset {preset!r}; {suggestion(preset, row.presets)}")
    grid = row.presets[preset] if preset is not None else ({},)
    for name in hyperparameters:
        if name not in row.hyperparameters:
            raise ValueError(f"{family} has no hyperparameter {name!r}; {suggestion(name, row.hyperparameters)}")
        if any(name in entry for entry in grid):
            raise ValueError(f"{name} is set by preset {preset!r} already")
    lists = {name: _listed(value) for name, value in hyperparameters.items()}
    for name, values in lists.items():
        if not values:
            raise ValueError(f"{name} has no values")
    rows = row.hyperparameters
    checked = [[check_value(name, rows[name], value) for value in values] for name, values in lists.items()]
    defaults = {name: hyperparameter.default for name, hyperparameter in row.hyperparameters.items()}
    return [
        Member(seed, {**defaults, **entry, **dict(zip(lists, values, strict=True))})
        for entry in grid
        for values in product(*checked)
        for seed in _seeds(seeds)
    ]


def _listed(value: Any) -> list[Any]:
    if isinstance(value, np.ndarray | range):
        return list(value)
    return list(value) if isinstance(value, list | tuple) else [value]


def _seeds(seeds: int | Sequence[int]) -> list[int]:
    if isinstance(seeds, int | np.integer) and not isinstance(seeds, bool):
        return list(range(check_whole("seeds", seeds, 1)))
    chosen = [check_whole("a seed", seed, 0) for seed in _listed(seeds)]
    if not chosen:
        raise ValueError("seeds is empty")
    if max(chosen) > MOST:
        raise ValueError(f"a seed must be {MOST} at most; got {max(chosen)}")
    return chosen


def check_out(folder: Path) -> None:
    """Raises ValueError if the folder for runs is a file."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; out must be a folder")


def check_images(row: Family, dataset: FactorDataset, members: Sequence[Member]) -> None:
    """Raises ValueError if images contradict the dataset's description, or do not suit the family."""
    shape = tuple(dataset.image_shape)
    if shape == NO_IMAGES:
        raise ValueError("the dataset holds labels without images, so nothing can be trained on it")
    images = dataset.images(np.arange(min(64, len(dataset))))
    if len(shape) not in (1, 3) or images.shape[1:] != shape:
        raise ValueError(f"the dataset says its images are {shape}, which is not what it gives: {images.shape[1:]}")
    if (size := prod(shape)) > MOST_NUMBERS:
        raise ValueError(f"an image may have {MOST_NUMBERS:,} numbers; these have {size:,}, by {shape}")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise ValueError(f"images must be uint8, or floats; the dataset gives {images.dtype}")
    if images.dtype.kind == "f":
        _check_floats(row, dataset, members)
    if len(shape) == 3:  # rows of a table may well repeat
        _warn_of_copies(dataset)


def _check_floats(row: Family, dataset: FactorDataset, members: Sequence[Member]) -> None:
    bernoulli = any(member.hyper.get("likelihood") == "bernoulli" for member in members)
    step = max(1, CHECKED // prod(dataset.image_shape))
    for start in range(0, len(dataset), step):
        images = dataset.images(np.arange(start, min(start + step, len(dataset))))
        if not np.isfinite(images).all():
            raise ValueError("the dataset holds values that are not finite")
        if ((images >= 0) & (images <= 1)).all():
            continue
        if len(dataset.image_shape) == 3:
            raise ValueError("images in floats must lie between 0 and 1")
        if row.pixels_from_0_to_1:
            raise ValueError("this family takes values from 0 to 1; the dataset has others")
        if bernoulli:
            raise ValueError("values outside 0 .. 1 need likelihood='gaussian'")


def _warn_of_copies(dataset: FactorDataset) -> None:
    """Warns if most of the images are copies, by a random sample."""
    images = dataset.images(held_out_rows(len(dataset), min(LOOKED_AT, len(dataset))))
    different = len({image.tobytes() for image in images})
    if different < FEW * len(images):
        warnings.warn(
            f"most of the images are copies: among {counted(len(images), 'image')} drawn from the dataset only "
            f"{different} {'is' if different == 1 else 'are'} different",
            CopiesWarning,
            stacklevel=2,
        )


def check_members(row: Family, dataset: FactorDataset, trainings: Sequence[tuple[Plan, Member]]) -> dict[str, int]:
    """Bytes of the weights, by structural settings.

    Raises:
        ValueError: the networks do not fit the images, the factors do not suffice for the family's supervision, or the
            hold-out set is impossible.
    """
    sizes: dict[str, int] = {}
    seen = {hold_out: divided(dataset, hold_out).seen for hold_out in {plan.hold_out for plan, _ in trainings}}
    for plan, member in trainings:
        dataset = seen[plan.hold_out]
        check_hold_out(plan.hold_out, row, plan.steps)
        if (key := repr(structural_settings(row, [member]))) not in sizes:
            settings = structural_settings(row, [member], dataset.space)
            make_supply(row, dataset.space, settings, member.seed)  # the images suffice for its supervision
            check_augmentation(settings, dataset, REHEARSED)
            if plan.hold_out.images:
                check_elbo(row, tuple(dataset.image_shape), settings, member.hyper)
            if is_code(str(member.hyper.get("network", ""))) or all(row is not ours for ours in FAMILIES.values()):
                dry_run_step(row, dataset, member, plan.batch_size)
            sizes[key] = weight_bytes(row, dataset, member)
    return sizes


@torch.inference_mode(False)
@reproducible(torch.device("cpu"))
def dry_run_step(row: Family, dataset: FactorDataset, member: Member, batch_size: int = REHEARSED) -> None:
    """Take one step with a user's own code, encode and decode images, and discard the result.

    The batch is as large as that of the training, up to `REHEARSED` images.

    Raises:
        ValueError: something does not fit; the message says what.
    """
    name = member.hyper.get("network", "")
    network, shape = f"network {name!r}" if is_code(str(name)) else "", tuple(dataset.image_shape)
    complaint = f"{network or row.title} does not fit images {shape}"
    size = min(REHEARSED, len(dataset))
    try:
        settings = structural_settings(row, [member], dataset.space)
        modules = build_member(row, shape, settings, member.seed)
        images = as_floats(as_tensor(dataset.images(np.arange(size))))
        n_codes = sum(part.size for part in code_parts(row, settings))
        with torch.no_grad():
            codes, spreads = row.encode(modules.eval(), images.clone(), settings)
            for output, kind in ((codes, "codes"), (spreads, "log-variances")):
                if output is not None and tuple(output.shape) != (size, n_codes):
                    raise ValueError(f"the encoder gives {kind} {tuple(output.shape)}, expected {(size, n_codes)}")
            if not torch.allclose(codes, row.encode(modules, images.clone(), settings)[0], equal_nan=True):
                raise ValueError(
                    "the encoder gives the same images other codes when it is asked again; in evaluation mode it must "
                    "not draw"
                )
            decoded = row.decode(modules, torch.zeros(size, n_codes), settings)
            if decoded.shape != images.shape:
                raise ValueError(f"the decoder gives {tuple(decoded.shape)}, expected {tuple(images.shape)}")
        if row.fit is None:
            complaint = f"{row.title}{' with ' * bool(network)}{network} cannot be trained on images {shape}"
            row = replace(row, optimizer_steps=tuple(map(_with_checked_loss, row.optimizer_steps)))
            context = make_context(row, [member], dataset, batch_size=min(REHEARSED, batch_size), steps=1)
            cpu = torch.device("cpu")
            make_population(row, [member], dataset, context, device=cpu, precision=torch.float32).advance(0)
    except Exception as error:  # whatever the user's code raises
        if out_of_memory(error):
            return  # as the training will say, with advice
        raise ValueError(f"{complaint}: {error_line(error, ValueError)}") from error


def _with_checked_loss(move: OptimizerStep) -> OptimizerStep:
    """The step, with the loss's return value checked: no log takes the place of another column of the curves."""

    def loss(*arguments: Any) -> LossOutput:
        output = move.loss(*arguments)
        if not isinstance(output, tuple) or len(output) != 3:
            raise ValueError(f"its loss must return (loss, logs, kept); it returns {type(output).__name__}")
        for name in output[1]:
            if name == "step" or name.startswith("loss/"):
                raise ValueError(f"logs of its loss must have names of their own; {name!r} is a column of all curves")
        return output

    return replace(move, loss=loss)


def weight_bytes(row: Family, dataset: FactorDataset, member: Member) -> int:
    """Bytes of one member's weights, computed without allocating them."""
    settings = structural_settings(row, [member], dataset.space)
    weights = weights_of(row, tuple(dataset.image_shape), settings, member.seed)
    return sum(value.nbytes for value in weights.values())


def check_space(
    folder: Path, dataset: FactorDataset, weights: Mapping[str, int], members: Sequence[Member], row: Family
) -> int:
    """Bytes of the results and of the checkpoints on the way, about.

    Raises:
        OSError: they will not fit.
    """
    needed = needed_space(dataset, weights, members, row)
    # One checkpoint per run, of weights and two moments; while one is written, there are two.
    needed += 3 * max(weights.values(), default=0) * (len(members) + min(len(members), n_cores()))
    return check_disk(folder, len(members), needed)


def check_disk(folder: Path, n_runs: int, needed: int) -> int:
    """Returns `needed`; OSError if the disk of a folder, which need not exist, has less free space."""
    while not folder.exists():
        folder = folder.parent
    if (free := shutil.disk_usage(folder).free) < needed:
        runs = f"{counted(n_runs, 'run')} {'needs' if n_runs == 1 else 'need'}"
        raise OSError(f"{folder}: {runs} about {needed / 1e6:.0f} MB of disk, {free / 1e6:.0f} MB are free")
    return needed


def needed_space(dataset: FactorDataset, weights: Mapping[str, int], members: Sequence[Member], row: Family) -> int:
    """Bytes of the run folders, about."""
    rows = min(N_CODES, len(dataset))
    needed = 0
    for member in members:
        n_codes = sum(part.size for part in code_parts(row, structural_settings(row, [member], dataset.space)))
        codes = rows * (2 * 4 * n_codes + 8 * len(dataset.space.names))
        needed += weights[repr(structural_settings(row, [member]))] + codes + (1 << 17)
    return needed


def configs_of(
    plan: Plan, members: Sequence[Member], described: Mapping[str, Any]
) -> dict[str, tuple[dict[str, Any], Member]]:
    """By id, the config and the member of each run; equal ones once."""
    configs = [(config_of(plan, member, described, code_of(plan, member)), member) for member in members]
    return {run_id(config): (config, member) for config, member in configs}


def config_of(
    plan: Plan,
    member: Member,
    dataset: Mapping[str, Any],
    code: Mapping[str, str] | None = None,
    version: int | None = None,
) -> dict[str, Any]:
    """The content of config.json, whose hash is the run's id; `training_of` is the inverse.

    `code` holds digests of the source of the user's own family, network and augmentation, by name. `version` is by
    default the family's current training version.
    """
    family = find_family(plan.family)
    return {
        **({"code": dict(code)} if code else {}),
        "format": FORMAT,
        "family": plan.family,
        "dataset": dict(dataset),
        "seed": member.seed,
        "hyperparameters": recorded(family, member.hyper),
        "steps": plan.steps,
        "batch_size": plan.batch_size,
        "device": plan.device,
        "precision": plan.precision,
        **({"requested_precision": plan.requested} if plan.requested else {}),
        "training_version": version or family.version,
        **plan.hold_out.recorded(),
    }


def code_of(plan: Plan, member: Member) -> dict[str, str]:
    """Digests of the source of the user's own family, network and augmentation, by name; {} without any."""
    settings = {"family": plan.family, **member.hyper}
    names = {value: kind for kind, value in settings.items() if isinstance(value, Trusted)}
    return {str(name): source_digest(name, imported(name, kind, "name it yourself")) for name, kind in names.items()}


def training_of(config: Mapping[str, Any]) -> tuple[Plan, Member]:
    """The plan and the member that `config_of` described."""
    plan = Plan(
        config["family"], config["steps"], config["batch_size"], config["device"], config["precision"],
        HoldOut(**config.get("hold_out", {})), requested=config.get("requested_precision", ""),
    )  # fmt: skip
    return plan, Member(config["seed"], completed(find_family(plan.family), config["hyperparameters"]))


def _finished(folder: Path, configs: Mapping[str, tuple[Mapping[str, Any], Member]]) -> dict[str, Run]:
    existing = [name for name in configs if (folder / name).exists()]
    done = {name: open_run(folder / name, trust=trusted_in(configs[name][0])) for name in existing}
    for run in done.values():
        tidy(run.path, continuable=True)
    return done


@contextmanager
def _working_folders(folders: Sequence[Path]) -> Iterator[None]:
    """Make the folders; at the end, remove those that are empty, as after a training that could not begin."""
    for folder in folders:
        folder.mkdir(exist_ok=True)
    try:
        yield
    finally:
        for folder in folders:
            with suppress(OSError):  # it holds a checkpoint, or has become a run
                folder.rmdir()


@contextmanager
def _claimed(folder: Path, names: Iterable[str]) -> Iterator[None]:
    """Lock runs against other processes; waits for other threads of this process."""
    with ExitStack() as stack:
        for name in sorted(names):
            try:
                stack.enter_context(locked(folder / f".{name}{LOCK}", wait="threads", remove=True))
            except Held as error:
                raise ValueError(f"{folder / name}: {error.by} is training this run") from None
        yield
