"""Metrics with arguments: a name of their own, the number of the function, and no mixing."""

import inspect
import json
from pathlib import Path

import numpy as np
import pytest
from pydantic import ValidationError

from tests.studies.study_examples import SMALL, written
from unbraid import Representation, Study, score
from unbraid.metrics import METRICS, mig, modularity
from unbraid.metrics._shared.metric_arguments import arguments_of, choosable, find_metric, full_name
from unbraid.scoring.result_columns import higher_is_better

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 4, (300, 3))
CODES = FACTORS @ RNG.standard_normal((3, 3)) + 0.3 * RNG.standard_normal((300, 3))


def test_every_argument_of_every_metric_can_be_checked_and_its_default_is_no_name() -> None:
    for name, row in METRICS.items():
        assert full_name(f"{name}()") == name
        for argument in choosable(row):
            assert (
                full_name(f"{name}({argument}={inspect.signature(row.function).parameters[argument].default})") == name
            )
    assert {name for name, row in METRICS.items() if "bins" in choosable(row)} >= {"mig", "med", "snc", "modularity"}
    assert "expected" not in choosable(METRICS["tmex"])  # an array


def test_a_name_is_one_whatever_the_order_and_the_spaces() -> None:
    for name in ("mig(binning=mass,bins=10)", "mig( bins = 10, binning='mass')", "mig(bins=10, binning=mass)"):
        assert full_name(name) == "mig(bins=10, binning=mass)"
    assert dict(arguments_of("mig(bins=10, binning=mass)")) == {"bins": 10, "binning": "mass"}
    assert arguments_of("mig") == {}
    for name in ("nothing(bins=3)", "mig(bin=3)", "mig(bins=3", "a.b:mig(bins=3)"):
        assert find_metric(name) is None


def test_the_number_is_that_of_the_function_beside_that_of_the_defaults() -> None:
    names = ["mig(bins=4)", "mig", "mig(bins=4, binning=mass)", "mig(bins=20)", "modularity(bins=7)"]
    for ordered in (names, names[::-1]):
        card = score(CODES, FACTORS, metrics=ordered)
        assert sorted(card) == sorted({full_name(name) for name in names})
        assert card["mig"].score == mig(CODES, FACTORS).score
        assert card["mig(bins=4)"].score == mig(CODES, FACTORS, bins=4).score != card["mig"].score
        assert card["mig(bins=4, binning=mass)"].score == mig(CODES, FACTORS, bins=4, binning="mass").score
        assert card["modularity(bins=7)"].score == modularity(CODES, FACTORS, bins=7).score


def test_the_range_is_that_of_the_arguments() -> None:
    row = find_metric("d_lsbd(norm=axes, max_frequency=2)")
    assert row is not None
    assert row.range == (0.0, 2.0)  # each of two axes has variance 1
    grid = np.stack(np.unravel_index(np.arange(25), (5, 5)), 1)
    card = score(RNG.standard_normal((25, 4)), grid, kinds=["cyclic"] * 2, metrics=["d_lsbd", "d_lsbd(norm=axes)"])
    assert card["d_lsbd(norm=axes)"].score > 1 > card["d_lsbd"].score
    assert "lower    0 to 2" in str(card)
    assert METRICS["d_lsbd"].range == (0.0, 1.0)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("mig(bin=3)", "mig takes no argument 'bin'; did you mean 'bins'?"),
        ("mig(seed=3)", "mig takes no argument 'seed'"),
        ("mig(bins=2.5)", "bins: input should be a valid integer; got 2.5"),
        ("mig(**{})", "cannot be read"),
        ("mig(bins=open('x'))", "cannot be read"),
        ("mig(bins=" + "(" * 5000 + ")", "cannot be read"),
        ("nothing(bins=3)", "unknown metric 'nothing\\(bins=3\\)'"),
        ("mig(bins=0)", "mig\\(bins=0\\): bins must be a whole number, 1 to 10000"),
        ("mig(bins=3, bins=4)", "bins is given twice"),
        ("beta_vae_score(n_train=1000000000)", "n_train \\* batch_size must be at most"),
    ],
)
def test_what_is_no_such_metric_is_one_line(name: str, said: str) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        score(CODES, FACTORS, metrics=[name])
    assert "\n" not in str(caught.value)


STUDY = SMALL.replace("metrics: [mig, dci_lasso]", 'metrics: [mig, "mig(binning=mass, bins=5)", "mig(bins=20)"]')
COLUMN = "mig(bins=5, binning=mass).score"


def test_a_study_keeps_settings_of_a_metric_apart(tmp_path: Path) -> None:
    text = STUDY.replace("beta: [1, 4]", "beta: 1").replace("seeds: 2", "seeds: 1")
    study = Study.load(written(tmp_path, text), out=tmp_path / "study")
    runs = study.run(processes=0)
    frame = study.results()
    assert {run.state for run in runs} == {"finished"}
    assert {"mig.score", COLUMN} <= {*frame.columns}
    assert "mig(bins=20).score" not in frame.columns
    for run, row in zip(runs, frame.to_dict("records"), strict=True):
        held = Representation.load(run.path / "codes.safetensors")
        assert row["mig.score"] == mig(held.codes, held.factors).score
        assert row[COLUMN] == mig(held.codes, held.factors, bins=5, binning="mass").score
        assert sorted(json.loads(row["computed_with"])) == ["mig", "mig(bins=5, binning=mass)"]
    assert higher_is_better(COLUMN) is True
    # Another setting is another column: what is there stays,.
    (tmp_path / "study.yaml").write_text(text.replace("bins=5", "bins=6"))
    other = Study.load(tmp_path / "study.yaml", out=tmp_path / "study")
    other.run(processes=0)
    assert {"mig.score", COLUMN, COLUMN.replace("5", "6")} == {
        name for name in {*frame.columns, *other.results().columns} if name.startswith("mig") and name.endswith("score")
    }


@pytest.mark.parametrize("name", METRICS)
def test_a_value_that_no_metric_takes_is_refused_before_there_are_codes(name: str) -> None:
    for argument, adapter in choosable(METRICS[name]).items():
        try:
            adapter.validate_python(-1)
        except ValidationError:
            continue  # no number
        with pytest.raises(ValueError, match=rf"^{name}\({argument}=-1\): {argument}.* must be"):
            full_name(f"{name}({argument}=-1)")
