"""Codes drawn from a model's prior, and interpolated between images."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from unbraid.base.types import FloatArray
from unbraid.families.family import Part


def drawn_by_parts(parts: Sequence[Part], normal: Tensor) -> Tensor:
    """Codes (n, n_codes) of the default prior: standard normal, and uniform on circles.

    Args:
        parts: the kinds of codes; each has a prior.
        normal: (n, n_codes) standard normal.
    """
    pieces = [
        # The direction of a Gaussian point is uniform.
        piece / piece.norm(dim=-1, keepdim=True) if part.kind == "circle" else piece
        for part, piece in zip(parts, normal.split([part.size for part in parts], dim=-1), strict=True)
    ]
    return torch.cat(pieces, dim=-1)


def noise(n: int, n_codes: int, seed: int) -> tuple[Tensor, Tensor]:
    """Standard normal and uniform numbers, (n, n_codes) each; the first rows are the same for any n."""
    rows = [np.random.default_rng((seed, row)) for row in range(n)]
    normal = np.array([rng.standard_normal(n_codes) for rng in rows], dtype=np.float32)
    uniform = np.array([rng.random(n_codes) for rng in rows], dtype=np.float32)
    return torch.from_numpy(normal), torch.from_numpy(uniform)


def between(parts: Sequence[Part], one: FloatArray, other: FloatArray, share: FloatArray) -> FloatArray:
    """Codes (n, n_steps, n_codes) from `one` to `other`, (n, n_codes) each.

    Linear, except on circles and spheres, where the path is the shorter arc at constant speed.

    Args:
        parts: the kinds of codes.
        one, other: the ends.
        share: (n_steps,) of the path, 0 to 1.
    """
    pieces, start = [], 0
    for part in parts:
        low, high = (codes[:, None, start : start + part.size].astype(np.float64) for codes in (one, other))
        way = share[None, :, None]
        if part.kind in ("circle", "sphere"):
            cosine = (low * high).sum(-1, keepdims=True)
            angle = np.arccos(np.clip(cosine, -1, 1))
            across = high - cosine * low  # at a right angle to the first end, in the plane of both
            length = np.linalg.norm(across, axis=-1, keepdims=True)
            aside = np.where(length > 1e-12, across / np.maximum(length, 1e-12), _any_right_angle(low))
            pieces.append(np.cos(way * angle) * low + np.sin(way * angle) * aside)
        else:
            pieces.append(low + way * (high - low))
        start += part.size
    return np.concatenate(pieces, axis=-1)


def _any_right_angle(points: FloatArray) -> FloatArray:
    """Unit vectors orthogonal to points (..., size) of length 1, for antipodal ends."""
    axis = np.eye(points.shape[-1])[np.abs(points).argmin(-1)]
    across = axis - (axis * points).sum(-1, keepdims=True) * points
    return across / np.linalg.norm(across, axis=-1, keepdims=True)
