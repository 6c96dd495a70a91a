"""Sparse autoencoders: of SAELens, dictionary_learning, `unbraid.families.dictionaries`, or one's own."""

import time
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import sparse

from unbraid.base.arrays import as_array, finite_sparse, is_sparse
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray
from unbraid.base.version import VERSION
from unbraid.metrics import explained_variance, feature_recovery
from unbraid.metrics._shared.inputs import check_matrix
from unbraid.metrics.feature_recovery import FeatureRecovery

__all__ = ["DictionaryScore", "score_dictionary"]

NOT_MEASURED = -1.0  # what SAEBench writes for a number that was not asked for
AT_ONCE = 1024  # latents compared with all others at a time
NEEDED = "a sparse autoencoder has encode, decode and W_dec (or decoder.weight)"


@dataclass(frozen=True, eq=False, repr=False)
class DictionaryScore(Shown):
    """What `score_dictionary` returns: `recovery`, a FeatureRecovery, whose numbers are attributes here too."""

    recovery: FeatureRecovery
    core: Mapping[str, Mapping[str, float]]  # as SAEBench's "core" names them, by category

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name in ("recovery", "core"):
            raise AttributeError(name)
        return getattr(self.recovery, name)

    def to_saebench(self, config: Mapping[str, Any] | None = None, name: str | None = None) -> dict[str, Any]:
        """The record of SAEBench's "core" evaluation, ready for `json.dump`.

        Args:
            config: settings of the autoencoder, for `sae_cfg_dict`.
            name: of the autoencoder, for `sae_lens_id`.

        Returns:
            `eval_type_id`, `eval_config`, `eval_id`, `eval_result_metrics` by category and others that SAEBench 0.6
            demands. `explained_variance` is about the mean, `mse` the squared error of a row, which SAEBench 0.6
            divides by the rows once more. What needs a language model or the encoder's weights is -1, as there where
            it was not measured. `eval_result_unstructured` has what SAEBench does not know: recovery of true features.
        """
        numbers = {key: number for key, number in asdict(self.recovery).items() if isinstance(number, int | float)}
        return {
            "eval_type_id": "core",
            "eval_config": {
                **dict.fromkeys(("compute_l2_norms", "compute_sparsity_metrics", "compute_variance_metrics"), True),
                "compute_featurewise_density_statistics": True,
            },
            "eval_id": str(uuid.uuid4()),
            "datetime_epoch_millis": int(time.time() * 1000),
            "eval_result_metrics": {category: dict(values) for category, values in self.core.items()},
            "eval_result_details": [],
            "sae_bench_commit_hash": f"unbraid {VERSION}",
            "sae_lens_id": name,
            "sae_lens_release_id": None,
            "sae_lens_version": None,
            "sae_cfg_dict": dict(config or {}),
            "eval_result_unstructured": {"feature_recovery": numbers},
        }


def score_dictionary(
    sae: Any,
    features: ArrayLike,
    *,
    activations: ArrayLike,
    firing: Any = None,
    codes: Any = None,
    batch_size: int = 4096,
    seed: int = 0,
) -> DictionaryScore:
    """Score a sparse autoencoder where the true features are known, as those of `superposition` are.

    Args:
        sae: has `encode`, `decode` and `W_dec` (n_latents, n_dimensions), in PyTorch or NumPy; or, in place of `W_dec`,
            `decoder.weight` (n_dimensions, n_latents), as most classes of dictionary_learning have.
        features: (n_features, n_dimensions) true directions.
        activations: (n_rows, n_dimensions) to encode.
        firing: (n_rows, n_features) how strongly each feature is present, an array or sparse; without it there is no
            precision, recall and F1.
        codes: (n_rows, n_latents) of the activations, where they are known already; an array or sparse.
        batch_size: rows that are encoded at a time.
        seed: of the random directions of `mcc_chance`.

    Returns:
        DictionaryScore, with the numbers of `unbraid.metrics.feature_recovery`: `mcc`, `mcc_chance`, `uniqueness`,
        `f1`, `f1_chance`, `n_dead`, `l0`, `true_l0`, `shrinkage`, `explained_variance` and others.

    Raises:
        TypeError: `sae` has neither `W_dec` nor `decoder.weight`.
        ValueError: shapes disagree, values are not finite, or what a method returns has another shape.

    Example:
        >>> from unbraid.datasets.superposition import superposition
        >>> from unbraid.families.dictionaries import train_dictionary
        >>> drawn = superposition(16, 8, 2000)
        >>> sae = train_dictionary(drawn.activations, 16, k=2, steps=200)
        >>> found = score_dictionary(sae, drawn.features, activations=drawn.activations, firing=drawn.firing)
        >>> found.mcc > found.mcc_chance
        True
    """
    name, weights = _directions(sae)
    x = check_matrix(activations, "activations", "n_dimensions")
    dictionary = check_matrix(_array(weights), name, "n_dimensions")
    if x.shape[1] != dictionary.shape[1]:
        raise ValueError(f"activations have {x.shape[1]} dimensions and {name} has {dictionary.shape[1]}")
    known_codes: Any = (
        None if codes is None else sparse.csr_array(finite_sparse(codes) if is_sparse(codes) else _array(codes))
    )
    if known_codes is not None and known_codes.shape != (len(x), len(dictionary)):
        raise ValueError(f"codes must be ({len(x)}, {len(dictionary)}); got {known_codes.shape}")
    parts, decoded = list[Any](), np.empty_like(x)
    for start in range(0, len(x), batch_size):
        rows = slice(start, start + batch_size)
        n = len(x[rows])
        z = (
            _applied(sae.encode, x[rows], weights, (n, len(dictionary)))
            if known_codes is None
            else known_codes[rows].toarray()
        )
        parts.append(sparse.csr_array(z))
        decoded[rows] = _applied(sae.decode, z, weights, (n, x.shape[1]))
    known = sparse.vstack(parts, format="csr")
    recovery = feature_recovery(
        dictionary, features, codes=known, firing=firing, activations=x, reconstructions=decoded, seed=seed
    )
    return DictionaryScore(recovery, _core(x, decoded, recovery, dictionary))


