"""Provenance of a run: versions, machine, dates; stored with it, but not part of its id."""

import json
import platform
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np
import torch

from unbraid.base.threads import n_cores
from unbraid.datasets import DATASETS
from unbraid.families.family_table import FAMILIES


def provenance(config: Mapping[str, Any], began: float, ended: float, together: int = 1) -> dict[str, Any]:
    """The provenance in `status.json`, as `unbraid.runs.run_json.ProvenanceRecord`.

    Args:
        config: of the run.
        began, ended: of its training, seconds since 1970.
        together: runs that were trained stacked, itself included.
    """
    device, names = config["device"], {config["family"]: FAMILIES, config["dataset"]["name"]: DATASETS}
    packages = {name: table.package_of(name) for name, table in names.items()}
    return {
        "commit": commit(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": np.__version__,
        "processor": _processor(),
        "accelerator": torch.cuda.get_device_name() if device == "cuda" else None,
        "cores": n_cores(),
        "threads": 1 if device == "cpu" else torch.get_num_threads(),  # `unbraid.base.device.reproducible` takes one
        "host": f"{platform.system()} {platform.machine()}",
        "began": _date(began),
        "ended": _date(ended),
        "together": together,
        "packages": {name: package for name, package in packages.items() if package},
    }


@cache
def commit() -> str | None:
    """The commit of this package if it is, or was installed from, a checkout; with "-dirty" if it was edited."""
    source = Path(__file__).parents[3]
    if (source / ".git").exists():
        with suppress(OSError, subprocess.SubprocessError):
            words = ["git", "-C", str(source), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
            result = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
            return result.stdout.strip() or None
    with suppress(PackageNotFoundError, ValueError, KeyError, TypeError):
        return json.loads(distribution("unbraid").read_text("direct_url.json") or "{}")["vcs_info"]["commit_id"]
    return None


@cache
def _processor() -> str:
    with suppress(OSError), Path("/proc/cpuinfo").open(encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _date(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
