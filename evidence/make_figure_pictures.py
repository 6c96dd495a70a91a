"""Draw the figures of runs and studies for the page of figures: docs/images/figures/NAME.svg.

python evidence/make_figure_pictures.py [DIR]    some minutes on one core; DIR is kept, and drawn from where it is finished

The study is evidence/figures_study.yaml; figures of a run are of its best run by UDR, but for those of objects, which are
of an LSBD-VAE that is told every turn of twelve of them, and for the gap, which is of teapots.
"""

import sys
import tempfile
from pathlib import Path

import unbraid
from unbraid.figures import FIGURES, draw, open_source
from unbraid.show.svg import inline_svg
from unbraid.studies.study import Study

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
FOLDER = DOCS / "images" / "figures"
OPTIONS = {
    "traversals": {"rows": 2, "steps": 8},
    "reconstructions": {"images": 24, "columns": 12},
    "object-interpolation": {"pairs": 2},
    "gap": {"rows": 3},
}
GAP = "elevation > 0.7854 and red > green + 0.15 and red > blue + 0.15"
OF_OBJECTS = ("rotation-traversal", "object-interpolation")


def main(folder: Path) -> None:
    """Train what is not trained yet, and draw."""
    Study.load(ROOT / "evidence" / "figures_study.yaml", out=folder).run()
    study = open_source(folder)
    results = study.results
    best = open_source(folder / "runs" / str(results.loc[results["udr.score"].idxmax(), "run"]))
    (trained,) = unbraid.train(
        "lsbd_vae", {"name": "turntable", "n_objects": 12, "shrink": 2}, supervision="turntables", euclidean=5,
        log_t_high=-5.0, likelihood="gaussian", sigma=0.7071, network="dense", batch_size=72, steps=3000,
        out=folder / "objects", processes=0, device="cpu", precision="float32",
    )  # fmt: skip
    objects = open_source(trained.path)
    (fitted,) = unbraid.train(
        "pca", {"name": "teapot", "n_images": 2000, "shrink": 2, "without": GAP}, latents=4, out=folder / "teapots",
        processes=0, precision="float32",
    )  # fmt: skip
    teapots = open_source(fitted.path)
    FOLDER.mkdir(exist_ok=True)
    for name, row in FIGURES.items():
        if row.needs == "codes" and name != "circles":
            continue  # drawn from the shipped example while the site is built
        source = objects if name in OF_OBJECTS else study if row.needs == "study" else best
        source = teapots if name == "gap" else source
        drawn = draw(name, source, OPTIONS.get(name))
        text = inline_svg(drawn.figure, name=f"figure-{name}", label=row.title)
        (FOLDER / f"{name}.svg").write_text(text + "\n", encoding="utf-8")
        print(f"{name}.svg: {len(text):,} characters")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(Path(sys.argv[1]))
    else:
        with tempfile.TemporaryDirectory() as temporary:
            main(Path(temporary) / "study")
