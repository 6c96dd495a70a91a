"""From images to a chosen model, whole."""

import csv
import re
import shutil
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from huggingface_hub import ModelCard
from PIL import Image

import unbraid
from tests.conftest import Cli
from unbraid.cli.fit_command import _how_sure as how_sure
from unbraid.datasets import FactorDataset, load
from unbraid.datasets.subset import SubsetDataset
from unbraid.fitting import fit as fitting
from unbraid.fitting import hand_over as handing
from unbraid.fitting.choose import CAVEAT, Candidate, Choice, next_step
from unbraid.fitting.fit import Fitted, OutOfTime, check_out
from unbraid.fitting.fit_images import Pictures, prepare, read_pictures
from unbraid.fitting.fit_page import fit_page
from unbraid.fitting.hand_over import Labels, read_labels
from unbraid.fitting.plan import FinalRound, Plan, SearchRound, Setting, read_plan, write_plan
from unbraid.runs.run import load_run
from unbraid.studies.store import StudyEnvironment, write_environment
from unbraid.training.source import opened_dataset

HERE = {"name": "local", "processes": 0}
SETTINGS = [Setting(family="beta_tcvae", strength=2)]


def plan(search: int = 400, final: int = 1500, seeds: int = 4) -> Plan:
    return Plan(
        minutes=1, size=16, latents=6,
        search=SearchRound(size=16, network="dense", steps=search, seeds=2, settings=SETTINGS),
        final=FinalRound(size=16, network="dense", steps=final, seeds=seeds, settings=1, multiples=[1.0]),
    )  # fmt: skip


@pytest.fixture(scope="module")
def sprites() -> FactorDataset:
    """Of the demo: place, size and shape, without turns, and without the symmetry of across and up."""
    whole = load("sprites", shrink=4, without="position_y > 15 or orientation > 0")
    return SubsetDataset(whole, np.sort(np.random.default_rng(0).permutation(len(whole))[:4000]))


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


@pytest.mark.lengthy
def test_the_page_shows_what_was_chosen_and_what_labels_say(fitted: Fitted):
    page = fitted.report().read_text()
    for text in (
        "A model chosen without labels",
        "What each latent does",
        "How sure the choice is",
        "What your labels say",
    ):
        assert text in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    links = re.findall('<a href="#([a-z]+)">(.*?)</a>', page)
    assert len(links) == 5
    assert re.findall('<label for="slider0">(.*?)</label>', page)[0].startswith("latent ")
    assert "mig <small>Mutual information gap</small>" in page
    assert "unbraid 0.1.0, 1 minute." in page
    assert links == re.findall('<h2 id="h-([a-z]+)">(.*?)</h2>', page), "a heading is called as the link to it"
    assert 'load_run("model")' in (fitted.folder / "README.md").read_text()
    assert "It takes images of 16 × 16 pixels, grey: an array (n, 16, 16, 1)" in page
    assert "of the same setting" not in page, "there is one setting"


