"""Snapshots during training: metrics and informative latents at a few steps."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from unbraid.base.arguments import check_whole
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.families.divergences import kl_by_quadrature
from unbraid.families.family import Family, Settings
from unbraid.families.networks import as_floats, as_tensor
from unbraid.scoring.encoding import encoded, encoded_objects
from unbraid.scoring.score import choose, score

N_IMAGES, BATCH = 2000, 256  # encoded at each snapshot, always the same


@dataclass(frozen=True)
class Snapshots:
    """Number of snapshots, evenly spaced up to the last step, plus one before the first; and their metrics."""

    n: int = 0
    metrics: tuple[str, ...] = ("mig",)

    def due(self, steps: int) -> frozenset[int]:
        """Numbers of steps after which snapshots are taken."""
        return frozenset(round(number * steps / self.n) for number in range(self.n + 1)) if self.n else frozenset()


def snapshots_of(n: Any, metrics: str | Sequence[str]) -> Snapshots:
    """The settings, checked.

    Raises:
        ValueError: `n` is not a whole number from 0, or a metric does not exist.
    """
    n = check_whole("snapshots", n, 0)
    names = (metrics,) if isinstance(metrics, str) else tuple(metrics)
    return Snapshots(n, tuple(choose(names)))


def snapshot(
    family: Family,
    modules: nn.ModuleDict,
    settings: Settings,
    dataset: FactorDataset,
    metrics: Sequence[str],
    device: torch.device,
) -> dict[str, float] | None:
    """Headlines of the metrics, and with posteriors the KL in nats and the number of informative latents.

    None if the codes are no longer finite.

    Args:
        family, modules, settings: the model; modules in evaluation mode, and all hyperparameters among the settings.
        dataset: the same images of it are encoded each time.
        metrics: names, as `unbraid.score` takes them.
        device: of the modules.

    Raises:
        ValueError: a metric has no meaning on these images.
    """
    density = family.log_prior(modules, settings) if family.log_prior else None
    dtype = next(modules.parameters()).dtype

    def encode(images: Any) -> tuple[torch.Tensor, ...]:
        batch = as_floats(as_tensor(images), dtype).to(device)
        codes, log_variances = family.encode(modules, batch, settings)
        if log_variances is None:
            return (codes.float(),)
        posterior = codes.float(), log_variances.float()
        return posterior if density is None else (*posterior, kl_by_quadrature(*posterior, density))

    def orbits() -> Representation:
        with torch.inference_mode():
            return encoded_objects(encode, dataset, N_IMAGES, BATCH, 0)

    with torch.inference_mode():
        representation = encoded(encode, dataset, N_IMAGES, BATCH, 0)
    if not np.isfinite(representation.codes).all():
        return None
    numbers: dict[str, float] = {}
    kl, informative = representation.mean_kl(), representation.informative()
    if kl is not None and informative is not None:
        numbers = {"kl": float(kl.sum()), "informative": float(informative.sum())}
    try:
        card = score(representation, metrics=metrics, orbits=orbits)
    except ValueError as error:
        raise ValueError(f"snapshots: {error}") from error
    for name in metrics:
        if name in card.skipped:
            raise ValueError(f"snapshots: {name} {card.skipped[name]}")
        numbers[name] = float(card.scored[name].headline)
    return numbers
