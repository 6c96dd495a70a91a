import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from unbraid.data import FactorSpace
from unbraid.datasets import ArrayDataset, load
from unbraid.datasets.digest import content_digest
from unbraid.datasets.sprites import Sprites


def test_options_reach_the_dataset(tmp_path: Path) -> None:
    assert load("sprites", tmp_path, antialias=True) == Sprites(antialias=True)
    assert len(load("square", tmp_path, positions=8)) == 64
    assert len(load("square", tmp_path, positions=np.int64(8))) == 64


@pytest.mark.parametrize(("name", "count"), [("turntable", "n_objects"), ("teapot", "n_images")])
def test_options_in_numbers_of_numpy_open_the_set_of_plain_ones(tmp_path: Path, name: str, count: str) -> None:
    drawn = load(name, tmp_path / "numpy", **{count: np.int64(2)}, seed=np.uint8(3))
    plain = load(name, tmp_path / "plain", **{count: 2}, seed=3)
    assert content_digest(drawn) == content_digest(plain)
    assert {path.name for path in (tmp_path / "numpy").iterdir()} == {
        path.name for path in (tmp_path / "plain").iterdir()
    }


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "sprite",
            {},
            "'sprite': there is no such file or folder, and no dataset of that name; did you mean 'spr",
        ),
        ("square", {"size": 3}, "dataset 'square' has no option 'size'; it has positions, side"),
        ("square", {"positions": "8"}, "positions must be a whole number, 1 or more; got '8'"),
        ("square", {"positions": True}, "positions must be a whole number, 1 or more; got True"),
        ("flatland", {"radius": "15"}, "radius must be a finite number, at least 1 and at most 30; got '15'"),
        ("square", {"positions": 8, "without": {"x": [1, 2]}}, "without must be a condition such as"),
        ("square", {"positions": 3}, "positions must divide 64; got 3"),
    ],
)
def test_loading_says_what_is_wrong(tmp_path: Path, name: str, options: dict, message: str) -> None:
    with pytest.raises(ValueError) as caught:
        load(name, **{"root": tmp_path, **options})
    assert message in str(caught.value)


def test_a_path_may_be_an_object_and_is_never_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    np.save(tmp_path / "images.npy", np.zeros((3, 4, 4, 1), dtype=np.uint8))
    assert len(load(tmp_path)) == len(load(tmp_path / "images.npy", shrink=2)) == 3
    with pytest.raises(ValueError, match="has no option 'kind'"):
        load(tmp_path, kind=1)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileNotFoundError, match="square: no such file or folder"):
        load(Path("square"))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.zeros((4, 2, 2), np.uint8), r"uint8 \(n, height, width, channels\); got uint8 \(4, 2, 2\)"),
        (np.zeros((4, 2, 2, 1)), "got float64"),
        (np.zeros((3, 2, 2, 1), np.uint8), "3 images for 4 combinations"),
    ],
)
def test_images_in_memory_must_fit_their_factors(array: np.ndarray, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ArrayDataset(array, FactorSpace(("a",), (4,), ("ordinal",)))


@pytest.mark.lengthy
def test_datasets_need_neither_torch_nor_the_readers_of_official_files() -> None:
    """Imported, listed and drawn where torch, h5py, Pillow and matplotlib cannot be."""
    code = """
import sys
for name in ("torch", "h5py", "PIL", "matplotlib", "pandas", "scipy"):
    sys.modules[name] = None
import numpy as np
from unbraid import datasets
assert datasets.load("sprites", cache=False).images(np.array([5])).any()
"""
    subprocess.run([sys.executable, "-c", code], check=True)
