"""Text in place of a list of names is refused everywhere by one line: its letters are no names."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from unbraid import Representation, score, stress
from unbraid.data import FactorSpace, FactorTable, few_labels
from unbraid.datasets import from_array
from unbraid.files.trust import trusting
from unbraid.fitting.fit import fit
from unbraid.scoring.agreement import agreement
from unbraid.studies.holdout.splits import compositional_holdouts

RNG = np.random.default_rng(0)
CODES, FACTORS = RNG.standard_normal((60, 3)), RNG.integers(0, 3, (60, 3))
SPACE = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal"))
IMAGES = np.zeros((60, 8, 8, 1), dtype=np.uint8)
KINDS: Any = ["ordinal"] * 3

# Every public argument that is a list of names, each with text of as many letters as it could have names.
LISTS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "Representation.of names": ("names", lambda names: Representation.of(CODES, FACTORS, names=names)),
    "Representation kinds": ("kinds", lambda names: Representation(CODES, FACTORS, kinds=names)),
    "Representation code_names": ("code_names", lambda names: Representation(CODES, FACTORS, code_names=names)),
    "score names": ("names", lambda names: score(CODES, FACTORS, metrics="mig", names=names)),
    "from_array names": ("names", lambda names: from_array(IMAGES, FACTORS, names=names)),
    "FactorSpace kinds": ("kinds", lambda names: FactorSpace(("a", "b", "c"), (2, 3, 4), names)),
    "FactorTable names": ("names", lambda names: FactorTable(names, KINDS, FACTORS)),
    "few_labels by": ("by", lambda names: few_labels(SPACE, 3, by=names)),
    "compositional_holdouts factors": ("factors", lambda names: compositional_holdouts(SPACE, names)),
    "trust": ("trust", lambda names: trusting("my_lab.scores:metric", names)),
    "fit families": ("families", lambda names: fit("images", "fit", minutes=30, families=names)),
}  # fmt: skip
# And those that one name may stand for, with what is neither.
SINGLE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "stress cases": ("cases", lambda names: stress("mig", cases=names)),
    "stress claims": ("claims", lambda names: stress("mig", claims=names)),
    "score unwanted": ("unwanted", lambda names: score(CODES, FACTORS, unwanted=names)),
    "columns": ("columns", lambda names: Representation.of(CODES, {"a": FACTORS[:, 0]}, columns=names)),
    "keep_factors": ("names", lambda names: Representation(CODES, FACTORS).keep_factors(names)),
    "agreement columns": ("columns", lambda names: agreement(pd.DataFrame(), columns=names)),
}


@pytest.mark.parametrize(("argument", "call"), LISTS.values(), ids=LISTS)
@pytest.mark.parametrize("given", ["abc", b"abc", 5])
def test_letters_are_no_names(argument: str, call: Callable[[Any], Any], given: Any) -> None:
    with pytest.raises(ValueError, match=rf"^{argument} must be a list of names; got {given!r}$"):
        call(given)


@pytest.mark.parametrize(("argument", "call"), SINGLE.values(), ids=SINGLE)
def test_one_name_may_stand_for_itself_but_no_number(argument: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=f"^{argument} must be a name or a list of names; got 5$"):
        call(5)
