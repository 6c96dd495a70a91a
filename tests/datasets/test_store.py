import errno
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from tests.processes import started
from unbraid.base.types import UInt8Array
from unbraid.data import FactorSpace, FactorTable, Space
from unbraid.datasets import (
    ArrayDataset,
    StoredImages,
    from_array,
    leave_out,
    load,
)
from unbraid.datasets import (
    image_store as _store,
)
from unbraid.datasets.image_store import Content, cache_folder, cached, content_of, write
from unbraid.files.checksum import without_checksum

SPACE = FactorSpace(("shape", "hue"), (3, 4), ("categorical", "cyclic"), (("a", "b", "c"), (0.0, 0.25, 0.5, 0.75)))


def pictures(n: int = 12, *, binary: bool = True, channels: int = 1) -> UInt8Array:
    rng = np.random.default_rng(0)
    images = rng.integers(0, 256, size=(n, 4, 6, channels), dtype=np.uint8)
    return np.where(images > 127, 255, 0).astype(np.uint8) if binary else images


def content(images: UInt8Array, space: Space = SPACE, *, binary: bool = False, slab: int = 5) -> Content:
    slabs = (images[start : start + slab] for start in range(0, len(images), slab))
    shape: tuple[int, int, int] = tuple(images.shape[1:])  # pyright: ignore[reportAssignmentType]
    return Content(space, shape, slabs, {"source": "test"}, binary)


@pytest.mark.parametrize("binary", [False, True])
def test_what_is_stored_comes_back(tmp_path: Path, binary: bool) -> None:
    images = pictures(binary=binary)
    write(tmp_path / "set", content(images, binary=binary))
    stored = StoredImages(tmp_path / "set")
    assert (stored.space, stored.image_shape, len(stored), stored.packed) == (SPACE, (4, 6, 1), 12, binary)
    assert stored.description == {"source": "test"}
    index = np.array([11, 0, 3, 3])
    assert np.array_equal(stored.images(index), images[index])
    stored.verify()
    size = 12 * 4 * 6 // (8 if binary else 1)
    assert (tmp_path / "set" / "images.npy").stat().st_size == 128 + size
    assert sorted(path.name for path in tmp_path.iterdir()) == ["set"]


