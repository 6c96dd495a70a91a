"""One member, or several stacked ones, and how they take a step.

Both kinds run the same rows of FAMILIES on the same draws, and no operation mixes members, so a member's weights are
the same to float precision whether it is trained alone or stacked, with whatever other members.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch import Tensor, nn

from unbraid.base.errors import UnbraidError
from unbraid.base.seeds import stream
from unbraid.data.image_dataset import FactorDataset
from unbraid.families.building import Member, build_member, make_supply, structural_settings
from unbraid.families.family import Adam, Batch, Context, Event, Family, Logs, OptimizerStep, Supply, uses_torch
from unbraid.training.adam import AdamSettings, adam_update, decay_weights
from unbraid.training.captured import Captured, captures
from unbraid.training.draws import Draws, Images, seeded
from unbraid.training.schedules import beta_factor, clipped, new_plateau, plateau_step, rate_factor
from unbraid.training.torch_optimizers import TorchOptimizer

MemberState = dict[str, Tensor]  # "model/...", "first/<step>/...", "second/...", "plateau/...": all that a member is
TORCH = "torch"  # "torch/<step>/...": state of an optimizer of PyTorch, in place of first and second moments

UNSTACKED = ("vmap", "Batching rule")  # in torch's errors for code that cannot be vectorised over members


@dataclass(frozen=True)
class Diverged:
    """When and why a member was stopped; its parameters stay as before this step."""

    step: int
    reason: str


class NotStackable(UnbraidError, ValueError):
    """Members that must be trained one after the other; raised before the first step."""


def make_context(
    family: Family, members: Sequence[Member], dataset: FactorDataset, *, batch_size: int, steps: int
) -> Context:
    """The context that members trained together share.

    Raises:
        ValueError: as `structural_settings` and `make_supply`.
    """
    settings = structural_settings(family, members, dataset.space)
    supply = make_supply(family, dataset.space, settings, members[0].seed)
    passes = {
        name: -(-len(items.positions) // max(1, items.at_a_time(batch_size)))
        for name, items in (supply.items.items() if supply else ())
    }
    return Context(settings, len(dataset), batch_size, steps, passes)


def make_population(
    family: Family,
    members: Sequence[Member],
    dataset: FactorDataset,
    context: Context,
    *,
    device: torch.device,
    precision: torch.dtype = torch.float32,
    stacked: bool | None = None,
) -> "Population":
    """One member alone or several stacked, unless `stacked` is given; one is stacked if its steps can be recorded.

    `precision` is that of the arithmetic: with bfloat16, parameters, moments and losses stay in single precision.

    Raises:
        ValueError: several members that cannot be stacked; train them one after the other.
    """
    torch_moves = "an optimizer of PyTorch moves one at a time" if uses_torch(context.settings) else ""
    if (reason := family.not_stackable_reason or torch_moves) and (stacked or len(members) > 1):
        raise ValueError(f"these members cannot be stacked: {reason}")
    images = Images(dataset, device, torch.promote_types(precision, torch.float32))
    recorded = captures(family, context.settings, device) and not reason
    if stacked or (stacked is None and (recorded or len(members) > 1)):
        return Stacked(family, members, images, context, device, precision)
    if len(members) != 1:
        raise ValueError(f"{len(members)} members that are not stacked need a population each")
    return Alone(family, members[0], images, context, device, precision)


class _Population:
    """What one member and several stacked ones share: optimizer steps in order, the update, and the named tensors."""

    members: tuple[Member, ...]
    family: Family
    context: Context
    device: torch.device
    draws: Draws
    adam: dict[str, AdamSettings]  # by optimizer step
    over: bool = False  # whether nothing is left to train

    def _begin(self, parameters: Mapping[str, Tensor], n_members: int | None) -> None:
        """Moments, and states of the schedule "plateau"; `n_members` is None for one that is not stacked."""
        moves = self.family.optimizer_steps
        self.trained = {
            move.name: {name: value for name, value in parameters.items() if name.partition(".")[0] in move.trains}
            for move in moves
        }
        self.torch_optimizers = {
            name: TorchOptimizer(values, self.members[0].hyper, self.adam[name])
            for name, values in self.trained.items()
            if uses_torch(self.context.settings)
        }
        moments = {} if self.torch_optimizers else self.trained
        self.first = {name: _zeros(values) for name, values in moments.items()}
        self.second = {name: _zeros(values) for name, values in moments.items()}
        plateau = self.members[0].hyper["schedule"] == "plateau"
        self.plateaus = {move.name: new_plateau(n_members).to(self.device) for move in moves if plateau}

    def advance(self, step: int) -> Logs:
        """Take step number `step`, from 0; the mean losses and logs by name, (n_members,) each."""
        logs: Logs = {}
        carried: Logs = {}
        for event in self.family.events:
            if event.step(self.context) == step and not self.over:
                self._undergo(event)
        for move, turn, repeat in _moves(self.family, step, self.context):
            if self.over:
                break
            batch = {**self.draws.batch(move, step, turn, repeat), **carried}
            count = turn * move.repeats + repeat + 1
            ends = count % (self.context.image_pass * move.repeats) == 0
            report, outputs = self._step(move, batch, step, count, ends=ends)
            for name, value in report.items():
                share = value / move.repeats if move.repeats > 1 else value
                logs[name] = logs[name] + share if name in logs else share
            carried.update(outputs)
        return logs

    def _undergo(self, event: Event) -> None:
        raise NotImplementedError

    def _step(self, move: OptimizerStep, batch: Batch, step: int, count: int, *, ends: bool) -> tuple[Logs, Logs]:
        """Logs and outputs of an optimizer step, its `count`-th, with which an epoch may end; members in front."""
        raise NotImplementedError

    def _model(self) -> MemberState:
        raise NotImplementedError

    def _update(
        self, move: OptimizerStep, losses: Tensor, gradients: Sequence[Tensor], count: int | Tensor,
        factor: float | Tensor, *, ends: bool, alive: Tensor | None = None,
    ) -> None:  # fmt: skip
        """Move the parameters, at `factor` times their learning rate."""
        trained, settings = self.trained[move.name], self.adam[move.name]
        if (state := self.plateaus.get(move.name)) is not None:
            factor = factor * (float(state[0]) if alive is None else state[:, 0].clone())
            state.copy_(plateau_step(state, losses.detach(), settings.learning_rate, move.plateau, ends=ends))
        if move.name in self.torch_optimizers:
            self.torch_optimizers[move.name].step(gradients, float(factor), losses.detach())
            return
        adam = settings.at_rate(factor)
        if move.adam.weight_decay:
            weights = [value for name, value in trained.items() if name.rpartition(".")[2] == "weight"]
            decay_weights(weights, adam, alive)
        first, second = self.first[move.name].values(), self.second[move.name].values()
        adam_update([*trained.values()], gradients, [*first], [*second], adam, count, alive)

    def _tensors(self) -> MemberState:
        named = {**_whole("model", self._model()), **_whole("plateau", self.plateaus)}
        for moment, optimizer_steps in (("first", self.first), ("second", self.second)):
            for move, values in optimizer_steps.items():
                named |= _whole(f"{moment}/{move}", values)
        return named

    def nbytes(self) -> int:
        """Bytes of the states of all members."""
        return sum(value.nbytes for value in self._tensors().values())


class Alone(_Population):
    """One member, run by ordinary modules with channels last in memory."""

    def __init__(
        self,
        family: Family,
        member: Member,
        images: Images,
        context: Context,
        device: torch.device,
        precision: torch.dtype,
    ) -> None:
        self.members = (member,)
        self.context, self.family = context, family
        self.precision, self.device = precision, device
        modules = build_member(family, images.dataset.image_shape, context.settings, member.seed)
        self.modules = modules.to(device, images.dtype).to(memory_format=torch.channels_last)  # pyright: ignore[reportCallIssue]
        self.supply = make_supply(family, images.dataset.space, context.settings, member.seed)
        self.draws = Draws((member.seed,), context, images, [self.supply])
        self.adam = {move.name: _settings(move.adam, member.hyper, float) for move in family.optimizer_steps}
        self._begin(dict(self.modules.named_parameters()), None)
        self.buffers = list(self.modules.buffers())
        self._diverged: Diverged | None = None

    def _undergo(self, event: Event) -> None:
        _apply(event, self.modules, self.supply, self.draws, self.members[0], self.context)

    def _step(self, move: OptimizerStep, batch: Batch, step: int, count: int, *, ends: bool) -> tuple[Logs, Logs]:
        batch = {name: values[0] for name, values in batch.items()}
        if len(self.family.optimizer_steps) > 1:
            for name, module in self.modules.items():
                module.requires_grad_(name in move.trains)
        before = [(buffer, buffer.clone()) for buffer in self.buffers]
        drawn = f"layers/{move.name}/{step}/{count}"
        parameters = list(self.trained[move.name].values())
        hyper: Mapping[str, Any] = self.members[0].hyper
        if hyper.get("beta_warmup"):
            hyper = {**hyper, "beta": hyper["beta"] * beta_factor(step, hyper["beta_warmup"])}
        with _autocast(self.device, self.precision), seeded(self.device, stream(self.members[0].seed, drawn)):
            loss, logs, outputs = move.loss(self.modules, batch, hyper, step, self.context)
        gradients = torch.autograd.grad(loss, parameters, allow_unused=True, materialize_grads=True)
        report = {f"loss/{move.name}": loss, **logs}
        report = {name: value.detach().reshape(1) for name, value in report.items()}
        if flaw := _flaw(loss, gradients):
            with torch.no_grad():
                for buffer, old in before:
                    buffer.copy_(old)
            self.over, self._diverged = True, Diverged(step, _reason(move, flaw))
            return report, {}
        if hyper["clip"]:
            gradients = clipped(gradients, hyper["clip"])
        factor = rate_factor(step, self.context.steps, hyper["schedule"], hyper["rate_warmup"])
        self._update(move, loss, gradients, count, factor, ends=ends)
        return report, {name: value.detach()[None] for name, value in outputs.items()}

    def diverged(self) -> list[Diverged | None]:
        return [self._diverged]

    def _model(self) -> MemberState:
        return dict(self.modules.state_dict())

    def state(self, index: int) -> MemberState:  # noqa: ARG002 (there is but one)
        """A copy of a member's tensors, in main memory."""
        copies = {name: value.detach().to("cpu", copy=True).contiguous() for name, value in self._tensors().items()}
        for move, optimizer in self.torch_optimizers.items():
            copies |= _whole(f"{TORCH}/{move}", optimizer.tensors())
        return copies

    @torch.no_grad()
    def load_state(self, index: int, state: MemberState, diverged: Diverged | None = None) -> None:  # noqa: ARG002
        """Restore a member's state; it stays stopped if it had diverged."""
        self.over, self._diverged = diverged is not None, diverged
        for name, value in self._tensors().items():
            value.copy_(state[name])
        for move, optimizer in self.torch_optimizers.items():
            optimizer.load(part_of(state, f"{TORCH}/{move}"))


