"""Labels as people have them: what becomes of text, categories, dates, angles and missing ones."""

import datetime
from typing import Any

import numpy as np
import pytest

import unbraid
from unbraid.data import Representation
from unbraid.data.labels import read_labels
from unbraid.metrics import NotDefined, d_lsbd, mig, sap
from unbraid.metrics._shared.inputs import as_levels, check_inputs

pandas = pytest.importorskip("pandas")
RNG = np.random.default_rng(0)
N = 240
SHAPE = RNG.integers(3, size=N)
HUE = RNG.random(N) * 360
CODES = np.stack([SHAPE + RNG.normal(0, 0.1, N), np.cos(np.radians(HUE)), RNG.normal(size=N)], axis=1)
NAMES = np.array(["ellipse", "heart", "square"])
METRICS = ["mig", "sap", "dci_lasso", "snc", "irs"]


def values(card: unbraid.ScoreCard) -> dict[str, dict[str, float]]:
    return {name: card.scored[name].values for name in card}


def test_whole_numbers_that_floats_cannot_tell_apart_are_no_levels() -> None:
    with pytest.raises(ValueError, match=r"labels column 'a', row 1 is 9007199254740993: above 2\^53 whole numbers"):
        read_labels({"a": [3, 2**53 + 1, 2**53]})
    with pytest.raises(ValueError, match=r"labels column 'a' has a whole number that no float holds"):
        read_labels({"a": [3, 4, 10**400]})
    nanoseconds = 1_700_000_000_000_000_000 + 10**9 * np.arange(30)
    assert len(np.unique(read_labels({"a": nanoseconds}, kinds={"a": "continuous"}).factors)) == 30


def test_text_is_scored_as_its_levels_are_and_keeps_their_names() -> None:
    by_hand = unbraid.score(CODES, SHAPE[:, None], kinds=["categorical"], metrics=METRICS)
    for column in (
        NAMES[SHAPE],
        NAMES[SHAPE].astype(object),
        pandas.Series(NAMES[SHAPE]),
        pandas.Categorical(NAMES[SHAPE]),
        pandas.Series(NAMES[SHAPE], dtype="category"),
        list(NAMES[SHAPE]),
    ):
        card = unbraid.score(CODES, {"shape": column}, metrics=METRICS)
        assert values(card) == values(by_hand)
        assert card.representation.levels == (("ellipse", "heart", "square"),)
        assert card.to_dict()["input"]["factors"] == [
            {"name": "shape", "kind": "categorical", "size": 3, "levels": ["ellipse", "heart", "square"]}
        ]
        assert card.notes == (
            "kinds guessed: shape categorical (ellipse, heart, square); pass kinds= (--kinds) to change",
        )


def test_an_ordered_categorical_keeps_its_own_order() -> None:
    sizes = np.array(["small", "medium", "large"])[SHAPE]
    frame = pandas.DataFrame({"size": pandas.Categorical(sizes, ["small", "medium", "large"], ordered=True)})
    held = Representation.of(CODES, frame)
    assert held.kinds == ("ordinal",)
    assert held.factors[:, 0].tolist() == SHAPE.tolist()
    assert held.levels == (("small", "medium", "large"),)


def test_booleans_dates_and_nullable_numbers() -> None:
    days = RNG.integers(50, size=N)
    dates = [datetime.date(2024, 1, 1) + datetime.timedelta(days=int(day)) for day in days]
    frame = pandas.DataFrame(
        {
            "lit": SHAPE > 0,
            "date": dates,
            "when": pandas.to_datetime(dates).tz_localize("Europe/Amsterdam"),
            "count": pandas.array(SHAPE, dtype="Int64"),
        }
    )
    held = Representation.of(CODES, frame)
    assert held.kinds == ("categorical", "continuous", "continuous", "ordinal")
    assert held.levels == (("False", "True"), (), (), ())
    assert held.factors[:, 0].tolist() == (SHAPE > 0).tolist()
    assert held.factors[:, 1].tolist() == (days - days.min()).tolist()
    # One hour more from the change of clocks on: moments, not what a clock on the wall shows.
    assert np.ptp(held.factors[:, 2] - held.factors[:, 1]) <= 1 / 24 + 1e-9
    assert held.factors[:, 3].tolist() == SHAPE.tolist()


