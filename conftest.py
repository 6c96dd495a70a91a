"""Names that every docstring example may use."""

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _doctest_names(doctest_namespace: dict[str, object]) -> None:
    from unbraid import FactorSpace, metrics, score

    doctest_namespace.update(vars(metrics) | {"np": np, "FactorSpace": FactorSpace, "score": score})
