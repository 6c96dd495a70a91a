"""Hints: what is named when somebody names what is not there."""

import pytest

from unbraid.base.suggest import suggestion

NAMES = ["dci_lasso", "dci_es", "dcimig", "factor_vae_score", "mig", "wall hue", "floor hue"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("MIG", "did you mean 'mig'?"),
        ("migg", "did you mean 'mig'?"),
        ("dci", "did you mean 'dci_lasso' or 'dci_es'?"),
        ("dci-lasso", "did you mean 'dci_lasso'?"),
        ("factorvae", "did you mean 'factor_vae_score'?"),
        ("dcilaso", "did you mean 'dci_lasso'?"),
        ("hue", "did you mean 'wall hue' or 'floor hue'?"),
        ("fact", "did you mean 'factor_vae_score'?"),
        ("angle", "did you mean 'mig'?"),
        ("xyz", f"there are {', '.join(NAMES)}"),
        ("", f"there are {', '.join(NAMES)}"),
    ],
)
def test_names_are_found_by_case_parts_other_words_and_likeness(name: str, hint: str) -> None:
    assert suggestion(name, NAMES, words={"angle": ("mig", "absent")}) == hint
