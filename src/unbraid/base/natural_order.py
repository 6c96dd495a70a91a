"""Settings in the order a reader expects: beta=2 before beta=16."""

import re

NUMBER = re.compile(r"([-+]?\d+\.?\d*(?:[eE][-+]?\d+)?)")


def natural(text: str) -> tuple[tuple[float, str], ...]:
    """A sorting key in which the numbers within a text count by their value."""
    parts = NUMBER.split(text)
    return tuple((float(part), "") if place % 2 else (0.0, part) for place, part in enumerate(parts))
