"""The model card of an exported run: what stands in it is so, its code runs, and the Hub can read it."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from huggingface_hub import ModelCard
from sklearn.metrics import mutual_info_score

import unbraid
from tests.training.training_examples import TINY, blocks
from unbraid import load_run
from unbraid.runs.model_card import ALONE, model_card
from unbraid.runs.run import Run, open_run
from unbraid.runs.run_export import export_folder
from unbraid.studies.study import Study

YAML = """
name: four
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: pca, latents: [3, 4]}]
seeds: 2
steps: 1
metrics: [mig, factor_leakage]
udr: {similarity: spearman}
"""


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    folder = tmp_path_factory.mktemp("four")
    (folder / "study.yaml").write_text(YAML)
    opened = Study.load(folder / "study.yaml", out=folder / "out")
    opened.run(processes=0)
    return opened


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Of images in memory, with a latent that is used and others that are not."""
    run = unbraid.train(
        "beta_vae", TINY, steps=600, batch_size=64, out=tmp_path_factory.mktemp("runs"), processes=0, latents=4,
        network="dense", beta=2, learning_rate=3e-3, seeds=[7],
    )[0]  # fmt: skip
    return open_run(run.path, device="cpu")


def sections(text: str) -> dict[str, str]:
    """By heading; what comes first by "#"."""
    parts = re.split(r"^(#+ .*)\n", text, flags=re.MULTILINE)
    return {head.strip("# "): body for head, body in zip(parts[1::2], parts[2::2], strict=True)}


def rows(section: str) -> list[list[str]]:
    lines = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


NETWORK = "tests.training.test_drawing_networks:dropping_pair"


@pytest.mark.parametrize(
    ("family", "data", "settings"),
    [
        ("pca", TINY, {"latents": 3}),
        ("vae", TINY, {"network": NETWORK}),
        ("vae", np.random.default_rng(0).normal(size=(60, 5)), {"network": "dense", "likelihood": "gaussian"}),
        ("lsbd_vae", TINY, {"network": "dense", "pairs": 20}),
        ("weak_de", TINY, {"network": "dense", "labels": 81, "adversary_width": 16, "adversary_depth": 2}),
    ],
    ids=["pca", "own network", "rows of a table", "circles", "labels"],
)
def test_the_lines_that_load_it_run(
    family: str, data: Any, settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given: Any = {"steps": 2, "batch_size": 8, "processes": 0, "seeds": [0], **settings}
    (run,) = unbraid.train(family, data, out=tmp_path / "runs", **given)
    export_folder(run.path, tmp_path / 'my "model"', trust=[NETWORK])
    text = (tmp_path / 'my "model"' / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line]) == 5
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec(compile(code, "README.md", "exec"), names)
    assert names["codes"].shape == (1, names["run"].n_codes)
    assert names["images"].shape == (1, *run.config["dataset"]["image_shape"])
    assert ModelCard(text).data.to_dict()["tags"][-1] == family
    needed = re.findall(r"^It needs this code, which is not in the folder .*: `(.*)`\.$", text, flags=re.MULTILINE)
    assert needed == ([NETWORK] if settings.get("network") == NETWORK else [])
    assert ("It was trained with the supervision above" in text) is (family in ("lsbd_vae", "weak_de"))


def test_the_hub_reads_the_scores_of_the_run(study: Study, tmp_path: Path) -> None:
    run = study.runs()[0]
    export_folder(run.path, tmp_path / "model", name="my-lab/pca")
    card = ModelCard.load(tmp_path / "model" / "README.md")
    data = card.data.to_dict()
    assert (data["library_name"], data["pipeline_tag"]) == ("unbraid", "image-feature-extraction")
    assert data["tags"] == ["disentanglement", "representation-learning", "pca"]
    assert data["model-index"][0]["name"] == "my-lab/pca"
    found = {each.metric_type: each for each in card.data.eval_results}  # pyright: ignore[reportAttributeAccessIssue]
    assert (
        found["mig.score"].metric_value
        == json.loads((run.path / "scores.json").read_text())["metrics"]["mig"]["values"]["score"]
    )
    assert found["mig.score"].dataset_name == "square (drawn by unbraid)"
    assert found["mig.score"].dataset_config == "positions=8, shrink=4"
    assert rows(sections(card.text)["Scores"])[0][0] == "Mutual information gap (`mig.score`)"


def test_it_says_what_was_trained_on_what(study: Study, trained: Run) -> None:
    of_study = load_run(study.runs()[0].path)
    told = dict(rows(sections(model_card(of_study, "a"))["Training"])[:20])
    assert told["family"].startswith("`pca`: ")
    assert told["data"].startswith("`square` (positions=8, shrink=4): ")
    assert "drawn by unbraid, and not the published images" in told["data"]
    told = dict(rows(sections(model_card(trained, "a"))["Training"]))
    assert (told["`beta`"], told["seed"], told["steps"]) == ("2.0, not the default", "7", "600 of 64 images")
    assert told["data"].startswith("243 images that unbraid knows by no name")
    assert told["unbraid"].startswith(unbraid.__version__)


