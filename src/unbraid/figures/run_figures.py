"""Figures of one trained model."""

import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from unbraid.base.comma_lists import listed
from unbraid.base.types import FloatArray
from unbraid.figures.drawn_figure import Drawn, long_form
from unbraid.figures.figure_source import Source
from unbraid.scoring.score import score
from unbraid.show import plot_curves, plot_images, plot_reconstructions, plot_traversals
from unbraid.show.hinton import matrix_of
from unbraid.show.important import most_important_codes
from unbraid.show.paper import COLUMN

SMALLEST_TILE = 48  # pixels
MOST = 10_000  # images of one picture

if TYPE_CHECKING:
    from unbraid.runs.interpolations import Strips


def traversals(
    source: Source,
    *,
    rows: int = 3,
    steps: int = 9,
    seed: int = 0,
    columns: int = 0,
    dataset: str = "",
    metric: str = "",
    angles: str = "",
) -> Drawn:
    """Latent traversals: each code moves through its range while the others stay fixed.

    With a metric that has an importance of codes for factors, such as dci_forest or mig: the most important code of
    each factor, in the order of factors, and three of a cyclic one or one that angles names. Else by falling KL.
    """
    from unbraid.runs.run_traversals import traverse

    traversal = traverse(source.run, dataset or None, rows=rows, steps=steps, shown=2 * steps, seed=seed)
    weights = np.zeros(source.run.n_codes)
    weights[traversal.codes] = traversal.variances if traversal.kl is None else traversal.kl
    names = [f"code {code}" for code in range(source.run.n_codes)]
    shown, caption = source.chosen.rows(names, weights, among=np.sort(traversal.codes))
    shown_codes = [place for place, code in enumerate(traversal.codes) if code in shown]
    if not shown_codes:
        raise ValueError(f"{source.path}: of a circle of two codes, name the first")
    factors = _factors_of_codes(source, dataset, metric, angles, seed) if metric else {}
    if metric:
        places = {int(code): place for place, code in enumerate(traversal.codes)}
        shown_codes = [places[code] for code in factors if places.get(code) in shown_codes]
    traversal = traversal.only(shown_codes)
    captions = [
        f"{factors[code]}: {caption}" if metric else caption
        for code, caption in zip(traversal.codes.tolist(), traversal.captions, strict=True)
    ]
    figure = plot_traversals(
        traversal.images, traversal.originals, traversal.reconstructions, captions=captions,
        columns=columns or _fitting(source), width=source.chosen.width,
        marked=None if traversal.informative is None else traversal.informative.tolist(),
    )  # fmt: skip
    data = long_form(
        (
            (int(code), step, float(value), "" if traversal.kl is None else float(traversal.kl[place]))
            for place, code in enumerate(traversal.codes)
            for step, value in enumerate(traversal.values[place])
        ),
        "code", "step", "value", "kl",
    )  # fmt: skip
    return Drawn(figure, data, caption)


def _factors_of_codes(source: Source, dataset: str, metric: str, angles: str, seed: int) -> dict[int, str]:
    """The factor that each code is most important for, in the order of factors; see `most_important_codes`."""
    representation = source.run.representation(dataset or None, 2000, seed=seed)
    matrix = matrix_of(score(representation, metrics=[metric], seed=seed)[metric])
    around = replace(source.chosen, factors=listed(angles)).columns(representation) if angles else []
    factors: dict[int, str] = {}
    for factor, code in most_important_codes(matrix, representation.kinds, around):
        factors.setdefault(code, representation.names[factor])
    return factors


def rotation_traversal(source: Source, *, rows: int = 4, steps: int = 12, seed: int = 0, columns: int = 0) -> Drawn:
    """Images generated once around each circle of the codes, or in the plane of each cyclic factor."""
    from unbraid.runs.interpolations import rotation_traversal

    strips = rotation_traversal(source.run, rows=rows, steps=steps, seed=seed)
    how = "all else drawn from the prior" if strips.first is None else "in its plane, from the image on the left"
    return _strips(source, strips, "circle", "angle", f"once around, {how}", columns)


def object_interpolation(
    source: Source, *, pairs: int = 3, rows: int = 4, steps: int = 8, seed: int = 0, columns: int = 1
) -> Drawn:
    """Images generated on the way from one object to another, one row per turn."""
    from unbraid.runs.interpolations import object_interpolation

    strips = object_interpolation(source.run, pairs=pairs, rows=rows, steps=steps, seed=seed)
    return _strips(source, strips, "way", "share", "one row per turn", columns)


def samples(source: Source, *, images: int = 16, seed: int = 0, columns: int = 0) -> Drawn:
    """Images drawn from the model's own prior."""
    if not 1 <= images <= MOST:
        raise ValueError(f"images of samples must be 1 to {MOST:,}; got {images}")
    if len(source.run.config["dataset"]["image_shape"]) != 3:
        raise ValueError(f"{source.path} decodes rows of a table, no images")
    codes = source.run.prior_codes(images, seed=seed)
    data = {"image": np.arange(images), **{f"code_{code}": column for code, column in enumerate(codes.T)}}
    picture = plot_images(np.clip(source.run.decode(codes), 0, 1), columns=columns, width=source.chosen.width)
    return Drawn(picture, data)