@settings(max_examples=25, deadline=None)
@given(st.data())
def test_any_binary_images_survive_packing(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    height, channels = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    n = data.draw(st.integers(1, 9))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    images = rng.integers(0, 2, size=(n, height, 8, channels), dtype=np.uint8) * np.uint8(255)
    folder = tmp_path_factory.mktemp("packed") / "set"
    space = FactorSpace(("i",), (n,), ("ordinal",))
    write(folder, content(images, space, binary=True, slab=data.draw(st.integers(1, 9))))
    assert np.array_equal(StoredImages(folder).images(np.arange(n)), images)


def test_factors_of_a_set_without_grid_come_back(tmp_path: Path) -> None:
    rows = np.random.default_rng(0).random((12, 2)).astype(np.float32)
    table = FactorTable(("azimuth", "red"), ("continuous", "continuous"), rows)
    write(tmp_path / "set", content(pictures(channels=3, binary=False), table))
    stored = StoredImages(tmp_path / "set")
    assert isinstance(stored.space, FactorTable)
    assert stored.space.names == table.names
    assert np.array_equal(stored.space.factors(np.array([3, 1])), rows[[3, 1]])


def test_an_image_is_the_callers_to_write_on(tmp_path: Path) -> None:
    images = pictures(binary=False)
    write(tmp_path / "set", content(images))
    stored = StoredImages(tmp_path / "set")
    stored.images(np.arange(12))[:] = 7
    assert np.array_equal(stored.images(np.arange(12)), images)


def test_pickling_carries_the_folder_and_not_the_images(tmp_path: Path) -> None:
    write(tmp_path / "set", content(pictures()))
    sent = pickle.dumps(StoredImages(tmp_path / "set"))
    assert len(sent) < 300
    assert np.array_equal(pickle.loads(sent).images(np.arange(12)), pictures())


def test_the_first_images_of_any_dataset_can_be_stored(tmp_path: Path) -> None:
    dataset = ArrayDataset(pictures(), SPACE)
    write(tmp_path / "set", content_of(dataset, limit=7, description={"rendered": True}))
    stored = StoredImages(tmp_path / "set")
    assert np.array_equal(stored.images(np.arange(7)), pictures()[:7])
    assert np.array_equal(stored.space.factors(np.arange(7)), SPACE.grid()[:7])
    write(tmp_path / "all", content_of(dataset, limit=99))
    assert StoredImages(tmp_path / "all").space == SPACE


@pytest.mark.slow
def test_a_large_set_opens_in_a_blink(tmp_path: Path) -> None:
    big = FactorSpace(("i",), (200_000,), ("ordinal",))
    slabs = (np.zeros((10_000, 64, 8, 1), dtype=np.uint8) for _ in range(20))
    write(tmp_path / "set", Content(big, (64, 8, 1), slabs, {}, True))
    StoredImages(tmp_path / "set")
    started = time.perf_counter()
    StoredImages(tmp_path / "set")
    assert time.perf_counter() - started < 0.1


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (content(pictures(11)), "11 images for 12 combinations"),
        (content(pictures(13)), "more than the 12 images"),
        (content(pictures(binary=False), binary=True), "0 and 255 alone"),
        (Content(SPACE, (4, 6, 1), [pictures().astype(np.int32)]), r"uint8 \(4, 6, 1\); got int32"),
        (Content(SPACE, (4, 6, 3), [pictures()]), r"uint8 \(4, 6, 3\); got uint8 \(4, 6, 1\)"),
    ],
)
def test_content_that_is_not_what_it_says_leaves_nothing(tmp_path: Path, wrong: Content, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        write(tmp_path / "set", wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_disk_that_fills_up_on_the_way_leaves_nothing(tmp_path: Path) -> None:
    def slabs() -> Iterator[UInt8Array]:
        yield pictures()[:5]
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="the disk is full"):
        write(tmp_path / "set", Content(SPACE, (4, 6, 1), slabs()))
    assert list(tmp_path.iterdir()) == []


def spoil_pixels(folder: Path) -> None:
    raw = bytearray((folder / "images.npy").read_bytes())
    raw[200] ^= 1
    (folder / "images.npy").write_bytes(raw)


def other_dtype(folder: Path) -> None:
    np.save(folder / "images.npy", np.zeros((12, 4, 6, 1), dtype=np.uint16))


def other_shape(folder: Path) -> None:
    np.save(folder / "images.npy", np.zeros((11, 4, 6, 1), dtype=np.uint8))


def other_sizes(folder: Path) -> None:
    meta = without_checksum(json.loads((folder / "meta.json").read_text()))
    (folder / "meta.json").write_text(json.dumps(meta | {"sizes": [3, 5], "values": None}))


def flip_in_meta(folder: Path, old: str, new: str) -> None:
    text = (folder / "meta.json").read_text()
    assert text.count(old) == 1
    (folder / "meta.json").write_text(text.replace(old, new))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda f: os.truncate(f / "images.npy", 300), "images.npy cannot be read"),
        (lambda f: os.truncate(f / "images.npy", 0), "images.npy cannot be read"),
        (lambda f: os.truncate(f / "images.npy", 417), "1 bytes too long"),
        (lambda f: (f / "images.npy").unlink(), "images.npy cannot be read"),
        (lambda f: (f / "meta.json").unlink(), "there is no meta.json"),
        (lambda f: (f / "meta.json").write_text("{"), "meta.json cannot be read"),
        (lambda f: (f / "meta.json").write_text("[]"), "written by another version"),
        (lambda f: (f / "meta.json").write_text('{"format": 99}'), "written by another version"),
        (lambda f: (f / "meta.json").write_text('{"format": 1}'), "cannot be read: 'image_shape'"),
        (lambda f: flip_in_meta(f, '"hue"', '"hte"'), "meta.json cannot be read: its checksum"),
        (lambda f: flip_in_meta(f, "0.75", "0.74"), "meta.json cannot be read: its checksum"),
        (lambda f: flip_in_meta(f, '"cyclic"', '"ordinal"'), "meta.json cannot be read: its checksum"),
        (other_dtype, r"images.npy is uint16 \(12, 4, 6, 1\) where uint8 \(12, 4, 6, 1\)"),
        (other_shape, r"images.npy is uint8 \(11, 4, 6, 1\)"),
        (other_sizes, "12 images for 15 combinations"),
    ],
)
def test_a_damaged_folder_says_so_in_one_line(tmp_path: Path, damage: object, message: str) -> None:
    write(tmp_path / "set", content(pictures(binary=False)))
    damage(tmp_path / "set")  # pyright: ignore[reportCallIssue]
    with pytest.raises(ValueError, match=message) as caught:
        cached(tmp_path / "set", lambda: content(pictures(binary=False)))
    assert "delete it and load the dataset again" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_description_without_checksum_is_read_as_it_is(tmp_path: Path) -> None:
    """Folders of earlier versions have none, and users take it out of what they edit."""
    write(tmp_path / "set", content(pictures()))
    path = tmp_path / "set" / "meta.json"
    meta = json.loads(path.read_text())
    del meta["checksum"]
    path.write_text(json.dumps(meta | {"names": ["form", "hue"]}, indent=1))
    assert StoredImages(tmp_path / "set").space == replace(SPACE, names=("form", "hue"))


