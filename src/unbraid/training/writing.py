"""Writes the folder of a run, whole or not at all, when its training has ended."""

import json
import math
import time
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.torch import save

from unbraid.base.version import VERSION
from unbraid.data.image_dataset import FactorDataset
from unbraid.data.representation import write_codes
from unbraid.families.building import Member, make_supply, structural_settings
from unbraid.families.family import completed
from unbraid.families.family_table import find_family
from unbraid.files.checksum import BLANK, KEY, checksummed, checksummed_json
from unbraid.files.run_files import CHECKPOINT, CODES, CONFIG, CURVES, HELD_OUT, LASTING, SNAPSHOTS, STATUS, WEIGHTS
from unbraid.files.trust import trusted_in
from unbraid.files.whole_files import on_disk
from unbraid.runs.folder import tidy
from unbraid.runs.run import Run, probe_images
from unbraid.training.held_out import HoldOut, divided, held_out_rows
from unbraid.training.loop import Trained
from unbraid.training.training_versions import provenance

N_IMAGES = 256
JUDGED = 0.1  # least steps times learning rate, about as far as Adam can have moved a weight
WORSE = 2.0  # times the error of the mean image; a model with uninformative latents has about that error


def write_run(
    working: Path,
    target: Path,
    config: Mapping[str, Any],
    trained: Trained,
    dataset: FactorDataset,
    *,
    continuable: bool = False,
) -> Run:
    """Write all files of a run into the working folder, then rename it to `target`.

    Args:
        continuable: keep the last checkpoint of a training that did not diverge.

    Raises:
        OSError: no space; the working folder stays, and with it the checkpoint.
    """
    config = {**config, **_met(config, dataset), "precision": trained.precision or config["precision"]}
    (working / CONFIG).write_bytes(checksummed_json(config))
    weights = {name: value.contiguous() for name, value in trained.weights.items()}
    (working / WEIGHTS).write_bytes(checksummed(save(weights, {KEY: BLANK})))
    _write_table(working / CURVES, {"step": trained.curve_steps, **trained.curves})
    for name, table in ((SNAPSHOTS, trained.snapshots), (HELD_OUT, trained.held_out)):
        if table:
            _write_table(working / name, {**table, "step": table["step"].astype(np.int64)})
    finite = {name: values[np.isfinite(values)] for name, values in trained.curves.items()}
    status = {
        "state": "diverged" if trained.diverged else "finished",
        "step": trained.diverged.step if trained.diverged else trained.step,
        "reason": trained.diverged.reason if trained.diverged else None,
        "seconds": round(trained.seconds, 3),
        "last": {name: float(values[-1]) for name, values in finite.items() if len(values)},
        "unbraid": VERSION,
        "provenance": provenance(config, trained.began, time.time(), trained.together),
    }
    if trained.held_out:
        status["held_out"] = _judged(config, trained)
    if trained.origin:
        status["continued"] = {"run": trained.origin[0], "step": trained.origin[1]}
    if not trained.diverged:
        run = Run(working, config, status, config["device"]).with_weights(weights)
        write_codes(run.representation(dataset), working / CODES)
        if fault := sanity_check(run, dataset, reconstructs="reconstruction" in trained.curves):
            status["note"] = fault
        if trusted_in([config["family"], dict(config["hyperparameters"])]):
            # On the CPU, where it will be compared: convolutions on a GPU may round to TF32.
            probe = run.on_cpu().encode(probe_images(tuple(dataset.image_shape)))
            if np.isfinite(probe).all():  # an encoder that takes logarithms may fail on noise
                config["probe"] = probe.tolist()
                (working / CONFIG).write_bytes(checksummed_json(config))
    status["files"] = {name: (working / name).stat().st_size for name in LASTING if (working / name).exists()}
    (working / STATUS).write_bytes(checksummed_json(status))
    on_disk(working, written=CHECKPOINT)
    working.rename(target)
    tidy(target, continuable=continuable and not trained.diverged)
    return Run(target, config, status)


def _met(config: Mapping[str, Any], dataset: FactorDataset) -> dict[str, Any]:
    """Entries of the config that follow from the others and the dataset's factors; not part of the run's id."""
    family, met = find_family(config["family"]), {}
    member = Member(config["seed"], completed(family, config["hyperparameters"]))
    space = divided(dataset, HoldOut(**config.get("hold_out", {}))).seen.space
    settings = structural_settings(family, [member], space)
    if supply := make_supply(family, space, settings, member.seed):
        met["supervision"] = dict(supply.used)
    if family.facts:
        met["facts"] = json.loads(json.dumps(family.facts(space, structural_settings(family, [member]))))
    if family.parts:
        met["codes"] = [asdict(part) for part in family.parts(settings)]
    return met


def _judged(config: Mapping[str, Any], trained: Trained) -> dict[str, Any]:
    """The step of the weights, their ELBO on the hold-out set, and whether training stopped early."""
    elbos, steps = trained.held_out["elbo"], trained.held_out["step"]
    chosen = int(np.nanargmax(elbos)) if config["hold_out"]["patience"] and np.isfinite(elbos).any() else -1
    elbo = float(elbos[chosen]) if np.isfinite(elbos[chosen]) else None
    return {"step": int(steps[chosen]), "elbo": elbo, "stopped": trained.stopped}


def _write_table(path: Path, columns: Mapping[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    # From buffers, without a copy: with arrays, `pa.table` would import pandas to check their type.
    arrays = {
        name: pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, pa.py_buffer(values)])
        for name, values in columns.items()
    }
    content = pa.BufferOutputStream()
    pq.write_table(pa.table(arrays).replace_schema_metadata({KEY: BLANK}), content)
    path.write_bytes(checksummed(content.getvalue()))


def sanity_check(run: Run, dataset: FactorDataset, *, reconstructs: bool) -> str | None:
    """One line on a model that is finite but absurd; None for all others.

    Either its posteriors hold more nats about an image than the image has, stored as bytes. Or its reconstructions of
    256 images have more than twice the squared error of their mean image, although its weights had time to learn:
    untrained models of dark images have such errors, and models of sprites were below them once steps times learning
    rate reached .04.

    Args:
        run: a run that did not diverge.
        dataset: the images it was trained on.
        reconstructs: whether its family was trained to decode what it encodes.
    """
    images = dataset.images(held_out_rows(len(dataset), min(N_IMAGES, len(dataset))))
    codes, log_variances = run.posterior(images)
    if log_variances is not None:
        kl = run.prior_kl(codes, log_variances)
        if kl is None:
            spreads = log_variances.astype(np.float64)
            with np.errstate(over="ignore"):  # infinite is more than an image has, too
                kl = 0.5 * (codes.astype(np.float64) ** 2 + np.exp(spreads) - spreads - 1)
        nats, most = float(kl.sum(1).mean()), images[0].size * 8 * math.log(2)
        if not nats <= most:
            return f"its codes hold {nats:.3g} nats of an image, which has {most:.3g} when it is stored as bytes"
    moved = run.status["step"] * run.config["hyperparameters"].get("learning_rate", 1.0)
    if reconstructs and moved >= JUDGED:
        pixels = (images / 255 if images.dtype == np.uint8 else images).astype(np.float64)
        error = float(((run.decode(codes) - pixels) ** 2).sum())
        of_mean = float(((pixels - pixels.mean(0)) ** 2).sum())
        if of_mean and not error <= WORSE * of_mean:
            return f"its reconstructions are {error / of_mean:.3g} times as far from the images as their mean image is"
    return None
