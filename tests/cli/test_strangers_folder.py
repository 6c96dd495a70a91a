"""Commands in a stranger's folder: what lies there is neither executed nor obeyed, unless a command names it."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from tests.cli.test_hostile import commands
from tests.processes import ROOT
from unbraid.runs.run import load_run
from unbraid.studies.study import Study

CODE = "open({marker!r}, 'w').close()\nraise ImportError('a stranger was executed')\n"
# What Python, or a library that is used here, reads or would read of the current folder. What executes code is CODE.
TRAPS = {
    ".numba_config.yaml": "cache_dir: {folder}/cache\nchrome_trace: {folder}/trace\ndisable_jit: 1\n",
    "matplotlibrc": "strangers.key: 1\nfigure.facecolor: red\n",
    "wandb/settings": "[default]\nbase_url = http://127.0.0.1:9\n",  # or .wandb, where there is one
    ".env": "NUMBA_CACHE_DIR={folder}/cache\nUNBRAID_DATA={folder}/data\nMPLBACKEND=module://queue\n",
    ".netrc": "no netrc",
    "_netrc": "no netrc",
    "pyvenv.cfg": "home = {folder}\n",
    "python._pth": "{folder}\n",
    "MLproject": "no: [yaml",
    "ray.yaml": "no: [yaml",
    "alembic.ini": "no ini",
    ".wandb/settings": "[default]\nbase_url = http://127.0.0.1:9\n",
    "pyproject.toml": "no toml",
    "setup.cfg": "no cfg",
    "strangers.pth": "import queue\n",
    **dict.fromkeys(
        [
            "unbraid/__init__.py", "numba/__init__.py", "numpy/__init__.py", "torch/__init__.py", "matplotlib.py",
            "yaml.py", "queue.py", "typing.py", "csv.py", "contextlib.py", "sitecustomize.py", "usercustomize.py",
            "_ops.py", "_classes.py", "module.py", "tracemalloc.py", "cudf.py", "cupy.py", "mlflow_config.py",
        ],
        CODE,
    ),
}  # fmt: skip
YAML = """
name: own
dataset: {{name: square, positions: 8, shrink: 4}}
families: [{{name: beta_vae, beta: [1, 4], network: dense, latents: 3}}]
steps: 2
batch_size: 8
precision: float32
device: cpu
metrics: [mig]
{more}
"""

PLAN = """
minutes: 1
size: 16
search: {size: 16, network: dense, steps: 2, seeds: 2, settings: [{family: vae, strength: 1}]}
final: {size: 16, network: dense, steps: 2, seeds: 2, settings: 1, multiples: [1]}
"""
# How each command is called where there are a study, a run and codes.
WALK: Mapping[str, list[str]] = {
    "score": ["run --metrics mig,sap --html a.html", "codes.npz --metrics mig --json a.json"],
    "compare": ["codes.npz run --metrics mig --resamples 2", "study --by hyper.latents"],
    "metrics": [""],
    "stress": ["mig"],
    "bench": ["mig --models 4"],
    "rank": ["codes.npz run/codes.safetensors", "study --compare all"],
    "families": [""],
    "fit": ["many.npy --plan plan.yaml --out fitted"],
    "train": ["vae --dataset square --data positions=8 --set network=dense --steps 2 --seeds 2 --device cpu --out t"],
    "continue": ["run --steps 3"],
    "figure": [
        "traversals run --out a.png",
        "samples run --out a.png",
        "curves run --out a.png",
        "boxes study --out a.png",
    ],
    "report": ["run", "study"],
    "export": ["run --out a.onnx", "run --out exported", "study --out a.csv", "study --out a.parquet"],
    "cite": ["mig"],
    "data list": [""],
    "data info": ["square"],
    "data render": ["square --out rendered"],
    "data get": ["square"],
    "data path": [""],
    "data show": ["square --out a.png"],
    "study run": ["tracked.yaml --out other --processes 1", "tracked.yaml --out other --dry-run"],
    "study status": ["study"],
    "study add": ["study run --name mine"],
    "study agreement": ["study"],
    "study merge": ["study --out a.csv"],
    "study generalisation": ["study"],
}
# No checkpoint, nothing to download, one seed of each.
REFUSED = {"continue", "data get", "compare study"}


def test_the_walk_takes_every_command() -> None:
    assert set(WALK) == set(commands())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The user's own study, run and codes in a folder that is full of traps."""
    folder = tmp_path_factory.mktemp("strangers")
    (folder / "own.yaml").write_text(YAML.format(more="zero_shot: {held_out: x > 5}"))
    (folder / "tracked.yaml").write_text(YAML.format(more="track: [tensorboard, wandb, mlflow]"))
    runs = Study.load(folder / "own.yaml", out=folder / "study").run(processes=0)
    assert [run.state for run in runs] == ["finished"] * 2
    (folder / "study" / "runs" / runs[0].id).rename(folder / "run")
    load_run(folder / "run").codes().save(folder / "codes.npz")
    Study.load(folder / "own.yaml", out=folder / "study").run(processes=0)
    np.save(folder / "many.npy", np.random.default_rng(0).integers(0, 256, (600, 16, 16, 1), dtype=np.uint8))
    (folder / "plan.yaml").write_text(PLAN)
    for name, content in TRAPS.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content.format(folder=folder, marker=str(folder / "executed")))
    return folder


