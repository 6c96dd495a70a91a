from pathlib import Path

import numpy as np
import pytest
from rich.table import Table

from unbraid import Representation, score
from unbraid.base.printable import printable
from unbraid.base.repr import p_equals, p_text, with_names
from unbraid.cli.show_command import Terminal
from unbraid.data import FactorSpace
from unbraid.figures import draw
from unbraid.metrics import METRICS, mig
from unbraid.metrics.own_metric import custom_metric
from unbraid.scoring.compare import Difference, ModelComparison
from unbraid.studies.rank_models import rank

RNG = np.random.default_rng(0)
CODES, FACTORS = RNG.normal(size=(400, 3)), RNG.integers(0, 4, (400, 2))


def test_results_tell_numbers_and_the_shapes_of_arrays() -> None:
    result = mig(FACTORS, FACTORS)
    assert repr(result).startswith(f"MIG(score={result.score:.4g}, ")
    assert "mutual_information=(2, 2) float64" in repr(result)
    assert "<td>(2, 2) float64</td>" in result._repr_html_()


def test_no_result_dumps_an_array() -> None:
    for name, metric in METRICS.items():
        if not metric.needs:
            assert len(repr(metric.function(CODES, FACTORS))) < 900, name


def test_rankings_and_representations_are_told_in_a_line() -> None:
    assert "codes=(400, 3) float64, factors=(400, 2) int64" in repr(Representation(CODES, FACTORS))
    assert len(repr(rank([CODES, -CODES], similarity="spearman"))) < 600


def test_names_are_no_markup() -> None:
    shown = Representation(CODES, FACTORS, names=("<b>", "size"))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


def test_factors_are_called_by_their_names() -> None:
    names = ("shape", "hue", "factor_2", "2 eyes")
    assert with_names("factor 1: so", names) == "factor hue: so"
    assert with_names("factors column 1 is so", names) == "factor hue is so"
    assert with_names("factors column 1 is so", ()) == "factors column 1 is so"
    assert with_names("factors 0, 3 and 1; code 1", names) == "factors shape, 2 eyes and hue; code 1"
    assert with_names("codes 0 and 1 of factor 0", names, ("V1/7", "MT")) == "codes V1/7 and MT of factor shape"
    assert with_names("factor 2 and factor 7 of 1 factor", names) == "factor 2 and factor 7 of 1 factor"
    assert with_names("code 0: so; codes 0 and 1", names, ("code 0", "code_b")) == "code 0: so; codes 0 and b"
    assert with_names("factor 0: so; code 0", ("code 1", "y"), ("a", "b")) == "factor code 1: so; code a"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a\x1b[31m", r"a\x1b[31m"), ("lone \ud800", r"lone \ud800"), ("nul\x00", r"nul\x00"),
        ("\u202eback", r"\u202eback"),
        ("größe <b>", "größe <b>"), ("so\u00a0wide", "so\u00a0wide"),
    ],
)  # fmt: skip
def test_names_are_text_that_steers_nothing_wherever_they_are_shown(name: str, text: str, tmp_path: Path) -> None:
    assert printable(name) == text
    codes = FACTORS + 0.1 * CODES[:, :2]
    held = Representation(
        codes, FACTORS, names=(name, "b"), kinds=("categorical", "ordinal"), code_names=(name, "v"),
        levels=((name, "y", "z", "w"), ()),
    )  # fmt: skip
    assert (held.names[0], held.code_names[0], held.levels[0][0]) == (text,) * 3
    card = score(held, metrics=["mig"])
    for suffix in ("html", "json"):
        card.save(tmp_path / f"card.{suffix}")
        assert name == text or name not in (tmp_path / f"card.{suffix}").read_text(encoding="utf-8")
    assert FactorSpace((name,), (2,), ("categorical",), (("x", name),)).levels == (("x", text),)


def test_figures_have_such_names_too(tmp_path: Path) -> None:
    names = ("a\x1b[31m", "lone \ud800"), ("nul\x00", "\u202eback <b>")
    held = Representation(FACTORS + 0.1 * CODES[:, :2], FACTORS, names=names[0], code_names=names[1])
    draw("important-codes", held).save(tmp_path / "f.svg")
    assert (tmp_path / "f.svg").read_bytes()


def test_a_pipe_cuts_nothing_and_is_steered_by_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    table = Table("run", "what it says")
    table.add_row("3f6c0f0a8d1e2b47" * 4, "word " * 40 + "\x1b[2J")
    Terminal().print(table, "[rad]\x1b]0;title\x07", markup=False)
    printed = capsys.readouterr().out
    assert "3f6c0f0a8d1e2b47" * 4 in printed
    assert "word " * 40 + r"\x1b[2J" in printed
    assert r"[rad]\x1b]0;title\x07" in printed
    assert "\x1b" not in printed


@pytest.mark.parametrize(
    ("p", "text"),
    [
        (0.0503, "0.0503"), (0.0497, "0.0497"), (0.05, "0.05"), (0.050004, "0.050004"), (0.0512, "0.051"),
        (0.04, "0.04"), (0.5, "0.5"), (1.0, "1"), (1.234e-7, "< .001"), (0.001, "0.001"), (0.0499999999, "0.05"),
    ],
)  # fmt: skip
def test_on_which_side_of_05_a_p_value_lies_can_be_seen(p: float, text: str) -> None:
    assert p_text(p) == text
    assert p_equals(p) == (f"p {text}" if text[0] == "<" else f"p = {text}")


def test_nothing_is_shown_as_minus_nothing() -> None:
    card = score(CODES, FACTORS, metrics=custom_metric(lambda *_: -1e-9, name="tiny"))
    assert "0.000" in str(card)
    assert "-0.000" not in str(card)
    narrow = Difference("mig", "a", "b", -0.0001, -0.0004, 0.3, 0.0503, 0.0503, "")
    text = str(ModelComparison({}, {}, (narrow,), 0.95, True))
    assert "+0.000 (+0.000 to +0.300), p 0.0503" in text
