"""Record the operations of a decoder on one code as a `Program`."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from unbraid.base.errors import UnbraidError
from unbraid.runs.live.program import UNARY, Operation, Program

TOLERANCE = 1e-4  # between images of the program and of the model
PROBE = 1024.0  # far from 0, so that a scale is precise next to a shift


class NotTraced(UnbraidError, ValueError):
    """The decoder uses operations that a page does not support."""


def traced(decode: Callable[[Tensor], Tensor], n_codes: int) -> Program:
    """The operations of `decode` from codes (1, n_codes) to an image (1, channels, height, width).

    Values that do not depend on the codes become constants of the program.

    Raises:
        NotTraced: an unsupported operation, or control flow that depends on the values of the codes.
    """
    codes = torch.randn(3, n_codes, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        recorder = _Recorder(codes[:1].clone())
        with recorder:
            image = decode(recorder.code)
        program = recorder.program(image)
        expected = torch.cat([decode(code[None]) for code in codes]).float()
        # Of sums of large numbers, processors round the last digits differently.
        scale = max(1.0, float(expected.abs().max()))
        if not torch.allclose(program.replay(codes), expected, rtol=0, atol=TOLERANCE * scale):
            raise NotTraced("its steps do not repeat what it decodes, as when they depend on the values of a code")
    return program


class _Call(NamedTuple):
    name: str
    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any

    def again(self, replaced: Mapping[int, Tensor]) -> Any:
        """The result for other tensors in the place of those with these ids."""
        args, kwargs = tree_map(
            lambda value: replaced.get(id(value), value) if isinstance(value, Tensor) else value,
            (self.args, self.kwargs),
        )
        return self.function(*args, **kwargs)


class _Recorder(TorchDispatchMode):
    """Intercepts every operation; tensors that depend on the code are numbered."""

    def __init__(self, code: Tensor) -> None:
        super().__init__()
        self.code = code
        self.steps: list[Operation] = []
        self.constants: list[Tensor] = []
        self.numbers: dict[int, int] = {id(code): 0}
        self.alive: list[Any] = []  # keeps tensors alive, so that their ids stay unique

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        """Nothing here is compiled; the default would import the compiler, 75 MB and two seconds."""
        return False

    def __torch_dispatch__(
        self, function: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        self.alive.append((args, kwargs, result))
        if any(self.knows(value) for value in tree_leaves((args, kwargs))):
            name = function._schema.name.removeprefix("aten::").removesuffix("_")
            if name not in _RECORDED:
                raise NotTraced(f"it uses the operation {name}")
            _RECORDED[name](self, _Call(name, function, args, kwargs, result))
        return result

    def knows(self, value: Any) -> bool:
        return isinstance(value, Tensor) and id(value) in self.numbers

    def known(self, call: _Call) -> list[Tensor]:
        """The tensors of a call that depend on the code."""
        return [value for value in tree_leaves((call.args, call.kwargs)) if self.knows(value)]

    def add(
        self, op: str, inputs: Sequence[Tensor], output: Tensor, *constants: Tensor | None, **settings: Any
    ) -> None:
        places = []
        for constant in constants:
            if constant is not None:
                places.append(len(self.constants))
                self.constants.append(
                    constant.detach().to(torch.float32 if constant.is_floating_point() else None).clone()
                )
        numbers = tuple(self.numbers[id(tensor)] for tensor in inputs)
        self.steps.append(Operation(op, numbers, tuple(places), tuple(output.shape[1:]), settings))
        self.numbers[id(output)] = len(self.steps)

    def program(self, image: Tensor) -> Program:
        if not self.knows(image) or image.dim() != 4:
            raise NotTraced("it makes no images out of codes")
        if self.numbers[id(image)] != len(self.steps):
            self.add("reshape", [image], image)
        return Program(self.code.shape[1], tuple(self.steps), tuple(self.constants))


def _refuse(call: _Call) -> NotTraced:
    return NotTraced(f"it uses the operation {call.name} in a way that a page has not")


def _linear(recorder: _Recorder, call: _Call) -> None:
    """addmm(bias, values, transposed weight), or mm and linear without a bias."""
    if call.name == "linear":
        values, weight, *rest = call.args
        bias = rest[0] if rest else None
    else:
        bias = call.args[0] if call.name == "addmm" else None
        values, weight = call.args[-2], call.args[-1].t()
    if recorder.known(call) != [values] or call.kwargs:
        raise _refuse(call)
    recorder.add("linear", [values], call.result, weight, bias)


def _convolution(recorder: _Recorder, call: _Call) -> None:
    values, weight, bias, stride, padding, dilation, transposed, output_padding, groups = call.args
    if recorder.known(call) != [values] or weight.dim() != 4 or set(dilation) != {1} or groups != 1:
        raise _refuse(call)
    how = {"kernel": list(weight.shape[2:]), "stride": list(stride), "padding": list(padding)}
    how |= {"output_padding": list(output_padding)} if transposed else {}
    recorder.add("conv_transpose" if transposed else "conv", [values], call.result, weight, bias, **how)


def _unary(recorder: _Recorder, call: _Call) -> None:
    how = {"slope": float((*call.args, 0.01)[1])} if call.name == "leaky_relu" else {}
    recorder.add("unary", call.args[:1], call.result, name=call.name, **how)


def _elementwise(recorder: _Recorder, call: _Call) -> None:
    """An operation on two values; or a scale and shift of one value, determined from the results for 0 and PROBE."""
    inputs = recorder.known(call)
    output = call.result[0] if isinstance(call.result, tuple) else call.result
    if len(inputs) == 2:
        op = {"add": "add", "mul": "multiply"}.get(call.name)
        if op is None or inputs[0].shape != inputs[1].shape or call.kwargs:
            raise _refuse(call)
        recorder.add(op, inputs, output)
        return
    if len(inputs) != 1 or inputs[0].shape != output.shape:
        raise _refuse(call)
    value = inputs[0]
    at = [call.again({id(value): torch.full_like(value, probe)}) for probe in (0.0, PROBE)]
    shift, far = (result[0] if isinstance(result, tuple) else result for result in at)
    scale = (far - shift) / PROBE
    plane = _plane(scale, shift)
    recorder.add("affine", [value], output, *(result.flatten()[::plane] for result in (scale, shift)), plane=plane)


def _plane(*arrays: Tensor) -> int:
    """The number of neighbours with equal values in all arrays (1, channels, ...): all, those of a channel, or 1."""
    channels = arrays[0].shape[1]
    for rows in (1, channels):
        flat = [array.reshape(rows, -1) for array in arrays]
        if all((array == array[:, :1]).all() for array in flat):
            return flat[0].shape[1]
    return 1


def _moved(recorder: _Recorder, call: _Call) -> None:
    """Operations that rearrange values: applied to 0, 1, 2, ... they give the indices."""
    inputs = list({id(tensor): tensor for tensor in recorder.known(call)}.values())
    tensors = [tensor for tensor in tree_leaves((call.args, call.kwargs)) if isinstance(tensor, Tensor)]
    if any(tensor.is_floating_point() and not recorder.knows(tensor) for tensor in tensors):
        raise _refuse(call)
    starts = torch.tensor([0, *(tensor.numel() for tensor in inputs)]).cumsum(0).tolist()
    places = {
        id(tensor): torch.arange(start, start + tensor.numel(), dtype=torch.float64).view(tensor.shape)
        for tensor, start in zip(inputs, starts, strict=False)
    }
    moved = call.again(places)
    for output, origin in zip(tree_leaves(call.result), tree_leaves(moved), strict=True):
        indices = origin.flatten().long()
        if len(inputs) == 1 and torch.equal(indices, torch.arange(inputs[0].numel())):
            recorder.add("reshape", inputs, output)
        else:
            recorder.add("take", inputs, output, indices)


def _resized(recorder: _Recorder, call: _Call) -> None:
    value = call.args[0]
    height, width = value.shape[2:]
    places = torch.arange(height * width, dtype=torch.float64).view(1, 1, height, width).expand(value.shape)
    origins = call.again({id(value): places})[0, 0].long()
    recorder.add("resize", [value], call.result, origins[:, 0] // width, origins[0] % width)


_RECORDED: Mapping[str, Callable[[_Recorder, _Call], None]] = MappingProxyType(
    {
        **dict.fromkeys(("addmm", "mm", "linear"), _linear),
        "convolution": _convolution,
        "upsample_nearest2d": _resized,
        **dict.fromkeys(UNARY, _unary),
        **dict.fromkeys(("add", "sub", "rsub", "mul", "div", "neg"), _elementwise),
        **dict.fromkeys(("native_batch_norm", "_native_batch_norm_legit_no_training"), _elementwise),
        **dict.fromkeys(
            (
                "view", "_unsafe_view", "reshape", "_reshape_alias", "unsqueeze", "squeeze", "permute", "transpose",
                "t", "slice", "select", "expand", "clone", "alias", "detach", "_to_copy", "cat", "stack", "split",
                "split_with_sizes", "unbind", "index_select", "flip", "roll",
            ),
            _moved,
        ),
    }
)  # fmt: skip
