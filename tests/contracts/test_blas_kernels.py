"""The same numbers whichever kernel the BLAS takes: processors differ in the last place of every sum of products."""

import inspect
import json
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from tests.examples import SPACE, entangled_codes, noisy_codes, perfect_codes, rotated_codes
from unbraid.metrics import METRICS, udr
from unbraid.scoring.correlation import correlation

NEEDS = {"Haswell": {"avx2", "fma"}, "Zen": {"avx2", "fma"}, "SkylakeX": {"avx512f", "avx512bw", "avx512vl"}}
ALIKE = {"Zen": "Haswell"}  # builds for wheels leave out what is another's copy
SLOW = {"Zen", "SkylakeX"}  # the first is Haswell's, the second what processors that have it take by themselves
QUALITIES = perfect_codes, rotated_codes, noisy_codes, entangled_codes
DAILY = 2  # of them
CPU = Path("/proc/cpuinfo")
HERE = Path(__file__).parents[2]


def numbers(n_qualities: int) -> dict[str, list[float]]:
    """Correlations of columns that are the same but for a line, and what metrics say of codes neither good nor bad."""
    rng = np.random.default_rng(0)
    told: dict[str, list[float]] = {"same": []}
    for n in (3, 5, 8, 9, 12, 18, 42, 100):
        for column in rng.standard_normal((8, n)):
            told["same"] += [correlation(column, sign * column, "pearson")[0] * sign for sign in (1, -1)]
            told["same"] += [correlation(column, sign * 2.5 * column + 1)[0] * sign for sign in (1, -1)]
    grid = SPACE.grid()
    given = {"log_variances": np.full(grid.shape, -2.0), "held_out": lambda rows: rows[:, 2] - rows[:, 1] > 4}
    for name in METRICS.keys() - {"udr", "tad"}:
        metric = METRICS[name]
        taken = inspect.signature(metric.function).parameters
        beside = {key: value for key, value in given.items() if key in taken}
        results = (metric.function(codes(grid), grid, kinds=SPACE.kinds, **beside) for codes in QUALITIES[:n_qualities])
        told[name] = [float(getattr(result, metric.headline)) for result in results]
    told["udr"] = udr([codes(grid) for codes in QUALITIES[:n_qualities]], similarity="spearman").scores.tolist()
    return told


@cache
def numbers_here(n_qualities: int) -> dict[str, list[float]]:
    return numbers(n_qualities)


def cpu_has(features: set[str]) -> bool:
    flags = (
        next((line for line in CPU.read_text().splitlines() if line.startswith("flags")), "") if CPU.exists() else ""
    )
    return features <= set(flags.split())


@pytest.mark.parametrize(
    "kernel", [pytest.param(name, marks=[pytest.mark.slow] if name in SLOW else []) for name in NEEDS]
)
@pytest.mark.lengthy
def test_no_number_depends_on_the_kernel(kernel: str) -> None:
    if not cpu_has(NEEDS[kernel]):
        pytest.skip(f"this processor cannot run {kernel}'s kernels")
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path])}
    n_qualities = len(QUALITIES) if kernel in SLOW else DAILY
    command = [sys.executable, "-m", "tests.contracts.test_blas_kernels", str(n_qualities)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=HERE)
    assert done.returncode == 0, done.stderr
    architectures, theirs = json.loads(done.stdout)
    if not {kernel, ALIKE.get(kernel)} & set(architectures):
        pytest.skip(f"NumPy's BLAS here is no OpenBLAS that has {kernel}'s kernels")
    ours = numbers_here(n_qualities)
    assert theirs.pop("same") == ours["same"] == [1.0] * len(ours["same"])
    for name, values in theirs.items():
        assert values == pytest.approx(ours[name], abs=1e-9), name


if __name__ == "__main__":
    print(json.dumps([[each.get("architecture") for each in threadpool_info()], numbers(int(sys.argv[1]))]))