def test_spoilt_pixels_are_found_when_asked_for(tmp_path: Path) -> None:
    write(tmp_path / "set", content(pictures(binary=False)))
    spoil_pixels(tmp_path / "set")
    with pytest.raises(ValueError, match="does not match its checksum"):
        StoredImages(tmp_path / "set").verify()


def test_a_cache_is_built_once(tmp_path: Path) -> None:
    built = []

    def make() -> Content:
        built.append(1)
        return content(pictures())

    for _ in range(3):
        assert np.array_equal(cached(tmp_path / "a" / "set", make).images(np.arange(12)), pictures())
    assert built == [1]


BUILD = """
import os, signal, sys, time
from pathlib import Path
import numpy as np
import platformdirs
from unbraid.datasets.image_store import Content, cached
from unbraid.data import FactorSpace

folder, die = Path(sys.argv[1]), sys.argv[2] == "die"

def slabs():
    for i in range(20):
        time.sleep(0.02)
        if die and i == 10:
            os.kill(os.getpid(), signal.SIGKILL)
        yield np.full((1, 4, 6, 1), i, dtype=np.uint8)

def make():
    with open(folder.parent / "log.txt", "a") as log:
        log.write("built\\n")
    return Content(FactorSpace(("i",), (20,), ("ordinal",)), (4, 6, 1), slabs())

print("ready", flush=True)
sys.stdin.readline()
assert (cached(folder, make).images(np.arange(20))[:, 0, 0, 0] == np.arange(20)).all()
"""


def built_by(folder: Path, *manners: str) -> list[int]:
    """How processes end that build the same set at the same time."""
    with ExitStack() as stack:
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        processes = [stack.enter_context(started("-c", BUILD, str(folder), manner, **pipes)) for manner in manners]
        for process in processes:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            process.communicate(timeout=120)
        return [process.returncode for process in processes]


@pytest.mark.lengthy
@pytest.mark.skipif(sys.platform == "win32", reason="sends SIGKILL")
def test_builds_at_once_and_builds_that_are_killed(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    assert built_by(folder, "die") == [-signal.SIGKILL]
    # The dead build left its temporary folder; nothing takes it for a dataset.
    assert not folder.exists()
    assert len(list(tmp_path.glob(".set.*.part"))) == 1
    assert built_by(folder, "live", "live") == [0, 0]
    assert (tmp_path / "log.txt").read_text() == "built\n" * 2  # the killed one, and one of the two
    assert list(tmp_path.glob(".set.*.part")) == []
    StoredImages(folder).verify()


def test_without_locks_the_first_to_finish_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_store, "locked", lambda *_, **__: nullcontext(False))
    meeting = threading.Barrier(2)
    results, images = [], pictures()

    def slabs() -> Iterator[UInt8Array]:
        meeting.wait(timeout=30)
        yield images

    def build() -> None:
        made = cached(tmp_path / "set", lambda: Content(SPACE, (4, 6, 1), slabs()))
        results.append(np.array_equal(made.images(np.arange(12)), images))

    builders = [threading.Thread(target=build) for _ in range(2)]
    for builder in builders:
        builder.start()
    for builder in builders:
        builder.join()
    assert results == [True, True]
    assert list(tmp_path.glob(".set.*.part")) == []


