"""`unbraid score`: one representation file or run folder, every metric."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding

from unbraid.cli._progress import metric_progress
from unbraid.cli._trust import TrustCode, TrustData, trusted

if TYPE_CHECKING:
    from unbraid.scorecard import ScoreCard, Scored


def score(
    file: Annotated[
        Path | None,
        typer.Argument(
            help="Representation file (.npz, .safetensors or .parquet), or the folder of a run.", show_default=False
        ),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Score the shipped codes of a β-TCVAE instead.")] = False,
    metrics: Annotated[str, typer.Option(help="Comma-separated ids (see `unbraid metrics`), or all.")] = "all",
    factors: Annotated[
        str | None, typer.Option(help="Comma-separated names of the factors to score against; default all.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Same seed, same numbers.")] = 0,
    gap: Annotated[
        str | None, typer.Option(help="Rows that zero_shot keeps out of training, such as 'size > 1 and hue == 0'.")
    ] = None,
    null: Annotated[
        int,
        typer.Option(help="Score this many times more with rows shuffled: what do codes of this shape get by luck?"),
    ] = 0,
    trust_code: TrustCode = None,
    trust_data: TrustData = None,
    json: Annotated[Path | None, typer.Option(help="Write the scores to this .json file.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one standalone page to this .html file.")] = None,
) -> None:
    """Score codes against factors by every published metric.

    The folder of a run keeps what its scores.json lacks, if it was asked for with all factors, seed 0 and no gap; what
    stands there, such as the scores of a study, is never changed. A metric that judges whole objects (d_lsbd) has them
    encoded, as many as 10 000 images hold, where the codes in the folder are those of images drawn at random.

    Examples:

      unbraid score --example --html scores.html

      unbraid score codes.npz --metrics mig,dci_lasso --json scores.json

      unbraid score codes.npz --metrics mig,sap,snc --null 99

      unbraid score runs/3f6c0f0a8d1e2b47 --html scores.html

      unbraid score codes.npz --metrics zero_shot --gap "elevation > 0.79 and red > green + 0.15"
    """
    if (file is None) != example:
        raise ValueError("give one representation FILE, or --example for the shipped one")
    _check_outputs({".json": json, ".html": html})
    from dataclasses import replace

    from unbraid._trust import Untrusted, trusting
    from unbraid.representation import Representation, example_path
    from unbraid.runs.folder import find_codes
    from unbraid.runs.objects import objects_of
    from unbraid.scoring import choose
    from unbraid.scoring import score as score_codes

    chosen = "all" if metrics == "all" else _listed(metrics)
    choose(trusting(chosen))
    path = file or example_path()
    representation = Representation.load(find_codes(path))
    every = representation.names
    names = every if factors is None else tuple(_listed(factors))
    representation = representation.keep_factors(names)

    def objects() -> Representation:
        return objects_of(path, trust=trusted(trust_code, trust_data))().keep_factors(names)

    whole = objects if path.is_dir() else None
    with metric_progress() as progress:
        try:
            card = score_codes(
                representation, metrics=chosen, seed=seed, gap=gap, objects=whole, null=null, progress=progress
            )
        except Untrusted:
            raise
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
    chosen_factors = () if names == every else names
    card = replace(card, path="the shipped example" if example else str(path), chosen_factors=chosen_factors)
    outs = [out for out in (json, html) if out is not None]
    for out in outs:
        card.save(out)
    _print(card)
    if path.is_dir():
        typer.echo(_kept(path, card), err=True)
    for out in outs:
        typer.echo(f"wrote {out}", err=True)


def _kept(run: Path, card: "ScoreCard") -> str:
    """What the folder of a run keeps of the scores."""
    from unbraid.runs.folder import SCORES
    from unbraid.studies.scores import keep_by_hand

    names = keep_by_hand(run, card)
    return f"wrote {', '.join(names)} to {run / SCORES}" if names else f"left {run / SCORES} as it is"


def _listed(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _check_outputs(outputs: dict[str, Path | None]) -> None:
    """Minutes of scoring should not end in a file that cannot be written."""
    for suffix, path in outputs.items():
        if path is None:
            continue
        if path.suffix != suffix:
            raise ValueError(f"--{suffix[1:]} {path}: the name must end in {suffix}")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"--{suffix[1:]} {path}: the folder {path.parent} does not exist")


def _print(card: "ScoreCard") -> None:
    described = card.to_dict()["input"]
    factors = ", ".join(
        f"{factor['name']} ({factor['kind']}" + (f", {factor['size']})" if factor["size"] else ")")
        for factor in described["factors"]
    )
    console = Console()
    size = f"{described['n_samples']:,} samples, {described['n_codes']} codes"
    console.print(escape(f"{card.path}\n{size}; factors: {factors}\n"))
    beside_null = any(scored.null is not None for scored in card.scored.values())
    row = "{:<22}{:>8}   " + ("{:>15}{:>9}   " if beside_null else "{}{}") + "{:<8}{}"
    heads = ("shuffled", "p  ") if beside_null else ("", "")
    console.print(row.format("metric", "score", *heads, "better", "range"), style="bold", highlight=False)
    for name, scored in card.scored.items():
        metric = scored.metric
        better = "higher" if metric.higher_is_better else "lower"
        span = "{:g} to {:g}".format(*metric.range).replace("inf", "∞")
        console.print(row.format(name, f"{scored.headline:.3f}", *_null(scored), better, span), highlight=False)
        others = [f"{value} {number:.3f}" for value, number in scored.values.items() if value != metric.headline]
        notes = [note for note in scored.notes if scored.null is None or note != scored.null.note]
        for line in ([", ".join(others)] if others else []) + notes:
            console.print(Padding(escape(line), (0, 0, 0, 4), expand=False), style="dim", highlight=False)
    for name, reason in card.skipped.items():
        console.print(escape(row.format(name, "-", "", "", "", f"not defined here: {reason}")), highlight=False)
    for note in card.notes:
        typer.echo(f"note: {note}")


def _null(scored: "Scored") -> tuple[str, str]:
    """What shuffled rows score, and the p-value, marked where the score is not told from them."""
    from unbraid._null import WITHIN

    if scored.null is None:
        return "", ""
    null, mark = scored.null, "!" if scored.null.p > WITHIN else " "
    return f"{null.mean:.3f} ± {null.spread:.3f}", f"{null.p:.2g} {mark}"
