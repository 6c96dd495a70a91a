"""Networks that draw random numbers of their own, as dropout does, and others that are not stacked."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import unbraid
from tests.training.training_examples import TINY, member
from unbraid.families.building import build_member, structural_settings
from unbraid.families.family_table import FAMILIES
from unbraid.families.likelihoods import bernoulli_nll
from unbraid.families.networks import dense_pair
from unbraid.families.vae import beta_vae
from unbraid.files.trust import Trusted
from unbraid.training import batches
from unbraid.training.draws import seeded
from unbraid.training.loop import Plan, train_here
from unbraid.training.population import NotStackable, make_context, make_population

NETWORK = Trusted(f"{__name__}:dropping_pair")
PLAN = Plan("vae", 12, 8, "cpu", "float32")


def dropping_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(shape, n_outputs, n_latents)
    return nn.Sequential(nn.Dropout(0.5), encoder), decoder


def test_the_same_settings_give_the_same_weights_whatever_else_draws(tmp_path, monkeypatch) -> None:
    """Also when it is stopped on the way."""

    def trained(out, **more):
        given = {"network": NETWORK, "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0}
        (run,) = unbraid.train("vae", TINY, steps=12, out=tmp_path / out, **given, **more)
        return (run.path / "weights.safetensors").read_bytes()

    def stop(sent) -> None:
        torch.rand(1)
        if max(sent.steps_taken.values(), default=0) >= 5:
            raise KeyboardInterrupt

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = trained("first")
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert trained("second") == first
    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        trained("third", progress=stop, checkpoint_every=0)
    assert trained("third") == first


def test_every_step_and_every_member_drops_others() -> None:
    one, other = (train_here(PLAN, [member("vae", seed, network=NETWORK)], TINY)[0] for seed in (0, 1))
    assert not np.array_equal(one.curves["loss/vae"], other.curves["loss/vae"])
    drawn = []
    for key in (3, 4, 3):
        with seeded(torch.device("cpu"), key):
            drawn.append(torch.rand(5).tolist())
    assert drawn[0] == drawn[2] != drawn[1]


def test_they_are_not_stacked_but_trained_alone() -> None:
    members = [member("vae", seed, network=NETWORK) for seed in (0, 1)]
    context = make_context(FAMILIES["vae"], members, TINY, batch_size=8, steps=12)
    with pytest.raises(NotStackable, match="draws random numbers of its own"):
        make_population(FAMILIES["vae"], members, TINY, context, device=torch.device("cpu")).advance(0)
    seen = []
    together = train_here(PLAN, members, TINY, report=lambda sent: seen.append(sent.members))
    assert set(seen) == {(0,), (1,)}
    for one, found in zip(members, together, strict=True):
        (alone,) = train_here(PLAN, [one], TINY)
        assert all(torch.equal(value, found.weights[name]) for name, value in alone.weights.items())


class Mirrored(nn.Module):
    """A decoder with the weights of the encoder."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__()
        self.layer, self.up = layer, nn.Linear(3, layer.out_features)

    def forward(self, codes: torch.Tensor) -> torch.Tensor:
        return (self.up(codes) @ self.layer.weight).unflatten(1, (1, 8, 8))


class Filling(nn.Sequential):
    def forward(self, images: torch.Tensor) -> torch.Tensor:
        filled = torch.zeros(len(images), 6)
        filled[:] = super().forward(images)
        return filled


class Scaled(nn.Sequential):
    def __init__(self, *layers: nn.Module) -> None:
        super().__init__(*layers)
        self.register_buffer("scale", torch.ones(1), persistent=False)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return super().forward(images) * self.scale


def mirrored_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:  # noqa: ARG001
    layer = nn.Linear(64, n_outputs)
    return nn.Sequential(nn.Flatten(), layer), Mirrored(layer)


def filling_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(shape, n_outputs, n_latents)
    return Filling(encoder), decoder


def scaled_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    encoder, decoder = dense_pair(shape, n_outputs, n_latents)
    return Scaled(encoder), decoder


