"""`unbraid results add`: means of real runs, numbers of score cards; nothing is replaced without a reason."""

import json
from datetime import date
from pathlib import Path
from statistics import mean, stdev

import numpy as np
import pytest

from tests.results.examples import COMMIT, of_paper, put
from unbraid import score
from unbraid.metrics import METRICS
from unbraid.results.check import faults

pandas = pytest.importorskip("pandas")
T_4 = 2.776445  # Student's t of four degrees of freedom, 97.5 %, as printed tables have it
MIG = [0.30, 0.34, 0.29, 0.36, 0.31]


def frame(values: list[float], **columns: object) -> "pandas.DataFrame":
    n = len(values)
    rows = {
        "run": [f"{place:016x}" for place in range(n)], "family": "beta_vae", "setting": "beta=4",
        "seed": range(n), "state": "finished", "dataset": "square", "content": "a", "commit": COMMIT,
        "processor": "one core", "hyper.beta": 4.0, "mig.score": values,
    }  # fmt: skip
    return pandas.DataFrame(rows | columns)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    frame(MIG).to_csv(tmp_path / "small.csv", index=False)
    return tmp_path / "small.csv"


@pytest.fixture
def add(unbraid_cli, tmp_path: Path):
    return lambda *words: unbraid_cli("results", "add", *words, "--folder", tmp_path / "results")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_table_gives_means_with_students_interval(add, table: Path, tmp_path: Path) -> None:
    code, printed, _ = add(table)
    path = tmp_path / "results" / "unbraid__beta_vae" / COMMIT[:12] / "small.json"
    assert (code, printed) == (0, f"wrote {path}: 1 new, 0 replaced, 0 as before\n")
    assert faults(tmp_path / "results") == []
    content = read(path)
    assert content["history"] == [{"date": date.today().isoformat(), "reason": "first record"}]
    [each] = content["scores"]
    assert (each["metric"], each["dataset"], each["setting"]) == ("mig.score", "square", "beta=4")
    held, half = each["measured"], T_4 * stdev(MIG) / 5**0.5
    assert [held["value"], held["low"], held["high"]] == pytest.approx(
        [mean(MIG), mean(MIG) - half, mean(MIG) + half], abs=1e-5
    )
    assert held["seeds"] == [0, 1, 2, 3, 4]
    assert (held["units"], held["unit"], held["commit"], held["machine"]) == (5, "seed", COMMIT, "one core")
    before = path.read_bytes()
    assert add(table)[1].startswith("nothing new for")
    assert path.read_bytes() == before


def test_a_table_says_by_which_version_of_each_metric_its_numbers_are(add, tmp_path: Path) -> None:
    told = [json.dumps({"mig": {"version": 2}, "sap": {"version": 3}})] * 5
    table, path = tmp_path / "t.csv", tmp_path / "results" / "unbraid__beta_vae" / COMMIT[:12] / "t.json"

    def versions(computed_with: list[str] | None, *words: str) -> list[int | None]:
        rows = frame(MIG, **{"sap.score": MIG, "udr.score": MIG})
        (rows if computed_with is None else rows.assign(computed_with=computed_with)).to_csv(table, index=False)
        code, _, error = add(table, *words)
        assert code == 0, error
        assert faults(tmp_path / "results") == []
        return [each["measured"].get("metric_version") for each in read(path)["scores"]]

    assert versions(None) == [None, None, None]  # as tables of before
    assert (read(path)["schema"], versions(told)) == (1, [None, None, None])  # the same numbers: left as they are
    path.unlink()
    assert versions(["", *told[1:]]) == [None, None, None]  # one run does not say
    path.unlink()
    assert (versions(told), read(path)["schema"]) == ([2, 3, None], 2)
    assert versions(told) == [2, 3, None]
    later = [text.replace("2", "4") for text in told]
    assert versions(later, "--reason", "mig has changed") == [4, 3, None]
    table.write_text(table.read_text(encoding="utf-8").replace(": 4}", ": 5}"), encoding="utf-8")
    assert "has 4 for metric_version of mig.score of square (beta=4), now 5; say why" in add(table)[2]


