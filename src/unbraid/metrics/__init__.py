"""Every metric as a plain function of codes (n_samples, n_codes) and factors (n_samples, n_factors).

`kinds` names the kind of each factor: "categorical" (no order), "ordinal" (whole-numbered steps),
"continuous" (real values) or "cyclic" (whole-numbered steps around a circle, or
radians where they are not whole). Without it, whole-numbered
factors are ordinal and the others continuous. NumPy, SciPy, scikit-learn, numba and platformdirs suffice here.
"""

from unbraid.metrics._shared.inputs import NotDefined
from unbraid.metrics._table import (
    BLOCKED,
    LABEL_FREE,
    MEASURES,
    METRICS,
    PRESETS,
    QUESTIONS,
    Claim,
    Metric,
    by_question,
)
from unbraid.metrics.accuracy import linear_accuracy, mlp_accuracy
from unbraid.metrics.amari import amari, amari_from_importance
from unbraid.metrics.beta_vae_score import beta_vae_score
from unbraid.metrics.blocks import block_mcc, block_r2
from unbraid.metrics.d_lsbd import d_lsbd
from unbraid.metrics.dci import dci_from_importance
from unbraid.metrics.dci_boosted import dci_boosted
from unbraid.metrics.dci_es import dci_es, explicitness_from_curve
from unbraid.metrics.dci_forest import dci_forest
from unbraid.metrics.dci_lasso import dci_lasso
from unbraid.metrics.dcimig import dcimig
from unbraid.metrics.elbo_terms import elbo_terms
from unbraid.metrics.explicitness import explicitness
from unbraid.metrics.factor_leakage import factor_leakage
from unbraid.metrics.factor_vae_score import factor_vae_score
from unbraid.metrics.factorised_support import factorised_support
from unbraid.metrics.independence_score import independence_score
from unbraid.metrics.infomec import infomec
from unbraid.metrics.irs import irs
from unbraid.metrics.jemmig import jemmig
from unbraid.metrics.mcc import mcc
from unbraid.metrics.med import med
from unbraid.metrics.mig import mig
from unbraid.metrics.mig_exact import mig_exact
from unbraid.metrics.mig_sup import mig_sup
from unbraid.metrics.modularity import modularity
from unbraid.metrics.nk import nk
from unbraid.metrics.omes import omes, omes_from_association
from unbraid.metrics.r2 import r2
from unbraid.metrics.sap import sap
from unbraid.metrics.seed_consistency import seed_consistency
from unbraid.metrics.slot_matching import match_slots
from unbraid.metrics.slots import fg_ari, slot_identifiability, slot_identifiability_from_matrix
from unbraid.metrics.snc import snc
from unbraid.metrics.sparse_codes import (
    absorption,
    codes_to_ablate,
    sparse_probing,
    spurious_correlation_removal,
    targeted_probe_perturbation,
)
from unbraid.metrics.tad import tad
from unbraid.metrics.tmex import tmex
from unbraid.metrics.udr import udr
from unbraid.metrics.udr_wide import wide_udr
from unbraid.metrics.wide import wide_scores
from unbraid.metrics.zero_shot import zero_shot

__all__ = [
    "BLOCKED",
    "LABEL_FREE",
    "MEASURES",
    "METRICS",
    "PRESETS",
    "QUESTIONS",
    "Claim",
    "Metric",
    "NotDefined",
    "amari",
    "amari_from_importance",
    "beta_vae_score",
    "d_lsbd",
    "dci_boosted",
    "dci_es",
    "dci_forest",
    "dci_from_importance",
    "dci_lasso",
    "elbo_terms",
    "explicitness",
    "explicitness_from_curve",
    "factor_leakage",
    "factor_vae_score",
    "independence_score",
    "infomec",
    "irs",
    "linear_accuracy",
    "mcc",
    "med",
    "mig",
    "mig_exact",
    "mlp_accuracy",
    "modularity",
    "nk",
    "r2",
    "sap",
    "snc",
    "udr",
    "dcimig",
    "jemmig",
    "mig_sup",
    "tad",
    "omes",
    "omes_from_association",
    "factorised_support",
    "tmex",
    "block_mcc",
    "by_question",
    "block_r2",
    "seed_consistency",
    "fg_ari",
    "match_slots",
    "slot_identifiability",
    "slot_identifiability_from_matrix",
    "absorption",
    "codes_to_ablate",
    "sparse_probing",
    "spurious_correlation_removal",
    "targeted_probe_perturbation",
    "wide_scores",
    "wide_udr",
    "zero_shot",
]
