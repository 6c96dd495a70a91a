"""How often the model that `unbraid fit` chooses is better than a random one: on eleven sets that nothing was tuned on.

    python evidence/benchmarks/fit_trust.py --out trust              what is not there yet; half an hour on two cores
    python evidence/benchmarks/fit_trust.py --out trust --sets ring,cross
    python evidence/benchmarks/fit_trust.py --out benchmarks --show  the table of what was trained
    python evidence/benchmarks/fit_trust.py --out trust --linear     the chosen models beside PCA and ICA
    python evidence/benchmarks/fit_trust.py --pictures sets.png      some images of each

Each set has 3 000 images of 16 x 16 with three factors, drawn here by a few lines, that this project had not drawn
before. All are fitted by one plan. A choice's *share* is the share of the other models of its fit that it is better than (ties
count half), as the mean of MIG, DCI (boosted trees) and MCC; a random model has .5.

The rule, fixed before the run
------------------------------
- Models disagree where the chosen one has a UDR below .6: then nothing is to be said of how far a choice can be trusted.
- What is to be said otherwise, from all that was measured before, a dataset counting once: fits to five drawn sets
  (`fit.csv`: cars .83, 3D shapes .69, sprites .78, teapots .67, upright sprites .91) and searches on four
  (`selection.json`: sprites .63, rooms .46, cars .50, teapots .54); both where there are two (their mean): "better than
  67 % of the other models, 95 % interval over six datasets 51 to 83 %".
- The statement is right where the mean share over the eleven sets, without those that are refused, lies within .10 of it.
- Whatever comes out, the statement is then made of all seventeen sets.

The second rule, fixed before the run as well: should `fit` hand over a linear model?
-----------------------------------------------------------------------------------
- Where as many principal components as the chosen model uses latents explain as much of the pixels' variance as it
  does, or more, these components (*PCA*), or their rotation to independent ones (*ICA*), would take its place.
- They do so in `fit` if there are three such sets or more, and in three of four of them the linear model is better than
  the chosen one by two of the three judges or more. If PCA and ICA both pass, the one that is better in more sets.
"""

import argparse
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1]))  # for the shares that docs/ranking.md is made of

from fit import JUDGES, models
from pages.track_record import shares as by_judge
from sklearn.decomposition import PCA, FastICA

import unbraid
from unbraid.base.types import FloatArray, UInt8Array
from unbraid.fitting.fit import IMAGES, Fitted, fit, setting_name
from unbraid.fitting.fit_images import prepare
from unbraid.fitting.fit_page import explained
from unbraid.fitting.plan import FILE, FinalRound, Plan, SearchRound, Setting, write_plan
from unbraid.metrics import METRICS

N_IMAGES, SIZE, FINE, LEVELS = 3000, 16, 4, 10
SETTINGS = [
    Setting(family=family, strength=strength)
    for family, strengths in {"beta_tcvae": (0.5, 1, 2), "beta_vae": (0.5, 1, 2), "dip_vae_ii": (2, 5)}.items()
    for strength in strengths
]
PLAN = Plan(
    minutes=3,
    latents=6,
    size=SIZE,
    search=SearchRound(size=SIZE, network="dense", steps=1000, seeds=3, settings=SETTINGS),
    final=FinalRound(size=SIZE, network="dense", steps=3000, seeds=5, settings=2, multiples=[1.0]),
)

# A drawing takes three factors (n, 1, 1) from 0 to 1 and the coordinates of pixels from -1 to 1, and gives their
# brightness from 0 to 1, (n, height, width) or with three colours in front.
Drawing = Callable[[FloatArray, FloatArray, FloatArray, FloatArray, FloatArray], FloatArray]


def disc(x: FloatArray, y: FloatArray, centre_x: Any, centre_y: Any, radius: Any) -> FloatArray:
    return (np.hypot(x - centre_x, y - centre_y) < radius).astype(float)


def block(x: FloatArray, y: FloatArray, width: Any, height: Any) -> FloatArray:
    return ((abs(x) < width) & (abs(y) < height)).astype(float)


