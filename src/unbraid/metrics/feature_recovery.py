"""A dictionary, such as that of a sparse autoencoder, beside the features that are known to be there."""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray
from unbraid.metrics._shared.inputs import check_matrix
from unbraid.metrics.explained_variance import explained_variance
from unbraid.metrics.seed_consistency import seed_consistency, unit_rows

Sparse: TypeAlias = Any  # any of SciPy's layouts
SMALLEST = 1e-6  # length of an activation, of which less says nothing of a ratio of lengths
AT_ONCE = 1024  # rows of the dictionary compared with all features at a time


@dataclass(frozen=True, eq=False, repr=False)
class FeatureRecovery(Shown):
    mcc: float
    mcc_chance: float  # of random directions of these shapes
    uniqueness: float
    f1: float | None = None  # mean over latents; None where codes and firing are not both given
    f1_chance: float | None = None  # of latents that fire as often as these do, at random
    precision: float | None = None
    recall: float | None = None
    accuracy: float | None = None
    n_dead: int | None = None  # latents that never fire
    l0: float | None = None  # latents that fire, mean over rows
    l1: float | None = None  # sum of absolute codes, mean over rows
    true_l0: float | None = None  # features that fire, mean over rows
    shrinkage: float | None = None  # length of a reconstruction over that of its activation, mean over rows
    explained_variance: float | None = None  # about the mean
    best_feature: IntArray | None = None  # (n_latents,) of the largest absolute cosine; -1 where all are 0
    cosine: FloatArray | None = None  # (n_latents,) with it, absolute
    rate: FloatArray | None = None  # (n_latents,) share of the rows in which each latent fires
    precision_per_latent: FloatArray | None = None  # (n_latents,)
    recall_per_latent: FloatArray | None = None  # (n_latents,)
    f1_per_latent: FloatArray | None = None  # (n_latents,)
    notes: tuple[str, ...] = ()


def feature_recovery(
    dictionary: ArrayLike,
    features: ArrayLike,
    *,
    codes: ArrayLike | Sparse | None = None,
    firing: ArrayLike | Sparse | None = None,
    activations: ArrayLike | None = None,
    reconstructions: ArrayLike | None = None,
    seed: int = 0,
) -> FeatureRecovery:
    """How well the rows of a dictionary are the features that activations are made of, and its latents tell them.

    Args:
        dictionary: (n_latents, n_dimensions) direction of each latent, such as `W_dec`.
        features: (n_features, n_dimensions) true directions.
        codes: (n_rows, n_latents) what the latents say, 0 where one does not fire; an array or sparse.
        firing: (n_rows, n_features) how strongly each feature is present, 0 where it is not; an array or sparse.
        activations: (n_rows, n_dimensions) what was encoded.
        reconstructions: (n_rows, n_dimensions) what was decoded.
        seed: of the random directions of `mcc_chance`.

    Returns:
        FeatureRecovery. `mcc` in [0, 1], higher is better: mean absolute cosine of latents and features matched one to
        one; of unequal numbers the smaller counts. Read it beside `mcc_chance`. `uniqueness` in [0, 1], higher is
        better: how many features are the best of some latent, by latents; at most n_features / n_latents. A latent
        whose row of the dictionary is 0 has no best feature, and tells none. `precision`,
        `recall`, `f1` and `accuracy` in [0, 1], higher is better: how well each latent's firing tells that the feature
        of the largest absolute cosine is present, mean over all latents, where a dead one has 0. `shrinkage` is 1 where
        reconstructions are as long as what they stand for. `explained_variance` at most 1, higher is better.

    Raises:
        ValueError: shapes disagree, or values not finite.

    Reference:
        Song et al. 2025, arXiv 2505.20254, for `mcc`. The others are those of `eval_sae_on_synthetic_data` in SAELens
        6.54 (SynthSAEBench), which has no chance levels. `explained_variance` is that of the function of this name.

    Example:
        >>> features = np.eye(3)
        >>> firing = [[1, 0, 0], [0, 2, 0], [0, 0, 1], [1, 1, 0]]
        >>> result = feature_recovery(features[:2], features, codes=np.array(firing)[:, :2], firing=firing)
        >>> result.mcc, result.uniqueness, result.f1
        (1.0, 1.0, 1.0)
    """
    rows = check_matrix(dictionary, "dictionary", "n_dimensions")
    true = check_matrix(features, "features", "n_dimensions")
    if rows.shape[1] != true.shape[1]:
        raise ValueError(
            f"dictionary has {rows.shape[1]} dimensions and features have {true.shape[1]}; a dictionary is "
            "(n_latents, n_dimensions): is one of them transposed?"
        )
    matched = seed_consistency([rows, true], seed=seed)
    best, cosine = _best(rows, true)
    fields: dict[str, Any] = {"best_feature": best, "cosine": cosine, "notes": matched.notes}
    z = None if codes is None else _sparse(codes, "codes", "n_latents", len(rows))
    present = None if firing is None else _sparse(firing, "firing", "n_features", len(true))
    _check_rows(codes=z, firing=present, activations=activations, reconstructions=reconstructions)
    if z is not None:
        rate = np.bincount(z.col, minlength=len(rows)) / z.shape[0]
        fields |= {"rate": rate, "n_dead": int((rate == 0).sum()), "l0": z.nnz / z.shape[0]}
        fields["l1"] = float(np.abs(z.data).sum() / z.shape[0])
    if present is not None:
        fields["true_l0"] = present.nnz / present.shape[0]
    if z is not None and present is not None:
        fields |= _detected(z, present, best)
    if activations is not None and reconstructions is not None:
        x = check_matrix(activations, "activations", "n_dimensions")
        decoded = check_matrix(reconstructions, "reconstructions", "n_dimensions")
        fields["explained_variance"] = explained_variance(x, decoded).score
        lengths = np.linalg.norm(x, axis=1)
        nonzero = lengths > SMALLEST
        if nonzero.any():
            fields["shrinkage"] = float(np.mean(np.linalg.norm(decoded[nonzero], axis=1) / lengths[nonzero]))
        else:
            fields["notes"] += (f"every activation is shorter than {SMALLEST:g}, so that shrinkage is not known",)
    return FeatureRecovery(matched.score, matched.chance, len(np.unique(best[best >= 0])) / len(rows), **fields)


