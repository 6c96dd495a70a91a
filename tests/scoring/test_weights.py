"""Rows that stand for several."""

import inspect
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from scipy import sparse
from typer.testing import CliRunner

import unbraid
from unbraid import Representation
from unbraid.cli.app import app
from unbraid.figures.figure_source import open_source
from unbraid.metrics import METRICS, NotDefined, mig, sap
from unbraid.metrics._shared.resampling import part_of_rows
from unbraid.scoring.scored import fields_of

RNG = np.random.default_rng(0)
FACTORS = np.stack([RNG.integers(0, size, 400) for size in (3, 4)], axis=1)
CODES = np.hstack([FACTORS[:, :1] + 0.3 * RNG.standard_normal((400, 1)), RNG.standard_normal((400, 3))])


def fields(result: object) -> dict[str, npt.ArrayLike]:
    return {name: each for name, each in fields_of(result) if isinstance(each, float | np.ndarray)}


def test_whole_weights_score_as_repeated_rows_do_and_ones_as_none() -> None:
    """Every number of every result; of the six that count information by both kinds of bins and all their options."""
    draw = np.random.default_rng(5)
    factors = np.stack([draw.integers(0, 3, 60), draw.integers(0, 2, 60), draw.random(60)], axis=1)
    codes = np.hstack([factors + 0.3 * draw.standard_normal((60, 3)), np.rint(2 * draw.random((60, 2)))])
    counts = draw.integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), counts)
    codes[:, 4] *= 0.2 / (codes[counts > 0, 4].std() + codes[repeated, 4].std())  # active, from .1 on, in one of both
    names = [name for name, row in METRICS.items() if "weights" in inspect.signature(row.function).parameters]
    binned = {"mig", "mig_sup", "med", "modularity", "factor_leakage", "jemmig", "dcimig"}
    assert set(names) == binned | {"sap", "tad"}
    ways = [(name, {"binning": binning}) for name in names if name in binned for binning in ("width", "mass")]
    ways += [("jemmig", {"factor_bins": 4}), ("mig_sup", {"weighting": "active"}), ("sap", {})]
    ways += [("tad", {"least_auroc": 0.5, "most_shared": 1.0}), ("tad", {})]
    for name, options in ways:
        truth = factors if name != "tad" else np.column_stack([factors[:, 0] > 0, factors[:, 1], factors[:, 2] > 0.4])
        metric = METRICS[name].function
        weighted = fields(metric(codes, truth, weights=counts, **options))
        plain = fields(metric(codes[repeated], truth[repeated], **options))
        for field, value in plain.items():
            assert weighted[field] == pytest.approx(value, abs=1e-12), (name, options, field)
        ones, none = (fields(metric(codes, truth, **each, **options)) for each in ({"weights": np.ones(60)}, {}))
        for field, value in none.items():
            assert ones[field] == pytest.approx(value, abs=1e-12), (name, options, field)
        assert weighted[METRICS[name].headline] != pytest.approx(none[METRICS[name].headline], abs=1e-6), name
        between = fields(metric(codes, truth, weights=counts / 1.7, **options))
        assert np.isfinite(between[METRICS[name].headline])
    with pytest.raises(
        NotDefined, match="does not support weighted rows where an SVM predicts a factor, as it does factor 1"
    ):
        sap(codes, factors, weights=counts, kinds=["ordinal", "categorical", "continuous"])


