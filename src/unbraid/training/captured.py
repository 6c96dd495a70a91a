"""Steps recorded as CUDA graphs: hundreds of small kernels are launched at once instead of one after the other."""

import gc
import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from unbraid.families.family import Family, Settings
from unbraid.families.family_table import FAMILIES

Function: TypeAlias = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]

EAGER = 3  # calls before the recording: libraries initialise themselves at first calls, which cannot be recorded
NETWORKS = ("conv", "dense")  # networks for which recorded steps were compared with plain ones on a real GPU

_recording = threading.Lock()  # a process can record one graph at a time


def captures(family: Family, settings: Settings, device: torch.device) -> bool:
    """Whether steps can be recorded: only for our own families and networks, which never copy a value from the GPU."""
    ours = any(family is row for row in FAMILIES.values()) and settings.get("network") in NETWORKS
    return device.type == "cuda" and ours


class Captured:
    """A function of tensors, recorded at its first calls and replayed from then on: the same kernels, and bits.

    Its side effects must be in place. All that differs between calls is in its inputs, with constant names, shapes and
    dtypes; numbers are 0-d tensors. The function is passed with every call, not stored, to avoid a reference cycle.
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
            # Garbage collection may free memory of another graph, which would break the recording.
            gc.collect()
            gc.disable()
            try:
                # Other threads may keep using their GPUs.
                with torch.cuda.graph(self.graph, pool=self.pool, capture_error_mode="thread_local"):
                    self.outputs = function(self.inputs)
            finally:
                if collects:
                    gc.enable()


def _copies(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Copies with the same memory layout at every call."""
    return {name: value.clone() for name, value in tensors.items()}
