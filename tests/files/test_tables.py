"""Tables of codes: which columns are codes."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unbraid import Representation
from unbraid.data.code_files import row_names
from unbraid.data.labels import read_labels
from unbraid.datasets.factor_table import read_table
from unbraid.files.tables import read_columns, read_csv, read_parquet, write_parquet


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


def test_an_index_that_was_written_again_and_again_is_no_column(tmp_path: Path) -> None:
    """pandas calls it Unnamed: 0, then Unnamed: 0.1, and writes each beside a new one without a name."""
    frame = pd.DataFrame({"a": np.arange(6.0), "b": np.arange(6.0)[::-1]})
    for path in (tmp_path / "codes.csv", tmp_path / "codes.parquet"):
        held = frame
        for _ in range(3):
            held.to_csv(tmp_path / "again.csv")
            held = pd.read_csv(tmp_path / "again.csv")
            held.to_csv(path) if path.suffix == ".csv" else held.to_parquet(path)
            assert list(read_columns(path)) == ["a", "b"]
            assert Representation.load(path).codes.tolist() == frame.to_numpy().tolist()
            columns = dict(read_columns(path, index=True))
            assert list(row_names(columns, None)) == list(range(6))
            assert list(columns) == ["a", "b"]


def test_an_underscore_makes_text_of_digits(tmp_path: Path) -> None:
    """Python takes 1_1 for 11, so that it would be 11 and 1_1 at once."""
    (tmp_path / "labels.csv").write_text("pair,size\n1_1,1\n11,2\n1_1,3\n")
    columns = read_columns(tmp_path / "labels.csv")
    assert columns["pair"].tolist() == ["1_1", "11", "1_1"]
    assert columns["size"].tolist() == [1, 2, 3]


@pytest.mark.parametrize("header", ["", "size hue"])
def test_numbers_are_told_apart_by_spaces_as_well(header: str, tmp_path: Path) -> None:
    matrix = np.array([[1, 2.5], [-3e-7, 4], [np.nan, 6]])
    np.savetxt(tmp_path / "labels.csv", matrix, fmt="%12.8g", header=header, comments="")
    columns = read_columns(tmp_path / "labels.csv")
    assert list(columns) == (["size", "hue"] if header else ["factor_0", "factor_1"])
    np.testing.assert_array_equal(np.column_stack(list(columns.values())), matrix)
    np.savetxt(tmp_path / "codes.csv", matrix[:2], header=header, comments="")
    held = Representation.load(tmp_path / "codes.csv")
    assert held.codes.tolist() == matrix[:2].tolist()
    (size, _) = read_table(tmp_path / "codes.csv")
    assert size.levels("continuous")[2].tolist() == [1, -3e-7]


@pytest.mark.parametrize(
    "text", ["name of it\nred car\nblue car\n", "date\n2024 01 05\n2024 02 07\n", "two words\n1 2\n3 4 5\n", "1 2\n"]
)
def test_text_with_spaces_stays_one_column(text: str, tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text(text)
    if text == "1 2\n":
        with pytest.raises(ValueError, match="there are no rows below the names"):
            read_columns(tmp_path / "labels.csv")
        return
    name, *cells = text.splitlines()
    assert {key: list(column) for key, column in read_columns(tmp_path / "labels.csv").items()} == {name: cells}


@pytest.mark.parametrize("mark", [";", "\t", ","])
def test_a_name_in_quotes_does_not_say_what_separates_columns(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(mark.join(['"x, y; or\tz, in mm"', "shape"]) + f"\n1{mark}0\n2{mark}1\n", encoding="utf-8")
    columns = read_csv(path)
    assert {name: column.tolist() for name, column in columns.items()} == {
        "x, y; or\tz, in mm": [1.0, 2.0], "shape": [0.0, 1.0],
    }  # fmt: skip


def test_whole_numbers_of_any_length_are_told_apart(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    rows = [(2**60, 2**70, -(2**60), 5), (2**60 + 1, 2**70 + 1, "NA", 1e300), (2**53 + 1, 0, 2**60 + 1, 0.5)]
    path.write_text("\n".join(",".join(map(str, row)) for row in [("a", "b", "c", "d"), *rows]), encoding="utf-8")
    columns = read_csv(path)
    assert columns["a"].dtype == np.int64
    assert {name: column.tolist() for name, column in columns.items()} == {
        "a": [2**60, 2**60 + 1, 2**53 + 1], "b": [2**70, 2**70 + 1, 0], "c": [-(2**60), None, 2**60 + 1],
        "d": [5.0, 1e300, 0.5],
    }  # fmt: skip


@pytest.mark.parametrize("mark", [";", "\t"])
def test_decimal_commas_without_a_heading_separate_nothing(tmp_path: Path, mark: str) -> None:
    path = tmp_path / "labels.csv"
    path.write_text("\n".join(f"{row},5{mark}{row % 3}" for row in range(30)), encoding="utf-8")
    columns = read_csv(path)
    assert list(columns) == ["0,5", "0"], "the first line, which is no line of numbers"
    with pytest.raises(
        ValueError, match="labels column '0,5' holds '[0-9]+,5'; write numbers with a point and no comma"
    ):
        read_labels(columns)