def _directions(sae: Any) -> tuple[str, Any]:
    """What the weights of the decoder are called, and they (n_latents, n_dimensions)."""
    if hasattr(sae, "W_dec"):
        return "W_dec", sae.W_dec
    linear = getattr(getattr(sae, "decoder", None), "weight", None)  # of torch.nn.Linear: a column for each latent
    if linear is None:
        raise TypeError(f"{type(sae).__name__} has no W_dec; {NEEDED}")
    return "decoder.weight", linear.T


def _applied(function: Any, rows: FloatArray, like: Any, shape: tuple[int, int]) -> Any:
    """What a method gives for what it is used to: a tensor of the type and on the device of its weights, or an array.

    Raises:
        ValueError: it is of another shape.
    """
    if hasattr(like, "detach"):
        import torch

        with torch.no_grad():
            result = _array(function(torch.as_tensor(rows, dtype=like.dtype, device=like.device)))
    else:
        result = _array(function(rows))
    if result.shape != shape:
        name = getattr(function, "__name__", "a method")
        raise ValueError(f"{name} must return {shape} for {np.shape(rows)}; got {result.shape}")
    return result


def _array(values: Any) -> Any:
    array = as_array(values)
    return array.astype(np.float32) if array.dtype == np.float16 else array  # of which SciPy makes nothing sparse


def _core(x: FloatArray, decoded: FloatArray, recovery: FeatureRecovery, dictionary: FloatArray) -> dict[str, Any]:
    lengths, rebuilt = np.linalg.norm(x, axis=1), np.linalg.norm(decoded, axis=1)
    along = (x * decoded).sum(axis=1)
    assert recovery.rate is not None
    assert recovery.l0 is not None
    often = {f"freq_over_{percent}_percent": recovery.rate > percent / 100 for percent in (1, 10)}
    all_rates = float(recovery.rate.sum()) or 1.0
    nonzero = (lengths > 0) & (rebuilt > 0)
    return {
        "model_behavior_preservation": dict.fromkeys(
            ("kl_div_score", "kl_div_with_ablation", "kl_div_with_sae"), NOT_MEASURED
        ),
        "model_performance_preservation": dict.fromkeys(
            ("ce_loss_score", "ce_loss_with_ablation", "ce_loss_with_sae", "ce_loss_without_sae"), NOT_MEASURED
        ),
        "reconstruction_quality": {
            "explained_variance": recovery.explained_variance,
            "explained_variance_legacy": explained_variance(x, decoded, average="rows").score,
            "mse": float(((x - decoded) ** 2).sum(axis=1).mean()),
            "cossim": float(np.mean(along[nonzero] / (lengths * rebuilt)[nonzero])) if nonzero.any() else 0.0,
        },
        "shrinkage": {
            "l2_norm_in": float(lengths.mean()),
            "l2_norm_out": float(rebuilt.mean()),
            "l2_ratio": recovery.shrinkage,
            "relative_reconstruction_bias": float((rebuilt**2).mean() / along.mean()) if along.mean() else 0.0,
        },
        "sparsity": {"l0": recovery.l0, "l1": recovery.l1},
        "token_stats": {
            "total_tokens_eval_reconstruction": len(x),
            "total_tokens_eval_sparsity_variance": len(x),
        },
        "misc_metrics": {
            **{name: float(which.mean()) for name, which in often.items()},
            **{f"normalized_{name}": float(recovery.rate[which].sum() / all_rates) for name, which in often.items()},
            "average_max_encoder_cosine_sim": NOT_MEASURED,
            "average_max_decoder_cosine_sim": _closest(dictionary),
            "frac_alive": float((recovery.rate > 0).mean()),
        },
    }


def _closest(dictionary: FloatArray) -> float:
    """Mean over latents of the largest cosine with another."""
    if len(dictionary) < 2:
        return 0.0
    lengths = np.linalg.norm(dictionary, axis=1, keepdims=True)
    rows = dictionary / np.where(lengths > 0, lengths, 1.0)
    largest = np.empty(len(rows))
    for start in range(0, len(rows), AT_ONCE):
        cosines = rows[start : start + AT_ONCE] @ rows.T
        cosines[np.arange(len(cosines)), start + np.arange(len(cosines))] = -np.inf
        largest[start : start + AT_ONCE] = cosines.max(axis=1)
    return float(largest.mean())
