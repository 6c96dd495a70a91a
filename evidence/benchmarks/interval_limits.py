"""How often intervals hold the mean where they are hard: `r2` of heavy-tailed codes, metrics of a few groups of rows.

    python evidence/benchmarks/interval_limits.py --samples 20         a piece of it
    python evidence/benchmarks/interval_limits.py tails                the table of docs/how-sure.md: ten minutes of a core
    python evidence/benchmarks/interval_limits.py groups               half an hour

An interval should hold the mean of the scores of all samples. `r2` gives none where a code or a continuous factor has
heavy tails: a mean over samples then rests on a few of them, far below the others.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from unbraid import Representation
from unbraid.base.types import FloatArray
from unbraid.scoring.engine import ScoreSettings, score_each
from unbraid.scoring.score import choose
from unbraid.scoring.uncertainty import with_intervals

MORE = 3  # samples without interval for each with one, for the mean
LIGHT = ("normal", "uniform", "levels", "t10")
HEAVY = ("t5", "t4", "t3", "t2", "lognormal", "pareto", "entries 1", "entries 5", "rows 1", "rows 5")
ELSEWHERE = ("t10 both", "t3 factors", "lognormal factors", "t3 both")
GROUPS = ("constant", "one constant", "offsets", "unequal shares")
LEVELS = np.array([3, 5, 8])


def draw_values(tails: str, shape: tuple[int, int], rng: np.random.Generator) -> FloatArray:
    """Values (n, d) of these tails; "entries 5" and "rows 5" are normal ones, ten times as large in 5 of 100."""
    kind, _, percent = tails.partition(" ")
    if kind in ("entries", "rows"):
        outlying = rng.random(shape if kind == "entries" else (shape[0], 1)) < int(percent) / 100
        return rng.standard_normal(shape) * np.where(outlying, 10, 1)
    if kind[0] == "t":
        return rng.standard_t(int(kind[1:]), shape)
    return {
        "normal": rng.standard_normal,
        "uniform": lambda shape: rng.uniform(-1.7, 1.7, shape),
        "lognormal": lambda shape: rng.lognormal(size=shape),
        "pareto": lambda shape: rng.pareto(3, shape),
    }[kind](shape)


def heavy(tails: str, n_rows: int, rng: np.random.Generator) -> Representation:
    """A code for each of three factors, two that mix them and two of noise; no rule was chosen on it.

    Noise has these tails; with "factors" factors have them instead, with "both" both. Of "levels" factors have 3, 5 and
    8 levels.
    """
    kind, _, where = tails.partition(" ")
    of_factors = kind if where in ("factors", "both") else "normal"
    of_noise = "normal" if where == "factors" or kind == "levels" else kind if where == "both" else tails
    factors = draw_values(of_factors, (n_rows, 3), rng)
    if kind == "levels":
        factors = rng.integers(0, LEVELS, (n_rows, 3)) / np.sqrt((LEVELS**2 - 1) / 12)
    mixed = [factors @ [0.8, -0.5, 0.3], factors @ [-0.4, 0.6, 0.7]]
    codes = np.column_stack([factors, *mixed, np.zeros((n_rows, 2))]) + 0.5 * draw_values(of_noise, (n_rows, 7), rng)
    return Representation(codes, factors, kinds=(("ordinal" if kind == "levels" else "continuous"),) * 3)


def grouped(how: str, n_groups: int, rng: np.random.Generator) -> Representation:
    """Two factors of 3 and 4 levels, in the first two of four codes, which have an offset of each group; 10 rows each.

    Factors are constant within groups, one of them, or none; or each group has its own shares of levels.
    """
    groups = np.repeat(np.arange(n_groups), 10)
    columns = []
    for place, size in enumerate((3, 4)):
        if how == "constant" or (how == "one constant" and place == 0):
            columns.append(rng.integers(0, size, n_groups)[groups])
        elif how == "unequal shares":
            shares = rng.dirichlet(np.full(size, 0.7), n_groups)
            columns.append((rng.random((len(groups), 1)) > np.cumsum(shares, axis=1)[groups, :-1]).sum(axis=1))
        else:
            columns.append(rng.integers(0, size, len(groups)))
    codes = 0.6 * rng.standard_normal((n_groups, 4))[groups] + 0.5 * rng.standard_normal((len(groups), 4))
    factors = np.stack(columns, axis=1)
    codes[:, :2] += factors
    return Representation(codes, factors, kinds=("ordinal",) * 2, groups=groups)


def measure(
    metric: str, source: Callable[[str, int, np.random.Generator], Representation], size: int, name: str, n_samples: int
) -> str:
    """A line of the table."""
    started, headlines, ends = time.process_time(), [], []
    for number in range((1 + MORE) * n_samples):
        if number == n_samples and not ends:
            break
        drawn = source(name, size, np.random.default_rng([number, size, *map(ord, name)]))
        scored = dict(score_each(drawn, choose([metric]), with_chance=False))[metric]
        if isinstance(scored, Exception):
            continue
        headlines.append(scored.headline)
        if number < n_samples:
            made = with_intervals(drawn, {metric: scored}, 0.95, None, ScoreSettings(0))[metric].intervals
            ends += [] if made is None else [made.values[scored.metric.headline][:2]]
    mean, (low, high) = np.mean(headlines), np.array(ends).reshape(-1, 2).T
    held = f"{100 * np.mean((low <= mean) & (mean <= high)):.1f}" if len(ends) else "–"
    print(f"{time.process_time() - started:.0f} s", file=sys.stderr)
    return (
        f"| {name} | {size:,} | {100 * len(ends) / n_samples:.0f} | {held} | "
        f"{100 * np.sum((mean < low) | (high < mean)) / n_samples:.1f} |"
    )


TABLES = {
    "tails": (("r2",), heavy, (60, 300, 3000), LIGHT + HEAVY + ELSEWHERE),
    "groups": (("mig", "sap"), grouped, (15, 30, 60), GROUPS),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tables", nargs="*", choices=TABLES, default=list(TABLES))
    parser.add_argument("--metrics", nargs="+", help="instead of those of the table")
    parser.add_argument("--samples", type=int, default=200)
    options = parser.parse_args()
    for table in options.tables:
        metrics, source, sizes, names = TABLES[table]
        for metric in options.metrics or metrics:
            print(f"\n| {metric} | size | with interval, % | of these held, % | of all missed, % |")
            for size in sizes:
                for name in names:
                    print(measure(metric, source, size, name, options.samples), flush=True)


if __name__ == "__main__":
    main()
