"""Folders of pictures that were exported, read again; and what cannot be exported or shown."""

import errno
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import ArrayDataset, from_array, leave_out, load
from unbraid.datasets import image_store as _store
from unbraid.datasets.dataset_export import export
from unbraid.datasets.own_images import open_path
from unbraid.files.whole_files import DiskFull
from unbraid.show import plot_factors

SPACE = FactorSpace(("shape", "hue"), (2, 3), ("categorical", "cyclic"), (("box", "disc"), (0.0, 180.0, 360.0)))


def dataset(space: Any = SPACE, height: int = 4) -> ArrayDataset:
    pixels = np.arange(len(space) * height * 4, dtype=np.uint8)
    return ArrayDataset(pixels.reshape(len(space), height, 4, 1), space)


def test_exported_pictures_are_the_same_grid_again(tmp_path: Path) -> None:
    export(dataset(), tmp_path / "out", pictures=True)
    again = load(str(tmp_path / "out"))
    assert again.space == SPACE
    np.testing.assert_array_equal(again.images(np.arange(6)), dataset().images(np.arange(6)))
    with pytest.raises(ValueError, match=r"its factors\.json gives the factors; kinds and grid cannot be chosen"):
        open_path(tmp_path / "out", grid=False)


def test_the_first_exported_pictures_keep_levels_and_turns(tmp_path: Path) -> None:
    export(dataset(), tmp_path / "out", pictures=True, limit=2)
    space = load(str(tmp_path / "out")).space
    assert isinstance(space, FactorTable)
    assert (space.kinds, space.levels, space.turns) == (SPACE.kinds, (("box", "disc"), ()), (2, 2))


@pytest.mark.parametrize("pictures", [True, False])
def test_own_values_come_back_from_an_export(tmp_path: Path, pictures: bool) -> None:
    table = {"size": [5, 7, 9, 9], "angle": [0.1, 0.2, 1 / 3, 0.4]}
    own = from_array(np.zeros((4, 4, 4), np.uint8), table)
    export(own, tmp_path / "out", pictures=pictures)
    space = load(str(tmp_path / "out")).space
    assert isinstance(space, FactorTable)
    assert (space.kinds, space.values) == (("ordinal", "continuous"), ((5.0, 7.0, 9.0), ()))
    np.testing.assert_array_equal(space.factors(np.arange(4)), own.space.factors(np.arange(4)))


def test_whole_levels_left_out_are_still_a_grid_in_an_export(tmp_path: Path) -> None:
    part = leave_out(dataset(), "hue == 2")
    export(part, tmp_path / "out", pictures=True)
    space = load(str(tmp_path / "out")).space
    assert isinstance(space, FactorTable)
    assert space.complete == part.space.complete
    assert space.complete is not None


def test_a_table_that_was_changed_after_its_export_is_refused_or_read_by_itself(tmp_path: Path) -> None:
    export(dataset(), tmp_path / "out", pictures=True)
    table = tmp_path / "out" / "factors.csv"
    table.write_text("".join(table.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(ValueError, match=r"factors\.csv: its columns and rows are not those that factors\.json"):
        load(str(tmp_path / "out"))
    described = tmp_path / "out" / "factors.json"
    described.write_text(json.dumps({"format": 1, "kinds": 3}))
    with pytest.raises(ValueError, match=r"factors\.json: not readable as factors"):
        load(str(tmp_path / "out"))
    for other in (None, '{"mine": 1}', "["):
        described.unlink(missing_ok=True)
        if other:
            described.write_text(other)
        assert load(str(tmp_path / "out")).space.kinds == ("ordinal", "ordinal")


@pytest.mark.parametrize("pictures", [True, False])
def test_a_disk_that_fills_up_is_told_of_by_the_folder_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pictures: bool
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(*((Image.Image, "save") if pictures else (_store, "_write_images")), full)
    with pytest.raises(DiskFull, match=re.escape(f"{tmp_path / 'out'}: the disk is full")):
        export(dataset(), tmp_path / "out", pictures=pictures)
    assert not [*tmp_path.iterdir()]


@pytest.mark.skipif(sys.platform == "win32", reason="no folder is held there")
@pytest.mark.parametrize("pictures", [True, False])
def test_what_a_killed_export_left_is_removed_by_the_next(tmp_path: Path, pictures: bool) -> None:
    (tmp_path / ".out.0a1b2c3d.part" / "images").mkdir(parents=True)
    export(dataset(), tmp_path / "out", pictures=pictures)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_labels_without_images_are_not_written_or_shown(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("size,shape\n1,box\n2,disc\n")
    labels = load(str(tmp_path / "labels.csv"))
    message = "images are needed; this dataset holds labels without images"
    for pictures in (True, False):
        with pytest.raises(ValueError, match=message):
            export(labels, tmp_path / "out", pictures=pictures)
    with pytest.raises(ValueError, match=message):
        plot_factors(labels)
    with pytest.raises(ValueError, match=message):
        load(str(tmp_path / "labels.csv"), shrink=2)
    assert not (tmp_path / "out").exists()
