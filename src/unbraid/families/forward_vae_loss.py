"""ForwardVAE: a VAE whose next mean is a linear function of its latents."""

from collections.abc import Sequence

import torch
from torch import Tensor

from unbraid.families.divergences import gaussian_kl

DECAY = 0.995  # of the weight of the KL, per step


def plane_matrices(blocks: Tensor, planes: Sequence[int], n: int) -> Tensor:
    """One matrix per action: the identity but for a free 2 x 2 block on the action's plane.

    Args:
        blocks: (n_actions, 2, 2).
        planes: of each action; plane k is spanned by latents 2 k and 2 k + 1.
        n: number of latents.

    Returns:
        (n_actions, n, n).

    Example:
        >>> plane_matrices(torch.tensor([[[2.0, 3.0], [4.0, 5.0]]]), (1,), 4)[0].long().tolist()
        [[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 2, 3], [0, 0, 4, 5]]
    """
    identity = torch.eye(n, dtype=blocks.dtype, device=blocks.device)
    matrices = []
    for block, plane in zip(blocks.unbind(0), planes, strict=True):
        place = identity[:, 2 * plane : 2 * plane + 2]
        matrices.append(identity - place @ place.T + place @ block @ place.T)
    return torch.stack(matrices)


def forward_vae(
    squares: Tensor,
    mean: Tensor,
    log_deviation: Tensor,
    predicted: Tensor,
    following: Tensor,
    *,
    beta: Tensor | float,
    step: Tensor | int,
) -> tuple[Tensor, dict[str, Tensor]]:
    """Mean squared errors of the image and of the next mean, and a KL that fades away.

    Args:
        squares: (n,) mean squared error of the pixels of each image.
        mean, log_deviation: (n, d) of the posterior of the first images; the KL takes the logarithm of the standard
            deviation for that of the variance.
        predicted: (n, d) A z, for z sampled from that posterior and the matrix A of the action.
        following: (n, d) posterior means of the next images, not detached.
        beta: weight of the KL at the first step; it is multiplied by 0.995 every step.
        step: how many steps came before.

    Returns:
        The loss; "reconstruction" (mean squared error per pixel), "kl" (nats per image) and "forward".

    Reference:
        Caselles-Dupre et al. 2019, section 4, as in the authors' code: all three terms are means over their
        elements, the KL over latents, too. What the KL takes for a log-variance, sampling takes for the logarithm of
        the standard deviation, there as here: with the noise of the former reading nothing is learned.
    """
    kl = gaussian_kl(mean, log_deviation)
    forward = (predicted - following).square().mean()
    # As a power of e, since `step` may be a tensor of whole numbers.
    fading = torch.exp(torch.as_tensor(step, dtype=mean.dtype, device=mean.device) * LOG_DECAY)
    loss = squares.mean() + beta * fading * kl.mean() + forward
    return loss, {"reconstruction": squares.mean(), "kl": kl.sum(-1).mean(), "forward": forward}


LOG_DECAY = torch.log(torch.tensor(DECAY, dtype=torch.float64)).item()
