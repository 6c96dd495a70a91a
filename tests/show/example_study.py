"""A study of made-up numbers, with everything in its table that a study's page has to show."""

from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd

from unbraid.files.marks import ReadOnce
from unbraid.ranking.cache import ranking_path, write_ranking
from unbraid.ranking.candidate import Candidate
from unbraid.ranking.rank_candidates import rank_candidates
from unbraid.ranking.ranking import RankingOptions
from unbraid.runs.folder import read_folder
from unbraid.studies.snapshot import RunView

FAMILIES = {
    "beta_vae": ("beta", (1, 2, 4, 8, 16)),
    "beta_tcvae": ("beta", (1, 2, 4, 8, 16)),
    "factor_vae": ("gamma", (5, 10, 20, 40, 80)),
    "dip_vae_i": ("lambda_od", (1, 2, 5, 10, 20)),
    "cci_vae": ("c_max", (0.5, 5, 10, 25, 50)),
    "dip_vae_ii": ("lambda_od", (1, 2, 5, 10, 20)),
}
YAML = """\
name: example
dataset: {name: sprites}
families:
  - {name: beta_vae, beta: [1, 2, 4, 8, 16]}  # <script>alert(1)</script>
seeds: 10
steps: 30000
"""


@dataclass(frozen=True)
class ExampleStudy:
    """Stands in for the snapshot of a study, and for its table, which comes from a frame instead of from a folder."""

    frame: pd.DataFrame
    folder: Path
    config: Any = field(default_factory=lambda: SimpleNamespace(name="example", udr=None))
    text: str = YAML
    trusted: tuple[str, ...] = ()
    files: ReadOnce = field(default_factory=ReadOnce)

    def require_folder(self) -> Path:
        return self.folder

    def results(self) -> pd.DataFrame:
        return self.frame

    @property
    def runs(self) -> list[RunView]:
        columns = self.frame[["run", "family", "setting", "seed", "state", "reason"]]
        places = {"failed": "failed", "waiting": "runs"}
        found = []
        for row in columns.itertuples(index=False):
            path = self.folder / places.get(row[4], "runs") / row[0]
            config, status = read_folder(path) if path.is_dir() else ({}, {})
            found.append(RunView(*row, path=path, hyperparameters={}, config=config, status=status))
        return found


def example_results(n_runs: int = 300, seed: int = 0) -> pd.DataFrame:
    """`n_runs` rows over six families of five settings; about one in thirty diverged, failed or waits."""
    rng = np.random.default_rng(seed)
    settings = [(family, name, value) for family, (name, values) in FAMILIES.items() for value in values]
    rows = [_row(rng, number, *settings[number % len(settings)]) for number in range(n_runs)]
    for place, (state, reason) in enumerate(
        [("diverged", "loss was nan at step 812"), ("failed", "out of memory"), ("waiting", "")]
    ):
        for row in rows[place + 7 :: 90]:
            kept = {key: row[key] for key in row if key.partition(".")[0] in {*_GIVEN, "hyper"}}
            row.clear()
            row.update(kept | {"state": state, "reason": reason})
    return pd.DataFrame(rows)


_GIVEN = ("run", "family", "setting", "seed", "state", "reason", "dataset", "steps")


def _row(rng: np.random.Generator, number: int, family: str, name: str, value: float) -> dict[str, Any]:
    strength = np.log(1 + value) / 5 + 0.1 * list(FAMILIES).index(family) / 5
    quality = float(np.clip(0.6 - (strength - 0.5) ** 2 + 0.12 * rng.standard_normal(), 0.02, 0.98))

    def near(scale: float, noise: float = 0.05) -> float:
        return float(np.clip(scale * quality + noise * rng.standard_normal(), 0, 1))

    return {
        "run": f"{rng.integers(2**63):016x}",
        "family": family,
        "setting": f"{name}={value:g}",
        "seed": number // 30,
        "state": "finished",
        "reason": "",
        "dataset": "sprites",
        "steps": 30000,
        "seconds": float(400 + 40 * rng.random()),
        f"hyper.{name}": float(value),
        "hyper.likelihood": "bernoulli",
        "hyper.latents": 10,
        "mig.score": near(0.7),
        "dci_lasso.disentanglement": near(0.9),
        "dci_lasso.completeness": near(0.85),
        "dci_lasso.informativeness": 1 - near(0.8),
        "factor_vae_score.score": near(1.1, 0.1),
        "beta_vae_score.score": near(1.2, 0.1),
        "snc.score": near(0.8),
        "nk.score": near(0.6, 0.1),
        "train.reconstruction": float(40 + 60 * strength + rng.standard_normal()),
        "train.kl": float(20 - 10 * strength + rng.standard_normal()),
        "udr.score": near(0.95, 0.08),
        "udr.informative": float(rng.integers(3, 9)),
        "compositional.linear.both": near(0.5, 0.1),
        "compositional.mlp.both": near(0.6, 0.1),
        "zero_shot.forest.error": 1 - near(0.5),
    }


def keep_rankings(study: ExampleStudy, n_samples: int = 400) -> None:
    """Rank by made-up codes, four latents a model, the better the score the less mixed; kept as `rank` keeps it."""
    rng = np.random.default_rng(0)
    sources = rng.standard_normal((n_samples, 4))
    done = study.frame[study.frame["state"] == "finished"]
    candidates = []
    for row in done.to_dict("records"):
        run, family, setting = (str(row[name]) for name in ("run", "family", "setting"))
        mixing, _ = np.linalg.qr(np.eye(4) + (1 - row["mig.score"]) * rng.standard_normal((4, 4)))
        kl = np.array([1.0, 1.0, 1.0, rng.random() > 0.3])
        candidates.append(Candidate(run, family, setting, sources @ mixing[:, rng.permutation(4)], kl, "same"))
    options = RankingOptions(similarity="spearman", compare="all")
    path = ranking_path(study.folder, options)
    path.parent.mkdir(exist_ok=True)
    write_ranking(path, rank_candidates(candidates, options))
