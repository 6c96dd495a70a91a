"""What authors' own programs say of the same codes: their numbers, with the commit that gave them, frozen.

Run with NumPy 2.4.6, SciPy 1.17.1, scikit-learn 1.9.1 and torch 2.13.0. Where ours differ on purpose, the test says by
how much and why.
"""

from typing import Any, Literal

import numpy as np
import pytest

from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import (
    dcimig,
    elbo_terms,
    explicitness_from_curve,
    factor_leakage,
    factorised_support,
    infomec,
    jemmig,
    mcc,
    mig,
    mig_exact,
    mig_sup,
    omes,
    r2,
    snc,
    tad,
    tmex,
    udr,
)

RNG = np.random.default_rng(0)
LATENTS = RNG.standard_normal((1000, 5))
SQUARE, NARROW = RNG.standard_normal((5, 5)), RNG.standard_normal((5, 3))
CASES = {
    "elementwise": LATENTS * [2.0, -1.0, 0.5, 3.0, -4.0],
    "entangled": LATENTS @ SQUARE,
    "undercomplete": LATENTS @ NARROW,
    "overcomplete": np.column_stack([LATENTS, RNG.standard_normal((1000, 15))]),
    "monotone": np.sign(LATENTS) * np.abs(LATENTS) ** 3,
    "shifted": LATENTS + 5.0,
    "noise": RNG.standard_normal((1000, 5)),
}
# shrutij01/identifiability-guard, 0667c0f: MIGMetric(), MCCMetric() by Pearson and by Spearman, R2Metric().
GUARD = {
    "elementwise": (0.9358421947569289, 1.0, 1.0, 1.0),
    "entangled": (0.05451007777281032, 0.634926067383315, 0.6186104754104755, 1.0),
    "undercomplete": (0.04223533268546345, 0.6560497047933246, 0.638996838996839, 0.609419361748514),
    "overcomplete": (0.933303896392711, 1.0, 1.0, 1.0),
    "monotone": (0.33293485751730745, 0.7890873310806967, 1.0, 0.6244668270294765),
    "shifted": (0.9358421947569289, 1.0, 1.0, 0.8052296553973145),
    "noise": (0.0039015939534214755, 0.04543222757528471, 0.042596588996589, 0.004201018902539366),
}


@pytest.mark.parametrize("case", GUARD)
def test_the_guard_says_the_same_where_it_does_the_same(case: str) -> None:
    codes = CASES[case]
    by_information, by_pearson, by_spearman, in_sample = GUARD[case]
    assert mig(codes, LATENTS).score == pytest.approx(by_information, abs=1e-9)
    published = mcc(codes, LATENTS, fit="all", unmatched="drop").score
    assert published == pytest.approx(by_pearson, abs=1e-9)
    ranked = mcc(codes, LATENTS, fit="all", unmatched="drop", correlation="spearman").score
    assert ranked == pytest.approx(by_spearman, abs=1e-9)
    # Of theirs the rows fitted to are scored, without an intercept, and nothing is below 0.
    ours = r2(codes, LATENTS).score
    assert ours <= in_sample + 1e-12 or case == "shifted"
    assert ours == pytest.approx({"shifted": 1.0}.get(case, in_sample), abs=0.04)


def test_where_the_guard_differs_and_why() -> None:
    # Two of five factors have no code: they count 0 here, and are left out there.
    assert mcc(CASES["undercomplete"], LATENTS).score == pytest.approx(0.6 * GUARD["undercomplete"][1], abs=0.01)
    # Noise is matched and scored on the same rows there.
    assert abs(mcc(CASES["noise"], LATENTS).score) < 0.02 < GUARD["noise"][1]
    # Five folds, the sign of each correlation from the others (`crossfit=True, seed=0`), ours by halves.
    for case, theirs in (("entangled", 0.6344313231250773), ("monotone", 0.7973533576654088)):
        assert mcc(CASES[case], LATENTS).score == pytest.approx(theirs, abs=0.003)


def test_infomec_is_that_of_its_authors() -> None:
    """kylehkhsu/latent_quantization, 9a420a3, disentangle/metrics/infomec.py, after numpy.random.seed(0)."""
    example = Representation.example()
    codes, factors = example.codes[:1500].astype(float), example.factors[:1500]
    found = infomec(codes, factors)
    assert found.modularity == pytest.approx(0.4670734606141553, abs=2e-4)  # their jitter is drawn otherwise
    assert found.compactness == pytest.approx(0.4495187485749679, abs=2e-4)
    assert found.explicitness == pytest.approx(0.5157064584791492, abs=1e-5)
    whole = infomec(np.round(2 * codes), factors, discrete_codes=True)
    assert whole.modularity == pytest.approx(0.3991337266028021, abs=1e-9)
    assert whole.compactness == pytest.approx(0.36235385527610314, abs=1e-9)
    # Theirs stops after 100 steps, of which one-hot codes need more.
    assert 0.6914149272690134 < whole.explicitness < 0.72


