"""Draw how the runs of a study learnt, family by family: docs/images/NAME-curves.svg.

python evidence/make_curves.py FOLDER              of a study that took snapshots of one metric
python evidence/make_curves.py FOLDER --settings   setting by setting, each run by itself
"""

import json
import math
import sys
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from unbraid import Study
from unbraid.scoring.setting_names import with_brief_settings
from unbraid.show.style import MUTED, family_marks, label, tidy
from unbraid.show.theme import save_figure

IMAGES = Path(__file__).parents[1] / "docs" / "images"
AXES = {"mig": "MIG", "d_lsbd": "D_LSBD", "dci_forest": "DCI's D, forest"}
POINTS = 25  # of the reconstruction term, each a mean of steps


def curves(folder: Path, run: str) -> tuple[pd.Series, pd.Series]:
    """Reconstruction, of InfoGAN the distance of made images, and the metric of the snapshots of one run, by step."""
    learning = pd.read_parquet(folder / "runs" / run / "curves.parquet")
    # Of labelled groups alone, or of a critic.
    term = next(name for name in ("reconstruction", "group_reconstruction", "wasserstein") if name in learning)
    learning = learning[["step", term]].dropna()
    learning[term] -= gaussian_constant(folder / "runs" / run)
    steps = learning["step"].max() / POINTS * np.ceil(learning["step"] / learning["step"].max() * POINTS)
    snapshots = pd.read_parquet(folder / "runs" / run / "snapshots.parquet").set_index("step")
    return learning.groupby(steps)[term].mean(), snapshots[snapshots.columns[-1]]


def gaussian_constant(run: Path) -> float:
    """The part of the reconstruction term that no learning changes; 0 for other likelihoods."""
    config = json.loads((run / "config.json").read_text())
    chosen = config["hyperparameters"]
    if chosen.get("likelihood") != "gaussian":
        return 0.0
    weight = chosen.get("reconstruction_weight", 1) * math.prod(config["dataset"]["image_shape"])
    return weight * (math.log(chosen["sigma"]) + 0.5 * math.log(2 * math.pi))


def draw(axes: Axes, found: list[pd.Series], colour: str, name: str, alone: bool) -> None:
    """The median with the middle half, or every run."""
    by_run = pd.concat(found, axis=1)
    if alone:
        lines = axes.plot(by_run.index, by_run.to_numpy(), color=colour, linewidth=0.9)
        lines[0].set_label(name)
        return
    low, middle, high = by_run.quantile([0.25, 0.5, 0.75], axis=1).to_numpy()
    axes.plot(by_run.index, middle, color=colour, label=name, linewidth=1.4)
    axes.fill_between(by_run.index, low, high, color=colour, alpha=0.15, linewidth=0)


def main(folder: Path, by_setting: bool) -> None:
    """Both panels: the reconstruction term, and the metric."""
    study = Study.load(folder)
    runs = study.results().query("state == 'finished'")
    runs = runs[[(folder / "runs" / run / "snapshots.parquet").is_file() for run in runs["run"]]]  # PCA takes no steps
    if by_setting:
        runs = with_brief_settings(runs)
        runs = runs.assign(family=(runs["family"] + " " + runs["setting"]).str.strip())
    marks = family_marks(runs["family"])
    figure, (learning, scores) = plt.subplots(1, 2, figsize=(9 if by_setting else 8.2, 2.7), layout="constrained")
    metric = ""
    for family, members in runs.groupby("family"):
        terms, values = zip(*(curves(folder, run) for run in members["run"]), strict=True)
        if by_setting:  # whose pixels have other likelihoods
            terms = [each / each.iloc[-1] for each in terms]
        metric = str(values[0].name)
        for axes, found in ((learning, terms), (scores, values)):
            draw(axes, list(found), marks[str(family)][0], str(family), by_setting)
    term = "reconstruction term, of its last" if by_setting else "reconstruction term, nats"
    for axes, name in ((learning, term), (scores, AXES[metric])):
        tidy(axes)
        axes.locator_params(axis="x", nbins=5)
        label(axes, "steps", name)
    if by_setting:
        learning.set_ylim(0.99, 1.2 if metric == "d_lsbd" else 1.6)
        if metric == "d_lsbd":
            scores.set_yscale("log")
            scores.yaxis.set_major_formatter("{x:g}")
    else:
        learning.set_yscale("log")
        learning.yaxis.set_major_formatter("{x:g}")
        learning.yaxis.set_minor_formatter("{x:g}")
    figure.legend(
        *scores.get_legend_handles_labels(), frameon=False, fontsize=7, labelcolor=MUTED, loc="outside right upper"
    )
    path = IMAGES / f"{study.config.name}-curves.svg"
    save_figure(figure, path)
    print(f"wrote {path}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "--settings" in sys.argv[2:])
