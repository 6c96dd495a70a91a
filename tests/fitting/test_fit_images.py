"""Images as people have them, in one array on disk."""

import io
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageOps

import unbraid
from unbraid.datasets import from_array, read_picture
from unbraid.fitting.fit_images import FEWEST, IMAGES, prepare, read_pictures
from unbraid.fitting.hand_over import of_dataset, write_codes

RNG = np.random.default_rng(0)


def pixels(height: int = 20, width: int = 20) -> np.ndarray:
    return RNG.integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def grey_pictures() -> list[bytes]:
    files = [io.BytesIO() for _ in range(FEWEST)]
    for file in files:
        Image.fromarray(pixels()[..., 0]).save(file, "png")
    return [file.getvalue() for file in files]


@pytest.fixture
def folder(grey_pictures: list[bytes], tmp_path: Path) -> Path:
    """Enough grey PNGs for everything else to be an exception."""
    home = tmp_path / "pictures"
    home.mkdir()
    for number, content in enumerate(grey_pictures):
        (home / f"{number:04}.png").write_bytes(content)
    return home


def named(folder: Path, cache: Path, name: str, size: int = 16) -> np.ndarray:
    found = prepare(folder, cache, size)
    return found.array()[found.names.index(name)]


@pytest.mark.parametrize(
    ("name", "mode", "save"),
    [
        ("a.jpg", "RGB", {"quality": 100, "subsampling": 0}),
        ("a.webp", "RGB", {"lossless": True}),
        ("a.bmp", "RGB", {}),
        ("sub/deeper/b.png", "RGB", {}),
        ("Größe 大小 размер.png", "RGB", {}),
        ("cmyk.tif", "CMYK", {}),
    ],
)
def test_files_of_any_kind_are_read_with_their_colours(folder: Path, tmp_path: Path, name: str, mode: str, save: dict):
    colour = np.zeros((16, 16, 3), dtype=np.uint8) + np.array([200, 40, 90], dtype=np.uint8)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(colour).convert(mode).save(folder / name, **save)
    np.testing.assert_allclose(named(folder, tmp_path / "cache", name), colour, atol=3)


def test_images_of_a_dataset_keep_its_name_and_those_of_files_tell_no_path(folder: Path, tmp_path: Path):
    of_files = prepare(folder, tmp_path / "files", 16)
    assert of_files.source == str(folder)
    assert of_dataset(of_files) == ""
    of_name = prepare("square", tmp_path / "named", 16)
    assert of_name.source == "square"
    assert "dataset `square`, which unbraid draws." in of_dataset(of_name)


def test_sixteen_bits_are_scaled_to_eight(folder: Path, tmp_path: Path):
    deep = (np.arange(256, dtype=np.uint16) * 257).reshape(16, 16)
    Image.fromarray(deep).save(folder / "deep.tif")
    found = named(folder, tmp_path / "cache", "deep.tif")
    np.testing.assert_array_equal(found[..., 0], np.arange(256).reshape(16, 16))


def test_of_a_moving_picture_the_first_frame_counts(folder: Path, tmp_path: Path):
    frames = [Image.fromarray(np.full((16, 16), value, dtype=np.uint8)) for value in (10, 200)]
    frames[0].save(folder / "moving.gif", save_all=True, append_images=frames[1:])
    assert named(folder, tmp_path / "cache", "moving.gif").max() == 10


def test_exif_turns_a_picture_upright(folder: Path, tmp_path: Path):
    upright = pixels(16, 16)
    exif = Image.Exif()
    exif[0x0112] = 6  # shown turned by 90 degrees, clockwise
    Image.fromarray(np.rot90(upright)).save(folder / "turned.png", exif=exif)
    np.testing.assert_array_equal(named(folder, tmp_path / "cache", "turned.png"), upright)


@pytest.mark.parametrize("turn", range(1, 9))
@pytest.mark.parametrize("name", ["turned.png", "turned.tif"])
def test_each_orientation_is_turned_as_pillow_turns_it(tmp_path: Path, name: str, turn: int):
    exif = Image.Exif()
    exif[0x0112] = turn
    Image.fromarray(pixels(16, 16)).save(tmp_path / name, exif=exif)
    with Image.open(tmp_path / name) as picture:
        upright = np.asarray(ImageOps.exif_transpose(picture))
    np.testing.assert_array_equal(read_picture(tmp_path / name, (16, 16, 3))[0], upright)


