"""Mutual-information-based entropy disentanglement (MED)."""

from collections.abc import Sequence
from dataclasses import dataclass

from unbraid.base.arguments import check_bins
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, Kind
from unbraid.metrics._shared.bins import Binning
from unbraid.metrics._shared.chance import Noise, drawn
from unbraid.metrics._shared.flags import notes_on_information
from unbraid.metrics._shared.information import binned_information, information_of_noise
from unbraid.metrics._shared.inputs import Inputs, as_levels, check_inputs
from unbraid.metrics._shared.metric import PAIRS, Metric
from unbraid.metrics.dci import dci_from_importance


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
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    weights: ArrayLike | None = None,
    bins: int = 20,
    binning: Binning = "width",
) -> MED:
    """Disentanglement as in DCI, with mutual information in place of a regressor's importances.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: unused; the score is deterministic.
        weights: (n_samples,) how many rows each row stands for, whole or not; default one each.
        bins: bins per code, 1 to 10 000.
        binning: "width": bins of equal width, as published. "mass": of as equal mass as ties allow; see `mig`.

    Returns:
        MED. `score` in [0, 1], higher is better: sum over codes of their share of all information times
        1 - entropy of the code's shares over factors, to the base n_factors. `completeness` is the same over codes,
        a plain mean over factors. Chance: whatever the number of rows, noise seems to carry information in proportion
        to a factor's levels, so that it scores about 0 on factors of equally many levels, .1 on 3, 2 and 5, and .70 on
        2 and 40, see `med_of_noise`. A dead code has weight 0. Not invariant to rotation of codes.

    Raises:
        ValueError: what every metric refuses, or `bins` is out of range.

    Reference:
        Cao et al. 2022, "An Empirical Study on Disentanglement of Negative-free Contrastive Learning"; SNC/NK 2023,
        table 1, whose row of MED pairs it with completeness weighted by information
        (`dci_from_importance(result.mutual_information, completeness="weighted")`).

    Example:
        >>> grid = FactorSpace(("a", "b"), (2, 3), ("ordinal", "ordinal")).grid()
        >>> round(med(grid, grid).score, 12)
        1.0
    """
    check_bins("bins", bins)
    inputs = check_inputs(codes, factors, kinds, seed, weights)
    information = binned_information(inputs, bins, binning)
    scores, levels = dci_from_importance(information), as_levels(inputs)
    return MED(
        score=scores.disentanglement,
        completeness=scores.completeness,
        mutual_information=information,
        per_code=scores.per_code,
        per_factor=scores.per_factor,
        code_weights=scores.code_weights,
        notes=(*notes_on_information(inputs, levels, bins, binning), *scores.notes),
    )


def med_of_noise(inputs: Inputs) -> Noise:
    """Near 0 for factors of about as many levels, more the more these differ; 1 for a single factor."""
    return drawn([dci_from_importance(each).disentanglement for each in information_of_noise(inputs)])


METRIC = Metric(
    med,
    title="Entropy disentanglement by mutual information",
    question="one_factor",
    claims={"score": ("modularity",)},
    chance=med_of_noise,
    summary="How far each code has information on one factor only.",
    limitations="Cannot see information that only several codes have together. Factors of many levels weigh more.",
    source="Cao et al. 2022; Mahon et al. 2023 (SNC/NK), table 1",
    version=3,
    noise_tolerance=0.01,
    interval=PAIRS,
    cites=("cao2022empirical", "mahon2023correcting"),
    formula=(
        r"\mathrm{MED} = \sum_i \rho_i \left( 1 - H_K(P_{i \cdot}) \right), \qquad "
        r"P_{ik} = \frac{I(z_i; v_k)}{\sum_l I(z_i; v_l)}, \qquad \rho_i = \frac{\sum_k I(z_i; "
        r"v_k)}{\sum_{ik} I(z_i; v_k)}",
        r"Disentanglement of DCI with information in place of importance.",
    ),
)
