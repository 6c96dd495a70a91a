"""How well signs without labels choose, as evidence/benchmarks/selection.py measured it."""

import json
from typing import Any

from .texts import ROOT, table

FILE = ROOT / "evidence" / "benchmarks" / "selection.json"
NAMES = {
    "udr-2020-laptop": "sprites",
    "udr-2020-rooms-laptop": "rooms",
    "selection-cars-laptop": "cars",
    "selection-teapot-laptop": "teapots",
}
MEASURES = {
    "mig.score": "MIG",
    "dci_lasso.disentanglement": "DCI disentanglement",
    "sap.score": "SAP",
    "modularity.score": "modularity",
    "factor_vae_score.score": "FactorVAE score",
}
SIGNS = ("UDR, all to all, penalty .1", "ELBO")  # of which correlations are shown


def picks() -> str:
    """A row for each rule: the share of the other models that its pick beats on each dataset."""
    rules = json.loads(FILE.read_text(encoding="utf-8"))["rules"]
    rows = [
        [
            name,
            *(short(each["datasets"][dataset]["share"]) for dataset in NAMES),
            short(each["share"]),
            "" if name == SIGNS[0] else with_ends(each["above_today"]),
        ]
        for name, each in rules.items()
    ]
    head = " | ".join(["picked by", *NAMES.values(), "mean", "above the first"])
    return table(head, "l" + "r" * (len(NAMES) + 2), rows)


def correlations() -> str:
    """A row for each dataset: the rank correlation of UDR and of the ELBO with each measure over all models."""
    datasets: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))["datasets"]
    rows = [
        [
            f"{title}, {datasets[name]['models']} models",
            sign.partition(",")[0],
            *(with_ends(datasets[name]["spearman"][sign][measure]) for measure in MEASURES),
        ]
        for name, title in NAMES.items()
        for sign in SIGNS
    ]
    return table(" | ".join(["", "", *MEASURES.values()]), "ll" + "r" * len(MEASURES), rows)


def with_ends(ends: list[float]) -> str:
    value, low, high = map(short, ends)
    return f"{value} [{low}, {high}]"


def short(value: float) -> str:
    return f"{value:.2f}".replace("0.", ".", 1).replace("-", "−").replace("−.00", ".00")
