"""Parts of the ELBO's KL term against numeric integration, sums over all rows, and cases of known answer."""

import numpy as np
import pytest
from scipy.special import logsumexp

from tests.examples import entangled_codes, grid_factors
from unbraid.base.types import FloatArray
from unbraid.metrics import elbo_terms
from unbraid.metrics.elbo_terms import AT_ONCE, _log_aggregate, _with_controls

FACTORS = grid_factors(repeats=4)


def log_density(z: FloatArray, means: FloatArray, scales: FloatArray) -> FloatArray:
    """(n_points, n_rows, n_codes) log of each Gaussian."""
    return -0.5 * ((z[:, None] - means) / scales) ** 2 - np.log(scales) - 0.5 * np.log(2 * np.pi)


def terms_by_integration(means: FloatArray, scales: FloatArray) -> tuple[float, float, float]:
    """Index-code information, total correlation and dimension-wise KL of two codes, on a grid of the plane."""
    low, high = (means - 8 * scales).min(axis=0), (means + 8 * scales).max(axis=0)
    axes = [np.linspace(low[j], high[j], 700) for j in range(2)]
    cell = (axes[0][1] - axes[0][0]) * (axes[1][1] - axes[1][0])
    alone = [np.exp(log_density(axes[j][:, None], means[:, [j]], scales[:, [j]])[:, :, 0]) for j in range(2)]
    joint = alone[0] @ alone[1].T / len(means)
    product = np.outer(alone[0].mean(axis=1), alone[1].mean(axis=1))
    prior = np.outer(*(np.exp(-0.5 * axis**2) / np.sqrt(2 * np.pi) for axis in axes))
    entropy_given_row = (0.5 * np.log(2 * np.pi * np.e) + np.log(scales)).sum(axis=1).mean()

    def expectation(values: FloatArray) -> float:
        return float((joint * values)[joint > 1e-280].sum() * cell)

    with np.errstate(divide="ignore", invalid="ignore"):
        return (
            expectation(-np.log(joint)) - entropy_given_row,
            expectation(np.log(joint / product)),
            expectation(np.log(product / prior)),
        )


def two_codes(seed: int = 0) -> tuple[FloatArray, FloatArray]:
    rng = np.random.default_rng(seed)
    means = rng.standard_normal((8, 1)) * [1.0, 0.8] + 0.4 * rng.standard_normal((8, 2))
    return means, rng.uniform(-2.5, 0.0, (8, 2))


def test_parts_are_the_integrals_of_their_definition() -> None:
    means, log_variances = two_codes()
    expected = terms_by_integration(means, np.exp(log_variances / 2))
    result = elbo_terms(means, log_variances=log_variances, n_samples=100_000)
    assert expected[1] > 0.1
    assert 0 < result.standard_error < 0.002
    assert result.index_code_mi == pytest.approx(expected[0], abs=4 * result.standard_error)
    assert result.total_correlation == pytest.approx(expected[1], abs=4 * result.standard_error)
    assert result.dimension_wise_kl == pytest.approx(expected[2], abs=1e-6)


def test_the_standard_error_is_the_spread_over_seeds() -> None:
    means, log_variances = two_codes(1)
    expected = terms_by_integration(means, np.exp(log_variances / 2))[1]
    runs = [elbo_terms(means, log_variances=log_variances, n_samples=400, seed=seed) for seed in range(150)]
    off = np.array([(run.total_correlation - expected) / run.standard_error for run in runs])
    assert abs(off.mean()) < 0.3
    # Every row is drawn equally often, which the error leaves unused: it may be somewhat too large.
    assert 0.6 < np.sqrt((off**2).mean()) < 1.15


