"""Figures for print: their width, their letters, and which of many codes they show."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.text import Text
from PIL import Image

from tests.figures.figure_examples import codes_source, representation
from unbraid import Representation
from unbraid.figures import FIGURES, draw
from unbraid.show import important_first, plot_hinton

WIDE = 60  # codes


def wide(names: tuple[str, ...] = ()) -> Representation:
    """Noise, but for code 41, which is hue, and code 7, which is shape, more weakly."""
    rng = np.random.default_rng(0)
    factors = np.stack([np.repeat([0, 1], 200), np.tile(np.arange(8), 50)], axis=1)
    codes = rng.standard_normal((400, WIDE))
    codes[:, 41] = factors[:, 1] + 0.01 * rng.standard_normal(400)
    codes[:, 7] = 2 * factors[:, 0] + rng.standard_normal(400)
    return Representation(
        codes, factors, log_variances=np.full(codes.shape, -1.0), names=("shape", "hue"),
        kinds=("categorical", "ordinal"), levels=(("heart", "square"), ()), code_names=names,
    )  # fmt: skip


def letters(figure: object) -> set[float]:
    texts = [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]  # pyright: ignore[reportAttributeAccessIssue]
    return {round(text.get_fontsize(), 3) for text in texts}


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("information", None),
        ("kl", 89),
        pytest.param("latents", None, marks=pytest.mark.slow),
        ("circles", None),
        pytest.param("important-codes", 120.5, marks=pytest.mark.slow),
    ],
)
def test_a_figure_is_as_wide_as_asked_with_letters_of_7_to_8_points(
    name: str, width: float | None, tmp_path: Path
) -> None:
    drawn = draw(name, representation(), width=width)
    drawn.save(tmp_path / "f.png")
    with Image.open(tmp_path / "f.png") as image:
        assert image.width / 300 * 25.4 == pytest.approx(width or FIGURES[name].width, abs=0.2)
    assert letters(drawn.figure) <= {7.0, 8.0}
    box = drawn.figure.get_tightbbox()  # nothing is cut
    assert box.width * 25.4 <= (width or FIGURES[name].width)


def test_of_many_codes_those_that_matter_come_first_and_the_rest_is_counted() -> None:
    drawn = draw("information", wide())
    assert drawn.caption == "24 of 60 codes shown, most important first"
    assert drawn.caption in {text.get_text() for text in drawn.figure.findobj(Text)}  # pyright: ignore[reportAttributeAccessIssue]
    rows = [label.get_text() for label in drawn.figure.axes[0].get_yticklabels()]
    assert rows[:2] == ["code 41", "code 7"]
    assert len(rows) == 24
    assert draw("information", representation()).caption == ""


def test_codes_and_factors_are_chosen_by_name_or_number_in_that_order() -> None:
    named = wide(tuple(f"unit {k}" for k in range(WIDE)))
    drawn = draw("information", named, codes=["unit 3", 41], factors=["hue"])
    assert list(drawn.data["code"]) == ["unit 3", "unit 41"]
    assert set(drawn.data["factor"]) == {"hue"}
    assert list(drawn.data["aligned"]) == [False, True]  # the alignment is that of all codes
    assert drawn.caption == "2 of 60 codes shown"
    top = draw("latents", named, top=2)
    assert list(dict.fromkeys(top.data["code"])) == ["unit 41", "unit 7"]
    assert [text.get_text() for text in top.figure.legends[0].get_texts()] == ["shape heart", "shape square"]
    assert list(draw("kl", named, top=3).data["code"])[0].startswith("unit ")
    assert set(draw("important-codes", named, factors=["hue"]).data["code"]) == {"unit 41"}


def test_the_best_codes_of_every_factor_come_in_turn() -> None:
    many = np.array([[0.9, 0.0], [0.89, 0.001], [0.88, 0.0], [0.87, 0.01], [0.0, 0.05], [0.0, 0.02]])
    assert important_first(many).tolist() == [0, 4, 1, 5, 2, 3]
    matrix = np.array([[0.9, 0.0], [0.8, 0.0], [0.0, 0.01], [0.7, 0.0]])  # a small factor has small entries
    assert important_first(matrix).tolist() == [0, 2, 1, 3]
    axes = plot_hinton(matrix, top=2, alignment=[0, 2])
    assert [label.get_text() for label in axes.get_yticklabels()] == ["code 0", "code 2"]
    assert [patch.get_y() for patch in axes.patches] == [-0.5, 0.5]  # pyright: ignore[reportAttributeAccessIssue]


def test_an_angle_of_any_value_has_no_circle_and_the_figure_that_has_it_is_named() -> None:
    angle = np.random.default_rng(0).uniform(0, 6.2, 50)
    held = Representation(np.stack([np.cos(angle), np.sin(angle)], 1), angle[:, None], kinds=("cyclic",), names=("a",))
    with pytest.raises(ValueError, match="angles have no grid; important-codes draws angles of any value"):
        draw("circles", held)
    ticks = [text.get_text() for text in draw("important-codes", held).figure.axes[0].get_xticklabels()]
    assert ticks == ["0", "π", "2π"]


def test_codes_of_a_source_are_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = codes_source(tmp_path)
    assert len(source.representation) > 0
    monkeypatch.setattr(Representation, "load", None)
    assert draw("kl", source, top=2).data["code"] is not None
