"""Names that every docstring example may use."""

import os

# A core for each process that tests: more threads would wait for one another, on a busy machine for minutes.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    from unbraid import factors, metrics, score

    named = {name: getattr(factors, name) for name in factors.__all__}
    doctest_namespace.update(vars(metrics) | named | {"np": np, "score": score})