def test_a_number_is_replaced_for_a_reason_alone(add, table: Path, tmp_path: Path) -> None:
    add(table)
    path = tmp_path / "results" / "unbraid__beta_vae" / COMMIT[:12] / "small.json"
    before = path.read_bytes()
    frame([0.5] * 5).to_csv(table, index=False)
    code, _, error = add(table)
    assert (code, path.read_bytes()) == (2, before)
    assert error == (
        f"unbraid: {path} has 0.32 for mig.score of square (beta=4), now 0.5; say why it is replaced: --reason\n"
    )
    frame(MIG, processor="another").to_csv(table, index=False)
    assert "has 'one core' for machine of mig.score of square (beta=4), now 'another'; say why" in add(table)[2]
    frame([0.5] * 5).to_csv(table, index=False)
    assert add(table, "--reason", " ") == (code, "", error)
    assert add(table, "--reason", "The scores were of other images.")[0] == 0
    content = read(path)
    assert content["scores"][0]["measured"]["value"] == 0.5
    assert [each["reason"] for each in content["history"]] == ["first record", "The scores were of other images."]


@pytest.mark.parametrize(
    ("commit", "where"),
    [
        (f"{COMMIT}-dirty", "unclean"),
        (None, "unclean"),
        ([COMMIT] * 4 + [f"{'f' * 40}-dirty"], "unclean"),
        ([COMMIT] * 4 + [None], "unclean"),
        ([COMMIT] * 4 + ["f" * 40], "several"),
    ],
)
def test_runs_of_no_single_clean_commit_have_a_folder_of_their_own(
    add, tmp_path: Path, commit: object, where: str
) -> None:
    frame(MIG, commit=commit).to_csv(tmp_path / "small.csv", index=False)
    assert add(tmp_path / "small.csv")[0] == 0
    content = read(tmp_path / "results" / "unbraid__beta_vae" / where / "small.json")
    assert (content["revision"], content["scores"][0]["measured"]["commit"]) == (where, "")
    assert faults(tmp_path / "results") == []


def test_models_of_each_dataset_are_ranked_and_scored_by_themselves(add, tmp_path: Path) -> None:
    one = frame(MIG, label="a", ranked_by='{"models": "1"}', computed_with='{"mig": {"version": 1}}')
    other = frame(
        [0.5] * 5, label="b", ranked_by='{"models": "2"}', computed_with='{"mig": {"version": 2}}', content="b"
    )
    both = pandas.concat([one, other]).assign(run=[f"{place:016x}" for place in range(10)], **{"udr.score": 0.25})
    both.to_csv(tmp_path / "small.csv", index=False)
    assert add(tmp_path / "small.csv") == (
        0,
        f"wrote {tmp_path}/results/unbraid__beta_vae/{COMMIT[:12]}/small.json: 4 new, 0 replaced, 0 as before\n",
        "",
    )
    both.assign(label="a", content="a", setting=["beta=4"] * 5 + ["beta=5"] * 5).to_csv(
        tmp_path / "small.csv", index=False
    )
    code, _, error = add(tmp_path / "small.csv", "--reason", "again")
    assert code == 2
    assert "mig.score: computed by different rules" in error


def test_a_table_of_older_days_tells_less_and_is_recorded(add, tmp_path: Path) -> None:
    older = frame(MIG)[["run", "family", "setting", "seed", "state", "dataset", "mig.score"]]
    older.to_csv(tmp_path / "small.csv", index=False)
    assert add(tmp_path / "small.csv")[0] == 0
    content = read(tmp_path / "results" / "unbraid__beta_vae" / "unclean" / "small.json")
    assert content["scores"][0]["measured"]["machine"] == ""
    older.drop(columns="dataset").to_csv(tmp_path / "small.csv", index=False)
    code, _, error = add(tmp_path / "small.csv")
    assert code == 2
    assert "it has no column 'dataset'" in error