@pytest.mark.parametrize(("low", "high"), [(-1, 1), (-7, 0), (-20, -12), (-20, 0)])
def test_density_of_all_rows_is_their_sum(low: float, high: float) -> None:
    """More rows than fit in a block, most of them too far away to matter, and more samples than a core takes."""
    rng, n_samples = np.random.default_rng(0), AT_ONCE + 90
    means, scales = 3 * rng.standard_normal((700, 3)), np.exp(rng.uniform(low, high, (700, 3)) / 2)
    rows = rng.integers(0, 700, n_samples)
    samples = means[rows] + scales[rows] * rng.standard_normal((n_samples, 3))
    own = log_density(samples, means, scales).sum(axis=2)[np.arange(n_samples), rows]
    expected = logsumexp(log_density(samples, means, scales).sum(axis=2), axis=1) - np.log(700)
    assert _log_aggregate(samples, own, means, scales) == pytest.approx(expected, abs=1e-10)


def test_posteriors_equal_to_the_prior_score_zero_in_every_part() -> None:
    result = elbo_terms(np.zeros((300, 4)), log_variances=np.zeros((300, 4)))
    parts = (result.index_code_mi, result.total_correlation, result.dimension_wise_kl, result.kl, result.standard_error)
    assert parts == pytest.approx((0.0,) * 5, abs=1e-9)


def test_a_product_of_mixtures_has_no_total_correlation() -> None:
    """Means on a full grid, one width per code: q(z) factorises exactly, though no part is Gaussian."""
    means = np.stack(np.meshgrid([-2.0, 0.5, 1.0], [0.0, 3.0], [-1.0, 1.0, 4.0]), axis=-1).reshape(-1, 3)
    result = elbo_terms(means, log_variances=np.tile([-3.0, -1.0, 0.0], (18, 1)))
    assert result.total_correlation == pytest.approx(0.0, abs=1e-5)
    assert result.index_code_mi > 1.0
    assert result.kl == pytest.approx(result.index_code_mi + result.dimension_wise_kl, abs=1e-5)


def test_correlated_gaussians() -> None:
    """Means of correlation r and variance 1 - s^2, width s: q(z) is close to a Gaussian of correlation r (1 - s^2)."""
    rng = np.random.default_rng(0)
    means = rng.standard_normal((20_000, 2)) @ np.linalg.cholesky([[1.0, 0.9], [0.9, 1.0]]).T * np.sqrt(0.5)
    result = elbo_terms(means, log_variances=np.full(means.shape, np.log(0.5)), n_samples=2000)
    assert result.total_correlation == pytest.approx(-0.5 * np.log(1 - 0.45**2), abs=0.02)
    assert result.dimension_wise_kl == pytest.approx(0.0, abs=0.001)


def test_posteriors_that_do_not_overlap_tell_the_row() -> None:
    result = elbo_terms(entangled_codes(FACTORS), log_variances=np.full(FACTORS.shape, -20.0))
    assert result.index_code_mi == pytest.approx(np.log(len(FACTORS)), abs=1e-3)


def test_parts_sum_to_the_closed_form_and_the_draws_agree() -> None:
    codes = entangled_codes(FACTORS)
    log_variances = np.random.default_rng(0).uniform(-4, 0, codes.shape)
    result = elbo_terms(codes, log_variances=log_variances)
    closed = 0.5 * (codes**2 + np.exp(log_variances) - log_variances - 1).sum(axis=1).mean()
    assert result.kl == pytest.approx(closed, abs=1e-12)
    assert result.index_code_mi + result.total_correlation + result.dimension_wise_kl == pytest.approx(closed, abs=1e-9)
    assert result.kl_sampled == pytest.approx(closed, abs=4 * result.kl_sampled_error)
    assert result.kl_sampled != closed
    assert result.kl_per_code.sum() == pytest.approx(closed)
    assert result.dimension_wise_kl_per_code.sum() == pytest.approx(result.dimension_wise_kl)


def test_an_uninformative_latent_adds_nothing() -> None:
    codes, log_variances = entangled_codes(FACTORS), np.full(FACTORS.shape, -2.0)
    nothing = np.zeros((len(codes), 1))
    alone = elbo_terms(codes, log_variances=log_variances)
    beside = elbo_terms(np.hstack([codes, nothing]), log_variances=np.hstack([log_variances, nothing]))
    assert beside.kl == pytest.approx(alone.kl, abs=1e-12)
    assert beside.dimension_wise_kl == pytest.approx(alone.dimension_wise_kl, abs=1e-9)
    error = 4 * np.hypot(alone.standard_error, beside.standard_error)
    assert beside.total_correlation == pytest.approx(alone.total_correlation, abs=error)


