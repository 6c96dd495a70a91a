"""Models side by side, on the same images or on others."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import t
from typer.testing import CliRunner

import unbraid
from tests.cli.test_cli import unbraid_cli  # noqa: F401
from unbraid import Representation
from unbraid.cli.app import app
from unbraid.metrics import irs, mig
from unbraid.metrics.resampling import part_of_rows
from unbraid.tables import comma_separated, latex, markdown
from unbraid.types import FloatArray

RNG = np.random.default_rng(0)
FACTORS = np.stack([RNG.integers(0, size, 400) for size in (3, 4)], axis=1)
HARD = RNG.standard_normal((400, 2))  # what makes an image hard for every model


def model(noise: float, seed: int, n_samples: int = 400) -> Representation:
    own = np.random.default_rng(seed).standard_normal((n_samples, 2))
    codes: FloatArray = FACTORS[:n_samples] + noise * (0.98 * HARD[:n_samples] + 0.2 * own)
    return Representation(codes, FACTORS[:n_samples], names=("x", "y"))


GOOD, TWIN, BAD = model(0.3, 1), model(0.3, 2), model(0.9, 3)


def test_a_difference_is_that_of_a_plain_loop_over_the_same_halves() -> None:
    found = unbraid.compare({"a": GOOD, "b": BAD}, metrics="mig", confidence=0.9, resamples=20, seed=3)
    (own,) = found.differences
    rows = [part_of_rows(400, 2, 3, np.random.default_rng([3, 2, done])) for done in range(20)]
    first, second = (np.array([mig(each.codes[k], FACTORS[k]).score for k in rows]) for each in (GOOD, BAD))
    apart = mig(GOOD.codes, FACTORS).score - mig(BAD.codes, FACTORS).score
    deviation = (first - second).std(ddof=1)
    assert own.difference == pytest.approx(apart)
    assert (own.low, own.high) == pytest.approx((apart - 1.729133 * deviation, apart + 1.729133 * deviation))
    assert own.p == pytest.approx(2 * t.sf(apart / deviation, 19))
    assert (found.paired, own.better, own.p_holm) == (True, "a", own.p)
    apart_too = unbraid.compare(
        {"a": GOOD, "b": BAD}, metrics="mig", confidence=0.9, resamples=20, seed=3, paired=False
    )
    variances = np.array([first.var(ddof=1), second.var(ddof=1)])
    freedom = 19 * variances.sum() ** 2 / (variances**2).sum()
    half = t.ppf(0.95, freedom) * np.sqrt(variances.sum())
    assert apart_too.differences[0].high == pytest.approx(apart + half)


def test_a_difference_has_as_few_degrees_of_freedom_as_its_intervals() -> None:
    (own,) = unbraid.compare({"a": GOOD, "b": BAD}, metrics="irs", resamples=20).differences
    rows = [part_of_rows(400, 5, 0, np.random.default_rng([0, 5, done])) for done in range(20)]
    first, second = (np.array([irs(each.codes[k], FACTORS[k]).score for k in rows]) for each in (GOOD, BAD))
    half = 3.182446 * 2 * (first - second).std(ddof=1)  # t of 3 degrees of freedom at .975
    assert own.high - own.difference == pytest.approx(half)
    assert own.p == pytest.approx(2 * t.sf(abs(own.difference) / (half / 3.182446), 3))


def test_what_is_hard_for_all_models_cancels_where_rows_are_paired() -> None:
    paired, unpaired = (
        unbraid.compare({"a": GOOD, "b": TWIN}, metrics="r2", resamples=30, paired=each).differences[0]
        for each in (True, False)
    )
    assert paired.high - paired.low < 0.5 * (unpaired.high - unpaired.low)
    assert paired.better == unpaired.better == ""


def test_p_values_are_corrected_over_all_comparisons_and_alike_models_are_no_better() -> None:
    found = unbraid.compare({"a": GOOD, "b": GOOD, "c": BAD}, metrics=["mig", "snc", "irs"], resamples=20)
    assert [(each.metric, each.first, each.second) for each in found.differences[:3]] == [
        ("mig", "a", "b"), ("mig", "a", "c"), ("mig", "b", "c"),
    ]  # fmt: skip
    same = found.differences[0]
    assert (same.difference, same.low, same.high, same.p, same.p_holm, same.better) == (0, 0, 0, 1, 1, "")
    least = min(found.differences, key=lambda each: each.p)
    assert least.p_holm == pytest.approx(min(1, 9 * least.p))
    assert found.differences[1].better == "a"


def test_lower_is_better_of_errors() -> None:
    found = unbraid.compare({"good": GOOD, "bad": BAD}, metrics=["factor_leakage"], resamples=20)
    head, ((name, good, bad),) = found.table()
    assert head == ["metric", "good", "bad"]
    assert name == "factor_leakage ↓"
    assert found.differences[0].difference < 0
    assert found.differences[0].better == "good"
    assert good.startswith("**")
    assert not bad.startswith("**")


def test_rows_in_another_order_are_matched_by_their_factors_where_no_two_are_alike(tmp_path: Path) -> None:
    factors = np.random.default_rng(1).permutation(100)[:, None]
    codes = factors + 5 * np.random.default_rng(2).standard_normal((100, 1))
    other = np.random.default_rng(3).permutation(100)
    straight = Representation(codes, factors, kinds=("continuous",))
    turned = Representation(codes[other], factors[other], kinds=("continuous",))
    found = unbraid.compare({"a": straight, "b": turned}, metrics="r2", resamples=5)
    assert found.paired
    assert found.differences[0].difference == 0
    with pytest.raises(ValueError, match="the rows of b are not those of a: their factors do not match"):
        unbraid.compare({"a": GOOD, "b": GOOD.keep_rows(np.arange(400)[::-1])}, metrics="mig", paired=True)
    loose = unbraid.compare({"a": GOOD, "b": model(0.3, 2, 300)}, metrics="mig", resamples=5)
    assert not loose.paired
    assert loose.notes == ("unpaired: the rows of b are not those of a: their factors do not match",)
    assert "300 or 400 rows, unpaired" in loose.footnote
    for name, each in (("a.npz", GOOD), ("b.npz", BAD)):
        each.save(tmp_path / name)
    by_path = unbraid.compare([tmp_path / "a.npz", tmp_path / "b.npz"], metrics="mig", resamples=5)
    assert list(by_path.cards) == [str(tmp_path / "a.npz"), str(tmp_path / "b.npz")]


def test_what_has_no_interval_is_not_compared_and_it_is_said() -> None:
    grid = np.stack(np.meshgrid(np.arange(8), np.arange(8), indexing="ij"), axis=-1).reshape(-1, 2)
    turns = 2 * np.pi * grid / 8
    cycle = Representation(np.hstack([np.cos(turns), np.sin(turns)]), grid, kinds=("cyclic", "cyclic"))
    found = unbraid.compare({"a": cycle, "b": cycle}, metrics=["mig", "d_lsbd"], resamples=4)
    assert {each.metric for each in found.differences} == {"mig"}
    assert found.notes == ("not compared, since not every model has an interval: d_lsbd",)
    with pytest.raises(
        ValueError, match="nothing to compare: not compared, since not every model has an interval: d_lsbd"
    ):
        unbraid.compare({"a": cycle, "b": cycle}, metrics="d_lsbd", resamples=4)


@pytest.mark.parametrize(
    ("given", "arguments", "message"),
    [
        ({"a": GOOD}, {}, "give two or more models to compare; got 1"),
        ({"a": GOOD, "b": GOOD.keep_factors(["y"])}, {}, r"the factors of b \(y\) are not those of a \(x, y\)"),
        ({"a": Representation(GOOD.codes), "b": Representation(BAD.codes)}, {}, "a has no factors to be measured"),
        ({"a": GOOD, "b": model(0.3, 1, 39)}, {}, "b: intervals need 40 rows or more; there are 39"),
        ({"a": GOOD, "b": BAD}, {"confidence": 1}, "confidence must be a finite number, above 0 and below 1; got 1"),
        ({"a": GOOD, "b": BAD}, {"resamples": 1}, "resamples must be a whole number, 2 or more; got 1"),
        ({"a": GOOD, "b": BAD}, {"metrics": "migg"}, "unknown metric 'migg'"),
    ],
)
def test_what_cannot_be_compared_is_one_line(given: dict, arguments: dict, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        unbraid.compare(given, **{"metrics": "mig", **arguments})


def test_the_command_prints_and_writes_everything(tmp_path: Path) -> None:
    for name, each in (("a_1", GOOD), ("b", BAD)):
        each.save(tmp_path / f"{name}.npz")
    paths = [str(tmp_path / "a_1.npz"), str(tmp_path / "b.npz")]
    outs = {suffix: tmp_path / f"out.{suffix}" for suffix in ("json", "html", "tex", "md", "csv")}
    named = {"json": "--json", "html": "--html", "tex": "--latex", "md": "--markdown", "csv": "--csv"}
    options = [each for suffix, path in outs.items() for each in (named[suffix], path)]
    shown = CliRunner().invoke(
        app, ["compare", *paths, "--metrics", "mig,snc", "--resamples", "9", *map(str, options)], terminal_width=160
    )
    assert shown.exit_code == 0
    assert "400 rows, paired" in shown.stdout
    assert "**" not in shown.stdout
    held = json.loads(outs["json"].read_text())
    assert [each["better"] for each in held["differences"]] == ["a_1", "a_1"]
    assert held["models"]["b"]["metrics"]["mig"]["intervals"]["times"] == 9
    assert held["paired"] is True
    assert r"\textbf{" in outs["tex"].read_text()
    assert r"\footnotesize 400 rows, paired; $\pm$ half of the 95 \% interval" in outs["tex"].read_text()
    assert r" a\_1 " in outs["tex"].read_text()
    assert "| **" in outs["md"].read_text()
    assert "**" not in outs["csv"].read_text()
    page = outs["html"].read_text()
    assert page.count('class="forest decided"') == 2
    assert f"<b>{held['models']['a_1']['metrics']['mig']['values']['score']:.3f} ± " in page
    (low, high), end = (held["differences"][0][each] for each in ("low", "high")), 1.08 * held["differences"][0]["high"]
    assert f'style="left:{50 + 50 * low / end:.4g}' in page
    assert f"{low:+.3f} to {high:+.3f}" in page
    frame = unbraid.compare(paths, metrics="mig", resamples=9).to_frame()
    assert frame[["metric", "better"]].to_numpy().tolist() == [["mig", paths[0]]]


def test_bold_cells_and_a_foot_in_every_format() -> None:
    head, rows = ["m", "a"], [["x_1", "**0.5 ± 0.1**"], ["y", "**"]]
    assert r"x\_1 & \textbf{0.5 $\pm$ 0.1} \\" in latex(head, rows)
    assert r"\multicolumn{2}{l}{\footnotesize 5 \% \& more} \\" in latex(head, rows, "5 % & more")
    assert "multicolumn" not in latex(head, rows)
    assert markdown(head, rows, "foot").endswith("| y | ** |\n\nfoot\n")
    assert comma_separated(head, rows) == "m,a\nx_1,0.5 ± 0.1\ny,**\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "{a}"], "give two or more models to compare; got 1"),
        (["compare", "{a}", "absent.npz"], "absent.npz: no such file"),
        (["compare", "{a}", "{b}", "--confidence", "0"], "confidence must be a finite number, above 0 and below 1"),
        (["compare", "{a}", "{b}", "--resamples", "0"], "resamples must be a whole number, 2 or more; got 0"),
        (["compare", "{a}", "{b}", "--paired"], "their factors do not match"),
    ],
)
def test_bad_usage_is_one_line_and_exit_2(
    unbraid_cli,  # noqa: F811
    tmp_path: Path,
    arguments: list[str],
    message: str,
) -> None:
    GOOD.save(tmp_path / "a.npz")
    model(0.3, 2, 300).save(tmp_path / "b.npz")
    code, printed, error = unbraid_cli(*(each.format(a=tmp_path / "a.npz", b=tmp_path / "b.npz") for each in arguments))
    assert (code, printed) == (2, "")
    assert message in error
    assert error.count("\n") == 1
