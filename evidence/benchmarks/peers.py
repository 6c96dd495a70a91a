"""InfoMEC and the forests of DCI-ES beside their authors' programs, on the shipped example, in one run on one thread.

    python evidence/benchmarks/peers.py --infomec latent_quantization/disentangle/metrics/infomec.py
    python evidence/benchmarks/peers.py --dci-es

`--infomec` runs the file given, of a copy of github.com/kylehkhsu/latent_quantization of your own. DCI-ES as published
trains one forest of scikit-learn for each factor and each of twelve depths (github.com/andreinicolicioiu/DCI-ES), which
is done here with the same settings. Times are of the processor; the first call compiles our kernels and is not counted.
"""

import argparse
import importlib.util
import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from sklearn import feature_selection, linear_model
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from unbraid import Representation
from unbraid.metrics import dci_es, infomec
from unbraid.metrics._shared.capacities import DEPTHS
from unbraid.metrics._shared.inputs import split_rows


def main() -> None:
    """Print what each takes, and the ratio."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--infomec", type=Path)
    parser.add_argument("--dci-es", action="store_true")
    parser.add_argument("--rows", type=int, default=10_000)
    given = parser.parse_args()
    example = Representation.example()
    codes, factors = example.codes[: given.rows].astype(float), example.factors[: given.rows]
    if given.infomec:
        beside("infomec", lambda: infomec(codes, factors), authors(given.infomec, codes, factors))
    if given.dci_es:
        kinds = example.kinds
        beside("dci_es", lambda: dci_es(codes, factors, kinds=kinds), lambda: forests(codes, factors, kinds))


def beside(name: str, ours: Callable[[], object], theirs: Callable[[], object]) -> None:
    """One after the other, ours first and once more for the kernels."""
    ours()
    seconds = []
    for function in (ours, theirs):
        began = time.process_time()
        print(f"{name}: {function()}")
        seconds.append(time.process_time() - began)
    print(f"{name}: {seconds[0]:.1f} s, theirs {seconds[1]:.1f} s, {seconds[1] / seconds[0]:.1f} times as long")


def authors(path: Path, codes: np.ndarray, factors: np.ndarray) -> Callable[[], object]:
    """`compute_infomec` of their file, which current NumPy and scikit-learn only run with two calls changed."""
    spec = importlib.util.spec_from_file_location("authors_infomec", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{path}: no Python file")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def information(*arguments: Any, **options: Any) -> float:
        return feature_selection.mutual_info_classif(*arguments, **options)[0]

    def regression(*arguments: Any, **options: Any) -> linear_model.LogisticRegression:
        options.pop("multi_class", None)
        return linear_model.LogisticRegression(*arguments, **options)

    vars(module)["feature_selection"] = SimpleNamespace(mutual_info_classif=information)
    vars(module)["linear_model"] = SimpleNamespace(LogisticRegression=regression)
    np.random.seed(0)
    return lambda: module.compute_infomec(factors, codes, discrete_latents=False)


def forests(codes: np.ndarray, factors: np.ndarray, kinds: tuple[str, ...]) -> str:
    """Test scores of a hundred trees for each factor and depth."""
    train, test = split_rows(len(codes), (0.8, 0.2), 0)
    best = []
    for column, kind in zip(factors.T, kinds, strict=True):
        make = RandomForestClassifier if kind == "categorical" else RandomForestRegressor
        scores = [
            make(100, max_depth=depth, random_state=0).fit(codes[train], column[train]).score(codes[test], column[test])
            for depth in DEPTHS
        ]
        best.append(max(scores))
    return " ".join(f"{score:.3f}" for score in best)


if __name__ == "__main__":
    main()
