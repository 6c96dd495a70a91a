"""Several datasets in one study: each an ordinary study, and the table of all of them theirs joined."""

import json
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import unbraid
from tests.studies.study_examples import parse, same_but_for_times, written
from unbraid import Representation, Study
from unbraid.datasets import DATASETS
from unbraid.datasets.dataset_description import COMMON_OPTIONS, options_of
from unbraid.files import remote
from unbraid.files.remote import address_of, local_folder, publish
from unbraid.files.table_formats import save_frame
from unbraid.metrics import mig
from unbraid.metrics._shared.resampling import permutation
from unbraid.ranking.ranking import NothingToRank
from unbraid.scoring.group_comparison import compare_groups
from unbraid.studies import store
from unbraid.studies.added import sample_of
from unbraid.studies.ranked_study import rank_parts
from unbraid.studies.several_datasets import OWN, read
from unbraid.studies.shards import claimed
from unbraid.studies.study import open_study
from unbraid.studies.study_record import StudyProgress
from unbraid.studies.study_table import results

URL = "memory://wide"
REST = """
families:
  - {name: beta_vae, beta: 1, network: dense, latents: 2, learning_rate: 1e-3}
  - {name: pca, latents: 2}
seeds: 2
steps: 2
batch_size: 8
precision: float32
device: cpu
metrics: [mig, sap]
udr: {similarity: spearman}
baselines: true
"""
WIDE = (
    """
name: wide
datasets:
  - {name: square, positions: 4, shrink: 8, label: whole}
  - {name: square, positions: 4, shrink: 8, without: x > 1 and y > 1, label: part, steps: 3, metrics: [mig]}
"""
    + REST
)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the study, trained; its YAML lies beside it."""
    home = tmp_path_factory.mktemp("several")
    runs = Study.load(written(home, WIDE), out=home / "wide").run(processes=0)
    assert [run.state for run in runs] == ["finished"] * 8
    return home / "wide"


def test_the_table_joins_those_of_ordinary_studies(wide: Path, tmp_path: Path) -> None:
    study = Study.load(wide)
    assert list(study.parts) == ["whole", "part"]
    frame = study.results()
    assert frame["label"].tolist() == ["whole"] * 4 + ["part"] * 4
    assert frame["steps"].tolist() == [2] * 4 + [3] * 4
    assert len(frame["content"].unique()) == 2
    kept = pd.read_parquet(wide / "results.parquet")
    pd.testing.assert_frame_equal(kept, frame, check_dtype=False)
    rest = REST.replace("steps: 2", "steps: 3").replace("mig, sap", "mig")
    alone = "name: n\ndataset: {name: square, positions: 4, shrink: 8, without: x > 1 and y > 1}\n" + rest
    by_itself = Study.load(written(tmp_path, alone), out=tmp_path / "alone")
    by_itself.run(processes=0)
    own = frame.loc[frame["label"] == "part"].drop(columns="label").dropna(axis=1, how="all").reset_index(drop=True)
    for single in (by_itself, Study.load(wide / "part")):
        assert same_but_for_times(single.results().dropna(axis=1, how="all"), own)
    udr = {label: set(rows["ranked_by"]) for label, rows in frame.groupby("label")}
    assert all(json.loads(*told)["models"] == 4 for told in udr.values()), "among models of the same images alone"


def test_what_is_added_to_the_file_is_all_that_is_trained(wide: Path, tmp_path: Path, monkeypatch) -> None:
    begun: list[str] = []
    from unbraid.studies.executors import EXECUTORS

    def counted(tasks, datasets, *, report=None):
        begun.extend(task.folder for task in tasks)
        return EXECUTORS["local"](tasks, datasets, report=report, processes=0)

    monkeypatch.setattr("unbraid.studies.execution.EXECUTORS", {**EXECUTORS, "local": counted})
    more = WIDE.replace("\nfamilies", "\n  - {name: square, positions: 2, shrink: 8, label: more}\nfamilies")
    study = Study.load(written(tmp_path, more), out=wide)
    study.run(shard="1/2")
    study.run(shard="2/2")
    assert begun == [str(wide / "more" / "runs")] * 4
    assert len(study.results()) == 12
    study = Study.load(written(tmp_path, WIDE), out=wide)  # taken out again, it stays in the folder
    assert len(study.run()) == 8
    assert len(begun) == 4
    assert (wide / "more" / "runs").is_dir()


def test_every_command_goes_through_the_datasets(unbraid_cli, wide: Path, tmp_path: Path) -> None:
    def said(command: str, *options: object) -> str:
        group = () if command in ("rank", "compare", "export") else ("study",)
        code, printed, error = unbraid_cli(*group, command, str(wide), *map(str, options))
        assert (code, error) == (0, ""), error
        return printed

    assert [line.strip() for line in said("status").splitlines() if line.startswith("wide")] == [
        "wide whole",
        "wide part",
    ]
    assert [each["label"] for each in json.loads(said("status", "--json", "-"))] == ["whole"] * 4 + ["part"] * 4
    ranked = json.loads(said("rank", "--json", "-"))
    for label in ("whole", "part"):
        alone = unbraid_cli("rank", str(wide / label), "--json", "-")[1]
        assert ranked[label] == json.loads(alone)
        agreed = json.loads(said("agreement", "--json", "-"))[label]["agreement"]
        alone = json.loads(unbraid_cli("study", "agreement", str(wide / label), "--json", "-")[1])["agreement"]
        assert agreed["correlations"] == alone["correlations"] != []
    assert {"whole", "part"} <= set(said("rank", "--rows", "1").splitlines())
    said("export", "--out", tmp_path / "r.csv")
    merged = tmp_path / "all.csv"
    assert unbraid_cli("study", "merge", str(tmp_path / "r.csv"), "--out", str(merged))[1].endswith(
        "8 runs of 1 table\n"
    )
    by_family = said("compare", "--json", "-", "--columns", "mig.score")
    assert by_family == unbraid_cli("compare", str(merged), "--json", "-", "--columns", "mig.score")[1]
    groups = [(each["first"], each["second"]) for each in json.loads(by_family)["differences"]]
    assert groups == [("part beta_vae", "part pca"), ("whole beta_vae", "whole pca")]
    by_label = json.loads(said("compare", "--by", "label", "--json", "-"))["differences"]
    assert [(each["first"], each["second"]) for each in by_label] == [("part", "whole")]
    _, printed, error = unbraid_cli("compare", str(merged), "--by", "label")
    assert (printed, error.count("\n")) == ("", 1)
    assert "mig.score: scores are of 12 to 16 rows, and scores depend on how many; compare the folder of the" in error
    for command in (
        f"compare {wide} --by dataset",  # the groups would mix images
        f"study add {wide} codes.npz --family mine", f"figure boxes {wide} --out {tmp_path}/a.png",
        f"study generalisation {wide}",
    ):  # fmt: skip
        code, printed, error = unbraid_cli(*command.split())
        assert (code, printed, error.count("\n")) == (2, "", 1), command
    code, printed, _ = unbraid_cli("study", "run", str(wide / "study.yaml"), "--out", str(wide), "--dry-run")
    assert code == 0
    assert "in all 0 of 8 runs to do, 0 steps: " in printed


def test_a_ranking_checks_seeds_by_a_metric_of_some_datasets(unbraid_cli, wide: Path) -> None:
    lacking = "note: there are no scores by sap.score, so whether seeds matter is not checked"
    code, printed, error = unbraid_cli("rank", str(wide), "--metric", "sap.score")
    assert (code, error) == (0, "")
    whole, part = printed.split("\npart\n")
    assert lacking not in whole
    assert lacking in part
    checks = {label: each["suitability"] for label, each in json.loads(
        unbraid_cli("rank", str(wide), "--metric", "sap.score", "--json", "-")[1]
    ).items()}  # fmt: skip
    assert [each["reason"] for each in checks["part"]] == ["there are no scores by sap.score"] * 2
    assert {each["reason"].partition(";")[0] for each in checks["whole"]} == {"needs two settings and two seeds"}
    code, printed, error = unbraid_cli("rank", str(wide), "--metric", "sap")
    assert (code, printed) == (2, "")
    assert error == "unbraid: the results have no column 'sap'; did you mean 'sap.score'?\n"


def test_a_dataset_without_two_models_is_left_out_of_a_ranking_with_the_reason(wide: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(wide, tmp_path / "wide")
    shutil.rmtree(folder / "part" / "runs")
    parts, left_out = rank_parts([part.snapshot() for part in Study.load(folder).parts.values()], {})
    assert list(parts) == ["whole"]
    assert "not finished" in left_out["part"]
    with pytest.raises(NothingToRank, match="not finished"):
        rank_parts([Study.load(folder / "part").snapshot()], {})


def test_datasets_are_compared_on_as_many_rows_of_each(wide: Path) -> None:
    study = Study.load(wide)
    assert study.results().groupby("label")["n_rows"].unique().map(list).to_dict() == {"whole": [16], "part": [12]}
    with pytest.raises(ValueError, match="mig.score: scores are of 12 to 16 rows"):
        compare_groups(study.results(), "label")
    told: list[tuple[str, int, int]] = []
    found = study.compare("label", progress=lambda *said: told.append(said))
    assert told == [("scoring as many rows", done, 4) for done in range(4)]
    rows = permutation(16, 0)[:12]
    again = [mig(codes.codes[rows], codes.factors[rows], kinds=codes.kinds).score for codes in _codes(wide / "whole")]
    as_they_are = study.results()["mig.score"].to_numpy()
    means = {each.group: each.mean for each in found.groups if each.column == "mig.score"}
    assert means == pytest.approx({"whole": np.mean(again), "part": as_they_are[4:].mean()})
    assert means["whole"] != pytest.approx(as_they_are[:4].mean())
    assert any("scores of 4 runs of 16 rows are means over disjoint subsets of 12 rows" in note for note in found.notes)
    assert not any("subsets" in note for note in study.compare("family").notes), "all are of one dataset"


def test_a_study_is_compared_by_its_folder_or_its_table_as_well(wide: Path, tmp_path: Path) -> None:
    found = unbraid.compare(wide, by="family", columns=["mig.score"])
    assert found.to_dict() == Study.load(wide).compare("family", ["mig.score"]).to_dict()
    assert unbraid.compare(Study.load(wide), columns="mig.score").to_dict() == found.to_dict()
    save_frame(Study.load(wide).results(), tmp_path / "wide.csv")
    assert unbraid.compare(str(tmp_path / "wide.csv"), columns=["mig.score"]).shifts == found.shifts
    for compared in (unbraid.compare, unbraid.rank):
        with pytest.raises(ValueError, match=r"codes.npz: not the folder of a study \(no study.yaml\); give models as"):
            compared(tmp_path / "codes.npz")


def _codes(folder: Path) -> list[Representation]:
    return [run.codes() for run in Study.load(folder).runs()]


def test_the_page_of_all_shows_medians_by_dataset_and_leads_to_the_pages_of_each(
    unbraid_cli, wide: Path, tmp_path: Path
) -> None:
    code, _, error = unbraid_cli("report", str(wide), "--out", str(tmp_path / "all.html"))
    assert code == 0, error
    page = (tmp_path / "all.html").read_text(encoding="utf-8")
    frame = Study.load(wide).results()
    for label in ("whole", "part"):
        address = os.path.relpath(wide / label / "report.html", tmp_path)
        assert f'<a href="{address}">{label}</a>' in page
        assert "<title>Study: wide " + label in (wide / label / "report.html").read_text(encoding="utf-8")
    for number, column in enumerate(("udr.score", "mig.score", "sap.score"), start=1):
        section = page.partition(f'<section id="score-{number}"')[2].partition("</section>")[0]
        medians = frame.groupby(["family", "label"])[column].median().unstack()[["whole", "part"]]
        shown = [re.findall(r"<td>(?:([^<]+) <small>\(2\)</small>|–)", row) for row in section.split("<tr>")[2:]]
        read = np.array([[float(cell or "nan") for cell in row] for row in shown])
        np.testing.assert_allclose(read, medians.to_numpy(), atol=6e-4)
    low, high = frame.loc[frame["label"] == "whole"].groupby("family")["mig.score"].agg(["min", "max"]).loc["beta_vae"]
    assert f"left:{round(100 * low, 2)}%;width:{round(100 * (high - low), 2)}%" in page


def test_what_cannot_be_right_is_refused_by_its_key_and_nothing_is_written(unbraid_cli, tmp_path: Path) -> None:
    second = "label: part, steps: 3, metrics: [mig]"
    for old, new, said in (
        ("datasets:", "dataset: square\ndatasets:", "dataset and datasets are both given; write one of them"),
        (
            "positions: 4, shrink: 8, without",
            "shrnk: 8, without",
            "datasets[1] (part): dataset 'square' has no option 'shrnk'",
        ),
        (
            "name: square, positions: 4, shrink: 8, label",
            "name: squares, label",
            "datasets[0] (whole): 'squares': there",
        ),
        (second, "label: whole", "datasets[1].label: 'whole' is that of datasets[0] as well; give each its own"),
        (second, "label: Whole", "datasets[1].label: 'Whole' is that of datasets[0] as well"),
        (second, "label: ../x", "datasets[1].label: '../x' cannot be the name of a folder; write letters"),
        (second, "label: .hidden", "datasets[1].label: '.hidden' cannot be the name of a folder"),
        (second, 'label: "a\\n"', "cannot be the name of a folder"),
        (second, "label: Runs", "datasets[1].label: 'Runs' is a reserved name"),
        (second, "label: x.part", "datasets[1].label: 'x.part' is a reserved name"),
        (
            second,
            "label: part, zero_shot: {held_out: x > 1, held_outt: 1}",
            "datasets[1].zero_shot.held_outt: unknown; did you mean 'held_out'?",
        ),
        (second, "label: part, metrics: [mig, zero_shot]", "datasets[1] (part): metrics[1]: zero_shot needs a gap"),
        (
            second,
            "label: part, zero_shot: {held_out: x > 1}",
            "datasets[1] (part): zero_shot: the dataset leaves out images itself",
        ),
        ("name: square, positions: 4, shrink: 8, label: whole", "name: ./mine/", "give one"),
    ):
        text = WIDE.replace(old, new)
        assert text != WIDE, old
        code, printed, error = unbraid_cli("study", "run", str(written(tmp_path, text)), "--out", f"{tmp_path}/out")
        assert (code, printed, error.count("\n")) == (2, "", 1), (new, error)
        assert said in error, (new, error)
        assert not (tmp_path / "out").exists()
    for datasets, said in (("[]", "datasets: is empty"), ("square", "list"), ("[5]", "datasets[0]: input")):
        with pytest.raises(ValueError, match=said.replace("[", r"\[")):
            Study.load(written(tmp_path, f"name: n\ndatasets: {datasets}\n" + REST))


def test_folders_of_something_else_are_left_alone(wide: Path, tmp_path: Path) -> None:
    one = "name: n\ndataset: square\n" + REST
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "thesis.tex").write_text("years of work")
    for text, out, said in (
        (WIDE, wide / "part", "holds a study of one dataset"),
        (WIDE, tmp_path / "thesis", "holds something else"),
        (WIDE, tmp_path / "thesis" / "thesis.tex", "is a file"),
        (one, wide, "holds something else than a study"),
    ):
        with pytest.raises(ValueError, match=said):
            Study.load(written(tmp_path, text), out=out)


def test_the_file_of_each_dataset_says_what_the_whole_does(tmp_path: Path) -> None:
    text = 'name: "a: b"\ndatasets: [square, {name: arrow, seeds: [3], label: "1e-4"}]\n' + REST.replace(
        "metrics: [mig, sap]", 'metrics: ["1e-4", "mig(bins=10)", "on", "0o17", "12:30", "é"]'
    )
    config, _, parts = read(written(tmp_path, text))
    assert [part.label for part in parts] == ["square", "1e-4"]
    assert config.name == "a: b"
    for part in parts:
        assert parse(part.text, "part") == part.config
    assert parts[1].config.seeds == [3]
    assert parts[0].config == config.model_copy(update={"name": "a: b square"})


def test_no_dataset_has_an_option_that_a_study_takes_for_its_own() -> None:
    options = {name for row in DATASETS.values() for name in options_of(row.open)} | {*COMMON_OPTIONS}
    assert not options & {*OWN, "label", "name"}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Go on as another machine, which has seen nothing of the store; at first there is nothing in it."""
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    return lambda name: monkeypatch.setenv("UNBRAID_DATA", str(tmp_path / name))


