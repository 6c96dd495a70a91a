"""What the tester of torchmetrics checks of a metric: alone, by batches, and in two processes."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid.metrics import dci_lasso, factor_leakage, mig

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from unbraid.integrations.torchmetrics import CodeMetric  # noqa: E402

RNG = np.random.default_rng(0)
FACTORS = RNG.integers(0, 4, (600, 2))
CODES = (FACTORS @ [[1.0, 0.3], [0.0, 1.0]] + 0.3 * RNG.standard_normal((600, 2))).astype(np.float32)
KINDS: Any = ["ordinal", "ordinal"]
BATCHES = list(zip(torch.from_numpy(CODES).split(150), torch.from_numpy(FACTORS).split(150), strict=True))
RIGHT = mig(CODES, FACTORS, kinds=KINDS).score


def test_batches_add_up_to_the_number_of_all_rows() -> None:
    metric = CodeMetric("mig", kinds=KINDS)
    for codes, factors in BATCHES:
        of_batch = metric(codes, factors)  # forward
        assert of_batch == pytest.approx(mig(codes.numpy(), factors.numpy(), kinds=KINDS).score, abs=1e-6)
    assert metric.compute().dtype == torch.float32
    assert metric.compute() == pytest.approx(RIGHT, abs=1e-6)
    metric.reset()
    assert metric.codes == []
    metric.update(*BATCHES[0])
    assert metric.compute() == pytest.approx(of_batch_0(), abs=1e-6)


def test_batches_may_be_uneven_or_empty() -> None:
    metric = CodeMetric("mig", kinds=KINDS)
    for codes, factors in zip(
        *(torch.from_numpy(each).split([1, 0, 597, 2]) for each in (CODES, FACTORS)), strict=True
    ):
        metric.update(codes, factors)
    assert metric.compute() == pytest.approx(RIGHT, abs=1e-6)
    one = CodeMetric("mig", kinds=KINDS[:1])
    one.update(torch.zeros(0, 2), torch.zeros(0, dtype=torch.int64))
    one.update(torch.from_numpy(CODES), torch.from_numpy(FACTORS[:, 0]))
    assert one.compute() == pytest.approx(mig(CODES, FACTORS[:, :1], kinds=KINDS[:1]).score, abs=1e-6)


def of_batch_0() -> float:
    codes, factors = BATCHES[0]
    return mig(codes.numpy(), factors.numpy(), kinds=KINDS).score


def test_arguments_values_and_directions() -> None:
    filled = {
        "bins": CodeMetric("mig", kinds=KINDS, bins=8),
        "value": CodeMetric("dci_lasso", kinds=KINDS, value="completeness", sync_on_compute=False),
        "lower": CodeMetric("factor_leakage", kinds=KINDS),
    }
    together = torchmetrics.MetricCollection(filled)
    for codes, factors in BATCHES:
        together.update(codes, factors)
    assert {name: float(number) for name, number in together.compute().items()} == pytest.approx(
        {
            "bins": mig(CODES, FACTORS, kinds=KINDS, bins=8).score,
            "value": dci_lasso(CODES, FACTORS, kinds=KINDS).completeness,
            "lower": factor_leakage(CODES, FACTORS, kinds=KINDS).nm_auc,
        },
        abs=1e-6,
    )
    assert [each.higher_is_better for each in filled.values()] == [True, True, False]
    assert (filled["bins"].plot_lower_bound, filled["bins"].plot_upper_bound) == (0.0, 1.0)
    assert CodeMetric("jemmig").plot_lower_bound is None or CodeMetric("jemmig").plot_lower_bound >= 0


def test_circles_go_around_as_far_as_sizes_say() -> None:
    """Batches that show steps 0 to 6 of twelve: by twelve a code that holds the angle tells it fully."""
    steps = RNG.integers(0, 7, (400, 1))
    codes = np.hstack([np.cos(np.pi * steps / 6), np.sin(np.pi * steps / 6)]).astype(np.float32)
    found = []
    for sizes in ([12], None):
        metric = CodeMetric("r2", kinds=["cyclic"], sizes=sizes)
        metric.update(torch.from_numpy(codes), torch.from_numpy(steps))
        found.append(float(metric.compute()))
    assert found[0] == pytest.approx(1.0, abs=1e-5)
    assert found[1] < 0.9


def test_it_is_a_metric_as_torchmetrics_wants_one() -> None:
    metric = CodeMetric("mig", kinds=KINDS)
    assert (metric.is_differentiable, metric.full_state_update) == (False, False)
    for name in ("higher_is_better", "is_differentiable", "plot_lower_bound"):
        with pytest.raises(RuntimeError, match="Can't change const"):
            setattr(metric, name, True)
    metric.update(*BATCHES[0])
    for copied in (metric.clone(), pickle.loads(pickle.dumps(metric))):
        copied.update(*BATCHES[1])
        assert len(copied.codes) == 2
        assert copied.compute() != metric.compute()
    assert hash(metric) != hash(CodeMetric("mig", kinds=KINDS))
    assert metric.state_dict() == {}
    metric.persistent(True)
    assert set(metric.state_dict()) == {"codes", "factors"}
    assert not CodeMetric("mig").set_dtype(torch.float64).codes
    half = CodeMetric("mig", kinds=KINDS)
    half.update(BATCHES[0][0].bfloat16(), BATCHES[0][1])
    assert half.compute() == pytest.approx(of_batch_0(), abs=0.05)
    figure, axes = metric.plot()
    assert axes.get_ylim()[0] <= 0.0
    figure.clf()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: CodeMetric("mgi"), "unknown metric 'mgi'"),
        (lambda: CodeMetric("mig", bin=3), "mig takes no argument 'bin'"),
        (lambda: CodeMetric("mig", value="ceilin"), "mig has no value 'ceilin'; did you mean 'ceiling'?"),
    ],
)
def test_a_mistake_is_one_line(wrong: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said) as error:
        wrong()
    assert "\n" not in str(error.value)


def of_process(rank: int, folder: str) -> None:
    """Every second batch, and one of another length; then the number of all, which every process has."""
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    metric = CodeMetric("mig", kinds=KINDS)
    for codes, factors in BATCHES[rank:3:2]:
        metric.update(codes, factors)
    if rank:
        metric.update(*BATCHES[3])
    (Path(folder) / f"{rank}").write_text(f"{float(metric.compute())} {len(metric.codes)}")
    torch.distributed.destroy_process_group()


@pytest.mark.lengthy
def test_two_processes_have_the_number_of_all_rows(tmp_path: Path) -> None:
    torch.multiprocessing.spawn(of_process, (str(tmp_path),), nprocs=2)
    for rank in range(2):
        number, kept = (tmp_path / f"{rank}").read_text().split()
        assert float(number) == pytest.approx(RIGHT, abs=1e-6)
        assert int(kept) == 2  # after the sync, each has its own again
