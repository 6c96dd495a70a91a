"""The page of one score card, and its table for notebooks."""

from typing import Any

import numpy as np

from unbraid.scoring.card import ScoreCard
from unbraid.scoring.score_page_content import (
    alignments,
    answer,
    code_scores,
    code_table,
    dead_codes,
    description,
    matrices,
    score_table,
)
from unbraid.scoring.score_page_figures import (
    DOTS,
    LARGEST_SAMPLE,
    answer_figures,
    hinton_figures,
    latents_figure,
    symmetry_figures,
)
from unbraid.show.html import render


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
