"""The residual networks of DCI 2018, trained from end to end in the families that publish them."""

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.training.training_examples import blocks
from unbraid import load_run, train
from unbraid.data import FactorTable
from unbraid.data.image_dataset import ArrayDataset

RESNET = {"network": "resnet", "latents": 3, "processes": 0, "precision": "float32", "learning_rate": 1e-3}

LONGER = ("vae", 12), ("info_gan", 1)


@pytest.mark.lengthy
@pytest.mark.parametrize(
    ("family", "steps"), [("vae", 1), *(pytest.param(*case, marks=pytest.mark.slow) for case in LONGER)]
)
def test_resnets_train_save_and_come_back(family: str, steps: int, tmp_path: Path) -> None:
    images = ArrayDataset(blocks().array[::31], FactorTable(("number",), ("ordinal",), np.arange(8)[:, None]))
    (run,) = train(family, images, steps=steps, batch_size=4, out=tmp_path, **RESNET)
    assert run.status["state"] == "finished"
    again = load_run(run.path)
    codes = again.encode(images.images(np.arange(8)))
    assert codes.shape == (8, 3)
    assert np.ptp(codes, axis=0).min() > 0
    decoded = again.decode(codes)
    assert decoded.shape == (8, 32, 32, 1)
    assert ((decoded >= 0) & (decoded <= 1)).all()
    if family == "vae":
        losses = run.curves()["loss/vae"]
        assert steps == 1 or losses[-3:].mean() < 0.7 * losses[:3].mean()
        # A batch norm that kept its initial statistics would encode other than it was trained.
        means = [value for name, value in again.modules.state_dict().items() if name.endswith("running_mean")]
        assert means
        assert all(torch.count_nonzero(mean) for mean in means)
