"""Tables of codes: which columns are codes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unbraid import Representation
from unbraid.storage.tables import read_columns


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
