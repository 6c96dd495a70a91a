"""Mutual-information-based entropy disentanglement (MED)."""

from collections.abc import Sequence
from dataclasses import dataclass

from unbraid._shown import Shown
from unbraid.metrics._information import binned_information
from unbraid.metrics._inputs import as_levels, check_inputs
from unbraid.metrics.dci import dci_from_importance
from unbraid.types import ArrayLike, FloatArray, Kind


@dataclass(frozen=True, eq=False, repr=False)
class MED(Shown):
    score: float
    completeness: float
    mutual_information: FloatArray  # (n_codes, n_factors), nats
    per_code: FloatArray  # (n_codes,) disentanglement of each code
    per_factor: FloatArray  # (n_factors,) completeness of each factor
    code_weights: FloatArray  # (n_codes,) summing to 1, or all 0
    notes: tuple[str, ...] = ()


def med(
    codes: ArrayLike, factors: ArrayLike, *, kinds: Sequence[Kind] | None = None, seed: int = 0, bins: int = 20
) -> MED:
    """Disentanglement as in DCI, with mutual information in place of a regressor's importances.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        bins: equal-width bins per code.

    Returns:
        MED. `score` in [0, 1], higher is better: sum over codes of their share of all information times
        1 - entropy of the code's shares over factors, to the base n_factors. `completeness` is the same over codes,
        a plain mean over factors. Chance: near 0 for factors of about equal size; the plug-in estimate finds some
        information in noise, more for factors of many levels, so that small samples score above 0. A dead code has
        weight 0. Not invariant to rotation of codes.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value.

    Reference:
        Cao et al. 2022, "An Empirical Study on Disentanglement of Negative-free Contrastive Learning"; SNC/NK 2023,
        table 1, whose row of MED pairs it with completeness weighted by information
        (`dci_from_importance(result.mutual_information, completeness="weighted")`).

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> round(med(grid, grid).score, 12)
        1.0
    """
    inputs = check_inputs(codes, factors, kinds)
    information = binned_information(inputs, bins)
    scores = dci_from_importance(information)
    return MED(
        score=scores.disentanglement,
        completeness=scores.completeness,
        mutual_information=information,
        per_code=scores.per_code,
        per_factor=scores.per_factor,
        code_weights=scores.code_weights,
        notes=as_levels(inputs).notes + scores.notes,
    )