def test_images_by_their_path_are_not_named(unbraid_cli, tmp_path: Path) -> None:
    np.save(tmp_path / "secret.npy", blocks().array[:, ::4, ::4])
    run = unbraid.train("pca", str(tmp_path / "secret.npy"), out=tmp_path / "runs", processes=0, latents=2)[0]
    text = model_card(load_run(run.path), "mine")
    assert "secret" not in text
    assert "243 images that unbraid knows by no name" in text
    assert "It was not scored: no factors of its images are known." in text
    assert "Nobody has named its latents." in text
    assert "It has no prior" in text
    assert "model-index" not in text
    code, printed, _ = unbraid_cli("export", run.path, "--out", tmp_path / "mine")
    place = f"{tmp_path / 'mine' / 'config.json'} names the place of your images, {tmp_path / 'secret.npy'}"
    assert (code, printed.splitlines()[-1]) == (0, f"note: {place}")


def test_a_run_beside_the_file_of_a_study_is_not_of_that_study(trained: Run, unbraid_cli, tmp_path: Path) -> None:
    """Where `unbraid train --out runs` was called beside study.yaml, also with files that are no runs."""
    (tmp_path / "study.yaml").write_text(YAML)
    beside = tmp_path / "runs" / trained.path.name
    shutil.copytree(trained.path, beside)
    (tmp_path / "runs" / ".lock").touch()
    code, printed, _ = unbraid_cli("export", beside, "--out", tmp_path / "mine")
    assert (code, printed.splitlines()[0].split(";")[0]) == (0, f"wrote {tmp_path / 'mine'}")
    text = (tmp_path / "mine" / "README.md").read_text(encoding="utf-8")
    assert sections(text)["How it was chosen"].strip() == ALONE


def test_a_folder_may_end_in_a_number(trained: Run, unbraid_cli, tmp_path: Path) -> None:
    code, printed, _ = unbraid_cli("export", trained.path, "--out", tmp_path / "vae-0.1")
    assert (code, printed.splitlines()[0].split(";")[0]) == (0, f"wrote {tmp_path / 'vae-0.1'}")
    assert (tmp_path / "vae-0.1" / "weights.safetensors").read_bytes() == (
        trained.path / "weights.safetensors"
    ).read_bytes()


def test_it_says_what_each_latent_tells_and_which_are_unused(trained: Run) -> None:
    codes = trained.codes()
    parts = sections(model_card(trained, "a"))
    table = rows(parts["What each latent does"])
    signal = 0.5 * np.log1p(codes.codes.var(axis=0) / np.exp(codes.log_variances.astype(float)).mean(axis=0))  # pyright: ignore
    assert [row[2] for row in table] == [f"{each:.2f}" for each in signal]
    used = signal > 0.01
    assert 0 < used.sum() < 4, "the fixture should have latents of both sorts"
    for at, row in enumerate(table):
        binned = np.digitize(codes.codes[:, at], np.histogram_bin_edges(codes.codes[:, at], 20)[1:-1])
        shares = [mutual_info_score(binned, each) / mutual_info_score(each, each) for each in codes.factors.T]
        best = codes.names[int(np.argmax(shares))]
        assert row[3] == (best.replace("_", "\\_") if used[at] else "")
    unused = ", ".join(f"code {at}" for at in np.flatnonzero(~used))
    assert f"- It leaves {(~used).sum()} of 4 latents unused: {unused}.\n" in parts["What it does not do"]


def test_a_model_that_learned_nothing_is_called_so(tmp_path: Path) -> None:
    run = unbraid.train("vae", TINY, steps=1, out=tmp_path, processes=0, network="dense", seeds=[0])[0]
    limits = sections(model_card(load_run(run.path), "a"))["What it does not do"]
    assert "It has collapsed or learned nothing" in limits


def test_how_it_was_chosen_is_told_and_handed_on(study: Study, trained: Run, unbraid_cli, tmp_path: Path) -> None:
    assert sections(model_card(trained, "a"))["How it was chosen"].strip() == ALONE
    frame = study.results().set_index("run")
    worst = str(frame["factor_leakage.nm_auc"].idxmax())
    path, first = study.require_folder() / "runs" / worst, tmp_path / "first"
    code, printed, _ = unbraid_cli("export", path, "--out", first, "--chosen", "By *hand*.", "--name", "mine")
    assert (code, printed) == (0, f"wrote {first}; its model card is {first / 'README.md'}\n")
    text = (first / "README.md").read_text()
    chosen = sections(text)["How it was chosen"]
    assert chosen.startswith("\nBy *hand*.\n\nIt is one of 4 finished runs of 2 settings in the study *four*. ")
    places = {row[0]: row[1:] for row in rows(chosen)}
    leakage = frame["factor_leakage.nm_auc"]
    assert places["`factor_leakage.nm_auc`"] == [
        f"{leakage[worst]:.3f}", "3 to 4 of 4", f"{leakage.median():.3f}", f"{leakage.min():.3f}",
    ]  # fmt: skip  # PCA of any seed is the same: the two runs of the worse setting share its two places
    assert places["`mig.score`"][3] == f"{frame['mig.score'].max():.3f}"
    assert "`udr.score`" in places
    export_folder(first, tmp_path / "second")
    assert sections((tmp_path / "second" / "README.md").read_text())["How it was chosen"] == chosen


