"""Families of a user's own, "package.module:name": a row, or an objective for a VAE."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from unbraid.families.common import COMMON
from unbraid.families.family import (
    TRAINING,
    Adam,
    Batch,
    Context,
    Family,
    Hyper,
    Hyperparameter,
    LossOutput,
)
from unbraid.families.vae import vae_family
from unbraid.files.trust import imported

ARGUMENTS = ("modules", "batch", "hyper", "step", "context")  # of a loss


def own_family(name: str) -> Family:
    """The user's family of this name, or a VAE that is trained by the objective of this name.

    Args:
        name: "package.module:name" of a `Family`; or of an objective, a loss as optimizer steps have, which then
            trains a VAE. Its keyword-only arguments, numbers by default, are hyperparameters.

    Raises:
        UntrustedCode: the user did not name it.
        ValueError: it cannot be imported, is neither of the two, or cannot be trained.
    """
    target: Any = imported(
        name, "family", f"name it yourself: train({name!r}, ...) or load_run(path, trust=[{name!r}])"
    )
    if isinstance(target, Family):
        _check(target, name)
        return target
    if not inspect.isfunction(target):
        raise ValueError(f"family {name!r} is {type(target).__name__}, neither a Family nor a function")
    return objective_family(target, name)


NAMES = {*COMMON, *TRAINING, "beta_warmup"}  # of settings that every VAE has


@lru_cache
def objective_family(objective: Callable[..., LossOutput], name: str) -> Family:
    """A VAE that is trained by an objective of the user's.

    Raises:
        ValueError: it does not take the arguments of a loss, or has others that are no numbers.
    """
    parameters = inspect.signature(objective).parameters
    plain = [parameter.name for parameter in parameters.values() if parameter.kind is not parameter.KEYWORD_ONLY]
    if len(plain) != len(ARGUMENTS):
        raise ValueError(f"objective {name!r} must take ({', '.join(ARGUMENTS)}); it takes ({', '.join(plain)})")
    own: dict[str, Hyperparameter] = {}
    for parameter in parameters.values():
        if parameter.kind is not parameter.KEYWORD_ONLY:
            continue
        default = parameter.default
        if isinstance(default, bool) or not isinstance(default, int | float) or parameter.name in NAMES:
            raise ValueError(f"objective {name!r}: {parameter.name} must be a number by default, and a name of its own")
        own[parameter.name] = Hyperparameter(float(default), "of the objective")

    def loss(modules: Any, batch: Batch, hyper: Hyper, step: Any, context: Context) -> LossOutput:
        return objective(modules, batch, hyper, step, context, **{key: hyper[key] for key in own})

    return vae_family(f"VAE by {name}", loss, own, source=name)


def _check(row: Family, name: str) -> None:
    """Raises ValueError for a row that would fail, or train nothing, only after a while."""
    if not row.optimizer_steps and row.fit is None:
        raise ValueError(f"family {name!r} has neither optimizer steps nor fit: nothing would train it")
    if row.parts is None and "latents" not in row.hyperparameters:
        raise ValueError(f"family {name!r} needs a hyperparameter latents or parts, which give the number of codes")
    for move in row.optimizer_steps:
        for setting in Adam.__dataclass_fields__:
            rate = getattr(move.adam, setting)
            if isinstance(rate, str) and rate not in row.hyperparameters:
                raise ValueError(
                    f"family {name!r}: optimizer step {move.name!r} takes {rate} for Adam, no hyperparameter"
                )
