"""A folder of two small files of results: one of a paper, one of what was measured."""

import json
from pathlib import Path
from typing import Any

COMMIT = "0123456789abcdef0123456789abcdef01234567"


def measured(value: float, low: float, high: float, commit: str = "") -> dict[str, Any]:
    return {
        "value": value, "low": low, "high": high, "units": 3, "unit": "seed", "commit": commit, "study": "small",
        "seeds": [0, 1, 2], "machine": "one core",
    }  # fmt: skip


def of_paper() -> dict[str, Any]:
    """With a number that was measured too and one that was not."""
    inside = {
        "value": 0.31,
        "spread": 0.02,
        "spread_is": "standard error",
        "n": 10,
        "place": "table 1",
        "printed": ".31",
    }
    return {
        "schema": 1, "model": "paper-2020__vae", "revision": "external", "study": "squares",
        "source": {"title": "Of Squares", "authors": "A et al.", "year": 2020, "arxiv": ""},
        "scores": [
            {
                "metric": "mig.score", "dataset": "square", "setting": "beta=1", "reported": inside,
                "measured": measured(0.3, 0.2, 0.4),
            },
            {
                "metric": "agreement_of_seeds", "dataset": "square", "setting": "",
                "reported": {"value": 0.5, "place": "section 4", "printed": "50 %"},
            },
        ],
        "history": [{"date": "2020-01-01", "reason": "first record"}],
    }  # fmt: skip


def of_study() -> dict[str, Any]:
    score = {"metric": "sap.score", "dataset": "disk", "setting": "", "measured": measured(0.3, 0.2, 0.4, COMMIT)}
    return {
        "schema": 1, "model": "unbraid__vae", "revision": COMMIT[:12], "study": "small", "scores": [score],
        "history": [{"date": "2020-01-01", "reason": "first record"}],
    }  # fmt: skip


def put(folder: Path, content: dict[str, Any]) -> Path:
    """Written as results are, where results of this name lie."""
    path = folder / content["model"] / content["revision"] / f"{content['study']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    return path
