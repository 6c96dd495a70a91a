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


def udr(
    files: Annotated[list[Path], typer.Argument(help="Two or more representation files of the same samples.")],
    similarity: Annotated[Literal["lasso", "spearman"], typer.Option(help="How two latents are compared.")] = "lasso",
    alpha: Annotated[
        str, typer.Option(help='Penalty of the lasso; "cv": by cross-validation for each two models, as the paper.')
    ] = "0.1",
    informative: Annotated[
        Literal["signal", "kl"],
        typer.Option(help="Which latents count: those that tell of their sample, or, as the paper, those with a KL."),
    ] = "signal",
    kl_threshold: Annotated[
        float, typer.Option(help="A latent counts when its signal, or its mean KL, is above this, in nats.")
    ] = 0.01,
    n_comparisons: Annotated[
        int | None, typer.Option(help="Other models each one is compared with; default all.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the draw of comparisons.")] = 0,
    json: Annotated[Path | None, typer.Option(help="Write scores and pairs to this .json file.")] = None,
) -> None:
    """Rank models by Unsupervised Disentanglement Ranking: by agreement between models.

    The files must hold codes of the same samples in the same order. Latents that tell nothing of their sample are left
    out; of a file without log_variances, all count as informative.

    Examples:

      unbraid udr seed0.npz seed1.npz seed2.npz

      unbraid udr runs/*.npz --similarity spearman --n-comparisons 5 --json udr.json

      unbraid udr runs/*.npz --alpha cv --informative kl
    """
    if len(files) < 2:
        raise ValueError(f"udr compares models with each other; give two or more files (got {len(files)})")
    if json is not None and not json.parent.is_dir():
        raise FileNotFoundError(f"--json {json}: the folder {json.parent} does not exist")
    from unbraid._files import atomic_write
    from unbraid.ranking import rank

    with stage_progress("comparing models") as progress:
        ranking = rank(
            files,
            similarity=similarity,
            alpha=penalty(alpha),
            informative=informative,
            kl_threshold=kl_threshold,
            n_comparisons=n_comparisons,
            seed=seed,
            progress=partial(progress, "comparing models"),
        )
    for path, reason in ranking.left_out.items():
        raise ValueError(f"{path}: {reason}")
    if json is not None:
        content = {
            "similarity": similarity,
            "alpha": ranking.options.alpha,
            "informative": informative,
            "kl_threshold": kl_threshold,
            "best": ranking.best,
            "scores": {run: float(value) for run, value in zip(ranking.runs, ranking.scores, strict=True)},
            "notes": list(ranking.notes),
            "pairs": [[None if np.isnan(v) else float(v) for v in row] for row in ranking.pairs],
        }
        with atomic_write(json) as temporary:
            temporary.write_text(json_format.dumps(content, indent=2, allow_nan=False) + "\n", encoding="utf-8")
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column("rank", justify="right")
    table.add_column("UDR", justify="right")
    table.add_column("informative latents", justify="right")
    table.add_column("model")
    for place, model in enumerate(ranking.best_first, start=1):
        table.add_row(str(place), f"{ranking.scores[model]:.3f}", str(ranking.informative[model]), ranking.runs[model])
    Console().print(table)
    for note in ranking.notes:
        typer.echo(f"note: {note}", err=True)


def penalty(text: str) -> float | Literal["cv"]:
    """What --alpha says."""
    if text == "cv":
        return "cv"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha must be a number or cv; got {text!r}") from None
