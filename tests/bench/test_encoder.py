"""`unbraid bench --suite`: known encoders get what they must; what is done is kept; the record is one of results."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from statistics import mean, stdev
from typing import Any

import numpy as np
import pytest

from tests.bench import encoders
from unbraid import datasets, score
from unbraid.bench import record as records
from unbraid.bench import suite as suites
from unbraid.bench.encoder import Bench, bench_encoder
from unbraid.bench.leaderboard import of_set, standings
from unbraid.bench.record import check_whole, model_of, record
from unbraid.bench.shown import table
from unbraid.bench.suite import LAPTOP
from unbraid.metrics import METRICS, mcc
from unbraid.results.check import faults
from unbraid.results.files import text_of
from unbraid.results.schema import Results
from unbraid.storage.json_records import read_object
from unbraid.studies.store import write_json

pytest.importorskip("torch")
SMALL = replace(
    LAPTOP, sets={"small": encoders.SMALL, "square": {"name": "square", "positions": 8, "shrink": 4}}, steps=3,
    batch_size=16, metrics=("mig", "sap", "mcc"),
)  # fmt: skip
T_2 = 4.302653  # Student's t of two degrees of freedom, 97.5 %, as printed tables have it
TODAY = date(2026, 1, 2)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    yield
    encoders.SEEN.clear()
    encoders.BROKEN.clear()


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of the suite that takes minutes."""
    for module in (suites, records):
        monkeypatch.setattr(module, "SUITES", {"laptop": SMALL})


def bench(name: str, work: Path, **options: Any) -> Bench:
    return bench_encoder(f"tests.bench.encoders:{name}", work=work, **{"suite": SMALL, "sets": ["small"], **options})


def measured(found: Bench, label: str = "small") -> dict[str, Any]:
    scores = record(found, "a__b", TODAY)["scores"]
    return {each["metric"]: each["measured"] for each in scores if each["dataset"] == label}


def test_codes_that_are_the_factors_score_as_the_factors_do(tmp_path: Path) -> None:
    space = datasets.load(**encoders.SMALL).space
    factors = space.factors(np.arange(len(space)))
    best = score(factors, factors, kinds=space.kinds, metrics=SMALL.metrics)
    found = measured(bench("factors", tmp_path))
    for name in SMALL.metrics:
        assert found[f"{name}.score"]["value"] == pytest.approx(best[name].score, abs=1e-5)
        assert found[f"{name}.score"]["value"] > max(found[f"{name}.score"]["baselines"].values())
    assert found["mig.score"]["low"] == found["mig.score"]["high"]


def test_constant_codes_score_nothing_and_are_marked(tmp_path: Path) -> None:
    found = record(bench("constant", tmp_path), "a__b", TODAY)
    assert [each["measured"]["value"] for each in found["scores"]] == [0, 0, 0]
    assert "NaN" not in text_of(found)
    shown = table(found, [])
    assert [row[2].text for row in shown.rows] == ["0.000 [0.000, 0.000] †"] * 3
    assert "† no better than chance or the best baseline" in shown.notes


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("flat", "encode must return codes (n, n_codes), or the pair (codes, log_variances), for n images; got (256,)"),
        ("endless", "codes must be finite"),
        ("nothing", "it must return a function from images to codes; got NoneType"),
        ("leaving", "RuntimeError: sys.exit(0) was called"),
        ("leaving_later", "RuntimeError: sys.exit() was called"),
        ("short", "TypeError: short() got an unexpected keyword argument 'steps'"),
    ],
)
def test_what_no_encoder_is_is_named_with_set_and_seed(name: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(f"tests.bench.encoders:{name} on small, seed 0: {said}")):
        bench(name, tmp_path)


def test_an_encoder_that_raised_goes_on_where_it_was(tmp_path: Path) -> None:
    encoders.BROKEN[:] = [1]
    with pytest.raises(ValueError, match=r"encoders:noise on small, seed 1: RuntimeError: out of memory"):
        bench("noise", tmp_path / "a")
    assert [seed for _, seed, _ in encoders.SEEN] == [0]
    encoders.BROKEN.clear()
    first = measured(bench("noise", tmp_path / "a"))
    assert [seed for _, seed, _ in encoders.SEEN] == [0, 1, 2]
    assert measured(bench("noise", tmp_path / "a")) == first
    assert len(encoders.SEEN) == 3
    again = measured(bench("noise", tmp_path / "b"))
    for column, one in first.items():
        assert again[column] | {"seconds": 0} == one | {"seconds": 0}


