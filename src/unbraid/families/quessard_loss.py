"""Quessard's environment model: trajectories unrolled by rotations of the first code."""

import torch
from torch import Tensor


def unroll(first: Tensor, matrices: Tensor, actions: Tensor) -> Tensor:
    """Codes of whole trajectories: z_(t + 1) = rho(a_t) z_t.

    Args:
        first: (n, d) codes of the first images.
        matrices: (n_actions, d, d).
        actions: (n, T) whole numbers.

    Returns:
        (n, T + 1, d), the first code included.
    """
    codes = [first]
    for action in actions.unbind(1):
        codes.append((matrices[action.long()] @ codes[-1][..., None]).squeeze(-1))
    return torch.stack(codes, dim=1)


def entanglement(angles: Tensor) -> Tensor:
    """Mean over actions of the squared angles of all planes but the largest; 0 where every action turns one plane.

    Args:
        angles: (n_actions, n_planes) radians.

    Reference:
        Quessard et al. 2020, section 3.2: the regulariser that makes the representation disentangled.
    """
    squares = angles.square()
    return (squares.sum(-1) - squares.amax(-1)).mean()


def quessard(
    reconstruction: Tensor, angles: Tensor, *, n_pixels: int, strength: Tensor | float
) -> tuple[Tensor, dict[str, Tensor]]:
    """Mean error along trajectories plus the entanglement of the actions; nats per pixel.

    Args:
        reconstruction: (n, T + 1) nats per image.
        angles: (n_actions, n_planes) radians.
        n_pixels: values of an image.
        strength: of the entanglement, lambda; 0.01 in the paper.

    Returns:
        The loss; "reconstruction" in nats per image and "entanglement" in squared radians.

    Reference:
        Quessard et al. 2020, eq. 1-2 as in the authors' code: T + 1 terms are divided by T.
    """
    frames = reconstruction.shape[1]
    entangled = entanglement(angles)
    loss = reconstruction.mean() / n_pixels * frames / (frames - 1) + strength * entangled
    return loss, {"reconstruction": reconstruction.mean(), "entanglement": entangled}
