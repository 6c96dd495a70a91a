"""How often a model chosen by UDR is better than the others, from all fits and searches that were judged by labels."""

import json

import numpy as np
import pandas as pd
from scipy.stats import t

from unbraid.ranking.track_record import LOW

from .selection import FILE, NAMES, SIGNS, short
from .texts import ROOT, table

FITS, NEW = (ROOT / "evidence" / "benchmarks" / name for name in ("fit.csv", "fit_trust.csv"))
TITLES = {
    "upright_sprites": "upright sprites",
    "shapes3d_rendered": "3D shapes",
    "cars_rendered": "cars",
    "teapot": "teapots",
}
JUDGES = ["mig", "dci_boosted", "mcc"]


def shares(models: pd.DataFrame) -> pd.Series:
    """By each judge the share of the other models of a fit that the chosen one is better than, ties half."""
    chosen, trained = (models.loc[models["what"] == what, JUDGES] for what in ("chosen", "trained"))
    (best,) = chosen.to_numpy()
    return (trained < best).mean() + (trained == best).mean() / 2


def record() -> pd.DataFrame:
    """A row for each dataset: its share in fits and in searches, and their mean."""
    rules = json.loads(FILE.read_text(encoding="utf-8"))["rules"][SIGNS[0]]["datasets"]
    searches = {NAMES[name]: measured["share"] for name, measured in rules.items()}
    fits: dict[str, float] = {}
    for path in (FITS, NEW):
        read = pd.read_csv(path)
        for name, of_dataset in read.groupby("dataset", sort=False):
            runs = of_dataset.groupby("run") if "run" in of_dataset else [(0, of_dataset)]
            chosen = of_dataset[of_dataset["what"] == "chosen"]
            if path == FITS or (len(chosen) and chosen["udr"].iloc[0] >= LOW):
                title = TITLES.get(str(name), str(name).replace("_", " "))
                fits[title] = float(np.mean([shares(models).mean() for _, models in runs]))
    rows = pd.DataFrame({"fits": fits, "searches": searches}).loc[list(dict.fromkeys([*searches, *fits]))]
    return rows.assign(share=rows.mean(axis=1))


def of_all() -> tuple[int, float, float, float]:
    """Number of datasets, mean share, and the ends of its 95 % interval over datasets."""
    values = record()["share"].to_numpy()
    half = float(t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5)
    return len(values), float(values.mean()), float(values.mean()) - half, float(values.mean()) + half


def datasets() -> str:
    """The table of docs/ranking.md."""
    rows = [
        [title, *("" if np.isnan(value) else short(value) for value in (row.fits, row.searches, row.share))]
        for title, row in zip(record().index, record().itertuples(), strict=True)
    ]
    n, mean, low, high = of_all()
    return table(
        "images | by `fit` | by `rank` | mean",
        "lrrr",
        [*rows, [f"all {n}", "", "", f"**{short(mean)}** [{short(low)}, {short(high)}]"]],
    )
