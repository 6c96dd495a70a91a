"""Whether a finished model is one that anybody would take for learned, by two things that no sound one does."""

import math

import numpy as np

from unbraid.data.image_dataset import FactorDataset
from unbraid.runs.run import Run
from unbraid.training.held_out import held_out_rows

N_IMAGES = 256
JUDGED = 0.1  # steps times learning rate, which is about as far as Adam can have moved a weight
WORSE = 2.0  # times the error of the mean image; one whose latents say nothing has about once that


def sanity_check(run: Run, dataset: FactorDataset, *, reconstructs: bool) -> str | None:
    """One line where a model is finite and yet absurd; None for all others.

    Either its posteriors hold more nats about an image than the image has, stored as bytes. Or its reconstructions of
    256 images are more than twice as far from them, in squared error, as their mean image is, although its weights had
    time to get there: before its first step any model of dark images is that far, and models of sprites were within
    once steps times learning rate were .04.

    Args:
        run: that did not diverge.
        dataset: of its training.
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
        held, most = float(kl.sum(1).mean()), images[0].size * 8 * math.log(2)
        if not held <= most:
            return f"its codes hold {held:.3g} nats of an image, which has {most:.3g} when it is stored as bytes"
    moved = run.status["step"] * run.config["hyperparameters"].get("learning_rate", 1.0)
    if reconstructs and moved >= JUDGED:
        pixels = (images / 255 if images.dtype == np.uint8 else images).astype(np.float64)
        error = float(((run.decode(codes) - pixels) ** 2).sum())
        of_mean = float(((pixels - pixels.mean(0)) ** 2).sum())
        if of_mean and not error <= WORSE * of_mean:
            return f"its reconstructions are {error / of_mean:.3g} times as far from the images as their mean image is"
    return None