@pytest.mark.lengthy
def test_the_model_has_a_card_that_says_how_it_was_chosen(
    fitted: Fitted, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    choice, card = fitted.choice, ModelCard.load(fitted.folder / "model" / "README.md")
    assert CAVEAT in card.content
    assert CAVEAT in fitted.report().read_text(), "the same words on the page"
    assert choice.chosen is not None
    for text in (
        f"from {len(choice.candidates)} models of 1 setting (beta_tcvae beta=2)",
        f"with a UDR of {choice.udr(choice.chosen):.3f}",
        f"Its ELBO on held-out images is {choice.chosen.elbo:.1f} nats",
        f"part of {choice.draws_with_it} draws, and was chosen in {choice.sure_of_model:.0%} of these.",
        "Labels had no part in the choice.",
        "| `mig` |",
        "Nobody has named its latents.",
        "4,000 images that unbraid knows by no name",
    ):
        assert text in card.text
    assert card.data.to_dict()["library_name"] == "unbraid"
    assert "same setting" not in card.text, "there is one"
    monkeypatch.chdir(fitted.folder)
    names: dict = {}
    _, load_it, _, encode_it, _ = (fitted.folder / "README.md").read_text().replace("```python", "```").split("```")
    exec(load_it, names)
    assert names["codes"].shape == (1, 6)
    image = np.asarray(fitted.run.dataset(fitted.folder / "images").images(np.arange(1))[0, ..., 0])  # pyright: ignore
    monkeypatch.chdir(tmp_path)
    Image.fromarray(image).save("picture.png")
    exec(encode_it, names)
    np.testing.assert_allclose(names["codes"], names["run"].encode(image[None, ..., None]), rtol=1e-4, atol=1e-4)


@pytest.mark.lengthy
def test_the_same_plan_gives_the_same_weights_and_what_is_done_is_not_done_again(
    fitted: Fitted, images: np.ndarray, tmp_path: Path
):
    told: list[str] = []
    again = unbraid.fit(images, fitted.folder, plan=plan(), executor=HERE, report=lambda what, *_: told.append(what))
    assert not [what for what in told if "reading" in what or "measuring" in what]
    assert again.run is not None
    assert fitted.run is not None

    def killed(what: str, done: int, total: int, more: str) -> None:  # noqa: ARG001
        if what.startswith("study 1/"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        unbraid.fit(images, tmp_path / "other", plan=plan(), executor=HERE, report=killed)
    assert not (tmp_path / "other" / "model").exists()
    other = unbraid.fit(images, tmp_path / "other", plan=fitted.folder / "plan.yaml", executor=HERE)
    assert other.run is not None
    np.testing.assert_array_equal(other.encode(images[:50]), fitted.encode(images[:50]))


@pytest.mark.lengthy
def test_noise_is_not_called_disentangled(tmp_path: Path):
    noise = np.random.default_rng(0).integers(0, 256, (600, 16, 16, 1), dtype=np.uint8)
    found = unbraid.fit(noise, tmp_path / "fitted", plan=plan(200, 200), executor=HERE)
    assert found.run is None
    assert found.choice.reason
    assert "Nothing disentangled was found" in found.report().read_text()
    assert not (tmp_path / "fitted" / "model").exists()
    with pytest.raises(ValueError, match="no model was chosen"):
        found.encode(noise)


@pytest.mark.lengthy
def test_the_search_chooses_where_the_last_round_learns_nothing(images: np.ndarray, tmp_path: Path):
    """Its four models are those that the fixture's last round chooses from."""
    search = SearchRound(size=16, network="dense", steps=1500, seeds=4, settings=SETTINGS)
    final = FinalRound(size=16, network="conv", steps=20, seeds=2, settings=1, multiples=[1.0])
    planned = plan().model_copy(update={"seed": 2, "search": search, "final": final})
    found = unbraid.fit(images, tmp_path / "fitted", plan=planned, executor=HERE)
    assert found.run is not None, found.choice.reason
    assert found.choice.chosen is not None
    assert found.choice.chosen.run.path.parts[-3] == "search"
    assert "\n`search/` the models that it was chosen from" in (tmp_path / "fitted" / "README.md").read_text()
    assert "unbraid report search" in found.report().read_text()
    assert found.choice.size == 16
    assert "4 <small>models at 16 × 16" in found.report().read_text()
    last = [load_run(each).config for each in (found.folder / "study" / "runs").iterdir() if not each.suffix]
    assert [(each["hyperparameters"]["network"], each["batch_size"]) for each in last] == [("conv", 16)] * 2


@pytest.mark.lengthy
def test_what_the_deadline_cuts_off_is_left_out(images: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The clock jumps past the end when the last round begins: the search chooses."""
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
    "rows": ({"x": [1, 2, 3]}, "labels must have a row for each of the 4000 images, or a column 'file'"),
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


def test_a_dry_run_reads_the_labels(tmp_path: Path, unbraid_cli: Cli):
    np.save(tmp_path / "own.npy", np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8))
    write_plan(plan(), tmp_path / "plan.yaml")
    labels = tmp_path / "labels.csv"
    given = ("fit", str(tmp_path / "own.npy"), "--out", str(tmp_path / "fitted"), "--plan", str(tmp_path / "plan.yaml"))
    dry = (*given, "--dry-run", "--labels", str(labels))
    code, printed, error = unbraid_cli(*dry)
    assert (code, printed) == (2, "")
    assert f"{labels}: no such file" in error
    labels.write_text("file,x\n" + "".join(f"{row},{row % 3}\n" for row in range(480, 510)))
    refused = "unbraid: unknown executor 'slurm'; there are local, ray\n"
    assert unbraid_cli(*dry, "--executor", "slurm") == (2, "", refused)
    code, printed, error = unbraid_cli(*dry)
    assert (code, error) == (0, "")
    assert printed.splitlines() == [
        "500 images, 16 x 16, grey",
        "10 rows of the labels left out: no image is called as their files",
        "20 of 500 images have labels",
        "plan: 1 setting x 2 seeds, dense layers at 16 x 16, 400 steps; then 1 setting x 4 seeds, dense layers at "
        "16 x 16, 1,500 steps: about 1 minute",
    ]
    assert [each.name for each in (tmp_path / "fitted").iterdir()] == ["images"]


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


FILES = [f"sub/{row}.png" for row in range(30)]
UNFIT = {
    "constant": (
        {"file": FILES, "x": [3] * 30},
        "column 'x' is the same for all 30 images, so that nothing can be measured",
    ),
    "infinite": ({"file": FILES, "x": [*range(29), np.inf]}, "column 'x', row 29 is inf; expected finite numbers"),
    "a name of its own": (
        {"x": [f"image {n}" for n in range(30)]},
        r"no factors; not scored as factors: x \(names the rows\)$",
    ),
    "days in a row": (
        {"x": [f"2020-01-{day:02}" for day in range(1, 31)]},
        r"no factors; not scored as factors: x \(numbers the rows\)$",
    ),
    "names alone": ({"file": FILES}, "there is no column of labels beside 'file'"),
    "few": ({"file": FILES[:2], "x": [1, 2]}, "all labels are known of 2 images; to score models takes 20 or more"),
    "twice": ({"file": [*FILES, FILES[4]], "x": range(31)}, r"'sub/4\.png' stands twice in the column 'file'"),
    "a matrix": ({"x": np.zeros((30, 2))}, r": column 'x': expected one number, .* per row; got float64 \(30, 2\)"),
    "another name": ({"x": range(30), "picture": FILES}, "must be called 'file'; got 'picture'"),
    "case": ({"File": FILES, "x": range(30)}, "must be called 'file'; got 'File'"),
}


@pytest.mark.parametrize("given", UNFIT)
def test_labels_that_nothing_can_be_measured_by_are_refused_when_they_are_read(given: str):
    labels, message = UNFIT[given]
    with pytest.raises(ValueError, match=f"^labels.*{message}"):
        read_labels(labels, pictures(30))


def test_labels_of_an_array_may_be_what_its_images_are_called():
    """Images of an array are called by their number."""
    images = replace(pictures(30), names=tuple(map(str, range(30))))
    found = read_labels({"x": [str(row % 4) for row in range(30)]}, images)
    assert found.columns["x"].tolist() == [n % 4 for n in range(30)]


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
        ({"size": 48}, "size must be one of 16, 32, 64; got 48"),
        ({"minutes": 0}, "minutes must be a finite number, above 0 and at most 999999; got 0"),
        ({"minutes": 1e300}, "minutes must be a finite number, above 0 and at most 999999; got 1e"),
        ({"latents": 1}, "latents must be a whole number, 2 to 1000"),
        ({"latents": 5000}, "latents must be a whole number, 2 to 1000"),
        ({"device": "cpu:0"}, "device 'cpu:0': write cpu"),
        ({"device": "cuda:1", "executor": "ray"}, "device 'cuda:1': write cuda"),
        ({"device": "gpu", "executor": {"name": "ray"}}, "device 'gpu': one of auto, cpu, cuda with the executor ray"),
        ({"executor": "slurm"}, "unknown executor 'slurm'; there are local, ray"),
        ({"executor": {"name": "local", "address": "a"}}, "executor 'local' has no option 'address'; it has pack, pro"),
        ({"families": ["gan"]}, "families must be of"),
        ({"families": []}, "families must be one or more of"),
        ({"seed": -1}, "seed must be a whole number, 0"),
        ({"plan": "nowhere.yaml"}, "nowhere.yaml: no such file"),
        ({"plan": Path(__file__).parent}, "is a folder; a YAML file was expected"),
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


def test_a_new_folder_and_that_of_an_earlier_call_are_taken(tmp_path: Path):
    check_out(tmp_path / "new")
    prepare(np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8), tmp_path / "images", 16)
    (tmp_path / "notes.txt").touch()
    check_out(tmp_path)
    (tmp_path / "README.md").touch()
    write_plan(plan(), tmp_path / "plan.yaml")
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


def test_a_model_that_is_too_much_for_onnx_is_handed_over_without_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refused(_: object, path: Path, *, part: str) -> None:
        if part == "decoder":
            raise ValueError("onnxruntime cannot run its decoder (no Conv)")
        path.touch()

    run = SimpleNamespace(path=tmp_path)
    for name, made in (
        ("_handed_over", run), ("all_codes", np.zeros((2, 1))), ("_readme", "read me"), ("fit_page", "page"),
    ):  # fmt: skip
        monkeypatch.setattr(handing, name, lambda *_, made=made, **__: made)
    monkeypatch.setattr(handing, "export_onnx", refused)
    found = handing.hand_over(tmp_path, pictures(2), plan(), choice_of(["vae"]))
    assert found == (run, ("the model has no decoder.onnx: onnxruntime cannot run its decoder (no Conv)",))
    names = ["README.md", "codes.csv", "encoder.onnx", "report.html"]
    assert sorted(each.name for each in tmp_path.iterdir()) == names


def test_labels_that_cannot_score_are_a_note(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def failing(*_: object) -> None:
        raise ValueError("no such\nsplit")

    monkeypatch.setattr(handing, "fit_page", lambda *_, on_labels, **__: " ".join(on_labels))
    monkeypatch.setattr(handing, "judge", failing)
    nothing = Choice((), None, None, "they learned nothing", 0.0, 0.0)
    _, notes = handing.hand_over(tmp_path, pictures(30), plan(), nothing, labels=Labels([0], {"x": [1]}, ("one",)))
    assert notes[0] == "one"
    assert notes[1].startswith("the labels cannot score these models: no such")
    assert "cannot score" in (tmp_path / "report.html").read_text()


def choice_of(settings: list[str], **more: float) -> Choice:
    candidates = tuple(Candidate(SimpleNamespace(), each, 0.0) for each in settings)  # pyright: ignore[reportArgumentType]
    shares = {"sure_of_model": 0.9, "sure_of_setting": 1.0, "draws": 480, "draws_with_it": 320, **more}
    return Choice(candidates, None, candidates[0], "", **shares)  # pyright: ignore[reportArgumentType]


def test_the_shares_of_draws_say_what_they_are_shares_of():
    text = handing.how_sure(choice_of(["a", "a"]))
    assert "480 times; 20 more had fewer than three models that use a latent, or no good one, and do not count." in text
    assert "part of 320 draws, and was chosen in 90% of these." in text
    assert "setting was" not in text
    assert "close" not in text
    text = handing.how_sure(choice_of(["a", "b"], sure_of_setting=0.4, draws=500))
    assert "500 times. This" in text
    assert "the same setting was chosen in 40% of all that count. The choice is close" in text


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


NO_DRAWS = {"sure_of_model": 0.0, "sure_of_setting": 0.0, "draws": 0, "draws_with_it": 0}


def test_a_share_of_no_draws_is_not_named():
    """Of two models each is as like the other as the other is to it, so that no draw counts."""
    found = choice_of(["a", "b"], **NO_DRAWS)
    for text in (handing.how_sure(found), how_sure(found)):
        assert "oo few models were compared to tell how sure the choice is" in text
        assert "%" not in text
        assert "close" not in text
    assert "chosen in 90% of the resamples that contain it" in how_sure(choice_of(["a", "a"]))


@pytest.mark.lengthy
def test_the_page_names_no_share_of_no_draws(fitted: Fitted):
    pictures = read_pictures(fitted.folder / "images")
    assert pictures is not None
    assert fitted.run is not None
    codes, none = handing.all_codes(fitted.run, pictures), replace(fitted.choice, **NO_DRAWS)
    pages = [
        fit_page(pictures, fitted.plan, each, run=fitted.run, codes=codes, judged={}) for each in (fitted.choice, none)
    ]
    assert ["resamples that contain this model" in page for page in pages] == [True, False]
    assert ["Too few models were compared" in page for page in pages] == [False, True]
    assert "a close one" not in pages[1]


ODD = {
    "more than bytes": (np.full((2, 8, 8, 1), 300, dtype=np.uint16), "uint16"),
    "0 to 255 in floats": (np.full((2, 8, 8, 1), 255.0), "must lie between 0 and 1"),
    "transparency": (np.zeros((2, 8, 8, 4), dtype=np.uint8), "1 or 3 channels"),
    "one grey image": (np.zeros((8, 8), dtype=np.uint8), r"of one image \(1, height, width, channels\)"),
    "one of three colours": (np.zeros((8, 8, 3), dtype=np.uint8), "of one image"),
}


@pytest.mark.parametrize("given", ODD)
def test_what_is_no_images_is_not_encoded(given: str):
    images, message = ODD[given]
    with pytest.raises(ValueError, match=f"images.*{message}"):
        fitting.as_seen(images, (16, 16, 1))


def test_colours_are_seen_by_a_grey_model_as_their_brightness():
    images = (
        np.zeros((3, 16, 16, 3), dtype=np.uint8)
        + np.array([[255, 0, 0], [0, 255, 0], [7, 7, 7]], dtype=np.uint8)[:, None, None]
    )
    np.testing.assert_array_equal(fitting.as_seen(images, (16, 16, 1))[:, 3, 3, 0], [76, 150, 7])
    np.testing.assert_array_equal(fitting.as_seen(images, (16, 16, 3)), images)
    np.testing.assert_array_equal(fitting.as_seen(images[..., 2], (16, 16, 3)), images[..., 2:].repeat(3, -1))
    np.testing.assert_array_equal(fitting.as_seen(images / 255, (16, 16, 3)), images)


@pytest.mark.parametrize(
    "words",
    [
        "rank {}", "rank {} elsewhere", "compare {}", "score {}", "report {}", "study status {}",
        "study agreement {}", "export {} --out table.csv", "export {} --out copy", "figure traversals {} --out a.png",
        "figure hinton {} --out a.png",
    ],
)  # fmt: skip
def test_other_commands_name_what_lies_in_the_folder_of_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbraid_cli: Cli, words: str
) -> None:
    for name in ("model", "study", "search"):
        (tmp_path / "made" / name).mkdir(parents=True)
    for name in ("plan.yaml", "study.yaml", "study/study.yaml", "search/study.yaml", "codes.csv"):
        (tmp_path / "made" / name).touch()
    (tmp_path / "elsewhere").mkdir()
    before = sorted(tmp_path.rglob("*"))
    monkeypatch.chdir(tmp_path)
    assert unbraid_cli(*words.format("made").split()) == (
        2, "", "unbraid: made is a folder of `unbraid fit`, neither a model nor a study; give made/model or made/study "
        "or made/search\n",
    )  # fmt: skip
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(ValueError, match="is a folder of `unbraid fit`"):
        load_run("made")


def test_a_cluster_may_have_a_device_that_is_not_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def refuse(device: str) -> None:
        raise ValueError(f"no {device} here")

    monkeypatch.setattr(fitting, "choose_device", refuse)
    own = np.random.default_rng(0).integers(0, 256, (500, 16, 16, 1), dtype=np.uint8)

    def given(executor: str) -> Plan:
        return fitting.planned_for(
            own, tmp_path, minutes=1, size=None, families=["beta_vae"], latents=6, seed=0, plan=plan(),
            device="cuda", executor=executor, report=lambda *_: None,
        )[1]  # fmt: skip

    assert given("ray") == plan()
    with pytest.raises(ValueError, match="no cuda here"):
        given("local")


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
