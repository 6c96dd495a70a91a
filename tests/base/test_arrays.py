"""What counts as a full array, and what as a sparse one."""

import numpy as np
import pytest
from scipy import sparse

from unbraid.base.arrays import as_array, finite_sparse, is_sparse


def test_full_and_sparse_arrays_are_told_apart_by_more_than_their_methods() -> None:
    """As a view of an embedding of anndata is."""

    class View(np.ndarray):
        def toarray(self) -> np.ndarray:
            raise AssertionError

    assert not is_sparse(np.eye(3).view(View))
    assert as_array(np.eye(3).view(View)).tolist() == np.eye(3).tolist()
    assert is_sparse(sparse.csr_array(np.eye(3)))


def test_a_sparse_matrix_of_half_precision_is_read() -> None:
    """SciPy makes none, but its matrices hold what they are given, as a file of another library may."""
    matrix = sparse.csr_array(np.eye(3, dtype=np.float32))
    matrix.data = matrix.data.astype(np.float16)
    assert as_array(matrix).tolist() == np.eye(3).tolist()


def test_a_sparse_tensor_of_half_precision_is_read() -> None:
    tensor = pytest.importorskip("torch").eye(3).half().to_sparse()
    assert finite_sparse(tensor).toarray().tolist() == np.eye(3).tolist()