def test_a_study_of_any_name_has_a_file_that_is_named_after_it(add, table: Path, tmp_path: Path) -> None:
    table.rename(tmp_path / "my study, ünf.csv")
    assert add(tmp_path / "my study, ünf.csv")[0] == 0
    assert [path.name for path in (tmp_path / "results").rglob("*.json")] == ["my-study-nf.json"]
    assert faults(tmp_path / "results") == []


def test_runs_without_a_seed_and_columns_named_twice_are_recorded_once(add, tmp_path: Path) -> None:
    frame(MIG, seed=[0, None, 2, 3, None]).to_csv(tmp_path / "small.csv", index=False)
    assert add(tmp_path / "small.csv", "--columns", "mig.score,mig.score")[0] == 0
    [each] = read(tmp_path / "results" / "unbraid__beta_vae" / COMMIT[:12] / "small.json")["scores"]
    assert (each["measured"]["units"], each["measured"]["seeds"]) == (5, [0, 2, 3])


def test_a_run_that_is_there_twice_is_no_second_training(add, tmp_path: Path) -> None:
    pandas.concat([frame(MIG), frame(MIG).iloc[[2]]]).to_csv(tmp_path / "small.csv", index=False)
    code, _, error = add(tmp_path / "small.csv")
    said = f"unbraid: small: run {2:016x} is there more than once; each counts as one training\n"
    assert (code, error) == (2, said)


def test_runs_without_a_number_are_told(add, tmp_path: Path) -> None:
    frame([float("nan")] * 5).to_csv(tmp_path / "small.csv", index=False)
    code, _, error = add(tmp_path / "small.csv")
    assert (code, error) == (2, "unbraid: small: no finished run has a number in mig.score\n")


def test_one_run_has_no_interval_and_unfinished_ones_do_not_count(add, tmp_path: Path) -> None:
    values, states = [0.4, 0.9, 0.9], ["finished", "diverged", "failed"]
    frame(values, state=states).to_csv(tmp_path / "small.csv", index=False)
    add(tmp_path / "small.csv")
    content = read(tmp_path / "results" / "unbraid__beta_vae" / COMMIT[:12] / "small.json")
    held = content["scores"][0]["measured"]
    assert (held["value"], held["units"], "low" in held) == (0.4, 1, False)


def test_numbers_outside_the_range_of_their_metric_are_refused(add, tmp_path: Path) -> None:
    columns = {"r2.score": -7.0, "irs.score": -0.5, "d_lsbd(norm=axes).score": 1.9, "zero_shot.lasso.gap": 3.0}
    frame([0.4, 0.5, 0.3, 0.4, 0.4], **columns).to_csv(tmp_path / "small.csv", index=False)
    assert add(tmp_path / "small.csv")[0] == 0
    [path] = (tmp_path / "results").rglob("*.json")
    before = path.read_bytes()
    for column, value, span in (
        ("mig.score", 1.7, "0 to 1"), ("r2.score", 1.7, "-∞ to 1"), ("mcc.score", -1.5, "-1 to 1"),
        ("d_lsbd.score", 1.9, "0 to 1"), ("d_lsbd(norm=axes).score", 2.1, "0 to 2"),
    ):  # fmt: skip
        frame([0.5] * 5, **{column: value}).to_csv(tmp_path / "small.csv", index=False)
        code, _, error = add(tmp_path / "small.csv", "--columns", column, "--reason", "Percent.")
        assert (code, path.read_bytes()) == (2, before)
        assert error == (
            f"unbraid: {path}: {column} of square (beta=4): measured {value:g} lies outside the range of "
            f"{column.removesuffix('.score')}, {span}\n"
        )


