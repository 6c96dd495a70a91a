"""Factors that codes should not encode, such as a batch or a scanner: scored by how well they can be read.

Each has a row of its own on a card, `unwanted(batch)`: the explicitness of that factor alone, of which lower is better.
No other metric sees such a factor.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unbraid.base.arguments import list_of
from unbraid.base.repr import Shown
from unbraid.base.types import ArrayLike, Kind
from unbraid.data import Representation
from unbraid.metrics import METRICS, Metric
from unbraid.metrics.explicitness import explicitness
from unbraid.scoring.named_blocks import without_factors

BEFORE, AFTER = "unwanted(", ")"


@dataclass(frozen=True, eq=False, repr=False)
class Unwanted(Shown):
    score: float  # 2 AUC - 1
    auc: float
    notes: tuple[str, ...] = ()


def unwanted(
    codes: ArrayLike,
    factors: ArrayLike,
    *,
    kinds: Sequence[Kind] | None = None,
    seed: int = 0,
    groups: ArrayLike | None = None,
) -> Unwanted:
    """`explicitness` of a single factor (n_samples, 1), whose value is the score."""
    result = explicitness(codes, factors, kinds=kinds, seed=seed, groups=groups)
    return Unwanted(result.score, result.auc, result.notes)


def name_of(factor: str) -> str:
    """What the row of an unwanted factor is called."""
    return f"{BEFORE}{factor}{AFTER}"


def factor_of(name: str) -> str | None:
    """The factor of a row that is called so; None of any other."""
    return name[len(BEFORE) : -len(AFTER)] if name.startswith(BEFORE) and name.endswith(AFTER) else None


def row_of_unwanted(factor: str) -> Metric:
    """The row of an unwanted factor."""
    return replace(
        METRICS["explicitness"],
        function=unwanted,
        title=f"Explicitness of {factor}",
        question="unwanted",
        claims={},
        best=0.0,
        higher_is_better=False,
        summary=f"How well a linear classifier on all codes finds the levels of {factor}.",
        limitations="Blind to what a nonlinear classifier would find. Many ordered levels on one code reach about 1/2.",
    )


def row_against_null(factor: str) -> Metric:
    """The same row with higher as better, so that the p-value of its null tests for any trace of the factor."""
    return replace(row_of_unwanted(factor), higher_is_better=True, best=float("nan"))


def named(names: str | Sequence[str], what: str = "unwanted") -> tuple[str, ...]:
    """Each name once.

    Raises:
        ValueError: it is neither a name nor several; the message calls it `what`.
    """
    return tuple(dict.fromkeys(list_of(what, names, single=True)))


def split_unwanted(
    representation: Representation, names: Sequence[str]
) -> tuple[Representation, dict[str, Representation]]:
    """The same codes with the other factors, and with each unwanted one alone, by the name of its row.

    Blocks of factors stay with the other factors.

    Raises:
        ValueError: a name is that of no factor, or none is left.
    """
    if not names:
        return representation, {}
    alone = replace(representation, code_blocks=None, orbits=None)
    views = {name_of(name): alone.keep_factors([name]) for name in names}
    if len(views) == len(representation.names):
        raise ValueError(
            f"unwanted names every factor ({', '.join(names)}): give labels that the codes should tell of as well, "
            "or score these by the metric explicitness (metrics=, --metrics)"
        )
    note = f"unwanted, read by no other metric: {', '.join(names)}"
    rest = without_factors(representation, names)
    return replace(rest, notes=(*rest.notes, note)), views
