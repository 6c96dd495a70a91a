"""Blocks of codes and factors on a score card and on the command line."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

import unbraid
from tests.examples import entangled_codes, grid_factors
from unbraid.cli.app import app
from unbraid.metrics import block_mcc, block_r2, mig
from unbraid.scoring.named_blocks import blocks_of

FACTORS = grid_factors(4)
CODES = entangled_codes(FACTORS)
NAMES = ("shape", "size", "hue")
OWN, THEIRS = [[0, 2], [1]], [[1, 2], [0]]


@pytest.mark.parametrize(
    ("code_blocks", "factor_blocks"),
    [
        ("0+2,1", "rest=size+hue,shape"),
        (" 0 + 2 , 1 ", "size+hue, shape"),
        (OWN, THEIRS),
        ([(0, 2), (1,)], {"rest": ["size", "hue"], "shape": ["shape"]}),
    ],
)
def test_blocks_are_scored_beside_columns(code_blocks: Any, factor_blocks: Any, tmp_path: Path) -> None:
    kinds: Any = ("categorical", "ordinal", "cyclic")
    card = unbraid.score(
        CODES, FACTORS, names=NAMES, kinds=kinds, metrics="mig", code_blocks=code_blocks, factor_blocks=factor_blocks,
        seed=3, null=1, confidence=(0.9, 3),
    )  # fmt: skip
    assert list(card) == ["block_r2", "block_mcc", "mig"]
    alone: Any = {"code_blocks": OWN, "factor_blocks": THEIRS, "kinds": kinds, "seed": 3}
    assert card["block_r2"].score == block_r2(CODES, FACTORS, **alone).score
    assert card["block_r2"].leakage == block_r2(CODES, FACTORS, **alone).leakage
    assert card["block_mcc"].score == block_mcc(CODES, FACTORS, **alone).score
    assert card["mig"].score == mig(CODES, FACTORS, kinds=kinds, seed=3).score
    said = next(note for note in card.notes if "read blocks" in note)
    assert "block_r2 and block_mcc read blocks (codes 0+2,1; factors " in said
    assert "all other metrics single columns" in said
    assert card.computed_with["block_r2"]["code_blocks"] == "0+2,1"
    assert "code_blocks" not in card.computed_with["mig"]
    card.save(tmp_path / "scores.json")
    assert str(unbraid.ScoreCard.load(tmp_path / "scores.json")) == str(card)


def test_blocks_know_the_period_of_an_angle() -> None:
    """Of hours of the morning alone, of a period of 24, cosine and sine tell all."""
    hours = np.tile(np.arange(12), 30)
    circle = np.column_stack([np.cos(np.pi * hours / 12), np.sin(np.pi * hours / 12)])
    card = unbraid.score(
        circle, {"hour": hours}, period={"hour": 24}, metrics=["block_r2", "block_mcc"], code_blocks=[[0, 1]]
    )
    assert (card["block_r2"].score, card["block_mcc"].score) == pytest.approx((1.0, 1.0))


def test_where_one_side_has_none_each_column_is_a_block() -> None:
    card = unbraid.score(CODES, FACTORS, metrics="mig", code_blocks="1,0-0,2")
    singles = [[0], [1], [2]]
    assert card["block_r2"].score == block_r2(CODES, FACTORS, code_blocks=[[1], [0], [2]], factor_blocks=singles).score
    card = unbraid.score(CODES, FACTORS, metrics="block_mcc", code_blocks="0-1,2")
    assert card.skipped == {
        "block_r2": "code_blocks and factor_blocks must have the same number of blocks; got 2 and 3"
    }
    assert card["block_mcc"].score > 0


def test_the_command_line_takes_blocks_and_refuses_wrong_ones_in_a_line(tmp_path: Path) -> None:
    path, out = tmp_path / "codes.npz", tmp_path / "scores.json"
    unbraid.Representation(CODES, FACTORS, names=NAMES).save(path)

    def ran(*options: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["score", str(path), "--metrics", "mig", *options])
        return result.exit_code, str(result.exception or result.output)

    assert ran("--code-blocks", "0,1-2", "--factor-blocks", "shape,rest=size+hue", "--json", str(out))[0] == 0
    alone = block_r2(CODES, FACTORS, code_blocks=[[0], [1, 2]], factor_blocks=[[0], [1, 2]])
    assert json.loads(out.read_text())["metrics"]["block_r2"]["values"]["score"] == pytest.approx(alone.score)
    out.unlink()
    for options, said in (
        (("--code-blocks", "0,1,2,3"), "code_blocks[3] names column 3 of codes, and there are columns 0 to 2"),
        (("--code-blocks", "0-1,1+2"), "code_blocks[1] names column 1 of codes, twice"),
        (("--code-blocks", "0-9999999999,1"), "code_blocks has a block of 10000000000 columns; there are 3"),
        (("--factor-blocks", "where=x+size"), "factor_blocks names no factor 'x'; there are shape, size, hue"),
        (("--factor-blocks", "shape,size+shape"), "factor_blocks[1] names column 0 of factors, twice"),
    ):
        code, error = ran(*options, "--json", str(out))
        assert code != 0
        assert error.startswith(f"{path}: "), options
        assert said in error, (options, error)
        assert "\n" not in error
        assert not out.exists()


def test_blocks_of_factors_whose_names_have_commas_are_written_in_double_quotes() -> None:
    names = ("length, cm", "a=b", "hue")
    wanted = unbraid.score(
        CODES, FACTORS, names=names, metrics="block_r2", factor_blocks=[[0, 2], [1]], code_blocks="0,1-2"
    )
    for text in ('"length, cm"+hue,a=b', '"size=length, cm+hue","a=b"', 'size="length, cm"+hue,a=b'):
        card = unbraid.score(CODES, FACTORS, names=names, metrics="block_r2", factor_blocks=text, code_blocks="0,1-2")
        assert card["block_r2"].score == wanted["block_r2"].score
    # What a file of scores keeps can be given again.
    written = blocks_of(unbraid.Representation(CODES, FACTORS, names=names, factor_blocks=[[0, 2], [1]]))
    assert written is not None
    assert written.text_of_factors == '"length, cm+hue",a=b'


def test_blocks_that_are_no_lists_and_metrics_without_blocks_are_refused() -> None:
    for blocks in ([0, 1], ["01"], [[]], {"a": "shape"}):
        with pytest.raises(ValueError, match="a block is a list of columns or names; got"):
            unbraid.score(CODES, FACTORS, metrics="mig", factor_blocks=blocks)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"code_blocks must be a list of blocks, such as \[\[0, 1\], \[2\]\]; got 2"):
        unbraid.score(CODES, FACTORS, metrics="mig", code_blocks=2)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="block_r2 needs blocks of codes and factors: give code_blocks"):
        unbraid.score(CODES, FACTORS, metrics="block_r2")
    with pytest.raises(ValueError, match="blocks need factors"):
        unbraid.score(np.ones((4, 2)), code_blocks="0,1")
