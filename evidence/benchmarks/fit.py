"""How good the model is that `unbraid fit` chooses without labels, judged by labels that it never sees.

    python evidence/benchmarks/fit.py --out fits --minutes 30 --runs 3
    python evidence/benchmarks/fit.py --out fits --minutes 30 --runs 3 --sets sprites,teapot
    python evidence/benchmarks/fit.py --out fits --minutes 30 --plan    only measure, and write the plans
    python evidence/benchmarks/fit.py --out benchmarks --show           the tables of what was trained

Five drawn sets of 64 x 64, 10 000 images of each. Beside the chosen model stand the median and the best (by labels) of
all models that were trained, PCA of the pixels, and what people do today: one beta-VAE with beta = 4 at 64 x 64 for the
same minutes. Labels judge all images by MIG, DCI (boosted trees) and MCC.

Steps are measured first, for all sets, while the machine has nothing else to do; the plans are then followed however
long they take, so that other work may go on beside them. What the table `fits/fit.csv` has is not done again, and a fit
that was stopped goes on. The beta-VAEs come after all fits. All of it takes 5 sets x 3 runs x twice the minutes.
"""

import argparse
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from unbraid import metrics
from unbraid.base.types import FloatArray, IntArray
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets import load
from unbraid.fitting.fit import IMAGES, SEARCH, STUDY, Fitted, fit, planned_for, setting_name
from unbraid.fitting.fit_images import Pictures, prepare
from unbraid.fitting.plan import BATCH_SIZES, FAMILIES, FILE, Round, measured, read_plan, write_plan
from unbraid.metrics import METRICS
from unbraid.runs.run import Run, load_run
from unbraid.training.train import train

SETS: Mapping[str, Mapping[str, Any]] = {
    "sprites": {"name": "sprites"},
    "shapes3d_rendered": {"name": "shapes3d_rendered"},
    "teapot": {"name": "teapot"},
    "cars_rendered": {"name": "cars_rendered"},
    "upright_sprites": {"name": "sprites", "without": "orientation > 0"},
}
N_IMAGES, N_LATENTS, SIZE = 10_000, 10, 64
JUDGES = ("mig", "dci_boosted", "mcc")
BETA, STEPS = 4.0, "beta_vae_steps.txt"  # of what people do today


