"""WeakDE: an adversarial autoencoder, and a learner of relations between classes."""

from torch import Tensor
from torch.nn import functional


def generator_loss(logits: Tensor) -> Tensor:
    """Cross-entropy of taking codes for samples of the prior, nats.

    Args:
        logits: (n,) of the discriminator on codes, high for samples of the prior.

    Reference:
        Makhzani et al. 2015, "Adversarial Autoencoders"; Valenti and Bacciu 2022, as in the authors' code.
    """
    return functional.softplus(-logits).mean()


def discriminator_loss(logits: Tensor, prior_logits: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
    """Cross-entropy of telling codes (n,) from samples of the prior (n,), the mean of both; log 2 when it cannot.

    Returns:
        The loss, and by name "accuracy".

    Reference:
        As `generator_loss`.
    """
    loss = 0.5 * (functional.softplus(logits).mean() + functional.softplus(-prior_logits).mean())
    accuracy = 0.5 * ((logits < 0).to(loss.dtype).mean() + (prior_logits > 0).to(loss.dtype).mean())
    return loss, {"accuracy": accuracy}


def relation_loss(predicted: Tensor, targets: Tensor) -> Tensor:
    """Squared distance of codes (n, n_relations, n_latents) from their targets, mean over samples and relations.

    Reference:
        Valenti and Bacciu 2022, as in the authors' code: both ends are samples of the prior.
    """
    return (predicted - targets).square().sum(-1).mean()
