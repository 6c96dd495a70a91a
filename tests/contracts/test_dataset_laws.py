"""What every drawn dataset keeps to, over the whole table."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import DATASETS, FactorDataset, load

# Fewer objects where drawing all of them takes long; what is left out of here is opened as it is.
OPTIONS: dict[str, dict[str, int]] = {
    "airplanes": {"n_objects": 2},
    "turntable": {"n_objects": 2},
    "cars_rendered": {"n_objects": 2},
    "teapot": {"n_images": 24},
}
DRAWN = [name for name, row in DATASETS.items() if row.rendered and not row.files]
RENDERED = {*OPTIONS, "shapes3d_rendered"}  # drawn in a second or two; tests/datasets/test_rendered.py draws them too


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=pytest.mark.lengthy) if name in RENDERED else name for name in DRAWN],
)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def dataset(name: str, root: Path) -> FactorDataset:
    return load(name, root, **OPTIONS.get(name, {}))


def some(dataset: FactorDataset, n: int = 24) -> np.ndarray:
    return np.random.default_rng(0).integers(len(dataset), size=n)


def test_every_row_describes_its_dataset(name: str, dataset: FactorDataset) -> None:
    row = DATASETS[name]
    assert (dataset.space.names, dataset.space.kinds) == (row.space.names, row.space.kinds)
    assert dataset.image_shape == row.image_shape
    if name not in OPTIONS:
        assert dataset.space == row.space
    for text in (row.title, row.source, row.licence):
        assert text
    assert len(row) > 0


def test_images_are_bytes_of_the_declared_shape(dataset: FactorDataset) -> None:
    images = dataset.images(some(dataset))
    assert images.dtype == np.uint8
    assert images.shape == (24, *dataset.image_shape)
    assert images.min() < 64
    assert images.max() > 128
    assert len(dataset) == len(dataset.space)
    assert dataset.images(np.array([], dtype=int)).shape == (0, *dataset.image_shape)


def test_an_image_depends_on_its_position_alone(dataset: FactorDataset) -> None:
    index = some(dataset)
    images = dataset.images(index)
    assert np.array_equal(dataset.images(index[::-1]), images[::-1])
    assert np.array_equal(dataset.images(index[5:6]), images[5:6])


def test_images_are_the_callers_to_write_on(dataset: FactorDataset) -> None:
    index = some(dataset)
    images = dataset.images(index)
    kept = images.copy()
    images[:] = 7
    assert np.array_equal(dataset.images(index), kept)


def test_positions_outside_are_refused(dataset: FactorDataset) -> None:
    for position in (-1, len(dataset)):
        with pytest.raises(ValueError, match=f"index {position} is outside"):
            dataset.images(np.array([0, position]))


def test_a_worker_process_can_take_it_along(dataset: FactorDataset) -> None:
    index = some(dataset)
    assert np.array_equal(pickle.loads(pickle.dumps(dataset)).images(index), dataset.images(index))


def test_the_ends_of_the_grid_are_its_corners(dataset: FactorDataset) -> None:
    if isinstance(dataset.space, FactorTable):
        assert dataset.space.table.shape == (len(dataset), len(dataset.space.names))
        return
    first, last = dataset.space.factors(np.array([0, len(dataset) - 1]))
    assert not first.any()
    assert tuple(last + 1) == dataset.space.sizes


def test_every_factor_shows_in_the_images(dataset: FactorDataset) -> None:
    """From any image, a step along each factor gives another image."""
    if not isinstance(dataset.space, FactorSpace):
        index = some(dataset)
        index = np.unique(index)
        assert len({image.tobytes() for image in dataset.images(index)}) == len(index)
        return
    levels = dataset.space.factors(some(dataset, 8))
    levels[levels == 39] -= 1  # the last orientation of the sprites is the first one again
    here = dataset.images(dataset.space.index(levels))
    for column, size in enumerate(dataset.space.sizes):
        moved = levels.copy()
        moved[:, column] = np.where(moved[:, column] + 1 < size, moved[:, column] + 1, moved[:, column] - 1)
        there = dataset.images(dataset.space.index(moved))
        assert (here != there).any(axis=(1, 2, 3)).all(), dataset.space.names[column]
