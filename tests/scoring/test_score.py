"""The score card: what it holds, that sharing changes no number, and a user's own metric."""

import inspect
import json
import math
import re
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from tests.examples import entangled_codes, grid_factors
from unbraid.data import FactorSpace
from unbraid.datasets import ArrayDataset
from unbraid.metrics import METRICS, PRESETS
from unbraid.metrics._shared.inputs import standardised
from unbraid.metrics._shared.sharing import shared, sharing
from unbraid.scoring.engine import score_each
from unbraid.scoring.score import choose

FACTORS = grid_factors(8)
CODES = entangled_codes(FACTORS)
QUICK = [name for name in ("mig", "modularity", "med", "sap", "snc", "dci_lasso") if name in METRICS]


def test_a_note_that_several_metrics_share_stands_once(tmp_path: Path) -> None:
    kinds = ("categorical", "ordinal", "cyclic")
    card = unbraid.score(CODES, FACTORS, metrics=["dci_lasso", "amari", "sap"], kinds=kinds)
    note = "factor 0 is categorical: levels are read as numbers"
    assert card.footnotes[note] == ("dci_lasso", "amari")
    assert note in card["amari"].notes
    content = card.to_dict()
    assert content["footnotes"][note] == ["dci_lasso", "amari"]
    assert not any(note in entry["notes"] for entry in content["metrics"].values())
    card.save(tmp_path / "scores.json")
    saved = unbraid.ScoreCard.load(tmp_path / "scores.json")
    assert note in saved.scored["amari"].notes


@pytest.mark.parametrize("name", [name for name, metric in METRICS.items() if not metric.needs])
def test_a_metric_in_a_card_equals_the_metric_alone(name: str) -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[*QUICK, name], seed=3)
    alone = METRICS[name].function(CODES, FACTORS, seed=3)
    assert card.scored[name].headline == getattr(alone, METRICS[name].headline)


@pytest.mark.parametrize("name", ["mig(bins=5)", "d_lsbd(norm=axes)", "sap(variant=disentanglement_lib)"])
def test_a_card_that_is_read_knows_metrics_with_arguments(name: str, tmp_path: Path) -> None:
    kinds = ("categorical", "ordinal", "cyclic")
    card = unbraid.score(CODES, FACTORS, metrics=[name, "mig"], kinds=kinds)
    card.save(tmp_path / "scores.json")
    again = unbraid.ScoreCard.load(tmp_path / "scores.json")
    assert str(again) == str(card)
    if name in card:
        here, there = card.scored[name].metric, again.scored[name].metric
        assert (there.title, there.range, there.summary) == (here.title, here.range, here.summary)
    held = json.loads((tmp_path / "scores.json").read_text(encoding="utf-8"))
    held["metrics"]["mig(no_such=1)"] = held["metrics"]["mig"]
    (tmp_path / "scores.json").write_text(json.dumps(held), encoding="utf-8")
    gone = unbraid.ScoreCard.load(tmp_path / "scores.json").scored["mig(no_such=1)"]
    assert gone.metric.summary == "A metric that this version of unbraid has not."


def test_json_has_only_finite_numbers_and_every_metric(tmp_path: Path) -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[*QUICK, "d_lsbd"], names=("shape", "size", "hue"))
    card.save(tmp_path / "scores.json")
    content = json.loads((tmp_path / "scores.json").read_text(), parse_constant=pytest.fail)
    assert list(content["metrics"]) == QUICK
    assert content["skipped"].keys() == {"d_lsbd"}
    for name, metric in content["metrics"].items():
        assert metric["values"][metric["headline"]] == card.scored[name].headline
        assert all(math.isfinite(value) for value in metric["values"].values())
        assert metric["higher_is_better"] is METRICS[name].higher_is_better


def test_frame_has_one_row_per_number() -> None:
    pytest.importorskip("pandas")
    frame = unbraid.score(CODES, FACTORS, metrics=["mig"], names=("shape", "size", "hue")).to_frame()
    assert frame[frame.headline].value.tolist() == [unbraid.metrics.mig(CODES, FACTORS).score]
    per_factor = frame[frame["name"] == "per_factor"].set_index("factor")["value"]
    assert per_factor.to_dict() == pytest.approx(
        dict(zip(("shape", "size", "hue"), unbraid.metrics.mig(CODES, FACTORS).per_factor, strict=True))
    )