def test_scores_with_intervals_take_the_place_of_those_without(study: Study, unbraid_cli, tmp_path: Path) -> None:
    run, other = study.runs()[0].path, study.runs()[-1].path
    scores, out = tmp_path / "with.json", tmp_path / "model"
    assert unbraid_cli("score", run, "--metrics", "mig", "--confidence", ".9", "--null", "5", "--json", scores)[0] == 0
    assert unbraid_cli("export", run, "--out", out, "--scores", scores)[0] == 0
    interval = json.loads(scores.read_text())["metrics"]["mig"]["intervals"]["values"]["score"]
    ((_, _, between, chance, *_),) = rows(sections((out / "README.md").read_text())["Scores"])
    assert between == f"{interval['low']:.3f} to {interval['high']:.3f}"
    assert chance == f"{json.loads(scores.read_text())['metrics']['mig']['null']['mean']:.3f}"
    assert "Intervals (90 %) are over rows, not over trainings with other seeds." in (out / "README.md").read_text()
    assert (out / "scores.json").read_bytes() == scores.read_bytes()
    with pytest.raises(ValueError, match="with.json: these are the scores of other codes than those of the run"):
        export_folder(other, tmp_path / "other", scores=scores)
    with pytest.raises(FileNotFoundError, match="absent.json: no such file"):
        export_folder(other, tmp_path / "other", scores=tmp_path / "absent.json")
    assert not (tmp_path / "other").exists()


def test_only_files_of_the_run_are_copied(study: Study, tmp_path: Path) -> None:
    source = export_folder(study.runs()[0].path, tmp_path / "source").path
    (source / "notes.txt").write_text("private")
    (tmp_path / "private.json").write_text("{}")
    export_folder(source, tmp_path / "copy")
    names = {each.name for each in (tmp_path / "copy").iterdir()}
    assert names == {each.name for each in source.iterdir()} - {"notes.txt"}
    (source / "scores.json").unlink()
    (source / "scores.json").symlink_to(tmp_path / "private.json")
    with pytest.raises(ValueError):
        export_folder(source, tmp_path / "other")
    assert {each.name for each in tmp_path.iterdir()} == {"source", "copy", "private.json"}


@pytest.mark.parametrize("cut", [None, 40])
def test_no_damaged_file_is_handed_on(trained: Run, tmp_path: Path, cut: int | None) -> None:
    """Curves are no part of what a model card reads: a folder without them, or with half of them, looked exported."""
    run = shutil.copytree(trained.path, tmp_path / "run")
    curves = run / "curves.parquet"
    curves.unlink() if cut is None else curves.write_bytes(curves.read_bytes()[:cut])
    with pytest.raises(ValueError, match=r"curves.parquet is damaged \(it (is missing|has 40 bytes and had [\d,]+)\)"):
        export_folder(run, tmp_path / "copy")
    assert [each.name for each in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("{run}", "--out", "{there}"), "is there already; give a new folder"),
        (("{run}", "--out", "{there}/absent/new"), "absent does not exist"),
        (
            ("{run}", "--out", "{there}/a.onnx", "--name", "a"),
            "--name, --chosen and --scores are for the model card of a run",
        ),
        (("{run}", "--out", "{there}/a.txt"), "the name must end in"),
        (("{study}", "--out", "{there}/a.csv", "--chosen", "By hand."), "--name, --chosen and --scores are for the"),
        (("{study}", "--out", "{there}/a.csv", "--part", "encoder"), "--part is for an .onnx file"),
        (("{there}/none", "--out", "{there}/a"), "none: no such file or folder"),
        (("{study}/runs", "--out", "{there}/a"), "runs: not the folder of a run; there is no config.json"),
        (("{run}/codes.safetensors", "--out", "{there}/a.csv"), ".csv is for the results of a study, and"),
    ],
)
def test_what_cannot_be_exported_is_refused(
    study: Study, unbraid_cli, tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    given = [each.format(run=study.runs()[0].path, study=study.require_folder(), there=tmp_path) for each in arguments]
    code, _, error = unbraid_cli("export", *given)
    assert (code, error.count("\n")) == (2, 1)
    assert said in error


def test_a_name_is_no_markup(trained: Run) -> None:
    text = model_card(trained, "a\n# *b*")
    assert "\n# a \\# \\*b\\*\n" in text
    assert yaml.safe_load(text.split("---\n")[1])["library_name"] == "unbraid"
