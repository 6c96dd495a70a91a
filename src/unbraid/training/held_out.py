"""Images kept out of training: the ELBO of a model on them, when to stop by it, and which weights to keep."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from unbraid.base.arguments import check_whole
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
SATURATED = 1e-7  # a Bernoulli decoder is taken to be no surer than this


@dataclass(frozen=True)
class HoldOut:
    """Which part of the images, how often a model is judged by it, and how long without a rise it goes on."""

    images: float = 0  # a share below 1, or how many
    every: int = EVERY  # steps
    patience: int = 0  # evaluations; 0: it never stops, and the last weights are kept

    def count(self, n_images: int) -> int:
        """How many of so many images are kept out, one at least.

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
        """Whether the model is judged after so many steps."""
        return bool(self.images) and step % self.every == 0

    def recorded(self) -> dict[str, dict[str, float]]:
        """What a config says of it: nothing where no image is kept out, so that ids stay."""
        return {"hold_out": asdict(self)} if self.images else {}


@dataclass(frozen=True)
class Divided:
    """The images of a training, whole, and parted into those that it sees and those that it does not."""

    whole: FactorDataset
    seen: FactorDataset
    unseen: FactorDataset | None = None


def hold_out_of(hold_out: Any, every: Any, patience: Any) -> HoldOut:
    """Raises ValueError for what is neither a share nor a number of images, or no whole number of steps or times."""
    number = isinstance(hold_out, int | float | np.integer | np.floating) and not isinstance(hold_out, bool)
    if not number or not (0 <= hold_out < 1 or (1 <= hold_out < math.inf and hold_out == int(hold_out))):
        raise ValueError(f"hold_out must be a fraction of the images (below 1) or their number; got {hold_out!r}")
    every, patience = check_whole("hold_out_every", every, 1), check_whole("patience", patience, 0)
    if patience and not hold_out:
        raise ValueError("patience counts evaluations on images kept out of training: give hold_out as well")
    return HoldOut(float(hold_out), every, patience)


def check_hold_out(hold_out: HoldOut, family: Family, steps: int) -> None:
    """Raises ValueError where a model would never be judged."""
    if hold_out.images and family.fit is not None:
        raise ValueError(f"hold_out: {family.title} is computed, not trained in steps")
    if hold_out.images and hold_out.every > steps:
        raise ValueError(
            f"hold_out_every must be at most {steps}, the number of steps, or the model would never be evaluated on "
            f"the hold-out set; got {hold_out.every}"
        )


def check_elbo(family: Family, shape: tuple[int, ...], settings: Settings, hyper: Mapping[str, Any]) -> None:
    """Raises ValueError where such a model has no ELBO: no Gaussian posterior, or no likelihood."""
    gaussian = all(part.kind == "gaussian" for part in code_parts(family, settings))
    if gaussian and {"likelihood", "sigma"} <= hyper.keys():
        with torch.no_grad():
            modules = build_member(family, shape, settings, 0).eval()
            if family.encode(modules, torch.zeros(1, *shape[2:], *shape[:2]), settings)[1] is not None:
                return
    raise ValueError(f"hold_out: {family.title} has no Gaussian posterior and likelihood, which its ELBO needs")


def held_out_rows(n_images: int, count: int) -> IntArray:
    """Positions (count,) of the images that are kept out, rising; the same for every seed, so that models compare.

    Those that come first in a shuffled order of all positions, which depends on their number alone.
    """
    rows = batches.epoch_positions(batches.streams([0], "held out"), 0, count, n_images)
    return np.sort(rows[0].numpy())


def divided(dataset: FactorDataset, hold_out: HoldOut) -> Divided:
    """The images, parted.

    Raises:
        ValueError: none would be left to train on.
    """
    count = hold_out.count(len(dataset))
    if not count:
        return Divided(dataset, dataset)
    kept = np.ones(len(dataset), dtype=bool)
    kept[rows := held_out_rows(len(dataset), count)] = False
    return Divided(dataset, SubsetDataset(dataset, np.flatnonzero(kept)), SubsetDataset(dataset, rows))


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
    """Whether the last one is above all before it."""
    return math.isfinite(elbos[-1]) and all(elbos[-1] > each for each in elbos[:-1] if math.isfinite(each))


def is_over(elbos: list[float], patience: int) -> bool:
    """Whether the last `patience` of them brought nothing above what came before."""
    finite = [each if math.isfinite(each) else -math.inf for each in elbos]
    return bool(patience) and len(elbos) > patience and max(finite[-patience:]) <= max(finite[:-patience])
