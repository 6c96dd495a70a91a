"""Steps recorded as CUDA graphs: a GPU is given their hundreds of small kernels at once, not one after the other."""

import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from unbraid.families.family import Family, Settings
from unbraid.families.family_table import FAMILIES

Function: TypeAlias = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]

EAGER = 3  # calls before the recording: what a library makes ready at its first call cannot be recorded
NETWORKS = ("conv", "dense")  # whose steps were recorded on a real GPU and compared with the same steps one by one

_recording = threading.Lock()  # a process can record one graph at a time


def captures(family: Family, settings: Settings, device: torch.device) -> bool:
    """Whether steps can be recorded: those of our own families and networks, which never ask a GPU for a value."""
    ours = any(family is each for each in FAMILIES.values()) and settings.get("network") in NETWORKS
    return device.type == "cuda" and ours


class Captured:
    """A function of tensors, recorded at its first calls and replayed from then on: the same kernels, and bits.

    What it changes besides, it changes in place. All that differs between calls is in its inputs, whose names, shapes
    and dtypes stay; numbers among them are 0-d tensors. The function comes with every call, and is not kept: it may
    hold what holds this.
    """

    def __init__(self, pool: Any) -> None:
        """With the memory `pool` of `torch.cuda.graph_pool_handle`, shared by functions that are called in turn."""
        self.pool, self.calls = pool, 0
        self.graph = torch.cuda.CUDAGraph()
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}

    def __call__(self, function: Function, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        self.calls += 1
        if self.calls <= EAGER:
            return function(_copies(inputs))
        if not self.inputs:
            self._record(function, inputs)
        if inputs.keys() != self.inputs.keys():
            raise ValueError(f"recorded with {sorted(self.inputs)}; got {sorted(inputs)}")
        for name, value in inputs.items():
            self.inputs[name].copy_(value)
        self.graph.replay()
        return _copies(self.outputs)

    def _record(self, function: Function, inputs: Mapping[str, Tensor]) -> None:
        self.inputs = _copies(inputs)
        collects = gc.isenabled()
        with _recording:
            # What is collected while a graph is recorded may free memory of another, which ends the recording.
            gc.collect()
            gc.disable()
            try:
                # Other threads may go on with a GPU of theirs.
                with torch.cuda.graph(self.graph, pool=self.pool, capture_error_mode="thread_local"):
                    self.outputs = function(self.inputs)
            finally:
                if collects:
                    gc.enable()


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """That lie in memory in the same way at every call."""
    return {name: value.clone() for name, value in tensors.items()}
