"""Sanity check of a finished model: two signs that it has not learned."""

import math

import numpy as np

from unbraid.data.image_dataset import FactorDataset
from unbraid.runs.run import Run
from unbraid.training.held_out import held_out_rows

N_IMAGES = 256
JUDGED = 0.1  # least steps times learning rate, about as far as Adam can have moved a weight
WORSE = 2.0  # times the error of the mean image; a model with uninformative latents has about that error


def sanity_check(run: Run, dataset: FactorDataset, *, reconstructs: bool) -> str | None:
    """One line on a model that is finite but absurd; None for all others.

    Either its posteriors hold more nats about an image than the image has, stored as bytes. Or its reconstructions of
    256 images have more than twice the squared error of their mean image, although its weights had time to learn:
    untrained models of dark images have such errors, and models of sprites were below them once steps times learning
    rate reached .04.

    Args:
        run: a run that did not diverge.
        dataset: the images it was trained on.
        reconstructs: whether its family was trained to decode what it encodes.
    """
    images = dataset.images(held_out_rows(len(dataset), min(N_IMAGES, len(dataset))))
    codes, log_variances = run.posterior(images)
    if log_variances is not None:
        kl = run.prior_kl(codes, log_variances)
        if kl is None:
            spreads = log_variances.astype(np.float64)
            with np.errstate(over="ignore"):  # infinite is more than an image has, too
                kl = 0.5 * (codes.astype(np.float64) ** 2 + np.exp(spreads) - spreads - 1)
        nats, most = float(kl.sum(1).mean()), images[0].size * 8 * math.log(2)
        if not nats <= most:
            return f"its codes hold {nats:.3g} nats of an image, which has {most:.3g} when it is stored as bytes"
    moved = run.status["step"] * run.config["hyperparameters"].get("learning_rate", 1.0)
    if reconstructs and moved >= JUDGED:
        pixels = (images / 255 if images.dtype == np.uint8 else images).astype(np.float64)
        error = float(((run.decode(codes) - pixels) ** 2).sum())
        of_mean = float(((pixels - pixels.mean(0)) ** 2).sum())
        if of_mean and not error <= WORSE * of_mean:
            return f"its reconstructions are {error / of_mean:.3g} times as far from the images as their mean image is"
    return None