def test_a_frame_says_of_every_number_which_way_is_better() -> None:
    pytest.importorskip("pandas")
    frame = unbraid.score(CODES, FACTORS, metrics=["dci_lasso", "factor_leakage", "explicitness", "mig"]).to_frame()
    said = {(row["metric"], row["name"]): row["direction"] for row in frame.to_dict("records")}
    assert said["dci_lasso", "disentanglement"] == said["dci_lasso", "completeness"] == "higher"
    assert said["dci_lasso", "informativeness"] == said["dci_lasso", "nrmse"] == "lower"  # errors
    assert METRICS["dci_forest"].direction("error_rate") is False
    assert METRICS["dci_forest"].direction("informativeness") is False  # an error; that of DCI-ES is none
    assert METRICS["dci_es"].direction("informativeness") is True
    assert METRICS["infomec"].direction("compactness") is True
    assert said["factor_leakage", "auc"] == said["factor_leakage", "per_factor"] == "lower"
    assert said["explicitness", "auc"] == "higher"
    assert said["mig", "ceiling"] == ""  # of which there is no better


def test_a_representation_scores_as_its_arrays_do() -> None:
    representation = unbraid.Representation(CODES, FACTORS, kinds=("categorical", "ordinal", "ordinal"))
    apart = unbraid.score(CODES, FACTORS, kinds=("categorical", "ordinal", "ordinal"), metrics=QUICK)
    assert str(unbraid.score(representation, metrics=QUICK)) == str(apart)
    with pytest.raises(ValueError, match="brings its own factors"):
        unbraid.score(representation, FACTORS)


def test_a_card_is_a_mapping_of_results() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "modularity", "d_lsbd"])
    assert isinstance(card, Mapping)
    assert dict(card) == {name: card[name] for name in ("mig", "modularity")}
    assert len(card) == 2
    assert card.get("mig") is card["mig"]
    assert card.get("d_lsbd") is None
    assert "mig" in card
    assert "d_lsbd" not in card
    assert [name for name, result in card.items() if result.score >= 0] == list(card)


def test_what_describes_the_data_goes_to_the_representation() -> None:
    labels = {"hue": FACTORS[:, 2] * 45, "shape": FACTORS[:, 0], "size": FACTORS[:, 1]}
    card = unbraid.score(CODES, labels, metrics="mig", period={"hue": 360}, columns=["hue", "shape"])
    held = unbraid.Representation.of(CODES, labels, period={"hue": 360}, columns=["hue", "shape"])
    assert (card.representation.names, card.representation.kinds) == (held.names, held.kinds)
    assert card["mig"].score == unbraid.score(held, metrics="mig")["mig"].score
    with pytest.raises(TypeError, match=r"score\(\) has no argument 'kind'; did you mean 'kinds'"):
        unbraid.score(CODES, FACTORS, kind=("ordinal",) * 3)
    assert len(inspect.signature(unbraid.score).parameters) <= 11, "ten, and what describes the data"


def test_a_preset_stands_for_its_metrics() -> None:
    card = unbraid.score(
        CODES, FACTORS, metrics=["symmetry", "mig", "d_lsbd"], kinds=("categorical", "ordinal", "cyclic")
    )
    assert list(choose(["symmetry", "mig", "d_lsbd"])) == ["d_lsbd", "independence_score", "mig"]
    assert {*card.scored, *card.skipped} == {"d_lsbd", "independence_score", "mig"}
    assert choose("all") == METRICS
    assert set(PRESETS["standard"]) < set(METRICS), "what takes long or answers a rare question is asked for by name"
    for names in PRESETS.values():
        assert set(names) <= set(METRICS)
    with pytest.raises(ValueError, match="unknown metric 'symmetri'; .*symmetry"):
        choose("symmetri")


def test_a_fast_card_leaves_out_what_takes_long() -> None:
    card = unbraid.score(CODES, FACTORS, metrics="fast")
    slow = {"nk", "mlp_accuracy", "dci_boosted", "dci_forest", "linear_accuracy", "mig_exact", "elbo_terms"}
    assert {*card.scored, *card.skipped} == set(PRESETS["standard"]) - slow - {"explicitness"}


