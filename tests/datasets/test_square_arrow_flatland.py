import colorsys
import hashlib

import numpy as np
import pytest
from matplotlib.path import Path as Outline

from unbraid.base.types import UInt8Array
from unbraid.data import walks
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.arrow import Arrow, hue_circle
from unbraid.datasets.flatland import Flatland
from unbraid.datasets.square import Square

BACKGROUND, RED = 22, 199  # grey levels and red channels of the arrow of the paper's figure 3


def every(dataset: FactorDataset) -> UInt8Array:
    return dataset.images(np.arange(len(dataset)))


@pytest.mark.parametrize(
    ("dataset", "digest"),
    [
        (Square(), "2aec46ef64169f6b78a9bddec76aed6cde72d1e771cf892bec9aa5ac1ac9439d"),
        (Square(8, 16), "ff2221f1b295adfb745e267af5e483a8a20fe9323a86ad1851bc3afd5418739f"),
        (Arrow(), "21b9a8a62a1ffd4236ad747fd3f25820232db0a4d8245f64e9293231cda716c2"),
        (Arrow(antialias=False), "946326308172befebeb968913604b72a276dfb30e429065f2fb29dee2132a035"),
        (Arrow(12, 9), "9f84474be2a5f284cf2c38e9969ea99c3aaec7e6c32a6e6781e7290493cea756"),
        (Flatland(), "156c5bc593317017171dc0389fc9d9a8567093d8c0e0b727ae7129c9dffffea8"),
        (Flatland(antialias=True), "b4fe42ae09c6a92d7644cfc697dee51567dec5b6c58b96232d7081b973b650fe"),
        (Flatland(7, 10, 84), "9e513109ee47adcad25134c3cafec6ae9f6a1c99e54b3cac63a173b3363282fd"),
    ],
    ids=str,
)
def test_every_image_is_the_same_everywhere_and_unlike_the_others(dataset: FactorDataset, digest: str) -> None:
    images = every(dataset)
    assert hashlib.sha256(images.tobytes()).hexdigest() == digest
    assert len({image.tobytes() for image in images}) == len(images)


@pytest.mark.parametrize(("side", "positions"), [(16, 64), (8, 16), (63, 4)])
def test_acting_on_the_square_is_rolling_its_pixels(side: int, positions: int) -> None:
    square = Square(side, positions)
    base = np.zeros((64, 64), dtype=np.uint8)
    base[:side, :side] = 255
    for y, x in np.random.default_rng(0).integers(positions, size=(40, 2)):
        image = square.images(square.space.index([[y, x]]))[0, ..., 0]
        assert np.array_equal(image, np.roll(base, (y * 64 // positions, x * 64 // positions), axis=(0, 1)))


def test_a_quarter_turn_of_the_arrow_is_a_quarter_turn_of_the_image() -> None:
    for arrow in (Arrow(), Arrow(antialias=False)):
        turning = arrow.images(np.arange(64))
        for k in range(64):
            assert np.array_equal(np.rot90(turning[k]), turning[(k + 16) % 64])


@pytest.mark.parametrize("samples", [1, 4])
def test_the_arrow_is_its_outline_turned(samples: int) -> None:
    upper = [(24.4, 0), (3.4, 21), (-8.6, 21), (7.4, 5), (-25, 5)]
    outline = upper + [(x, -y) for x, y in reversed(upper)]
    centres = (np.arange(64 * samples) + 0.5) / samples - 32
    right, up = np.meshgrid(centres, -centres)
    points = np.stack([right.ravel(), up.ravel()], axis=1)
    arrow = Arrow(antialias=samples > 1)
    for k in (0, 1, 7, 30, 45):
        angle = 2 * np.pi * k / 64
        turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        hits = Outline(np.array(outline) @ turn).contains_points(points).reshape(64, samples, 64, samples)
        cover = np.floor(255 * hits.mean(axis=(1, 3)) + 0.5)
        red = np.rint(BACKGROUND + (RED - BACKGROUND) * cover / 255)
        assert np.array_equal(arrow.images(np.array([k]))[0, ..., 0], red)


def test_levels_of_the_arrow_are_shares_of_a_turn() -> None:
    assert Arrow(4, 8).space.values == ((0, 0.25, 0.5, 0.75), tuple(k / 8 for k in range(8)))


def test_the_colour_of_the_arrow_goes_once_around_the_circle_of_hues() -> None:
    expected = [[255 * c for c in colorsys.hsv_to_rgb(k / 64, 1, 1)] for k in range(64)]
    assert np.abs(hue_circle(64) - np.array(expected)).max() <= 0.5 + 1e-9
    shown = Arrow().images(64 * np.arange(64))[:, 32, 32]
    published = [[255 * c for c in colorsys.hsv_to_rgb(k / 64, 0.784, 0.78)] for k in range(64)]
    assert np.abs(shown - np.array(published)).max() <= 1


def test_colour_and_rotation_of_the_arrow_do_not_mix() -> None:
    """The cover of each pixel is the same whatever the hue: every image is the background or one colour."""
    arrow = Arrow()
    shares = (arrow.images(np.arange(64))[..., 0].astype(float) - BACKGROUND) / (RED - BACKGROUND)
    colours = arrow.images(64 * np.arange(64))[:, 32, 32].astype(float)
    index = np.random.default_rng(0).integers(4096, size=50)
    hue, rotation = index // 64, index % 64
    expected = BACKGROUND + shares[rotation][..., None] * (colours[hue][:, None, None] - BACKGROUND)
    assert np.abs(arrow.images(index) - expected).max() <= 1


def test_neither_arrow_nor_ball_is_cut_by_the_edge() -> None:
    for dataset in (Arrow(), Flatland(), Flatland(antialias=True), Flatland(20, 6), Flatland(size=84)):
        images, background = every(dataset), BACKGROUND if isinstance(dataset, Arrow) else 0
        assert np.all(images[:, [0, -1]] == background)
        assert np.all(images[:, :, [0, -1]] == background)


@pytest.mark.parametrize(("size", "start"), [(64, 170), (84, 270)])
def test_the_ball_is_where_quessard_has_it(size: int, start: int) -> None:
    """In tenths of a pixel, in whole numbers: centres at 270 + 33 i of the frame of 84, radius 150."""
    flatland = Flatland(size=size)
    for y, x in np.ndindex(10, 10):
        image = flatland.images(flatland.space.index([[y, x]]))[0, ..., 0]
        row, column = np.mgrid[:size, :size] * 10 + 5
        inside = (row - start - 33 * y) ** 2 + (column - start - 33 * x) ** 2 <= 150**2
        assert np.array_equal(image, 255 * inside)


def test_the_agent_walks_flatland_in_a_circle() -> None:
    """Ten equal actions bring the ball home, and each transition moves it along one axis alone."""
    flatland = Flatland()
    before, actions, after = walks(flatland.space, 20, 30).transitions()
    moved = (flatland.space.factors(after) - flatland.space.factors(before)) % 10
    expected = np.array([[1, 0], [9, 0], [0, 1], [0, 9]])
    assert np.array_equal(moved, expected[actions])


def test_a_grey_border_keeps_the_area_of_the_ball() -> None:
    areas = every(Flatland(antialias=True)).sum(axis=(1, 2, 3)) / 255
    assert areas == pytest.approx(np.pi * 15**2, rel=0.003)