def test_odd_exif_data_neither_stop_it_nor_keep_a_picture_from_its_turn(folder: Path, tmp_path: Path):
    """Data that are cut short; and an orientation, beside a width that is written as text."""
    upright = pixels(16, 16)
    Image.fromarray(upright).save(folder / "cut.png", exif=b"Exif\0\0MM\0*\0")
    entries = [(0x0100, 2, 2, b"x\0\0\0"), (0x0112, 3, 1, struct.pack("<HH", 6, 0))]
    odd = b"II*\0" + struct.pack("<IH", 8, len(entries))
    odd += b"".join(struct.pack("<HHI", *each[:3]) + each[3] for each in entries) + bytes(4)
    Image.fromarray(np.rot90(upright)).save(folder / "odd.png", exif=b"Exif\0\0" + odd)
    with Image.open(folder / "odd.png") as picture, pytest.raises(struct.error):
        ImageOps.exif_transpose(picture)
    found = prepare(folder, tmp_path / "cache", 16)
    assert not found.skipped
    for name in ("cut.png", "odd.png"):
        np.testing.assert_array_equal(found.array()[found.names.index(name)], upright)


def test_a_picture_is_read_as_those_of_the_folder_were(folder: Path, tmp_path: Path):
    """Also grey ones of 16 bits, transparent ones, and colours by a model of grey images: their brightness."""
    deep = Image.fromarray((np.arange(400, dtype=np.uint16) * 160).reshape(20, 20))
    clear = Image.fromarray(np.dstack([pixels(20, 28), pixels(20, 28)[..., :1]]))
    deep.save(folder / "deep.png")
    clear.save(folder / "clear.png")
    found = prepare(folder, tmp_path / "cache", 16)
    for name in ("deep.png", "clear.png", "0007.png"):
        seen = found.array()[found.names.index(name)]
        np.testing.assert_array_equal(read_picture(folder / name, (16, 16, 3)), seen[None])
    red = Image.fromarray(np.zeros((20, 20, 3), dtype=np.uint8) + np.array([255, 0, 0], dtype=np.uint8))
    red.save(folder / "red.png")
    np.testing.assert_array_equal(read_picture(folder / "red.png", (16, 16, 1)), np.full((1, 16, 16, 1), 76))
    assert read_picture(folder / "red.png", (20, 20, 3)).flags.writeable, "torch warns of others"
    with pytest.raises(ValueError, match="it is no file"):
        read_picture(folder, (16, 16, 1))


@pytest.mark.parametrize(("most", "told"), [(4095, "hardly a pixel above 16 of 255"), (65535, "")])
def test_dark_images_are_told_of_whatever_their_dead_pixels(tmp_path: Path, most: int, told: str):
    deep = RNG.integers(0, most + 1, (FEWEST, 64, 64), dtype=np.uint16)
    deep[:, 5, 5] = 65535
    (tmp_path / "scans").mkdir()
    for number, each in enumerate(deep):
        Image.fromarray(each).save(tmp_path / "scans" / f"{number}.tif")
    found = prepare(tmp_path / "scans", tmp_path / "cache", 64)
    assert told in " ".join(found.notes()[1:])
    assert bool(found.remarks) == bool(told)


def test_transparency_lies_on_white(folder: Path, tmp_path: Path):
    clear = np.zeros((16, 16, 4), dtype=np.uint8)
    Image.fromarray(clear).save(folder / "clear.png")
    assert named(folder, tmp_path / "cache", "clear.png").min() == 255


def test_the_middle_square_is_taken_and_resized(folder: Path, tmp_path: Path):
    wide = np.zeros((32, 96, 3), dtype=np.uint8)
    wide[:, 32:64] = 255
    Image.fromarray(wide).save(folder / "wide.png")
    found = named(folder, tmp_path / "cache", "wide.png")
    assert found.shape[:2] == (16, 16)
    assert found.min() == 255


def test_they_are_grey_where_all_are(folder: Path, tmp_path: Path):
    assert prepare(folder, tmp_path / "grey", 16).channels == 1
    Image.fromarray(pixels()).save(folder / "colour.png")
    assert prepare(folder, tmp_path / "colour", 16).channels == 3


