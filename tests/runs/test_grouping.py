"""Groups of models by a pattern of their paths."""

from pathlib import Path

import pytest

from unbraid.runs.grouping import group_names

PATHS = [Path("codes/beta4-0.npy"), Path("codes/beta16-0.npy")]


def test_a_pattern_groups_by_what_stands_in_its_parentheses() -> None:
    assert group_names(PATHS, "(beta[0-9]+)") == ["beta4", "beta16"]
    assert group_names(PATHS, "(beta)([0-9]+)-0") == ["beta-4", "beta-16"]
    for pattern in ("(gamma[0-9]+)", "(?:beta)[0-9]+"):
        with pytest.raises(ValueError, match="does not match codes/beta4-0.npy"):
            group_names(PATHS, pattern)
