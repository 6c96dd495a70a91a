"""Tables of several laboratories as one: whatever the order, nothing is lost, nothing mixed."""

import json
import re
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from unbraid.analysis.by_setting import quartiles, setting_means, trend
from unbraid.analysis.comparison import compare_groups
from unbraid.analysis.merging import is_table, merge_tables, read_table, without_columns
from unbraid.storage.table_formats import save_frame

RULES = {"mig": {"version": 2}}


def row(run: str, score: float | None = 0.25, **more: Any) -> dict[str, Any]:
    known = {
        "run": run, "family": "beta_vae", "setting": "beta=4", "seed": 0, "state": "finished", "reason": None,
        "dataset": "square", "dataset_options": "{}", "content": "c0", "steps": 9, "batch_size": 8, "hold_out": None,
        "device": "cpu", "precision": "float32", "training_version": 1, "unbraid": "0.1",
        "computed_with": None if score is None else json.dumps(RULES), "ranked_by": None, "seconds": 3.5,
        "mig.score": score,
    }  # fmt: skip
    return known | more


def table(*rows: dict[str, Any]) -> pd.DataFrame:
    return pd.DataFrame(list(rows))


A = table(row("00000e12", seed=2), row("b"), row("waits", None, state="waiting", seconds=None))
B = table(
    row(
        "b", None, computed_with=json.dumps({"sap": {"seed": 0}}), seconds=1.0, **{"sap.score": 0.125, "hyper.beta": 4}
    ),
    row("nan", setting="", family="None", steps=None, **{"train.kl": 1 / 3}),
    row("waits", None, reason="out of memory", state="failed"),
)
C = table(
    row("waits", 0.5), row("z", dataset="airplane", content="c1", **{"hyper.network": "dense", "mig.spread": 1e-300}),
    row("b", seconds=9.0, device="cuda", label="squares"),
)  # fmt: skip


def test_tables_merge_in_any_order_all_at_once_or_one_by_one(tmp_path: Path) -> None:
    whole = merge_tables({"A": A, "B": B, "C": C})
    for order in permutations([A, B, C]):
        first, second, third = order
        left = merge_tables({"1": merge_tables({"1": first, "2": second}), "2": third})
        right = merge_tables({"1": first, "2": merge_tables({"1": second, "2": third})})
        together = merge_tables(dict(zip("123", order, strict=True)))
        for each in (left, right, together):
            pd.testing.assert_frame_equal(each, whole, check_exact=True)
    pd.testing.assert_frame_equal(merge_tables({"1": whole, "2": whole}), whole)
    rows = whole.set_index("run")
    assert rows.index.tolist() == ["z", "nan", "b", "waits", "00000e12"]
    assert rows.loc["b", ["mig.score", "sap.score", "hyper.beta", "seconds", "device"]].tolist() == [
        0.25, 0.125, 4, 1.0, "cpu",
    ]  # fmt: skip
    assert rows["label"].dropna().to_dict() == {"b": "squares"}
    assert "label" not in merge_tables({"A": A, "B": B}).columns
    assert merge_tables({"C": C, "D": table(row("b", label="all"))}).set_index("run").loc["b", "label"] == "all"
    assert json.loads(rows.loc["b", "computed_with"]) == {"mig": {"version": 2}, "sap": {"seed": 0}}
    assert rows.loc["waits", ["state", "mig.score"]].tolist() == ["finished", 0.5]
    assert pd.isna(rows.loc["waits", "reason"])  # of the attempt that failed
    assert pd.isna(rows.loc["nan", "steps"])
    assert pd.isna(rows.loc["z", "sap.score"])
    for name in (
        "t.csv",
        "t.parquet",
    ):  # ids that look like numbers, names like missing ones
        save_frame(whole, tmp_path / name)
        again = merge_tables({"1": read_table(tmp_path / name)})
        pd.testing.assert_frame_equal(again, whole, check_exact=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"mig.score": 0.26},
            "b of A and D: mig.score is 0.25 in the first and 0.26 in the second, as on other hard",
        ),
        (
            {"computed_with": json.dumps({"mig": {"version": 1}})},
            "b of A and D: mig was computed otherwise: {'version': 2}",
        ),
        ({"steps": 10}, "steps is 9 in the first and 10"),
        ({"content": "c9"}, "content is 'c0' in the first and 'c9'"),
    ],
)
def test_one_run_has_one_number(change: dict[str, Any], said: str) -> None:
    other = table({**row("b"), **change})
    with pytest.raises(ValueError, match=said):
        merge_tables({"A": A, "D": other})
    kept = merge_tables({"A": A, "D": other}, prefer_first=True).set_index("run").loc["b"]
    assert (kept["mig.score"], kept["content"]) == (0.25, "c0")


