"""Threads that train at once: torch has one generator and one number of threads for all of them."""

import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from unbraid.base.device import reproducible
from unbraid.families.building import build_member, weights_of
from unbraid.families.family_table import FAMILIES
from unbraid.training.draws import seeded

CPU = torch.device("cpu")


def _drawn() -> list[float]:
    """Numbers of torch's own generator, with time for another thread between them."""
    first = torch.rand(2)
    time.sleep(0.05)
    return [*first.tolist(), *torch.rand(2).tolist()]


def _built(seed: int) -> list[float]:
    found = []

    def build(*_: Any) -> nn.ModuleDict:
        found.extend(_drawn())
        return nn.ModuleDict()

    build_member(replace(FAMILIES["vae"], build=build), (1, 8, 8), {}, seed)
    return found


def _stepped(seed: int) -> list[float]:
    with seeded(CPU, seed):
        return _drawn()


@pytest.mark.parametrize(("first", "second"), [(_built, _built), (_stepped, _stepped), (_built, _stepped)])
def test_each_thread_draws_what_it_draws_alone(
    first: Callable[[int], list[float]], second: Callable[[int], list[float]]
) -> None:
    expected, both = [first(1), second(2)], threading.Barrier(2)

    def draw(function: Callable[[int], list[float]], seed: int) -> list[float]:
        both.wait(30)
        return function(seed)

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(draw, (first, second), (1, 2))) == expected


def test_threads_ask_for_networks_of_more_kinds_than_are_kept() -> None:
    """A page of a study is asked for by several readers at once."""
    before, barrier = sys.getswitchinterval(), threading.Barrier(4)
    family = replace(FAMILIES["vae"], build=lambda _, settings: nn.ModuleDict({"layer": nn.Linear(1, settings["n"])}))
    family.build.__module__ = "unbraid"  # as ours, which are kept

    def ask(first: int) -> list[tuple[int, ...]]:
        barrier.wait(30)
        sizes = (1 + (7 * number + first) % 12 for number in range(150))
        return [tuple(weights_of(family, (1,), {"n": size}, 0)["layer.bias"].shape) for size in sizes]

    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(ask, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert found == [[(1 + (7 * number + first) % 12,) for number in range(150)] for first in range(4)]


def test_who_ends_first_changes_nothing_for_the_other() -> None:
    """The number of threads that a new thread begins with is that of the process."""

    def threads() -> int:
        with ThreadPoolExecutor(1) as new:
            return new.submit(torch.get_num_threads).result()

    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        first, second = reproducible(CPU), reproducible(CPU)
        for block in (first, second):
            block.__enter__()
        first.__exit__(None, None, None)
        assert (threads(), torch.backends.cudnn.deterministic) == (1, True)
        second.__exit__(None, None, None)
        assert (threads(), torch.backends.cudnn.deterministic) == (3, False)
    finally:
        torch.set_num_threads(before)
