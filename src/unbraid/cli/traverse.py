"""`unbraid traverse`: what each code of a trained model does."""

from pathlib import Path
from typing import Annotated

import typer

from unbraid.cli._say import say
from unbraid.cli._trust import TrustCode, TrustData, trusted


def traverse(
    run: Annotated[Path, typer.Argument(help="Folder of a run, as `unbraid train` makes it.")],
    out: Annotated[Path, typer.Option(help="Output .png file.")],
    dataset: Annotated[
        str | None, typer.Option(help="Dataset of the seed images; default that of the training.")
    ] = None,
    rows: Annotated[int, typer.Option(help="Number of seed images, one per row.")] = 3,
    steps: Annotated[int, typer.Option(help="Images along each code.")] = 9,
    scale: Annotated[float, typer.Option(help="Pixels of the picture per pixel of an image.")] = 1.0,
    seed: Annotated[int, typer.Option(help="Seed of the choice of images.")] = 0,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
) -> None:
    """Draw traversals: each code in turn goes through its range while the others stay.

    Codes are sorted by KL, highest first. Marked are informative ones, which tell more than 0.01 nats of their image,
    1/2 log(1 + Var mu / E sigma^2), as rankings count. The range goes from the 2 % to the 98 % quantile over the
    dataset. On top are the seed images and their reconstructions.

    Examples:

      unbraid traverse runs/3f6c0f0a8d1e2b47 --out grid.png

      unbraid traverse runs/3f6c0f0a8d1e2b47 --out grid.png --rows 5 --steps 11 --seed 3
    """
    if out.suffix != ".png":
        raise ValueError(f"--out {out}: the name must end in .png")
    if not out.parent.is_dir():
        raise FileNotFoundError(f"--out {out}: the folder {out.parent} does not exist")
    if not scale > 0:
        raise ValueError(f"--scale must be above 0; got {scale:g}")
    from unbraid.plots import plot_traversals
    from unbraid.runs.run import load_run
    from unbraid.runs.traversals import traverse as decode
    from unbraid.storage.files import atomic_write

    model = load_run(run, trust=trusted(trust_code, trust_data))
    found = decode(model, dataset, rows=rows, steps=steps, shown=2 * steps, seed=seed)
    picture = plot_traversals(
        found.images,
        found.originals,
        found.reconstructions,
        captions=found.captions,
        marked=None if found.informative is None else found.informative.tolist(),
        scale=scale,
        title=f"{model.config['family']}, seed {model.config['seed']}, {model.status['step']} steps"
        + ("" if found.kl is None else "; framed in blue: informative codes"),
    )
    with atomic_write(out) as temporary:
        picture.savefig(temporary, format="png", dpi=picture.dpi)
    say(f"wrote {out}")
