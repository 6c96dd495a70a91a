"""Arrays as people have them: NumPy, pandas, polars, torch, JAX, SciPy's sparse matrices, lists."""

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

ROWS = 65_536  # of a matrix that are taken at a time
MOST_BYTES = 4 << 30  # that a sparse matrix may take when it is full


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
        values: an array; a torch tensor on any device, with or without gradients; a JAX array, bfloat16 as well; a
            sparse matrix; a pandas or polars frame or column; nested lists.

    Raises:
        ValueError: rows are of different lengths, or there are none yet, as in a lazy frame.
    """
    if _is_lazy(values):
        raise ValueError("a lazy frame has no rows yet; give frame.collect()")
    if hasattr(values, "detach"):
        values = values.detach()
        return (values.float() if str(values.dtype).endswith("bfloat16") else values).numpy(force=True)
    if hasattr(values, "toarray"):
        if (size := 8 * math.prod(values.shape)) > MOST_BYTES:
            raise ValueError(
                f"a sparse matrix of shape {tuple(values.shape)} takes {size / 2**30:.0f} GiB as a full array, more "
                f"than {MOST_BYTES >> 30}; unbraid.metrics.wide_scores reads it by columns"
            )
        values = values.toarray()
    elif hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        values = np.from_dlpack(values)
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = np.asarray(values)
    # NumPy has no bfloat16 of its own; that of other packages is of no kind that it knows.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array


def _is_lazy(values: Any) -> bool:
    return hasattr(values, "collect") and not hasattr(values, "to_numpy")


def array_digest(array: Any) -> str:
    """SHA-256 of the shape and the values of a matrix, whatever its type, layout or file: equal for equal numbers.

    Of the shape as text, "(10000, 10)", and then of the values row by row as float64, little-endian, -0 as 0.
    """
    array = np.asarray(array)
    digest = hashlib.sha256(str(tuple(array.shape)).encode())
    for start in range(0, len(array), ROWS):
        digest.update((array[start : start + ROWS].astype("<f8") + 0.0).tobytes())
    return digest.hexdigest()
