"""Our numbers beside those of other programs, in pairs, for evidence.py; each on the same rows and by the same rule."""

import sys
import warnings
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias
from unittest.mock import MagicMock

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[2]))  # for what tests keep of programs that are not packages

from tests.metrics.test_peers import CASES, GUARD, LATENTS

from unbraid import Representation, metrics
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics._shared.train_test_split import train_test_split
from unbraid.scoring.synthetic_codes import REPEATS, SITUATIONS, SPACE

Pairs: TypeAlias = Iterator[tuple[Any, Any]]  # ours, theirs


def mig_of_the_guard() -> Pairs:
    """identifiability-guard, MIGMetric()."""
    for case, printed in GUARD.items():
        yield metrics.mig(CASES[case], LATENTS).score, printed[0]


def mcc_of_the_guard() -> Pairs:
    """The same, MCCMetric() by Pearson and by Spearman: matched and scored on the same rows, of matched factors."""
    for case, printed in GUARD.items():
        for correlation, theirs in (("pearson", printed[1]), ("spearman", printed[2])):
            given: Any = {"fit": "all", "unmatched": "drop", "correlation": correlation}
            yield metrics.mcc(CASES[case], LATENTS, **given).score, theirs


def r2_of_the_guard() -> Pairs:
    """The same, R2Metric(), which has no intercept: not of codes that are shifted."""
    for case, printed in GUARD.items():
        if case != "shifted":
            codes = CASES[case]
            yield metrics.r2(codes, LATENTS, test_codes=codes, test_factors=LATENTS).score, printed[3]


ROWS = 3000  # of the shipped example
SHARED = ("perfect", "noisy", "rotated", "twice", "noise")


def codes_and_factors() -> Iterator[tuple[FloatArray, IntArray]]:
    """Codes whose faults are known, on a grid eight times over, and rows of a trained model."""
    yield from on_the_grid()
    example = Representation.example()
    yield example.codes[:ROWS].astype(float), example.factors[:ROWS].astype(int)


def on_the_grid(*situations: str) -> Iterator[tuple[FloatArray, IntArray]]:
    """The former alone."""
    factors = np.tile(SPACE.grid(), (REPEATS, 1))
    for situation in situations or SHARED:
        yield SITUATIONS[situation](factors, np.random.default_rng(0)), factors


def parts(codes: FloatArray, factors: IntArray) -> list[Any]:
    """Rows to fit to and rows to test on as our metrics draw them, codes and factors of each."""
    rows = train_test_split(codes, factors, None, 0)
    return [codes[rows.train], factors[rows.train], codes[rows.test], factors[rows.test]]


def disentanglement_lib(name: str) -> Any:
    """A module of its metrics. Its settings, which gin would bring with TensorFlow, are given by hand."""

    def configurable(*given: Any, **_: Any) -> Any:
        return given[0] if callable(given[0]) else lambda function: function

    for place in ("gin", "gin.tf"):
        stub: Any = ModuleType(place)
        stub.configurable, stub.REQUIRED = configurable, None
        sys.modules[place] = stub
    sys.modules["gin"].tf = sys.modules["gin.tf"]  # pyright: ignore[reportAttributeAccessIssue]
    utils: Any = import_module("disentanglement_lib.evaluation.metrics.utils")
    utils.make_discretizer = lambda target: utils._histogram_discretize(target, 20)
    return import_module(f"disentanglement_lib.evaluation.metrics.{name}")


def mig_of_disentanglement_lib() -> Pairs:
    """Its `_compute_mig`."""
    theirs = disentanglement_lib("mig")
    for codes, factors in codes_and_factors():
        yield metrics.mig(codes, factors).score, theirs._compute_mig(codes.T, factors.T)["discrete_mig"]


def med_of_disentanglement_lib() -> Pairs:
    """Its `disentanglement` and weighted `completeness` of its information."""
    dci, utils = disentanglement_lib("dci"), disentanglement_lib("utils")
    for codes, factors in codes_and_factors():
        information = utils.discrete_mutual_info(utils.make_discretizer(codes.T), factors.T)
        ours = metrics.med(codes, factors)
        yield ours.mutual_information, information
        yield ours.score, dci.disentanglement(information)
        weighted = metrics.dci_from_importance(ours.mutual_information, completeness="weighted").completeness
        yield weighted, dci.completeness(information)


