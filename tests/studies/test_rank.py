from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unbraid import Representation
from unbraid.metrics import udr
from unbraid.ranking.ranking import NothingToRank
from unbraid.studies.rank_models import rank

RNG = np.random.default_rng(0)
CODES = RNG.normal(size=(300, 3))
MODELS = {"one": CODES, "flipped": -CODES[:, ::-1], "noise": RNG.normal(size=(300, 3))}


def test_arrays_by_name_score_what_udr_gives() -> None:
    found = rank(MODELS, similarity="spearman")
    assert (found.runs, set(found.best_first[:2])) == (("one", "flipped", "noise"), {0, 1})
    assert found.scores == pytest.approx(udr(list(MODELS.values()), similarity="spearman").scores)


@pytest.mark.parametrize("lie", ["{}.npz", "{}/codes.npz"])
@pytest.mark.parametrize("top", [None, 2])
def test_rows_of_files_count_whether_they_are_labelled_or_not(tmp_path: Path, top: int | None, lie: str) -> None:
    """So do those of folders of models of other frameworks."""
    paths = {name: tmp_path / lie.format(name) for name in MODELS}
    files = {name: path if path.parent == tmp_path else path.parent for name, path in paths.items()}
    factors = RNG.integers(0, 3, size=(300, 2)).astype(float)
    factors[:250, 1] = np.nan
    for name, codes in MODELS.items():
        paths[name].parent.mkdir(exist_ok=True)
        np.savez(paths[name], codes=codes, factors=factors)
    expected = rank(MODELS, similarity="spearman", top=top)
    assert rank(files, similarity="spearman", top=top).scores == pytest.approx(expected.scores)
    np.savez(paths["noise"], codes=MODELS["noise"], factors=np.where(factors == 0, 1, factors))
    if top is None:
        assert "not the samples of" in rank(files, similarity="spearman").left_out["noise"]
    factors[:, 1] = np.nan
    np.savez(paths["noise"], codes=MODELS["noise"], factors=factors)
    assert rank(files, similarity="spearman", top=top).scores == pytest.approx(expected.scores)


def test_codes_alone_do_not_hide_that_labelled_files_are_of_other_samples() -> None:
    """They are taken to be of the samples that most others are of."""
    factors = RNG.integers(0, 3, size=(300, 2))
    labelled = {"a": Representation(CODES, factors), "b": Representation(-CODES, factors)}
    found = rank({**labelled, "turned": Representation(CODES[::-1], factors[::-1]), "bare": CODES})
    assert found.runs == ("a", "b", "bare")
    assert found.left_out == {"turned": "its rows are not the samples of a (same factors, same order)"}
    assert rank({"short": CODES[:50], **labelled}).runs == ("a", "b")
    assert rank({"x": CODES[:50], "y": CODES[:50] + 1, "z": -CODES[:50], **labelled}).runs == ("x", "y", "z")


def test_groups_are_not_compared_with_each_other() -> None:
    found = rank([CODES, -CODES, *RNG.normal(size=(2, 300, 3))], groups=["a", "a", "b", "b"], similarity="spearman")
    assert np.isnan(found.pairs[:2, 2:]).all()
    assert found.scores[:2].min() > 0.9
    assert found.scores[2:].max() < 0.3
    alone = rank([CODES, -CODES, CODES[::-1]], groups=["a", "a", "b"], similarity="spearman")
    assert alone.left_out == {"model 2": "there is no other run of its family or group to compare it with"}


def test_samples_of_other_rows_are_left_out_and_named() -> None:
    found = rank({**MODELS, "short": CODES[:100]}, similarity="spearman")
    assert list(found.left_out) == ["short"]
    with pytest.raises(NothingToRank, match="no two models can be compared"):
        rank({"one": CODES})


def turned(codes: np.ndarray, seed: int) -> np.ndarray:
    """The same codes with a little noise of their own, randomly rotated."""
    rng = np.random.default_rng(seed)
    rotation = np.linalg.qr(rng.normal(size=(codes.shape[1],) * 2))[0]
    return codes @ rotation + 0.1 * rng.normal(size=codes.shape)


@pytest.mark.parametrize("similarity", ["lasso", "spearman"])
def test_models_that_share_a_space_and_no_axes_crown_none(similarity) -> None:
    """As untrained and hardly trained encoders do: each is the others up to a rotation, so that they agree somewhat."""
    alike = {f"turned {seed}": turned(CODES, seed) for seed in range(6)}
    found = rank(alike, similarity=similarity)
    assert found.scores.max() > 0.2
    assert found.best is None
    assert "no better than randomly rotated latents do" in found.why_none()
    assert found.best_by_informative() == {}
    assert found.to_dict()["why_none"] == found.why_none()
    sound = rank({**alike, **{f"right {seed}": CODES + 0.1 * RNG.normal(size=(300, 3)) for seed in range(7)}})
    assert sound.best is not None
    assert sound.best.startswith("right")
    assert sound.why_none() == ""


def test_a_single_latent_is_never_entangled_and_never_the_best() -> None:
    assert "no model has two informative latents" in rank([CODES[:, :1], -CODES[:, :1], CODES[:, :1] ** 3]).why_none()


