"""Metrics on the way: those of the model as it was, and no other weights for it."""

import numpy as np
import pytest

import unbraid
from tests.training.training_examples import TINY, member
from unbraid.runs.run import Run
from unbraid.training.loop import Plan, train_here
from unbraid.training.snapshots import Snapshots

DENSE = {"network": "dense", "latents": 3, "batch_size": 8, "precision": "float32", "processes": 0, "beta": 0.1}


def trained(out, steps: int = 20, family: str = "beta_vae", **more) -> Run:
    return unbraid.train(family, TINY, steps=steps, out=out, learning_rate=1e-2, **{**DENSE, **more})[0]


def test_each_is_the_score_of_a_model_trained_so_far(tmp_path) -> None:
    kept = trained(tmp_path / "kept", snapshots=2, snapshot_metrics=["mig", "modularity"])
    plain, half = trained(tmp_path / "plain"), trained(tmp_path / "half", 10)
    weights = "weights.safetensors"
    assert kept.path.name == plain.path.name
    assert (kept.path / weights).read_bytes() == (plain.path / weights).read_bytes()
    table = kept.snapshots()
    assert table["step"].tolist() == [0, 10, 20]
    for row, run in ((1, half), (2, kept)):
        representation = run.codes()  # of all 243 images
        card = unbraid.score(representation, metrics=["mig", "modularity"])
        kl = representation.mean_kl()
        assert kl is not None
        assert table["mig"][row] == pytest.approx(card["mig"].score, abs=1e-6)
        assert table["modularity"][row] == pytest.approx(card["modularity"].score, abs=1e-6)
        assert table["kl"][row] == pytest.approx(kl.sum(), rel=1e-5)
        assert representation.log_variances is not None
        noise = np.exp(representation.log_variances.astype(float)).mean(axis=0)
        signal = 0.5 * np.log(1 + representation.codes.astype(float).var(axis=0) / noise)
        assert table["informative"][row] == (signal > 0.01).sum()
    assert len(set(table["kl"])) == 3
    assert plain.snapshots() == {}


def test_a_metric_of_whole_objects_is_given_them(tmp_path) -> None:
    square = unbraid.datasets.load("square", shrink=16)  # 4 096 images, more than a snapshot takes
    run = unbraid.train("beta_vae", square, steps=2, out=tmp_path, snapshots=1, snapshot_metrics=["d_lsbd"], **DENSE)[0]
    codes = run.encode(square.images(np.arange(len(square))))
    expected = unbraid.metrics.d_lsbd(codes, square.space.factors(np.arange(len(square))), kinds=square.space.kinds)
    assert run.snapshots()["d_lsbd"][-1] == pytest.approx(expected.score, rel=1e-4)


def test_progress_counts_all_runs_and_those_done(tmp_path) -> None:
    sent: list[tuple[int, int]] = []
    trained(tmp_path, 2, seeds=2, processes=0, progress=lambda each: sent.append((each.n_runs, each.n_done)))
    assert {runs for runs, _ in sent} == {2}
    assert sent[-1] == (2, 2)


def test_stopped_and_continued_the_table_is_the_same(tmp_path, monkeypatch) -> None:
    def stop(sent) -> None:
        if max(sent.steps_taken.values(), default=0) >= 7:
            raise KeyboardInterrupt

    monkeypatch.setattr("unbraid.training.loop.REPORT_SECONDS", 0.0)
    with pytest.raises(KeyboardInterrupt):
        trained(tmp_path / "stopped", snapshots=5, progress=stop, checkpoint_every=0)
    stopped, whole = trained(tmp_path / "stopped", snapshots=5), trained(tmp_path / "whole", snapshots=5)
    for name, values in whole.snapshots().items():
        np.testing.assert_array_equal(stopped.snapshots()[name], values)
    assert whole.snapshots()["step"].tolist() == [0, 4, 8, 12, 16, 20]


def test_stacked_members_have_tables_of_their_own() -> None:
    members = [member("vae", seed, network="dense", latents=3) for seed in (0, 1)]
    plan = Plan("vae", 6, 8, "cpu", "float32", snapshots=Snapshots(3, ("mig",)))
    stacked = train_here(plan, members, TINY, stacked=True)
    for one, found in zip(members, stacked, strict=True):
        (alone,) = train_here(plan, [one], TINY)
        assert found.snapshots["step"].tolist() == [0, 2, 4, 6]
        np.testing.assert_allclose(found.snapshots["kl"], alone.snapshots["kl"], rtol=1e-4)
    assert stacked[0].snapshots["kl"][0] != stacked[1].snapshots["kl"][0]


def test_a_prior_is_read_with_every_hyperparameter() -> None:
    """That of MTD's blocks has one that is no structural setting."""
    plan = Plan("mtd", 1, 8, "cpu", "float32", snapshots=Snapshots(1, ("mig",)))
    (found,) = train_here(plan, [member("mtd", network="dense", factors="shade")], TINY)
    assert (found.snapshots["kl"] > 0).all()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"snapshots": -1}, "snapshots must be a whole number, 0 or more; got -1"),
        ({"snapshots": 2, "snapshot_metrics": "migg"}, "unknown metric 'migg'; did you mean"),
        ({"snapshots": 2, "snapshot_metrics": []}, "metrics is empty"),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path, given, said) -> None:
    with pytest.raises(ValueError, match=said):
        trained(tmp_path / "runs", **given)
    assert not (tmp_path / "runs").exists()
