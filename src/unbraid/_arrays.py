"""Arrays as people have them: NumPy, pandas, polars, torch, JAX, SciPy's sparse matrices, lists."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS = 65_536  # of a matrix that are taken at a time, where they are no more than
CELLS = 1 << 22  # numbers
MOST_BYTES = 4 << 30  # that a sparse matrix may take when it is full
MOST_COLUMNS = 4096  # of a larger matrix on the disk, which is read by columns beyond


def column_names(values: Any) -> tuple[str, ...]:
    """Names of the columns of a frame; none where they only count, or where there are no columns."""
    if _is_lazy(values):
        return ()
    found = getattr(values, "column_names", None)  # of a pyarrow table, whose `columns` are the columns themselves
    found = getattr(values, "columns", None) if found is None else found
    return () if found is None else telling(tuple(found))


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
        ValueError: rows are of different lengths, or there are none yet, as in a lazy frame.
    """
    if _is_lazy(values):
        raise ValueError("a lazy frame has no rows yet; give frame.collect()")
    if is_sparse(values):
        check_width(values.shape)
        values = finite_sparse(values).toarray()
    if hasattr(values, "detach"):
        values = values.detach()
        return (values.float() if str(values.dtype).endswith("bfloat16") else values).numpy(force=True)
    if hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        values = np.from_dlpack(values)
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = np.asarray(values)
    # NumPy has no bfloat16 of its own; that of other packages is of no kind that it knows.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def is_sparse(values: Any) -> bool:
    """Whether it is a matrix of SciPy or a tensor of torch that holds some of its values only."""
    return hasattr(values, "toarray") or (
        hasattr(values, "detach") and str(getattr(values, "layout", "torch.strided")) != "torch.strided"
    )


def is_wide(values: Any) -> bool:
    """Whether it is sparse, or left on the disk, and too large to be a full array."""
    mapped = isinstance(values, np.memmap) and values.ndim == 2 and values.shape[1] > MOST_COLUMNS
    return (mapped or is_sparse(values)) and too_large(math.prod(values.shape))


def too_large(n_values: int) -> bool:
    """Whether so many numbers are too many for a full array."""
    return 8 * n_values > MOST_BYTES


def check_width(shape: Sequence[int]) -> None:
    """
    Raises:
        ValueError: a matrix of this shape is no full array; see `too_wide`.
    """
    if too_large(math.prod(shape)):
        raise ValueError(f"{too_wide(shape)}; unbraid.score and unbraid.metrics.wide_scores read codes by columns")


def too_wide(shape: Sequence[int]) -> str:
    """Why a matrix of this shape is no full array."""
    size = 8 * math.prod(shape) / 2**30
    return f"a matrix of shape {tuple(shape)} takes {size:.0f} GiB as a full array, more than {MOST_BYTES >> 30}"


def finite_sparse(values: Any) -> Any:
    """A sparse matrix or tensor as SciPy's, by columns; NaN and infinity that it stores are refused.

    Raises:
        ValueError: it is no matrix, or stores what is not finite; the message names the cell.
    """
    from scipy import sparse

    if values.ndim != 2:
        raise ValueError(f"codes must be a matrix (n_samples, n_codes); got shape {tuple(values.shape)}")
    if hasattr(values, "detach"):
        cells = values.detach().cpu().to_sparse_coo().coalesce()
        indices, stored = cells.indices().numpy(), as_array(cells.values())
        values = sparse.coo_array((stored, (indices[0], indices[1])), shape=tuple(values.shape))
    held = sparse.csc_array(values)
    if held.dtype.kind == "f" and not (finite := np.isfinite(held.data)).all():
        place = int(np.flatnonzero(~finite)[0])
        row, column = held.indices[place], np.searchsorted(held.indptr, place, side="right") - 1
        raise ValueError(f"codes must be finite; row {row}, column {column} is {held.data[place]}")
    return held


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
            f"weights count rows, and must add up to two at least; they add up to {counted.sum():g}. Shares are made "
            "counts by multiplying them by the number of rows"
        )
    return counted