def _strips(source: Source, strips: "Strips", block: str, value: str, what: str, columns: int) -> Drawn:
    figure = plot_traversals(
        _larger(strips.images), captions=[f"{name}: {what}" for name in strips.names],
        columns=columns or _fitting(source), width=source.chosen.width,
        first=None if strips.first is None else _larger(strips.first),
        last=None if strips.last is None else _larger(strips.last),
    )  # fmt: skip
    rows = (
        (strips.names[place[0]], *place[1:], float(strips.values[place[2]]), *map(float, strips.codes[place]))
        for place in np.ndindex(strips.codes.shape[:3])
    )
    codes = [f"code_{code}" for code in range(strips.codes.shape[-1])]
    return Drawn(figure, long_form(rows, block, "row", "step", value, *codes))


def _fitting(source: Source) -> int:
    """Blocks side by side: one in a column of a journal, two in a page."""
    return max(1, round(source.chosen.width / COLUMN))


def _larger(images: FloatArray) -> FloatArray:
    """Images of few pixels with each of them repeated."""
    times = max(1, SMALLEST_TILE // images.shape[-2])
    return images.repeat(times, axis=-2).repeat(times, axis=-3)


def reconstructions(source: Source, *, images: int = 20, columns: int = 10, seed: int = 0) -> Drawn:
    """Images of the dataset and their reconstructions."""
    opened = source.run.dataset()
    if len(opened.image_shape) != 3:
        raise ValueError(f"{source.path}: trained on rows of a table; only images can be drawn")
    chosen = np.sort(np.random.default_rng(seed).choice(len(opened), min(images, len(opened)), replace=False))
    before = opened.images(chosen)
    after = np.clip(source.run.decode(source.run.encode(before)), 0, 1)
    scaled = before / 255 if before.dtype == np.uint8 else before
    errors = ((scaled - after) ** 2).mean(axis=(1, 2, 3))
    return Drawn(
        plot_reconstructions(scaled, after, columns=columns, width=source.chosen.width),
        {"image": chosen, "mean_squared_error": errors},
    )


def gap(source: Source, *, held_out: str = "", rows: int = 4, across: int = 6, seed: int = 0) -> Drawn:
    """Images in the gap that the training left out, beside images outside it.

    Without held_out, a condition on the factors, the gap is the one of the run, as a zero-shot study trains it.
    """
    from unbraid.datasets.subset import SubsetDataset, left_out

    opened = source.run.dataset()
    dataset = opened.dataset if isinstance(opened, SubsetDataset) else opened
    without = held_out or source.run.config["dataset"]["options"].get("without") or ""
    condition = without if isinstance(without, str) else next((part for part in without if isinstance(part, str)), "")
    if not condition:
        raise ValueError(f"{source.path}: trained on all images; give the condition, --set held_out='red > green'")
    inside = left_out(dataset.space, condition)
    rng, count = np.random.default_rng(seed), rows * across
    sides = [np.flatnonzero(inside), np.flatnonzero(~inside)]
    if min(map(len, sides)) < count:
        raise ValueError(
            f"{condition!r} holds for {len(sides[0]):,} of {len(dataset):,} images; {count} are drawn each"
        )
    shown = np.stack([np.sort(rng.choice(side, count, replace=False)) for side in sides])
    drawn = dataset.images(shown.ravel())
    images = np.asarray(drawn / 255 if drawn.dtype == np.uint8 else drawn, dtype=float)
    figure = plot_traversals(
        _larger(images.reshape(2, rows, across, *images.shape[1:])), columns=2, width=source.chosen.width,
        captions=[f"in the gap, {len(sides[0]):,} images", f"outside it, {len(sides[1]):,} images"],
    )  # fmt: skip
    data = {"image": shown.ravel(), "in_gap": np.repeat([True, False], count)}
    data |= dict(zip(dataset.space.names, dataset.space.factors(shown.ravel()).T, strict=True))
    return Drawn(figure, data, re.sub(r"\d+\.\d{5,}", lambda number: f"{float(number[0]):.4g}", condition))


def curves(source: Source, *, names: str = "") -> Drawn:
    """Losses and their parts over training."""
    logged = source.run.curves()
    if logged.keys() == {"step"}:
        raise ValueError(f"{source.path}: it has no curves, as no step of a training was completed")
    chosen = listed(names) or None
    panels = plot_curves(logged, names=chosen, width=source.chosen.width)
    return Drawn(panels[0].figure, {name: logged[name] for name in ["step", *(chosen or list(logged)[1:])]})  # pyright: ignore[reportArgumentType]
