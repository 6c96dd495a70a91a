"""Interventional and symmetry metrics beside plainly written versions, in the same run on one thread.

    python evidence/benchmarks/interventions.py

The plain beta-VAE score, FactorVAE score and IRS follow the algorithm of disentanglement_lib in NumPy, one batch after
the other, with rows drawn from those of a level as ours are. The plain D_LSBD follows the authors' code: explicit
rotation matrices, for every combination of the frequencies. The first call compiles our kernels and is not counted;
of several runs the quickest counts.
"""

import itertools
import os
import time
import warnings
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import FactorSpace
from unbraid.metrics import beta_vae_score, d_lsbd, factor_vae_score, irs
from unbraid.metrics._shared.inputs import as_levels, check_inputs
from unbraid.metrics._shared.interventions import draw_pairs, group_rows, mean_differences

TORUS = FactorSpace(("x", "y"), (64, 64), ("cyclic", "cyclic"))


def best_of(function: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def rows_of_levels(factors: IntArray) -> list[list[IntArray]]:
    return [[np.flatnonzero(column == level) for level in np.unique(column)] for column in factors.T]


def plain_beta_vae(codes: FloatArray, factors: IntArray) -> float:
    rng = np.random.default_rng(0)
    members = rows_of_levels(factors)
    order = [np.concatenate(levels) for levels in members]
    counts = [np.array([len(level) for level in levels]) for levels in members]

    def points(count: int) -> tuple[FloatArray, IntArray]:
        features, labels = np.empty((count, codes.shape[1])), rng.integers(len(members), size=count)
        for point, factor in enumerate(labels):
            levels = rng.integers(len(members[factor]), size=64)
            first, size = (np.cumsum(counts[factor]) - counts[factor])[levels], counts[factor][levels]
            one, other = (order[factor][first + (size * rng.random(64)).astype(int)] for _ in range(2))
            features[point] = np.abs(codes[one] - codes[other]).mean(axis=0)
        return features, labels

    train, test = points(10_000), points(5_000)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return float(LogisticRegression().fit(*train).score(*test))


def plain_factor_vae(codes: FloatArray, factors: IntArray) -> float:
    rng = np.random.default_rng(0)
    members = rows_of_levels(factors)
    variances = codes.var(axis=0, ddof=1)
    active = variances >= 0.05

    def votes(count: int) -> IntArray:
        table = np.zeros((codes.shape[1], len(members)), dtype=int)
        for _ in range(count):
            factor = rng.integers(len(members))
            rows = rng.choice(members[factor][rng.integers(len(members[factor]))], size=64)
            local = codes[rows].var(axis=0, ddof=1)
            table[np.flatnonzero(active)[np.argmin(local[active] / variances[active])], factor] += 1
        return table

    train, test = votes(10_000), votes(5_000)
    return float(test[np.arange(len(test)), train.argmax(axis=1)].sum() / test.sum())


def plain_irs(codes: FloatArray, factors: IntArray) -> float:
    codes = codes[:, codes.var(axis=0) > 0]
    largest = np.abs(codes - codes.mean(axis=0)).max(axis=0)
    robustness = []
    for column in factors.T:
        binned = np.digitize(column, np.histogram(column, 20)[1][:-1])
        parts = [codes[binned == level] for level in np.unique(binned)]
        deviations = [np.percentile(np.abs(part - part.mean(axis=0)), 99, axis=0) for part in parts]
        robustness.append(1 - np.mean(deviations, axis=0) / largest)
    return float(np.average(np.max(robustness, axis=0), weights=largest))


def plain_d_lsbd(codes: FloatArray, max_frequency: int = 10) -> float:
    codes = codes.reshape(*TORUS.sizes, -1)
    angles = 2 * np.pi * TORUS.grid() / TORUS.sizes
    frequencies = range(-max_frequency, max_frequency + 1)
    best = np.inf
    for combination in itertools.product(frequencies, repeat=2):
        spreads = []
        for k, omega in enumerate(combination):
            moved = (codes - codes.mean(axis=k, keepdims=True)).reshape(-1, codes.shape[-1])
            plane = moved @ np.linalg.svd(moved, full_matrices=False)[2][:2].T
            plane /= np.sqrt((plane**2).sum(axis=1).mean())
            cosines, sines = np.cos(-omega * angles[:, k]), np.sin(-omega * angles[:, k])
            matrices = np.stack([cosines, -sines, sines, cosines], axis=-1).reshape(-1, 2, 2)
            turned = (matrices @ plane[..., None])[..., 0]
            spreads.append(((turned - turned.mean(axis=0)) ** 2).sum(axis=1).mean())
        best = min(best, float(np.mean(spreads)))
    return best


def compare(name: str, ours: Callable[[], float], plain: Callable[[], float], runs: int = 1) -> None:
    value, reference = ours(), plain()
    seconds, slow = best_of(ours, 7), best_of(plain, runs)
    print(
        f"{name:<18}{1e3 * seconds:9.2f} ms {1e3 * slow:11.1f} ms {slow / seconds:8.0f} x   {value:.4f} {reference:.4f}"
    )


def main() -> None:
    example = Representation.example()
    codes, factors = example.codes.astype(float), example.factors.astype(int)
    angles = 2 * np.pi * TORUS.grid() / TORUS.sizes
    rng = np.random.default_rng(0)
    torus = np.column_stack([np.cos(angles), np.sin(angles)]) + 0.3 * rng.standard_normal((len(TORUS), 4))

    print(f"10 000 rows of {codes.shape[1]} codes, {factors.shape[1]} factors; D_LSBD on a 64 x 64 grid of 4 codes")
    print(f"{'':<18}{'ours':>12} {'plain':>14} {'ratio':>10}   scores")
    compare("beta_vae_score", lambda: beta_vae_score(codes, factors).score, lambda: plain_beta_vae(codes, factors))
    compare(
        "factor_vae_score", lambda: factor_vae_score(codes, factors).score, lambda: plain_factor_vae(codes, factors)
    )
    compare("irs", lambda: irs(codes, factors).score, lambda: plain_irs(codes, factors), runs=5)
    compare(
        "d_lsbd",
        lambda: d_lsbd(torus, TORUS.grid(), kinds=TORUS.kinds).score,
        lambda: plain_d_lsbd(torus),
    )

    def without_classifier() -> FloatArray:
        groups = group_rows(as_levels(check_inputs(codes, factors)))
        rng = np.random.default_rng(0)
        return np.concatenate([mean_differences(codes, draw_pairs(groups, n, 64, rng)[0]) for n in (10_000, 5_000)])

    print(f"beta_vae_score without its classifier: {1e3 * best_of(without_classifier, 7):.1f} ms")


if __name__ == "__main__":
    main()
