"""`unbraid export`: the results of a study, a trained model, or codes, for other tools and to be published."""

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Literal

import typer

from unbraid.base.optional import require
from unbraid.cli._options import TrustCode, check_output, refuse
from unbraid.cli._paths import Place, opened
from unbraid.cli.show_command import say


def export(
    path: Annotated[
        Path, typer.Argument(metavar="STUDY|RUN|FILE", help="Folder of a study or of a run, or a file of codes.")
    ],
    out: Annotated[
        Path,
        typer.Option(
            help="Output. For a study: .csv or .parquet file of its results. For a run: "
            ".onnx file of its model, or a new folder with a model card. For a run or a file of codes: .npz, "
            ".safetensors or .parquet file of codes and factors."
        ),
    ],
    part: Annotated[Literal["decoder", "encoder"], typer.Option(help="With .onnx: part of the model.")] = "decoder",
    name: Annotated[
        str | None, typer.Option(help="With a new folder: name of the model in its card; default that of the folder.")
    ] = None,
    chosen: Annotated[
        str | None, typer.Option(metavar="TEXT", help="With a new folder: how you chose the model, for its model card.")
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(
            help="With a new folder: .json file that `unbraid score RUN --json` wrote, in place of the scores it has."
        ),
    ] = None,
    trust_code: TrustCode = None,
) -> None:
    """Write results, codes or models for other tools or to publish.

    The results of a study are a table with one row per run.

    If the output has no suffix (a number such as in vae-0.1 is none), a run is copied into a new folder with a model
    card (README.md) that the Hugging Face Hub reads: how the model was trained and chosen, its scores, what each latent
    does, its limits, and how to load it.

    The decoder takes `codes` (n, n_codes) and gives `images` (n, channels, height, width). The encoder takes `images`,
    floats from 0 to 1, and gives `codes`, the posterior means, and `log_variances`.

    Examples:

      unbraid export study/ --out results.csv

      unbraid export runs/3f6c0f0a8d1e2b47 --out decoder.onnx

      unbraid export runs/3f6c0f0a8d1e2b47 --out encoder.onnx --part encoder

      unbraid export study/runs/3f6c0f0a8d1e2b47 --out my-model --chosen "The highest UDR of 36 models."

      unbraid export codes.csv --out codes.parquet
    """
    from unbraid.runs.foreign_models import check_not_fitted

    kind = Place.at(path).kind
    if kind != "study" and not path.exists():
        raise FileNotFoundError(f"{path}: no such file or folder")
    check_not_fitted(path)
    trust = trust_code or ()
    bare = not out.suffix or out.suffix[1:2].isdigit()  # "vae-0.1" is the name of a folder
    folder = bare and kind in ("run", "folder")
    if not folder and (name or chosen or scores):
        raise ValueError(
            f"--name, --chosen and --scores are for the model card of a run in a new folder, not for {out}"
        )
    refuse({} if out.suffix == ".onnx" or part == "decoder" else {"part": part}, "is for an .onnx file")
    if kind == "study":
        _results(path, check_output("--out", out, ".csv", ".parquet"), trust)
    elif folder:
        _folder(path, out, name, chosen, scores, trust)
    elif out.suffix == ".onnx":
        _model(path, check_output("--out", out, ".onnx"), part, trust)
    else:
        _codes(path, out)


def _results(path: Path, out: Path, trust: Collection[str]) -> None:
    from unbraid.files.table_formats import save_frame

    with opened(path, trust=trust) as study:
        save_frame(study.results(), out)
    say(f"wrote {out}")


def _model(run: Path, out: Path, part: Literal["decoder", "encoder"], trust: Collection[str]) -> None:
    require("torch", "train", "reading a run")
    from unbraid.runs.onnx import export_onnx
    from unbraid.runs.run import load_run

    difference = export_onnx(load_run(run, device="cpu", trust=trust), out, part=part)
    checked = "not checked: onnxruntime is not installed"
    if difference is not None:
        checked = f"onnxruntime differs from PyTorch by at most {difference:.1g}"
    say(f"wrote {out} ({checked})")


def _folder(
    run: Path, out: Path, name: str | None, chosen: str | None, scores: Path | None, trust: Collection[str]
) -> None:
    require("torch", "train", "reading a run")
    from unbraid.runs.run_export import export_folder, own_images_path
    from unbraid.studies.origin import origin_of

    standing = origin_of(run, trust=trust)
    how_chosen = "\n\n".join(filter(None, (chosen, standing))) or None
    exported = export_folder(run, out, name=name, chosen=how_chosen, scores=scores, trust=trust)
    say(f"wrote {out}; its model card is {out / 'README.md'}")
    if place := own_images_path(exported):
        say(f"note: {out / 'config.json'} names the place of your images, {place}")


def _codes(path: Path, out: Path) -> None:
    from unbraid.data import SUFFIXES
    from unbraid.runs.folder import find_codes, read_codes

    if out.suffix == ".csv":
        raise ValueError(
            f"--out {out}: .csv is for the results of a study, and {path} is not the folder of a study; codes are "
            f"written as {' or '.join(SUFFIXES)}"
        )
    check_output("--out", out, *SUFFIXES, *([".onnx"] if path.is_dir() else []))
    representation = read_codes(path)
    if out.exists() and out.samefile(find_codes(path)):
        raise ValueError(f"--out {out}: that is the file of the codes itself, which may hold more; name another")
    representation.save(out)
    say(f"wrote {out}")
    for note in representation.notes:
        say(f"note: {note}", err=True)