def called(folder: Path, *arguments: str, **environment: str) -> tuple[subprocess.CompletedProcess[str], set[str]]:
    """Python with these arguments in the folder: how it ended, and what it and all that it started opened there."""
    log = folder.parent / "opened.txt"
    log.write_text("")
    path = [str(ROOT / "tests" / "audited"), os.environ.get("PYTHONPATH", "")]
    audited = {"AUDITED": str(folder), "AUDIT_LOG": str(log), "PYTHONPATH": os.pathsep.join(filter(None, path))}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=folder, env={**os.environ, **audited, **environment},
        stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done, {Path(line).relative_to(folder).as_posix() for line in log.read_text().splitlines()}


def assert_unharmed(folder: Path, said: str, opened: set[str]) -> None:
    assert not (folder / "executed").exists()
    assert opened.isdisjoint(TRAPS)
    assert not [name for name in ("cache", "trace", "data") if (folder / name).exists()]
    assert "strangers" not in said.replace(str(folder), "")


# All in one process, which imports once what they share; their workers are processes of their own.
ALL = """
import json, os, sys
from unbraid.cli import main

codes = {}
for given in json.loads(sys.argv[1]):
    sys.argv[1:] = given.split()
    before = os.path.getsize(os.environ["AUDIT_LOG"])
    try:
        main()
        code = 0
    except SystemExit as left:
        code = left.code
    with open(os.environ["AUDIT_LOG"], encoding="utf-8") as log:
        log.seek(before)
        codes[given] = code, log.read().splitlines()
print("codes", json.dumps(codes))
"""


@pytest.fixture(scope="module")
def walked(folder: Path) -> dict[str, tuple[int, list[str]]]:
    """By what was called: the code it ended with, and the files of the folder that were opened meanwhile."""
    given = [f"{name} {each}".strip() for name in WALK for each in WALK[name]]
    done, opened = called(folder, "-P", "-c", ALL, json.dumps(given))
    assert done.returncode == 0, done.stderr
    assert opened  # the audit sees what it should
    assert_unharmed(folder, done.stderr, opened)
    return json.loads(done.stdout.rpartition("codes ")[2])


@pytest.mark.lengthy
@pytest.mark.parametrize(("command", "given"), [(name, each) for name in WALK for each in WALK[name]])
def test_no_command_opens_what_it_was_not_given(
    folder: Path, walked: Mapping[str, tuple[int, list[str]]], command: str, given: str
) -> None:
    code, opened = walked[f"{command} {given}".strip()]
    refused = any(f"{command} {given}".startswith(each) for each in REFUSED)
    assert code == (2 if refused else 3 if command == "stress" else 0)  # mig fails some of its tests
    assert {Path(each).relative_to(folder).as_posix() for each in opened}.isdisjoint(TRAPS)
