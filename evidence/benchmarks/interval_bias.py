"""How far the `bias` of an interval is from the true one, on sources of which samples can be drawn.

    python evidence/benchmarks/interval_bias.py                                   all that are computed at once (ten minutes)
    python evidence/benchmarks/interval_bias.py --metrics modularity --rows 300

`bias` takes what separates a score from that of infinitely many rows to fall off as 1 / N. Printed of each metric,
source and number of rows: what `bias` says on average, and the mean score less that of 40 000 rows.
"""

import argparse

import numpy as np
from interval_coverage import AT_ONCE, SOURCES

from unbraid import score

MANY, PARTS = 40_000, 40


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--metrics", type=lambda text: text.split(","), default=AT_ONCE)
    parser.add_argument(
        "--sources", type=lambda text: text.split(","), default=["noisy", "rotated", "dependent", "uneven"]
    )
    parser.add_argument("--rows", type=lambda text: [int(n) for n in text.split(",")], default=[300, 1000])
    parser.add_argument("--samples", type=int, default=20)
    given = parser.parse_args()
    print(f"{'metric':22} {'source':10} {'rows':>5} {'bias':>7} {'true':>7} {'± 2 se':>7}")
    for source in given.sources:
        rng = np.random.default_rng(0)
        limits = score(SOURCES[source](MANY, rng), metrics=given.metrics)
        for n_rows in given.rows:
            cards = [
                score(SOURCES[source](n_rows, rng), metrics=given.metrics, confidence=(0.95, PARTS))
                for _ in range(given.samples)
            ]
            for name in limits:
                report(name, source, n_rows, cards, limits.scored[name].headline)


def report(name: str, source: str, n_rows: int, cards: list, limit: float) -> None:
    found = [card.scored[name] for card in cards if name in card]
    said = np.mean([each.intervals.values[each.metric.headline].bias for each in found if each.intervals is not None])
    scores = np.array([each.headline for each in found])
    stray = 2 * scores.std(ddof=1) / np.sqrt(len(scores))
    print(f"{name:22} {source:10} {n_rows:5} {said:7.3f} {scores.mean() - limit:7.3f} {stray:7.3f}", flush=True)


if __name__ == "__main__":
    main()
