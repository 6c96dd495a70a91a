"""Scores of wide codes are those of the plain metrics, whatever is in memory at once."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unbraid.base.arrays
import unbraid.base.memory
from tests.examples import entangled_codes, grid_factors
from unbraid import Representation, ScoreCard, score
from unbraid.base.types import FloatArray, Kind
from unbraid.metrics import mcc, med, mig, modularity, sap, snc, wide_scores

FACTORS = grid_factors(5)
KINDS: dict[str, tuple[Kind, ...]] = {
    "ordinal": ("ordinal", "ordinal", "ordinal"),
    "mixed": ("categorical", "ordinal", "cyclic"),
}


def wide(seed: int = 0) -> FloatArray:
    """Sparse, with codes that tell something between many that do not, dead ones and twins."""
    rng = np.random.default_rng(seed)
    codes = np.maximum(rng.standard_normal((len(FACTORS), 60)) - 1.0, 0.0)
    codes[:, [7, 30, 44]] = np.maximum(entangled_codes(FACTORS), 0.0)
    codes[:, 12] = codes[:, 30] * (rng.random(len(FACTORS)) < 0.8)
    codes[:, 13], codes[:, 50] = 0.0, codes[:, 44]
    return codes


@pytest.mark.parametrize("at_once", [1, 7, 128])
@pytest.mark.parametrize("kinds", sorted(KINDS))
def test_the_numbers_are_those_of_the_plain_metrics(kinds: str, at_once: int) -> None:
    codes, own = wide(), KINDS[kinds]
    found = wide_scores(codes, FACTORS, kinds=own, seed=3, at_once=at_once)
    for name, function in (("mig", mig), ("modularity", modularity), ("med", med), ("snc", snc), ("mcc", mcc)):
        expected = function(codes, FACTORS, kinds=own, seed=3).score
        assert getattr(found, name) == pytest.approx(expected, abs=1e-9), name
    ordered = [factor for factor, kind in enumerate(own) if kind != "categorical"]
    expected = sap(codes, FACTORS[:, ordered], kinds=[own[factor] for factor in ordered]).score
    assert found.sap == pytest.approx(expected, abs=1e-9)
    np.testing.assert_allclose(found.mutual_information, mig(codes, FACTORS, kinds=own).mutual_information, atol=1e-12)
    assert len(found.leading) <= 3 * 9


def test_a_circle_is_as_long_as_the_labels_say() -> None:
    """Hours of the morning alone, a period of 24: sparse codes of their cosine and sine score as the full array."""
    rng = np.random.default_rng(0)
    hours = rng.integers(0, 12, 900)
    circle = np.column_stack([np.cos(np.pi * hours / 12), np.sin(np.pi * hours / 12)])
    codes = np.hstack([circle, np.maximum(rng.standard_normal((900, 6)) - 1.0, 0.0)])
    plain = mcc(codes, hours[:, None], kinds=["cyclic"], sizes=[24]).score
    found = wide_scores(codes, hours[:, None], kinds=["cyclic"], sizes=[24])
    assert found.mcc == pytest.approx(plain, abs=1e-9)
    held: Any = sparse.csr_array(codes)
    card = score(held, {"hour": hours}, period={"hour": 24}, metrics="mcc")
    assert card.representation.sizes == (24,)
    assert card["mcc"].score == pytest.approx(plain, abs=1e-9)
    assert card["mcc"].score != pytest.approx(mcc(codes, hours[:, None], kinds=["cyclic"]).score, abs=0.01)


@pytest.mark.parametrize("window", [10, 4096])
@pytest.mark.parametrize("hold", [sparse.csr_matrix, sparse.csc_array, np.float32, np.asfortranarray])
def test_however_codes_are_held(hold: Any, window: int, monkeypatch: pytest.MonkeyPatch) -> None:
    codes = wide().astype(np.float32)
    plain = wide_scores(codes.astype(float), FACTORS)
    monkeypatch.setattr("unbraid.metrics.wide.WINDOW", window)
    held = wide_scores(hold(codes), FACTORS, at_once=7)
    for name in ("mig", "modularity", "med", "snc", "mcc", "sap"):
        assert getattr(held, name) == pytest.approx(getattr(plain, name), abs=1e-12)
    np.testing.assert_allclose(held.mutual_information, plain.mutual_information, atol=1e-12)


def test_classes_alone_have_no_sap() -> None:
    assert wide_scores(wide(), FACTORS, kinds=("categorical",) * 3).sap is None


def test_an_explicit_nan_is_named() -> None:
    codes = wide()
    codes[4, 30] = np.nan
    with pytest.raises(ValueError, match="codes must be finite; row 4, column 30 is nan"):
        wide_scores(sparse.csr_matrix(codes), FACTORS, at_once=8)


@pytest.mark.parametrize("held", [sparse.csr_array, sparse.csc_array, sparse.coo_array])
@pytest.mark.parametrize("dense", [False, True])
def test_a_row_that_lacks_a_label_may_store_nan(held: Any, dense: bool) -> None:
    codes, labels = wide(), {"a": FACTORS[:, 0].astype(float), "b": FACTORS[:, 1]}
    expected = score(codes[1:], {name: column[1:] for name, column in labels.items()}, metrics="mig")
    labels["a"][0], codes[0, 30] = np.nan, np.nan
    assert score(held(codes), labels, metrics="mig", dense=dense)["mig"].score == expected["mig"].score
    codes[4, 31], codes[5, 2] = np.inf, np.inf
    with pytest.raises(ValueError, match="codes must be finite; row (4, column 31|5, column 2) is inf"):
        score(held(codes), labels, metrics="mig", dense=dense)


def test_what_would_not_fit_is_refused_before_memory_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unbraid.base.arrays, "MOST_BYTES", 1 << 16)
    held: Any = sparse.csr_matrix(wide())
    with pytest.raises(ValueError, match="as a full array; .*wide_scores read them by columns"):
        mig(held, FACTORS)
    assert wide_scores(held, FACTORS, at_once=10).mig > 0


def held_by_rows(codes: FloatArray) -> Any:
    return sparse.csr_array(codes)


def file_of(path: Path, codes: Any, **parts: Any) -> Path:
    held = sparse.csr_array(codes)
    whole = {"format": b"csr", "shape": held.shape, "data": held.data, "indices": held.indices, "indptr": held.indptr}
    np.savez(path, allow_pickle=False, **{name: np.array(part) for name, part in (whole | parts).items()})
    return path


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_sparse_tensors_are_read_as_full_ones_are(layout: str) -> None:
    torch = pytest.importorskip("torch")
    codes = wide()
    tensor = torch.tensor(codes)
    tensor = {"csr": tensor.to_sparse_csr, "csc": tensor.to_sparse_csc, "coo": tensor.to_sparse}[layout]()
    np.testing.assert_array_equal(Representation(tensor).codes, codes)
    assert wide_scores(tensor, FACTORS).mig == pytest.approx(mig(codes, FACTORS).score, abs=1e-12)


@pytest.mark.parametrize("make", ["array", "matrix"])
@pytest.mark.parametrize("layout", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.filterwarnings("ignore:Constructing a DIA matrix")
def test_every_layout_of_scipy_is_read(tmp_path: Path, layout: str, make: str) -> None:
    codes = wide()
    held = getattr(sparse, f"{layout}_{make}")(codes)
    np.testing.assert_array_equal(Representation(held).codes, codes)
    card = unbraid.score(held, FACTORS, metrics="mig", kinds=["ordinal"] * FACTORS.shape[1])
    assert card["mig"].score == pytest.approx(mig(codes, FACTORS).score, abs=1e-12)
    if layout not in ("dok", "lil"):  # which scipy.sparse.save_npz refuses
        sparse.save_npz(tmp_path / "codes.npz", held)
        np.testing.assert_array_equal(Representation.load(tmp_path / "codes.npz").codes, codes)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"indices": np.full(3, 99, dtype=np.int32)}, "not a readable sparse matrix"),
        ({"indptr": np.array([0, 5, 2])}, "not a readable sparse matrix"),
        ({"format": b"lil"}, "not a readable sparse matrix"),
        ({"format": b"dia"}, "not a readable sparse matrix"),
        ({"format": b"bsr"}, "not a readable sparse matrix"),
        ({"format": np.array(["a", "b"])}, "not a readable sparse matrix"),
        ({"shape": np.array([-1, 60])}, "not a readable sparse matrix"),
    ],
)
def test_a_sparse_file_that_lies_is_one_line(tmp_path: Path, parts: dict[str, Any], said: str) -> None:
    path = file_of(tmp_path / "codes.npz", np.eye(3), **parts)
    with pytest.raises(ValueError, match=said) as error:
        Representation.load(path)
    assert str(path) in str(error.value)


def test_a_card_of_wide_codes_has_the_numbers_of_the_plain_one_and_the_codes_that_matter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    codes = wide()
    labels = {"a": FACTORS[:, 0].astype(float), "b": FACTORS[:, 1], "c": FACTORS[:, 2]}
    labels["a"][5] = np.nan  # a row without a label is left out
    expected = score(codes, labels, metrics=["sae", "med", "sap"])
    full = score(held_by_rows(codes), labels, metrics=["sae", "irs"], null=2, dense=True)
    assert full["irs"].score == score(codes, labels, metrics="irs")["irs"].score
    monkeypatch.setattr(unbraid.base.arrays, "MOST_READ", 1 << 16)
    holds: list[Any] = [held_by_rows(codes), sparse.csc_matrix(codes)]
    card = score(held_by_rows(codes), labels, metrics="mig")
    for held in holds:
        card = score(held, labels, metrics=["sae", "med", "sap", "nk"])
        for name in expected:
            assert card.scored[name].headline == pytest.approx(expected.scored[name].headline, abs=1e-12), name
            for part in ("per_factor", "ceiling", "chance", "accuracy"):
                own, other = getattr(card[name], part, 0.0), getattr(expected[name], part, 0.0)
                np.testing.assert_allclose(own, other, atol=1e-12)
    assert card.skipped["nk"].startswith("needs all codes at once as a full array, which takes 0.23 MB here")
    names = card.representation.code_names
    plain = [f"code {code}" for code in expected["snc"].alignment]
    assert [names[code] for code in card["snc"].alignment] == plain
    assert card.to_dict()["input"]["of_codes"] == 60 > len(names)
    card.save(tmp_path / "a.json")
    card.save(tmp_path / "a.html")
    assert f"{len(names)}" in (tmp_path / "a.html").read_text(encoding="utf-8")
    again = ScoreCard.load(tmp_path / "a.json")
    assert (again.of_codes, again.scored["mig"].headline) == (60, card.scored["mig"].headline)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"metrics": "nk"}, "nk needs all codes at once.*dense=True.*mig, med"),
        ({"metrics": "mig", "null": 3}, "a full array is needed for null.*dense=True"),
        ({"metrics": "mig", "confidence": 0.9}, "a full array is needed for confidence"),
    ]
    monkeypatch.setattr("unbraid.scoring.score_data.FEW_COLUMNS", 59)
    for bad, said in refused:
        with pytest.raises(ValueError, match=said):
            score(held_by_rows(codes), labels, **bad)
    with pytest.raises(ValueError, match="no factors"):
        score(held_by_rows(codes), metrics="mig")
    np.save(tmp_path / "codes.npy", codes)
    monkeypatch.setattr(unbraid.base.arrays, "MOST_COLUMNS", 59)
    mapped = np.load(tmp_path / "codes.npy", mmap_mode="r")
    assert score(mapped, FACTORS, metrics="mig").of_codes == 60
    with pytest.raises(ValueError, match="1 row without a label: leave such rows out of codes that are read"):
        score(mapped, labels, metrics="mig")
    codes[7, 3] = np.inf
    with pytest.raises(ValueError, match="codes must be finite; row 7, column 3 is inf"):
        score(held_by_rows(codes), labels, metrics="mig")


def test_a_card_of_sparse_codes_says_that_its_rows_were_matched() -> None:
    pandas = pytest.importorskip("pandas")
    names = pandas.Index([f"cell-{k}" for k in range(len(FACTORS))])
    order = np.random.default_rng(0).permutation(len(FACTORS))
    labels = {
        "first": pandas.Series(FACTORS[:, 0], index=names),
        "second": pandas.Series(FACTORS[order, 1], index=names[order]),
    }
    held: Any = sparse.csr_matrix(wide()[:, :8])
    card = score(held, labels, metrics="mig")
    assert card.of_codes == 8
    assert any("stood in another order" in note for note in card.notes)


def test_a_number_of_sparse_codes_that_is_not_finite_costs_its_own_row(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = mcc(wide(), FACTORS)
    monkeypatch.setattr("unbraid.metrics.wide.mcc", lambda *_, **__: replace(whole, score=float("nan")))
    held: Any = sparse.csr_matrix(wide())
    card = score(held, FACTORS, metrics=["mig", "mcc"])
    assert list(card) == ["mig"]
    assert "metric mcc gave score = nan" in card.failed["mcc"].reason


def test_labels_of_other_rows_are_refused_with_the_shape_of_the_codes() -> None:
    said = rf"got \({len(FACTORS)}, 60\) and \(69, 3\)"
    with pytest.raises(ValueError, match=said):
        score(sparse.csr_array(wide()), FACTORS[::7], metrics="mig")


def test_booleans_of_sparse_codes_are_scored_by_sap_as_ordinal() -> None:
    rng = np.random.default_rng(0)
    factors = rng.integers(0, 2, (200, 3))
    codes = factors * rng.random(factors.shape)
    labels = {"lang": factors[:, 0] == 1, "code": factors[:, 1] == 1, "count": factors[:, 2]}
    kinds = {"lang": "ordinal", "code": "ordinal"}
    assert "support vector machine" in score(sparse.csr_array(codes), labels).skipped["sap"]
    found = score(sparse.csr_array(codes), labels, metrics="sap", kinds=kinds)["sap"].score
    squared = np.corrcoef(codes.T, factors.T)[:3, 3:] ** 2
    assert found == pytest.approx(np.mean(np.diff(np.sort(squared, axis=0)[-2:], axis=0)))


@pytest.mark.parametrize("at_once", [7, 128])
@pytest.mark.parametrize("seed", range(3))
def test_codes_as_good_as_each_other_are_matched_wherever_they_stand(seed: int, at_once: int) -> None:
    """Of rare codes on few rows many tell as much of a factor by one half of the rows, and not by the other."""
    rng = np.random.default_rng(seed)
    factors = np.stack(np.unravel_index(np.arange(40) % 4, (2, 2)), axis=1)
    codes = (rng.random((40, 120)) < 0.12).astype(float)
    whole = snc(codes, factors).score, mcc(codes, factors).score
    for order in (np.arange(120), rng.permutation(120), rng.permutation(120)):
        for held in (codes[:, order], sparse.csr_array(codes[:, order])):
            found = wide_scores(held, factors, at_once=at_once)
            assert (found.snc, found.mcc) == pytest.approx(whole)


def test_of_copies_as_many_are_looked_at_as_there_are_factors() -> None:
    codes = np.repeat(wide()[:, [7, 30, 44, 13]], 50, axis=1)
    found = wide_scores(codes, FACTORS, at_once=16)
    assert [int((found.leading // 50 == kind).sum()) for kind in range(4)] == [3, 3, 3, 0]
    assert (found.snc, found.mcc) == pytest.approx((snc(codes, FACTORS).score, mcc(codes, FACTORS).score))


def test_sparse_codes_of_both_signs_are_noted_once_and_only_then() -> None:
    """A factor of two levels that fires with either sign: only its absolute value is read by a line or a threshold."""
    rng = np.random.default_rng(0)
    factors = (rng.random((1000, 5)) < 0.4).astype(int)
    signed = factors * rng.choice([-1, 1], factors.shape) * rng.uniform(1, 2, factors.shape)
    stored: Any = sparse.csr_array(signed)
    cases: dict[str, Any] = {"signed": signed, "sparse": stored, "size": np.abs(signed)}
    scored = {
        name: score(codes, factors, metrics=["snc", "mcc", "sap"], kinds=["ordinal"] * 5)
        for name, codes in cases.items()
    }
    for name, card in scored.items():
        notes = [note for note in card.notes if "both signs" in note]
        assert len(notes) == (name != "size"), name
        assert (card["snc"].score > 0.99) == (name == "size")
        assert (card["mcc"].score > 0.9) == (name == "size")
    for codes in (rng.standard_normal((1000, 5)), np.where(signed < -1.9, signed, np.maximum(signed, 0))):
        assert not [note for note in score(codes, factors, metrics="snc").notes if "both signs" in note]
    for codes in (signed, stored):
        assert not [note for note in score(codes, factors, metrics="mig").notes if "both signs" in note]


@pytest.mark.parametrize("dense", [False, True])
def test_the_matrix_of_a_graph_is_no_codes(dense: bool) -> None:
    links = sparse.random(40, 40, density=0.1, random_state=0)
    graph: Any = sparse.csr_array(links + links.T)
    labels = np.arange(40) % 2
    with pytest.raises(ValueError, match="codes are a symmetric matrix of 40 x 40, as of a graph"):
        score(graph, labels[:, None], metrics="mig", dense=dense)
    one_hot: Any = sparse.csr_array(np.eye(40))
    assert score(one_hot, labels[:, None], metrics="mig", dense=dense)["mig"].score >= 0
