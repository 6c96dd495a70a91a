"""Encoders and decoders of runs as ONNX, for tools other than PyTorch."""

import json
import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr
from dataclasses import replace
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.optional import require
from unbraid.base.suggest import one_line
from unbraid.base.version import VERSION
from unbraid.files.whole_files import atomic_write
from unbraid.runs.run import Run
from unbraid.runs.run_export import own_images_path

__all__ = ["export_onnx"]

Part = Literal["decoder", "encoder"]
TOLERANCE = 1e-3  # of any output
# The first logs missing optional packages, the second parts of a network that it cannot analyse.
NOISY = ("torch.onnx._internal.exporter._registration", "torch.fx.experimental.symbolic_shapes")


def export_onnx(run: Run, path: str | Path, *, part: Part = "decoder") -> float | None:
    """Write the decoder or the encoder of a run as one .onnx file, whole or not at all.

    Decoder: `codes` (n, n_codes) to `images` (n, channels, height, width). Encoder: `images`, floats from 0 to 1, to
    `codes`, the posterior means, and `log_variances` where the family has a posterior. n is free. Numbers are in single
    precision, also of a run trained in double. The metadata hold the run's config, without the path of images of your
    own; no path of this machine is in the file.

    Args:
        run: on any device.
        path: ends in .onnx.
        part: which of the two.

    Returns:
        The largest difference between outputs of onnxruntime and PyTorch for random inputs; None if onnxruntime is not
        installed.

    Raises:
        ImportError: onnx or onnxscript is not installed.
        FileNotFoundError: the folder of `path` does not exist.
        ValueError: the path ends otherwise, the network cannot be written as ONNX, or onnxruntime cannot run it or
            returns other values.
    """
    path = Path(path)
    if path.suffix != ".onnx":
        raise ValueError(f"{path}: the name must end in .onnx")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"{path}: the folder {path.parent} does not exist")
    for package in ("onnx", "onnxscript"):
        require(package, "onnx", "writing ONNX")
    import onnx

    with torch.device("cpu"):  # whatever the user's default device is
        network, example, inputs, outputs = _network(_in_single_precision(run.on_cpu()), part)
        try:
            program = _exported(network, example, inputs, outputs)
        except torch.onnx.errors.OnnxExporterError as error:
            raise ValueError(f"{run.path}: its {part} cannot be written as ONNX ({_reason(error)})") from error
    proto = program.model_proto
    for node in (node for body in (proto.graph, *proto.functions) for node in body.node):
        del node.metadata_props[:]  # paths of source code and other information for developers of the exporter
    onnx.helper.set_model_props(proto, {"unbraid": VERSION, "config": json.dumps(_to_be_shared(run))})
    with atomic_write(path) as temporary:
        onnx.save(proto, temporary)
        try:
            difference = _difference(temporary, network, example)
        except Exception as error:  # those of onnxruntime have no base class of their own
            raise ValueError(f"{run.path}: onnxruntime cannot run its {part} ({_reason(error)})") from error
        if difference is not None and not difference <= TOLERANCE:
            raise ValueError(f"{run.path}: onnxruntime differs from PyTorch by {difference:.2g} for its {part}")
    return difference


def _to_be_shared(run: Run) -> dict[str, Any]:
    """The config of a run, without the dataset's name if that is a path."""
    dataset = run.config["dataset"]
    name = None if own_images_path(run) else dataset["name"]
    return {**run.config, "dataset": {**dataset, "name": name}}


def _in_single_precision(run: Run) -> Run:
    """The run in single precision: onnxruntime has no convolutions in double precision."""
    weights = run.modules.state_dict()
    if all(value.dtype != torch.float64 for value in weights.values()):
        return run
    rounded = {name: value.float() if value.is_floating_point() else value for name, value in weights.items()}
    return replace(run).with_weights(rounded)


class _Function(nn.Module):
    """A function of tensors as a module, so that its networks' weights are found."""

    def __init__(self, networks: nn.Module, function: Callable[[Tensor], Any]) -> None:
        super().__init__()
        self.networks, self.function = networks, function

    def forward(self, values: Tensor) -> Any:
        return self.function(values)


def _network(run: Run, part: Part) -> tuple[nn.Module, Tensor, list[str], list[str]]:
    generator = torch.Generator().manual_seed(0)
    if part == "decoder":
        codes = torch.randn(2, run.n_codes, generator=generator)
        return _Function(run.modules, run.decoder()).eval(), codes, ["codes"], ["images"]
    shape = run.config["dataset"]["image_shape"]
    inner = (shape[2], *shape[:2]) if len(shape) == 3 else tuple(shape)
    images, encode = torch.rand(2, *inner, generator=generator), run.encoder()
    with torch.no_grad():
        posterior = encode(images)[1] is not None
    if posterior:
        return _Function(run.modules, encode).eval(), images, ["images"], ["codes", "log_variances"]
    return _Function(run.modules, lambda batch: encode(batch)[0]).eval(), images, ["images"], ["codes"]


def _exported(network: nn.Module, example: Tensor, inputs: list[str], outputs: list[str]) -> Any:
    loggers = {name: logging.getLogger(name) for name in NOISY}
    before = {name: logger.level for name, logger in loggers.items()}
    for logger in loggers.values():
        logger.setLevel(logging.ERROR)
    try:
        # PyTorch warns of its own deprecations, and prints the whole graph of what it cannot export.
        with warnings.catch_warnings(), torch.no_grad(), redirect_stderr(StringIO()):
            warnings.simplefilter("ignore")
            return torch.onnx.export(
                network, (example,), dynamo=True, input_names=inputs, output_names=outputs,
                dynamic_shapes=({0: torch.export.Dim("n")},), verbose=False,
            )  # fmt: skip
    finally:
        for name, logger in loggers.items():
            logger.setLevel(before[name])


def _reason(error: BaseException) -> str:
    """The first line of the original error; the exporter adds advice for its developers."""
    while error.__cause__ is not None:
        error = error.__cause__
    return one_line(str(error).strip().partition("\n")[0], 200) or type(error).__name__


def _difference(path: Path, network: nn.Module, example: Tensor) -> float | None:
    """The largest difference on three rows; the example has two, so that a fixed number of rows would fail."""
    if find_spec("onnxruntime") is None:
        return None
    import onnxruntime

    rows = torch.cat([example, example[:1] / 2])
    session = onnxruntime.InferenceSession(path)
    outputs = session.run(None, {session.get_inputs()[0].name: rows.numpy()})
    with torch.no_grad():
        expected = network(rows)
    pairs = zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True)
    return max(float(np.abs(one - other.numpy()).max()) for one, other in pairs)
