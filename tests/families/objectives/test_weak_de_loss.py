"""WeakDE's losses against SciPy and by hand."""

import numpy as np
import pytest
import torch
from scipy.special import expit

from unbraid.families.weak_de import discriminator_loss, generator_loss, relation_loss

OWN, PRIOR = np.array([-2.0, 0.5, 3.0]), np.array([1.0, -0.25, 4.0])


def test_the_discriminator_calls_samples_of_the_prior_true() -> None:
    loss, logs = discriminator_loss(torch.from_numpy(OWN), torch.from_numpy(PRIOR))
    assert loss.item() == pytest.approx(-(np.log(1 - expit(OWN)).mean() + np.log(expit(PRIOR)).mean()) / 2)
    assert logs["accuracy"].item() == pytest.approx((1 / 3 + 2 / 3) / 2)


def test_the_generator_wants_codes_called_true() -> None:
    assert generator_loss(torch.from_numpy(OWN)).item() == pytest.approx(-np.log(expit(OWN)).mean())


def test_relations_by_hand() -> None:
    """Two samples, two relations: distances 5, 0, 1, 2, squared and averaged."""
    predicted = torch.tensor([[[3.0, 4.0], [1.0, 1.0]], [[0.0, 1.0], [2.0, 0.0]]])
    targets = torch.tensor([[[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]])
    assert relation_loss(predicted, targets).item() == pytest.approx((25 + 0 + 1 + 4) / 4)
