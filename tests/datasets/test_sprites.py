import hashlib
from pathlib import Path

import numpy as np
import pytest
from matplotlib.path import Path as Outline

from unbraid.base.types import BoolArray, IntArray, UInt8Array
from unbraid.datasets import StoredImages, load, sprites
from unbraid.datasets.image_store import content_of, write
from unbraid.datasets.sprites import SPACE, Sprites

OFFICIAL = Path(__file__).parents[1] / "data" / "dsprites_official_12.npz"


def some(n: int, seed: int = 0) -> IntArray:
    return np.random.default_rng(seed).integers(len(SPACE), size=n)


def test_twelve_official_images_are_ours_to_the_pixel() -> None:
    with np.load(OFFICIAL) as official:
        images, values = official["imgs"], official["latents_values"]
    steps = [values[:, 1] - 1, (values[:, 2] - 0.5) * 10, values[:, 3] / (2 * np.pi) * 39, *(values[:, 4:].T * 31)]
    levels = np.rint(np.stack(steps, axis=1)).astype(int)
    wrong = (Sprites().images(SPACE.index(levels))[..., 0] != 255 * images).sum(axis=(1, 2))
    assert images.sum() == 1724
    assert np.bincount(levels[:, 0]).tolist() == [1, 7, 4]
    assert wrong.tolist() == [0] * 12


