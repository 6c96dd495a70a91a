"""InfoMEC against worked examples, scikit-learn's neighbours and regression, and the formula in plain loops."""

import numpy as np
import pytest
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.metrics import log_loss, mutual_info_score

from tests.examples import entangled_codes, grid_factors, noisy_codes, random_codes
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import infomec
from unbraid.metrics._shared.inputs import check_inputs
from unbraid.metrics._shared.neighbours import neighbour_information

FACTORS = grid_factors(3)
GRID = np.array([(a, b) for a in range(4) for b in range(2)])
TURNED = np.column_stack([GRID.sum(axis=1), GRID[:, 0] - GRID[:, 1]])


def ross(codes: FloatArray, levels: IntArray, neighbours: int) -> float:
    """Equation 1 of Ross 2014 by all distances."""
    away = np.abs(codes[:, None] - codes)
    kept = np.bincount(levels)[levels] > 1
    terms = []
    for row in np.flatnonzero(kept):
        own = np.flatnonzero((levels == levels[row]) & (np.arange(len(codes)) != row))
        k = min(neighbours, len(own))
        radius = np.sort(away[row, own])[k - 1]
        nearer = np.count_nonzero(away[row, kept] < radius)
        terms.append(digamma(k) - digamma(len(own) + 1) - digamma(nearer))
    return max(0.0, digamma(kept.sum()) + np.mean(terms))


@pytest.mark.parametrize("neighbours", [1, 3, 10])
@pytest.mark.parametrize("shape", ["normal", "heavy", "skewed", "few rows of a level"])
def test_neighbours_are_those_of_all_distances(shape: str, neighbours: int) -> None:
    rng = np.random.default_rng(neighbours)
    levels = rng.choice(5, 160, p=[0.5, 0.3, 0.15, 0.04, 0.01])
    codes = levels[:, None] * [0.0, 0.5, 3.0] + rng.standard_normal((160, 3))
    if shape == "heavy":
        codes = codes**3
    elif shape == "skewed":
        codes = np.exp(codes)
    elif shape == "few rows of a level":
        levels = np.where(levels == 3, rng.integers(3, 9, 160), levels)
        levels[0] = 20
    found = neighbour_information(check_inputs(codes, levels[:, None]), neighbours, 0)
    expected = [ross(column, levels, neighbours) for column in codes.T]
    np.testing.assert_allclose(found[:, 0], expected, atol=1e-9)


def test_worked_examples() -> None:
    same, turned, twice = (infomec(codes, GRID, discrete_codes=True) for codes in (GRID, TURNED, GRID[:, [0, 0]]))
    assert (same.modularity, same.compactness) == pytest.approx((1.0, 1.0))
    assert same.explicitness == pytest.approx(1.0, abs=1e-3)
    assert (turned.modularity, turned.compactness) == pytest.approx((3 / 7, 0.0))
    assert (twice.modularity, twice.compactness) == pytest.approx((1.0, 0.0))
    assert twice.explicitness == pytest.approx(0.5, abs=1e-3)
    assert "factor 1: no active code has information on it" in "".join(twice.notes)


@pytest.mark.parametrize("variant", ["standalone", "training", "training_binned", "tripod"])
def test_the_formula_in_plain_loops(variant) -> None:
    codes = np.column_stack([entangled_codes(FACTORS), 0.11 * random_codes(FACTORS)[:, 0], np.zeros(len(FACTORS))])
    result = infomec(codes, FACTORS, variant=variant)
    spread = np.ptp(codes, axis=0)
    if variant == "tripod":
        spread = np.quantile(codes, 0.75, axis=0) - np.quantile(codes, 0.25, axis=0)
    least = {"standalone": 1 / 20, "tripod": 1 / 10}.get(variant, 1 / 8)
    active = [i for i in range(5) if spread[i] > least * spread.max()]
    assert result.active.tolist() == active
    shares = result.information[active]
    told = [row for row in shares if row.sum() > 0]
    modularity = np.mean([(max(row) / sum(row) - 1 / 3) / (1 - 1 / 3) for row in told])
    count = len(active)
    compactness = np.mean([(max(column) / sum(column) - 1 / count) / (1 - 1 / count) for column in shares.T])
    assert (result.modularity, result.compactness) == pytest.approx((modularity, compactness), abs=1e-12)
    first, second = np.sort(shares, axis=1)[:, ::-1].T[:2]
    assert result.modularity_gap == pytest.approx((first - second).mean())
    assert (result.r2 is None) == (result.r2_active is None) == (not variant.startswith("training"))


def trained(codes: FloatArray, factors: IntArray, bins: int | None) -> tuple[dict[str, float], FloatArray]:
    """What `log_disentanglement_metrics` of the authors' training prints, line by line, and which codes are active."""
    shares = np.empty((codes.shape[1], factors.shape[1]))
    for i, code in enumerate(codes.T):
        for k, levels in enumerate(factors.T):
            if bins is None:
                information = mutual_info_classif(code[:, None], levels, n_neighbors=3, random_state=0)[0]
            else:
                information = mutual_info_score(np.digitize(code, np.histogram(code, bins)[1][:-1]), levels)
            shares[i, k] = information / mutual_info_score(levels, levels)
    ranges = codes.max(axis=0) - codes.min(axis=0)
    active = ranges > ranges.max() / 8
    by_code, by_factor = np.sort(shares, axis=1), np.sort(shares, axis=0)
    scaled = (factors - factors.mean(axis=0)) / factors.std(axis=0)
    return {
        "modularity_gap": float((by_code[:, -1] - by_code[:, -2])[active].mean()),
        "compactness_gap": float((by_factor[-1] - by_factor[-2]).mean()),
        "r2": float(np.mean([LinearRegression().fit(codes, y).score(codes, y) for y in scaled.T])),
    }, active


