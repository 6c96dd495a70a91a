"""Draw the pictures of the README from the shipped example: docs/images/example.png and docs/images/page.png.

python docs/make_figures.py

The second is a screenshot and needs Chromium or Chrome on the path; without it only the first is written.
"""

import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image

from unbraid import Representation, ScoreCard, score
from unbraid.plots import plot_factor_code, plot_hinton, plot_latents
from unbraid.plots.style import FONT_SIZE, INK
from unbraid.report.content import dead_codes

IMAGES = Path(__file__).parent / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SHAPE, SCALE, ORIENTATION, POSITION_X, POSITION_Y = range(5)  # columns of the example's factors


def main() -> None:
    IMAGES.mkdir(exist_ok=True)
    card = replace(score(Representation.example()), path="the shipped example")
    with tempfile.TemporaryDirectory() as folder:
        drawn = Path(folder) / "example.png"
        example_figure(card).savefig(drawn, dpi=150, facecolor="white")
        shrink(drawn, IMAGES / "example.png")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"page.png was not written: none of {', '.join(BROWSERS)} is on the path")
    screenshot(card, browser, IMAGES / "page.png")


def example_figure(card: ScoreCard) -> Figure:
    """Importance and information with the alignment, and what single codes do with the factors."""
    figure = Figure(figsize=(11, 3.9))
    names, kinds = card.representation.names, card.representation.kinds
    codes, factors = card.representation.codes, card.representation.factors
    information = card["mig"].mutual_information
    drawn = {"column_names": names, "greyed": dead_codes(card.representation), "alignment": card["snc"].alignment}
    for left, metric, title in ((0.055, "dci_boosted", "Importance (DCI)"), (0.26, "mig", "Mutual information")):
        plot_hinton(card[metric], ax=figure.add_axes((left, 0.035, 0.13, 0.7)), **drawn)
        _title(figure, left, 0.955, title)
    for left, bottom, factor in ((0.52, 0.6, SCALE), (0.785, 0.6, ORIENTATION), (0.52, 0.075, SHAPE)):
        best = int(information[:, factor].argmax())
        ax = figure.add_axes((left, bottom, 0.205, 0.325))
        plot_factor_code(codes[:, best], factors[:, factor], kind=kinds[factor], factor_name="", code_name="", ax=ax)
        _title(figure, left, bottom + 0.355, f"{names[factor]} in code {best}")
    positions = [POSITION_X, POSITION_Y]
    pair = np.sort(information[:, positions].sum(axis=1).argsort()[-2:])
    maps = figure.add_subfigure(figure.add_gridspec(2, 2, width_ratios=[0.765, 0.235], height_ratios=[0.6, 0.4])[1, 1])
    maps.subplots_adjust(0.085, 0.19, 0.955, 0.83, wspace=0.12)
    panels = plot_latents(
        codes[:, pair],
        factors[:, positions],
        kinds=[kinds[k] for k in positions],
        factor_names=[names[k] for k in positions],
        code_names=[f"code {code}" for code in pair],
        figure=maps,
    )
    panels[0][0].set_ylabel("")
    _title(figure, 0.785, 0.43, "Mean code at each position")
    return figure


def screenshot(card: ScoreCard, browser: str, path: Path) -> None:
    """The top of the card's page."""
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        card.save(page)
        options = "--headless --no-sandbox --disable-gpu --no-first-run --hide-scrollbars --window-size=1160,1180"
        options += f" --disable-background-networking --user-data-dir={folder}/profile --screenshot={folder}/page.png"
        subprocess.run([browser, *options.split(), page.as_uri()], check=True, capture_output=True)
        shrink(Path(folder) / "page.png", path)


def shrink(source: Path, target: Path) -> None:
    """The same picture in 256 colours, a third of the size."""
    with Image.open(source) as image:
        image.convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE).save(target, optimize=True)


def _title(figure: Figure, x: float, y: float, text: str) -> None:
    figure.text(x, y, text, fontsize=FONT_SIZE + 1, fontweight="bold", color=INK)


if __name__ == "__main__":
    main()
