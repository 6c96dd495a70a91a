"""Exact MIG against adaptive integration of its definition, a closed form, and the limits of the posteriors."""

import numpy as np
import pytest
from scipy.integrate import quad

from tests.examples import entangled_codes, grid_factors, perfect_codes
from unbraid import Representation
from unbraid.base.types import FloatArray, IntArray
from unbraid.metrics import METRICS, mig_exact
from unbraid.metrics._shared import aggregate
from unbraid.metrics._shared.inputs import check_inputs, part_of
from unbraid.metrics._shared.resampling import Numbers
from unbraid.metrics.mig_exact import mig_exact_of_parts
from unbraid.scoring.uncertainty import part_scorer

FACTORS = grid_factors(repeats=4)
METHODS = ["quadrature", "monte_carlo"]


def density(z: float, means: FloatArray, scales: FloatArray) -> float:
    total = 0.0
    for mean, scale in zip(means, scales, strict=True):
        total += np.exp(-0.5 * ((z - mean) / scale) ** 2) / (scale * np.sqrt(2 * np.pi))
    return total / len(means)


def information_by_integration(means: FloatArray, log_variances: FloatArray, levels: IntArray) -> float:
    """Eq. 8 as it stands: a sum over values of p(v) times the integral of q(z|v) log(q(z|v) / q(z))."""
    scales = np.exp(log_variances / 2)
    steps = np.array([-8, -5, -3, -1.5, 0, 1.5, 3, 5, 8])
    cuts = np.unique(means[:, None] + scales[:, None] * steps)
    total = 0.0
    for level in set(levels.tolist()):
        own = levels == level

        def integrand(z: float, own: FloatArray = own) -> float:
            conditional = density(z, means[own], scales[own])
            return conditional * np.log(conditional / density(z, means, scales)) if conditional > 1e-290 else 0.0

        pieces = zip(cuts[:-1], cuts[1:], strict=True)
        total += own.mean() * sum(quad(integrand, a, b, epsabs=1e-11, epsrel=1e-9)[0] for a, b in pieces)
    return total


@pytest.mark.parametrize(("low", "high"), [(-2, 1), (-7, 0), (-20, 0)])
def test_quadrature_is_the_integral_and_sampling_agrees(low: float, high: float) -> None:
    rng = np.random.default_rng(0)
    codes, log_variances = rng.standard_normal((14, 1)), rng.uniform(low, high, (14, 1))
    factors = rng.permutation(np.array([0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 2, 2, 2]))[:, None]
    expected = information_by_integration(codes[:, 0], log_variances[:, 0], factors[:, 0])
    exact = mig_exact(codes, factors, log_variances=log_variances, method="quadrature")
    assert exact.mutual_information[0, 0] == pytest.approx(expected, abs=1e-8)
    assert exact.standard_error == 0.0
    sampled = mig_exact(codes, factors, log_variances=log_variances)
    error = sampled.mutual_information_error[0, 0]
    assert 0 < error < 0.01
    assert sampled.mutual_information[0, 0] == pytest.approx(expected, abs=4 * error)


