"""Representation files: what is written is read back; what is unsound is refused by name."""

import json
import os
import pickle
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from unbraid import Representation
from unbraid.base.device import out_of_memory
from unbraid.data import SUFFIXES
from unbraid.datasets.own_images import open_path
from unbraid.files.tables import read_columns
from unbraid.files.whole_files import check_file


def small(**changes: object) -> Representation:
    rng = np.random.default_rng(0)
    content: dict[str, object] = {
        "codes": rng.standard_normal((6, 2)).astype(np.float32),
        "factors": np.array([[0, 1], [1, 0], [2, 3], [0, 2], [1, 1], [2, 0]], dtype=np.int16),
        "log_variances": rng.standard_normal((6, 2)).astype(np.float32),
        "prior_kl": rng.uniform(0, 3, (6, 2)).astype(np.float32),
        "names": ("shape", "größe <b>"),
        "kinds": ("categorical", "cyclic"),
        "sizes": (3, 4),
    }
    return Representation(**content | changes)  # pyright: ignore[reportArgumentType]


def same(a: Representation, b: Representation) -> None:
    np.testing.assert_array_equal(a.codes, b.codes)
    np.testing.assert_array_equal(a.factors, b.factors)
    for one, other in ((a.log_variances, b.log_variances), (a.prior_kl, b.prior_kl)):
        assert (one is None) == (other is None)
        if one is not None:
            np.testing.assert_array_equal(one, other)
    assert (a.names, a.kinds, a.sizes) == (b.names, b.kinds, b.sizes)


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("changes", [
    {}, {"prior_kl": None}, {"log_variances": None, "prior_kl": None, "sizes": None, "names": ()},
])  # fmt: skip
def test_every_format_returns_what_was_saved(tmp_path: Path, suffix: str, changes: dict[str, object]) -> None:
    path = tmp_path / f"codes{suffix}"
    small(**changes).save(path)
    same(Representation.load(path), small(**changes))
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@settings(max_examples=25, deadline=None)
@given(
    shape=st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12)),
    dtype=st.sampled_from(["f4", "f8", ">f4", ">f8", "g"]),
    factor_dtype=st.sampled_from(["i1", "i8", "u2", "f4", ">i4", ">f8"]),
    fortran=st.booleans(),
    suffix=st.sampled_from(SUFFIXES),
)
def test_round_trip_over_shapes_dtypes_and_orders(
    tmp_path_factory: pytest.TempPathFactory,
    shape: tuple[int, int, int],
    dtype: str,
    factor_dtype: str,
    fortran: bool,
    suffix: str,
) -> None:
    rng = np.random.default_rng(1)
    rows, n_codes, n_factors = shape
    codes = rng.standard_normal((rows, n_codes)).astype(dtype)  # files of some telescopes and labs swap bytes
    factors = rng.integers(0, 5, (rows, n_factors)).astype(factor_dtype)
    representation = Representation(np.asfortranarray(codes) if fortran else codes, factors)
    path = tmp_path_factory.mktemp("round") / f"codes{suffix}"
    representation.save(path)
    loaded = Representation.load(path)
    same(loaded, representation)
    assert loaded.codes.dtype == ("f8" if dtype == "g" else dtype.removeprefix(">"))


