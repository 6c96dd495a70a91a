"""The digest of a dataset: every pixel and factor counts, and what is noted is believed only while nothing changes."""

import hashlib
import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unbraid.base.types import Kind, UInt8Array
from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import ArrayDataset, FactorDataset, StoredImages, SubsetDataset, from_array, load
from unbraid.datasets.digest import RULE, _of_all, content_digest, subset_digest
from unbraid.datasets.image_store import content_of, write
from unbraid.datasets.official.dsprites import SubGrid
from unbraid.datasets.own_images import open_path
from unbraid.datasets.rendering.renderer import Composed
from unbraid.datasets.shrunk import ShrunkImages
from unbraid.datasets.sprites import Sprites
from unbraid.files.checksum import BLANK, KEY, checksummed

SPACE = FactorSpace(("shape", "hue"), (64, 64), ("categorical", "cyclic"))
PIXELS = np.random.default_rng(0).integers(0, 256, size=(4096, 8, 8, 1), dtype=np.uint8)
IMAGES = ArrayDataset(PIXELS, SPACE)


def changed(*places: Any) -> ArrayDataset:
    pixels = PIXELS.copy()
    for place in places:
        pixels[place] = 255 - pixels[place]
    return ArrayDataset(pixels, SPACE)


def test_three_of_four_images_inverted_and_relabelled_are_other_content() -> None:
    """All but 1 024 evenly spaced ones, which may not stand for the others."""
    others = np.setdiff1d(np.arange(4096), np.linspace(0, 4095, 1024).astype(int))
    assert len(others) == 3072
    table = SPACE.grid()
    relabelled = table.copy()
    relabelled[others, 0] = 63 - relabelled[others, 0]
    digests = {
        content_digest(IMAGES),
        content_digest(changed(others)),
        content_digest(ArrayDataset(PIXELS, FactorTable(SPACE.names, SPACE.kinds, table))),
        content_digest(ArrayDataset(PIXELS, FactorTable(SPACE.names, SPACE.kinds, relabelled))),
    }
    assert len(digests) == 4


