"""Draw the pictures of the README and the guides: example.png and, of pages, page, fit, study_page and run_page.png.

python evidence/make_figures.py [DIR]    some minutes on one core; DIR is kept, and what is trained in it stays so

Pages are those of the shipped example, of `make demo`, of the study evidence/studies/demo.yaml, and of one run. They are
screenshots and need Chromium or Chrome on the path; without it only example.png is written.
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
from playwright.sync_api import sync_playwright

from unbraid import Representation, ScoreCard, score, train
from unbraid.scoring.score_page_content import dead_codes
from unbraid.show import plot_factor_code, plot_hinton, plot_latents
from unbraid.show.style import FONT_SIZE, INK

ROOT = Path(__file__).parent.parent
IMAGES = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ABOVE = 8  # pixels shown above the element at the top of a picture
SHAPE, SCALE, ORIENTATION, POSITION_X, POSITION_Y = range(5)  # columns of the example's factors


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    card = replace(score(Representation.example()), path="the shipped example")
    drawn = folder / "example.png"
    example_figure(card).savefig(drawn, dpi=150, facecolor="white")
    shrink(drawn, IMAGES / "example.png")
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        sys.exit(f"only example.png was written: none of {', '.join(BROWSERS)} is on the path")
    card.save(folder / "page.html")
    screenshot(browser, folder / "page.html", IMAGES / "page.png", 1160, 1180)
    screenshot(browser, fit_report(folder), IMAGES / "fit.png", 1180, 830)
    screenshot(browser, study_report(folder), IMAGES / "study_page.png", 1200, 1492, at="#ends")
    screenshot(browser, run_report(folder), IMAGES / "run_page.png", 1160, 1480)


def fit_report(folder: Path) -> Path:
    """What `make demo` ends with."""
    images, plan = folder / "images", ROOT / "examples" / "demo-plan.yaml"
    if not images.exists():
        without = "without=position_y > 15 or orientation > 0"
        unbraid("data", "render", "sprites", "--out", images, "--png", "--set", "shrink=4", "--set", without)
    unbraid("fit", images, "--plan", plan, "--labels", images / "factors.csv", "--out", folder / "fitted")
    return folder / "fitted" / "report.html"


def study_report(folder: Path) -> Path:
    unbraid("study", "run", ROOT / "evidence" / "studies" / "demo.yaml", "--out", folder / "study")
    unbraid("report", folder / "study")
    return folder / "study" / "report.html"


def run_report(folder: Path) -> Path:
    """Of a model large enough for its images to be seen; which it is follows from its settings."""
    (run,) = train(
        "beta_vae", {"name": "sprites", "shrink": 2, "without": "orientation > 0"}, beta=4, latents=6, network="dense",
        learning_rate=1e-3, steps=3000, out=folder / "runs", processes=0, device="cpu", precision="float32",
    )  # fmt: skip
    unbraid("report", run.path)
    return run.path / "report.html"


def unbraid(*words: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "unbraid", *map(str, words)], check=True)


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


def screenshot(browser: str, page: Path, target: Path, width: int, height: int, at: str = "body") -> None:
    """So much of the page, in a window of this width, from the top of the element that a selector names."""
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=browser)
        tab = opened.new_page(viewport={"width": width, "height": height})
        tab.goto(page.resolve().as_uri())
        tab.wait_for_timeout(1000)  # until scripts have drawn
        top = tab.evaluate("at => document.querySelector(at).getBoundingClientRect().top", at)
        clip = {"x": 0, "y": max(0, top - ABOVE), "width": width, "height": height}
        drawn = Path(folder) / "page.png"
        tab.screenshot(path=drawn, full_page=True, clip=clip)  # pyright: ignore[reportArgumentType]
        opened.close()
        shrink(drawn, target)


def shrink(source: Path, target: Path) -> None:
    """The same picture in 256 colours, a third of the size."""
    with Image.open(source) as image:
        image.convert("RGB").quantize(256, kmeans=3, dither=Image.Dither.NONE).save(target, optimize=True)


def _title(figure: Figure, x: float, y: float, text: str) -> None:
    figure.text(x, y, text, fontsize=FONT_SIZE + 1, fontweight="bold", color=INK)


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary))