def test_weights_go_with_their_rows_and_metrics_without_them_say_so(tmp_path: Path) -> None:
    counts = np.arange(400) % 3 + 0.0
    labels = {"x": [None, *FACTORS[1:, 0].tolist()], "y": FACTORS[:, 1].tolist()}
    card = unbraid.score(CODES, labels, metrics=["mig", "snc"], weights=counts, kinds={"x": "ordinal"}, null=2)
    repeated = np.repeat(np.arange(1, 400), counts[1:].astype(int))
    assert card["mig"].score == pytest.approx(mig(CODES[repeated], FACTORS[repeated]).score)
    assert card.skipped == {"snc": "does not support weighted rows"}
    kept = np.count_nonzero(counts[1:])
    assert f"weighted: {kept} rows stand for {len(repeated)}; figures show each row once" in card.notes
    assert len(card.representation) == kept  # rows that stand for none are neither shuffled nor drawn
    assert card.scored["mig"].null is not None
    path = tmp_path / "labels.csv"
    rows = [",".join(map(str, row)) for row in np.column_stack([FACTORS, counts])]
    path.write_text("x,y,n\n" + "\n".join(rows) + "\n")
    np.save(tmp_path / "codes.npy", CODES)
    given = ["score", str(tmp_path / "codes.npy"), "--labels", str(path), "--metrics", "mig"]
    shown = CliRunner().invoke(app, [*given, "--weights", "n"]).stdout
    repeated = np.repeat(np.arange(400), counts.astype(int))
    assert f"{mig(CODES[repeated], FACTORS[repeated]).score:.3f}" in shown
    assert f"weighted: {np.count_nonzero(counts)} rows stand for" in shown
    assert "no column 'm' for --weights; there are x, y, n" in str(CliRunner().invoke(app, [*given, "--weights", "m"]))
    for wrong, message in (
        (counts[:-1], r"weights must be one number per row, \(400,\); got shape \(399,\)"),
        (-counts, "weights must be finite and not negative; row 1 is -1"),
        (np.full(400, np.nan), "weights must be finite and not negative; row 0 is nan"),
        (np.full(400, 1e18), r"weights are numbers of rows and must add up to at most 9\S+; they add up to 4e\+20"),
        (np.full(400, 1 / 400), "weights are numbers of rows and must add up to at least two; they add up to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            unbraid.score(CODES, FACTORS, metrics="mig", weights=wrong)
    with pytest.raises(ValueError, match="a file holds no weights"):
        Representation(CODES, FACTORS, weights=counts).save(tmp_path / "a.npz")


def test_intervals_and_nulls_of_weighted_rows_are_those_of_plain_loops_over_rows_with_their_weights() -> None:
    counts = np.arange(400) % 3 + 0.5
    card = unbraid.score(CODES, FACTORS, metrics=["sap", "mig"], weights=counts, null=3, confidence=(0.9, 6))
    for name, metric, one_in in (("mig", mig, 5), ("sap", sap, 5)):
        rows = [part_of_rows(400, one_in, 0, np.random.default_rng([0, one_in, done])) for done in range(6)]
        parts = [metric(CODES[k], FACTORS[k], weights=counts[k]).score for k in rows]
        intervals = card.scored[name].intervals
        assert intervals is not None
        deviation = np.std(parts, ddof=1) * np.sqrt(one_in - 1)
        assert intervals.values["score"].deviation == pytest.approx(deviation, rel=1e-9)
        orders = [np.random.default_rng([0, done]).permutation(400) for done in range(3)]
        moved = [metric(CODES[order], FACTORS, weights=counts).score for order in orders]
        null = card.scored[name].null
        assert null is not None
        assert null.scores == pytest.approx(moved, rel=1e-9)
    assert card.rows_needed(0.01)["mig"] > 40
    assert card.computed_with["mig"] != unbraid.score(CODES, FACTORS, metrics="mig").computed_with["mig"]


def test_what_takes_no_weights_refuses_them(tmp_path: Path) -> None:
    """Whole objects, which would be encoded without any; wide codes; rankings; figures; pairs of other weights."""
    counts, hue = np.arange(400) % 3 + 1.0, FACTORS[:, 1]
    turns = unbraid.score(
        CODES, {"x": FACTORS[:, 0], "hue": hue}, metrics=["mig", "d_lsbd"], weights=counts, period={"hue": 4},
        orbits=lambda: pytest.fail("objects have no weights"),
    )  # fmt: skip
    assert turns.skipped == {"d_lsbd": "does not support weighted rows"}
    held = Representation(CODES, FACTORS, names=("x", "y"), weights=counts)
    with pytest.raises(ValueError, match="a: a ranking does not support weighted rows"):
        unbraid.rank({"a": held, "b": Representation(CODES, FACTORS)})
    with pytest.raises(ValueError, match="figures do not support weighted rows"):
        open_source(held)
    plain, other = Representation(CODES, FACTORS, names=("x", "y")), replace(held, weights=counts[::-1])
    with pytest.raises(ValueError, match="b has no weights of rows, which a has; give both, or neither"):
        unbraid.compare({"a": held, "b": plain}, metrics="mig")
    with pytest.raises(ValueError, match="the weights of rows of b are not those of a, though the rows are"):
        unbraid.compare({"a": held, "b": other}, metrics="mig")
    for name, codes in (("a", CODES), ("b", CODES[:, ::-1] + FACTORS[:, :1])):
        Representation(codes, np.column_stack([FACTORS, counts]).astype(float), names=("x", "y", "n")).save(
            tmp_path / f"{name}.npz"
        )
    files = [str(tmp_path / "a.npz"), str(tmp_path / "b.npz"), "--metrics", "mig", "--weights"]
    shown = CliRunner().invoke(app, ["compare", *files, "n", "--resamples", "5"])
    first = mig(CODES, FACTORS, weights=counts).score
    assert f"{first:.3f}" in shown.stdout
    assert f"{mig(CODES, FACTORS).score:.3f}" != f"{first:.3f}"
    assert f"{first:.3f}" in CliRunner().invoke(app, ["score", *files, "n"]).stdout
    assert "no column 'm' for --weights; there are x, y, n" in str(CliRunner().invoke(app, ["compare", *files, "m"]))
    wide: Any = sparse.csc_array((400, 2_000_000))
    with pytest.raises(ValueError, match="a full array is needed for weights"):
        unbraid.score(wide, FACTORS, metrics="mig", weights=counts)