def test_progress_names_each_metric_before_it_runs() -> None:
    seen: list[tuple[str, int, int]] = []
    unbraid.score(CODES, FACTORS, metrics=QUICK, progress=lambda *step: seen.append(step))
    assert seen == [(name, i, len(QUICK)) for i, name in enumerate(QUICK)]


def test_a_metric_of_the_users_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_lab.py").write_text(
        '"""Lab."""\ndef spread(codes, factors):\n    """Spread of codes."""\n    return codes.std()\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "my_lab:spread"])
    assert card["my_lab:spread"].score == pytest.approx(CODES.std())
    assert card.scored["my_lab:spread"].metric.summary == "Spread of codes."
    for name in ("my_lab:absent", "no_lab:spread"):
        with pytest.raises(ValueError, match=f"metric '{name}' cannot be imported"):
            unbraid.score(CODES, FACTORS, metrics=[name])
    sys.modules.pop("my_lab")


@dataclass(frozen=True)
class Own:
    score: float
    per_factor: object
    arrays: object = None


OWN = {
    "gave score = nan; every number of a score must be finite": float("nan"),
    "gave score = inf": Own(np.inf, [0.0, 1.0, 0.5]),
    "gave per_factor[1] = nan": Own(0.5, [0.0, np.nan, 0.5]),
    "gave per_factor of shape (2,); expected one number per factor": Own(0.5, np.zeros(2)),
    "gave arrays[1, 0] = -inf": Own(0.5, np.zeros(3), np.array([[0.0, 1.0], [-np.inf, 2.0]])),
    "gave dict; expected a number, or a dataclass with a float 'score'": {"score": 0.5},
    "gave Own; expected a number": Own(np.zeros(3), np.zeros(3)),  # pyright: ignore[reportArgumentType]
}


@pytest.mark.parametrize("said", OWN)
def test_what_a_metric_of_the_users_own_must_not_give_is_one_clear_line(said: str, monkeypatch) -> None:
    monkeypatch.setattr("tests.scoring.test_score.own", lambda *_: OWN[said])
    with pytest.raises(ValueError, match=re.escape("metric tests.scoring.test_score:own " + said)):
        unbraid.score(CODES, FACTORS, metrics=["tests.scoring.test_score:own"])


def test_what_a_metric_of_the_users_own_may_give_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given = Own(0.5, [0.0, 1.0, 0.25], np.array(["a", "b"]))
    monkeypatch.setattr("tests.scoring.test_score.own", lambda *_: given)
    card = unbraid.score(CODES, FACTORS, metrics=["tests.scoring.test_score:own"], names=("shape", "size", "hue"))
    card.save(tmp_path / "scores.json")
    (kept,) = json.loads((tmp_path / "scores.json").read_text())["metrics"].values()
    assert kept["values"] == {"score": 0.5}
    assert kept["per_factor"] == {"shape": 0.0, "size": 1.0, "hue": 0.25}
    assert kept["arrays"] == {"arrays": ["a", "b"]}


@pytest.mark.parametrize("kinds", [None, ("ordinal",) * 3])
def test_a_users_own_metric_may_reuse_its_arrays(kinds, monkeypatch: pytest.MonkeyPatch) -> None:
    """A permutation null in one buffer: sharing keyed by identity would give the same number each time."""
    seen: list[list[float]] = []

    def null(codes: np.ndarray, factors: np.ndarray) -> float:
        buffer, rng = codes.copy(), np.random.default_rng(0)
        draws = []
        for _ in range(3):
            rng.shuffle(buffer)
            draws.append(unbraid.metrics.mig(buffer, factors, kinds=kinds).score)
        seen.append(draws)
        return draws[0]

    monkeypatch.setattr("tests.scoring.test_score.own", null)
    unbraid.score(CODES, FACTORS, metrics=["mig", "tests.scoring.test_score:own"])
    null(CODES, FACTORS)
    inside, outside = seen
    assert inside == outside
    assert len(set(inside)) == 3


