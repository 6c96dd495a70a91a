"""Steps recorded as CUDA graphs: a GPU is given their hundreds of small kernels at once, not one after the other."""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import torch
from torch import Tensor

from unbraid.families.base import Family, Settings
from unbraid.families.table import FAMILIES
from unbraid.storage.trust import is_code

Function: TypeAlias = Callable[[Mapping[str, Tensor]], dict[str, Tensor]]

EAGER = 3  # calls before the recording: what a library makes ready at its first call cannot be recorded


def captures(family: Family, settings: Settings, device: torch.device) -> bool:
    """Whether steps can be recorded: those of our own families and networks, which never ask a GPU for a value."""
    ours = any(family is each for each in FAMILIES.values()) and not any(map(is_code, map(str, settings.values())))
    return device.type == "cuda" and ours


class Captured:
    """A function of tensors, recorded at its first calls and replayed from then on: the same kernels, and bits.

    What it changes besides, it changes in place. All that differs between calls is in its inputs, whose shapes and
    dtypes stay; numbers among them are 0-d tensors.
    """

    def __init__(self, function: Function, pool: Any) -> None:
        """With the memory `pool` of `torch.cuda.graph_pool_handle`, shared by functions that are called in turn."""
        self.function, self.pool, self.calls = function, pool, 0
        self.graph = torch.cuda.CUDAGraph()
        self.inputs: dict[str, Tensor] = {}
        self.outputs: dict[str, Tensor] = {}

    def __call__(self, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
        self.calls += 1
        if self.calls <= EAGER:
            return self.function(inputs)
        if not self.inputs:
            self._record(inputs)
        for name, value in inputs.items():
            self.inputs[name].copy_(value)
        self.graph.replay()
        return {name: value.clone() for name, value in self.outputs.items()}

    def _record(self, inputs: Mapping[str, Tensor]) -> None:
        self.inputs = {name: value.clone() for name, value in inputs.items()}
        # Other threads may go on with a GPU of theirs.
        with torch.cuda.graph(self.graph, pool=self.pool, capture_error_mode="thread_local"):
            self.outputs = self.function(self.inputs)