@pytest.mark.parametrize("none", [None, np.nan, pandas.NA, pandas.NaT, "?"])
def test_rows_that_lack_a_label_are_left_out_and_counted(none: Any) -> None:
    lacking = np.arange(N) % 10 == 3
    shape = NAMES[SHAPE].astype(object)
    shape[lacking] = none
    hue = HUE.copy()
    hue[:5] = -1
    used = ~lacking & (np.arange(N) >= 5)
    card = unbraid.score(
        CODES,
        {"shape": shape, "hue": hue},
        missing={"shape": "?", "hue": -1},
        metrics=METRICS,
        kinds={"hue": "continuous"},
    )
    alone = np.stack([SHAPE, HUE], axis=1)[used]
    assert values(card) == values(
        unbraid.score(CODES[used], alone, kinds=["categorical", "continuous"], metrics=METRICS)
    )
    assert card.to_dict()["input"]["n_samples"] == used.sum()
    assert card.notes[0] == f"{used.sum()} of 240 rows are scored, those that lack no label (missing: shape 24, hue 5)"
    assert card.notes[0] in str(card)


def test_only_labels_in_use_leave_rows_out() -> None:
    labels = {"shape": SHAPE, "hue": np.where(np.arange(N) < 50, np.nan, HUE)}
    assert len(Representation.of(CODES, labels)) == N - 50
    held = Representation.of(CODES, labels, columns=["shape"], log_variances=CODES)
    assert len(held) == len(held.log_variances) == N


def test_angles_on_a_few_even_steps_are_levels_of_a_circle() -> None:
    steps = np.arange(N) % 8
    for length in (360, 2 * np.pi, 24):
        held = Representation.of(CODES, {"turn": steps * length / 8 - 3 * length}, period={"turn": length})
        assert (held.kinds, held.sizes) == (("cyclic",), (8,))
        assert held.factors[:, 0].tolist() == steps.tolist()
    around = np.stack([np.cos(steps * np.pi / 4), np.sin(steps * np.pi / 4)], axis=1)[:8]
    card = unbraid.score(around, {"turn": 45.0 * steps[:8]}, period={"turn": 360}, metrics=["d_lsbd"])
    assert card["d_lsbd"].score == pytest.approx(0, abs=1e-12)
    # Radians need no period.
    assert Representation.of(CODES, {"turn": steps * np.pi / 4}, kinds={"turn": "cyclic"}).sizes == (8,)