def importance_of_disentanglement_lib() -> Pairs:
    """Its `disentanglement` and `completeness` of any matrix of importance, of which some codes have none."""
    theirs, rng = disentanglement_lib("dci"), np.random.default_rng(0)
    for shape in ((4, 4), (10, 5), (3, 7), (64, 6)):
        matrix = rng.exponential(size=shape) ** 3 * (rng.random((shape[0], 1)) < 0.7)
        ours = metrics.dci_from_importance(matrix, completeness="weighted")
        yield (ours.disentanglement, ours.completeness), (theirs.disentanglement(matrix), theirs.completeness(matrix))


def dci_boosted_of_disentanglement_lib() -> Pairs:
    """Its `_compute_dci`: trees of scikit-learn without a seed."""
    theirs = disentanglement_lib("dci")
    for codes, factors in on_the_grid("perfect", "noisy", "rotated"):
        known, levels, judged, truth = parts(codes, factors)
        np.random.seed(0)
        scores = theirs._compute_dci(known.T, levels.T, judged.T, truth.T)
        ours = metrics.dci_boosted(known, levels, test_codes=judged, test_factors=truth)
        weighted = metrics.dci_from_importance(ours.importance, completeness="weighted").completeness
        yield ours.disentanglement, scores["disentanglement"]
        yield weighted, scores["completeness"]
        yield 1 - ours.errors.mean(), scores["informativeness_test"]


def sap_of_disentanglement_lib() -> Pairs:
    """Its `_compute_sap` by squared correlation."""
    theirs = disentanglement_lib("sap_score")
    for codes, factors in codes_and_factors():
        found = theirs._compute_sap(codes.T, factors.T, codes.T, factors.T, True)
        yield metrics.sap(codes, factors).score, found["SAP_score"]


def sap_by_svm_of_disentanglement_lib() -> Pairs:
    """The same by its linear SVM, whose start is drawn."""
    theirs = disentanglement_lib("sap_score")
    for codes, factors in on_the_grid():
        known, levels, judged, truth = parts(codes, factors)
        np.random.seed(0)
        found = theirs._compute_sap(known.T, levels.T, judged.T, truth.T, False)
        ours = metrics.sap(codes, factors, variant="disentanglement_lib")
        yield ours.score, found["SAP_score"]


def modularity_of_disentanglement_lib() -> Pairs:
    """Its `modularity`, with a code that is constant."""
    theirs, utils = disentanglement_lib("modularity_explicitness"), disentanglement_lib("utils")
    for codes, factors in codes_and_factors():
        given = np.column_stack([codes, np.full(len(codes), 0.5)])
        information = utils.discrete_mutual_info(utils.make_discretizer(given.T), factors.T)
        information[-1] = 0.0  # for the 1e-16 that rounding leaves of a constant code
        with np.errstate(invalid="ignore"):  # 0 / 0, which it sets to 0
            ours = metrics.modularity(given, factors, variant="disentanglement_lib")
            yield ours.score, theirs.modularity(information)


def explicitness_of_disentanglement_lib() -> Pairs:
    """Its `explicitness_per_factor`, on test rows."""
    theirs = disentanglement_lib("modularity_explicitness")
    for codes, factors in on_the_grid("noisy", "rotated", "noise"):
        known, levels, judged, truth = parts(codes, factors)
        known, judged = ((each - known.mean(axis=0)) / known.std(axis=0) for each in (known, judged))
        columns = range(factors.shape[1])
        areas = [theirs.explicitness_per_factor(known.T, levels[:, k], judged.T, truth[:, k])[1] for k in columns]
        yield metrics.explicitness(codes, factors, classifier="softmax").auc, np.mean(areas)


