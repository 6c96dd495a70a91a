"""The page of a ranking of models without labels."""

from typing import Any

import numpy as np

from unbraid.base.printable import printable
from unbraid.base.version import VERSION
from unbraid.ranking.verdicts import group_verdicts, model_verdict
from unbraid.scoring.score_page_content import number_text
from unbraid.show import plot_similarity
from unbraid.show.html import render
from unbraid.show.svg import inline_svg


def ranking_page(ranking: Any, *, grouped: bool) -> str:
    """A standalone HTML document.

    Args:
        ranking: an `unbraid.ranking.ranking.Ranking`.
        grouped: whether its families are groups, whose best models are shown.
    """
    groups = [printable(family) for family in ranking.families]
    order = np.argsort(groups, kind="stable") if grouped else np.arange(len(groups))
    axes = plot_similarity(
        ranking.pairs[np.ix_(order, order)], groups=[groups[model] for model in order] if grouped else None
    )
    families = dict.fromkeys(ranking.families)
    chosen = [ranking.choose([other for other in families if grouped and other != family]) for family in families]
    best = {family.run for family in chosen if family is not None}
    rows = [
        {
            "model": printable(ranking.runs[model]),
            "score": number_text(float(ranking.scores[model])),
            "informative": int(ranking.informative[model]),
            "group": groups[model],
            "best": ranking.runs[model] in best,
        }
        for model in ranking.best_first
    ]
    content = {
        "version": VERSION,
        "notes": [printable(note) for note in ranking.notes],
        "verdicts": [printable(line) for line in (group_verdicts if grouped else model_verdict)(ranking)],
        "grouped": grouped,
        "rows": rows,
        "similarity": inline_svg(axes.figure, name="similarity", label="Similarity of each two models"),  # pyright: ignore[reportArgumentType]
    }
    return render("ranking.html", content)
