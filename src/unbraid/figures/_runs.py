"""Figures of one trained model."""

import numpy as np

from unbraid.figures._drawn import Drawn, long_form
from unbraid.figures._source import Source
from unbraid.plots import plot_curves, plot_reconstructions, plot_traversals


def traversals(source: Source, *, rows: int = 3, steps: int = 9, seed: int = 0, columns: int = 2) -> Drawn:
    """What each code does: it goes through its range while the others stay."""
    from unbraid.training.traversals import traverse

    found = traverse(source.run, rows=rows, steps=steps, shown=2 * steps, seed=seed)
    figure = plot_traversals(
        found.images, found.originals, found.reconstructions, captions=found.captions, columns=columns,
        marked=None if found.informative is None else found.informative.tolist(),
    )  # fmt: skip
    data = long_form(
        (
            (int(code), step, float(value), "" if found.kl is None else float(found.kl[place]))
            for place, code in enumerate(found.order)
            for step, value in enumerate(found.values[place])
        ),
        "code", "step", "value", "kl",
    )  # fmt: skip
    return Drawn(figure, data)


def reconstructions(source: Source, *, images: int = 20, columns: int = 10, seed: int = 0) -> Drawn:
    """Images of the dataset, and what the model makes of them."""
    opened = source.run.dataset()
    if len(opened.image_shape) != 3:
        raise ValueError(f"{source.path}: trained on rows of a table; only images can be drawn")
    chosen = np.sort(np.random.default_rng(seed).choice(len(opened), min(images, len(opened)), replace=False))
    before = opened.images(chosen)
    after = np.clip(source.run.decode(source.run.encode(before)), 0, 1)
    scaled = before / 255 if before.dtype == np.uint8 else before
    errors = ((scaled - after) ** 2).mean(axis=(1, 2, 3))
    return Drawn(plot_reconstructions(scaled, after, columns=columns), {"image": chosen, "mean_squared_error": errors})


def curves(source: Source, *, names: str = "") -> Drawn:
    """Losses and their parts over training."""
    logged = source.run.curves()
    chosen = [name.strip() for name in names.split(",") if name.strip()] or None
    panels = plot_curves(logged, names=chosen)
    return Drawn(panels[0].figure, {name: logged[name] for name in ["step", *(chosen or list(logged)[1:])]})  # pyright: ignore[reportArgumentType]
