"""Laws of the rendered sets: the same bytes anywhere, closed cycles, no two images alike, nothing cut off."""

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from unbraid.base.types import FloatArray, IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset
from unbraid.data.predicate import predicate
from unbraid.datasets import load
from unbraid.datasets.airplanes import ELEVATION, airplane_mesh, painted_airplane
from unbraid.datasets.cars import SCENE, car_mesh
from unbraid.datasets.rendering import renderer as rendering
from unbraid.datasets.rendering.meshes import Mesh, length, teapot_mesh
from unbraid.datasets.rendering.raster import compose, orbit, render
from unbraid.datasets.rendering.renderer import MILD, Composed
from unbraid.datasets.rendering.room import SHAPES, room_layers
from unbraid.datasets.shapes3d_rendered import GEOMETRY
from unbraid.datasets.teapot import GAP, NAMES, draw_factors, draw_teapots
from unbraid.datasets.teapot import SCENE as TEAPOT_SCENE
from unbraid.datasets.turntable import turntable_mesh

SMALL = {
    "airplane": {},
    "airplanes": {"n_objects": 3},
    "turntable": {"n_objects": 3},
    "cars_rendered": {"n_objects": 3},
    "teapot": {"n_images": 100},
    "shapes3d_rendered": {},
}
# SHA-256 of eight images of each small set, evenly spread over it. A change that is meant raises VERSION.
GOLDEN = {
    "airplane": "9f3475c7a9a25e82d586d207d562ae4b322ec9474b9a9e8181f24237bec6b280",
    "airplanes": "4399bfa3216d606f98128770ec40a34c7b9c7c7d6c58b02234d09c67d8fff15e",
    "turntable": "92123e0667b99e9c636ef1e154596b2ce303398eb549211a34e91c0a2e4bedb9",
    "cars_rendered": "cc7820658146c4b2db52f4c1f0df819b80e42ad4b18e63700bf7328f4c611425",
    "teapot": "7f0360fa727b8a1d2cd458b2ac2b6557c2cee5f94cfa2646d12d4b96c15673ee",
    "shapes3d_rendered": "e1b1393d432223e920f917c19ca967ada783a376913f0613611a4dc7ca45ca6c",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("rendered")


@pytest.fixture(scope="module")
def small(root: Path) -> Callable[[str], FactorDataset]:
    return lambda name: load(name, root, **SMALL[name])


def spread(dataset: FactorDataset, n: int) -> UInt8Array:
    return dataset.images(np.linspace(0, len(dataset) - 1, n).astype(int))


def distinct(images: UInt8Array) -> bool:
    return len({image.tobytes() for image in images}) == len(images)


def rim(images: UInt8Array) -> UInt8Array:
    return np.concatenate([images[:, [0, -1]], images[:, :, [0, -1]].swapaxes(1, 2)], axis=1)


@pytest.mark.lengthy
@pytest.mark.parametrize("name", SMALL)
def test_bytes_are_golden(name: str, small: Callable[[str], FactorDataset]) -> None:
    images = spread(small(name), 8)
    assert images.shape == (8, 64, 64, 3)
    assert hashlib.sha256(images.tobytes()).hexdigest() == GOLDEN[name]


@pytest.mark.parametrize("name", SMALL)
def test_no_two_images_of_a_sample_are_alike(name: str, small: Callable[[str], FactorDataset]) -> None:
    assert distinct(spread(small(name), min(len(small(name)), 300)))


@pytest.mark.parametrize(
    ("name", "background"), [("airplane", 0), ("airplanes", 0), ("turntable", 0), ("teapot", 0), ("cars_rendered", 255)]
)
def test_nothing_is_cut_off_and_everything_is_seen(
    name: str, background: int, small: Callable[[str], FactorDataset]
) -> None:
    images = spread(small(name), 200)
    assert (rim(images) == background).all()
    drawn = (images != background).any(axis=-1).mean(axis=(1, 2))
    assert drawn.min() > 0.02
    assert drawn.max() < 0.6


@pytest.mark.parametrize("name", ["airplanes", "turntable", "cars_rendered", "teapot"])
def test_the_first_images_do_not_depend_on_how_many_follow(name: str, root: Path) -> None:
    """Nor do other seeds repeat them."""
    option = next(iter(SMALL[name]))
    one, two = load(name, root, **{option: 1}), load(name, root, **{option: 2})
    index = np.arange(min(len(one), 20))
    grid = isinstance(one.space, FactorSpace)
    same = two.space.index(one.space.factors(index)) if isinstance(two.space, FactorSpace) and grid else index
    assert (one.images(index) == two.images(same)).all()
    other = load(name, root, **{option: 1, "seed": 1})
    assert (one.images(index) != other.images(index)).any(axis=(1, 2, 3)).all()


MESHES = {
    "airplane": partial(painted_airplane, 0),
    "turntable": partial(turntable_mesh, 0),
    "car": partial(car_mesh, 0),
}


@pytest.mark.parametrize("kind", MESHES)
@pytest.mark.parametrize("number", [0, 4, 11])
def test_a_full_turn_closes_and_no_other_turn_repeats(kind: str, number: int) -> None:
    mesh = MESHES[kind](number)
    turns = np.arange(73) / 72
    images = compose(render(mesh, orbit(turns, 0.05), scene=MILD), np.broadcast_to(np.eye(3), (73, 3, 3)))
    assert (images[72] == images[0]).all()
    assert distinct(images[:72])
    # No symmetry either: a view is far from every other that is not its neighbour, and from the mirrored ones.
    views = images[:72:8].astype(int)
    for others, same in ((views, 0), (views[:, :, ::-1], -1)):
        apart = np.abs(views[:, None] - others[None]).mean(axis=(2, 3, 4))
        apart += 1e9 * np.eye(9) * (same == 0)
        assert apart.min() > 0.5


@pytest.mark.parametrize("kind", MESHES)
def test_objects_differ_have_unit_radius_and_colours_in_range(kind: str) -> None:
    meshes: list[Mesh] = [MESHES[kind](number) for number in range(12)]
    for mesh in meshes:
        assert length(mesh.vertices).max() == pytest.approx(1)
        assert 0 <= mesh.paint.min() <= mesh.paint.max() <= 1
    images = np.concatenate([render(mesh, orbit(0.1, 0.06), scene=MILD) for mesh in meshes])
    apart = np.abs(images[:, None].astype(int) - images[None]).mean(axis=(2, 3, 4)) + 1e9 * np.eye(12)
    assert apart.min() > 1


def test_cars_have_the_official_order_and_tell_front_from_back(small: Callable[[str], FactorDataset]) -> None:
    cars = small("cars_rendered")
    space = cars.space
    assert isinstance(space, FactorSpace)
    assert space.names == ("elevation", "azimuth", "object")
    assert space.sizes == (4, 24, 3)
    for number in range(3):
        front, back = cars.images(space.index([[1, 0, number], [1, 12, number]])).astype(int)
        assert (np.abs(front - back[:, ::-1]).max(axis=-1) > 60).sum() > 25, "lights, at least"
    for number in (1, 2):  # the first is red all over
        front, back = cars.images(space.index([[1, 0, number], [1, 12, number]])).astype(int)
        red = [((image[..., 0] > 90) & (image[..., 1:].max(axis=-1) < 40)).sum() for image in (front, back)]
        assert red[1] > red[0] + 8
    mesh = car_mesh(0, 2)
    expected = render(mesh, orbit(5 / 24, 26 / 360), samples=3, scene=SCENE)
    image = cars.images(space.index([[2, 5, 2]]))
    assert (image == compose(expected, np.eye(3)[None])).all()


def test_airplane_is_every_hue_of_every_view(small: Callable[[str], FactorDataset]) -> None:
    plane = small("airplane")
    assert plane.space.names == ("hue", "rotation")
    assert [levels[16] for levels in plane.space.values] == [0.25, 0.25], "16 of 64 are a quarter"
    images = plane.images(np.arange(4096).reshape(64, 64)[:, ::16].reshape(-1)).reshape(64, 4, 64, 64, 3).astype(int)
    # A third of the circle of hues moves red, green and blue on by one.
    thirds = np.abs(np.roll(images[0], 1, axis=-1) - images[21]).max(), np.abs(images[0] - images[32]).max()
    assert thirds[0] < 20
    assert thirds[1] > 150
    assert (images.max(axis=-1) == images[0].max(axis=-1)).all(), "hue changes no brightness"
    assert isinstance(plane, Composed)
    mesh = airplane_mesh(0, 5)
    layers = render(mesh, orbit(17 / 64, ELEVATION / 360), scene=MILD, samples=3)
    assert (compose(layers, [[[1, 0, 0], [0.85] * 3]]) == plane.images(np.array([17]))).all()


def test_room_images_are_composed_from_the_view_they_name(small: Callable[[str], FactorDataset]) -> None:
    room = small("shapes3d_rendered")
    assert len(room) == 480_000
    factors = np.array([[0, 5, 9, 0, 0, 0], [3, 3, 3, 7, 3, 14], [9, 1, 7, 4, 1, 6]])
    for row, image in zip(factors, room.images(room.space.index(factors)), strict=True):  # pyright: ignore[reportAttributeAccessIssue]
        layers = room_layers(int(row[4]), 0.75 + row[3] / 14, -30 + row[5] * 30 / 7).astype(float)
        hue = row[:3, None] / 10 * 6
        colours = np.clip(np.abs((hue + [[0, 4, 2]]) % 6 - 3) - 1, 0, 1)
        expected = np.einsum("khw,kc->hwc", layers[:3], colours) + layers[3][..., None]
        assert np.abs(image - np.minimum(expected, 255)).max() <= 1


def test_views_of_the_room_differ_and_hold_the_whole_object(small: Callable[[str], FactorDataset]) -> None:
    room = small("shapes3d_rendered")
    assert isinstance(room, Composed)
    assert distinct(room.layers)
    body = room.layers[:, 2]
    assert (rim(body[..., None]) == 0).all()
    area = (body > 0).mean(axis=(1, 2)).reshape(GEOMETRY.sizes)
    assert (np.diff(area, axis=0) > 0).all(), "a larger scale is seen larger"
    assert GEOMETRY.values is not None
    assert GEOMETRY.values[1] == SHAPES
    assert GEOMETRY.values[2] == pytest.approx(np.linspace(-30, 30, 15))
    assert GEOMETRY.values[0] == pytest.approx(np.linspace(0.75, 1.25, 8))


def test_colours_of_the_room_are_each_visible(small: Callable[[str], FactorDataset]) -> None:
    """Changing one hue changes the image in every view, so that all 480 000 differ given that the views do."""
    room = small("shapes3d_rendered")
    assert isinstance(room, Composed)
    assert (room.layers[:, :3].max(axis=(2, 3)) > 80).all()
    hues = [set(map(tuple, palette.tolist())) for palette in room.palettes]
    assert list(map(len, hues)) == [10, 10, 10]


def test_factors_are_made_a_slab_at_a_time_after_the_disk_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "SLAB", 4)
    monkeypatch.setattr(rendering, "slabs", lambda *given: [given[2][:, :1, :1, None]])
    asked: list[list[int]] = []

    def views(factors: IntArray) -> FloatArray:
        asked.append(factors[:, 1].tolist())
        return np.zeros((len(factors), 3, 3))

    opener = rendering.objects_opener(
        "turned", 1, lambda n_objects: rendering.turned_objects(n_objects, 3), views, car_mesh, usual=2, follows=""
    )
    with monkeypatch.context() as full:
        full.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=10))
        with pytest.raises(OSError, match="the disk has"):
            opener(tmp_path)
    assert asked == []
    with pytest.raises(ValueError, match="images must be uint8"):
        opener(tmp_path)
    assert asked == [[0, 1, 2, 0]]