@pytest.mark.parametrize("half_distance", [0.3, 1.0, 2.5])
def test_two_gaussians_of_equal_width(half_distance: float) -> None:
    """Means +-a, width 1: the information of a binary input over Gaussian noise, a^2 - E log cosh(a^2 + a x)."""
    a = half_distance
    factors = np.array([[0], [0], [1], [1]])
    codes = np.where(factors == 0, -a, a)

    def integrand(x: float) -> float:
        return np.exp(-x * x / 2) / np.sqrt(2 * np.pi) * np.log(np.cosh(a * a + a * x))

    expected = a * a - quad(integrand, -12, 12, epsabs=1e-13)[0]
    exact = mig_exact(codes, factors, log_variances=np.zeros((4, 1)), method="quadrature")
    assert exact.mutual_information[0, 0] == pytest.approx(expected, abs=1e-9)
    assert exact.score == pytest.approx(expected / np.log(2), abs=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("log_variance", [-12.0, -20.0, -80.0])
def test_sharp_posteriors_of_an_invertible_code_know_the_whole_factor(method: str, log_variance: float) -> None:
    codes = np.column_stack([perfect_codes(FACTORS), np.zeros(len(FACTORS))])
    result = mig_exact(codes, FACTORS, log_variances=np.full(codes.shape, log_variance), method=method, n_samples=500)
    assert result.per_factor == pytest.approx([1.0, 1.0, 1.0], abs=1e-5)
    assert np.diag(result.mutual_information[2::-1]) == pytest.approx(np.log([3, 4, 8]), abs=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_posteriors_equal_to_the_prior_know_nothing_at_all(method: str) -> None:
    nothing = np.zeros((len(FACTORS), 4))
    result = mig_exact(nothing, FACTORS, log_variances=nothing, method=method)
    assert result.mutual_information == pytest.approx(np.zeros((4, 3)), abs=1e-12)
    assert (result.score, result.standard_error) == pytest.approx((0.0, 0.0), abs=1e-12)


def test_every_row_of_both_mixtures_counts() -> None:
    """One far row in a slice of three carries a third of the slice: dropping any row would change the number."""
    codes = np.array([[0.0], [0.0], [50.0], [0.0], [0.0], [0.0]])
    factors = np.array([[0], [0], [0], [1], [1], [1]])
    exact = mig_exact(codes, factors, log_variances=np.zeros((6, 1)), method="quadrature")
    # At 0 lie 5 rows, 2 of them of value 0; at 50 one, of value 0.
    expected = np.log(2) - 5 / 6 * -(0.4 * np.log(0.4) + 0.6 * np.log(0.6))
    assert exact.mutual_information[0, 0] == pytest.approx(expected, abs=1e-9)


def test_draws_never_tell_less_than_nothing() -> None:
    """Two draws a value stray to both sides of the little that noise tells: what falls below 0 is 0."""
    rng = np.random.default_rng(0)
    codes, factors = rng.standard_normal((40, 1)), np.repeat([0, 1], [4, 36])[:, None]
    arguments = {"log_variances": np.zeros((40, 1)), "n_samples": 2}
    found = [mig_exact(codes, factors, seed=seed, **arguments).mutual_information[0, 0] for seed in range(20)]
    assert min(found) == 0.0 < max(found)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_never_tells_more_than_the_factor_holds(seed: int) -> None:
    factors = np.random.default_rng(seed).integers(0, 5, (60, 2))
    sharp = np.full(factors.shape, -20.0)
    result = mig_exact(factors, factors, log_variances=sharp, method="quadrature")
    assert (result.mutual_information <= result.factor_entropy).all()


def test_every_factor_takes_part_and_rows_of_the_matrix_are_codes() -> None:
    rng = np.random.default_rng(0)
    factors = np.stack([rng.integers(0, size, 600) for size in (2, 3, 5, 7)], axis=1)
    codes = np.column_stack([factors[:, [3, 1, 2]], np.zeros(600)])
    result = mig_exact(codes, factors, log_variances=np.full(codes.shape, -8.0), method="quadrature")
    assert result.per_factor[[1, 2, 3]] == pytest.approx([1, 1, 1], abs=0.05)
    assert result.per_factor[0] < 0.05
    assert np.argmax(result.mutual_information, axis=0)[1:].tolist() == [1, 2, 0]
    assert result.score == pytest.approx(result.per_factor.mean())


def test_the_standard_error_is_the_spread_over_seeds() -> None:
    codes, log_variances = entangled_codes(FACTORS), np.linspace(-4, 0, len(FACTORS))[:, None].repeat(3, axis=1)
    exact = mig_exact(codes, FACTORS, log_variances=log_variances, method="quadrature")
    runs = [mig_exact(codes, FACTORS, log_variances=log_variances, seed=s, n_samples=200) for s in range(60)]
    off = np.array([(r.mutual_information - exact.mutual_information) / r.mutual_information_error for r in runs])
    assert np.sqrt((off**2).mean()) == pytest.approx(1.0, abs=0.12)
    assert abs(off.mean()) < 0.15
    scores = np.array([(run.score - exact.score) / run.standard_error for run in runs])
    assert np.sqrt((scores**2).mean()) == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize("method", METHODS)
def test_tables_taken_in_small_pieces_give_the_same_number(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    codes, log_variances = entangled_codes(FACTORS), rng.uniform(-12, 0, FACTORS.shape)
    arguments = {"log_variances": log_variances, "method": method, "n_samples": 300}
    whole = mig_exact(codes, FACTORS, **arguments)
    monkeypatch.setattr(aggregate, "TABLE", 3000)
    pieces = mig_exact(codes, FACTORS, **arguments)
    assert pieces.mutual_information == pytest.approx(whole.mutual_information, abs=1e-9)


def test_many_draws_take_the_values_of_the_factors_in_groups() -> None:
    codes, log_variances = entangled_codes(FACTORS), np.full(FACTORS.shape, -2.0)
    exact = mig_exact(codes, FACTORS, log_variances=log_variances, method="quadrature")
    groups = mig_exact(codes, FACTORS, log_variances=log_variances, method="quadrature", n_samples=500_000)
    assert groups.mutual_information == pytest.approx(exact.mutual_information, abs=1e-12)
    drawn = mig_exact(codes, FACTORS, log_variances=log_variances, n_samples=200_000)
    off = (drawn.mutual_information - exact.mutual_information) / drawn.mutual_information_error
    assert np.abs(off).max() < 4


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("power", [-66, 300])
def test_neither_the_unit_of_a_latent_nor_an_offset_matters(method: str, power: int) -> None:
    codes, log_variances = entangled_codes(FACTORS), np.full(FACTORS.shape, -2.0)
    arguments = {"method": method, "n_samples": 200}
    plain = mig_exact(codes, FACTORS, log_variances=log_variances, **arguments)
    stretched, variances = np.ldexp(codes + 1000.0, power), log_variances + 2 * power * np.log(2)
    found = mig_exact(stretched, FACTORS, log_variances=variances, **arguments)
    assert found.mutual_information == pytest.approx(plain.mutual_information, abs=1e-8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"log_variances": np.zeros((3, 3))}, "log_variances must have the shape of codes"),
        ({"log_variances": np.full(FACTORS.shape, np.nan)}, "log_variances must be finite; row 0, column 0"),
        ({"log_variances": np.full(FACTORS.shape, 800.0)}, "row 0, column 0 is 800"),
    ],
)
def test_unsound_arguments_are_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mig_exact(FACTORS, FACTORS, **({"log_variances": np.zeros(FACTORS.shape)} | arguments))


