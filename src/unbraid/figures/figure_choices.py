"""Which codes and factors a figure shows, how wide it is, and how that is said below it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unbraid.base.suggest import suggestion
from unbraid.base.types import FloatArray, IntArray
from unbraid.data import Representation
from unbraid.show.hinton import important_first

MOST, SHOWN = 40, 24  # codes that are all shown, and how many of more than that


@dataclass(frozen=True)
class Chosen:
    """What is asked for; what is not is chosen by the figure."""

    width: float  # mm
    codes: tuple[str, ...] = ()  # names or numbers
    factors: tuple[str, ...] = ()
    top: int | None = None  # number of codes

    def columns(self, representation: Representation) -> list[int]:
        """Positions of the factors asked for, by default of all.

        Raises:
            ValueError: there is no such factor.
        """
        for name in self.factors:
            if name not in representation.names:
                raise ValueError(f"no factor {name!r}; {suggestion(name, representation.names)}")
        return [representation.names.index(name) for name in self.factors or representation.names]

    def rows(
        self, names: Sequence[str], weights: FloatArray, *, most: int = MOST, among: IntArray | None = None
    ) -> tuple[IntArray, str]:
        """Positions of the codes to show, and what a caption says of the others.

        Args:
            names: of all codes.
            weights: (n_codes,) or (n_codes, n_factors): how much each matters.
            most: shown without being asked for.
            among: those that come into question; default all.

        Raises:
            ValueError: there is no such code.
        """
        if self.codes:
            chosen = [_place(text, names) for text in self.codes]
            return np.array(list(dict.fromkeys(chosen))), f"{len(set(chosen))} of {len(names)} codes shown"
        all_of_them = np.arange(len(names)) if among is None else among
        if self.top is None and len(all_of_them) <= most:
            return all_of_them, ""
        order = important_first(weights.reshape(len(names), -1))
        top = self.top or min(SHOWN, most)
        shown = order[np.isin(order, all_of_them)][:top]
        return shown, f"{len(shown)} of {len(names)} codes shown, most important first" if len(shown) < len(
            names
        ) else ""


def _place(text: str, names: Sequence[str]) -> int:
    if text in names:
        return list(names).index(text)
    if text.isdecimal() and int(text) < len(names):
        return int(text)
    available = f"there are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}"
    few = f"give 0 to {len(names) - 1}" if names[0] == "code 0" else available
    raise ValueError(f"no code {text!r}; {suggestion(text, names, few=few)}")
