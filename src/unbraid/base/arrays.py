"""Arrays as people have them: NumPy, pandas, polars, torch, JAX, SciPy's sparse matrices, lists."""

import hashlib
import math
import os
from array import array as Buffer
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
import numpy.typing as npt

from unbraid.base.memory import check_memory
from unbraid.base.suggest import one_line

ROWS = 65_536  # of a matrix that are taken at a time, where they are no more than
CELLS = 1 << 22  # numbers
MOST_BYTES = 256 << 20  # that a sparse matrix may take as a full array, unless that is asked for
MOST_READ = 4 << 30  # that codes on the disk may take in memory
MOST_COLUMNS = 4096  # of a larger matrix on the disk, which is read by columns beyond


def column_names(values: Any) -> tuple[str, ...]:
    """Names of the columns of a frame; none where they only count, or where there are no columns."""
    if _is_lazy(values):
        return ()
    columns = getattr(values, "column_names", None)  # of a pyarrow table, whose `columns` are the columns themselves
    columns = getattr(values, "columns", None) if columns is None else columns
    return () if columns is None else telling(tuple(columns))


def telling(names: Sequence[Any]) -> tuple[str, ...]:
    """The names, or none where they only count, as `0, 1` and `factor_0, factor_1` do, or cannot be told apart."""
    counted = any(list(names) == [f"{word}{k}" for k in range(len(names))] for word in ("", "factor_"))
    if counted or len(set(names)) < len(names) or not all(isinstance(name, str) and name for name in names):
        return ()
    return tuple(names)


def as_array(values: Any) -> npt.NDArray[Any]:
    """The values as a NumPy array, by what they can do and not by what they are.

    Args:
        values: an array; a torch tensor on any device, with or without gradients, sparse or not; a JAX array, bfloat16
            as well; a sparse matrix; a pandas or polars frame or column; nested lists.

    Raises:
        ValueError: it is no array, with its type and what to write; rows are of different lengths, or there are none
            yet, as in a lazy frame; a sparse matrix would take more than 256 MiB as a full array; a masked array has
            masked entries, below which lie values that nobody means.
    """
    if _is_lazy(values):
        raise ValueError("a lazy frame has no rows yet; give frame.collect()")
    _refuse_no_array(values)
    _refuse_masked(values)
    if is_sparse(values):
        if 8 * math.prod(values.shape) > MOST_BYTES:
            raise ValueError(
                f"sparse codes {in_full(values.shape)}; unbraid.score and unbraid.metrics.wide_scores read them by "
                "columns, and .toarray() makes them full"
            )
        values = finite_sparse(values).toarray()
    if str(getattr(values, "type", "")).startswith("dictionary<"):  # of pyarrow, whose `to_numpy` fills gaps
        values = values.cast(values.type.value_type)
    if hasattr(values, "detach"):
        return _of_tensor(values)
    if isinstance(values, list | tuple):
        values = _without_tensors(values)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        values = np.from_dlpack(values)
    elif hasattr(values, "to_numpy") and not hasattr(values, "to_pylist"):  # that of pyarrow refuses to copy
        # pandas has an object for the missing value of its nullable types, which a matrix of numbers has as NaN, and
        # makes objects of booleans beside numbers.
        values = values.to_numpy(dtype=float, na_value=np.nan) if _made_objects(values) else values.to_numpy()
    array = np.asarray(values)
    # NumPy has no bfloat16 of its own; that of other packages is of no kind that it knows.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _of_tensor(values: Any) -> npt.NDArray[Any]:
    values = values.detach()
    try:
        return (values.float() if str(values.dtype).endswith("bfloat16") else values).numpy(force=True)
    except (RuntimeError, TypeError) as error:  # eight-bit floats, quantized values, tensors without values
        kind = f"a tensor of {values.dtype} on {values.device}"
        raise ValueError(f"{kind} cannot become an array: {one_line(error)}") from error


def _without_tensors(values: Sequence[Any]) -> list[Any]:
    """The same lists with arrays in place of tensors: NumPy asks those with gradients or in bfloat16 in vain."""
    return [
        _without_tensors(value)
        if isinstance(value, list | tuple)
        else _of_tensor(value)
        if hasattr(value, "detach")
        else value
        for value in values
    ]


def is_sparse(values: Any) -> bool:
    """Whether it is a matrix of SciPy or a tensor of torch that holds some of its values only."""
    if isinstance(values, np.ndarray):  # anndata's view of a full array has `toarray` as well
        return False
    return hasattr(values, "toarray") or (
        hasattr(values, "detach") and str(getattr(values, "layout", "torch.strided")) != "torch.strided"
    )


def n_stored(values: Any) -> int:
    """How many values a sparse matrix or tensor stores."""
    return int(values.nnz if hasattr(values, "nnz") else values._nnz())