@pytest.mark.parametrize("n_samples", [50, 384, 1000])
def test_fewer_or_more_draws_than_rows(n_samples: int) -> None:
    codes, log_variances = entangled_codes(FACTORS), np.full(FACTORS.shape, -1.0)
    many = elbo_terms(codes, log_variances=log_variances, n_samples=40_000)
    few = elbo_terms(codes, log_variances=log_variances, n_samples=n_samples, seed=1)
    assert few.total_correlation == pytest.approx(many.total_correlation, abs=5 * few.standard_error)


def test_one_code_has_no_total_correlation() -> None:
    result = elbo_terms(entangled_codes(FACTORS)[:, :1], log_variances=np.full((len(FACTORS), 1), -3.0))
    assert result.total_correlation == pytest.approx(0.0, abs=1e-5)


def test_posteriors_too_sharp_for_rounding_are_noted() -> None:
    codes = entangled_codes(FACTORS)
    (apart,) = elbo_terms(codes, log_variances=np.full(codes.shape, -20.0)).notes
    assert apart.startswith("cannot be read at this size: the posteriors of 384 rows hardly overlap")
    result = elbo_terms(codes, log_variances=np.full(codes.shape, -200.0))
    assert result.notes == (
        f"{codes.size} posteriors are sharper than rounding can tell: widened to 1e-8 of the means' spread",
        apart,
    )
    assert np.isfinite(result.total_correlation)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"codes": np.zeros((1, 2)), "log_variances": np.zeros((1, 2))}, "at least 2 rows"),
        ({"codes": np.zeros((4, 2)), "log_variances": np.zeros((4, 3))}, "log_variances must have the shape of codes"),
        ({"codes": np.zeros((4, 2)), "factors": np.zeros((4, 1)), "log_variances": np.zeros((4, 2))}, "is constant"),
    ],
)
def test_unsound_arguments_are_refused(arguments: dict[str, FloatArray], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        elbo_terms(**arguments)


def test_parts_from_another_prior_are_those_of_the_codes_that_make_it_standard_normal() -> None:
    """The KL does not change when both sides are stretched: from N(m, s^2), and of (codes - m) / s from N(0, 1)."""
    means, log_variances = two_codes(2)
    centre, deviation = np.array([0.5, -2.0]), np.array([2.0, 0.3])
    variances = np.exp(log_variances)
    prior_kl = 0.5 * (((means - centre) ** 2 + variances) / deviation**2 - 1) - log_variances / 2 + np.log(deviation)
    found = elbo_terms(means, log_variances=log_variances, prior_kl=prior_kl, n_samples=4000)
    stretched = (means - centre) / deviation
    expected = elbo_terms(stretched, log_variances=log_variances - 2 * np.log(deviation), n_samples=4000)
    plain = elbo_terms(means, log_variances=log_variances, n_samples=4000)
    assert expected.kl > plain.kl + 1
    np.testing.assert_allclose(found.kl_per_code, expected.kl_per_code, rtol=1e-9)
    np.testing.assert_allclose(found.dimension_wise_kl_per_code, expected.dimension_wise_kl_per_code, rtol=1e-6)
    assert found.kl == pytest.approx(expected.kl)
    assert found.total_correlation == plain.total_correlation
    assert found.index_code_mi == plain.index_code_mi
    assert found.kl_sampled == pytest.approx(found.kl, rel=1e-9)  # 4 000 draws are 500 of each row


@pytest.mark.parametrize("power", [-66, 66, 200])
def test_of_the_unit_only_the_distance_from_the_prior_knows(power: int) -> None:
    """With codes 2^p as wide the KL of N(m, s^2) from N(0, 1) is 4^p (m^2 + s^2) / 2 - 1 / 2 - log s - p log 2."""
    means, log_variances = two_codes(3)
    plain = elbo_terms(means, log_variances=log_variances, n_samples=800)
    shifted = log_variances + 2 * power * np.log(2)
    found = elbo_terms(np.ldexp(means, power), log_variances=shifted, n_samples=800)
    assert found.total_correlation == pytest.approx(plain.total_correlation, abs=1e-8)
    assert found.index_code_mi == pytest.approx(plain.index_code_mi, abs=1e-8)
    squares = np.ldexp(means**2 + np.exp(log_variances), 2 * power)
    expected = (0.5 * (squares - 1.0) - log_variances / 2 - power * np.log(2)).mean(axis=0)
    assert found.kl_per_code == pytest.approx(expected, rel=1e-9)
    of_aggregate = expected - (plain.kl_per_code - plain.dimension_wise_kl_per_code)
    assert found.dimension_wise_kl_per_code == pytest.approx(of_aggregate, rel=1e-9)
    assert found.kl_sampled == pytest.approx(expected.sum(), abs=5 * found.kl_sampled_error)


def test_posteriors_far_from_the_normal_prior_are_measured_from_their_own() -> None:
    means, log_variances = two_codes(3)
    found = elbo_terms(1e90 * means, log_variances=log_variances, prior_kl=np.full(means.shape, 3.0), n_samples=80)
    assert (found.kl, found.dimension_wise_kl) == pytest.approx((6.0, 6.0 - 2 * np.log(8)), abs=1e-6)
    assert (found.index_code_mi, found.total_correlation) == pytest.approx((np.log(8), np.log(8)), abs=1e-6)


@pytest.mark.parametrize(("prior_kl", "message"), [
    (np.zeros((8, 3)), "shape of codes"), (np.full((8, 2), -0.5), "at least 0; got -0.5"),
    (np.full((8, 2), np.nan), "prior_kl"),
])  # fmt: skip
def test_divergences_that_cannot_be_are_refused(prior_kl: FloatArray, message: str) -> None:
    means, log_variances = two_codes()
    with pytest.raises(ValueError, match=message):
        elbo_terms(means, log_variances=log_variances, prior_kl=prior_kl)


def test_the_error_of_the_sampled_kl_is_that_of_a_closed_form() -> None:
    """With mean m and deviation s, log q - log p varies by (s^2 - 1)^2 / 2 + m^2 s^2; few rows show n - 1 for n."""
    m, s = 0.5, 0.6
    codes, log_variances = np.full((4, 1), m) + 1e-9 * np.arange(4)[:, None], np.full((4, 1), 2 * np.log(s))
    squared = [
        4 * elbo_terms(codes, log_variances=log_variances, n_samples=4, seed=seed).kl_sampled_error ** 2
        for seed in range(150)
    ]
    assert np.mean(squared) == pytest.approx((s**2 - 1) ** 2 / 2 + m**2 * s**2, rel=0.15)


def test_the_error_beside_controls_is_that_of_least_squares() -> None:
    """Of values that have nothing to do with two controls, n times its square is on average the variance."""
    rng = np.random.default_rng(0)
    errors = [_with_controls(rng.standard_normal(6), rng.standard_normal((6, 2)), np.zeros(2))[1] for _ in range(3000)]
    assert 6 * np.mean(np.square(errors)) == pytest.approx(1.0, rel=0.08)


@pytest.mark.parametrize(("spread", "told"), [(8.6, True), (4.0, False)])
def test_from_two_fifths_of_what_rows_can_tell_on_a_note_says_that_they_hardly_overlap(
    spread: float, told: bool
) -> None:
    """A normal code of deviation s with posteriors of deviation 1 tells log(1 + s^2) / 2 nats of the row."""
    codes = spread * np.random.default_rng(0).standard_normal((100, 1))
    result = elbo_terms(codes, log_variances=np.zeros((100, 1)))
    assert result.index_code_mi == pytest.approx(0.5 * np.log(1 + spread**2), rel=0.1)
    share = result.index_code_mi / np.log(100)
    assert 0.4 < share < 0.5 if told else share < 0.35
    assert any("hardly overlap" in note for note in result.notes) == told
