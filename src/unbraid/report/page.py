"""The page of one score card, and its table for notebooks."""

from pathlib import Path
from typing import Any

import numpy as np

from unbraid.report import _content, _figures
from unbraid.report._saved import saved_card
from unbraid.report._templates import render
from unbraid.representation import SUFFIXES, Representation
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


def saved_page(path: str | Path) -> str:
    """The page of a scores.json, with figures of samples where the codes that were scored lie beside it as codes.*.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is not the scores of unbraid, or those of other codes.
    """
    beside = (Path(path).with_name(f"codes{suffix}") for suffix in SUFFIXES)
    codes = next((each for each in beside if each.is_file()), None)
    return page(saved_card(path, None if codes is None else Representation.load(codes)))


def page_content(card: ScoreCard) -> dict[str, Any]:
    """What the page shows, as a plain dictionary."""
    sampled = len(card.representation) > 0
    dead = _content.dead_codes(card.representation) if sampled else np.array([], dtype=int)
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
