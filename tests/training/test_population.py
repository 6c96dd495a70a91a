"""Every family, alone and stacked: the same members."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from tests.training.training_examples import blocks, member
from unbraid.data.image_dataset import ArrayDataset
from unbraid.families.building import Member, build_member, structural_settings
from unbraid.families.family_table import FAMILIES
from unbraid.files.trust import Trusted
from unbraid.training import batches
from unbraid.training.population import Diverged, Population, make_context, make_population

CPU = torch.device("cpu")
TRAINED = [name for name, family in FAMILIES.items() if family.optimizer_steps]
DATASET = blocks()
TINY = ArrayDataset(np.ascontiguousarray(DATASET.array[:, ::4, ::4]), DATASET.space)  # 8 x 8, for dense networks


def population(family: str, members: list[Member], precision=torch.float64, **options) -> Population:
    dataset = TINY if members[0].hyper["network"] == "dense" else DATASET
    context = make_context(FAMILIES[family], members, dataset, batch_size=8, steps=20)
    return make_population(FAMILIES[family], members, dataset, context, device=CPU, precision=precision, **options)


def with_batch_norm(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """A small pair with running statistics, which are part of a member."""
    down = nn.Sequential(nn.Conv2d(shape[2], 4, 8, stride=8), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten())
    encoder = nn.Sequential(down, nn.Linear(4 * shape[0] * shape[1] // 64, n_outputs))
    inner = (4, shape[0] // 8, shape[1] // 8)
    up = nn.Sequential(nn.BatchNorm2d(4), nn.ReLU(), nn.ConvTranspose2d(4, shape[2], 8, stride=8))
    return encoder, nn.Sequential(nn.Linear(n_latents, math.prod(inner)), nn.Unflatten(1, inner), up)


BATCH_NORM = Trusted(f"{__name__}:with_batch_norm")
CASES = [(name, "dense") for name in TRAINED] + [("beta_vae", "conv"), ("factor_vae", BATCH_NORM)]


def varied(family: str, network: str = "dense") -> list[Member]:
    """Three members that differ in seed and in every number that may differ."""
    numbers = {name: each for name, each in FAMILIES[family].hyperparameters.items() if not each.is_structural}
    scaled = [
        {
            name: min(max(type(each.default)(scale * each.default), each.low), each.high)
            for name, each in numbers.items()
        }
        for scale in (1.0, 0.5, 1.5)
    ]
    return [member(family, seed, network=network, **settings) for seed, settings in zip((0, 7, 0), scaled, strict=True)]


@pytest.mark.parametrize(("family", "network"), CASES)
def test_stacked_members_equal_the_same_members_alone(family, network):
    # In double precision: Adam divides gradients by their own size, so that in single precision the noise in those
    # that are nearly zero becomes steps of full length.
    members = varied(family, network)
    stacked = population(family, members)
    alone = [population(family, [each]) for each in members]
    for step in range(2):  # of which the second has the moments of the first
        together = stacked.advance(step)
        single = [each.advance(step) for each in alone]
        for name in together:
            torch.testing.assert_close(together[name], torch.cat([each[name] for each in single]), rtol=1e-8, atol=1e-9)
    assert single[0] != single[2], "numbers that differ make members that differ"
    for index, each in enumerate(alone):
        mine, theirs = stacked.state(index), each.state(0)
        assert mine.keys() == theirs.keys()
        for name in mine:
            torch.testing.assert_close(mine[name], theirs[name], rtol=1e-7, atol=1e-9, msg=name)


@pytest.mark.parametrize("family", TRAINED)
def test_lower_precision_begins_like_double(family):
    alone = [member(family, network="dense")]
    expected = population(family, alone).advance(0)
    for precision, coarse in ((torch.float32, 1e-4), (torch.bfloat16, 0.05)):
        for stacked in (False, True):
            found = population(family, alone, precision, stacked=stacked).advance(0)
            assert found.keys() == expected.keys()
            for name, value in found.items():
                assert value.dtype == torch.float32
                torch.testing.assert_close(value.double(), expected[name], rtol=coarse, atol=coarse)


def test_twenty_steps_equal_a_plain_loop():
    """The loss of every step, against autograd, torch's Adam and formulas written out here."""
    ours = population("beta_vae", [member("beta_vae", 3, beta=2.0, learning_rate=1e-3)], torch.float32)
    modules = build_member(FAMILIES["beta_vae"], DATASET.image_shape, ours.context.settings, 3)
    vae = modules["vae"].eval()  # every layer is PyTorch's own
    optimizer = torch.optim.Adam(vae.parameters(), lr=1e-3)
    order = batches.epoch_positions(batches.streams([3], "images/images/0"), 0, 20 * 8, len(DATASET))[0]
    for step in range(20):
        pixels = DATASET.images(order[8 * step : 8 * step + 8].numpy()).astype(np.float32) / 255
        images = torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))
        noise = batches.normal(batches.streams([3], "normal/noise/0"), step, (8, 10))[0]
        mean, log_variance = vae.encoder(images).chunk(2, dim=1)
        decoded = torch.sigmoid(vae.decoder(mean + noise * torch.exp(log_variance / 2)))
        fit = torch.nn.functional.binary_cross_entropy(decoded, images, reduction="sum") / 8
        divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).sum() / 8
        loss = fit + 2.0 * divergence
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        assert ours.advance(step)["loss/vae"].item() == pytest.approx(loss.item(), rel=1e-4)
    assert loss.item() < 600  # from 712 = 1 024 pixels at log 2 and a little: it learned something


