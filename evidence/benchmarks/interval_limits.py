"""How often intervals hold the mean where they are hard: `r2` of heavy-tailed codes, metrics of a few groups of rows.

    python evidence/benchmarks/interval_limits.py --samples 20         a piece of it
    python evidence/benchmarks/interval_limits.py tails new-tails      tables of docs/how-sure.md: minutes of one core
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
from unbraid.scoring.engine import score_each
from unbraid.scoring.score import choose
from unbraid.scoring.uncertainty import ScoreSettings, with_intervals

MORE = 3  # samples without interval for each with one, for the mean
NEW_TAILS = ("normal", "uniform", "laplace", "t5", "t3", "lognormal", "outliers")
TAILS = ("normal", "exponential", "t5", "t3", "t2", "lognormal", "lognormal factors")
GROUPS = ("constant", "one constant", "offsets", "unequal shares")


def heavy(tails: str, n_rows: int, rng: np.random.Generator) -> Representation:
    """Three normal factors in the first of five codes with noise of these tails."""
    factors, shape = rng.standard_normal((n_rows, 3)), (n_rows, 5)
    if tails == "normal":
        noise = rng.standard_normal(shape)
    elif tails == "exponential":
        noise = rng.exponential(size=shape)
    elif tails.startswith("t"):
        noise = rng.standard_t(int(tails[1:]), shape)
    else:
        noise = rng.lognormal(size=shape) if tails == "lognormal" else rng.standard_normal(shape)
    codes = 0.7 * noise
    codes[:, :3] += factors
    factors = np.exp(factors) if tails == "lognormal factors" else factors
    return Representation(codes, factors, kinds=("continuous",) * 3)


def mixed(tails: str, n_rows: int, rng: np.random.Generator) -> Representation:
    """Two uniform and two normal factors, mixed into six codes, with noise of these tails; no rule was chosen on it.

    "outliers" is normal noise that is ten times as large in one of 100 entries.
    """
    factors = np.column_stack([rng.uniform(-1.7, 1.7, (n_rows, 2)), rng.standard_normal((n_rows, 2))])
    shape = (n_rows, 6)
    noise = {
        "normal": rng.standard_normal,
        "uniform": lambda shape: rng.uniform(-1.7, 1.7, shape),
        "laplace": lambda shape: rng.laplace(size=shape),
        "t5": lambda shape: rng.standard_t(5, shape),
        "t3": lambda shape: rng.standard_t(3, shape),
        "lognormal": lambda shape: rng.lognormal(size=shape),
        "outliers": lambda shape: rng.standard_normal(shape) * np.where(rng.random(shape) < 0.01, 10, 1),
    }[tails](shape)
    mixing = np.random.default_rng(11).standard_normal((4, 6)) / 2
    return Representation(factors @ mixing + 0.5 * noise, factors, kinds=("continuous",) * 4)


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
    "tails": (("r2",), heavy, (60, 300, 3000), TAILS),
    "new-tails": (("r2",), mixed, (60, 300, 3000), NEW_TAILS),
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
