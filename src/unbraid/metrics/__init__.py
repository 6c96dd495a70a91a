"""Every metric as a plain function of codes (n_samples, n_codes) and factors (n_samples, n_factors).

`kinds` names the kind of each factor: "categorical" (no order), "ordinal" (whole-numbered steps),
"continuous" (real values) or "cyclic" (whole-numbered steps around a circle). Without it, whole-numbered
factors are ordinal and the others continuous. NumPy, SciPy, scikit-learn and numba suffice here.
"""

from unbraid.metrics._inputs import NotDefined
from unbraid.metrics._table import METRICS, Metric
from unbraid.metrics.beta_vae_score import beta_vae_score
from unbraid.metrics.d_lsbd import d_lsbd
from unbraid.metrics.elbo_terms import elbo_terms
from unbraid.metrics.factor_leakage import factor_leakage
from unbraid.metrics.factor_vae_score import factor_vae_score
from unbraid.metrics.independence_score import independence_score
from unbraid.metrics.irs import irs
from unbraid.metrics.mig import mig
from unbraid.metrics.mig_exact import mig_exact
from unbraid.metrics.modularity import modularity
from unbraid.metrics.udr import udr

__all__ = [
    "METRICS",
    "Metric",
    "NotDefined",
    "beta_vae_score",
    "d_lsbd",
    "elbo_terms",
    "factor_leakage",
    "factor_vae_score",
    "independence_score",
    "irs",
    "mig",
    "mig_exact",
    "modularity",
    "udr",
]
