"""Figures of one representation: codes with the factors that made them."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from unbraid.factors import FactorSpace, one_object
from unbraid.figures._drawn import Drawn, long_form
from unbraid.figures._source import Source
from unbraid.metrics import NotDefined, d_lsbd
from unbraid.metrics._interventions import combinations
from unbraid.metrics.d_lsbd import turned_back
from unbraid.plots import plot_circles, plot_hinton, plot_important_codes, plot_kl, plot_latents
from unbraid.plots.hinton import matrix_of
from unbraid.plots.latents import colouring_factor, steps_of
from unbraid.plots.style import FONT_SIZE, INK, level_colours, thinned
from unbraid.report.content import dead_codes
from unbraid.representation import Representation
from unbraid.scoring import score
from unbraid.types import FloatArray

DOTS = 2_000
LARGEST_SAMPLE = 20_000  # rows that a figure of means looks at
LARGEST_GRID = 100_000  # images that are encoded for circles


def hinton(source: Source, *, metric: str = "dci_boosted", seed: int = 0) -> Drawn:
    """Hinton diagram of the importance of codes for factors."""
    held = source.representation
    result = score(held, metrics=[metric], seed=seed)[metric]
    if not hasattr(result, "importance") and not hasattr(result, "mutual_information"):
        raise ValueError(
            f"{metric} has no matrix of codes and factors; dci_lasso, dci_forest, dci_boosted and mig have"
        )
    matrix = matrix_of(result)
    axes = plot_hinton(matrix, column_names=held.names, greyed=dead_codes(held).tolist())
    name = "importance" if hasattr(result, "importance") else "mutual_information"
    return Drawn(_figure(axes), _cells(matrix, held, name))


def information(source: Source, *, seed: int = 0) -> Drawn:
    """Mutual information of codes and factors, each factor's own code framed."""
    held = source.representation
    card = score(held, metrics=["mig", "snc"], seed=seed)
    matrix, alignment = card["mig"].mutual_information, np.asarray(card["snc"].alignment)
    axes = plot_hinton(
        matrix, column_names=held.names, greyed=dead_codes(held).tolist(), alignment=alignment
    )  # fmt: skip
    cells = _cells(matrix, held, "mutual_information")
    own = [int(alignment[k]) == code for code in range(len(matrix)) for k in range(matrix.shape[1])]
    return Drawn(_figure(axes), cells | {"aligned": own})


def important_codes(source: Source, *, metric: str = "mig", seed: int = 0) -> Drawn:
    """Each factor against the code that matters most to it."""
    held = source.representation
    matrix = matrix_of(score(held, metrics=[metric], seed=seed)[metric])
    panels = plot_important_codes(
        matrix, held.codes, held.factors, kinds=held.kinds, sizes=held.sizes, levels=held.levels,
        factor_names=held.names, greyed=dead_codes(held).tolist(), max_points=DOTS,
    )  # fmt: skip
    rows = thinned(len(held), DOTS)
    best = np.abs(matrix).argmax(axis=0)
    data = long_form(
        (
            (name, float(held.factors[row, k]), int(best[k]), float(held.codes[row, best[k]]))
            for k, name in enumerate(held.names)
            for row in rows
        ),
        "factor", "level", "code", "value",
    )  # fmt: skip
    return Drawn(_figure(panels[0]), data)


