"""Tables of several studies as one."""

import json
import re
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from unbraid.files.table_formats import save_frame
from unbraid.scoring.by_setting import quartiles, setting_means, trend
from unbraid.scoring.group_comparison import compare_groups
from unbraid.scoring.merged_tables import merge_tables, read_table

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
    row("nan", setting="", family="None", steps=None, **{"train.kl": 1 / 3}),
    row("z", 0.5, dataset="airplane", content="c1", seconds=9.0, **{"hyper.network": "dense", "mig.spread": 1e-300}),
)  # fmt: skip


def test_rows_stand_below_each_other_and_say_where_they_come_from(tmp_path: Path) -> None:
    merged = merge_tables({"A": A, "B": B})
    assert merged["run"].tolist() == ["00000e12", "b", "waits", "nan", "z"]
    assert merged["table"].tolist() == ["A", "A", "A", "B", "B"]
    assert merged["seed"].tolist() == [2, 0, 0, 0, 0]
    assert pd.isna(merged["train.kl"][0])
    for name in ("t.csv", "t.parquet"):  # ids that look like numbers, names like missing ones
        save_frame(merged, tmp_path / name)
        pd.testing.assert_frame_equal(read_table(tmp_path / name), merged, check_exact=True, check_dtype=False)


def test_a_run_in_two_tables_is_refused() -> None:
    with pytest.raises(ValueError, match="run b is in A and in C; leave it out of one of them"):
        merge_tables({"A": A, "B": B, "C": table(row("c"), row("b"))})


def test_rankings_among_different_models_are_not_mixed() -> None:
    one, other = (
        table(row(f"b{n}", seed=n, ranked_by=json.dumps({"among": n}), **{"udr.score": n / 8})) for n in (1, 2)
    )
    with pytest.raises(ValueError, match=r"udr.score: the models were ranked among different others"):
        quartiles(merge_tables({"A": one, "B": other}), "udr.score")


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
    unknown = table(row("d", seed=7, device="cuda", steps=None, content=None))
    assert setting_means(unknown)["mig.score"].tolist() == unknown["mig.score"].tolist(), "nothing is lost"
    alike = merge_tables({"A": A, "D": unknown})
    assert quartiles(alike, "mig.score").boxes[0].n == 3  # what is missing contradicts nothing


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"computed_with": "[1]"}, "computed_with must be a JSON object, by metric; got '[1]'"),
        ({"seed": 0.5}, "seed must be a whole number, 0 or more; got '0.5'"),
        ({"seed": 2**63}, "seed must be a whole number"),
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


def test_a_column_with_numbers_and_text_is_text(tmp_path: Path) -> None:
    name = "hyper.width"
    numbers = table(row("a", **{name: 10.0}), row("b", **{name: 0.5}))
    merged = merge_tables({"1": numbers, "2": table(row("c", **{name: "wide"}), row("d", **{name: "10"}))})
    assert merged.set_index("run")[name].to_dict() == {"a": "10", "b": "0.5", "c": "wide", "d": "10"}
    save_frame(merged, tmp_path / "t.parquet")
    assert read_table(tmp_path / "t.parquet")[name].tolist() == ["10", "0.5", "wide", "10"]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_boolean_is_the_same_in_a_file_of_any_kind(suffix: str, tmp_path: Path) -> None:
    name = "hyper.whiten"
    given = table(row("a", **{name: True}), row("b"), row("c", **{name: False}))
    save_frame(given, tmp_path / f"t{suffix}")
    read = read_table(tmp_path / f"t{suffix}").set_index("run")
    assert read[name].dropna().astype(str).to_dict() == {"a": "True", "c": "False"}
    save_frame(merge_tables({"1": given, "2": table(row("d", **{name: 4.0}))}), tmp_path / "mixed.parquet")