def stored() -> set[str]:
    return {name.removeprefix("/wide/") for name in MemoryFileSystem.store}


def test_in_an_object_store_it_is_the_one_in_a_folder(
    wide: Path, tmp_path: Path, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    yaml, expected = written(tmp_path, WIDE), Study.load(wide).results()

    def stop(sent: StudyProgress) -> None:
        if sent.label == "part" and sent.n_done == 1:
            raise KeyboardInterrupt

    machine("one")
    with pytest.raises(KeyboardInterrupt):
        Study.load(yaml, out=URL).run(processes=0, progress=stop)
    machine("two")
    study = Study.load(yaml, out=URL)
    assert [run.state for run in study.runs()].count("finished") == 5
    study.run(processes=0)
    assert same_but_for_times(study.results(), expected)
    runs = [path.relative_to(wide).as_posix() for path in wide.glob("*/runs/*/*") if path.is_file()]
    assert {name for name in stored() if "/runs/" in name} == {name for name in runs if not name.startswith("more/")}
    machine("three")
    frame = Study.load(URL).results()
    assert same_but_for_times(frame, expected)
    pd.testing.assert_frame_equal(pd.read_parquet(local_folder(URL) / "results.parquet"), frame, check_dtype=False)
    monkeypatch.setattr(MemoryFileSystem, "get", lambda *_: pytest.fail("fetched again"))
    sent, send = [], MemoryFileSystem.put_file
    monkeypatch.setattr(MemoryFileSystem, "put_file", lambda *given: (sent.append(given[2]), send(*given)))
    Study.load(URL).run(processes=0)
    assert [name for name in sent if "/runs/" in name] == []


def test_of_one_dataset_in_a_store_it_is_a_study_by_itself(
    tmp_path: Path, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    machine("one")
    study = Study.load(written(tmp_path, WIDE.replace("  - {name: pca, latents: 2}\n", "")), out=URL)
    study.run(processes=0)
    part = study.parts["part"]
    assert address_of(part.require_folder()) == f"{URL}/part"
    study.rank("part", similarity="lasso")
    assert "part/udr/lasso-all.npz" in stored()
    store.write_failure(part.require_folder(), store.Failure("a", "vae", "", 0, "it broke", 1))
    publish(part.require_folder())
    assert "part/failed/a.json" in stored()
    store.forget_failure(part.require_folder(), "a")
    publish(part.require_folder())
    assert "part/failed/a.json" not in stored()
    with claimed(part.require_folder()), monkeypatch.context() as patch:
        patch.setattr(remote, "pull", lambda *_: pytest.fail("brought up to date while somebody is at work"))
        local_folder(URL)
    machine("two")
    assert same_but_for_times(Study.load(f"{URL}/part").results(), results(part.snapshot()))
    with open_study(f"{URL}/part") as alone:
        store.write_failure(alone.require_folder(), store.Failure("b", "vae", "", 0, "it broke", 1))
        assert "failed/b.json" not in {name.removeprefix("part/") for name in stored()}
    assert "part/failed/b.json" in stored(), "what changed goes up at the end of the block"


def test_what_takes_one_dataset_is_told_which(wide: Path) -> None:
    study = Study.load(wide)
    assert study.rank("part").runs == Study.load(wide / "part").rank().runs
    assert [run.id for run in study.snapshot("part").runs] == [run.id for run in study.parts["part"].snapshot().runs]
    said = "the study is of 2 datasets, whole, part; say dataset='whole', or take the folder of one, such as "
    for ask in (study.rank, study.snapshot, study.part, lambda: sample_of(study)):
        with pytest.raises(ValueError, match=f"^{re.escape(said)}{wide}/whole$"):
            ask()
    with pytest.raises(ValueError, match="^no dataset 'parts': the study is of 2 datasets"):
        study.rank("parts")
    assert len(sample_of(study, "part")) == 12
    assert Study.load(wide / "part").part("").label == ""
