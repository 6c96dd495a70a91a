"""Figures of one representation: codes with the factors that made them."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from unbraid.base.comma_lists import listed
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace, Representation, one_object
from unbraid.figures.drawn_figure import Drawn, figure_of, long_form
from unbraid.figures.figure_source import Source
from unbraid.metrics import NotDefined, d_lsbd
from unbraid.metrics._shared.interventions import combinations
from unbraid.metrics.d_lsbd import turned_back
from unbraid.scoring.score import score
from unbraid.scoring.score_page import first_object, short
from unbraid.scoring.score_page_content import dead_codes
from unbraid.show import plot_circles, plot_hinton, plot_important_codes, plot_kl, plot_latents
from unbraid.show.hinton import matrix_of
from unbraid.show.important import most_important_codes
from unbraid.show.latents import colouring_factor, factor_rows, fitting_codes, steps_of
from unbraid.show.scatter import level_name
from unbraid.show.style import FONT_SIZE, INK, level_colours, thinned

DOTS = 5_000
LETTERS = 0.55  # that a mm of a line of text holds
SHORTEST, LONGEST = 8, 18  # letters of the name of a code above its panels
LARGEST_SAMPLE = 20_000  # rows that a figure of means looks at
LARGEST_GRID = 100_000  # images that are encoded for circles


def hinton(source: Source, *, metric: str = "dci_boosted", seed: int = 0) -> Drawn:
    """Hinton diagram of the importance of codes for factors."""
    representation = source.representation
    result = score(representation, metrics=[metric], seed=seed)[metric]
    if not hasattr(result, "importance") and not hasattr(result, "mutual_information"):
        raise ValueError(
            f"{metric} has no matrix of codes and factors; dci_lasso, dci_forest, dci_boosted and mig have"
        )
    if not matrix_of(result).any():
        raise ValueError(f"{source.path}: by {metric} no code matters to any factor; --set metric=mig asks another")
    name = "importance" if hasattr(result, "importance") else "mutual_information"
    return _squares(source, matrix_of(result), name)


def information(source: Source, *, seed: int = 0) -> Drawn:
    """Mutual information of codes and factors, each factor's own code framed."""
    card = score(source.representation, metrics=["mig", "snc"], seed=seed)
    return _squares(source, card["mig"].mutual_information, "mutual_information", np.asarray(card["snc"].alignment))


def _squares(source: Source, matrix: FloatArray, name: str, alignment: IntArray | None = None) -> Drawn:
    """The Hinton diagram of the codes and factors that are asked for."""
    representation, labels = source.representation, source.representation.code_labels()
    columns = source.chosen.columns(representation)
    rows, caption = source.chosen.rows(labels, matrix[:, columns])
    axes = plot_hinton(
        matrix[:, columns], row_names=[short(label) for label in labels], codes=rows.tolist(),
        column_names=[short(representation.names[k]) for k in columns], greyed=dead_codes(representation).tolist(),
        alignment=None if alignment is None else alignment[columns],
    )  # fmt: skip
    cells = (
        (_code_name(representation, code), representation.names[k], float(matrix[code, k]))
        for code in rows
        for k in columns
    )
    data = long_form(cells, "code", "factor", name)
    if alignment is not None:
        data["aligned"] = [int(alignment[k]) == code for code in rows for k in columns]
    return Drawn(figure_of(axes), data, caption)


