"""Traversals of a decoder that this package knows nothing of."""

import numpy as np
import pytest
import torch
from torch import nn

from unbraid.runs.run_traversals import traverse_codes
from unbraid.show import plot_traversals

RNG = np.random.default_rng(0)
CODES = RNG.standard_normal((200, 3)) * [0.1, 1.0, 2.0]


def bars(codes):
    """Bar k of the picture is as bright as code k."""
    return np.repeat(1 / (1 + np.exp(-codes[:, :, None])), 5, axis=2)


def test_one_code_moves_through_its_range_and_others_stay() -> None:
    found = traverse_codes(bars, CODES, rows=2, steps=5)
    assert found.codes.tolist() == [2, 1, 0]
    assert found.images.shape == (3, 2, 5, 3, 5, 1)
    logits = np.log(found.images / (1 - found.images))[..., 0, 0]
    low, high = np.quantile(CODES, [0.02, 0.98], axis=0)
    for place, code in enumerate(found.codes):
        np.testing.assert_allclose(logits[place, :, :, code], [np.linspace(low[code], high[code], 5)] * 2, rtol=1e-3)
        for other in {0, 1, 2} - {code}:
            assert np.ptp(logits[place, :, :, other], axis=1).max() < 1e-4
            assert all(np.abs(CODES[:, other] - value).min() < 1e-3 for value in logits[place, :, 0, other])
    assert found.captions[0].startswith(f"code 2: variance {CODES[:, 2].var():.3g}, {low[2]:.2f} to {high[2]:.2f}")
    assert plot_traversals(found.images, captions=found.captions).get_size_inches().min() > 0


def test_posteriors_give_kl_and_the_order() -> None:
    found = traverse_codes(bars, CODES, log_variances=np.log([[0.01, 1.0, 1.0]]) + np.zeros((200, 3)))
    assert found.kl is not None
    expected = 0.5 * (CODES**2 + [[0.01, 1.0, 1.0]] - 1 - np.log([[0.01, 1.0, 1.0]])).mean(axis=0)
    np.testing.assert_allclose(found.kl, np.sort(expected)[::-1])


def test_a_module_is_given_tensors_and_may_put_channels_first() -> None:
    decoder = nn.Sequential(nn.Linear(3, 48), nn.Sigmoid(), nn.Unflatten(1, (3, 4, 4)))
    found = traverse_codes(decoder, torch.from_numpy(CODES), rows=1, steps=2)
    assert found.images.shape == (3, 1, 2, 4, 4, 3)
    codes = torch.from_numpy(CODES[np.random.default_rng(0).choice(200, 1, replace=False)]).float()
    codes[0, 1] = float(np.quantile(CODES[:, 1], 0.02))
    expected = decoder(codes).detach().movedim(1, 3)[0]
    np.testing.assert_allclose(found.images[1, 0, 0], expected, atol=1e-6)
    half = traverse_codes(decoder.to(torch.bfloat16), torch.from_numpy(CODES), rows=1, steps=2)
    np.testing.assert_allclose(half.images, found.images, atol=0.02)


def test_pixels_go_from_0_to_1() -> None:
    with pytest.raises(ValueError, match="decode must return pixels from 0 to 1; got 0 to 1.5"):
        traverse_codes(lambda codes: 1.5 * (bars(codes) > 0.5), CODES)
    with pytest.raises(ValueError, match="decode must return images"):
        traverse_codes(lambda codes: bars(codes)[1:], CODES)
