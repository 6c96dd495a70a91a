"""The page of one score card, and its table for notebooks."""

from typing import Any

from unbraid.report import _content, _figures
from unbraid.report._templates import render
from unbraid.scoring import ScoreCard


def page(card: ScoreCard) -> str:
    """A whole HTML document that needs nothing beside itself: no network, no fonts, no scripts of others.

    Example:
        >>> from unbraid import score
        >>> from unbraid.report.page import page
        >>> grid = FactorSpace(("a", "b"), (4, 3), ("ordinal", "ordinal")).grid()
        >>> page(score(grid, grid, metrics="mig")).startswith("<!doctype html>")
        True
    """
    return render("page.html", page_content(card))


def table(card: ScoreCard) -> str:
    """The score table as a fragment with its own styles, in the colours of the notebook around it."""
    return render("table.html", _content.score_table(card))


def page_content(card: ScoreCard) -> dict[str, Any]:
    """What the page shows, as a plain dictionary."""
    dead = _content.dead_codes(card.representation)
    described = _content.description(card, dead)
    matrices, aligned = _content.matrices(card), _content.alignments(card)
    return {
        "card": described,
        **_content.score_table(card),
        "alignment": _content.factor_table(card, matrices, aligned, dead) if matrices or aligned else None,
        "hintons": _figures.hinton_figures(card, matrices, aligned, dead),
        "scatters": _figures.scatter_figures(card, matrices[0]["matrix"] if matrices else None, dead),
        "scatter_source": matrices[0] if matrices else None,
        "symmetry": _figures.symmetry_figures(card),
        "latents": _figures.latents_figure(card, dead),
        "codes": _content.code_table(card, aligned, dead),
        "code_metrics": list(_content.code_scores(card)),
        "limits": {
            "dots": min(_figures.DOTS, described["n_samples"]),
            "scattered": _figures.SCATTERED_FACTORS,
            "sample": min(_figures.LARGEST_SAMPLE, described["n_samples"]),
        },
    }