def test_infomec_of_training_is_that_of_its_authors() -> None:
    """The same, disentangle/metrics/mutual_information.py and explicitness.py, which scripts/train_ae.py prints."""
    example = Representation.example()
    codes, factors = example.codes[:1500].astype(float), example.factors[:1500]
    theirs = {
        "training": (0.4179119825103152, 0.12331852764206527, 0.43387402711737677, 0.1436958902100205),
        "training_binned": (0.33338220080999087, 0.12859759370405582, 0.3171348367188098, 0.12276412268964873),
    }
    variant: Any
    for variant, expected in theirs.items():
        found = infomec(codes, factors, variant=variant)
        ours = found.modularity, found.modularity_gap, found.compactness, found.compactness_gap
        assert ours == pytest.approx(expected, abs=2e-4 if variant == "training" else 1e-9)
        assert found.r2 == pytest.approx(0.6072599227116775, abs=1e-9)
    whole = infomec(np.round(2 * codes), factors, variant="training", discrete_codes=True)
    assert whole.compactness_gap == pytest.approx(0.12107253820934967, abs=1e-9)
    assert whole.r2 == pytest.approx(0.6982475313624065, abs=1e-9)


def test_explicitness_of_a_curve_is_that_of_the_authors_of_dci_es() -> None:
    """andreinicolicioiu/DCI-ES, 9329dae, metrics/explitcitness.py, of a baseline of .8."""
    rng = np.random.default_rng(0)
    theirs = {3: 0.984721319745209, 8: 0.5386517854069268, 12: 0.38241230778422497}
    for n, value in theirs.items():
        capacities, losses = np.cumsum(rng.integers(1, 5, n)), rng.random(n)
        assert explicitness_from_curve(capacities, losses, 0.8) == pytest.approx(value, abs=1e-12)


def test_tad_is_that_of_infodiffusion() -> None:
    """isjakewong/InfoDiffusion, 75c7b31, TADMetric of eval_disentanglement.py, in single precision."""
    example = Representation.example()
    codes, halves = example.codes[:1500].astype(float), (example.factors[:1500] >= np.array([3, 6, 40, 32, 32]) / 2) + 0
    rng = np.random.default_rng(0)
    alike = np.column_stack([halves[:, 0], halves[:, 0] ^ (rng.random(1500) < 0.03), halves[:, 3], halves[:, 4]])
    clean = np.column_stack([halves, rng.standard_normal((1500, 3))]) + 0.5 * rng.standard_normal((1500, 8))
    for given, attributes, score, captured in (
        (codes, alike, 0.10228103399276733, 2),  # two attributes that tell each other drop out
        (clean, halves, 1.9913702011108398, 5),
    ):
        found = tad(given, attributes)
        assert found.score == pytest.approx(score, abs=1e-6)
        assert found.n_captured == captured


def _shipped() -> tuple[FloatArray, FloatArray]:
    example = Representation.example()
    return example.codes[:1500].astype(float), example.factors[:1500].astype(float)


def test_gaps_of_information_are_those_of_ubisoft() -> None:
    """ubisoft/ubisoft-laforge-disentanglement-metrics, 05d5667, with pyitlib 0.3.1: nb_bins of 10 and continuous
    factors, nb_bins of 20 and discrete ones.
    """
    codes, factors = _shipped()
    cases: list[tuple[dict[str, Any], tuple[float, float, float]]] = [
        ({"bins": 10, "factor_bins": 10}, (0.26753115193800836, 0.14712215466372533, 0.09466454671388334)),
        ({"bins": 20}, (0.2729127873211886, 0.14164080879076227, 0.10110028749497879)),
    ]
    for options, theirs in cases:
        ours = [function(codes, factors, **options).score for function in (jemmig, dcimig, mig_sup)]
        assert ours == pytest.approx(theirs, abs=1e-12)


