"""Information-theoretic metrics beside a peer, in the same run on one thread.

    python evidence/benchmarks/information.py                everything; the plain exact MIG alone takes about a minute
    python evidence/benchmarks/information.py --skip-exact   binned metrics only

The peer for binned information is disent (its metrics follow disentanglement_lib) where it is installed, and otherwise
its algorithm with scikit-learn, one pair of code and factor at a time. The peers for the exact quantities are the
formulas of Chen et al. 2018 as they stand, every density summed over every row, in NumPy. The first call compiles our
kernels and is not counted; of several runs the quickest counts.
"""

import argparse
import os
import time
from collections.abc import Callable
from importlib.util import find_spec

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from sklearn.metrics import mutual_info_score

from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import elbo_terms, factor_leakage, mig, mig_exact, modularity

SIZES = (3, 6, 40, 32, 32)


def posteriors(n_samples: int, n_codes: int, sizes: tuple[int, ...]) -> tuple[FloatArray, FloatArray, IntArray]:
    """Means, log-variances and factors: sharp codes of one factor each, then a mixed one, then idle ones."""
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, n_samples) for size in sizes], axis=1)
    centred = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    means = 0.02 * rng.standard_normal((n_samples, n_codes))
    log_variances = -0.01 * rng.random((n_samples, n_codes))
    means[:, : len(sizes)] = centred + 0.05 * rng.standard_normal(centred.shape)
    means[:, len(sizes)] = np.tanh(centred[:, 0] + centred[:, 1])
    log_variances[:, : len(sizes) + 1] = -4.5 + 0.7 * rng.standard_normal((n_samples, len(sizes) + 1))
    return means, log_variances, factors


def best_of(function: Callable[[], object], runs: int) -> float:
    times = []
    for _ in range(runs):
        started = time.perf_counter()
        function()
        times.append(time.perf_counter() - started)
    return min(times)


def peer_information(codes: FloatArray, factors: IntArray) -> FloatArray:
    if find_spec("disent"):
        from disent.metrics import utils

        return utils.discrete_mutual_info(utils.histogram_discretize(codes.T, num_bins=20), factors.T)
    binned = [np.digitize(code, np.histogram(code, 20)[1][:-1]) for code in codes.T]
    return np.array([[mutual_info_score(code, factor) for factor in factors.T] for code in binned])


def plain_exact_information(
    means: FloatArray, log_variances: FloatArray, factors: IntArray, n_samples: int
) -> FloatArray:
    """Equation 8: separate draws for each value of each factor and for the entropy of each code."""
    rng = np.random.default_rng(0)
    scales = np.exp(log_variances / 2)
    information = np.zeros((means.shape[1], factors.shape[1]))
    every = np.arange(len(means))

    def mean_log_density(rows: IntArray, code: int) -> float:
        drawn = rng.choice(rows, n_samples)
        draws = means[drawn, code] + scales[drawn, code] * rng.standard_normal(n_samples)
        total = 0.0
        for chunk in np.array_split(draws, 20):
            away = (chunk[:, None] - means[rows, code]) / scales[rows, code]
            densities = np.exp(-0.5 * away * away) / scales[rows, code]
            total += np.log(densities.mean(axis=1) / np.sqrt(2 * np.pi)).sum()
        return total / n_samples

    for code in range(means.shape[1]):
        whole = mean_log_density(every, code)
        for factor in range(factors.shape[1]):
            for value in np.unique(factors[:, factor]):
                rows = np.flatnonzero(factors[:, factor] == value)
                information[code, factor] += len(rows) / len(means) * (mean_log_density(rows, code) - whole)
    return information


def plain_total_correlation(means: FloatArray, log_variances: FloatArray) -> float:
    """One draw per row; log q(z) and every log q(z_j) summed over all rows."""
    rng = np.random.default_rng(0)
    scales = np.exp(log_variances / 2)
    samples = means + scales * rng.standard_normal(means.shape)
    total = 0.0
    for chunk in np.array_split(samples, 100):
        joint, marginals = 0.0, 0.0
        for code in range(means.shape[1]):
            away = (chunk[:, [code]] - means[:, code]) / scales[:, code]
            logs = -0.5 * away * away - np.log(scales[:, code])
            joint = joint + logs
            marginals = marginals + np.log(np.exp(logs).mean(axis=1))
        highest = np.max(joint, axis=1, keepdims=True)
        total += (np.log(np.exp(joint - highest).mean(axis=1)) + highest[:, 0] - marginals).sum()
    return total / len(means)


def row(name: str, ours: float, peer: float, remark: str = "") -> None:
    print(f"{name:<34}{ours:9.4f} s   peer {peer:9.3f} s   x {peer / ours:7.1f}   {remark}")


def binned() -> None:
    print(f"peer of binned information: {'disent' if find_spec('disent') else 'scikit-learn, as disent is absent'}")
    for n_codes, sizes in ((10, SIZES), (256, (*SIZES, 10))):
        codes, _, factors = posteriors(10_000, n_codes, sizes)
        mig(codes, factors)
        off = np.abs(mig(codes, factors).mutual_information - peer_information(codes, factors)).max()
        peer = best_of(lambda c=codes, f=factors: peer_information(c, f), 2)
        for metric in (mig, modularity, factor_leakage):
            ours = best_of(lambda m=metric, c=codes, f=factors: m(c, f), 5)
            row(f"{metric.__name__} 10 000 x {n_codes}", ours, peer, f"information differs by {off:.1e}")


def exact() -> None:
    means, log_variances, factors = posteriors(10_000, 10, SIZES)
    truth = mig_exact(means, factors, log_variances=log_variances, method="quadrature")
    sampled = mig_exact(means, factors, log_variances=log_variances)
    started = time.perf_counter()
    plain = plain_exact_information(means, log_variances, factors, 10_000)
    peer = time.perf_counter() - started
    for method in ("monte_carlo", "quadrature"):
        ours = best_of(lambda m=method: mig_exact(means, factors, log_variances=log_variances, method=m), 3)
        row(f"mig_exact {method} 10 000 x 10", ours, peer, f"score {truth.score:.5f}")
    ours_off, plain_off = (np.abs(m - truth.mutual_information).max() for m in (sampled.mutual_information, plain))
    print(
        f"    information off quadrature by at most {ours_off:.4f} "
        f"(standard error at most {sampled.mutual_information_error.max():.4f}); plain {plain_off:.4f}"
    )
    terms = elbo_terms(means, log_variances=log_variances)
    started = time.perf_counter()
    total_correlation = plain_total_correlation(means, log_variances)
    peer = time.perf_counter() - started
    ours = best_of(lambda: elbo_terms(means, log_variances=log_variances), 3)
    row("elbo_terms 10 000 x 10", ours, peer)
    print(
        f"    total correlation {terms.total_correlation:.4f} +- {terms.standard_error:.4f}; "
        f"plain {total_correlation:.4f}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--skip-exact", action="store_true")
    binned()
    if not parser.parse_args().skip_exact:
        exact()