def test_a_users_own_gap_may_reuse_its_arrays() -> None:
    scores: list[float] = []

    def gap(factors: np.ndarray) -> np.ndarray:
        codes, rng = factors.astype(float), np.random.default_rng(0)
        for _ in range(3):
            rng.shuffle(codes)
            scores.append(unbraid.metrics.mig(codes, factors, kinds=("ordinal",) * 3).score)
        return (factors[:, 0] == factors[:, 0].max()) & (factors[:, 1] == factors[:, 1].max())

    card = unbraid.score(CODES, FACTORS, metrics=["zero_shot"], kinds=("ordinal",) * 3, held_out=gap)
    assert "zero_shot" in card.scored
    assert len(set(scores)) == len(scores) > 0


def test_a_users_own_metric_cannot_change_what_others_are_given(monkeypatch: pytest.MonkeyPatch) -> None:
    def centre(codes: np.ndarray, factors: np.ndarray, log_variances: np.ndarray) -> float:  # noqa: ARG001
        for array in (codes, factors, log_variances):
            with pytest.raises(ValueError, match="read-only"):
                array -= array.mean(axis=0)
        return 0.0

    codes, factors, spread = CODES.copy(), FACTORS.astype(float), np.zeros_like(CODES)
    monkeypatch.setattr("tests.scoring.test_score.own", centre)
    card = unbraid.score(codes, factors, metrics=["tests.scoring.test_score:own", "mig"], log_variances=spread)
    assert card["mig"].score == unbraid.metrics.mig(CODES, FACTORS).score
    np.testing.assert_array_equal(codes, CODES)
    codes += 1.0  # still the caller's to change


def test_results_hold_no_array_of_each_other_or_of_the_caller() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=QUICK, kinds=("categorical", "ordinal", "cyclic"))
    held = [(name, each) for name, scored in card.scored.items() for each in scored.arrays.values()]
    for place, (name, one) in enumerate(held):
        assert not np.shares_memory(one, CODES)
        for other_name, other in held[:place]:
            assert name == other_name or not np.shares_memory(one, other)


def test_generators_of_scores_may_be_woven_together() -> None:
    """A scope left open across a yield would be the other's, and be closed out of turn."""
    representation = unbraid.Representation(CODES, FACTORS)
    chosen = {name: METRICS[name] for name in ("mig", "med", "modularity")}
    first, second = score_each(representation, chosen), score_each(representation, chosen)
    woven = [next(first), next(second), next(second), next(first)]
    assert [name for name, _ in woven] == ["mig", "mig", "med", "med"]
    second.close()
    buffer = CODES.copy()
    before = unbraid.metrics.mig(buffer, FACTORS).score
    np.random.default_rng(0).shuffle(buffer)
    assert unbraid.metrics.mig(buffer, FACTORS).score != before
    assert [name for name, _ in first] == ["modularity"]


def test_a_generator_of_scores_may_be_closed_in_another_thread() -> None:
    working = score_each(unbraid.Representation(CODES, FACTORS), {name: METRICS[name] for name in ("mig", "med")})
    next(working)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(working.close).result()


def own(codes: object, factors: object) -> None:  # noqa: ARG001
    """Replaced by each test."""


def test_a_metric_of_ours_that_is_not_finite_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    row = replace(METRICS["mig"], function=lambda *_: float("nan"))
    monkeypatch.setattr("unbraid.metrics._shared.metric_arguments.METRICS", {**METRICS, "mig": row})
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "med"])
    assert card.failed["mig"].reason.startswith("ValueError: metric mig gave score = nan")


def test_skipped_metrics_are_named_with_their_reason() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=["mig", "d_lsbd"])
    assert card.skipped_by_reason() == {reason: [name] for name, reason in card.skipped.items()}
    with pytest.raises(KeyError, match="d_lsbd was skipped: needs at least one cyclic factor"):
        card["d_lsbd"]
    with pytest.raises(KeyError, match=r"snc was not scored; score\(..., metrics=\['snc'\]\) does"):
        card["snc"]
    with pytest.raises(KeyError, match="migg was not scored; did you mean 'mig'"):
        card["migg"]
    assert card.get("snc") is None
    assert "snc" not in card


