"""Tables of codes: which columns are codes."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from unbraid import Representation


def test_a_column_of_names_is_named_with_what_to_do(tmp_path: Path) -> None:
    """By its own name, and by what it holds."""
    table = pd.DataFrame({"gene_a": np.arange(3.0), "barcode": ["AAC", "AAG", "AAT"]})
    table.to_csv(tmp_path / "codes.csv", index=False)
    words = "column 'barcode' is no code: it holds text; labels go into a file of their own.*--key barcode names rows"
    with pytest.raises(ValueError, match=words):
        Representation.load(tmp_path / "codes.csv")
