"""How results show themselves: in one line in a terminal, as a small table in a notebook, never as whole arrays."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import fields
from html import escape
from typing import Any

import numpy as np

WITHIN = 0.05  # p above which a score is not told from its null

LEAST_P = 0.001  # a smaller p value rests on the form of a tail that no data have shown

LONGEST = 60  # characters of any one value


class Shown:
    """A dataclass whose arrays are printed as their shape; declare it with `repr=False`."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._field_texts())})"

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._field_texts())
        return f"<table><caption>{type(self).__name__}</caption>{rows}</table>"

    def _field_texts(self) -> list[tuple[str, str]]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # pyright: ignore[reportArgumentType]
        empty = {name for name, value in values.items() if isinstance(value, str | tuple | Mapping) and not value}
        return [(name, short_repr(value)) for name, value in values.items() if value is not None and name not in empty]


def p_text(p: float) -> str:
    """A p value by two digits, and by as many more as show on which side of .05 it lies: 0.0503 is not 0.05.

    Below .001 only that is shown.
    """
    if p < LEAST_P:
        return "< .001"
    texts = [f"{p:.{digits}g}" for digits in range(2, 7)]
    return next((text for text in texts if float(text) != WITHIN), texts[0])


def p_equals(p: float) -> str:
    """As in a sentence: `p = 0.012`, `p < .001`."""
    return f"p {p_text(p)}" if p < LEAST_P else f"p = {p_text(p)}"


def short_repr(value: Any) -> str:
    """A value in a few characters: `0.133`, `(10, 5) float64`, `24 matrices`."""
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if isinstance(value, np.ndarray):
        return f"{value.shape} {value.dtype}"
    if isinstance(value, Mapping):
        return f"{{{len(value)} entries}}"
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def with_names(text: str, factors: Sequence[str], codes: Sequence[str] = ()) -> str:
    """A sentence that counts factors and codes by column ("factor 3", "factors column 3", "codes 0 and 2"), with names.

    Metrics know factors and codes as columns; whoever shows what they say knows more. Names such as factor_3 tell
    nothing, and codes without names keep their numbers.
    """

    def replaced(match: re.Match[str]) -> str:
        word, names = match[1], factors if match[1] == "factor" else codes

        def named(column: re.Match[str]) -> str:
            number = int(column[0])
            # A name that begins with the word itself, as "code 3" does, would have it there twice.
            return re.sub(rf"^{word}[ _](?=.)", "", names[number]) if number < len(names) else column[0]

        return re.sub(r"\d+", named, match[0])

    text = re.sub(r"\bfactors column (?=\d)", "factor ", text) if factors else text
    # Both at once: a factor may be called "code 1".
    return re.sub(r"\b(factor|code)s? \d+(?:(?:,|,? and) \d+)*\b", replaced, text)
