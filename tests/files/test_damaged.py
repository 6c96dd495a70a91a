"""Files that are damaged, that lie, or are larger than they look: one line that names the file, and nothing written."""

import io
import zipfile
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import Cli
from tests.processes import forked
from unbraid import Representation, rank
from unbraid.datasets.own_images import open_path
from unbraid.files.yaml_files import parse_yaml

CODES = np.random.default_rng(0).standard_normal((60, 3))
FACTORS = np.random.default_rng(1).integers(0, 3, (60, 2))


def npy(array: np.ndarray) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def written(path: Path, codes: bytes, method: int = zipfile.ZIP_STORED, name: str = "codes.npy") -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr(name, codes)
        archive.writestr("factors.npy", npy(FACTORS))
    return path


def damaged(path: Path, kind: str) -> Path:
    methods = {"lzma": zipfile.ZIP_LZMA, "bzip2": zipfile.ZIP_BZIP2, "deflate": zipfile.ZIP_DEFLATED}
    whole = npy(CODES)
    written(path, whole + b"tail" if kind == "longer" else whole, methods.get(kind, zipfile.ZIP_STORED))
    content = bytearray(path.read_bytes())
    entry = content.index(b"PK\x01\x02")  # of the directory at the end
    if kind in methods:
        content[200:260] = b"\xff" * 60
    elif kind == "crc":
        content[400] ^= 1
    elif kind == "encrypted":
        content[6] |= 1
        content[entry + 8] |= 1
    elif kind in ("deflate64", "zstd"):
        method = {"deflate64": 9, "zstd": 93}[kind].to_bytes(2, "little")
        content[8:10] = content[entry + 10 : entry + 12] = method
    elif kind == "declared huge":
        content[entry + 24 : entry + 28] = (4_000_000_000).to_bytes(4, "little")
    elif kind == "overlapping":
        second = content.index(b"PK\x01\x02", entry + 4)
        content[second + 42 : second + 46] = content[entry + 42 : entry + 46]
    path.write_bytes(content)
    return path


KINDS = ("lzma", "bzip2", "deflate", "crc", "encrypted", "deflate64", "zstd", "declared huge", "overlapping", "longer")


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_member_is_one_line_that_names_the_file(kind: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "codes.npz", kind)
    with pytest.raises(ValueError, match=r"codes.npz: not a readable .npz file \(") as told:
        Representation.load(path)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_member_of_images_is_one_line_that_names_the_file(kind: str, tmp_path: Path) -> None:
    path = damaged(tmp_path / "codes.npz", kind)
    whole = path.read_bytes().replace(b"codes.npy", b"image.npy")
    path.write_bytes(whole)
    with pytest.raises(ValueError, match=r"codes.npz: "):
        open_path(path)


@pytest.mark.lengthy
def test_a_member_that_unpacks_to_the_whole_memory_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path / "bomb.npz", npy(np.zeros((1 << 20, 80))), zipfile.ZIP_DEFLATED)
    with pytest.raises(ValueError, match=r"bomb.npz: .* unpack to .* more than 50 times as many"):
        Representation.load(path)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "float16", "int64", "uint64"])
def test_codes_of_any_numbers_have_a_page(dtype: str, tmp_path: Path, unbraid_cli: Cli) -> None:
    codes = (CODES > 0).astype(dtype) if dtype == "bool" else (50 * CODES).astype("int8").astype(dtype)
    np.savez(tmp_path / "codes.npz", codes=codes, factors=FACTORS)
    assert unbraid_cli("score", tmp_path / "codes.npz", "--metrics", "mig", "--html", tmp_path / "page.html")[0] == 0


def test_whole_numbers_that_overflow_their_type_are_no_dead_code(tmp_path: Path, unbraid_cli: Cli) -> None:
    codes = np.tile(np.array([[-128, 0], [127, 1]], dtype=np.int8), (30, 1))
    np.savez(tmp_path / "codes.npz", codes=codes, factors=FACTORS)
    assert unbraid_cli("score", tmp_path / "codes.npz", "--metrics", "mig", "--html", tmp_path / "page.html")[0] == 0
    assert "None is dead." in (tmp_path / "page.html").read_text()


def test_what_fails_while_the_page_is_drawn_leaves_no_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, unbraid_cli: Cli
) -> None:
    np.savez(tmp_path / "codes.npz", codes=CODES, factors=FACTORS)

    def broken(_: object) -> str:
        raise ValueError("no page")

    monkeypatch.setattr("unbraid.scoring.score_page.page", broken)
    outs = ("--json", tmp_path / "a.json", "--html", tmp_path / "a.html", "--csv", tmp_path / "a.csv")
    assert unbraid_cli("score", tmp_path / "codes.npz", "--metrics", "mig", *outs)[0] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["codes.npz"]


def test_names_are_bounded_and_those_of_levels_cut() -> None:
    with pytest.raises(ValueError, match="^names.1. has 1,000,000 letters; names have at most 1,000$"):
        Representation(CODES, FACTORS, names=("a", "x" * 1_000_000))
    with pytest.raises(ValueError, match="^code_names.0. has 1,000,000 letters"):
        Representation(CODES, FACTORS, code_names=("x" * 1_000_000, "b", "c"))
    held = Representation(CODES, FACTORS, levels=(("y" * 1_000_000, "b", "c"), ()), notes=("z" * 1_000_000,))
    assert (len(held.levels[0][0]), len(held.notes[0])) == (1000, 20_000)


def test_a_path_in_place_of_models_is_a_study_or_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"not the folder of a study \(no study.yaml\); give models as a list"):
        rank(str(tmp_path))


@pytest.mark.lengthy
def test_a_table_of_many_columns_takes_little(tmp_path: Path) -> None:
    with forked(WIDE, str(tmp_path / "wide.parquet")) as process:
        said, failed = process.communicate()
    assert not failed
    assert int(said) < 600 << 20


WIDE = """
import resource, sys
from pathlib import Path
import pyarrow as pa, pyarrow.parquet as pq
from unbraid.files.tables import read_parquet
path = Path(sys.argv[1])
pq.write_table(pa.table({f"c{k}": [0.5, 1.5] for k in range(20_000)}), path)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
assert read_parquet(path).num_columns == 20_000
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""


def test_a_number_without_end_in_a_study_is_one_line(tmp_path: Path, unbraid_cli: Cli) -> None:
    yaml = "name: a\ndataset: {name: square, positions: 4, shrink: 8}\nfamilies: [{name: pca}]\nseeds: 1\n"
    (tmp_path / "study.yaml").write_text(f"{yaml}steps: {'9' * 400}\nbatch_size: 4\n")
    code, _, said = unbraid_cli("study", "run", tmp_path / "study.yaml", "--out", tmp_path / "out", "--dry-run")
    assert code == 2
    assert "steps: " in said


@pytest.mark.parametrize("dtype", ["V8", "M8[s]", "c16", "U3"])
def test_codes_that_are_no_numbers_are_not_ranked(dtype: str, tmp_path: Path) -> None:
    np.save(tmp_path / "odd.npy", np.zeros((60, 3), dtype=dtype))
    with pytest.raises(ValueError, match="odd.npy: codes must be .n_samples, n_codes. numbers; got "):
        rank([tmp_path / "odd.npy", CODES])


def test_a_yaml_file_of_thirty_megabytes_is_refused() -> None:
    with pytest.raises(ValueError, match=r"a.yaml: 30,000,000 characters; a YAML file has 1,000,000 at most"):
        parse_yaml("# note\n" * (30_000_000 // 7) + "#" * (30_000_000 % 7), "a.yaml")