def latents(source: Source) -> Drawn:
    """Mean of every live code at every level of every factor, positions as maps."""
    held = source.representation
    alive = np.setdiff1d(np.arange(held.codes.shape[1]), dead_codes(held))
    if not len(alive):
        raise ValueError(f"{source.path}: every code is dead")
    rows = thinned(len(held), LARGEST_SAMPLE)
    factors = held.factors[rows].astype(float)
    panels = plot_latents(
        held.codes[rows][:, alive], factors, kinds=held.kinds, factor_names=held.names,
        code_names=[f"code {code}" for code in alive],
    )  # fmt: skip
    figure = _figure(panels[0][0])
    split = colouring_factor(factors, held.kinds)
    groups: list[str] = []
    if split is not None:
        groups = [f"{held.names[split]} {level:g}" for level in np.unique(factors[:, split])]
        handles = [Line2D([], [], color=colour, linewidth=2) for colour in level_colours(len(groups))]
        legend = figure.legend(
            handles, groups, loc="upper center", bbox_to_anchor=(0.5, 0.0), ncols=len(groups), frameon=False,
            fontsize=FONT_SIZE - 1, labelcolor=INK,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
    places = {
        name: steps_of(factors[:, k], held.kinds[k])[0] for k, name in enumerate(held.names)
    }  # fmt: skip
    shown = _means(panels, alive, groups, places)
    return Drawn(figure, long_form(shown, "factor", "level", "level_y", "group", "code", "mean"))


def _means(panels: Any, alive: Any, groups: list[str], places: Mapping[str, FloatArray]) -> Any:
    """What the panels show: points of lines and dots, and cells of maps."""
    for row in panels:
        names = row[0].get_ylabel().split("\n")
        factor = " and ".join(names)
        for code, ax in zip(alive, row, strict=True):
            for number, line in enumerate(ax.lines[1:]):  # the first is the line of zero
                for x, y in np.asarray(line.get_xydata()):
                    yield factor, x, "", groups[number] if len(ax.lines) > 2 else "", int(code), y
            for image in ax.images:
                for (y, x), mean in np.ndenumerate(np.ma.filled(image.get_array(), np.nan)):
                    yield factor, places[names[0]][x], places[names[1]][y], "", int(code), mean
            for x, y in ax.collections[1].get_offsets() if len(ax.collections) > 1 else ():
                yield factor, x, "", "", int(code), y


def circles(source: Source) -> Drawn:
    """Every cyclic factor in its plane of the codes, coloured by its angle, before and after it is turned back."""
    held = _full_circles(source)
    try:
        result = d_lsbd(held.codes, held.factors, kinds=held.kinds, sizes=held.sizes)
    except NotDefined as reason:
        raise ValueError(f"{source.path}: {reason}") from None
    rows = _one_object(held, result.subgroups)
    names = [held.names[factor] for factor in result.subgroups]
    others = np.delete(held.factors, result.subgroups, axis=1).astype(float)
    frequencies = result.frequencies[combinations(others)[rows[0]]]
    back = np.stack(
        [
            turned_back(result.projected[k][rows], result.angles[rows, k], frequency)
            for k, frequency in enumerate(frequencies)
        ]
    )
    panels = plot_circles(result, names=names, rows=rows, back=back)
    data = long_form(
        (
            (name, float(result.angles[row, k]), *map(float, result.projected[k][row]), *map(float, back[k][place]))
            for k, name in enumerate(names)
            for place, row in enumerate(rows)
        ),
        "factor", "angle", "x", "y", "back_x", "back_y",
    )  # fmt: skip
    return Drawn(_figure(panels[0]), data)


def _full_circles(source: Source) -> Representation:
    """Codes on the grid of the cyclic factors; of a run, those of one object."""
    if source.kind == "codes":
        return source.representation
    space = source.run.dataset().space
    if not isinstance(space, FactorSpace) or "cyclic" not in space.kinds:
        raise ValueError(f"{source.path}: its images have no grid of cyclic factors")
    index = one_object(space)
    if len(index) > LARGEST_GRID:
        raise ValueError(f"{source.path}: its cyclic factors have {len(index):,} combinations; {LARGEST_GRID:,} fit")
    dataset = source.run.dataset()
    held = Representation(
        source.run.encode(dataset.images(index)), space.factors(index),
        names=space.names, kinds=space.kinds, sizes=space.sizes, levels=space.levels,
    )  # fmt: skip
    return held.keep_factors([name for name, kind in zip(space.names, space.kinds, strict=True) if kind == "cyclic"])


def _one_object(held: Representation, cyclic: Any) -> Any:
    """Rows that agree with the first in all factors that are not cyclic: only they share a plane."""
    others = np.delete(held.factors, np.asarray(cyclic, dtype=int), axis=1)
    return np.flatnonzero((others == others[0]).all(axis=1))


def kl(source: Source, *, threshold: float = 0.01) -> Drawn:
    """Latents by their KL from the prior, informative ones in blue."""
    values = source.representation.mean_kl()
    if values is None:
        raise ValueError(f"{source.path}: no log_variances, and without them no KL")
    order = np.argsort(-values, kind="stable")
    data = {"code": order, "kl": values[order], "informative": values[order] > threshold}
    return Drawn(_figure(plot_kl(values, threshold=threshold)), data)


def _cells(matrix: FloatArray, held: Representation, name: str) -> dict[str, Any]:
    rows = (
        (code, factor, float(matrix[code, k])) for code in range(len(matrix)) for k, factor in enumerate(held.names)
    )
    return long_form(rows, "code", "factor", name)


def _figure(axes: Any) -> Any:
    return axes.figure
