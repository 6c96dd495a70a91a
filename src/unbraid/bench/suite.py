"""What a suite fixes, so that numbers of different people can stand in one table: images, budget, seeds, metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from unbraid._utils.suggest import suggestion
from unbraid.metrics import METRICS

PREFIX, TRIAL = "bench-", "-trial"  # of the name that results of a suite have, and of those of a part of it


@dataclass(frozen=True)
class Suite:
    """One suite; any change that moves a number raises its version."""

    name: str
    version: int
    sets: Mapping[str, Mapping[str, Any]]  # by label, what `unbraid.datasets.load` takes
    seeds: Sequence[int]
    steps: int  # of training
    batch_size: int  # of families of this package
    seconds: float  # that one training of anybody else's encoder may take
    metrics: Sequence[str]
    shuffles: int  # of the rows, of which the chance level is the mean
    settings: Mapping[str, Mapping[str, Any]]  # of families, where their defaults are for larger images and more steps

    @property
    def study(self) -> str:
        """What its results are called."""
        return f"{PREFIX}{self.name}-{self.version}"

    @property
    def trial(self) -> str:
        """What those of a part of it are called, which no leaderboard shows."""
        return f"{self.study}{TRIAL}"

    @property
    def columns(self) -> list[str]:
        """Names of its numbers, such as mig.score."""
        return [f"{name}.{METRICS[name].headline}" for name in self.metrics]


_VAE = {"network": "dense", "learning_rate": 0.002}
_CIRCLES = {"network": "dense_norm", "likelihood": "gaussian", "sigma": 0.7071}
LAPTOP = Suite(
    name="laptop",
    version=1,
    sets=MappingProxyType(
        {
            "sprites-16": {"name": "sprites", "shrink": 4, "without": "position_y > 15 or orientation > 0"},
            "rooms-16": {"name": "shapes3d_rendered", "shrink": 4, "without": "wall_hue > 0 or orientation > 7"},
            "cars-16": {"name": "cars_rendered", "n_objects": 64, "shrink": 4},
        }
    ),
    seeds=(0, 1, 2),
    steps=3000,
    batch_size=64,
    seconds=60.0,
    metrics=("mig", "dci_lasso", "sap", "mcc", "modularity", "infomec"),
    shuffles=5,
    # From the middle of the grids that studies/ has for images of 16 x 16 pixels; none was chosen by its scores here.
    settings=MappingProxyType(
        {
            "vae": _VAE,
            "beta_vae": {**_VAE, "beta": 2.0},
            "cci_vae": {**_VAE, "c_max": 6.0, "gamma": 30.0, "capacity_steps": 1000},
            "factor_vae": {**_VAE, "gamma": 4.0, "discriminator_width": 200},
            "beta_tcvae": {**_VAE, "beta": 3.0},
            "dip_vae_i": {**_VAE, "lambda_od": 5.0, "lambda_d": 5.0},
            "dip_vae_ii": {**_VAE, "lambda_od": 2.0, "lambda_d": 2.0},
            "info_gan": {"network": "dense"},
            "qlae": {"network": "dense"},
            "qvae": {"network": "dense"},
            "ada_gvae": _VAE,
            "ada_ml_vae": _VAE,
            "delta_vae": _CIRCLES,
            "lsbd_vae": _CIRCLES,
            "quessard": {"network": "dense_norm"},
            "forward_vae": {"network": "dense_norm"},
            "parted_vae": {"network": "dense", "mask_steps": 700.0, "capacity_steps": 2000.0},
            "weak_de": {"network": "dense", "learning_rate": 0.001, "adversary_width": 128, "labels": 5000},
            "mtd": _VAE,
        }
    ),
)
SUITES: Mapping[str, Suite] = MappingProxyType({"laptop": LAPTOP})


def find_suite(name: str) -> Suite:
    """The suite of this name.

    Raises:
        ValueError: there is none.
    """
    if name not in SUITES:
        raise ValueError(f"no suite {name!r}; {suggestion(name, SUITES)}")
    return SUITES[name]
