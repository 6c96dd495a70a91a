"""A user's own codes in a study: scored like its runs, in the table, the ranking and the agreement, or refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from unbraid import Representation, load_run, rank, score, train
from unbraid.base.types import FloatArray
from unbraid.cli.app import main
from unbraid.data import FactorSpace
from unbraid.datasets import ArrayDataset, load
from unbraid.files import marks
from unbraid.runs.folder import read_codes
from unbraid.runs.run import N_CODES
from unbraid.runs.score_encoder import score_encoder
from unbraid.scoring.encoding import drawn
from unbraid.studies import status
from unbraid.studies.added import _checked, add, encode_sample, names_of, sample_of
from unbraid.studies.study import Study
from unbraid.studies.study_ranking import rank_study

YAML = """
name: small
dataset: {name: square, positions: 8, shrink: 4}
families: [{name: pca, latents: [3, 4]}]
seeds: 2
steps: 1
metrics: [mig]
udr: {similarity: spearman, compare: all}
"""
SQUARE = load("square", positions=8, shrink=4)
PLACES = SQUARE.space.factors(np.arange(64)).astype(float)


def opened(folder: Path, text: str = YAML) -> Study:
    (folder / "study.yaml").write_text(text)
    return Study.load(folder / "study.yaml", out=folder / "out")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    study = opened(tmp_path_factory.mktemp("study"))
    study.run(processes=0)
    return study.require_folder()


@pytest.fixture
def study(finished: Path, tmp_path: Path) -> Study:
    return Study.load(shutil.copytree(finished, tmp_path / "out"))


def saved(path: Path, codes: FloatArray = PLACES, factors: FloatArray = PLACES, **options: Any) -> Path:
    Representation(codes, factors, **options).save(path)
    return path


def test_added_codes_are_scored_ranked_and_compared_like_the_studys(study, tmp_path):
    files = [saved(tmp_path / "mine-0.npz"), saved(tmp_path / "mine-1.safetensors", codes=PLACES[:, ::-1] * [1, -2])]
    before = study.results().set_index("run")
    runs = add(study, files, family="mine", setting={"beta": 4.0}, seed=7)
    assert [(run.id, run.family, run.setting, run.seed, run.state) for run in runs] == [
        ("mine-0", "mine", "beta=4", 7, "finished"), ("mine-1", "mine", "beta=4", 8, "finished"),
    ]  # fmt: skip
    table = study.results().set_index("run")
    assert table.index.tolist() == [*before.index, "mine-0", "mine-1"]
    assert table.loc["mine-0", "mig.score"] == score(PLACES, PLACES, metrics=["mig"])["mig"].score == pytest.approx(1.0)
    assert table.loc["mine-1", "hyper.beta"] == 4.0
    assert table.loc[before.index, "mig.score"].tolist() == before["mig.score"].tolist()
    # The two hold the same in another order and sign: no pair of the study agrees as well.
    ranking = rank_study(study.snapshot())
    assert {*ranking.runs} == {*table.index}
    place = {run: number for number, run in enumerate(ranking.runs)}
    assert ranking.pairs[place["mine-0"], place["mine-1"]] == pytest.approx(1.0)
    assert table["udr.score"].notna().all()
    written = pytest.importorskip("pandas").read_parquet(study.require_folder() / "results.parquet")
    assert written["run"].tolist() == table.index.tolist()
    scores = json.loads((study.require_folder() / "added" / "mine-0" / "scores.json").read_text())
    assert scores["metrics"]["mig"]["values"]["score"] == pytest.approx(1.0)
    assert [entry["name"] for entry in scores["input"]["factors"]] == ["y", "x"]


def test_what_was_added_is_a_model_among_others_by_its_folder(study, tmp_path, unbraid_cli):
    given = Representation.of(PLACES, {"y": PLACES[:, 0], "x": PLACES[:, 1]})  # kinds are guessed, and a note says so
    assert given.notes
    given.save(tmp_path / "mine-0.npz")
    runs = add(study, [tmp_path / "mine-0.npz", saved(tmp_path / "mine-1.npz", PLACES**3)], family="mine")
    folders = [str(run.path) for run in runs]
    assert read_codes(runs[0].path).notes == (), "kinds are those of the study"
    assert rank(folders).families == ("mine", "mine")
    assert "best model of mine" in unbraid_cli("rank", *folders, "--by", "family")[1]


def test_codes_alone_are_given_the_factors_of_the_study(study, tmp_path):
    np.save(tmp_path / "bare.npy", PLACES)
    with_factors = saved(tmp_path / "whole.npz")
    bare, whole = add(study, [tmp_path / "bare.npy", with_factors], family="mine")
    table = study.results().set_index("run")
    assert table.loc[bare.id, "mig.score"] == table.loc[whole.id, "mig.score"]


def test_more_metrics_reach_what_was_added(study, tmp_path):
    add(study, [saved(tmp_path / "mine.npz")], family="mine")
    richer = opened(tmp_path, YAML.replace("[mig]", "[mig, sap]"))
    richer.run(processes=0)
    table = richer.results().set_index("run")
    assert table.loc["mine", "sap.score"] == score(PLACES, PLACES, metrics=["sap"])["sap"].score
    opened(tmp_path, YAML.replace("[mig]", "[mig, 'math:hypot']")).run(processes=0)
    state = opened(tmp_path, YAML.replace("[mig]", "[mig, 'math:hypot']")).results().set_index("run").loc["mine"]
    assert state["state"] == "finished"
    assert state["reason"].startswith("metric math:hypot: ValueError: ")
    assert np.isnan(state["math:hypot.score"])
    richer.run(processes=0)
    assert richer.results().set_index("run").loc["mine", "reason"] is None


def test_an_encoder_of_ones_own_is_given_the_images_of_the_study(study, tmp_path):
    np.testing.assert_array_equal(sample_of(study), np.arange(64))

    def encode(images: FloatArray) -> FloatArray:
        return images.reshape(len(images), -1)[:, ::40].astype(float)

    encode_sample(encode, study).save(tmp_path / "own.npz")
    add(study, [tmp_path / "own.npz"], family="own")
    expected = score_encoder(encode, SQUARE, metrics=["mig"])["mig"].score
    assert study.results().set_index("run").loc["own", "mig.score"] == expected


def test_of_large_datasets_the_images_are_those_that_runs_are_encoded_on(tmp_path):
    space = FactorSpace(("a", "b"), (120, 100), ("ordinal", "ordinal"))
    pixels = np.repeat(space.grid().astype(np.uint8), 8, axis=1).reshape(-1, 4, 4, 1)
    dataset = ArrayDataset(pixels, space)
    (run,) = train("pca", dataset, latents=2, fit_images=100, steps=1, out=tmp_path, processes=0)
    index = drawn(12_000, N_CODES, 0)
    assert (len(index), len(np.unique(index))) == (10_000, 10_000)
    np.testing.assert_array_equal(run.codes().factors, space.factors(index))
    assert _checked(run.codes(), space, "codes").sizes == (120, 100)


def test_a_run_folder_brings_its_family_setting_and_seed(study, tmp_path):
    small: dict[str, Any] = {"network": "dense", "latents": 2, "batch_size": 8, "steps": 2, "processes": 0}
    runs = train(
        "beta_vae", {"name": "square", "positions": 8, "shrink": 4}, beta=[4, 9], seeds=[3], out=tmp_path / "r", **small
    )
    added = add(study, [run.path for run in runs])
    assert [(run.family, run.setting, run.seed) for run in added] == [
        ("beta_vae", f"latents=2, network=dense, beta={beta}, steps=2, batch_size=8", 3) for beta in (4, 9)
    ]
    table = study.results().set_index("run")
    own = table.iloc[0]
    for run in runs:
        row, ended = table.loc[run.path.name], run.status
        assert row[["dataset", "dataset_options", "content"]].equals(own[["dataset", "dataset_options", "content"]])
        assert [row["steps"], row["batch_size"], row["device"], row["precision"], row["unbraid"]] == [
            2, 8, "cpu", run.config["precision"], ended["unbraid"],
        ]  # fmt: skip
        assert (row["train.kl"], row["seconds"]) == (ended["last"]["kl"], ended["seconds"])
        expected = score(run.codes(), metrics=["mig"])["mig"].score
        assert table.loc[run.path.name, "mig.score"] == expected
        assert table.loc[run.path.name, "hyper.beta"] == load_run(run.path).config["hyperparameters"]["beta"]


def test_what_a_run_folder_was_trained_on_are_the_images_of_the_study(study, tmp_path):
    """Its factors are those of the study; its images are the same at another size."""
    (other,) = train(
        "pca", {"name": "square", "positions": 8, "shrink": 8}, latents=2, steps=1, out=tmp_path, processes=0
    )
    np.testing.assert_array_equal(other.codes().factors, PLACES)
    with pytest.raises(ValueError, match=r"trained on other images than the study's \(square {.*'shrink': 8"):
        add(study, [other.path])
    own = study.runs()[0]
    (again,) = add(study, [own.path], names=["again"])  # the same run: it is of the group of its siblings
    assert (again.family, again.setting, again.seed) == (own.family, own.setting, own.seed)


def test_what_was_added_and_is_planned_later_counts_once(study, tmp_path, unbraid_cli, monkeypatch):
    monkeypatch.setattr(marks, "SETTLED", 0.0)  # what was written just now can be remembered
    more = opened(tmp_path, YAML.replace("seeds: 2", "seeds: 3"))
    later = sorted({run.id for run in more.runs()} - {run.id for run in study.runs()})
    add(study, [saved(tmp_path / f"{later[0]}.npz")], family="mine")
    assert later[0] in {run.id for run in study.runs()}
    assert study.runs()[-1].is_added
    shutil.copy(tmp_path / "study.yaml", study.require_folder() / "study.yaml")
    runs = Study.load(study.require_folder()).runs()
    assert [run.id for run in runs] == [run.id for run in more.runs()]
    assert not any(run.is_added for run in runs)
    for _ in range(2):  # the second time from what was remembered
        _, printed, _ = unbraid_cli("study", "status", str(study.require_folder()), "--json", "-")
        assert sorted(run["run"] for run in json.loads(printed)) == sorted(run.id for run in runs)
    assert status.remembered(study.require_folder()) is not None


def test_seeds_count_on_within_a_family_and_setting(study, tmp_path):
    files = [saved(tmp_path / f"mine-{number}.npz") for number in range(5)]
    assert [run.seed for run in add(study, files[:2], family="mine")] == [0, 1]
    assert [run.seed for run in add(study, files[2:3], family="mine")] == [2]
    assert [run.seed for run in add(study, files[3:4], family="mine", setting={"beta": 2})] == [0]
    # Named as the study names its own, whose seeds are 0 and 1.
    (third,) = add(study, files[4:], family="pca", setting={"latents": 3}, names=["third"])
    assert (third.setting, third.seed) == ("latents=3", 0)  # of steps unknown
    row = study.results().set_index("run").loc["mine-0"]
    assert row["content"] == study.part().environment().dataset["content"]
    assert row[["steps", "batch_size", "device", "precision", "unbraid", "seconds"]].isna().all()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"codes": PLACES[:-1], "factors": PLACES[:-1]}, "63 rows; runs of this study are encoded on 64 images"),
        ({"factors": PLACES[::-1]}, r"row 0 has the factors \(7, 7\), and in the study \(0, 0\) \(64 such rows\)"),
        (
            {"factors": np.where((np.arange(64) == 12)[:, None], [1, 5], PLACES)},
            r"row 12 has the factors \(1, 5\), and in the study \(1, 4\) \(1 such rows\)",
        ),
        ({"factors": PLACES[:, :1]}, "its factors are factor_0; the study's, y, x"),
        ({"names": ("x", "y")}, "its factors are x, y; the study's, y, x"),
        ({"codes": np.where(PLACES == 3, np.nan, PLACES)}, "codes must be finite; row 3, column 1 is nan"),
    ],
)
def test_codes_of_other_images_are_refused_and_leave_nothing(study, tmp_path, content, message):
    good, bad = saved(tmp_path / "good.npz"), saved(tmp_path / "bad.npz", **content)
    with pytest.raises(ValueError, match=rf"bad\.npz: .*{message}"):
        add(study, [good, bad], family="mine")
    assert not (study.require_folder() / "added").exists()


def test_names_must_be_free_and_names(study, tmp_path):
    file, other = saved(tmp_path / "mine.npz"), saved(tmp_path / "other.npz")
    add(study, [file], family="mine")
    with pytest.raises(
        ValueError, match=r"the study has 'mine' already; give another name .--name., or delete .*added/mine"
    ):
        add(study, [file], family="mine")
    with pytest.raises(
        ValueError, match=rf"{file} and {other} would both be called 'twice'; give each a name of its own"
    ):
        add(study, [file, other], family="mine", names=["twice", "twice"])
    for name in ("../up", ".hidden", "", "a/b"):
        with pytest.raises(ValueError, match="is no name for a folder"):
            add(study, [file], family="mine", names=[name])
    taken = study.runs()[0].id
    with pytest.raises(ValueError, match=f"has '{taken}' already; give another name .--name.$"):
        add(study, [file], family="mine", names=[taken])
    with pytest.raises(ValueError, match="say of which family it is"):
        add(study, [file], names=["other"])
    with pytest.raises(ValueError, match="seed must be 0 or more; got -1"):
        add(study, [file], family="mine", names=["other"], seed=-1)
    assert [path.name for path in (study.require_folder() / "added").iterdir()] == ["mine"]


@pytest.mark.usefixtures("study")
def test_a_metric_that_fails_is_told_and_what_was_added_stays(tmp_path):
    failing = opened(tmp_path, YAML.replace("[mig]", "[mig, 'math:hypot']"))
    failing.run(processes=0)
    (run,) = add(failing, [saved(tmp_path / "mine.npz")], family="mine")
    assert (run.state, list(run.failed_metrics)) == ("finished", ["math:hypot"])
    assert failing.results().set_index("run").loc["mine", "udr.score"] > 0


def test_what_is_stopped_leaves_nothing_half_added(study, tmp_path, monkeypatch):
    def stop(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unbraid.studies.added.complete_scores", stop)
    with pytest.raises(KeyboardInterrupt):
        add(study, [saved(tmp_path / "mine.npz")], family="mine")
    assert list((study.require_folder() / "added").iterdir()) == []


def test_what_a_killed_process_left_is_no_model_of_the_study(study, tmp_path, monkeypatch):
    seen = []

    def look(*_: object, **__: object) -> None:
        seen.append([run.id for run in study.runs() if run.is_added])

    monkeypatch.setattr("unbraid.studies.added.complete_scores", look)
    add(study, [saved(tmp_path / "mine.npz")], family="mine")  # while it is scored the folder is what a kill leaves
    assert seen == [[]]


def test_what_is_scored_stays_where_the_ranking_is_stopped(tmp_path, monkeypatch, unbraid_cli):
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("unbraid.studies.added.rank_when_done", stop)
    np.save(tmp_path / "mine.npy", PLACES)
    (tmp_path / "labels.csv").write_text("across\n" + "0\n1\n" * 32)
    folder = tmp_path / "new"
    given = (str(folder), str(tmp_path / "mine.npy"), "--family", "mine", "--metrics", "mig")
    code, *_ = unbraid_cli("study", "add", *given, "--labels", str(tmp_path / "labels.csv"))
    (run,) = Study.load(folder, trust=[str(tmp_path / "labels.csv")]).runs()
    assert (code, run.id, run.state, list(run.scores.metrics)) == (130, "mine", "finished", ["mig"])


def test_what_could_not_be_read_back_is_refused_before_anything_is_written(study, tmp_path, monkeypatch):
    file = saved(tmp_path / "mine.npz")
    for more, said in (
        ({"setting": {"a": 10**23}}, "hyperparameters.a: input should be a finite number or a text"),
        ({"setting": {"a": float("inf")}}, "hyperparameters.a: input should be a finite"),
        ({"seed": 2**63}, "seed: input should be less than"),
    ):
        with pytest.raises(ValueError, match=rf"mine\.npz: {said}"):
            add(study, [file], family="mine", **more)
    for bn in ("true", "false"):
        (tmp_path / bn).mkdir()
        np.save(tmp_path / bn / "codes.npy", PLACES)
        (tmp_path / bn / "config.yaml").write_text(f"bn: {bn}\n")
    with monkeypatch.context() as patch:
        patch.setattr("unbraid.studies.added.write_results", full)
        with pytest.raises(OSError, match="full"):
            add(study, [tmp_path / "true", tmp_path / "false"], family="theirs")
    assert not [*(study.require_folder() / "added").iterdir()]
    add(study, [tmp_path / "true", tmp_path / "false"], family="theirs")
    assert study.results().set_index("run").loc[["true", "false"], "setting"].tolist() == ["bn=true", "bn=false"]


def full(*_: object) -> None:
    raise OSError("the disk is full")


def test_the_command_adds_and_says_where(study, tmp_path, monkeypatch, capsys):
    files = [str(saved(tmp_path / f"mine-{number}.npz")) for number in (0, 1)]
    folder = str(study.require_folder())
    options = ["--family", "mine", "--setting", "beta=4", "--setting", "how=well", "--seed", "2"]
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "add", folder, *files, *options])
    main()
    assert capsys.readouterr().out.splitlines() == [
        f"added mine beta=4, how=well seed {2 + number}: {folder}/added/mine-{number}" for number in (0, 1)
    ]
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "add", folder, files[0], "--family", "mine"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert capsys.readouterr().err.startswith(f"unbraid: {files[0]}: the study has 'mine-0' already")
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "add", folder, files[0], "--setting", "beta"])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert "--setting beta: write NAME=VALUE" in capsys.readouterr().err


def test_a_study_must_have_begun(tmp_path):
    with pytest.raises(ValueError, match="the study has not started; start it with unbraid study run"):
        add(opened(tmp_path), [saved(tmp_path / "mine.npz")], family="mine")


def test_names_of_models_are_names_of_folders_and_differ() -> None:
    assert names_of([Path("b/x=1, y=\x1b[2J.npy")]) == ["x-1-y-2J"]
    assert names_of([Path("a/seed0"), Path("b/seed0")]) == ["a-seed0", "b-seed0"]


def test_one_more_model_is_told_apart_as_those_before(study, tmp_path):
    for beta in (1, 4, 6):
        folder = tmp_path / f"beta={beta}"
        folder.mkdir()
        np.save(folder / "codes.npy", PLACES * beta)
        (folder / "config.yaml").write_text(f"beta: {beta}\nlr: 0.1\n")
    add(study, [tmp_path / "beta=1", tmp_path / "beta=4"], family="theirs")
    (more,) = add(study, [tmp_path / "beta=6"], family="theirs")
    assert (more.id, more.setting, more.seed) == ("beta-6", "beta=6", 0)


def test_folders_of_models_of_another_framework_bring_setting_and_seed(study, tmp_path):
    for beta in (1, 4):
        for seed in (0, 3):
            folder = tmp_path / "theirs" / f"beta{beta}-{seed}"
            folder.mkdir(parents=True)
            np.save(folder / "codes.npy", PLACES * beta + seed)
            (folder / "config.yaml").write_text(f"model: {{beta: {beta}, lr: 0.1}}\ntrain: {{seed: {seed}}}\n")
    with pytest.raises(ValueError, match="say of which family it is"):
        add(study, [tmp_path / "theirs"])
    added = add(study, [tmp_path / "theirs"], family="theirs")
    assert [(run.id, run.family, run.setting, run.seed) for run in added] == [
        (f"beta{beta}-{seed}", "theirs", f"model.beta={beta}", seed) for beta in (1, 4) for seed in (0, 3)
    ]
    np.testing.assert_array_equal(Representation.load(Path(added[3].path) / "codes.npz").codes, PLACES * 4 + 3)
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="neither it nor a folder in it holds codes.npy"):
        add(study, [tmp_path / "empty"], family="theirs")
    with pytest.raises(ValueError, match=r"names \(--name\) must be one per model \(4\); got 1"):
        add(study, [tmp_path / "theirs"], family="theirs", names=["one"])


def test_added_codes_that_cannot_be_read_for_a_while_are_scored_once_they_can(study, tmp_path):
    (run,) = add(study, [saved(tmp_path / "mine.npz")], family="mine")
    codes = next(run.path.glob("codes.*"))
    content = codes.read_bytes()
    (run.path / "scores.json").unlink()
    states = []
    for bytes_of_codes in (content[:100], content):
        codes.write_bytes(bytes_of_codes)
        study.run(processes=0)
        (mine,) = [each for each in study.runs() if each.is_added]
        states.append((mine.state, list(mine.scores.metrics)))
    assert states == [("failed", []), ("finished", ["mig"])]
