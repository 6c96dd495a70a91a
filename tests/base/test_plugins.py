"""What an installed package adds to our tables: in this process from metadata made here, and once really installed."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.processes import ROOT
from unbraid.base import plugins
from unbraid.base.plugins import PluginWarning
from unbraid.cli.app import app
from unbraid.metrics import METRICS, mig
from unbraid.metrics._shared.provenance import decision
from unbraid.scoring.score import choose

SAMPLE = Path(__file__).parents[1] / "sample_plugin"


@pytest.fixture
def described(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The sample as an installed distribution: its modules, and metadata with its entry points."""
    text = (SAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    points = text[text.index("[project.entry-points") : text.index("[tool")]
    about = tmp_path / "unbraid_sample-1.2.3.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: unbraid-sample\nVersion: 1.2.3\n")
    named = points.replace('[project.entry-points."', "[").replace('"]', "]").replace('"', "")
    (about / "entry_points.txt").write_text(named)
    monkeypatch.syspath_prepend(str(SAMPLE / "src"))
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._points.cache_clear()
    yield
    plugins._points.cache_clear()
    sys.modules.pop("unbraid_sample", None)


@pytest.mark.usefixtures("described")
def test_a_metric_of_a_package_is_found_by_its_plain_name() -> None:
    row = choose("sample_distance")["sample_distance"]
    assert METRICS.package_of("sample_distance") == "unbraid-sample 1.2.3"
    assert METRICS.package_of("mig") == METRICS.package_of("absent") == ""
    assert decision("sample_distance", row)["package"] == "unbraid-sample 1.2.3"
    assert not row.higher_is_better
    assert "sample_distance" in METRICS
    assert "sample_distance" not in list(METRICS)  # nothing is scored that nobody asked for
    assert choose("all") == dict(METRICS.items())


@pytest.mark.usefixtures("described")
def test_what_cannot_be_used_is_warned_of_and_ends_in_a_line_where_it_is_named() -> None:
    with pytest.warns(PluginWarning) as warned:
        assert list(METRICS.installed()) == ["sample_distance"]
    said = [str(each.message) for each in warned]
    broken = "metric 'sample_broken' of unbraid-sample 1.2.3 cannot be loaded: AttributeError"
    assert any(each.startswith(broken) for each in said)
    assert "unbraid_sample:NUMBER of unbraid-sample 1.2.3 is no metric: it is a int" in said
    assert "unbraid-sample 1.2.3 adds a metric called 'mig', which unbraid has; it is not used" in said
    assert METRICS["mig"].function is mig
    with pytest.raises(ValueError, match=broken):
        choose("sample_broken")
    with pytest.raises(ValueError, match="is no metric: it is a int"):
        choose("sample_number")


def test_without_the_package_its_names_are_unknown() -> None:
    with pytest.raises(ValueError, match="unknown metric 'sample_distance'"):
        choose("sample_distance")


STUDY = """
name: sample
dataset: sample_bars
families: [{name: sample_vae, network: dense}]
seeds: 2
steps: 5
device: cpu
metrics: [mig, sample_distance]
track: [sample_tracker]
executor: sample_executor
"""
COMMANDS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from unbraid.cli import main

done = []
for words in json.loads(sys.argv[1]):
    sys.argv = ["unbraid", *words]
    with redirect_stdout(io.StringIO()) as printed, redirect_stderr(io.StringIO()) as error:
        try:
            main()
            code = 0
        except SystemExit as left:
            code = left.code or 0
    done.append((code, printed.getvalue(), error.getvalue()))
print(json.dumps(done))
"""


@pytest.mark.lengthy
def test_the_sample_is_installed_used_and_uninstalled(tmp_path: Path) -> None:
    place = tmp_path / "installed"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(place), str(SAMPLE)]
    subprocess.run(install, check=True, capture_output=True, text=True)
    (tmp_path / "study.yaml").write_text(STUDY)

    def ran(commands: list[list[str]], *path: Path) -> list[tuple[int, str, str]]:
        """Exit code, stdout and stderr of each command, all in one process that finds packages on this path."""
        done = subprocess.run(
            [sys.executable, "-P", "-c", COMMANDS, json.dumps(commands)],
            capture_output=True, text=True, cwd=tmp_path, check=False,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT / "src"))), "COLUMNS": "200"},
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout.splitlines()[-1])

    tables = {"sample_distance": ["metrics"], "sample_vae": ["families"], "sample_bars": ["data", "list"]}
    commands = [*tables.values(), *([*words, "--json", "-"] for words in tables.values())]
    commands += [["study", "run", "study.yaml", "--out", "study"], ["report", "study", "--out", "page.html"]]
    done = ran(commands, place)
    assert [code for code, _, _ in done] == [0] * 8, done
    for name, (_, listed, _), (_, printed, _) in zip(tables, done[:3], done[3:6], strict=True):
        assert name in listed
        assert "unbraid-sample 1.2.3" in listed
        rows = json.loads(printed)
        assert {row["package"] for each, row in rows.items() if each != name} == {""}
        assert rows[name]["package"] == "unbraid-sample 1.2.3"
    run = next((tmp_path / "study" / "runs").iterdir())
    packages = json.loads((run / "status.json").read_text())["provenance"]["packages"]
    assert packages == dict.fromkeys(["sample_vae", "sample_bars"], "unbraid-sample 1.2.3")
    assert len(list((tmp_path / "study" / "tracking" / "sample_tracker").glob("*.txt"))) == 2
    assert "sample_distance" in (tmp_path / "page.html").read_text(encoding="utf-8")
    (first, listed, _), (second, _, unknown), (third, _, gone) = ran(
        [["metrics"], ["families", "sample_vae"], ["study", "run", "study.yaml", "--out", "study"]]
    )
    assert (first, second, third) == (0, 2, 2)
    assert "sample_distance" not in listed
    assert "unknown family 'sample_vae'" in unknown
    assert "unknown executor 'sample_executor'" in gone  # what is kept can still be read
    assert gone.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("track: [tensorbord]", "track: unknown tracker 'tensorbord'; did you mean 'tensorboard'?"),
        ("executor: rays", "unknown executor 'rays'; did you mean 'ray'?"),
    ],
)
def test_a_name_that_nobody_adds_is_refused_before_a_study_begins(line: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(f"name: small\ndataset: square\nfamilies: [pca]\nsteps: 1\n{line}\n")
    told = CliRunner().invoke(app, ["study", "run", str(tmp_path / "study.yaml"), "--out", str(tmp_path / "study")])
    assert said in str(told.exception)
    assert not (tmp_path / "study").exists()
