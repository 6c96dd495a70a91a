"""Figures of a study: many runs, compared."""

import inspect
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from unbraid.base.comma_lists import listed
from unbraid.base.printable import printable
from unbraid.base.types import DataFrame, FloatArray
from unbraid.figures.drawn_figure import Drawn, figure_of, long_form
from unbraid.figures.figure_source import Source
from unbraid.metrics import METRICS
from unbraid.metrics._shared.metric_arguments import arguments_of, metric_hint
from unbraid.ranking.cache import FOLDER, read_ranking
from unbraid.scoring.agreement import EVERYTHING, agreement
from unbraid.scoring.by_setting import quartiles, trend, with_elbo
from unbraid.scoring.result_columns import headline_columns, hyperparameter_columns, numbers
from unbraid.scoring.score_page import short
from unbraid.scoring.setting_names import brief_settings
from unbraid.show import plot_against, plot_box_per_setting, plot_correlations, plot_similarity
from unbraid.show.style import FONT_SIZE, INK, family_marks, label, new_axes, tidy

LONGEST_FAMILY = 20  # letters of a name beside a plot
LINES = (2.9, 2.1)  # inches
MOST_NAMES = 20  # of settings beside a matrix; where there are more, families are named
DECADES = 8.0  # ratio of the largest to the smallest hyperparameter from which its axis is logarithmic


def boxes(source: Source, *, column: str = "") -> Drawn:
    """Box plot of a score by setting: quartiles, extremes and each run."""
    result = quartiles(source.results, column or _score(source.results))
    axes = plot_box_per_setting(result, colours=_colours(source))
    rows = ((box.family, box.setting, float(value)) for box in result.boxes for value in box.values)
    return Drawn(figure_of(axes), long_form(rows, "family", "setting", result.column))


def correlations(source: Source, *, columns: str = "", group: str = EVERYTHING, method: str = "spearman") -> Drawn:
    """Correlations of metrics over runs, faded where p > 0.05."""
    if method not in {"spearman", "pearson"}:
        raise ValueError(f"method of correlations must be spearman or pearson; got {method!r}")
    result = agreement(source.results, listed(columns) or None, method=method)  # pyright: ignore[reportArgumentType]
    if group not in result.groups:
        raise ValueError(f"no group {group!r} in {source.path}; there are {', '.join(result.groups)}")
    names, values, p = result.matrix(group)
    if len(names) < 2:
        reasons = "; ".join(f"{', '.join(pair.columns)} {pair.reason}" for pair in result.left_out[:3])
        raise ValueError(f"{source.path}: fewer than two columns can be compared: {reasons}")
    own = [correlation for correlation in result.correlations if correlation.group == group]
    rows = (
        (correlation.first, correlation.second, correlation.value, correlation.p, correlation.n) for correlation in own
    )
    return Drawn(figure_of(plot_correlations(names, values, p)), long_form(rows, "first", "second", "value", "p", "n"))


def scatter(source: Source, *, x: str = "", y: str = "") -> Drawn:
    """Any two columns of the results against each other, one dot per run."""
    frame = source.results
    y = y or _score(frame)
    x = x or next((name for name in ("udr.score", *headline_columns(frame)) if name != y and _known(frame, name)), "")
    if not x:
        raise ValueError(
            f"{source.path}: there is no second score; give x, the name of a column such as train.reconstruction"
        )
    return _dots(source, x, y)


def hyperparameter(source: Source, *, x: str = "", y: str = "") -> Drawn:
    """A metric against a hyperparameter, one dot per run."""
    frame = source.results
    varying = hyperparameter_columns(frame)
    if not x and not varying:
        raise ValueError(f"{source.path}: no hyperparameter with a number varies")
    x = x or varying[0]
    drawn = _dots(source, x if x.startswith("hyper.") else f"hyper.{x}", y or _score(frame))
    values = np.asarray(list(drawn.data.values())[3], dtype=float)
    if values.min() > 0 and values.max() >= DECADES * values.min():
        axes = drawn.figure.axes[0]
        present = np.unique(values)
        axes.set_xscale("log")
        axes.set_xticks(present, [f"{value:g}" for value in present])
        axes.minorticks_off()
    return drawn


def tradeoff(source: Source, *, x: str = "elbo", y: str = "") -> Drawn:
    """Trade-off of ELBO and MIG, mean per setting, larger dots for later settings."""
    return _means(source, with_elbo(source.results), x, y or _mig(source))


def total_correlation(source: Source, *, x: str = "elbo_terms.total_correlation", y: str = "") -> Drawn:
    """Total correlation against MIG, mean per setting, larger dots for later settings."""
    return _means(source, source.results, x, y or _mig(source))


def _mig(source: Source) -> str:
    """The exact MIG, which the paper's figures show, where the study has it; else the binned one."""
    return "mig_exact.score" if "mig_exact.score" in source.results else "mig.score"


