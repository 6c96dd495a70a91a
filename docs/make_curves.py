"""Draw how the runs of a study learnt, family by family: docs/images/NAME-curves.svg.

python docs/make_curves.py FOLDER    of a study that took snapshots
"""

import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from unbraid import Study
from unbraid.plots.style import MUTED, family_marks, label, tidy
from unbraid.plots.theme import save_figure

IMAGES = Path(__file__).parent / "images"
POINTS = 25  # of the reconstruction term, each a mean of steps


def curves(folder: Path, run: str) -> dict[str, pd.Series]:
    """Reconstruction and MIG of one run, by step."""
    learning = pd.read_parquet(folder / "runs" / run / "curves.parquet", columns=["step", "reconstruction"])
    steps = learning["step"].max() / POINTS * np.ceil(learning["step"] / learning["step"].max() * POINTS)
    snapshots = pd.read_parquet(folder / "runs" / run / "snapshots.parquet")
    by_step = learning.groupby(steps)["reconstruction"].mean()
    return {"reconstruction": by_step, "mig": snapshots.set_index("step")["mig"]}


def main(folder: Path) -> None:
    """Medians over the runs of each family, with the middle half."""
    study = Study.load(folder)
    runs = study.results().query("state == 'finished'")
    marks = family_marks(runs["family"])
    _, panels = plt.subplots(1, 2, figsize=(7.2, 2.7), layout="constrained")
    for family, members in runs.groupby("family"):
        found = [curves(folder, run) for run in members["run"]]
        for axes, name in zip(panels, ("reconstruction", "mig"), strict=True):
            by_run = pd.concat([each[name] for each in found], axis=1)
            low, middle, high = by_run.quantile([0.25, 0.5, 0.75], axis=1).to_numpy()
            colour = marks[str(family)][0]
            axes.plot(by_run.index, middle, color=colour, label=family, linewidth=1.4)
            axes.fill_between(by_run.index, low, high, color=colour, alpha=0.15, linewidth=0)
    for axes, name in zip(panels, ("reconstruction term, nats", "MIG"), strict=True):
        tidy(axes)
        label(axes, "steps", name)
    panels[0].set_yscale("log")
    panels[0].yaxis.set_major_formatter("{x:g}")
    panels[0].yaxis.set_minor_formatter("{x:g}")
    panels[1].legend(frameon=False, fontsize=7, labelcolor=MUTED, loc="upper left")
    path = IMAGES / f"{study.config.name}-curves.svg"
    save_figure(panels[0].figure, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
