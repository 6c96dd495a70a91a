"""Rows that stand for several."""

import inspect
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import unbraid
from unbraid import Representation
from unbraid.cli.app import app
from unbraid.metrics import METRICS, mig

RNG = np.random.default_rng(0)
FACTORS = np.stack([RNG.integers(0, size, 400) for size in (3, 4)], axis=1)
CODES = np.hstack([FACTORS[:, :1] + 0.3 * RNG.standard_normal((400, 1)), RNG.standard_normal((400, 3))])


def test_whole_weights_score_as_repeated_rows_do_and_ones_as_none() -> None:
    draw = np.random.default_rng(5)
    factors = np.stack([draw.integers(0, 3, 60), draw.integers(0, 2, 60), draw.random(60)], axis=1)
    codes = np.hstack([factors + 0.3 * draw.standard_normal((60, 3)), np.rint(2 * draw.random((60, 2)))])
    counts = draw.integers(0, 4, 60)
    repeated = np.repeat(np.arange(60), counts)
    names = [name for name, row in METRICS.items() if "weights" in inspect.signature(row.function).parameters]
    assert set(names) == {"mig", "med", "modularity", "factor_leakage", "jemmig", "dcimig"}
    for name in names:
        metric, headline = METRICS[name].function, METRICS[name].headline
        for binning in ("width", "mass"):
            weighted = metric(codes, factors, weights=counts, binning=binning)
            plain = metric(codes[repeated], factors[repeated], binning=binning)
            assert getattr(weighted, headline) == pytest.approx(getattr(plain, headline), abs=1e-12), (name, binning)
            assert weighted.mutual_information == pytest.approx(plain.mutual_information, abs=1e-12)
            ones = metric(codes, factors, weights=np.ones(60), binning=binning)
            assert getattr(ones, headline) == getattr(metric(codes, factors, binning=binning), headline)
        halves = metric(codes, factors, weights=counts / 1.7)
        assert np.isfinite(getattr(halves, headline))


def test_weights_go_with_their_rows_and_metrics_without_them_say_so(tmp_path: Path) -> None:
    counts = np.arange(400) % 3
    labels = {"x": [None, *FACTORS[1:, 0].tolist()], "y": FACTORS[:, 1].tolist()}
    card = unbraid.score(CODES, labels, metrics=["mig", "snc"], weights=counts, kinds={"x": "ordinal"}, null=2)
    repeated = np.repeat(np.arange(1, 400), counts[1:])
    assert card["mig"].score == pytest.approx(mig(CODES[repeated], FACTORS[repeated]).score)
    assert card.skipped == {"snc": "takes no weights of rows"}
    assert f"weighted: 399 rows stand for {len(repeated)}" in card.notes
    assert card.scored["mig"].null is not None
    path = tmp_path / "labels.csv"
    rows = [",".join(map(str, row)) for row in np.column_stack([FACTORS, counts])]
    path.write_text("x,y,n\n" + "\n".join(rows) + "\n")
    np.save(tmp_path / "codes.npy", CODES)
    given = ["score", str(tmp_path / "codes.npy"), "--labels", str(path), "--metrics", "mig"]
    shown = CliRunner().invoke(app, [*given, "--weights", "n"]).stdout
    repeated = np.repeat(np.arange(400), counts)
    assert f"{mig(CODES[repeated], FACTORS[repeated]).score:.3f}" in shown
    assert "weighted: 400 rows stand for" in shown
    assert "no column 'm' for --weights; there are x, y, n" in str(CliRunner().invoke(app, [*given, "--weights", "m"]))
    for wrong, message in (
        (counts[:-1], r"weights must be one number per row, \(400,\); got shape \(399,\)"),
        (-counts, "weights must be finite and not negative; row 1 is -1"),
        (np.full(400, np.nan), "weights must be finite and not negative; row 0 is nan"),
        (np.full(400, 1 / 400), "weights count rows, and must add up to two at least; they add up to 1"),
    ):
        with pytest.raises(ValueError, match=message):
            unbraid.score(CODES, FACTORS, metrics="mig", weights=wrong)
    with pytest.raises(ValueError, match="a file holds no weights"):
        Representation(CODES, FACTORS, weights=counts).save(tmp_path / "a.npz")
