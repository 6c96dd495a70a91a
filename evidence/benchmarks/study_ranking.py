"""UDR of a whole study, all to all, from the codes on disk to the kept ranking: seconds of all cores, and memory.

    python evidence/benchmarks/study_ranking.py                     300 models of 10 000 x 10, Spearman, lasso, cross-validated
    python evidence/benchmarks/study_ranking.py --models 600 --similarity lasso
    python evidence/benchmarks/study_ranking.py --models 5400 --similarity spearman    in full; 9 GB of the disk

Half of the models are permuted copies in noise, half are rotations. Seconds are those of the processor, summed over
cores; pairs grow with the square of the models, from which the time of 5 400 is told. "and one": one model more.
"""

import argparse
import resource
import tempfile
import time
from pathlib import Path

import numpy as np

from unbraid import Representation
from unbraid.ranking.cache import rank_and_keep, ranking_path
from unbraid.ranking.candidate import Candidate
from unbraid.ranking.ranking import RankingOptions

OPTIONS = {
    "spearman": RankingOptions("spearman", "all"),
    "lasso": RankingOptions("lasso", "all"),
    "cv": RankingOptions("lasso", "all", alpha="cv"),
}


def population(folder: Path, n_models: int, n_samples: int, n_codes: int) -> list[Path]:
    """Files of codes."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((n_samples, n_codes))
    factors = rng.integers(5, size=(n_samples, 5))
    paths = []
    for model in range(n_models):
        turn = np.linalg.qr(rng.standard_normal((n_codes, n_codes)))[0] if model % 2 else np.eye(n_codes)
        codes = base @ turn[:, rng.permutation(n_codes)] + 0.2 * rng.standard_normal((n_samples, n_codes))
        spread = np.full_like(codes, -2.0, dtype=np.float32)
        paths.append(folder / f"{model}.safetensors")
        Representation(codes.astype(np.float32), factors, log_variances=spread).save(paths[-1])
    return paths


def candidate(place: int, path: Path) -> Candidate:
    """Its codes are read whenever they are needed, as those of a large study are."""
    representation = Representation.load(path)
    return Candidate.from_representation(
        path.stem, "vae", f"beta={place // 5}", representation, lambda: Representation.load(path).codes
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=int, default=300)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--codes", type=int, default=10)
    parser.add_argument("--similarity", choices=OPTIONS, action="append")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = population(folder, arguments.models + 1, arguments.samples, arguments.codes)
        for similarity in arguments.similarity or OPTIONS:
            options = OPTIONS[similarity]
            for case, chosen in (("", paths[:-1]), ("again", paths[:-1]), ("and one", paths)):
                started, clock = time.process_time(), time.perf_counter()
                ranking = rank_and_keep(folder, [candidate(*each) for each in enumerate(chosen)], options, {})
                seconds, waited = time.process_time() - started, time.perf_counter() - clock
                size = ranking_path(folder, options).stat().st_size / 1e6
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
                pairs = len(ranking.runs) * (len(ranking.runs) - 1)
                whole = "" if case else f", 5 400 models {seconds * 5400 * 5399 / pairs / 3600:5.2f} h on one core"
                print(
                    f"{similarity:<10}{case:<8}{pairs:8} regressions {seconds:7.1f} s ({waited:.1f} s by the clock) "
                    f"{size:6.1f} MB on disk {peak:5.2f} GB at most{whole}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