def is_wide(values: Any) -> bool:
    """Whether codes are read by columns: sparse ones, and wide ones on the disk that are too large for memory."""
    mapped = isinstance(values, np.memmap) and values.ndim == 2 and values.shape[1] > MOST_COLUMNS
    return is_sparse(values) or (mapped and too_large(math.prod(values.shape)))


def too_large(n_values: int) -> bool:
    """Whether so many numbers on the disk are too many to be read into memory."""
    return 8 * n_values > MOST_READ


def in_full(shape: Sequence[int]) -> str:
    """What a matrix of this shape takes as a full array."""
    return f"of shape {tuple(shape)} take {memory_of(shape)} as a full array"


def memory_of(shape: Sequence[int]) -> str:
    """What a full array of this shape takes."""
    size = 8 * math.prod(shape)
    return f"{size / 1e9:.2g} GB" if size >= 1e8 else f"{size / 1e6:.2g} MB"


def as_full(values: Any) -> Any:
    """A sparse matrix or tensor as a full array, which somebody asked for; others as they are.

    Raises:
        ValueError: it is more than the free memory.
    """
    if not is_sparse(values):
        return values
    matrix = _of_scipy(values)
    check_memory(8 * math.prod(matrix.shape), f"sparse codes {in_full(matrix.shape)}; without dense they stay sparse")
    return matrix.toarray()


def finite_sparse(values: Any, used: npt.NDArray[np.bool_] | None = None) -> Any:
    """A sparse matrix or tensor as SciPy's, by rows if it is so and else by columns; NaN and infinity are refused.

    Rows that are not `used` (default: all are) may store them.

    Raises:
        ValueError: it is no matrix, or stores what is not finite; the message names the cell.
    """
    matrix = _of_scipy(values)
    if matrix.dtype.kind == "f" and not (finite := np.isfinite(matrix.data)).all():
        places = np.flatnonzero(~finite)
        lines = np.searchsorted(matrix.indptr, places, side="right") - 1
        rows, columns = (lines, matrix.indices[places]) if matrix.format == "csr" else (matrix.indices[places], lines)
        for row, column, place in zip(rows, columns, places, strict=True):
            if used is None or used[row]:
                raise ValueError(f"codes must be finite; row {row}, column {column} is {matrix.data[place]}")
    return matrix


def _of_scipy(values: Any) -> Any:
    """A sparse matrix or tensor as SciPy's, by rows if it is so and else by columns.

    Raises:
        ValueError: it is no matrix, or that of a graph: square, symmetric and not diagonal.
    """
    from scipy import sparse

    if values.ndim != 2:
        raise ValueError(f"codes must be a matrix (n_samples, n_codes); got shape {tuple(values.shape)}")
    if hasattr(values, "detach"):
        cells = values.detach().cpu().to_sparse_coo().coalesce()
        indices, stored = cells.indices().numpy(), as_array(cells.values())
        stored = stored.astype(np.float32) if stored.dtype == np.float16 else stored  # which SciPy has no matrix of
        values = sparse.coo_array((stored, (indices[0], indices[1])), shape=tuple(values.shape))
    elif values.dtype == np.float16:
        values = values.astype(np.float32)
    matrix: Any = sparse.csr_array(values) if getattr(values, "format", "") == "csr" else sparse.csc_array(values)
    if matrix.shape[0] == matrix.shape[1] > 1 and (matrix != matrix.T).nnz == 0:
        rows, columns = matrix.nonzero()
        if (rows != columns).any():
            raise ValueError(
                f"codes are a symmetric matrix of {matrix.shape[0]:,} x {matrix.shape[0]:,}, as of a graph between rows"
                " (adjacency, connectivities), not a code per column"
            )
    return matrix


def _refuse_no_array(values: Any) -> None:
    """Raises ValueError where NumPy would make an object of it, or walk through it row by row."""
    if isinstance(values, list | tuple):
        for entry in {type(entry): entry for entry in values}.values():
            rows = hasattr(entry, "__getitem__") or hasattr(entry, "__iter__")
            if rows and not isinstance(entry, str | bytes | Mapping | Set):
                _refuse_no_array(entry)
        return
    arrays = (np.ndarray, np.generic, int, float, complex, range, memoryview, Buffer)
    interfaces = ("__array__", "__array_interface__", "__dlpack__", "to_numpy", "toarray", "detach")
    if isinstance(values, type) or not (isinstance(values, arrays) or any(hasattr(values, way) for way in interfaces)):
        how = ""
        if isinstance(values, str | os.PathLike):
            how = "; unbraid.Representation.load reads a file of codes"
        elif isinstance(values, Mapping):
            how = "; pandas.DataFrame(columns) makes a frame of columns by name"
        elif hasattr(values, "obs") and hasattr(values, "X"):
            how = "; unbraid.integrations.anndata.score scores an embedding of its obsm"
        elif callable(values) and not isinstance(values, type):
            how = "; unbraid.score_encoder(encode, dataset) scores an encoder"
        kind = f"{'the class ' if isinstance(values, type) else ''}{_type_name(values)}"
        raise ValueError(f"expected an array, frame, tensor, sparse matrix or list of numbers; got {kind}{how}")


