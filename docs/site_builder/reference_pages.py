"""The pages of metrics, families, datasets, figures and commands, from their tables."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import typer.main
from datasets_page import INTRODUCTION, factors_of
from markupsafe import escape

from site_builder.docstrings import as_markdown, escaped, signature
from site_builder.formulas import FAMILY_FORMULAS, FAMILY_SYMBOLS, METRIC_FORMULAS, SYMBOLS
from site_builder.markdown import code, formula, inline
from site_builder.pictures import behaviour_bars
from unbraid.cli.app import app
from unbraid.datasets import DATASETS
from unbraid.datasets._state import options_of
from unbraid.factors import FactorSpace
from unbraid.families.common import COMMON
from unbraid.families.table import FAMILIES
from unbraid.figures import FIGURES, draw, open_source
from unbraid.metrics import METRICS
from unbraid.metrics._chance import chance_in_words
from unbraid.references import CITED, REFERENCES, bibtex
from unbraid.report._svg import inline_svg

DOCS = Path(__file__).parent.parent
KEPT = Path(__file__).parent / "figures"


def metric_page(name: str) -> str:
    """Markdown of one metric, with HTML where Markdown has no words."""
    row = METRICS[name]
    latex, where = METRIC_FORMULAS[name]
    low, high = (f"{end:g}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}") for end in row.range)
    facts = {
        "Headline": f"`{row.headline}`, {'higher' if row.higher_is_better else 'lower'} is better, {low} to {high}",
        "Perfect codes": f"{row.best:g}",
        "Independent noise": chance_in_words(row.chance),
        "Unchanged by": ", ".join(_CHANGES[change] for change in sorted(row.invariant_to)) or "nothing",
        "Needs": row.needs.removeprefix("needs ") or "codes and factors",
        "Seed": "its probes or draws depend on it" if row.stochastic else "none: the same on every run",
        "Version": f"{row.version}, raised whenever the same input gives another number",
    }
    parts = [
        f"# {row.title}",
        f'<p class="lead">{escape(row.means)}</p>',
        f"*Misses:* {escaped(row.misses)}",
        _formula(latex, f"{where} {SYMBOLS}"),
        "## What it makes of known faults",
        f"<figure>{behaviour_bars(name)}<figcaption>{_behaviour_caption(name)}</figcaption></figure>",
        "## At a glance",
        _facts(facts),
        "## In Python and on the command line",
        "```python\nfrom unbraid import metrics\n\n"
        f"result = metrics.{name}({_given(name)})\nresult.{row.headline}\n```",
        _metric_command(name),
        "## The function",
        f"```python\nunbraid.metrics.{signature(row.function)}\n```",
        as_markdown(row.function),
        _citation(name),
    ]
    return "\n\n".join(parts)


def _given(name: str) -> str:
    special = {
        "udr": "[codes_of_one, codes_of_another, codes_of_a_third]",
        "zero_shot": "codes, factors, gap=(factors[:, 0] > 1) & (factors[:, 1] == 0)",
        "d_lsbd": 'codes, factors, kinds=["cyclic", "ordinal"]',
        "independence_score": 'codes, factors, kinds=["cyclic", "cyclic"]',
    }
    if "log-variances" in METRICS[name].needs:
        return "codes, factors, log_variances=log_variances"
    return special.get(name, "codes, factors")


def _metric_command(name: str) -> str:
    special = {
        "udr": "unbraid udr runs/*/codes.safetensors",
        "zero_shot": "unbraid score codes.npz --metrics zero_shot --gap 'size > 1 and hue == 0'",
    }
    return f"```sh\n{special.get(name, f'unbraid score codes.npz --metrics {name}')}\n```"


def _behaviour_caption(name: str) -> str:
    if name == "udr":
        return "Mean score of four models, each with its codes in another order and with other signs."
    if name == "d_lsbd":
        return "480 rows, each cell of a grid of 3 x 4 x 5 x 8 once; only hue, of 8 steps, is cyclic."
    return "3 840 rows: a grid of 3 x 4 x 5 x 8, eight times over. The last factor, hue, is cyclic."


_CHANGES = {
    "permute": "permuting codes",
    "flip": "flipping their signs",
    "scale": "scaling each",
    "dead": "appending a constant code",
}


def metrics_index() -> str:
    lines = ["# Metrics", "What each asks, and in [Which metric should I use?](which-metric.md) when to ask it.", ""]
    lines += ["| metric | better | what it says | source |", "| --- | --- | --- | --- |"]
    for name, row in METRICS.items():
        better = "higher" if row.higher_is_better else "lower"
        lines.append(f"| [`{name}`](metrics/{name}.html) | {better} | {row.means} | {row.source} |")
    return "\n".join(lines)


def family_page(name: str) -> str:
    row = FAMILIES[name]
    latex, where = FAMILY_FORMULAS[name]
    parts = [
        f"# {row.title}",
        f'<p class="lead"><code>{name}</code>: {escape(row.source)}.</p>',
        _formula(latex, f"{where} {'' if name in {'pca', 'info_gan'} else FAMILY_SYMBOLS}"),
    ]
    picture = Path("images") / "families" / f"{name}.png"
    if (DOCS / picture).is_file():
        parts.append(
            f"## What its codes do\n\n![Traversals of {name}](../{picture.as_posix()})\n\n"
            "Each block is one code going through its range, one image a row; codes by falling KL or variance. "
            f"Trained by `docs/make_families.py`, briefly: a picture of what the family does, not of how well."
        )
    given = next((key for key in row.hyperparameters if key not in COMMON), None)
    chosen = f" --set {given}={row.hyperparameters[given].default}" if given else ""
    parts += [
        "## Train it",
        f"```sh\nunbraid train {name} --dataset sprites --seeds 3{chosen} --out runs\n```",
        f'```python\nimport unbraid\n\nruns = unbraid.train("{name}", "sprites", seeds=3, out="runs")\n```',
        "## Hyperparameters",
        "| name | default | range | what it does |\n| --- | --- | --- | --- |\n"
        + "\n".join(
            f"| `{key}` | {_default(each)} | {_range(each)} | {escaped(each.help)} |"
            for key, each in row.hyperparameters.items()
        ),
    ]
    if row.supervision:
        amounts = ", ".join(f"`{key}`" for key in row.supervision.amounts)
        parts.append(
            f"## Supervision\n\nIs told {row.supervision.kind}, for which a dataset needs {row.supervision.needs}. "
            f"How much: {amounts}. See [Training](../training.md#supervision)."
        )
    if row.presets:
        grids = [
            f"- `--preset {preset}`: "
            + "; ".join(", ".join(f"{k} {_number(v)}" for k, v in entry.items()) for entry in entries)
            for preset, entries in row.presets.items()
        ]
        parts += ["## Published grids", "\n".join(grids)]
    if row.notes:
        parts += ["## Notes", "\n".join(f"- {escaped(note)}" for note in row.notes)]
    return "\n\n".join([*parts, _citation(name)])


def _default(each: Any) -> str:
    return f"`{each.default}`" if each.default != "" else ""


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _range(each: Any) -> str:
    if each.choices:
        return ", ".join(f"`{choice}`" for choice in each.choices if choice)
    if each.kind == "text":
        return "text"
    ends = [("" if abs(end) == float("inf") else f"{end:g}") for end in (each.low, each.high)]
    return f"{ends[0] or '−∞'} to {ends[1] or '∞'}"


def families_index() -> str:
    lines = ["# Families", "What `unbraid train` can train; [Training](training.md) says how.", ""]
    lines += ["| family | what it is | source |", "| --- | --- | --- |"]
    lines += [f"| [`{name}`](families/{name}.html) | {row.title} | {row.source} |" for name, row in FAMILIES.items()]
    return "\n".join(lines)


def dataset_page(name: str) -> str:
    row = DATASETS[name]
    height, width, channels = row.image_shape
    facts = {
        "Images": f"{len(row):,} of {height} x {width} x {channels}"
        + ("" if isinstance(row.space, FactorSpace) else ", samples rather than a grid"),
        "Source": row.source,
        "Licence": row.licence,
    }
    if row.files:
        facts["File"] = ", ".join(f"`{file.name}`" for file in row.files)
        facts["Get it"] = f"`unbraid data get {name}`" if row.files[0].downloads else "by hand"
    options = [option for option in options_of(row.open) if option not in {"cache", "device"}]
    if options:
        facts["Options"] = ", ".join(f"`{option}`" for option in options)
    parts = [f"# {name}", f'<p class="lead">{escape(row.title)}.</p>']
    picture = Path("images") / "datasets" / f"{name}.png"
    if (DOCS / picture).is_file():
        parts.append(f"![Contact sheet of {name}: one row per factor](../{picture.as_posix()})")
    elif row.files:
        parts.append("No picture: these images are not ours to show.")
    kinds = "\n".join(f"| `{factor}` | {kind} | {size or ''} |" for factor, kind, size in _factors(row.space))
    option = f', file="{row.files[0].name}"' if row.files else ""
    parts += [
        _facts(facts),
        "## Factors",
        f"| factor | kind | levels |\n| --- | --- | ---: |\n{kinds}",
        "## Load it",
        f'```python\nfrom unbraid import datasets\n\nimages = datasets.load("{name}"{option})\n```',
        f"```sh\nunbraid data show {name} --out sheet.png\n```",
    ]
    if row.notes:
        parts += ["## Before you quote a number on it", "\n".join(f"- {escaped(note)}" for note in row.notes)]
    return "\n\n".join([*parts, _citation(name)])


def _factors(space: Any) -> Iterator[tuple[str, str, int]]:
    yield from zip(space.names, space.kinds, space.sizes, strict=True)


def datasets_index() -> str:
    parts = [INTRODUCTION.rstrip()]
    for head, files in (("## Drawn by this package", False), ("## Read from official files", True)):
        lines = ["| name | images | what they show | factors (levels) |", "| --- | ---: | --- | --- |"]
        lines += [
            f"| [`{name}`](datasets/{name}.html) | {len(row):,} | {row.title} | {factors_of(row)} |"
            for name, row in DATASETS.items()
            if bool(row.files) == files
        ]
        parts += [head, "\n".join(lines)]
    return "\n\n".join(parts)


def figures_page() -> str:
    """Every figure; those that need no more than codes drawn from the shipped example."""
    parts = [
        "# Figures",
        "Every figure is a function of `unbraid.plots`, and a command that writes it ready for print:",
        "```sh\nunbraid figure information --example --out information.pdf --theme light --data information.csv\n```",
        "`.pdf` has its fonts embedded, `.svg` its text as outlines, `.png` 300 dots per inch. `--theme dark` is for "
        "dark pages, `--data` writes the numbers that the figure shows. Colours are told apart by all common kinds of "
        'colour vision. In Python, `unbraid.plots.save_figure(ax.figure, "f.pdf")` does so with whatever was drawn.',
        "```python\nfrom unbraid.figures import draw, open_source\n\n"
        'drawn = draw("important-codes", open_source("codes.npz"), {"metric": "dci_lasso"})\n'
        "drawn.figure, drawn.data  # a matplotlib Figure, and the columns of the .csv\n```",
    ]
    example = open_source(None)
    for name, row in FIGURES.items():
        of = {"codes": "codes, or a run", "run": "a run", "study": "a study"}[row.needs]
        options = ", ".join(f"`{option}={default}`" for option, default in row.options.items())
        parts.append(
            f"## {name}\n\n{row.title}{f' ({row.source})' if row.source else ''}. Of {of}."
            + (f" `--set` takes {options}." if options else "")
        )
        kept = KEPT / f"{name}.svg"  # of a run or of a study, by docs/make_figure_pictures.py
        if kept.is_file():
            picture = kept.read_text(encoding="utf-8")
        else:
            drawn = draw(name, example, {"metric": "dci_lasso"} if name == "hinton" else None)  # the quickest
            picture = inline_svg(drawn.figure, name=f"figure-{name}", label=row.title)
        parts.append(f"<figure>{picture}</figure>")
    return "\n\n".join(parts)


def commands_page() -> str:
    """What --help says, of every command."""
    root = typer.main.get_command(app)
    parts = ["# Commands", "Exit codes: 0 done, 2 bad input (one line says what), 130 interrupted, 1 a fault of ours."]
    for path, command in _commands(root, "unbraid"):
        context = click.Context(command, info_name=path, terminal_width=80, max_content_width=80)
        parts.append(f"## {path}\n\n```text\n{command.get_help(context)}\n```")
    return "\n\n".join(parts)


def _commands(command: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Groups themselves say no more than their commands do."""
    children = getattr(command, "commands", None)
    if children is None:
        yield path, command
        return
    for name, child in children.items():
        yield from _commands(child, f"{path} {name}")


def _formula(latex: str, where: str) -> str:
    # Statements that stand side by side go below each other on a narrow page.
    made = "".join(formula(part.strip()) for part in latex.split(r"\qquad"))
    return f'<div class="formula scroll" tabindex="0">{made}</div>\n<p class="where">{inline(where)}</p>'


def _facts(facts: dict[str, str]) -> str:
    rows = "".join(f"<dt>{escape(name)}</dt><dd>{inline(value)}</dd>" for name, value in facts.items())
    return f'<dl class="facts">{rows}</dl>'


def _citation(name: str) -> str:
    lines = "\n".join(f"- {escaped(str(REFERENCES[key]))}" for key in CITED[name])
    return (
        f"## Cite\n\n{lines}\n\n<details><summary>BibTeX, as <code>unbraid cite {name}</code> prints it</summary>\n\n"
        f"{code(bibtex(name), 'bibtex')}\n\n</details>"
    )
