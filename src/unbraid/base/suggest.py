"""What to say to somebody who named what is not there, or whose file is damaged."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches

MOST = 6  # names that one hint gives
MOST_LISTED = 200  # letters of the names that a list gives, but for the last of them
LONGEST = 60  # letters of a name that is listed, or compared with others
NEARLY = 0.8  # likeness from which a name is another one mistyped
SHORTEST = 3  # letters by which a name is told from its beginning


def suggestion(
    name: str, known: Iterable[str], *, few: str | None = None, words: Mapping[str, Sequence[str]] | None = None
) -> str:
    """`did you mean 'beta'?`, or what there is.

    Args:
        name: what was asked for.
        known: what there is.
        few: said in place of the list, where that would be too long to read.
        words: what there is by other words for it, in lower case.
    """
    names = list(known)
    near = _near(name, names, words or {})
    if not near:
        return few or f"there are {listed(names)}"
    *first, last = [repr(near_name) for near_name in near]
    return f"did you mean {', '.join(first)} or {last}?" if first else f"did you mean {last}?"


def listed(names: Sequence[str]) -> str:
    """The first names, as many as can be read at a glance, and how many more there are.

    Example:
        >>> listed(["shape", "size", "hue"])
        'shape, size, hue'
    """
    text, n_shown = "", 0
    while n_shown < len(names) and len(text) < MOST_LISTED:
        text += f"{', ' if n_shown else ''}{one_line(names[n_shown], LONGEST)}"
        n_shown += 1
    left = len(names) - n_shown
    return (text + (f" and {left:,} more" if left else "")) or "none"


def _near(name: str, names: Sequence[str], words: Mapping[str, Sequence[str]]) -> Sequence[str]:
    """The names that are meant, most likely: but for case and hyphens, by another word, by a part, or mistyped."""
    folded = _folded(name[:LONGEST])
    names = [known for known in names if len(known) <= LONGEST]
    if same := [known for known in names if _folded(known) == folded]:
        return same[:MOST]
    if synonyms := [known for known in words.get(folded, ()) if known in names]:
        return synonyms
    by_fold = {_folded(known): known for known in reversed(names)}

    def mistyped(likeness: float) -> list[str]:
        return [by_fold[known] for known in get_close_matches(folded, by_fold, n=1, cutoff=likeness)]

    parts = {known: _parts(known) if len(folded) >= SHORTEST else [] for known in names}
    whole = [known for known in names if folded in parts[known]]
    begun = [known for known in names if any(part.startswith(folded) for part in parts[known])]
    return (whole or mistyped(NEARLY) or begun or mistyped(0.6))[:MOST]


def _parts(name: str) -> list[str]:
    """All runs of its words, folded: of dci_lasso dci, dcilasso and lasso."""
    words = [_folded(word) for word in re.split(r"[\W_]+", name) if word]
    return ["".join(words[i:j]) for i in range(len(words)) for j in range(i + 1, len(words) + 1)]


def _folded(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def one_line(error: object, longest: int = 300) -> str:
    """What a library says of a fault, or a value that a message quotes, on one line and not too long."""
    text = " ".join(str(error).split())
    return text if len(text) <= longest else f"{text[: longest - 1]}…"


def error_line(error: BaseException, *plain: type[BaseException]) -> str:
    """An error that other code raised, on one line: with its kind, unless that is one of `plain`."""
    text = " ".join(str(error).split())
    return text if isinstance(error, plain) else f"{type(error).__name__}: {text}"