@pytest.mark.parametrize("pair", [mirrored_pair, filling_pair, scaled_pair])
def test_networks_that_only_run_alone_are_trained_alone(pair) -> None:
    members = [member("vae", seed, network=Trusted(f"{__name__}:{pair.__name__}"), latents=3) for seed in (0, 1)]
    for one, found in zip(members, train_here(PLAN, members, TINY), strict=True):
        (alone,) = train_here(PLAN, [one], TINY)
        assert found.together == 1
        assert found.weights.keys() == alone.weights.keys()
        assert all(torch.equal(value, found.weights[name]) for name, value in alone.weights.items())


def test_building_networks_leaves_the_generators_of_a_gpu_as_they_were(monkeypatch) -> None:
    """Of one that is in use; where none is yet, nothing is left for when it will be."""
    states = {0: 11, 1: 12}
    cuda = {
        "is_available": lambda: True,
        "device_count": lambda: len(states),
        "get_rng_state": lambda device: states[device],
        "set_rng_state": lambda state, device: states.update({device: state}),
        "manual_seed_all": lambda seed: states.update(dict.fromkeys(states, seed)),
    }
    for name, function in cuda.items():
        monkeypatch.setattr(torch.cuda, name, function)
    for in_use in (True, False):
        monkeypatch.setattr(torch.cuda, "is_initialized", lambda in_use=in_use: in_use)
        build_member(FAMILIES["vae"], (16, 16, 1), {"latents": 3, "network": "dense"}, 0)
        assert states == {0: 11, 1: 12}


def test_the_generator_that_is_seeded_is_that_of_the_gpu_in_use(monkeypatch) -> None:
    generators = torch.Generator().manual_seed(1), torch.Generator().manual_seed(2)
    monkeypatch.setattr(torch.cuda, "default_generators", generators)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    with seeded(torch.device("cuda"), 5):
        assert [each.initial_seed() for each in generators] == [1, 5]
    assert [each.initial_seed() for each in generators] == [1, 2]


def convolving_pair(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    """Modules as a user writes them, for images of any number of channels."""
    height, width, channels = shape
    encoder = nn.Sequential(
        nn.Conv2d(channels, 4, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(height * width, n_outputs)
    )
    decoder = nn.Sequential(nn.Linear(n_latents, height * width * channels), nn.Unflatten(1, (channels, height, width)))
    return encoder, decoder


def test_four_channels_go_through_a_network_of_ones_own_given_as_a_function(tmp_path) -> None:
    """Of images that are not square; the weights are those of a plain loop."""
    images = np.random.default_rng(0).integers(0, 256, (40, 12, 8, 4), dtype=np.uint8)
    settings: dict[str, Any] = {
        "steps": 5,
        "batch_size": 8,
        "latents": 3,
        "learning_rate": 1e-2,
        "precision": "float32",
    }
    (run,) = unbraid.train("vae", images, network=convolving_pair, out=tmp_path, processes=0, **settings)
    name = f"{__name__}:convolving_pair"
    assert run.config["hyperparameters"]["network"] == name
    chosen = member("vae", 0, network=Trusted(name), latents=3)
    modules = build_member(FAMILIES["vae"], (12, 8, 4), structural_settings(FAMILIES["vae"], [chosen]), 0)
    adam = torch.optim.Adam(modules.parameters(), lr=1e-2)
    order = batches.epoch_positions(batches.streams([0], "images/images/0"), 0, 40, 40)[0].numpy()
    for step in range(5):
        batch = torch.from_numpy(images[order[8 * step : 8 * step + 8]] / 255).float().movedim(-1, 1)
        outputs = modules["vae"](batch, batches.normal(batches.streams([0], "normal/noise/0"), step, (8, 3))[0])
        loss, _ = beta_vae(outputs, bernoulli_nll(outputs.decoded, batch), beta=1.0)
        adam.zero_grad()
        loss.backward()
        adam.step()
    for key, value in modules.state_dict().items():
        torch.testing.assert_close(run.modules.state_dict()[key], value, rtol=1e-4, atol=1e-6)
    again = unbraid.load_run(run.path, network=convolving_pair)
    assert again.decode(again.encode(images)).shape == images.shape