def irs_of_disentanglement_lib() -> Pairs:
    """Its `scalable_disentanglement_score`, by two quantiles."""
    theirs = disentanglement_lib("irs")
    for codes, factors in codes_and_factors():
        for quantile in (0.99, 1.0):
            found = theirs.scalable_disentanglement_score(factors, codes, quantile)
            ours = metrics.irs(codes, factors, quantile=quantile, factor_bins=None)
            yield ours.score, found["avg_score"]
            yield ours.robustness, found["IRS_matrix"]


class Grid:
    """A dataset as these programs want one: its observations are the codes of a grid."""

    def __init__(self, codes: FloatArray) -> None:
        self.codes, self.num_factors = codes, len(SPACE.sizes)

    def sample_factors(self, n: int, random_state: Any = np.random) -> IntArray:
        """Every combination alike."""
        return np.stack([random_state.randint(size, size=n) for size in SPACE.sizes], axis=1)

    def sample_observations_from_factors(self, factors: IntArray, _: Any = None) -> FloatArray:
        """Codes of these combinations."""
        return self.codes[SPACE.index(factors)]

    def sample_observations(self, n: int, random_state: Any = np.random) -> FloatArray:
        """Codes of drawn combinations."""
        return self.sample_observations_from_factors(self.sample_factors(n, random_state))


def grids() -> Iterator[tuple[FloatArray, IntArray]]:
    """Codes of each combination once, none of which these scores find perfect."""
    grid, rng = SPACE.grid(), np.random.default_rng(0)
    rotated = SITUATIONS["rotated"](grid, rng)
    for codes in (rotated + 3 * rng.standard_normal(rotated.shape), SITUATIONS["two in one"](grid, rng)[:, 1:]):
        yield codes, grid
    yield rng.standard_normal(rotated.shape), grid


SEEDS = range(4)


def beta_vae_score_of_disentanglement_lib() -> Pairs:
    """Its `compute_beta_vae_sklearn`, the mean of a few seeds."""
    score = disentanglement_lib("beta_vae").compute_beta_vae_sklearn
    given: Any = {"batch_size": 64, "num_train": 10_000, "num_eval": 5_000}
    for codes, factors in grids():
        theirs = [score(Grid(codes), lambda z: z, np.random.RandomState(seed), **given) for seed in SEEDS]
        ours = [metrics.beta_vae_score(codes, factors, seed=seed).score for seed in SEEDS]
        yield np.mean(ours), np.mean([found["eval_accuracy"] for found in theirs])


def factor_vae_score_of_disentanglement_lib() -> Pairs:
    """Its `compute_factor_vae`, which drops no code here, the mean of a few seeds."""
    score = disentanglement_lib("factor_vae").compute_factor_vae
    given: Any = {"batch_size": 64, "num_train": 10_000, "num_eval": 5_000, "num_variance_estimate": 10_000}
    for codes, factors in grids():
        theirs = [score(Grid(codes), lambda z: z, np.random.RandomState(seed), **given) for seed in SEEDS]
        ours = [metrics.factor_vae_score(codes, factors, seed=seed).score for seed in SEEDS]
        yield np.mean(ours), np.mean([found["eval_accuracy"] for found in theirs])


def disent(name: str) -> Any:
    """A module of the metrics of disent, without torchvision, of which they use nothing."""
    if "torchvision" not in sys.modules and find_spec("torchvision") is None:
        for place in ("", ".datasets", ".models", ".transforms", ".transforms.functional", ".utils"):
            sys.modules[f"torchvision{place}"] = MagicMock(__spec__=ModuleSpec("torchvision", None))
    return import_module(f"disent.metrics.{name}")


def mig_of_disent() -> Pairs:
    """Its `_compute_mig`."""
    theirs = disent("_mig")
    for codes, factors in codes_and_factors():
        yield metrics.mig(codes, factors).score, theirs._compute_mig(codes.T, factors.T)["mig.discrete_score"]


def sap_of_disent() -> Pairs:
    """Its `_compute_sap` by squared correlation."""
    theirs = disent("_sap")
    for codes, factors in codes_and_factors():
        found = theirs._compute_sap(codes.T, factors.T, codes.T, factors.T, True)
        yield metrics.sap(codes, factors).score, found["sap.score"]


