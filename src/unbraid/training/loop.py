"""The training loop: steps, curves, checkpoints and resuming, for members trained together in this process."""

import json
import math
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from unbraid.base.device import (
    check_unnumbered,
    choose_device,
    choose_precision,
    dtype_of,
    gains_by_bfloat16,
    reproducible,
)
from unbraid.base.signals import RAISED, stop_requests
from unbraid.base.types import FloatArray, IntArray
from unbraid.data.image_dataset import FactorDataset, ImageShape
from unbraid.families.building import Member, build_member, recorded, weights_of
from unbraid.families.family import Context, Family, Logs, Settings
from unbraid.families.family_table import find_family
from unbraid.files.run_files import CHECKPOINT
from unbraid.files.whole_files import DiskFull
from unbraid.training.checkpoints import (
    Checkpoint,
    CheckpointError,
    architecture,
    load_checkpoint,
    precision_of,
    save_checkpoint,
)
from unbraid.training.draws import Images
from unbraid.training.held_out import Divided, HoldOut, divided, held_out_elbo, is_best, is_over
from unbraid.training.population import (
    Diverged,
    NotStackable,
    Population,
    Stacked,
    make_context,
    make_population,
    part_of,
)
from unbraid.training.snapshots import Snapshots, snapshot

CURVE_POINTS = 500
REPORT_SECONDS = 0.5
CHECKPOINT_SECONDS = 120.0


@dataclass(frozen=True)
class Plan:
    """Settings that all members of a training share. The fields up to `hold_out` determine the weights."""

    family: str
    steps: int
    batch_size: int = 64
    device: str = "auto"
    precision: str = "auto"
    hold_out: HoldOut = HoldOut()
    checkpoint_seconds: float = CHECKPOINT_SECONDS
    snapshots: Snapshots = Snapshots()
    requested: str = ""  # "auto" if `precision` was "auto"; the run's id then contains this, not the resolved precision

    def resolved(self) -> "Plan":
        """The plan with "auto" replaced by the device and precision of this machine.

        Raises:
            ValueError: no such family, device or precision.
        """
        find_family(self.family)
        check_unnumbered(self.device)
        device = choose_device(self.device)
        requested = self.precision if self.precision == "auto" else self.requested
        return replace(
            self, device=device.type, precision=choose_precision(self.precision, device), requested=requested
        )


@dataclass(frozen=True)
class Report:
    """Sent about twice a second while members train."""

    members: tuple[int, ...]  # positions in the list given
    step: int
    steps: int
    logs: Mapping[str, FloatArray]  # latest point of the curves by name, (n_members,)


@dataclass(frozen=True, eq=False)
class Trained:
    """A member that is done: all steps taken, or diverged."""

    weights: dict[str, Tensor]  # of its modules, as `nn.ModuleDict.state_dict` names them
    curve_steps: IntArray  # (n_points,) steps taken
    curves: dict[str, FloatArray]  # (n_points,) each: means over the moves since the point before, NaN for none
    diverged: Diverged | None
    step: int
    seconds: float  # of training, over all sessions; that of the whole population for a stacked member
    snapshots: Mapping[str, FloatArray] = field(default_factory=dict)  # "step" and values at these steps
    origin: tuple[str, int] | None = None  # the finished run that it continued, and how many steps that had taken
    held_out: Mapping[str, FloatArray] = field(default_factory=dict)  # "step" and values at these steps
    stopped: bool = False  # early; its weights are those of the best step in `held_out`
    precision: str = ""  # of the arithmetic; "" where there are no steps
    began: float = field(default_factory=time.time)  # seconds since 1970
    together: int = 1  # members that were stacked, itself included