def _refuse_masked(values: Any) -> None:
    """
    Raises:
        ValueError: it is a masked array, or a list of such, with masked entries.
    """
    if isinstance(values, list | tuple):
        for entry in values:
            if isinstance(entry, np.ma.MaskedArray):
                _refuse_masked(entry)
    elif isinstance(values, np.ma.MaskedArray) and (mask := np.ma.getmaskarray(values)).any():
        first = ", ".join(str(place) for place in np.argwhere(mask)[0])
        raise ValueError(
            f"a masked array has {int(mask.sum()):,} masked entries, the first at [{first}]; only labels may lack "
            "values: fill them, or leave their rows out"
        )


def _made_objects(values: Any) -> bool:
    """Whether it is a frame of pandas with numbers in every column, of which pandas makes no matrix of numbers."""
    types = list(values.dtypes) if getattr(values, "ndim", 0) == 2 and hasattr(values, "iloc") else []
    kinds = {dtype.kind for dtype in types}
    return kinds <= set("biuf") and ({"b"} < kinds or not all(isinstance(dtype, np.dtype) for dtype in types))


def _type_name(values: Any) -> str:
    kind = values if isinstance(values, type) else type(values)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "collect") and not hasattr(values, "to_numpy")


def array_digest(array: Any) -> str:
    """SHA-256 of the shape and the values of a matrix, whatever its type, layout or file: equal for equal numbers.

    Of the shape as text, "(10000, 10)", and then of the values row by row as float64, little-endian, -0 as 0.
    """
    array = np.asarray(array)
    digest = hashlib.sha256(str(tuple(array.shape)).encode())
    for rows in row_slices(array):
        digest.update((array[rows].astype("<f8") + 0.0).tobytes())
    return digest.hexdigest()


def row_slices(array: npt.NDArray[Any]) -> list[slice]:
    """Rows of an array in parts that may be copied at will."""
    at_once = max(1, min(ROWS, CELLS // max(1, math.prod(array.shape[1:]))))
    return [slice(start, start + at_once) for start in range(0, len(array), at_once)]


MOST_WEIGHT = 2.0**53  # rows that float64 counts one by one


def check_weights(weights: npt.ArrayLike, n_samples: int) -> npt.NDArray[np.float64]:
    """(n_samples,) numbers of rows that each row stands for, not negative, or a ValueError that names the row."""
    counted = as_array(weights)
    if counted.dtype.kind not in "biuf":
        raise ValueError(f"weights must be real numbers; got dtype {counted.dtype}")
    if counted.shape != (n_samples,):
        raise ValueError(f"weights must be one number per row, ({n_samples},); got shape {counted.shape}")
    counted = counted.astype(np.float64)
    wrong = np.flatnonzero(~(np.isfinite(counted) & (counted >= 0)))
    if len(wrong):
        raise ValueError(f"weights must be finite and not negative; row {wrong[0]} is {counted[wrong[0]]}")
    if counted.sum() < 2:
        raise ValueError(
            f"weights are numbers of rows and must add up to at least two; they add up to {counted.sum():g}. To give "
            "shares, multiply them by the number of rows"
        )
    if counted.sum() > MOST_WEIGHT:
        raise ValueError(
            f"weights are numbers of rows and must add up to at most {MOST_WEIGHT:g}; they add up to {counted.sum():g}"
        )
    return counted


def in_columns(codes: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], list[list[int]]]:
    """(n, n_units, size) codes as columns, and the columns of each unit."""
    n_rows, n_units, size = codes.shape
    if not n_units or not size:
        raise ValueError(f"codes of units must be (n_samples, n_units, size); got shape {codes.shape}")
    return codes.reshape(n_rows, n_units * size), np.arange(n_units * size).reshape(n_units, size).tolist()


def side_by_side(tiles: npt.NDArray[Any], gap: int) -> npt.NDArray[Any]:
    """(n_rows, n_columns, height, width, channels) as one image (y, x, channels), with so many pixels of 0 between."""
    spaced = np.pad(tiles, ((0, 0), (0, 0), (0, gap), (0, gap), (0, 0)))
    n_rows, n_columns, height, width, channels = spaced.shape
    return spaced.swapaxes(1, 2).reshape(n_rows * height, n_columns * width, channels)[:-gap, :-gap]
