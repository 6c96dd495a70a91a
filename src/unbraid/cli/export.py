"""`unbraid export`: a trained model for other tools."""

from pathlib import Path
from typing import Annotated

import typer

from unbraid.cli._say import say
from unbraid.cli._trust import TrustCode


def export(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as `unbraid train` makes it.")],
    onnx: Annotated[Path, typer.Option(help="Write this .onnx file.")],
    part: Annotated[str, typer.Option(help="Part of the model: decoder or encoder.")] = "decoder",
    trust_code: TrustCode = None,
) -> None:
    """Write the decoder or the encoder of a run as ONNX.

    The decoder takes `codes` (n, n_codes) and gives `images` (n, channels, height, width). The encoder takes `images`,
    floats from 0 to 1, and gives `codes`, the posterior means, and `log_variances`.

    Examples:

      unbraid export runs/3f6c0f0a8d1e2b47 --onnx decoder.onnx

      unbraid export runs/3f6c0f0a8d1e2b47 --onnx encoder.onnx --part encoder
    """
    if onnx.suffix != ".onnx":
        raise ValueError(f"--onnx {onnx}: the name must end in .onnx")
    if not onnx.parent.is_dir():
        raise FileNotFoundError(f"--onnx {onnx}: the folder {onnx.parent} does not exist")
    if part not in ("decoder", "encoder"):
        raise ValueError(f"--part must be decoder or encoder; got {part!r}")
    from unbraid._utils.optional import require

    require("torch", "train", "reading a run")
    from unbraid.runs.onnx import export_onnx
    from unbraid.runs.run import load_run

    difference = export_onnx(load_run(run, device="cpu", trust=trust_code or ()), onnx, part=part)
    checked = "not checked: onnxruntime is not installed"
    if difference is not None:
        checked = f"onnxruntime differs from PyTorch by at most {difference:.1g}"
    say(f"wrote {onnx} ({checked})")