def test_teapot_factors_are_uniform_over_their_ranges() -> None:
    factors = draw_factors(20_000, 0)
    for column, top in zip(factors.T, (2 * np.pi, np.pi / 2, 1, 1, 1), strict=True):
        assert 0 <= column.min() < 0.001 * top
        assert 0.999 * top < column.max() < top
        assert np.histogram(column, 10, (0, top))[0] == pytest.approx(2000, abs=200)
    assert np.abs(np.corrcoef(factors.T) - np.eye(5)).max() < 0.03


def test_teapot_closes_after_a_turn_and_has_no_flip_at_the_pole() -> None:
    turn, quarter = 2 * np.pi, np.pi / 2
    rows = [[0, 0.3], [turn, 0.3], [1.0, quarter], [1.0, quarter - 1e-3], [1.0 + np.pi, quarter]]
    images = draw_teapots(np.array([[*row, 0.9, 0.5, 0.1] for row in rows])).astype(int)
    assert (images[0] == images[1]).all()
    assert np.abs(images[2] - images[3]).mean() < 1
    assert np.abs(images[2] - images[4]).mean() > 5
    # Straight down, half a turn turns the picture: the lid stays, spout and handle change places.
    drawn = images.any(axis=-1)
    assert (drawn[2] != drawn[4][::-1, ::-1]).sum() <= 2
    azimuth, elevation = 1.0 / turn, 0.3 / turn
    layers = render(teapot_mesh(6), orbit(azimuth, elevation), scene=TEAPOT_SCENE, samples=3)
    image = draw_teapots(np.array([[1.0, 0.3, 0.9, 0.5, 0.1]]))
    assert (image == compose(layers, [[[0.9, 0.5, 0.1]]])).all()


