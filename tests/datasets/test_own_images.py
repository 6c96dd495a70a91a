"""The user's own images and tables: what is understood, and what is said when it is not."""

import pickle
import struct
import zipfile
import zlib
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

from unbraid import Representation, datasets
from unbraid.data import FactorSpace, FactorTable
from unbraid.data.space import level_text
from unbraid.datasets import from_array, from_folder
from unbraid.datasets.image_store import content_of, write
from unbraid.datasets.own_images import open_path
from unbraid.scoring.encoding import encoded_at

SHAPES, SIZES = ("box", "disc"), (0.5, 1.0, 2.0)


def numbered(n: int, channels: int = 1) -> Any:
    """Image i is all of value 10 i."""
    return np.repeat(10 * np.arange(n, dtype=np.uint8), 4 * 4 * channels).reshape(n, 4, 4, channels)


def shuffled_grid() -> dict[str, list[Any]]:
    """Six rows, one per combination, in no order: image 3 is a disc of size 0.5."""
    return {"size": [2.0, 0.5, 1.0, 0.5, 1.0, 2.0], "shape": ["disc", "box", "disc", "disc", "box", "box"]}


def csv_file(path: Path, table: dict[str, list[Any]]) -> Path:
    rows = [",".join(table), *(",".join(map(str, row)) for row in zip(*table.values(), strict=True))]
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_complete_grid_in_any_order_becomes_a_factor_space() -> None:
    dataset = from_array(numbered(6), shuffled_grid())
    space = dataset.space
    assert isinstance(space, FactorSpace)
    assert (space.names, space.sizes, space.kinds) == (("size", "shape"), (3, 2), ("ordinal", "categorical"))
    assert space.values == (SIZES, SHAPES)
    for index, (size, shape) in enumerate(space.grid()):
        row = int(dataset.images(np.array([index]))[0, 0, 0, 0]) // 10
        assert shuffled_grid()["size"][row] == SIZES[size]
        assert shuffled_grid()["shape"][row] == SHAPES[shape]


def test_samples_that_are_no_grid_become_a_table_in_their_order() -> None:
    angles = [0.1, 2.5, 1.7, 0.1, 3.0]
    dataset = from_array(numbered(5), {"angle": angles, "shape": list("abcab"), "size": [3, 3, 5, 3, 5]})
    assert isinstance(dataset.space, FactorTable)
    assert dataset.space.kinds == ("continuous", "categorical", "ordinal")
    expected = [angles, [0, 1, 2, 0, 1], [0, 0, 1, 0, 1]]
    np.testing.assert_array_equal(dataset.space.factors(np.arange(5)).T, expected)
    np.testing.assert_array_equal(dataset.images(np.array([4, 0]))[:, 0, 0, 0], [40, 0])


@pytest.mark.parametrize("grid", [True, False])
def test_names_of_levels_are_kept_through_to_codes(grid: bool) -> None:
    factors = {"shape": ["heart", "square", "heart", "square"], "x": [0, 0, 1, 1]}
    dataset = from_array(numbered(4), factors, grid=grid)
    held = encoded_at(np.arange(4), lambda images: images.reshape(len(images), -1)[:, :2], dataset, 2)
    assert held.levels == (("heart", "square"), ())
    assert level_text(dataset.space, held.factors[3], (0, 1)) == ("shape square, x 1")


def test_real_numbers_that_never_repeat_are_no_levels() -> None:
    dataset = from_array(numbered(4), {"angle": [0.3, 0.1, 0.2, 0.4]})
    assert dataset.space.kinds == ("continuous",)


def test_kinds_and_grid_can_be_chosen() -> None:
    chosen = from_array(numbered(6), shuffled_grid(), kinds={"size": "categorical"})
    assert chosen.space.kinds == ("categorical", "categorical")
    samples = from_array(numbered(6), shuffled_grid(), grid=False)
    assert isinstance(samples.space, FactorTable)
    assert samples.space.kinds == ("continuous", "categorical")
    np.testing.assert_array_equal(samples.images(np.arange(6)), numbered(6))
    real = from_array(numbered(6), shuffled_grid(), kinds=["continuous", "categorical"])
    assert isinstance(real.space, FactorTable)


