"""What a training is refused beforehand: images and settings that no step could take."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from unbraid import load_run, train
from unbraid.data import FactorSpace, FactorTable
from unbraid.families.family_table import objective_family
from unbraid.families.pca import principal_components


class Given:
    """Images or rows as they are, with one factor."""

    def __init__(self, values: np.ndarray, space: FactorSpace | FactorTable) -> None:
        self.values, self.space, self.image_shape = values, space, values.shape[1:]

    def __len__(self) -> int:
        return len(self.values)

    def images(self, index: np.ndarray) -> np.ndarray:
        return self.values[index]


LEVELS = FactorTable(("a",), ("ordinal",), (np.arange(200) % 5)[:, None])
SQUARE = {"name": "square", "positions": 4}
LEVELS_OF_4 = FactorTable(("a",), ("ordinal",), np.arange(4)[:, None])


@pytest.mark.parametrize("likelihood", ["bernoulli", "gaussian"])
@pytest.mark.parametrize(("value", "message"), [(2.0, "between 0 and 1"), (np.nan, "not finite")])
def test_no_image_of_floats_is_outside_its_range(tmp_path: Path, likelihood: str, value: float, message: str) -> None:
    images = np.full((200, 16, 16, 1), 0.5, dtype=np.float32)
    images[150, 0, 0] = value  # beyond what a first look would see
    with pytest.raises(ValueError, match=message):
        train("vae", Given(images, LEVELS), likelihood=likelihood, network="dense", steps=2, out=tmp_path, processes=0)
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(("family", "supervision"), [("quessard", "trajectories"), ("forward_vae", "transitions")])
def test_a_family_of_bernoulli_pixels_takes_no_other_rows(tmp_path: Path, family: str, supervision: str) -> None:
    rows = np.random.default_rng(0).standard_normal((200, 12)).astype(np.float32)
    space = FactorSpace(("h", "w"), (10, 20), ("cyclic", "cyclic"))
    with pytest.raises(ValueError, match="this family takes values from 0 to 1"):
        train(family, Given(rows, space), network="dense", steps=2, out=tmp_path, processes=0, **{supervision: 10})


def test_the_critic_of_info_gan_has_no_batch_norm(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no batch norm"):
        train("info_gan", "square", network="dense_norm", steps=2, out=tmp_path, processes=0)


@pytest.mark.parametrize(
    ("family", "given", "message"),
    [
        ("pca", {"latents": 256}, "256 principal components need"),
        ("beta_tcvae", {"estimator": "stratified", "batch_size": 1, "network": "dense"}, "at least two images a batch"),
    ],
)
def test_a_training_that_cannot_begin_leaves_no_folder(
    tmp_path: Path, family: str, given: dict[str, Any], message: str
) -> None:
    images = np.random.default_rng(0).integers(0, 256, (100, 16, 16), dtype=np.uint8)
    with pytest.raises(ValueError, match=message):
        train(family, images, steps=2, seeds=2, out=tmp_path, processes=0, **given)
    assert [each.name for each in tmp_path.iterdir()] == []


def test_rows_as_wide_as_a_run_may_hold_are_trained_on_and_wider_ones_refused(tmp_path: Path) -> None:
    wide = np.random.default_rng(0).random((4, 70_000), dtype=np.float32)
    (run,) = train("pca", Given(wide, LEVELS_OF_4), latents=1, out=tmp_path, processes=0)
    assert load_run(run.path).codes().codes.shape == (4, 1)
    assert train("pca", Given(wide, LEVELS_OF_4), latents=1, out=tmp_path, processes=0)[0].path == run.path
    wider = np.zeros((1, 2**24 + 1), dtype=np.uint8)
    with pytest.raises(ValueError, match="an image may have 16,777,216 numbers; these have 16,777,217"):
        train("pca", Given(wider, FactorTable(("a",), ("ordinal",), np.zeros((1, 1), int))), latents=1, out=tmp_path)


def with_norm(shape: tuple[int, ...], n_outputs: int, n_latents: int) -> tuple[nn.Module, nn.Module]:
    size = math.prod(shape)
    encoder = nn.Sequential(nn.Flatten(), nn.BatchNorm1d(size), nn.Linear(size, n_outputs))
    return encoder, nn.Sequential(nn.Linear(n_latents, size), nn.Unflatten(1, (shape[2], *shape[:2])))


@pytest.mark.parametrize(
    ("network", "message"),
    [
        ("dense_norm", "more than 1 value per channel"),
        ("tests.training.test_refused:with_norm", "cannot be trained on .* more than 1 value per channel"),
    ],
)
def test_batch_norm_takes_no_batch_of_one(tmp_path: Path, network: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        train("vae", SQUARE, network=network, batch_size=1, steps=2, out=tmp_path, processes=0)
    assert not [*tmp_path.iterdir()]
    (run,) = train("vae", SQUARE, network=network, batch_size=2, steps=2, out=tmp_path, processes=0)
    assert run.status["state"] == "finished"


@pytest.mark.parametrize("name", ["clip", "schedule", "beta_warmup", "latents"])
def test_no_setting_of_training_is_an_argument_of_an_objective(name: str) -> None:
    scope: dict = {}
    exec(f"def own(modules, batch, hyper, step, context, *, {name}=1.0): pass", scope)
    with pytest.raises(ValueError, match=f"{name} must be a number by default, and a name of its own"):
        objective_family(scope["own"], "lab:own")


def test_images_of_which_none_differs_have_no_variance() -> None:
    _, components, variances = principal_components(lambda: [torch.full((50, 1600), 7.0)], 2)
    assert variances.tolist() == [0, 0]
    assert torch.isfinite(components).all()
