"""A page for each family, from the table of families."""

from typing import Any

from pages.texts import ROOT, citation, escaped, formula, row_link, table
from unbraid.families import COMMON, FAMILIES

SYMBOLS = (
    r"$q(z|x) = \mathcal{N}(\mu, \mathrm{diag}\,\sigma^2)$ is the encoder's posterior, $p(x|z)$ the decoder, "
    r"$\mathrm{KL}_j$ the divergence of latent $j$ from its prior. What is written is minimised, in nats per image."
)


def overview() -> str:
    """All families in one table."""
    rows = [
        (
            row_link(name),
            row.title,
            row.supervision.kind if row.supervision else "",
            ", ".join(f"`{preset}`" for preset in row.presets),
            row.source,
        )
        for name, row in FAMILIES.items()
    ]
    return table("family | what it is | supervision | published grids | source", "lllll", rows)


def page(name: str) -> str:
    """The page of one family."""
    row = FAMILIES[name]
    latex, where = row.formula
    parts = [
        f"# {row.title}",
        f"{{.lead}}\n`{name}`: {escaped(row.source)}.",
        formula(latex, f"{where} {'' if name in {'pca', 'info_gan', 'qlae', 'qvae'} else SYMBOLS}"),
    ]
    picture = f"images/families/{name}.png"
    if (ROOT / "docs" / picture).is_file():
        parts.append(
            f"## What its codes do\n\n![Traversals of {name}](../{picture})\n\n"
            "Each block is one code going through its range, one image a row; codes sorted by KL or variance, highest "
            "first. Trained by `evidence/make_families.py`, briefly: a picture of what the family does, not of how well."
        )
    given = next((key for key in row.hyperparameters if key not in COMMON), None)
    chosen = f" --set {given}={row.hyperparameters[given].default}" if given else ""
    rows = ((f"`{key}`", _default(each), _range(each), escaped(each.help)) for key, each in row.hyperparameters.items())
    parts += [
        "## Train it",
        f"```sh\nunbraid train {name} --dataset sprites --seeds 3{chosen} --out runs\n```",
        f'```python\nimport unbraid\n\nruns = unbraid.train("{name}", "sprites", seeds=3, out="runs")\n```',
        "## Hyperparameters",
        table("name | default | range | what it does", "llll", rows),
    ]
    if row.supervision:
        amounts = ", ".join(f"`{key}`" for key in row.supervision.amounts)
        parts.append(
            f"## Supervision\n\nIs told {row.supervision.kind}, for which a dataset needs {row.supervision.needs}. "
            f"How much: {amounts}. See [Supervision](../families.md#supervision)."
        )
    if row.presets:
        grids = [
            f"- `--preset {preset}`: "
            + "; ".join(", ".join(f"{key} {_number(value)}" for key, value in entry.items()) for entry in entries)
            for preset, entries in row.presets.items()
        ]
        parts += ["## Published grids", "\n".join(grids)]
    if row.notes:
        parts += ["## Notes", "\n".join(f"- {escaped(note)}" for note in row.notes)]
    return "\n\n".join([*parts, citation(name)])


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
