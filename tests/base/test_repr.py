from pathlib import Path

import numpy as np
import pytest
from rich.table import Table

from unbraid import Representation, score
from unbraid.base.printable import printable
from unbraid.base.repr import p_equals, p_text
from unbraid.cli.show_command import Terminal
from unbraid.data import FactorSpace
from unbraid.figures import draw

RNG = np.random.default_rng(0)
CODES, FACTORS = RNG.normal(size=(400, 3)), RNG.integers(0, 4, (400, 2))


def test_names_are_no_markup() -> None:
    shown = Representation(CODES, FACTORS, names=("<b>", "size"))._repr_html_()
    assert "&lt;b&gt;" in shown
    assert "<b>" not in shown


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
