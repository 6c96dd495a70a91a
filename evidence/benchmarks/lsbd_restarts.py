"""Which seeds of LSBD-VAE converge, what tells without labels of the score, and what helps the others.

    python evidence/benchmarks/lsbd_restarts.py reproduced/lsbd/arrow-laptop reproduced/lsbd/airplane-laptop
    python evidence/benchmarks/lsbd_restarts.py reproduced/lsbd/arrow-laptop --warm warm/

The second also trains Arrow with a warm start, twenty minutes of two cores.

A seed has converged if its D_LSBD, on the scale of the paper's tables, is below the line that the claims of LSBD 2022
draw: .05 on Arrow, .3 on Airplane (evidence/studies/claims/lsbd-2022.yaml). Of each setting the first part prints how many
seeds have, the last L_LSBD of those that have and of the others, and how often the run of the lowest L_LSBD among
three converges, over all threes of seeds: the training itself computes L_LSBD from the labelled groups, so that such a
choice among restarts needs no further labels.

The warm start: for the first quarter of the steps the network sees the labelled groups alone, and of the loss L_LSBD
alone; then it goes on as ever. The same seeds and settings as in lsbd/arrow-laptop.yaml, 768 and 1 024 pairs. Written
before any of these runs: it *helps* if by a one-sided exact test (McNemar's, over seeds that converge one way and not
the other) more seeds converge, p <= .05.
"""

import argparse
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from scipy.stats import binomtest

from unbraid import Representation, Study, load_run, score, train
from unbraid.base.types import BoolArray, FloatArray
from unbraid.families.delta_vae import delta_vae_loss
from unbraid.families.family import Batch, Context, Hyper, Hyperparameter, LossOutput, OptimizerStep
from unbraid.families.lsbd_vae import LSBD_VAE, group_loss
from unbraid.scoring.setting_names import with_brief_settings

METRIC = "d_lsbd(norm=axes)"
SCORE = f"{METRIC}.score"
LINES = {"arrow": 0.05, "airplane": 0.3}  # below which a seed has converged
RESTARTS = 3
"""How many runs one would train to keep one."""


