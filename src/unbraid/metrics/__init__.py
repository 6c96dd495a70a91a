"""Every metric as a plain function of codes (n_samples, n_codes) and factors (n_samples, n_factors).

`kinds` names the kind of each factor: "categorical" (no order), "ordinal" (whole-numbered steps),
"continuous" (real values) or "cyclic" (whole-numbered steps around a circle, or
radians where they are not whole). Without it, whole-numbered factors are ordinal and the others continuous.

Every metric refuses, by a ValueError, codes and factors of other shapes or unequal rows, values that are not finite,
and a factor that is constant or, where it is read as classes, has one sample per value. NumPy, SciPy, scikit-learn,
numba and platformdirs suffice here.
"""

from collections.abc import Mapping
from types import MappingProxyType, ModuleType

from unbraid.base.plugins import Table
from unbraid.metrics._shared.inputs import NotDefined as NotDefined
from unbraid.metrics._shared.metric import (
    QUESTIONS as QUESTIONS,
    Claim as Claim,
    Metric as Metric,
    by_question as by_question,
)

# One line for each metric, in the order of the tables.
from unbraid.metrics.mig import METRIC as _mig, mig as mig
from unbraid.metrics.mig_exact import METRIC as _mig_exact, mig_exact as mig_exact
from unbraid.metrics.dci_lasso import METRIC as _dci_lasso, dci_lasso as dci_lasso
from unbraid.metrics.dci_forest import METRIC as _dci_forest, dci_forest as dci_forest
from unbraid.metrics.dci_boosted import METRIC as _dci_boosted, dci_boosted as dci_boosted
from unbraid.metrics.med import METRIC as _med, med as med
from unbraid.metrics.sap import METRIC as _sap, sap as sap
from unbraid.metrics.snc import METRIC as _snc, snc as snc
from unbraid.metrics.nk import METRIC as _nk, nk as nk
from unbraid.metrics.modularity import METRIC as _modularity, modularity as modularity
from unbraid.metrics.irs import METRIC as _irs, irs as irs
from unbraid.metrics.factor_leakage import METRIC as _factor_leakage, factor_leakage as factor_leakage
from unbraid.metrics.amari import METRIC as _amari, amari as amari, amari_from_importance as amari_from_importance
from unbraid.metrics.explicitness import METRIC as _explicitness, explicitness as explicitness
from unbraid.metrics.linear_accuracy import METRIC as _linear_accuracy, linear_accuracy as linear_accuracy
from unbraid.metrics.mlp_accuracy import METRIC as _mlp_accuracy, mlp_accuracy as mlp_accuracy
from unbraid.metrics.zero_shot import METRIC as _zero_shot, zero_shot as zero_shot
from unbraid.metrics.beta_vae_score import METRIC as _beta_vae_score, beta_vae_score as beta_vae_score
from unbraid.metrics.factor_vae_score import METRIC as _factor_vae_score, factor_vae_score as factor_vae_score
from unbraid.metrics.elbo_terms import METRIC as _elbo_terms, elbo_terms as elbo_terms
from unbraid.metrics.d_lsbd import METRIC as _d_lsbd, d_lsbd as d_lsbd
from unbraid.metrics.independence_score import METRIC as _independence_score, independence_score as independence_score
from unbraid.metrics.mcc import METRIC as _mcc, mcc as mcc
from unbraid.metrics.r2 import METRIC as _r2, r2 as r2
from unbraid.metrics.infomec import METRIC as _infomec, infomec as infomec
from unbraid.metrics.dci_es import (
    METRIC as _dci_es,
    dci_es as dci_es,
    explicitness_from_curve as explicitness_from_curve,
)
from unbraid.metrics.jemmig import METRIC as _jemmig, jemmig as jemmig
from unbraid.metrics.dcimig import METRIC as _dcimig, dcimig as dcimig
from unbraid.metrics.mig_sup import METRIC as _mig_sup, mig_sup as mig_sup
from unbraid.metrics.tad import METRIC as _tad, tad as tad
from unbraid.metrics.omes import METRIC as _omes, omes as omes, omes_from_association as omes_from_association
from unbraid.metrics.factorised_support import METRIC as _factorised_support, factorised_support as factorised_support
from unbraid.metrics.tmex import METRIC as _tmex, tmex as tmex
from unbraid.metrics.latent_matching import METRIC as _latent_matching, latent_matching as latent_matching
from unbraid.metrics.udr import METRIC as _udr, udr as udr
from unbraid.metrics.explained_variance import METRIC as _explained_variance, explained_variance as explained_variance
from unbraid.metrics.block_r2 import METRIC as _block_r2, block_r2 as block_r2
from unbraid.metrics.block_mcc import METRIC as _block_mcc, block_mcc as block_mcc
from unbraid.metrics.own_metric import custom_metric as custom_metric
from unbraid.metrics.dci import dci_from_importance as dci_from_importance
from unbraid.metrics.feature_recovery import feature_recovery as feature_recovery
from unbraid.metrics.run_consistency import run_consistency as run_consistency
from unbraid.metrics.seed_consistency import seed_consistency as seed_consistency
from unbraid.metrics.slot_matching import match_slots as match_slots
from unbraid.metrics.slots import (
    fg_ari as fg_ari,
    slot_identifiability as slot_identifiability,
    slot_identifiability_from_matrix as slot_identifiability_from_matrix,
)
from unbraid.metrics.sparse_codes import (
    absorption as absorption,
    codes_to_ablate as codes_to_ablate,
    sparse_probing as sparse_probing,
    spurious_correlation_removal as spurious_correlation_removal,
    targeted_probe_perturbation as targeted_probe_perturbation,
)
from unbraid.metrics.udr_wide import wide_udr as wide_udr
from unbraid.metrics.wide import wide_scores as wide_scores

