"""Which of many models to take without labels, and how sure that is: the one that `Ranking.choose` chooses.

Held-out ELBO stands beside it, and has no part in the choice; evidence/benchmarks/selection.py says what was compared.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import KDTree

from unbraid.base.counted import counted
from unbraid.base.types import FloatArray
from unbraid.ranking.ranking import TRACK_RECORD, NothingToRank, Ranking
from unbraid.runs.run import Run
from unbraid.studies.rank_models import rank

NEIGHBOURS, FOLLOWS, N_JUDGED = 10, 0.8, 2000  # samples, share of variance, samples
FEWEST_DIFFERENT = 5 * NEIGHBOURS  # samples; among fewer, so many neighbours say little of where one lies
UNKNOWN = "Too few models were compared to tell how sure the choice is."
CAVEAT = (
    "Models can agree on latents that mix factors, and UDR does not lower the score of a model that found few of them: "
    f"{TRACK_RECORD}."
)


@dataclass(frozen=True)
class Candidate:
    """A model of the last round."""

    run: Run
    setting: str  # family and what varies
    elbo: float  # of images that no model was trained on, nats


@dataclass(frozen=True)
class Choice:
    """What was chosen, or why nothing was."""

    candidates: tuple[Candidate, ...]
    ranking: Ranking | None  # of those that could be compared
    chosen: Candidate | None
    reason: str  # why nothing was chosen; "" where something was
    sure_of_model: float  # share of collections drawn anew in which the same model is chosen, where it is among them
    sure_of_setting: float  # share in which a model of the same setting is
    # Collections that both shares rest on, those of fewer than three models that use a latent or without a good one
    # left out; and of them, those that the chosen model is among.
    draws: int = 0
    draws_with_it: int = 0
    planned: int = 0  # models of the round that it was chosen from; those that are no candidates were not finished
    unfinished: int = 0  # models of the whole plan that the same call would still train

    @property
    def settings(self) -> list[str]:
        """Of the candidates, each once."""
        return list(dict.fromkeys(each.setting for each in self.candidates))

    @property
    def size(self) -> int | None:
        """Height and width of the images that they were trained on; None where there are no candidates."""
        return self.candidates[0].run.config["dataset"]["image_shape"][0] if self.candidates else None

    @property
    def study(self) -> str:
        """The name of the folder of the study that they are of; "search" where there are no candidates."""
        return self.candidates[0].run.path.parent.parent.name if self.candidates else "search"

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
    """The best of some models without labels; `Ranking.choose` says which can be called good at all.

    Args:
        candidates: models trained on the same images.
        untrained: codes of the same images by untrained models of the same architecture.
        seed: of the draws.
        progress: called as progress(done, total), in models compared.
    """
    kept = tuple(candidates)
    if len(kept) < 2:
        return Choice(kept, None, None, f"{counted(len(kept), 'trained model')}; to choose takes two or more", 0.0, 0.0)
    try:
        ranking = rank({each.run.path.name: each.run for each in kept}, untrained=list(untrained), progress=progress)
    except NothingToRank as error:
        return Choice(kept, None, None, str(error), 0.0, 0.0)
    if reason := ranking.why_none():
        return Choice(kept, ranking, None, reason, 0.0, 0.0)
    by_name = {each.run.path.name: each for each in kept}
    places = [by_name[name] for name in ranking.runs]
    best = ranking.runs.index(str(ranking.best))
    used = places[best].run.codes().codes[:, ranking.latents[best]]
    if len(free_latents(used)) < 2:
        reason = "the latents of the best model follow from one another: a single thing varies in these images"
        return Choice(kept, ranking, None, reason, 0.0, 0.0)
    shares = ranking.resampled(settings=[each.setting for each in places], seed=seed)
    if shares is None:
        return Choice(kept, ranking, places[best], "", 0.0, 0.0)
    return Choice(kept, ranking, places[best], "", shares.model, shares.setting, shares.draws, shares.draws_with_model)


def free_latents(codes: FloatArray) -> list[int]:
    """Columns of codes (n_samples, n_codes) that do not follow from those of more variance among them.

    Two latents may draw one curve between them, as when a single factor of wide range takes both. A latent follows from
    others where the mean of its `NEIGHBOURS` nearest samples by these explains `FOLLOWS` of its variance. Copies of an
    image, which would be its nearest, count once, unless so few are different that which one it is is a single thing.
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
    """What may give another choice, in a sentence; empty where all is trained and one is chosen."""
    if choice.unfinished:
        models = counted(choice.unfinished, "planned model")
        return f"{models} {'is' if choice.unfinished == 1 else 'are'} not trained yet: the same command continues"
    if choice.chosen is None:
        return "more time (--minutes) or larger images (--size) may help, in a new folder (--out)"
    return ""


def best_settings(choice: Choice) -> list[str]:
    """Settings, that of the highest median UDR first."""
    scores: dict[str, list[float]] = {}
    for each in choice.candidates:
        scores.setdefault(each.setting, []).append(choice.udr(each) or 0.0)
    return sorted(scores, key=lambda name: -float(np.median(scores[name])))
