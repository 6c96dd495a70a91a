"""Would another plan of `unbraid fit` find better models: fewer that are trained longer, or small images weighed as large ones?

    python evidence/benchmarks/fit_plans.py --out plans              what is not there yet; three to four hours on one core
    python evidence/benchmarks/fit_plans.py --out plans --sets cars_rendered --ways weighed
    python evidence/benchmarks/fit_plans.py --out benchmarks --show  the table of what was trained
    python evidence/benchmarks/fit_plans.py --out quick --steps 20   to see that it works

Both are compared with the first fits of `fit.py` (its table `fit.csv`), on the same five sets, images and settings.

The rule, fixed before the run
------------------------------
- *halved*, the end of a successive halving: the half of the minutes that belongs to the last round goes to four models
  instead of ten: the two settings that the last round had, two seeds each, 2.5 times the steps (at most 40 000; they
  stop early as those of `fit` do). `fit`'s own choice takes one of the four without labels.
- It becomes `fit`'s plan if its choice has a higher score than the one of `fit.csv` in 11 of the 15 comparisons (five
  sets, three judges) or more, in the mean of the sets by all three judges, and is above the beta-VAE of the same
  minutes and above PCA in at least as many of the 15 as that of `fit.csv`.
- *weighed*: the search's beta-TCVAEs and DIP-VAEs with `reconstruction_weight` 16 on images of 16 x 16 and strengths x 16,
  so that all terms of the loss but the one with the strength keep the balance that they have at 64 x 64. A beta-VAE of
  weight 16 and 16 beta is the present one, since Adam ignores the scale of a loss. Same seeds and steps.
- It becomes the way of the search if the mean score of these models is above that of the same models of `fit.csv` in
  11 of the 15 comparisons or more, and in the mean of the sets by all three judges.

Found when *weighed* had run, and before *halved*: on sprites and cars `fit.csv` has `dci_boosted` of version 3, which
since then is another number there. These two comparisons are left out: 13 are left, and *halved* needs 10 of them.
"""

import argparse
import os
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from fit import IMAGES, JUDGES, N_IMAGES, N_LATENTS, SETS, SIZE, drawn, judged

from unbraid.datasets import from_array
from unbraid.fitting.choose import Candidate, choose
from unbraid.fitting.fit import N_UNTRAINED, setting_name
from unbraid.fitting.fit_images import Pictures, prepare
from unbraid.fitting.plan import FINAL_STEPS, SEARCH_SIZE, Round, Setting, study_of
from unbraid.runs.run import Run, load_run
from unbraid.studies.study import Study

