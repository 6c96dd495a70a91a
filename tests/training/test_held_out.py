"""Images kept out of training: their ELBO by hand, the stop by it, and the same bits after any interruption."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import unbraid
from tests.training.training_examples import TINY, member
from unbraid.data.image_dataset import ArrayDataset
from unbraid.datasets.subset import SubsetDataset
from unbraid.runs.run import Run
from unbraid.training.batches import normal, streams
from unbraid.training.held_out import HoldOut, held_out_rows, is_best, is_over
from unbraid.training.loop import Plan, Report, train_here

DENSE = {"network": "dense", "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0}
WEIGHTS = "weights.safetensors"


def trained(out: Path, family: str = "vae", steps: int = 24, **more: Any) -> Run:
    given = {**DENSE, "hold_out": 43, "hold_out_every": 4, "learning_rate": 1e-2, **more}
    return unbraid.train(family, TINY, steps=steps, out=out, **given)[0]


def test_rows_are_drawn_once_and_evenly() -> None:
    rows = held_out_rows(1000, 100)
    assert len(set(rows.tolist())) == 100
    assert rows.min() >= 0
    assert rows.max() < 1000
    assert np.array_equal(rows, np.sort(rows))
    assert np.array_equal(rows, held_out_rows(1000, 100))
    assert 5 <= (rows < 500).sum() <= 95
    # Fewer of them are among the more: a larger hold-out only adds.
    assert set(held_out_rows(1000, 10).tolist()) <= set(rows.tolist())


@pytest.mark.parametrize("settings", [{}, {"likelihood": "gaussian", "sigma": 0.5}])
def test_the_elbo_is_that_of_the_run_by_hand(tmp_path, settings) -> None:
    run = trained(tmp_path, steps=8, **settings)
    table, rows = run.held_out(), held_out_rows(243, 43)
    assert table["step"].tolist() == [4, 8]
    images = TINY.images(rows)
    means, log_variances = (np.asarray(each, dtype=np.float64) for each in run.posterior(images))
    noise = normal(streams([0], "held out noise"), 0, (43, 3))[0].numpy()
    decoded = run.decode(means + noise * np.exp(log_variances / 2)).reshape(43, -1).astype(np.float64)
    pixels = images.reshape(43, -1) / 255
    if settings:
        log_likelihood = (-((pixels - decoded) ** 2) / 0.5 - math.log(0.5 * math.sqrt(2 * math.pi))).sum(1)
    else:
        log_likelihood = (pixels * np.log(decoded) + (1 - pixels) * np.log(1 - decoded)).sum(1)
    # Of two Gaussians, by the definition E_q[log q - log p]: on a fine grid.
    grid = np.linspace(-12, 12, 24001)
    spread = np.exp(log_variances / 2)[..., None]
    q = np.exp(-(((grid - means[..., None]) / spread) ** 2) / 2) / spread / math.sqrt(2 * math.pi)
    log_ratio = (grid**2 - ((grid - means[..., None]) / spread) ** 2) / 2 - np.log(spread)
    kl = (q * log_ratio).sum(-1).sum(1) * (grid[1] - grid[0])
    assert table["reconstruction"][1] == pytest.approx(-log_likelihood.mean(), rel=1e-4)
    assert table["kl"][1] == pytest.approx(kl.mean(), rel=1e-4)
    assert table["elbo"][1] == pytest.approx((log_likelihood - kl).mean(), rel=1e-4)
    assert run.status["held_out"] == {"step": 8, "elbo": pytest.approx(table["elbo"][1]), "stopped": False}


def test_training_sees_none_of_them() -> None:
    """Other images there are the same weights; and the weights are those of a training on the others alone."""
    rows = held_out_rows(243, 43)
    array = TINY.array.copy()
    array[rows] = 255 - array[rows]
    other = ArrayDataset(array, TINY.space)
    members, plan = [member("vae", network="dense")], Plan("vae", 12, 8, "cpu", "float32")
    held = Plan("vae", 12, 8, "cpu", "float32", HoldOut(43, 4))
    left = np.setdiff1d(np.arange(243), rows)
    one, two = (train_here(held, members, each)[0] for each in (TINY, other))
    three = train_here(plan, members, SubsetDataset(TINY, left))[0]
    for name, value in one.weights.items():
        assert value.equal(two.weights[name])
        assert value.equal(three.weights[name])
    assert one.held_out["elbo"].tolist() != two.held_out["elbo"].tolist()


def test_it_stops_and_keeps_the_best(tmp_path) -> None:
    """At this learning rate the ELBO goes up and down; a training of as many steps as the best has its weights."""
    run = trained(tmp_path / "run", steps=400, patience=2, learning_rate=0.1, batch_size=4)
    elbos, steps = run.held_out()["elbo"], run.held_out()["step"]
    best = int(np.argmax(elbos))
    assert len(elbos) == best + 3 < 100
    assert run.status["step"] == steps[-1] == 4 * len(steps)
    assert run.status["held_out"] == {"step": steps[best], "elbo": elbos[best], "stopped": True}
    assert run.status["state"] == "finished"
    straight = trained(tmp_path / "short", steps=int(steps[best]), learning_rate=0.1, batch_size=4)
    kept, expected = (load_file(each.path / WEIGHTS) for each in (run, straight))
    assert all(np.array_equal(kept[name], expected[name]) for name in expected)
    with pytest.raises(ValueError, match="stopped early, at step .* with more steps it would stop there, too"):
        unbraid.continue_run(run, 500, dataset=TINY)


@pytest.mark.parametrize("together", [1, 2])
def test_its_curve_ends_where_it_stops(together: int) -> None:
    """After step 8, by two equal ELBOs: the means of these steps, though a point is due every ten steps."""
    members = [member("vae", network="dense", learning_rate=0.0, seed=seed) for seed in range(together)]
    stopped = train_here(Plan("vae", 5000, 8, "cpu", "float32", HoldOut(43, 4, 1)), members, TINY)
    for each, one in zip(stopped, members, strict=True):
        steps = train_here(Plan("vae", 8, 8, "cpu", "float32", HoldOut(43, 4)), [one], TINY)[0].curves["loss/vae"]
        assert each.curve_steps.tolist() == [8]
        assert each.curves["loss/vae"] == pytest.approx([steps.mean()], rel=1e-5)


def test_patience_that_does_not_run_out_keeps_the_best_too(tmp_path) -> None:
    patient = trained(tmp_path, patience=100, learning_rate=0.0)  # of equal ones the first
    assert len(set(patient.held_out()["elbo"])) == 1
    assert patient.status["step"] == 24
    assert patient.status["held_out"]["step"] == 4
    assert not patient.status["held_out"]["stopped"]


@pytest.mark.parametrize("patience", [0, 2])
def test_stopped_and_continued_it_is_the_same(tmp_path, monkeypatch, patience) -> None:
    def stop(sent) -> None:
        if max(sent.steps_taken.values(), default=0) >= 10:
            raise KeyboardInterrupt

    given = {"learning_rate": 0.0 if patience else 0.01, "patience": patience, "steps": 24}
    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", progress=stop, checkpoint_every=0, **given)
    stopped, whole = trained(tmp_path / "stopped", **given), trained(tmp_path / "whole", **given)
    assert (stopped.path / WEIGHTS).read_bytes() == (whole.path / WEIGHTS).read_bytes()
    assert stopped.status["held_out"] == whole.status["held_out"]
    for name, values in whole.held_out().items():
        np.testing.assert_array_equal(stopped.held_out()[name], values)


@pytest.mark.parametrize("patience", [0, 50])
def test_a_finished_one_goes_on_as_if_it_had_never_ended(tmp_path, patience) -> None:
    given = {"learning_rate": 0.05, "patience": patience}
    longer = unbraid.continue_run(trained(tmp_path, steps=10, **given), 24, dataset=TINY, processes=0)
    straight = trained(tmp_path / "straight", steps=24, **given)
    assert longer.path.name == straight.path.name
    assert (longer.path / WEIGHTS).read_bytes() == (straight.path / WEIGHTS).read_bytes()
    assert longer.held_out()["elbo"].tolist() == straight.held_out()["elbo"].tolist()


def test_stacked_members_stop_by_themselves() -> None:
    """One that does not move brings nothing new: it stops at the third evaluation, and the other goes on."""
    members = [member("vae", 0, network="dense", learning_rate=rate) for rate in (0.0, 1e-3)]
    plan = Plan("vae", 24, 8, "cpu", "float32", HoldOut(43, 4, 2))
    stacked = train_here(plan, members, TINY, stacked=True)
    assert [(each.stopped, each.step, len(each.held_out["step"])) for each in stacked] == [
        (True, 12, 3),
        (False, 24, 6),
    ]
    for one, found in zip(members, stacked, strict=True):
        (alone,) = train_here(plan, [one], TINY)
        assert (found.step, found.stopped) == (alone.step, alone.stopped)
        np.testing.assert_allclose(found.held_out["elbo"], alone.held_out["elbo"], rtol=1e-4)
        for name, value in alone.weights.items():
            np.testing.assert_allclose(found.weights[name], value, atol=1e-4)


@pytest.mark.lengthy
def test_a_pack_of_which_one_has_stopped_is_resumed_as_it_was(tmp_path, monkeypatch) -> None:
    members = [member("vae", 0, network="dense", learning_rate=rate) for rate in (0.0, 1e-3)]
    plan = Plan("vae", 24, 8, "cpu", "float32", HoldOut(43, 4, 2), checkpoint_seconds=0)
    whole = train_here(plan, members, TINY, stacked=True)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()

    def stop(sent: Report) -> None:
        if sent.step == 18:
            raise KeyboardInterrupt

    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        train_here(plan, members, TINY, stacked=True, folders=folders, report=stop)
    again = train_here(plan, members, TINY, stacked=True, folders=folders)
    for one, other in zip(whole, again, strict=True):
        assert (one.step, one.stopped, one.held_out["elbo"].tolist()) == (
            other.step, other.stopped, other.held_out["elbo"].tolist(),
        )  # fmt: skip
        assert all(value.equal(other.weights[name]) for name, value in one.weights.items())


def test_the_best_and_the_end_by_hand() -> None:
    assert is_best([1.0])
    assert is_best([1.0, 2.0])
    assert not is_best([2.0, 2.0])
    assert not is_best([math.nan])
    assert is_best([math.nan, -3.0])
    rising_late = [0.0, 3.0, 2.0, 1.0, 4.0, 3.9, 3.8]
    assert [is_over(rising_late[:n], 2) for n in range(1, 8)] == [False, False, False, True, False, False, True]
    assert [is_over([5.0] * n, 3) for n in (1, 3, 4)] == [False, False, True]
    assert not is_over([5.0] * 9, 0)
    assert is_over([math.nan] * 3, 2)


def test_ids_stay_without_and_differ_with(tmp_path) -> None:
    plain = trained(tmp_path, steps=4, hold_out=0)
    assert "hold_out" not in plain.config
    assert plain.held_out() == {}
    others = [{}, {"hold_out": 0.2}, {"patience": 1}, {"hold_out_every": 2}]
    names = [trained(tmp_path, steps=4, **each).path.name for each in others]
    assert len({plain.path.name, *names}) == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hold_out": -1}, "hold_out must be a finite number, at least 0; got -1"),
        ({"hold_out": math.nan}, "hold_out must be a finite number"),
        ({"hold_out": 1.5}, "hold_out must be a fraction of the images \\(below 1\\) or their number; got 1.5"),
        ({"hold_out": 243}, "hold_out=243 leaves none of 243 images to train on"),
        ({"hold_out": 0, "patience": 3}, "give hold_out as well"),
        ({"hold_out_every": 25}, "hold_out_every must be at most 24, the number of steps"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(tmp_path, given, said) -> None:
    with pytest.raises(ValueError, match=said):
        trained(tmp_path / "runs", **given)
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize("family", ["mtd", "parted_vae", "beta_tcvae"])
def test_every_elbo_is_one(family) -> None:
    """Also where the prior is another than the standard normal."""
    given: dict[str, Any] = {"mtd": {"factors": "shade"}, "beta_tcvae": {"prior": "factorial_flow"}}.get(family, {})
    plan = Plan(family, 2, 8, "cpu", "float32", HoldOut(20, 2))
    (found,) = train_here(plan, [member(family, network="dense", **given)], TINY)
    (elbo,), (reconstruction,), (kl,) = (found.held_out[name] for name in ("elbo", "reconstruction", "kl"))
    assert elbo == pytest.approx(-reconstruction - kl)
    assert 0 < kl < reconstruction


@pytest.mark.parametrize(
    ("family", "said"),
    [
        ("info_gan", "hold_out: InfoGAN.* has no Gaussian posterior and likelihood"),
        ("delta_vae", "hold_out: .* has no Gaussian posterior and likelihood"),
        ("quessard", r"its images are no full grid"),
        ("ada_gvae", "grid"),
        ("pca", "hold_out: .* is computed, not trained in steps"),
    ],
)
def test_families_without_an_elbo_are_refused(tmp_path, family, said) -> None:
    dense: dict[str, Any] = {} if family == "pca" else {"network": "dense"}
    with pytest.raises(ValueError, match=said):
        unbraid.train(family, TINY, steps=24, out=tmp_path / "runs", hold_out=9, hold_out_every=4, **dense)
    assert not (tmp_path / "runs").exists()
