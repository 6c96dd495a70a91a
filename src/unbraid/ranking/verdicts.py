"""The verdict of a ranking on the best model, worded the same on the terminal, in JSON and on pages."""

from collections.abc import Mapping

from unbraid.ranking.choice_stability import Resampled
from unbraid.ranking.ranking import Ranking
from unbraid.scoring.setting_names import Key

__all__ = ["group_verdicts", "how_sure", "study_verdict"]

CLOSE = 0.5  # share of resamples below which others are about as good


def group_verdicts(ranking: Ranking) -> list[str]:
    """A line for each group: its best model, or why there is none. Groups are the families of the ranking."""
    groups = dict.fromkeys(ranking.families)
    return [
        _verdict(f"best model of {group}", ranking, [other for other in groups if other != group]) for group in groups
    ]


def model_verdict(ranking: Ranking) -> list[str]:
    """One line: the best model, or why there is none."""
    return [_verdict("best model", ranking, ())]


def study_verdict(ranking: Ranking, names: Mapping[Key, str], places: Mapping[str, object] | None = None) -> list[str]:
    """The best setting and the best model of a study, a line each; or in one line why there is none.

    Args:
        ranking: of a study.
        names: of settings, as `brief_settings` gives them.
        places: text for each run, such as its folder, by id; default the id.
    """
    chosen = ranking.choose()
    if chosen is None:
        return [_verdict("best model", ranking, ())]
    without = f", leaving out {', '.join(ranking.doubted_families)}" if ranking.doubted_families else ""
    setting = f"{chosen.family} {names[chosen.family, chosen.setting]}".strip()
    run = chosen.run if places is None else places[chosen.run]
    return [
        f"best setting{without}: {setting} (median {chosen.median:.3f})",
        f"best model{without}: {run} ({chosen.score:.3f}){_again(ranking, ())}",
    ]


def how_sure(shares: Resampled, *, of_setting: bool = False) -> str:
    """A clause on the stability of the choice under resampling, and of that of its setting."""
    if not shares.draws_with_model:
        return "too few models were compared to tell how sure the choice is"
    clause = f"when the models are resampled, it is chosen in {shares.model:.0%} of the resamples that contain it"
    least = shares.model
    if of_setting:
        clause += f", and a model of its setting in {shares.setting:.0%} of all"
        least = min(shares.model, shares.setting)
    return clause + "; the choice is close: others are about as good" * (least < CLOSE)


def _verdict(title: str, ranking: Ranking, without: list[str] | tuple[()]) -> str:
    chosen = ranking.choose(without)
    if chosen is None:
        return f"no {title}: {ranking.why_none(without)}"
    return f"{title}: {chosen.run} ({chosen.score:.3f}){_again(ranking, without)}"


def _again(ranking: Ranking, without: list[str] | tuple[()]) -> str:
    resampled = ranking.resampled(without)
    return f"; {how_sure(resampled)}" if resampled else ""
