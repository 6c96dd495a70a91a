"""FactorVAE score: the code that varies least names the factor that was held fixed."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid._arguments import check_draws, check_number, check_whole
from unbraid._shown import Shown
from unbraid.metrics._inputs import as_levels, check_inputs
from unbraid.metrics._interventions import Groups, draw_batches, group_rows, least_variances
from unbraid.types import ArrayLike, FloatArray, IntArray, Kind

PER_ROW = 2  # numbers: one that is drawn, and the row


@dataclass(frozen=True, eq=False, repr=False)
class FactorVAEScore(Shown):
    score: float  # accuracy on test votes
    train_accuracy: float
    per_factor: FloatArray  # (n_factors,) accuracy on the test votes whose fixed factor this is
    votes: IntArray  # (n_codes, n_factors) training votes
    code_factor: IntArray  # (n_codes,) factor that each code stands for; -1 where it was dropped or got no vote
    variances: FloatArray  # (n_codes,)
    notes: tuple[str, ...] = ()


def factor_vae_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    batch_size: int = 64,
    n_train: int = 10_000,
    n_test: int = 5_000,
    variance_threshold: float = 0.05,
) -> FactorVAEScore:
    """Accuracy of a majority vote that names the fixed factor from the code of least normalised variance.

    Each vote draws `batch_size` rows that share one level of one factor; the code whose variance among them, over its
    variance among all rows, is least gets one vote for that factor. Each code then stands for the factor that it
    got most training votes for, and the score is the share of test votes that agree.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the draw of batches.
        batch_size: rows per vote, at least 2.
        n_train: votes that decide what each code stands for; at most 50 million rows in all of them.
        n_test: votes that are scored, likewise.
        variance_threshold: codes of less variance are dropped; constant codes always are.

    Returns:
        FactorVAEScore. `score` in [0, 1], higher is better; 0, with a note, when every code is dropped. Chance: a
        little above 1 / n_factors, the share of the commonest factor. The threshold is absolute, so that scaling
        codes down until they fall below it changes the score; above it, scale does not matter. It saturates: a code
        that stands for two factors is punished, one that mixes in a little of the others is not.

    Raises:
        ValueError: shapes disagree, values not finite, a factor is constant or has one sample per value, a count is
            out of range, or the threshold is negative.
        NotDefined: no level of some factor has two rows.

    Reference:
        Kim & Mnih 2018, section 4; as in Duan et al. 2020 (UDR), supplement, "Supervised metric implementation
        details" (variance below 0.05 dropped, 10 000 and 5 000 votes). disentanglement_lib, on which most published
        tables rest, compares the *standard deviation* with 0.05: `variance_threshold=0.0025`.
        Differs: rows are drawn by index (level uniform, then rows of that level), so the other factors vary as they
        do among the rows given; variances over all rows, not over 10 000 drawn ones.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (3, 4), ("ordinal", "ordinal")).grid(), (20, 1))
        >>> factor_vae_score(grid, grid).score
        1.0
    """
    inputs = check_inputs(codes, factors, kinds, seed)
    check_whole("batch_size", batch_size, 2)
    check_draws(PER_ROW, n_train=n_train, batch_size=batch_size)
    check_draws(PER_ROW, n_test=n_test, batch_size=batch_size)
    check_number("variance_threshold", variance_threshold, least=0)
    groups = group_rows(as_levels(inputs))
    n_codes, n_factors = inputs.n_codes, inputs.n_factors
    variances = inputs.codes.var(axis=0, ddof=1)
    # A column that is constant up to rounding would win every vote by 0 / 0.
    moving = np.sqrt(variances) > 1e-12 * np.abs(inputs.codes).max(axis=0)
    active = np.flatnonzero(moving & (variances >= variance_threshold))
    votes = np.zeros((n_codes, n_factors), dtype=np.int64)
    code_factor = np.full(n_codes, -1)
    if len(active) == 0:
        note = f"every code has variance below {variance_threshold:g}: nothing votes, and the score is 0"
        return FactorVAEScore(0.0, 0.0, np.zeros(n_factors), votes, code_factor, variances, (*groups.notes, note))
    normalised = np.ascontiguousarray(inputs.codes[:, active] / np.sqrt(variances[active]))
    rng = np.random.default_rng(seed)
    votes[active] = _votes(normalised, groups, n_train, batch_size, rng)
    test_votes = np.zeros_like(votes)
    test_votes[active] = _votes(normalised, groups, n_test, batch_size, rng)
    majority = votes.argmax(axis=1)
    right = test_votes[np.arange(n_codes), majority]
    code_factor = np.where(votes.any(axis=1), majority, -1)
    dropped = n_codes - len(active)
    notes = (f"{dropped} of {n_codes} codes have variance below {variance_threshold:g} and are dropped",)
    return FactorVAEScore(
        score=float(right.sum() / n_test),
        train_accuracy=float(votes.max(axis=1).sum() / n_train),
        per_factor=np.bincount(majority, weights=right, minlength=n_factors) / np.maximum(test_votes.sum(axis=0), 1),
        votes=votes,
        code_factor=code_factor,
        variances=variances,
        notes=groups.notes + (notes if dropped else ()),
    )


def _votes(
    normalised: FloatArray, groups: Groups, n_points: int, batch_size: int, rng: np.random.Generator
) -> IntArray:
    """(n_codes, n_factors) how often each code varied least while each factor was held fixed."""
    batches, fixed = draw_batches(groups, n_points, batch_size, rng)
    least = least_variances(normalised, batches)
    votes = np.zeros((normalised.shape[1], len(groups.first) - 1), dtype=np.int64)
    np.add.at(votes, (least, fixed), 1)
    return votes
