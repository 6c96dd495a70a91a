"""Labels that are missing, whatever their type says of it, and names and circles that are read as they are meant."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid import Representation, score
from unbraid.data.labels import check_groups, read_labels
from unbraid.runs.labelled_codes import Labels, read_labelled

pandas = pytest.importorskip("pandas")
N = 60
RNG = np.random.default_rng(0)
CODES = RNG.normal(size=(N, 3))
LEVELS = np.arange(N) % 4
GONE = np.arange(N) % 10 == 3
HELD = np.where(GONE, -1, LEVELS)
DAYS = [datetime.date(1900, 1, 1) if gone else datetime.date(2024, 1, 1 + k % 4) for k, gone in enumerate(GONE)]
SENTINEL = pandas.Timestamp("1900-01-01")
WHEN = pandas.Series(pandas.to_datetime(DAYS))


def of_objects(make: Any) -> Any:
    column = np.empty(N, dtype=object)
    column[:] = [make(int(value)) for value in HELD]
    return column


@pytest.mark.parametrize(
    ("column", "missing"),
    [
        (of_objects(lambda k: Decimal("NaN") if k < 0 else Decimal(k)), None),
        (of_objects(np.int64), -1),
        (of_objects(np.float32), -1),
        (of_objects(Decimal), -1),
        (of_objects(Decimal), Decimal(-1)),
        (pandas.Categorical(HELD), -1),
        (pandas.Categorical(HELD, ordered=True), np.array([-1])),
        (pandas.Categorical(HELD), "-1"),
        (pandas.Categorical(DAYS), SENTINEL),
        (WHEN, SENTINEL),
        (WHEN, datetime.date(1900, 1, 1)),
        (WHEN, np.datetime64("1900-01-01")),
        (WHEN, SENTINEL.tz_localize("Europe/Amsterdam")),
        (WHEN, "1900-01-01"),
        (WHEN.dt.tz_localize("Europe/Amsterdam"), SENTINEL),
        (WHEN.dt.tz_localize("Europe/Amsterdam"), SENTINEL.tz_localize("Europe/Amsterdam")),
        (DAYS, SENTINEL),
        (pandas.Series(HELD * pandas.Timedelta(days=1)), pandas.Timedelta(days=-1)),
        (np.ma.masked_array(LEVELS, GONE), None),
        (np.ma.masked_array(LEVELS / 8, GONE), None),
        (np.ma.masked_array(LEVELS.astype("datetime64[D]"), GONE), None),
        (np.ma.masked_array(np.array(["a", "b", "c", "d"])[LEVELS], GONE), None),
        (np.ma.masked_array(np.array([b"a", b"b", b"c", b"d"])[LEVELS], GONE), None),
        (np.ma.masked_array(np.where(GONE, np.inf, LEVELS), GONE), None),
    ],
)
def test_rows_without_a_label_are_left_out_whatever_the_type_of_it(column: Any, missing: Any) -> None:
    held = Representation.of(CODES, {"a": column}, missing={"a": missing})
    assert held.codes.tolist() == CODES[~GONE].tolist()
    assert np.unique(held.factors[:, 0], return_inverse=True)[1].tolist() == LEVELS[~GONE].tolist()
    assert held.notes[0] == "54 of 60 rows are scored, those that lack no label (missing: a 6)"


@pytest.mark.parametrize("missing", [False, np.False_, "False"])
@pytest.mark.parametrize("made", [np.array, pandas.Categorical, lambda column: pandas.Series(column, dtype=object)])
def test_a_boolean_may_stand_for_no_label(made: Any, missing: Any) -> None:
    with pytest.raises(ValueError, match="'a' is constant over the 54 rows in use"):
        Representation.of(CODES, {"a": made(~GONE), "b": LEVELS}, missing=missing, columns=["a", "b"])


def test_numbers_and_booleans_are_not_each_other() -> None:
    labels = {"lit": LEVELS > 0, "count": LEVELS}
    assert len(Representation.of(CODES, labels, missing={"lit": 0, "count": False})) == N


def test_a_masked_matrix_of_labels_lacks_what_is_masked() -> None:
    masked = np.ma.masked_array(np.stack([LEVELS, LEVELS[::-1]], axis=1), np.stack([GONE, 0 * GONE], axis=1))
    card = score(CODES, masked, metrics=["mig"])
    assert card.representation.factors.tolist() == masked.data[~GONE].tolist()
    assert "(missing: factor_0 6)" in card.notes[0]


def test_masked_entries_of_all_else_are_refused() -> None:
    masked = np.ma.masked_array(CODES, CODES > 2)
    masked[4, 1] = np.ma.masked
    words = r"a masked array has .* masked entries, the first at \[.*only labels may lack values"
    for given in (masked, [masked[:, 0], masked[:, 1]]):
        with pytest.raises(ValueError, match=words):
            score(given, LEVELS[:, None], metrics=["mig"])
    with pytest.raises(ValueError, match=words):
        Representation(masked)
    with pytest.raises(ValueError, match=words):
        Representation.of(CODES, LEVELS[:, None], groups=np.ma.masked_array(LEVELS, GONE))
    unmasked = Representation(np.ma.masked_array(CODES))
    assert type(unmasked.codes) is np.ndarray


def test_a_category_that_no_row_has_is_a_step_of_the_circle() -> None:
    days = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"]
    seen = np.array(["Mo", "Tu", "Th", "Su"])[LEVELS]
    frame = {"day": pandas.Categorical(seen, days, ordered=True)}
    held = Representation.of(CODES, frame, kinds={"day": "cyclic"})
    assert (held.sizes, held.levels) == ((7,), (tuple(days),))
    assert held.factors[:, 0].tolist() == np.array([0, 1, 3, 6])[LEVELS].tolist()
    straight = Representation.of(CODES, frame)
    assert (straight.sizes, straight.levels) == (None, (("Mo", "Tu", "Th", "Su"),))
    unknown = pandas.Categorical(np.where(GONE, "?", seen), ["?", *days], ordered=True)
    known = Representation.of(CODES, {"day": unknown}, kinds={"day": "cyclic"}, missing="?")
    assert (known.sizes, known.levels) == ((7,), (tuple(days),))
    assert known.factors[:, 0].tolist() == np.array([0, 1, 3, 6])[LEVELS][~GONE].tolist()


@pytest.mark.parametrize(
    ("present", "said"),
    [
        (
            [0, 90, 180, 270],
            "a: cyclic with levels 0 to 270, read as 271 steps around; say its period if that is not so",
        ),
        (range(1, 13), "a: cyclic with levels 1 to 12, read as 13 steps around; say its period if that is not so"),
        ([0, 3, 6, 9], "a: cyclic with levels 0 to 9, read as 10 steps around; say its period if that is not so"),
        ([0, 1, 3, 6, 9], None),
        (range(-2, 3), "a: cyclic with levels -2 to 2, which do not count steps from 0; say its period"),
        (range(12), None),
        ([0, 1, 3, 4, 5], None),
    ],
)
def test_a_circle_of_whole_numbers_that_hardly_count_from_0_is_pointed_at(present: Any, said: str | None) -> None:
    labels = {"a": np.resize(np.array(present), N), "b": LEVELS}
    told: dict[str, Any] = {"kinds": {"a": "cyclic", "b": "ordinal"}}
    held = Representation.of(CODES, labels, **told)
    assert held.sizes == (max(present) + 1, 4)
    assert held.notes == (() if said is None else (said,))
    assert not read_labels(labels, **told, sizes=[360, 4]).notes
    period = read_labels(labels, kinds={"b": "ordinal"}, period={"a": 360})
    assert not any("say its period" in note for note in period.notes)


def test_columns_may_be_called_by_numbers() -> None:
    frame = pandas.DataFrame({1: LEVELS, 2: 90 * LEVELS, 3: HELD})
    held = Representation.of(
        CODES, frame, columns=[3, 1, 2], kinds={1: "categorical"}, period={2: 360}, missing={3: -1}
    )  # pyright: ignore[reportArgumentType]
    assert (held.names, held.kinds) == (("3", "1", "2"), ("ordinal", "categorical", "cyclic"))
    assert len(held) == N - 6
    with pytest.raises(ValueError, match="kinds names '7', which is no factor"):
        Representation.of(CODES, frame, kinds={7: "categorical"})  # pyright: ignore[reportArgumentType]
    named = Representation.of(CODES, np.stack([LEVELS, HELD], axis=1), names=[1, 2], kinds={1: "categorical"})  # pyright: ignore[reportArgumentType]
    assert (named.names, named.kinds[0]) == (("1", "2"), "categorical")


def test_codes_may_be_of_types_that_have_a_missing_value() -> None:
    frame = pandas.DataFrame({"a": CODES[:, 0], "b": LEVELS, "c": LEVELS > 1}).convert_dtypes()
    held = Representation(frame)
    assert (held.codes.dtype, held.code_names) == (np.dtype(float), ("a", "b", "c"))
    assert held.codes[:, 1].tolist() == LEVELS.tolist()
    assert score(frame, LEVELS[:, None], metrics=["mig"])["mig"].score > 0
    frame.loc[5, "b"] = pandas.NA
    with pytest.raises(ValueError, match="codes must be finite; row 5, column 1 is nan"):
        score(frame, LEVELS[:, None], metrics=["mig"])


@pytest.mark.parametrize("columns", [{"a": CODES[:, 0], "b": LEVELS > 1}, {"a": LEVELS, "b": LEVELS > 1}])
def test_booleans_among_codes_are_numbers(columns: Any) -> None:
    """Of booleans beside numbers pandas makes a matrix of objects."""
    numbers = np.stack([columns["a"], columns["b"]], axis=1).astype(float)
    frame = pandas.DataFrame(columns)
    assert Representation(frame).codes.dtype == float
    assert (
        score(frame, LEVELS[:, None], metrics=["mig"])["mig"].score
        == score(numbers, LEVELS[:, None], metrics=["mig"])["mig"].score
    )
    both = pandas.DataFrame({"a": LEVELS > 0, "b": LEVELS > 1})
    assert Representation(both).codes.tolist() == both.to_numpy().tolist()


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_factors_of_a_file_may_lack_labels_as_those_in_memory_do(tmp_path: Path, suffix: str) -> None:
    factors = np.stack([np.where(GONE, np.nan, LEVELS), LEVELS[::-1]], axis=1)
    arrays = {"codes": CODES, "factors": factors, "log_variances": CODES - 1, "groups": np.arange(N) // 2}
    path = tmp_path / f"codes{suffix}"
    if suffix == ".npz":
        np.savez(path, **arrays)
    else:
        pytest.importorskip("safetensors.numpy").save_file(arrays, path)
    held = Representation.load(path)
    assert held.notes == score(CODES, factors, metrics=["mig"]).representation.notes
    assert held.factors.tolist() == factors[~GONE].tolist()
    assert held.log_variances is not None
    assert held.log_variances.tolist() == (CODES - 1)[~GONE].tolist()
    assert held.groups is not None
    assert len(held.groups) == len(held) == N - 6
    assert score(held, metrics=["mig"])["mig"].score == score(CODES, factors, metrics=["mig"])["mig"].score


def write_gappy_file(path: Path) -> None:
    """Codes with factors size and hue, of which some rows, or all, lack a hue."""
    hue = np.full(N, np.nan) if "none" in path.stem else np.where(GONE, np.nan, LEVELS[::-1])
    factors, names = np.stack([LEVELS, hue], axis=1), ["size", "hue"]
    if path.suffix == ".npz":
        np.savez(path, codes=CODES, factors=factors, factor_names=names)
        return
    table = {f"code_{k}": column for k, column in enumerate(CODES.T)}
    frame = pandas.DataFrame(table | {f"factor_{name}": factors[:, k] for k, name in enumerate(names)})
    frame.to_csv(path, index=False) if path.suffix == ".csv" else frame.to_parquet(path)


@pytest.mark.parametrize("name", ["some.npz", "some.csv", "some.parquet", "none.npz", "none.csv"])
def test_labels_that_nobody_asked_for_leave_no_rows_out(tmp_path: Path, name: str) -> None:
    write_gappy_file(path := tmp_path / name)
    held = Representation.load(path, columns=["size"])
    assert (held.names, held.factors[:, 0].tolist()) == (("size",), LEVELS.tolist())
    assert not any("lack" in note for note in held.notes)
    assert len(Representation.load(path, columns=[])) == N
    table = tmp_path / "labels.csv"
    pandas.DataFrame({"size": LEVELS}).to_csv(table, index=False)
    for labels in (Labels(columns=["size"]), Labels(table), Labels(columns=["size"], kinds={"hue": "ordinal"})):
        held, _ = read_labelled(path, labels)
        assert (held.codes.tolist(), held.factors.tolist()) == (CODES.tolist(), LEVELS[:, None].tolist())
    with pytest.raises(ValueError, match=rf"{name}.*'shade'"):
        Representation.load(tmp_path / name, columns=["shade"])
    if "some" in name:
        assert len(Representation.load(path)) == len(Representation.load(path, columns=["hue"])) == N - 6


def test_a_file_whose_rows_all_lack_labels_is_refused_by_name(tmp_path: Path) -> None:
    np.savez(tmp_path / "codes.npz", codes=CODES, factors=np.full((N, 1), np.nan), factor_names=["hue"])
    with pytest.raises(ValueError, match=r"codes\.npz: labels column 'hue' is missing in every row"):
        Representation.load(tmp_path / "codes.npz")


def test_a_category_of_pyarrow_that_is_missing_is_no_category(tmp_path: Path) -> None:
    """As the same column of pandas; pyarrow's own arrays have the last category in its place."""
    pa, levels = pytest.importorskip("pyarrow"), ["T", "B", "NK"]
    frame = pandas.DataFrame({"cell": pandas.Categorical(["T", "B", None, "T"] * 5, categories=levels, ordered=True)})
    table = pa.Table.from_pandas(frame)
    known, found = read_labels(frame), read_labels(pa.concat_tables([table[:7], table[7:]]))
    assert found.used.tolist() == known.used.tolist() == [True, True, False, True] * 5
    assert found.factors.tolist() == known.factors.tolist()
    assert (found.levels, found.kinds, found.notes) == (known.levels, known.kinds, known.notes)
    with pytest.raises(ValueError, match="row 2 has none"):
        check_groups(table["cell"], 20)
    path = tmp_path / "codes.parquet"
    frame.rename(columns={"cell": "factor_cell"}).assign(code_0=np.arange(20.0)).to_parquet(path)
    assert len(Representation.load(path)) == 15
