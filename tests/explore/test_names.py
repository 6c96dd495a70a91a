"""Names that data bring are text on every page and in every line of a terminal, whatever they hold."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli
from unbraid import Representation
from unbraid.explore.site import StudySite
from unbraid.studies.study import Study

SCRIPT = "<script>alert(1)</script>"
NAMES = (f"{SCRIPT}", "[red]hue[/red] [/x]", "\x1b[31mangle\x07\u202e", "\ud800'\"&{{7*7}}")
YAML = """
name: "<script>alert(1)</script>[/red]\\e[31m\\u202e"
dataset: {name: IMAGES}
families: [{name: pca, latents: [2, 3]}]
seeds: 2
steps: 1
device: cpu
metrics: [mig, dci_lasso]
udr: {similarity: spearman}
published:
  - {family: pca, column: mig.score, value: 0.5, source: "[bold]<script>alert(1)</script>\\e[31m", reason: "[/x]"}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study whose name, factors, levels, codes and settings are all hostile."""
    home = tmp_path_factory.mktemp("names")
    rng = np.random.default_rng(0)
    factors = np.stack(np.meshgrid(*[np.arange(3)] * 4, indexing="ij"), -1).reshape(-1, 4)
    names = np.array([name.encode("utf-8", "backslashreplace").decode() for name in NAMES])
    np.savez(
        home / "images.npz",
        images=rng.integers(0, 255, (81, 8, 8), dtype=np.uint8),
        factors=factors,
        factor_names=names,
    )
    (home / "study.yaml").write_text(YAML.replace("IMAGES", str(home / "images.npz")))
    study = Study.load(home / "study.yaml", out=home / "study")
    assert {run.state for run in study.run(processes=0)} == {"finished"}
    codes = rng.normal(size=(81, 4))
    Representation(codes, factors, names=tuple(names), code_names=NAMES[:3] + ("b",)).save(home / "mine.npz")
    Representation(codes[:, :2], factors[:, :1], names=(SCRIPT,), code_names=NAMES[1:3]).save(home / "codes.npz")
    return home


@pytest.fixture
def run(unbraid_cli: Cli) -> Callable[..., tuple[int, str]]:
    def run(*arguments: str) -> tuple[int, str]:
        code, printed, said = unbraid_cli(*arguments)
        return code, printed + said

    return run


def check_page(page: str, where: str) -> None:
    """No name is markup: not in the text, and not at the end of a script that holds data."""
    for script in re.findall(r"<script[^>]*>(.*?)</script>", page, flags=re.S):
        assert "alert(1)" not in script or "\\u003c" in script or "&lt;" in script, where
    bare = re.sub(r"<script[^>]*>.*?</script>", "", page, flags=re.S)
    assert "<script" not in bare, where
    assert not {"\x1b", "\x07", "\u202e"} & set(page), where
    page.encode("utf-8")


def check_terminal(said: str, where: object) -> None:
    assert not {"\x1b", "\x07", "\u202e"} & set(said), (where, said)
    said.encode("utf-8")


def test_on_terminals(folder: Path, run: Callable[..., tuple[int, str]], tmp_path: Path) -> None:
    study, out = str(folder / "study"), str(tmp_path / "a")
    setting = ("--setting", f"{SCRIPT}=[red]x[/red]", "--setting", "a\x1b[31m=\u202e[/x]")
    walk = [
        ("study", "add", study, str(folder / "mine.npz"), "--family", f"[red]{SCRIPT}[/x]\x1b[31m", *setting,
         "--trust-data", str(folder / "images.npz")),
        ("study", "status", study), ("rank", study), ("study", "agreement", study, "--box", "mig.score"),
        ("compare", study, "--by", "setting"), ("study", "published", study),
        ("export", study, "--out", f"{out}.csv"), ("export", study, "--records", "--out", out),
        ("study", "run", str(folder / "study.yaml"), "--out", study, "--dry-run"),
        ("study", "merge", f"{out}.csv", study, "--out", f"{out}-all.csv"),
        ("compare", f"{out}-all.csv", "--by", "hyper.latents"),
        ("score", str(folder / "codes.npz"), "--metrics", "mig,dci_lasso", "--html", f"{out}.html"),
        ("report", study, "--out", f"{out}-study.html"), ("figure", "boxes", study, "--out", f"{out}.svg"),
        ("figure", "importance", str(folder / "codes.npz"), "--out", f"{out}-codes.svg"),
    ]  # fmt: skip
    for command in walk:
        code, said = run(*command)
        check_terminal(said, command)
        assert "Traceback" not in said
        if command[:2] not in {("figure", "importance")}:
            assert code == 0, (command, said)
    for name in (f"{out}.html", f"{out}-study.html"):
        check_page(Path(name).read_text(encoding="utf-8"), name)
    for path in tmp_path.glob("*.svg"):
        assert "<script" not in path.read_text(encoding="utf-8")
    text = run("study", "status", study)[1]
    assert SCRIPT in text.replace("\n", "")
    assert "[red]" in text  # shown, not taken for markup


@pytest.mark.lengthy
def test_on_pages_that_are_served(folder: Path) -> None:
    study = folder / "study"
    (study / f"{NAMES[1]}{NAMES[2]}".replace("/", "")).write_text("x")
    (study / "a<img src=x onerror=alert(1)>").mkdir(exist_ok=True)
    site = StudySite(study)
    ids = [run.id for run in Study.load(study).runs()]
    places = ["/", "/files/", "/data", f"/run/{ids[0]}", f"/compare/{ids[0]}/{ids[1]}", f"/picture/{ids[0]}"]
    places += [f"/run/{name}" for name in ids if (study / "added" / name).exists()]
    for place in places:
        body = site.get(place).body
        assert isinstance(body, bytes)
        if place.startswith(("/data", "/picture")):
            json.loads(body)
        else:
            check_page(body.decode(), place)
            assert "<img src=x onerror" not in body.decode()
