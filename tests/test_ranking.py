from pathlib import Path

import numpy as np
import pytest

from unbraid import Representation
from unbraid.analysis.ranking import NothingToRank
from unbraid.metrics import udr
from unbraid.ranking import rank

RNG = np.random.default_rng(0)
CODES = RNG.normal(size=(300, 3))
MODELS = {"one": CODES, "flipped": -CODES[:, ::-1], "noise": RNG.normal(size=(300, 3))}


def test_arrays_by_name_score_what_udr_gives() -> None:
    found = rank(MODELS, similarity="spearman")
    assert (found.runs, set(found.best_first[:2])) == (("one", "flipped", "noise"), {0, 1})
    assert found.scores == pytest.approx(udr(list(MODELS.values()), similarity="spearman").scores)


def test_arrays_files_and_representations_may_be_mixed(tmp_path: Path) -> None:
    factors = RNG.integers(0, 3, size=(300, 2))
    Representation(CODES, factors).save(tmp_path / "one.npz")
    found = rank([tmp_path / "one.npz", Representation(-CODES, factors), MODELS["noise"]], similarity="spearman")
    assert found.runs == (str(tmp_path / "one.npz"), "model 1", "model 2")
    assert found.scores == pytest.approx(rank(MODELS, similarity="spearman").scores)


def test_groups_are_not_compared_with_each_other() -> None:
    found = rank([CODES, -CODES, *RNG.normal(size=(2, 300, 3))], groups=["a", "a", "b", "b"], similarity="spearman")
    assert np.isnan(found.pairs[:2, 2:]).all()
    assert found.scores[:2].min() > 0.9
    assert found.scores[2:].max() < 0.3


def test_samples_of_other_rows_are_left_out_and_named() -> None:
    found = rank({**MODELS, "short": CODES[:100]}, similarity="spearman")
    assert list(found.left_out) == ["short"]
    with pytest.raises(NothingToRank, match="no two models can be compared"):
        rank({"one": CODES})


@pytest.mark.parametrize(
    ("models", "groups", "said"),
    [
        (MODELS, ["a"], "groups must have one label per model \\(3\\); got 1"),
        ([CODES[:, 0], CODES], None, "model 0: codes must be \\(n_samples, n_codes\\) numbers"),
        (["absent.npz", CODES], None, "absent.npz: no such file"),
        (["a.npz", "a.npz"], None, "the same file; give each once"),
    ],
)
def test_what_cannot_be_ranked_is_named(models, groups, said) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=said):
        rank(models, groups=groups)
