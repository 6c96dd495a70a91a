"""The sliders of a page: each moves one code, or the angle of two codes on a circle."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy.optimize import linear_sum_assignment

from unbraid.base.types import FloatArray
from unbraid.data import Representation
from unbraid.families import Part

Model: TypeAlias = tuple[Representation, Sequence["Slider"]]
LOW, HIGH = 0.02, 0.98  # quantiles of a code between which it moves


@dataclass(frozen=True)
class Slider:
    """A path through the codes, from 0 to 1."""

    codes: tuple[int, ...]  # one, or the two of a circle: cosine and sine
    low: float  # the code at 0, or the angle in radians
    high: float
    kl: float | None  # nats; None where there is no posterior
    variance: float
    has_signal: bool = True  # whether the code is informative, where there is a posterior
    values: tuple[float, ...] = ()  # all values of a quantized code

    @property
    def circle(self) -> bool:
        return len(self.codes) == 2

    @property
    def name(self) -> str:
        return f"code {self.codes[0]}" if not self.circle else f"codes {self.codes[0]}, {self.codes[1]}"

    @property
    def informative(self) -> bool:
        return self.low != self.high and self.has_signal

    def places(self, steps: int) -> FloatArray:
        """(steps,) evenly from 0 to 1; on a circle without the end, which equals the start."""
        return np.linspace(0, 1, steps, endpoint=not self.circle)

    def moved(self, code: FloatArray, places: FloatArray) -> FloatArray:
        """(n_codes,) and (steps,) -> (steps, n_codes): the other codes stay."""
        codes = np.tile(code, (len(places), 1))
        values = self.low + (self.high - self.low) * places
        if self.values:
            known = np.array(self.values)
            values = known[np.abs(values[:, None] - known).argmin(1)]
        codes[:, list(self.codes)] = np.stack([np.cos(values), np.sin(values)], 1) if self.circle else values[:, None]
        return codes


def sliders(representation: Representation, parts: Sequence[Part]) -> list[Slider]:
    """One slider per code or circle, by falling KL, or by falling variance without a posterior."""
    codes, kl, informative = representation.codes, representation.mean_kl(), representation.informative()
    low, high = np.quantile(codes, [LOW, HIGH], axis=0)
    variances = codes.var(axis=0, dtype=float)
    entries = []
    start = 0
    for part in parts:
        size = 2 if part.kind == "circle" else 1
        for first in range(start, start + part.size, size):
            own = list(range(first, first + size))
            known = kl is not None and bool(np.isfinite(kl[own]).all())
            span = (0.0, 2 * np.pi) if size == 2 else (float(low[first]), float(high[first]))
            says = float(kl[own].sum()) if kl is not None and known else None
            has_signal = informative is None or not known or bool(informative[own].any())
            values = tuple(np.unique(codes[:, first]).tolist()) if part.kind == "quantized" else ()
            span = (values[0], values[-1]) if values else span
            entries.append(Slider(tuple(own), *span, says, float(variances[own].sum()), has_signal, values))
        start += part.size
    without = any(slider.kl is None for slider in entries)
    return sorted(entries, key=lambda slider: -(slider.variance if without or slider.kl is None else slider.kl))


def matched(one: Model, other: Model) -> list[tuple[Slider | None, Slider | None, float]]:
    """Pairs of sliders of two models that change together over the same images, with a similarity from 0 to 1.

    The pairing has the largest total similarity. That of lines is their rank correlation; if it is negative, the second
    slider is reversed. That of circles is the length of the mean difference of angles; the second gets the start and
    direction of the first. Sliders without a partner are alone, with 0.

    Args:
        one, other: codes of the same images in the same order, and their sliders.
    """
    from scipy.stats import rankdata

    (_, mine), (_, theirs) = one, other
    ranks = [rankdata(model[0].codes, axis=0) for model in (one, other)]
    fits = [[_similarity(one, ranks[0], slider, other, ranks[1], candidate) for candidate in theirs] for slider in mine]
    both = np.array([[strength for strength, _ in row] for row in fits]).reshape(len(mine), len(theirs))
    rows, columns = linear_sum_assignment(-both)
    partner = dict(zip(rows.tolist(), columns.tolist(), strict=True))
    pairs: list[tuple[Slider | None, Slider | None, float]] = []
    for row, slider in enumerate(mine):
        if row in partner:
            strength, fitted = fits[row][partner[row]]
            pairs.append((slider, fitted, strength))
        else:
            pairs.append((slider, None, 0.0))
    return pairs + [(None, slider, 0.0) for column, slider in enumerate(theirs) if column not in partner.values()]


def _similarity(
    one: Model, ranks: FloatArray, mine: Slider, other: Model, their_ranks: FloatArray, theirs: Slider
) -> tuple[float, Slider]:
    """The similarity of two sliders, and the second one aligned with the first."""
    if mine.circle and theirs.circle:
        first, second = _angles(one[0].codes, mine), _angles(other[0].codes, theirs)
        along, against = np.exp(1j * (second - first)).mean(), np.exp(1j * (second + first)).mean()
        best, way = (along, 1) if abs(along) >= abs(against) else (against, -1)
        start = float(np.angle(best))
        return float(abs(best)), replace(theirs, low=start, high=start + way * 2 * np.pi)
    columns = np.concatenate([ranks[:, mine.codes], their_ranks[:, theirs.codes]], axis=1)
    with np.errstate(invalid="ignore"):  # a constant code correlates with nothing
        every = np.nan_to_num(np.corrcoef(columns, rowvar=False).reshape(columns.shape[1], -1))
    correlations = every[: len(mine.codes), len(mine.codes) :]
    strength = float(np.abs(correlations).max())
    falls = not mine.circle and not theirs.circle and correlations[0, 0] < 0
    return strength, replace(theirs, low=theirs.high, high=theirs.low) if falls else theirs


def _angles(codes: FloatArray, circle: Slider) -> FloatArray:
    cosine, sine = circle.codes
    return np.arctan2(codes[:, sine], codes[:, cosine])
