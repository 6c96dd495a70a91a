"""Principal components against Jacobi's rotations of a covariance matrix added up by loops."""

import math

import numpy as np
import pytest
import torch

from tests.families.members import DATASET, coded
from unbraid.base.types import FloatArray


def jacobi(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, largest first, and eigenvectors as rows: off-diagonal entries are turned away one after another."""
    n, vectors = len(matrix), np.eye(len(matrix))
    for _ in range(30):
        for i in range(n):
            for j in range(i + 1, n):
                angle = 0.5 * math.atan2(2 * matrix[i, j], matrix[j, j] - matrix[i, i])
                turn = np.eye(n)
                turn[i, i] = turn[j, j] = math.cos(angle)
                turn[i, j], turn[j, i] = math.sin(angle), -math.sin(angle)
                matrix, vectors = turn.T @ matrix @ turn, vectors @ turn
    order = np.argsort(-np.diag(matrix))
    return np.diag(matrix)[order], vectors.T[order]


@pytest.mark.parametrize("fit_images", [20_000, 20])
def test_codes_are_coordinates_along_the_directions_of_most_variance(fit_images: int) -> None:
    """Of all 60 images, or of 20 evenly spaced."""
    found = coded("pca", latents=3, fit_images=fit_images)
    rows = DATASET.array.transpose(0, 3, 1, 2).reshape(60, 6) / 255.0
    fitted = rows[:: 3 if fit_images == 20 else 1]
    mean = sum(fitted, np.zeros(6)) / len(fitted)
    covariance = sum((np.outer(row - mean, row - mean) for row in fitted), np.zeros((6, 6))) / (len(fitted) - 1)
    variances, vectors = jacobi(covariance)
    assert (np.diff(variances) < -1e-4).all()
    expected = (rows @ vectors[:3].T) - mean @ vectors[:3].T
    codes = found.codes.numpy()
    seen = expected[: len(codes)]
    signs = np.sign((codes * seen).sum(0))
    np.testing.assert_allclose(codes, seen * signs, atol=1e-6)
    back = seen @ vectors[:3] + mean
    np.testing.assert_allclose(found.decoded.flatten(1).numpy(), back, atol=1e-6)
    assert found.log_variances is None
    components = found.weights["pca.components"]
    assert bool((components.gather(1, components.abs().argmax(1, keepdim=True)) > 0).all())
    assert torch.equal(found.images[1].flatten(), torch.from_numpy(rows[1]))