def test_what_cannot_be_read_is_named_and_left_out_up_to_one_in_a_hundred(folder: Path, tmp_path: Path):
    (folder / "empty.png").touch()
    (folder / "cut.png").write_bytes((folder / "0000.png").read_bytes()[:200])
    found = prepare(folder, tmp_path / "cache", 16)
    assert sorted(found.skipped) == ["cut.png", "empty.png"]
    assert len(found.names) == FEWEST
    assert "2 files left out: " in " ".join(found.notes())
    assert found.skipped["empty.png"] == "cannot identify image file 'empty.png'"  # the folder is named once, above
    for number in range(4):
        (folder / f"text{number}.png").write_text("no picture")
    with pytest.raises(ValueError, match=r"6 of 506 files cannot be read, more than 1%: cut\.png"):
        prepare(folder, tmp_path / "other", 16)
    assert not (tmp_path / "other" / IMAGES).exists()


def test_copies_and_blank_images_are_counted(folder: Path, tmp_path: Path):
    (folder / "again.png").write_bytes((folder / "0000.png").read_bytes())
    Image.fromarray(np.full((20, 20), 7, dtype=np.uint8)).save(folder / "blank.png")
    Image.fromarray(np.full((20, 20, 3), (255, 0, 7), dtype=np.uint8)).save(folder / "red.png")
    found = prepare(folder, tmp_path / "cache", 16)
    assert (found.copies, found.blank) == (1, 2)
    assert found.notes()[1:] == ["images that equal an earlier one: 1", "images of one colour: 2"]


def test_too_few_images_and_copies_of_too_few_are_refused(tmp_path: Path):
    with pytest.raises(ValueError, match=r"20 images; to find factors of variation takes 500 or more"):
        prepare(np.zeros((20, 8, 8, 1), dtype=np.uint8), tmp_path / "few", 16)
    for different, equal in ((1, 599), (2, 598), (FEWEST - 1, 101)):
        images = np.resize(RNG.integers(0, 256, (different, 8, 8, 1), dtype=np.uint8), (600, 8, 8, 1))
        with pytest.raises(ValueError, match=rf"of 600 images {equal} equal an earlier one .* 500 or more different"):
            prepare(images, tmp_path / "same", 16)
    images = np.resize(RNG.integers(0, 256, (FEWEST, 8, 8, 1), dtype=np.uint8), (600, 8, 8, 1))
    assert prepare(images, tmp_path / "enough", 16).copies == 100
    with pytest.raises(FileNotFoundError, match=r"nowhere: no such file or folder"):
        prepare(tmp_path / "nowhere", tmp_path / "cache", 16)
    with pytest.raises(ValueError, match=r"rows of a table"):
        prepare(RNG.random((600, 8)), tmp_path / "table", 16)


def test_the_cache_is_used_again_and_made_anew_where_it_is_damaged(folder: Path, tmp_path: Path):
    cache = tmp_path / "cache"
    first = prepare(folder, cache, 16)
    told: list[str] = []
    assert prepare(folder, cache, 16, lambda what, *_: told.append(what)) == first
    assert not told
    (cache / IMAGES).write_bytes(b"")
    assert read_pictures(cache) is None
    assert prepare(folder, cache, 16, lambda what, *_: told.append(what)).digest == first.digest
    assert told
    (cache / "images.json").write_text(json.dumps({"names": 3}))
    assert read_pictures(cache) is None


def test_other_images_are_read_anew(folder: Path, tmp_path: Path):
    """More files, a changed file, another array of the same type: the cache is of none of them."""
    cache = tmp_path / "cache"
    first = prepare(folder, cache, 16)
    Image.fromarray(pixels()[..., 0]).save(folder / "more.png")
    more = prepare(folder, cache, 16)
    assert len(more.names) == len(first.names) + 1
    Image.fromarray(pixels(30, 30)[..., 0]).save(folder / "more.png")
    assert prepare(folder, cache, 16).digest != more.digest
    one, other = (RNG.integers(0, 256, (FEWEST, 16, 16, 1), dtype=np.uint8) for _ in range(2))
    for given in (one, other):
        np.testing.assert_array_equal(prepare(given, cache, 16).array(), given)


def test_a_pipe_is_no_picture_and_a_name_may_be_in_no_encoding(folder: Path, tmp_path: Path):
    os.mkfifo(folder / "pipe.png")
    odd = os.fsdecode(b"caf\xe9.png")
    (folder / odd).write_bytes((folder / "0000.png").read_bytes())
    found = prepare(folder, tmp_path / "cache", 16)
    assert found.skipped == {"pipe.png": "it is no file"}
    assert odd in found.names
    write_codes(tmp_path / "codes.csv", found.names, np.zeros((len(found.names), 2)))
    assert b"caf\xe9.png,0,0" in (tmp_path / "codes.csv").read_bytes()
    assert prepare(folder, tmp_path / "cache", 16) == found