@pytest.mark.parametrize(
    ("variant", "given", "bins"),
    [("training", {}, None), ("training_binned", {}, 20), ("training_binned", {"bins": 7}, 7)],
)
def test_training_prints_gaps_and_r2_as_its_authors(variant, given: dict, bins: int | None) -> None:
    """Codes of a narrow range are not active, but their information and their share of R^2 count."""
    narrow = 0.03 * noisy_codes(FACTORS, noise=0.5)[:, ::-1]
    codes = np.column_stack([entangled_codes(FACTORS), narrow[:, 1:]])
    expected, active = trained(codes, FACTORS, bins)
    result = infomec(codes, FACTORS, variant=variant, **given)
    assert result.active.tolist() == np.flatnonzero(active).tolist() == [0, 1, 2]
    for name, value in expected.items():
        assert getattr(result, name) == pytest.approx(value, abs=1e-4 if bins is None else 1e-9), name
    ours, _ = trained(codes[:, :3], FACTORS, bins)
    assert result.compactness_gap_active == pytest.approx(ours["compactness_gap"], abs=1e-4)
    assert result.r2_active == pytest.approx(ours["r2"], abs=1e-9)
    assert abs(result.compactness_gap - result.compactness_gap_active) > 0.01
    assert expected["r2"] > ours["r2"] + 0.01


def test_which_discrete_codes_are_active() -> None:
    """A range of 3 beside 30: more than nothing, less than an eighth; its quartiles are farther apart than .1."""
    half = np.arange(len(FACTORS)) % 2  # of interquartile range 1; tripod's authors ask for more than .1
    codes = np.column_stack([10 * FACTORS[:, 2], FACTORS[:, 1], 0.01 * FACTORS[:, 1], 0.09 * half, 0.11 * half])
    active = {
        each: infomec(codes, FACTORS, variant=each, discrete_codes=True).active.tolist()
        for each in ("standalone", "training", "training_binned", "tripod")
    }
    assert active == {
        "standalone": [0, 1, 2, 3, 4],
        "training": [0],
        "training_binned": [0],
        "tripod": [0, 1, 4],
    }


def test_r2_of_discrete_codes_is_of_indicators() -> None:
    """A code that says which level, in an order of its own: a line reads little of it, indicators all."""
    scrambled = np.array([2, 0, 3, 1])[GRID[:, :1]] * 1.0
    line = np.corrcoef(scrambled[:, 0], GRID[:, 0])[0, 1] ** 2
    assert infomec(scrambled, GRID[:, :1], variant="training", neighbours=1).r2 == pytest.approx(line)
    assert infomec(scrambled, GRID[:, :1], variant="training", discrete_codes=True).r2 == pytest.approx(1.0)


def test_explicitness_is_that_of_scikit_learn() -> None:
    """Unpenalised softmax regression on noisy codes, where the optimum exists, classes weighing the same."""
    rows = np.flatnonzero((FACTORS[:, 0] > 0) | (np.arange(len(FACTORS)) % 3 == 0))  # uneven classes
    codes, factors = noisy_codes(FACTORS, noise=0.8)[rows], FACTORS[rows, :2]
    scaled = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    expected = []
    for levels in factors.T:
        known = LogisticRegression(C=np.inf, class_weight="balanced", tol=1e-8, max_iter=1000).fit(scaled, levels)
        expected.append(1 - log_loss(levels, known.predict_proba(scaled)) / np.log(len(np.unique(levels))))
    np.testing.assert_allclose(infomec(codes, factors).explicitness_per_factor, expected, atol=2e-3)


def test_what_peers_make_nan_is_a_number_with_a_note() -> None:
    dead = infomec(np.zeros((len(FACTORS), 2)), FACTORS)
    assert (dead.modularity, dead.compactness, dead.explicitness) == pytest.approx((0.0, 0.0, 0.0), abs=1e-9)
    assert "no code is active" in dead.notes[0]
    single = infomec(entangled_codes(FACTORS)[:, :1], FACTORS)
    assert single.compactness == 1.0
    assert "one active code" in " ".join(single.notes)
    alone = infomec(entangled_codes(FACTORS), FACTORS[:, 2:])
    assert alone.modularity == 1.0
    assert "one factor" in " ".join(alone.notes)
    silent = infomec(FACTORS, FACTORS[:, :2], discrete_codes=True)
    assert silent.modularity == 1.0
    assert silent.notes == ("left out of modularity: 1 active code without information",)


def test_noise_looks_modular_and_a_note_says_so() -> None:
    result = infomec(random_codes(FACTORS), FACTORS)
    assert result.modularity > 0.3
    assert abs(result.explicitness) < 0.05
    assert "noise can have the same" in result.notes[-1]
    assert not [note for note in infomec(noisy_codes(FACTORS), FACTORS).notes if "noise" in note]


def test_ties_are_parted_alike_whatever_the_sign_and_order() -> None:
    codes = np.rint(entangled_codes(FACTORS))
    plain, turned = infomec(codes, FACTORS, seed=2), infomec(-codes[:, ::-1], FACTORS, seed=2)
    np.testing.assert_array_equal(plain.information, turned.information[::-1])
    assert abs(infomec(codes, FACTORS, seed=1).modularity - plain.modularity) < 0.05