def test_a_matrix_has_names_by_number() -> None:
    dataset = from_array(numbered(6), FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid())
    assert dataset.space.names == ("factor_0", "factor_1")
    np.testing.assert_array_equal(dataset.images(np.arange(6)), numbered(6))


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_folder_of_pictures(tmp_path: Path, suffix: str) -> None:
    table = {"file": [f"pictures/{k}.png" for k in range(6)]} | shuffled_grid()
    (tmp_path / "pictures").mkdir()
    for name, image in zip(table["file"], numbered(6, 3), strict=True):
        Image.fromarray(image).save(tmp_path / name)
    path = tmp_path / f"factors{suffix}"
    if suffix == ".csv":
        csv_file(path, table)
    else:
        pq.write_table(pa.table(table), path)
    expected = from_array(numbered(6, 3), shuffled_grid())
    for dataset in (from_folder(tmp_path, path), datasets.load(str(tmp_path))):
        assert dataset.space == expected.space
        assert dataset.image_shape == (4, 4, 3)
        np.testing.assert_array_equal(dataset.images(np.arange(6)), expected.images(np.arange(6)))
        again = pickle.loads(pickle.dumps(dataset))
        np.testing.assert_array_equal(again.images(np.arange(6)), expected.images(np.arange(6)))


def test_grey_pictures_with_transparency_have_one_channel(tmp_path: Path) -> None:
    grey, opacity = np.array([[0, 100, 200]] * 3, dtype=np.uint8), np.array([[0] * 3, [51] * 3, [255] * 3], np.uint8)
    Image.fromarray(np.dstack([grey, opacity])).save(tmp_path / "a.png")
    Image.fromarray(grey).save(tmp_path / "b.png", transparency=100)  # one brightness is transparent
    dataset = datasets.load(str(tmp_path))
    assert dataset.image_shape == (3, 3, 1)
    share = opacity / 255  # of the grey, on white
    np.testing.assert_allclose(dataset.images(np.array([0]))[0, ..., 0], 255 + share * (grey - 255.0), atol=0.51)
    np.testing.assert_array_equal(dataset.images(np.array([1]))[0, ..., 0], np.where(grey == 100, 255, grey))
    (tmp_path / "a.png").unlink()
    assert datasets.load(str(tmp_path)).image_shape == (3, 3, 1)


@pytest.mark.parametrize("mode", ["L", "1", "P", "RGBA"])
def test_pictures_of_other_modes(tmp_path: Path, mode: str) -> None:
    picture = Image.fromarray(np.full((4, 4, 3), 255, dtype=np.uint8)).convert(mode)
    picture.save(tmp_path / "a.png")
    dataset = from_folder(tmp_path, {"file": ["a.png"], "size": [1]})
    assert dataset.image_shape[2] == (1 if mode in {"L", "1"} else 3)
    assert (dataset.images(np.array([0])) == 255).all()


def test_an_array_on_disk_is_mapped_and_can_be_sent_to_a_worker(tmp_path: Path) -> None:
    np.save(tmp_path / "images.npy", numbered(6)[..., 0])
    csv_file(tmp_path / "factors.csv", shuffled_grid())
    dataset = datasets.load(str(tmp_path))
    assert dataset.image_shape == (4, 4, 1)
    images = dataset.images(np.arange(6))
    assert len(pickle.dumps(dataset)) < 2000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(dataset)).images(np.arange(6)), images)
    images[:] = 0  # a fresh array: the file must not change
    assert dataset.images(np.arange(6)).any()


def test_an_npz_file(tmp_path: Path) -> None:
    factors = np.stack([np.array([0, 1, 0, 1]), np.array([0.5, 0.1, 0.2, 0.3])], axis=1)
    names, kinds = np.array(["shape", "angle"]), np.array(["categorical", "continuous"])
    np.savez(tmp_path / "x.npz", images=numbered(4), factors=factors, factor_names=names, factor_kinds=kinds)
    dataset = datasets.load(str(tmp_path / "x.npz"))
    assert dataset.space.names == ("shape", "angle")
    assert dataset.space.kinds == ("categorical", "continuous")
    np.testing.assert_array_equal(dataset.space.factors(np.arange(4)), factors)