def train_here(
    plan: Plan,
    members: Sequence[Member],
    dataset: FactorDataset,
    *,
    folders: Sequence[Path | None] | None = None,
    report: Callable[[Report], None] | None = None,
    stacked: bool | None = None,
) -> list[Trained]:
    """Train members together, continuing from the checkpoints in their folders.

    On SIGINT or SIGTERM it finishes the step, saves checkpoints and raises KeyboardInterrupt. The same call then
    continues, as after any other interruption, and reaches the same weights as an uninterrupted training.

    Args:
        plan: what the members share.
        members: at least one; several are stacked and agree in structural hyperparameters.
        dataset: images; one copy, uint8, whatever the number of members.
        folders: for the checkpoint of each member; must exist. The checkpoint stays when all is done.
        report: called about twice a second.
        stacked: whether to stack; by default several members are.

    Raises:
        CheckpointError: a checkpoint that cannot be continued.
        OSError: no space for the checkpoints.
        KeyboardInterrupt: stopped by SIGINT; by SIGTERM it is a Terminated.
    """
    folders = folders or [None] * len(members)
    plan = plan.resolved()
    device = choose_device(plan.device)
    family = find_family(plan.family)
    images = divided(dataset, plan.hold_out)
    context = make_context(family, members, images.seen, batch_size=plan.batch_size, steps=plan.steps)
    with reproducible(device), torch.inference_mode(False), stop_requests() as stop_signals:
        if family.fit is not None:
            return [_fitted(family, member, dataset, context) for member in members]
        plan = _settled(plan, family, members[0], images.whole.image_shape, context, folders)
        progress = [
            load_checkpoint(folder / CHECKPOINT, identity_of(plan, member, dataset)) if folder else Checkpoint()
            for folder, member in zip(folders, members, strict=True)
        ]

        def bring_to_the_end(numbers: Sequence[int], stacked: bool | None) -> None:
            if all(_done(progress[number], plan) for number in numbers):
                return
            population = make_population(
                family, [members[number] for number in numbers], images.seen, context, device=device,
                precision=dtype_of(plan.precision), stacked=stacked,
            )  # fmt: skip
            own = [progress[number] for number in numbers], [folders[number] for number in numbers]
            _Stretch(plan, population, images, *own, renumbered(report, numbers)).run(stop_signals)

        together = len(members)
        try:
            bring_to_the_end(range(together), stacked)
        except NotStackable:
            together = 1
            for number in range(len(members)):
                bring_to_the_end([number], stacked=False)
    return [_trained(checkpoint, plan.precision, together) for checkpoint in progress]


def _settled(
    plan: Plan, family: Family, member: Member, shape: ImageShape, context: Context, folders: Sequence[Path | None]
) -> Plan:
    """The plan with precision "auto" settled: that of an existing checkpoint, else the faster one for the network."""
    if not plan.requested:
        return plan
    known = {precision_of(folder / CHECKPOINT) for folder in folders if folder} - {None}
    if len(known) == 1:
        return replace(plan, precision=known.pop())
    if plan.precision != "bfloat16" or plan.device != "cpu":
        return plan
    weights = weights_of(family, shape, context.settings, member.seed)
    gains = gains_by_bfloat16(weights.values(), plan.batch_size)
    return plan if gains else replace(plan, precision="float32")


def renumbered(report: Callable[[Report], None] | None, numbers: Sequence[int]) -> Callable[[Report], None] | None:
    """A callback for some of the members, whose reports carry their numbers among all."""
    if report is None:
        return None
    return lambda sent: report(replace(sent, members=tuple(numbers[index] for index in sent.members)))