def test_rankings_among_different_models_are_not_mixed() -> None:
    one, other = (table(row("b", ranked_by=json.dumps({"among": n}), **{"udr.score": n / 8})) for n in (1, 2))
    with pytest.raises(ValueError, match="ranked among others; leave udr out of both"):
        merge_tables({"A": one, "B": other})
    bare = without_columns({"A": one, "B": other}, ["udr"])
    assert "udr.score" not in merge_tables(bare)
    with pytest.raises(ValueError, match=r"--without mgi: no such column; there are run, family"):
        without_columns({"A": one}, ["mgi"])
    assert json.loads(without_columns({"A": A}, ["mig"])["A"]["computed_with"][0]) == {}
    table_ = merge_tables({"A": one, "B": other.assign(run="c")})
    with pytest.raises(ValueError, match=r"udr.score: the models were ranked among different others"):
        quartiles(table_, "udr.score")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"content": "c1"}, "beta_vae beta=4: runs of different content (c0 and c1) are not averaged"),
        ({"steps": 10}, "different steps (9 and 10)"),
        ({"batch_size": 16}, "different batch size (8 and 16)"),
        ({"precision": "bfloat16"}, "different precision"),
        ({"training_version": 2}, "different training version"),
        (
            {"computed_with": json.dumps({"mig": {"version": 1}})},
            'mig.score: computed by different rules ({"version": 1}',
        ),
    ],
)
def test_what_differs_is_not_averaged(change: dict[str, Any], said: str) -> None:
    frame = merge_tables({"A": table(row("a"), row("b", seed=1)), "B": table({**row("c", seed=2), **change})})
    for averaged in (lambda: quartiles(frame, "mig.score"), lambda: trend(frame, "mig.score", "seconds")):
        with pytest.raises(ValueError) as caught:
            averaged()
        assert said in str(caught.value)
    if "content" in change:  # settings of other images are other settings
        assert setting_means(frame)["content"].tolist() == ["c0", "c1"]
        pair = frame.assign(family=["x", "x", "y"], **{"mig.score": [0.1, 0.2, 0.3]})
        with pytest.raises(ValueError, match="different content"):
            compare_groups(pair, "family")
    else:
        with pytest.raises(ValueError) as caught:
            setting_means(frame)
        assert said in str(caught.value)
    alike = merge_tables({"A": A, "D": table(row("d", seed=7, device="cuda", steps=None, content=None))})
    assert quartiles(alike, "mig.score").boxes[0].n == 3  # what is missing contradicts nothing