def test_codes_of_another_version_are_refused(tmp_path: Path) -> None:
    bench("constant", tmp_path, seeds=[0])
    with pytest.raises(ValueError, match=r"small-0.json is of another version of the suite: give another folder"):
        bench("constant", tmp_path, seeds=[0], suite=replace(SMALL, steps=4))
    told = tmp_path / "codes" / "small-0.json"
    write_json(told, {**(kept := read_object(told)), "given": {**kept["given"], "source": "0"}})
    with pytest.raises(ValueError, match=r"is of another version of tests.bench.encoders:constant: give another"):
        bench("constant", tmp_path, seeds=[0])


def test_codes_that_are_trained_again_are_scored_again(tmp_path: Path) -> None:
    def score_of(work: str, steps: int) -> float:
        suite = replace(SMALL, metrics=("mcc",), shuffles=1, steps=steps)
        return measured(bench("growing", tmp_path / work, seeds=[0], suite=suite))["mcc.score"]["value"]

    before, right = score_of("a", 3), score_of("b", 40)
    assert before != right
    (tmp_path / "a" / "codes" / "small-0.json").unlink()  # as the line on another version says
    assert score_of("a", 40) == right
    (tmp_path / "a" / "codes" / "small-0.npz").unlink()
    assert score_of("a", 40) == right


def test_an_encoder_is_given_images_alone_in_an_order_that_tells_nothing(tmp_path: Path) -> None:
    bench("noise", tmp_path, seeds=[4])
    [(images, seed, steps)] = encoders.SEEN
    assert (images.shape, images.dtype, seed, steps) == ((288, 1, 16, 16), np.float32, 4, SMALL.steps)
    assert 0 <= images.min() < images.max() <= 1
    known = encoders.factors_by_image()
    order = [tuple(known[image.tobytes()]) for image in images]
    assert sorted(order) == sorted(map(tuple, known.values()))
    assert order != sorted(order)


def test_a_mean_has_students_interval_over_the_seeds(tmp_path: Path) -> None:
    found = bench("noise", tmp_path)
    values = [each.numbers.scores["mig.score"] for each in found.scored]
    held, half = measured(found)["mig.score"], T_2 * stdev(values) / 3**0.5
    assert held["value"] == pytest.approx(mean(values), rel=1e-5)
    assert held["high"] == pytest.approx(mean(values) + half, rel=1e-5)
    assert (held["units"], held["unit"], held["seeds"]) == (3, "seed", [0, 1, 2])
    assert held["baselines"].keys() == {"random projection", "PCA"}


def test_chance_is_what_shuffled_rows_score(tmp_path: Path) -> None:
    space = datasets.load(**encoders.SMALL).space
    factors, rng = space.factors(np.arange(len(space))), np.random.default_rng(1)
    shuffled = [mcc(rng.permutation(factors), factors, kinds=space.kinds).score for _ in range(100)]
    chance = measured(bench("factors", tmp_path))["mcc.score"]["chance"]
    assert chance == pytest.approx(mean(shuffled), abs=4 * stdev(shuffled) / 15**0.5)


def test_chance_is_a_mean_over_the_seeds(tmp_path: Path) -> None:
    found = bench("noise", tmp_path)
    by_seed = [each.numbers.chance["mcc.score"] for each in found.scored]
    assert len(set(by_seed)) == 3
    assert measured(found)["mcc.score"]["chance"] == pytest.approx(mean(by_seed), rel=1e-5)


