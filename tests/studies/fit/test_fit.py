"""From images to a chosen model, whole."""

import csv
from pathlib import Path

import numpy as np
import pytest
from huggingface_hub import ModelCard

import unbraid
from unbraid.datasets import FactorDataset, load
from unbraid.datasets.subset import SubsetDataset
from unbraid.runs.run import load_run
from unbraid.studies.fit.fit import Fitted, OutOfTime
from unbraid.studies.fit.hand_over import read_labels
from unbraid.studies.fit.pictures import Pictures
from unbraid.studies.fit.plan import FinalRound, Plan, SearchRound, Setting, write_plan

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
    assert 'load_run("fitted/model")' in (fitted.folder / "README.md").read_text()


@pytest.mark.lengthy
def test_the_model_has_a_card_that_says_how_it_was_chosen(fitted: Fitted, monkeypatch: pytest.MonkeyPatch):
    choice, card = fitted.choice, ModelCard.load(fitted.folder / "model" / "README.md")
    assert choice.chosen is not None
    for text in (
        f"from {len(choice.candidates)} models of 1 setting (beta_tcvae beta=2)",
        f"with a UDR of {choice.udr(choice.chosen):.3f}",
        f"Its ELBO on held-out images is {choice.chosen.elbo:.1f} nats",
        f"{choice.sure_of_model:.0%} of the draws chose the same model, and {choice.sure_of_setting:.0%} the same",
        "Labels had no part in the choice.",
        "| `mig` |",
        "Nobody has named its latents.",
        "4,000 images that unbraid knows by no name",
    ):
        assert text in card.text
    assert card.data.to_dict()["library_name"] == "unbraid"
    monkeypatch.chdir(fitted.folder.parent)
    names: dict = {}
    exec((fitted.folder / "README.md").read_text().split("```python\n")[1].split("```")[0], names)
    assert names["codes"].shape == (1, 6)


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
    assert found.choice.size == 16
    assert "4 <small>models at 16 × 16" in found.report().read_text()
    last = [load_run(each).config for each in (found.folder / "study" / "runs").iterdir() if not each.suffix]
    assert [(each["hyperparameters"]["network"], each["batch_size"]) for each in last] == [("conv", 16)] * 2


@pytest.mark.lengthy
def test_what_the_deadline_cuts_off_is_left_out(images: np.ndarray, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The clock jumps past the end when the last round begins: the search chooses."""
    from unbraid.studies.fit import fit as fitting

    late = [0.0]
    monkeypatch.setattr(fitting.time, "monotonic", lambda: late[0])

    def telling(what: str, *_: object) -> None:
        if what.startswith("study"):
            late[0] = 1e6

    pictures, planned = fitting.planned_for(
        images, tmp_path, minutes=1, size=16, families=["beta_vae"], latents=5, seed=0, plan=plan(), device="cpu",
        executor=HERE, report=telling,
    )  # fmt: skip
    found = fitting.carry_out(tmp_path, pictures, planned, began=0.0, executor=HERE, device="cpu", report=telling)
    assert len(found.choice.candidates) == 2, "those of the search"
    assert issubclass(OutOfTime, KeyboardInterrupt)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seed": 3}, "has seed 0, not 3; give another folder"),
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
    "a name": ({"file": ["elsewhere.png"], "x": [1]}, "no name in the column 'file' is that of an image"),
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


def test_labels_of_some_images_are_matched_by_file(tmp_path: Path):
    names = ("a.png", "b.png", "sub/c.png")
    pictures = Pictures(tmp_path, "here", "", 16, 1, names, {}, 0, 0, "")
    (tmp_path / "labels.csv").write_text("size,file,shape\n2.5,sub/c.png,disc\n1,a.png,box\n7,gone.png,box\n")
    found = read_labels(tmp_path / "labels.csv", pictures)
    assert (found.rows, found.columns) == ([2, 0], {"size": [2.5, 1.0], "shape": ["disc", "box"]})


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"size": 48}, "size must be one of 16, 32, 64; got 48"),
        ({"minutes": 0}, "minutes must be above 0"),
        ({"latents": 1}, "latents must be a whole number, 2 or more"),
        ({"families": ["gan"]}, "families must be of"),
        ({"plan": "nowhere.yaml"}, "nowhere.yaml: no such file"),
    ],
)
def test_impossible_settings_are_refused_before_anything_is_written(
    images, tmp_path: Path, options: dict, message: str
):
    with pytest.raises((ValueError, FileNotFoundError), match=message):
        unbraid.fit(images, tmp_path / "fitted", **options)
    assert not (tmp_path / "fitted").exists()
