"""What 32 steps of every family came to: `python -m tests.training.golden` writes golden.json anew.

Weights are kept as a digest for each kind of machine that was asked, and as a few numbers for all others.
"""

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch

from tests.training.training_examples import TINY, member
from unbraid.families.family_table import FAMILIES
from unbraid.training.loop import Plan, Trained, train_here

FILE = Path(__file__).with_name("golden.json")
STEPS, TOLERANCE = 32, 1e-3
GIVEN: Mapping[str, Mapping[str, str]] = {"mtd": {"factors": "shade"}, "beta_tcvae": {"prior": "factorial_flow"}}

Golden: TypeAlias = dict[str, dict[str, dict[str, float | str]]]


def kind_of_machine() -> str:
    """What decides the last digits: the kernels that torch takes, the processor they choose by, and the versions."""
    cpuinfo = Path("/proc/cpuinfo")
    first = cpuinfo.read_text().partition("\n\n")[0].splitlines() if cpuinfo.exists() else []
    told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in first)}
    known = [told.get(name, "") for name in ("model name", "cpu family", "model", "stepping", "cache size")]
    versions = f"torch {torch.__version__}, numpy {np.__version__}"
    return ", ".join([platform.machine(), *known, torch.backends.cpu.get_cpu_capability(), versions])


def trained(family: str) -> Trained:
    """32 steps on 243 images of 8 x 8 pixels, by dense networks."""
    network = {} if family == "pca" else {"network": "dense"}
    one = member(family, 0, **network, **GIVEN.get(family, {}))
    return train_here(Plan(family, STEPS, 8, "cpu", "float32"), [one], TINY)[0]


def digest_of(result: Trained) -> str:
    """Of every bit of the weights."""
    digest = hashlib.sha256()
    for name, value in sorted(result.weights.items()):
        digest.update(name.encode() + value.contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def numbers_of(result: Trained) -> dict[str, float]:
    """The last point of each curve, and the norm of the weights of each network."""
    found = {name: float(values[-1]) for name, values in result.curves.items() if np.isfinite(values[-1])}
    squares: dict[str, float] = {}
    for name, value in result.weights.items():
        place = f"norm of {name.rpartition('.')[0].partition('.')[0] or name}"
        squares[place] = squares.get(place, 0.0) + float(value.double().square().sum())
    return {**found, **{name: square**0.5 for name, square in squares.items()}}


def far(found: Mapping[str, float], kept: Mapping[str, float | str]) -> list[str]:
    """What differs by more than rounding does."""
    missing = sorted(found.keys() ^ kept.keys())
    moved = [f"{name}: {kept[name]} became {found[name]:.6g}" for name in found if name in kept
             and not abs(found[name] - float(kept[name])) <= TOLERANCE * max(abs(found[name]), 1e-3)]  # fmt: skip
    return [*(f"{name}: only in one" for name in missing), *moved]


def read() -> Golden:
    """By family: "version"; "numbers"; "digests" by kind of machine."""
    return json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}


def main() -> None:
    before, now = read(), {}
    for family, row in FAMILIES.items():
        result = trained(family)
        digest, numbers, kept = digest_of(result), numbers_of(result), before.get(family)
        same = kept is not None and kept["version"]["of training"] == row.version
        digests = dict(kept["digests"]) if same and kept else {}
        if same and kept and (far(numbers, kept["numbers"]) or digests.get(kind_of_machine(), digest) != digest):
            sys.exit(f"{family}: its weights moved; raise the version of its row, and say in docs/training.md why")
        now[family] = {
            "version": {"of training": row.version},
            "numbers": {name: float(f"{value:.6g}") for name, value in numbers.items()},
            "digests": {**digests, kind_of_machine(): digest},
        }
    FILE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
