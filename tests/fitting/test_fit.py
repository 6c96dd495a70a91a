"""From images to a chosen model, whole."""

import csv
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import unbraid
from tests.conftest import Cli
from unbraid.datasets import FactorDataset, load
from unbraid.datasets.subset import SubsetDataset
from unbraid.fitting import fit as fitting
from unbraid.fitting import hand_over as handing
from unbraid.fitting.choose import Candidate, Choice, next_step
from unbraid.fitting.fit import Fitted, OutOfTime, check_out
from unbraid.fitting.fit_images import Pictures, prepare
from unbraid.fitting.hand_over import read_labels
from unbraid.fitting.plan import FinalRound, Plan, SearchRound, Setting, read_plan, write_plan
from unbraid.runs.run import load_run
from unbraid.studies.store import StudyEnvironment, write_environment
from unbraid.training.source import opened_dataset

HERE = {"name": "local", "processes": 0}
SETTINGS = [Setting(family="beta_tcvae", strength=2)]


def plan(search: int = 200, final: int = 600, seeds: int = 3) -> Plan:
    return Plan(
        minutes=1, size=16, latents=6,
        search=SearchRound(size=16, network="dense", steps=search, seeds=2, settings=SETTINGS),
        final=FinalRound(size=16, network="dense", steps=final, seeds=seeds, settings=1, multiples=[1.0]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def sprites() -> FactorDataset:
    """Of the demo: place, size and shape, without turns, and without the symmetry of across and up."""
    whole = load("sprites", shrink=4, without="position_y > 15 or orientation > 0")
    return SubsetDataset(whole, np.sort(np.random.default_rng(0).permutation(len(whole))[:2000]))


@pytest.fixture(scope="module")
def images(sprites: FactorDataset) -> np.ndarray:
    return sprites.images(np.arange(len(sprites)))


@pytest.fixture(scope="module")
def fitted(sprites: FactorDataset, images: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Fitted:
    labels = dict(zip(sprites.space.names, sprites.space.factors(np.arange(len(images))).T.tolist(), strict=True))
    out = tmp_path_factory.mktemp("fit") / "fitted"
    return unbraid.fit(images, out, plan=plan(), labels=labels, executor=HERE)


@pytest.mark.lengthy
def test_a_model_is_chosen_and_handed_over(fitted: Fitted, images: np.ndarray):
    assert fitted.run is not None, fitted.choice.reason
    assert fitted.ranking is not None
    assert {"encoder.onnx", "decoder.onnx"} <= {path.name for path in (fitted.folder / "model").iterdir()}
    found = load_run(fitted.folder / "model")
    codes = fitted.encode(images)
    np.testing.assert_allclose(found.encode(images), codes)
    assert fitted.decode(codes).shape == images.shape
    assert np.abs(fitted.decode(codes) - images / 255).mean() < 0.05
    with (fitted.folder / "codes.csv").open() as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["file", "code_0", "code_1", "code_2", "code_3", "code_4", "code_5"]
    np.testing.assert_allclose([[float(value) for value in row[1:]] for row in rows[1:]], codes, rtol=1e-5, atol=1e-6)
    assert fitted.ranking.informative.min() >= 2, "a model that was trained for seconds knows both places"


@pytest.fixture
def without_onnx(monkeypatch: pytest.MonkeyPatch) -> None:
    """An export takes seconds."""
    monkeypatch.setattr(handing, "_as_onnx", lambda _: [])


@pytest.mark.lengthy
@pytest.mark.usefixtures("without_onnx")
def test_what_is_done_is_not_done_again(fitted: Fitted, images: np.ndarray):
    told: list[str] = []
    again = unbraid.fit(images, fitted.folder, plan=plan(), executor=HERE, report=lambda what, *_: told.append(what))
    assert not [what for what in told if "reading" in what or "measuring" in what]
    assert again.run is not None


def noise() -> np.ndarray:
    return np.random.default_rng(0).integers(0, 256, (600, 16, 16, 1), dtype=np.uint8)


@pytest.mark.lengthy
def test_noise_is_not_called_disentangled_and_the_same_plan_gives_the_same_weights(tmp_path: Path):
    found = unbraid.fit(noise(), tmp_path / "fitted", plan=plan(100, 100), executor=HERE)
    assert found.run is None
    assert found.choice.reason
    assert "Nothing disentangled was found" in found.report().read_text()
    assert not (tmp_path / "fitted" / "model").exists()
    with pytest.raises(ValueError, match="no model was chosen"):
        found.encode(noise())

    def killed(what: str, done: int, total: int, more: str) -> None:  # noqa: ARG001
        if what.startswith("search 1/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unbraid.fit(noise(), tmp_path / "other", plan=plan(100, 100), executor=HERE, report=killed)
    assert len(list((tmp_path / "other").rglob("weights.safetensors"))) == 1
    unbraid.fit(noise(), tmp_path / "other", plan=found.folder / "plan.yaml", executor=HERE)
    weights = {path.relative_to(found.folder): path for path in found.folder.rglob("weights.safetensors")}
    assert len(weights) == len(list((tmp_path / "other").rglob("weights.safetensors"))) >= 2
    for name, path in weights.items():
        assert path.read_bytes() == (tmp_path / "other" / name).read_bytes()


@pytest.mark.lengthy
@pytest.mark.usefixtures("without_onnx")
def test_the_search_chooses_where_the_last_round_learns_nothing(fitted: Fitted, images: np.ndarray, tmp_path: Path):
    """Its models are those that the fixture's last round chooses from, and not trained once more."""
    search = SearchRound(size=16, network="dense", steps=plan().final.steps, seeds=3, settings=SETTINGS)
    final = FinalRound(size=16, network="conv", steps=20, seeds=2, settings=1, multiples=[1.0])
    planned = plan().model_copy(update={"seed": 2, "search": search, "final": final})
    shutil.copytree(fitted.folder / "study" / "runs", tmp_path / "fitted" / "search" / "runs")
    shutil.copy(fitted.folder / "study" / "study.yaml", tmp_path / "fitted" / "search")
    write_plan(planned, tmp_path / "fitted" / "plan.yaml")
    found = unbraid.fit(images, tmp_path / "fitted", plan=planned, executor=HERE)
    assert found.run is not None, found.choice.reason
    assert found.choice.chosen is not None
    assert found.choice.chosen.run.path.parts[-3] == "search"
    assert "\n`search/` the models that it was chosen from" in (tmp_path / "fitted" / "README.md").read_text()
    assert "unbraid report search" in found.report().read_text()
    assert found.choice.size == 16
    assert "3 <small>models at 16 × 16" in found.report().read_text()
    last = [load_run(each).config for each in (found.folder / "study" / "runs").iterdir() if not each.suffix]
    assert [(each["hyperparameters"]["network"], each["batch_size"]) for each in last] == [("conv", 16)] * 2


@pytest.mark.lengthy
@pytest.mark.usefixtures("without_onnx")
def test_what_the_deadline_cuts_off_is_left_out(
    fitted: Fitted, images: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The clock jumps past the end when the last round begins: the search chooses."""
    shutil.copytree(fitted.folder / "search", tmp_path / "search")
    write_plan(plan(), tmp_path / "plan.yaml")
    late = [0.0]
    monkeypatch.setattr(fitting.time, "monotonic", lambda: late[0])

    def telling(what: str, *_: object) -> None:
        if what.startswith("study"):
            late[0] = 1e6

    cache, planned = fitting.planned_for(
        images, tmp_path, minutes=1, size=16, families=["beta_vae"], latents=5, seed=0, plan=plan(), device="cpu",
        executor=HERE, report=telling,
    )  # fmt: skip
    found = fitting.carry_out(tmp_path, cache, planned, began=0.0, executor=HERE, device="cpu", report=telling)
    assert len(found.choice.candidates) == found.choice.planned == 2, "those of the search"
    assert found.choice.unfinished == planned.final.seeds * planned.most_settings
    said = f"{found.choice.unfinished} planned models are not trained yet: the same command continues"
    assert next_step(found.choice) == said
    assert issubclass(OutOfTime, KeyboardInterrupt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 3}, "has seed 0, not 3; give the same, or another folder with out"),
        ({"latents": 4}, "has latents 6, not 4"),
        ({"size": 32}, "has size 16, not 32"),
        ({"families": ["vae"]}, "has families beta_tcvae, not vae"),
    ],
)
def test_a_folder_with_another_plan_is_not_used_in_silence(
    images: np.ndarray, tmp_path: Path, options: dict, message: str
):
    write_plan(plan(), tmp_path / "plan.yaml")
    with pytest.raises(ValueError, match=message):
        unbraid.fit(images, tmp_path, **{"latents": 6, **options})


LABELS = {
    "a name": (
        {"file": ["elsewhere.png"], "x": [1]},
        "no name in the column 'file' is that of an image: the first is "
        "'elsewhere.png', where images are called like '0', by their path below the folder",
    ),
    "rows": ({"x": [1, 2, 3]}, "labels must have a row for each of the 2000 images, or a column 'file'"),
    "columns": ({"x": [1, 2], "y": [1]}, "columns must be of one length"),
    "a file": ("nowhere.csv", "nowhere.csv: no such file"),
}


@pytest.mark.parametrize("given", LABELS)
def test_labels_that_do_not_fit_are_refused_before_anything_is_trained(images: np.ndarray, tmp_path: Path, given: str):
    labels, message = LABELS[given]
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        unbraid.fit(images, tmp_path, plan=plan(), labels=labels)
    assert not (tmp_path / "search").exists()


def pictures(n: int) -> Pictures:
    return Pictures(Path("cache"), "here", "", 16, 1, tuple(f"sub/{row}.png" for row in range(n)), {}, 0, 0, "")


def test_labels_of_some_images_are_matched_by_file(tmp_path: Path):
    rows = "".join(f"{row / 2},sub/{row}.png,{'box' if row % 2 else 'disc'}\n" for row in range(29, -1, -1))
    (tmp_path / "labels.csv").write_text(f"size,file,shape\n{rows}7,gone.png,box\n")
    found = read_labels(tmp_path / "labels.csv", pictures(40))
    assert found.rows == list(range(29, -1, -1))
    assert found.columns["size"].tolist() == [row / 2 for row in found.rows]
    assert found.columns["shape"].tolist() == ["box" if row % 2 else "disc" for row in found.rows]
    assert found.notes == (
        "1 row of the labels left out: no image is called as their files",
        "30 of 40 images have labels",
    )


@pytest.mark.parametrize("empty", ["", " ", "nan", "NA", "NULL"])
def test_images_that_lack_a_label_are_left_out(tmp_path: Path, empty: str):
    cells = [empty if row in (3, 5) else str(row % 4) for row in range(30)]
    (tmp_path / "labels.csv").write_text("file,x\n" + "".join(f"sub/{row}.png,{x}\n" for row, x in enumerate(cells)))
    found = read_labels(tmp_path / "labels.csv", pictures(30))
    assert found.rows == [row for row in range(30) if row not in (3, 5)]
    assert found.columns["x"].tolist() == [row % 4 for row in found.rows]
    assert found.notes[0] == "2 images left out for lack of a label"
    given = {"x": [None if cell == empty else float(cell) for cell in cells]}
    alike = read_labels(given, pictures(30))
    assert (alike.rows, alike.notes, alike.columns["x"].tolist()) == (
        found.rows,
        found.notes,
        found.columns["x"].tolist(),
    )


def test_a_second_call_is_refused_while_one_is_at_work(tmp_path: Path, unbraid_cli: Cli):
    """Both would write the images that models are trained on: of 2000, 760 were black then."""
    images = np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8)
    np.save(tmp_path / "own.npy", images)
    write_plan(plan(), tmp_path / "plan.yaml")
    given = ("fit", str(tmp_path / "own.npy"), "--out", str(tmp_path / "fitted"), "--plan", str(tmp_path / "plan.yaml"))
    (tmp_path / "fitted" / "images").mkdir(parents=True)
    with fitting.claimed(tmp_path / "fitted"):
        code, printed, error = unbraid_cli(*given)
        assert (code, printed) == (2, "")
        assert "fitted: this thread is at work in it; wait until that has ended, or give another folder" in error
        with pytest.raises(ValueError, match="is at work in it"):
            unbraid.fit(images, tmp_path / "fitted", plan=plan())
        assert [each.name for each in (tmp_path / "fitted" / "images").iterdir()] == [".lock"]
    assert unbraid_cli(*given, "--dry-run")[0] == 0
    assert unbraid_cli(*given, "--dry-run")[0] == 0, "the claim ends with the call"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 48}, "size must be one of 16, 32, 64, 128, 256; got 48"),
        ({"minutes": 1e300}, "minutes must be a finite number, above 0 and at most 999999; got 1e"),
        ({"latents": 1}, "latents must be a whole number, 2 to 1000"),
        ({"device": "cuda:1", "executor": "ray"}, "device 'cuda:1': write cuda"),
        ({"executor": "slurm"}, "unknown executor 'slurm'; there are local, ray"),
        ({"families": ["gan"]}, "families must be of"),
        ({"seed": -1}, "seed must be a whole number, 0"),
        ({"plan": "nowhere.yaml"}, "nowhere.yaml: no such file"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_written(
    images, tmp_path: Path, options: dict, message: str
):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        unbraid.fit(images, tmp_path / "fitted", **options)
    assert not (tmp_path / "fitted").exists()


@pytest.mark.parametrize(
    "name", ["model/a", "README.md", "codes.csv", "report.html", "study/a", "search/a", "images/a.png", "plan.yaml"]
)
def test_a_folder_of_somebody_else_is_not_written_over(tmp_path: Path, name: str):
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("mine: 1")
    with pytest.raises(ValueError, match=f"holds {name.split('/')[0]} that `unbraid fit` did not make"):
        check_out(tmp_path)
    if name.startswith("model"):
        write_plan(plan(), tmp_path / "plan.yaml")
        with pytest.raises(ValueError, match="holds model that"):
            check_out(tmp_path)
        (tmp_path / "search").mkdir()
        with pytest.raises(ValueError, match="model is no model of unbraid, and is not replaced"):
            check_out(tmp_path)


def test_a_plan_that_is_refused_does_not_replace_an_earlier_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refusing(*_: object) -> Choice:
        raise ValueError("no such study")

    monkeypatch.setattr(fitting, "train_and_choose", refusing)
    write_plan(plan(), tmp_path / "plan.yaml")
    with pytest.raises(ValueError, match="no such study"):
        fitting.carry_out(tmp_path, pictures(30), plan(7), began=0.0, report=lambda *_: None)
    assert read_plan(tmp_path / "plan.yaml") == plan()


def test_fewer_minutes_than_the_plan_was_made_for_end_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Of half a minute from second 100, the search has 45 % and both rounds 95 %."""
    now, ends, nothing = [100.0], [], Choice((), None, None, "nothing was trained", 0.0, 0.0)

    class Endless:
        def run(self, progress):
            while True:
                now[0] += 0.5
                progress(SimpleNamespace(done_steps=0, steps_taken={}, n_done=0, n_runs=1, steps=1))

        def runs(self) -> list:
            ends.append(now[0])
            return []

    monkeypatch.setattr(fitting, "time", SimpleNamespace(monotonic=lambda: now[0]))
    monkeypatch.setattr(fitting.Study, "load", lambda *_: Endless())
    monkeypatch.setattr(fitting, "_choice", lambda *_: nothing)
    assert fitting.train_and_choose(tmp_path, pictures(30), plan(), {}, 100.0, lambda *_: None, 0.5) == nothing
    assert ends == [100 + 14.0, 100 + 29.0], "half a second after 13.5 and 28.5"


def test_nothing_chosen_leaves_no_earlier_choice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(handing, "fit_page", lambda *_, **__: "page")
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "status.json").touch()
    (tmp_path / "codes.csv").touch()
    nothing = Choice((), None, None, "they learned nothing", 0.0, 0.0)
    assert handing.hand_over(tmp_path, pictures(30), plan(), nothing) == (None, ())
    assert sorted(each.name for each in tmp_path.iterdir()) == ["README.md", "report.html"]
    assert "\n\nThey learned nothing.\n\n" in (tmp_path / "README.md").read_text()


def test_untrained_models_are_of_different_seeds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Models of one seed begin with the same weights, and agree on everything then, whatever the setting."""

    def candidate(setting: str, seed: int) -> Candidate:
        codes = SimpleNamespace(codes=seed)
        run = SimpleNamespace(
            config={"seed": seed}, untrained=lambda: SimpleNamespace(representation=lambda _dataset: codes)
        )
        return Candidate(run, setting, 0.0)  # pyright: ignore[reportArgumentType]

    seen: list[list[int]] = []
    monkeypatch.setattr(fitting, "choose", lambda _candidates, untrained, *_: seen.append(untrained))
    images = prepare(np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8), tmp_path, 16)
    for seeds in (1, 2, 5):
        models = [candidate(setting, seed) for setting in "ab" for seed in range(seeds)]
        fitting._choice(models, images, 16, 0, lambda *_: None)
    assert seen == [[], [0, 1], [0, 1, 2]]


def test_colours_are_seen_by_a_grey_model_as_their_brightness():
    images = (
        np.zeros((3, 16, 16, 3), dtype=np.uint8)
        + np.array([[255, 0, 0], [0, 255, 0], [7, 7, 7]], dtype=np.uint8)[:, None, None]
    )
    np.testing.assert_array_equal(fitting.as_seen(images, (16, 16, 1))[:, 3, 3, 0], [76, 150, 7])
    np.testing.assert_array_equal(fitting.as_seen(images, (16, 16, 3)), images)
    np.testing.assert_array_equal(fitting.as_seen(images[..., 2], (16, 16, 3)), images[..., 2:].repeat(3, -1))
    np.testing.assert_array_equal(fitting.as_seen(images / 255, (16, 16, 3)), images)


def test_other_images_are_refused_when_the_cache_was_deleted(tmp_path: Path):
    """As the README of the folder says it may be: what the models were trained on is kept in their study."""
    rng = np.random.default_rng(0)
    own = rng.integers(0, 256, (501, 32, 32, 1), dtype=np.uint8)
    planned = plan().model_copy(update={"size": 32})

    def given(images: np.ndarray, asked: Plan = planned) -> Pictures:
        return fitting.planned_for(
            images, tmp_path, minutes=1, size=None, families=["beta_vae"], latents=6, seed=0, plan=asked,
            device="cpu", executor="local", report=lambda *_: None,
        )[0]  # fmt: skip

    cached = given(own)
    write_plan(planned, tmp_path / "plan.yaml")
    source = {"name": str(cached.path), "shrink": 2}
    (tmp_path / "search").mkdir()
    write_environment(tmp_path / "search", source, StudyEnvironment(opened_dataset(source)[1], "cpu", "float32"))
    for other in (own[::-1], own[:-1], np.concatenate([own[:-1], 255 - own[-1:]])):
        shutil.rmtree(tmp_path / "images")
        with pytest.raises(ValueError, match="has models of other images; give another folder"):
            given(other)
        assert not [*(tmp_path / "images").iterdir()]
    assert given(own).digest == cached.digest
    shutil.rmtree(tmp_path / "images")
    assert given(own, plan()).size == 16, "of another size nothing can be told"


def test_a_call_that_is_refused_before_training_leaves_no_plan(tmp_path: Path):
    noise = np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8)
    with pytest.raises(ValueError, match="executor.processes"):
        unbraid.fit(noise, tmp_path, plan=plan(), executor={"name": "local", "processes": -1})
    assert [each.name for each in tmp_path.iterdir()] == ["images"]