def important_codes(source: Source, *, metric: str = "mig", angles: str = "", seed: int = 0) -> Drawn:
    """Each factor against its most important code, a cyclic one against three.

    So are the factors that angles names, such as the azimuth of teapots, whose kind is continuous.
    """
    representation = source.representation
    columns = source.chosen.columns(representation)
    matrix = matrix_of(score(representation, metrics=[metric], seed=seed)[metric])[:, columns]
    shown = representation.keep_factors([representation.names[k] for k in columns])
    around = replace(source.chosen, factors=listed(angles)).columns(shown) if angles else []
    panels = plot_important_codes(
        matrix, shown.codes, shown.factors, kinds=shown.kinds, sizes=shown.sizes, levels=shown.levels,
        periods=shown.periods, factor_names=[short(name) for name in shown.names],
        code_names=[short(label, 20) for label in shown.code_labels()],
        greyed=dead_codes(representation).tolist(), angles=around, max_points=DOTS, width=source.chosen.width,
    )  # fmt: skip
    rows, values = thinned(len(representation), DOTS), shown.in_label_units()
    data = long_form(
        (
            (shown.names[k], float(values[row, k]), _code_name(representation, code), float(shown.codes[row, code]))
            for k, code in most_important_codes(matrix, shown.kinds, around)
            for row in rows
        ),
        "factor", "level", "code", "value",
    )  # fmt: skip
    return Drawn(figure_of(panels[0]), data)


def latents(source: Source) -> Drawn:
    """Mean of each code that is not dead at each level of each factor, positions as maps."""
    whole = source.representation
    alive = np.setdiff1d(np.arange(whole.codes.shape[1]), dead_codes(whole))
    if not len(alive):
        raise ValueError(f"{source.path}: every code is dead")
    representation = whole.keep_factors([whole.names[k] for k in source.chosen.columns(whole)])
    if not representation.names:
        raise ValueError(f"{source.path}: these codes have no factors, over which they could be drawn")
    labels, fitting = representation.code_labels(), fitting_codes(source.chosen.width)
    all_shown = source.chosen.codes or len(alive) <= fitting and not source.chosen.top
    weights = np.ones(len(labels)) if all_shown else score(representation, metrics="mig")["mig"].mutual_information
    codes, caption = source.chosen.rows(labels, weights, most=fitting, among=alive)
    rows = thinned(len(representation), LARGEST_SAMPLE)
    factors = representation.in_label_units()[rows]
    letters = LETTERS * source.chosen.width
    factor_letters = max(len(short(name)) for name in representation.names)
    head = max(SHORTEST, min(LONGEST, int((letters - factor_letters) / len(codes))))
    panels = plot_latents(
        representation.codes[rows][:, codes], factors, kinds=representation.kinds, factor_names=representation.names,
        code_names=[short(labels[code], head) for code in codes], width=source.chosen.width,
    )  # fmt: skip
    figure = figure_of(panels[0][0])
    rows_of_panels = [
        [representation.names[k] for k in row] for row in factor_rows(representation.names, representation.kinds)
    ]
    for row, names in zip(panels, rows_of_panels, strict=True):
        row[0].yaxis.label.set_text("\n".join(map(short, names)))
    split = colouring_factor(factors, representation.kinds)
    groups: list[str] = []
    if split is not None:
        named = representation.levels[split] if representation.levels else ()
        present = np.unique(factors[:, split])
        groups = [f"{representation.names[split]} {level_name(level, named, longest=None)}" for level in present]
        shown_groups = [f"{short(representation.names[split])} {level_name(level, named)}" for level in present]
        handles = [Line2D([], [], color=colour, linewidth=2) for colour in level_colours(len(groups))]
        fitting = int(letters / (6 + max(map(len, shown_groups))))  # a line of colour is as wide as 6 letters
        legend = figure.legend(
            handles, shown_groups, loc="upper center", bbox_to_anchor=(0.5, 0.0),
            ncols=max(1, min(3, len(groups), fitting)), frameon=False, fontsize=FONT_SIZE - 1, labelcolor=INK,
        )  # fmt: skip
        for text in legend.get_texts():
            text.set_parse_math(False)
    places = {
        name: steps_of(factors[:, k], representation.kinds[k])[0] for k, name in enumerate(representation.names)
    }  # fmt: skip
    shown = _means(
        zip(rows_of_panels, panels, strict=True), [_code_name(representation, code) for code in codes], groups, places
    )
    data = long_form(shown, "factor", "level", "level_y", "group", "code", "mean")
    return Drawn(figure, data, caption)