def two_circles(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    return disc(x, y, 1.2 * a - 0.6, -0.5, 0.3) + disc(x, y, 1.2 * b - 0.6, 0.5, 0.15 + 0.25 * c)


def square(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    half = 0.15 + 0.25 * c
    return block(x - 1.1 * a + 0.55, y - 1.1 * b + 0.55, half, half)


def bar(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    angle, shifted = 2.4 * b, x - 0.8 * a + 0.4
    along, across = np.cos(angle) * shifted + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * shifted
    return (0.3 + 0.7 * c) * block(along, across, 0.55, 0.15)


def ellipse(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    return (0.3 + 0.7 * c) * disc(x / (0.25 + 0.65 * a), y / (0.25 + 0.65 * b), 0, 0, 1)


def ring(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    centre, radius = 0.8 * a - 0.4, 0.35 + 0.2 * b
    return disc(x, y, centre, 0, radius) - disc(x, y, centre, 0, radius * (0.1 + 0.7 * c))


def three_bars(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    heights = ((-0.62, a), (0.0, b), (0.62, c))
    return sum((block(x - place, y - 1, 0.22, 0.2 + 1.6 * height) for place, height in heights), np.zeros_like(x))


def spot(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    light = np.exp(-((x - 1.2 * a + 0.6) ** 2 + (y - 1.2 * b + 0.6) ** 2) / 0.12)
    return np.clip(0.35 + 0.3 * (2 * c - 1) * y + 0.5 * light, 0, 1)


def cross(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    thick, x, y = 0.06 + 0.2 * c, x - 0.8 * a + 0.4, y - 0.8 * b + 0.4
    return np.maximum(block(x, y, 0.5, thick), block(x, y, thick, 0.5))


def triangle(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    x, angle = x - 0.8 * a + 0.4, 1.8 * b
    sides = [np.cos(angle + turn) * x + np.sin(angle + turn) * y < 0.3 for turn in (0, 2.1, 4.2)]
    return (0.3 + 0.7 * c) * (sides[0] & sides[1] & sides[2])


def tinted(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    shape = block(x - 1.1 * a + 0.55, y, 0.4, 0.4)
    return np.stack([shape * (0.2 + 0.8 * b), shape * (0.2 + 0.8 * c), 0.5 * np.ones_like(shape)])


def face(a: FloatArray, b: FloatArray, c: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    head, apart = disc(x / (0.6 + 0.35 * a), y / 0.95, 0, 0, 1), 0.18 + 0.22 * b
    eyes = disc(x, y, apart, -0.3, 0.13) + disc(x, y, -apart, -0.3, 0.13)
    mouth = (abs(y - 0.4 - (2 * c - 1) * (0.35 - 2 * x**2)) < 0.1) & (abs(x) < 0.4)
    return head * (0.6 + 0.4 * mouth) * (1 - 0.9 * np.clip(eyes, 0, 1))


SETS: Mapping[str, Drawing] = {
    drawing.__name__: drawing
    for drawing in (two_circles, square, bar, ellipse, ring, three_bars, spot, cross, triangle, tinted, face)
}


def main() -> None:
    """Fit the sets that were not, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--show", action="store_true", help="only print the table")
    parser.add_argument("--linear", action="store_true", help="only compare with PCA and ICA")
    parser.add_argument("--pictures", type=Path, help="only draw some images of each set")
    arguments = parser.parse_args()
    if arguments.pictures:
        pictures(arguments.pictures)
        return
    if arguments.linear:
        beside = [line for name in arguments.sets.split(",") for line in linear(name, arguments.out / name)]
        pd.DataFrame(beside).to_csv(arguments.out / "fit_linear.csv", index=False)
        print(pd.DataFrame(beside).round(3).to_string(index=False))
        return
    table = arguments.out / "fit_trust.csv"
    known = pd.read_csv(table) if table.is_file() else pd.DataFrame({"dataset": []})
    for name in () if arguments.show else arguments.sets.split(","):
        if name not in set(known["dataset"]):
            known = pd.concat([known, pd.DataFrame(judged(name, arguments.out / name))])
            known.to_csv(table.with_suffix(".part"), index=False)
            os.replace(table.with_suffix(".part"), table)
            print(shares(known).to_string(), flush=True)
    print(shares(known).to_string())


def drawn(name: str, n_images: int = N_IMAGES) -> tuple[UInt8Array, FloatArray]:
    """Images (n_images, 16, 16, 1 or 3) and their factors (n_images, 3)."""
    factors = np.random.default_rng(sorted(SETS).index(name)).integers(0, LEVELS, (n_images, 3)).astype(float)
    places = (np.arange(SIZE * FINE) + 0.5) / (SIZE * FINE) * 2 - 1
    a, b, c = (factors / (LEVELS - 1)).T[:, :, None, None]
    x, y = np.broadcast_arrays(places[None, None, :], places[None, :, None])
    fine = SETS[name](a, b, c, x, y)
    coarse = fine.reshape(-1, n_images, SIZE, FINE, SIZE, FINE).mean(axis=(3, 5))
    return np.moveaxis((255 * np.clip(coarse, 0, 1)).astype(np.uint8), 0, -1), factors


def judged(name: str, folder: Path) -> list[dict[str, Any]]:
    """A fit, and a row for every model that it trained."""
    images, factors = drawn(name)
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / FILE).is_file():
        write_plan(PLAN, folder / FILE)
    fitted = fit(images, folder, plan=folder / FILE)
    cropped = prepare(images, folder / IMAGES, SIZE)
    return [row(name, fitted, model.path.name, model.encode(cropped.at(SIZE).images(np.arange(N_IMAGES))), model.config, factors)
            for model in models(fitted)]  # fmt: skip


def row(
    name: str, fitted: Fitted, model: str, codes: FloatArray, config: Mapping[str, Any], factors: FloatArray
) -> dict[str, Any]:
    """Codes of a model, judged by the labels, and what the fit said of its choice."""
    choice = fitted.choice
    is_chosen = choice.chosen is not None and choice.chosen.run.path.name == model
    return {
        "dataset": name,
        "what": "chosen" if is_chosen else "trained",
        "model": setting_name(config["family"], config["hyperparameters"]),
        **by_labels(codes, factors),
        "udr": choice.udr(choice.chosen) if is_chosen and choice.chosen else np.nan,
        "sure_of_model": choice.sure_of_model if is_chosen else np.nan,
        "sure_of_setting": choice.sure_of_setting if is_chosen else np.nan,
        "reason": choice.reason,
    }


def by_labels(codes: FloatArray, factors: FloatArray) -> dict[str, float]:
    card = unbraid.score(codes, factors, kinds=["ordinal"] * 3, metrics=list(JUDGES))
    return {judge: getattr(card[judge], METRICS[judge].headline) for judge in JUDGES}


def shares(table: pd.DataFrame) -> pd.DataFrame:
    """Of each set: the share of the other models that the chosen one is better than, by each judge and on average."""
    rows = []
    for name, models_of_set in table.groupby("dataset", sort=False):
        chosen = models_of_set[models_of_set["what"] == "chosen"]
        line = {"dataset": name, "models": len(models_of_set)}
        if len(chosen):
            (best,) = chosen.to_dict("records")
            better = by_judge(models_of_set)
            line |= better.to_dict() | {"share": better.mean()}
            line |= {key: best[key] for key in ("model", "udr", "sure_of_model", "sure_of_setting")}
        else:
            line["model"] = models_of_set["reason"].iloc[0]
        rows.append(line)
    return pd.DataFrame(rows).set_index("dataset").round(3)


def linear(name: str, folder: Path) -> list[dict[str, Any]]:
    """The chosen model, PCA and ICA with as many codes as it uses latents: what they explain, and their scores."""
    images, factors = drawn(name)
    choice = fit(images, folder, plan=folder / FILE).choice
    if choice.chosen is None or choice.ranking is None:
        return []
    model, cropped = choice.chosen.run, prepare(images, folder / IMAGES, SIZE).at(SIZE)
    used = choice.ranking.latents[choice.ranking.runs.index(model.path.name)]
    shares = explained(model, cropped, len(used))
    assert shares is not None
    pixels = images.reshape(len(images), -1).astype(float)
    every = {
        "chosen": (shares["model"], model.encode(cropped.images(np.arange(N_IMAGES)))),
        "pca": (shares["pca"], PCA(len(used)).fit_transform(pixels)),
        "ica": (shares["pca"], FastICA(len(used), random_state=0, max_iter=2000).fit_transform(pixels)),
    }
    return [
        {"dataset": name, "what": what, "codes": len(used), "explained": share} | by_labels(codes, factors)
        for what, (share, codes) in every.items()
    ]


def pictures(path: Path) -> None:
    """Twelve images of each set, a row a set."""
    from PIL import Image

    rows = []
    for name in SETS:
        images = drawn(name, 12)[0]
        rows.append(np.concatenate(list(np.broadcast_to(images, (12, SIZE, SIZE, 3))), axis=1))
    sheet = Image.fromarray(np.concatenate(rows))
    sheet.resize((sheet.width * 4, sheet.height * 4), Image.Resampling.NEAREST).save(path)


if __name__ == "__main__":
    main()