def test_a_part_of_the_suite_is_a_trial(tmp_path: Path) -> None:
    assert bench("constant", tmp_path).study == "bench-laptop-1-trial"
    assert bench("constant", tmp_path, sets=None, seeds=[0, 1]).trial == ["seeds 0, 1"]
    late = bench("constant", tmp_path, sets=None, suite=replace(SMALL, seconds=-1.0))
    assert late.study == "bench-laptop-1-trial"
    assert late.trial[0].startswith("small, seed 0 took 0 s of the -1 s")
    whole = bench("constant", tmp_path, sets=None)
    assert (whole.study, whole.trial) == ("bench-laptop-1", [])


@pytest.mark.usefixtures("small")
def test_results_take_the_record_of_a_whole_suite(unbraid_cli, tmp_path: Path) -> None:
    path, kept = tmp_path / "record.json", tmp_path / "kept"
    content = record(bench("noise", tmp_path / "w", sets=None), "my-lab__noise", TODAY)
    path.write_text(text_of(content), encoding="utf-8")
    code, printed, said = unbraid_cli("results", "add", path, "--folder", kept)
    assert (code, said) == (0, "")
    assert f"my-lab__noise/{content['revision']}/bench-laptop-1.json: 6 new, 0 replaced" in printed
    assert faults(kept) == []
    [file] = kept.rglob("*.json")
    assert json.loads(file.read_text())["scores"] == content["scores"]
    code, printed, _ = unbraid_cli("results", "table", "--folder", kept, "--dataset", "square")
    assert code == 0
    assert printed.count("my-lab__noise") == 3
    assert unbraid_cli("results", "add", path, "--folder", kept, "--dataset", "other")[0] == 2


@pytest.mark.usefixtures("small")
def test_the_command_shows_and_writes_what_was_measured(unbraid_cli, tmp_path: Path) -> None:
    out, shown = tmp_path / "record.json", tmp_path / "shown.csv"
    words = "bench", "tests.bench.encoders:noise", "--suite", "laptop", "--work", tmp_path / "w"
    code, printed, said = unbraid_cli(*words, "--out", out, "--csv", shown)
    assert code == 0, said
    assert "random projection" in printed
    assert f"wrote {out}; unbraid results add {out} records it" in printed
    assert len(shown.read_text().splitlines()) == 7
    content = json.loads(out.read_text())
    assert (content["model"], content["study"]) == ("tests.bench.encoders__noise", "bench-laptop-1")
    code, printed, _ = unbraid_cli(*words, "--sets", "small", "--model", "my-lab__x", "--json", "-")
    assert (code, json.loads(printed)["study"], json.loads(printed)["model"]) == (
        0,
        "bench-laptop-1-trial",
        "my-lab__x",
    )
    for wrong, why in (
        (["--seed", "1"], "--seed is for --suite zoo"),
        (["--models", "3"], "--models is for --suite zoo"),
        (["--model", "mine"], "--model mine: write ORG__NAME"),
        (["--seeds", "a"], "--seeds a: write which, such as 0,1"),
        (["--out", "-"], "--out names the file of the record"),
        (["vae"], "--suite laptop takes one family or encoder at a time"),
    ):
        code, _, said = unbraid_cli(*words, *wrong)
        assert code == 2
        assert why in said
    encoders.SEEN.clear()
    encoders.BROKEN[:] = [2]
    words = "bench", "tests.bench.encoders:stopped", "--suite", "laptop", "--work", tmp_path / "v", "--sets", "small"
    assert unbraid_cli(*words) == (130, "", "unbraid: stopped; the same command continues\n")
    encoders.BROKEN[:] = []
    assert unbraid_cli(*words)[0] == 0
    assert [seed for _, seed, _ in encoders.SEEN] == [0, 1, 2]
    code, _, said = unbraid_cli("bench", "mig", "--sets", "small")
    assert (code, said) == (2, "unbraid: --sets is for --suite laptop\n")


