"""Steps that a GPU replays: what is recorded, on devices that this machine has."""

import gc
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tests.training.test_population import CASES, DATASET, varied
from tests.training.training_examples import TINY, member
from unbraid.base.device import reproducible
from unbraid.families import products, strided
from unbraid.families.building import Member
from unbraid.families.family import Context
from unbraid.families.family_table import FAMILIES
from unbraid.families.products import halved
from unbraid.files.trust import is_code
from unbraid.training import captured, population
from unbraid.training.captured import EAGER, Captured, captures
from unbraid.training.population import Stacked, make_context, make_population

CPU, META = torch.device("cpu"), torch.device("meta")
OURS = [(family, network) for family, network in CASES if not is_code(network)]


class Played:
    """In place of a CUDA graph: it does again what was recorded, on the tensors with which it was recorded."""

    def replay(self) -> None:
        self.again()

    def again(self) -> None:
        raise AssertionError("nothing was recorded")


@pytest.fixture
def graphs(monkeypatch: pytest.MonkeyPatch) -> list[Played]:
    """All that are made."""
    made: list[Played] = []

    def graph() -> Played:
        made.append(Played())
        return made[-1]

    @contextmanager
    def recording(*_: Any, **__: Any) -> Iterator[None]:
        yield

    monkeypatch.setattr(torch.cuda, "CUDAGraph", graph)
    monkeypatch.setattr(torch.cuda, "graph", recording)
    return made


