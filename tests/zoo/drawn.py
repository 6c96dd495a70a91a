"""A zoo that no study made."""

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.metrics import METRICS

sys.path.insert(0, str(Path(__file__).parents[2] / "evidence"))
writing: Any = import_module("zoo_writing")

KINDS = ("ordinal", "categorical")


def of_sorts(folder: Path, dataset: str, n_models: int, seed: int) -> Path:
    """A zoo of drawn codes: model k has noise of width k / 10; "a" is its negative width, "b" drawn, "c" constant."""
    rng = np.random.default_rng(seed)
    factors = rng.integers(0, 4, (200, 2))
    models, codes = [], []
    for k in range(n_models):
        planes, centre, scale = writing.packed(factors + 0.1 * k * rng.normal(size=(200, 2)))
        models.append(
            {
                "name": f"vae-s{k}", "run": f"{k}", "study": "drawn", "family": "vae", "setting": f"noise={k // 2}",
                "hyperparameters": {"noise": k}, "seed": k, "steps": 5, "commit": None, "n_codes": 2,
                "centre": centre.tolist(), "scale": scale.tolist(), "kl": None, "informative": 2,
                "defects": ["collapsed"] if k >= n_models - 2 else [], "study_scores": {},
                "scores": {"mig": -0.1 * k, "b": float(rng.normal()), "c": 1.0},
            }
        )  # fmt: skip
        codes.append((f"vae-s{k}", planes))
    about = {
        "format": 1, "dataset": dataset, "options": {}, "content": dataset, "n_images": 200, "rows": 200,
        "factors": [
            {"name": name, "kind": kind, "size": 4, "levels": [], "period": 0.0}
            for name, kind in zip("xy", KINDS, strict=True)
        ],
        "metrics": {"mig": METRICS["mig"].version - 1, "b": 1, "c": 1}, "models": models,
    }  # fmt: skip
    writing.write(folder / f"{dataset}.npz", about, factors, codes)
    return folder / f"{dataset}.npz"
