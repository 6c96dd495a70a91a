"""Stability of a choice of models under resampling of the models."""

from dataclasses import dataclass

import numpy as np

from unbraid.base.types import BoolArray, FloatArray

__all__ = ["DRAWS", "Resampled", "resample"]

DRAWS = 500  # samples of the models
TOP = 100  # models of the highest scores, which contain the best one in practically every sample


@dataclass(frozen=True)
class Resampled:
    """Shares of samples in which the choice stays the same.

    Samples with fewer than three models that use a latent, or without a good one, do not count.
    """

    model: float  # share of the samples with the chosen model in which it is chosen
    setting: float  # share of all samples in which a model of its setting is chosen
    draws: int  # samples that count
    draws_with_model: int  # of them, those with the chosen model


def resample(
    pairs: FloatArray, compared: BoolArray, sound: BoolArray, settings: np.ndarray, best: int, seed: int = 0
) -> Resampled:
    """Draw the seeds of every setting with replacement, and choose again.

    Args:
        pairs: (n_models, n_models) similarity, NaN where not compared.
        compared: (n_models,) whether a model uses a latent. The others are drawn too, and left out as a ranking does.
        sound: (n_models,) whether a model can be called good.
        settings: (n_models,) labels.
        best: the model that is chosen.
        seed: of the draws.
    """
    rng = np.random.default_rng(seed)
    groups = [np.flatnonzero(settings == name) for name in dict.fromkeys(settings.tolist())]
    every = np.where(compared, pairs, np.nan)
    np.fill_diagonal(every, np.nan)
    ordered = np.argsort(-np.where(sound, _medians(every), -np.inf), kind="stable")
    top = np.isin(np.arange(len(pairs)), ordered[: min(TOP, int(sound.sum()))])
    same_model = same_setting = with_model = counted = 0
    for _ in range(DRAWS):
        drawn = np.unique(np.concatenate([rng.choice(own, len(own)) for own in groups]))
        drawn = drawn[compared[drawn]]
        judged = drawn[top[drawn]]
        if not len(judged) or len(drawn) < 3:
            continue
        chosen = judged[_medians(every[np.ix_(judged, drawn)]).argmax()]
        counted += 1
        same_setting += int(settings[chosen] == settings[best])
        if best in drawn:
            with_model += 1
            same_model += int(chosen == best)
    return Resampled(same_model / max(with_model, 1), same_setting / max(counted, 1), counted, with_model)


def _medians(pairs: FloatArray) -> FloatArray:
    """The median of each row without NaN; 0 if all are NaN."""
    known = np.isfinite(pairs).any(axis=1)
    medians = np.zeros(len(pairs))
    medians[known] = np.nanmedian(pairs[known], axis=1)
    return medians
