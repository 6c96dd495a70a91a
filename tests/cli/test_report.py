"""`unbraid report` and `unbraid export`, as a user meets them."""

import shutil
from pathlib import Path

import pytest

import unbraid
import unbraid.cli.app
from tests.conftest import Cli
from tests.training.training_examples import blocks
from unbraid.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("runs")
    return unbraid.train("pca", blocks(), seeds=1, steps=1, latents=2, out=folder, processes=0)[0]


@pytest.fixture
def scored(run: Run) -> Path:
    if not (run.path / "scores.json").is_file():
        unbraid.score(run.codes(), metrics=["mig"]).save(run.path / "scores.json")
    return run.path


def test_the_page_of_a_run_lies_in_its_folder(unbraid_cli, scored: Path) -> None:
    before = (scored / "scores.json").read_bytes()
    code, printed, _ = unbraid_cli("report", str(scored))
    page = scored / "report.html"
    assert (code, printed) == (0, f"wrote {page}\n")
    assert 'id="live"' in page.read_text(encoding="utf-8")
    assert (scored / "scores.json").read_bytes() == before


@pytest.mark.lengthy
def test_watching_writes_the_page_again_only_when_the_folder_changes(
    unbraid_cli: Cli, scored: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "run"
    shutil.copytree(scored, folder, ignore=shutil.ignore_patterns("*.html"))
    page, reloading, times = folder / "report.html", '<meta http-equiv="refresh" content="5">', list[int]()

    def between_looks(_seconds: float) -> None:
        text = page.read_text(encoding="utf-8")
        assert text.count(reloading) == 1
        times.append(page.stat().st_mtime_ns)
        if len(times) == 2:
            unbraid.score(unbraid.load_run(folder).codes(), metrics=["mig", "sap"]).save(folder / "scores.json")
            assert 'id="score-sap"' not in text
        if len(times) == 4:
            assert 'id="score-sap"' in text
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", between_looks)
    code, printed, _ = unbraid_cli("report", folder, "--watch")
    assert code == 0
    assert printed.splitlines()[-1] == f"stopped watching {folder}"
    assert times[0] == times[1] < times[2] == times[3]
    assert reloading not in page.read_text(encoding="utf-8")


def test_what_is_neither_is_refused_in_one_line(unbraid_cli, scored: Path, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "none.part").mkdir()
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "config.json").write_text("{}")
    fitted = tmp_path / "fitted"
    (fitted / "search").mkdir(parents=True)
    (fitted / "plan.yaml").touch()
    (fitted / "search" / "study.yaml").touch()
    for arguments, reason in {
        (str(tmp_path / "absent.npz"),): "absent.npz: no such file",
        (str(tmp_path / "none"),): "the training has not finished",
        (str(fitted),): f"{fitted} is a folder of `unbraid fit`, neither a model nor a study; give {fitted / 'search'}",
        (str(tmp_path / "other.json"),): "other.json: not the scores of unbraid",
        (str(scored), "--out", str(tmp_path / "x.png")): "the name must end in .html",
    }.items():
        code, printed, error = unbraid_cli("report", *arguments)
        assert (code, printed) == (2, "")
        assert error.count("\n") == 1
        assert reason in error
    assert not list(tmp_path.glob("*.html"))
