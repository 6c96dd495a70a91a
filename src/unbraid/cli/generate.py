"""`unbraid generate`: images from the prior of a trained model."""

from pathlib import Path
from typing import Annotated

import typer

from unbraid.cli._say import say
from unbraid.cli._trust import TrustCode

MOST = 10_000  # images of one picture


def generate(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as `unbraid train` makes it.")],
    out: Annotated[Path, typer.Option(help="Output .png file.")],
    n: Annotated[int, typer.Option("--n", help="Number of images.")] = 16,
    seed: Annotated[int, typer.Option(help="Seed of the samples; a larger --n begins with the same images.")] = 0,
    scale: Annotated[int, typer.Option(help="Pixels of the picture per pixel of an image.")] = 1,
    trust_code: TrustCode = None,
) -> None:
    """Draw images from a model's own prior, row by row in a sheet that is about square.

    Codes are standard normal and uniform on circles, or of whatever other prior the family has: a flow, the Gaussians
    of classes. Families without a prior, such as PCA, are refused.

    Examples:

      unbraid generate runs/3f6c0f0a8d1e2b47 --out new.png

      unbraid generate runs/3f6c0f0a8d1e2b47 --n 64 --seed 3 --scale 2 --out new.png
    """
    if out.suffix != ".png":
        raise ValueError(f"--out {out}: the name must end in .png")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"--out {out}: the folder {out.parent} does not exist")
    if not 1 <= n <= MOST:
        raise ValueError(f"--n must be 1 to {MOST}; got {n}")
    if not 1 <= scale <= 100:
        raise ValueError(f"--scale must be 1 to 100; got {scale}")
    from unbraid.report.images import sheet_of
    from unbraid.runs.run import load_run
    from unbraid.storage.files import atomic_write

    model = load_run(run, trust=trust_code or ())
    if len(model.config["dataset"]["image_shape"]) != 3:
        raise ValueError(f"{run} decodes rows of a table, no images")
    sheet = sheet_of(model.generate(n, seed=seed), scale)
    with atomic_write(out) as temporary:
        sheet.save(temporary, format="PNG")
    say(f"wrote {out}")
