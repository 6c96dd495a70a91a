"""A finished run that goes on: the run of more steps, to the bit, or one line why not."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import unbraid
from tests.training.training_examples import TINY, blocks
from unbraid.runs.run import Run

DENSE = {"network": "dense", "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0}


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return unbraid.train("vae", TINY, steps=10, out=tmp_path_factory.mktemp("short"), rate_warmup=3, **DENSE)[0]


def test_it_has_the_id_and_the_weights_of_one_trained_straight(short: Run, tmp_path) -> None:
    longer = unbraid.continue_run(short.path, 25, dataset=TINY, out=tmp_path / "longer", processes=0)
    (straight,) = unbraid.train("vae", TINY, steps=25, out=tmp_path / "straight", rate_warmup=3, **DENSE)
    assert longer.path.name == straight.path.name != short.path.name
    for name in ("weights.safetensors", "codes.safetensors", "config.json"):
        assert (longer.path / name).read_bytes() == (straight.path / name).read_bytes()
    assert longer.status["continued"] == {"run": short.path.name, "step": 10}
    assert "continued" not in straight.status
    assert longer.curves()["step"][-1] == 25
    assert np.array_equal(longer.curves()["loss/vae"], straight.curves()["loss/vae"])
    assert unbraid.load_run(longer.path).status == longer.status

    further = unbraid.continue_run(longer, 30, dataset=TINY, processes=0)
    assert further.status["continued"] == {"run": longer.path.name, "step": 25}
    assert further.path.parent == longer.path.parent


def test_what_cannot_go_on_is_refused_and_nothing_is_written(short: Run, tmp_path) -> None:
    out = tmp_path / "out"

    def refused(run: Run | Path, steps: Any = 25, dataset: Any = TINY) -> str:
        with pytest.raises(ValueError) as caught:
            unbraid.continue_run(run, steps, dataset=dataset, out=out, processes=0)
        assert not out.exists()
        return str(caught.value)

    assert "has taken 10 steps: steps, in all, must be more; got 10" in refused(short, 10)
    assert "steps must be a whole number, 1 or more; got 12.5" in refused(short, 12.5)
    assert "was trained on a dataset in memory, which no folder holds; give its images" in refused(short, dataset=None)
    assert "was trained on other images than these" in refused(short, dataset=blocks())
    bare = tmp_path / short.path.name
    shutil.copytree(short.path, bare)
    (bare / "checkpoint.safetensors").unlink()
    assert "keeps no checkpoint.safetensors, without which it cannot be continued" in refused(bare)
    for family, settings, said in (
        ("vae", {"schedule": "linear"}, "its learning rate fell to 0 over 2 steps (schedule=linear); more steps are"),
        ("pca", {}, "pca is computed, not trained in steps"),
        ("weak_de", {"labels": 81, "adversary_width": 8, "adversary_depth": 1}, "its warm-up is a part of all steps"),
    ):
        given = {name: value for name, value in {**DENSE, **settings}.items() if family != "pca" or name != "network"}
        (run,) = unbraid.train(family, TINY, steps=2, out=tmp_path / "others", **given)
        assert said in refused(run)


def test_a_checkpoint_further_on_is_not_thrown_back(short: Run, tmp_path, monkeypatch) -> None:
    """Stopped on its way, the same call goes on from there."""
    out = tmp_path / "out"

    def stop(sent) -> None:
        if max(sent.steps_taken.values(), default=0) >= 14:
            raise KeyboardInterrupt

    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        unbraid.continue_run(short, 20, dataset=TINY, out=out, processes=0, progress=stop, checkpoint_every=0)
    starts = []
    stopped = unbraid.continue_run(
        short, 20, dataset=TINY, out=out, processes=0, progress=lambda sent: starts.extend(sent.steps_taken.values())
    )
    assert min(starts) >= 14
    (straight,) = unbraid.train("vae", TINY, steps=20, out=tmp_path / "straight", rate_warmup=3, **DENSE)
    weights = "weights.safetensors"
    assert (stopped.path / weights).read_bytes() == (straight.path / weights).read_bytes()
