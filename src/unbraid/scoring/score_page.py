"""The page of one score card with its figures, and its table for notebooks."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes

from unbraid.base.types import FloatArray, IntArray, Kind
from unbraid.data import Representation
from unbraid.scoring.code_choice import relatedness
from unbraid.scoring.diagnosis import FactorDiagnosis
from unbraid.scoring.readings import class_target, number_target
from unbraid.scoring.score_page_content import (
    LARGEST_TABLE,
    ScoreCard,
    alignments,
    answer,
    code_scores,
    code_table,
    dead_codes,
    description,
    diagnosed_columns,
    matrices,
    number_text,
    score_table,
)
from unbraid.show import plot_code_plane, plot_dispersion, plot_factor_code, plot_hinton, plot_latents, plot_symmetry
from unbraid.show.html import render
from unbraid.show.latents import colouring_factor, factor_rows, new_grid
from unbraid.show.scatter import level_name
from unbraid.show.style import PALETTE, new_axes, thinned
from unbraid.show.svg import inline_svg

LARGEST_SAMPLE = 20_000  # rows that any figure looks at
DOTS = 2_000
HINTON_ROWS, HINTON_COLUMNS = 40, 24
PICTURED_FACTORS, PICTURE, LONGEST_LABEL = 16, (1.45, 0.8), 16  # their size in inches, letters of an axis
SUBGROUPS = 8
LATENT_ROWS, LATENT_COLUMNS = 10, 10
LATENT_WIDTH, WIDEST_PANEL = 9.0, 1.6  # inches
LETTERS = 14  # in an inch of a line of text


def page(card: ScoreCard) -> str:
    """A whole HTML document that needs nothing beside itself: no network, no fonts, no scripts of others.

    Example:
        >>> from unbraid import score
        >>> from unbraid.scoring.score_page import page
        >>> grid = FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid()
        >>> page(score(grid, grid, metrics="mig")).startswith("<!doctype html>")
        True
    """
    return render("page.html", page_content(card))


def table(card: ScoreCard) -> str:
    """The score table as a fragment with its own styles, in the colours of the notebook around it."""
    return render("table.html", score_table(card))


def page_content(card: ScoreCard) -> dict[str, Any]:
    """What the page shows, as a plain dictionary."""
    sampled = len(card.representation) > 0
    dead = dead_codes(card.representation) if sampled else np.array([], dtype=int)
    described = description(card, dead)
    drawn, aligned = matrices(card), alignments(card)
    return {
        "card": described,
        **score_table(card),
        "answer": answer(card, answer_figures(card, dead) if sampled else {}),
        "aligned": " and ".join(aligned[0]["metrics"][:2]) if aligned else "",
        "hintons": hinton_figures(card, drawn, aligned, dead),
        "symmetry": symmetry_figures(card) if sampled else [],
        "latents": latents_figure(card, aligned, dead) if sampled else None,
        "codes": code_table(card, aligned, dead) if sampled else [],
        "code_metrics": list(code_scores(card)),
        "limits": {
            "dots": min(DOTS, described["n_samples"]),
            "sample": min(LARGEST_SAMPLE, described["n_samples"]),
        },
    }


def hinton_figures(
    card: ScoreCard, matrix_entries: Sequence[Mapping[str, Any]], aligned: Sequence[Mapping[str, Any]], dead: IntArray
) -> list[dict[str, Any]]:
    """One Hinton diagram per distinct matrix."""
    figures = []
    alignment = np.array(aligned[0]["codes"] if aligned else [-1] * len(card.representation.names))
    for index, entry in enumerate(matrix_entries):
        matrix = entry["matrix"]
        rows, columns = _largest(np.abs(matrix).sum(axis=1), HINTON_ROWS), np.arange(matrix.shape[1])[:HINTON_COLUMNS]
        shown = matrix[np.ix_(rows, columns)]
        place = {int(row): i for i, row in enumerate(rows)}
        heads = [short(card.representation.names[k]) for k in columns]
        labels = card.representation.code_labels()
        sides = [short(labels[row]) for row in rows]
        axes = plot_hinton(
            shown,
            row_names=sides,
            column_names=heads,
            greyed=[place[int(row)] for row in dead if int(row) in place],
            alignment=[place.get(int(alignment[k]), -1) for k in columns],
        )
        metrics, largest = ", ".join(entry["metrics"]), float(np.abs(matrix).max())
        figures.append(
            {
                "title": _listed(entry["metrics"]),
                "svg": _svg(axes, f"hinton{index}", f"Hinton diagram of the {entry['quantity']} matrix of {metrics}"),
                "quantity": entry["quantity"],
                "largest": number_text(largest),
                "unit": " nats" if entry["quantity"] == "mutual information" else "",
                "cut": _cut(
                    (len(rows), len(matrix), "codes of largest total"), (len(columns), matrix.shape[1], "first factors")
                ),
                "wide": len(columns) > 8,
                "heads": heads,
                # To three decimals, in which entries far below the largest vanish.
                "rows": [
                    (side, [number_text(0.0 if abs(v) < 5e-4 <= largest / 100 else float(v)) for v in row])
                    for side, row in zip(sides, shown, strict=True)
                ]
                if shown.size <= LARGEST_TABLE
                else [],
            }
        )
    return figures


def answer_figures(card: ScoreCard, dead: IntArray) -> dict[str, Markup]:
    """A small picture for each of the first factors that shows what the diagnosis says of it."""
    diagnosis = card.diagnosis
    live = np.setdiff1d(np.arange(card.representation.codes.shape[1]), dead)
    if diagnosis is None or not len(live):
        return {}
    codes, factors = _sample(card)
    columns = diagnosed_columns(card)
    pictures = {}
    for k, name in enumerate(card.representation.names[:PICTURED_FACTORS]):
        factor = diagnosis.factors[name]
        shares = {code: diagnosis.codes[code].factors.get(name, 0.0) for code in factor.codes if code in columns}
        related = [columns[code] for code in sorted(shares, key=lambda code: -shares[code])]
        if not related:
            related = [int(live[_most_related(codes[:, live], factors[:, k], card.representation, k)])]
        axes, label = _picture(card.representation, k, factor, related, codes, factors[:, k])
        pictures[name] = _svg(axes, f"answer{k}", label, crop=False)
    return pictures


def _picture(
    representation: Representation, k: int, factor: FactorDiagnosis, related: Sequence[int], codes: FloatArray,
    values: FloatArray,
) -> tuple[Axes, str]:  # fmt: skip
    """Factor k against its code or a linear fit of its codes, or two of these coloured by it; and what it shows."""
    name, kind, labels = representation.names[k], representation.kinds[k], representation.code_labels()
    size = None if representation.sizes is None else representation.sizes[k]
    style: dict[str, Any] = {"kind": kind, "size": size, "max_points": DOTS, "ax": new_axes(*PICTURE)}
    fitted = factor.mixture == "linear" and not factor.detail and kind in {"ordinal", "continuous"}
    if len(related) > 1 and not fitted:
        first, second = (short(labels[code], LONGEST_LABEL) for code in related[:2])
        axes = plot_code_plane(codes[:, related[:2]], values, code_names=(first, second), **style)
        if factor.kind != "circle":
            axes.set_aspect("auto")
        return axes, f"{labels[related[0]]} against {labels[related[1]]}, coloured by {name}"
    code, words = codes[:, related[0]], labels[related[0]]
    if fitted:
        inputs = np.column_stack([codes[:, related], np.ones(len(codes))])
        code, words = inputs @ np.linalg.lstsq(inputs, values, rcond=None)[0], "linear fit"
    axes = plot_factor_code(
        code, values, code_name=short(words, LONGEST_LABEL), factor_name=short(name),
        levels=representation.levels[k] if representation.levels else (),
        period=representation.periods[k] if representation.periods else 0.0, **style,
    )  # fmt: skip
    return axes, f"{words} against {name}"


def _most_related(codes: FloatArray, values: FloatArray, representation: Representation, k: int) -> int:
    """The code of which a line or a curve explains most of factor k."""
    target = class_target(values) if representation.kinds[k] == "categorical" else number_target(values)
    if representation.kinds[k] == "cyclic":
        size = representation.sizes[k] if representation.sizes is not None else 0
        angles = 2 * np.pi * values / (size or np.ptp(values) + 1) if (values == np.rint(values)).all() else values
        target = number_target(np.column_stack([np.cos(angles), np.sin(angles)]))
    return int(relatedness(codes, [target], [np.arange(len(codes))])[0, 0].argmax())


def latents_figure(card: ScoreCard, aligned: Sequence[Mapping[str, Any]], dead: IntArray) -> dict[str, Any] | None:
    """Mean of live codes at every level of every factor, or None where no code lives or there are no factors.

    Of many codes those that are the own code of a factor, and of others those of the largest spread.
    """
    alive = np.setdiff1d(np.arange(card.representation.codes.shape[1]), dead)
    if not len(alive) or not card.representation.names:
        return None
    codes, factors = _sample(card)
    spread = codes[:, alive].std(axis=0)
    own = np.isin(alive, [code for each in aligned for code in each["codes"]])
    shown = alive[_largest(np.where(own, spread + spread.max(), spread), LATENT_COLUMNS)]
    all_names, all_kinds = card.representation.names, card.representation.kinds
    keep = sorted(k for row in factor_rows(all_names, all_kinds)[:LATENT_ROWS] for k in row)
    names, factors = [short(all_names[k]) for k in keep], factors[:, keep]
    kinds: list[Kind] = [all_kinds[k] for k in keep]
    rows, panel = factor_rows(names, kinds), min(WIDEST_PANEL, LATENT_WIDTH / len(shown))
    axes = plot_latents(
        codes[:, shown],
        factors,
        kinds=kinds,
        factor_names=names,
        code_names=[short(card.representation.code_labels()[code], int(LETTERS * panel) - 1) for code in shown],
        figure=new_grid(len(rows), len(shown), (panel, 0.9)),
    )
    split = colouring_factor(factors, kinds)
    named = () if split is None or not card.representation.levels else card.representation.levels[keep[split]]
    present = [] if split is None else np.unique(factors[:, split])
    levels = [f"{names[split or 0]} {level_name(level, named)}" for level in present]
    return {
        "svg": _svg(axes[0][0], "latents", "Mean of each live code at each level of each factor"),
        "legend": list(zip(levels, PALETTE, strict=False)),
        "maps": any(len(row) == 2 for row in rows),
        "cut": _cut(
            (len(shown), len(alive), "own codes of factors, then live codes of largest spread"),
            (len(keep), len(all_names), "first factors"),
        ),
    }


def symmetry_figures(card: ScoreCard) -> list[dict[str, Any]]:
    """For each cyclic factor of a Result that projects onto planes: its embeddings, and what each frequency leaves."""
    figures = []
    for metric, scored in card.scored.items():
        result = scored.result
        if not all(hasattr(result, field) for field in ("projected", "angles", "dispersion", "subgroups")):
            continue
        representation = scored.objects or card.representation
        if len(result.angles) != len(representation):
            continue
        rows = first_object(representation, result.subgroups)
        restriction = (
            ""
            if len(rows) == len(representation)
            else " Samples that share the first one's levels of the other factors."
        )
        for subgroup, factor in enumerate(result.subgroups[:SUBGROUPS]):
            name = representation.names[factor]
            axes = plot_symmetry(result, subgroup=subgroup, rows=rows)
            label = f"Embeddings in the plane of {name}, coloured by its angle"
            svg = _svg(axes, f"plane-{metric}-{subgroup}", label, crop=False)
            figures.append({"title": f"{name}: its plane", "svg": svg, "text": f"Coloured by angle.{restriction}"})
            axes = plot_dispersion(result, subgroup=subgroup)
            label = f"Dispersion left by each frequency of {name}"
            svg = _svg(axes, f"dispersion-{metric}-{subgroup}", label, crop=False)
            text = f"{metric} of this factor: {number_text(float(result.per_subgroup[subgroup]))}."
            figures.append({"title": f"{name}: frequencies", "svg": svg, "text": text})
    return figures


def first_object(representation: Representation, cyclic: Sequence[int] | IntArray) -> IntArray:
    """Rows that agree with the first in all factors that are not cyclic: only they share a plane."""
    fixed_levels = np.delete(representation.factors, np.asarray(cyclic, dtype=int), axis=1)
    return np.flatnonzero((fixed_levels == fixed_levels[0]).all(axis=1))


def _svg(axes: Axes, name: str, label: str, *, crop: bool = True) -> Markup:
    return inline_svg(axes.figure, name=name, label=label, crop=crop)  # pyright: ignore[reportArgumentType]


def _sample(card: ScoreCard) -> tuple[FloatArray, FloatArray]:
    rows = thinned(len(card.representation), LARGEST_SAMPLE)
    return card.representation.codes[rows].astype(float), card.representation.factors[rows].astype(float)


def _largest(weights: FloatArray, count: int) -> IntArray:
    """Positions of the `count` largest, in their own order."""
    return np.sort(np.argsort(-weights, kind="stable")[:count])


def _listed(metrics: Sequence[str], most: int = 4) -> str:
    rest = len(metrics) - most
    return ", ".join(metrics[:most]) + (f" and {rest} more" if rest > 0 else "")


def short(name: str, longest: int = 24) -> str:
    """A name as it fits beside a row: its two ends, by which long names differ."""
    return name if len(name) <= longest else f"{name[: longest // 2]}…{name[longest // 2 + 1 - longest :]}"


def _cut(*parts: tuple[int, int, str]) -> str:
    """What a figure leaves out, for (shown, all, of what)."""
    cut = [f"{shown} of {total} ({what})" for shown, total, what in parts if shown < total]
    return "Shown: " + ", ".join(cut) + "." if cut else ""
