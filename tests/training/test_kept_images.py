"""Images of a small dataset are drawn or read once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import unbraid
from tests.training.training_examples import SPACE, TINY
from unbraid.base.types import IntArray, UInt8Array
from unbraid.data import FactorSpace
from unbraid.data.image_dataset import ArrayDataset
from unbraid.training import draws


class Counted:
    """Random images that count how often each is asked for."""

    def __init__(self) -> None:
        self.array = np.random.default_rng(0).integers(0, 256, (50, 4, 4, 3), dtype=np.uint8)
        self.space, self.image_shape = FactorSpace(("a",), (50,), ("ordinal",)), (4, 4, 3)
        self.asked = np.zeros(50, dtype=int)

    def __len__(self) -> int:
        return len(self.array)

    def images(self, index: IntArray) -> UInt8Array:
        np.add.at(self.asked, index, 1)
        return self.array[index]


@pytest.mark.parametrize(("limit", "kept"), [(50 * 48, True), (50 * 48 - 1, False)])
def test_they_are_asked_for_once_where_all_of_them_fit(limit: int, kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(draws, "KEPT_BYTES", limit)
    dataset, rng = Counted(), np.random.default_rng(1)
    images = draws.Images(dataset, torch.device("cpu"), torch.float64)
    dataset.asked[:] = 0
    for _ in range(40):
        positions = rng.integers(0, 50, (2, 30))
        positions[0, :20] = 7  # one of them over and over
        given = images(torch.from_numpy(positions))
        expected = np.moveaxis(dataset.array[positions], -1, -3) / 255
        np.testing.assert_array_equal(given.numpy(), expected)
    assert dataset.asked[7] == 1 if kept else dataset.asked[7] >= 800
    assert (dataset.asked == 1).all() if kept else (dataset.asked > 0).all()


@pytest.mark.parametrize(("limit", "copied"), [(50 * 48 * 4, True), (50 * 48 * 4 - 1, False)])
def test_floats_count_as_many_bytes_as_they_take_on_a_device(
    limit: int, copied: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "RESIDENT_BYTES", limit)
    dataset = Counted()
    dataset.array = dataset.array.astype(np.float32) / 255
    assert (draws.Images(dataset, torch.device("meta")).resident is not None) is copied


@dataclass
class Odd:
    """A dataset of a user's own that hands out images as NumPy can hold them, and torch cannot."""

    how: str
    space, image_shape = SPACE, TINY.image_shape

    def __len__(self) -> int:
        return len(TINY)

    def images(self, index: IntArray) -> Any:
        images = TINY.images(index)
        if self.how == "flipped":
            return images[:, :, ::-1]
        if self.how == "read only":
            images.flags.writeable = False
            return images
        return (images / 255).astype(self.how)


@pytest.mark.parametrize("how", ["flipped", "read only", ">f4"])
def test_images_of_any_order_in_memory_are_those_of_the_same_values(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(draws, "KEPT_BYTES", 0)  # as of a large dataset
    odd = Odd(how)
    array = odd.images(np.arange(len(odd)))
    plain = Odd("<f4") if how == ">f4" else ArrayDataset(array.copy(), SPACE)
    settings: dict[str, Any] = {
        "steps": 2, "batch_size": 8, "processes": 0, "hold_out": 40,
        "hold_out_every": 1, "snapshots": 1, "network": "unbraid.families.networks:dense_pair",
    }  # fmt: skip
    one, other = (
        unbraid.train("vae", dataset, out=tmp_path / name, **settings)[0]
        for name, dataset in (("odd", odd), ("plain", plain))
    )
    assert (one.path / "weights.safetensors").read_bytes() == (other.path / "weights.safetensors").read_bytes()
    assert one.held_out()["elbo"].tolist() == other.held_out()["elbo"].tolist()
    np.testing.assert_array_equal(one.encode(array), other.codes().codes)
