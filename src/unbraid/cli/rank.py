"""`unbraid rank`: rank models without labels."""

import json as json_format
import re
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from rich.box import SIMPLE_HEAD
from rich.table import Table

from unbraid.cli._paths import check_outputs, expanded
from unbraid.cli._progress import stage_progress
from unbraid.cli._say import say
from unbraid.cli._terminal import Terminal


def rank(
    files: Annotated[
        list[Path], typer.Argument(help="Two or more files of codes of the same samples, runs, or a folder of them.")
    ],
    groups: Annotated[
        str | None,
        typer.Option(
            metavar="folder|name|LABEL,...",
            help="Compare models within groups only: the folder of each file; its name less the number at its end "
            "(beta4-0.npy is of beta4); or one label for each.",
            show_default=False,
        ),
    ] = None,
    similarity: Annotated[
        Literal["lasso", "spearman", "pearson"] | None,
        typer.Option(help="Similarity of two latents; default lasso, or spearman with --top.", show_default=False),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            help="Compare each code with its N most similar (spearman or pearson), for thousands of codes.",
            show_default=False,
        ),
    ] = None,
    alpha: Annotated[
        str | None,
        typer.Option(
            help='Penalty of the lasso; "cv": by cross-validation for each two models, as the paper.',
            show_default="0.1",
        ),
    ] = None,
    informative: Annotated[
        Literal["signal", "kl"] | None,
        typer.Option(
            help="How informative latents are found: by their signal, or by their KL as in the paper.",
            show_default="signal",
        ),
    ] = None,
    kl_threshold: Annotated[
        float | None,
        typer.Option(
            help="A latent counts when its signal, or its mean KL, is above this, in nats.", show_default="0.01"
        ),
    ] = None,
    n_comparisons: Annotated[
        int | None,
        typer.Option(help="Number of other models that each one is compared with; default all.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the drawn comparisons.")] = 0,
    untrained: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Codes of the same samples by an untrained model; give two or more, each with --untrained. No model "
            "that scores as low as they do is called best.",
            show_default=False,
        ),
    ] = None,
    json: Annotated[Path | None, typer.Option(help="Write scores and pairs to this .json file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one standalone page to this .html file.")] = None,
) -> None:
    """Rank models by Unsupervised Disentanglement Ranking: by agreement between models.

    The files hold codes of the same samples in the same order, and need no labels: .npy, .npz, .safetensors, .parquet
    or .csv. Uninformative latents are left out; in a
    file without log_variances all count as informative.

    Examples:

      unbraid rank seed0.npz seed1.npz seed2.npz

      unbraid rank codes/*.npy --groups name --html ranking.html

      unbraid rank runs/*.npz --similarity spearman --n-comparisons 5 --json ranking.json

      unbraid rank runs/*.npz --alpha cv --informative kl

      unbraid rank activations/*.npz --similarity pearson --top 10
    """
    files = expanded(files)
    if len(files) < 2:
        raise ValueError(f"rank compares models with each other; give two or more files (got {len(files)})")
    if json is not None and not json.parent.is_dir():
        raise FileNotFoundError(f"--json {json}: the folder {json.parent} does not exist")
    check_outputs({".html": html})
    from unbraid.ranking.verdicts import group_verdicts, model_verdict
    from unbraid.storage.files import atomic_write
    from unbraid.studies.rank import rank as rank_codes

    with stage_progress("comparing models") as progress:
        ranking = rank_codes(
            files,
            groups=None if groups is None else _groups(groups, files),
            similarity=similarity,
            top=top,
            alpha=None if alpha is None else penalty(alpha),
            informative=informative,
            kl_threshold=kl_threshold,
            n_comparisons=n_comparisons,
            seed=seed,
            untrained=expanded(untrained or []),
            progress=partial(progress, "comparing models"),
        )
    for path, reason in ranking.left_out.items():
        raise ValueError(f"{path}: {reason}")
    texts: dict[Path, str] = {}  # made before the first is written, so that what fails leaves none
    if json is not None:
        content = {
            "similarity": similarity or ranking.options.similarity,
            **({} if top is None else {"top": top}),
            "alpha": ranking.options.alpha,
            "informative": ranking.options.informative,
            "kl_threshold": ranking.options.kl_threshold,
            "best": ranking.best,
            "why_none": ranking.why_none(),
            **({} if groups is None else {"groups": dict(zip(ranking.runs, ranking.families, strict=True))}),
            "scores": {run: float(value) for run, value in zip(ranking.runs, ranking.scores, strict=True)},
            "notes": list(ranking.notes),
            "pairs": [[None if np.isnan(v) else float(v) for v in row] for row in ranking.pairs],
        }
        texts[json] = json_format.dumps(content, indent=2, allow_nan=False) + "\n"
    if html is not None:
        from unbraid.ranking.page import ranking_page

        texts[html] = ranking_page(ranking, grouped=groups is not None)
    for out, text in texts.items():
        with atomic_write(out) as temporary:
            temporary.write_text(text, encoding="utf-8")
    table = Table(pad_edge=False, box=SIMPLE_HEAD)
    table.add_column("rank", justify="right")
    table.add_column("UDR", justify="right")
    table.add_column("informative latents", justify="right")
    if groups is not None:
        table.add_column("group")
    table.add_column("model", overflow="fold")
    for place, model in enumerate(ranking.best_first, start=1):
        group = [] if groups is None else [ranking.families[model]]
        numbers = f"{ranking.scores[model]:.3f}", str(ranking.informative[model])
        table.add_row(str(place), *numbers, *group, ranking.runs[model])
    Terminal().print(table, markup=False)
    for note in ranking.notes:
        say(f"note: {note}", err=True)
    for line in group_verdicts(ranking) if groups is not None else model_verdict(ranking):
        Terminal().print(line, markup=False, highlight=False, soft_wrap=True)


def _groups(said: str, files: list[Path]) -> list[str]:
    """One label for each file."""
    if said == "folder":
        return [path.parent.name or "." for path in files]
    if said == "name":
        return [re.sub(r"[-_.]?(seed)?[-_.]?\d+$", "", path.stem) or path.stem for path in files]
    labels = [label.strip() for label in said.split(",")]
    if len(labels) != len(files):
        raise ValueError(f"--groups: {len(labels)} labels for {len(files)} files; or say folder, or name")
    return labels


def penalty(text: str) -> float | Literal["cv"]:
    """What --alpha says."""
    if text == "cv":
        return "cv"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--alpha must be a number or cv; got {text!r}") from None
