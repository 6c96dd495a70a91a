"""Embeddings of an AnnData, and of .h5ad files as anndata writes them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

from unbraid.integrations.anndata import Benchmarker, score
from unbraid.metrics import explicitness, mig

anndata = pytest.importorskip("anndata")
h5py = pytest.importorskip("h5py")
pd = pytest.importorskip("pandas")

N_CELLS = 400
RNG = np.random.default_rng(0)
LABELS = pd.DataFrame(
    {
        "cell_type": pd.Categorical(RNG.choice(["B", "NK", "T"], N_CELLS)),
        "dosage": RNG.integers(0, 4, N_CELLS),
        "batch": RNG.choice(["first", "second"], N_CELLS),
        "donor": RNG.choice(list("abcdef"), N_CELLS),
    },
    index=[f"cell-{place}" for place in range(N_CELLS)],
)
LEVELS = np.column_stack([LABELS["cell_type"].cat.codes, LABELS["dosage"]])
BATCH = (LABELS["batch"] == "second").to_numpy(int)[:, None]
GOOD = LEVELS + 0.1 * RNG.standard_normal((N_CELLS, 2))
MIXED = np.column_stack([GOOD @ [[1, 1], [1, -1]], BATCH + 0.1 * RNG.standard_normal(N_CELLS)])
FACTORS = ["cell_type", "dosage"]
KINDS: dict[str, Any] = {"dosage": "ordinal"}


@pytest.fixture
def adata() -> Any:
    held = {"X_good": GOOD, "X_mixed": MIXED, "X_sparse": sparse.csr_matrix(GOOD)}
    return anndata.AnnData(np.zeros((N_CELLS, 2), np.float32), obs=LABELS.copy(), obsm=held)


@pytest.fixture
def file(adata: Any, tmp_path: Path) -> Path:
    adata.write_h5ad(tmp_path / "cells.h5ad")
    return tmp_path / "cells.h5ad"


def test_an_embedding_is_scored_as_its_matrix_is(adata: Any) -> None:
    card = score(adata, "X_good", FACTORS, kinds=KINDS, metrics=["mig", "snc"])
    assert card["mig"].score == mig(GOOD, LEVELS, kinds=["categorical", "ordinal"]).score
    assert card.representation.levels[0] == ("B", "NK", "T")
    assert score(adata, "X_good", "dosage", metrics="mig").representation.names == ("dosage",)


def test_scores_outlive_the_file(adata: Any, tmp_path: Path) -> None:
    cards = {key: score(adata, key, FACTORS, kinds=KINDS, metrics=["mig", "snc"]) for key in ("X_good", "X_mixed")}
    adata.write_h5ad(tmp_path / "cells.h5ad")
    kept = anndata.read_h5ad(tmp_path / "cells.h5ad").uns["unbraid"]
    for key, card in cards.items():
        frame = kept[key]["scores"]
        assert frame[frame["headline"]].set_index("metric")["value"].to_dict() == {
            name: each.headline for name, each in card.scored.items()
        }
        assert json.loads(kept[key]["card"]) == card.to_dict()


def test_groups_and_weights_name_columns(adata: Any) -> None:
    card = score(adata, "X_good", FACTORS, metrics="mig", groups="donor", null=19, key_added="grouped")
    assert card.representation.groups is not None
    assert card.representation.groups.max() == 5
    assert adata.uns["grouped"]["X_good"]["scores"]["p"][0] <= 0.05
    adata.obs["counts"] = 2
    assert score(adata, "X_good", FACTORS, metrics="mig", weights="counts")["mig"].score == pytest.approx(
        score(adata, "X_good", FACTORS, metrics="mig")["mig"].score
    )


def test_groups_and_weights_can_be_arrays(adata: Any) -> None:
    card = score(adata, "X_good", FACTORS, metrics="mig", groups="donor", weights=np.full(N_CELLS, 2.0))
    assert card["mig"].score == pytest.approx(score(adata, "X_good", FACTORS, metrics="mig")["mig"].score)
    given = score(adata, "X_good", FACTORS, metrics="mig", groups=adata.obs["donor"].to_numpy())
    expected: Any = card.representation.groups
    np.testing.assert_array_equal(given.representation.groups, expected)


def test_rows_of_an_embedding_that_is_a_frame_go_by_name(adata: Any) -> None:
    adata.obsm["X_frame"] = pd.DataFrame(GOOD, index=LABELS.index, columns=["one", "two"])
    card = score(adata[::-1].copy(), "X_frame", FACTORS, kinds=KINDS, metrics="mig")
    assert card["mig"].score == pytest.approx(mig(GOOD, LEVELS, kinds=["categorical", "ordinal"]).score)
    assert card.representation.code_names == ("one", "two")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda adata: score(adata, "X_god", FACTORS), "adata.obsm has no 'X_god'; did you mean 'X_good'?"),
        (lambda adata: score(adata, "X_good", ["celltype"]), "adata.obs has no 'celltype'; did you mean 'cell_type'?"),
        (lambda adata: score(adata, "X_good", FACTORS, key_added="said"), r"adata.uns\['said'\] holds a str"),
        (lambda adata: Benchmarker(adata, FACTORS, []), "embedding_obsm_keys is empty; adata.obsm has X_good, X_mixed"),
        (lambda adata: Benchmarker(adata, ["celltype"], ["X_good"]), "adata.obs has no 'celltype'; did you mean"),
        (lambda adata: Benchmarker(adata, FACTORS, ["X_good"], metrics=["mgi"]), "unknown metric 'mgi'; did you mean"),
    ],
)
def test_a_mistake_is_one_line(adata: Any, wrong: Callable[[Any], Any], said: str) -> None:
    adata.uns["said"] = "something"
    with pytest.raises(ValueError, match=said) as error:
        wrong(adata)
    assert "\n" not in str(error.value)
    assert list(adata.uns) == ["said"]


def test_a_benchmark_has_a_row_for_each_embedding(adata: Any) -> None:
    benchmark = Benchmarker(
        adata, FACTORS, ["X_good", "X_mixed"], unwanted="batch", kinds=KINDS, metrics=["mig", "factor_leakage"]
    )
    results = benchmark.benchmark().get_results()
    assert results.index.name == "Embedding"
    assert results.columns.tolist() == ["mig", "factor_leakage", "unwanted(batch)"]
    assert results.loc["X_good", "mig"] == benchmark.cards["X_good"]["mig"].score > results.loc["X_mixed", "mig"]
    told = explicitness(MIXED, BATCH, kinds=["categorical"]).per_factor[0]
    assert results.loc["X_mixed", "unwanted(batch)"] == pytest.approx(told)
    assert told > 0.9 > 0.3 > abs(results.loc["X_good", "unwanted(batch)"])
    assert results.attrs["lower_is_better"] == ["factor_leakage", "unwanted(batch)"]
    alone = score(adata, "X_mixed", FACTORS, unwanted="batch", kinds=["categorical", "ordinal"], metrics="mig", null=19)
    assert alone["unwanted(batch)"].score == pytest.approx(told)
    assert alone.scored["unwanted(batch)"].null.p == 0.05  # pyright: ignore[reportOptionalMemberAccess]
    assert alone["mig"].score == results.loc["X_mixed", "mig"]
    assert set(adata.uns["unbraid"]) == {"X_good", "X_mixed"}


def test_a_wide_sparse_embedding_is_named_and_scored_as_a_full_array_where_that_is_asked_for(adata: Any) -> None:
    padded = np.pad(MIXED, ((0, 0), (0, 200)))
    adata.obsm["X_wide"] = sparse.csr_matrix(padded)
    asked: dict[str, Any] = {"unwanted": "batch", "kinds": KINDS, "metrics": "mig"}
    said = (
        "^embedding .X_wide.: a full array is needed for unwanted, and codes .* take 1.9 MB .*, or leave unwanted out"
    )
    with pytest.raises(ValueError, match=said):
        Benchmarker(adata, FACTORS, ["X_good", "X_wide"], **asked).benchmark()
    results = Benchmarker(adata, FACTORS, ["X_wide", "X_mixed"], **asked, dense=True).benchmark().get_results()
    np.testing.assert_allclose(*results.to_numpy(), atol=1e-9)


def run(arguments: list[str], call: Any, folder: Path) -> dict[str, Any]:
    code, _, err = call("score", *arguments, "--metrics", "mig", "--json", str(folder / "scores.json"))
    assert code == 0, err
    return json.loads((folder / "scores.json").read_text())


def test_several_embeddings_of_a_file_are_models(file: Path, unbraid_cli: Any) -> None:
    wanted = ["score", str(file), "--factors", ",".join(FACTORS), "--metrics", "mig", "--json", "-"]
    code, out, err = unbraid_cli(*wanted, "--codes", "X_mixed,X_good,X_absent")
    assert code == 3
    content = json.loads(out)
    assert [row["model"] for row in content["models"]] == ["X_good", "X_mixed"]
    (alone,) = [json.loads(unbraid_cli(*wanted, "--codes", "X_good")[1])["metrics"]["mig"]["values"]["score"]]
    assert content["models"][0]["mig"] == alone
    assert [each["path"] for each in content["failed"]] == ["X_absent"]
    assert "X_absent" in err


def test_labels_of_a_table_go_by_the_names_of_the_cells(file: Path, unbraid_cli: Any, tmp_path: Path) -> None:
    shuffled = LABELS[FACTORS].iloc[RNG.permutation(N_CELLS)]
    shuffled.to_csv(tmp_path / "labels.csv", index_label="barcode")
    wanted = [str(file), "--codes", "X_good", "--labels", str(tmp_path / "labels.csv"), "--kinds", "dosage=ordinal"]
    card = run([*wanted, "--key", "barcode"], unbraid_cli, tmp_path)
    right = mig(GOOD, LEVELS, kinds=["categorical", "ordinal"]).score
    assert card["metrics"]["mig"]["values"]["score"] == pytest.approx(right)
    assert any("stood in another order" in note for note in card["input"]["notes"])
    code, _, err = unbraid_cli("score", *wanted)
    assert code == 2
    assert "--key COLUMN says which column holds the obs_names of" in err
    shuffled.to_csv(tmp_path / "labels.csv")  # the index, as pandas writes it
    assert run(wanted, unbraid_cli, tmp_path)["metrics"]["mig"]["values"]["score"] == pytest.approx(right)


def endless(file: Any) -> None:
    """A kilobyte that would take a terabyte."""
    del file["obsm/X_good"]
    made = file.create_dataset("obsm/X_good", (N_CELLS, 1 << 30), "f8", chunks=(1, 1024), compression="gzip")
    made.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})


def endless_name(file: Any) -> None:
    """The name of the first cell says that it has four billion letters."""
    place, path = file["obs/_index"].id.get_offset(), file.filename
    file.close()
    with open(path, "r+b") as raw:
        raw.seek(place)
        assert raw.read(4) == len("cell-0").to_bytes(4, "little")
        raw.seek(place)
        raw.write(b"\xff\xff\xff\xff")


def wild(file: Any) -> None:
    file["obsm/X_sparse/indices"][:] = 1 << 20


def outside(file: Any) -> None:
    del file["obsm/X_good"]
    Path("secret").write_bytes(bytes(8 * N_CELLS))
    made = file.create_dataset("obsm/X_good", (N_CELLS, 1), "f8", external=[("secret", 0, 8 * N_CELLS)])
    made.attrs.update({"encoding-type": "array", "encoding-version": "0.2.0"})


def linked(file: Any) -> None:
    del file["obsm/X_good"]
    file["obsm/X_good"] = h5py.ExternalLink("other.h5ad", "obsm/X_good")


def shorter(file: Any) -> None:
    held = file["obsm/X_good"][1:]
    attributes = dict(file["obsm/X_good"].attrs)
    del file["obsm/X_good"]
    file["obsm/X_good"] = held
    file["obsm/X_good"].attrs.update(attributes)


def column_linked(file: Any) -> None:
    del file["obs/dosage"]
    file["obs/dosage"] = h5py.SoftLink("/obs/elsewhere")


DAMAGE = {
    endless: (["--codes", "X_good"], "unpack to"),
    endless_name: (["--codes", "X_good"], "unpack to"),
    wild: (["--codes", "X_sparse"], "not a readable .h5ad file"),
    outside: (["--codes", "X_good"], "is a link"),
    linked: (["--codes", "X_good"], "is a link"),
    column_linked: (["--codes", "X_good"], "is a link"),
    shorter: (["--codes", "X_good"], "has 399 rows and obs 400"),
    lambda file: file.pop("obs"): (["--codes", "X_good"], "not a readable .h5ad file"),
    lambda file: file.pop("obsm"): (["--codes", "X_good"], "not a readable .h5ad file"),
    lambda file: file["obs"].attrs.pop("_index"): (["--codes", "X_good"], "not a readable .h5ad file"),
    lambda _: None: ([], "name the codes (--codes); obsm holds X_good, X_mixed, X_sparse"),
    id: (["--codes", "X_god"], "obsm has no 'X_god'; did you mean 'X_good'?"),
}


@pytest.mark.parametrize("change", DAMAGE, ids=lambda change: change.__name__)
def test_a_damaged_or_hostile_file_is_one_line(
    change: Callable[[Any], Any],
    file: Path,
    unbraid_cli: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(file.parent)
    with h5py.File(file, "a") as opened:
        change(opened)
    options, said = DAMAGE[change]
    code, _, err = unbraid_cli("score", str(file), *options, "--factors", "cell_type")
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert str(file) in err
    assert said in err


@pytest.mark.parametrize("cut", [0, 10, 1000, 20_000])
def test_so_is_one_that_is_cut_short(cut: int, file: Path, unbraid_cli: Any) -> None:
    file.write_bytes(file.read_bytes()[:cut])
    code, _, err = unbraid_cli("score", str(file), "--codes", "X_good", "--factors", "cell_type")
    assert code == 2
    assert len(err.strip().splitlines()) == 1
    assert "not a readable .h5ad file" in err


def test_units_of_several_numbers_are_blocks_from_a_file_as_in_memory(
    adata: Any, unbraid_cli: Any, tmp_path: Path
) -> None:
    adata.obsm = {"X_units": np.stack([GOOD, -GOOD], axis=2), "X_deep": GOOD[:, :, None, None]}
    adata.write_h5ad(tmp_path / "units.h5ad")
    arguments = [str(tmp_path / "units.h5ad"), "--codes", "X_units", "--factors", "dosage"]
    scored = run(arguments, unbraid_cli, tmp_path)["metrics"]["block_mcc"]
    expected = score(adata, "X_units", "dosage", metrics="mig").scored["block_mcc"].headline
    assert scored["values"][scored["headline"]] == pytest.approx(expected)
    arguments[2] = "X_deep"
    code, _, err = unbraid_cli("score", *arguments)
    assert (code, len(err.splitlines())) == (2, 1)
    assert f"{tmp_path / 'units.h5ad'}: obsm 'X_deep': codes must be (n_samples, n_codes)" in err


def test_a_view_is_scored_as_a_copy_of_it_is(adata: Any) -> None:
    part = adata[100:].copy()
    for key in ("X_good", "X_sparse"):
        with pytest.warns(Warning, match="view"):  # anndata's own: to write into a view makes it an object
            card = score(adata[100:], key, FACTORS, kinds=KINDS, metrics="mig")
        assert card["mig"].score == score(part, key, FACTORS, kinds=KINDS, metrics="mig")["mig"].score
    assert "unbraid" not in adata.uns
