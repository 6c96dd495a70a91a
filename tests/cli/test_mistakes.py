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
    # commands
    "learn": "no command 'learn'; did you mean 'train'?",
    "scor codes.npz": "no command 'scor'; did you mean 'score'?",
    "Score codes.npz": "did you mean 'score'?",
    "evaluate codes.npz": "did you mean 'score'?",
    "plot codes.npz": "did you mean 'figure'?",
    "serve": "did you mean 'report'?",
    "resume runs": "did you mean 'continue'?",
    "study start": "no command 'start'; did you mean 'run'?",
    "study resume": "did you mean 'run'?",
    "study rnu": "did you mean 'run'?",
    "data download shapes3d": "did you mean 'get'?",
    "data ls": "did you mean 'list'?",
    "xyzzy": "no command 'xyzzy'; there are score, compare, metrics, ",
    # files
    "data show ~nosuchuser/images --out a.png": "~nosuchuser/images: no such file or folder",
    "fit ~nosuchuser/images --minutes 1 --out fitted": "~nosuchuser/images: no such file or folder",
    # given twice
    "score codes.npy --labels labels.csv --labels labels.csv": "--labels takes one value; it is given 2 times",
    "score codes.npz -h --seed 1 --seed=2 --seed 3": "--seed takes one value; it is given 3 times",
    "data show sprites --out a.png --out b.png": "--out takes one value; it is given 2 times",
    "score codes.npy --labels labels.csv --kinds hue=ordinal,hue=cyclic": "--kinds hue=cyclic: hue is given twice",
    "figure hinton codes.npz --out a.png --set width=1 --set width=2": "--set width=2: width is given twice",
    "study run study.yaml --out a --out b": "--out takes one value; it is given 2 times",
    # metrics
    "score codes.npz --metrics MIG": "unknown metric 'MIG'; did you mean 'mig'?",
    "score codes.npz --metrics migg": "did you mean 'mig'?",
    "score codes.npz --metrics dci": "did you mean 'dci_lasso', 'dci_forest', 'dci_boosted' or 'dci_es'?",
    "score codes.npz --metrics DCI": "did you mean 'dci_lasso', 'dci_forest', 'dci_boosted' or 'dci_es'?",
    "score codes.npz --metrics completeness": "did you mean 'dci_lasso', 'dci_forest' or 'dci_boosted'?",
    "score codes.npz --metrics factorvae": "did you mean 'factor_vae_score'?",
    "score codes.npz --metrics beta-vae": "did you mean 'beta_vae_score'?",
    "score codes.npz --metrics infom": "did you mean 'infomec'?",
    "score codes.npz --metrics InfoC": "did you mean 'infomec'?",
    "score codes.npz --metrics infoe": "did you mean 'infomec'?",
    "score codes.npz --metrics disentanglment": "did you mean 'disentanglement'?",
    "score codes.npz --metrics accuracy": "did you mean 'linear_accuracy' or 'mlp_accuracy'?",
    "score codes.npz --metrics lsbd": "did you mean 'd_lsbd'?",
    "score codes.npz --metrics udr": "udr compares several models and needs no labels: see unbraid.rank",
    "score codes.npz --metrics mig --metric sap": "--metrics",
    # factors and their kinds
    "score codes.npz --factors Shape": "no factor 'Shape'; did you mean 'shape'?",
    "score codes.npz --factors colour": "no factor 'colour'; there are shape, hue",
    "score codes.npy --labels labels.csv --columns shape": "did you mean 'Shape'?",
    "score codes.npz --kinds shape=nominal": "kinds['shape'] is 'nominal'; did you mean 'categorical'?",
    "score codes.npz --kinds shape=Class": "did you mean 'categorical'?",
    "score codes.npz --kinds shape=numeric": "did you mean 'continuous'?",
    "score codes.npz --kinds shape=float": "did you mean 'continuous'?",
    "score codes.npz --kinds hue=circular": "did you mean 'cyclic'?",
    "score codes.npz --kinds hue=angle": "did you mean 'cyclic'?",
    "score codes.npz --kinds hue=ordered": "did you mean 'ordinal'?",
    "score codes.npz --kinds hue=Ordinal": "did you mean 'ordinal'?",
    "score codes.npz --kinds Hue=cyclic": "kinds names 'Hue', which is no factor; did you mean 'hue'?",
    "score codes.npz --period hue": "--period hue: write NAME=VALUE",
    "score codes.npz --held-out Hue>1": "names no factor 'Hue'; did you mean 'hue'?",
    "score codes.npy --labels labels.csv --groups Shape --weights hue": "no column is left to score against, beside "
    "--weights hue and --groups Shape",
    "score codes.npz --weights Hue": "no column 'Hue' for --weights; did you mean 'hue'?",
    # values
    "score codes.npz --seed 1.5": "'1.5' is not a whole number",
    "score codes.npz --confidence high": "'high' is not a number",
    "rank codes.npz codes.npy --similarity lassso": "'lassso' is not one of 'lasso', 'spearman', 'pearson'",
    # files
    "score code.npz": "code.npz: no such file",
    "report codes.npy --out page.html": "give labels (`unbraid score` takes --labels, and --html for a page)",
    # commands that are written otherwise
    "study rank study": "no command 'rank' here; write unbraid rank STUDY",
    "study compare study": "write unbraid compare STUDY",
    "study export study": "write unbraid export STUDY",
    "traverse run": "no command 'traverse' here; write unbraid figure traversals RUN --out F.png",
    "generate run": "write unbraid figure samples RUN --out F.png",
    # options of another input
    "rank codes.npz codes.npy --kl-threshold -1": "kl_threshold must be a finite number, at least 0; got -1",
    "rank codes.npz codes.npy --kl-threshold nan": "kl_threshold must be a finite number, at least 0; got nan",
    "rank codes.npz codes.npy --metric mig.score": "--metric is for a study; these are files",
    "compare codes.npz codes.npy --by family": "--by is for a study; these are models",
    "compare codes.npz codes.npy --columns x": "--columns is for a study; these are models, of which --factors names",
    "rank nope": "nope: no such folder",
    "rank nope --metric mig.score": "nope: no such folder",
    "compare nope --by family": "nope: no such folder",
    "continue codes.npz --steps 9": "codes.npz: a file, not the folder of a run",
    "score codes.npz --metrics mig --fail-under snc=.3": "'snc' is not among the metrics; there are mig",
    "score codes.npz --fail-under mig": "write METRIC=NUMBER, such as mig=.3",
    "score codes.npz codes.npy --html page.html": "--html is for one model; unbraid compare writes a page of several",
    "score codes.npz --csv - --json -": "- prints one of --csv, --latex, --markdown and --json",
    "score codes.npy": "these codes have no factors to score against: give labels",
    "score codes.npz --json scores.txt": "the name must end in .json",
    "data info dsprite": "did you mean 'dsprites'?",
    "train beta_vea square --out runs": "did you mean 'beta_vae'?",
    "train betavae square --out runs": "did you mean 'beta_vae'?",
    "figure hintn codes.npz": "did you mean 'hinton'?",
    "cite migg": "did you mean 'mig'?",
}


@pytest.mark.parametrize("words", MISTAKES)
def test_a_mistake_is_told_in_one_line_what_was_meant(words: str, here: Path, unbraid_cli: Cli) -> None:
    before = sorted(here.iterdir())
    code, printed, said = unbraid_cli(*words.split())
    assert (code, printed, said.count("\n")) == (2, "", 1)
    assert MISTAKES[words] in said
    assert sorted(here.iterdir()) == before
