"""What authors' own programs say of the same codes: their numbers, with the commit that gave them, frozen.

Run with NumPy 2.4.6, SciPy 1.17.1, scikit-learn 1.9.1 and torch 2.13.0. Where ours differ on purpose, the test says by
how much and why.
"""

import numpy as np
import pytest

from unbraid import Representation
from unbraid.metrics import explicitness_from_curve, infomec, mcc, mig, r2, tad

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
    # Noise is matched and judged on the same rows there.
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
