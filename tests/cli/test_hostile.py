"""Every command over a stranger's study whose network and metric are code of his own."""

import json
import shutil
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import typer

import unbraid
from unbraid.cli.app import app
from unbraid.studies.study import Study

NETWORK, METRIC = "strangers_code:pair", "strangers_code:metric"
CODE = """
from pathlib import Path
from unbraid.families.networks import dense_pair

def seen():
    Path({marker!r}).touch()

seen()

def pair(*arguments):
    seen()
    return dense_pair(*arguments)

def metric(codes, factors):
    seen()
    return 0.5
"""
YAML = f"""
name: theirs
dataset: {{name: square, positions: 8, shrink: 4}}
families: [{{name: beta_vae, beta: [1, 4], network: "{NETWORK}", latents: 3}}]
steps: 2
batch_size: 8
precision: float32
device: cpu
metrics: [mig, "{METRIC}"]
zero_shot: {{held_out: x > 5}}
"""


@pytest.fixture(scope="module")
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A study as the stranger has it, with his code beside it; it leaves a mark whenever it is imported or called."""
    home = tmp_path_factory.mktemp("theirs")
    (home / "strangers_code.py").write_text(CODE.format(marker=str(home / "marker")))
    (home / "study.yaml").write_text(YAML)
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        runs = Study.load(home / "study.yaml", out=home / "study").run(processes=0)
        assert [run.state for run in runs] == ["finished"] * 2
        shutil.copytree(home / "study" / "runs" / runs[0].id, home / "run")
        unbraid.load_run(home / "run", network=NETWORK).codes().save(home / "codes.npz")
        yield home


@pytest.fixture
def home(theirs: Path, tmp_path: Path) -> Path:
    """A copy that a user was given; the code that it names could be imported, and must not be."""
    for name in ("study", "run", "codes.npz", "study.yaml"):
        copied = shutil.copytree if (theirs / name).is_dir() else shutil.copy
        copied(theirs / name, tmp_path / name)
    (tmp_path / "wide").mkdir()
    (tmp_path / "wide" / "study.yaml").write_text(
        YAML.replace("dataset: {", "datasets: [{label: own, ").replace("4}", "4}]", 1)
    )
    (tmp_path / "wide" / "own").symlink_to(tmp_path / "study")
    forget(theirs)
    return tmp_path


def forget(theirs: Path) -> None:
    sys.modules.pop("strangers_code", None)
    (theirs / "marker").unlink(missing_ok=True)


def executed(theirs: Path) -> bool:
    return (theirs / "marker").exists() or "strangers_code" in sys.modules


# What a command is given, and the code it ends with; twice where it takes a run and a study. In the order of the help.
WALK: dict[str, list[tuple[str, int]]] = {
    "score": [
        ("run --metrics mig", 0), ("codes.npz --metrics mig", 0), ("run --metrics mig --baselines", 2),
    ],
    "compare": [
        ("codes.npz run --metrics mig --resamples 2", 0), ("study --by seed", 2), ("wide --by seed", 2),
    ],
    "metrics": [("", 0)],
    "stress": [("mig", 3)],
    "bench": [("mig --models 4", 0), ("mig --zoo study", 2)],
    "rank": [("codes.npz run/codes.safetensors", 0), ("study --compare all", 0), ("wide", 0)],
    "families": [("", 0)],
    "fit": [("codes.npz --plan study.yaml --out fitted", 2)],
    "train": [("vae --dataset square --data positions=8 --set network=nets:pair --steps 1 --out study/runs", 2)],
    "continue": [("run --steps 100", 2)],
    "figure": [
        ("traversals run --out a.png", 2), ("samples run --out a.png", 2),
        ("reconstructions run --out a.png", 2), ("curves run --out a.png", 0),
        ("information run --out a.png", 0), ("boxes study --out a.png", 0),
    ],
    "report": [("run", 2), ("run --compare run", 2), ("study", 0), ("wide", 2), ("run/scores.json", 0)],
    "export": [
        ("run --out a.onnx", 2), ("study --out a.csv", 0), ("study --out a.parquet", 0), ("wide --out a.csv", 0),
        ("codes.npz --out a.parquet", 0),
    ],
    "cite": [("mig", 0)],
    "data list": [("", 0)],
    "data info": [("run", 2), ("study", 2)],
    "data render": [("run --out a", 2)],
    "data get": [("run", 2)],
    "data path": [("run", 2)],
    "data show": [("run --out a.png", 2)],
    "study run": [("study --out other", 2), ("study --out other --dry-run", 2), ("wide --out other", 2)],
    "study status": [("study", 0), ("study --json -", 0), ("study --again", 0), ("wide", 0)],
    "study add": [("study codes.npz --family mine", 2), ("study run --name mine", 2), ("wide run", 2)],
    "study agreement": [("study", 0), ("wide", 0)],
    "study merge": [("study --out a.csv", 0), ("study study/results.parquet --out a.csv", 2)],
    "study generalisation": [("study", 0), ("study --json -", 0), ("wide", 0)],
}  # fmt: skip


def commands() -> list[str]:
    found = []
    for name, command in typer.main.get_command(app).commands.items():  # pyright: ignore[reportAttributeAccessIssue]
        inner = getattr(command, "commands", None)
        found += [name] if inner is None else [f"{name} {each}" for each in inner]
    return found


def test_the_walk_takes_every_command() -> None:
    assert set(WALK) == set(commands())


@pytest.mark.parametrize(("command", "given", "expected"), [(name, *each) for name in WALK for each in WALK[name]])
def test_no_command_executes_what_a_folder_names(
    unbraid_cli, theirs: Path, home: Path, monkeypatch: pytest.MonkeyPatch, command: str, given: str, expected: int
) -> None:
    monkeypatch.chdir(home)
    code, _, error = unbraid_cli(*command.split(), *given.split())
    assert not executed(theirs)
    assert code == expected, error
    assert len(error.splitlines()) <= 1 or code == 0


@pytest.mark.parametrize(
    "given",
    [
        "figure traversals run --out a.png", "figure samples run --out a.png", "export run --out a.onnx", "report run",
        "figure reconstructions run --out a.png",
    ],
)  # fmt: skip
def test_the_line_says_what_would_be_executed_and_how_to_allow_it(
    unbraid_cli, theirs: Path, home: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.chdir(home)
    code, printed, error = unbraid_cli(*given.split())
    assert (code, printed) == (2, "")
    assert error == (
        f"unbraid: run/config.json names a network of its own, '{NETWORK}', and opening the run would execute it: "
        f"if you trust it, add --trust-code {NETWORK}\n"
    )
    assert not list(home.glob("a.*"))
    assert unbraid_cli(*given.split(), "--trust-code", "other:pair")[0] == 2
    assert not executed(theirs)
    if not given.startswith("export"):  # slow, and tested elsewhere
        assert unbraid_cli(*given.split(), "--trust-code", "other:pair", "--trust-code", NETWORK)[0] == 0
        assert executed(theirs)


def test_a_study_is_drawn_and_added_to_by_who_trusts_it(
    unbraid_cli, theirs: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    assert unbraid_cli("report", "study")[0] == 0
    assert page_says(home / "study" / "report.html", "would execute it") == 2
    assert not executed(theirs)
    assert unbraid_cli("report", "study", "--trust-code", NETWORK)[0] == 0
    assert page_says(home / "study" / "report.html", "would execute it") == 0
    code, _, error = unbraid_cli("study", "add", "study", "codes.npz", "--family", "mine", "--trust-code", NETWORK)
    assert code == 2
    assert error == (
        f"unbraid: study/study.yaml names code of its own, '{METRIC}', and this would execute it: if you trust it, "
        f"add --trust-code {METRIC}\n"
    )
    both = ("--trust-code", NETWORK, "--trust-code", METRIC)
    assert unbraid_cli("study", "add", "study", "codes.npz", "--family", "mine", *both)[0] == 0


def page_says(page: Path, text: str) -> int:
    return page.read_text(encoding="utf-8").count(text)


def test_whole_objects_are_encoded_by_networks_that_are_trusted_only(
    unbraid_cli, theirs: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(home)
    codes = unbraid.Representation.load("run/codes.safetensors")
    replace(codes, codes=codes.codes[::3], factors=codes.factors[::3], log_variances=None).save("run/codes.safetensors")
    kept = Path("run/scores.json").read_bytes()
    code, _, error = unbraid_cli("score", "run", "--metrics", "mig,d_lsbd")
    assert code == 2
    assert error.endswith(f"would execute it: if you trust it, add --trust-code {NETWORK}\n")
    assert Path("run/scores.json").read_bytes() == kept
    assert not executed(theirs)
    assert unbraid_cli("score", "run", "--metrics", "mig,d_lsbd", "--trust-code", NETWORK)[0] == 0
    assert "d_lsbd" in json.loads(Path("run/scores.json").read_text())["metrics"]


def poisoned(home: Path, **changes: object) -> Path:
    """The run with other content of its config.json; "dataset.name" is the name within the dataset."""
    config = json.loads((home / "run" / "config.json").read_text())
    config.pop("checksum", None)  # which anybody can leave out
    config["hyperparameters"]["network"] = "dense"
    for key, value in changes.items():
        holder = config
        *outer, last = key.split("__")
        for name in outer:
            holder = holder[name]
        holder[last] = value
    (home / "run" / "config.json").write_text(json.dumps(config))
    return home / "run"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"hyperparameters__network": "pty:spawn"}, "names a network of its own, 'pty:spawn'"),
        ({"hyperparameters__network": "os:system", "dataset__image_shape": ["touch {marker}"]}, "image_shape[0]"),
        (
            {"hyperparameters__network": "pty:spawn", "dataset__image_shape": ["/bin/sh", "-c", "touch {marker}"]},
            "dataset.image_shape[0]: input should be a valid integer; got '/bin/sh'",
        ),
        ({"hyperparameters__network": "os.path"}, "hyperparameters.network must be one of conv, dense"),
        ({"hyperparameters__network": ["pty:spawn"]}, "hyperparameters.network: input should be a finite number"),
        ({"facts": {"network": "pty:spawn"}}, "facts.network: unknown"),
        ({"facts": {"latents": "pty:spawn"}}, "facts.latents: input should be a valid integer; got 'pty:spawn'"),
        ({"family": "strangers_code:pair"}, "names code of its own, 'strangers_code:pair'"),
        ({"dataset__name": "strangers_code:pair"}, "strangers_code:pair: no such file, folder or dataset here"),
        ({"dataset__name": "/absent/images.npz"}, "/absent/images.npz"),
        ({"dataset__options": {"progress": "strangers_code:pair"}}, "dataset.options: input should hold options"),
        ({"dataset__options": {"name": "dsprites"}}, "dataset.options: input should hold options of a dataset only"),
        ({"device": "strangers_code:pair"}, "device: "),
        ({"precision": "strangers_code:pair"}, "precision: "),
    ],
)
def test_what_a_config_says_in_place_of_settings_is_refused(
    unbraid_cli, theirs: Path, home: Path, monkeypatch: pytest.MonkeyPatch, changes: dict[str, object], said: str
) -> None:
    text = json.dumps(changes).replace("{marker}", str(theirs / "marker"))
    poisoned(home, **json.loads(text))
    monkeypatch.chdir(home)
    for command in ("figure traversals run --out a.png", "figure reconstructions run --out a.png"):
        code, printed, error = unbraid_cli(*command.split())
        assert (code, printed, len(error.splitlines())) == (2, "", 1)
        assert said in error
    assert not executed(theirs)
    for command in ("score run --metrics mig", "report run"):
        assert unbraid_cli(*command.split())[0] in (0, 2)
    assert not executed(theirs)
