"""Models that are finite and absurd are told as such; sound ones, collapsed ones and short trainings are not."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.torch import load_file, save_file

import unbraid
from tests.training.training_examples import TINY
from unbraid.cli.train_command import print_runs
from unbraid.runs.run import Run
from unbraid.training.writing import sanity_check

DENSE = {"network": "dense", "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0}


def trained(out: Path, steps: int = 24, **more: Any) -> Run:
    return unbraid.train("beta_vae", TINY, steps=steps, out=out, **{**DENSE, "learning_rate": 1e-2, **more})[0]


@pytest.mark.parametrize("settings", [{"beta": 0.1}, {"beta": 1000.0, "steps": 60}, {"likelihood": "gaussian"}])
def test_sound_and_collapsed_ones_are_not_doubted(tmp_path, settings) -> None:
    assert "note" not in trained(tmp_path, **settings).status


def test_one_that_has_hardly_begun_is_not(tmp_path) -> None:
    """Before .1 of steps times learning rate; after it the same reconstructions are told."""
    run = trained(tmp_path, 9, learning_rate=1e-3)
    assert "note" not in run.status
    pixels = TINY.images(np.arange(243)) / 255
    decoded = run.decode(run.encode(TINY.images(np.arange(243))))
    assert ((decoded - pixels) ** 2).sum() > 2 * ((pixels - pixels.mean(0)) ** 2).sum()
    said = sanity_check(Run(run.path, run.config, {**run.status, "step": 100}), TINY, reconstructs=True)
    assert said is not None
    assert "times as far from the images as their mean image is" in said


def test_one_that_holds_more_than_the_image_is(tmp_path, capsys) -> None:
    """A single step at a learning rate of .1 is finite. 64 pixels of a byte have 64 * 8 * log 2 = 354.9 nats."""
    run = trained(tmp_path, 1, learning_rate=0.1)
    assert run.status["state"] == "finished"
    means, log_variances = (np.asarray(each, dtype=float) for each in run.posterior(TINY.images(np.arange(243))))
    kl = (0.5 * (means**2 + np.exp(log_variances) - 1 - log_variances)).sum(1).mean()
    assert kl > 400
    assert run.status["note"] == f"its codes hold {kl:.3g} nats of an image, which has 355 when it is stored as bytes"
    print_runs([run])
    assert f"{run.path.name} looks wrong: its codes hold" in capsys.readouterr().out
    assert "but its codes hold" in run._repr_html_()


def test_one_that_decodes_anything_but_its_images_is(tmp_path) -> None:
    """With the last layer turned round a sound model shows negatives of what it sees."""
    run = trained(tmp_path)
    weights = load_file(run.path / "weights.safetensors")
    last = max(name for name in weights if name.startswith("vae.decoder") and name.endswith("bias"))
    for name in (last, last.replace("bias", "weight")):
        weights[name] = -weights[name]
    save_file(weights, run.path / "weights.safetensors")
    run = Run(run.path, run.config, run.status)
    pixels = TINY.images(np.arange(243)) / 255
    decoded = run.decode(run.encode(TINY.images(np.arange(243))))
    times = ((decoded - pixels) ** 2).sum() / ((pixels - pixels.mean(0)) ** 2).sum()
    assert times > 2
    expected = f"its reconstructions are {times:.3g} times as far from the images as their mean image is"
    assert sanity_check(run, TINY, reconstructs=True) == expected
    assert sanity_check(run, TINY, reconstructs=False) is None


def test_families_that_reconstruct_nothing_are_not_asked_to(tmp_path) -> None:
    given = {"batch_size": 8, "precision": "float32", "processes": 0, "network": "dense"}
    (gan,) = unbraid.train("info_gan", TINY, steps=2, out=tmp_path, **given)
    assert "note" not in gan.status
