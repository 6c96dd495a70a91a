"""Models of a suite: an encoder of anybody's, which is called, or a family of this package, which a study trains."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from unbraid._utils.suggest import error_line
from unbraid.bench.suite import Suite
from unbraid.datasets.base import FactorDataset
from unbraid.factors import Space
from unbraid.families.building import make_supply, structural_settings
from unbraid.families.table import FAMILIES
from unbraid.metrics._shared.provenance import source_digest
from unbraid.representation import Representation
from unbraid.runs.run import BATCH, N_CODES, open_run
from unbraid.scoring.encoding import drawn, encoded_at
from unbraid.storage.json_records import read_object
from unbraid.storage.trust import exits_as_errors, imported
from unbraid.storage.yaml_files import written
from unbraid.studies.record import StudyProgress
from unbraid.studies.store import write_json
from unbraid.studies.study import Study
from unbraid.training.provenance import provenance
from unbraid.training.train import members_of
from unbraid.types import FloatArray, IntArray, UInt8Array


@dataclass(frozen=True)
class Trained:
    """One model of one set; its codes are asked for where they are not scored yet."""

    label: str  # of the set
    id: str  # tells it from all others of the set
    seed: int
    codes: Callable[[], Representation]
    seconds: float  # of training
    made: Mapping[str, Any]  # provenance: commit, processor, ...
    untrained: Callable[[], Representation] | None = None
    setting: str = ""
    supervision: str = ""


def encoder(what: str) -> Callable[..., Any]:
    """The function of the user's that trains an encoder.

    Raises:
        UntrustedCode: the user did not name it.
        ValueError: it cannot be imported, or is no function.
    """
    found = imported(what, "encoder", f"name it yourself: bench_encoder({what!r})")
    if not callable(found):
        raise ValueError(
            f"encoder {what!r} is {type(found).__name__}, and must be a function of (images, *, seed, steps)"
        )
    return found


def trained_encoder(
    what: str, function: Callable[..., Any], suite: Suite, label: str, dataset: FactorDataset, seed: int, folder: Path
) -> Trained:  # fmt: skip
    """A model that the function trains; once it is trained its codes are kept, and the function is not called again.

    Args:
        what: it is called, package.module:function.
        function: called as function(images, seed=..., steps=...) with images (n, channels, height, width), float32 from
            0 to 1, in an order that tells nothing. It returns another one, from such images to codes (n, n_codes).
        suite: whose budget counts.
        label: of the set.
        dataset: its images.
        seed: of the model.
        folder: that keeps the codes.

    Raises:
        ValueError: the function raised, returned no function, or codes of another shape or not finite; or what the
            folder keeps is by another version of its source.
    """
    name = f"{label}-{seed}"
    codes, told = folder / f"{name}.npz", folder / f"{name}.json"
    source = source_digest(what, function)
    given = {"source": source, "images": dict(suite.sets[label]), "steps": suite.steps}
    if not (told.is_file() and codes.is_file()):
        images = as_given(dataset.images(shuffled(len(dataset), seed)))
        began = time.time()
        try:
            with exits_as_errors():
                encode = function(images, seed=seed, steps=suite.steps)
                if not callable(encode):
                    raise ValueError(f"it must return a function from images to codes; got {type(encode).__name__}")
                ended = time.time()
                representation = _encoded(encode, dataset)
        except Exception as error:  # whatever code of the user's raises
            raise ValueError(f"{what} on {label}, seed {seed}: {error_line(error, ValueError)}") from error
        config = {"device": "cpu", "family": what, "dataset": {"name": suite.sets[label]["name"]}}
        made = provenance(config, began, ended)
        folder.mkdir(parents=True, exist_ok=True)
        representation.save(codes)
        write_json(told, {"given": given, "seconds": ended - began, "made": made})
    kept = read_object(told, checksummed=True)
    if kept["given"] != given:
        other = "the suite" if kept["given"]["source"] == source else what
        raise ValueError(f"{told} is of another version of {other}: give another folder (--work), or delete this one")
    return Trained(
        label,
        f"{seed}-{sha256(told.read_bytes()).hexdigest()[:12]}",  # of this training: scores of another are not its own
        seed,
        partial(Representation.load, codes),
        kept["seconds"],
        kept["made"],
    )


def as_given(images: UInt8Array) -> FloatArray:
    """(n, channels, height, width) float32 from 0 to 1, of images as datasets give them."""
    return np.ascontiguousarray(np.moveaxis(images, -1, 1), dtype=np.float32) / np.float32(255)


def shuffled(n: int, seed: int) -> IntArray:
    """Positions in an order that tells nothing of factors, which the order of a grid does."""
    return np.random.default_rng(seed).permutation(n)


def _encoded(encode: Callable[[Any], Any], dataset: FactorDataset) -> Representation:
    """Its codes of the images that are scored, which it sees in batches that tell nothing of factors."""
    index = drawn(len(dataset), N_CODES, 0)
    order = shuffled(len(index), 0)
    found = encoded_at(index[order], lambda images: encode(as_given(images)), dataset, BATCH)
    if not np.isfinite(found.codes).all():
        raise ValueError("codes must be finite")
    return found.keep_rows(np.argsort(order))


def why_not(family: str, settings: Mapping[str, Any], space: Space) -> str:
    """Why a family cannot be trained on images with these factors; "" where it can."""
    row = FAMILIES[family]
    [member] = members_of(family, row, [0], None, settings)
    try:
        make_supply(row, space, structural_settings(row, [member], space), 0)
    except ValueError as error:
        return str(error)
    return ""


def trained_family(
    family: str, settings: Mapping[str, Any], suite: Suite, sets: Sequence[str], seeds: Sequence[int], folder: Path, *,
    processes: int | None = None, progress: Callable[[StudyProgress], None] | None = None,
) -> tuple[list[Trained], list[str]]:  # fmt: skip
    """Models of a family on these sets, trained by a study in the folder, which goes on where it was stopped.

    Returns:
        The models that were trained to their end, and a line for each of the others.
    """
    content = {
        "name": suite.study,
        "datasets": [{**suite.sets[label], "label": label} for label in sets],
        "families": [{"name": family, **settings}],
        "seeds": list(seeds),
        "steps": suite.steps,
        "batch_size": suite.batch_size,
        "precision": "float32",
        "device": "cpu",
    }
    options: dict[str, Any] = {} if processes is None else {"processes": processes}
    with TemporaryDirectory() as place:
        file = Path(place) / "study.yaml"
        file.write_text(written(content), encoding="utf-8")
        study = Study.load(file, out=folder)
        study.run("local", progress=progress, **options)
    found, lost = [], []
    for label in sets:
        dataset = study.part(label).dataset()
        for run in study.snapshot(label).runs:
            if run.state != "finished":
                lost.append(f"{label}, seed {run.seed}: {run.state}, {run.reason}")
                continue
            used, status = run.config.get("supervision", {}), run.status
            untrained = None if FAMILIES[family].fit else partial(_untrained, run.path, dataset)
            found.append(
                Trained(
                    label, run.id, run.seed, run.codes, status["seconds"], status["provenance"], untrained, run.setting,
                    ", ".join(f"{n:,} {name.replace('_', ' ')}" for name, n in used.items()),
                )
            )  # fmt: skip
    return found, lost


def _untrained(path: Path, dataset: FactorDataset) -> Representation:
    return open_run(path).untrained().representation(dataset)
