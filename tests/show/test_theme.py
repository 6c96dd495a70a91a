import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from tests.examples import SPACE, entangled_codes, grid_factors
from unbraid.metrics import mig
from unbraid.show import plot_factor_code, plot_hinton, plot_kl, plot_latents, save_figure, set_theme
from unbraid.show.style import DIVERGING, GRID, INK, MUTED, PALETTE
from unbraid.show.theme import DARK, DARK_DIVERGING, DARK_PALETTE, PAGE

FACTORS = grid_factors(3)
CODES = entangled_codes(FACTORS)


MAPPED = ("ordinal", "categorical", "ordinal")
FIGURES: dict[str, Callable[[], Axes]] = {
    "hinton": lambda: plot_hinton(mig(CODES, FACTORS), greyed=[0], alignment=[2, 1, 0]),
    "kl": lambda: plot_kl([2.0, 0.001, 0.5]),
    "strips": lambda: plot_factor_code(CODES[:, 2], FACTORS[:, 0], kind="categorical"),
    "lines": lambda: plot_latents(CODES, FACTORS, kinds=SPACE.kinds)[0][0],
    "maps": lambda: plot_latents(CODES, FACTORS, kinds=MAPPED, factor_names=("x_x", "size", "x_y"))[0][0],
}


def figure(name: str) -> Figure:
    return FIGURES[name]().figure  # pyright: ignore[reportReturnType]


def colours(artist: Artist) -> set[str]:
    """Every colour of one artist, as matplotlib would draw it."""
    found = []
    for name in ("get_color", "get_facecolor", "get_edgecolor", "get_markerfacecolor", "get_markeredgecolor"):
        value = getattr(artist, name, lambda: None)()
        if value is not None and not (isinstance(value, str) and value in {"none", "auto"}):
            found += [value] if isinstance(value, str) else list(np.atleast_2d(value))
    return {to_hex(each[:3] if not isinstance(each, str) else each) for each in found}


def luminance(colour: str) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
    return float(np.dot(linear, (0.2126, 0.7152, 0.0722)))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("name", FIGURES)
def test_nothing_of_the_light_page_is_left_on_a_dark_one(name: str) -> None:
    dark = set_theme(figure(name), "dark")
    left = {colour for artist in dark.findobj() for colour in colours(artist)} & set(DARK)
    assert not left
    assert to_hex(dark.get_facecolor()) == PAGE["dark"]
    assert dark.patch.get_alpha() == 1.0


def test_maps_change_their_colours_too_and_keep_their_numbers() -> None:
    light, dark = figure("maps"), set_theme(figure("maps"), "dark")
    before, after = (each.axes[0].images[0] for each in (light, dark))
    assert (before.get_cmap().name, after.get_cmap().name) == (DIVERGING.name, DARK_DIVERGING.name)
    np.testing.assert_array_equal(before.get_array(), after.get_array())


@pytest.mark.parametrize(("light", "least"), [(INK, 7.0), (MUTED, 4.5), *((colour, 3.0) for colour in PALETTE)])
def test_text_and_marks_can_be_read_on_a_dark_page(light: str, least: float) -> None:
    assert contrast(DARK[light], PAGE["dark"]) >= least
    assert contrast(DARK[GRID], PAGE["dark"]) < 2  # stays in the background


# Viénot, Brettel and Mollon 1999: linear RGB as seen without long-wave (protan) or medium-wave (deutan) cones.
SEEN = {
    "normal": np.eye(3),
    "protan": np.array([[0.11238, 0.88762, 0.0], [0.11238, 0.88762, 0.0], [0.00401, -0.00401, 1.0]]),
    "deutan": np.array([[0.29275, 0.70725, 0.0], [0.29275, 0.70725, 0.0], [-0.02234, 0.02234, 1.0]]),
}


@pytest.mark.parametrize("vision", SEEN)
@pytest.mark.parametrize("palette", [PALETTE, DARK_PALETTE], ids=["light", "dark"])
def test_any_two_colours_of_a_palette_are_told_apart(palette: tuple[str, ...], vision: str) -> None:
    linear = np.array(
        [[c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(p)] for p in palette]
    )
    seen = np.clip(linear @ SEEN[vision].T, 0, 1)
    # Oklab, where distances are about as far as they look; 0.02 is the least that is noticed side by side.
    lms = np.cbrt(seen @ np.array([[0.4122, 0.5363, 0.0514], [0.2119, 0.6807, 0.1074], [0.0883, 0.2817, 0.63]]).T)
    lab = lms @ np.array([[0.2105, 0.7936, -0.0041], [1.978, -2.4286, 0.4506], [0.0259, 0.7828, -0.8087]]).T
    apart = np.linalg.norm(lab[:, None] - lab[None], axis=-1)[np.triu_indices(len(palette), 1)]
    assert apart.min() > 0.05


def test_pdf_embeds_its_fonts_as_truetype_and_svg_has_outlines(tmp_path: Path) -> None:
    for suffix in (".pdf", ".svg"):
        save_figure(figure("kl"), tmp_path / f"kl{suffix}")
    pdf = (tmp_path / "kl.pdf").read_bytes()
    assert b"/FontFile2" in pdf  # a TrueType program inside the file
    assert b"/Type3" not in pdf
    svg = (tmp_path / "kl.svg").read_text(encoding="utf-8")
    assert "<text" not in svg
    assert "font-family" not in svg
    assert len(re.findall("<path", svg)) > 20


@pytest.mark.parametrize("suffix", [".pdf", ".svg"])
def test_the_same_figure_is_the_same_file(tmp_path: Path, suffix: str) -> None:
    for number in range(2):
        save_figure(figure("kl"), tmp_path / f"{number}{suffix}", theme="dark")
    first, second = ((tmp_path / f"{number}{suffix}").read_bytes() for number in range(2))
    assert first == second
