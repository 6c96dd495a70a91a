"""What each factor of a dataset does: one row of images per factor."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import FactorDataset, check_images
from unbraid.show._notebook import ShownFigure
from unbraid.show.style import FONT_SIZE, GRID, INK, MUTED

DPI = 100
# In pixels at scale 1.
GAP, CAPTION, MARGIN = 4, 14, 10


def plot_factors(dataset: FactorDataset, *, columns: int = 10, scale: int = 2, title: str = "") -> Figure:
    """One row per factor: it goes through its levels from left to right, and the others stay where they are.

    They stay at their middle level; cyclic factors, which have none, each at another part of the circle.

    Where the factors are no grid, each place is taken by the image whose factors come nearest to that. Images without
    factors fill one row, spread evenly over the dataset.

    Args:
        dataset: images and their factors.
        columns: at most this many images in a row.
        scale: pixels of the sheet per pixel of an image and axis.
        title: above the rows.

    Returns:
        A figure whose size fits its images pixel by pixel: save it at its own dpi (100).

    Raises:
        ValueError: columns or scale is below 1, or there are no images.
    """
    if columns < 1 or scale < 1:
        raise ValueError(f"columns and scale must be at least 1; got {columns} and {scale}")
    check_images(dataset)
    space = dataset.space
    labels = list(zip(space.names, space.kinds, strict=True)) or [("images", "no factors")]
    rows = [_row(dataset, factor, columns) for factor in range(len(labels))]
    height, width, _ = dataset.image_shape
    label = 14 + max(max(6 * len(name), 5 * len(kind)) for name, kind in labels)
    head = MARGIN + (22 if title else 0)
    size = (
        label + max(len(index) for index, _ in rows) * (width + GAP) + MARGIN,
        head + len(rows) * (height + CAPTION),
    )
    across, down = (scale * part for part in size)
    down += scale * MARGIN
    figure = ShownFigure(figsize=(across / DPI, down / DPI), dpi=DPI)

    def write(text: str, x: float, y: float, size: float, colour: str, **options: Any) -> None:
        figure.text(
            scale * x / across, 1 - scale * y / down, text,
            fontsize=size * scale * 0.72, color=colour, parse_math=False, **options,
        )  # fmt: skip

    if title:
        write(title, MARGIN, MARGIN, FONT_SIZE + 2, INK, va="top", weight="bold")
    for number, (index, captions) in enumerate(rows):
        top = head + number * (height + CAPTION)
        write(labels[number][0], MARGIN, top + height / 2 - 1, FONT_SIZE + 1, INK, va="bottom")
        write(labels[number][1], MARGIN, top + height / 2 + 2, FONT_SIZE - 1, MUTED, va="top")
        for column, (image, caption) in enumerate(zip(dataset.images(index), captions, strict=True)):
            left = label + column * (width + GAP)
            box = (
                scale * left / across,
                1 - scale * (top + height) / down,
                scale * width / across,
                scale * height / down,
            )
            axes = figure.add_axes(box, xticks=[], yticks=[])
            axes.imshow(
                image[..., 0] if image.shape[-1] == 1 else image,
                cmap="gray",
                vmin=0,
                vmax=255 if image.dtype == np.uint8 else 1,
                interpolation="nearest",
                aspect="auto",
            )
            axes.spines[:].set(color=GRID, linewidth=0.5)
            write(caption, left + width / 2, top + height + 1, FONT_SIZE - 1.5, MUTED, va="top", ha="center")
    return figure


def _row(dataset: FactorDataset, factor: int, columns: int) -> tuple[IntArray, list[str]]:
    """Positions of the images in one row, and what is written under each."""
    space = dataset.space
    if not space.names:
        chosen = np.linspace(0, len(dataset) - 1, min(columns, len(dataset))).astype(np.int64)
        return chosen, [str(place) for place in chosen]
    if not isinstance(space, FactorSpace):
        named = (space.values or space.levels or ((),) * len(space.names))[factor]
        return _nearest(space.factors(np.arange(len(space))).astype(np.float64), factor, columns, named)
    n_levels, closed = space.sizes[factor], space.kinds[factor] == "cyclic"
    places = np.linspace(0, n_levels - (not closed), min(columns, n_levels), endpoint=not closed)
    levels = np.rint(places).astype(int)
    factors = np.tile(_rest(space), (len(levels), 1))
    factors[:, factor] = levels
    values = [level if space.values is None else space.values[factor][level] for level in levels.tolist()]
    return space.index(factors), [_caption(value) for value in values]


def _rest(space: FactorSpace) -> list[int]:
    cyclic = [factor for factor, kind in enumerate(space.kinds) if kind == "cyclic"]
    parts = {factor: (number + 0.75) / (len(cyclic) + 1) for number, factor in enumerate(cyclic)}
    return [int(size * parts.get(factor, 0.5)) for factor, size in enumerate(space.sizes)]


def _caption(value: float | str) -> str:
    return value if isinstance(value, str) else f"{round(value, 2):g}"


def _nearest(
    factors: FloatArray, factor: int, columns: int, named: Sequence[float | str]
) -> tuple[IntArray, list[str]]:
    spread = np.ptp(factors, axis=0)
    scaled = (factors - factors.min(axis=0)) / np.where(spread > 0, spread, 1.0)
    other_factors = np.delete(scaled, factor, axis=1)
    # A median is a level that occurs; of yes and no it is the commoner one.
    aside = ((other_factors - np.median(other_factors, axis=0)) ** 2).sum(axis=1)
    present = np.unique(factors[:, factor])
    few = len(present) <= columns
    targets = np.repeat(present, -(-columns // len(present)))[:columns] if few else np.linspace(
        present[0], present[-1], columns
    )  # fmt: skip
    chosen: list[int] = []
    for target in targets:
        distance = aside + 4 * ((factors[:, factor] - target) / max(spread[factor], 1e-12)) ** 2
        distance[chosen] = np.inf
        chosen.append(int(distance.argmin()))
    chosen = chosen[: len(factors)]
    shown = [float(factors[row, factor]) for row in chosen]
    return np.array(chosen), [_caption(named[int(level)] if named else level) for level in shown]
