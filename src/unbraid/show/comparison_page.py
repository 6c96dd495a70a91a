"""The page of models side by side: scores with their intervals, and every difference."""

from collections.abc import Mapping, Sequence
from typing import Any

from unbraid.base.printable import printable
from unbraid.base.repr import p_text
from unbraid.show.html import render

ROOM = 1.08  # of the scale of a metric, beyond its farthest interval


def comparison_page(content: Mapping[str, Any]) -> str:
    """A whole HTML document that needs nothing beside itself.

    Args:
        content: `unbraid`, the version; `confidence`; `paired`; `notes`; `footnote`; `models`, their names; `columns`,
            the heads of their scores; `differences`, as the JSON has them; `scores`, of each metric its name, what it
            `means`, whether `higher_is_better`, and its `cells`: of each model the `text`, and whether it is `bold`.
    """
    names = {name: printable(name) for name in content["models"]}
    by_metric: dict[str, list[Mapping[str, Any]]] = {}
    for difference in content["differences"]:
        by_metric.setdefault(difference["metric"], []).append(difference)
    groups = [{"metric": metric, "rows": _rows(rows, names)} for metric, rows in by_metric.items()]
    return render(
        "comparison.html",
        {
            "version": content["unbraid"],
            "percent": f"{100 * content['confidence']:g}",
            "paired": content["paired"],
            "notes": [printable(note) for note in content["notes"]],
            "footnote": content["footnote"],
            "models": list(names.values()),
            "columns": [printable(column) for column in content["columns"]],
            "scores": content["scores"],
            "groups": groups,
            "decided": sum(bool(difference["better"]) for difference in content["differences"]),
            "total": len(content["differences"]),
        },
    )


def _rows(differences: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Each difference of a metric, drawn on one scale with no difference in the middle."""
    end = ROOM * max(max(abs(difference["low"]), abs(difference["high"])) for difference in differences) or 1.0

    def place(value: float) -> float:
        return round(50 + 50 * value / end, 2)

    return [
        {
            "first": names[difference["first"]],
            "second": names[difference["second"]],
            "difference": f"{difference['difference']:+z.3f}",
            "between": f"{difference['low']:+z.3f} to {difference['high']:+z.3f}",
            "p": p_text(difference["p"]),
            "p_holm": p_text(difference["p_holm"]),
            "better": names.get(difference["better"], ""),
            "at": place(difference["difference"]),
            "low": place(difference["low"]),
            "wide": round(place(difference["high"]) - place(difference["low"]), 2),
        }
        for difference in differences
    ]
