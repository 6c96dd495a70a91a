"""Dates and spans of time as NumPy has them."""

import datetime
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

DATES, SPANS = (datetime.date, np.datetime64), (datetime.timedelta, np.timedelta64)


def moment(value: Any) -> np.datetime64:
    """A date or time; one with a time zone in UTC."""
    if isinstance(value, datetime.datetime):
        aware = value.tzinfo is not None
        return np.datetime64(value.astimezone(datetime.UTC).replace(tzinfo=None) if aware else value)
    return np.datetime64(value)


def days_since_first(cells: Sequence[Any]) -> npt.NDArray[np.float64] | None:
    """Dates as days since the first of them, and spans as days beyond the shortest; None of other cells."""
    if all(isinstance(cell, DATES) for cell in cells):
        times = np.array([moment(cell) for cell in cells], dtype="datetime64[us]")
    elif all(isinstance(cell, SPANS) for cell in cells):
        times = np.array([np.timedelta64(cell) for cell in cells], dtype="timedelta64[us]")
    else:
        return None
    return (times - times.min()) / np.timedelta64(1, "D")