def test_parquet_columns_are_named_as_documented(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    small().save(tmp_path / "codes.parquet")
    assert parquet.read_table(tmp_path / "codes.parquet").column_names == [
        "code_0", "code_1", "factor_shape", "factor_größe <b>", "log_variance_0", "log_variance_1", "prior_kl_0",
        "prior_kl_1",
    ]  # fmt: skip


def test_parquet_of_others_needs_no_metadata_and_orders_codes_by_number(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    columns = {f"code_{i}": np.full(3, float(i)) for i in reversed(range(12))}
    pandas.DataFrame(columns | {"factor_a": [0, 1, 2], "factor_b": [0.5, 0.1, 0.2]}).to_parquet(tmp_path / "x.parquet")
    loaded = Representation.load(tmp_path / "x.parquet")
    assert loaded.codes[0].tolist() == list(range(12))
    assert loaded.names == ("a", "b")
    assert loaded.kinds == ("ordinal", "continuous")


def test_factors_of_a_parquet_file_of_codes_are_read_as_those_of_a_frame(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    at = np.arange(12)
    labels = pandas.DataFrame(
        {
            "size": pandas.Categorical.from_codes(at % 3, ["small", "medium", "large"], ordered=True),
            "batch": pandas.Categorical(np.array(["c", "a", "b"])[at % 3]),
            "day": pandas.date_range("2020-01-01", periods=12).astype("datetime64[ns]"),
            "on": at % 2 == 0,
            "level": at % 5,
        }
    )
    of_codes = {"code_0": np.arange(12.0), **{f"factor_{name}": labels[name] for name in labels}}
    pandas.DataFrame(of_codes).to_parquet(tmp_path / "codes.parquet")
    loaded, expected = Representation.load(tmp_path / "codes.parquet"), Representation.of(np.ones((12, 1)), labels)
    assert loaded.kinds == expected.kinds == ("ordinal", "categorical", "continuous", "categorical", "ordinal")
    assert loaded.levels == expected.levels
    assert loaded.levels[0] == ("small", "medium", "large")
    assert loaded.factors.tolist() == expected.factors.tolist()
    assert loaded.factors[:, 2].tolist() == at.tolist(), "days"


@pytest.mark.parametrize("suffix", SUFFIXES)
@pytest.mark.parametrize("factors", [np.array([[0, 1], [np.nan, 2], [2, 0], [1, 3]]), np.eye(4, 2, dtype=bool)])
def test_what_is_known_of_factors_stays_known_where_some_are_missing_or_booleans(
    tmp_path: Path, suffix: str, factors: Any
) -> None:
    about: Any = {"names": ("shape", "hue"), "kinds": ("ordinal", "cyclic"), "sizes": (3, 4)}
    levels = (("box", "disc", "heart"), ())
    Representation(np.eye(4), factors, **about, levels=levels).save(tmp_path / f"codes{suffix}")
    loaded = Representation.load(tmp_path / f"codes{suffix}")
    assert {name: getattr(loaded, name) for name in about} == about
    assert loaded.levels == levels
    assert loaded.factors.tolist() == factors[~np.isnan(factors.astype(float)).any(axis=1)].tolist()


class Trap:
    """Unpickling this would be noticed."""

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (pytest.fail, ("a user's file was unpickled",))


def test_a_pickle_is_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "objects.npz", codes=np.array([Trap()], dtype=object), factors=np.zeros((1, 1)))
    (tmp_path / "plain.npz").write_bytes(pickle.dumps(Trap()))
    for name in ("objects.npz", "plain.npz"):
        with pytest.raises(ValueError, match=f"{name}: not a readable .npz file.*pickled objects"):
            Representation.load(tmp_path / name)


def test_a_pickled_bystander_does_not_spoil_the_file(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", codes=np.eye(3), factors=np.eye(3), metadata=np.array({"a": 1}, dtype=object))
    assert Representation.load(tmp_path / "x.npz").codes.shape == (3, 3)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_truncated_or_foreign_file_is_one_clear_error(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"codes{suffix}"
    small().save(path)
    whole = path.read_bytes()
    for content in (whole[: len(whole) // 2], b"not what the name says", b""):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"codes{suffix}: not a readable {suffix} file"):
            Representation.load(path)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"codes": np.zeros(6)}, r"codes must be \(n_samples, n_codes\)"),
        ({"kinds": ("categorical", "circular")}, "factor 'größe <b>' has unknown kind 'circular'"),
        ({"names": ("a",)}, r"names must have one entry per factor \(2\)"),
        ({"names": ("a", "a")}, "must differ"),
        ({"sizes": (3, 4, 5)}, "sizes must have one entry"),
        ({"log_variances": np.zeros((6, 3))}, "log_variances must have the shape of codes"),
    ],
)
def test_unsound_content_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small(**changes)


def test_missing_arrays_are_named_with_what_was_found(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", factors=np.zeros((2, 2)), latents=np.zeros((2, 2)))
    with pytest.raises(ValueError, match="x.npz: no array 'codes'; found factors"):
        Representation.load(tmp_path / "x.npz")


def test_an_interrupted_save_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "codes.npz"
    small().save(path)
    before = path.read_bytes()

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez_compressed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        small(names=("x", "y")).save(path)
    assert path.read_bytes() == before
    assert len(list(tmp_path.iterdir())) == 1


def test_the_example_is_the_published_one() -> None:
    example = Representation.example()
    assert example.codes.shape == (10_000, 10)
    assert example.names == ("shape", "scale", "orientation", "position_x", "position_y")
    assert example.sizes == (3, 6, 40, 32, 32)
    assert int((example.mean_kl() > 0.01).sum()) == 5


def test_the_mean_kl_is_that_from_the_prior_of_the_model() -> None:
    """Of 6 samples, as given; from the standard normal where nothing is given; none without a posterior."""
    given, plain = small(), small(prior_kl=None)
    assert given.prior_kl is not None
    assert plain.log_variances is not None
    np.testing.assert_allclose(given.mean_kl(), [column.sum() / 6 for column in given.prior_kl.T], rtol=1e-6)
    squares, variances = plain.codes.astype(float) ** 2, np.exp(plain.log_variances.astype(float))
    np.testing.assert_allclose(plain.mean_kl(), 0.5 * (squares + variances - np.log(variances) - 1).mean(0), rtol=1e-5)
    assert small(prior_kl=None, log_variances=None).mean_kl() is None


def test_keep_factors_keeps_everything_about_them() -> None:
    kept = small().keep_factors(["größe <b>"])
    assert (kept.kinds, kept.sizes) == (("cyclic",), (4,))
    assert kept.factors.tolist() == small().factors[:, 1:].tolist()
    with pytest.raises(ValueError, match="no factor 'hue'; there are shape"):
        small().keep_factors(["hue"])


def test_names_of_codes_are_those_of_the_columns_and_last(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.eye(4), columns=["V1/7", "V1/9", "MT 3", "x"])
    held = Representation.of(frame, {"shape": ["heart", "square", None, "square"]})
    assert held.code_names == held.keep_factors([]).code_names == ("V1/7", "V1/9", "MT 3", "x")
    for suffix in (".npz", ".safetensors", ".parquet"):
        held.save(tmp_path / f"held{suffix}")
        assert Representation.load(tmp_path / f"held{suffix}").code_names == held.code_names
    frame.to_csv(tmp_path / "index.csv")  # pandas' index comes first, without a name
    frame.to_csv(tmp_path / "plain.csv", index=False)
    for name in ("index.csv", "plain.csv"):
        read = Representation.load(tmp_path / name)
        assert read.code_names == held.code_names
        assert read.codes.tolist() == np.eye(4).tolist()


def test_codes_without_names_are_called_by_their_numbers(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.eye(4))
    frame.to_csv(tmp_path / "counted.csv", index=False)  # its first line is 0,1,2,3
    read = Representation.load(tmp_path / "counted.csv")
    assert len(read) == 4
    assert read.code_names == Representation(frame).code_names == ()  # pyright: ignore[reportArgumentType]
    assert read.code_labels() == ["code 0", "code 1", "code 2", "code 3"]
    (tmp_path / "whole.csv").write_text("0,1\n1,0\n", encoding="utf-8")  # this may as well be data
    assert len(Representation.load(tmp_path / "whole.csv")) == 2


@pytest.mark.parametrize("names", [("a", "b"), ("a", "a", "b", "c")])
def test_names_of_codes_must_fit_and_differ(names: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match="code_names must"):
        Representation(np.eye(4), code_names=names)


@pytest.mark.parametrize("name", ["factor_names", "factor_kinds", "factor_sizes", "code_names", "notes"])
@pytest.mark.parametrize("value", [5, True, [["a"], ["b"]], {"a": 1}, [["a"], []]])
def test_what_a_file_lists_is_a_list(tmp_path: Path, name: str, value: object) -> None:
    from safetensors.numpy import save

    arrays = {"codes": np.eye(3), "factors": np.eye(3)[:, :1]}
    (tmp_path / "codes.safetensors").write_bytes(save(arrays, {"unbraid": json.dumps({name: value})}))
    with pytest.raises(ValueError, match=f"codes.safetensors: {name} must be a list"):
        Representation.load(tmp_path / "codes.safetensors")


def test_a_small_file_that_would_fill_the_memory_is_refused_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    monkeypatch.setattr("unbraid.files.whole_files.MOST_UNPACKED", 1 << 20)
    np.savez_compressed(tmp_path / "bomb.npz", codes=np.zeros((2_000, 500)))
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(10_000, np.int8)), pa.array([1.5]))
    pq.write_table(pa.table({f"z{k}": column for k in range(100)}), tmp_path / "bomb.parquet")
    for name in ("bomb.npz", "bomb.parquet"):
        for read in (Representation.load, read_columns):
            tracemalloc.start()
            with pytest.raises(ValueError, match=rf"{name}: .* unpack to 8,0[\d,]+, more than 50 times as many"):
                read(tmp_path / name)
            assert tracemalloc.get_traced_memory()[1] < 4_000_000
            tracemalloc.stop()
    np.savez(tmp_path / "plain.npz", codes=np.zeros((2_000, 500)))  # as large as it says
    assert Representation.load(tmp_path / "plain.npz").codes.shape == (2_000, 500)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    pipe = tmp_path / "codes.npz"
    os.mkfifo(pipe)
    for read in (Representation.load, read_columns, open_path):
        with pytest.raises((ValueError, FileNotFoundError), match=r"codes.npz: (no such file|neither a file)"):
            read(pipe)
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        check_file(pipe)


def test_labels_in_a_damaged_npz_file_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "labels.npz").write_bytes(b"no zip archive")
    with pytest.raises(ValueError, match=r"labels.npz: not a readable .npz file \(it is no zip archive"):
        read_columns(tmp_path / "labels.npz")