def test_mig_sup_is_that_of_its_authors() -> None:
    """Zhiyuan1991/proVLAE, 3e1ec17, compute_metric_shapes of metric_MIG.py; a code idles.

    Factors are uniform there (log 6, 40, 32, 32), and here have the entropy of these rows.
    """
    codes, factors = _shipped()
    codes[:, 0] *= 0.01
    found = mig_sup(codes, factors[:, 1:], normalise="factor", weighting="active")
    assert found.weights.astype(bool).sum() == 5
    assert found.score == pytest.approx(0.17636733715408104, abs=4e-4)


def test_factorised_support_is_that_of_its_authors() -> None:
    """facebookresearch/disentangling-correlated-factors, 3b0d233, FoS of dent/metrics/fos.py, all pairs, batch 128."""
    codes = _shipped()[0]
    assert factorised_support(codes[:128], standardise=False).score == pytest.approx(23.598680669602537, abs=1e-9)
    assert factorised_support(codes[:128]).score == pytest.approx(138.49729294930665, abs=1e-9)  # given standardised
    for n_rows, theirs in ((1408, 21.862727010755485), (1500, 22.204140110213544)):  # with 92 rows left over
        ours = factorised_support(codes[:n_rows], order="rows", standardise=False)
        assert ours.score == pytest.approx(theirs, abs=1e-9)
    # Theirs takes rows in their order, ours draws it by default; given that order theirs is the same.
    drawn = factorised_support(codes[:1408], standardise=False)
    assert drawn.score == pytest.approx(23.426965473483587, abs=1e-9)


def test_omes_is_that_of_its_authors() -> None:
    """JacopoDapueto/transfer_disentanglement, 75e1a8b, get_score, given all pairs of rows that differ in one factor.

    With NumPy 2.4 as `corrcoef` without `bias`, which it no longer takes. Correlations are rounded to four digits.
    """
    grid = np.array([(a, b, c) for a in range(4) for b in range(3) for c in range(5)])
    rng = np.random.default_rng(0)
    codes = np.column_stack([grid + 0.0, grid.sum(axis=1), rng.standard_normal(60) * 0.01])
    codes = codes + 0.3 * rng.standard_normal((60, 5)) * [1, 1, 1, 1, 0.01]
    theirs: dict[tuple[float, Literal["avg", "max"]], float] = {
        (1.0, "avg"): 0.3977, (1.0, "max"): 0.5692, (0.5, "avg"): 0.3934,
        (0.5, "max"): 0.5414, (0.0, "avg"): 0.3892, (0.0, "max"): 0.5136,
    }  # fmt: skip
    for (alpha, pooling), score in theirs.items():
        found = omes(codes, grid, alpha=alpha, pooling=pooling)
        assert found.score == pytest.approx(score, abs=2e-4)
    assert omes(codes, grid).association[4].tolist() == [0, 0, 0]  # idle, by theirs as well


def test_tmex_is_that_of_its_authors() -> None:
    """tmex_blocks of shimenghuang/a-measurement-perspective-of-crl, e13f8ec: the test is GCM of pycomets, 6dc2e2c, with
    its linear regression LM and test_type="max".
    """
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((1000, 5))
    codes = factors @ rng.standard_normal((5, 5)) * 0.1 + factors * [2, -1, 0.5, 3, -4] + rng.standard_normal((1000, 5))
    found = tmex(codes, factors, expected=np.eye(5))
    assert found.score == 11
    some = found.p_values[[0, 0, 0, 1, 2, 3, 3, 4], [1, 2, 4, 2, 0, 0, 2, 3]]
    theirs = [0.000265, 0.005577, 0.476381, 0.111693, 0.116521, 0.356121, 0.958152, 0.587157]
    assert some == pytest.approx(theirs, abs=5e-7)


def test_snc_is_that_of_its_authors() -> None:
    """Lou1sM/snc_nk, e031048, with dl_utils 09f96e1: accs_from_alignment of PredictorAligner, training and test rows.

    They cut at the value of a row and we midway between two, so that a test row there may change sides.
    """
    rng = np.random.default_rng(0)
    grid = np.array([(a, b, c) for a in range(3) for b in range(4) for c in range(5)])
    rows = np.tile(grid, (30, 1))
    clean = (rows - grid.mean(axis=0)) / grid.std(axis=0)
    noise = rng.standard_normal((len(rows), 3)), rng.standard_normal((len(rows), 4))
    mixed = clean @ rng.standard_normal((3, 4))
    noisy = np.column_stack([clean + 0.4 * noise[0], noise[1][:, 0]])
    entangled = np.column_stack([clean, 0 * mixed[:, 0]]) + 0.35 * mixed + 0.3 * noise[1]
    theirs = (
        (
            noisy,
            [0.91, 0.7941666666666667, 0.6833333333333333],
            [0.9133333333333333, 0.8066666666666666, 0.7083333333333334],
        ),
        (entangled, [0.6166666666666667, 0.6808333333333333, 0.43], [0.6733333333333333, 0.67, 0.3983333333333333]),
    )
    bins: Any
    for codes, known, judged in theirs:
        for bins in ("classes", "paper"):
            for part, expected in ((slice(1200), known), (slice(1200, None), judged)):
                given: Any = {"test_codes": codes[part], "test_factors": rows[part]}
                found = snc(codes[:1200], rows[:1200], bins=bins, **given).accuracy
                assert found == pytest.approx(expected, abs=1e-12 if expected is known else 1 / 600)


