"""Images without factors: an array, a tensor, a torch Dataset, a folder of pictures; trained, looked at and refused."""

from collections.abc import Callable, Iterable, Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, IterableDataset, WeightedRandomSampler

import unbraid
from tests.training.training_examples import TINY
from unbraid import Representation, Study, train
from unbraid.datasets import from_array, load, own_image_rows
from unbraid.datasets.digest import content_digest
from unbraid.datasets.own_images import images_of
from unbraid.metrics import PRESETS
from unbraid.runs.run import load_run
from unbraid.runs.run_page import run_page
from unbraid.runs.run_traversals import traverse
from unbraid.training.train import CopiesWarning

PICTURES = TINY.array[:60]  # (60, 8, 8, 1)
SETTINGS: dict[str, Any] = {
    "network": "dense", "latents": 3, "batch_size": 8, "steps": 3, "processes": 0, "precision": "float32",
}  # fmt: skip


class Items(Dataset[Any]):
    """Whatever `make` gives for a position."""

    def __init__(self, make: Callable[[int], Any], n: int = len(PICTURES)) -> None:
        self.make, self.n = make, n

    def __len__(self) -> int:
        return self.n

    def __getitem__(self, index: int) -> Any:
        return self.make(index)


class Stream(IterableDataset[Any]):
    """Items that can only be had one after the other."""

    def __init__(self, order: Callable[[], Iterable[int]] = lambda: range(len(PICTURES))) -> None:
        self.order = order

    def __iter__(self) -> Iterator[Any]:
        return map(tensor_of, self.order())


def tensor_of(row: int) -> torch.Tensor:
    return torch.from_numpy(PICTURES[row]).movedim(-1, 0)


def saved(folder: Path) -> Path:
    for row, picture in enumerate(PICTURES):
        place = folder / f"part{row // 30}" / f"{row:03d}.png"
        place.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture[..., 0]).save(place)
    (folder / "readme.txt").write_text("no picture")
    (folder / ".hidden.png").write_text("no picture either")
    return folder


def npz(path: Path) -> str:
    np.savez(path, images=PICTURES)
    return str(path)


def npy(path: Path) -> str:
    np.save(path, PICTURES)
    return str(path)


FORMS: dict[str, Callable[[Path], Any]] = {
    "array": lambda _: PICTURES,
    "grey array": lambda _: PICTURES[..., 0],
    "tensor": lambda _: torch.from_numpy(PICTURES).movedim(-1, 1),
    "torch images": lambda _: Items(tensor_of),
    "torch pairs": lambda _: Items(lambda row: (tensor_of(row), row % 3)),
    "torch arrays": lambda _: Items(lambda row: [PICTURES[row], "a label"]),
    "torch pillow": lambda _: Items(lambda row: (Image.fromarray(PICTURES[row, ..., 0]), 0)),
    "loader": lambda _: DataLoader(Items(tensor_of), 7, shuffle=True),
    "iterable": lambda _: Stream(),
    "loader of an iterable": lambda _: DataLoader(Stream(), 7),
    "as many as needed": lambda _: islice(cycle(map(tensor_of, range(len(PICTURES)))), 60),
    "folder": lambda folder: str(saved(folder / "pictures")),
    "path": lambda folder: saved(folder / "pictures"),
    "npy": lambda folder: npy(folder / "some.npy"),
    "npz": lambda folder: npz(folder / "some.npz"),
}


@pytest.mark.parametrize("form", FORMS)
def test_the_same_images_are_the_same_run_whatever_form_they_come_in(form: str, tmp_path: Path) -> None:
    given = FORMS[form](tmp_path)
    (run,) = train("vae", given, out=tmp_path / "runs", **SETTINGS)
    assert run.config["dataset"]["content"] == content_digest(from_array(PICTURES))
    assert run.config["dataset"]["image_shape"] == [8, 8, 1]
    assert run.codes().factors.shape == (60, 0)


