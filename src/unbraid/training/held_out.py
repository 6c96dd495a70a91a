"""Hold-out set and early stopping: the ELBO on images kept out of training, and which weights to keep."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.arguments import check_number, check_whole
from unbraid.base.types import IntArray
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets.subset import SubsetDataset
from unbraid.families.building import build_member
from unbraid.families.divergences import gaussian_kl, kl_by_quadrature
from unbraid.families.family import Family, Settings, code_parts
from unbraid.families.likelihoods import negative_log_likelihood
from unbraid.families.networks import as_floats, as_tensor
from unbraid.training import batches

EVERY = 500  # steps
BATCH = 256
SATURATED = 1e-7  # probabilities of a Bernoulli decoder are clipped to this from 0 and 1


@dataclass(frozen=True)
class HoldOut:
    """Size of the hold-out set, steps between evaluations, and patience of early stopping."""

    images: float = 0  # a share below 1, or how many
    every: int = EVERY  # steps
    patience: int = 0  # evaluations; 0: it never stops, and the last weights are kept

    def count(self, n_images: int) -> int:
        """The number of images kept out of `n_images`, at least one.

        Raises:
            ValueError: none would be left.
        """
        if not self.images:
            return 0
        count = max(1, round(self.images * n_images)) if self.images < 1 else int(self.images)
        if count >= n_images:
            raise ValueError(f"hold_out={self.images:g} leaves none of {n_images} images to train on")
        return count

    def due(self, step: int) -> bool:
        """Whether the model is evaluated after this number of steps."""
        return bool(self.images) and step % self.every == 0

    def recorded(self) -> dict[str, dict[str, float]]:
        """Entries for a run's config; empty without a hold-out set, so that ids of such runs stay the same."""
        return {"hold_out": asdict(self)} if self.images else {}


@dataclass(frozen=True)
class Divided:
    """The images of a training: all, those it sees, and the hold-out set."""

    whole: FactorDataset
    seen: FactorDataset
    unseen: FactorDataset | None = None


def hold_out_of(hold_out: Any, every: Any, patience: Any) -> HoldOut:
    """The settings, checked.

    Raises:
        ValueError: hold_out is neither a share nor a number of images, or the others are not whole numbers.
    """
    images = check_number("hold_out", hold_out, least=0)
    if images >= 1 and images != int(images):
        raise ValueError(f"hold_out must be a fraction of the images (below 1) or their number; got {hold_out!r}")
    every, patience = check_whole("hold_out_every", every, 1), check_whole("patience", patience, 0)
    if patience and not images:
        raise ValueError("patience counts evaluations on images kept out of training: give hold_out as well")
    return HoldOut(images, every, patience)


def check_hold_out(hold_out: HoldOut, family: Family, steps: int) -> None:
    """Raises ValueError if the model would never be evaluated on the hold-out set."""
    if hold_out.images and family.fit is not None:
        raise ValueError(f"hold_out: {family.title} is computed, not trained in steps")
    if hold_out.images and hold_out.every > steps:
        raise ValueError(
            f"hold_out_every must be at most {steps}, the number of steps, or the model would never be evaluated on "
            f"the hold-out set; got {hold_out.every}"
        )


def check_elbo(family: Family, shape: tuple[int, ...], settings: Settings, hyper: Mapping[str, Any]) -> None:
    """Raises ValueError if the model has no ELBO: no Gaussian posterior, or no likelihood."""
    gaussian = all(part.kind == "gaussian" for part in code_parts(family, settings))
    if gaussian and {"likelihood", "sigma"} <= hyper.keys():
        with torch.no_grad():
            modules = build_member(family, shape, settings, 0).eval()
            if family.encode(modules, torch.zeros(1, *shape[2:], *shape[:2]), settings)[1] is not None:
                return
    raise ValueError(f"hold_out: {family.title} has no Gaussian posterior and likelihood, which its ELBO needs")


def held_out_rows(n_images: int, count: int) -> IntArray:
    """Sorted positions (count,) of the hold-out set; the same for every seed, so that models can be compared.

    They are the first of a shuffled order of all positions, which depends on `n_images` alone.
    """
    rows = batches.epoch_positions(batches.streams([0], "held out"), 0, count, n_images)
    return np.sort(rows[0].numpy())


def divided(dataset: FactorDataset, hold_out: HoldOut) -> Divided:
    """Split the images into those that the training sees and the hold-out set.

    Raises:
        ValueError: none would be left to train on.
    """
    count = hold_out.count(len(dataset))
    if not count:
        return Divided(dataset, dataset)
    seen = np.ones(len(dataset), dtype=bool)
    seen[rows := held_out_rows(len(dataset), count)] = False
    return Divided(dataset, SubsetDataset(dataset, np.flatnonzero(seen)), SubsetDataset(dataset, rows))


@torch.inference_mode()
def held_out_elbo(
    family: Family,
    modules: nn.ModuleDict,
    settings: Settings,
    dataset: FactorDataset,
    device: torch.device,
) -> dict[str, float]:
    """Means over the images, in nats: the `elbo`, and its parts `reconstruction` (-log likelihood) and `kl`.

    ELBO = E_q[log p(x | z)] - KL(q(z | x) | p(z)) (Kingma and Welling 2014, eq. 3), the expectation by one z of each
    image, drawn from the same noise every time; p(z) is the prior that the model has, of blocks whose prior is a
    mixture that of each code by itself. No weight such as beta is in it.

    Args:
        family, modules, settings: the model; modules in evaluation mode, and all hyperparameters among the settings.
        dataset: the images, all of them.
        device: of the modules.
    """
    density = family.log_prior(modules, settings) if family.log_prior else None
    dtype = next(modules.parameters()).dtype
    key = batches.streams([0], "held out noise")
    totals = torch.zeros(2, dtype=torch.float64)
    for number, start in enumerate(range(0, len(dataset), BATCH)):
        positions = np.arange(start, min(start + BATCH, len(dataset)))
        images = as_floats(as_tensor(dataset.images(positions)), dtype).to(device)
        means, log_variances = family.encode(modules, images, settings)
        assert log_variances is not None  # `check_hold_out` lets no other family come here
        noise = batches.normal(key, number, tuple(means.shape))[0].to(means)
        decoded = family.decode(modules, means + noise * (0.5 * log_variances).exp(), settings)
        reconstruction = _nll(decoded, images, settings["likelihood"], settings["sigma"])
        posterior = means.float(), log_variances.float()
        kl = gaussian_kl(*posterior) if density is None else kl_by_quadrature(*posterior, density)
        totals += torch.stack([reconstruction.double().sum(), kl.double().sum()]).cpu()
    reconstruction, kl = (totals / len(dataset)).tolist()
    return {"elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl}


def _nll(decoded: Tensor, images: Tensor, likelihood: str, sigma: float) -> Tensor:
    if likelihood == "bernoulli":
        return negative_log_likelihood(torch.logit(decoded.float(), SATURATED), images.float())
    return negative_log_likelihood(decoded.float(), images.float(), "gaussian", sigma)


def is_best(elbos: list[float]) -> bool:
    """Whether the last ELBO is finite and above all before it."""
    return math.isfinite(elbos[-1]) and all(elbos[-1] > elbo for elbo in elbos[:-1] if math.isfinite(elbo))


def is_over(elbos: list[float], patience: int) -> bool:
    """Whether none of the last `patience` ELBOs is above the best before them."""
    finite = [elbo if math.isfinite(elbo) else -math.inf for elbo in elbos]
    return bool(patience) and len(elbos) > patience and max(finite[-patience:]) <= max(finite[:-patience])
