"""The contact sheet shows the right images, pixel for pixel."""

import io
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unbraid import datasets
from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import ArrayDataset
from unbraid.show import plot_factors


def cells(dataset: Any, **options: Any) -> list[list[Any]]:
    """The images of the sheet, by row, and their captions."""
    figure = plot_factors(dataset, **options)
    rows: dict[float, list[Any]] = {}
    for axes in figure.axes:
        rows.setdefault(round(axes.get_position().y0, 4), []).append(np.asarray(axes.images[0].get_array()))
    return [rows[y] for y in sorted(rows, reverse=True)]


def captions(dataset: Any, **options: Any) -> list[str]:
    return [text.get_text() for text in plot_factors(dataset, **options).texts]


def test_each_row_changes_its_factor_and_no_other() -> None:
    dataset = datasets.load("sprites", "/nowhere", cache=False)
    rows = cells(dataset, columns=4)
    assert [len(row) for row in rows] == [3, 4, 4, 4, 4]
    space = dataset.space
    assert isinstance(space, FactorSpace)
    rest = [1, 3, 15, 16, 16]  # the middle; orientation, being cyclic, at three eighths
    for factor, levels in enumerate(([0, 1, 2], [0, 2, 3, 5], [0, 10, 20, 30], [0, 10, 21, 31], [0, 10, 21, 31])):
        for level, image in zip(levels, rows[factor], strict=True):
            factors = [*rest[:factor], level, *rest[factor + 1 :]]
            np.testing.assert_array_equal(image, dataset.images(space.index([factors]))[0, :, :, 0])


def test_samples_that_are_no_grid_come_near_it() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.random(500), rng.integers(0, 2, 500)], axis=1)
    images = np.zeros((500, 4, 4, 1), dtype=np.uint8)
    images[:, 0, 0, 0] = 255 * factors[:, 0]
    images[:, 0, 1, 0] = factors[:, 1]
    dataset = ArrayDataset(images, FactorTable(("size", "glasses"), ("continuous", "categorical"), factors))
    size, glasses = cells(dataset, columns=6)
    assert [image[0, 0] for image in size] == pytest.approx(np.linspace(0, 255, 6), abs=5)
    assert len({image[0, 1] for image in size}) == 1
    assert [image[0, 1] for image in glasses] == [0, 0, 0, 1, 1, 1]
    assert [image[0, 0] for image in glasses] == pytest.approx([255 * np.median(factors[:, 0])] * 6, abs=3)


def test_images_are_neither_blurred_nor_scaled_by_fractions() -> None:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, (3, 8, 10, 3), dtype=np.uint8)
    dataset = ArrayDataset(images, FactorSpace(("level",), (3,), ("ordinal",)))
    for scale in (1, 3):
        out = io.BytesIO()
        plot_factors(dataset, scale=scale, title="x").savefig(out, format="png")
        sheet = np.asarray(Image.open(out).convert("RGB"))
        for image in images:
            # The frame covers half of the outermost pixels.
            inner = image.repeat(scale, axis=0).repeat(scale, axis=1)[2 * scale : -2 * scale, 2 * scale : -2 * scale]
            windows = np.lib.stride_tricks.sliding_window_view(sheet, inner.shape)[:, :, 0]
            assert (windows == inner).all(axis=(2, 3, 4)).any()
