"""Images of 16 bits have the range of their whole set, and pages of TIFFs may be channels: the same in every form."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

import unbraid
from tests.conftest import Cli
from unbraid.base.types import UInt8Array
from unbraid.datasets import from_array, load, read_picture
from unbraid.datasets.containers import white_of
from unbraid.datasets.own_image_rows import PagesWarning
from unbraid.datasets.own_images import images_of
from unbraid.fitting.fit import as_seen
from unbraid.fitting.fit_images import prepare
from unbraid.training.source import opened_dataset

N = 20
DEEP = np.random.default_rng(0).integers(0, 4000, (N, 24, 18), dtype=np.uint16)
DEEP[:6] //= 8  # it is not the first images that say what is white
DEEP[7, 3, 3] = 4095
BRIGHT = DEEP[..., None].astype(np.float32) / np.float32(4095)


class Items(torch.utils.data.Dataset[Any]):
    def __init__(self, item: Any) -> None:
        self.item = item

    def __len__(self) -> int:
        return N

    def __getitem__(self, row: int) -> Any:
        return self.item(row)


def saved(folder: Path, ending: str, images: Any = DEEP) -> Path:
    folder.mkdir()
    for number, image in enumerate(images):
        Image.fromarray(image).save(folder / f"{number:03}.{ending}")
    return folder


def stacks(folder: Path, images: Any) -> Path:
    """(n, height, width, pages) as TIFF files of several pages."""
    folder.mkdir()
    for number, image in enumerate(images):
        first, *others = [Image.fromarray(page) for page in np.moveaxis(image, -1, 0)]
        first.save(folder / f"{number:03}.tif", save_all=True, append_images=others)
    return folder


def test_the_same_12_bits_are_the_same_floats_in_every_form(tmp_path: Path) -> None:
    np.save(tmp_path / "own.npy", DEEP)
    np.save(tmp_path / "swapped.npy", DEEP.astype(">u2"))
    np.savez(tmp_path / "own.npz", images=DEEP)
    sources = [
        DEEP, torch.from_numpy(DEEP)[:, None], tmp_path / "own.npy", tmp_path / "swapped.npy", tmp_path / "own.npz",
        saved(tmp_path / "png", "png"), saved(tmp_path / "tif", "tif"), iter(list(DEEP)),
        Items(lambda row: (DEEP[row], row)), Items(lambda row: Image.fromarray(DEEP[row])),
    ]  # fmt: skip
    contents = set()
    for source in sources:
        dataset, described = opened_dataset(source)
        np.testing.assert_array_equal(dataset.images(np.arange(N)), BRIGHT)
        assert described["white"] == 4095
        contents.add(described["content"])
    assert len(contents) == 1


@pytest.mark.parametrize(
    ("most", "white"), [(0, 255), (255, 255), (256, 1023), (1023, 1023), (1024, 4095), (4096, 16383), (65535, 65535)]
)
def test_white_is_the_largest_number_of_the_bits_that_hold_the_set(most: int, white: int) -> None:
    assert white_of(most) == white
    images = np.zeros((3, 4, 4), dtype=np.uint16)
    images[2, 0, 0] = most
    assert from_array(images).images(np.arange(3)).max() == np.float32(most) / np.float32(white)


def test_a_run_takes_new_images_of_16_bits_by_the_white_of_its_training(tmp_path: Path) -> None:
    factors = {"x": (np.arange(N) % 5).tolist()}
    (run,) = unbraid.train(
        "vae", from_array(DEEP, factors), steps=3, network="dense", latents=2, out=tmp_path, processes=0
    )
    dark = DEEP[:4] // 100
    expected = run.encode((dark[..., None] / np.float32(4095)).astype(np.float32))
    np.testing.assert_allclose(run.encode(dark[..., None]), expected)
    assert run.representation(from_array(DEEP, factors)).codes.shape == (N, 2)
    (plain,) = unbraid.train("vae", BRIGHT, steps=3, network="dense", latents=2, out=tmp_path, processes=0)
    with pytest.raises(ValueError, match="uint8 or floats; got uint16"):
        plain.encode(dark[..., None])


def test_fit_reads_a_folder_and_an_array_of_12_bits_alike(tmp_path: Path) -> None:
    images = np.random.default_rng(1).integers(0, 4000, (500, 16, 16), dtype=np.uint16)
    images[:480] //= 8
    images[481, 3, 3] = 4095
    whole = prepare(images, tmp_path / "array", 16)
    files = prepare(saved(tmp_path / "png", "png", images), tmp_path / "files", 16)
    np.testing.assert_array_equal(whole.array(), files.array())
    expected = (images / 4095 * 255 + 0.5).astype(np.uint8)
    np.testing.assert_array_equal(whole.array()[..., 0], expected)
    assert [pictures.white for pictures in (whole, files)] == [4095, 4095]
    assert "16 bits: white is 4095, black 0, as the largest value of the whole set asks for" in files.notes()
    seen = read_picture(tmp_path / "png" / "003.png", (16, 16, 1), white=4095)
    np.testing.assert_array_equal(seen[0, ..., 0], expected[3])
    with pytest.raises(ValueError, match="divide them by the value that was white"):
        as_seen(images[..., None], (16, 16, 1))


def test_pages_are_channels_if_that_is_asked_for(tmp_path: Path, unbraid_cli: Cli) -> None:
    images = np.random.default_rng(0).integers(0, 4096, (N, 18, 24, 5), dtype=np.uint16)
    images[0, 0, 0] = 4095
    folder = stacks(tmp_path / "stacks", images)
    dataset = load(folder, pages="channels")
    np.testing.assert_array_equal(dataset.images(np.arange(N)), images.astype(np.float32) / np.float32(4095))
    with pytest.warns(
        PagesWarning, match=r"000.tif has 5 pages: only the first of each file is read; pages='channels'"
    ):
        first = load(folder)
    assert first.image_shape == (18, 24, 1)
    code, _, error = unbraid_cli(
        "train", "vae", str(folder), "--data", "pages=channels", "--steps", "2", "--set", "network=dense",
        "--out", str(tmp_path / "runs"),
    )  # fmt: skip
    assert code == 0, error
    (run,) = (tmp_path / "runs").iterdir()
    assert unbraid.load_run(run).config["dataset"]["image_shape"] == [18, 24, 5]


def test_fit_takes_pages_as_channels_under_the_names_of_the_files(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (500, 16, 16, 4), dtype=np.uint8)
    folder = stacks(tmp_path / "stacks", images)
    pictures = prepare({"name": str(folder), "pages": "channels"}, tmp_path / "cache", 16)
    np.testing.assert_array_equal(pictures.array(), images)
    assert pictures.names[:2] == ("000.tif", "001.tif")


def grey(shape: tuple[int, ...], dtype: Any = np.uint8) -> UInt8Array:
    return np.full(shape, 7, dtype=dtype)


@pytest.mark.parametrize(
    ("images", "pages", "said"),
    [
        ([grey((8, 8, 3)), grey((8, 8, 2))], "channels", "001.tif has 2 pages where 3 were expected, as in 000.tif"),
        ([grey((8, 8, 2)), grey((8, 8, 2), np.uint16)], "channels", "001.tif has 16 bits where 8 were expected"),
        ([grey((8, 8, 17))], "channels", "000.tif: it has 17 pages; images have 1 to 16 channels"),
        ([grey((8, 8, 2))], "both", "pages: input should be 'first' or 'channels'; got 'both'"),
    ],
)
def test_pages_that_are_no_channels_are_refused_by_name(tmp_path: Path, images: Any, pages: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        load(stacks(tmp_path / "stacks", images), pages=pages).images(np.arange(len(images)))


def test_0_and_1_of_16_bits_are_not_taken_for_black_and_white() -> None:
    with pytest.raises(ValueError, match="hold 0 and 1 alone, and white is 255"):
        images_of(np.ones((3, 4, 4), dtype=np.uint16))