def test_numbers_go_beside_those_of_a_paper(add, table: Path, tmp_path: Path) -> None:
    paper = of_paper()
    del paper["scores"][0]["measured"]
    paper["scores"][0]["reported"]["value"] = 0.6
    path = put(tmp_path / "results", paper)
    given = (
        table, "--external", "--model", "paper-2020__vae", "--study", "squares", "--only", "hyper.beta=4",
        "--setting", "beta=1",
    )  # fmt: skip
    code, _, error = add(*given)
    assert code == 2
    assert "was reported as 0.6, which lies outside what was measured; say why: --reason" in error
    code, _, error = add(*given[:-1], "beta=2")
    assert code == 2
    assert f"{path} has no reported number for mig.score of square (beta=2); --setting: " in error
    assert "'beta=1'" in error
    assert add(*given, "--reason", "Five seeds.")[0] == 0
    content = read(path)
    assert content["scores"][0]["reported"] == paper["scores"][0]["reported"]
    assert content["scores"][0]["reason"] == "Five seeds."
    assert content["scores"][0]["measured"]["value"] == 0.32
    assert content["scores"][0]["measured"]["study"] == "small"
    assert faults(tmp_path / "results") == []
    frame([0.6, 0.61, 0.59, 0.62, 0.58]).to_csv(table, index=False)
    assert add(*given, "--reason", "Trained to the end.")[0] == 0
    (only, *_) = read(path)["scores"]
    assert (only["measured"]["value"], only.get("reason")) == (0.6, None), "now it lies inside"


def test_runs_without_a_label_in_a_merged_table_are_named_by_their_dataset(add, tmp_path: Path) -> None:
    labelled = frame(MIG, label="big", dataset="sprites")
    other = frame(MIG, label=None, family="vae").assign(run=lambda rows: "f" + rows["run"].str[1:])
    pandas.concat([labelled, other]).to_csv(tmp_path / "both.csv", index=False)
    assert add(tmp_path / "both.csv")[0] == 0
    named = {
        path.parts[-3]: read(path)["scores"][0]["dataset"] for path in (tmp_path / "results").glob("*/*/both.json")
    }
    assert named == {"unbraid__beta_vae": "big", "unbraid__vae": "square"}


def test_a_score_card_gives_its_headlines_and_intervals(add, tmp_path: Path) -> None:
    factors = np.tile(np.stack(np.unravel_index(np.arange(12), (3, 4)), 1), (20, 1))
    codes = factors + np.random.default_rng(0).normal(0, 0.4, factors.shape)
    card = score(codes, factors, metrics=["mig", "sap"], confidence=(0.95, 20), kinds=("ordinal", "ordinal"))
    card.save(tmp_path / "card.json")
    given = (tmp_path / "card.json", "--model", "my-lab__axes", "--dataset", "grid", "--commit", COMMIT)
    assert add(*given)[0] == 0
    content = read(tmp_path / "results" / "my-lab__axes" / COMMIT[:12] / "card.json")
    assert [each["metric"] for each in content["scores"]] == ["mig.score", "sap.score"]
    interval = card.scored["mig"].intervals.values["score"]  # pyright: ignore[reportOptionalMemberAccess]
    held = content["scores"][0]["measured"]
    assert [held["value"], held["low"], held["high"]] == pytest.approx(
        [card["mig"].score, interval.low, interval.high], rel=1e-5
    )
    assert (held["units"], held["unit"], held["seeds"]) == (240, "row", [0])
    assert [each["measured"]["metric_version"] for each in content["scores"]] == [
        METRICS["mig"].version, METRICS["sap"].version,
    ]  # fmt: skip
    assert faults(tmp_path / "results") == []
    assert add(*given, "--columns", "mig.ceiling")[0] == 0
    assert len(read(tmp_path / "results" / "my-lab__axes" / COMMIT[:12] / "card.json")["scores"]) == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["card.json"], "does not say whose model it scores: give --model ORG__NAME"),
        (["card.json", "--model", "vae"], "does not say whose model it scores"),
        (["card.json", "--model", "a__b"], "does not name its dataset: give --dataset"),
        (["card.json", "--model", "a__b", "--dataset", "x", "--commit", "abc"], "give all 40 digits"),
        (
            ["card.json", "--model", "a__b", "--dataset", "x", "--columns", "sap.score"],
            "the score card has no sap.score",
        ),
        (["card.json", "--model", "a b__c", "--dataset", "x"], "model: "),
        (["card.json", "--only", "seed=1"], "--only is for a study"),
        (["none.json"], "no such file"),
        (["empty.csv"], "empty.csv: not the table of a study (it has no column 'family'"),
        (["small.csv", "--columns", "mig.scor"], "no column 'mig.scor'; did you mean 'mig.score'?"),
        (["small.csv", "--only", "seed"], "write COLUMN=VALUE"),
        (["small.csv", "--only", "seed=9"], "no run has it; seed is 0.0, 1.0"),
        (["small.csv", "--commit", COMMIT], "--commit is for a score card"),
        (["small.csv", "--external"], "what a paper reports is recorded first, by hand"),
        (["small.csv", "--study", "../../x"], "study: "),
    ],
)
def test_mistakes_are_one_line_and_nothing_is_written(
    add, table: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], said: str
) -> None:
    monkeypatch.chdir(table.parent)
    card = score(np.eye(6)[:, :2].repeat(10, 0), np.arange(60)[:, None] % 3, metrics=["mig"], kinds=("categorical",))
    card.save("card.json")
    Path("empty.csv").touch()
    code, _, error = add(*words)
    assert code == 2
    assert said in error
    assert error.count("\n") == 1
    assert not (table.parent / "results").exists()


