"""The page of one score card, and its table for notebooks.

A card comes as a plain dictionary, so that nothing here needs to know who made it: `unbraid`, the version;
`representation`; `scored`, by metric its row (`metric`), `result`, `headline`, `values`, `arrays`, `notes`, `chance`,
`seconds` and `objects`; `skipped`, `seed`, `gap`, `path`, `chosen_factors`; and `input`, as in the JSON.
"""

from typing import Any

import numpy as np

from unbraid.report import _content, _figures
from unbraid.report._content import Card
from unbraid.report._templates import render


def page(card: Card) -> str:
    """A whole HTML document that needs nothing beside itself: no network, no fonts, no scripts of others.

    Example:
        >>> from unbraid import score
        >>> from unbraid.report.page import page
        >>> grid = FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid()
        >>> page(score(grid, grid, metrics="mig").contents()).startswith("<!doctype html>")
        True
    """
    return render("page.html", page_content(card))


def table(card: Card) -> str:
    """The score table as a fragment with its own styles, in the colours of the notebook around it."""
    return render("table.html", _content.score_table(card))


def page_content(card: Card) -> dict[str, Any]:
    """What the page shows, as a plain dictionary."""
    sampled = len(card["representation"]) > 0
    dead = _content.dead_codes(card["representation"]) if sampled else np.array([], dtype=int)
    described = _content.description(card, dead)
    matrices, aligned = _content.matrices(card), _content.alignments(card)
    first = matrices[0]["matrix"] if matrices and sampled else None
    return {
        "card": described,
        **_content.score_table(card),
        "alignment": _content.factor_table(card, matrices, aligned, dead) if matrices or aligned else None,
        "hintons": _figures.hinton_figures(card, matrices, aligned, dead),
        "scatters": _figures.scatter_figures(card, first, dead),
        "scatter_source": matrices[0] if matrices else None,
        "symmetry": _figures.symmetry_figures(card) if sampled else [],
        "latents": _figures.latents_figure(card, dead) if sampled else None,
        "codes": _content.code_table(card, aligned, dead) if sampled else [],
        "code_metrics": list(_content.code_scores(card)),
        "limits": {
            "dots": min(_figures.DOTS, described["n_samples"]),
            "scattered": _figures.SCATTERED_FACTORS,
            "sample": min(_figures.LARGEST_SAMPLE, described["n_samples"]),
        },
    }