def test_what_is_no_table_of_a_study_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("run,family\n1,vae\n")
    with pytest.raises(ValueError, match=r"a.csv: not the table of a study \(it has no column 'setting'"):
        read_table(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text('a,b\n1,2,3\n"x')
    with pytest.raises(ValueError, match=r"b.csv: not a readable .csv file"):
        read_table(tmp_path / "b.csv")
    (tmp_path / "c.parquet").write_bytes(b"PAR1 no")
    with pytest.raises(ValueError, match="c.parquet: not a readable .parquet"):
        read_table(tmp_path / "c.parquet")
    (tmp_path / "d.txt").touch()
    with pytest.raises(ValueError, match=r"ends in .csv or .parquet"):
        read_table(tmp_path / "d.txt")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_table(tmp_path / "e.csv")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"computed_with": "[1]"}, "computed_with must be a JSON object, by metric; got '[1]'"),
        ({"computed_with": "5"}, "computed_with must be a JSON object, by metric; got '5'"),
        ({"seed": float("inf")}, "seed must be a whole number, 0 or more; got 'inf'"),
        ({"seed": 0.5}, "seed must be a whole number, 0 or more; got '0.5'"),
        ({"seed": 2**63}, "seed must be a whole number"),
        ({"n_rows": float("inf")}, "n_rows must be a whole number"),
        ({"n_rows": "x"}, "n_rows must be a whole number, 0 or more; got 'x'"),
        ({"run": None}, "run must be a name; it is empty"),
        ({"family": None}, "family must be a name; it is empty"),
    ],
)
def test_a_cell_that_no_table_has_is_named_with_its_row(change: dict[str, Any], said: str, tmp_path: Path) -> None:
    rows = [row("a", n_rows=64), row("b", n_rows=64) | change]
    table(*rows).to_csv(tmp_path / "t.csv", index=False)
    with pytest.raises(ValueError, match=rf"t\.csv: row 3: {re.escape(said)}"):
        read_table(tmp_path / "t.csv")
    with pytest.raises(ValueError, match=rf"mine: row 2: {re.escape(said)}"):
        merge_tables({"mine": table(*rows)})


def test_a_flipped_bit_of_a_table_is_never_another_number(tmp_path: Path) -> None:
    path = tmp_path / "table.parquet"
    save_frame(A, path)
    whole = path.read_bytes()
    pd.testing.assert_frame_equal(read_table(path), A, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(path), A, check_dtype=False)  # an ordinary file to all others
    marked = whole.rindex(b"unbraid-sha256:")
    for place in range(0, marked, 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match="its checksum is that of other content"):
            read_table(path)


def in_all_orders(*tables: pd.DataFrame) -> pd.DataFrame:
    """The tables merged, which is the same in any order and one by one."""
    whole = merge_tables({str(number): each for number, each in enumerate(tables)})
    for first, *others in permutations(tables):
        for each in others:
            first = merge_tables({"1": first, "2": each})
        pd.testing.assert_frame_equal(first, whole, check_exact=True)
    return whole


def test_a_run_that_waits_in_one_table_and_is_finished_in_another_loses_no_number() -> None:
    """Trained and scored by SNC in one place, where it waits for more; scored by MIG in the other."""
    rules = json.dumps({"snc": {"version": 1}})
    waits = row("r", None, state="waiting", computed_with=rules, reason="metric nk: failed", **{"snc.score": 0.75})
    planned = row("r", None, state="waiting", seconds=None, unbraid=None, precision="bfloat16", label="mine")
    failed = planned | {"state": "failed", "reason": "out of memory", "label": None}
    (whole,) = in_all_orders(table(waits), table(row("r")), table(planned), table(failed)).to_dict("records")
    assert (whole["state"], whole["mig.score"], whole["snc.score"]) == ("finished", 0.25, 0.75)
    assert (whole["precision"], whole["label"]) == ("float32", "mine")
    assert pd.isna(whole["reason"])
    assert json.loads(whole["computed_with"]) == {"mig": {"version": 2}, "snc": {"version": 1}}
    (left,) = in_all_orders(table(waits), table(planned), table(failed)).to_dict("records")
    assert (left["state"], left["reason"], left["snc.score"]) == ("failed", "out of memory", 0.75)
    other = {"first": table(row("r", 0.5, state="waiting")), "second": table(row("r"))}
    with pytest.raises(ValueError, match=r"run r of first and second: mig.score is 0.5 in the first and 0.25"):
        merge_tables(other)
    assert merge_tables(other, prefer_first=True)[["state", "mig.score"]].values.tolist() == [["finished", 0.25]]


def test_the_precision_of_a_run_that_nobody_trained_may_differ() -> None:
    """Left open in the YAML, it is what the machine of each study would choose."""
    waits = [
        row("r", None, state="waiting", seconds=None, unbraid=None, precision=each)
        for each in ("float32", "bfloat16", None)
    ]
    failed = waits[0] | {"state": "failed", "reason": "out of memory"}
    (left,) = in_all_orders(*map(table, [*waits, failed])).to_dict("records")
    assert (left["state"], left["precision"]) == ("failed", "bfloat16")
    trained = [
        row("r", state=state, precision=each) for state, each in (("finished", "float32"), ("waiting", "float64"))
    ]
    with pytest.raises(ValueError, match="precision is 'float32' in the first and 'float64' in the second"):
        merge_tables({"1": table(trained[0]), "2": table(trained[1])})
    assert merge_tables({"1": table(waits[1]), "2": table(trained[0])})["precision"].tolist() == ["float32"]


