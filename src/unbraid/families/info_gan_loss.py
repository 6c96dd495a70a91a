"""InfoGAN with a Wasserstein critic: gradient penalty and a bound on what images tell about their codes."""

import math
from collections.abc import Callable

import torch
from torch import Tensor


def gradient_penalty(critic: Callable[[Tensor], Tensor], real: Tensor, fake: Tensor, mix: Tensor) -> Tensor:
    """Mean squared distance from 1 of the length of the critic's gradient, between real and made images.

    Args:
        critic: images (n, ...) -> scores (n,), each of its own image only (no batch norm).
        real, fake: (n, ...) images; gradients reach neither.
        mix: (n,) on [0, 1], where between a real (0) and a made image (1) to look.

    Reference:
        Gulrajani et al. 2017, "Improved Training of Wasserstein GANs", eq. 3 and algorithm 1.
    """
    real, fake = real.detach(), fake.detach()
    between = real + mix.reshape(-1, *[1] * (real.ndim - 1)) * (fake - real)
    slopes = torch.func.grad(lambda images: critic(images).sum())(between)
    # A critic that is flat somewhere has no direction there; the root's derivative at 0 would be infinite.
    lengths = (slopes.flatten(1).square().sum(1) + 1e-12).sqrt()
    return (lengths - 1).square().mean()


def code_information(mean: Tensor, codes: Tensor, *, code_entropy: float) -> Tensor:
    """Lower bound on the information that made images carry about their codes, nats: E log Q(c|x) + H(c).

    Q is normal with standard deviation 1 as in DCI 2018, so the bound saturates at H(c) - log(2 pi) / 2 per code, which
    is below 0 for codes uniform on (-1, 1): only its changes mean something.

    Args:
        mean: (n, n_codes), Q's on made images.
        codes: (n, n_codes) that the images were made from.
        code_entropy: entropy of one code, nats: log 2 on (-1, 1) uniform, log(2 pi e) / 2 standard normal.

    Reference:
        Chen et al. 2016, "InfoGAN", eq. 5.
    """
    log_likelihood = -0.5 * ((codes - mean).square() + math.log(2 * math.pi))
    return (log_likelihood + code_entropy).sum(-1).mean()


def critic_loss(
    real_scores: Tensor,
    fake_scores: Tensor,
    penalty: Tensor,
    information: Tensor,
    *,
    gradient_weight: Tensor | float = 10.0,
    information_weight: Tensor | float = 6.0,
) -> tuple[Tensor, dict[str, Tensor]]:
    """The critic's loss, which trains Q too because they share layers.

    Args:
        real_scores, fake_scores: (n,) of images of the data and of made ones.
        penalty: of `gradient_penalty`.
        information: of `code_information` on the made images.
        gradient_weight: of the penalty.
        information_weight: of the information, lambda in DCI 2018.

    Returns:
        The loss, and by name "wasserstein" (the estimated distance, real minus made), "gradient_penalty" and
        "code_information".

    Reference:
        Gulrajani et al. 2017, eq. 3, with Chen et al. 2016's bound; DCI 2018 appendix A.
    """
    distance = real_scores.mean() - fake_scores.mean()
    loss = gradient_weight * penalty - distance - information_weight * information
    return loss, {"wasserstein": distance, "gradient_penalty": penalty, "code_information": information}


def generator_loss(
    fake_scores: Tensor, information: Tensor, *, information_weight: Tensor | float = 6.0
) -> tuple[Tensor, dict[str, Tensor]]:
    """The generator's loss: minus the score of its images, minus the weighted information about their codes.

    Returns:
        The loss, and "generator_score" by name.
    """
    score = fake_scores.mean()
    return -score - information_weight * information, {"generator_score": score}