def test_anything_that_differs_is_other_content(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.datasets.digest.CHUNK", 1000)  # 15 images: chunks that do not come out even
    table = SPACE.grid().astype(float)
    moved = table.copy()
    moved[4095, 1] += 1e-9
    continuous = replace(SPACE, kinds=("categorical", "continuous"))
    others: list[FactorDataset] = [
        *(changed((row, 7, 7, 0)) for row in (0, 1, 14, 15, 2047, 4094, 4095)),  # one pixel each
        ArrayDataset(PIXELS[::-1], SPACE),
        ArrayDataset(PIXELS.reshape(4096, 4, 16, 1), SPACE),
        ArrayDataset(PIXELS[:4032], replace(SPACE, sizes=(63, 64))),
        ArrayDataset(PIXELS, replace(SPACE, sizes=(32, 128))),
        ArrayDataset(PIXELS, replace(SPACE, names=("shape", "size"))),
        ArrayDataset(PIXELS, replace(SPACE, kinds=("categorical", "ordinal"))),
        ArrayDataset(PIXELS, continuous),
        ArrayDataset(PIXELS, FactorTable(continuous.names, continuous.kinds, table)),
        ArrayDataset(PIXELS, FactorTable(continuous.names, continuous.kinds, moved)),
        Floats(PIXELS),
    ]
    digests = [content_digest(each) for each in (IMAGES, *others)]
    assert len(set(digests)) == len(digests)
    assert content_digest(changed()) == digests[0]


class Floats(ArrayDataset):
    """The same numbers of another type."""

    def __init__(self, pixels: UInt8Array) -> None:
        super().__init__(pixels, SPACE)

    def images(self, index: Any) -> Any:
        return super().images(index).astype(np.float32)


def test_the_digest_is_that_of_a_plain_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("unbraid.datasets.digest.CHUNK", 64 * 1000)
    header = repr((1, 4096, (8, 8, 1), "|u1", SPACE.names, SPACE.kinds, SPACE.sizes))
    expected = hashlib.sha256(header.encode())
    for start in range(0, 4096, 1000):
        factors = SPACE.grid()[start : start + 1000].astype("<f8")
        expected.update(hashlib.sha256(PIXELS[start : start + 1000].tobytes() + factors.tobytes()).digest())
    seen: list[tuple[int, int]] = []
    assert content_digest(IMAGES, lambda *counts: seen.append(counts)) == expected.hexdigest()[:16]
    assert seen == [(1000, 4096), (2000, 4096), (3000, 4096), (4000, 4096), (4096, 4096)]


def test_drawn_stored_by_path_and_in_memory_it_is_the_same(tmp_path: Path) -> None:
    drawn = load("square", positions=8)
    pixels, table = drawn.images(np.arange(64)), drawn.space.factors(np.arange(64))
    kinds: dict[str, Kind] = {"y": "cyclic", "x": "cyclic"}
    (tmp_path / "pictures").mkdir()
    for number, image in enumerate(pixels):
        Image.fromarray(image[..., 0]).save(tmp_path / "pictures" / f"{number}.png")
    rows = [f"{number}.png,{y},{x}" for number, (y, x) in enumerate(table)]
    (tmp_path / "pictures" / "factors.csv").write_text("\n".join(["file,y,x", *rows]))
    np.save(tmp_path / "images.npy", pixels)
    for name, binary in (("packed", True), ("plain", False)):
        write(tmp_path / name, content_of(drawn, binary=binary))
    same = [
        drawn,
        load("square", positions=8),
        ArrayDataset(pixels, drawn.space),
        from_array(pixels, table, names=("y", "x"), kinds=kinds),
        from_array(tmp_path / "images.npy", table, names=("y", "x"), kinds=kinds),
        open_path(tmp_path / "pictures", kinds=kinds),
        StoredImages(tmp_path / "packed"),
        StoredImages(tmp_path / "plain"),
    ]
    assert len({content_digest(each) for each in same}) == 1


def test_parts_and_smaller_images_follow_the_whole() -> None:
    one = changed((5, 0, 0, 0))  # a pixel of an image that is no part of `positions`
    positions = np.delete(np.arange(4096), 5)
    swapped = positions[np.r_[1, 0, 2 : len(positions)]]
    assert content_digest(SubsetDataset(IMAGES, positions)) == subset_digest(content_digest(IMAGES), positions)
    parts = [
        SubsetDataset(IMAGES, positions), SubsetDataset(IMAGES, positions[1:]), SubsetDataset(IMAGES, swapped),
        SubsetDataset(one, positions), SubsetDataset(ShrunkImages(IMAGES, 2), positions), ShrunkImages(IMAGES, 2),
        ShrunkImages(IMAGES, 4), ShrunkImages(one, 2), ShrunkImages(SubsetDataset(IMAGES, positions), 2), IMAGES,
    ]  # fmt: skip
    digests = [content_digest(each) for each in parts]
    assert len(set(digests)) == len(digests)
    assert content_digest(SubsetDataset(changed(), positions.copy())) == digests[0]


def test_floats_that_are_bytes_over_255_are_the_same_images_as_long_as_they_are_not_made_smaller() -> None:
    """Means of bytes are rounded; those of floats are not."""
    floats = PIXELS.astype(np.float32) / 255
    assert content_digest(from_array(floats)) == content_digest(from_array(PIXELS))
    assert content_digest(from_array(PIXELS / 255)) == content_digest(from_array(PIXELS))
    floats[-1, 7, 7] = np.nextafter(floats[-1, 7, 7], np.float32(0.5))
    shrunk = [ShrunkImages(from_array(each), 2) for each in (PIXELS, PIXELS / 255)]
    others = [from_array(each) for each in (PIXELS, floats)]
    assert len({content_digest(each) for each in (*shrunk, *others)}) == 4


def test_a_part_of_a_stored_grid_follows_the_whole(tmp_path: Path) -> None:
    write(tmp_path / "set", content_of(IMAGES))
    whole, fewer = StoredImages(tmp_path / "set"), replace(SPACE, sizes=(64, 63))
    digests = {content_digest(each) for each in (whole, SubGrid(whole, fewer), SubGrid(whole, SPACE))}
    assert len(digests) == 3
    assert content_digest(SubGrid(StoredImages(tmp_path / "set"), fewer)) in digests


@pytest.fixture
def looked_through(monkeypatch: pytest.MonkeyPatch) -> list[FactorDataset]:
    """The datasets whose images were all hashed."""
    seen: list[FactorDataset] = []
    real = _of_all

    def of_all(dataset: FactorDataset, progress: Any) -> str:
        seen.append(dataset)
        return real(dataset, progress)

    monkeypatch.setattr("unbraid.datasets.digest._of_all", of_all)
    return seen


def test_a_stored_set_is_looked_through_once_and_again_when_a_file_changes(
    tmp_path: Path, looked_through: list[FactorDataset]
) -> None:
    write(tmp_path / "set", content_of(IMAGES))
    first = content_digest(StoredImages(tmp_path / "set"))
    assert content_digest(StoredImages(tmp_path / "set")) == first == content_digest(IMAGES)
    assert len(looked_through) == 2  # one of them in memory
    for spoilt in (b"", b"[" * 4000, b'{"content": "../../x", "about": {}}', b" " * 5000):
        (tmp_path / "set" / "content.json").write_bytes(spoilt)
        assert content_digest(StoredImages(tmp_path / "set")) == first
    assert len(looked_through) == 6

    # Other factors under an unchanged size and time of writing.
    path = tmp_path / "set" / "meta.json"
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    text = path.read_text().replace('"categorical"', '"ordinal"    ')
    path.write_bytes(checksummed(text.replace(json.loads(text)[KEY], BLANK).encode()))
    os.utime(path, ns=times)
    assert content_digest(StoredImages(tmp_path / "set")) not in {first, ""}
    assert len(looked_through) == 7


def test_stored_images_that_are_not_those_that_were_stored_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "set", content_of(IMAGES))
    stored = StoredImages(tmp_path / "set")
    content_digest(stored)
    with (tmp_path / "set" / "images.npy").open("r+b") as file:
        file.seek(5000)
        file.write(b"\x07")
    with pytest.raises(ValueError, match=r"images\.npy does not match its checksum"):
        content_digest(StoredImages(tmp_path / "set"))


