"""Score cards read back from their JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, make_dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, ValidationError

from unbraid.metrics import METRICS, Metric
from unbraid.representation import Representation
from unbraid.scoring import ScoreCard, Scored


@dataclass(frozen=True, eq=False)
class SavedCard(ScoreCard):
    """A card whose representation may hold no samples: only what it was called and how large it was is known."""

    described: Mapping[str, Any] | None = None

    def _input(self) -> dict[str, Any]:
        return dict(self.described or {})


class _Factor(BaseModel):
    name: str
    kind: Literal["categorical", "ordinal", "continuous", "cyclic"]
    size: int | None


class _Input(BaseModel):
    path: str | None
    n_samples: Annotated[int, Field(ge=1)]
    n_codes: Annotated[int, Field(ge=1)]
    factors: Annotated[list[_Factor], Field(min_length=1)]
    chosen_factors: list[str] = []


class _Metric(BaseModel):
    headline: str
    higher_is_better: bool
    version: int = 1
    seconds: FiniteFloat
    chance: FiniteFloat | None = None
    values: dict[str, FiniteFloat]
    per_factor: dict[str, float | None] | None = None
    notes: list[str] = []
    arrays: dict[str, Any] = {}


class _Card(BaseModel):
    seed: int
    gap: str | None = None
    input: _Input
    metrics: dict[str, _Metric]
    skipped: dict[str, str]


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
    if not path.is_file():
        raise FileNotFoundError(f"{path}: no such file")
    try:
        card = _Card.model_validate_json(path.read_bytes())
        names = tuple(factor.name for factor in card.input.factors)
        scored = {name: _scored(name, metric, names) for name, metric in card.metrics.items()}
        held = _held(card.input) if representation is None else _fitting(representation, card.input)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ValueError(f"{path}: not the scores of unbraid ({f'{where}: ' if where else ''}{first['msg']})") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    described = card.input.model_dump()
    return SavedCard(
        held, scored, card.skipped, card.seed, card.gap, card.input.path, tuple(card.input.chosen_factors), described
    )


def _scored(name: str, saved: _Metric, factors: tuple[str, ...]) -> Scored:
    if saved.headline not in saved.values:
        raise ValueError(f"metric {name} has no value {saved.headline!r}")
    fields: dict[str, Any] = {"notes": tuple(saved.notes), **saved.arrays, **saved.values}
    for field in saved.arrays:
        fields[field] = np.asarray(saved.arrays[field])
        if fields[field].dtype.kind not in "iufb":
            raise ValueError(f"metric {name}: {field} is no array of numbers")
    if saved.per_factor is not None:
        if set(saved.per_factor) != set(factors):
            raise ValueError(f"metric {name}: per_factor is not for the factors {', '.join(factors)}")
        fields["per_factor"] = np.array([saved.per_factor[factor] for factor in factors], dtype=float)
    strange = [field for field in fields if not field.isidentifier() or field.startswith("_")]
    if strange:
        raise ValueError(f"metric {name} has a value {strange[0]!r}")
    return Scored(_row(name, saved), make_dataclass("Saved", fields)(**fields), saved.seconds, chance=saved.chance)


def _row(name: str, saved: _Metric) -> Metric:
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


def _held(saved: _Input) -> Representation:
    return Representation(
        np.empty((0, saved.n_codes)),
        np.empty((0, len(saved.factors))),
        factor_names=tuple(factor.name for factor in saved.factors),
        factor_kinds=tuple(factor.kind for factor in saved.factors),
    )


def _fitting(representation: Representation, saved: _Input) -> Representation:
    """Its factors that were scored."""
    scored = representation.keep_factors([factor.name for factor in saved.factors])
    if (len(scored), scored.codes.shape[1]) != (saved.n_samples, saved.n_codes):
        raise ValueError(
            f"these are the scores of {saved.n_samples} samples of {saved.n_codes} codes; "
            f"the representation beside it holds {len(scored)} of {scored.codes.shape[1]}"
        )
    return scored