def main() -> None:
    """Plan and fit what is not there yet, and print the table of means."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--plan", action="store_true", help="measure and write the plans, and stop")
    parser.add_argument("--show", action="store_true", help="only print the tables")
    given = parser.parse_args()
    if given.show:
        known = pd.read_csv(given.out / "fit.csv")
        print(means(known).to_string(), of_best(known).to_string(), sep="\n\n")
        return
    wanted = [(name, run) for run in range(given.runs) for name in given.sets.split(",")]
    for name, run in wanted:
        plan(name, run, given.out / f"{name}-{run}", given.minutes)
    table = given.out / "fit.csv"
    # What people do today comes last: fits can be judged without it, and it takes as long as they do.
    for way in () if given.plan else (fits, todays):
        for name, run in wanted:
            known = pd.read_csv(table) if table.is_file() else pd.DataFrame({"dataset": [], "run": [], "what": []})
            own = known[(known["dataset"] == name) & (known["run"] == run)]
            if not ((own["what"] == "beta_vae") == (way is todays)).any():
                rows = pd.DataFrame(way(name, run, given.out / f"{name}-{run}"))
                known = pd.concat([known, rows]) if len(known) else rows
                known.to_csv(table.with_suffix(".part"), index=False)
                os.replace(table.with_suffix(".part"), table)
                print(means(known).to_string(), flush=True)


@cache
def drawn(name: str, run: int) -> tuple[FactorDataset, IntArray]:
    """A dataset, and which of its images a run takes."""
    dataset = load(**SETS[name])
    return dataset, np.sort(np.random.default_rng(run).permutation(len(dataset))[:N_IMAGES])


def plan(name: str, run: int, folder: Path, minutes: float) -> None:
    """Measure steps, unless that was done, and write down what they allow."""
    if (folder / STEPS).is_file():
        return
    dataset, index = drawn(name, run)
    pictures, planned = planned_for(
        dataset.images(index), folder, minutes=minutes, size=None, families=FAMILIES, latents=N_LATENTS,
        seed=1000 * run, plan=None, device="auto", executor="local", report=lambda *_: None,
    )  # fmt: skip
    whole = Round(size=SIZE, network="conv", steps=1000, seeds=1)
    cost = measured(pictures.path, pictures.size, whole, ["beta_vae"], latents=N_LATENTS, options={}, progress=None)
    write_plan(planned, folder / FILE)
    (folder / STEPS).write_text(str(int(60 * minutes / cost.per_step["beta_vae"])), encoding="utf-8")


def fits(name: str, run: int, folder: Path) -> list[dict[str, Any]]:
    """A fit, a row for every model that it trained, and PCA."""
    dataset, index = drawn(name, run)
    images = dataset.images(index)
    fitted = fit(images, folder, plan=folder / FILE)
    pictures = prepare(images, folder / IMAGES, fitted.plan.size)
    chosen = fitted.choice.chosen.run.path.name if fitted.choice.chosen else None
    rows = []
    for each in models(fitted):
        what = "chosen" if each.path.name == chosen else "trained"
        rows.append(judged(name, run, fitted.plan.minutes, what, pictures, each))
    return [*rows, row(name, run, fitted.plan.minutes, "pca", "PCA", pca(images))]


def todays(name: str, run: int, folder: Path) -> list[dict[str, Any]]:
    """The row of what people do today."""
    dataset, index = drawn(name, run)
    planned = read_plan(folder / FILE)
    pictures = prepare(dataset.images(index), folder / IMAGES, planned.size)
    return [judged(name, run, planned.minutes, "beta_vae", pictures, today(folder, pictures, seed=1000 * run))]


def judged(name: str, run: int, minutes: float, what: str, pictures: Pictures, model: Run) -> dict[str, Any]:
    """The row of a model."""
    size, config = model.config["dataset"]["image_shape"][0], model.config
    codes = model.encode(pictures.at(size).images(np.arange(N_IMAGES)))
    elbo = model.held_out()["elbo"].max() if config.get("hold_out") else np.nan
    label = setting_name(config["family"], config["hyperparameters"])
    more = {"size": size, "steps": int(model.status["step"]), "elbo": elbo, "id": model.path.name}
    return {**row(name, run, minutes, what, label, codes), **more}


def row(name: str, run: int, minutes: float, what: str, model: str, codes: FloatArray) -> dict[str, Any]:
    """Codes of all images, judged by their labels."""
    dataset, index = drawn(name, run)
    space = dataset.space
    # By themselves, not on a card, which leaves boosted trees out for the 183 cars.
    results = {name: getattr(metrics, name)(codes, space.factors(index), kinds=space.kinds) for name in JUDGES}
    scores = {name: getattr(result, METRICS[name].headline) for name, result in results.items()}
    return {"dataset": name, "run": run, "minutes": minutes, "what": what, "model": model, **scores}


def models(fitted: Fitted) -> list[Run]:
    """All that were trained, of both rounds."""
    folders = [each for part in (SEARCH, STUDY) for each in sorted((fitted.folder / part / "runs").glob("*"))]
    return [load_run(each) for each in folders if not each.suffix]  # what was left unfinished ends in .part


def pca(images: Any) -> FloatArray:
    """(n_images, 10): the first components of the pixels."""
    from sklearn.decomposition import PCA

    pixels = images.reshape(len(images), -1).astype(np.float32)
    return PCA(N_LATENTS, svd_solver="randomized", random_state=0).fit_transform(pixels)


def today(folder: Path, pictures: Pictures, seed: int) -> Run:
    """One beta-VAE at full size for as many steps as the minutes of the plan hold."""
    steps, source = int((folder / STEPS).read_text()), {"name": str(pictures.path.resolve())}
    (run,) = train(
        "beta_vae",
        source,
        seeds=[seed],
        steps=steps,
        out=folder / "today",
        beta=BETA,
        latents=N_LATENTS,
        network="conv",
        batch_size=BATCH_SIZES["conv"],
    )
    return run


def means(table: pd.DataFrame) -> pd.DataFrame:
    """Of the runs: the chosen model, the median and the best of all trained, PCA and today's way, by each judge."""
    known = table[table["what"].isin(["chosen", "trained"])]
    columns: dict[tuple[str, str], pd.Series] = {}
    for judge in JUDGES:
        for what in ("chosen", "pca", "beta_vae"):
            columns[judge, what] = table[table["what"] == what].groupby("dataset")[judge].mean()
        by_run = known.groupby(["dataset", "run"])[judge]
        columns[judge, "median"] = by_run.median().groupby("dataset").mean()
        columns[judge, "best"] = by_run.max().groupby("dataset").mean()
    return pd.DataFrame(columns).round(3)


def of_best(table: pd.DataFrame) -> pd.DataFrame:
    """The chosen model as a share of the best one, and the mean of the setting that is the best by labels.

    Settings are those with two seeds or more, each in all its seeds, as if one of these were drawn. Means of the runs.
    """
    known, columns = table[table["what"].isin(["chosen", "trained"])], {}
    for judge in JUDGES:
        best = known.groupby(["dataset", "run"])[judge].max()
        chosen = known[known["what"] == "chosen"].set_index(["dataset", "run"])[judge]
        settings = known.groupby(["dataset", "run", "model", "size"])[judge].agg(["mean", "count"])
        setting = settings[settings["count"] >= 2]["mean"].groupby(["dataset", "run"]).max()
        columns[judge, "chosen"] = (chosen / best).groupby("dataset").mean()
        columns[judge, "best setting"] = (setting / best).groupby("dataset").mean()
    shares = pd.DataFrame(columns)
    shares.loc["mean"] = shares.mean()
    return shares.round(2)


if __name__ == "__main__":
    main()
