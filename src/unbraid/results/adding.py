"""Measured numbers put into files of results, of which none is replaced without a reason."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from unbraid._utils.suggest import suggestion
from unbraid.results.check import outside
from unbraid.results.files import path_of, read, text_of
from unbraid.results.schema import (
    BESIDE,
    EXTERNAL,
    MODEL,
    SCHEMA,
    STUDY,
    Results,
    apart,
    beside,
    differing,
    key_of,
    named,
)
from unbraid.storage.files import write_text
from unbraid.storage.json_records import check_record


@dataclass(frozen=True)
class Added:
    """What one file gets, or has already."""

    path: Path
    content: dict[str, Any]
    n_new: int
    n_replaced: int
    n_same: int


def added(
    folder: Path, model: str, revision: str, study: str, scores: Sequence[Mapping[str, Any]], *,
    reason: str | None = None, today: date,
) -> Added:  # fmt: skip
    """A file with measured numbers, new or beside those that it holds; nothing is written.

    Args:
        folder: of the results.
        model: such as unbraid__beta_vae.
        revision: 12 digits of a commit, unclean, several, or external.
        study: its name.
        scores: with `measured`, and without `reported`.
        reason: why a number is replaced, or why it is another than the reported one.
        today: the date of the entry in the history.

    Raises:
        ValueError: a number lies outside the range of its metric; one would be replaced, or lie apart from what a paper
            reports, without a reason; a paper's file is not there, or reports no such number; a name is none.
    """
    reason = (reason or "").strip() or None
    for what, name, pattern in (("model", model, MODEL), ("study", study, STUDY)):
        if not re.fullmatch(pattern, name):
            raise ValueError(
                f"{what}: {name!r} cannot be part of a path; --{what} takes letters, digits, '.', '_', '+' and '-'"
            )
    path = path_of(folder, model, revision, study)
    content = _found(path, model, revision, study)
    held = {key_of(score): score for score in content["scores"]}
    new, replaced, same = [], [], []
    for score in scores:
        own = held.setdefault(key_of(score), {name: score[name] for name in ("metric", "dataset", "setting")})
        if revision == EXTERNAL and "reported" not in own:
            raise ValueError(f"{path} has no reported number for {named(score)}; {_suggested(score, content)}")
        before, now = own.get("measured"), score["measured"]
        then, current = _comparable(before or {}, now)
        if before is not None and then == current:
            same.append(score)
            continue
        (new if before is None else replaced).append(score)
        own["measured"] = now
        for fault in outside(score):
            raise ValueError(f"{path}: {named(score)}: {fault}")
        if before is not None and reason is None:
            name, old, new_one = differing(then, current)
            of = named(score) if name == "value" else f"{name} of {named(score)}"
            raise ValueError(f"{path} has {old!r} for {of}, now {new_one!r}; say why it is replaced: --reason")
        if apart(own):
            if reason is None:
                raise ValueError(
                    f"{path}: {named(score)} was reported as {own['reported']['value']:g}, which lies outside what was "
                    "measured; say why: --reason"
                )
            own["reason"] = reason
        else:
            own.pop("reason", None)  # of a number that is there no more
    if new or replaced:
        if content["history"] and any("date" in score["measured"] for score in [*new, *replaced]):
            _date(content)
        first = "first record" if not content["history"] else f"{len(new)} measured numbers added"
        content["history"].append({"date": today.isoformat(), "reason": reason or first})
    content["scores"] = list(held.values())
    if any(beside(score.get("measured", {})) for score in content["scores"]):
        content["schema"] = BESIDE
    check_record(Results, content, path)
    return Added(path, content, len(new), len(replaced), len(same))


def _comparable(then: Mapping[str, Any], now: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Two numbers without their dates, and without versions of the metric where the older one is of before these."""
    aside = {"date"} if "metric_version" in then else {"date", "metric_version"}
    old, new = ({name: value for name, value in each.items() if name not in aside} for each in (then, now))
    return old, new


def _date(content: Mapping[str, Any]) -> None:
    """Give numbers of before dates were recorded that of the file, which is about to be a later one."""
    for score in content["scores"]:
        if "measured" in score:
            score["measured"].setdefault("date", content["history"][-1]["date"])


def _suggested(score: Mapping[str, Any], content: Mapping[str, Any]) -> str:
    """Of which settings the paper has this metric on this dataset."""
    there = [key_of(each) for each in content["scores"] if "reported" in each]
    metric, dataset, setting = key_of(score)
    settings = [each for *names, each in there if names == [metric, dataset]]
    if settings:
        return f"--setting: {suggestion(setting, settings)}"
    return suggestion(metric, dict.fromkeys(name for name, *_ in there))


def write(each: Added) -> None:
    """Write the file, whole or not at all; one that has nothing new is left as it is."""
    if each.n_new or each.n_replaced:
        each.path.parent.mkdir(parents=True, exist_ok=True)
        write_text(each.path, text_of(each.content))


def _found(path: Path, model: str, revision: str, study: str) -> dict[str, Any]:
    if path.is_file():
        return read(path)
    if revision == EXTERNAL:
        raise ValueError(f"{path}: no such file; what a paper reports is recorded first, by hand")
    return {"schema": SCHEMA, "model": model, "revision": revision, "study": study, "scores": [], "history": []}