def importance_of_disent() -> Pairs:
    """Its `_disentanglement` and `_completeness` of any matrix of importance, of which some codes have none."""
    theirs, rng = disent("_dci"), np.random.default_rng(0)
    for shape in ((4, 4), (10, 5), (3, 7), (64, 6)):
        matrix = rng.exponential(size=shape) ** 3 * (rng.random((shape[0], 1)) < 0.7)
        ours = metrics.dci_from_importance(matrix, completeness="weighted")
        yield (ours.disentanglement, ours.completeness), (theirs._disentanglement(matrix), theirs._completeness(matrix))


def mig_of_torchmetrics() -> Pairs:
    """Its `mutual_info_score` in single precision, in bins of NumPy."""
    from torch import tensor
    from torchmetrics.functional.clustering import mutual_info_score

    for codes, factors in codes_and_factors():
        edges = [np.histogram_bin_edges(column, 20) for column in codes.T]
        binned = [np.digitize(column, own[1:-1]) for column, own in zip(codes.T, edges, strict=True)]
        information = [[float(mutual_info_score(tensor(z), tensor(v))) for v in factors.T] for z in binned]
        yield metrics.mig(codes, factors).mutual_information, information


def mcc_of_torchmetrics() -> Pairs:
    """Its `pearson_corrcoef` and `spearman_corrcoef`, matched by POT's `emd` in place of SciPy's assignment."""
    from ot import emd
    from torch import tensor
    from torchmetrics.functional import pearson_corrcoef, spearman_corrcoef

    for codes, factors in on_the_grid("noisy", "rotated", "noise"):
        for name, correlate in (("pearson", pearson_corrcoef), ("spearman", spearman_corrcoef)):
            columns = [[tensor(column.astype(float)) for column in each.T] for each in (codes, factors)]
            found = np.abs([[float(correlate(z, v)) for v in columns[1]] for z in columns[0]])
            plan = np.asarray(emd([], [], 1 - found))
            given: Any = {"correlation": name, "fit": "all", "kinds": ["ordinal"] * 4}
            yield metrics.mcc(codes, factors, **given).score, (plan * found).sum() / plan.sum()


def amari_of_picard() -> Pairs:
    """Its `amari_distance`, which squares the entries and divides by twice the size of the matrix."""
    from picard import amari_distance

    rng = np.random.default_rng(0)
    for size in (2, 5, 10):
        for power in (1, 4):
            matrix = rng.exponential(size=(size, size)) ** power
            theirs = amari_distance(np.sqrt(matrix), np.eye(size))
            yield metrics.amari_from_importance(matrix).error, theirs * 2 * size


def explained_variance_of_torchmetrics() -> Pairs:
    """Its `r2_score`, and its `explained_variance`, to which a constant offset is no error."""
    from torch import tensor
    from torchmetrics.functional import explained_variance, r2_score

    rng = np.random.default_rng(0)
    truth = rng.standard_normal((2000, 6)) * np.arange(1, 7) + 3
    decoded = truth + rng.standard_normal((2000, 6)) * [0.3, 1, 1, 0.2, 0.1, 9] + [0, 0.5, 0, 0, 0, 3]
    ours = metrics.explained_variance(truth, decoded)
    pooled: Any = {"multioutput": "variance_weighted"}
    yield ours.score, float(r2_score(tensor(decoded), tensor(truth), **pooled))
    yield ours.without_offset, float(explained_variance(tensor(decoded), tensor(truth), **pooled))


def r2_of_cebra() -> Pairs:
    """Its `consistency_score` of two runs: R^2 of a line from one to the other, on the rows fitted to."""
    from cebra.integrations.sklearn.metrics import consistency_score

    rng = np.random.default_rng(0)
    one = rng.standard_normal((500, 4))
    for other in (one @ rng.standard_normal((4, 4)) + rng.standard_normal((500, 4)), rng.standard_normal((500, 4))):
        scores, pairs, _ = consistency_score([one, other], between="runs")
        for score, (from_, to) in zip(scores, pairs, strict=True):
            known, truth = [(one, other)[int(str(each)[-1])] for each in (from_, to)]
            yield metrics.r2(known, truth, test_codes=known, test_factors=truth).score, score