def _best(rows: FloatArray, true: FloatArray) -> tuple[IntArray, FloatArray]:
    """(n_latents,) the feature most like each row, -1 for one like none, and the absolute cosine."""
    rows, true = unit_rows(rows), unit_rows(true)
    parts = [np.abs(rows[start : start + AT_ONCE] @ true.T) for start in range(0, len(rows), AT_ONCE)]
    best = np.concatenate([part.argmax(axis=1) for part in parts])
    cosine = np.minimum(np.concatenate([part.max(axis=1) for part in parts]), 1.0)
    return np.where(cosine > 0, best, -1), cosine


def _sparse(matrix: ArrayLike | Sparse, name: str, columns: str, width: int) -> Any:
    """What is not 0, by row and column."""
    from scipy import sparse

    table: Any = sparse.coo_array(matrix if sparse.issparse(matrix) else check_matrix(matrix, name, columns))
    if not np.isfinite(table.data).all():
        raise ValueError(f"{name} must be finite; {np.count_nonzero(~np.isfinite(table.data))} values are not")
    if table.shape[1] != width:
        raise ValueError(f"{name} must have {width} columns, {columns}; got {table.shape[1]}")
    table.sum_duplicates()
    table.eliminate_zeros()
    return table


def _check_rows(**matrices: Any) -> None:
    numbers = {name: np.shape(matrix)[0] for name, matrix in matrices.items() if matrix is not None}
    if len(set(numbers.values())) > 1:
        listed = ", ".join(f"{name} {number}" for name, number in numbers.items())
        raise ValueError(
            f"codes, firing, activations and reconstructions must have the same number of rows; got {listed}"
        )
    if 0 in numbers.values():
        raise ValueError(f"{next(iter(numbers))} has no rows")


def _detected(z: Any, present: Any, best: IntArray) -> dict[str, Any]:
    """How each latent does as a detector of its best feature."""
    n_rows, n_latents = z.shape
    is_there = present.tocsr()
    is_there.data = np.ones(len(is_there.data), dtype=bool)
    hits = np.asarray(is_there[z.row, best[z.col]]).ravel() & (best[z.col] >= 0)
    right = np.bincount(z.col, weights=hits, minlength=n_latents).astype(float)
    fired = np.bincount(z.col, minlength=n_latents).astype(float)
    true = np.bincount(present.col, minlength=present.shape[1]).astype(float)[best]
    true = np.where(best >= 0, true, 0.0)
    precision, recall = _ratio(right, fired), _ratio(right, true)
    f1 = _ratio(2 * right, fired + true)
    wrong = fired + true - 2 * right
    # A latent that fires at random in a share q of the rows has precision p, the share of the feature's, and recall q.
    by_luck = _ratio(2 * fired * true / n_rows, fired + true)
    return {
        "precision": float(precision.mean()),
        "recall": float(recall.mean()),
        "f1": float(f1.mean()),
        "f1_chance": float(by_luck.mean()),
        "accuracy": float(1.0 - wrong.mean() / n_rows),
        "precision_per_latent": precision,
        "recall_per_latent": recall,
        "f1_per_latent": f1,
    }


def _ratio(part: FloatArray, whole: FloatArray) -> FloatArray:
    return np.where(whole > 0, part / np.where(whole > 0, whole, 1.0), 0.0)
