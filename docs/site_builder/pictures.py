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

import numpy as np
from markupsafe import Markup
from matplotlib.figure import Figure

from unbraid.metrics import METRICS
from unbraid.plots._style import ACCENT, FONT_SIZE, GRID, INK, MUTED, new_axes, tidy
from unbraid.report._svg import inline_svg

BEHAVIOUR = Path(__file__).parent.parent / "behaviour.json"
WIDTH, BAR = 3.4, 0.2  # inches

# What make_behaviour.py scores, in words.
SITUATIONS: Mapping[str, str] = {
    "perfect": "each factor in one code",
    "noisy": "the same with noise",
    "circle": "hue as a point on a circle",
    "twice": "each factor in two codes",
    "one lost": "one factor left out",
    "two in one": "two factors in one code",
    "split": "each factor only in two codes together",
    "rotated": "all codes mixed by a rotation",
    "noise": "nothing",
}


def behaviour() -> dict[str, dict[str, float | None]]:
    """Headline of each metric in each situation."""
    return json.loads(BEHAVIOUR.read_text(encoding="utf-8"))


def behaviour_bars(name: str) -> Markup:
    """What one metric makes of codes whose faults are known."""
    row = METRICS[name]
    table = behaviour()
    known = [(text, value) for text in SITUATIONS if (value := table[text][name]) is not None]
    values = np.array([value for _, value in known])
    ax = new_axes(WIDTH, BAR * len(known))
    tidy(ax)
    ax.spines["left"].set_visible(False)
    ax.barh(range(len(known)), values, height=0.62, color=ACCENT, zorder=2)
    low = min(0.0, values.min())
    high = row.range[1] if math.isfinite(row.range[1]) else max(1.0, 1.08 * values.max())
    high = max(high, values.max())
    ax.set(xlim=(low, high), ylim=(len(known) - 0.4, -0.6))
    for place, value in enumerate(values):
        ax.annotate(
            f"{value:.2f}".replace("-0.00", "0.00").replace("-", "\N{MINUS SIGN}"), (max(value, 0), place), (4, 0),
            textcoords="offset points", va="center", fontsize=FONT_SIZE - 1.5, color=MUTED, annotation_clip=False,
        )  # fmt: skip
    ax.set_yticks(range(len(known)), [SITUATIONS[text] for text, _ in known], color=INK)
    ax.tick_params(axis="y", length=0)
    ax.xaxis.grid(True, color=GRID, linewidth=0.6)
    ax.set_axisbelow(True)
    better = "higher" if row.higher_is_better else "lower"
    label = f"{name} of codes with known faults, {better} is better: " + ", ".join(
        f"{SITUATIONS[text]} {value:.2f}" for text, value in known
    )
    return inline_svg(ax.figure, name=f"behaviour-{name}", label=label)  # pyright: ignore[reportArgumentType]


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
