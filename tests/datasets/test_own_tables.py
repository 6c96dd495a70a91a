"""Own factors that are no grid: their values, circles, cells that are no level, and the tables they come from."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import torch

from unbraid import Representation
from unbraid.data import FactorSpace, FactorTable
from unbraid.datasets import from_array, load
from unbraid.datasets.dataset_description import describe_content
from unbraid.datasets.dataset_text import summary_of
from unbraid.datasets.factor_table import read_table
from unbraid.datasets.subset import SubsetDataset, left_out
from unbraid.show import plot_factors


def black(n: int) -> Any:
    return np.zeros((n, 8, 8), dtype=np.uint8)


@pytest.mark.parametrize("without", ["size == 4", {"size": 2}, "pose > 15 and pose != 1"])
def test_what_is_left_out_of_a_table_is_asked_for_by_value(tmp_path: Path, without: Any) -> None:
    factors, names = [[1, 10], [2, 10], [4, 20], [4, 40]], ["size", "pose"]
    np.savez(tmp_path / "v.npz", images=black(4), factors=factors, factor_names=names)
    part = load(str(tmp_path / "v.npz"), without=without)
    assert isinstance(part, SubsetDataset)
    assert part.positions.tolist() == [0, 1]
    with pytest.raises(ValueError, match="there is no such image"):
        load(str(tmp_path / "v.npz"), without="size == 3")


def test_values_of_a_part_are_those_of_the_whole_and_text_is_asked_for_by_level() -> None:
    table = {"size": [5, 7, 9, 9], "shape": ["box", "disc", "box", "disc"], "angle": [0.5, 0.25, 0.125, 3.5]}
    whole = from_array(black(4), table)
    part = SubsetDataset(whole, np.array([1, 2, 3]))
    assert part.space.values == ((5.0, 7.0, 9.0), ("box", "disc"), ())
    assert left_out(part.space, "size == 7").tolist() == [True, False, False]
    assert left_out(whole.space, "shape == 1").tolist() == [False, True, False, True]
    assert left_out(whole.space, "angle == 3.5").tolist() == [False, False, False, True]
    described = describe_content(whole.space, 4, (8, 8, 1))["factors"]
    assert [each["values"] for each in described] == [[5.0, 7.0, 9.0], ["box", "disc"], None]
    shown = [each.get_text() for each in plot_factors(whole, columns=3).texts]
    assert {"7", "disc", "3.5"} <= set(shown)


def test_a_table_of_numbers_alone_loses_no_row_to_a_heading(tmp_path: Path) -> None:
    (tmp_path / "labels.csv").write_text("3,7\n4,8\n4,7\n")
    labels = load(str(tmp_path / "labels.csv"))
    assert labels.space.names == ("factor_0", "factor_1")
    assert labels.space.factors(np.arange(3)).tolist() == [[0, 0], [1, 1], [1, 0]]
    assert len(from_array(black(3), tmp_path / "labels.csv")) == 3


def test_a_table_without_columns_is_refused(tmp_path: Path) -> None:
    pd.DataFrame().to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(ValueError, match=r"empty\.parquet: there are no rows"):
        read_table(tmp_path / "empty.parquet")


@pytest.mark.parametrize("text", ["\na,b\n1,2\n3,4\n", "a,b\n\n1,2\n\n3,4\n\n"])
def test_empty_lines_of_a_table_are_no_rows(tmp_path: Path, text: str) -> None:
    (tmp_path / "labels.csv").write_text(text)
    assert load(str(tmp_path / "labels.csv")).space.values == ((1, 3), (2, 4))


@pytest.mark.parametrize("word", ["NA", "NULL", "None"])
def test_a_word_that_stands_for_no_value_is_no_class(tmp_path: Path, word: str) -> None:
    """R writes NA for what is missing; `unbraid score` leaves such rows out."""
    table = tmp_path / "labels.csv"
    table.write_text(f"hat,size\nred,1\n{word},2\nred,3\n")
    with pytest.raises(ValueError, match="line 3, column 'hat' is empty .NA, NaN, None and NULL count as empty"):
        load(str(table))
    assert from_array(black(2), {"hat": ["red", word]}).space.values == ((word, "red"),)  # in memory None says so


FRAMES: dict[str, Any] = {
    "pandas": pd.DataFrame,
    "polars": lambda table: pytest.importorskip("polars").DataFrame(table),
    "pyarrow": pa.table,
    "tensors": lambda table: {name: table[name] if name == "way" else torch.tensor(table[name]) for name in table},
    "structured": lambda table: pd.DataFrame(table).astype({"way": "S4"}).to_records(index=False),
}


@pytest.mark.parametrize("make", FRAMES.values(), ids=FRAMES)
def test_columns_of_any_frame_keep_their_names(make: Any) -> None:
    space = from_array(black(4), make({"size": [5, 5, 7, 7], "way": ["up", "down", "up", "down"]})).space
    assert (space.names, space.values) == (("size", "way"), ((5, 7), ("down", "up")))


def test_a_matrix_may_be_a_tensor_with_gradients_or_of_few_bits() -> None:
    levels = torch.tensor([[0.5, 1], [0.5, 2], [1.5, 1], [1.5, 2]])
    for factors in (levels.requires_grad_(), levels.bfloat16()):
        assert from_array(black(4), factors).space.values == ((0.5, 1.5), (1, 2))


def test_what_is_masked_is_not_taken_for_a_value() -> None:
    values = np.array([[0, 1], [1, 99], [2, 2]])
    masked: Any = np.ma.masked_array(values, mask=values == 99)
    with pytest.raises(ValueError, match="factors: row 1, column 'factor_1' is empty"):
        from_array(black(3), masked)
    with pytest.raises(ValueError, match="factors: row 1, column 'a' is empty"):
        from_array(black(3), {"a": masked[:, 1]})
    assert from_array(black(3), np.ma.masked_array(values)).space.values == ((0, 1, 2), (1, 2, 99))
    images = np.ma.masked_array(black(3), mask=black(3) == 0)
    with pytest.raises(ValueError, match="a masked array has 192 masked entries, the first at"):
        from_array(images, {"a": [1, 2, 3]})


@pytest.mark.parametrize(
    ("column", "shown"),
    [
        (None, ": expected an array, .* got NoneType"),
        (3, ": expected one number, text or date per row"),
        ("abc", ": expected an array, .* got str"),
        (np.arange(6).reshape(3, 2), r": expected one number, text or date per row; got int64 \(3, 2\)"),
        ([1, [2], 3], r" mixes int \(1, row 0\) and list \(\[2\], row 1\)"),
    ],
)
def test_a_column_is_one_cell_per_row(column: Any, shown: str) -> None:
    with pytest.raises(ValueError, match=f"factors: column 'a'{shown}"):
        from_array(black(3), {"a": column})


def test_one_column_is_one_factor() -> None:
    assert from_array(black(3), pd.Series([1, 2, 3], name="size")).space.names == ("size",)


SIZES = ["small", "medium", "large", "huge"]


@pytest.mark.parametrize("make", ["pandas", "parquet", "polars", "pyarrow"])
def test_ordered_categories_keep_their_order(tmp_path: Path, make: str) -> None:
    cells = ["large", "small", "medium", "large", "small"]
    frame: Any = pd.DataFrame({"size": pd.Categorical(cells, SIZES, ordered=True), "place": [0, 1, 0, 2, 0]})
    if make == "parquet":
        frame.to_parquet(tmp_path / "factors.parquet")
        frame = tmp_path / "factors.parquet"
    elif make == "polars":
        pl = pytest.importorskip("polars")
        frame = {"size": pl.Series(cells, dtype=pl.Enum(SIZES)), "place": [0, 1, 0, 2, 0]}
    elif make == "pyarrow":
        frame = pa.Table.from_pandas(frame)
    space = from_array(black(5), frame).space
    assert isinstance(space, FactorTable)
    assert space.kinds == ("ordinal", "ordinal")
    assert space.levels[0] == ("small", "medium", "large")  # and none that no image has
    assert space.factors(np.arange(5))[:, 0].tolist() == [2, 0, 1, 2, 0]
    classes = from_array(black(5), frame, kinds={"size": "categorical"}).space
    assert classes.kinds[0] == "categorical"
    assert classes.factors(np.arange(5))[:, 0].tolist() == [2, 0, 1, 2, 0]
    circle = from_array(black(5), frame, kinds={"size": "cyclic"}).space
    assert isinstance(circle, FactorTable)
    assert circle.around[0] == 4  # that nothing is huge makes the circle no shorter
    assert circle.factors(np.arange(5))[:, 0].tolist() == [2, 0, 1, 2, 0]


def test_ranges_into_which_numbers_were_cut_are_in_their_order_in_a_grid() -> None:
    cut = pd.cut([1, 11, 5, 1, 11, 5], [0, 2, 10, 20])
    space = from_array(black(6), {"range": pd.Series(cut), "shape": [0, 0, 0, 1, 1, 1]}).space
    assert isinstance(space, FactorSpace)
    assert space.kinds == ("ordinal", "ordinal")
    assert space.values == (("(0, 2]", "(2, 10]", "(10, 20]"), (0.0, 1.0))


def test_ordered_categories_that_are_numbers_may_be_measured() -> None:
    doses = pd.Series(pd.Categorical([10.0, 0.5, 2.0], [0.5, 2.0, 10.0], ordered=True))
    levels, measured = (
        from_array(black(3), {"dose": doses}, kinds=kinds, grid=False).space for kinds in (None, ["continuous"])
    )
    assert (levels.kinds, levels.factors(np.arange(3))[:, 0].tolist()) == (("ordinal",), [2, 0, 1])
    assert (measured.kinds, measured.factors(np.arange(3))[:, 0].tolist()) == (("continuous",), [10.0, 0.5, 2.0])


@pytest.mark.parametrize("cells", [[2, 0, 1, 2], [2.5, 0.5, 1.0, 2.5], [2**60, 2**60 + 1, 7, 2**60]])
@pytest.mark.parametrize("make", ["pandas", "pyarrow"])
def test_numbers_as_categories_without_order_are_classes_in_a_dataset_as_in_a_score(
    make: str, cells: list[float]
) -> None:
    frame: Any = pd.DataFrame({"shape": pd.Categorical(cells), "place": [0, 1, 0, 0]})
    scored = Representation.of(np.zeros((4, 1)), frame)
    frame = pa.Table.from_pandas(frame) if make == "pyarrow" else frame
    space = from_array(black(4), frame).space
    assert space.kinds == scored.kinds == ("categorical", "ordinal")
    assert len(np.unique(space.factors(np.arange(4))[:, 0])) == len(set(cells))
    assert from_array(black(4), frame, kinds={"shape": "categorical"}).space.names == space.names
    if max(cells) < 2**53:
        assert from_array(black(4), frame, kinds={"shape": "ordinal"}).space.kinds == ("ordinal", "ordinal")


def test_combinations_beyond_what_64_bits_count_are_counted() -> None:
    flags = {f"flag {k}": [0, 1, k % 2] for k in range(64)}
    with pytest.raises(ValueError, match=f"no grid: 3 of {2**64} combinations are there"):
        from_array(black(3), flags, grid=True)


def test_a_closing_level_of_a_circle_is_not_counted_twice() -> None:
    angles = [0, 90, 180, 270, 360, 0, 90]
    space = from_array(black(7), {"angle": angles}, kinds={"angle": "cyclic"}).space
    assert isinstance(space, FactorTable)
    assert (space.sizes, space.turns) == ((5,), (4,))
    open_circle = from_array(black(5), {"angle": angles[:4] + [90]}, kinds={"angle": "cyclic"}).space
    assert open_circle.turns == (4,)


@pytest.mark.parametrize("angles", [[0, 90, 270, 0], [0, 90, 270]])  # the latter are a grid
def test_a_circle_with_a_gap_is_refused(angles: list[int]) -> None:
    with pytest.raises(ValueError) as caught:
        from_array(black(len(angles)), {"angle": angles}, kinds={"angle": "cyclic"})
    assert str(caught.value) == (
        "factors: column 'angle' is cyclic, and its values must be evenly spaced; their steps are 90 to 180. Kind "
        "'continuous' takes any"
    )


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        (pd.NA, "factors: row 1, column 'a' is empty"),
        (pd.NaT, "factors: row 1, column 'a' is empty"),
        (np.datetime64("NaT"), "factors: row 1, column 'a' is empty"),
        (10**400, "a whole number that no float holds"),
        (1 + 2j, r"mixes int \(1, row 0\) and complex \(\(1\+2j\), row 1\)"),
    ],
)
def test_a_cell_that_is_no_level_is_named(cell: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_array(black(3), {"a": [1, cell, 2]})


def test_large_real_numbers_are_levels_like_others_and_whole_ones_that_merge_are_refused() -> None:
    assert from_array(black(2), {"a": [1e300, 1e20]}).space.names == ("a",)
    with pytest.raises(ValueError, match=r"column 'a', row 0 is 9007199254740992: above 2\^53 whole numbers cannot"):
        from_array(black(3), {"a": [2**53, 2**53 + 1, 3]})


def test_the_index_of_pandas_is_no_factor(tmp_path: Path) -> None:
    frame = pd.DataFrame({"size": [1, 2, 2], "shape": ["box", "box", "disc"]}, index=[7, 8, 9])
    frame.to_parquet(tmp_path / "a.parquet")
    frame.to_csv(tmp_path / "a.csv")
    frame.to_csv(tmp_path / "b.csv", sep=";", index=False)
    for name in ("a.parquet", "a.csv", "b.csv"):
        assert [column.name for column in read_table(tmp_path / name)] == ["size", "shape"], name
        assert from_array(black(3), tmp_path / name).space.names == ("size", "shape")


def test_cells_of_a_table_are_read_as_they_are_meant(tmp_path: Path) -> None:
    """Blanks around a word are none of its letters, 1_2 is not 12, and 0,5 is no name unless that is said."""
    images, table = np.zeros((4, 2, 2), dtype=np.uint8), tmp_path / "factors.csv"
    table.write_text("shape, pair\nheart, 1_1\nheart , 1_2\n box,1_1\nbox, 1_2 \n")
    space = from_array(images, table).space
    assert (space.names, space.values) == (("shape", "pair"), (("box", "heart"), ("1_1", "1_2")))
    table.write_text("size;hue\n1;0,5\n2;1\n1;1,5\n2;2\n")
    with pytest.raises(ValueError, match=r"factors\.csv: line 2, column 'hue' is '0,5', which is no number"):
        from_array(images, table)
    table.write_text("size;hue\n1;0,5\n2;1,0\n1;1,5\n2;2,0\n")
    with pytest.raises(ValueError, match=r"line 2, column 'hue' is '0,5'; write numbers with a point and no comma"):
        from_array(images, table)
    assert from_array(images, table, kinds={"hue": "categorical"}).space.kinds == ("ordinal", "categorical")
    frame = pd.DataFrame({"size": [1, 2, 1, 2], "hue": [0.5, 0.5, 1.5, 1.5]})
    frame.to_csv(table)
    pd.read_csv(table).to_csv(table)
    assert from_array(images, table).space.names == ("size", "hue")
    table.write_text('"size, in mm, at rest";hue\n1;1\n2;1\n1;2\n2;2\n')
    assert from_array(images, table).space.names == ("size, in mm, at rest", "hue")
    words = np.array([b"heart", b"box", b"heart", b"box"])
    assert from_array(images, {"shape": words, "size": [1, 1, 2, 2]}).space.levels[0] == ("box", "heart")
    with pytest.raises(ValueError, match="row 0, column 'way' is 'north', which is no number"):
        from_array(images, {"way": np.array(["north", "east"] * 2)}, kinds={"way": "cyclic"})


def test_labels_without_images_are_described_as_such(tmp_path: Path) -> None:
    pd.DataFrame({"size": [1, 2, 2]}).to_csv(tmp_path / "LABELS.CSV", index=False)
    dataset = load(str(tmp_path / "LABELS.CSV"))
    content = describe_content(dataset.space, len(dataset), dataset.image_shape)
    described = [*summary_of({"name": "LABELS.CSV", "rendered": False, **content})]
    assert "labels    3 rows without images; samples, no grid" in described
