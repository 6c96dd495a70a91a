"""A study of codes alone: labels without images, models that were trained elsewhere, nothing trained here."""

import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

import unbraid
from unbraid.cli.app import main
from unbraid.datasets import load
from unbraid.studies import added
from unbraid.studies.estimate import estimate
from unbraid.studies.study import Study

LABELS = pd.DataFrame(
    {"shape": np.tile(["box", "disc", "ring"], 100), "size": np.repeat(np.arange(5), 60), "phase": np.arange(300) % 4}
)
METRICS = ["mig", "mcc"]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """labels.csv, and runs/ with a folder for each of four models of another framework."""
    LABELS.to_csv(tmp_path / "labels.csv", index=False)
    rng = np.random.default_rng(0)
    numbers = np.stack([np.unique(LABELS[name], return_inverse=True)[1] for name in LABELS], axis=1)
    for beta in (1, 4):
        for seed in range(2):
            folder = tmp_path / "runs" / f"b{beta}-{seed}"
            folder.mkdir(parents=True)
            np.save(folder / "codes.npy", numbers + 0.2 * beta * rng.standard_normal(numbers.shape))
            (folder / "config.yaml").write_text(yaml.safe_dump({"beta": beta, "seed": seed}), encoding="utf-8")
    return tmp_path


def test_models_are_scored_ranked_and_compared_as_those_of_any_study(place: Path) -> None:
    """The scores are those that `score` gives the same codes and labels."""
    study = added.begin(place / "study", place / "labels.csv", metrics=METRICS)
    runs = added.add(study, [place / "runs"], family="theirs")
    assert [(run.family, run.setting, run.seed) for run in runs] == [
        ("theirs", f"beta={beta}", seed) for beta in (1, 4) for seed in range(2)
    ]
    table = study.results().set_index("run")
    for name, row in table.iterrows():
        card = unbraid.score(np.load(place / "runs" / str(name) / "codes.npy"), LABELS, metrics=METRICS)
        assert row["mig.score"] == pytest.approx(card["mig"].score)
        assert row["mcc.score"] == pytest.approx(card["mcc"].score)
    assert set(study.rank().runs) == set(table.index)
    assert [each.column for each in study.compare("setting").shifts] == ["mig.score", "mcc.score"]
    assert table["udr.score"].notna().all()


