"""The choice of a model without labels, by `Ranking.choose`, and how stable it is.

The held-out ELBO is shown but not used for the choice; evidence/benchmarks/selection.py has the comparison.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from unbraid.base.counted import counted
from unbraid.base.types import FloatArray
from unbraid.ranking.choice_stability import Resampled
from unbraid.ranking.ranking import NothingToRank, Ranking
from unbraid.ranking.track_record import CAVEAT, trust
from unbraid.ranking.verdicts import how_sure
from unbraid.runs.run import Run
from unbraid.studies.rank_models import rank

NEIGHBOURS, FOLLOWS, N_JUDGED = 10, 0.8, 2000  # samples, share of variance, samples
FEWEST_DIFFERENT = 5 * NEIGHBOURS  # samples; among fewer, the neighbours are not local


@dataclass(frozen=True)
class Candidate:
    """A model of the last round."""

    run: Run
    setting: str  # family and strength
    elbo: float  # of the hold-out set, nats


@dataclass(frozen=True)
class Choice:
    """The chosen model, or the reason why none was chosen."""

    candidates: tuple[Candidate, ...]
    ranking: Ranking | None  # of those that could be compared
    chosen: Candidate | None
    reason: str  # why nothing was chosen; "" where something was
    sure_of_model: float  # share of the resamples containing the chosen model in which it is chosen
    sure_of_setting: float  # share of all resamples in which a model of the same setting is chosen
    draws: int = 0  # resamples with a good model and at least three models that use a latent
    draws_with_it: int = 0  # of these, resamples that contain the chosen model
    planned: int = 0  # models of the round that it was chosen from; those that are not candidates are unfinished
    unfinished: int = 0  # models of the whole plan that are not trained yet

    @property
    def settings(self) -> list[str]:
        """The distinct settings of the candidates."""
        return list(dict.fromkeys(candidate.setting for candidate in self.candidates))

    @property
    def size(self) -> int | None:
        """Height and width of the candidates' images; None without candidates."""
        return self.candidates[0].run.config["dataset"]["image_shape"][0] if self.candidates else None

    @property
    def study(self) -> str:
        """The name of the folder of the candidates' study; "search" without candidates."""
        return self.candidates[0].run.path.parent.parent.name if self.candidates else "search"

    @property
    def trust(self) -> str:
        """How far the choice can be trusted, in sentences; empty where nothing was chosen."""
        udr = self.udr(self.chosen) if self.chosen else None
        if udr is None:
            return ""
        shares = Resampled(self.sure_of_model, self.sure_of_setting, self.draws, self.draws_with_it)
        sentences = (how_sure(shares, of_setting=len(self.settings) > 1), trust(udr), CAVEAT)
        return " ".join(f"{sentence[0].upper()}{sentence[1:]}." for sentence in sentences)

    def udr(self, candidate: Candidate) -> float | None:
        if self.ranking is None or candidate.run.path.name not in self.ranking.runs:
            return None
        return float(self.ranking.scores[self.ranking.runs.index(candidate.run.path.name)])


def choose(
    candidates: Sequence[Candidate],
    untrained: Sequence[FloatArray],
    seed: int,
    progress: Callable[[int, int], None] | None = None,
) -> Choice:
    """Choose the best model without labels, by the rules of `Ranking.choose`.

    Args:
        candidates: models trained on the same images.
        untrained: codes of the same images by untrained models of the same architecture.
        seed: of the draws.
        progress: called as progress(done, total), in models compared.
    """
    models = tuple(candidates)
    if len(models) < 2:
        return Choice(
            models, None, None, f"{counted(len(models), 'trained model')}; to choose takes two or more", 0.0, 0.0
        )
    try:
        ranking = rank(
            {candidate.run.path.name: candidate.run for candidate in models},
            untrained=list(untrained),
            progress=progress,
        )
    except NothingToRank as error:
        return Choice(models, None, None, str(error), 0.0, 0.0)
    if reason := ranking.why_none():
        return Choice(models, ranking, None, reason, 0.0, 0.0)
    by_name = {candidate.run.path.name: candidate for candidate in models}
    places = [by_name[name] for name in ranking.runs]
    best = ranking.runs.index(str(ranking.best))
    used = places[best].run.codes().codes[:, ranking.latents[best]]
    if len(free_latents(used)) < 2:
        reason = "the latents of the best model follow from one another: a single thing varies in these images"
        return Choice(models, ranking, None, reason, 0.0, 0.0)
    shares = ranking.resampled(settings=[candidate.setting for candidate in places], seed=seed)
    if shares is None:
        return Choice(models, ranking, places[best], "", 0.0, 0.0)
    return Choice(
        models, ranking, places[best], "", shares.model, shares.setting, shares.draws, shares.draws_with_model
    )


def free_latents(codes: FloatArray) -> list[int]:
    """Columns of codes (n_samples, n_codes) that are not determined by columns of larger variance.

    Two latents may lie on one curve, when a single factor of wide range uses both. A latent is determined by others if
    the mean over its `NEIGHBOURS` nearest samples, by those, explains `FOLLOWS` of its variance. Copies of an image,
    which would be its nearest samples, count once, unless there are fewer than `FEWEST_DIFFERENT` different images.
    """
    rows = np.random.default_rng(0).permutation(len(codes))[:N_JUDGED]
    values = codes[rows] / codes[rows].std(axis=0)
    first = np.unique(values.round(4), axis=0, return_index=True)[1]
    if len(first) >= FEWEST_DIFFERENT:
        values = values[np.sort(first)]
        values /= values.std(axis=0)
    free: list[int] = []
    for place in np.argsort(-codes.var(axis=0), kind="stable").tolist():
        if free:
            nearest = np.asarray(KDTree(values[:, free]).query(values[:, free], NEIGHBOURS + 1)[1])[:, 1:]
            if 1 - ((values[nearest, place].mean(axis=1) - values[:, place]) ** 2).mean() >= FOLLOWS:
                continue
        free.append(place)
    return free


def next_step(choice: Choice) -> str:
    """Advice on what to try next, in a sentence; empty if all models are trained and one is chosen."""
    if choice.unfinished:
        models = counted(choice.unfinished, "planned model")
        return f"{models} {'is' if choice.unfinished == 1 else 'are'} not trained yet: the same command continues"
    if choice.chosen is None:
        return "more time (--minutes) or larger images (--size) may help, in a new folder (--out)"
    return ""


def best_settings(choice: Choice) -> list[str]:
    """Settings, that of the highest median UDR first."""
    scores: dict[str, list[float]] = {}
    for candidate in choice.candidates:
        scores.setdefault(candidate.setting, []).append(choice.udr(candidate) or 0.0)
    return sorted(scores, key=lambda name: -float(np.median(scores[name])))
