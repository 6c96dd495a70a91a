"""What a column of labels is, where nobody says so: its kind, whether it may be an angle, whether it is a factor."""

import re
from collections.abc import Sequence

import numpy as np

from unbraid.base.types import FloatArray, IntArray, Kind

MOST_LEVELS = 50  # different numbers above which a column is measured (counts, ages, positions)
ROUNDING = 1e-12  # of the largest number, by which .3 and .1 + .2 differ
HANDFUL = 5  # rows that half of the levels must have to be classes
FEW_LEVELS = 10  # whole numbers up to which they are levels in a small sample, too
FIRST_ROWS = 1000  # most measured columns show more than MOST_LEVELS numbers here
CIRCLES = {360.0: ("360", "360"), 2 * np.pi: ("2 * numpy.pi", "2pi")}  # full turns, in Python and in a shell
NEAR = 0.02  # of a turn by which the ends of a column of angles may miss those of the circle
AT_ENDS = 0.01  # of the rows in its outer tenth: a normal variable, cut at 3 standard deviations, has half of that
FEWEST_ANGLES = 4  # different numbers: -180 and 180 alone are two levels
ANGLE_NAMES = {
    "angle", "angles", "azimuth", "bearing", "direction", "heading", "hour", "hue", "orientation", "phi", "rotation",
    "theta", "yaw",
}  # fmt: skip
FEWEST_ROWS = 20  # a column of fewer may grow, or repeat nothing, by chance
GROWING = 0.95  # of the steps from row to row: clocks of several recordings begin again a few times
OWN_LEVEL = 0.9  # levels per row from which text names the rows
GROUP_NAMES = {
    "animal", "donor", "file", "frame", "image", "mouse", "participant", "patient", "rat", "recording", "row",
    "run", "sample", "session", "subject", "trial", "user", "video",
}  # fmt: skip
ID_NAMES = {"id", "ids", "idx", "index", "uid", "uuid"}
NUMBER_NAMES = {"name", "no", "nr", "num", "number"}  # of groups, beside a word for them
NUMBERS_ROWS = "numbers the rows"
MOST_GUESSES, FIRST_GUESSES = 8, 4  # kinds that a note lists, and how many of more than these
MOST_SCORED = 1000  # levels that metrics of classes can take in seconds


def guess_kind(values: FloatArray) -> Kind:
    """Ordinal if the numbers (n_rows,) are a few that repeat, else continuous."""
    if len(np.unique(values[:FIRST_ROWS])) > MOST_LEVELS:
        return "continuous"
    rows, whole = np.bincount(ranks_of(values)), _are_whole(values)
    repeated = 2 * (rows >= HANDFUL).sum() >= len(rows)
    several = whole or len(rows) > 1  # a column of one real number, but for rounding, has no levels
    few = whole and len(rows) <= FEW_LEVELS
    return "ordinal" if several and len(rows) <= MOST_LEVELS and (repeated or few) else "continuous"


def ranks_of(values: FloatArray) -> IntArray:
    """(n_rows,) rank of each number among the different ones, 0, 1, ...; those that differ by rounding are one."""
    present, ranks = np.unique(values, return_inverse=True)
    if len(present) == 0 or _are_whole(present):
        return ranks
    new = np.diff(present) > ROUNDING * np.abs(present).max()
    return np.concatenate([[0], np.cumsum(new)])[ranks]


def describe_guess(name: str, kind: Kind, values: FloatArray) -> str:
    """The entry of a column of numbers in `note_on_guesses`, with what the guess leaves open."""
    if len(values) == 0:
        return f"{name} {kind}"
    if (angle := angle_period(name, values)) is not None:
        python, shell = CIRCLES.get(angle, (f"{angle:g}", f"{angle:g}"))
        return f"{name} {kind} (an angle? period={{{name!r}: {python}}}, --period {name}={shell})"
    present = np.unique(values)
    if kind == "ordinal" and len(present) == 2:  # sap and mcc score two classes otherwise
        return f"{name} {kind} (two levels; categorical if they are classes)"
    if kind == "ordinal" and not _are_whole(present):
        return f"{name} {kind} ({len(np.unique(ranks_of(values)))} levels, by rank)"
    return f"{name} {kind}" + (
        f" ({len(present):,} whole numbers)" if kind != "ordinal" and _are_whole(present) else ""
    )


