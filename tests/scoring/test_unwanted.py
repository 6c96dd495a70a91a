"""Factors that codes should not tell of, on cards, pages, tables and the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import unbraid
from unbraid import Representation, ScoreCard
from unbraid.metrics import explicitness, mig, r2
from unbraid.scoring.compare import compare

N = 1200
RNG = np.random.default_rng(0)
SHAPE, SIZE, BATCH, DONOR = (RNG.integers(0, count, N) for count in (3, 4, 3, 12))
LABELS = {"shape": SHAPE, "batch": BATCH, "size": SIZE}
WANTED = np.column_stack([SHAPE, SIZE])
CLEAN = WANTED + 0.1 * RNG.standard_normal((N, 2))
LEAKY = np.column_stack([CLEAN, np.eye(3)[BATCH]])  # each batch has a direction of its own
KINDS: Any = {"shape": "categorical", "size": "ordinal", "batch": "categorical"}


def card_of(codes: Any, **options: Any) -> ScoreCard:
    return unbraid.score(codes, LABELS, **{"kinds": KINDS, "metrics": ["mig"], "unwanted": "batch", **options})


def test_the_row_is_explicitness_of_that_factor_alone() -> None:
    mixed = LEAKY + 0.4 * RNG.standard_normal(LEAKY.shape)
    card = card_of(mixed, seed=3)
    alone = explicitness(mixed, BATCH[:, None], kinds=["categorical"], seed=3)
    assert list(card) == ["mig", "unwanted(batch)"]
    assert (card["unwanted(batch)"].score, card["unwanted(batch)"].auc) == (alone.score, alone.auc)
    assert 0.2 < alone.score < 0.98
    assert not hasattr(card["unwanted(batch)"], "per_factor")


def test_nobody_else_sees_it() -> None:
    card = card_of(LEAKY, metrics=["mig", "r2"])
    assert card["mig"].score == mig(LEAKY, WANTED, kinds=["categorical", "ordinal"]).score
    assert card["r2"].score == r2(LEAKY, WANTED, kinds=["categorical", "ordinal"]).score
    assert card.representation.names == ("shape", "size")
    assert card.to_dict()["computed_with"]["mig"]["factors"] == ["shape", "size"]
    assert card.to_dict()["computed_with"]["unwanted(batch)"]["factors"] == ["batch"]


def test_codes_that_hold_the_batch_score_1_and_others_0() -> None:
    told, untold = (card_of(codes, null=19, confidence=(0.9, 4)).scored["unwanted(batch)"] for codes in (LEAKY, CLEAN))
    assert told.headline == 1.0
    assert told.null is not None
    assert told.null.p == 0.05  # 1 of 20: nothing shuffled tells as much, though more is worse
    assert told.null.above is None
    assert abs(told.null.mean) < 4 * told.null.spread / np.sqrt(19)
    assert untold.chance is not None
    assert abs(untold.headline) < 4 * untold.chance.spread
    assert untold.null is not None
    assert untold.null.p > 0.05
    frame = card_of(LEAKY, null=19).to_frame()
    assert set(frame.loc[frame["metric"] == "unwanted(batch)", "factor"]) == {""}, "no row of a wanted factor"
    moved = [np.argsort(np.random.default_rng([0, k]).permutation(N)) for k in range(2)]
    again = [explicitness(CLEAN, BATCH[rows, None], kinds=["categorical"], seed=0).score for rows in moved]
    few = card_of(CLEAN, null=2).scored["unwanted(batch)"].null
    assert few is not None
    assert few.scores == pytest.approx(again, abs=1e-4)
    assert untold.intervals is not None
    assert untold.intervals.values["score"].low < untold.headline < untold.intervals.values["score"].high
    for each in (told, untold):
        assert not each.metric.higher_is_better
        assert (each.metric.best, each.metric.direction("auc")) == (0.0, False)


def test_rows_in_the_order_of_batches_are_no_recording() -> None:
    told = "neighbouring rows are alike"
    ordered = np.argsort(BATCH, kind="stable")
    labels = {name: column[ordered] for name, column in LABELS.items()}
    in_batches = unbraid.score(LEAKY[ordered], labels, kinds=KINDS, metrics="mig", unwanted="batch", null=1)
    assert told not in str(in_batches.notes)
    every = np.lexsort((SIZE, SHAPE, BATCH))
    labels = {name: column[every] for name, column in LABELS.items()}
    card = unbraid.score(LEAKY[every], labels, kinds=KINDS, metrics="mig", unwanted="batch", null=1)
    assert told not in str(card.notes)
    walk = np.cumsum(RNG.standard_normal(N))
    labels = {"speed": np.digitize(walk, np.quantile(walk, [0.3, 0.6])), "batch": BATCH}
    drifting = walk[:, None] + 0.1 * CLEAN
    assert told in str(unbraid.score(drifting, labels, metrics="mig", unwanted="batch", null=1).notes)
    few, noise = RNG.standard_normal((25, 10)), RNG.standard_normal((25, 40))
    card = unbraid.score(noise, few, kinds=["continuous"] * 10, metrics="r2", null=1)
    assert told not in str(card.notes), "of 40 codes one is always somewhat alike in 25 rows"


def test_groups_of_rows_stay_together() -> None:
    card = card_of(LEAKY, groups=DONOR, null=9, confidence=(0.9, 4))
    alone = explicitness(LEAKY, BATCH[:, None], kinds=["categorical"], groups=DONOR)
    assert card["unwanted(batch)"].score == alone.score
    null = card.scored["unwanted(batch)"].null
    assert null is not None
    assert null.moved == "groups"


def test_saved_and_read_back_it_is_the_same(tmp_path: Path) -> None:
    card = card_of(LEAKY, unwanted=["batch"], null=3, confidence=(0.9, 3))
    card.save(tmp_path / "scores.json")
    read = ScoreCard.load(tmp_path / "scores.json")
    assert str(read) == str(card)
    assert read.to_dict() == card.to_dict()
    assert read.scored["unwanted(batch)"].metric == card.scored["unwanted(batch)"].metric


def test_blocks_of_factors_are_the_others() -> None:
    blocks: Any = {"code_blocks": [[0], [1]], "factor_blocks": {"first": [0], "last": [2]}}
    card = card_of(LEAKY, **blocks)
    assert list(card) == ["block_r2", "block_mcc", "mig", "unwanted(batch)"]
    assert card.computed_with["block_r2"]["factor_blocks"] == "first=shape,last=size"
    with pytest.raises(ValueError, match="factor_blocks names no factor 'batch'; there are shape, size"):
        card_of(LEAKY, factor_blocks="batch,shape")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unwanted": 3}, "unwanted must be a name or a list of names; got 3"),
        ({"columns": 3}, "columns must be a name or a list of names; got 3"),
        ({"unwanted": "bach"}, "no factor 'bach'; did you mean 'batch'?"),
    ],
)
def test_a_mistake_is_one_line(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        card_of(**{"codes": LEAKY, **options})
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("asked", [{}, {"groups": DONOR, "confidence": (0.95, 4)}, {"unwanted": None, "null": 5}])
def test_few_sparse_codes_become_a_full_array_where_one_is_needed(asked: dict[str, Any]) -> None:
    metrics = ["mig", "nk"] if not asked else ["mig"]
    full, held = (card_of(each, metrics=metrics, **asked) for each in (LEAKY, sparse.csr_matrix(LEAKY)))
    assert held.to_dict()["metrics"].keys() == full.to_dict()["metrics"].keys()
    for name, scored in full.scored.items():
        assert held.scored[name].values == scored.values
        assert (held.scored[name].intervals is None) == ("confidence" not in asked)
    assert "nk" in card_of(sparse.csr_matrix(LEAKY), metrics=["mig", "nk"], unwanted=None).skipped


def test_a_row_that_cannot_be_scored_says_why() -> None:
    card = card_of(LEAKY, weights=np.full(N, 2.0))
    assert card.skipped == {"unwanted(batch)": "does not support weighted rows"}


def held(codes: Any) -> Representation:
    return Representation.of(codes, LABELS, kinds=KINDS)


def test_models_are_compared_by_less_of_it() -> None:
    found = compare({"leaky": held(LEAKY), "clean": held(CLEAN)}, metrics="mig", unwanted="batch", confidence=(0.95, 6))
    better = {each.metric: each.better for each in found.differences}
    assert better["unwanted(batch)"] == "clean"
    assert found.table()[1][0][0] == "unwanted(batch) ↓"  # the MIG of both is the same and left out
    alone = score_alone(CLEAN)
    assert found.compared["clean"].scores["unwanted(batch)"].score == alone
    assert found.cards["clean"].scored["unwanted(batch)"].intervals is not None


def score_alone(codes: Any) -> float:
    return explicitness(codes, BATCH[:, None], kinds=["categorical"]).score


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    for name, codes in (("leaky", LEAKY), ("clean", CLEAN)):
        (tmp_path / name).mkdir()
        held(codes).save(tmp_path / name / "codes.npz")
    return [str(tmp_path / name) for name in ("leaky", "clean")]


def test_the_command_sets_factors_apart(files: list[str], tmp_path: Path, unbraid_cli: Any) -> None:
    wanted = [f"{files[0]}/codes.npz", "--metrics", "mig", "--unwanted", "batch"]
    code, out, _ = unbraid_cli("score", *wanted, "--factors", "size", "--json", str(tmp_path / "scores.json"))
    assert code == 0
    saved = json.loads((tmp_path / "scores.json").read_text())
    assert [each["name"] for each in saved["input"]["factors"]] == ["size"]
    assert saved["metrics"]["unwanted(batch)"]["values"]["score"] == score_alone(LEAKY)
    assert saved["input"]["chosen_factors"] == saved["computed_with"]["mig"]["factors"] == ["size"]
    code, out, _ = unbraid_cli("score", *wanted)
    assert code == 0
    assert any(line.split()[:3] == ["unwanted(batch)", "1.000", "lower"] for line in out.splitlines())
    page = tmp_path / "scores.html"
    assert unbraid_cli("report", str(tmp_path / "scores.json"), "--out", str(page))[0] == 0
    assert "--metrics mig --factors size --unwanted batch --seed 0" in page.read_text()
    code, _, err = unbraid_cli("score", *wanted, "--fail-under", "unwanted(batch)=.2")
    assert code == 3
    assert "unwanted(batch) is 1, above 0.2" in err


def test_a_column_that_groups_rows_is_no_factor(tmp_path: Path, unbraid_cli: Any) -> None:
    said = "makes this column no factor: leave it out of"
    both: list[dict[str, Any]] = [{"unwanted": "batch"}, {"columns": ["shape", "batch"]}]
    for options in both:
        with pytest.raises(ValueError, match=f"groups='batch' {said} columns and unwanted"):
            unbraid.score(CLEAN, LABELS, groups="batch", **options)
    np.save(tmp_path / "codes.npy", CLEAN[:40])
    (tmp_path / "labels.csv").write_text("shape,batch\n" + "".join(f"{row % 3},{row % 2}\n" for row in range(40)))
    given = ("--labels", tmp_path / "labels.csv", "--factors", "shape", "--unwanted", "batch", "--groups", "batch")
    code, _, error = unbraid_cli("score", tmp_path / "codes.npy", *given)
    assert (code, error) == (2, f"unbraid: --groups batch {said} --factors and --unwanted\n")
