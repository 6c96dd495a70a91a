"""PartedVAE's objective against integrals, torch's distributions and sums by hand."""

import math

import numpy as np
import pytest
import torch
from scipy import integrate, stats
from torch.distributions import Normal, kl_divergence

from tests.families.objectives.posteriors import normal
from unbraid.families.divergences import kl_from
from unbraid.families.parted_vae import PartedPosterior, bhattacharyya, class_cross_entropy, parted_vae, too_close

MEANS = torch.tensor([[0.0, 1.0], [0.7, -1.0], [3.0, 0.5]], dtype=torch.float64)
LOG_VARIANCES = torch.tensor([[0.0, -2.0], [0.9, -0.3], [-2.5, 0.4]], dtype=torch.float64)
WEIGHTS = {"gamma_z": 2.0, "gamma_u": 3.0, "gamma_c": 5.0, "gamma_h": 7.0, "gamma_bc": 11.0}


def test_the_overlap_is_the_integral_of_the_root_of_the_product() -> None:
    found = bhattacharyya(MEANS, LOG_VARIANCES)
    for i in range(3):
        for j in range(3):
            expected = 1.0
            for d in range(2):
                p, q = (stats.norm(MEANS[k, d].item(), math.exp(LOG_VARIANCES[k, d].item() / 2)) for k in (i, j))
                expected *= integrate.quad(lambda x, p=p, q=q: math.sqrt(p.pdf(x) * q.pdf(x)), -15, 15, limit=200)[0]
            assert found[i, j].item() == pytest.approx(expected, abs=1e-9)


def test_only_overlaps_of_different_classes_above_the_threshold_cost_and_once_each() -> None:
    overlaps = bhattacharyya(MEANS, LOG_VARIANCES).numpy()
    pairs = np.array([overlaps[0, 1], overlaps[0, 2], overlaps[1, 2]])
    threshold = float(np.median(pairs))
    expected = np.maximum(pairs - threshold, 0).sum()
    assert too_close(MEANS, LOG_VARIANCES, threshold).item() == pytest.approx(expected)
    assert too_close(MEANS, LOG_VARIANCES, 1.0).item() == 0


def test_kl_is_that_of_torch() -> None:
    mean, log_variance = normal(3, 2), normal(3, 2, seed=5)
    expected = kl_divergence(Normal(mean, (log_variance / 2).exp()), Normal(MEANS, (LOG_VARIANCES / 2).exp()))
    torch.testing.assert_close(kl_from(mean, log_variance, MEANS, LOG_VARIANCES), expected)


def test_cross_entropy_adds_up_over_categoricals() -> None:
    logits = torch.tensor([[2.0, 0.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    expected = math.log(1 + math.exp(-2)) + math.log(3)
    assert class_cross_entropy(logits, torch.tensor([[0, 2]]), (2, 3)).item() == pytest.approx(expected)


@pytest.mark.parametrize("step", [0, 250, 4000])
def test_all_terms_of_two_categoricals_by_hand(step: int) -> None:
    """4 images, categoricals of 2 and 3 classes, u of one number each; every sum a loop."""
    sizes, prior_means, prior_logs = (2, 3), normal(5, 1, seed=2), normal(5, 1, seed=3)
    posterior = PartedPosterior(
        normal(4, 2), normal(4, 2, seed=4), normal(4, 5, seed=5), normal(4, 2, 1, seed=6), normal(4, 2, 1, seed=7)
    )
    fit = normal(4, seed=8).abs()
    loss, logs = parted_vae(
        posterior, prior_means, prior_logs, fit, sizes,
        step=step, z_capacity=30.0, u_capacity=5.0, capacity_steps=1000, threshold=0.2, **WEIGHTS,
    )  # fmt: skip
    kl_z = kl_u = class_kl = entropy = overlap = 0.0
    for image in range(4):
        q = Normal(posterior.mean[image], (posterior.log_variance[image] / 2).exp())
        kl_z += kl_divergence(q, Normal(torch.zeros(2).double(), torch.ones(2).double())).sum().item() / 4
    for place, (start, size) in enumerate(((0, 2), (2, 3))):
        chances = posterior.logits[:, start : start + size].softmax(1).numpy()
        shares = chances.mean(0)
        class_kl += sum(share * math.log(share * size) for share in shares)
        entropy += -(chances * np.log(chances)).sum() / 4
        priors = [Normal(prior_means[start + k], (prior_logs[start + k] / 2).exp()) for k in range(size)]
        for image in range(4):
            own = Normal(posterior.class_mean[image, place], (posterior.class_log_variance[image, place] / 2).exp())
            kl_u += sum(chances[image, k] * kl_divergence(own, priors[k]).item() for k in range(size)) / 4
        overlaps = bhattacharyya(prior_means[start : start + size], prior_logs[start : start + size])
        overlap += sum(max(0, overlaps[i, j].item() - 0.2) for j in range(size) for i in range(j))
    progress = min(1, step / 1000)
    expected = fit.mean().item() + 2 * abs(30 * progress - kl_z) + 3 * abs(5 * progress - kl_u)
    expected += 5 * class_kl + 7 * entropy + 11 * overlap
    assert loss.item() == pytest.approx(expected)
    found = [logs[name].item() for name in ("kl_z", "kl_u", "class_kl", "class_entropy", "overlap")]
    assert found == pytest.approx([kl_z, kl_u, class_kl, entropy, overlap])


def test_classes_that_no_image_has_leave_gradients_finite() -> None:
    logits = torch.tensor([[900.0, 0.0, 0.0]] * 4, dtype=torch.float64, requires_grad=True)
    posterior = PartedPosterior(normal(4, 2), normal(4, 2), logits, normal(4, 1, 1), normal(4, 1, 1))
    loss, logs = parted_vae(
        posterior, normal(3, 1), normal(3, 1), normal(4), (3,),
        step=0, z_capacity=1.0, u_capacity=1.0, capacity_steps=10, threshold=0.1, **WEIGHTS,
    )  # fmt: skip
    assert logs["class_kl"].item() == pytest.approx(math.log(3))
    assert logs["class_entropy"].item() == pytest.approx(0)
    assert torch.isfinite(torch.autograd.grad(loss, logits)[0]).all()