def test_arrays_and_datasets_are_taken_as_they_are(tmp_path: Path):
    images = RNG.integers(0, 256, (FEWEST, 16, 16, 3), dtype=np.uint8)
    for number, given in enumerate([images, from_array(images)]):
        found = prepare(given, tmp_path / str(number), 16)
        np.testing.assert_array_equal(found.array(), images)
    floats = prepare(images[..., :1] / 255, tmp_path / "floats", 16)
    np.testing.assert_array_equal(floats.array(), images[..., :1])


def test_each_channel_is_resized_by_itself(tmp_path: Path):
    images = RNG.integers(0, 256, (FEWEST, 20, 16, 5), dtype=np.uint8)
    stored = prepare(images, tmp_path / "all", 16).array()
    assert stored.shape == (FEWEST, 16, 16, 5)
    for channel in range(5):
        alone = prepare(images[..., channel], tmp_path / str(channel), 16).array()
        np.testing.assert_array_equal(stored[..., channel], alone[..., 0])


@pytest.mark.parametrize(("side", "size"), [(45, 32), (46, 64)])
def test_unasked_images_of_files_are_as_large_as_the_nearest_size(folder: Path, tmp_path: Path, side: int, size: int):
    for number, path in enumerate(sorted(folder.glob("*.png"))):
        grey = Image.new("L", (side, side + number % 3 * side), number % 256)  # the shorter side counts
        grey.paste(number // 256 * 255, (0, 0, 4, grey.height))
        grey.save(path)
    assert prepare(folder, tmp_path / "cache", None).size == size


@pytest.mark.parametrize(("side", "size"), [(9, 16), (20, 16), (28, 32), (90, 64)])
def test_unasked_images_of_an_array_are_as_large_as_the_nearest_size(tmp_path: Path, side: int, size: int):
    rows = np.repeat(RNG.integers(0, 256, (FEWEST, side, 1, 1), dtype=np.uint8), side + 7, axis=2)
    assert prepare(rows, tmp_path / "rows", None).size == size


def test_sizes_are_those_of_files_that_can_be_read(folder: Path, tmp_path: Path):
    (folder / "0000.png").write_bytes(b"")
    (folder / "0010.png").write_bytes(b"not a picture")
    assert prepare(folder, tmp_path / "cache", None).size == 16


@pytest.mark.parametrize(("source", "cache"), [("p", "p"), ("p", "p/out/images"), ("out/images/p", "out/images")])
def test_the_cache_never_lies_among_the_pictures(tmp_path: Path, source: str, cache: str):
    (tmp_path / source).mkdir(parents=True)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(ValueError, match="would be written among them, to .*; give a folder elsewhere"):
        prepare(tmp_path / source, tmp_path / cache, 16)
    assert sorted(tmp_path.rglob("*")) == before


def test_an_array_in_the_cache_is_not_written_over(tmp_path: Path):
    np.save(tmp_path / IMAGES, RNG.integers(0, 256, (FEWEST, 16, 16, 1), dtype=np.uint8))
    with pytest.raises(ValueError, match="would be written among them"):
        prepare(tmp_path / IMAGES, tmp_path, 16)


def test_pictures_may_move_but_others_are_refused_where_there_are_models(folder: Path, tmp_path: Path):
    first = prepare(folder, tmp_path / "cache", 16)
    folder.rename(tmp_path / "moved")
    moved = prepare(tmp_path / "moved", tmp_path / "cache", 16, same=True)
    assert (moved.digest, moved.source) == (first.digest, str(tmp_path / "moved"))
    Image.fromarray(pixels()[..., 0]).save(tmp_path / "moved" / "more.png")
    with pytest.raises(
        ValueError, match=r"has models of other images, from .*moved as it was then; give another folder"
    ):
        prepare(tmp_path / "moved", tmp_path / "cache", 16, same=True)
    with pytest.raises(ValueError, match="has models of other images"):
        prepare(tmp_path / "moved", tmp_path / "cache", 32, same=True)
    assert read_pictures(tmp_path / "cache") == moved, "the cache is as it was"
    with pytest.raises(ValueError, match="has models of other images"):
        prepare(RNG.integers(0, 256, (FEWEST, 8, 8, 1), dtype=np.uint8), tmp_path / "cache", 32, same=True)


@pytest.mark.parametrize("kind", ["npz", "folder"])
def test_images_keep_the_order_of_their_file_where_factors_form_a_grid(tmp_path: Path, kind: str):
    images = RNG.integers(0, 256, (FEWEST, 16, 16, 1), dtype=np.uint8)
    factors = np.stack([np.arange(FEWEST) % 2, np.arange(FEWEST)[::-1] // 2], axis=1)
    if kind == "npz":
        np.savez(tmp_path / "a.npz", images=images, factors=factors)
        source = tmp_path / "a.npz"
    else:
        source = tmp_path / "a"
        source.mkdir()
        np.save(source / IMAGES, images)
        np.savetxt(source / "factors.csv", factors, fmt="%d", delimiter=",", header="a,b", comments="")
    np.testing.assert_array_equal(prepare(source, tmp_path / "cache", 16).array(), images)


def test_what_lies_here_comes_before_a_dataset_of_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    images = RNG.integers(0, 256, (FEWEST, 16, 16, 1), dtype=np.uint8)
    (tmp_path / "square").mkdir()
    np.save(tmp_path / "square" / IMAGES, images)
    monkeypatch.chdir(tmp_path)
    np.testing.assert_array_equal(prepare("square", tmp_path / "cache", 16).array(), images)


def test_models_find_the_images_of_their_fit_wherever_its_folder_is_moved(tmp_path: Path):
    (tmp_path / "images").mkdir()
    pictures = np.random.default_rng(0).integers(0, 256, (8, 16, 16, 1), dtype=np.uint8)
    np.save(tmp_path / "images" / "images.npy", pictures)
    (tmp_path / "plan.yaml").touch()
    trained = unbraid.train(
        "vae", str(tmp_path / "images" / "images.npy"), steps=1, batch_size=4, out=tmp_path / "study" / "runs",
        processes=0, network="dense",
    )[0]  # fmt: skip
    moved = tmp_path / "moved"
    moved.mkdir()
    for name in ("images", "study", "plan.yaml"):
        (tmp_path / name).rename(moved / name)
    run = unbraid.load_run(moved / "study" / "runs" / trained.path.name)
    np.testing.assert_array_equal(run.dataset().images(np.arange(8)), pictures)
    (moved / "plan.yaml").unlink()
    with pytest.raises(ValueError, match="names images by their path"):
        run.dataset()


def test_pictures_beside_a_meta_json_of_somebody_else_are_read_each_at_its_own_size(folder: Path, tmp_path: Path):
    """Only together with what this package stores is a file of that name the description of a dataset."""
    (folder / "meta.json").write_text('{"crawled": "today"}')
    Image.fromarray(pixels(20, 31)[..., 0]).save(folder / "wide.png")
    assert len(prepare(folder, tmp_path / "cache", 16).names) == FEWEST + 1


def test_links_to_folders_are_named_and_not_followed(folder: Path, tmp_path: Path):
    (tmp_path / "elsewhere").mkdir()
    Image.fromarray(pixels()[..., 0]).save(tmp_path / "elsewhere" / "a.png")
    (folder / "sub").mkdir()
    for number, name in enumerate(("more", "round", "sub/up", "x1", "x2", "x3")):
        (folder / name).symlink_to(tmp_path / "elsewhere" if number else folder, target_is_directory=True)
    found = prepare(folder, tmp_path / "cache", 16)
    assert len(found.names) == FEWEST
    assert found.notes()[1:] == ["links to folders are not followed: more, round, sub/up, x1, x2 ..."]
    (tmp_path / "links").mkdir()
    (tmp_path / "links" / "train").symlink_to(folder)
    with pytest.raises(ValueError, match=r"links: no pictures .*; links to folders are not followed: train$"):
        prepare(tmp_path / "links", tmp_path / "none", 16)


def test_a_subfolder_that_cannot_be_listed_is_an_error(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Its pictures would else be left out unseen; permissions do not keep out who runs this as root."""
    (folder / "closed").mkdir()
    listed = os.scandir

    def scandir(path: str) -> Any:
        if os.fspath(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return listed(path)

    monkeypatch.setattr(os, "scandir", scandir)
    with pytest.raises(PermissionError, match="Permission denied: '.*closed'"):
        prepare(folder, tmp_path / "cache", 16)
    assert not (tmp_path / "cache").exists()
