"""How the strength of a regulariser carries over from small images to larger ones.

    python evidence/benchmarks/strengths.py --out strengths            about forty minutes of one core; goes on where it stopped
    python evidence/benchmarks/strengths.py --out strengths --show     the tables of what was trained
    python evidence/benchmarks/strengths.py --out quick --steps 20     to see that it works

`unbraid fit` searches strengths at 16 x 16 and trains its last models at 32 x 32 or 64 x 64. Higgins et al. 2017
normalise beta by the number of latents over that of pixels, by which four times the strength at twice the size would be
the same; `fit` tries the same and four times as much. This measures it, with the networks that `fit` had then (since
then it has convolutions and smaller batches at 16 x 16 too).

The rule, fixed before the run
------------------------------
- Sets drawn here, all of their images: sprites, 3D shapes and cars, shrunk to 16 x 16 and to 32 x 32.
- beta-TCVAE with ten latents: at 16 x 16 dense layers, 2 000 steps, strengths 1 to 8; at 32 x 32 convolutions, 4 000
  steps, strengths 1 to 32; powers of two, seed 0. (`--seeds` adds more.)
- The first answer: of each strength at 16 x 16, the strength at 32 x 32 whose models have the same KL in nats (the mean
  over seeds, on 5 000 images), linear in the logarithm of the strength between neighbours; none where no two enclose
  it. Their ratio is the multiple. Told are the median and the range over sets and strengths.
- The second: MIG by labels at 32 x 32 of the multiples 1, 2, 4 and 8 of the strength that is best by MIG at 16 x 16, a
  row for each set. A single seed decides nothing here: it is shown beside the first and concludes nothing.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unbraid import score
from unbraid.datasets import load
from unbraid.runs.run import Run
from unbraid.training.train import train

SETS = ("sprites", "shapes3d_rendered", "cars_rendered")
STRENGTHS: Mapping[int, tuple[int, ...]] = {16: (1, 2, 4, 8), 32: (1, 2, 4, 8, 16, 32)}
STEPS: Mapping[int, int] = {16: 2000, 32: 4000}
NETWORKS: Mapping[int, tuple[str, float]] = {16: ("dense", 0.002), 32: ("conv", 0.001)}  # and learning rates
MULTIPLES, N_LATENTS, N_JUDGED, WHOLE = (1, 2, 4, 8), 10, 5000, 64


def main() -> None:
    """Train what is not there yet, and print the two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, help="in place of those of the rule")
    parser.add_argument("--show", action="store_true")
    given = parser.parse_args()
    table = given.out / "strengths.csv"
    if not given.show:
        rows = [row for name in SETS for size in STEPS for row in judged(name, size, given)]
        pd.DataFrame(rows).to_csv(table, index=False)
    found = pd.read_csv(table)
    print(found.groupby(["dataset", "size", "strength"])[["kl", "informative", "mig"]].mean().round(3).to_string())
    multiples = of_equal_kl(found)
    print(multiples.round(2).to_string(index=False))
    known = multiples["multiple"].dropna()
    print(f"multiple of equal KL: median {known.median():.2f}, {known.min():.2f} to {known.max():.2f}")
    print(by_mig(found).round(3).to_string())


def judged(name: str, size: int, given: argparse.Namespace) -> list[dict[str, Any]]:
    """A row for each model of a set at a size."""
    source, (network, rate) = {"name": name, "shrink": WHOLE // size}, NETWORKS[size]
    runs = train(
        "beta_tcvae", source, seeds=given.seeds, steps=given.steps or STEPS[size], out=given.out / "runs",
        beta=list(STRENGTHS[size]), latents=N_LATENTS, network=network, learning_rate=rate,
    )  # fmt: skip
    dataset = load(**source)
    index = np.sort(np.random.default_rng(0).permutation(len(dataset))[:N_JUDGED])
    images, factors, space = dataset.images(index), dataset.space.factors(index), dataset.space
    return [{"dataset": name, "size": size, **measured(run, images, factors, space)} for run in runs]


def measured(run: Run, images: Any, factors: Any, space: Any) -> dict[str, Any]:
    """KL and MIG of a model."""
    means, log_variances = run.posterior(images)
    kl = 0.5 * (means**2 + np.exp(log_variances) - log_variances - 1).mean(axis=0)
    card = score(means, factors, names=space.names, kinds=space.kinds, metrics="mig")
    strength, seed = run.config["hyperparameters"]["beta"], run.config["seed"]
    return {
        "strength": strength, "seed": seed, "kl": kl.sum(), "informative": int((kl > 0.1).sum()),
        "mig": card["mig"].score,
    }  # fmt: skip


def of_equal_kl(found: pd.DataFrame) -> pd.DataFrame:
    """Of each strength at 16 x 16, the strength at 32 x 32 of the same KL, and their ratio."""
    rows = []
    for name in SETS:
        own = found[found["dataset"] == name].groupby(["size", "strength"])["kl"].mean()
        small, large = (own[size] for size in STEPS)
        for strength, kl in small.items():
            inside = large.min() <= kl <= large.max()
            order = np.argsort(large.to_numpy())
            logs = np.interp(kl, large.to_numpy()[order], np.log2(large.index.to_numpy(dtype=float))[order])
            there = 2.0**logs if inside else np.nan
            rows.append({"dataset": name, "strength": strength, "kl": kl, "at 32": there, "multiple": there / strength})
    return pd.DataFrame(rows)


def by_mig(found: pd.DataFrame) -> pd.DataFrame:
    """At 32 x 32, of multiples of the strength that is best at 16 x 16."""
    means, rows = found.groupby(["dataset", "size", "strength"])["mig"].mean(), {}
    for name in SETS:
        best = means[name, 16].idxmax()
        rows[name] = {
            "best at 16": best,
            **{f"x {each}": means[name, 32].get(each * best, np.nan) for each in MULTIPLES},
        }
    return pd.DataFrame(rows).T


if __name__ == "__main__":
    main()
