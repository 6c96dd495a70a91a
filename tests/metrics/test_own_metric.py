"""Functions of the user's own, where names of metrics are taken."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import unbraid
from tests.examples import entangled_codes, grid_factors
from unbraid.cli.app import app
from unbraid.files.trust import Trusted, UntrustedCode, trusting
from unbraid.metrics import METRICS, custom_metric
from unbraid.scoring.group_comparison import compare_groups
from unbraid.scoring.result_columns import higher_is_better
from unbraid.studies.expand import metric_names
from unbraid.studies.study_page_columns import columns

FACTORS = np.repeat(grid_factors(2), 3, axis=0)
CODES = entangled_codes(FACTORS)


def distance(codes: Any, factors: Any, power: int = 1) -> float:
    """How far codes lie from factors: 0 is best."""
    width = min(codes.shape[1], factors.shape[1])
    return float((np.abs(codes[:, :width] - factors[:, :width]) ** power).mean())


NEAR = custom_metric(distance, name="near", direction="lower", range=(0, np.inf))  # named as module:NEAR below


def test_a_function_stands_where_a_name_does() -> None:
    card = unbraid.score(CODES, FACTORS, metrics=["mig", distance])
    assert list(card) == ["mig", "distance"]
    assert card["distance"].score == distance(CODES, FACTORS)
    (line,) = [line for line in str(card).splitlines() if line.startswith("distance")]
    assert "higher" in line
    assert unbraid.score(CODES, FACTORS, metrics=distance)["distance"].score == distance(CODES, FACTORS)
    assert unbraid.score(CODES, FACTORS, metrics=METRICS["mig"])["mig"].score == card["mig"].score


def swapped(factors: Any, codes: Any) -> float:
    return distance(codes, factors)


@pytest.mark.parametrize("metric", [swapped, Trusted(f"{__name__}:swapped")])
def test_arguments_the_other_way_round_are_refused(metric: Any) -> None:
    with pytest.raises(ValueError, match=r"swapped' takes \(factors, codes\), and is given codes first"):
        unbraid.score(CODES, FACTORS, metrics=[metric])


def test_lower_is_better_everywhere(tmp_path: Path) -> None:
    """Codes that are the factors are nearest to them: by the null, the winner of a comparison, file and page."""
    nearest = custom_metric(distance, direction="lower", range=(0, np.inf))
    exact = unbraid.Representation(FACTORS.astype(float), FACTORS)
    card = unbraid.score(exact, metrics=[nearest], null=19, seed=1)
    null = card.scored["distance"].null
    assert null is not None
    assert null.p == pytest.approx(1 / 20)  # none of 19 shuffles lies as near; were higher better, p were 1
    noisy = unbraid.Representation(FACTORS + np.random.default_rng(0).normal(0, 0.3, FACTORS.shape), FACTORS)
    compared = unbraid.compare({"exact": exact, "noisy": noisy}, metrics=[nearest])
    assert [each.better for each in compared.differences] == ["exact"]
    assert compared.table()[1][0][0] == "distance ↓"
    card.save(tmp_path / "scores.json")
    again = unbraid.ScoreCard.load(tmp_path / "scores.json")
    assert not again.scored["distance"].metric.higher_is_better
    card.save(tmp_path / "scores.html")


def test_a_partial_is_called_as_its_function_and_a_lambda_wants_a_name() -> None:
    squared = partial(distance, power=2)
    assert unbraid.score(CODES, FACTORS, metrics=[squared])["distance"].score == squared(CODES, FACTORS)
    with pytest.raises(ValueError, match=r"'<lambda>' is no name for a metric: give one"):
        unbraid.score(CODES, FACTORS, metrics=[lambda codes, factors: 1.0])  # noqa: ARG005
    named = custom_metric(lambda codes, factors: len(codes), name="rows")  # noqa: ARG005
    assert unbraid.score(CODES, FACTORS, metrics=["mig", named])["rows"].score == len(CODES)


@pytest.mark.parametrize(
    ("metrics", "said"),
    [
        ([distance, partial(distance, power=2)], "two metrics are called 'distance'"),
        ([custom_metric(distance, name="mig")], "'mig' is a metric of unbraid"),
        ([custom_metric(distance, name="udr")], "'udr' is a metric of unbraid"),
    ],
)
def test_no_two_metrics_have_one_name(metrics: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        unbraid.score(CODES, FACTORS, metrics=metrics)


def test_what_is_no_metric_is_refused() -> None:
    for given, said in (
        ({"direction": "down"}, "direction must be"),
        ({"range": (1, 0)}, "range must be"),
        ({"range": None}, "range must be"),
        ({"range": (0, 1, 2)}, "range must be"),
    ):
        with pytest.raises(ValueError, match=said):
            custom_metric(distance, **given)  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError, match="a metric of your own is a function of codes and factors; got int"):
        unbraid.score(CODES, FACTORS, metrics=["mig", 3])  # pyright: ignore[reportArgumentType]


def test_a_row_is_named_by_where_it_stands() -> None:
    name = f"{__name__}:NEAR"
    card = unbraid.score(CODES, FACTORS, metrics=[name])
    assert not card.scored[name].metric.higher_is_better
    assert card[name].score == distance(CODES, FACTORS)
    with pytest.raises(ValueError, match="two metrics are called 'functools:partial'"):
        unbraid.stress(partial(distance, power=2), partial(distance, power=3), claims="modularity")
    found = unbraid.stress(NEAR, claims="modularity")
    assert found[0].metric == "near"


STUDY = """
name: own
dataset: {name: square, positions: 4, shrink: 8}
families: [{name: pca, latents: 2}, {name: beta_vae, beta: 1, network: dense, latents: 2}]
seeds: 2
steps: 2
batch_size: 8
precision: float32
device: cpu
"""
LOSS = f"{__name__}:distance(direction=lower)"


def test_a_study_knows_of_which_lower_is_better(tmp_path: Path) -> None:
    """Its tables go by the names of columns, and would call the worst run the best."""
    short, called = tmp_path / "short.yaml", tmp_path / "called.yaml"
    short.write_text(f"{STUDY}metrics: [mig, {{name: '{__name__}:distance', direction: lower}}]\n")
    called.write_text(f"{STUDY}metrics: [mig, '{__name__}:distance(direction = lower)']\n")
    assert metric_names(unbraid.Study.load(called).config) == ("mig", LOSS)
    study = unbraid.Study.load(short, out=tmp_path / "study")
    study.run(processes=0)
    folder = tmp_path / "study"
    frame, column = unbraid.Study.load(folder).results(), f"{LOSS}.score"
    assert frame[column].notna().all()
    assert higher_is_better(column) is False
    assert [each["higher"] for each in columns(frame) if each["id"] == column] == [False]
    frame.loc[:, column] = [1.0, 1.1, 2.0, 2.1]
    found = compare_groups(pd.concat([frame] * 3), "family", [column])
    assert [each.better for each in found.shifts] == [frame["family"][0]]
    assert found.table()[1][0][0] == f"{column} ↓"
    saved = unbraid.ScoreCard.load(study.runs()[0].path / "scores.json")
    assert not saved.scored[LOSS].metric.higher_is_better
    code = [str(folder), "--trust-code", f"{__name__}:distance"]
    again = CliRunner().invoke(app, ["compare", *code, "--columns", column, "--json", "-"])
    assert again.exit_code == 0, again.output
    unbraid.Study.load(folder, trust=[f"{__name__}:distance"]).run(retry="failed", processes=0)
    with pytest.raises(UntrustedCode, match="would execute it"):
        unbraid.Study.load(folder).run(processes=0)


@pytest.mark.parametrize(
    ("metric", "said"),
    [
        (f"'{__name__}:NEAR'", f"metrics: of {__name__}:NEAR lower is better; write {__name__}:NEAR(direction=lower)"),
        (f"'{__name__}:distance(power=2)'", "a function of your own takes direction=lower or direction=higher"),
        (f"{{name: '{__name__}:distance', direction: down}}", f"the direction of {__name__}:distance is higher or"),
        ("{name: mig, direction: lower}", "metrics[0]: which way is better of mig is known"),
        ("{metric: mig}", "metrics[0]: write a name, or {name: my_lab.scores:loss, direction: lower}"),
    ],
)
def test_a_study_refuses_a_direction_that_it_cannot_keep(metric: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(f"{STUDY}metrics: [{metric}]\n")
    told = CliRunner().invoke(app, ["study", "run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "study")])
    assert said in str(told.exception)
    assert not (tmp_path / "study").exists()


def test_the_name_of_a_function_says_its_direction(tmp_path: Path) -> None:
    card = unbraid.score(CODES, FACTORS, metrics=[f"{__name__}:distance( direction='lower')"])
    assert {name: each.metric.higher_is_better for name, each in card.scored.items()} == {LOSS: False}
    unbraid.Representation(CODES, FACTORS).save(tmp_path / "codes.npz")
    told = CliRunner().invoke(app, ["score", str(tmp_path / "codes.npz"), "--metrics", f"mig,{LOSS}"])
    assert (told.exit_code, "lower" in told.output) == (0, True), told.output


@pytest.mark.parametrize("path", ["images (1)", "data/a:b(2)", "/data/images(direction=lower)"])
def test_trust_in_one_path_is_none_in_another_with_other_brackets(path: str) -> None:
    assert not isinstance(trusting(path, [path.partition("(")[0], f"{path}(3)"]), Trusted)
    assert isinstance(trusting(path, [path]), Trusted)
