"""The ranking of models by their codes alone (UDR), and the choice of the best."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress
from typing import Any, Literal, get_args

import numpy as np

from unbraid.base.errors import UnbraidError
from unbraid.base.natural_order import natural
from unbraid.base.repr import Shown
from unbraid.base.types import BoolArray, DataFrame, FloatArray, IntArray
from unbraid.metrics.udr import Pairs, Similarity
from unbraid.ranking.choice_stability import Resampled, resample

__all__ = ["Choice", "NothingToRank", "Ranking", "RankingOptions"]

Compare = Literal["same-hyperparameters", "same-family", "all"]
Informative = Literal["signal", "kl"]

FEWEST_RESAMPLED = 4  # models; with three, all samples that count are the same


class NothingToRank(UnbraidError, ValueError):
    """No two models can be compared."""


@dataclass(frozen=True)
class RankingOptions:
    """How models are compared; the arguments are those of `unbraid.metrics.udr`.

    `informative`: which latents count. "signal": those that tell of their sample, 1/2 log(1 + Var mu / E sigma^2) above
    `kl_threshold`; "kl": those whose mean KL from the prior is above it, as in the paper, where a constant offset or a
    variance that nobody uses counts as information, and models that learnt nothing may be ranked best.
    `alpha`: .1, as the authors' code; "cv" as the paper, where latents of models that learnt nothing get weights of 10
    and more. `docs/ranking.md` says what was measured.
    `compare`: "all" compares every two models, across families; "same-family" those of a family, the paper's UDR-A2A.
    By both, models without an informative latent score 0 and are nothing that others are compared with.
    "same-hyperparameters" the seeds of one setting, the paper's UDR, which tells good settings less well.
    """

    similarity: Similarity = "lasso"
    compare: Compare = "all"
    n_comparisons: int | None = None
    alpha: Literal["cv"] | float = 0.1
    kl_threshold: float = 0.01
    aggregate: Literal["paper", "dlib"] = "paper"
    seed: int = 0
    informative: Informative = "signal"

    def __post_init__(self) -> None:
        if self.informative not in get_args(Informative):
            raise ValueError(f"informative must be one of {', '.join(get_args(Informative))}; got {self.informative!r}")
        if self.compare not in get_args(Compare):
            raise ValueError(f"compare must be one of {', '.join(get_args(Compare))}; got {self.compare!r}")

    def group(self, family: str, setting: str) -> tuple[str, ...]:
        return {"same-hyperparameters": (family, setting), "same-family": (family,), "all": ()}[self.compare]


@dataclass(frozen=True)
class Choice:
    """The choice of a ranking: a setting, to train more seeds of, and a run, which may have another setting."""

    family: str
    setting: str
    median: float  # score of all ranked runs of the setting, as `Ranking.per_setting` has it
    run: str
    score: float  # of this run


@dataclass(frozen=True, eq=False, repr=False)
class Ranking(Shown):
    """UDR of the runs that could be compared, in their order, and why others could not."""

    runs: tuple[str, ...]
    families: tuple[str, ...]
    settings: tuple[str, ...]
    scores: FloatArray  # (n_runs,)
    latents: tuple[IntArray, ...]  # of each run, the indices of its informative latents
    pairs: FloatArray  # (n_runs, n_runs) UDR_ij, NaN where not compared
    matrices: Mapping[tuple[int, int], FloatArray]  # R of pairs compared, all or those within settings (`MATRICES`)
    left_out: Mapping[str, str]  # run -> reason
    options: RankingOptions
    notes: tuple[str, ...] = ()
    doubted: tuple[str, ...] = ()  # runs whose scores a note doubts; none of them is `best`
    known_pairs: Pairs | None = None  # results for all pairs, reused when further models are ranked
    digests: tuple[str, ...] = ()  # of the codes of each run
    silent: tuple[str, ...] = ()  # runs whose latents together have less than one bit of information on their sample
    untrained: float | None = None  # highest score of untrained models among each other; None if none were given
    # Of the first run of each family that could be best: its score on some samples, and the highest of `rotated_udr`.
    rotated: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    # (n_runs, n_runs) least similarity of a code to its match, of codes too many for `matrices`; NaN where not compared
    least: FloatArray | None = None

    @property
    def informative(self) -> IntArray:
        """(n_runs,) number of informative latents."""
        return np.array([len(latents) for latents in self.latents])

    @property
    def best_first(self) -> list[int]:
        """Indices of the runs, the best first; ties in their order."""
        return np.argsort(-self.scores, kind="stable").tolist()

    @property
    def learnt(self) -> BoolArray:
        """(n_runs,) whether a run has an informative latent, and at least one bit of information in all its latents."""
        silent = np.isin(self.runs, self.silent)
        return (self.informative > 0) & ~silent

    @property
    def best(self) -> str | None:
        """The run that `choose` chooses; None if it chooses none, and `why_none` says why."""
        chosen = self.choose()
        return None if chosen is None else chosen.run

    @property
    def doubted_families(self) -> tuple[str, ...]:
        """Families whose runs are all in `doubted`."""
        sound = {self.families[at] for at, run in enumerate(self.runs) if run not in self.doubted}
        return tuple(sorted({*self.families} - sound))

    def not_best(self) -> list[str]:
        """The runs that `choose` excludes."""
        sound = self._sound()
        good = set() if isinstance(sound, str) else {self.runs[at] for at in sound}
        return [run for run in self.runs if run not in good]

    def likeness(self, family: str) -> float | None:
        """Similarity of seeds of one setting in a family: the least similarity of an informative latent to its match.

        1 if any two seeds have the same latents up to order and sign; None if no two were compared.
        """
        keys = list(zip(self.families, self.settings, strict=True))
        # A fixed penalty alpha shrinks the weight of a perfect match to 1 - alpha.
        alpha = self.options.alpha
        perfect = 1.0 if self.options.similarity == "spearman" or alpha == "cv" else 1.0 - float(alpha)
        if self.least is not None:
            own = np.array([key[0] == family for key in keys])
            same_setting = np.array([[one == other for other in keys] for one in keys])
            known = self.least[same_setting & own & np.isfinite(self.least)]
            return float(known.min()) if known.size else None
        within = [
            min(matrix.max(axis=1).min(), matrix.max(axis=0).min()) / perfect if matrix.size and perfect > 0 else 0.0
            for (i, j), matrix in self.matrices.items()
            if keys[i] == keys[j] and self.families[i] == family
        ]
        return float(min(within)) if within else None

    def choose(self, without: Container[str] = ()) -> Choice | None:
        """The setting of the highest median, and the run of the highest score, of those that can be called good.

        Such a run has learnt, as has more than half of its setting; no note doubts it; it has two informative latents
        or more; it scores above untrained models, where these are known; and the latents of the first such run of its
        family match those of other models better than those of the best of randomly rotated models do, which is not
        asked of codes compared by `top`. `docs/ranking.md` says what was measured, and of other ways to choose.

        Args:
            without: families to leave out.

        Returns:
            Choice. None where there is no such run; `why_none` says why.
        """
        decided = self._decided(without)
        return decided if isinstance(decided, Choice) else None

    def resampled(
        self, without: Container[str] = (), settings: Sequence[str] | None = None, seed: int = 0
    ) -> Resampled | None:
        """How often the same model is chosen when the models of each setting are resampled with replacement.

        Args:
            without: families to leave out.
            settings: a label for each run; default its family and setting.
            seed: of the draws.

        Returns:
            Resampled. None where no model is chosen, where fewer than four were compared, or where models are compared
            within their settings only.
        """
        sound = self._sound(without)
        compared = (self.informative > 0) & np.array([family not in without for family in self.families])
        few = compared.sum() < FEWEST_RESAMPLED or self.options.compare == "same-hyperparameters"
        if isinstance(sound, str) or few:
            return None
        keys = settings or ["\n".join(self._key(at)) for at in range(len(self.runs))]
        is_sound = np.isin(np.arange(len(self.runs)), sound)
        return resample(self.pairs, compared, is_sound, np.array(keys), sound[0], seed)

    def why_none(self, without: Container[str] = ()) -> str:
        """Why `choose` chooses none, in one line; empty if it chooses one."""
        decided = self._decided(without)
        return "" if isinstance(decided, Choice) else decided

    def _decided(self, without: Container[str]) -> Choice | str:
        sound = self._sound(without)
        if isinstance(sound, str):
            return sound
        medians = {self._key(at): self._median(self._key(at)) for at in sound}
        family, setting = max(medians, key=lambda key: medians[key])
        return Choice(family, setting, medians[family, setting], self.runs[sound[0]], float(self.scores[sound[0]]))

    def _sound(self, without: Container[str] = ()) -> list[int] | str:
        """Indices of the runs that can be called good, the best first; or why there are none."""
        candidates = self._candidates(without)
        if isinstance(candidates, str):
            return candidates
        reached = {run for run, (score, bound) in self.rotated.items() if score <= bound}
        rotated_families = {self.families[at]: at for at in candidates if self.runs[at] in reached}
        sound = [at for at in candidates if self.families[at] not in rotated_families]
        if sound:
            return sound
        first = min(rotated_families.values(), key=candidates.index)
        return (
            f"the latents of {self.runs[first]}, the first that could be best, match those of other models no better "
            "than randomly rotated latents do: these models do not find the same axes, as is the case of untrained, "
            "hardly trained and entangled ones"
        )

    def _candidates(self, without: Container[str] = ()) -> list[int] | str:
        """Indices of the runs that can be called good before the test in `rotated`, the best first; or why none can."""
        included = np.array([family not in without for family in self.families])
        learnt, n_runs = self.learnt & included, int(included.sum())
        if not learnt.any():
            return (
                f"none of {n_runs} models has learnt anything: the latents of each have less than one bit of "
                "information on a sample"
            )
        own: dict[tuple[str, str], list[bool]] = {}
        for at, has_learnt in zip(np.flatnonzero(included).tolist(), learnt[included], strict=True):
            own.setdefault(self._key(at), []).append(bool(has_learnt))
        settled = {key for key, has_learnt in own.items() if 2 * sum(has_learnt) > len(has_learnt)}
        if not settled:
            within = "" if len(own) == 1 else ", in each setting half or more"
            return f"{n_runs - int(learnt.sum())} of {n_runs} models have learnt nothing{within}"
        sound = [
            at
            for at in self.best_first
            if learnt[at] and self._key(at) in settled and self.runs[at] not in self.doubted
        ]
        if not sound:
            ending = "; the others have learnt nothing" if not learnt[included].all() else ""
            return f"notes question the scores of each model that has learnt{ending}"
        sound = [at for at in sound if len(self.latents[at]) > 1]
        if not sound:
            return "no model has two informative latents, and a single one is never entangled with another"
        if self.untrained is not None:
            sound = [at for at in sound if self.scores[at] > self.untrained]
            if not sound:
                return f"no model scores above untrained ones among each other ({self.untrained:.3f})"
        return sound

    def _key(self, at: int) -> tuple[str, str]:
        return self.families[at], self.settings[at]

    def _median(self, key: tuple[str, str]) -> float:
        return float(np.median([score for at, score in enumerate(self.scores) if self._key(at) == key]))

    def best_by_informative(self) -> dict[int, str]:
        """The best run for each number of informative latents: UDR favours models that learn few factors.

        Of the runs that `choose` chooses among; empty where there is none.
        """
        best: dict[int, str] = {}
        sound = self._sound()
        for place in [] if isinstance(sound, str) else sound:
            best.setdefault(len(self.latents[place]), self.runs[place])
        return dict(sorted(best.items()))

    def to_frame(self) -> DataFrame:
        """A pandas DataFrame, the best first: rank, run, family, setting, udr.score, udr.informative."""
        import pandas

        best_first = self.best_first
        return pandas.DataFrame(
            {
                "rank": range(1, len(best_first) + 1),
                "run": [self.runs[place] for place in best_first],
                "family": [self.families[place] for place in best_first],
                "setting": [self.settings[place] for place in best_first],
                "udr.score": self.scores[best_first],
                "udr.informative": self.informative[best_first],
            }
        )

    def per_setting(self) -> DataFrame:
        """A pandas DataFrame, one row per setting: family, setting, runs, median, lowest, highest.

        The median over seeds is what the paper chooses a setting by.
        """
        import pandas

        keys = list(zip(self.families, self.settings, strict=True))
        rows = []
        for family, setting in sorted(set(keys), key=lambda key: (key[0], natural(key[1]))):
            own = self.scores[[key == (family, setting) for key in keys]]
            numbers = {"median": self._median((family, setting)), "lowest": own.min(), "highest": own.max()}
            rows.append({"family": family, "setting": setting, "runs": len(own)} | numbers)
        return pandas.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """The ranking as plain numbers, strings, lists and dictionaries, without the matrices."""
        return {
            "options": vars(self.options),
            "best": self.best,
            "why_none": self.why_none(),
            "learnt_nothing": list(compress(self.runs, ~self.learnt)),
            "untrained": self.untrained,
            "rotated": {run: list(pair) for run, pair in self.rotated.items()},
            "doubted": list(self.doubted),
            "best_by_informative": {str(count): run for count, run in self.best_by_informative().items()},
            "runs": self.to_frame().to_dict("records"),
            "settings": self.per_setting().to_dict("records"),
            "left_out": dict(self.left_out),
            "notes": list(self.notes),
        }
