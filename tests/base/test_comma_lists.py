"""Lists of names on the command line, read and written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unbraid.base.comma_lists import joined, listed, separated


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, []),
        (" shape, hue ,", ["shape", "hue"]),
        ("mig(bins=5, seed=1),sap", ["mig(bins=5, seed=1)", "sap"]),
        ('"length, cm",hue', ["length, cm", "hue"]),
        ('hue , "a,b" , c', ["hue", "a,b", "c"]),
        ('"length, cm"=ordinal,hue=cyclic', ["length, cm=ordinal", "hue=cyclic"]),
        ('"say ""a,b""",c', ['say "a,b"', "c"]),
        ('where="length, cm"+size,"a,b"+"c,d"', ["where=length, cm+size", "a,b+c,d"]),
        ('5" disk,6" disk', ['5" disk', '6" disk']),  # quotes elsewhere are part of a name
    ],
)
def test_names_stand_between_commas(text: str | None, names: list[str]) -> None:
    assert listed(text) == names


@given(st.lists(st.text('ab ,"()=+0', min_size=1).map(str.strip).filter(bool)))
def test_any_names_come_back(names: list[str]) -> None:
    assert listed(joined(names)) == names


def test_where_each_part_counts_empty_ones_stay() -> None:
    assert separated('1,, "a,b" ') == ["1", "", "a,b"]
    assert separated("") == [""]
