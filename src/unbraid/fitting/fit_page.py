"""The page of `unbraid fit`: what each latent does, how stable the choice is, and what to do next."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.base.counted import counted
from unbraid.base.types import FloatArray
from unbraid.base.version import VERSION
from unbraid.data.image_dataset import FactorDataset
from unbraid.fitting.choose import Choice, next_step
from unbraid.fitting.fit_images import Pictures
from unbraid.fitting.plan import Plan
from unbraid.metrics import METRICS
from unbraid.ranking.track_record import CAVEAT
from unbraid.runs.live.decoder import live_models
from unbraid.runs.run import Run
from unbraid.show.html import render
from unbraid.show.image_addresses import image_address

ENDS = 6  # images shown at either end of a latent
N_PCA = 2000  # images that the comparison with principal components rests on
ARRAYS = {"ndarray": "an array", "Tensor": "a tensor"}  # what images come from, by the name of its type


def fit_page(
    pictures: Pictures,
    plan: Plan,
    choice: Choice,
    *,
    run: Run | None,
    codes: FloatArray | None,
    judged: Mapping[str, Mapping[str, float]],
    on_labels: Sequence[str] = (),
) -> str:
    """A standalone HTML document.

    Args:
        pictures, plan, choice: of `unbraid.fit`.
        run: the chosen model, with `codes` (n_images, n_codes) of all images; None if nothing was chosen.
        judged: scores by labels, metric -> run -> score; empty without labels.
        on_labels: notes on the labels.
    """
    content: dict[str, Any] = {
        "version": VERSION,
        "images": pictures.notes(),
        "source": ARRAYS.get(pictures.source, Path(pictures.source).name),  # the page may be read elsewhere
        "minutes": counted(plan.minutes, "minute"),
        "reason": choice.reason,
        "n_models": len(choice.candidates),
        "planned": choice.planned,
        "next_step": next_step(choice),
        "trust": choice.trust,
        "size": choice.size or plan.final.size,
        "study": choice.study,
        "settings": settings_table(choice),
        "judged": judged_table(choice, judged),
        "titles": {name: METRICS[name].title for name in judged},
        "on_labels": list(on_labels),
        "live": None,
        "latents": [],
        "notes": [note for note in choice.ranking.notes if CAVEAT not in note] if choice.ranking else [],
    }
    if run is not None and codes is not None and choice.chosen is not None:
        dataset = pictures.at(run.config["dataset"]["image_shape"][0])
        live = live_models([run], dataset)
        live["models"][0]["name"] = choice.chosen.setting
        for slider in live["sliders"]:
            slider["name"] = slider["name"].replace("code", "latent")  # as above it
            slider["factors"] = []  # nobody knows them
        content |= {
            "live": {**live, "brief": True},
            "latents": latents(live, pictures, codes, run.codes().signal()),
            "chosen": choice.chosen.setting,
            "udr": choice.udr(choice.chosen),
            "shape": run.config["dataset"]["image_shape"],
            "draws": choice.draws,
            "draws_with_it": choice.draws_with_it,
            "sure_of_model": choice.sure_of_model,
            "sure_of_setting": choice.sure_of_setting,
            "explained": explained(run, dataset, len(live_informative(live))),
        }
    return render("fit.html", content)


def live_informative(live: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [slider for slider in live["sliders"] if slider["informative"]]


def latents(
    live: Mapping[str, Any], pictures: Pictures, codes: FloatArray, signal: FloatArray | None
) -> list[dict[str, Any]]:
    """For each informative latent: its traversal, and the images with the lowest and highest codes.

    Args:
        live: from `live_models`.
        pictures: the images.
        codes: (n_images, n_codes) of them.
        signal: (n_codes,) nats, as of `Representation.signal`.
    """
    images, rows = pictures.array(), []
    for slider in live_informative(live):
        code = slider["codes"][0][0]
        order = np.argsort(codes[:, code], kind="stable")
        low, high = order[:ENDS], order[::-1][:ENDS]
        rows.append(
            {
                "code": code,
                "tells": None if signal is None else f"{signal[code]:.2f}",
                "strip": slider["strips"][0],
                "low": [_picture(images, row, pictures) for row in low],
                "high": [_picture(images, row, pictures) for row in high],
            }
        )
    return rows


def settings_table(choice: Choice) -> list[dict[str, Any]]:
    """A row per setting, the best first."""
    rows: dict[str, dict[str, list[float]]] = {}
    informative = {}
    if choice.ranking is not None:
        informative = dict(zip(choice.ranking.runs, choice.ranking.informative.tolist(), strict=True))
    for candidate in choice.candidates:
        own = rows.setdefault(candidate.setting, {"udr": [], "elbo": [], "informative": []})
        own["udr"].append(choice.udr(candidate) or 0.0)
        own["elbo"].append(candidate.elbo)
        own["informative"].append(informative.get(candidate.run.path.name, 0))
    chosen = choice.chosen.setting if choice.chosen else None
    table = [
        {"name": name, "n": len(own["udr"]), "chosen": name == chosen}
        | {key: float(np.median(values)) for key, values in own.items()}
        for name, own in rows.items()
    ]
    return sorted(table, key=lambda row: -row["udr"])


def judged_table(choice: Choice, judged: Mapping[str, Mapping[str, float]]) -> list[dict[str, Any]]:
    """Scores by labels: of the chosen model, the median and the best of all."""
    chosen = choice.chosen.run.path.name if choice.chosen else None
    return [
        {
            "metric": metric,
            "chosen": scores.get(chosen) if chosen else None,
            "median": float(np.median(list(scores.values()))),
            "best": max(scores.values()),
        }
        for metric, scores in judged.items()
    ]


def explained(run: Run, dataset: FactorDataset, n_latents: int) -> dict[str, float] | None:
    """Share of the pixels' variance explained by the model, and by as many principal components as it uses latents.

    None if all images drawn are equal.
    """
    rows = np.random.default_rng(0).permutation(len(dataset))[:N_PCA]
    images = dataset.images(np.sort(rows))
    if (images == images[0]).all():
        return None
    pixels = images.reshape(len(images), -1) / 255.0
    centred = pixels - pixels.mean(0)
    whole = float((centred**2).sum())
    rebuilt = np.clip(run.decode(run.encode(images)), 0, 1).reshape(pixels.shape)
    spectrum = np.linalg.svd(centred, compute_uv=False) ** 2
    return {
        "model": 1 - float(((pixels - rebuilt) ** 2).sum()) / whole,
        "pca": float(spectrum[:n_latents].sum()) / whole,
        "n": n_latents,
    }


def _picture(images: Any, row: int, pictures: Pictures) -> dict[str, str]:
    return {"src": image_address(np.asarray(images[row])), "name": pictures.names[row]}
