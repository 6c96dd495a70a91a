"""How often the intervals of `score(confidence=0.95)` hold what they promise, on sources of which samples can be drawn.

    python evidence/benchmarks/interval_coverage.py --quick            two metrics, one source: under a minute
    python evidence/benchmarks/interval_coverage.py                    metrics that are computed at once (about ten minutes)
    python evidence/benchmarks/interval_coverage.py --trained          metrics that are trained (an hour; fewer samples)
    python evidence/benchmarks/interval_coverage.py --metrics mig,snc --sources noisy --rows 500 --samples 400

Writes what it measured into evidence/coverage.json, in place of what was there of the same metric, source and rows.

Of each source many samples are drawn and scored. The mean of the scores, of others drawn for it as well, is what the
intervals are to hold; the share of samples whose interval does so is the coverage.
"""

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np
from scipy.special import ndtr

from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import METRICS
from unbraid.scoring.engine import ScoreSettings, score_each
from unbraid.scoring.score import choose
from unbraid.scoring.scored import Scored
from unbraid.scoring.uncertainty import with_intervals

OUT = Path(__file__).parents[1] / "coverage.json"
SIZES = np.array([3, 5, 8])
CONFIDENCE = 0.95
AT_ONCE = [name for name, row in METRICS.items() if not isinstance(row.interval, str) and row.interval.times > 20]
TRAINED = [name for name, row in METRICS.items() if not isinstance(row.interval, str) and name not in AT_ONCE]
UNMEASURED = ("zero_shot",)  # the gap is the user's, and decides


def independent(n_samples: int, rng: np.random.Generator) -> IntArray:
    return np.stack([rng.integers(0, size, n_samples) for size in SIZES], axis=1)


def dependent_factors(n_samples: int, rng: np.random.Generator) -> IntArray:
    """A Gaussian chain of correlations .7 and .5, cut into levels."""
    normal = rng.standard_normal((n_samples, 3))
    normal[:, 1] = 0.7 * normal[:, 0] + np.sqrt(1 - 0.7**2) * normal[:, 1]
    normal[:, 2] = 0.5 * normal[:, 1] + np.sqrt(1 - 0.5**2) * normal[:, 2]
    return np.minimum((ndtr(normal) * SIZES).astype(int), SIZES - 1)


def held(codes: FloatArray, factors: IntArray) -> Representation:
    return Representation(codes, factors, log_variances=np.full(codes.shape, -2.0), kinds=("ordinal",) * 3)


def perfect(n_samples: int, rng: np.random.Generator) -> Representation:
    """A code for each factor, without noise."""
    factors = independent(n_samples, rng)
    return held(factors.astype(float), factors)


def with_noise(factors: IntArray, rng: np.random.Generator) -> Representation:
    """A code for each factor with noise of .3 of its deviation, and two codes of noise."""
    centred = (factors - (SIZES - 1) / 2) / np.sqrt((SIZES**2 - 1) / 12)
    noise = rng.standard_normal((len(factors), 5))
    return held(np.hstack([centred + 0.3 * noise[:, :3], noise[:, 3:]]), factors)


def noisy(n_samples: int, rng: np.random.Generator) -> Representation:
    return with_noise(independent(n_samples, rng), rng)


def dependent(n_samples: int, rng: np.random.Generator) -> Representation:
    return with_noise(dependent_factors(n_samples, rng), rng)


def rotated(n_samples: int, rng: np.random.Generator) -> Representation:
    """The noisy codes, the first two and then the second two turned by 30 degrees."""
    given, turn = noisy(n_samples, rng), np.eye(5)
    for first in (0, 1):
        plane = np.eye(5)
        plane[first : first + 2, first : first + 2] = [[np.sqrt(0.75), -0.5], [0.5, np.sqrt(0.75)]]
        turn = turn @ plane
    return replace(given, codes=given.codes @ turn)


def trained(n_samples: int, rng: np.random.Generator) -> Representation:
    """Rows of the shipped codes of a trained model, each code moved by normal noise of a 20th of its deviation.

    Rows alone would come back in samples of as many as there are, and a third of these samples would lack the outermost
    row, which decides where bins of equal width lie.
    """
    example = Representation.example()
    drawn = example.keep_rows(rng.integers(0, len(example), n_samples))
    noise = 0.05 * example.codes.std(axis=0) * rng.standard_normal(drawn.codes.shape)
    return replace(drawn, codes=drawn.codes + noise)


def uneven(n_samples: int, rng: np.random.Generator) -> Representation:
    """Four factors of unequal levels, partly entangled, in six codes of unequal noise, one of heavy tails.

    The first code is of the first factor alone, two codes mix the second and the third, two more have the fourth on
    an arc, and the last is heavy-tailed noise with a little of each.
    """
    levels = [rng.choice(size, n_samples, p=np.arange(size, 0, -1) / (size * (size + 1) / 2)) for size in (2, 4, 6, 10)]
    first, second, third, fourth = (np.array(level) / level.max() for level in levels)
    signal = [
        first, second + 0.4 * third, third - 0.7 * second, np.sin(2 * fourth), np.cos(2 * fourth) + 0.2 * first,
        0.1 * (first + second + third + fourth),
    ]  # fmt: skip
    noise = rng.standard_t(5, (n_samples, 6)) * np.array([0.05, 0.1, 0.3, 0.05, 0.2, 1.0])
    factors = np.stack(levels, axis=1)
    codes = np.stack(signal, axis=1) + noise
    return Representation(codes, factors, log_variances=np.full(codes.shape, -2.0), kinds=("ordinal",) * 4)