KEPT = Path(__file__).with_name("fit.csv")
WAYS = ("weighed", "halved")
IN_LAST_ROUND = 10  # models of a fit
CHANGED = {("sprites", "dci_boosted"), ("cars_rendered", "dci_boosted")}  # since `fit.csv` was made
SEEDS, LONGER = {"weighed": range(3), "halved": range(3, 5)}, 2.5
WEIGHT = (SIZE // SEARCH_SIZE) ** 2


def main() -> None:
    """Train and judge what is not there yet, and print what the rule compares."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--steps", type=int, help="in place of those of the rule")
    parser.add_argument("--show", action="store_true", help="only print the table")
    arguments = parser.parse_args()
    table = arguments.out / "fit_plans.csv"
    for way in () if arguments.show else arguments.ways.split(","):
        for name in arguments.sets.split(","):
            known = pd.read_csv(table) if table.is_file() else pd.DataFrame({"dataset": [], "way": []})
            if not ((known["dataset"] == name) & (known["way"] == way)).any():
                rows = pd.DataFrame(trained(name, way, arguments.out, arguments.steps)).assign(way=way)
                known = pd.concat([known, rows]) if len(known) else rows
                known.to_csv(table.with_suffix(".part"), index=False)
                os.replace(table.with_suffix(".part"), table)
                print(compared(known, way).to_string(), flush=True)
    for way, own in pd.read_csv(table).groupby("way"):
        print(way, compared(own, str(way)).to_string(), sep="\n")


def kept(name: str, what: tuple[str, ...] = ("chosen", "trained")) -> pd.DataFrame:
    """The rows of the set's first fit: of its models, those of the last round at the end."""
    table = pd.read_csv(KEPT)
    return table[(table["dataset"] == name) & (table["run"] == 0) & table["what"].isin(what)]


def replaced(name: str, way: str) -> pd.DataFrame:
    """Those models of the first fit that others are trained in place of."""
    models = kept(name)
    if way == "halved":
        return models[-IN_LAST_ROUND:]
    searched = models[:-IN_LAST_ROUND]
    return searched[~searched["model"].str.startswith("beta_vae")]


def trained(name: str, way: str, folder: Path, steps: int | None) -> list[dict[str, Any]]:
    """A row for each model that is trained in this way; `what` is chosen or trained."""
    dataset, index = drawn(name, 0)
    pictures = prepare(dataset.images(index), folder / name / IMAGES, SIZE)
    study = Study.load(study_file(name, way, pictures, folder, steps), folder / name / way)
    runs = [load_run(model.path) for model in study.run()]
    best = chosen(runs, pictures) if way == "halved" else None
    return [judged(name, 0, 30.0, "chosen" if run.path.name == best else "trained", pictures, run) for run in runs]


def study_file(name: str, way: str, pictures: Pictures, folder: Path, steps: int | None) -> Path:
    """The YAML of the study of these models."""
    before = replaced(name, way)
    n_steps = int(before["steps"].max())
    if way == "halved":
        n_steps = min(int(LONGER * n_steps), FINAL_STEPS["conv"][1])
    planned = Round(size=int(before["size"].max()), network="conv", steps=steps or n_steps, seeds=len(SEEDS[way]))
    settings = [setting(model, WEIGHT if way == "weighed" else 1) for model in sorted(before["model"].unique())]
    content = yaml.safe_load(
        study_of(pictures.path.resolve(), SIZE, planned, SEEDS[way], settings, latents=N_LATENTS, options={}, name=way)
    )
    if way == "weighed":
        for family in content["families"]:
            family["reconstruction_weight"] = WEIGHT
    file = folder / name / f"{way}.yaml"
    file.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return file


def setting(model: str, multiple: float) -> Setting:
    """That of a name in `fit.csv`, such as "dip_vae_ii lambda_od=5, lambda_d=5", with a multiple of its strength."""
    family, strength = model.split()[0], float(model.rpartition("=")[2])
    return Setting(family=family, strength=strength * multiple)


def chosen(runs: list[Run], pictures: Pictures) -> str | None:
    """The folder's name of the model that `fit` would choose among these."""
    dataset = from_array(pictures.at(runs[0].config["dataset"]["image_shape"][0]).images(np.arange(N_IMAGES)))
    candidates = [
        Candidate(
            run, setting_name(run.config["family"], run.config["hyperparameters"]), float(run.held_out()["elbo"].max())
        )
        for run in runs
    ]
    by_seed = list({run.config["seed"]: run for run in runs}.values())
    choice = choose(candidates, [run.untrained().representation(dataset).codes for run in by_seed[:N_UNTRAINED]], 0)
    return choice.chosen.run.path.name if choice.chosen else None


def compared(table: pd.DataFrame, way: str) -> pd.DataFrame:
    """What the rule compares, by judge and set: the new score, the one of `fit.csv`, PCA and the beta-VAE.

    Where no model was chosen there is no score, and the set is not in the mean.
    """
    rows = []
    for name, new in table[table["way"] == way].groupby("dataset", sort=False):
        old, peers = replaced(str(name), way), kept(str(name), ("pca", "beta_vae")).set_index("what")
        if way == "halved":
            new, old = new[new["what"] == "chosen"], kept(str(name), ("chosen",))
        rows += [
            {"judge": judge, "dataset": name, "new": new[judge].mean(), "fit.csv": old[judge].mean(),
             **peers[judge]} for judge in JUDGES if (name, judge) not in CHANGED
        ]  # fmt: skip
    lines = pd.DataFrame(rows).set_index(["judge", "dataset"]).sort_index()
    means = lines.dropna().groupby("judge").mean().assign(dataset="mean").set_index("dataset", append=True)
    lines = pd.concat([lines, means])
    return lines.assign(higher=lines["new"] > lines["fit.csv"]).round(3)


if __name__ == "__main__":
    main()