@pytest.mark.usefixtures("small")
def test_results_refuse_a_record_that_lacks_something(unbraid_cli, tmp_path: Path) -> None:
    path, content = tmp_path / "record.json", record(bench("noise", tmp_path / "w", sets=None), "my-lab__n", TODAY)

    def add(scores: list[dict[str, Any]], **others: Any) -> str:
        path.write_text(text_of(content | {"scores": scores} | others), encoding="utf-8")
        code, _, said = unbraid_cli("results", "add", path, "--folder", tmp_path / "kept")
        assert code == 2 or not said
        return said

    scores = content["scores"]
    assert "is not all of bench-laptop-1: it has no mig.score of small" in add(scores[1:])
    one = scores[0] | {"measured": scores[0]["measured"] | {"seeds": [0, 1, 7]}}
    assert "mig.score of small is of seeds [0, 1, 7]" in add([one, *scores[1:]])
    two = [each | {"setting": f"beta={place % 2}"} for place, each in enumerate(scores)]
    assert "is not all of bench-laptop-1: it has no" in add(two)
    assert "of small (beta=" in add(two)
    bare = {name: value for name, value in scores[0]["measured"].items() if name != "chance"}
    assert "mig.score of small has no chance" in add([scores[0] | {"measured": bare}, *scores[1:]])
    assert "is version 9 of suite laptop; this unbraid has version 1" in add(scores, study="bench-laptop-9")
    assert add(scores[1:], study="bench-laptop-1-trial") == ""


def test_files_of_the_first_schema_hold_no_chance(tmp_path: Path) -> None:
    content = record(bench("constant", tmp_path), "a__b", TODAY)
    assert content["schema"] == 2
    versions = {each["metric"].partition(".")[0]: each["measured"]["metric_version"] for each in content["scores"]}
    assert versions == {name: METRICS[name].version for name in versions}
    Results.model_validate(content)
    with pytest.raises(ValueError, match="supervision, date, metric_version are of schema 2"):
        Results.model_validate(content | {"schema": 1})


def test_a_family_is_trained_by_a_study_and_held_against_its_untrained_self(tmp_path: Path) -> None:
    found = bench_encoder("vae", suite=SMALL, work=tmp_path, sets=["small"], seeds=[0, 1], processes=0)
    held = measured(found)["mig.score"]
    assert held["baselines"].keys() == {"random projection", "PCA", "untrained encoder"}
    assert held["seeds"] == [0, 1]
    assert found.scored[0].model.setting == "network=dense, learning_rate=0.002, steps=3, batch_size=16"
    assert "supervision" not in held
    other = bench_encoder(
        "vae", suite=SMALL, work=tmp_path, sets=["small"], seeds=[0, 1], settings={"latents": 4}, processes=0
    )
    assert [each.numbers.n_codes for each in other.scored] == [4, 4]
    assert measured(other)["mig.score"]["value"] != held["value"]


def test_a_family_leaves_out_what_it_cannot_learn_from_and_says_what_it_was_told(tmp_path: Path) -> None:
    found = bench_encoder("lsbd_vae", suite=SMALL, work=tmp_path, seeds=[0], settings={"pairs": 24}, processes=0)
    assert {each.model.label for each in found.scored} == {"square"}
    assert found.notes[0].startswith("not on small: LSBD-VAE cannot be trained on this dataset: ")
    assert measured(found, "square")["mig.score"]["supervision"] == "24 pairs, 48 labelled images"


