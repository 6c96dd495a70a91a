"""Measure, train and select disentangled representations."""

from importlib import import_module

TYPE_CHECKING = False  # not imported: `python -m unbraid` still has the current folder, and any typing.py, on its path
if TYPE_CHECKING:
    from unbraid import datasets, families, metrics, zoo
    from unbraid import show as show
    from unbraid.base.progress_bar import progress_bar
    from unbraid.data import Representation
    from unbraid.fitting.fit import fit
    from unbraid.runs.run import Run, load_run
    from unbraid.runs.score_encoder import score_encoder
    from unbraid.scoring.card import ScoreCard
    from unbraid.scoring.diagnose import diagnose
    from unbraid.scoring.diagnosis import Diagnosis
    from unbraid.scoring.score import score
    from unbraid.scoring.stress import stress
    from unbraid.studies.compare_models import compare
    from unbraid.studies.rank_models import rank
    from unbraid.studies.study import Study
    from unbraid.training.continuing import continue_run
    from unbraid.training.train import train

__version__: str  # looked up on first use, as the names below

__all__ = [
    "Diagnosis",
    "Representation",
    "Run",
    "ScoreCard",
    "Study",
    "compare",
    "continue_run",
    "datasets",
    "diagnose",
    "families",
    "fit",
    "load_run",
    "metrics",
    "progress_bar",
    "rank",
    "score",
    "score_encoder",
    "show",
    "stress",
    "train",
    "zoo",
]

_HOMES = {
    "Diagnosis": "unbraid.scoring.diagnosis",
    "Representation": "unbraid.data",
    "Run": "unbraid.runs.run",
    "ScoreCard": "unbraid.scoring.card",
    "Study": "unbraid.studies.study",
    "compare": "unbraid.studies.compare_models",
    "continue_run": "unbraid.training.continuing",
    "diagnose": "unbraid.scoring.diagnose",
    "fit": "unbraid.fitting.fit",
    "load_run": "unbraid.runs.run",
    "progress_bar": "unbraid.base.progress_bar",
    "rank": "unbraid.studies.rank_models",
    "score": "unbraid.scoring.score",
    "score_encoder": "unbraid.runs.score_encoder",
    "stress": "unbraid.scoring.stress",
    "train": "unbraid.training.train",
}
_TRAINS = {"Run", "Study", "continue_run", "families", "fit", "load_run", "train"}


def __getattr__(name: str) -> object:
    # Names are looked up on first use, so that `import unbraid` costs next to nothing.
    if name in _TRAINS:
        from unbraid.base.optional import Missing, require

        try:
            require("torch", "train", f"unbraid.{name}")
        except ImportError as error:
            if not isinstance(error.__cause__, ModuleNotFoundError):  # it is there, and broken
                raise
            return Missing(str(error))
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name in __all__:
        return import_module(f"unbraid.{name}")
    if name == "__version__":
        return import_module("unbraid.base.version").VERSION
    raise AttributeError(f"module 'unbraid' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
