"""Something small to draw: codes on a full grid, a trained model, and a made-up study."""

from pathlib import Path

import numpy as np

import unbraid
from tests.show.example_study import ExampleStudy, example_results, keep_rankings
from unbraid import Representation
from unbraid.data import FactorSpace
from unbraid.figures import Source

SPACE = FactorSpace(("shape", "pos_x", "pos_y", "hue"), (2, 3, 3, 8), ("categorical", "ordinal", "ordinal", "cyclic"))
REPEATS = 3


def representation() -> Representation:
    """Shape in code 3, x in 1, y in 2, hue on the circle of codes 0 and 4; code 5 is unused."""
    factors = SPACE.grid()
    angle = 2 * np.pi * factors[:, 3] / 8
    rng = np.random.default_rng(0)
    codes = np.column_stack(
        [np.cos(angle), factors[:, 1] - 1.0, factors[:, 2] - 1.0, 2.0 * factors[:, 0] - 1, np.sin(angle), np.zeros(144)]
    )
    codes[:, 1:4] += 0.01 * rng.standard_normal((144, 3))
    log_variances = np.full(codes.shape, -4.0)
    log_variances[:, 5] = 0.0
    return Representation(
        codes, factors, log_variances=log_variances,
        names=SPACE.names, kinds=SPACE.kinds, sizes=SPACE.sizes,
    )  # fmt: skip


def codes_source(folder: Path) -> Source:
    representation().save(folder / "codes.npz")
    return Source(folder / "codes.npz", "codes")


def run_source(folder: Path) -> Source:
    """A dense VAE on the square, whose two factors are cyclic, after some steps."""
    (run,) = unbraid.train(
        "vae", {"name": "square", "positions": 8}, steps=20, batch_size=16, latents=3, network="dense",
        out=folder, processes=0, precision="float32", device="cpu", likelihood="bernoulli",
    )  # fmt: skip
    return Source(run.path, "run")


def objects_source(folder: Path) -> Source:
    """An LSBD-VAE on three objects that turn, after some steps."""
    (run,) = unbraid.train(
        "lsbd_vae", {"name": "turntable", "n_objects": 3, "shrink": 4}, preset="lsbd_objects", steps=4, network="dense",
        out=folder, processes=0, precision="float32", device="cpu",
    )  # fmt: skip
    return Source(run.path, "run")


def study_source(folder: Path, n_runs: int = 60) -> Source:
    """A study whose results are made up; nothing is trained."""
    frame = example_results(n_runs)
    frame["elbo_terms.total_correlation"] = 3 - 2 * frame["mig.score"]
    for batch_size in (1, 8):
        frame[f"beta_vae_score(batch_size={batch_size}).score"] = 0.1 * batch_size * frame["mig.score"]
    study = ExampleStudy(frame, folder)
    keep_rankings(study, n_samples=60)
    source = Source(folder, "study")
    source.__dict__.update(snapshot=study, results=study.results())
    return source
