"""Seconds of our boosted trees and of scikit-learn's, on the same rows in the same run.

Run: python evidence/benchmarks/dci_boosted.py [FILE.npz] [--full] [--rows N] [--repeat 3]

FILE holds `codes` (n_samples, n_codes) and `factors` (n_samples, n_factors) of whole numbers; without it, mixed codes
of five factors of 3, 6, 40, 32 and 32 levels are drawn. By default factors of few levels and one with its levels merged
to 16 are compared, which takes about a minute; --full takes every level of every factor. Processor time on one thread:
the other work of the machine counts for neither side. Ours is the fastest of --repeat runs, after one that compiles.
"""

import argparse
import os
import time
from pathlib import Path

for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"

import numpy as np  # noqa: E402
from sklearn.ensemble import GradientBoostingClassifier  # noqa: E402

from unbraid.base.types import FloatArray, IntArray  # noqa: E402
from unbraid.metrics import dci_from_importance  # noqa: E402
from unbraid.metrics._solvers.boosting import RankedCodes, boosted_classes, ranked_codes  # noqa: E402

SIZES = (3, 6, 40, 32, 32)
FEW_LEVELS = 6
SUBSET_OF_LEVELS = 16


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path, nargs="?", help="codes and factors; drawn where not given")
    parser.add_argument("--full", action="store_true", help="all levels of all factors")
    parser.add_argument("--rows", type=int, help="use the first so many rows; of drawn codes, 10 000 by default")
    parser.add_argument("--repeat", type=int, default=3, help="runs of ours")
    arguments = parser.parse_args()
    codes, factors = read(arguments.file) if arguments.file else drawn(arguments.rows or 10_000)
    codes, factors = codes[: arguments.rows], factors[: arguments.rows]
    if not arguments.full:
        codes, factors = subset(codes, factors)
    order = np.random.default_rng(0).permutation(len(codes))
    train, test = np.split(order, [round(len(codes) * 2 / 3)])
    n_classes = sum(len(np.unique(column)) for column in factors.T)
    print(f"{len(train)} training rows, {codes.shape[1]} codes, {factors.shape[1]} factors, {n_classes} classes")

    ours: list[float] = []
    importance = np.zeros((codes.shape[1], factors.shape[1]))
    fit(ranked_codes(codes[train][:100], codes[test]), factors[train, 0][:100])
    for _ in range(arguments.repeat):
        started = time.process_time()
        ranked = ranked_codes(codes[train], codes[test])
        for column in range(factors.shape[1]):
            importance[:, column] = fit(ranked, factors[train, column])
        ours.append(time.process_time() - started)
    report("unbraid", min(ours), importance)

    started = time.process_time()
    exact = np.zeros_like(importance)
    for column in range(factors.shape[1]):
        model = GradientBoostingClassifier(random_state=0).fit(codes[train], factors[train, column])
        exact[:, column] = model.feature_importances_
    theirs = time.process_time() - started
    report("scikit-learn", theirs, exact)
    print(f"ratio {theirs / min(ours):.0f}, greatest difference of an importance {abs(importance - exact).max():.4f}")


def fit(ranked: RankedCodes, classes: IntArray) -> FloatArray:
    return boosted_classes(ranked, classes, n_iterations=100, learning_rate=0.1, seed=0).importance


def read(path: Path) -> tuple[FloatArray, IntArray]:
    with np.load(path) as file:
        return file["codes"].astype(float), file["factors"].astype(int)


def drawn(n_rows: int) -> tuple[FloatArray, IntArray]:
    """Ten codes: each factor in one, noisy and slightly mixed, and five of noise alone."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, n_rows) for size in SIZES], axis=1)
    centred = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    mixing = np.eye(5) + 0.2 * rng.standard_normal((5, 5))
    mixed = centred @ mixing + 0.1 * rng.standard_normal(centred.shape)
    return np.hstack([mixed, rng.standard_normal((n_rows, 5))]), factors


def subset(codes: FloatArray, factors: IntArray) -> tuple[FloatArray, IntArray]:
    """Factors of few levels as they are, and the first of the others with neighbouring levels merged."""
    sizes = [len(np.unique(column)) for column in factors.T]
    kept = [column for column, size in enumerate(sizes) if size <= FEW_LEVELS]
    many = [column for column, size in enumerate(sizes) if size > FEW_LEVELS][:1]
    merged = [factors[:, [column]] * SUBSET_OF_LEVELS // (factors[:, column].max() + 1) for column in many]
    return codes, np.hstack([factors[:, kept], *merged])


def report(name: str, seconds: float, importance: FloatArray) -> None:
    scores = dci_from_importance(importance)
    print(f"{name:<14}{seconds:>9.2f} s   D {scores.disentanglement:.4f}   C {scores.completeness:.4f}")


if __name__ == "__main__":
    main()
