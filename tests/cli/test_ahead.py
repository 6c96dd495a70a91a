import pytest

from unbraid.cli import _ahead as ahead
from unbraid.cli._progress import metric_progress


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "_compiled", lambda *_: False)
    monkeypatch.setattr(ahead, "n_cores", lambda: 2)


@pytest.mark.lengthy
@pytest.mark.usefixtures("cold")
def test_a_second_process_compiles_what_is_waited_for() -> None:
    with ahead.compiled_ahead(["mig", "dci_boosted", "nk"]) as wait:
        wait("mig")
        wait("nk")  # the last that it compiles
        wait("dci_boosted")


@pytest.mark.usefixtures("cold")
def test_a_second_process_that_fails_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "START", "raise SystemExit({}, {})")
    with ahead.compiled_ahead(["dci_boosted"]) as wait:
        wait("dci_boosted")


@pytest.mark.usefixtures("cold")
def test_what_else_a_second_process_prints_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "START", "print('welcome'); print('dci_boosted', flush=True); input()")
    with ahead.compiled_ahead(["dci_boosted"]) as wait:
        wait("dci_boosted")


@pytest.mark.usefixtures("cold")
def test_time_left_counts_what_is_compiled_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ahead, "n_cores", lambda: 1)
    with metric_progress("scoring", ["mig", "nk", "mlp_accuracy"]) as bar:
        bar.expect([1.0, 1.0, 1.0])
        assert list(bar.forecast._costs) == [1, 3, 1]  # both have one kernel
        bar.expect([1.0, 1.0])  # of something else
        assert list(bar.forecast._costs) == [1, 1]


def test_kernels_that_are_stored_need_no_second_process(monkeypatch: pytest.MonkeyPatch) -> None:
    ahead.compile_kernels(["nk"])
    assert ahead._compiled("nk")
    monkeypatch.setattr(ahead.subprocess, "Popen", None)
    assert ahead.compile_seconds(["mig", "nk"]) == [0, 0]
    with ahead.compiled_ahead(["mig", "nk"]) as wait:
        wait("nk")
