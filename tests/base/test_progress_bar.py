"""How long work still takes, and how it ends."""

import signal
import sys
import time

import pytest

from tests.processes import started
from unbraid import Representation, progress_bar, score
from unbraid.base.progress_bar import Forecast, ProgressBar
from unbraid.data.representation import example_path


def near(seconds: float) -> object:
    return pytest.approx(seconds, rel=0.3)


def test_the_time_left_weighs_steps_by_what_they_take() -> None:
    """On a machine of half the speed: metrics of 1, 1 and 38 seconds, and a null of 160 after them."""
    now = 50.0
    forecast = Forecast(lambda: now)
    assert forecast.text == ""
    forecast.expect([1, 1, 38], later=160)
    assert forecast.seconds == near(200)
    for done, at in ((0, 50.0), (1, 52.0), (2, 54.0)):
        now = at
        forecast.update(done, 3)
    now = 130.0  # nothing is reported while the last takes its 76 seconds; 320 follow
    forecast.expect([16] * 10)
    forecast.update(0, 10)
    assert forecast.seconds == near(160)
    now = 162.0
    forecast.update(1, 10)
    assert forecast.seconds == near(288)
    now = 172.0
    assert forecast.seconds == near(278)
    now = 3000.0
    assert forecast.seconds is None  # it takes longer than expected


def test_work_that_counts_alike_is_forecast_by_its_own_pace() -> None:
    now = 0.0
    forecast = Forecast(lambda: now)
    now = 10.0
    forecast.update(2, 8)  # of which the first report says that two are done
    assert forecast.text == "0:00:30 left"
    forecast.update(0, 100)
    now = 20.0
    forecast.update(10, 100)
    assert forecast.seconds == pytest.approx(90)


def test_a_log_has_a_line_in_ten_seconds(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with progress_bar("scoring") as bar:
        for done in range(1000):
            bar("mig", done, 1000)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("unbraid.base.progress_bar.LOG_SECONDS", 0.2)
    began = time.monotonic()
    with progress_bar("scoring") as bar:
        while time.monotonic() < began + 1:
            bar("mig", 1, 4)
    lines = capsys.readouterr().err
    assert "\r" not in lines
    assert 1 <= lines.count("scoring, 25%") == lines.count("\n") <= 1 + (time.monotonic() - began) / 0.2


def test_a_card_tells_what_its_rounds_take() -> None:
    rounds: list[tuple[int, float]] = []

    class Bar(ProgressBar):
        def expect(self, costs: object, later: float = 0.0) -> None:
            assert isinstance(costs, list)
            rounds.append((len(costs), later))

    metrics = ["mig", "sap"]
    card = score(Representation.load(example_path()), metrics=metrics, null=3, confidence=(0.95, 4), progress=Bar(""))
    assert set(card.scored) == set(metrics)
    assert rounds[:2] == [(2, pytest.approx(rounds[0][1])), (3, pytest.approx(rounds[1][1]))]
    assert all(later > 0 for _, later in rounds[:2])
    assert rounds[-1][1] == 0


LONG_KERNEL = """
import sys, unbraid.base.progress_bar
from unbraid.cli import main
unbraid.base.progress_bar.LOG_SECONDS = 0.05
sys.argv = ["unbraid", "score", "--example", "--metrics", "sap,linear_accuracy", "--null", "100000"]
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("asked", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.lengthy)])
def test_an_interrupted_null_ends_with_one_line(asked: signal.Signals) -> None:
    with started("-c", LONG_KERNEL, stderr=-1, stdout=-1) as process:
        assert process.stderr
        line = ""
        while "shuffled" not in line:
            line = process.stderr.readline()
            assert line
        process.send_signal(asked)
        rest = process.stderr.read()
    assert process.wait() == 128 + asked
    assert rest.splitlines()[-1].endswith("no file was left half-written")
    assert "Traceback" not in rest
