"""How far numbers that were written with a few digits may lie from what was meant."""

from typing import Any

import numpy as np
import numpy.typing as npt

DIGITS = 6  # after the point; numbers with more of them are taken as they are
IN_SINGLE = 1e-7  # of a number: single precision has no better 1.047
# Of a step. Gaps between neighbours on steps then differ by a tenth at most: with fewer digits, whole numbers say, the
# steps of nearly any circle would be near.
MOST_ROUNDED = 0.05


def rounded_by(values: npt.NDArray[Any]) -> float:
    """Half a unit of the last digit that any of the values (n,) has, as 0.0005 of 1.047; 0 where they have too many."""
    for digits in range(DIGITS + 1):
        if np.allclose(np.round(values, digits), values, rtol=IN_SINGLE, atol=0):
            return 0.5 * 10.0**-digits
    return 0.0
