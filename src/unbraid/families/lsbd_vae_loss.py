"""The LSBD-VAE: what is known of the transformations within a group of images."""

import math
from typing import NamedTuple

import torch
from torch import Tensor

from unbraid.families.delta_vae_loss import delta_vae
from unbraid.families.delta_vae_networks import CirclePosterior, to_circle


class Anchor(NamedTuple):
    """Where the first image of each group is, by the word of all images of the group."""

    points: Tensor  # (n_groups, 1, n_circles, 2), on circles
    values: Tensor  # (n_groups, 1, n_euclidean)


def rotate(points: Tensor, turns: Tensor) -> Tensor:
    """rho(g) z: points (..., 2) rotated by `turns` (...) full turns, counter-clockwise."""
    angle = 2 * math.pi * turns
    cosine, sine = angle.cos(), angle.sin()
    x, y = points.unbind(-1)
    return torch.stack([cosine * x - sine * y, sine * x + cosine * y], dim=-1)


def anchor_of(points: Tensor, values: Tensor, turns: Tensor) -> Anchor:
    """The mean of the group's latents after each has been turned back, on the circles again.

    Args:
        points: (n_groups, m, n_circles, 2) z_1 ... z_m.
        values: (n_groups, m, n_euclidean), on which the group acts by leaving them alone.
        turns: (n_groups, m, n_circles) of g_1 ... g_m, where x_m = g_m x_1.
    """
    back = rotate(points, -turns)
    return Anchor(to_circle(back.mean(1, keepdim=True)), values.mean(1, keepdim=True))


def lsbd_loss(points: Tensor, values: Tensor, turns: Tensor) -> Tensor:
    """Squared distance of turned-back latents from their anchor, mean over a group: (n_groups,).

    0 for latents that turn as their images do. Args as `anchor_of`.

    Reference:
        Tonnaer et al. 2022 (LSBD), eq. 11; summed over circles and lines, as the squared norm of the product of
        spaces is. On a line the mean needs no way back. The authors' code takes the distance of the concatenated
        circles, clipped, which costs nothing for errors of up to 120 degrees on both of two circles, and sums over
        the group: their gamma is m times this one's.
    """
    anchor = anchor_of(points, values, turns)
    off_circle = (rotate(points, -turns) - anchor.points).square().sum((-1, -2))
    off_line = (values - anchor.values).square().sum(-1)
    return (off_circle + off_line).mean(1)


def lsbd_vae(
    posterior: CirclePosterior, reconstruction: Tensor, disorder: Tensor, *, gamma: Tensor | float
) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of groups with known transformations: negative ELBO + gamma * L_LSBD.

    Args:
        posterior: of DeltaVAE, of all images of all groups.
        reconstruction: (n,) of the same images, decoded from the anchors turned as they are.
        disorder: (n_groups,) of `lsbd_loss`.
        gamma: weight, 100 in the paper for full symmetries and 1 for turning objects.

    Returns:
        The loss, and those of `delta_vae` by name with "lsbd".

    Reference:
        Tonnaer et al. 2022 (LSBD), section 5.
    """
    loss, logs = delta_vae(posterior, reconstruction)
    lsbd = disorder.mean()
    return loss + gamma * lsbd, {**logs, "lsbd": lsbd}
