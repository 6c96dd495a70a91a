"""Tables as LaTeX, Markdown, CSV and JSON."""

import csv
import io
import json
import unicodedata
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from markdown_it import MarkdownIt

from unbraid.files.table_formats import (
    Cell,
    Table,
    comma_separated,
    json_records,
    markdown,
    save_frame,
    save_table,
    table_text,
)

NUMBERS = Table(["model", Cell("mig ↑", "mig"), "n"], [["a", 0.123456, 7], ["b", None, 12], ["c", float("nan"), 0]])


def test_readers_see_three_digits_and_programs_all_of_them() -> None:
    assert NUMBERS.texts == [["model", "mig ↑", "n"], ["a", "0.123", "7"], ["b", "-", "12"], ["c", "-", "0"]]
    assert comma_separated(NUMBERS) == "model,mig,n\na,0.123456,7\nb,,12\nc,,0\n"
    assert json.loads(json_records(NUMBERS))[:2] == [
        {"model": "a", "mig": 0.123456, "n": 7}, {"model": "b", "mig": None, "n": 12},
    ]  # fmt: skip
    assert markdown(NUMBERS).splitlines()[:3] == ["| model | mig ↑ | n |", "| --- | ---: | ---: |", "| a | 0.123 | 7 |"]


NAMES = [
    "a|b",
    "<b>x</b>",
    "*x*y",
    "_x_ dci_lasso x_1",
    "`x`",
    "[l](u)",
    "x\\|y",
    "\\",
    "a\\*b*c",
    "&lt;",
    "~~x~~",
    "a < 3*4",
    "d1/__a__-1.npz",
    "__x__",
    "unbraid__vae__1",
]


def test_names_are_no_markup_to_a_reader_of_markdown() -> None:
    text = markdown(Table(["model", "<i>"], [[name, f"**{name}**"] for name in NAMES], notes=["<b>*p*</b> < .05"]))
    assert "dci_lasso" in text
    assert "unbraid__vae" in text
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    shown = [token.children or [] for token in tokens if token.type == "inline"]
    kinds = {part.type for parts in shown for part in parts}
    assert kinds <= {"text", "text_special", "strong_open", "strong_close"}
    cells = ["".join(part.content for part in parts) for parts in shown]
    assert cells == ["model", "<i>", *(name for name in NAMES for _ in range(2)), "<b>*p*</b> < .05"]
    assert sum(part.type == "strong_open" for parts in shown for part in parts) == len(NAMES)


def test_a_spreadsheet_runs_no_text_and_numbers_stay_numbers() -> None:
    table = Table(
        ["=head", "x"], [["=cmd|' /C calc'!A0", -1.5], ["+x", "-1.5"], ["@x", "+2e-3"], ["-x", Cell("-", None)]]
    )
    assert list(csv.reader(io.StringIO(comma_separated(table)))) == [
        ["'=head", "x"], ["'=cmd|' /C calc'!A0", "-1.5"], ["'+x", "-1.5"], ["'@x", "+2e-3"], ["'-x", ""],
    ]  # fmt: skip


def test_a_frame_is_written_as_pandas_writes_it(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"a": [0.1, np.nan], "b": ["x,y", None], "c": [True, False], "d": pd.array([1, None], dtype="Int64")}
    )
    save_frame(frame, tmp_path / "a.csv")
    assert (tmp_path / "a.csv").read_text() == frame.to_csv(index=False)


@pytest.mark.parametrize("suffix", [".csv", ".md", ".tex"])
def test_no_file_holds_a_control_character_or_a_tag(suffix: str) -> None:
    text = table_text(Table(["model"], [["a\x1b[31mred\x9b\x7f"], ["**b\x1b**"]], notes=["<script>\x07"]), suffix)
    assert not [letter for letter in text if unicodedata.category(letter) == "Cc" and letter != "\n"]
    assert "x1b" in text
    assert suffix == ".csv" or "<script>" not in text


def test_a_table_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    for suffix in (".tex", ".md", ".csv", ".json"):
        save_table(tmp_path / f"t{suffix}", NUMBERS)
    with pytest.raises(ValueError, match=r"t.xlsx: a table is saved as .tex, .md, .csv, .json"):
        save_table(tmp_path / "t.xlsx", NUMBERS)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["t.csv", "t.json", "t.md", "t.tex"]