def test_names_that_there_are_not(tmp_path: Path) -> None:
    for wrong, said in (
        ({"what": "beta_vea"}, "no family 'beta_vea'; did you mean 'beta_vae'? (your own: package.module:name)"),
        ({"suite": "laptops"}, "no suite 'laptops'"),
        ({"sets": ["smal"]}, "suite laptop has no set 'smal'; did you mean 'small'?"),
        ({"seeds": [1, 1]}, "seeds must be different whole numbers"),
        ({"what": "tests.bench.encoders:factors", "settings": {"beta": 1}}, "settings"),
        ({"what": "tests.bench.encoders:SEEN"}, "is list, and must be a function"),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            bench_encoder(**{"what": "vae", "suite": SMALL, "work": tmp_path, **wrong})  # pyright: ignore


def test_what_models_are_called() -> None:
    assert model_of("beta_vae") == "unbraid__beta_vae"
    assert model_of("my_lab.nets:_encoder") == "my-lab.nets__encoder"


def test_the_leaderboard_is_in_the_order_of_mean_ranks() -> None:
    def file(model: str, mig: float, sap: float, day: str = "2026-01-02") -> dict[str, Any]:
        beside = {"chance": -0.001, "baselines": {"PCA": 0.3}, "seconds": 1.0, "commit": "", "seeds": [0, 1, 2]}
        scores = [
            {"metric": name, "dataset": "small", "setting": "", "measured": {"value": value, **beside}}
            for name, value in (("mig.score", mig), ("sap.score", sap))
        ]
        about = {"study": "bench-laptop-1", "model": model, "revision": "unclean"}
        return {**about, "scores": scores, "history": [{"date": day}]}

    suite = replace(SMALL, metrics=("mig", "sap"))
    old = file("a__x", 0.9, 0.9, "2026-01-01")
    trial = file("a__t", 0.9, 0.9) | {"study": "bench-laptop-1-trial"}
    found = standings([file("a__x", 0.1, 0.2), old, file("a__y", 0.5, 0.6), file("a__z", 0.4, 0.7), trial], suite)
    rows = of_set(found, "small", suite).texts
    assert [row[:2] for row in rows[1:]] == [
        ["a__y", "1.5"], ["a__z", "1.5"], ["a__x", "3.0"], ["chance", "-"], ["PCA", "-"],
    ]  # fmt: skip
    assert rows[4][2:] == [".00", ".00"]
    assert rows[3][2:] == [".10 †", ".20 †"]
    with pytest.raises(ValueError, match="it has no mcc"):
        check_whole(record_like(found[0].model), "x")
    again = file("a__x", 0.3, 0.3) | {"revision": "0" * 12}
    other = file("a__y", 0.8, 0.8)
    for each in other["scores"]:
        each["setting"] = "beta=4"
    found = standings([again, old, file("a__x", 0.1, 0.2), file("a__y", 0.5, 0.6), other], suite)
    assert [row[0] for row in of_set(found, "small", suite).texts[1:-2]] == [
        "a__y (beta=4)", "a__y", "a__x (000000000000)", "a__x (unclean)",
    ]  # fmt: skip


def test_of_each_setting_the_newest_number_counts_whatever_else_its_file_got_later() -> None:
    def file(revision: str, day: str, **dates: str) -> dict[str, Any]:
        beside = {"chance": 0, "baselines": {}, "seconds": 1.0, "commit": "", "seeds": [0, 1, 2]}
        scores = [
            {"metric": "mig.score", "dataset": "small", "setting": name, "measured": {"value": 0.5, **beside, **dated}}
            for name, dated in ((name, {"date": each} if each else {}) for name, each in dates.items())
        ]
        about = {"study": "bench-laptop-1", "model": "a__x", "revision": revision, "scores": scores}
        return {**about, "history": [{"date": "2026-01-01"}, {"date": day}]}

    suite = replace(SMALL, metrics=("mig",))
    grown = file("a", "2026-01-05", first="2026-01-01", second="2026-01-05", undated="")
    newer = file("b", "2026-01-03", first="2026-01-03", second="2026-01-03", undated="")
    found = {each.setting: each.revision for each in standings([grown, newer], suite)}
    assert found == {"first": "b", "second": "a", "undated": "a"}


def test_a_record_is_of_the_day_of_its_last_training(tmp_path: Path) -> None:
    found = bench("constant", tmp_path, seeds=[0, 1])
    days = ["2026-01-31T23:59:59+00:00", "2026-02-01T00:00:01+00:00"]
    dated = [
        replace(each, model=replace(each.model, made={**each.model.made, "ended": day}))
        for each, day in zip(found.scored, days, strict=True)
    ]
    assert {each["date"] for each in measured(replace(found, scored=dated)).values()} == {"2026-02-01"}


def record_like(model: str) -> dict[str, Any]:
    seeds, beside = list(LAPTOP.seeds), {"chance": 0, "baselines": {}, "seconds": 1}
    scores = [
        {"metric": column, "dataset": label, "setting": "", "measured": {"seeds": seeds, **beside}}
        for label in LAPTOP.sets
        for column in LAPTOP.columns
        if not column.startswith("mcc")
    ]
    return {"study": LAPTOP.study, "model": model, "scores": scores}
