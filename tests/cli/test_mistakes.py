"""Typical mistakes on the command line: one line that names what was meant, exit code 2, and nothing written."""

from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with codes.npz of the factors shape and hue."""
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((60, 3)), rng.integers(0, 3, (60, 2))
    np.savez(tmp_path / "codes.npz", codes=codes, factors=factors, factor_names=["shape", "hue"])
    np.save(tmp_path / "codes.npy", codes)
    (tmp_path / "labels.csv").write_text("Shape,hue\n" + "".join(f"{a},{b}\n" for a, b in factors))
    monkeypatch.chdir(tmp_path)
    return tmp_path


MISTAKES = {
    "learn": "no command 'learn'; did you mean 'train'?",
    "data ls": "did you mean 'list'?",
    "xyzzy": "no command 'xyzzy'; there are score, compare, metrics, ",
    "data show ~nosuchuser/images --out a.png": "~nosuchuser/images: no such file or folder",
    "score codes.npy --labels labels.csv --labels labels.csv": "--labels takes one value; it is given 2 times",
    "score codes.npy --labels labels.csv --kinds hue=ordinal,hue=cyclic": "--kinds hue=cyclic: hue is given twice",
    "score codes.npz --metrics DCI": "did you mean 'dci_lasso', 'dci_forest', 'dci_boosted' or 'dci_es'?",
    "score codes.npz --metrics udr": "udr compares several models and needs no labels: see unbraid.rank",
    "score codes.npz --factors Shape": "no factor 'Shape'; did you mean 'shape'?",
    "score codes.npz --kinds hue=circular": "did you mean 'cyclic'?",
    "score codes.npz --kinds Hue=cyclic": "kinds names 'Hue', which is no factor; did you mean 'hue'?",
    "score codes.npz --held-out Hue>1": "names no factor 'Hue'; did you mean 'hue'?",
    "score codes.npy --labels labels.csv --groups Shape --weights hue": "no column is left to score against, beside "
    "--weights hue and --groups Shape",
    "score codes.npz --seed 1.5": "valid integer",  # in the words of pydantic, or of an older Typer
    "rank codes.npz codes.npy --similarity lassso": "'lassso' is not one of 'lasso', 'spearman', 'pearson'",
    "score code.npz": "code.npz: no such file",
    "study rank study": "no command 'rank' here; write unbraid rank STUDY",
    "rank codes.npz codes.npy --kl-threshold nan": "kl_threshold must be a finite number, at least 0; got nan",
    "compare codes.npz codes.npy --by family": "--by is for a study; these are models",
    "compare codes.npz codes.npy --columns x": "--columns is for a study; these are models, of which --factors names",
    "compare nope --by family": "nope: no such folder",
    "score codes.npz --metrics mig --fail-under snc=.3": "'snc' is not among the metrics; there are mig",
    "score codes.npz codes.npy --html page.html": "--html is for one FILE without --by; unbraid compare writes a page",
    "score codes.npz --csv - --json -": "- prints one of --csv, --latex, --markdown and --json",
    "score codes.npy": "these codes have no factors to score against: give labels",
    "score codes.npz codes.npy --per-code a.csv": "--per-code is for one FILE without --by; ",
    "score codes.npz codes.npy --how-many .01": "--how-many is for one FILE without --by; ",
    "score codes.npz --by name --html page.html": "--html is for one FILE without --by; ",
    "score codes.npz --json scores.txt": "the name must end in .json",
    "score codes.npz --metrics ,": "metrics is empty",
    "score codes.npz --metrics d_lsbd": "none of the metrics could be computed: d_lsbd: needs at least",
    "score codes.npz --sed 1": "No such option",
    "rank codes.npz absent.npz": "absent.npz: no such file",
    "figure hintn --example --out f.pdf": "unknown figure 'hintn'; did you mean 'hinton'?",
    "figure kl --example": "give --out F.pdf, F.svg or F.png",
    "figure kl --example --out f.pdf --data f.txt": "--data f.txt: the name must end in .csv",
    "figure kl --example --out f.pdf --set threshold": "--set threshold: write NAME=VALUE",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_told_in_one_line_what_was_meant(words: str, here: Path, unbraid_cli: Cli) -> None:
    before = sorted(here.iterdir())
    code, printed, said = unbraid_cli(*words.split())
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert MISTAKES[words] in said
    assert sorted(here.iterdir()) == before
