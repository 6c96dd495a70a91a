"""What counts as a full array, and what as a sparse one."""

import numpy as np
from scipy import sparse

from unbraid._utils.arrays import as_array, is_sparse


def test_a_full_array_with_a_method_of_sparse_ones_is_full() -> None:
    """As a view of an embedding of anndata is."""

    class View(np.ndarray):
        def toarray(self) -> np.ndarray:
            raise AssertionError

    assert not is_sparse(np.eye(3).view(View))
    assert as_array(np.eye(3).view(View)).tolist() == np.eye(3).tolist()
    assert is_sparse(sparse.csr_array(np.eye(3)))
