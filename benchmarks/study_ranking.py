"""UDR of a whole study, from the codes on disk to the file of similarity matrices: time and memory on one thread.

    python benchmarks/study_ranking.py                     300 models of 10 000 x 10, all to all, Spearman and lasso
    python benchmarks/study_ranking.py --models 60

Half of the models are permuted copies in noise, half are rotations. Seconds are those of the processor.
"""

import argparse
import os
import resource
import tempfile
import time

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from unbraid import Representation
from unbraid.analysis.ranking import RankingOptions
from unbraid.analysis.ranking_file import rank_and_keep, ranking_path
from unbraid.studies.study_ranking import candidates_of


def population(folder: Path, n_models: int, n_samples: int, n_codes: int) -> list[Any]:
    """Finished runs, of which only what ranking looks at is there."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((n_samples, n_codes))
    factors = rng.integers(5, size=(n_samples, 5))
    runs = []
    for model in range(n_models):
        turn = np.linalg.qr(rng.standard_normal((n_codes, n_codes)))[0] if model % 2 else np.eye(n_codes)
        codes = base @ turn[:, rng.permutation(n_codes)] + 0.2 * rng.standard_normal((n_samples, n_codes))
        path = folder / f"run{model}"
        path.mkdir()
        spread = np.full_like(codes, -2.0, dtype=np.float32)
        Representation(codes.astype(np.float32), factors, log_variances=spread).save(path / "codes.safetensors")
        runs.append(
            SimpleNamespace(
                id=path.name, family="vae", setting=f"beta={model // 5}", state="finished", reason=None, path=path
            )
        )
    return runs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--codes", type=int, default=10)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = population(folder, arguments.models, arguments.samples, arguments.codes)
        for similarity in ("spearman", "lasso"):
            options = RankingOptions(similarity, "all")
            for again in (False, True):
                started = time.process_time()
                candidates, left_out = candidates_of(runs)
                ranking = rank_and_keep(folder, candidates, options, left_out)
                seconds = time.process_time() - started
                size = ranking_path(folder, options).stat().st_size / 1e6
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
                print(
                    f"{similarity:<9}{'again' * again:<6}{len(ranking.matrices) // 2:6} pairs {seconds:7.1f} s "
                    f"{size:6.1f} MB on disk {peak:5.1f} GB at most",
                    flush=True,
                )


if __name__ == "__main__":
    main()