def test_shared_work_is_done_once_inside_a_card_and_anew_outside() -> None:
    calls = []

    @shared
    def step(matrix: np.ndarray, bins: int = 3) -> int:
        calls.append((matrix.shape, bins))
        return len(calls)

    first, second = np.zeros(3), np.zeros(3)
    with sharing():
        assert [step(first), step(first), step(second), step(first, bins=3), step(first, bins=4)] == [1, 1, 2, 3, 4]
        # A temporary that has died must not lend its identity to the next one.
        assert len({step(np.zeros(3)) for _ in range(50)}) == 50
    assert step(first) != step(first)


def test_standardised_leaves_a_constant_column_at_zero() -> None:
    matrix = np.column_stack([np.arange(5.0), np.full(5, 0.1), np.full(5, 1e9 / 3)])
    result = standardised(matrix)
    np.testing.assert_allclose(result[:, 0].std(), 1.0)
    np.testing.assert_array_equal(result[:, 1:], 0.0)


def two_factor_dataset() -> ArrayDataset:
    space = FactorSpace(("row", "hue"), (6, 8), ("ordinal", "cyclic"))
    images = np.zeros((len(space), 4, 4, 1), dtype=np.uint8)
    images[:, 0, 0, 0], images[:, 0, 1, 0] = space.grid().T
    return ArrayDataset(images, space)