class _Stretch:
    """Members that are trained together, from their checkpoints to the end.

    If a pack was killed while its checkpoints were written, some members are a few steps ahead. All continue from the
    hindmost step; steps of members ahead are discarded until their own step is reached, when their state is loaded.
    Members do not influence each other, so the result is that of an uninterrupted training.
    """

    def __init__(
        self,
        plan: Plan,
        population: Population,
        images: Divided,
        progress: Sequence[Checkpoint],
        folders: Sequence[Path | None],
        report: Callable[[Report], None] | None,
    ) -> None:
        self.plan, self.population, self.images, self.report = plan, population, images, report
        self.progress, self.folders = progress, folders
        self.family, self.device = find_family(plan.family), choose_device(plan.device)
        # First step that counts for each member; the last step for members that have diverged or are done.
        self.begins = [plan.steps if _done(checkpoint, plan) else checkpoint.step for checkpoint in progress]
        self.start = min(self.begins)
        self.every = max(1, plan.steps // CURVE_POINTS)
        self.due = plan.snapshots.due(plan.steps)
        self.latest: dict[str, FloatArray] = {}
        self._begin()
        hindmost = next(
            checkpoint for checkpoint in progress if checkpoint.step == self.start and not _done(checkpoint, plan)
        )
        self.sums: Logs = {
            name: torch.stack(
                [checkpoint.pending.get(name, torch.zeros(())).reshape(()) for checkpoint in progress]
            ).to(self.device)
            for name in hindmost.pending
        }
        self.counts = dict(hindmost.counts)  # steps in the sums: an optimizer step may wait

    def _begin(self) -> None:
        for index, checkpoint in enumerate(self.progress):
            if checkpoint.state is None:
                continue
            if architecture(checkpoint.state) != architecture(self.population.state(0)):
                raise CheckpointError(
                    f"{self.folders[index]}/{CHECKPOINT} is for another architecture; delete it to train from the start"
                )
            self.population.load_state(index, checkpoint.state, checkpoint.diverged)
        needed = 2 * self.population.nbytes()
        for folder in {folder for folder in self.folders if folder}:
            for left in folder.glob(f".{CHECKPOINT}.*.part"):
                left.unlink()  # of a process that was killed while it wrote
            if (free := shutil.disk_usage(folder).free) < needed:
                raise DiskFull(f"{folder}: checkpoints need {needed >> 20} MiB of disk, {free >> 20} MiB are free")

    def _at_work(self, step: int) -> list[int]:
        """Members still training at this step: neither ahead, nor stopped."""
        members = zip(self.begins, self.population.diverged(), strict=True)
        return [index for index, (begin, reason) in enumerate(members) if begin < step and not reason]

    def _failed_at(self, step: int) -> list[int]:
        members = zip(self.begins, self.population.diverged(), strict=True)
        return [
            index for index, (begin, reason) in enumerate(members) if begin <= step and reason and reason.step == step
        ]

    def _catch_up(self, step: int) -> None:
        """Load the state of members that were ahead and begin at this step."""
        for index, checkpoint in enumerate(self.progress):
            if self.begins[index] == step and checkpoint.state is not None:
                self.population.load_state(index, checkpoint.state, checkpoint.diverged)
                for name, value in checkpoint.pending.items():
                    self.sums[name][index] = value

    def run(self, stop_signals: Sequence[int]) -> None:
        began = time.monotonic()
        seconds = [checkpoint.seconds for checkpoint in self.progress]
        ahead = {begin for begin in self.begins if begin > self.start}
        saved = reported = began
        saved_step = -1
        if self.start == 0:
            self._snapshot(0)
        step = self.start - 1
        for step in range(self.start, self.plan.steps):
            if step in ahead:
                self._catch_up(step)
            logs = self.population.advance(step)
            if self.sums and step < self.every:  # a member that fails before the first point gets the means until then
                self._extend(self._failed_at(step), step, self._means())
            for name, value in logs.items():
                self.sums[name] = self.sums[name] + value if name in self.sums else value.clone()
                self.counts[name] = self.counts.get(name, 0) + 1
            for checkpoint, begin in zip(self.progress, self.begins, strict=True):
                checkpoint.step = step + 1 if begin <= step else checkpoint.step
            point = (step + 1) % self.every == 0 or step + 1 == self.plan.steps
            if point:
                self._close_point(step + 1)
            self._snapshot(step + 1)
            if stopped := self._judge(step + 1):
                if not point:
                    self._extend(stopped, step + 1, self._means())
                self._store(step + 1, time.monotonic() - began, seconds)
                for index in stopped:
                    self.begins[index] = self.plan.steps  # done
            now = time.monotonic()
            # Reading which members of a stack diverged synchronises with the device, so not at every step.
            over = (point or not isinstance(self.population, Stacked)) and self._over()
            if self.report and (over or now - reported > REPORT_SECONDS or step + 1 == self.plan.steps):
                reported = now
                self.report(Report(tuple(range(len(self.progress))), step + 1, self.plan.steps, self.latest))
            if over:
                break
            if stop_signals or now - saved > self.plan.checkpoint_seconds:
                saved, saved_step = now, step + 1
                self._store(step + 1, now - began, seconds)
            if stop_signals:
                raise RAISED[stop_signals[0]]
        if saved_step < step + 1:
            self._store(step + 1, time.monotonic() - began, seconds)

    def _over(self) -> bool:
        stopped = self.population.diverged()
        return all(begin >= self.plan.steps or reason for begin, reason in zip(self.begins, stopped, strict=True))

    def _close_point(self, step: int) -> None:
        # The first point after resuming covers the same steps as without an interruption: sums are in the checkpoint.
        means = self._means()
        self._extend(self._at_work(step), step, means)
        self.latest, self.sums, self.counts = {**self.latest, **means}, {}, {}

    def _means(self) -> dict[str, FloatArray]:
        """Mean logs since the last point of the curves, (n_members,) each."""
        return {name: (total / self.counts[name]).cpu().double().numpy() for name, total in self.sums.items()}

    def _extend(self, members: Sequence[int], step: int, means: Mapping[str, FloatArray]) -> None:
        """Add a point to the curves of these members."""
        for index in members:
            checkpoint = self.progress[index]
            checkpoint.curve_steps.append(step)
            before = len(checkpoint.curve_steps) - 1
            for name in {**checkpoint.curves, **means}:
                curve = checkpoint.curves.setdefault(name, [math.nan] * before)
                curve.append(float(means[name][index]) if name in means else math.nan)

    def _snapshot(self, step: int) -> None:
        if step not in self.due:
            return
        for index in self._at_work(step or 1):
            checkpoint = self.progress[index]
            if step in checkpoint.snapshots.get("step", ()):
                continue
            numbers = snapshot(*self._model(index), self.images.whole, self.plan.snapshots.metrics, self.device)
            for name, value in {"step": float(step), **numbers}.items() if numbers else ():
                checkpoint.snapshots.setdefault(name, []).append(value)

    def _model(self, index: int) -> tuple[Family, torch.nn.ModuleDict, Settings]:
        """A copy of a member's model for evaluation, with all hyperparameters among its settings."""
        family, settings, member = self.family, self.population.context.settings, self.population.members[index]
        modules = build_member(family, self.images.whole.image_shape, settings, member.seed).eval()
        modules.load_state_dict(part_of(self.population.state(index), "model"))
        return family, modules.to(self.device), {**member.hyper, **settings}

    def _judge(self, step: int) -> list[int]:
        """Evaluate members on the hold-out set; return those that stop early."""
        over: list[int] = []
        if self.images.unseen is None or not self.plan.hold_out.due(step):
            return over
        for index in self._at_work(step):
            checkpoint = self.progress[index]
            family, modules, settings = self._model(index)
            elbo_parts = held_out_elbo(family, modules, settings, self.images.unseen, self.device)
            for name, value in {"step": float(step), **elbo_parts}.items():
                checkpoint.held_out.setdefault(name, []).append(value)
            elbos, patience = checkpoint.held_out["elbo"], self.plan.hold_out.patience
            if patience and is_best(elbos):
                checkpoint.best = {name: value.cpu() for name, value in modules.state_dict().items()}
            checkpoint.stopped = is_over(elbos, patience)
            over += [index] * checkpoint.stopped
        return over

    def _store(self, step: int, elapsed: float, seconds: Sequence[float]) -> None:
        diverged = self.population.diverged()
        for index, checkpoint in enumerate(self.progress):
            if self.begins[index] >= step and checkpoint.state is not None:
                continue  # its checkpoint is further on
            checkpoint.state = self.population.state(index)
            checkpoint.pending = {name: total[index].cpu() for name, total in self.sums.items()}
            checkpoint.counts = dict(self.counts)
            checkpoint.diverged = diverged[index]
            checkpoint.seconds = seconds[index] + elapsed
            if folder := self.folders[index]:
                facts = identity_of(self.plan, self.population.members[index], self.images.whole)
                save_checkpoint(folder / CHECKPOINT, checkpoint, facts)


def identity_of(plan: Plan, member: Member, dataset: FactorDataset) -> dict[str, str]:
    """Facts of a training, as JSON by name, that must equal those of a checkpoint to continue it."""
    facts = {
        **{name: getattr(plan, name) for name in ("family", "steps", "batch_size", "device", "precision")},
        "seed": member.seed,
        "hyperparameters": recorded(find_family(plan.family), member.hyper),
        "images": [len(dataset), *dataset.image_shape],
        **plan.hold_out.recorded(),
    }
    return {name: json.dumps(value, sort_keys=True) for name, value in facts.items()}


def _done(progress: Checkpoint, plan: Plan) -> bool:
    over = progress.diverged is not None or progress.stopped
    return over or (progress.step >= plan.steps and progress.state is not None)


def _fitted(family: Family, member: Member, dataset: FactorDataset, context: Context) -> Trained:
    began, date = time.monotonic(), time.time()
    modules = build_member(family, dataset.image_shape, context.settings, member.seed)
    images = Images(dataset, torch.device("cpu"))
    if family.fit is not None:
        family.fit(modules, lambda positions: images(torch.as_tensor(np.asarray(positions))), context)
    weights = {name: value.detach().clone() for name, value in modules.state_dict().items()}
    return Trained(weights, np.zeros(0, dtype=np.int64), {}, None, 0, time.monotonic() - began, began=date)


def _trained(progress: Checkpoint, precision: str, together: int) -> Trained:
    curves, snapshots, held_out = (
        {name: np.array(values) for name, values in table.items()}
        for table in (progress.curves, progress.snapshots, progress.held_out)
    )
    return Trained(
        progress.best or part_of(progress.state or {}, "model"), np.array(progress.curve_steps, dtype=np.int64), curves,
        progress.diverged, progress.step, progress.seconds, snapshots, progress.origin, held_out, progress.stopped,
        precision, progress.began, together,
    )  # fmt: skip