def test_values_are_those_of_dsprites() -> None:
    assert SPACE.values is not None
    assert len(SPACE) == 737_280
    values = dict(zip(SPACE.names, SPACE.values, strict=True))
    assert values["shape"] == ("square", "ellipse", "heart")
    assert values["scale"] == pytest.approx([0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
    assert values["orientation"][39] == pytest.approx(2 * np.pi)
    assert values["position_x"][31] == 1.0


def inside(points: np.ndarray, shape: int) -> BoolArray:
    """Twin of the inside test: the square and ellipse straight from their equations, the heart by its outline."""
    u, v = points.T
    if shape == 0:
        return (abs(u) <= 9.6) & (abs(v) <= 9.6)
    if shape == 1:
        return u**2 / 12.765**2 + v**2 / 7.205**2 <= 1
    t = np.linspace(0, 2 * np.pi, 2_001)
    y = -1.453 - 0.66176091 * (13 * np.cos(t) - 5 * np.cos(2 * t) - 2 * np.cos(3 * t) - np.cos(4 * t))
    return Outline(np.stack([9.615 * np.sin(t) ** 3, y], axis=1)).contains_points(points)


def twin(index: int, samples: int) -> UInt8Array:
    """One image from the definition, over all pixels, with no window and no rounded table."""
    shape, scale, orientation, x, y = SPACE.factors([index])[0]
    angle, size = 2 * np.pi * orientation / 39, 0.5 + 0.1 * scale
    centres = (np.arange(64 * samples) + 0.5) / samples
    right, down = centres[None, :] - (16 + 32 * x / 31), centres[:, None] - (16 + 32 * y / 31)
    u = (np.cos(angle) * right - np.sin(angle) * down) / size
    v = (np.sin(angle) * right + np.cos(angle) * down) / size
    hits = inside(np.stack([u.ravel(), v.ravel()], axis=1), shape).reshape(64, samples, 64, samples)
    return np.floor(255 * hits.mean(axis=(1, 3)) + 0.5).astype(np.uint8)


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("shape", range(3))
def test_images_equal_those_drawn_from_the_definition(shape: int, antialias: bool) -> None:
    index = shape * len(SPACE) // 3 + some(4 if antialias else 12, seed=shape) % (len(SPACE) // 3)
    images = Sprites(antialias).images(index)
    for position, image in zip(index, images, strict=True):
        assert np.array_equal(image[..., 0], twin(int(position), 4 if antialias else 1))


@pytest.mark.parametrize(
    ("antialias", "digest"),
    [
        (False, "d57bc69ff0406e883b42f756fa9854a3c940201308eb72c6c0bd3ca2e29df706"),
        (True, "255a1105c14e78749152b2cfb5371626862412c932d77aa7f09a63f835da5b97"),
    ],
)
def test_the_bytes_are_the_same_everywhere(antialias: bool, digest: str) -> None:
    assert hashlib.sha256(Sprites(antialias).images(np.arange(0, len(SPACE), 3671)).tobytes()).hexdigest() == digest


def moved_border(index: IntArray, by: float, samples: int = 1) -> UInt8Array:
    images = np.zeros((len(index), 64, 64), dtype=np.uint8)
    sprites._draw(index, 40, samples, by, sprites._COSINES, sprites._SINES, images)
    return images


@pytest.mark.lengthy
@pytest.mark.parametrize("by", [-1e-11, 1e-11])
def test_no_pixel_hangs_on_rounding(by: float) -> None:
    index = some(8_000)
    assert np.array_equal(moved_border(index, by), moved_border(index, 0))


def test_the_table_of_angles_is_the_same_for_any_good_cosine() -> None:
    """Rounding takes away the last bits only where no value lies near the middle between two roundings."""
    angles = 2 * np.pi * np.arange(39) / 39
    for wave, table in ((np.cos, sprites._COSINES), (np.sin, sprites._SINES)):
        for nudge in (-1e-15, 1e-15):
            assert np.array_equal(np.round((wave(angles) + nudge) * 2.0**40) / 2.0**40, table)


def test_orientation_39_is_orientation_0() -> None:
    levels = SPACE.factors(some(3000))
    first, last = levels.copy(), levels.copy()
    first[:, 2], last[:, 2] = 0, 39
    drawn = Sprites()
    assert np.array_equal(drawn.images(SPACE.index(first)), drawn.images(SPACE.index(last)))


def test_the_duplicate_orientation_can_be_left_out() -> None:
    shorter = Sprites(drop_duplicate_orientation=True)
    assert (len(shorter), shorter.space.sizes) == (718_848, (3, 6, 39, 32, 32))
    index = np.random.default_rng(0).integers(len(shorter), size=300)
    same = SPACE.index(shorter.space.factors(index))
    assert np.array_equal(shorter.images(index), Sprites().images(same))


def test_no_sprite_touches_the_edge() -> None:
    levels = SPACE.factors(np.arange(len(SPACE)))
    corners = np.flatnonzero(np.isin(levels[:, 3], [0, 31]) & np.isin(levels[:, 4], [0, 31]))
    images = Sprites(antialias=True).images(corners)
    edges = images[:, [0, -1]].max(), images[:, :, [0, -1]].max()
    assert edges == (0, 0)
    assert images.any(axis=(1, 2, 3)).all()


def test_bigger_scales_are_bigger_and_positions_move_by_32_pixels_in_all() -> None:
    rows = [[2, scale, 0, 0, 0] for scale in range(6)]
    areas = (Sprites().images(SPACE.index(rows)) > 0).sum(axis=(1, 2, 3))
    assert (np.diff(areas) > 0).all()
    corner, opposite = Sprites().images(SPACE.index([[2, 5, 7, 0, 0], [2, 5, 7, 31, 31]]))
    assert np.array_equal(np.roll(corner, (32, 32), axis=(0, 1)), opposite)
    right = Sprites().images(SPACE.index([[2, 5, 7, 31, 0]]))[0]
    assert np.array_equal(np.roll(corner, 32, axis=1), right)


def test_the_cache_holds_the_same_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = SPACE.__class__(SPACE.names, (3, 6, 40, 2, 2), SPACE.kinds)
    monkeypatch.setattr(Sprites, "space", small)
    done = []
    stored = load("sprites", tmp_path, cache=True, progress=lambda *count: done.append(count))
    assert isinstance(stored, StoredImages)
    assert stored.packed
    assert stored.description["rendered"] is True
    assert done[-1] == (2880, 2880)
    assert np.array_equal(stored.images(np.arange(2880)), Sprites().images(np.arange(2880)))
    assert isinstance(load("sprites", tmp_path), StoredImages)
    assert isinstance(load("sprites", tmp_path, cache=False), Sprites)
    # Another drawing has a cache of its own.
    assert isinstance(load("sprites", tmp_path, antialias=True), Sprites)
    grey = load("sprites", tmp_path, antialias=True, cache=True)
    assert isinstance(grey, StoredImages)
    assert not grey.packed
    assert np.array_equal(grey.images(np.arange(50)), Sprites(True).images(np.arange(50)))


@pytest.mark.slow
def test_the_whole_set(tmp_path: Path) -> None:
    """All 737 280 images: as many white pixels as in the official file, none hangs on rounding, known duplicates."""
    write(tmp_path / "all", content_of(Sprites(), binary=True))
    stored = StoredImages(tmp_path / "all")
    assert stored.sha256 == "a8ccd8f434fb8b3b0405a80a69aee7c4ebbe801532e8c34a5e86652b460c43a6"
    for by in (-1e-11, 1e-11):
        digest = hashlib.sha256()
        for start in range(0, len(SPACE), 4096):
            images = moved_border(np.arange(start, min(start + 4096, len(SPACE))), by)
            digest.update(np.packbits(images.reshape(len(images), -1), axis=1).data)
        assert digest.hexdigest() == stored.sha256
    packed = np.load(tmp_path / "all" / "images.npy").reshape(3, -1)
    assert [int(np.bitwise_count(shape).sum(dtype=np.int64)) for shape in packed] == [
        53_614_832,
        42_013_032,
        32_700_998,
    ]
    rows = packed.view("V512").reshape(3 * 6, 40, 1024)
    assert np.array_equal(rows[:, 0], rows[:, 39])
    # Besides orientation 39, some small sprites fall on the same pixels: 3 116 images, always of one shape and scale.
    distinct = sum(len(np.unique(group[:39])) for group in rows)
    assert distinct == len(np.unique(rows)) == 737_280 - 18_432 - 3_116