def note_on_guesses(entries: Sequence[str]) -> str:
    """The note on kinds that nobody gave; of many columns it names those with a question and the first others."""
    text = f"kinds guessed: {', '.join(entries)}"
    if len(entries) > MOST_GUESSES:
        listed = [entry for entry in entries if "?" in entry]
        listed += [entry for entry in entries if "?" not in entry][: max(0, FIRST_GUESSES - len(listed))]
        more = f", and {len(entries) - len(listed)} more" if len(listed) < len(entries) else ""
        text = f"kinds of {len(entries)} factors guessed: {', '.join(listed)}{more}"
    return f"{text}; pass kinds= (--kinds) to change"


def angle_period(name: str, values: FloatArray) -> float | None:
    """Once around of numbers (n_rows,) that fill a circle, or are called as angles are; None of others."""
    present = np.unique(values)
    if len(present) < FEWEST_ANGLES:
        return None
    low, high = float(present[0]), float(present[-1])
    step = float(np.median(np.diff(present)))
    for turn in CIRCLES:
        start = 0.0 if low >= 0 else -turn / 2
        spans = abs(high - low - turn), abs(high - low + step - turn)
        inside = low >= start - 1e-6 * turn and high <= start + (1 + 1e-6) * turn
        if inside and low - start <= NEAR * turn and min(spans) <= NEAR * turn:
            outer = np.abs(values - start - turn / 2) >= 0.45 * turn
            return turn if outer.mean() >= AT_ENDS else None
    if not ANGLE_NAMES & set(_words(name)):
        return None
    if len(present) <= MOST_LEVELS and 0 <= low <= step:  # levels counted from 0 or 1
        return round(high - low + step, 6)
    turns = [turn for turn in (1.0, *sorted(CIRCLES)) if high - low <= (1 + 1e-6) * turn]
    return turns[0] if turns else None


def why_no_factor(name: str, values: FloatArray, *, text: bool) -> str:
    """Why a column is scored only if it is named: what it does instead of describing a row; "" of others.

    Args:
        name: of the column.
        values: (n_rows,) numbers, or the positions of levels in a list.
        text: whether they are such positions.
    """
    n_rows, n_values = len(values), len(np.unique(values))
    if n_values == 1:
        return "constant"
    words, whole = set(_words(name)), text or _are_whole(values)
    names_groups = words <= GROUP_NAMES | ID_NAMES | NUMBER_NAMES and words & (GROUP_NAMES | ID_NAMES)
    if whole and (names_groups or (words & ID_NAMES and n_values > MOST_LEVELS)):
        return "names groups of rows"
    if n_rows < FEWEST_ROWS:
        return ""
    if text:
        return "names the rows" if n_values >= OWN_LEVEL * n_rows else ""
    if whole and n_values == n_rows == np.ptp(values) + 1:
        return NUMBERS_ROWS
    return "grows with the row" if (np.diff(values) > 0).mean() >= GROWING else ""


def note_on_no_factors(reasons: dict[str, str]) -> str:
    """The note on columns that are not scored, by reason."""
    listed = ", ".join(f"{name} ({reason})" for name, reason in reasons.items())
    return f"not scored as factors: {listed}; columns= (--factors) names those to score"


def refuse_many_levels(factor: str | int, kind: Kind, n_levels: int, *, text: bool = False) -> None:
    """Raises ValueError where a factor, by name or column, has more levels than metrics of classes can take."""
    if kind != "continuous" and n_levels > MOST_SCORED:
        measured = "" if text else "; if it is measured, its kind is 'continuous'"
        if isinstance(factor, str) and not text:
            measured = f"; if it is measured, give kinds={{{factor!r}: 'continuous'}} (--kinds {factor}=continuous)"
        raise ValueError(
            f"factor {factor} has {n_levels:,} levels, and at most {MOST_SCORED:,} are scored as classes{measured}; "
            "else leave it out or merge levels"
        )


def refuse_swapped(codes: FloatArray | IntArray, factors: FloatArray) -> None:
    """Raises ValueError where all codes are a few whole numbers and all factors real ones, as if they were swapped."""
    levels = [_are_whole(code) and code.min() < code.max() and guess_kind(code) == "ordinal" for code in codes.T]
    real = [not _are_whole(factor) and guess_kind(factor) == "continuous" for factor in factors.T]
    if levels and real and all(levels) and all(real):
        raise ValueError(
            "are codes and factors swapped? All codes are a few whole numbers, as levels of factors are, and all "
            "factors real numbers, as codes are; if that is so, give the kinds of factors (kinds=, --kinds)"
        )


def _are_whole(values: FloatArray) -> bool:
    return bool((values == np.rint(values)).all())


def _words(name: str) -> list[str]:
    """Words of a name in lower case: subject and id of subject_id, subjectID and "Subject Id 2"."""
    return [word.lower() for word in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)]