def test_large_drawn_sets_are_looked_through_once(
    tmp_path: Path, looked_through: list[FactorDataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    monkeypatch.setattr(
        "unbraid.datasets.digest._of_all",
        lambda dataset, _: looked_through.append(dataset) or f"{len(looked_through):016}",
    )
    sprites = [Sprites(), Sprites(antialias=True), Sprites(False, True), Sprites(True, True)]
    assert [content_digest(each) for each in sprites] == [f"{number:016}" for number in (1, 2, 3, 4)]
    assert [content_digest(each) for each in (*sprites, load("sprites", cache=False))] == [
        f"{number:016}" for number in (1, 2, 3, 4, 1)
    ]
    assert content_digest(load("sprites", shrink=4)) == content_digest(ShrunkImages(Sprites(), 4))
    assert len(looked_through) == 4
    notes = sorted(path.name for path in (tmp_path / "contents").iterdir())
    assert notes == [
        "sprites-v2-antialias-drop.json", "sprites-v2-antialias.json", "sprites-v2-drop.json", "sprites-v2.json",
    ]  # fmt: skip
    kept = json.loads((tmp_path / "contents" / "sprites-v2.json").read_text())
    assert kept == {"content": f"{1:016}", "about": {"rule": RULE, "files": {}}}

    class Mine(Sprites):
        """Might draw anything."""

    content_digest(Mine())
    content_digest(Mine())
    assert len(looked_through) == 6


def test_composed_sets_are_told_apart_by_what_they_are_composed_of(
    tmp_path: Path, looked_through: list[FactorDataset], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    monkeypatch.setattr("unbraid.datasets.digest.LARGE", 1)
    space = FactorSpace(("hue", "turn"), (2, 3), ("cyclic", "cyclic"))
    layers = np.random.default_rng(0).integers(0, 256, size=(3, 2, 8, 8), dtype=np.uint8)
    red, blue = np.array([[1.0, 0, 0], [0, 1, 0]]), np.array([[1.0, 0, 0], [0, 0, 1]])
    other = layers.copy()
    other[2, 1, 7, 7] ^= 1
    sets: list[Callable[[], Composed]] = [
        lambda: Composed(space, layers, (red,)), lambda: Composed(space, layers, (blue,)),
        lambda: Composed(space, other, (red,)), lambda: Composed(replace(space, names=("a", "b")), layers, (red,)),
    ]  # fmt: skip
    for count in (4, 4):
        assert len({content_digest(each()) for each in sets}) == 4
        assert len(looked_through) == count
    pixels = sets[0]().images(np.arange(6))
    assert content_digest(sets[0]()) == content_digest(ArrayDataset(pixels, space))


@pytest.mark.slow
def test_the_sprites_are_the_same_drawn_and_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("UNBRAID_DATA", str(tmp_path))
    drawn = content_digest(load("sprites", cache=False))
    assert content_digest(load("sprites", cache=True)) == drawn