def test_a_file_in_the_format_of_dsprites_may_have_any_size_and_its_pickle_stays_shut(tmp_path: Path) -> None:
    grid = np.array(
        [(0, shape, 0, turn, x, y) for shape in range(2) for turn in range(3) for x in range(2) for y in (0, 1)]
    )
    pixels = (np.arange(24)[:, None, None] >> np.arange(16).reshape(4, 4)) & 1
    arrays = {"imgs": pixels.astype(np.uint8), "latents_classes": grid, "latents_values": grid * 0.5}
    np.savez(tmp_path / "mine.npz", metadata=np.array({"title": Trap()}, dtype=object), **arrays)
    dataset = datasets.load(str(tmp_path / "mine.npz"))
    assert dataset.space.names == ("shape", "orientation", "position_x", "position_y")
    assert dataset.space.sizes == (2, 3, 2, 2)
    np.testing.assert_array_equal(dataset.images(np.arange(24))[..., 0], 255 * pixels)
    np.testing.assert_array_equal(dataset.space.factors(np.arange(24)), grid[:, [1, 3, 4, 5]])
    del arrays["latents_classes"]
    np.savez(tmp_path / "values.npz", **arrays)
    assert datasets.load(str(tmp_path / "values.npz")).space.names == dataset.space.names
    np.savez(tmp_path / "bare.npz", imgs=arrays["imgs"], other=grid)
    with pytest.raises(ValueError, match="no array 'latents_classes'; it holds imgs, other"):
        datasets.load(str(tmp_path / "bare.npz"))


class Trap:
    def __reduce__(self):
        return (pytest.fail, ("unpickled",))


def test_what_was_exported_opens_by_its_path(tmp_path: Path) -> None:
    square = datasets.load("square", tmp_path / "cache")
    write(tmp_path / "out", content_of(square, limit=10))
    dataset = datasets.load(str(tmp_path / "out"))
    np.testing.assert_array_equal(dataset.images(np.arange(10)), square.images(np.arange(10)))


def test_booleans_are_classes_as_among_labels() -> None:
    tied, images = np.array([False, True, False, True]), np.zeros((4, 8, 8), np.uint8)
    for factors in ({"tied": tied}, {"tied": tied.tolist()}, tied[:, None]):
        assert from_array(images, factors, grid=False).space.kinds == ("categorical",)
        assert Representation.of(np.eye(4), factors).kinds == ("categorical",)


