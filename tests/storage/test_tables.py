"""Tables of codes: which columns are codes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unbraid import Representation
from unbraid.storage.tables import read_columns, read_parquet, write_parquet


def test_a_column_of_names_is_named_with_what_to_do(tmp_path: Path) -> None:
    """By its own name, and by what it holds."""
    table = pd.DataFrame({"gene_a": np.arange(3.0), "barcode": ["AAC", "AAG", "AAT"]})
    table.to_csv(tmp_path / "codes.csv", index=False)
    words = "column 'barcode' is no code: it holds text; labels go into a file of their own.*--key barcode names rows"
    with pytest.raises(ValueError, match=words):
        Representation.load(tmp_path / "codes.csv")


def test_cells_without_a_value_are_those_that_programs_write(tmp_path: Path) -> None:
    """Other spellings are words, such as the level none."""
    empty = ["", "NaN", "nan", "NA", "N/A", "null", "NULL", "None"]
    words = ["none", "Na", "Null", "na", "n/a"]
    lines = ["shape,hue", *(f"{cell},1" for cell in (*empty, *words)), *(f"heart,{cell}" for cell in empty)]
    (tmp_path / "labels.csv").write_text("\n".join(lines) + "\n")
    columns = read_columns(tmp_path / "labels.csv")
    assert columns["shape"].tolist() == [None] * len(empty) + words + ["heart"] * len(empty)
    assert np.isnan(columns["hue"]).tolist() == [False] * (len(empty) + len(words)) + [True] * len(empty)


@pytest.mark.parametrize(
    ("cells", "kept"),
    [
        (["high", 4.0, None], ["high", "4.0", None]),
        (["1", 2], ["1", "2"]),
        ([True, "auto", float("nan")], ["True", "auto", None]),
        ([True, 0.5], ["True", "0.5"]),
        ([1, 2.5, None], [1.0, 2.5, None]),
        ([True, None], [True, None]),
    ],
)
def test_a_column_of_numbers_and_text_is_written_as_text(cells: list[Any], kept: list[Any], tmp_path: Path) -> None:
    frame = pd.DataFrame({"beta": pd.Series(cells, dtype=object), "score": np.arange(len(cells))})
    write_parquet(frame, tmp_path / "results.parquet")
    assert read_parquet(tmp_path / "results.parquet").to_pydict() == {"beta": kept, "score": [*range(len(cells))]}
    assert frame["beta"].tolist()[0] is cells[0]


def test_a_relative_folder_with_a_colon_is_no_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sweep:1").mkdir()
    write_parquet(pd.DataFrame({"beta": [4.0]}), Path("sweep:1/results.parquet"))
    assert read_parquet(Path("sweep:1/results.parquet")).to_pydict() == {"beta": [4.0]}
    Representation(np.eye(3)).save("sweep:1/codes.parquet")
    assert Representation.load("sweep:1/codes.parquet").codes.tolist() == np.eye(3).tolist()