def test_teapot_is_linear_in_its_colours() -> None:
    pose = [2.0, 0.6]
    white, red, half = draw_teapots(np.array([[*pose, 1, 1, 1], [*pose, 1, 0, 0], [*pose, 0.5, 0.5, 0.5]])).astype(int)
    black = draw_teapots(np.array([[*pose, 0, 0, 0]]))[0].astype(int)
    assert (red[..., 0] == white[..., 0]).all()
    assert (red[..., 1:] == black[..., 1:]).all()
    unclipped = white.max(axis=-1) < 255
    assert np.abs(half - (white + black) / 2)[unclipped].max() <= 1
    assert 0 < (black > 0).any(axis=-1).mean() < 0.25 * white.any(axis=-1).mean() + 0.1, "the highlight is small"


def test_gap_of_the_zero_shot_test() -> None:
    """P(elevation > pi/4) = 1/2 and P(red > max(green, blue) + .15) = .85 ** 3 / 3: 10.24 % together."""
    in_gap = predicate(GAP, NAMES)
    factors = draw_factors(400_000, 3)
    assert in_gap(factors).mean() == pytest.approx(0.85**3 / 6, abs=0.0015)
    by_hand = np.array(
        [
            [0, 0.8, 0.9, 0.7, 0.7],  # red and from above
            [0, 0.7, 0.9, 0.7, 0.7],  # too low
            [0, 0.8, 0.84, 0.7, 0.2],  # not red enough against green
            [0, 0.8, 0.84, 0.2, 0.7],  # not red enough against blue, which the printed formula leaves out
        ]
    )
    assert in_gap(by_hand).tolist() == [True, False, False, False]


