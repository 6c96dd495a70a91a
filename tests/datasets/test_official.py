"""Each official loader on a small file of the official layout: image i must have the factors of index i."""

import io
import tarfile
import tracemalloc
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat

from unbraid import datasets
from unbraid.data import FactorSpace
from unbraid.datasets import containers
from unbraid.datasets import official_files as _official
from unbraid.datasets.containers import bundle, hdf5_slabs
from unbraid.datasets.image_store import Content, StoredImages, write
from unbraid.datasets.official import (
    cars3d,
    celeba,
    chairs3d,
    coil100,
    dsprites,
    faces3d,
    modelnet40,
    mpi3d,
    shapes3d,
    teapots,
)
from unbraid.datasets.official_files import ChecksumWarning
from unbraid.datasets.sprites import sprites_space


@pytest.fixture(autouse=True)
def _small_slabs(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that every file takes several slabs, the last of them incomplete."""
    monkeypatch.setattr(containers, "SLAB_BYTES", 50_000)


def stored(tmp_path: Path, content: Content) -> StoredImages:
    write(tmp_path / "stored", content)
    return StoredImages(tmp_path / "stored")


def shrunk(space: FactorSpace, *sizes: int) -> FactorSpace:
    return FactorSpace(space.names, sizes, space.kinds)


def coded(levels: Any, size: int = 64, channels: int = 3) -> Any:
    """An image that tells its factors: pixel (0, k) of it is 20 + level k; the rest is a number that is its own."""
    image = np.full((size, size, channels), 100 + hash(tuple(map(int, levels))) % 100, dtype=np.uint8)
    image[0, : len(levels)] = 20 + np.asarray(levels)[:, None]
    return image


def assert_coded(dataset: StoredImages) -> None:
    index = np.random.default_rng(0).permutation(len(dataset))
    for image, levels in zip(dataset.images(index), dataset.space.factors(index), strict=True):
        np.testing.assert_array_equal(image, coded(levels, channels=image.shape[-1]))


# --- dSprites -------------------------------------------------------------------------------------------------------

SPRITES = shrunk(sprites_space(), 3, 2, 4, 3, 2)


def sprite_arrays() -> dict[str, Any]:
    images = np.zeros((len(SPRITES), 64, 64), dtype=np.uint8)
    images[np.arange(len(SPRITES)), np.arange(len(SPRITES)) // 64, np.arange(len(SPRITES)) % 64] = 1
    classes = np.concatenate([np.zeros((len(SPRITES), 1), int), SPRITES.grid()], axis=1)
    return {"imgs": images, "latents_classes": classes, "latents_values": classes * 0.5}


def write_sprites_npz(path: Path, **changes: Any) -> Path:
    # The official file also holds a pickled dict, which must be passed over.
    metadata = np.array({"author": "someone"}, dtype=object)
    np.savez_compressed(path, **(sprite_arrays() | {"metadata": metadata} | changes))
    return path


def write_sprites_hdf5(path: Path) -> Path:
    arrays = sprite_arrays()
    with h5py.File(path, "w") as file:
        file.create_dataset("imgs", data=arrays["imgs"], chunks=(5, 2, 4), compression="gzip")
        file.create_dataset("latents/classes", data=arrays["latents_classes"])
        file.create_dataset("latents/values", data=arrays["latents_values"])
    return path


@pytest.mark.parametrize(("name", "make"), [("x.npz", write_sprites_npz), ("x.hdf5", write_sprites_hdf5)])
def test_dsprites(tmp_path: Path, name: str, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path / name)
    dataset = stored(tmp_path, dsprites.read(path, SPRITES))
    assert dataset.packed
    assert dataset.space == SPRITES
    images = dataset.images(np.arange(len(SPRITES)))
    np.testing.assert_array_equal(images, sprite_arrays()["imgs"][..., None] * 255)


def test_dsprites_whose_labels_are_in_another_order_is_refused(tmp_path: Path) -> None:
    classes = sprite_arrays()["latents_classes"]
    classes[[5, 6]] = classes[[6, 5]]
    path = write_sprites_npz(tmp_path / "x.npz", latents_classes=classes)
    with pytest.raises(ValueError, match=r"image 5 is labelled \[0, 0, 1, 0, 0\] where \[0, 0, 0, 2, 1\]"):
        dsprites.read(path, SPRITES)


def test_dsprites_with_other_pixels_is_refused(tmp_path: Path) -> None:
    path = write_sprites_npz(tmp_path / "x.npz", imgs=sprite_arrays()["imgs"] * 7)
    with pytest.raises(ValueError, match="pixels must be 0 or 1; found 7"):
        stored(tmp_path, dsprites.read(path, SPRITES))


def test_the_duplicate_orientation_can_be_dropped(tmp_path: Path) -> None:
    path = write_sprites_npz(tmp_path / "x.npz")
    whole = stored(tmp_path, dsprites.read(path, SPRITES))
    part = dsprites.SubGrid(whole, shrunk(SPRITES, 3, 2, 3, 3, 2))
    kept = SPRITES.grid()[:, 2] < 3
    assert len(part) == kept.sum()
    np.testing.assert_array_equal(part.images(np.arange(len(part))), whole.images(np.flatnonzero(kept)))
    np.testing.assert_array_equal(part.space.grid(), SPRITES.grid()[kept])
    with pytest.raises(ValueError, match="outside the dataset"):
        part.images(np.array([len(part)]))


# --- 3D Shapes ------------------------------------------------------------------------------------------------------

SHAPES = shrunk(shapes3d.SPACE, 2, 3, 2, 2, 4, 3)


def shape_arrays() -> tuple[Any, Any]:
    grid = SHAPES.grid()
    labels = np.stack([np.linspace(-30, 30, 6)[column] for column in grid.T], axis=1)
    return np.stack([coded(levels) for levels in grid]), labels


def test_shapes3d_hdf5(tmp_path: Path) -> None:
    images, labels = shape_arrays()
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file.create_dataset("images", data=images, chunks=(7, 4, 8, 1), compression="gzip")
        file.create_dataset("labels", data=labels)
    assert_coded(stored(tmp_path, shapes3d.read(tmp_path / "3dshapes.h5", SHAPES)))


def test_shapes3d_old_npz_with_one_axis_per_factor(tmp_path: Path) -> None:
    images, labels = shape_arrays()
    shape = SHAPES.sizes
    np.savez(tmp_path / "x.npz", images=images.reshape(*shape, 64, 64, 3), labels=labels.reshape(*shape, 6))
    assert_coded(stored(tmp_path, shapes3d.read(tmp_path / "x.npz", SHAPES)))


def test_shapes3d_whose_labels_are_in_another_order_is_refused(tmp_path: Path) -> None:
    images, labels = shape_arrays()
    with h5py.File(tmp_path / "3dshapes.h5", "w") as file:
        file["images"], file["labels"] = images, labels[::-1]
    with pytest.raises(ValueError, match="image 0 is labelled"):
        shapes3d.read(tmp_path / "3dshapes.h5", SHAPES)


# --- MPI3D, teapots -------------------------------------------------------------------------------------------------

ARM = shrunk(mpi3d.SPACE, 2, 2, 2, 3, 2, 3, 2)


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_mpi3d(tmp_path: Path, save: Callable[..., None]) -> None:
    save(tmp_path / "mpi3d_toy.npz", images=np.stack([coded(levels) for levels in ARM.grid()]))
    assert_coded(stored(tmp_path, mpi3d.read(tmp_path / "mpi3d_toy.npz", ARM)))


def test_mpi3d_releases_differ_in_their_grids() -> None:
    assert len(mpi3d.SPACE) == 1_036_800
    assert len(mpi3d.EARLY) == len(mpi3d.COMPLEX) == 460_800
    assert mpi3d.EARLY.sizes == (4, 4, 2, 3, 3, 40, 40)
    with pytest.raises(ValueError, match="release must be 'final' or 'early'; got 'latest'"):
        datasets.load("mpi3d_toy", "/nowhere", release="latest")


def write_teapots(path: Path, **changes: Any) -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    images, factors = rng.integers(0, 256, (23, 64, 64, 3), dtype=np.int32), rng.random((23, 5))
    np.savez(path, **({"images": images, "gts": factors} | changes))
    return images, factors


def test_teapots(tmp_path: Path) -> None:
    images, factors = write_teapots(tmp_path / "teapots.npz")
    dataset = stored(tmp_path, teapots.read(tmp_path / "teapots.npz", 23))
    np.testing.assert_array_equal(dataset.images(np.arange(23)), images)
    np.testing.assert_array_equal(dataset.space.factors(np.arange(23)), factors)
    assert dataset.space.names == ("azimuth", "elevation", "red", "green", "blue")


def test_teapots_with_pixels_beyond_a_byte_are_refused(tmp_path: Path) -> None:
    images, _ = write_teapots(tmp_path / "teapots.npz")
    images[17, 3, 3, 0] = 256
    write_teapots(tmp_path / "teapots.npz", images=images)
    with pytest.raises(ValueError, match="pixels must be 0 to 255; found 0 to 256"):
        stored(tmp_path, teapots.read(tmp_path / "teapots.npz", 23))


# --- pictures in archives -------------------------------------------------------------------------------------------


def png(image: Any) -> bytes:
    out = io.BytesIO()
    Image.fromarray(image).save(out, format="PNG")
    return out.getvalue()


def archive(path: Path, files: dict[str, bytes]) -> Path:
    """Written in the order given, as a zip, a tar, a compressed tar or a folder, as the name says."""
    if path.suffix == ".zip":
        with zipfile.ZipFile(path, "w") as out:
            for name, data in files.items():
                out.writestr(name, data)
    elif path.suffix in {".tar", ".gz"}:
        with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as out:
            for name, data in files.items():
                member = tarfile.TarInfo(name)
                member.size = len(data)
                out.addfile(member, io.BytesIO(data))
    else:
        for name, data in files.items():
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(data)
    return path


def quarters(number: int, size: int, channels: int = 3) -> Any:
    """A picture that scaling leaves recognisable: its four quarters differ, and so does each picture."""
    image = np.zeros((size, size, channels), dtype=np.uint8)
    half = size // 2
    image[:half, :half] = 40 + number
    image[:half, half:] = 80
    image[half:, :half] = 160
    image[half:, half:, 0] = 255
    return image


def assert_quarters(image: Any, number: int) -> None:
    assert abs(int(image[10, 10, 0]) - 40 - number) <= 1
    assert (image[10, 50] == 80).all()
    assert (image[50, 10] == 160).all()
    assert image[50, 50, 0] == 255


CARS = shrunk(cars3d.SPACE, 2, 3, 3)
ORDER = ("car_003_mesh", "car_001_mesh", "car_002_mesh")  # of list.txt, unlike that of the archive


def car_files() -> dict[str, bytes]:
    files = {"data/sprites/list.txt": b"nothing\n"}
    for name in sorted(ORDER):
        # height, width, colour, azimuth, elevation
        views = np.zeros((128, 128, 3, 3, 2), dtype=np.uint8)
        for azimuth in range(3):
            for elevation in range(2):
                number = ORDER.index(name) + 3 * azimuth + 9 * elevation
                views[..., azimuth, elevation] = quarters(number, 128)
        out = io.BytesIO()
        savemat(out, {"im": views, "mask": views[:, :, 0]}, do_compression=True)
        files[f"data/cars/{name}.mat"] = out.getvalue()
    files["data/cars/list.txt"] = "".join(f"{name}\n" for name in ORDER).encode()
    return files


@pytest.mark.parametrize("form", ["analogy.tar.gz", "data"])
def test_cars3d(tmp_path: Path, form: str) -> None:
    files = car_files()
    if form == "data":
        files = {name.removeprefix("data/"): data for name, data in files.items()}
    dataset = stored(tmp_path, cars3d.read(archive(tmp_path / form, files), CARS))
    assert dataset.image_shape == (64, 64, 3)
    for index, (elevation, azimuth, number) in enumerate(CARS.grid()):
        assert_quarters(dataset.images(np.array([index]))[0], number + 3 * azimuth + 9 * elevation)


OBJECTS = shrunk(coil100.SPACE, 11, 4)


@pytest.mark.parametrize("fault", [AttributeError("no\nname"), AssertionError(), ZeroDivisionError("by 0")])
def test_whatever_a_damaged_matlab_file_raises_is_one_line(fault: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    def loadmat(*_: Any, **__: Any) -> None:
        raise fault

    monkeypatch.setattr("scipy.io.loadmat", loadmat)
    with pytest.raises(ValueError, match=rf"a\.mat is not a readable MATLAB file \({type(fault).__name__}: ") as caught:
        cars3d._views("a.mat", b"", 4, 24)  # pyright: ignore[reportPrivateUsage]
    assert "\n" not in str(caught.value)


def coil_files() -> dict[str, bytes]:
    files = {"coil-100/convertGroupppm2png.pl": b"#!/usr/bin/perl"}
    # As text sorts: obj10 before obj2, 180 before 90.
    for name, number in sorted((f"coil-100/obj{k + 1}__{90 * v}.png", 4 * k + v) for k, v in OBJECTS.grid()):
        files[name] = png(quarters(number, 128))
    return files


@pytest.mark.parametrize("form", ["coil-100.zip", "folder"])
def test_coil100(tmp_path: Path, form: str) -> None:
    dataset = stored(tmp_path, coil100.read(archive(tmp_path / form, coil_files()), OBJECTS))
    for index, image in enumerate(dataset.images(np.arange(len(OBJECTS)))):
        assert_quarters(image, index)


@pytest.mark.parametrize("form", ["coil-100.zip", "folder"])
def test_a_second_copy_of_a_picture_is_not_taken_for_it(tmp_path: Path, form: str) -> None:
    files = coil_files()
    path = archive(tmp_path / form, files | {"coil-100/small/obj2__90.png": png(np.zeros((128, 128, 3), np.uint8))})
    with pytest.raises(ValueError, match=r"obj2__90\.png and .*obj2__90\.png are two files for one; take one of them"):
        stored(tmp_path, coil100.read(path, OBJECTS))


CHAIRS = shrunk(chairs3d.SPACE, 2, 2, 3)


def chair_files() -> dict[str, bytes]:
    files = {}
    for row, (chair, elevation, azimuth) in reversed(list(enumerate(CHAIRS.grid()))):
        picture = np.full((600, 600, 3), 255, dtype=np.uint8)
        picture[100:500, 100:500] = quarters(row, 400)[..., :1]
        name = f"image_{elevation * 32 + azimuth:03d}_p0{20 + 10 * elevation}_t{(0, 11, 104)[azimuth]:03d}_r096.png"
        files[f"rendered_chairs/{'ab'[chair]}5f/renders/{name}"] = png(picture)
    return files | {"rendered_chairs/all_chair_names.mat": b"unread"}


@pytest.mark.parametrize("form", ["rendered_chairs.tar", "folder"])
def test_chairs3d(tmp_path: Path, form: str) -> None:
    dataset = stored(tmp_path, chairs3d.read(archive(tmp_path / form, chair_files()), "crop", CHAIRS))
    assert dataset.image_shape == (64, 64, 1)
    for index, image in enumerate(dataset.images(np.arange(len(CHAIRS)))):
        assert_quarters(image, index)


def test_chairs3d_can_be_resized_whole(tmp_path: Path) -> None:
    path = archive(tmp_path / "rendered_chairs.tar", chair_files())
    image = stored(tmp_path, chairs3d.read(path, "resize", CHAIRS)).images(np.array([1]))[0]
    assert image[3, 3, 0] == 255
    assert abs(int(image[20, 20, 0]) - 41) <= 1
    with pytest.raises(ValueError, match="preprocessing must be 'crop' or 'resize'; got 'zoom'"):
        datasets.load("chairs3d", tmp_path, preprocessing="zoom")


def test_a_picture_smaller_than_its_middle_is_refused(tmp_path: Path) -> None:
    files = {name: png(np.full((64, 64), 9, np.uint8)) for name in chair_files() if name.endswith(".png")}
    with pytest.raises(ValueError, match=r"_r096\.png has 64 x 64 pixels, and the middle 400 x 400 were to be taken"):
        stored(tmp_path, chairs3d.read(archive(tmp_path / "x.tar", files), "crop", CHAIRS))
    whole = stored(tmp_path, chairs3d.read(tmp_path / "x.tar", "resize", CHAIRS))
    assert (whole.images(np.array([0])) == 9).all()


def celeba_files(tmp_path: Path, form: str) -> tuple[Path, Path, Any]:
    levels = np.random.default_rng(0).integers(0, 2, (7, 40))
    names = [f"{number:06d}.jpg" for number in (3, 1, 7, 2, 6, 5, 4)]
    lines = ["7", " ".join(celeba.NAMES) + " "]
    lines += [
        f"{name} " + " ".join(f"{2 * level - 1:2d}" for level in row) for name, row in zip(names, levels, strict=True)
    ]
    attributes = tmp_path / "list_attr_celeba.txt"
    attributes.write_text("\n".join(lines) + "\n")
    pictures = {}
    for number, name in reversed(list(enumerate(names))):
        picture = np.full((218, 178, 3), 255, dtype=np.uint8)
        picture[35:183, 15:163] = quarters(10 * number, 148)
        pictures[f"img_align_celeba/{name}"] = png(picture)
    return archive(tmp_path / form, pictures), attributes, levels


@pytest.mark.parametrize("form", ["img_align_celeba.zip", "folder"])
def test_celeba(tmp_path: Path, form: str) -> None:
    path, attributes, levels = celeba_files(tmp_path, form)
    dataset = stored(tmp_path, celeba.read(path, attributes, "crop", 7))
    np.testing.assert_array_equal(dataset.space.factors(np.arange(7)), levels)
    assert dataset.space.names[20] == "Male"
    for index, image in enumerate(dataset.images(np.arange(7))):
        assert_quarters(image, 10 * index)
        assert abs(int(image[1, 1, 0]) - 40 - 10 * index) <= 1  # nothing of the white margin is left


def test_celeba_passes_over_other_files_of_one_name(tmp_path: Path) -> None:
    path, attributes, _ = celeba_files(tmp_path, "folder")
    for place in (path, path / "img_align_celeba"):
        (place / "Thumbs.db").write_bytes(b"")
    stored(tmp_path, celeba.read(path, attributes, "crop", 7))
    (path / "000003.jpg").write_bytes((path / "img_align_celeba" / "000003.jpg").read_bytes())
    with pytest.raises(ValueError, match="two files for one"):
        stored(tmp_path, celeba.read(path, attributes, "crop", 7))


def test_celeba_resized_keeps_the_whole_picture(tmp_path: Path) -> None:
    path, attributes, _ = celeba_files(tmp_path, "img_align_celeba.zip")
    image = stored(tmp_path, celeba.read(path, attributes, "resize", 7)).images(np.array([0]))[0]
    assert (image[:8] == 255).all()
    assert (image[20, 20] < 60).all()


# --- 3D Faces -------------------------------------------------------------------------------------------------------

FACES = shrunk(faces3d.SPACE, 3, 2, 2, 4)


@pytest.mark.parametrize("zipped", [True, False])
def test_faces3d_in_both_formats_of_torch(tmp_path: Path, zipped: bool) -> None:
    images = np.stack([coded(levels, channels=1)[..., 0] for levels in FACES.grid()])
    tensor = torch.from_numpy(images.reshape(*FACES.sizes, 64, 64))
    torch.save(tensor, tmp_path / "faces.pth", _use_new_zipfile_serialization=zipped)
    assert_coded(stored(tmp_path, faces3d.read(tmp_path / "faces.pth", FACES)))


class Harmful:
    def __init__(self, witness: Path) -> None:
        self.witness = witness

    def __reduce__(self) -> Any:
        return Path.write_text, (self.witness, "code was run")


def test_faces3d_runs_no_code_of_the_file(tmp_path: Path) -> None:
    torch.save({"images": Harmful(tmp_path / "witness")}, tmp_path / "faces.pth")
    with pytest.raises(ValueError, match="damaged, or holds more than tensors"):
        stored(tmp_path, faces3d.read(tmp_path / "faces.pth", FACES))
    assert not (tmp_path / "witness").exists()


@pytest.mark.parametrize("content", [b"", b"nonsense", b"PK\x03\x04nonsense"])
def test_faces3d_refuses_what_is_no_tensor(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "faces.pth").write_bytes(content)
    with pytest.raises(ValueError, match="damaged, or holds more than tensors"):
        stored(tmp_path, faces3d.read(tmp_path / "faces.pth", FACES))
    torch.save(torch.zeros(3), tmp_path / "faces.pth")
    with pytest.raises(ValueError, match=r"holds torch.float32 \(3,\) where a uint8 tensor \(3, 2, 2, 4, 64, 64\)"):
        stored(tmp_path, faces3d.read(tmp_path / "faces.pth", FACES))


def test_a_member_of_a_zip_gets_no_memory_for_what_it_only_declares(tmp_path: Path) -> None:
    whole = archive(tmp_path / "coil-100.zip", coil_files()).read_bytes()
    name = next(iter(coil_files())).encode()
    central = whole.rindex(b"PK\1\2", 0, whole.rindex(name))
    for field in (20, 24):  # packed size, size
        broken = bytearray(whole)
        broken[central + field : central + field + 4] = (1 << 30).to_bytes(4, "little")
        (tmp_path / "coil-100.zip").write_bytes(broken)
        tracemalloc.start()
        try:
            with (
                pytest.raises(ValueError, match=r"cannot have the [0-9,]+ bytes that it declares"),
                bundle(tmp_path / "coil-100.zip") as files,
            ):
                files.read(name.decode())
            assert tracemalloc.get_traced_memory()[1] < 1 << 24
        finally:
            tracemalloc.stop()


# --- ModelNet40 -----------------------------------------------------------------------------------------------------

PYRAMID = b"OFF\n5 5 0\n0 0 0\n2 0 0\n2 2 0\n0 2 0\n1 1 %d\n4 0 1 2 3\n3 0 1 4\n3 1 2 4\n3 2 3 4\n3 3 0 4\n"


def test_off_reads_the_glued_header_and_fans_polygons() -> None:
    vertices, triangles = modelnet40.read_off(PYRAMID % 3, "a.off")
    assert vertices[4].tolist() == [1, 1, 3]
    assert triangles.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 4], [1, 2, 4], [2, 3, 4], [3, 0, 4]]
    glued = (PYRAMID % 3).replace(b"OFF\n5 5 0", b"OFF5 5 0")
    commented = (PYRAMID % 3).replace(b"OFF\n", b"OFF # by hand\n\n").replace(b"3 0 1 4\n", b"3 0 1 4 255 0 0\n")
    for other in (glued, commented):
        np.testing.assert_array_equal(modelnet40.read_off(other, "a.off")[0], vertices)
        np.testing.assert_array_equal(modelnet40.read_off(other, "a.off")[1], triangles)


@pytest.mark.parametrize("form", ["ModelNet40.zip", "folder"])
def test_modelnet40_draws_each_mesh_from_all_sides(tmp_path: Path, form: str) -> None:
    meshes = {f"ModelNet40/airplane/train/airplane_000{k}.off": PYRAMID % (1 + 2 * k) for k in (2, 1)}
    others = {"ModelNet40/airplane/test/airplane_0627.off": b"unread", "ModelNet40/bed/train/bed_0001.off": b"unread"}
    space = shrunk(modelnet40.SPACE, 2, 8)
    dataset = stored(tmp_path, modelnet40.read(archive(tmp_path / form, meshes | others), space))
    images = dataset.images(np.arange(16)).astype(int)
    # A pyramid on a square looks the same after a quarter turn, and unlike itself after an eighth.
    np.testing.assert_allclose(images[0], images[2], atol=2)
    assert np.abs(images[0] - images[1]).max() > 20
    lit = [np.argwhere(images[first].max(axis=-1) > 0) for first in (0, 8)]
    flat, steep = (np.ptp(rows, axis=0) for rows in lit)
    assert steep[0] / steep[1] > 1.3 * flat[0] / flat[1]
    assert dataset.description["rendered"] is True


# --- where files are, and what is wrong with them -------------------------------------------------------------------


@pytest.mark.parametrize("place", ["official", "."])
def test_a_file_is_found_where_it_was_put(tmp_path: Path, place: str) -> None:
    (tmp_path / place).mkdir(exist_ok=True)
    (tmp_path / place / "coil-100").mkdir()
    file, path = _official.located("coil100", coil100.FILES, tmp_path, None)
    assert path == tmp_path / place / "coil-100"
    assert file == coil100.FILES[0]


def test_a_renamed_copy_is_taken_by_its_form(tmp_path: Path) -> None:
    for name, form in (("mine.h5", 1), ("mine.npz", 0)):
        (tmp_path / name).touch()
        assert _official.located("dsprites", dsprites.FILES, tmp_path, tmp_path / name)[0] == dsprites.FILES[form]
    (tmp_path / "mine.zip").touch()
    with pytest.raises(ValueError, match=r"mine.zip: not a file of dataset 'dsprites'\. It is dsprites_ndarray"):
        _official.located("dsprites", dsprites.FILES, tmp_path, tmp_path / "mine.zip")


def test_the_public_door_refuses_a_file_of_another_size(tmp_path: Path) -> None:
    path = write_sprites_npz(tmp_path / dsprites.FILES[0].name)
    with pytest.raises(
        ValueError, match=r"'latents_classes' is int64 \(144, 6\) where whole numbers \(737280, 6\) were"
    ):
        datasets.load("dsprites", tmp_path, verify=False)
    assert not [entry for entry in tmp_path.iterdir() if entry.is_dir()]
    assert path.exists()


def test_the_whole_way_from_file_to_images(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mpi3d.read, "__defaults__", (ARM,))
    np.savez(tmp_path / "mpi3d_real.npz", images=np.stack([coded(levels) for levels in ARM.grid()]))
    done: list[tuple[int, int]] = []
    with pytest.warns(ChecksumWarning, match=r"mpi3d_real.npz: its checksum is md5:[0-9a-f]{32}, expected md5:0f33f6"):
        dataset = datasets.load("mpi3d_real", tmp_path, progress=lambda *counts: done.append(counts))
    assert isinstance(dataset, StoredImages)
    assert_coded(dataset)
    size = (tmp_path / "mpi3d_real.npz").stat().st_size
    checked = done.index((size, size))
    assert {all_bytes for _, all_bytes in done[: checked + 1]} == {size}
    assert {all_images for _, all_images in done[checked + 1 :]} == {len(ARM)}
    assert done[-1] == (len(ARM), len(ARM))
    assert dataset.description["source"] == "mpi3d_real.npz"
    assert dataset.description["rendered"] is False
    # The second time the file is not needed any more.
    (tmp_path / "mpi3d_real.npz").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert_coded(datasets.load("mpi3d_real", tmp_path))  # pyright: ignore[reportArgumentType]


def stored_arm(folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """A file of a small MPI3D, outside the folder of all datasets, and one that differs in a pixel."""
    monkeypatch.setattr(mpi3d.read, "__defaults__", (ARM,))
    images = np.stack([coded(levels) for levels in ARM.grid()])
    (folder / "here").mkdir()
    np.savez(folder / "here" / "mpi3d_real.npz", images=images)
    images[0, 0, 0] ^= 1
    np.savez(folder / "here" / "other.npz", images=images)
    return folder / "here" / "mpi3d_real.npz", folder / "here" / "other.npz"


@pytest.mark.filterwarnings("ignore::unbraid.datasets.ChecksumWarning")
def test_a_file_that_is_given_is_that_of_what_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, other = stored_arm(tmp_path, monkeypatch)
    stored = datasets.load("mpi3d_real", tmp_path, file=file)
    assert isinstance(stored, StoredImages)
    assert len(datasets.load("mpi3d_real", tmp_path, file=file)) == len(stored)
    with monkeypatch.context() as context:  # it was compared, and is not read again
        context.setattr(_official, "digest", None)
        assert len(datasets.load("mpi3d_real", tmp_path, file=file)) == len(stored)
    with pytest.raises(ValueError, match=r"other\.npz: its checksum is md5:.*delete the folder") as caught:
        datasets.load("mpi3d_real", tmp_path, file=other)
    assert str(stored.folder) in str(caught.value)
    assert len(datasets.load("mpi3d_real", tmp_path, file=other, verify=False)) == len(stored)
    file.write_bytes(other.read_bytes())
    with pytest.raises(ValueError, match=r"mpi3d_real\.npz: its checksum is md5:.*delete the folder"):
        datasets.load("mpi3d_real", tmp_path, file=file)
    file.unlink()
    with pytest.raises(FileNotFoundError, match=r"mpi3d_real\.npz: no such file"):
        datasets.load("mpi3d_real", tmp_path, file=file)
    assert len(datasets.load("mpi3d_real", tmp_path)) == len(stored)


def test_an_incomplete_file_is_refused_by_its_size(tmp_path: Path) -> None:
    (tmp_path / "3dshapes.h5").write_bytes(b"\x89HDF")
    with pytest.raises(
        ValueError, match=r"3dshapes.h5: incomplete, 4 of 267,573,662 bytes; delete it and get it again"
    ):
        datasets.load("shapes3d", tmp_path)
    with pytest.raises(ValueError, match=r"3dshapes.h5: damaged or not an HDF5 file"):
        datasets.load("shapes3d", tmp_path, verify=False)


@pytest.mark.parametrize(
    ("name", "keep"),
    [
        *((name, keep) for name in ("mpi3d_real.npz", "3dshapes.h5", "coil-100.zip") for keep in (0.3, 0.999)),
        # A tar ends in padding, which nobody misses.
        *((name, keep) for name in ("analogy.tar.gz", "chairs.tar") for keep in (0.3, 0.7)),
    ],
)
def test_a_truncated_file_is_one_clear_line_and_leaves_nothing(tmp_path: Path, name: str, keep: float) -> None:
    path = tmp_path / name
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (len(ARM), 64, 64, 3), dtype=np.uint8)
    if name.endswith(".npz"):
        np.savez_compressed(path, images=noise)
    elif name.endswith(".h5"):
        with h5py.File(path, "w") as file:
            file.create_dataset("images", data=noise[: len(SHAPES)], chunks=(7, 8, 8, 3), compression="gzip")
    else:
        archive(path, {".zip": coil_files, ".gz": car_files, ".tar": chair_files}[path.suffix]())
    path.write_bytes(path.read_bytes()[: int(keep * path.stat().st_size)])
    readers: dict[str, Callable[[], Content]] = {
        ".npz": lambda: mpi3d.read(path, ARM),
        ".h5": lambda: shapes3d.read(path, SHAPES),
        ".zip": lambda: coil100.read(path, OBJECTS),
        ".gz": lambda: cars3d.read(path, CARS),
        ".tar": lambda: chairs3d.read(path, "crop", CHAIRS),
    }
    with pytest.raises(ValueError, match=path.name) as caught:
        stored(tmp_path, readers[path.suffix]())
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "stored").exists()


def test_a_flipped_byte_is_noticed_by_the_checksum_inside_the_zip(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, images=np.zeros((len(ARM), 64, 64, 3), dtype=np.uint8))
    data = bytearray(path.read_bytes())
    data[-5000] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(ValueError, match="damaged or not an .npz file"):
        stored(tmp_path, mpi3d.read(path, ARM))


def test_an_array_longer_than_its_header_is_refused(tmp_path: Path) -> None:
    out = io.BytesIO()
    np.save(out, np.zeros((len(ARM), 64, 64, 3), dtype=np.uint8))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("images.npy", out.getvalue() + b"more")
    with pytest.raises(ValueError, match="array 'images' is longer than its header says"):
        stored(tmp_path, mpi3d.read(tmp_path / "x.npz", ARM))


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (
            np.zeros((10, 64, 64, 3), np.uint8),
            r"uint8 \(10, 64, 64, 3\) where unsigned whole numbers \(288, 64, 64, 3\) were expected",
        ),
        (np.zeros((288, 64, 64, 3), np.float32), r"'images' is float32 \(288, 64, 64, 3\)"),
        (np.array([{}] * 288, dtype=object), "holds pickled objects, which are never loaded"),
        (np.zeros((3, 64, 64, 288), np.uint8).T, "Fortran order"),
        (None, "no array 'images'; it holds labels"),
    ],
)
def test_an_npz_with_another_array_is_refused(tmp_path: Path, images: Any, message: str) -> None:
    np.savez(tmp_path / "x.npz", **({"labels": np.zeros(3)} if images is None else {"images": images}))
    with pytest.raises(ValueError, match=message):
        stored(tmp_path, mpi3d.read(tmp_path / "x.npz", ARM))


@pytest.mark.parametrize("kind", ["external link", "soft link", "link above", "external data", "virtual"])
def test_an_hdf5_whose_data_lie_elsewhere_is_refused(tmp_path: Path, kind: str) -> None:
    images = np.zeros((*SHAPES.sizes[:1], 64, 64, 3), dtype=np.uint8)
    with h5py.File(tmp_path / "secret.h5", "w") as file:
        file["images"] = images
    (tmp_path / "secret").write_bytes(images.tobytes())
    member = "above/images" if kind == "link above" else "images"
    with h5py.File(tmp_path / "x.h5", "w") as file:
        if kind == "external data":
            file.create_dataset(member, images.shape, images.dtype, external=[(tmp_path / "secret", 0, images.size)])
        elif kind == "virtual":
            layout = h5py.VirtualLayout(images.shape, images.dtype)
            layout[:] = h5py.VirtualSource(tmp_path / "secret.h5", "images", images.shape)
            file.create_virtual_dataset(member, layout)
        elif kind == "soft link":
            file["other"] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "images")
            file[member] = h5py.SoftLink("/other")
        else:
            place = "above" if kind == "link above" else member
            file[place] = h5py.ExternalLink(str(tmp_path / "secret.h5"), "/" if kind == "link above" else "images")
    with pytest.raises(ValueError, match=f"x.h5: .*'{member}' (is a link|lie in another file)"):
        list(hdf5_slabs(tmp_path / "x.h5", member, images.shape, "u"))


def test_an_unpacked_archive_with_a_link_that_leads_out_is_refused(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "cars" / ".hidden").mkdir(parents=True)
    (tmp_path / "cars" / ".hidden" / "list.txt").write_text("hidden")
    (tmp_path / "cars" / "list.txt").symlink_to(tmp_path / "secret")
    with bundle(tmp_path / "cars") as files:
        assert files.names == ["list.txt"]
        with pytest.raises(ValueError, match=r"'list.txt' is a link that leads out of"):
            files.read("list.txt")


def test_git_checksums_are_those_of_git(tmp_path: Path) -> None:
    # `printf 'hello\n' | git hash-object --stdin`
    (tmp_path / "x").write_bytes(b"hello\n")
    assert _official.digest(tmp_path / "x", "git-sha1") == "ce013625030ba8dba906f756967f9e9ca394464a"


@pytest.mark.parametrize("name", [name for name, row in datasets.DATASETS.items() if row.files])
def test_the_table_agrees_with_the_published_numbers(name: str) -> None:
    published = {
        "dsprites": (737_280, (3, 6, 40, 32, 32)),
        "shapes3d": (480_000, (10, 10, 10, 8, 4, 15)),
        "mpi3d_toy": (1_036_800, (6, 6, 2, 3, 3, 40, 40)),
        "mpi3d_realistic": (1_036_800, (6, 6, 2, 3, 3, 40, 40)),
        "mpi3d_real": (1_036_800, (6, 6, 2, 3, 3, 40, 40)),
        "mpi3d_real_complex": (460_800, (4, 4, 2, 3, 3, 40, 40)),
        "cars3d": (17_568, (4, 24, 183)),
        "teapots_official": (200_000, None),
        "coil100": (7_200, (100, 72)),
        "modelnet40_airplanes": (40_064, (626, 64)),
        "chairs3d": (86_366, (1393, 2, 31)),
        "celeba": (202_599, None),
        "faces3d": (127_050, (50, 21, 11, 11)),
    }
    row = datasets.DATASETS[name]
    n_images, sizes = published[name]
    assert len(row) == n_images
    assert sizes is None or row.space.sizes == sizes


def test_cars3d_names_what_is_wrong(tmp_path: Path) -> None:
    files = car_files()
    del files["data/cars/car_002_mesh.mat"]
    with pytest.raises(ValueError, match=r"list.txt names car_002_mesh.mat, which is not there"):
        stored(tmp_path, cars3d.read(archive(tmp_path / "a.tar.gz", files), CARS))
    del files["data/cars/list.txt"]
    with pytest.raises(ValueError, match=r"no cars/list.txt"):
        stored(tmp_path, cars3d.read(archive(tmp_path / "b.tar.gz", files), CARS))
    broken = car_files() | {"data/cars/car_001_mesh.mat": b"nonsense"}
    with pytest.raises(ValueError, match=r"car_001_mesh.mat is not a readable MATLAB file"):
        stored(tmp_path, cars3d.read(archive(tmp_path / "c.tar.gz", broken), CARS))
    savemat(other := io.BytesIO(), {"views": np.zeros((2, 2))})
    unnamed = car_files() | {"data/cars/car_001_mesh.mat": other.getvalue()}
    with pytest.raises(ValueError, match=r"car_001_mesh.mat has no array 'im'"):
        stored(tmp_path, cars3d.read(archive(tmp_path / "d.tar.gz", unnamed), CARS))


def test_coil100_names_the_missing_and_the_broken_picture(tmp_path: Path) -> None:
    files = coil_files()
    broken = files | {"coil-100/obj3__90.png": files["coil-100/obj3__90.png"][:100]}
    with pytest.raises(ValueError, match=r"obj3__90.png is not a readable image"):
        stored(tmp_path, coil100.read(archive(tmp_path / "broken.zip", broken), OBJECTS))
    del files["coil-100/obj2__180.png"]
    with pytest.raises(ValueError, match=r"there is no obj2__180.png"):
        stored(tmp_path, coil100.read(archive(tmp_path / "x.zip", files), OBJECTS))


def test_chairs3d_names_the_incomplete_chair(tmp_path: Path) -> None:
    files = chair_files()
    del files[next(name for name in files if "b5f" in name)]
    with pytest.raises(ValueError, match="chair b5f has 5 views, 2 elevations and 3 azimuths"):
        stored(tmp_path, chairs3d.read(archive(tmp_path / "x.tar", files), "crop", CHAIRS))


def test_celeba_names_the_bad_line(tmp_path: Path) -> None:
    path, attributes, _ = celeba_files(tmp_path, "img_align_celeba.zip")
    lines = attributes.read_text().splitlines()
    attributes.write_text("\n".join([*lines[:4], lines[4].replace(" 1", " 2"), *lines[5:]]))
    with pytest.raises(ValueError, match="line 5 must be a file name and 40 times 1 or -1"):
        celeba.read(path, attributes, "crop", 7)
    attributes.write_text("\n".join(lines[:6]))
    with pytest.raises(ValueError, match="cut short, 4 of 7 lines"):
        celeba.read(path, attributes, "crop", 7)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"PLY\n", "does not begin with OFF"),
        (b"OFF\n", "no sound .off mesh"),
        ((PYRAMID % 3)[:-8], "cut short: it announces 5 vertices and 5 faces"),
        ((PYRAMID % 3).replace(b"3 3 0 4", b"3 3 0 9"), "corner outside its 5 vertices"),
        ((PYRAMID % 3).replace(b"3 3 0 4", b"3 3 0"), "too few corners"),
        ((PYRAMID % 3).replace(b"2 2 0", b"2 two 0"), "no sound .off mesh"),
        ((PYRAMID % 3).replace(b"3 3 0 4", b"3 3 0 " + b"9" * 20), "no sound .off mesh"),
    ],
)
def test_off_says_what_is_wrong(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        modelnet40.read_off(data, "a.off")
