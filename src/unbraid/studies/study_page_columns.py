"""The columns of a study's table on its page: which exist, what they mean, which direction is better."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from unbraid.base.natural_order import natural
from unbraid.base.printable import printable
from unbraid.base.types import DataFrame
from unbraid.metrics._shared.metric_arguments import find_metric
from unbraid.scoring.baselines import ABOVE
from unbraid.scoring.merged_tables import TEXTS
from unbraid.scoring.result_columns import DIAGNOSIS, headline_columns, higher_is_better
from unbraid.show.words import WORDS

GIVEN = {*TEXTS, "seed", "training_version"} - {ABOVE, DIAGNOSIS}  # no scores; the page shows the first of them apart
GROUPS: Mapping[str, str] = {
    "udr": "Ranking without labels",
    "metric": "Metrics",
    "baseline": "Best baseline",
    "compositional": "Compositional generalisation",
    "zero_shot": "Zero-shot",
    "train": "Training",
    "hyper": "Hyperparameters",
    "run": "Run",
}
TOLD: Mapping[str, Mapping[str, Any]] = {  # of columns that are no numbers, and always shown
    ABOVE: {
        "label": "above baselines", "about": "Whether the run is better than its best baseline, by every metric",
        "shown": True,
    },
    DIAGNOSIS: {"about": "How many factors have a code of their own, and how many are in no code", "shown": True},
    "collapsed": {
        "about": "All latents together have less than one bit of information, whatever metrics score", "shown": True,
    },
}  # fmt: skip
FIRST_SHOWN = 8  # columns of numbers that the ranking opens with
LOSSES = ("train.loss", "train.reconstruction")
DIGITS = 6  # significant ones that the page carries


def columns(frame: DataFrame) -> list[dict[str, Any]]:
    """One description per column of `Study.results()` that holds a value anywhere, in the order of GROUPS.

    `higher` is whether higher is better, None where neither end is; `about` is a sentence, maybe empty; `whole` is
    whether all its numbers are.
    """
    headlines = {"udr.score", *headline_columns(frame)}
    values_by_column = {str(name): values(frame[name]) for name in frame.columns if name not in GIVEN}
    described = [
        _describe(name, column, name in headlines)
        for name, column in values_by_column.items()
        if any(value is not None for value in column)
    ]
    described.sort(key=lambda description: (list(GROUPS).index(description["group"]), not description["headline"]))
    for description in [description for description in described if description["headline"]][:FIRST_SHOWN]:
        description["shown"] = True
    for description in described:
        description |= TOLD.get(description["id"], {})
    return described


def values(column: Any) -> list[float | str | None]:
    """Numbers with six significant digits, other things as text, and None where there is nothing."""
    return [_value(value) for value in column.tolist()]


def settings(frame: DataFrame) -> list[dict[str, str]]:
    """The distinct settings; families as they come, their settings in natural order."""
    named = [[printable(text) for text in frame[name].astype(str)] for name in ("family", "setting")]
    families, pairs = list(dict.fromkeys(named[0])), set(zip(*named, strict=True))
    ordered = sorted(pairs, key=lambda key: (families.index(key[0]), natural(key[1])))
    return [{"family": family, "setting": setting} for family, setting in ordered]


def _describe(name: str, column: Sequence[Any], headline: bool) -> dict[str, Any]:
    head = name.rpartition(".")[0]
    metric = find_metric(head) if headline else None
    known = [value for value in column if value is not None]
    return {
        "id": name,
        "label": printable(_label(name)),
        "group": _group(name),
        "number": all(isinstance(value, float | int) for value in known),
        "whole": all(isinstance(value, int) for value in known),
        "higher": False if name.startswith(LOSSES) else higher_is_better(name),
        "headline": headline,
        "about": f"{metric.title}: {metric.summary}" if metric else "",
        "shown": False,
    }


def _label(name: str) -> str:
    bare = name.removesuffix(".score").removeprefix("hyper.").removeprefix("train.")
    head, _, last = bare.rpartition(".")
    return bare.replace(".", " ") if last not in WORDS else f"{head.replace('.', ' ')} {WORDS[last]}".strip()


def _group(name: str) -> str:
    head, dot, _ = name.partition(".")
    if not dot:
        return "run"
    # zero_shot.* is generalisation over held-out runs, though a metric bears the same name.
    return head if head in GROUPS and head != "run" else "metric"


def _value(value: Any) -> float | int | str | None:
    if value is None or isinstance(value, str):
        return None if value is None else printable(value, keep="\n") or None
    if isinstance(value, bool | np.bool_):
        return str(bool(value)).lower()
    if isinstance(value, int | np.integer):
        return int(value)
    if isinstance(value, float | np.floating):
        return _rounded(float(value))
    if isinstance(value, Sequence | np.ndarray):
        return ", ".join(map(str, value)) or None
    return str(value)


def _rounded(number: float) -> float | int | None:
    if not np.isfinite(number):
        return None
    rounded = float(f"{number:.{DIGITS}g}")
    return int(rounded) if rounded.is_integer() else rounded
