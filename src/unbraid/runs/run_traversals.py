"""Latent traversals: images decoded while one code changes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from unbraid.base.arguments import check_whole
from unbraid.base.arrays import as_array
from unbraid.base.types import ArrayLike, BoolArray, FloatArray, IntArray
from unbraid.data import Representation
from unbraid.data.image_dataset import MOST_CHANNELS
from unbraid.families.family import Part
from unbraid.runs.run import Images, Run

__all__ = ["Traversals", "traverse", "traverse_codes"]


@dataclass(frozen=True, eq=False)
class Traversals:
    """Decoded images along each code, or around each circle of two codes; in the order of `codes`."""

    originals: FloatArray | None  # (n_shown, height, width, channels), 0 .. 1; the first n_rows are the seed images
    reconstructions: FloatArray | None  # the same shape; None without images
    images: FloatArray  # (n_codes, n_rows, n_steps, height, width, channels)
    values: FloatArray  # (n_codes, n_steps): values of the code; on a circle, angles in radians
    codes: IntArray  # (n_codes,): which one, by falling KL, or by falling variance where there is no posterior
    kl: FloatArray | None  # (n_codes,), nats, mean over images
    variances: FloatArray  # (n_codes,), of the codes over images
    circles: tuple[str, ...] = ()  # (n_codes,) name of the circle that begins with this code; else ""
    informative: BoolArray | None = None  # (n_codes,), as `Representation.informative`; None: there is no posterior

    @property
    def captions(self) -> list[str]:
        """For each code its number, KL or variance, and range; circles have no range."""
        if self.kl is None:
            says = [f"variance {variance:.3g}" for variance in self.variances]
        else:
            says = [f"KL {kl:.3f} nats" for kl in self.kl]
        return [
            f"{circle} (codes {code}, {code + 1}): {measure}"
            if circle
            else f"code {code}: {measure}, {values[0]:.2f} to {values[-1]:.2f}"
            for code, circle, measure, values in zip(
                self.codes, self.circles or [""] * len(self.codes), says, self.values, strict=True
            )
        ]

    def only(self, places: Sequence[int]) -> "Traversals":
        """The traversals of some codes, by index in `codes`."""
        chosen = list(places)
        return replace(
            self, images=self.images[chosen], values=self.values[chosen], codes=self.codes[chosen],
            kl=None if self.kl is None else self.kl[chosen], variances=self.variances[chosen],
            informative=None if self.informative is None else self.informative[chosen],
            circles=tuple(self.circles[place] for place in chosen) if self.circles else (),
        )  # fmt: skip


def traverse(
    run: Run,
    dataset: Images | str | Path | None = None,
    *,
    rows: int = 3,
    steps: int = 9,
    shown: int = 18,
    n: int = 2000,
    seed: int = 0,
) -> Traversals:
    """Decode a few images while one code at a time goes through its range.

    Args:
        run: the trained model.
        dataset: by default the one of the training; as for `Run.dataset`.
        rows: seed images, drawn at random. The other codes stay as the encoder gives them for the seed image.
        steps: values of the moving code, evenly from its 2 % to its 98 % quantile over the dataset, or around its
            circle. On a sphere the other codes are rescaled, so that the length stays 1. A quantized code takes the
            values it has over the dataset, or evenly chosen ones of these, or some twice.
        shown: images that are reconstructed, including the seed images.
        n: images from which quantiles and KL are computed.
        seed: of all draws.

    Raises:
        ValueError: rows or steps out of range, or a dataset without images.
    """
    opened = run.dataset(dataset)
    if len(opened.image_shape) != 3:
        raise ValueError("only images can be traversed; these are rows of a table")
    check_whole("rows", rows, 1, len(opened))
    check_whole("steps", steps, 2)
    check_whole("shown", shown, 0)
    representation = run.representation(opened, n, seed=seed)
    shown = min(max(rows, shown), len(opened))
    originals = opened.images(np.random.default_rng(seed).choice(len(opened), shown, replace=False))
    codes = run.encode(originals)
    variances = representation.codes.var(axis=0)
    traversals = _traversed(run.decode, representation, variances, _trajectories(run.parts), codes[:rows], steps)
    scaled = originals / 255 if originals.dtype == np.uint8 else originals
    return replace(traversals, originals=scaled.astype(np.float32), reconstructions=run.decode(codes))


def traverse_codes(
    decode: Callable[[Any], Any],
    codes: ArrayLike,
    *,
    log_variances: ArrayLike | None = None,
    rows: int = 3,
    steps: int = 9,
    seed: int = 0,
) -> Traversals:
    """Traversals of your own decoder: decode a few rows of codes while one code at a time goes through its range.

    Args:
        decode: from codes (n, n_codes), float32, to images (n, height, width[, channels]) from 0 to 1; a PyTorch module
            is called with a tensor on its device, in its precision, and may return (n, channels, height, width).
        codes: (n_samples, n_codes) of your model, posterior means where it has them.
        log_variances: (n_samples, n_codes) of its posteriors, for the KL in the captions and the order.
        rows: of codes that are shown, drawn at random.
        steps: values of the moving code, evenly from its 2 % to its 98 % quantile.
        seed: of the draw.

    Returns:
        Traversals without images and reconstructions; plot them by
        `plot_traversals(traversals.images, captions=traversals.captions)`.

    Raises:
        ValueError: rows or steps out of range, codes that are not finite numbers, or a decoder that returns something
            else.

    Example:
        >>> def decode(codes):
        ...     return 1 / (1 + np.exp(-codes[:, :, None] * np.ones((1, 1, 4))))
        >>> traversals = traverse_codes(decode, np.random.default_rng(0).standard_normal((50, 3)), rows=2, steps=5)
        >>> traversals.images.shape
        (3, 2, 5, 3, 4, 1)
    """
    representation = Representation(
        as_array(codes), log_variances=None if log_variances is None else as_array(log_variances)
    )
    n_samples, n_codes = representation.codes.shape
    if representation.codes.dtype.kind not in "fiu":
        raise ValueError(f"codes must be numbers; got dtype {representation.codes.dtype}")
    if not np.isfinite(representation.codes).all():
        row, column = np.argwhere(~np.isfinite(representation.codes))[0]
        raise ValueError(f"codes must be finite; row {row}, column {column} is {representation.codes[row, column]}")
    check_whole("rows", rows, 1, n_samples)
    check_whole("steps", steps, 2)
    check_whole("seed", seed, 0)
    seeds = representation.codes[np.random.default_rng(seed).choice(n_samples, rows, replace=False)]
    trajectories = [_Trajectory([code]) for code in range(n_codes)]
    return _traversed(
        partial(_decoded, decode),
        representation,
        representation.codes.var(axis=0, dtype=np.float64),
        trajectories,
        seeds,
        steps,
    )


def _traversed(
    decode: Callable[[FloatArray], FloatArray],
    representation: Representation,
    variances: FloatArray,
    trajectories: Sequence["_Trajectory"],
    seeds: FloatArray,
    steps: int,
) -> Traversals:
    """Traversals without originals; `seeds` (n_rows, n_codes) are the values of the codes that do not move."""
    kl, informative = representation.mean_kl(), representation.informative()
    spread = np.array([variances[trajectory.codes].sum() for trajectory in trajectories], dtype=np.float64)
    places = np.argsort(-(spread if kl is None else kl), kind="stable")
    trajectories = [trajectories[place] for place in places]
    order = np.array([trajectory.codes[0] for trajectory in trajectories])
    low, high = np.quantile(representation.codes, [0.02, 0.98], axis=0)
    lines = np.linspace(low, high, steps, axis=1)
    for trajectory in trajectories:
        if trajectory.quantized:
            levels = np.unique(representation.codes[:, trajectory.codes[0]])
            lines[trajectory.codes[0]] = levels[np.linspace(0, len(levels) - 1, steps).round().astype(int)]
    around = 2 * np.pi * np.arange(steps) / steps
    values = np.stack([around if trajectory.circle else lines[trajectory.codes[0]] for trajectory in trajectories])
    moved = np.tile(seeds[None, :, None].astype(np.float32), (len(trajectories), 1, steps, 1))
    for place, trajectory in enumerate(trajectories):
        _move(moved[place], trajectory, values[place])
    images = decode(moved.reshape(-1, moved.shape[-1]))
    return Traversals(
        None,
        None,
        images.reshape(*moved.shape[:3], *images.shape[1:]),
        values,
        order,
        None if kl is None else kl[order],
        spread[places],
        tuple(trajectory.circle for trajectory in trajectories),
        None if informative is None else informative[order],
    )


def _channels_second(shape: tuple[int, ...]) -> bool:
    """Whether images of this shape are (n, channels, height, width)."""
    return shape[3] > MOST_CHANNELS or (shape[1] in (1, 3) and shape[3] not in (1, 3))


def _decoded(decode: Callable[[Any], Any], codes: FloatArray) -> FloatArray:
    """(n, height, width, channels), 0 .. 1"""
    if isinstance(decode, nn.Module):
        weights = next(decode.parameters(), torch.empty(0))
        with torch.no_grad():
            output = decode(torch.from_numpy(codes).to(weights))
    else:
        output = decode(codes)
    images = as_array(output).astype(np.float32)
    if images.ndim == 3:
        images = images[..., None]
    elif images.ndim == 4 and _channels_second(images.shape):
        images = np.moveaxis(images, 1, 3)
    if images.ndim != 4 or len(images) != len(codes) or images.shape[3] > MOST_CHANNELS:
        raise ValueError(
            f"decode must return images (n, height, width[, channels]) of {len(codes)} codes; got {images.shape}"
        )
    if not np.isfinite(images).all() or images.min() < -0.01 or images.max() > 1.01:
        raise ValueError(f"decode must return pixels from 0 to 1; got {images.min():g} to {images.max():g}")
    return np.clip(images, 0.0, 1.0)


@dataclass(frozen=True)
class _Trajectory:
    codes: list[int]  # that move
    circle: str = ""  # its name, for two codes
    sphere: tuple[int, int] = (0, 0)  # from which code to which, for one
    quantized: bool = False


def _trajectories(parts: Sequence[Part]) -> list[_Trajectory]:
    trajectories: list[_Trajectory] = []
    start = 0
    for part in parts:
        end = start + part.size
        if part.kind == "circle":
            trajectories.append(_Trajectory([start, start + 1], part.name))
        else:
            sphere = (start, end) if part.kind == "sphere" else (0, 0)
            quantized = part.kind == "quantized"
            trajectories += [_Trajectory([code], sphere=sphere, quantized=quantized) for code in range(start, end)]
        start = end
    return trajectories


def _move(codes: FloatArray, trajectory: _Trajectory, values: FloatArray) -> None:
    """Set the moving code in codes (n_rows, n_steps, n_codes), in place, to the values (n_steps,)."""
    if trajectory.circle:
        codes[..., trajectory.codes] = np.stack([np.cos(values), np.sin(values)], axis=-1)
        return
    first, end = trajectory.sphere
    rest = [code for code in range(first, end) if code not in trajectory.codes]
    if rest:
        left = np.sqrt(np.maximum((codes[..., rest] ** 2).sum(-1), 1e-12))
        codes[..., rest] *= (np.sqrt(np.maximum(1 - values**2, 0)) / left)[..., None]
    codes[..., trajectory.codes[0]] = values
