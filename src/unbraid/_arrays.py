"""Arrays as people have them: NumPy, pandas, polars, torch, JAX, SciPy's sparse matrices, lists."""

from typing import Any

import numpy as np
import numpy.typing as npt


def as_array(values: Any) -> npt.NDArray[Any]:
    """The values as a NumPy array, by what they can do and not by what they are.

    Args:
        values: an array; a torch tensor on any device, with or without gradients; a JAX array, bfloat16 as well; a
            sparse matrix; a pandas or polars frame or column; nested lists.

    Raises:
        ValueError: rows are of different lengths.
    """
    if hasattr(values, "detach"):
        values = values.detach()
        return (values.float() if str(values.dtype).endswith("bfloat16") else values).numpy(force=True)
    if hasattr(values, "toarray"):
        values = values.toarray()
    elif hasattr(values, "__dlpack__") and not hasattr(values, "__array__"):
        values = np.from_dlpack(values)
    elif hasattr(values, "to_numpy"):
        values = values.to_numpy()
    array = np.asarray(values)
    # NumPy has no bfloat16 of its own; that of other packages is of no kind that it knows.
    return array.astype(np.float32) if array.dtype.name == "bfloat16" else array
