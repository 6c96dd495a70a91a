"""`unbraid figure` as a user meets it."""

from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Cli
from tests.figures.examples import representation
from unbraid.figures import FIGURES


@pytest.fixture
def run(unbraid_cli: Cli) -> Cli:
    return partial(unbraid_cli, "figure")


def test_figure_and_data_are_written(run, tmp_path: Path) -> None:
    representation().save(tmp_path / "codes.npz")
    out, data = tmp_path / "kl.svg", tmp_path / "kl.csv"
    code, printed, _ = run("kl", str(tmp_path / "codes.npz"), "--out", str(out), "--data", str(data), "--theme", "dark")
    assert (code, printed) == (0, f"wrote {out}\nwrote {data}\n")
    assert "#121519" in out.read_text(encoding="utf-8")  # the dark page
    assert data.read_text(encoding="utf-8").startswith("code,kl,informative\n")
    assert len(data.read_text(encoding="utf-8").splitlines()) == 7


def test_the_example_and_options(run, tmp_path: Path) -> None:
    code, _, _ = run("kl", "--example", "--out", str(tmp_path / "kl.png"), "--set", "threshold=2")
    assert code == 0
    assert (tmp_path / "kl.png").read_bytes().startswith(b"\x89PNG")


def test_the_list_has_every_figure(run) -> None:
    code, printed, _ = run("--list")
    assert code == 0
    for name in FIGURES:
        assert f" {name} " in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "give the name of a figure; unbraid figure --list shows them"),
        (("hintn", "--example", "--out", "f.pdf"), "unknown figure 'hintn'; did you mean 'hinton'?"),
        (("kl", "--out", "f.pdf"), "give the folder of a run or a study, a file of codes, or --example"),
        (("kl", "--example"), "give --out F.pdf, F.svg or F.png"),
        (("kl", "--example", "--out", "f.jpg"), "--out f.jpg: the name must end in .png or .svg or .pdf"),
        (("kl", "--example", "--out", "no/f.pdf"), "--out no/f.pdf: the folder no does not exist"),
        (("kl", "--example", "--out", "f.pdf", "--data", "f.txt"), "--data f.txt: the name must end in .csv"),
        (("kl", "--example", "--out", "f.pdf", "--set", "threshold"), "--set threshold: write NAME=VALUE"),
        (("kl", "nothing.npz", "--out", "f.pdf"), "nothing.npz: no such file or folder"),
    ],
)
def test_bad_usage_is_one_line_exit_2_and_no_file(
    run, arguments: tuple[str, ...], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(*arguments) == (2, "", f"unbraid: {message}\n")
    assert not list(tmp_path.iterdir())
