"""Whether UDR suits a family of models: if seeds make no difference, their agreement says nothing."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.types import ArrayLike, DataFrame, FloatArray
from unbraid.ranking.ranking import Ranking

__all__ = ["Suitability", "probabilities", "suitability"]

PUBLISHED = 0.807  # `across_seed_win_rate` of the VAEs for which UDR was shown to work
SHUFFLES = 200


@dataclass(frozen=True)
class Suitability:
    """How much hyperparameters, rather than seeds, determine how well a family disentangles."""

    family: str
    metric: str
    within_seed_win_rate: float | None  # probability in [0, 1]
    across_seed_win_rate: float | None  # probability in [0, 1]
    n_settings: int
    n_seeds: int
    likeness: float | None  # least similarity of an informative latent to its match, over seeds of one setting
    within_seed_luck: float | None = None  # the same two where neither settings nor seeds matter
    across_seed_luck: float | None = None
    warning: str = ""
    reason: str = ""  # why the probabilities are missing


def probabilities(
    scores: ArrayLike, settings: Sequence[Hashable], seeds: Sequence[Hashable], *, higher_is_better: bool = True
) -> tuple[float, float]:
    """Probabilities that a model chosen within one seed is at least as good as a random model.

    Args:
        scores: (n_models,) of a supervised metric.
        settings: hyperparameters of each model.
        seeds: seed of each model; each (setting, seed) occurs once.
        higher_is_better: of the metric.

    Returns:
        `within_seed_win_rate`: how often the best model of a random seed is at least as good as a random model of the
        search. With n settings that do not matter it is about n / (n + 1); see `by_luck`.
        `across_seed_win_rate`: how often the setting that is best under a random seed gives, under another random seed,
        a model at least as good as that of a random setting. With n settings that do not matter, (n + 1) / 2n.
        Both are 1 for a method such as PCA, whose seeds do not matter. They are exact, over all choices.

    Raises:
        ValueError: fewer than two settings or seeds, or a seed of which no setting has another.

    Reference:
        Duan et al. 2020 (UDR), "UDR assumptions and limitations", 1, in words: `within_seed_win_rate`. The measure they
        take it from, Locatello et al. 2019, section 5.4, compares on another seed: `across_seed_win_rate`; the 80.7 %
        are its.
    """
    values = np.asarray(scores, dtype=float) * (1 if higher_is_better else -1)
    grid = _grid(values, list(settings), list(seeds))
    best = np.nanargmax(grid, axis=0)
    chosen = grid[best, np.arange(grid.shape[1])]
    within_seed_win_rate = float(np.mean([(values <= value).mean() for value in chosen]))
    outcomes = []
    for seed, setting in enumerate(best):
        for other in range(grid.shape[1]):
            if other != seed and np.isfinite(grid[setting, other]):
                column = grid[:, other]
                outcomes.append((column[np.isfinite(column)] <= grid[setting, other]).mean())
    if not outcomes:
        raise ValueError("no setting that is best under one seed was run under another")
    return within_seed_win_rate, float(np.mean(outcomes))


def by_luck(
    scores: ArrayLike, settings: Sequence[Hashable], seeds: Sequence[Hashable], *, higher_is_better: bool = True
) -> tuple[float, float]:
    """Expected values of `probabilities` if neither settings nor seeds matter.

    Args:
        scores, settings, seeds, higher_is_better: as for `probabilities`.

    Returns:
        The mean of `within_seed_win_rate` over scores shuffled among all models (200 times), and that of
        `across_seed_win_rate` over scores shuffled among the settings of each seed, in closed form: of n distinct
        scores, a random one is at least as good as another random one in (n + 1) / 2n of cases.
    """
    values = np.asarray(scores, dtype=float) * (1 if higher_is_better else -1)
    grid = _grid(values, list(settings), list(seeds))
    present, ordered = np.isfinite(grid), np.sort(values)
    rng, within = np.random.default_rng(0), []
    for _ in range(SHUFFLES):
        shuffled = np.full(grid.shape, -np.inf)
        shuffled[present] = rng.permutation(values)
        within.append(np.searchsorted(ordered, shuffled.max(axis=0), side="right").mean() / len(values))
    columns = [column[np.isfinite(column)] for column in grid.T]
    across = np.mean([(column[:, None] >= column).mean() for column in columns])
    return float(np.mean(within)), float(across)


def suitability(
    frame: DataFrame, ranking: Ranking | None, metric: str, *, higher_is_better: bool = True
) -> list[Suitability]:
    """The check for each family of a study.

    Args:
        frame: the results of a study, one row per run: run, family, setting, seed and the column `metric`.
        ranking: to check whether seeds of a setting give the same codes; None: not checked.
        metric: column of a supervised metric.
        higher_is_better: of that metric.

    Returns:
        One Suitability per family, with a warning if UDR should not be trusted: every seed gives the same codes, or
        seeds make no difference to the metric.
    """
    checked = []
    for family, rows in frame.groupby("family", sort=True):
        likeness = None if ranking is None else ranking.likeness(str(family))
        within_seed_win_rate = across_seed_win_rate = within_seed_luck = across_seed_luck = None
        reason = "" if metric in rows else f"there are no scores by {metric}"
        known = rows.loc[rows[metric].notna()] if not reason else rows.iloc[:0]
        if not reason:
            try:
                grid = known[metric], known["setting"], known["seed"]
                within_seed_win_rate, across_seed_win_rate = probabilities(*grid, higher_is_better=higher_is_better)
                within_seed_luck, across_seed_luck = by_luck(*grid, higher_is_better=higher_is_better)
            except ValueError as error:
                reason = str(error)
        checked.append(
            Suitability(
                str(family), metric, within_seed_win_rate, across_seed_win_rate,
                known["setting"].nunique(), known["seed"].nunique(), likeness, within_seed_luck, across_seed_luck,
                warning=_doubt(ranking, str(family)) or _warning(str(family), metric, within_seed_win_rate),
                reason=reason,
            )
        )  # fmt: skip
    return checked


def _grid(values: FloatArray, settings: list[Hashable], seeds: list[Hashable]) -> FloatArray:
    """(n_settings, n_seeds) scores, NaN without a model."""
    rows, columns = list(dict.fromkeys(settings)), list(dict.fromkeys(seeds))
    if len(rows) < 2 or len(columns) < 2:
        raise ValueError(f"needs two settings and two seeds; there are {len(rows)} and {len(columns)}")
    grid = np.full((len(rows), len(columns)), np.nan)
    for value, setting, seed in zip(values, settings, seeds, strict=True):
        place = rows.index(setting), columns.index(seed)
        if np.isfinite(grid[place]):
            raise ValueError(f"two models have the setting {setting!r} and the seed {seed!r}")
        grid[place] = value
    return grid


def _doubt(ranking: Ranking | None, family: str) -> str:
    """A warning if the ranking doubts most runs of a family; empty otherwise."""
    if ranking is None:
        return ""
    own = {run for run, of in zip(ranking.runs, ranking.families, strict=True) if of == family}
    doubted = len(own & {*ranking.doubted})
    if 2 * doubted <= len(own):
        return ""
    return f"a note questions the scores of {doubted} of {len(own)} runs of {family}"


def _warning(family: str, metric: str, within_seed_win_rate: float | None) -> str:
    if within_seed_win_rate == 1:
        return (
            f"whatever the seed, the best {family} is as good by {metric} as any other, as with PCA: seeds make no "
            "difference, so that their agreement, which is all that UDR sees, says nothing"
        )
    return ""