class Stacked(_Population):
    """Members whose tensors are stacked, members in front, and run as one by torch.func.vmap."""

    def __init__(
        self,
        family: Family,
        members: Sequence[Member],
        images: Images,
        context: Context,
        device: torch.device,
        precision: torch.dtype,
    ) -> None:
        self.members = tuple(members)
        self.context, self.family = context, family
        self.precision, self.device = precision, device
        built = [build_member(family, images.dataset.image_shape, context.settings, member.seed) for member in members]
        parameters, buffers = torch.func.stack_module_state([*built])  # pyright: ignore[reportArgumentType]
        if built[0].state_dict().keys() != {**parameters, **buffers}.keys():
            raise NotStackable("a network has weights under two names, or some that are not to be saved")
        self.begun = False  # whether a step was taken
        self.caller = _Caller(built[0].to("meta"))
        self.parameters = {
            name: value.detach().to(device, _real(value, images.dtype)).requires_grad_()
            for name, value in parameters.items()
        }
        self.buffers = {name: value.to(device, _real(value, images.dtype)) for name, value in buffers.items()}
        self.supplies = [make_supply(family, images.dataset.space, context.settings, member.seed) for member in members]
        self.draws = Draws([member.seed for member in members], context, images, self.supplies)
        self._begin(self.parameters, len(members))
        columns = {name: [member.hyper[name] for member in members] for name in members[0].hyper}
        self.numbers = {
            name: torch.tensor(values, dtype=torch.float64)
            for name, values in columns.items()
            if not family.hyperparameters[name].is_structural
        }
        self.plain: dict[str, Any] = {name: values[0] for name, values in columns.items() if name not in self.numbers}
        self.hyper = {name: values.to(device, images.dtype) for name, values in self.numbers.items()}
        self.adam = {move.name: _settings(move.adam, self.numbers, self._per_member) for move in family.optimizer_steps}
        if device.type == "cuda":
            self.adam = {name: settings.with_shared_moments() for name, settings in self.adam.items()}
        self.alive = torch.ones(len(members), dtype=torch.bool, device=device)
        self.stopped = torch.full((len(members),), -1, dtype=torch.int64, device=device)
        self.flaws = torch.zeros_like(self.stopped)
        self.known: list[Diverged | None] = [None] * len(members)  # divergence from loaded states
        self.captures = captures(family, context.settings, device)
        self.pool = torch.cuda.graph_pool_handle() if self.captures else None
        self.captured: dict[tuple[str, bool], Captured] = {}

    def _per_member(self, number: Any) -> Tensor:
        numbers = torch.as_tensor(number, dtype=torch.float64).expand(len(self.members))
        return numbers.to(self.device)

    def advance(self, step: int) -> Logs:
        logs = super().advance(step)
        self.begun = True
        return logs

    def _step(self, move: OptimizerStep, batch: Batch, step: int, count: int, *, ends: bool) -> tuple[Logs, Logs]:
        moment = _Moment(step, count, self._hyper(step), self._rate_factor(step))
        take = self._recorded if self.captures else self._move
        return take(move, batch, moment, ends)

    def _recorded(self, move: OptimizerStep, batch: Batch, moment: "_Moment", ends: bool) -> tuple[Logs, Logs]:
        """`_move` as a CUDA graph, one for each combination of optimizer step and end of an epoch."""

        def recorded_move(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
            changed = part_of(inputs, "hyper")
            then = _Moment(**part_of(inputs, "moment"), hyper={**self.hyper, **changed})
            report, outputs = self._move(move, part_of(inputs, "batch"), then, ends)
            return {**_whole("report", report), **_whole("outputs", outputs)}

        key = move.name, ends and move.name in self.plateaus
        if key not in self.captured:
            self.captured[key] = Captured(self.pool)
        moved = {name: value for name, value in moment.hyper.items() if value is not self.hyper[name]}
        factor = moment.factor
        if not isinstance(factor, Tensor):
            factor = torch.full((len(self.members),), factor, dtype=torch.float64, device=self.device)
        numbers = {
            "step": torch.full((), int(moment.step), dtype=torch.int64, device=self.device),
            "count": torch.full((), int(moment.count), dtype=torch.float64, device=self.device),
            "factor": factor,
        }
        inputs = {**_whole("batch", batch), **_whole("hyper", moved), **_whole("moment", numbers)}
        made = self.captured[key](recorded_move, inputs)
        return part_of(made, "report"), part_of(made, "outputs")

    def _move(self, move: OptimizerStep, batch: Batch, moment: "_Moment", ends: bool) -> tuple[Logs, Logs]:
        trained = self.trained[move.name]
        parameters = {name: value if name in trained else value.detach() for name, value in self.parameters.items()}
        before = {name: value.clone() for name, value in self.buffers.items()}

        def loss_of(tensors: MemberState, batch: Batch, hyper: Logs) -> tuple[Tensor, Logs, Logs]:
            tensors = {f"modules_.{name}": value for name, value in tensors.items()}
            arguments = (move.loss, batch, {**hyper, **self.plain}, moment.step, self.context)
            return torch.func.functional_call(self.caller, tensors, arguments)

        with _autocast(self.device, self.precision):
            try:
                tensors = {**parameters, **self.buffers}
                losses, logs, outputs = torch.vmap(loss_of)(tensors, dict(batch), dict(moment.hyper))
            except RuntimeError as error:
                if self.begun or not any(phrase in str(error) for phrase in UNSTACKED):
                    raise
                if "random operation" in str(error):
                    raise NotStackable("a network draws random numbers of its own, such as for dropout") from error
                raise NotStackable("a network or loss does what torch.func.vmap cannot") from error
        gradients = torch.autograd.grad(losses.sum(), list(trained.values()), allow_unused=True, materialize_grads=True)
        flaws = torch.where(self.alive, _flaws(losses.detach(), gradients), 0)
        number = self.family.optimizer_steps.index(move)
        self.stopped.copy_(torch.where(flaws > 0, moment.step, self.stopped))
        self.flaws.copy_(torch.where(flaws > 0, flaws + 2 * number, self.flaws))
        self.alive.copy_(self.alive & (flaws == 0))
        for name, old in before.items():
            self.buffers[name].copy_(torch.where(_spread(self.alive, old), self.buffers[name], old))
        if self.numbers["clip"].any():
            gradients = clipped(gradients, self.hyper["clip"])
        self._update(move, losses, gradients, moment.count, moment.factor, ends=ends, alive=self.alive)
        report = {f"loss/{move.name}": losses.detach(), **{name: value.detach() for name, value in logs.items()}}
        return report, {name: value.detach() for name, value in outputs.items()}

    def _hyper(self, step: int) -> Logs:
        """The numbers of all members at this step."""
        if "beta_warmup" not in self.numbers or not self.numbers["beta_warmup"].any():
            return self.hyper
        factors = [beta_factor(step, warmup) for warmup in self.numbers["beta_warmup"].tolist()]
        beta = self.numbers["beta"] * torch.tensor(factors, dtype=torch.float64)
        return {**self.hyper, "beta": beta.to(self.hyper["beta"])}

    def _rate_factor(self, step: int) -> float | Tensor:
        schedule, warmups = self.plain["schedule"], self.numbers["rate_warmup"].tolist()
        factors = [rate_factor(step, self.context.steps, schedule, warmup) for warmup in warmups]
        return factors[0] if len(set(factors)) == 1 else self._per_member(factors)

    def _undergo(self, event: Event) -> None:
        shape, stacked = self.draws.images.dataset.image_shape, self._model()
        for index in self.alive.nonzero().flatten().tolist():
            member = self.members[index]
            modules = build_member(self.family, shape, self.context.settings, member.seed)
            modules = modules.to(self.device, self.draws.images.dtype)
            modules.load_state_dict({name: stacked[name][index].detach() for name in modules.state_dict()})
            _apply(event, modules, self.supplies[index], self.draws, member, self.context)
            with torch.no_grad():
                for name, value in modules.state_dict().items():
                    stacked[name][index].copy_(value)

    def diverged(self) -> list[Diverged | None]:
        reasons: list[Diverged | None] = []
        for stopped, flaw, known in zip(self.stopped.tolist(), self.flaws.tolist(), self.known, strict=True):
            move = self.family.optimizer_steps[(flaw - 1) // 2] if flaw else self.family.optimizer_steps[0]
            reasons.append(Diverged(stopped, _reason(move, (flaw - 1) % 2 + 1)) if flaw else known)
        return reasons

    def _model(self) -> MemberState:
        return {**self.parameters, **self.buffers}

    def state(self, index: int) -> MemberState:
        return {name: value[index].detach().to("cpu", copy=True) for name, value in self._tensors().items()}

    @torch.no_grad()
    def load_state(self, index: int, state: MemberState, diverged: Diverged | None = None) -> None:
        self.known[index] = diverged
        self.alive[index] = diverged is None
        self.flaws[index] = 0
        for name, value in self._tensors().items():
            value[index].copy_(state[name])


Population: TypeAlias = Alone | Stacked


@dataclass(frozen=True)
class _Moment:
    """Values that change from step to step, besides draws; numbers, or tensors if steps are recorded."""

    step: int | Tensor
    count: int | Tensor  # of moves, this one included
    hyper: Logs  # (n_members,) each
    factor: float | Tensor  # of the learning rates


def _whole(kind: str, values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {f"{kind}/{name}": value for name, value in values.items()}


def part_of(values: Mapping[str, Tensor], kind: str) -> dict[str, Any]:
    """The tensors whose names begin with this word and a slash, without it; see `MemberState`."""
    return {name.removeprefix(f"{kind}/"): value for name, value in values.items() if name.startswith(f"{kind}/")}


class _Caller(nn.Module):
    """Calls a loss with modules whose tensors `functional_call` has replaced."""

    def __init__(self, modules: nn.ModuleDict) -> None:
        super().__init__()
        self.modules_ = modules

    def forward(self, loss: Any, *arguments: Any) -> Any:
        return loss(self.modules_, *arguments)


def _moves(family: Family, step: int, context: Context) -> list[tuple[OptimizerStep, int, int]]:
    """Optimizer steps due at this training step, with turn and repeat, in order."""
    turns = [(move, move.turn(step, context) if move.turn else step) for move in family.optimizer_steps]
    return [(move, turn, repeat) for move, turn in turns if turn is not None for repeat in range(move.repeats)]


@torch.no_grad()
def _apply(
    event: Event, modules: nn.ModuleDict, supply: Supply | None, draws: Draws, member: Member, context: Context
) -> None:
    def images(positions: Any) -> Tensor:
        return draws.images(torch.as_tensor(positions))

    modules.eval()
    event.apply(modules, supply or Supply({}, {}), images, member.hyper, context)
    modules.train()


def _zeros(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: torch.zeros_like(value, requires_grad=False) for name, value in values.items()}


def _settings(adam: Adam, hyper: Mapping[str, Any], convert: Any) -> AdamSettings:
    numbers = (adam.learning_rate, adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay)
    return AdamSettings(*(convert(hyper[number] if isinstance(number, str) else number) for number in numbers))


def _flaw(loss: Tensor, gradients: Sequence[Tensor]) -> int:
    """0 if all is finite, 1 if the loss is not, 2 if the loss is finite but a gradient is not."""
    sums = torch.stack(
        [loss.detach().reshape(()), *(gradient.sum() for gradient in gradients)]
    ).tolist()  # waits but once
    return 1 if not math.isfinite(sums[0]) else 0 if all(map(math.isfinite, sums)) else 2


def _flaws(losses: Tensor, gradients: Sequence[Tensor]) -> Tensor:
    """`_flaw` of each stacked member."""
    total = sum(gradient.reshape(len(losses), -1).sum(1) for gradient in gradients)
    flawed = torch.where(torch.isfinite(torch.as_tensor(total)), 0, 2)
    return torch.where(torch.isfinite(losses), flawed, 1)


def _reason(move: OptimizerStep, flaw: int) -> str:
    return f"the {'loss' if flaw == 1 else 'gradient'} of the {move.name} is not finite"


def _real(value: Tensor, dtype: torch.dtype) -> torch.dtype:
    return dtype if value.is_floating_point() else value.dtype


def _spread(alive: Tensor, like: Tensor) -> Tensor:
    return alive.reshape(-1, *[1] * (like.dim() - 1))


@contextmanager
def _autocast(device: torch.device, precision: torch.dtype) -> Iterator[None]:
    if precision not in (torch.bfloat16, torch.float16):
        yield
        return
    with torch.autocast(device.type, precision):
        yield
    torch.clear_autocast_cache()  # inside a caller's autocast it would keep this step's weights
