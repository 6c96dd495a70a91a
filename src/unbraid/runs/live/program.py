"""A decoder as a list of steps for templates/decoder.js, which PyTorch can replay."""

import base64
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

UNARY: Mapping[str, Callable[..., Tensor]] = {
    "relu": torch.relu,
    "leaky_relu": lambda x, slope: functional.leaky_relu(x, slope),
    "sigmoid": torch.sigmoid,
    "tanh": torch.tanh,
    "exp": torch.exp,
    "sin": torch.sin,
    "cos": torch.cos,
}
LARGEST_HALF = float(np.finfo(np.float16).max)


@dataclass(frozen=True, eq=False)
class Operation:
    """One operation on one image's values; `shape` is that of its output without the batch."""

    op: str
    inputs: tuple[int, ...]  # 0 is the code, k the output of step k - 1
    constants: tuple[int, ...]
    shape: tuple[int, ...]
    settings: Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class Program:
    """The operations of a decoder on a code (n_codes,); the last step's output is (channels, height, width)."""

    n_codes: int
    steps: tuple[Operation, ...]
    constants: tuple[Tensor, ...]  # weights, single precision, and indices

    @property
    def multiplications(self) -> int:
        """The number of multiplications of weights with values, for one image."""
        return sum(self._multiplications(step) for step in self.steps)

    def replay(self, codes: Tensor) -> Tensor:
        """Codes (n, n_codes) -> (n, channels, height, width), by PyTorch."""
        values = [codes]
        for step in self.steps:
            inputs = [values[k] for k in step.inputs]
            constants = [self.constants[k] for k in step.constants]
            values.append(_REPLAYS[step.op](step, inputs, constants).reshape(len(codes), *step.shape))
        return values[-1]

    def to_dict(self) -> dict[str, Any]:
        """As plain values for JSON: constants as deflated bytes in base64, matrices and kernels in half precision."""
        shapes = [(self.n_codes,), *(step.shape for step in self.steps)]
        steps = [
            {
                "op": step.op,
                "inputs": step.inputs,
                "constants": step.constants,
                "length": math.prod(step.shape),
                **step.settings,
                **_sizes(step, [shapes[k] for k in step.inputs]),
            }
            for step in self.steps
        ]
        return {"n_codes": self.n_codes, "steps": steps, "constants": _packed(self.constants)}

    def _multiplications(self, step: Operation) -> int:
        if step.op not in {"linear", "conv", "conv_transpose"}:
            return 0
        weight = self.constants[step.constants[0]]
        # Every weight of a kernel is used at every pixel of its output, or of its input for transposed convolutions.
        source = self.steps[step.inputs[0] - 1].shape if step.op == "conv_transpose" else step.shape
        return weight.numel() * (math.prod(source[1:]) if len(source) == 3 else 1)


def _sizes(step: Operation, inputs: Sequence[tuple[int, ...]]) -> dict[str, Any]:
    if step.op == "linear":
        return {"rows": step.shape[-1]}
    if step.op in {"conv", "conv_transpose", "resize"}:
        return {"shape": inputs[0], "out": step.shape}
    return {"lengths": [math.prod(shape) for shape in inputs]} if step.op == "take" else {}


def _is_half(constant: Tensor) -> bool:
    return constant.is_floating_point() and constant.dim() > 1 and bool(constant.abs().max() <= LARGEST_HALF)


def _packed(constants: Sequence[Tensor]) -> dict[str, Any]:
    described, planes = [], []
    for constant in constants:
        kind = "index" if not constant.is_floating_point() else "half" if _is_half(constant) else "single"
        numbers = constant.cpu().numpy().astype({"index": "<i4", "half": "<f2", "single": "<f4"}[kind]).reshape(-1)
        described.append({"kind": kind, "length": numbers.size})
        # Bytes of the same significance together: signs and exponents are similar and compress well, fractions do not.
        planes.append(numbers.view(np.uint8).reshape(numbers.size, numbers.itemsize).T.tobytes())
    return {"arrays": described, "data": base64.b64encode(zlib.compress(b"".join(planes))).decode()}


def _take(step: Operation, inputs: Sequence[Tensor], constants: Sequence[Tensor]) -> Tensor:  # noqa: ARG001
    return torch.cat([value.flatten(1) for value in inputs], 1)[:, constants[0]]


def _affine(step: Operation, inputs: Sequence[Tensor], constants: Sequence[Tensor]) -> Tensor:
    scale, shift = (constant.repeat_interleave(step.settings["plane"]) for constant in constants)
    flat = inputs[0].flatten(1)
    repeats = flat.shape[1] // len(scale)
    return flat * scale.repeat(repeats) + shift.repeat(repeats)


def _convolve(step: Operation, inputs: Sequence[Tensor], constants: Sequence[Tensor]) -> Tensor:
    bias = constants[1] if len(constants) > 1 else None
    return functional.conv2d(inputs[0], constants[0], bias, step.settings["stride"], step.settings["padding"])


def _spread(step: Operation, inputs: Sequence[Tensor], constants: Sequence[Tensor]) -> Tensor:
    bias, how = constants[1] if len(constants) > 1 else None, step.settings
    return functional.conv_transpose2d(
        inputs[0], constants[0], bias, how["stride"], how["padding"], how["output_padding"]
    )


_REPLAYS: Mapping[str, Callable[[Operation, Sequence[Tensor], Sequence[Tensor]], Tensor]] = {
    "linear": lambda _, inputs, constants: functional.linear(inputs[0], *constants),
    "conv": _convolve,
    "conv_transpose": _spread,
    "affine": _affine,
    "take": _take,
    "reshape": lambda _, inputs, __: inputs[0],
    "resize": lambda _, inputs, constants: inputs[0][:, :, constants[0]][..., constants[1]],
    "add": lambda _, inputs, __: inputs[0] + inputs[1],
    "multiply": lambda _, inputs, __: inputs[0] * inputs[1],
    "unary": lambda step, inputs, _: UNARY[step.settings["name"]](
        inputs[0], *(value for name, value in step.settings.items() if name != "name")
    ),
}