def bent(n_samples: int, rng: np.random.Generator) -> Representation:
    """Dependent factors on curves in four codes, with noise that grows with a factor: drawn once all methods stood."""
    factors = dependent_factors(n_samples, rng)
    first, second, third = (factors / (SIZES - 1)).T
    signal = np.stack(
        [np.tanh(3 * first - 1) + 0.3 * second**2, second, np.exp(third) - 0.5 * first, 0 * first], axis=1
    )
    noise = (0.05 + 0.4 * third)[:, None] * rng.standard_normal((n_samples, 4)) * [1, 0.5, 1, 2]
    return held(signal + noise, factors)


SOURCES: dict[str, Callable[[int, np.random.Generator], Representation]] = {
    "perfect": perfect, "noisy": noisy, "rotated": rotated, "dependent": dependent, "trained": trained,
    "uneven": uneven, "bent": bent,
}  # fmt: skip


def scored(representation: Representation, metrics: list[str]) -> dict[str, Scored]:
    found = {}
    for name, each in score_each(representation, choose(metrics), with_chance=False):
        if isinstance(each, Exception):
            raise each
        found[name] = each
    return found


def measure(
    source: str, n_samples: int, metrics: list[str], n_draws: int, times: int | None, more: int
) -> list[dict[str, Any]]:
    """The coverage of each metric's headline on one source."""
    rng, started = np.random.default_rng([len(source), n_samples]), time.process_time()
    headlines, ends, deviations = [], [], []
    for _ in range(n_draws):
        drawn = SOURCES[source](n_samples, rng)
        cards = with_intervals(drawn, scored(drawn, metrics), CONFIDENCE, times, ScoreSettings(0))
        headlines.append([cards[name].headline for name in metrics])
        found = [cards[name].intervals for name in metrics]
        own = [each.values[METRICS[name].headline] for name, each in zip(metrics, found, strict=True) if each]
        ends.append([(each.low, each.high) for each in own])
        deviations.append([each.deviation for each in own])
    others = [
        [each.headline for each in scored(SOURCES[source](n_samples, rng), metrics).values()] for _ in range(more)
    ]
    known = np.array(headlines + others)
    truth, deviation = known.mean(axis=0), known.std(axis=0, ddof=1)
    low, high = np.moveaxis(np.array(ends), -1, 0)
    holds = ((low - 1e-9 <= truth) & (truth <= high + 1e-9)).mean(axis=0)
    estimated = np.sqrt(np.mean(np.square(deviations), axis=0))
    seconds = time.process_time() - started
    print(f"{source}, {n_samples} rows, {n_draws} samples: {seconds:.0f} s", flush=True)
    parts = [each.times for each in found if each]
    rows = []
    for k, name in enumerate(metrics):
        rows.append(
            {
                "metric": name, "version": METRICS[name].version, "source": source, "rows": n_samples,
                "samples": n_draws, "parts": parts[k], "coverage": round(float(holds[k]), 4),
                "mean": round(float(truth[k]), 4), "deviation": round(float(deviation[k]), 5),
                "estimated": round(float(estimated[k]), 5),
            }
        )  # fmt: skip
        near = (holds[k] * n_draws + 2) / (n_draws + 4)  # Agresti and Coull
        give = 200 * np.sqrt(near * (1 - near) / (n_draws + 4))
        print(
            f"  {name:<20}{holds[k]:7.1%} ± {give:.0f} %   deviation {deviation[k]:.4f}, estimated {estimated[k]:.4f}"
        )
    return rows


def keep(rows: list[dict[str, Any]]) -> None:
    """Put them into the file, in the order of the table of metrics."""
    key = ("metric", "source", "rows")
    known = json.loads(OUT.read_text(encoding="utf-8")) if OUT.exists() else []
    new = {tuple(row[name] for name in key) for row in rows}
    known = [row for row in known if tuple(row[name] for name in key) not in new] + rows
    order = list(METRICS)
    known.sort(key=lambda row: (order.index(row["metric"]), list(SOURCES).index(row["source"]), row["rows"]))
    lines = ",\n".join(json.dumps(row) for row in known)
    OUT.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two metrics, one source, nothing written")
    parser.add_argument("--trained", action="store_true", help="the metrics that are trained")
    parser.add_argument("--metrics", default="")
    parser.add_argument("--sources", default=",".join(SOURCES))
    parser.add_argument("--rows", default="500,2000")
    parser.add_argument("--samples", type=int, help="drawn of each source")
    parser.add_argument("--parts", type=int, help="of each sample; default what the table of metrics says")
    given = parser.parse_args()
    metrics = given.metrics.split(",") if given.metrics else TRAINED if given.trained else AT_ONCE
    metrics = [name for name in metrics if name not in UNMEASURED]
    n_draws = given.samples or (50 if given.trained else 100)
    if given.quick:
        measure("noisy", 500, ["mig", "modularity"], 100, given.parts, 200)
        return
    for source in given.sources.split(","):
        for rows in map(int, given.rows.split(",")):
            keep(measure(source, rows, metrics, n_draws, given.parts, 100 if given.trained else 300))


if __name__ == "__main__":
    main()