def test_runs_that_differ_in_more_than_their_seed_are_not_averaged(add, tmp_path: Path) -> None:
    frame(MIG, content=["a"] * 4 + ["b"]).to_csv(tmp_path / "small.csv", index=False)
    code, _, error = add(tmp_path / "small.csv")
    assert code == 2
    assert "different content (a and b) are not averaged" in error
    settings = ["beta=4"] * 4 + ["beta=5"]
    frame(MIG, setting=settings).to_csv(tmp_path / "small.csv", index=False)
    code, _, error = add(tmp_path / "small.csv", "--setting", "all")
    assert code == 2
    assert "there are several numbers for mig.score of square (all)" in error
    families = ["vae"] * 4 + ["pca"]
    frame(MIG, family=families).to_csv(tmp_path / "small.csv", index=False)
    code, _, error = add(tmp_path / "small.csv", "--model", "a__b")
    assert code == 2
    assert "there are runs of vae, pca; give ORG alone, or --only family=vae" in error
    assert add(tmp_path / "small.csv", "--model", "my-lab")[0] == 0
    assert {path.name for path in (tmp_path / "results").iterdir()} == {"my-lab__vae", "my-lab__pca"}


@pytest.mark.lengthy
def test_a_study_gives_a_file_for_each_family(add, unbraid_cli, tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from tests.studies.examples import written

    out = tmp_path / "study"
    assert unbraid_cli("study", "run", written(tmp_path), "--out", out, "--processes", 1)[0] == 0
    assert add(out)[0] == 0
    from unbraid import Study

    runs = Study.load(out).results()
    paths = sorted((tmp_path / "results").rglob("*.json"))
    assert [path.parts[-3] for path in paths] == ["unbraid__beta_vae", "unbraid__pca"]
    assert {path.name for path in paths} == {"small.json"}
    for path in paths:
        for each in read(path)["scores"]:
            own = runs[
                (runs["family"] == path.parts[-3].removeprefix("unbraid__")) & (runs["setting"] == each["setting"])
            ]
            assert each["measured"]["value"] == pytest.approx(own[each["metric"]].mean(), rel=1e-5)
            assert each["measured"]["units"] == len(own)
    assert len(read(paths[0])["scores"]) == 4  # two settings, two metrics
    assert faults(tmp_path / "results") == []
