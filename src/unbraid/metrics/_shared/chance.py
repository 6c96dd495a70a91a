"""What codes that know nothing of the factors are expected to score, and the note for where a score cannot tell.

A statement of chance is a function of the checked input. It reads the number of rows and codes, and codes and factors
each for themselves, never which code belongs to which level. The first line of its docstring is what the documentation
prints. Where noise strays further from it than the tolerance of the table and four times its spread, the result
says so: a note made by `unreadable`.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from unbraid.base.types import FloatArray
from unbraid.metrics._shared.inputs import Inputs

UNREADABLE = "cannot be read"
UNSTEADY = 0.1  # spread of the scores of noise from which on a single score says little
FAR = 4  # spreads from what noise scores: what lies further away can be read


class Noise(NamedTuple):
    """The headline expected of noise, and its standard deviation from one draw of noise to another."""

    score: float
    spread: float = 0.0


Chance = Callable[[Inputs], Noise]


def zero_chance(inputs: Inputs) -> Noise:
    """About 0."""
    return Noise(0.0)


def even_guess(inputs: Inputs) -> Noise:
    """1 / n_factors."""
    return Noise(1.0 / inputs.n_factors)


def drawn(scores: Sequence[float] | FloatArray) -> Noise:
    """From the scores of several draws of noise."""
    return Noise(float(np.mean(scores)), float(np.std(scores, ddof=1)))


def unreadable(why: str) -> str:
    """The note of a score that noise could have as well: too few rows, or a definition that leaves no choice."""
    return f"{UNREADABLE} at this size: {why}"


def notes_on_noise(noise: Noise | None, score: float) -> tuple[str, ...]:
    """That a score cannot be read where draws of noise lie far apart, and the score is not far from them."""
    if noise is None or noise.spread <= UNSTEADY or abs(score - noise.score) > FAR * noise.spread:
        return ()
    return (unreadable(f"independent noise would score {noise.score:.2f}, give or take {noise.spread:.2f}"),)


def chance_in_words(chance: Chance | None) -> str:
    """What the documentation says that noise scores."""
    if chance is None:
        return "depends on codes and factors"
    line = (inspect.getdoc(chance) or "").splitlines()[0].removesuffix(".")
    return line[0].lower() + line[1:]
