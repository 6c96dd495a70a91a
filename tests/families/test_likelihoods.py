"""Likelihoods against scipy, and against integrals."""

import numpy as np
import pytest
import torch
from scipy import stats

from unbraid.families.likelihoods import (
    bernoulli_nll,
    decoded_images,
    gaussian_nll,
    negative_log_likelihood,
)


def numbers(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape))


def test_bernoulli_is_scipys_summed_over_the_pixels_of_each_image():
    logits = numbers(3, 2, 4, 5)
    images = (numbers(3, 2, 4, 5, seed=1) > 0).double()
    expected = -stats.bernoulli.logpmf(images.numpy(), torch.sigmoid(logits).numpy()).reshape(3, -1).sum(axis=1)
    np.testing.assert_allclose(bernoulli_nll(logits, images), expected)


def test_grey_pixels_count_as_probabilities():
    """-(0.25 log p + 0.75 log(1 - p)) with p = sigmoid(log 3) = 3/4: 0.25 log(4/3) + 0.75 log 4 = 1.1116."""
    value = bernoulli_nll(torch.full((1, 1), float(np.log(3)), dtype=torch.float64), torch.full((1, 1), 0.25).double())
    assert value.item() == pytest.approx(0.25 * np.log(4 / 3) + 0.75 * np.log(4))


@pytest.mark.parametrize("sigma", [1.0, 0.1, 3.0])
def test_gaussian_is_scipys_for_numbers_and_tensors(sigma):
    means, images = numbers(3, 1, 4, 5), numbers(3, 1, 4, 5, seed=1)
    expected = -stats.norm.logpdf(images.numpy(), means.numpy(), sigma).reshape(3, -1).sum(axis=1)
    np.testing.assert_allclose(gaussian_nll(means, images, sigma), expected)
    np.testing.assert_allclose(gaussian_nll(means, images, torch.tensor(sigma, dtype=torch.float64)), expected)


def test_each_likelihood_by_name():
    decoded, images = numbers(2, 1, 3, 3), torch.full((2, 1, 3, 3), 0.5, dtype=torch.float64)
    assert torch.equal(negative_log_likelihood(decoded, images), bernoulli_nll(decoded, images))
    assert torch.equal(negative_log_likelihood(decoded, images, "gaussian", 2.0), gaussian_nll(decoded, images, 2.0))
    assert torch.equal(decoded_images(decoded), torch.sigmoid(decoded))
    assert torch.equal(decoded_images(decoded, "gaussian"), decoded)
