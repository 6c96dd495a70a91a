"""Measure, train and select disentangled representations."""

from importlib import import_module, metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unbraid import datasets, metrics
    from unbraid.factors import FactorSpace
    from unbraid.representation import Representation
    from unbraid.runs.run import Run, load_run
    from unbraid.scoring import ScoreCard, score, score_encoder
    from unbraid.studies.study import Study
    from unbraid.training.train import train

__version__ = metadata.version("unbraid")

__all__ = [
    "FactorSpace",
    "Representation",
    "Run",
    "ScoreCard",
    "Study",
    "datasets",
    "load_run",
    "metrics",
    "score",
    "score_encoder",
    "train",
]

_HOMES = {
    "FactorSpace": "unbraid.factors",
    "Representation": "unbraid.representation",
    "Run": "unbraid.runs.run",
    "ScoreCard": "unbraid.scoring",
    "Study": "unbraid.studies.study",
    "load_run": "unbraid.runs.run",
    "score": "unbraid.scoring",
    "score_encoder": "unbraid.scoring",
    "train": "unbraid.training.train",
}


def __getattr__(name: str) -> Any:
    # Names are looked up on first use, so that `import unbraid` costs next to nothing.
    if name in _HOMES:
        if _HOMES[name].startswith(("unbraid.training.", "unbraid.runs.", "unbraid.studies.")):
            from unbraid._extras import require

            require("torch", "train", f"unbraid.{name}")
        return getattr(import_module(_HOMES[name]), name)
    if name in {"datasets", "metrics"}:
        return import_module(f"unbraid.{name}")
    raise AttributeError(f"module 'unbraid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