def _means(panels: Any, codes: list[int | str], groups: list[str], places: Mapping[str, FloatArray]) -> Any:
    """What the panels of each row of factors show: points of lines and dots, and cells of maps."""
    for names, row in panels:
        factor = " and ".join(names)
        for code, ax in zip(codes, row, strict=True):
            for number, line in enumerate(ax.lines[1:]):  # the first is the line of zero
                for x, y in np.asarray(line.get_xydata()):
                    yield factor, x, "", groups[number] if len(ax.lines) > 2 else "", code, y
            for image in ax.images:
                for (y, x), mean in np.ndenumerate(np.ma.filled(image.get_array(), np.nan)):
                    yield factor, places[names[0]][x], places[names[1]][y], "", code, mean
            for x, y in ax.collections[1].get_offsets() if len(ax.collections) > 1 else ():
                yield factor, x, "", "", code, y


def circles(source: Source) -> Drawn:
    """Each cyclic factor in its plane of the codes, coloured by its angle, before and after it is turned back."""
    representation = _full_circles(source)
    try:
        result = d_lsbd(
            representation.codes, representation.factors, kinds=representation.kinds, sizes=representation.sizes
        )
    except NotDefined as reason:
        hint = "; important-codes draws angles of any value" if "cyclic" in representation.kinds else ""
        raise ValueError(f"{source.path}: {reason}{hint}") from None
    rows = first_object(representation, result.subgroups)
    names = [representation.names[factor] for factor in result.subgroups]
    columns = source.chosen.columns(representation)
    drawn = [place for place, factor in enumerate(result.subgroups) if factor in columns]
    if not drawn:
        raise ValueError(f"{source.path}: {', '.join(source.chosen.factors)} is not cyclic; {', '.join(names)} is")
    other_factors = np.delete(representation.factors, result.subgroups, axis=1).astype(float)
    frequencies = result.frequencies[combinations(other_factors)[rows[0]]]
    back = np.stack(
        [
            turned_back(result.projected[k][rows], result.angles[rows, k], frequency)
            for k, frequency in enumerate(frequencies)
        ]
    )
    panels = plot_circles(
        result, names=[short(name) for name in names], rows=rows, back=back, only=drawn, width=source.chosen.width
    )
    data = long_form(
        (
            (name, float(result.angles[row, k]), *map(float, result.projected[k][row]), *map(float, back[k][place]))
            for k, name in ((k, names[k]) for k in drawn)
            for place, row in enumerate(rows)
        ),
        "factor", "angle", "x", "y", "back_x", "back_y",
    )  # fmt: skip
    return Drawn(figure_of(panels[0]), data)


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
    representation = Representation(
        source.run.encode(dataset.images(index)), space.factors(index),
        names=space.names, kinds=space.kinds, sizes=space.turns, levels=space.levels,
    )  # fmt: skip
    return representation.keep_factors(
        [name for name, kind in zip(space.names, space.kinds, strict=True) if kind == "cyclic"]
    )


def kl(source: Source, *, threshold: float = 0.01) -> Drawn:
    """Latents by their KL from the prior, informative ones in blue."""
    values = source.representation.mean_kl()
    if values is None:
        raise ValueError(f"{source.path}: no log_variances, which the KL needs")
    labels = source.representation.code_labels()
    shown, caption = source.chosen.rows(labels, values)
    order = shown[np.argsort(-values[shown], kind="stable")]
    axes = plot_kl(values, threshold=threshold, names=[short(label) for label in labels], codes=shown.tolist())
    codes = [_code_name(source.representation, code) for code in order]
    return Drawn(
        figure_of(axes), {"code": codes, "kl": values[order], "informative": values[order] > threshold}, caption
    )


def _code_name(representation: Representation, code: int) -> int | str:
    """The name of a code, or its number."""
    return representation.code_names[code] if representation.code_names else int(code)