def metric_argument(source: Source, *, metric: str = "beta_vae_score", argument: str = "batch_size") -> Drawn:
    """A metric against one of its arguments, one line per run."""
    columns = _by_argument(source, metric, argument)
    scores = np.stack([numbers(source.results, column) for column in columns.values()], axis=1)
    scored = np.isfinite(scores).any(axis=1)
    frame, scores = source.results[scored], scores[scored]
    axes = new_axes(*LINES)
    tidy(axes)
    colours = _colours(source)
    of_family = {}
    for family, line in zip(frame["family"], scores, strict=True):
        (of_family[family],) = axes.plot(list(columns), line, color=colours[family][0], linewidth=1, alpha=0.7)
    if len(of_family) > 1:
        names = [short(family, LONGEST_FAMILY) for family in of_family]
        axes.legend(
            of_family.values(), names, fontsize=FONT_SIZE - 1.5, labelcolor=INK, frameon=False, loc="upper left",
            bbox_to_anchor=(1.0, 1.02), borderpad=0,
        )  # fmt: skip
    if min(columns) > 0 and max(columns) >= DECADES * min(columns):
        axes.set_xscale("log")
        axes.set_xticks(list(columns), [f"{value:g}" for value in columns])
        axes.minorticks_off()
    label(axes, argument, metric)
    rows = (
        (run, family, setting, value, float(score))
        for run, family, setting, line in zip(frame["run"], frame["family"], frame["setting"], scores, strict=True)
        for value, score in zip(columns, line, strict=True)
    )
    return Drawn(figure_of(axes), long_form(rows, "run", "family", "setting", argument, metric))


def _by_argument(source: Source, metric: str, argument: str) -> dict[float, str]:
    """Columns of a metric that differ in this argument alone, by its value, in order."""
    if metric not in METRICS:
        raise ValueError(f"unknown metric {metric!r}; {metric_hint(metric)}")
    parameter = inspect.signature(METRICS[metric].function).parameters.get(argument)
    columns: dict[float, str] = {}
    for column in headline_columns(source.results):
        name = column.rpartition(".")[0]
        arguments = arguments_of(name)
        if parameter is not None and name.partition("(")[0] == metric and arguments.keys() <= {argument}:
            columns[arguments.get(argument, parameter.default)] = column
    if len(columns) < 2:
        raise ValueError(
            f"{source.path}: {metric} was scored with fewer than two values of {argument}; add metrics such as "
            f"{metric}({argument}=8) to the study"
        )
    return dict(sorted(columns.items()))


def similarity(source: Source, *, ranking: str = "") -> Drawn:
    """Similarity of every two models; the UDR of a model is the median of its own."""
    frame = source.results  # first, since it is then that a study ranks its runs
    folder = source.snapshot.folder / FOLDER
    rankings = sorted((file.stem for file in folder.glob("*.npz")), key=lambda name: (name != "lasso", name))
    if not rankings:
        raise ValueError(f"{folder}: no ranking of the {len(frame)} runs; see unbraid rank {source.path}")
    if ranking and ranking not in rankings:
        raise ValueError(f"{folder}: no ranking {ranking!r}; there are {', '.join(rankings)}")
    path = folder / f"{ranking or rankings[0]}.npz"
    matrix = read_ranking(path)
    keys = list(zip(matrix.families, matrix.settings, strict=True))
    brief = brief_settings(keys)
    groups = [f"{printable(key[0])} {brief[key]}".strip() for key in keys]
    named = groups if len(set(groups)) <= MOST_NAMES else [printable(family) for family in matrix.families]
    order = np.lexsort((groups, named))  # members of a group side by side
    axes = plot_similarity(matrix.pairs[np.ix_(order, order)], groups=[named[place] for place in order])
    rows = (
        (matrix.runs[i], matrix.runs[j], groups[i], groups[j], float(matrix.pairs[i, j]))
        for i, j in order[np.argwhere(np.isfinite(matrix.pairs[np.ix_(order, order)]))]
    )
    return Drawn(figure_of(axes), long_form(rows, "run", "other", "setting", "other_setting", "udr"))


def _dots(source: Source, x: str, y: str) -> Drawn:
    frame = source.results
    across, up = numbers(frame, x), numbers(frame, y)
    both = np.isfinite(across) & np.isfinite(up)
    if not both.any():
        raise ValueError(f"{source.path}: no run has both {x} and {y}")
    own = frame[both]
    axes = _against(source, across[both], up[both], own["family"].tolist(), x_name=x, y_name=y)
    named = {name: own[name].tolist() for name in ("run", "family", "setting")}
    return Drawn(figure_of(axes), {**named, x: across[both], y: up[both]})


def _means(source: Source, frame: DataFrame, x: str, y: str) -> Drawn:
    result = trend(frame, x, y)
    if not result.means:
        raise ValueError(f"{source.path}: no setting has both {x} and {y}")
    families = [setting.family for setting in result.means]
    places = [families[:number].count(family) for number, family in enumerate(families)]
    across, up = np.array([[setting.x, setting.y] for setting in result.means]).T
    axes = _against(source, across, up, families, sizes=places, x_name=x, y_name=y)
    named = {
        "family": families,
        "setting": [setting.setting for setting in result.means],
        "n": [m.n for m in result.means],
    }
    return Drawn(figure_of(axes), {**named, x: across, y: up})


def _against(source: Source, across: FloatArray, up: FloatArray, families: list[str], **options: Any) -> Axes:
    colours = {short(family, LONGEST_FAMILY): mark for family, mark in _colours(source).items()}
    return plot_against(across, up, [short(family, LONGEST_FAMILY) for family in families], colours=colours, **options)


def _colours(source: Source) -> dict[str, tuple[str, str]]:
    """One colour and mark per family, in every figure of the study, whichever of its runs a figure shows."""
    return family_marks(source.results["family"].tolist())


def _score(frame: DataFrame) -> str:
    """UDR where there is some, or else the first metric."""
    known = [name for name in ("udr.score", *headline_columns(frame)) if _known(frame, name)]
    if not known:
        raise ValueError("the study has no scores yet")
    return known[0]


def _known(frame: DataFrame, name: str) -> bool:
    return name in frame.columns and bool(np.isfinite(numbers(frame, name)).any())
