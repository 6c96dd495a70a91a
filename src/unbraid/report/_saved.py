"""Score cards read back from their JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from unbraid.metrics import METRICS, Metric
from unbraid.representation import Representation
from unbraid.score_file import SavedInput, SavedMetric, read_scores_file
from unbraid.scoring import FailedMetric, ScoreCard, Scored


@dataclass(frozen=True, eq=False)
class SavedCard(ScoreCard):
    """A card whose representation may hold no samples: only what it was called and how large it was is known."""

    described: Mapping[str, Any] | None = None

    def _input(self) -> dict[str, Any]:
        return dict(self.described or {})


def saved_card(path: str | Path, representation: Representation | None = None) -> SavedCard:
    """The score card that `ScoreCard.save` wrote as JSON.

    Args:
        path: of the .json file.
        representation: what was scored, where it is at hand; without it the card holds no samples, and a page of it
            no figures of them.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it is no score card, or that of another representation; the message names the file.
    """
    path = Path(path)
    card = read_scores_file(path)
    names = tuple(factor.name for factor in card.input.factors)
    try:
        scored = {name: _scored(name, metric, names) for name, metric in card.metrics.items()}
        held = _held(card.input) if representation is None else _fitting(representation, card.input)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    failed = {name: FailedMetric(each.reason, each.details) for name, each in card.failed.items()}
    return SavedCard(
        held, scored, card.skipped, card.seed, gap=card.gap, path=card.input.path,
        chosen_factors=tuple(card.input.chosen_factors), failed=failed, decided_by=card.decisions(),
        described=card.input.model_dump(),
    )  # fmt: skip


def _scored(name: str, saved: SavedMetric, factors: tuple[str, ...]) -> Scored:
    arrays = {field: np.asarray(values) for field, values in saved.arrays.items()}
    texts = [field for field, array in arrays.items() if array.dtype.kind == "U"]
    if texts and name in METRICS:
        raise ValueError(f"metric {name}: {texts[0]} is no array of numbers")
    numbers = {field: array for field, array in arrays.items() if field not in texts}
    fields: dict[str, Any] = {**numbers, "notes": tuple(saved.notes), **saved.values}
    if saved.per_factor is not None:
        if set(saved.per_factor) != set(factors):
            raise ValueError(f"metric {name}: per_factor is not for the factors {', '.join(factors)}")
        fields["per_factor"] = np.array([saved.per_factor[factor] for factor in factors], dtype=float)
    return Scored(_row(name, saved), make_dataclass("Saved", fields)(**fields), saved.seconds, chance=saved.chance)


def _row(name: str, saved: SavedMetric) -> Metric:
    """The row of the table, or for a metric of the user's own as much as the file says."""
    if name in METRICS and METRICS[name].headline == saved.headline:
        return replace(METRICS[name], version=saved.version)
    return Metric(
        _forgotten, title=name, headline=saved.headline, best=np.nan, higher_is_better=saved.higher_is_better,
        range=(-np.inf, np.inf), means="A metric that this version of unbraid has not.", misses="",
        source=name, version=saved.version,
    )  # fmt: skip


def _forgotten(*_: Any) -> float:
    raise ValueError("a saved metric cannot be computed again")


def _held(saved: SavedInput) -> Representation:
    return Representation(
        np.empty((0, saved.n_codes)),
        np.empty((0, len(saved.factors))),
        factor_names=tuple(factor.name for factor in saved.factors),
        factor_kinds=tuple(factor.kind for factor in saved.factors),
    )


def _fitting(representation: Representation, saved: SavedInput) -> Representation:
    """Its factors that were scored."""
    scored = representation.keep_factors([factor.name for factor in saved.factors])
    if (len(scored), scored.codes.shape[1]) != (saved.n_samples, saved.n_codes):
        raise ValueError(
            f"these are the scores of {saved.n_samples} samples of {saved.n_codes} codes; "
            f"the representation beside it holds {len(scored)} of {scored.codes.shape[1]}"
        )
    return scored