def test_a_column_has_numbers_or_text_whatever_each_table_made_of_it(tmp_path: Path) -> None:
    """A CSV file whose cells all read as numbers is one of numbers; with one text among them they all are text."""
    name = "hyper.width"
    numbers, words = table(row("a", **{name: 10.0}), row("b", **{name: 0.5})), table(
        row("a", **{name: "10"}), row("c", **{name: "wide"})
    )  # fmt: skip
    merged = in_all_orders(numbers, words, table(row("d", **{name: "10"})))
    assert merged.set_index("run")[name].to_dict() == {"a": "10", "b": "0.5", "c": "wide", "d": "10"}
    merged = in_all_orders(numbers, table(row("a", **{name: "10"})))
    assert merged.set_index("run")[name].to_dict() == {"a": 10.0, "b": 0.5}
    merged = in_all_orders(table(row("a", seed="3")), table(row("a", seed=3)))
    assert merged["seed"].tolist() == [3]
    save_frame(in_all_orders(numbers, words), tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet")[name].tolist() == ["10", "0.5", "wide"]


def test_what_columns_there_are_is_said_once_for_all_tables() -> None:
    few = pd.DataFrame({"run": ["a"], "family": "vae"})
    with pytest.raises(ValueError, match="--without nope: no such column; there are run, family$"):
        without_columns({"a": few, "b": few}, ["nope"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_boolean_is_the_same_in_a_file_of_any_kind(suffix: str, tmp_path: Path) -> None:
    name = "hyper.whiten"
    given = table(row("a", **{name: True}), row("b"), row("c", **{name: False}))
    save_frame(given, tmp_path / f"t{suffix}")
    merged = in_all_orders(given, read_table(tmp_path / f"t{suffix}")).set_index("run")
    assert merged[name].dropna().astype(str).to_dict() == {"a": "True", "c": "False"}
    save_frame(in_all_orders(given, table(row("d", **{name: 4.0}))), tmp_path / "mixed.parquet")


def run_of(**columns: Any) -> pd.DataFrame:
    cells = {"run": "r", "family": "vae", "setting": "", "seed": 0, "state": "finished", "content": "c"}
    return pd.DataFrame([{**cells, **columns}])


def test_what_a_baseline_reaches_is_joined_with_the_metrics() -> None:
    one = run_of(**{"mig.score": 0.5, "baseline.mig.score": 0.1, "above_baselines": "yes"})
    other = run_of(**{"mig.score": 0.5, "sap.score": 0.0, "baseline.sap.score": 0.1, "above_baselines": "no: sap"})
    for tables in ({"a": one, "b": other}, {"b": other, "a": one}):
        (row,) = merge_tables(tables).to_dict("records")
        assert (row["above_baselines"], row["baseline.mig.score"], row["sap.score"]) == ("no: sap", 0.1, 0.0)
    (left,) = without_columns({"a": one}, ["mig"]).values()
    assert not [column for column in left.columns if "mig" in column]


def test_the_name_of_the_images_is_taken_from_whichever_table_has_it() -> None:
    one, other = run_of(seconds=10.0), run_of(seconds=12.0, dataset="sprites", commit="a" * 40)
    (row,) = merge_tables({"a": one, "b": other}).to_dict("records")
    assert row["dataset"] == "sprites"


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_table_may_have_its_suffix_in_capitals(suffix: str, tmp_path: Path) -> None:
    save_frame(A, tmp_path / f"t{suffix}")
    shouted = (tmp_path / f"t{suffix}").rename(tmp_path / f"T{suffix.upper()}")
    assert is_table(shouted)
    assert read_table(shouted)["run"].tolist() == A["run"].tolist()
