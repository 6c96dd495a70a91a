"""How good a model is that is picked without labels, by several rules, from the models of the UDR study.

    python benchmarks/choosing.py

Settings and seeds are drawn from docs/reproductions/results/udr-2020-laptop.csv, a model is picked by each rule, and
labels say what share of the others it beats. `unbraid fit` picks by the second row;
`selection.py` will judge it.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

TABLE = Path(__file__).parents[1] / "docs" / "reproductions" / "results" / "udr-2020-laptop.csv"
JUDGES = ("mig.score", "dci_lasso.disentanglement", "sap.score", "modularity.score", "factor_vae_score.score")
UDR, NEAR, SEEDS = "udr.score", 0.95, 5


def near(models: Any) -> int:
    """Of the models whose UDR is near the highest, that of the highest ELBO."""
    return models.loc[models[UDR] >= NEAR * models[UDR].max(), "elbo"].idxmax()


def of_the_best_setting(models: Any) -> int:
    """Of the setting of the highest median UDR, the model of the highest UDR."""
    setting = models.groupby("key")[UDR].median().idxmax()
    return models.loc[models["key"] == setting, UDR].idxmax()


RULES: dict[str, Callable[[Any], int]] = {
    "highest UDR": lambda models: models[UDR].idxmax(),
    "UDR >= .95 of the highest, then ELBO": near,
    "best setting, then UDR": of_the_best_setting,
    "highest ELBO": lambda models: models["elbo"].idxmax(),
    "highest MIG (labels)": lambda models: models["mig.score"].idxmax(),
}


def main() -> None:
    """Print, for 4, 6 and 12 settings, what share of the other models each rule's pick beats."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", type=int, default=300)
    draws = parser.parse_args().draws
    table: Any = pd.read_csv(TABLE)
    table["elbo"] = -(table["train.reconstruction"] + table["train.kl"])
    table["key"] = table["family"] + " " + table["setting"]
    for n_settings in (4, 6, 12):
        rng = np.random.default_rng(0)
        found: dict[str, list[pd.Series]] = {name: [] for name in RULES}
        for _ in range(draws):
            chosen = rng.choice(table["key"].unique(), n_settings, replace=False)
            seed = int(rng.integers(1_000_000_000))
            models = table[table["key"].isin(chosen)].groupby("key").sample(SEEDS, random_state=seed)
            beaten = (models[list(JUDGES)].rank() - 1) / (len(models) - 1)
            for name, rule in RULES.items():
                found[name].append(beaten.loc[rule(models)])
        print(f"{n_settings} settings, {SEEDS} seeds each: share of the other models that the pick beats")
        print(pd.DataFrame({name: pd.DataFrame(rows).mean() for name, rows in found.items()}).T.round(2).to_string())


if __name__ == "__main__":
    main()