def test_udr_is_that_of_disentanglement_lib() -> None:
    """google-research/disentanglement_lib, 86a644d, compute_udr_sklearn: scores, of which the last model is a mixture.

    Its lasso stops at a tolerance of 1e-4; at 1e-12 the two differ by 5e-12.
    """
    rng = np.random.default_rng(0)
    base = rng.standard_normal((400, 4))
    turned = base[:, ::-1] * [1, -2, 3, 1] + 0.3 * rng.standard_normal((400, 4))
    models = [base, turned, base @ rng.standard_normal((4, 4))]
    kl = [[1.0, 1.0, 1.0, 1.0], [1.0, 0.001, 1.0, 1.0], [1.0, 1.0, 0.5, 1.0]]
    ranked = udr(models, kl=kl, aggregate="dlib", similarity="spearman").scores
    assert ranked == pytest.approx([0.543463636307156, 0.5186643660101622, 0.28868528804790655], abs=1e-12)
    by_lasso = udr(models, kl=kl, aggregate="dlib", alpha=0.1).scores
    assert by_lasso == pytest.approx([0.5263035597603896, 0.5232464378602247, 0.28336897405943706], abs=5e-4)


def test_factor_leakage_is_that_of_its_authors() -> None:
    """MattPainter01/UnsupervisedActionEstimation, 1c951bf, FLMetric of metrics/factor_leakage.py, of these rows."""
    found = factor_leakage(*_shipped())
    theirs = (0.21593944570224488, 0.31291040888127325, 0.23095598559817473, 0.21421560977651125)
    assert (found.mean, found.norm_mean, found.auc, found.nm_auc) == pytest.approx(theirs, abs=1e-12)


def _posteriors() -> tuple[FloatArray, FloatArray, IntArray]:
    """Means and log-variances of a code for each factor of a grid, with noise; the second knows of the first factor."""
    grid, rng = np.array(list(np.ndindex(3, 4, 5, 8))), np.random.default_rng(0)
    means = (grid - grid.mean(axis=0)) / grid.std(axis=0) + 0.3 * rng.standard_normal(grid.shape)
    means[:, 1] += 0.5 * means[:, 0]
    return means, rng.uniform(-3, 0, means.shape), grid


def test_elbo_terms_are_those_of_the_authors_of_beta_tcvae() -> None:
    """rtqichen/beta-tcvae, 1a3577d, elbo_decomposition, on a processor: the mean of 200 calls, errors .0015 and .003.

    Each call draws once from each posterior; the last number is in closed form, in single precision.
    """
    means, log_variances, _ = _posteriors()
    found = elbo_terms(means, log_variances=log_variances, n_samples=100_000)
    assert found.total_correlation == pytest.approx(0.16137490749359132, abs=0.006)
    assert found.index_code_mi == pytest.approx(3.564203402996063, abs=0.01)
    assert found.dimension_wise_kl == pytest.approx(0.23129260897636414, abs=0.01)
    assert found.kl == pytest.approx(3.9568710327148438, abs=2e-6)


def test_exact_mig_is_that_of_the_authors_of_beta_tcvae() -> None:
    """The same: estimate_entropies of disentanglement_metrics.py by 10 000 draws a level, and MIG of mi_metric.py.

    Ours is the integral; their information strays by up to .007.
    """
    means, log_variances, grid = _posteriors()
    found = mig_exact(means, grid, log_variances=log_variances, method="quadrature")
    assert found.score == pytest.approx(0.36425256729125977, abs=0.008)
    theirs = [0.6042871475219727, 0.4586600065231323, 0.602707028388977, 0.6504091620445251]  # of each own factor
    assert np.diag(found.mutual_information) == pytest.approx(theirs, abs=0.015)
