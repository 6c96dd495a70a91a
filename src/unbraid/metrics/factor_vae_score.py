"""FactorVAE score: the code that varies least names the factor that was held fixed."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from unbraid.base.arguments import check_choice, check_draws, check_number, check_whole
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, FloatArray, IntArray, Kind
from unbraid.metrics._shared.chance import drawn, even_guess, unreadable
from unbraid.metrics._shared.flags import single_code, single_factor
from unbraid.metrics._shared.inputs import Levels, as_levels, check_inputs
from unbraid.metrics._shared.interventions import (
    Groups,
    counts_of_levels,
    draw_batches,
    training_and_test_groups,
    votes_of_least,
)
from unbraid.metrics._shared.metric import FEW_UNCHECKED_HALVES, Metric

PER_ROW = 2  # numbers: one that is drawn, and the row
REMEMBERED = 0.03  # share of a batch's straying that is the level's own, up to which noise scores within .06 of chance
SHUFFLES, VOTES, ABOVE = 4, 3000, 0.06  # where it is more: what tells whether noise scores higher


@dataclass(frozen=True, eq=False, repr=False)
class FactorVAEScore(Shown):
    score: float  # accuracy on test votes
    train_accuracy: float
    per_factor: FloatArray  # (n_factors,) accuracy on the test votes whose fixed factor this is
    votes: FloatArray  # (n_codes, n_factors) training votes; codes that vary equally little share one
    code_factor: IntArray  # (n_codes,) factor that each code stands for; -1 where it was dropped or got no vote
    variances: FloatArray  # (n_codes,)
    notes: tuple[str, ...] = ()


def factor_vae_score(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
    batch_size: int = 64,
    n_train: int = 10_000,
    n_test: int = 5_000,
    variance_threshold: float = 0.05,
    separate_rows: bool = False,
    variant: Literal["unbraid", "disentanglement_lib"] = "unbraid",
) -> FactorVAEScore:
    """Accuracy of a majority vote that predicts the fixed factor from the code of least normalised variance.

    Each vote draws `batch_size` rows that share one level of one factor; the code whose variance among them, over its
    variance among all rows, is least gets one vote for that factor. Each code then stands for the factor that it
    got most training votes for, and the score is the share of test votes that agree.

    Args:
        codes: (n_samples, n_codes) real. Posterior means unless stated otherwise.
        factors: (n_samples, n_factors) levels; continuous factors are cut into 20 bins of equal width.
        kinds: kind of each factor; see `unbraid.metrics`.
        seed: of the draw of batches.
        groups: (n_samples,) group of each row (trial, animal, video or session). They turn `separate_rows` on, and no
            group is in both halves.
        batch_size: rows per vote, at least 2.
        n_train: votes that decide what each code stands for; at most 50 million rows in all of them.
        n_test: votes that are scored, likewise.
        variance_threshold: codes of less variance are dropped; constant codes always are.
        separate_rows: draw the votes that are scored from one half of the rows and those that decide from the other.
            False draws both from all, as published, where the rows were the whole data set.
        variant: "disentanglement_lib", on which most published tables rest, holds the *standard deviation* against
            the threshold, which then is a variance of 0.0025, and gives a tied vote to the first code and the first
            factor.

    Returns:
        FactorVAEScore. `score` in [0, 1], higher is better; 0, with a note, when every code is dropped. Codes that vary
        equally little share the vote, and so do factors with equally many votes for a code. Chance: 1 / n_factors, but
        more where levels have few rows, which are drawn again and again: noise on 3 factors of up to 5 levels scores
        .41 with 50 codes on 1 000 rows, and .6 where classes are skewed. A note says what these codes score when they
        are shuffled, where that is more than .06 above, and `separate_rows=True` brings it to chance. With a single
        code it is the share of one factor. Scale matters only where codes fall below the threshold. It saturates: a
        code that stands for two factors is punished, one that mixes in a little of the others is not.

    Raises:
        ValueError: what every metric refuses, a count is out of range, or the threshold is negative.
        NotDefined: no level of some factor has two rows.

    Reference:
        Kim & Mnih 2018, section 4; as in Duan et al. 2020 (UDR), supplement, "Supervised metric implementation
        details" (variance below 0.05 dropped, 10 000 and 5 000 votes).
        Differs: rows are drawn by index (level uniform, then rows of that level), so the other factors vary as they
        do among the rows given; variances over all rows, not over 10 000 drawn ones.

    Example:
        >>> grid = np.tile(FactorSpace(("a", "b"), (3, 4), ("ordinal", "ordinal")).grid(), (20, 1))
        >>> factor_vae_score(grid, grid).score
        1.0
    """
    inputs = check_inputs(codes, factors, kinds, seed, groups=groups)
    check_whole("batch_size", batch_size, 2)
    check_draws(PER_ROW, n_train=n_train, batch_size=batch_size)
    check_draws(PER_ROW, n_test=n_test, batch_size=batch_size)
    check_number("variance_threshold", variance_threshold, least=0)
    check_choice("variant", variant, ("unbraid", "disentanglement_lib"))
    first_wins = variant == "disentanglement_lib"
    least = variance_threshold**2 if first_wins else variance_threshold
    levels = as_levels(inputs)
    separate_rows = separate_rows or inputs.groups is not None
    decide, judge = training_and_test_groups(levels, seed, separate_rows, inputs.groups)
    n_codes, n_factors = inputs.n_codes, inputs.n_factors
    deviations = inputs.codes.std(axis=0, ddof=1)
    variances = deviations**2
    # A column that is constant up to rounding would win every vote by 0 / 0.
    moving = deviations > 1e-12 * np.abs(inputs.codes).max(axis=0)
    active = np.flatnonzero(moving & (variances >= least))
    votes = np.zeros((n_codes, n_factors))
    code_factor = np.full(n_codes, -1)
    if len(active) == 0:
        note = f"every code has variance below {least:g}: no code is active, so the score is 0"
        return FactorVAEScore(0.0, 0.0, np.zeros(n_factors), votes, code_factor, variances, (*decide.notes, note))
    normalised = np.ascontiguousarray(inputs.codes[:, active] / deviations[active])
    rng = np.random.default_rng(seed)
    votes[active] = _votes(normalised, decide, n_train, batch_size, rng, first_wins)
    test_votes = np.zeros_like(votes)
    test_votes[active] = _votes(normalised, judge, n_test, batch_size, rng, first_wins)
    # A share of a vote is no exact number: what differs by less than a thousandth of a vote is equal.
    stands_for = votes >= votes.max(axis=1, keepdims=True) - 1e-3
    if first_wins:
        stands_for &= stands_for.cumsum(axis=1) == 1
    right = test_votes * stands_for / stands_for.sum(axis=1, keepdims=True)
    code_factor = np.where(votes.any(axis=1), votes.argmax(axis=1), -1)
    dropped = n_codes - len(active)
    notes = [f"{dropped} of {n_codes} codes have variance below {least:g} and are dropped"][: dropped > 0]
    notes += single_code(inputs, "it stands for one factor, and the score is about 1 / n_factors")
    notes += single_factor(inputs, "there is no other to choose, and the score is 1")
    score = float(right.sum() / n_test)
    if not separate_rows and n_factors > 1 and _remembered(levels, batch_size) > REMEMBERED:
        notes += _notes_on_rows(score, normalised, decide, batch_size, rng)
    return FactorVAEScore(
        score=score,
        train_accuracy=float(votes.max(axis=1).sum() / n_train),
        per_factor=right.sum(axis=0) / np.maximum(test_votes.sum(axis=0), 1),
        votes=votes,
        code_factor=code_factor,
        variances=variances,
        notes=(*decide.notes, *notes),
    )


def _votes(
    normalised: FloatArray,
    groups: Groups,
    n_points: int,
    batch_size: int,
    rng: np.random.Generator,
    first_wins: bool = False,
) -> FloatArray:
    """(n_codes, n_factors) how often each code varied least while each factor was held fixed."""
    batches, fixed = draw_batches(groups, n_points, batch_size, rng)
    return votes_of_least(normalised, batches, fixed, len(groups.first) - 1, first_wins)


def _remembered(levels: Levels, batch_size: int) -> float:
    """How much of the straying of a batch's variance is that of the rows of its level, the most of all factors.

    The square of that straying, averaged over a factor's levels, over that of the variance of a batch.
    """
    return max(float(batch_size * np.mean(1 / counts) / len(counts)) for counts in counts_of_levels(levels))


def _notes_on_rows(
    score: float, normalised: FloatArray, groups: Groups, batch_size: int, rng: np.random.Generator
) -> tuple[str, ...]:
    """What the same codes score with their rows shuffled, where they tell levels by their few rows; else nothing."""
    scores = []
    for _ in range(SHUFFLES):
        shuffled = rng.permuted(normalised, axis=0)
        learnt, judged = (_votes(shuffled, groups, VOTES, batch_size, rng) for _ in range(2))
        scores.append(judged[np.arange(len(learnt)), learnt.argmax(axis=1)].sum() / VOTES)
    guess, noise = 1 / (len(groups.first) - 1), drawn(scores)
    if noise.score + 2 * noise.spread <= guess + ABOVE:
        return ()
    note = (
        f"the same codes, shuffled, score {noise.score:.2f} ± {noise.spread:.2f} where a guess has {guess:.2f}, since "
        "levels have few rows; separate_rows=True scores other rows"
    )
    return (note if score > noise.score + max(4 * noise.spread, ABOVE) else unreadable(note),)


METRIC = Metric(
    factor_vae_score,
    title="FactorVAE score",
    question="one_factor",
    claims={"score": ("modularity",)},
    chance=even_guess,
    noise_tolerance=0.06,
    summary="How often the code that varies least identifies the factor that was held fixed.",
    limitations="Saturates: a rotated code can score 1. Codes with a variance below 0.05 are ignored.",
    source="Kim & Mnih 2018; Duan et al. 2020 (UDR), supplement",
    version=2,
    stochastic=True,
    invariant_to=frozenset({"permute", "flip", "dead"}),
    aligned=False,
    interval=FEW_UNCHECKED_HALVES,
    cites=("kim2018disentangling", "duan2020unsupervised"),
    formula=(
        r"\mathrm{score} = P\left( \hat{y}(j) = y \right), \qquad "
        r"j = \arg\min_j \frac{\mathrm{Var}(z_j | v_y = v)}{\mathrm{Var}(z_j)}",
        r"Each vote draws 64 rows with one level $v$ of one factor $y$; $\hat{y}(j)$ is the factor for which code "
        r"$j$ was chosen most often in 10 000 votes.",
    ),
)
