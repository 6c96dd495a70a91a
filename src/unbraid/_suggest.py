"""What to say to somebody who named what is not there, or whose file is damaged."""

from collections.abc import Iterable
from difflib import get_close_matches


def suggestion(name: str, known: Iterable[str], *, few: str | None = None) -> str:
    """`did you mean 'beta'?`, or what there is.

    Args:
        name: what was asked for.
        known: what there is.
        few: said in place of the list, where that would be too long to read.
    """
    names = list(known)
    near = get_close_matches(name, names, n=1)
    return f"did you mean {near[0]!r}?" if near else few or f"there are {', '.join(names) or 'none'}"


def one_line(error: object, longest: int = 300) -> str:
    """What a library says of a fault, or a value that a message quotes, on one line and not too long."""
    text = " ".join(str(error).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"