def test_images_that_cannot_be_read_again_or_have_no_end_are_refused_in_one_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    random = iter(range(len(PICTURES)))
    with pytest.raises(ValueError, match="begins with another image each time: leave out shuffling"):
        images_of(Stream(lambda: [next(random), next(random)]))
    with pytest.raises(ValueError, match="sampler or collate_fn of its own.*Subset"):
        images_of(DataLoader(Items(tensor_of), sampler=WeightedRandomSampler([1.0] * 60, 60)))
    monkeypatch.setattr(own_image_rows, "MOST_READ", 64 * 300)
    with pytest.raises(ValueError, match=r"not ended after 151 images.* itertools.islice\(dataset, 100\)"):
        images_of(Stream(lambda: cycle(range(60))))


def test_factors_have_no_part_in_what_an_unsupervised_family_learns(tmp_path: Path) -> None:
    (alone,) = train("beta_vae", TINY.array, out=tmp_path, **SETTINGS)
    (known,) = train("beta_vae", TINY, out=tmp_path, **SETTINGS)
    assert alone.path != known.path
    theirs = known.modules.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in alone.modules.state_dict().items())


def test_floats_from_0_to_1_are_learnt_from_as_they_are(tmp_path: Path) -> None:
    """Multiples of 1/255 are what uint8 images are trained on, so they are the same images."""
    floats = PICTURES.astype(np.float32) / 255
    (run,) = train("vae", floats, out=tmp_path / "floats", **SETTINGS)
    (whole,) = train("vae", PICTURES, out=tmp_path / "bytes", **SETTINGS)
    (items,) = train("vae", Items(lambda row: (tensor_of(row) / 255, 0)), out=tmp_path / "items", **SETTINGS)
    (other,) = train("vae", np.nextafter(floats, np.float32(0.5)), out=tmp_path / "other", **SETTINGS)
    assert items.path.name == run.path.name == whole.path.name != other.path.name
    for name, value in whole.modules.state_dict().items():
        torch.testing.assert_close(run.modules.state_dict()[name], value, rtol=0, atol=0)
        torch.testing.assert_close(items.modules.state_dict()[name], value, rtol=0, atol=0)
    np.testing.assert_array_equal(traverse(run, floats, shown=60).originals.mean(), floats.mean())


def test_images_have_up_to_sixteen_channels(tmp_path: Path) -> None:
    images = np.random.default_rng(0).random((60, 16, 18, 6), dtype=np.float32)
    (run,) = train("vae", images, out=tmp_path, **SETTINGS | {"network": "conv"})
    assert run.decode(run.encode(images[:2])).shape == (2, 16, 18, 6)
    assert traverse(run, images, steps=3).images.shape[-1] == 6
    page = run_page(run, dataset=from_array(images))
    assert "Each of the 6 channels has a colour of its own, and all of them together are white" in page
    assert page.count("■") == 6


@pytest.mark.parametrize(("stored", "native"), [(">f4", "f4"), (">f8", "f8"), (np.longdouble, "f8")])
def test_floats_in_any_order_of_bytes_and_of_any_length_are_learnt_from(stored, native, tmp_path: Path) -> None:
    floats = PICTURES.astype(np.float32) / 255
    (run,) = train("vae", floats.astype(stored), out=tmp_path, **SETTINGS)
    assert run.path == train("vae", floats.astype(native), out=tmp_path, **SETTINGS)[0].path
    np.save(tmp_path / "stored.npy", floats.astype(stored))
    assert load(str(tmp_path / "stored.npy")).images(np.arange(2)).dtype == np.dtype(native)


def test_rows_of_a_table_come_as_a_matrix_of_floats(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).normal(size=(40, 5))
    (run,) = train("pca", rows, out=tmp_path, latents=2, steps=1, processes=0)
    centred = rows - rows.mean(axis=0)
    expected = np.abs(np.linalg.svd(centred, full_matrices=False)[2][0])
    moved = run.decode(np.array([[1.0, 0.0], [0.0, 0.0]]))
    found = np.abs(moved[0] - moved[1])
    np.testing.assert_allclose(found / np.linalg.norm(found), expected, atol=1e-4)