@pytest.mark.parametrize(
    ("steps", "digits", "period"), [(6, 3, None), (6, 1, None), (40, 2, None), (64, 4, None), (16, 0, 360), (3, 0, 365)]
)
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_rounded_angles_close_the_circle_where_every_step_has_one(
    steps: int, digits: int, period: float | None, kind: Any
) -> None:
    """0, 1.047, ..., 5.236 are six steps; one of them a single unit of the last digit away, or not there, and no more.

    The last may be the first again, rounded to more than 2 pi: 6.2832.
    """
    length = 2 * np.pi if period is None else period
    exact = np.arange(steps + 1) * length / steps
    angles = np.round(exact, digits).astype(kind)

    def sizes(angles: Any) -> Any:
        column = {"turn": np.tile(angles, 3)}
        periods = None if period is None else {"turn": period}
        return read_labels(column, kinds={"turn": "cyclic"}, period=periods).sizes

    before = np.round(exact - length, digits).astype(kind)
    assert sizes(angles) == sizes(angles[:-1]) == sizes(before) == (steps,)
    off = np.round(exact + np.eye(steps + 1)[steps // 2] * 10.0**-digits, digits).astype(kind)
    assert sizes(off) is None
    assert steps == 3 or sizes(np.delete(angles, steps // 2)) is None
    assert read_labels({"turn": angles}, period={"turn": length}).factors[:, 0].tolist() == [*range(steps), 0]


def test_other_angles_are_radians_whichever_their_period_and_turn() -> None:
    expected = np.radians(HUE)
    for hue, period in ((HUE, 360), (HUE - 720, 360), (HUE / 15, 24), (expected, 2 * np.pi)):
        held = Representation.of(CODES, {"hue": hue}, period={"hue": period})
        assert held.kinds == ("cyclic",)
        assert held.factors[:, 0] == pytest.approx(expected, abs=1e-9)
    assert unbraid.score(CODES, {"hue": HUE}, period={"hue": 360}, metrics=["mig"]).to_dict()["input"]["factors"] == [
        {"name": "hue", "kind": "cyclic", "size": None}
    ]


def test_metrics_cut_angles_around_the_circle() -> None:
    angles = (np.arange(400) + 0.5) * 2 * np.pi / 400
    codes = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    levels = as_levels(check_inputs(codes, angles[:, None], ["cyclic"]))
    assert levels.sizes == (20,)
    assert levels.levels[:, 0].tolist() == (np.arange(400) // 20).tolist()
    # Where the circle is cut open is nobody's choice: a twentieth of a turn renames bins alone.
    turned = angles + 2 * np.pi / 20 * 7
    for shift in (turned, turned - 2 * np.pi):
        assert mig(codes, shift[:, None] % (2 * np.pi), kinds=["cyclic"]).score == pytest.approx(
            mig(codes, angles[:, None], kinds=["cyclic"]).score, abs=1e-12
        )
    seen = (
        mig(codes, (angles - np.pi)[:, None], kinds=["cyclic"]),
        mig(codes, angles[:, None] + np.pi / 8, kinds=["continuous"]),
    )
    assert seen[0].factor_entropy == pytest.approx(np.log(20))
    assert "factor 0 is an angle: cut into 20 bins around the circle" in seen[0].notes


def test_metrics_of_steps_leave_angles_out() -> None:
    angles = RNG.random((N, 1)) * 6
    with pytest.raises(NotDefined, match="angles have no grid"):
        d_lsbd(CODES, angles, kinds=["cyclic"])
    mixed = np.hstack([angles, SHAPE[:, None]])
    notes = sap(CODES, mixed, kinds=["cyclic", "categorical"], variant="disentanglement_lib").notes
    assert any(note.startswith("factor 0 is an angle") for note in notes)


@pytest.mark.parametrize(
    ("labels", "arguments", "said"),
    [
        ({"shape": SHAPE[:-1]}, {}, "the same number of rows"),
        ({"hue": HUE}, {"period": {"hue": 0}}, "above 0; got 0"),
        ({"hue": HUE}, {"period": {"hu": 360}}, "did you mean 'hue'"),
        ({"hue": HUE}, {"kinds": {"hue": "cyclic"}}, "say its period"),
        ({"hue": HUE}, {"missing": {"hux": -1}}, "did you mean 'hue'"),
        ({"hue": [None] * N}, {}, "'hue' is missing in every row"),
        ({"a": [None, 1, None, 2] * 60, "b": [1, None, 2, None] * 60}, {}, "no row has all labels"),
        ({"a": [1, "x"] * 120}, {}, "mixes int (1, row 0) and str ('x', row 1)"),
        ({"a": [1.0] * N, "b": range(N), "c": ["x"] * N}, {"columns": ["a", "b", "c"]}, "'a', 'c' are constant"),
        ({"a": [np.inf, *HUE[1:]]}, {}, "row 0 is inf"),
        ({"shape": NAMES[SHAPE]}, {"kinds": {"shape": "cyclic"}}, "cannot be cyclic"),
    ],
)
def test_labels_that_cannot_be_used_are_told_in_one_line(labels: Any, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as told:
        Representation.of(CODES, labels, **arguments)
    assert said in str(told.value)
    assert "\n" not in str(told.value)


def test_level_names_and_notes_outlive_files(tmp_path: Any) -> None:
    labels = {"shape": np.where(np.arange(N) == 4, "", NAMES[SHAPE]), "hue": HUE}
    held = Representation.of(CODES, labels, missing="", period={"hue": 360})
    for suffix in (".npz", ".safetensors", ".parquet"):
        held.save(tmp_path / f"codes{suffix}")
        back = Representation.load(tmp_path / f"codes{suffix}")
        assert (back.levels, back.notes, back.kinds) == (held.levels, held.notes, held.kinds)
    card = unbraid.score(held, metrics=["mig"])
    card.save(tmp_path / "card.json")
    assert unbraid.ScoreCard.load(tmp_path / "card.json").to_dict() == card.to_dict()


def test_codes_are_taken_from_whatever_holds_them() -> None:
    torch = pytest.importorskip("torch")
    sparse = pytest.importorskip("scipy.sparse")
    whole = np.rint(CODES * 8)
    given = {
        "torch": torch.tensor(whole, requires_grad=True),
        "bfloat16": torch.tensor(whole, dtype=torch.bfloat16),
        "pandas": pandas.DataFrame(whole),
        "sparse": sparse.csr_matrix(whole),
        "list": whole.tolist(),
        "list of tensors": list(torch.tensor(whole, requires_grad=True)),
        "list in bfloat16": list(torch.tensor(whole, dtype=torch.bfloat16)),
        "lists of numbers with gradients": [list(row) for row in torch.tensor(whole, requires_grad=True)],
    }
    expected = mig(whole, SHAPE[:, None]).score
    for codes in given.values():
        assert unbraid.score(codes, SHAPE[:, None], metrics=["mig"])["mig"].score == expected
        assert unbraid.score(codes, {"shape": SHAPE}, metrics=["mig"])["mig"].score == expected
        assert mig(codes, SHAPE[:, None]).score == expected
        assert Representation(codes).codes.tolist() == whole.tolist()


def test_angles_of_a_matrix_with_its_kinds_stay_radians_also_where_a_row_lacks_a_label() -> None:
    whole = np.column_stack([np.arange(len(CODES)) % 8 * np.pi / 4, SHAPE])
    gap = whole.copy()
    gap[3, 1] = np.nan
    for labels, n_rows in ((whole, len(CODES)), (gap, len(CODES) - 1)):
        held = unbraid.score(CODES, labels, kinds=["cyclic", "ordinal"], metrics="mig").representation
        assert (len(held), held.levels, held.periods) == (n_rows, (), ())
        assert np.isin(held.factors[:, 0], whole[:, 0]).all()
    assert Representation.of(CODES, {"turn": whole[:, 0]}, kinds={"turn": "cyclic"}).sizes == (8,)


def test_one_factor_is_one_column_whatever_holds_it() -> None:
    """As y of scikit-learn is: not only text and columns of a frame."""
    torch = pytest.importorskip("torch")
    expected = mig(CODES, SHAPE[:, None]).score
    for one in (SHAPE, SHAPE.tolist(), SHAPE.astype(float), torch.tensor(SHAPE), pandas.Series(SHAPE), NAMES[SHAPE]):
        assert unbraid.score(CODES, one, metrics="mig")["mig"].score == pytest.approx(expected)
        assert unbraid.score(CODES, one, metrics="mig", null=3)["mig"].score == pytest.approx(expected)
        assert Representation.of(CODES, one).factors[:, 0].tolist() == SHAPE.tolist()
    card = unbraid.score(CODES, SHAPE, kinds=["categorical"], names=["shape"], metrics="mig")
    assert (card.representation.names, card.representation.kinds) == (("shape",), ("categorical",))
    with pytest.raises(ValueError, match="same number of rows; got .240, 3. and .3, 1."):
        unbraid.score(CODES, SHAPE[:3], metrics="mig")


def test_spans_of_time_are_days_whatever_holds_them() -> None:
    days = 3.0 * SHAPE + 0.25
    spans = [datetime.timedelta(days=day) for day in days.tolist()]
    for column in (
        spans,
        np.array(spans, dtype="timedelta64[us]"),
        [np.timedelta64(each, "ns") for each in spans],
        pandas.Series(spans),
        pandas.Series(spans, dtype=object),
    ):
        held = Representation.of(CODES, {"span": column})
        assert held.kinds == ("continuous",)
        assert held.factors[:, 0] == pytest.approx(3 * SHAPE)
    gaps = [None if row < 5 else np.timedelta64("NaT") if row < 7 else each for row, each in enumerate(spans)]
    held = Representation.of(CODES, {"span": gaps}, missing=datetime.timedelta(days=3.25))
    used = (np.arange(N) >= 7) & (SHAPE != 1)
    assert held.codes.tolist() == CODES[used].tolist()
    assert held.factors[:, 0] == pytest.approx(3 * SHAPE[used])
    with pytest.raises(ValueError, match="'span' mixes timedelta .* row 0. and int .1, row 1."):
        Representation.of(CODES, {"span": [spans[0], 1] * (N // 2)})


def test_text_in_bytes_is_read_as_utf_8_or_refused_by_its_row() -> None:
    """As files in HDF5 hold it."""
    names = ["größe", "形", "z"]
    coded = np.array([each.encode() for each in names])[SHAPE]
    for column in (coded, coded.astype(object), np.ma.masked_array(coded, np.zeros(N, bool)), coded.tolist()):
        held = Representation.of(CODES, {"shape": column})
        assert held.levels == (tuple(sorted(names)),)
        assert [held.levels[0][int(place)] for place in held.factors[:, 0]] == [names[k] for k in SHAPE]
    coded[4] = "größe".encode("latin-1")
    with pytest.raises(ValueError, match="^labels column 'shape', row 4 is b'gr.*which is no text in UTF-8"):
        Representation.of(CODES, {"shape": coded})


def test_polars_frames_are_codes_and_labels_with_their_names() -> None:
    polars = pytest.importorskip("polars")
    codes = polars.DataFrame(CODES, schema=[f"unit {k}" for k in range(CODES.shape[1])])
    shape = ["heart" if each else None for each in SHAPE]
    shape[:3] = ["square"] * 3
    frame = polars.DataFrame({"text": shape, "size": SHAPE}).with_columns(
        polars.col("text").cast(polars.Enum(["square", "heart"])).alias("enum"),
        polars.col("text").cast(polars.Categorical).alias("category"),
    )
    held = Representation.of(codes, frame)
    assert held.code_names == tuple(codes.columns)
    assert held.kinds == ("categorical", "ordinal", "ordinal", "categorical")
    assert held.levels == (("heart", "square"), (), ("square", "heart"), ("heart", "square"))
    kept = np.array([each is not None for each in shape])
    assert held.codes.tolist() == CODES[kept].tolist()
    assert held.factors[:, 0].tolist() == [["heart", "square"].index(each) for each in shape if each]
    card = unbraid.score(codes, frame["size"], metrics="mig")  # one column is labels as well
    assert card["mig"].score == mig(CODES, SHAPE[:, None]).score
    assert card.representation.names == ("size",)
    with pytest.raises(ValueError, match=r"a lazy frame has no rows yet; give frame.collect\(\)"):
        Representation(codes.lazy())


def test_codes_in_the_bfloat16_of_jax() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes")
    whole = np.rint(CODES * 8)
    assert Representation(whole.astype(ml_dtypes.bfloat16)).codes.tolist() == whole.tolist()


def test_angles_keep_the_unit_of_their_labels_in_files_pages_and_figures(tmp_path: Any) -> None:
    from unbraid.figures import draw, open_source

    labels = {"shape": NAMES[SHAPE], "hue": HUE}
    held = Representation.of(CODES, labels, period={"hue": 360})
    assert held.periods == (0, 360)
    assert held.keep_factors(["hue"]).periods == (360,)
    np.testing.assert_allclose(held.in_label_units()[:, 1], HUE % 360, atol=1e-9)
    assert Representation.of(CODES, {"shape": NAMES[SHAPE]}).periods == ()
    for suffix in (".npz", ".safetensors", ".parquet"):
        held.save(tmp_path / f"codes{suffix}")
        assert Representation.load(tmp_path / f"codes{suffix}").periods == (0, 360)
    unbraid.score(held, metrics=["mig"]).save(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert ">180<" in page
    assert ">2π<" not in page
    drawn = draw("important-codes", open_source(tmp_path / "codes.npz"))
    assert [text.get_text() for text in drawn.figure.axes[1].get_xticklabels()] == ["0", "180", "360"]
    shown = [row for row in zip(drawn.data["factor"], drawn.data["level"], strict=True) if row[0] == "hue"]
    angles = np.tile(HUE % 360, 3)  # against the three most important codes
    np.testing.assert_allclose([level for _, level in shown], angles, atol=1e-9)


def test_numbers_with_a_decimal_comma_are_no_levels() -> None:
    column = ["0,5", "1", "2,25", "0,5"]
    with pytest.raises(ValueError, match=r"'hue' holds '0,5'; write numbers with a point and no comma"):
        Representation.of(np.eye(4), {"hue": column})
    held = Representation.of(np.eye(4), {"hue": column}, kinds={"hue": "categorical"})
    assert held.levels == (("0,5", "1", "2,25"),)
    for names in (["a,b", "1,5", "1,5", "2"], ["1", "2", "1", "2"], ["1,2,3", "1,2", "1", "1"]):
        assert Representation.of(np.eye(4), {"hue": names}).kinds == ("categorical",)


@pytest.mark.parametrize("missing", [[], [None]])
@pytest.mark.parametrize("base", [2**60, 10**20])
def test_whole_numbers_that_floats_merge_are_refused_as_objects_too(base: int, missing: list[None]) -> None:
    """As a .csv file with an empty cell has them: two of three levels would be one."""
    cells = [*missing, 5, base, base + 1, 5]
    said = f"labels column 'level', row {len(missing) + 1} is {base}: above 2\\^53 whole numbers cannot be told apart"
    with pytest.raises(ValueError, match=said):
        read_labels({"level": np.array(cells, dtype=object)})
    apart = [*missing, 5, 2**60, 2**61, 5]  # which floats tell apart
    assert read_labels({"level": np.array(apart, dtype=object)}).factors[:, 0].tolist() == [5, 2**60, 2**61, 5]


def test_fields_of_a_structured_array_are_columns() -> None:
    columns = {"shape": np.array(["a", "b", "a"]), "size": np.array([0.5, 2.0, np.nan])}
    fields = np.rec.fromarrays(list(columns.values()), names=list(columns))
    for made in (fields, np.asarray(fields).view(np.ndarray)):
        read, wanted = read_labels(made), read_labels(columns)
        assert (read.names, read.kinds, read.levels, read.notes) == (
            wanted.names, wanted.kinds, wanted.levels, wanted.notes,
        )  # fmt: skip
        assert read.factors.tolist() == wanted.factors.tolist()
    assert Representation.of(np.eye(3), fields, columns=["shape"]).names == ("shape",)


def test_dates_written_as_text_are_days() -> None:
    days = ["2024-01-02", "2024-01-10", "2024-01-02", "2024-02-01"]
    read = read_labels({"day": [*days, None]}, missing="2024-01-02")
    assert (read.kinds, read.factors.tolist()) == (("continuous",), [[0.0], [22.0]])
    for made in (days, np.array(days, dtype="datetime64[D]"), [f"{day}T00:00" for day in days]):
        assert read_labels({"day": made}).factors[:, 0].tolist() == [0, 8, 0, 30]
    assert read_labels({"day": days}, kinds={"day": "ordinal"}).kinds == ("ordinal",)
    for names in ([*days[:3], "later"], ["20240102", "20240110"] * 2):
        assert read_labels({"day": names}).kinds == ("categorical",)


@pytest.mark.parametrize("turns", [[0, 1, 3], [0.25, 2.25, -0.75], [1e-14, 0, 1]])
def test_angles_that_are_one_angle_are_constant(turns: list[float]) -> None:
    with pytest.raises(ValueError, match="labels column 'hue' is one angle of period 360 over the 3 rows in use"):
        Representation.of(np.eye(3), {"hue": 360 * np.array(turns)}, period={"hue": 360})