def warm_group_loss(modules: Any, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """As ever, or of the first steps L_LSBD alone."""
    loss, logs, updates = group_loss(modules, batch, hyper, step, context)
    alone = hyper["gamma"] * logs["lsbd"]
    begun = torch.as_tensor(step >= hyper["warm_steps"]).float()
    return begun * loss + (1 - begun) * alone, logs, updates


def warm_image_loss(modules: Any, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
    """As ever, or of the first steps nothing."""
    loss, logs, updates = delta_vae_loss(modules, batch, hyper, step, context)
    return torch.as_tensor(step >= hyper["warm_steps"]).float() * loss, logs, updates


def warmed(moves: tuple[OptimizerStep, ...]) -> tuple[OptimizerStep, ...]:
    groups, images = moves
    return replace(groups, loss=warm_group_loss), replace(images, loss=warm_image_loss)


WARM = replace(
    LSBD_VAE,
    title="LSBD-VAE with a warm start",
    optimizer_steps=warmed(LSBD_VAE.optimizer_steps),
    hyperparameters={
        **LSBD_VAE.hyperparameters,
        "warm_steps": Hyperparameter(1000, "steps of L_LSBD alone", 0, 1e9, kind="int"),
    },
    source="Tonnaer et al. 2022, section 5, with a first part of our own",
)


def last_loss(run: Path) -> float:
    """L_LSBD in the last steps of a run."""
    return float(json.loads((run / "status.json").read_text())["last"].get("lsbd", np.nan))


class Runs(NamedTuple):
    """Of one setting, in the order of its seeds."""

    seeds: list[int]
    scores: FloatArray  # (n_runs,) D_LSBD on the scale of the paper's tables
    losses: FloatArray  # (n_runs,) L_LSBD at the end
    turns: list[str]  # how the circle of the rotation is gone around

    def first(self, n: int) -> "Runs":
        return Runs(self.seeds[:n], self.scores[:n], self.losses[:n], self.turns[:n])


WORDS = {0: "not at all", 1: "once", -1: "once backwards", 2: "twice", -2: "twice", -3: "three times backwards"}


def turns_of(held: Representation) -> str:
    """How often the code of a rotation goes around its circle while the object turns once, at most of the hues.

    A full turn ends where it began, so that the steps between neighbouring angles, each the shorter way around, add up
    to a whole number of turns.
    """
    hue, rotation = (held.names.index(name) for name in ("hue", "rotation"))
    order = np.lexsort((held.factors[:, rotation], held.factors[:, hue]))
    n_hues = len(np.unique(held.factors[:, hue]))
    points = np.asarray(held.codes)[order][:, 2 * rotation : 2 * rotation + 2].reshape(n_hues, -1, 2)
    angles = np.arctan2(points[..., 1], points[..., 0])
    steps = np.angle(np.exp(1j * (np.roll(angles, -1, axis=1) - angles)))
    counts = np.rint(steps.sum(axis=1) / (2 * np.pi)).astype(int)
    return Counter(WORDS.get(count, f"{count} times") for count in counts.tolist()).most_common(1)[0][0]


def by_setting(folder: Path) -> dict[str, Runs]:
    """The runs of each setting of LSBD-VAE that are finished."""
    table: Any = with_brief_settings(Study.load(folder).results()).sort_values("seed")
    table = table[(table["family"] == "lsbd_vae") & table[SCORE].notna()]
    found = {}
    for setting, own in table.groupby("setting", sort=False):
        losses = np.array([last_loss(folder / "runs" / run) for run in own["run"]])
        turns = [turns_of(load_run(folder / "runs" / run).codes()) for run in own["run"]]
        found[str(setting)] = Runs([int(seed) for seed in own["seed"]], own[SCORE].to_numpy(float), losses, turns)
    return found


def of_restarts(runs: Runs, line: float) -> float:
    """How often the run of the lowest L_LSBD of RESTARTS has converged, over all choices of that many seeds."""
    if len(runs.seeds) < RESTARTS:
        return np.nan
    chosen = [min(each, key=lambda k: runs.losses[k]) for each in combinations(range(len(runs.seeds)), RESTARTS)]
    return float(np.mean(runs.scores[chosen] < line))


def span(values: FloatArray) -> str:
    return f"{values.min():.3f} to {values.max():.3f}" if len(values) else "–"


def counted(turns: list[str], chosen: BoolArray) -> str:
    found = Counter(each for each, taken in zip(turns, chosen, strict=True) if taken)
    return ", ".join(f"{each} ({n})" for each, n in found.most_common()) or "–"


def show(settings: Mapping[str, Runs], line: float) -> None:
    """A Markdown table: a row for each setting."""
    chosen = f"best of {RESTARTS} by L_LSBD converges"
    print(f"\n| setting | converged | L_LSBD of these | L_LSBD of the others | {chosen} | turns of these | others |")
    print("| --- | ---: | ---: | ---: | ---: | --- | --- |")
    for setting, runs in settings.items():
        there = runs.scores < line
        print(
            f"| {setting} | {there.sum()} of {len(there)} | {span(runs.losses[there])} | {span(runs.losses[~there])} "
            f"| {100 * of_restarts(runs, line):.0f} % | {counted(runs.turns, there)} | {counted(runs.turns, ~there)} |"
        )


def warm_start(cold: Mapping[str, Runs], out: Path) -> None:
    """Train the first ten seeds of Arrow again with a warm start, and test whether more of them converge."""
    for pairs, steps in ((1024, 4000), (768, 8000)):
        (before,) = [runs.first(10) for setting, runs in cold.items() if f"pairs={pairs}" in setting]
        runs = train(
            "lsbd_restarts:WARM", {"name": "arrow", "shrink": 4}, seeds=before.seeds, steps=steps, batch_size=100,
            precision="float32", out=out, pairs=pairs, network="dense_norm", likelihood="gaussian", sigma=0.7071,
            warm_steps=steps // 4,
        )  # fmt: skip
        scores = np.array([score(run.codes(), metrics=[METRIC])[METRIC].score for run in runs])
        old, new = before.scores < LINES["arrow"], scores < LINES["arrow"]
        gained, lost = int((new & ~old).sum()), int((old & ~new).sum())
        p = binomtest(gained, gained + lost, alternative="greater").pvalue if gained + lost else 1.0
        print(
            f"{pairs} pairs: {old.sum()} of {len(old)} converged, {new.sum()} with a warm start (gained {gained}, lost "
            f"{lost}, p = {p:.3f}); D_LSBD by seed {', '.join(f'{value:.3f}' for value in scores)}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="*", type=Path)
    parser.add_argument("--warm", type=Path, help="where the models with a warm start go")
    given = parser.parse_args()
    for folder in given.studies:
        line = next(line for name, line in LINES.items() if name in folder.name)
        print(f"\n## {folder.name}: converged below {line}")
        show(by_setting(folder), line)
    if given.warm is not None:
        warm_start(by_setting(next(folder for folder in given.studies if "arrow" in folder.name)), given.warm)


if __name__ == "__main__":
    main()