def test_score_encoder_encodes_in_batches_and_keeps_the_names() -> None:
    seen = []

    def encode(images: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        seen.append(images.shape)
        codes = images[:, 0, :2, 0].astype(float)
        return codes, np.full_like(codes, -3.0)

    card = unbraid.score_encoder(encode, two_factor_dataset(), batch_size=20, metrics=["mig"])
    assert seen == [(20, 4, 4, 1), (20, 4, 4, 1), (8, 4, 4, 1)]
    assert card["mig"].score == pytest.approx(1.0)
    assert card.representation.kinds == ("ordinal", "cyclic")
    assert card.representation.sizes == (6, 8)
    assert card.representation.log_variances is not None


def test_only_whole_numbers_that_are_no_measurements_have_a_number_of_levels() -> None:
    levels = np.arange(48) % 3
    factors = np.column_stack([levels, levels, levels * 2 * np.pi / 3])
    card = unbraid.score(factors, factors, metrics="mig", kinds=["ordinal", "continuous", "cyclic"])
    assert [each["size"] for each in card.saved_input["factors"]] == [3, None, None]


def test_score_encoder_draws_without_replacement_from_a_larger_set() -> None:
    def encode(images: np.ndarray) -> np.ndarray:
        return images[:, 0, :2, 0].astype(float)

    seeds: list[dict[str, int]] = [{}, {"seed": 0}, {"seed": 1}]
    cards = [
        unbraid.score_encoder(encode, two_factor_dataset(), n_samples=30, metrics=["mig"], **seed) for seed in seeds
    ]
    drawn = [card.representation.factors.tolist() for card in cards]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len({tuple(row) for row in drawn[0]}) == 30


def test_score_encoder_takes_torch_tensors_and_refuses_wrong_rows() -> None:
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(16, 3)
    card = unbraid.score_encoder(
        lambda images: layer(torch.from_numpy(images).float().flatten(1)), two_factor_dataset(), metrics=["mig"]
    )
    assert card.representation.codes.shape == (48, 3)
    half = unbraid.score_encoder(
        lambda images: torch.from_numpy(images[:, 0, :2, 0]).to(torch.bfloat16), two_factor_dataset(), metrics=["mig"]
    )
    assert half["mig"].score == pytest.approx(1.0)
    with pytest.raises(
        ValueError, match=r"encode must return codes \(n, n_codes\), or the pair .* for n images; got \(1, 3\) for 48"
    ):
        unbraid.score_encoder(lambda _: np.zeros((1, 3)), two_factor_dataset(), metrics=["mig"])


def test_an_encoder_returns_codes_or_a_pair() -> None:
    def pair(images: np.ndarray) -> Any:
        codes = images[:, 0, :, 0].astype(float)
        return [codes, codes - 4]

    card = unbraid.score_encoder(pair, two_factor_dataset(), metrics=["mig"])
    spread = card.representation.log_variances
    assert spread is not None
    assert (spread == card.representation.codes - 4).all()
    with pytest.raises(ValueError, match=r"or the pair \(codes, log_variances\), .* got \(48, 4\) and \(\) for 48"):
        unbraid.score_encoder(lambda images: (pair(images)[0], 0.5), two_factor_dataset(), metrics=["mig"])


def test_labels_without_images_are_not_encoded(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("size\n1\n2\n")
    with pytest.raises(ValueError, match="images are needed; this dataset holds labels without images"):
        unbraid.score_encoder(lambda images: images[:, 0, :2, 0], tmp_path / "labels.csv")


def test_ctrl_c_within_a_compiled_metric_is_no_failed_metric(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise SystemError("returned a result with an exception set") from KeyboardInterrupt()

    row = replace(METRICS["mig"], function=interrupted)
    monkeypatch.setattr("unbraid.metrics._shared.metric_arguments.METRICS", {**METRICS, "mig": row})
    with pytest.raises(KeyboardInterrupt):
        unbraid.score(CODES, FACTORS, metrics=["mig", "modularity"])


def test_an_encoder_is_scored_on_a_dataset_by_its_name() -> None:
    def encode(images: np.ndarray) -> np.ndarray:
        return images[..., 0].mean(axis=1)[:, ::16]

    by_name = unbraid.score_encoder(encode, "square", n_samples=100, metrics=["mig"])
    opened = unbraid.score_encoder(encode, unbraid.datasets.load("square"), n_samples=100, metrics=["mig"])
    assert by_name["mig"].score == opened["mig"].score


def test_collapsed_codes_are_said_to_be_so_whatever_metrics_score(tmp_path: Path) -> None:
    """A posterior as wide as the prior around means that a thousandth of it apart follow the factors."""
    factors = FactorSpace(("a", "b"), (5, 4), ("ordinal", "ordinal")).grid().repeat(10, axis=0)
    wide = np.zeros(factors.shape)
    whisper = unbraid.score(0.001 * factors, factors, metrics=["mig"], log_variances=wide)
    assert whisper.scored["mig"].headline == pytest.approx(1.0)
    (said,) = [note for note in whisper.notes if note.startswith("collapsed or untrained")]
    assert "less than one bit" in said
    assert said in " ".join(str(whisper).split())
    whisper.save(tmp_path / "card.json")
    assert json.loads((tmp_path / "card.json").read_text())["input"]["collapsed"] is True
    assert said in unbraid.ScoreCard.load(tmp_path / "card.json").notes
    whisper.save(tmp_path / "card.html")
    assert said in (tmp_path / "card.html").read_text()
    for narrow in (wide - 16, None):  # as narrow as the means are close; or nothing known of it
        card = unbraid.score(0.001 * factors, factors, metrics=["mig"], log_variances=narrow)
        assert not any(note.startswith("collapsed") for note in card.notes)
        assert "collapsed" not in card.to_dict()["input"]


def test_codes_that_hardly_vary_are_called_perhaps_collapsed(tmp_path: Path) -> None:
    """Where every level is as frequent, a code of 0 and 2 d has a standard deviation of d."""
    factors = FactorSpace(("a", "b"), (2, 2), ("ordinal", "ordinal")).grid().repeat(10, axis=0)

    def scored(first: float, second: float, **given: Any) -> unbraid.ScoreCard:
        return unbraid.score(factors * [2 * first, 2 * second], factors, metrics=["mig"], **given)

    def warned(card: unbraid.ScoreCard) -> bool:
        return any(
            note.startswith("perhaps collapsed: no code has a standard deviation above 0.02") for note in card.notes
        )

    assert warned(scored(0.001, 0.019))
    assert warned(scored(0.001, 0.0))
    assert not warned(scored(0.001, 0.021))
    assert not warned(scored(0.001, 0.019, log_variances=np.full(factors.shape, -16.0)))  # which tell that they do
    assert not warned(scored(0.001, 0.019, log_variances=np.zeros(factors.shape)))  # called collapsed, without perhaps
    for suffix in ("json", "html"):
        scored(0.001, 0.001).save(tmp_path / f"card.{suffix}")
        assert "perhaps collapsed" in (tmp_path / f"card.{suffix}").read_text()
    assert "perhaps collapsed" in str(scored(0.001, 0.001))
