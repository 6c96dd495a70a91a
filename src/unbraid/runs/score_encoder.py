"""Score an encoder on the images of a dataset."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from unbraid.base.arguments import check_whole
from unbraid.data import Representation
from unbraid.data.image_dataset import FactorDataset
from unbraid.datasets import load
from unbraid.scoring.card import ScoreCard
from unbraid.scoring.encoding import encoded, encoded_objects
from unbraid.scoring.pixels import baselines_of
from unbraid.scoring.score import score


def score_encoder(
    encode: Callable[[Any], Any],
    dataset: FactorDataset | str | Path,
    *,
    n_samples: int = 10_000,
    batch_size: int = 256,
    seed: int = 0,
    baselines: bool = False,
    untrained: Callable[[Any], Any] | None = None,
    **arguments: Any,
) -> ScoreCard:
    """Encode images of a dataset with your own encoder, then score the codes.

    Args:
        encode: from images, uint8 (n, height, width, channels), to codes (n, n_codes), or to the pair
            (codes, log_variances), and third, where the prior is not the standard normal, `prior_kl` of
            `Representation`. NumPy arrays or torch tensors.
        dataset: a `FactorDataset`, as `unbraid.datasets.load` returns, or the name or path of one.
        n_samples: images drawn uniformly without replacement; all of them where the dataset is smaller. Metrics that
            need whole objects get as many of these as make up as many images, and enough for two levels of each factor.
        batch_size: images per call of `encode`.
        seed: of the draw and of the metrics.
        baselines: whether to score baselines without training as well, on the same images: a random projection of the
            pixels to as many codes, as many of their principal components, and the encoder `untrained`. It takes three
            or four times as long. Scores no better than the best baseline are marked in every view.
        untrained: the encoder before training, for the baselines.
        **arguments: passed on to `score`.

    Returns:
        ScoreCard, as `score` gives.

    Raises:
        ValueError: `encode` returns another number of rows than it was given, or of codes than before; or the dataset
            is none, or holds no images.
    """
    for name, count in (("n_samples", n_samples), ("batch_size", batch_size)):
        check_whole(name, count, 1)
    check_whole("seed", seed, 0)
    if untrained is not None and not baselines:
        raise ValueError("untrained is a baseline: give baselines=True, too")
    if isinstance(dataset, str | Path):
        dataset = load(dataset)
    if not (hasattr(dataset, "space") and hasattr(dataset, "images")):
        raise ValueError(
            "dataset must be the name or path of one, or what unbraid.datasets.load and from_array return; got "
            f"{type(dataset).__name__}"
        )
    opened = dataset

    def orbits() -> Representation:
        return encoded_objects(encode, opened, n_samples, batch_size, seed)

    representation = encoded(encode, dataset, n_samples, batch_size, seed)
    baseline_codes = None
    if baselines:
        width = representation.codes.shape[1]
        baseline_codes = baselines_of(dataset, width, n_samples, batch_size, seed, untrained)
    return score(representation, seed=seed, baselines=baseline_codes, **{"orbits": orbits, **arguments})