_ROWS = [row for row in list(vars().values()) if isinstance(row, Metric)]


def _by_name(rows: list[Metric]) -> Mapping[str, Metric]:
    return MappingProxyType({row.name: row for row in rows})


METRICS: Table[Metric] = Table(
    _by_name([row for row in _ROWS if row.of == "codes"]),
    "unbraid.metrics",
    lambda row: isinstance(row, Metric) and row.of == "codes",
    "metric",
)
# Of several models at once, and without labels: no card of codes and factors holds them, `unbraid.rank` does.
LABEL_FREE: Mapping[str, Metric] = _by_name([row for row in _ROWS if row.of == "models"])
# Of blocks of codes and factors, which a card has where blocks are given.
BLOCKED: Mapping[str, Metric] = _by_name([row for row in _ROWS if row.of == "blocks"])
# One question each, so that a card of every metric does not hide the few that answer it.
PRESETS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "standard": tuple(name for name, row in METRICS.items() if row.standard),
        "fast": tuple(name for name, row in METRICS.items() if row.standard and not row.slow),
        "identifiability": ("mcc", "r2", "infomec", "mlp_accuracy"),
        "disentanglement": ("dci_boosted", "mig", "snc", "nk", "mlp_accuracy"),
        "symmetry": ("d_lsbd", "independence_score"),
        "sae": ("mig", "snc", "mcc", "modularity"),  # of single codes: no probe on thousands of them at once
        "all": tuple(METRICS),
    }
)
# Of reconstructions: called as functions, on no card either.
RECONSTRUCTED: Mapping[str, Metric] = _by_name([row for row in _ROWS if row.of == "reconstructions"])
MEASURES: Mapping[str, Metric] = MappingProxyType({**METRICS, **LABEL_FREE, **RECONSTRUCTED})
_TOOLS = ("Mapping", "MappingProxyType", "ModuleType", "Table")
__all__ = sorted(  # pyright: ignore[reportUnsupportedDunderAll]
    name
    for name, value in vars().items()
    if not name.startswith("_") and not isinstance(value, ModuleType) and name not in _TOOLS
)