HASHES = """
import hashlib, sys
import numpy as np
from unbraid.datasets import StoredImages, load
for name, options in {small!r}.items():
    dataset = load(name, sys.argv[1], **options)
    images = dataset.images(np.linspace(0, len(dataset) - 1, 8).astype(int))
    print(name, hashlib.sha256(images.tobytes()).hexdigest())
"""


@pytest.mark.slow
def test_bytes_do_not_depend_on_the_processor(tmp_path: Path) -> None:
    """Compiled for the plainest processor of the family, and NumPy without its vector code."""
    plain = {
        "NUMBA_CPU_NAME": "generic",
        "NUMBA_CPU_FEATURES": "",
        "NUMBA_CACHE_DIR": str(tmp_path / "compiled"),
        "NPY_DISABLE_CPU_FEATURES": "AVX2 FMA3 X86_V3 X86_V4 AVX512F AVX512CD AVX512_SKX",
    }
    code = HASHES.replace("{small!r}", repr(SMALL))
    printed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, str(tmp_path)],
        env=os.environ | plain,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert dict(line.split() for line in printed.splitlines()) == GOLDEN


@pytest.mark.slow
@pytest.mark.parametrize("name", SMALL)
def test_all_images_of_a_whole_set_are_distinct(name: str, root: Path) -> None:
    dataset = load(name, root)
    seen = set()
    for start in range(0, len(dataset), 4096):
        images = dataset.images(np.arange(start, min(start + 4096, len(dataset))))
        seen |= {hashlib.blake2b(image.data, digest_size=16).digest() for image in images}
    assert len(seen) == len(dataset)
