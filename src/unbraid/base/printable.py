"""Text from outside, safe to show on a terminal or a page."""

import unicodedata

_TURNING = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # the direction of what follows


def printable(text: str, *, keep: str = "") -> str:
    """The text with what would steer a terminal, or is no character, written out: `\\x1b`, `\\ud800`, `\\u202e`.

    Characters to `keep`, such as the ends of lines, stay.
    """
    if text.isprintable():
        return text
    return "".join(
        letter.encode("unicode_escape").decode() if letter not in keep and _steers(letter) else letter
        for letter in text
    )


def _steers(letter: str) -> bool:
    return unicodedata.category(letter) in ("Cc", "Cs", "Zl", "Zp") or letter in _TURNING