@pytest.mark.parametrize(
    ("n_samples", "levels", "told"), [(400, 40, True), (800, 40, False), (40, 2, True), (4000, 2, False)]
)
def test_rows_are_few_for_the_levels_of_a_place_and_for_what_noise_tells(
    n_samples: int, levels: int, told: bool
) -> None:
    """Means of variance 1 and posteriors of 1 / 224 tell sqrt(1 + 224) = 15 places: 600 rows for 40 levels each.

    Of two codes that are noise, 2 N times what each tells of two levels is chi-squared with 2 (15 - 1) degrees of
    freedom, of deviation sqrt(56): of 40 rows they lie 1.13 sqrt(56) / 80 = .1 nats apart, of log 2 = .7.
    """
    codes = np.random.default_rng(0).standard_normal((n_samples, 2))
    codes = (codes - codes.mean(axis=0)) / codes.std(axis=0)
    factors = np.arange(n_samples)[:, None] % [2, levels]
    notes = mig_exact(codes, factors, log_variances=np.full(codes.shape, -np.log(224))).notes
    few = f"{n_samples} rows for {levels} levels of posteriors that tell 15 places apart"
    assert any(few in note for note in notes) is told


def test_parts_are_scored_as_if_by_draws() -> None:
    """By quadrature with one normal number for each code and factor: by its mean, spread and error as by 10 000 draws.

    Of posteriors of many widths on part of the rows, whose luck goes with seed and codes.
    """
    rng = np.random.default_rng(5)
    codes, log_variances = entangled_codes(FACTORS), rng.uniform(-5, 0, FACTORS.shape)
    whole, rows = check_inputs(codes, FACTORS, None, 0), rng.permutation(len(FACTORS))[::2]
    own = {"log_variances": log_variances[rows]}
    exact = mig_exact(codes[rows], FACTORS[rows], **own, method="quadrature")
    drawn = mig_exact(codes[rows], FACTORS[rows], **own)

    def scored(seed: int, at: FloatArray = codes) -> Numbers:
        inputs = whole if at is codes else check_inputs(at, FACTORS, None, 0)
        of_part = mig_exact_of_parts(inputs, seed, log_variances=log_variances)
        return of_part(part_of(inputs, None, rows))

    parts = [scored(seed) for seed in range(150)]
    assert parts[0].values["standard_error"] == pytest.approx(drawn.standard_error, rel=0.03)
    off = np.array([part.values["score"] - exact.score for part in parts]) / drawn.standard_error
    assert abs(off.mean()) < 4 / np.sqrt(150)
    assert off.std(ddof=1) == pytest.approx(1.0, abs=0.2)
    assert np.mean([part.per_factor for part in parts], axis=0) == pytest.approx(exact.per_factor, abs=0.002)
    assert scored(0).values["score"] == parts[0].values["score"]
    assert scored(0, 2.0 * codes).values["score"] != parts[0].values["score"]


def test_intervals_read_the_posteriors_of_the_rows_of_each_part() -> None:
    rng = np.random.default_rng(6)
    given = Representation(entangled_codes(FACTORS), FACTORS, log_variances=rng.uniform(-5, 0, FACTORS.shape))
    rows = rng.permutation(len(FACTORS))[::2]
    part = part_scorer(given, {"mig_exact": METRICS["mig_exact"]}, 0, None)(rows, ["mig_exact"])["mig_exact"]
    assert not isinstance(part, Exception)
    plain = mig_exact(given.codes[rows], FACTORS[rows], log_variances=given.log_variances[rows])
    assert part.values["score"] == pytest.approx(plain.score, abs=6 * plain.standard_error)