def test_bool_images_are_black_and_white() -> None:
    dataset = from_array(np.eye(4, dtype=bool)[None], {"size": [1]})
    assert sorted(np.unique(dataset.images(np.array([0])))) == [0, 255]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("size,shape\n", "there are no rows"),
        ("size,size\n1,2\n3,4\n", "two columns have one name: size, size"),
        ("size,shape\n1,box\n2\n", "line 3 has 1 cell; the first has 2"),
        ("size,shape\n1,box\n,disc\n", "line 3, column 'size' is empty"),
    ],
)
def test_a_bad_table_names_file_line_and_column(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "table.csv").write_text(text)
    with pytest.raises(ValueError, match=message) as caught:
        from_array(numbered(2), tmp_path / "table.csv")
    assert "table.csv" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("table", "kinds", "grid", "message"),
    [
        ({"a": [0, 1, 0, 1]}, None, True, "factors is no grid: factors: row 0 and factors: row 2 have the same"),
        ({"a": [0, 1, 0, 1], "b": [0, 0, 1, 2]}, None, True, "no grid: 4 of 6 combinations are there"),
        ({"a": [0, 1, 0, 1], "b": [0, 0, 1, 1]}, {"c": "cyclic"}, None, "kinds names no factor 'c'; there are a, b"),
        ({"a": [0, 1, 0, 1], "b": [0, 0, 1, 1]}, {"b": "round"}, None, "unknown kind 'round'"),
    ],
)
def test_bad_factors_are_named(table: Any, kinds: Any, grid: bool | None, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_array(numbered(4), table, kinds=kinds, grid=grid)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 4, 4, 1)), r"must be uint8, 0 to 255, uint16; got float64$"),
        (np.zeros((2, 4), np.uint8), r"must be \(n, height, width, channels\)"),
        (np.zeros((2, 3, 8, 8), np.uint8), r"1 to 16 channels, last .*moveaxis\(images, 1, -1\)"),
        (np.zeros((2, 8, 8, 17), np.uint8), "1 to 16 channels, last"),
        (np.zeros((0, 4, 4, 1), np.uint8), r"got \(0, 4, 4, 1\)"),
    ],
)
def test_bad_images_are_refused(images: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_array(images, {"a": [0, 1]})


@pytest.mark.parametrize(
    "name",
    ["../secret.png", "{folder}/secret.png", ".a.png", "a/../../secret.png", "link.png", "links/secret.png", "a\\b"],
)
def test_a_picture_outside_the_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Whoever wrote the table would else have any picture of this machine trained on."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for path in (tmp_path / "secret.png", folder / "a.png", folder / ".a.png"):
        Image.new("L", (4, 4)).save(path)
    (folder / "link.png").symlink_to(tmp_path / "secret.png")
    (folder / "links").symlink_to(tmp_path)
    table = {"file": ["a.png", name.format(folder=tmp_path)], "size": [0, 1]}
    csv_file(folder / "factors.csv", table)
    with pytest.raises(ValueError, match=r"factors.csv: line 3, column 'file': .*(leads out|no path below)"):
        open_path(folder)
    table["file"][1] = "./inner.png"
    (folder / "inner.png").symlink_to("a.png")
    csv_file(folder / "factors.csv", table)
    assert len(open_path(folder)) == 2


@pytest.mark.parametrize("alone", [True, False])
def test_images_of_0_and_1_are_not_taken_for_nearly_black_ones(tmp_path: Path, alone: bool) -> None:
    """Wherever they come from; the first slab of an array may be all black."""
    bits = np.zeros((5000, 2, 2), dtype=np.uint8)
    bits[4999, 0, 0] = 1
    factors = None if alone else {"a": np.arange(5000)}
    np.save(tmp_path / "a.npy", bits)
    np.savez(tmp_path / "a.npz", images=bits, **({} if alone else {"factors": np.arange(5000)[:, None]}))
    for read in (
        lambda: from_array(bits, factors),
        lambda: from_array(tmp_path / "a.npy", factors),
        lambda: datasets.load(str(tmp_path / "a.npz")),
    ):
        with pytest.raises(ValueError, match=r"images hold 0 and 1 alone, and white is 255; as bool 1 is white"):
            read()
    assert from_array(bits.astype(bool), factors).images([4999])[0, 0, 0, 0] == 255
    bits[0, 0, 0] = 2
    np.testing.assert_array_equal(from_array(bits, factors).images([4999])[0, :, :, 0], bits[4999])


DEEP = (np.arange(16).reshape(4, 4) * 4369).astype(np.uint16)  # 0 to 65 535, each 257 times a byte


def write_deep(path: Path, mode: str) -> None:
    if mode == "I;16B":
        image = Image.frombytes("I;16B", (4, 4), DEEP.astype(">u2").tobytes())
    else:
        image = Image.fromarray(DEEP if mode == "I;16" else DEEP.astype(np.int32))
    image.save(path)


@pytest.mark.parametrize(("mode", "suffix"), [("I;16", "png"), ("I;16", "tif"), ("I;16B", "tif"), ("I", "tif")])
def test_pictures_of_16_bits_keep_their_greys(tmp_path: Path, mode: str, suffix: str) -> None:
    write_deep(tmp_path / f"a.{suffix}", mode)
    images = datasets.load(str(tmp_path)).images(np.array([0]))
    np.testing.assert_allclose(images[0, :, :, 0], np.arange(16).reshape(4, 4) / 15, rtol=1e-6)


def test_pictures_of_16_bits_are_read_as_fit_reads_them(tmp_path: Path) -> None:
    deep = np.random.default_rng(0).integers(0, 65536, (16, 16)).astype(np.uint16)
    Image.fromarray(deep).save(tmp_path / "a.png")
    read = datasets.read_picture(tmp_path / "a.png", (16, 16, 1))[0, ..., 0]
    np.testing.assert_array_equal(read, np.rint(deep / 257))
    loaded = datasets.load(str(tmp_path)).images(np.array([0]))[0, :, :, 0]
    np.testing.assert_array_equal((255 * loaded + 0.5).astype(np.uint8), read)


def png_of_16_bits(pixels: Any, transparent: int) -> bytes:
    """A grey PNG, one grey of which is transparent, chunk by chunk as the standard has it: Pillow writes none."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width = pixels.shape
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 0, 0, 0, 0))
        + chunk(b"tRNS", struct.pack(">H", transparent))
        + chunk(b"IDAT", zlib.compress(rows))
        + chunk(b"IEND", b"")
    )


def test_one_transparent_grey_of_16_bits_is_laid_on_white(tmp_path: Path) -> None:
    """A grey that differs from it by less than a step of 8 bits is not transparent."""
    deep = np.array([[0, 0x1234, 0x1235], [0x12FF, 0x1234, 65535]], dtype=np.uint16)
    (tmp_path / "a.png").write_bytes(png_of_16_bits(deep, transparent=0x1234))
    wanted = np.array([[0, 255, round(0x1235 / 257)], [round(0x12FF / 257), 255, 255]])
    np.testing.assert_array_equal(datasets.load(str(tmp_path)).images(np.array([0]))[0, :, :, 0], wanted)


def test_a_picture_that_would_fill_the_memory_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 4)
    with pytest.raises(ValueError, match=r"a\.png is not a readable image \(Image size \(16 pixels\) exceeds limit"):
        datasets.load(str(tmp_path))


def test_a_grey_picture_among_colours_and_a_coloured_one_among_grey(tmp_path: Path) -> None:
    Image.new("L", (4, 4), 100).save(tmp_path / "a.png")
    Image.new("RGB", (4, 4), (90, 90, 90)).save(tmp_path / "b.png")
    assert datasets.load(str(tmp_path)).images(np.arange(2))[:, 0, 0, 0].tolist() == [100, 90]
    Image.new("RGB", (4, 4), (200, 0, 0)).save(tmp_path / "b.png")
    with pytest.raises(ValueError, match=r"b\.png has colours where grey was expected, as in a\.png"):
        datasets.load(str(tmp_path)).images(np.arange(2))
    Image.new("RGB", (4, 4), (200, 0, 0)).save(tmp_path / "0.png")
    assert datasets.load(str(tmp_path)).images(np.arange(2))[1, 0, 0].tolist() == [100, 100, 100]


def like_dsprites(path: Path, **arrays: Any) -> str:
    np.savez(path, imgs=np.zeros((3, 4, 4), np.uint8), **arrays)
    return str(path)


def test_a_column_with_nan_is_no_constant(tmp_path: Path) -> None:
    values = np.array([[1, 0.5], [2, np.nan], [3, 0.5]])
    with pytest.raises(ValueError, match="row 1, column 'factor_1' is empty"):
        datasets.load(like_dsprites(tmp_path / "x.npz", latents_values=values))
    texts = np.array([["a", "x"], ["b", "x"], ["c", "x"]])
    assert datasets.load(like_dsprites(tmp_path / "t.npz", latents_classes=texts)).space.names == ("factor_0",)
    flags = np.array([[True, False], [False, False], [True, False]])
    assert datasets.load(like_dsprites(tmp_path / "b.npz", latents_classes=flags)).space.names == ("factor_0",)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"factor_names": [["a", "b"]]}, r"array 'factor_names' must be one text per factor, \(n_factors,\); got <U1"),
        ({"factor_kinds": 3}, r"array 'factor_kinds' must be one text per factor, \(n_factors,\); got int64 \(\)"),
        ({"factor_names": np.array([b"\xff", b"b"])}, "array 'factor_names' is no text in UTF-8"),
        ({"factor_names": np.array(["a", None])}, "array 'factor_names': it holds pickled objects"),
    ],
)
def test_names_and_kinds_in_an_npz_file_are_texts(tmp_path: Path, wrong: dict[str, Any], message: str) -> None:
    factors = np.array([[0, 1], [1, 1], [1, 2]])
    np.savez(tmp_path / "x.npz", images=numbered(3), factors=factors, **wrong)
    with pytest.raises(ValueError, match=message) as caught:
        datasets.load(str(tmp_path / "x.npz"))
    assert "x.npz" in str(caught.value)
    assert "\n" not in str(caught.value)
    np.savez(tmp_path / "x.npz", images=numbered(3), factors=factors, factor_names=np.array([b"size", b"pose"]))
    assert datasets.load(str(tmp_path / "x.npz")).space.names == ("size", "pose")


def test_an_npz_file_gets_no_memory_for_what_it_only_declares(tmp_path: Path) -> None:
    header = BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "|u1", "fortran_order": False, "shape": (10**9, 64, 64)})
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive:
        archive.writestr("images.npy", header.getvalue() + bytes(100))
    with pytest.raises(ValueError, match=r"array 'images': its header declares \(1000000000, 64, 64\) of uint8, more"):
        datasets.load(str(tmp_path / "x.npz"))


def test_a_foreign_meta_json_is_no_stored_set(tmp_path: Path) -> None:
    Image.new("L", (4, 4)).save(tmp_path / "a.png")
    for text in ('{"camera": "x", "format": "png"}', "[]", "{"):
        (tmp_path / "meta.json").write_text(text)
        assert len(datasets.load(str(tmp_path))) == 1
    np.save(tmp_path / "images.npy", numbered(6))
    (tmp_path / "meta.json").write_text('{"camera": "x"}')
    assert len(datasets.load(str(tmp_path))) == 6