def r2_of_statsmodels() -> Pairs:
    """Its `OLS` with an intercept, on the rows fitted to."""
    import statsmodels.api as sm

    for codes, factors in codes_and_factors():
        theirs = [sm.OLS(column.astype(float), sm.add_constant(codes)).fit().rsquared for column in factors.T]
        yield metrics.r2(codes, factors, test_codes=codes, test_factors=factors).per_factor, theirs


def tmex_of_statsmodels() -> Pairs:
    """Its `OLS` twice, and its test that the mean of the products of what is left is 0, by the normal law."""
    import statsmodels.api as sm

    for situation in ("noisy", "rotated"):
        factors = np.random.default_rng(1).standard_normal((800, 4))
        codes = SITUATIONS[situation](factors, np.random.default_rng(0))  # pyright: ignore[reportArgumentType]
        codes = codes + np.random.default_rng(2).standard_normal(codes.shape)
        theirs = np.zeros((4, 4))
        for k in range(4):
            others = sm.add_constant(np.delete(factors, k, axis=1))
            left = sm.OLS(factors[:, k], others).fit().resid
            for i in range(4):
                products = left * sm.OLS(codes[:, i], others).fit().resid
                statistic = np.sqrt(800) * products.mean() / products.std()
                theirs[i, k] = 2 * sm.stats.stattools.stats.norm.sf(abs(statistic))
        yield metrics.tmex(codes, factors, expected=np.eye(4)).p_values, theirs


def elbo_terms_of_torch() -> Pairs:
    """KL of each posterior from the prior by `torch.distributions`."""
    from torch import tensor
    from torch.distributions import Normal, kl_divergence

    rng = np.random.default_rng(0)
    for codes, factors in on_the_grid("noisy", "rotated"):
        rows = rng.permutation(len(codes))[:800]
        log_variances = rng.uniform(-4, 0, (800, codes.shape[1]))
        ours = metrics.elbo_terms(codes[rows], factors[rows], log_variances=log_variances)
        posterior = Normal(tensor(codes[rows]), tensor(np.exp(log_variances / 2)))
        yield ours.kl_per_code, kl_divergence(posterior, Normal(tensor(0.0), tensor(1.0))).mean(dim=0).numpy()


def mlp_accuracy_of_scikit_learn() -> Pairs:
    """Its `MLPClassifier` with the settings of the paper, on the same rows."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.neural_network import MLPClassifier

    for codes, factors in on_the_grid("noisy", "rotated"):
        known, levels, judged, truth = parts(codes, factors)
        ours = metrics.mlp_accuracy(known, levels, training="paper", test_codes=judged, test_factors=truth)
        mean, spread = known.mean(axis=0), known.std(axis=0)
        settings: Any = {"batch_size": 64, "alpha": 0.0, "max_iter": 75, "n_iter_no_change": 75, "random_state": 0}
        for k in range(factors.shape[1]):
            head = MLPClassifier((256,), **settings)
            with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
                head.fit((known - mean) / spread, levels[:, k])
            yield ours.accuracy[k], head.score((judged - mean) / spread, truth[:, k])


def infomec_of_scikit_learn() -> Pairs:
    """Its `mutual_info_classif` with the ten nearest neighbours, whose jitter is drawn."""
    from sklearn.feature_selection import mutual_info_classif

    for codes, factors in codes_and_factors():
        scaled = (codes - codes.mean(axis=0)) / codes.std(axis=0)
        told = [
            mutual_info_classif(scaled, levels, n_neighbors=10, discrete_features=False, random_state=0)
            for levels in factors.T
        ]
        shares = [np.bincount(levels) / len(levels) for levels in factors.T]
        entropies = [-(share[share > 0] * np.log(share[share > 0])).sum() for share in shares]
        yield metrics.infomec(codes, factors).information, np.column_stack(told) / entropies