def test_a_folder_with_other_things_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "set").mkdir()
    (tmp_path / "set" / "thesis.txt").write_text("mine")
    with pytest.raises(OSError, match="not empty|exists"):
        write(tmp_path / "set", content(pictures()))
    assert [path.name for path in tmp_path.rglob("*")] == ["set", "thesis.txt"]


def test_each_preprocessing_has_its_folder() -> None:
    assert cache_folder(Path("r"), "celeba", 2, size=64, crop=True) == Path("r/celeba-v2-crop=true-size=64")


CIRCLE = FactorSpace(
    ("shape", "angle"), (2, 5), ("categorical", "cyclic"), (("box", "disc"), (0.0, 90.0, 180.0, 270.0, 360.0))
)


def test_the_first_images_of_a_grid_keep_names_of_levels_and_what_closes_the_circle(tmp_path: Path) -> None:
    write(tmp_path / "set", content_of(ArrayDataset(pictures(10), CIRCLE), limit=3))
    space = load(str(tmp_path / "set")).space
    assert isinstance(space, FactorTable)
    assert (space.sizes, space.turns, space.levels) == ((1, 3), (2, 4), CIRCLE.levels)
    assert space.values == ()  # parts of a grid are asked for by level


def test_a_table_keeps_its_values_and_a_complete_part_of_a_grid_its_grid(tmp_path: Path) -> None:
    own = from_array(pictures(3), {"angle": [0, 180, 360]}, kinds={"angle": "cyclic"}, grid=False)
    write(tmp_path / "own", content_of(own))
    space = load(str(tmp_path / "own")).space
    assert isinstance(space, FactorTable)
    assert (space.turns, space.values) == ((2,), ((0.0, 180.0, 360.0),))
    part = leave_out(ArrayDataset(pictures(10), CIRCLE), "shape == 0 or angle > 2")
    write(tmp_path / "part", content_of(part))
    again = load(str(tmp_path / "part")).space
    assert isinstance(again, FactorTable)
    assert again.complete == part.space.complete
    assert again.complete is not None
    assert again.turns == part.space.turns == (4,)


def test_a_table_stored_by_an_earlier_version_opens(tmp_path: Path) -> None:
    """Its meta.json has no keys of what such tables did not keep, and neither has that of one without them."""
    table = FactorTable(("a", "b"), ("ordinal", "continuous"), np.array([[0, 0.5], [1, 0.25]]))
    write(tmp_path / "set", content(pictures(2), table))
    meta = json.loads((tmp_path / "set" / "meta.json").read_text())
    keys = "format names kinds sizes values n_images image_shape packed sha256 about factors_sha256 checksum"
    assert list(meta) == keys.split()
    assert meta["sizes"] is meta["values"] is None
    assert load(str(tmp_path / "set")).space.names == ("a", "b")


@pytest.mark.parametrize(
    "wrong", [{"levels": [["x"]]}, {"around": 3}, {"values": [[1.0], []]}, {"complete": {}}, {"complete": {"names": 1}}]
)
def test_a_table_whose_description_does_not_fit_is_damaged(tmp_path: Path, wrong: dict[str, Any]) -> None:
    table = FactorTable(("a", "b"), ("ordinal", "continuous"), np.array([[0, 0.5], [1, 0.25]]))
    write(tmp_path / "set", content(pictures(2), table))
    path = tmp_path / "set" / "meta.json"
    path.write_text(json.dumps(without_checksum(json.loads(path.read_text())) | wrong))
    with pytest.raises(ValueError, match=r"meta.json or factors.npy cannot be read"):
        StoredImages(tmp_path / "set")
