"""How often `unbraid compare` calls one of two equal models better.

    python evidence/benchmarks/false_alarms.py --samples 20       a piece of it, nothing written
    python evidence/benchmarks/false_alarms.py                    200 pairs of samples, both ways: three minutes of one core

Two models are drawn from one source, so that neither is better: codes with noise of their own for the same rows
(paired), or for rows of their own (unpaired). Of tests at .05 as many as 5 in 100 may find a difference; after the
correction (Holm) as many as 5 in 100 comparisons may find any at all. Writes evidence/false_alarms.json, from which
`evidence/generate.py` makes the table of docs/how-sure.md.
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
from interval_coverage import independent, with_noise  # fixes the number of threads as well

from unbraid.scoring.compare import compare

OUT = Path(__file__).parents[1] / "false_alarms.json"
METRICS = ("mig", "sap", "snc", "modularity", "dci_lasso", "irs", "mcc", "r2", "jemmig", "amari")
SIGNIFICANT = 0.05


def measure(paired: bool, n_rows: int, n_samples: int, parts: int | None) -> dict[str, Any]:
    """Shares of comparisons that find a difference: metric by metric, and in any metric once corrected."""
    rng = np.random.default_rng([int(paired), n_rows])
    alarms, any_alarm = dict.fromkeys(METRICS, 0), 0
    for _ in range(n_samples):
        factors = [independent(n_rows, rng)] * 2 if paired else [independent(n_rows, rng) for _ in range(2)]
        models = {name: with_noise(rows, rng) for name, rows in zip("ab", factors, strict=True)}
        found = compare(models, metrics=METRICS, confidence=(0.95, parts) if parts else 0.95, paired=paired).differences
        for each in found:
            alarms[each.metric] += each.p <= SIGNIFICANT
        any_alarm += any(each.better for each in found)
    shares = {name: count / n_samples for name, count in alarms.items()}
    return {
        "paired": paired, "rows": n_rows, "samples": n_samples, "parts": parts, "any": any_alarm / n_samples,
        "metrics": shares,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--rows", type=int, default=500)
    parser.add_argument("--parts", type=int, help="of each model; default what the table of metrics says")
    given = parser.parse_args()
    measured = []
    for paired in (True, False):
        started = time.process_time()
        measured.append(measure(paired, given.rows, given.samples, given.parts))
        print(f"{time.process_time() - started:.0f} s: {json.dumps(measured[-1])}", flush=True)
        if given.samples >= 100:
            OUT.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
