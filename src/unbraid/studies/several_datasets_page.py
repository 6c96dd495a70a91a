"""The page of a study of several datasets: scores of the settings on each, and links to the page of each dataset."""

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.natural_order import natural
from unbraid.base.types import DataFrame
from unbraid.base.version import VERSION
from unbraid.scoring.by_setting import Box, quartiles
from unbraid.scoring.result_columns import by_label
from unbraid.scoring.score_page_content import number_text
from unbraid.scoring.setting_names import with_brief_settings
from unbraid.show.html import render
from unbraid.studies.study_page_columns import columns


def studies_page(name: str, text: str, folder: Path, frame: DataFrame, addresses: Mapping[str, str]) -> str:
    """A standalone HTML document.

    Args:
        name, text, folder: of a study of several datasets; the text is its YAML.
        frame: its results, joined.
        addresses: of the page of each dataset, by label.
    """
    tables = {label: with_brief_settings(rows) for label, rows in by_label(frame).items()}
    content = {
        "name": name,
        "version": VERSION,
        "yaml": text,
        "reproduce": shlex.join(["unbraid", "study", "run", "study.yaml", "--out", folder.resolve().name]),
        "parts": [_part(label, addresses[label], rows) for label, rows in tables.items()],
        "scores": [_score(column, tables) for column in columns(frame) if column["shown"] and column["number"]],
    }
    return render("studies.html", content)


def _part(label: str, address: str, rows: DataFrame) -> dict[str, str]:
    counts = rows["state"].value_counts()
    return {
        "label": label,
        "address": address,
        "dataset": str(rows["dataset"].iloc[0]),
        "options": str(rows["dataset_options"].iloc[0]),
        "states": ", ".join(f"{count} {state}" for state, count in counts.items()),
    }


def _score(column: Mapping[str, Any], tables: Mapping[str, DataFrame]) -> dict[str, Any]:
    """A column by setting and dataset, all drawn on one scale."""
    boxes_by_label = {
        label: {(box.family, box.setting): box for box in quartiles(rows, column["id"]).boxes}
        for label, rows in tables.items()
    }
    boxes = [box for own in boxes_by_label.values() for box in own.values()]
    least, most = min(box.lowest for box in boxes), max(box.highest for box in boxes)
    if least >= 0 and most <= 1:
        least, most = 0.0, 1.0
    keys = sorted({key for own in boxes_by_label.values() for key in own}, key=lambda key: (key[0], natural(key[1])))
    rows = [
        {
            "family": family,
            "setting": setting,
            "cells": [_cell(own.get((family, setting)), least, most) for own in boxes_by_label.values()],
        }
        for family, setting in keys
    ]
    named = {name: column[name] for name in ("label", "higher", "about")}
    return {**named, "least": number_text(least), "most": number_text(most), "rows": rows}


def _cell(box: Box | None, least: float, most: float) -> dict[str, Any] | None:
    """Where the parts of a box lie, in per cent of the scale."""
    if box is None:
        return None
    numbers = np.array([box.lowest, box.lower_quartile, box.median, box.upper_quartile, box.highest])
    low, lower, at, upper, high = (100 * (numbers - least) / ((most - least) or 1.0)).tolist()
    places = {"low": low, "reach": high - low, "lower": lower, "half": upper - lower, "at": at}
    return {"median": number_text(box.median), "n": box.n} | {
        name: round(percent, 2) for name, percent in places.items()
    }
