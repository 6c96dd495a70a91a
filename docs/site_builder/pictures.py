"""Pictures that are drawn while the site is built, in the colours of its pages."""

import io
import json
import math
import runpy
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir, redirect_stdout
from pathlib import Path

from markupsafe import Markup
from matplotlib.figure import Figure

from unbraid.metrics import METRICS
from unbraid.report._svg import inline_svg

BEHAVIOUR = Path(__file__).parent.parent / "behaviour.json"

# What make_behaviour.py scores, in words.
SITUATIONS: Mapping[str, str] = {
    "perfect": "each factor is in one code",
    "noisy": "so, but with noise",
    "circle": "hue is a point on a circle",
    "twice": "each factor is in two codes",
    "one lost": "one factor is left out",
    "two in one": "two factors share one code",
    "split": "only two codes together tell each factor",
    "rotated": "a rotation mixes all codes",
    "noise": "there is nothing but noise",
}


def behaviour() -> dict[str, dict[str, float | None]]:
    """Headline of each metric in each situation."""
    return json.loads(BEHAVIOUR.read_text(encoding="utf-8"))


def behaviour_bars(name: str) -> Markup:
    """What one metric makes of codes whose faults are known: a table whose rows are drawn as bars."""
    table, row = behaviour(), METRICS[name]
    known = [(about, value) for text, about in SITUATIONS.items() if (value := table[text][name]) is not None]
    values = [value for _, value in known]
    low = min(0.0, *values)
    high = max(row.range[1] if math.isfinite(row.range[1]) else 1.0, *values)

    def place(value: float) -> float:
        return round(100 * (value - low) / (high - low), 2)

    lines = []
    for about, value in known:
        start, end = sorted((place(0.0), place(value)))
        number = f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}")
        bar = f'<span class="bar"><i style="left:{start}%;width:{end - start:.2f}%"></i></span>'
        lines.append(f"<tr><th scope=row>{about}</th><td>{number}</td><td aria-hidden=true>{bar}</td></tr>")
    better = "higher" if row.higher_is_better else "lower"
    head = f"<caption>Codes in which &hellip; ({better} is better)</caption>"
    return Markup(f'<table class="bars">{head}<tbody>{"".join(lines)}</tbody></table>')


def run_example(script: Path) -> Figure:
    """Run a script of the gallery in an empty folder; it leaves its picture in `figure`.

    Raises:
        ValueError: it leaves none.
    """
    arguments = sys.argv
    with tempfile.TemporaryDirectory() as folder, chdir(folder), redirect_stdout(io.StringIO()):
        sys.argv = [str(script)]
        try:
            figure = runpy.run_path(str(script), run_name="__main__").get("figure")
        finally:
            sys.argv = arguments
    if not isinstance(figure, Figure):
        raise ValueError(f"{script} leaves no matplotlib Figure in `figure`")
    return figure


def example_picture(script: Path, label: str) -> Markup:
    """The picture of a script."""
    return inline_svg(run_example(script), name=script.stem, label=label)
