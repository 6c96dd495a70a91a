"""Which small models learn most in the same time: dense layers or convolutions, at 16 x 16 or 32 x 32.

    python evidence/benchmarks/small_networks.py --out networks           an hour of one core; goes on where it stopped
    python evidence/benchmarks/small_networks.py --out benchmarks --show  the table of what was trained

The rule, written down before the run, whose last models were trained when the others were known
--------------------------------------------------------------------------------------------------
- Sets drawn here, all of their images: sprites, 3D shapes and cars. beta-TCVAE with ten latents, seed 0, at a small and
  a larger strength; at 32 x 32 twice those at 16 x 16, since the same strength weighs less there (`strengths.py`).
- A: dense layers at 16 x 16 in batches of 64, learning rate .002, 20 000 steps. B: convolutions at 16 x 16, batches of
  16, .001, 16 000 steps. C: convolutions at 32 x 32, batches of 16, .001, 7 500 steps. Steps of each were to take
  150 seconds of one core; they took 158 to 258 of A, 174 to 201 of B and about 165 of C.
- D, when A, B and most of C were known: B for half as many steps, at strengths of .25, .5, 1 and 2. `fit` was to search
  the one of the best mean rank and its neighbours. That is .5 with .25 and 1; it has 2, a close second, for .25.
- MIG, DCI (boosted trees) and MCC by the labels of 5 000 images, means over strengths. `unbraid fit` searches with the
  one of the least mean rank over sets and judges. One seed of each: a difference at a single set is no result.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from unbraid import score
from unbraid.datasets import load
from unbraid.metrics import METRICS
from unbraid.training.train import train

SETS = ("sprites", "shapes3d_rendered", "cars_rendered")
JUDGES, N_LATENTS, N_JUDGED, WHOLE = ("mig", "dci_boosted", "mcc"), 10, 5000, 64


class Way(NamedTuple):
    size: int
    network: str
    batch: int
    rate: float
    steps: int
    strengths: tuple[float, ...]


WAYS: Mapping[str, Way] = {
    "A": Way(16, "dense", 64, 0.002, 20_000, (2, 8)),
    "B": Way(16, "conv", 16, 0.001, 16_000, (2, 8)),
    "C": Way(32, "conv", 16, 0.001, 7500, (4, 16)),
    "D": Way(16, "conv", 16, 0.001, 8000, (0.25, 0.5, 1, 2)),
}


def main() -> None:
    """Train what is not there yet, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    table = given.out / "small_networks.csv"
    if not given.show:
        rows = [row for name in given.sets.split(",") for way in WAYS for row in judged(name, way, given.out)]
        pd.DataFrame(rows).to_csv(table, index=False)
    found = pd.read_csv(table)
    for by, rows in (("way", found[found["way"] != "D"]), ("strength", found[found["way"] == "D"])):
        means = rows.groupby(["dataset", by])[[*JUDGES, "kl", "informative"]].mean()
        print(means.round(3).to_string())
        ranks = means[list(JUDGES)].groupby("dataset").rank(ascending=False)
        print(ranks.groupby(by).mean().mean(axis=1).rename("mean rank").round(2).to_string())


def judged(name: str, way: str, out: Path) -> list[dict[str, Any]]:
    """A row for each model of a set."""
    own = WAYS[way]
    source = {"name": name, "shrink": WHOLE // own.size}
    runs = train(
        "beta_tcvae", source, steps=own.steps, out=out / "runs", beta=list(own.strengths), latents=N_LATENTS,
        network=own.network, learning_rate=own.rate, batch_size=own.batch,
    )  # fmt: skip
    dataset = load(**source)
    index = np.sort(np.random.default_rng(0).permutation(len(dataset))[:N_JUDGED])
    factors, space, rows = dataset.space.factors(index), dataset.space, []
    for run in runs:
        means, log_variances = run.posterior(dataset.images(index))
        kl = 0.5 * (means**2 + np.exp(log_variances) - log_variances - 1).mean(axis=0)
        card = score(means, factors, names=space.names, kinds=space.kinds, metrics=list(JUDGES))
        scores = {judge: getattr(card[judge], METRICS[judge].headline) for judge in JUDGES}
        shared = {"dataset": name, "way": way, "strength": run.config["hyperparameters"]["beta"]}
        rows.append({**shared, "kl": kl.sum(), "informative": int((kl > 0.1).sum()), **scores})
    return rows


if __name__ == "__main__":
    main()
