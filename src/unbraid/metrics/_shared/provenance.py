"""What decides the number of a metric beside codes and factors; files of scores keep it with the number."""

import hashlib
import inspect
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from unbraid.base.version import VERSION
from unbraid.files.score_file import Decision
from unbraid.metrics import BLOCKED, METRICS
from unbraid.metrics._shared.metric import Metric

_SOURCES: dict[int, tuple[Any, str]] = {}


def decision(name: str, metric: Metric | None, *, seed: int = 0, held_out: str | None = None) -> Decision:
    """What decides the number of a metric: what of version, seed, held_out, source and package it depends on.

    Args:
        name: of the metric.
        metric: its row; None for a function of the user's that is only named, whose source is then not known.
        seed: of those that are stochastic, as a function of the user's may be.
        held_out: rows kept out of training, of those that take one, as a function of the user's may.
    """
    package = METRICS.package_of(name.partition("(")[0]) or None
    if metric is None or metric.own:
        source = None if metric is None else source_digest(name, metric.function)
        fields = {"seed": int(seed), "held_out": held_out, "source": source, "package": package}
    else:
        takes_gap = "held_out" in inspect.signature(metric.function).parameters
        fields = {
            "version": metric.version,
            "seed": int(seed) if metric.stochastic else None,
            "held_out": held_out if takes_gap else None,
            "package": package,
        }
    return {key: value for key, value in fields.items() if value is not None}


def of_another_version(name: str, version: int) -> str:
    """What to say of a stored number that this version of its metric has not computed; "" of all others."""
    metric = name.partition("(")[0]
    # The row of an unwanted factor, unwanted(batch), is the explicitness of that factor.
    known = METRICS.get("explicitness" if metric == "unwanted" else metric) or BLOCKED.get(metric)
    if known is None or known.version == version:
        return ""
    return f"computed by version {version} of {name}; unbraid {VERSION} has version {known.version}"


def source_digest(name: str, function: Callable[..., Any]) -> str:
    """A digest of the files that define a function of the user's: the module named and, if it is another, its own.

    They are read when a function, package.module:function, is first asked about, and believed as long as it lives: a
    file that is changed under a running program is not what the program computes by.
    """
    if id(function) not in _SOURCES:
        _SOURCES[id(function)] = function, _digest_of_files(name, function)
    return _SOURCES[id(function)][1]


def _digest_of_files(name: str, function: Callable[..., Any]) -> str:
    module = sys.modules.get(name.partition(":")[0])
    files = {getattr(module, "__file__", None)}
    with suppress(TypeError, ValueError):  # of what is built in, or an object that can be called
        files.add(inspect.getsourcefile(inspect.unwrap(function)))
    digest, read = hashlib.sha256(), False
    for file in sorted(filter(None, files)):
        try:
            with open(file, "rb") as source:
                digest.update(hashlib.file_digest(source, "sha256").digest())
            read = True
        except OSError:  # within a zip archive, or typed into a console
            continue
    if not read:
        with suppress(TypeError, OSError):  # a cell of a notebook has no file, but its text is known
            digest.update(inspect.getsource(function).encode())
    return digest.hexdigest()