def test_a_broken_model_is_named_and_the_others_are_added(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (place / "runs" / "b1-0" / "codes.npy").write_bytes(b"no array")
    (place / "runs" / "b1-1" / "config.yaml").write_text("a: [")
    np.save(place / "runs" / "b4-0" / "codes.npy", np.zeros((7, 2)))
    (place / "runs" / "empty").mkdir()
    words = (
        f"study add {place / 'study'} {place / 'runs'} --labels {place / 'labels.csv'} --metrics mig --family theirs"
    )
    monkeypatch.setattr("sys.argv", ["unbraid", *words.split()])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 3
    lines = [line for line in capsys.readouterr().err.splitlines() if line.startswith("unbraid: ")]
    assert sorted(line.partition("runs/")[2][:4] for line in lines) == ["b1-0", "b1-1", "b4-0", "empt"]
    assert [path.name for path in (place / "study" / "added").iterdir()] == ["b4-1"]


def test_one_command_begins_the_study_and_another_adds_to_it(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def command(text: str) -> None:
        monkeypatch.setattr("sys.argv", ["unbraid", *text.split()])
        main()

    monkeypatch.chdir(place)
    begin = "--labels labels.csv --metrics mig --kinds phase=cyclic --family f"
    command(f"study add study runs/b1-0 {begin}")
    command(f"study add study runs/b4-0 {begin}")
    assert [run.id for run in Study.load("study").runs()] == ["b1-0", "b4-0"]
    command("rank study")
    with pytest.raises(SystemExit):
        command("rank study runs/b1-0")
    said = "study is a study; rank takes one study alone, or files and folders of models"
    assert said in capsys.readouterr().err
    command("report study --out page.html")
    assert "b4-0" in Path("page.html").read_text(encoding="utf-8")
    with pytest.raises(SystemExit):
        command("study add study runs/b4-1 --metrics sap --family f")
    assert "--metrics and --kinds are for a study that begins with --labels" in capsys.readouterr().err
    for own, other, known in (("mig", "sap", "['mig']"), ("phase", "size", "{'phase': 'cyclic'}")):
        with pytest.raises(SystemExit):
            command(f"study add study runs/b4-1 {begin.replace(own, other)}")
        assert f"is of a study that begins; study has begun with {known}" in capsys.readouterr().err
    shutil.copy("labels.csv", "others.csv")
    with pytest.raises(SystemExit):
        command(f"study add study runs/b4-1 {begin.replace('labels.csv', 'others.csv')}")
    said = f"--labels is of a study that begins; study has begun with {place / 'labels.csv'}"
    assert said in capsys.readouterr().err
    Path("link.csv").symlink_to("labels.csv")
    for number, same in enumerate((f"../{place.name}/labels.csv", "link.csv")):
        command(f"study add study runs/b4-1 --name {number} {begin.replace('labels.csv', same)}")
    assert {"0", "1"} <= {run.id for run in Study.load("study").runs()}


def test_a_study_that_nothing_could_be_added_to_is_not_left_behind(
    place: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(place)
    monkeypatch.setattr("sys.argv", ["unbraid", "study", "add", "study", "runs", "--labels", "labels.csv"])
    with pytest.raises(SystemExit):
        main()
    assert "say of which family it is" in capsys.readouterr().err
    assert not Path("study").exists()
    Path("study").mkdir()
    Path("study/plan.yaml").write_text("mine", encoding="utf-8")
    with pytest.raises(SystemExit):
        main()
    assert Path("study/plan.yaml").read_text(encoding="utf-8") == "mine"


def test_labels_among_codes_are_not_taken_for_codes(place: Path) -> None:
    study = added.begin(place / "study", place / "labels.csv", metrics=METRICS)
    codes = pd.DataFrame(np.load(place / "runs" / "b1-0" / "codes.npy"), columns=["z0", "z1", "z2"])
    pd.concat([codes, LABELS[["size"]]], axis=1).to_csv(place / "beside.csv", index=False)
    LABELS[["size", "phase"]].to_csv(place / "labels2.csv", index=False)
    shutil.copyfile(place / "beside.csv", place / "UPPER.CSV")
    for file in ("beside.csv", "labels2.csv", "UPPER.CSV"):
        with pytest.raises(ValueError, match=f"{file}: column 'size' is a factor of the study, and would count as"):
            added.add(study, [place / file], family="theirs")
    codes.to_csv(place / "alone.csv", index=False)
    (run,) = added.add(study, [place / "alone.csv"], family="theirs")
    card = unbraid.score(codes.to_numpy(), LABELS, metrics=METRICS)
    assert study.results().set_index("run").loc[run.id, "mig.score"] == pytest.approx(card["mig"].score)


def test_kinds_of_factors_can_be_said(place: Path) -> None:
    guessed = load(str(place / "labels.csv")).space
    assert guessed.kinds == ("categorical", "ordinal", "ordinal")
    study = added.begin(place / "study", place / "labels.csv", metrics="mig", kinds={"phase": "cyclic"})
    assert study.part().dataset().space.kinds == ("categorical", "ordinal", "cyclic")


def test_codes_of_all_rows_are_taken_where_only_some_are_scored(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(added, "N_CODES", 100)
    study = added.begin(place / "study", place / "labels.csv", metrics="mig")
    added.add(study, [place / "runs" / "b1-0"], family="f")
    rows = added.sample_of(study)
    card = unbraid.score(np.load(place / "runs" / "b1-0" / "codes.npy")[rows], LABELS.iloc[rows], metrics="mig")
    assert len(rows) == 100
    assert study.results()["mig.score"][0] == pytest.approx(card["mig"].score)
    np.save(place / "short.npy", np.zeros((50, 3)))
    with pytest.raises(ValueError, match=r"50 rows; runs of this study are encoded on 100 images \(or all 300\)"):
        added.add(study, [place / "short.npy"], family="f")


@pytest.mark.parametrize(
    ("dataset", "rest", "words"),
    [
        ("labels.csv", "families: [vae]\n", "holds labels without images, so nothing can be trained on it: leave `fam"),
        ("labels.csv", "families: []\nmetrics: [mig]\nbaselines: true\n", "leave `baselines` out"),
        ("square", "families: []\n", "families: needs at least one; only a study of labels without images has none"),
    ],
)
def test_nothing_is_trained_without_images(place: Path, dataset: str, rest: str, words: str) -> None:
    name = str(place / dataset) if dataset.endswith("csv") else dataset
    (place / "s.yaml").write_text(f"name: s\ndataset: {{name: {name}}}\n{rest}", encoding="utf-8")
    with pytest.raises(ValueError, match=words):
        Study.load(place / "s.yaml", out=place / "out").run()
    assert not (place / "out").exists()


def test_a_column_that_is_the_same_in_all_rows_is_named_before_anything_is_written(place: Path) -> None:
    LABELS.assign(phase=2).to_csv(place / "labels.csv", index=False)
    with pytest.raises(ValueError, match=r"labels\.csv: column 'phase' is the same in all rows"):
        added.begin(place / "study", place / "labels.csv", metrics=METRICS)
    assert not (place / "study").exists()


def test_a_study_is_not_begun_twice_or_of_something_else(place: Path) -> None:
    added.begin(place / "study", place / "labels.csv", metrics="mig")
    with pytest.raises(ValueError, match="there is a study already; its labels cannot be chosen"):
        added.begin(place / "study", place / "labels.csv")
    with pytest.raises(ValueError, match="labels of a study are a .csv or .parquet file"):
        added.begin(place / "other", place / "runs" / "b1-0" / "codes.npy")
    with pytest.raises(FileNotFoundError, match="no such file"):
        added.begin(place / "other", place / "none.csv")
    assert not (place / "other").exists()


def test_of_a_study_without_runs_nothing_is_to_be_done(place: Path) -> None:
    assert estimate(added.begin(place / "study", place / "labels.csv", metrics=METRICS).part()).seconds == 0
