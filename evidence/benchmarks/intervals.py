"""What intervals cost: seconds of the scores of parts of the rows over those of one score, metric by metric.

    python evidence/benchmarks/intervals.py                   metrics that are computed at once, on the shipped example
    python evidence/benchmarks/intervals.py --metrics mig     some of them
    python evidence/benchmarks/intervals.py --growth          with a quarter, half, all and twice as many parts: linear in them

One thread is used throughout. The first calls compile the kernels and are not counted. There are as many parts as an
interval of the metric takes by default, 50 to 100. The loop beside it scores the same parts by calls of the function
itself, which check, number and sort their input each time. Seconds are those of the processor; ratios are of one
process, and with --growth of the last number of parts.
"""

import argparse
import os
import time
from collections.abc import Callable, Sequence

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[variable] = "1"

import numpy as np

from unbraid import Representation, score
from unbraid.metrics import METRICS
from unbraid.metrics._shared.resampling import Resampling, draw_part
from unbraid.scoring.engine import ScoreSettings
from unbraid.scoring.uncertainty import scores_of_parts

CHOSEN = "mig,med,sap,modularity,snc,factor_leakage,dci_lasso,irs,amari,mcc,r2"


ROUNDS, REPEATS = 3, 5


def seconds(works: Sequence[Callable[[], object]]) -> list[float]:
    """Of the fastest of several rounds, in which they take turns: what else the machine does slows all of them."""
    taken = np.empty((ROUNDS, len(works)))
    for turn in taken:
        for place, work in enumerate(works):
            started = time.process_time()
            work()
            turn[place] = time.process_time() - started
    return taken.min(axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", default=CHOSEN)
    parser.add_argument("--growth", action="store_true")
    given = parser.parse_args()
    held = Representation.example()
    shares = (0.25, 0.5, 1.0, 2.0) if given.growth else (1.0,)
    heads = "".join(f"{f'x {share:g}':>13}" for share in shares)
    print(f"{'metric':<16}{'one score':>12}{'parts':>7}{heads}{'ratio':>8}{'loop of calls':>16}{'times as long':>15}")
    for name in given.metrics.split(","):
        row, card = METRICS[name], score(held, metrics=name)
        scores_of_parts(held, card.scored, 2, ScoreSettings(0))  # compiles
        assert isinstance(row.interval, Resampling)
        counts = [round(share * row.interval.n_parts) for share in shares]
        method = row.interval.of_parts(counts[-1])

        def loop(function: Callable[..., object] = row.function, method: Resampling = method) -> None:
            for number in range(method.n_parts):
                rows = draw_part(len(held), None, method, 0, number)
                function(held.codes[rows], held.factors[rows], kinds=held.kinds)

        def whole(name: str = name) -> None:
            for _ in range(REPEATS):
                score(held, metrics=name)

        of_parts = [lambda card=card, n=n: scores_of_parts(held, card.scored, n, ScoreSettings(0)) for n in counts]
        taken = seconds([whole, *of_parts, loop])
        one, parts, calls = taken[0] / REPEATS, taken[1:-1], taken[-1]
        cells = "".join(f"{each:11.2f} s" for each in parts)
        print(
            f"{name:<16}{1000 * one:9.1f} ms{row.interval.n_parts:7}{cells}{parts[-1] / one:8.0f}{calls:14.2f} s"
            f"{calls / parts[-1]:15.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