def test_what_a_damaged_file_raises_is_not_its_own_cause(tmp_path: Path) -> None:
    (tmp_path / "codes.npz").write_bytes(b"no zip archive")
    with pytest.raises(ValueError, match=r"codes.npz: not a readable .npz file") as raised:
        Representation.load(tmp_path / "codes.npz")
    assert raised.value.__cause__ is not raised.value
    raised.value.__cause__ = raised.value
    assert not out_of_memory(raised.value)
    raised.value.__cause__ = MemoryError()
    assert out_of_memory(raised.value)


def test_codes_and_factors_have_the_same_rows() -> None:
    with pytest.raises(ValueError, match=r"the same number of rows; got \(3, 2\) and \(2, 3\)"):
        Representation(np.ones((3, 2)), np.ones((2, 3)))
    with pytest.raises(ValueError, match="is missing in every row"):
        Representation.of(np.ones((0, 2)), {"size": []})


def test_none_is_what_was_not_given() -> None:
    nothing: dict[str, Any] = dict.fromkeys(("names", "kinds", "levels", "notes", "code_names", "periods"))
    held, plain = Representation(np.eye(3), np.eye(3), **nothing), Representation(np.eye(3), np.eye(3))
    assert all(getattr(held, name) == getattr(plain, name) for name in nothing)
    assert Representation.of(np.eye(3), np.eye(3), code_names=None).code_names == ()


def test_codes_of_any_size_are_looked_at_without_a_warning() -> None:
    codes = np.array([[1e300], [-1e300], [3.0]])
    assert not Representation(codes).varies_little()
    assert Representation(codes * 1e-304).varies_little()


def test_the_array_of_a_file_that_is_pickled_is_named_and_the_others_can_be_read(tmp_path: Path) -> None:
    codes, pickled = np.arange(12.0).reshape(6, 2), np.array(["a", None], dtype=object)
    np.savez(tmp_path / "a.npz", codes=codes, meta=pickled)
    np.testing.assert_array_equal(Representation.load(tmp_path / "a.npz").codes, codes)
    np.savez(tmp_path / "b.npz", codes=codes, factors=codes.astype(int), factor_names=pickled)
    with pytest.raises(ValueError, match=r"b\.npz: .*array 'factor_names': it holds pickled objects, which are never"):
        Representation.load(tmp_path / "b.npz")