def test_a_recorded_function_is_fed_through_the_tensors_of_its_recording(graphs: list[Played]) -> None:
    seen: list[Mapping[str, Tensor]] = []

    def function(inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        seen.append(inputs)
        return {"sum": inputs["a"] + inputs["b"]}

    recorded = Captured(None)
    results = []
    for number in range(EAGER + 4):
        given = {"a": torch.full((2,), float(number)), "b": torch.tensor(10.0)}
        if number == EAGER:
            graphs[0].again = lambda: recorded.outputs["sum"].copy_(function(recorded.inputs)["sum"])  # pyright: ignore[reportAttributeAccessIssue]
        results.append(recorded(function, given))
        assert (seen[-1] is recorded.inputs) == (number >= EAGER)
    with pytest.raises(ValueError, match="recorded with"):
        recorded(function, {"a": torch.zeros(2)})
    assert gc.isenabled()
    assert len(seen) == EAGER + 1 + 4  # of which one is the recording
    assert [each["sum"].tolist() for each in results] == [[10.0 + number] * 2 for number in range(EAGER + 4)]


def test_our_own_families_are_recorded_on_a_gpu_and_those_of_others_are_not() -> None:
    row, gpu = FAMILIES["vae"], torch.device("cuda")
    assert captures(row, {"network": "conv"}, gpu)
    assert not captures(row, {"network": "conv"}, CPU)
    assert not captures(row, {"network": "package.module:function"}, gpu)
    assert not captures(row, {"network": "resnet"}, gpu)  # not tried yet
    assert not captures(replace(row), {"network": "conv"}, gpu)


class Passed(Captured):
    """Called as one that records, but never recorded."""

    def __init__(self, pool: Any) -> None:
        pass

    def __call__(self, function: captured.Function, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        return function(inputs)


def context_of(family: str, members: list[Member], network: str, batch_size: int = 8) -> tuple[Any, Context]:
    dataset = DATASET if network in ("conv", "resnet") else TINY
    return dataset, make_context(FAMILIES[family], members, dataset, batch_size=batch_size, steps=20)


SCHEDULES: list[dict[str, float | int | str]] = [
    {"schedule": "cosine", "rate_warmup": 3},
    {"schedule": "plateau", "learning_rate": 0.01},  # with a batch of 81 an epoch ends every third step
    {"beta_warmup": 4, "clip": 1.0},
]


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("family", "network", "more"),
    [
        *((*case, {}) for case in OURS),
        *(("beta_vae", "dense", more) for more in SCHEDULES),
        ("vae", "dense_norm", {}),
        ("factor_vae", "dense_norm", {}),
    ],
)
def test_what_is_recorded_are_the_steps_of_a_stack(
    family: str, network: str, more: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    members = [replace(each, hyper={**each.hyper, **more}) for each in varied(family, network)]
    dataset, context = context_of(family, members, network, 81 if "schedule" in more else 8)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(population, "Captured", Passed)
    populations = []
    for recorded in (True, False):
        monkeypatch.setattr(population, "captures", lambda *_, recorded=recorded: recorded)
        made = make_population(
            FAMILIES[family], members, dataset, context, device=CPU, precision=torch.float64, stacked=True
        )
        for step in range(7 if more else 3):
            made.advance(step)
        populations.append(made)
    if more.get("schedule") == "plateau":
        assert {key for key in populations[0].captured if key[1]}  # pyright: ignore[reportAttributeAccessIssue]
    for index in range(len(members)):
        mine, theirs = (each.state(index) for each in populations)
        for name in theirs:
            torch.testing.assert_close(mine[name], theirs[name], rtol=1e-9, atol=1e-12, msg=name)


class OnOneDevice(TorchDispatchMode):
    """Refuses what a recording cannot hold: values that come from the CPU, or are asked for there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # noqa: ARG002
        kwargs = kwargs or {}
        tensors = [each for each in tree_leaves((args, kwargs)) if isinstance(each, Tensor)]
        kinds = {each.device.type for each in tensors}
        sent = kinds == {"cpu"} and torch.device(kwargs.get("device") or "cpu") == META
        mixed = len(kinds) > 1 and (any(each.dim() for each in tensors if each.device == CPU) or "copy" in str(func))
        outside = sent or mixed
        assert not outside, f"{func} takes {[(each.device.type, tuple(each.shape)) for each in tensors]}"
        return func(*args, **kwargs)


@pytest.mark.parametrize(("family", "network"), [*OURS, ("vae", "dense_norm"), ("vae", "resnet")])
def test_a_step_asks_for_nothing_outside_its_device(family: str, network: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a device without values, which PyTorch runs anywhere, and which refuses to tell one."""
    monkeypatch.setattr(torch, "autocast", lambda *_, **__: nullcontext())  # which that device lacks
    monkeypatch.setattr(strided, "in_products", lambda _: True)
    called: list[str] = []
    monkeypatch.setattr(products, "halved", lambda *given: called.append("halved") or halved(*given))
    members, row = varied(family, network), FAMILIES[family]
    dataset, context = context_of(family, members, network)
    stacked = make_population(row, members, dataset, context, device=META, stacked=True)
    assert isinstance(stacked, Stacked)
    moment = population._Moment(  # pyright: ignore[reportPrivateUsage]
        torch.zeros((), dtype=torch.int64, device=META),
        torch.ones((), dtype=torch.float64, device=META),
        stacked.hyper,
        torch.ones(len(members), dtype=torch.float64, device=META),
    )
    kept: dict[str, Tensor] = {}
    for move in row.optimizer_steps:
        batch = {**stacked.draws.batch(move, 0, 0, 0), **kept}
        with OnOneDevice():
            kept.update(stacked._move(move, batch, moment, ends=True)[1])  # pyright: ignore[reportPrivateUsage]
    assert bool(called) == (network == "conv")


def test_a_value_from_the_cpu_is_refused_by_that_test() -> None:
    for wrong in (lambda x: x + torch.eye(2).to(x), lambda x: x.copy_(torch.ones(2, 2)), lambda x: x.sum().item()):
        with pytest.raises((AssertionError, RuntimeError)), OnOneDevice():
            wrong(torch.empty(2, 2, device=META))


def test_one_member_is_stacked_where_steps_are_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    one = [member("vae", network="dense")]
    dataset, context = context_of("vae", one, "dense")
    assert not isinstance(make_population(FAMILIES["vae"], one, dataset, context, device=CPU), Stacked)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(population, "captures", lambda *_: True)
    assert isinstance(make_population(FAMILIES["vae"], one, dataset, context, device=CPU), Stacked)
    alone = make_population(FAMILIES["vae"], one, dataset, context, device=CPU, stacked=False)
    assert not isinstance(alone, Stacked)


def test_a_recorded_population_is_freed_when_nobody_holds_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once: the next one needs the memory of the device."""
    one = [member("vae", network="dense")]
    dataset, context = context_of("vae", one, "dense")
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(torch.cuda, "CUDAGraph", Played)
    monkeypatch.setattr(population, "captures", lambda *_: True)
    made = make_population(FAMILIES["vae"], one, dataset, context, device=CPU)
    made.advance(0)
    seen = weakref.ref(made)
    gc.disable()
    try:
        del made
        assert seen() is None
    finally:
        gc.enable()


def test_training_on_a_gpu_keeps_its_libraries_settings() -> None:
    """Deterministic kernels of cuDNN, not none of cuDNN; and TF32 as the user has it."""
    cudnn = torch.backends.cudnn
    before = cudnn.enabled, cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark
    with reproducible(CPU):
        assert (cudnn.enabled, cudnn.allow_tf32) == before[:2]
        assert (cudnn.deterministic, cudnn.benchmark) == (True, False)
    assert (cudnn.enabled, cudnn.allow_tf32, cudnn.deterministic, cudnn.benchmark) == before