def test_a_run_on_an_array_asks_for_it_again_and_refuses_another(tmp_path: Path) -> None:
    (trained,) = train("vae", PICTURES, out=tmp_path, **SETTINGS)
    run = load_run(trained.path)
    with pytest.raises(ValueError, match="trained on a dataset in memory, which no folder holds; give its images"):
        run.dataset()
    np.testing.assert_array_equal(run.representation(PICTURES).codes, run.codes().codes)
    other = PICTURES.copy()
    other[7, 0, 0] ^= 1
    for images in (other, torch.from_numpy(PICTURES[:30, ..., 0]), Items(lambda row: tensor_of(59 - row))):
        with pytest.raises(ValueError, match=f"not the 60 of 8 x 8 x 1 that {run.path} was trained on"):
            run.dataset(images)
    assert run.representation(from_array(other)).codes.shape == (60, 3)


def test_what_needs_no_factors_of_a_family_that_may_be_told_some(tmp_path: Path) -> None:
    settings = {**SETTINGS, "classes": "4", "labels": 0}
    assert train("parted_vae", PICTURES, out=tmp_path, **settings)[0].status["state"] == "finished"
    circles = {name: value for name, value in SETTINGS.items() if name != "latents"}
    assert train("delta_vae", PICTURES, out=tmp_path, circles=1, **circles)[0].n_codes == 2


def test_scores_without_factors(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    codes = Representation(rng.normal(size=(80, 3)), np.empty((80, 0)), log_variances=np.zeros((80, 3)))
    card = unbraid.score(codes)
    assert set(card.scored) == {"elbo_terms"}
    assert set(card.skipped) == set(PRESETS["standard"]) - {"elbo_terms"}
    assert set(card.skipped.values()) == {"needs factors, and these images have none"}
    told = unbraid.score(
        codes.codes, rng.integers(3, size=(80, 2)), metrics="elbo_terms", log_variances=np.zeros((80, 3))
    )
    assert card["elbo_terms"].total_correlation == told["elbo_terms"].total_correlation
    with pytest.raises(ValueError, match="these codes have no factors to score against"):
        unbraid.score(codes, metrics=["mig", "sap"])
    for suffix in (".npz", ".safetensors", ".parquet"):
        codes.save(tmp_path / f"codes{suffix}")
        assert Representation.load(tmp_path / f"codes{suffix}").factors.shape == (80, 0)


YAML = """
name: alone
dataset: {folder}
families: [{{name: vae, network: dense, latents: 3}}]
seeds: 2
steps: 2
batch_size: 8
precision: float32
executor: {{name: local, processes: 0}}
metrics: [elbo_terms]
udr: {{similarity: spearman}}
"""


def test_a_study_of_pictures_is_ranked_and_shown(tmp_path: Path) -> None:
    (tmp_path / "study.yaml").write_text(YAML.format(folder=saved(tmp_path / "pictures")))
    study = Study.load(tmp_path / "study.yaml", out=tmp_path / "study")
    assert [run.state for run in study.run()] == ["finished", "finished"]
    assert set(study.results()["udr.score"].notna()) == {True}
    page = run_page(load_run(study.runs()[0].path, trust=[str(tmp_path / "pictures")]))
    assert "elbo_terms" in page or "Total correlation" in page


@pytest.mark.parametrize(("different", "counted"), [(1, "1 is"), (2, "2 are")])
def test_copies_of_few_images_are_warned_of_before_they_are_trained_on(
    different: int, counted: str, tmp_path: Path
) -> None:
    images = np.resize(np.random.default_rng(0).integers(0, 256, (different, 16, 16), dtype=np.uint8), (600, 16, 16))
    with pytest.warns(CopiesWarning, match=f"among 256 images drawn from the dataset only {counted} different"):
        train("vae", images, network="dense", steps=2, processes=0, out=tmp_path)


def test_a_set_in_which_each_image_comes_twice_is_no_set_of_copies(tmp_path: Path) -> None:
    images = np.resize(np.random.default_rng(0).integers(0, 256, (300, 16, 16), dtype=np.uint8), (600, 16, 16))
    assert train("vae", images, network="dense", steps=2, processes=0, out=tmp_path)  # warnings are errors here
