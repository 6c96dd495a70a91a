"""UDR of a population: pairs a second, and beside scikit-learn a pair, in the same run on one thread.

    python evidence/benchmarks/udr.py                    60 models, and what 300 would take
    python evidence/benchmarks/udr.py --models 300       the whole of it: 44 850 pairs, both directions

The peer fits MultiTaskLassoCV with its defaults (or computes spearmanr) on a few pairs, both directions, as one would
without shared work. Half of the models are permuted copies in noise, half are rotations. The first call compiles our
kernels and is not counted.
"""

import argparse
import os
import time
import warnings

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy.stats import spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import MultiTaskLassoCV

from unbraid.base.types import FloatArray
from unbraid.metrics import udr
from unbraid.metrics._shared.inputs import standardised

N_PEER_PAIRS = 3


def population(n_models: int, n_samples: int, n_codes: int) -> list[FloatArray]:
    rng = np.random.default_rng(0)
    base = rng.standard_normal((n_samples, n_codes))
    models = []
    for model in range(n_models):
        turn = np.linalg.qr(rng.standard_normal((n_codes, n_codes)))[0] if model % 2 else np.eye(n_codes)
        codes = base @ turn[:, rng.permutation(n_codes)] + 0.2 * rng.standard_normal((n_samples, n_codes))
        models.append(codes.astype(np.float32))
    return models


def peer_lasso(first: FloatArray, second: FloatArray) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        MultiTaskLassoCV(cv=5).fit(second, first)
        MultiTaskLassoCV(cv=5).fit(first, second)


def peer_spearman(first: FloatArray, second: FloatArray) -> None:
    spearmanr(first, second)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=60)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--codes", type=int, default=10)
    arguments = parser.parse_args()
    models = population(arguments.models, arguments.samples, arguments.codes)
    n_pairs = len(models) * (len(models) - 1) // 2
    print(f"{len(models)} models of {arguments.samples} x {arguments.codes}: {n_pairs} pairs")
    for similarity, peer in (("lasso", peer_lasso), ("spearman", peer_spearman)):
        udr(models[:2], similarity=similarity)
        started = time.perf_counter()
        udr(models, similarity=similarity)
        seconds = time.perf_counter() - started
        started = time.perf_counter()
        for pair in range(N_PEER_PAIRS):
            peer(standardised(models[pair].astype(float)), standardised(models[pair + 1].astype(float)))
        slow = (time.perf_counter() - started) / N_PEER_PAIRS
        print(
            f"{similarity:<10}{seconds:7.1f} s {n_pairs / seconds:8.0f} pairs/s   300 models: "
            f"{44_850 * seconds / n_pairs:6.1f} s   peer {slow:6.3f} s a pair: {slow * n_pairs / seconds:6.0f} x"
        )


if __name__ == "__main__":
    main()