def test_codes_alone_are_said_to_tell_nothing_of_training_unless_untrained_models_are_given() -> None:
    assert any(note.startswith("codes alone do not tell") for note in rank(MODELS).notes)
    untrained = [CODES[::-1] + 0.1 * RNG.normal(size=(300, 3)) for _ in range(3)]  # they agree as well
    found = rank(MODELS, untrained=untrained)
    assert not any(note.startswith("codes alone") for note in found.notes)
    assert found.untrained is not None
    assert found.untrained > found.scores.max()
    assert found.why_none() == f"no model scores above untrained ones among each other ({found.untrained:.3f})"
    best = rank(MODELS, untrained=list(RNG.normal(size=(3, 300, 3)))).best
    assert best in ("one", "flipped"), "the same but for signs: rounding decides between them"
    with pytest.raises(ValueError, match="codes of two or more untrained models"):
        rank(MODELS, untrained=untrained[:1])
    with pytest.raises(ValueError, match=r"untrained\[1\] must be codes of the same 300 samples"):
        rank(MODELS, untrained=[CODES, CODES[:5]])


@pytest.mark.lengthy
@pytest.mark.parametrize(("n_models", "draws", "most"), [(3, 40, 3), (12, 12, 1)])
def test_the_best_of_rotated_models_is_seldom_crowned(n_models: int, draws: int, most: int) -> None:
    """By the rotations of its own latents alone 4 to 17 in 40 were, since the best of many is judged."""
    crowned = 0
    for draw in range(draws):
        codes = np.random.default_rng(draw).normal(size=(300, 3))
        found = rank({f"turned {seed}": turned(codes, 100 * draw + seed) for seed in range(n_models)})
        crowned += found.best is not None
    assert crowned <= most


def test_an_untrained_model_that_is_given_twice_does_not_agree_with_itself() -> None:
    """As networks of one seed do, which begin with the same weights whatever the regularisation."""
    untrained = list(RNG.normal(size=(2, 300, 3)))
    found = rank(MODELS, untrained=untrained).untrained
    assert found is not None
    assert found < 0.2
    assert rank(MODELS, untrained=[*untrained, untrained[0].copy()]).untrained == pytest.approx(found)
    with pytest.raises(ValueError, match="models of different seeds; these are all the same"):
        rank(MODELS, untrained=[untrained[0], untrained[0].copy()])


def test_untrained_models_count_beside_top_too() -> None:
    assert any(note.startswith("codes alone") for note in rank(MODELS, top=2).notes)
    untrained = [CODES[::-1] + 0.1 * RNG.normal(size=(300, 3)) for _ in range(3)]
    found = rank(MODELS, top=2, untrained=untrained)
    assert not any(note.startswith("codes alone") for note in found.notes)
    assert found.untrained is not None
    assert found.why_none() == f"no model scores above untrained ones among each other ({found.untrained:.3f})"
    best = rank(MODELS, top=2, untrained=list(RNG.normal(size=(3, 300, 3)))).best
    assert best in ("one", "flipped")  # as above
    with pytest.raises(ValueError, match="codes of two or more untrained models"):
        rank(MODELS, top=2, untrained=untrained[:1])
    with pytest.raises(ValueError, match=r"untrained\[1\] must be codes of the same 300 samples"):
        rank(MODELS, top=2, untrained=[CODES, CODES[:5]])


@pytest.mark.parametrize("top", [None, 2])
def test_models_that_never_vary_are_nothing_that_others_are_compared_with(top: int | None) -> None:
    flat = {f"flat {n}": np.full((300, 3), n) for n in range(3)}
    found = rank({**MODELS, **flat}, top=top)
    assert found.scores == pytest.approx([*rank(MODELS, top=top).scores, 0, 0, 0], abs=1e-12)
    assert found.informative.tolist() == [3, 3, 3, 0, 0, 0]


@pytest.mark.parametrize(("top", "stored"), [(None, np.array), (2, np.array), (2, sparse.csr_array)])
def test_models_that_are_the_same_codes_are_named_and_count_once_where_untrained(top: Any, stored: Any) -> None:
    rng = np.random.default_rng(0)
    drawn = rng.standard_normal((4, 300, 3))
    one, other, third, fourth = map(stored, drawn * (np.abs(drawn) > 0.5))
    how: dict[str, Any] = {"similarity": "spearman", "top": top}
    found = rank({"a": one, "b": other, "copy of a": one.copy(), "c": third}, **how)
    said = "a and copy of a are the same codes, which agree with each other on everything: give one of them"
    assert said in found.notes
    assert {*found.doubted} == {"a", "copy of a"}
    assert found.best not in found.doubted
    models = {"a": one, "b": other}
    assert not any("the same codes" in note for note in rank(models, **how).notes)
    assert rank(models, untrained={"u": third, "v": fourth}, **how).untrained is not None
    twice, once = (rank(models, untrained=each, **how).untrained for each in ([third, fourth, third], [third, fourth]))
    assert twice == pytest.approx(once)
    with pytest.raises(ValueError, match="of models of different seeds; these are all the same"):
        rank(models, untrained=[third, third.copy()], **how)


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