def test_initial_weights_are_those_of_the_seed_and_leave_no_trace():
    family = FAMILIES["vae"]
    settings = structural_settings(family, [member("vae")])
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    first = build_member(family, (32, 32, 1), settings, 1).state_dict()
    assert torch.equal(torch.rand(3), expected)
    again = build_member(family, (32, 32, 1), settings, 1).state_dict()
    other = build_member(family, (32, 32, 1), settings, 2).state_dict()
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["vae.encoder.0.weight"], other["vae.encoder.0.weight"])


def test_a_diverged_member_keeps_its_last_finite_weights_and_disturbs_nobody():
    """A learning rate of 100 overflows the log-variance within a few steps."""
    dense = {"network": "dense", "learning_rate": 1e-3}
    members = [member("vae", seed, **dense) for seed in range(3)]
    members[1] = member("vae", 1, **{**dense, "learning_rate": 100.0})
    stacked = population("vae", members, torch.float32)
    alone = population("vae", [members[1]], torch.float32, stacked=False)
    healthy = population("vae", [members[0], members[2]], torch.float32)
    for step in range(10):
        for each in (stacked, alone, healthy):
            each.advance(step)
    states = [stacked.diverged()[1], alone.diverged()[0]]
    for state in states:
        assert isinstance(state, Diverged)
        assert "vae is not finite" in state.reason
    assert stacked.diverged()[0] is None
    assert stacked.diverged()[2] is None
    for tensors in (stacked.state(1), alone.state(0)):
        assert all(torch.isfinite(value).all() for name, value in tensors.items() if name.startswith("model/"))
    for mine, theirs in ((0, 0), (2, 1)):
        one, other = stacked.state(mine), healthy.state(theirs)
        assert all(torch.allclose(one[name], other[name], rtol=1e-5, atol=1e-6) for name in one)
    frozen = stacked.state(1)
    stacked.advance(10)
    assert all(torch.equal(frozen[name], stacked.state(1)[name]) for name in frozen if name.startswith("model/"))


def test_stacked_members_must_agree_in_structure():
    with pytest.raises(ValueError, match="agree in latents; got 10 and 5"):
        population("vae", [member("vae"), member("vae", 1, latents=5)])
