"""The table of model families, by the name that `unbraid.train` and the command line take; and a user's own."""

import inspect
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from unbraid.base.plugins import Table
from unbraid.base.suggest import suggestion
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
from unbraid.files.trust import imported, is_code

# One line for each file, in the order of the tables; a family is named as its row is, in lower case.
from unbraid.families.vae import VAE, BETA_VAE, vae_family
from unbraid.families.cci_vae import CCI_VAE
from unbraid.families.factor_vae import FACTOR_VAE
from unbraid.families.beta_tcvae import BETA_TCVAE
from unbraid.families.dip_vae import DIP_VAE_I, DIP_VAE_II
from unbraid.families.info_gan import INFO_GAN
from unbraid.families.pca import PCA
from unbraid.families.qlae import QLAE
from unbraid.families.qvae import QVAE
from unbraid.families.ada_vae import ADA_GVAE, ADA_ML_VAE
from unbraid.families.delta_vae import DELTA_VAE
from unbraid.families.lsbd_vae import LSBD_VAE
from unbraid.families.quessard import QUESSARD
from unbraid.families.forward_vae import FORWARD_VAE
from unbraid.families.parted_vae import PARTED_VAE
from unbraid.families.weak_de import WEAK_DE
from unbraid.families.mtd import MTD

FAMILIES: Table[Family] = Table(
    {name.lower(): row for name, row in vars().items() if isinstance(row, Family)},
    "unbraid.families",
    lambda row: isinstance(row, Family),
    "family",
)


def find_family(name: str) -> Family:
    """The row of a family: one of the table, or the user's own by "package.module:name".

    Raises:
        UntrustedCode: it is code that the user did not name.
        ValueError: no such family, the message offers the nearest name; or it is none that can be trained.
    """
    if not isinstance(name, str):
        raise ValueError(f"a family is named, such as 'beta_vae'; got {name!r}")
    if name in FAMILIES:
        return FAMILIES[name]
    if is_code(name):
        return own_family(name)
    raise ValueError(f"unknown family {name!r}; {family_hint(name)}")


def family_hint(name: str) -> str:
    """The end of an error message about an unknown family: the nearest names."""
    return f"{suggestion(name, FAMILIES)} (your own: package.module:name)"


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
