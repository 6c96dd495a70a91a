"""Explained variance of reconstructed activations: R^2 against always predicting the mean."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice
from unbraid.base.arrays import row_slices
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.metrics._shared.inputs import NotDefined, finite_matrix
from unbraid.metrics._shared.metric import Metric

Average = Literal["all", "rows", "dimensions"]


@dataclass(frozen=True, eq=False, repr=False)
class ExplainedVariance(Shown):
    score: float
    unexplained: float  # 1 - score: the fraction of variance unexplained (FVU)
    without_offset: float  # by "all", had the mean error of each dimension been corrected
    per_dimension: FloatArray  # (n_dimensions,) R^2 of each dimension; 0 where the activation is constant
    notes: tuple[str, ...] = ()


def explained_variance(
    activations: ArrayLike, reconstructions: ArrayLike, *, average: Average = "all"
) -> ExplainedVariance:
    """Share of the variance of activations that their reconstructions explain, such as those of a sparse autoencoder.

    Args:
        activations: (n_rows, n_dimensions) what was encoded, x.
        reconstructions: (n_rows, n_dimensions) what was decoded from the codes.
        average: "all": errors and variances are each summed over all rows and dimensions, then divided. "rows": mean
            over rows of 1 - error / squared distance from the mean. "dimensions": mean over dimensions of their R^2.

    Returns:
        ExplainedVariance. `score` at most 1, higher is better; predicting the mean activation scores 0, worse
        reconstructions less than 0. By "all", dimensions of large variance decide.

    Raises:
        ValueError: shapes disagree, values not finite, fewer than two rows, or `average` is unknown.
        NotDefined: all activations are constant.

    Reference:
        Gao et al. 2024, "Scaling and evaluating sparse autoencoders": 1 - `score` by "all" is their normalised MSE.
        "all" is `sklearn.metrics.r2_score(..., multioutput="variance_weighted")`, "dimensions" "uniform_average".
        "rows" is what Karvonen et al. 2025, "SAEBench", published; SAELens calls it `explained_variance_legacy`. A row
        near the mean has hardly any variance, so that it alone may decide. `without_offset` is
        `frac_variance_explained` of dictionary_learning.

    Example:
        >>> explained_variance([[2, 0], [0, 4]], [[2, 1], [0, 3]]).score
        0.8
    """
    check_choice("average", average, ("all", "rows", "dimensions"))
    x = finite_matrix(activations, "activations", "n_dimensions")
    decoded = finite_matrix(reconstructions, "reconstructions", "n_dimensions")
    if x.shape != decoded.shape or len(x) < 2:
        raise ValueError(
            f"activations and reconstructions must have the same shape and at least two rows; got {x.shape} and "
            f"{decoded.shape}"
        )
    errors, centred_errors, variances, ratios = _sums(x, decoded)
    varied = variances > 0
    per_dimension = np.where(varied, 1.0 - errors / np.where(varied, variances, 1.0), 0.0)
    whole, constant = variances.sum(), int((~varied).sum())
    score = {
        "all": 1.0 - errors.sum() / whole,
        "rows": 1.0 - float(np.mean(ratios)),
        "dimensions": float(per_dimension[varied].mean()),
    }[average]
    left_out = "" if average != "dimensions" else ": they do not count"
    return ExplainedVariance(
        score=float(score),
        unexplained=float(1.0 - score),
        without_offset=float(1.0 - centred_errors.sum() / whole),
        per_dimension=per_dimension,
        notes=(f"{constant} of {x.shape[1]} dimensions are constant{left_out}",) if constant else (),
    )


def _sums(
    x: FloatArray | IntArray, decoded: FloatArray | IntArray
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """(n_dimensions,) each, summed over rows: squared errors, the same about the mean error, and squared distances from
    the mean, 0 where constant; and of each row that is not the mean the error over that distance.

    In float64, a part of the rows at a time.
    """
    lowest, highest = x.min(axis=0).astype(float), x.max(axis=0).astype(float)
    if not (highest > lowest).any():
        raise NotDefined("activations are constant: there is no variance to explain")
    mean = x.mean(axis=0, dtype=np.float64)
    # Errors are counted from the first: beside the square of a large mean error nothing would be left of their spread.
    first = x[0].astype(np.float64) - decoded[0]
    totals, ratios = np.zeros((4, x.shape[1])), []
    for rows in row_slices(x):
        part = x[rows].astype(np.float64)
        missed, away = part - decoded[rows], part - mean
        away[:, highest == lowest] = 0.0
        rest = missed - first
        totals += [(missed**2).sum(axis=0), rest.sum(axis=0), (rest**2).sum(axis=0), (away**2).sum(axis=0)]
        error, distance = (missed**2).sum(axis=1), (away**2).sum(axis=1)
        ratios.append(error[distance > 0] / distance[distance > 0])
    errors, in_all, squares, variances = totals
    return errors, np.maximum(squares - in_all**2 / len(x), 0.0), variances, np.concatenate(ratios)


METRIC = Metric(
    explained_variance,
    of="reconstructions",
    title="Explained variance of reconstructions",
    range=(-math.inf, 1.0),
    summary="How much of the variance of activations their reconstructions explain; the mean activation scores 0.",
    limitations="Dimensions of large variance decide. Says nothing about the codes, or what is lost downstream.",
    source="Gao et al. 2024 (normalised MSE); Karvonen et al. 2025 (SAEBench)",
    version=2,
    needs="needs activations and their reconstructions",
    interval="it is not scored from codes and factors",
    cites=("gao2024scaling", "karvonen2025saebench"),
    bibtex=r"""
@misc{gao2024scaling,
  author       = {Gao, Leo and {Dupré la Tour}, Tom and Tillman, Henk and Goh, Gabriel and Troll, Rajan and Radford, Alec and Sutskever, Ilya and Leike, Jan and Wu, Jeffrey},
  title        = {Scaling and evaluating sparse autoencoders},
  year         = {2024},
  howpublished = {arXiv preprint arXiv:2406.04093},
}

@misc{karvonen2025saebench,
  author       = {Karvonen, Adam and Rager, Can and Lin, Johnny and Tigges, Curt and Bloom, Joseph and Chanin, David and Lau, Yeu-Tong and Farrell, Eoin and McDougall, Callum and Ayonrinde, Kola and Till, Demian and Wearden, Matthew and Conmy, Arthur and Marks, Samuel and Nanda, Neel},
  title        = {{SAEBench}: A Comprehensive Benchmark for Sparse Autoencoders in Language Model Interpretability},
  year         = {2025},
  howpublished = {arXiv preprint arXiv:2503.09532},
}
""",  # noqa: E501
    formula=(
        r"\mathrm{EV} = 1 - \frac{\sum_{n=1}^{N} \| x_n - \hat{x}_n \|^2}{\sum_{n=1}^{N} \| x_n - \bar{x} \|^2}",
        r"$x_n$ are activations, $\hat{x}_n$ their reconstructions, and $\bar{x}$ is the mean activation.",
    ),
)
