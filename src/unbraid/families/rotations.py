"""A matrix of rotation for every action, learned by the angles of its planes."""

import math
from itertools import combinations

import torch
from torch import Tensor, nn


def rotation_matrices(angles: Tensor, n: int) -> Tensor:
    """Products of rotations in all planes: (..., n (n - 1) / 2) angles to (..., n, n) matrices of SO(n).

    The product runs over planes (1, 2), (1, 3), ..., (n - 1, n) from the left; the rotation in plane (i, j) has
    cos at (i, i) and (j, j), sin at (i, j) and -sin at (j, i).

    Reference:
        Quessard et al. 2020, section 3; order and signs as in the authors' code.

    Example:
        >>> rotation_matrices(torch.tensor([torch.pi / 2]), 2).round().long().tolist()
        [[0, 1], [-1, 0]]
    """
    cosine, sine = angles.cos(), angles.sin()
    product = torch.eye(n, dtype=angles.dtype, device=angles.device).expand(*angles.shape[:-1], n, n)
    for plane, (i, j) in enumerate(combinations(range(n), 2)):
        c, s = cosine[..., plane, None], sine[..., plane, None]
        columns = list(product.unbind(-1))
        columns[i], columns[j] = c * columns[i] - s * columns[j], s * columns[i] + c * columns[j]
        product = torch.stack(columns, dim=-1)
    return product


class ActionRotations(nn.Module):
    """One rotation of n-dimensional codes per action.

    Args:
        n_actions: how many.
        n: dimension of the codes.
        speed: the angles are this times the parameters, and so learn this many times as fast as other parameters
            under the same Adam, whose steps do not depend on the scale of gradients.

    Angles start uniform on (-pi / n, pi / n), from torch's generator.
    """

    def __init__(self, n_actions: int, n: int, speed: float = 1.0) -> None:
        super().__init__()
        self.n, self.speed = n, speed
        start = torch.empty(n_actions, n * (n - 1) // 2).uniform_(-math.pi / n, math.pi / n)
        self.parameters_of_angles = nn.Parameter(start / speed)

    @property
    def angles(self) -> Tensor:
        """(n_actions, n (n - 1) / 2), radians."""
        return self.speed * self.parameters_of_angles

    def forward(self) -> Tensor:
        """(n_actions, n, n)."""
        return rotation_matrices(self.angles, self.n)
