"""The page of one run, or of two side by side."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from markupsafe import Markup

from unbraid.base.types import FloatArray
from unbraid.data import FactorSpace, Representation, one_object
from unbraid.data.image_dataset import FactorDataset
from unbraid.data.space import level_text
from unbraid.datasets import DatasetMissing
from unbraid.files.run_files import SCORES
from unbraid.metrics import METRICS, NotDefined
from unbraid.metrics.d_lsbd import d_lsbd
from unbraid.runs.live.decoder import live_models
from unbraid.runs.run import Run
from unbraid.runs.run_text import described
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.score_page import page_content, symmetry_figures
from unbraid.scoring.score_page_content import number_text
from unbraid.scoring.scored import Scored
from unbraid.show import plot_curves
from unbraid.show.html import render
from unbraid.show.image_addresses import sheet_address
from unbraid.show.svg import inline_svg
from unbraid.show.words import in_words

SHEET = (3, 8)  # rows and columns of generated images
LARGEST_CIRCLE = 5000  # images encoded for the planes of cyclic factors


def run_page(run: Run, *, compare: Run | None = None, dataset: FactorDataset | None = None) -> str:
    """A standalone HTML document whose sliders decode in the page.

    Args:
        run: finished, or diverged: then the page says when and why. Its scores are those of its scores.json.
        compare: another run of the same images, moved by the same sliders.
        dataset: of the images, if the run was trained on one in memory; without it no originals are shown.

    Raises:
        ValueError: a damaged folder, or runs of different images.
    """
    return render("run.html", run_content(run, compare=compare, dataset=dataset))


def run_content(run: Run, *, compare: Run | None = None, dataset: FactorDataset | None = None) -> dict[str, Any]:
    """The content of the page, as a plain dictionary."""
    runs = [run] if compare is None else [run, compare]
    diverged = [model for model in runs if model.status["state"] == "diverged"]
    if diverged and compare is not None:
        raise ValueError(f"{diverged[0].path} diverged: it has no images to compare")
    card = None if diverged or not (run.path / SCORES).is_file() else ScoreCard.load(run.path / SCORES, run.codes())
    # The page may be read where the folder is not.
    card = card and replace(card, path=run.path.name)
    content = {} if card is None else page_content(card)
    if card is not None and not content["symmetry"]:
        content["symmetry"] = circle_figures(run, card, dataset)
    images = len(run.config["dataset"]["image_shape"]) == 3 and not diverged
    return {
        **content,
        "scored": card is not None,
        "runs": [described(model.path.name, model.config, model.status) for model in runs],
        "live": _labelled(live_models(runs, dataset), runs, content) if images else None,
        "generated": _generated(runs) if images else [],
        "curves": _curves(runs, [run.curves() for run in runs], "curves", "Losses and their parts over training steps"),
        "snapshots": _curves(runs, [run.snapshots() for run in runs], "snapshots", "Metrics over training steps"),
        "held_out": _curves(runs, [run.held_out() for run in runs], "held_out", "ELBO of images kept out of training"),
        "comparison": _comparison(runs) if compare is not None else None,
    }


def circle_figures(run: Run, card: ScoreCard, dataset: FactorDataset | None = None) -> list[dict[str, Any]]:
    """Cyclic factors in their planes, from every turn of one object; empty if the dataset is no such grid."""
    try:
        opened = run.dataset(dataset)
    except (ValueError, OSError, DatasetMissing):
        return []
    space = opened.space
    if not isinstance(space, FactorSpace) or "cyclic" not in space.kinds:
        return []
    index = one_object(space)
    if len(index) > LARGEST_CIRCLE:
        return []
    turned = Representation(
        run.encode(opened.images(index)), space.factors(index), names=space.names, kinds=space.kinds,
        sizes=space.turns, levels=space.levels,
    )  # fmt: skip
    cyclic = [name for name, kind in zip(space.names, space.kinds, strict=True) if kind == "cyclic"]
    chosen = turned.keep_factors(cyclic)
    try:
        result = d_lsbd(chosen.codes, chosen.factors, kinds=chosen.kinds, sizes=chosen.sizes)
    except NotDefined:
        return []
    scored = {"d_lsbd": Scored(METRICS["d_lsbd"], result, 0.0, factors=chosen.names)}
    shown = replace(card, representation=chosen, scored=scored)
    figures = symmetry_figures(shown)
    fixed = [k for k, name in enumerate(space.names) if name not in cyclic]
    levels = level_text(space, turned.factors[0], fixed)
    return [
        {**figure, "text": f"{figure['text']} One object: {levels}." if levels else figure["text"]}
        for figure in figures
    ]


def _generated(runs: list[Run]) -> list[dict[str, str]]:
    """A sheet of images from the prior of each model that has one."""
    sheets = []
    for run, name in zip(runs, _names(runs), strict=True):
        if run.has_prior:
            images = run.generate(SHEET[0] * SHEET[1])
            sheets.append({"name": name, "src": sheet_address(images.reshape(*SHEET, *images.shape[1:]))})
    return sheets


def _labelled(live: dict[str, Any], runs: list[Run], content: Mapping[str, Any]) -> dict[str, Any]:
    """Add names of the models, and to each slider the factors that are assigned to the first model's code."""
    owners = {code["code"]: code["factors"] for code in content.get("codes", [])}
    for slider in live["sliders"]:
        slider["factors"] = [factor for code in slider["codes"][0] for factor in owners.get(code, [])]
    for model, name in zip(live["models"], _names(runs), strict=True):
        model["name"] = name
    return live


def _names(runs: list[Run]) -> list[str]:
    """Distinguishing names of runs: family, and the settings in which they differ."""
    settings = [
        {**run.config["hyperparameters"], "seed": run.config["seed"], "steps": run.config["steps"]} for run in runs
    ]
    different = [
        name for name in settings[0] if any(own_settings.get(name) != settings[0][name] for own_settings in settings)
    ]
    names = []
    for run, own in zip(runs, settings, strict=True):
        parts = [f"{name}={own[name]}" for name in different if name in own]
        names.append(" ".join([run.config["family"], ", ".join(parts)]).strip())
    return (
        names
        if len(set(names)) == len(names)
        else [f"{name} {run.path.name}" for name, run in zip(names, runs, strict=True)]
    )


def _curves(runs: list[Run], tables: list[dict[str, FloatArray]], name: str, label: str) -> Markup | None:
    """A figure of each run's table over steps; None if all are empty."""
    named = zip(_names(runs), tables, strict=True)
    curves = {each: own for each, own in named if len(own.get("step", ())) and len(own) > 1}
    if not curves:
        return None
    axes = plot_curves(curves if len(runs) > 1 else curves.popitem()[1])
    return inline_svg(axes[0].figure, name=name, label=label)  # pyright: ignore[reportArgumentType]


def _comparison(runs: list[Run]) -> list[dict[str, Any]] | None:
    """Headlines of both runs side by side."""
    paths = [run.path / SCORES for run in runs]
    if not all(path.is_file() for path in paths):
        return None
    one, other = (ScoreCard.load(path).scored for path in paths)
    rows = []
    for name in one:
        if name in other and one[name].metric.headline == other[name].metric.headline:
            metric, values = one[name].metric, [one[name].headline, other[name].headline]
            best = int(np.argmax(values) if metric.higher_is_better else np.argmin(values))
            rows.append(
                {
                    "id": name,
                    "headline": in_words(metric.headline),
                    "higher": metric.higher_is_better,
                    "texts": [number_text(value) for value in values],
                    "better": None if values[0] == values[1] else best,
                }
            )
    return rows
