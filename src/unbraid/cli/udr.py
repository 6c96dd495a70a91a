"""`unbraid udr`: rank models without labels."""

import json as json_format
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from unbraid.cli._progress import stage_progress
from unbraid.representation import Representation


def udr(
    files: Annotated[list[Path], typer.Argument(help="Two or more representation files of the same samples.")],
    similarity: Annotated[Literal["lasso", "spearman"], typer.Option(help="How two latents are compared.")] = "lasso",
    kl_threshold: Annotated[
        float, typer.Option(help="A latent is informative when its mean KL, in nats, is above this.")
    ] = 0.01,
    n_comparisons: Annotated[
        int | None, typer.Option(help="Other models each one is compared with; default all.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw of comparisons.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write scores and pairs to this .json file.")] = None,
) -> None:
    """Rank models by Unsupervised Disentanglement Ranking: the more alike to its siblings, the better.

    The files must hold codes of the same samples in the same order. Where every file has log_variances, latents
    that carry no information (KL to the standard normal prior) are left out; otherwise all count as informative.

    Examples:

      unbraid udr seed0.npz seed1.npz seed2.npz

      unbraid udr runs/*.npz --similarity spearman --n-comparisons 5 --json udr.json
    """
    if len(files) < 2:
        raise ValueError(f"udr compares models with each other; give two or more files (got {len(files)})")
    if json is not None and not json.parent.is_dir():
        raise FileNotFoundError(f"--json {json}: the folder {json.parent} does not exist")
    from unbraid._files import written_whole
    from unbraid.metrics import udr as rank
    from unbraid.metrics.udr import heavy_note

    models = [Representation.load(path) for path in files]
    for path, model in zip(files, models, strict=True):
        if len(model) != len(models[0]) or not np.array_equal(model.factors, models[0].factors):
            raise ValueError(f"{path}: its samples are not those of {files[0]} (same rows, same factors, same order)")
    kl = [each for model in models if (each := model.mean_kl()) is not None]
    complete = len(kl) == len(models)
    with stage_progress("comparing models") as progress:
        result = rank(
            [model.codes for model in models],
            kl=kl if complete else None,
            similarity=similarity,
            kl_threshold=kl_threshold,
            n_comparisons=n_comparisons,
            seed=seed,
            progress=partial(progress, "comparing models"),
        )
    notes = heavy_note([str(path) for path in files], result.largest)
    order = np.argsort(-result.scores, kind="stable")
    if json is not None:
        content = {
            "similarity": similarity,
            "kl_threshold": kl_threshold if complete else None,
            "scores": {str(path): float(value) for path, value in zip(files, result.scores, strict=True)},
            "notes": list(notes),
            "pairs": [[None if np.isnan(v) else float(v) for v in row] for row in result.pairs],
        }
        with written_whole(json) as temporary:
            temporary.write_text(json_format.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column("rank", justify="right")
    table.add_column("UDR", justify="right")
    table.add_column("informative latents", justify="right")
    table.add_column("model")
    for rank_, model in enumerate(order, start=1):
        informative = kl[model] > kl_threshold if complete else np.ones(models[model].codes.shape[1], bool)
        table.add_row(str(rank_), f"{result.scores[model]:.3f}", str(int(informative.sum())), str(files[model]))
    Console().print(table)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if not complete:
        typer.echo("not every file has log_variances: all latents count as informative", err=True)
