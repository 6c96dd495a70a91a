"""A page for each metric, from the table of metrics."""

import html
import json
import math
from collections.abc import Mapping
from typing import get_type_hints

from pages import evidence
from pages.texts import ROOT, citation, escaped, facts, formula, row_link, table
from unbraid.metrics import MEASURES, RECONSTRUCTED, Metric
from unbraid.metrics._shared.chance import chance_in_words
from unbraid.metrics._shared.resampling import Resampling

# What make_behaviour.py scores, in words.
SITUATIONS: Mapping[str, str] = {
    "perfect": "each factor is in one code",
    "noisy": "the same, with noise",
    "circle": "hue is a point on a circle",
    "twice": "each factor is in two codes",
    "one lost": "one factor is left out",
    "two in one": "two factors share one code",
    "split": "only two codes together tell each factor",
    "rotated": "a rotation mixes all codes",
    "noise": "there is nothing but noise",
}
CHANGES = {
    "permute": "permuting codes",
    "flip": "flipping their signs",
    "scale": "scaling each",
    "dead": "appending a constant code",
}

SYMBOLS = (
    r"$z_j$ are the $D$ codes, $v_k$ the $K$ factors, $N$ the number of rows; $I$ is mutual information, $H$ entropy, "
    r"both in nats."
)


def behaviour() -> dict[str, dict[str, float | None]]:
    """Headline of each metric in each situation, as make_behaviour.py measured it."""
    return json.loads((ROOT / "evidence" / "behaviour.json").read_text(encoding="utf-8"))


def number(value: float) -> str:
    """Two digits, and a minus that is one."""
    return f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")


def direction(row: Metric) -> str:
    """Which way is better."""
    return "higher" if row.higher_is_better else "lower"


def interval(row: Metric) -> str:
    """The range in words."""
    low, high = (f"{end:g}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}") for end in row.range)
    return f"{low} to {high}"


def overview() -> str:
    """All metrics in one table."""
    rows = [
        (row_link(name), f"{direction(row)}, {interval(row)}", row.summary, row.limitations, row.source)
        for name, row in MEASURES.items()
    ]
    return table("metric | better | what it says | limitations | paper", "lllll", rows)


def page(name: str) -> str:
    """The page of one metric."""
    row = MEASURES[name]
    latex, where = row.formula
    of_codes = {
        "Perfect codes": f"{row.best:g}",
        "Independent noise": chance_in_words(row.chance),
        "Unchanged by": ", ".join(CHANGES[change] for change in sorted(row.invariant_to)) or "nothing",
    }
    known = {
        "Headline": f"`{row.headline}`, {direction(row)} is better, {interval(row)}",
        **({"Perfect": f"{row.best:g}"} if name in RECONSTRUCTED else of_codes),
        "Needs": row.needs.removeprefix("needs ") or "codes and factors",
        "Seed": "its probes or draws depend on it" if row.stochastic else "none: the same on every run",
        "Interval": row.interval.in_words if isinstance(row.interval, Resampling) else f"none: {row.interval}",
        "Version": f"{row.version}, raised whenever the same input gives another number",
    }
    return "\n\n".join(
        [
            f"# {row.title}",
            f"{{.lead}}\n{escaped(row.summary)}",
            f"*Limitations:* {escaped(row.limitations)}",
            formula(latex, where if name in RECONSTRUCTED else f"{where} {SYMBOLS}"),
            *_faults(name),
            *evidence.section(name),
            "## At a glance",
            facts(known),
            *_calls(name),
            "## The function",
            f"```{{eval-rst}}\n.. autofunction:: unbraid.metrics.{name}\n```",
            "## The result",
            _result(name),
            citation(name),
        ]
    )


def _faults(name: str) -> list[str]:
    if name in RECONSTRUCTED:
        return []
    figure = f"<figure>{bars(name)}<figcaption>{_caption(name)}</figcaption></figure>"
    return ["## What it makes of known faults", figure]


def _calls(name: str) -> list[str]:
    python = (
        f"```python\nfrom unbraid import metrics\n\nresult = metrics.{name}({_given(name)})\n"
        f"result.{MEASURES[name].headline}\n```"
    )
    if name in RECONSTRUCTED:
        return ["## In Python", python]
    return ["## In Python and on the command line", python, f"```sh\n{_command(name)}\n```"]


def bars(name: str) -> str:
    """What one metric makes of codes whose faults are known: a table whose rows are drawn as bars."""
    measured, row = behaviour(), MEASURES[name]
    known = [(about, value) for text, about in SITUATIONS.items() if (value := measured[text][name]) is not None]
    values = [value for _, value in known]
    low = min(0.0, *values)
    high = max(row.range[1] if math.isfinite(row.range[1]) else 1.0, *values)

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    lines = []
    for about, value in known:
        start, end = sorted((place(0.0), place(value)))
        bar = f'<span class="bar"><i style="left:{start}%;width:{end - start:.2f}%"></i></span>'
        lines.append(
            f"<tr><th scope=row>{html.escape(about)}</th><td>{number(value)}</td><td aria-hidden=true>{bar}</td></tr>"
        )
    head = f"<caption>Codes in which &hellip; ({direction(row)} is better)</caption>"
    return f'<table class="bars">{head}<tbody>{"".join(lines)}</tbody></table>'


def _result(name: str) -> str:
    """The class of the result, on the page of the first metric that gives one."""
    returned = {each: get_type_hints(row.function)["return"] for each, row in MEASURES.items()}
    kind = returned[name]
    first = next(each for each, other in returned.items() if other is kind)
    full = f"{kind.__module__}.{kind.__qualname__}"
    if first != name:
        return f"A {{py:class}}`~{full}`, as of `{first}`."
    return f"```{{eval-rst}}\n.. autoclass:: {full}\n   :members:\n```"


def _given(name: str) -> str:
    special = {
        "udr": "[codes_of_one, codes_of_another, codes_of_a_third]",
        "tad": "codes, attributes",
        "factorised_support": "codes",
        "zero_shot": "codes, factors, held_out=(factors[:, 0] > 1) & (factors[:, 1] == 0)",
        "d_lsbd": 'codes, factors, kinds=["cyclic", "ordinal"]',
        "independence_score": 'codes, factors, kinds=["cyclic", "cyclic"]',
    }
    if name in RECONSTRUCTED:
        return "activations, reconstructions"
    if "log-variances" in MEASURES[name].needs:
        return "codes, factors, log_variances=log_variances"
    return special.get(name, "codes, factors")


def _command(name: str) -> str:
    special = {
        "udr": "unbraid rank runs/*/codes.safetensors",
        "zero_shot": "unbraid score codes.npz --metrics zero_shot --held-out 'size > 1 and hue == 0'",
    }
    return special.get(name, f"unbraid score codes.npz --metrics {name}")


def _caption(name: str) -> str:
    if name == "udr":
        return "Mean score of four models, each with its codes in another order and with other signs."
    if name == "d_lsbd":
        return "480 rows, each cell of a grid of 3 x 4 x 5 x 8 once; only hue, of 8 steps, is cyclic."
    return "3 840 rows: a grid of 3 x 4 x 5 x 8, eight times over. The last factor, hue, is cyclic."
