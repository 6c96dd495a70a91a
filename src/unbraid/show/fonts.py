"""Letters that the font of the figures lacks, such as Chinese ones, in a font of this machine that has them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

# Fonts of many scripts that come with Linux, macOS and Windows; the first installed font that has a letter draws it.
WIDE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Heiti TC", "Arial Unicode MS",
    "Microsoft YaHei", "SimHei", "Yu Gothic", "MS Gothic", "Malgun Gothic", "Nirmala UI", "Segoe UI", "Noto Sans",
)  # fmt: skip


def give_fonts(figure: Figure) -> str:
    """Let the texts of a figure use all of `WIDE_FONTS`; returns the letters that no font has."""
    texts = [text for text in figure.findobj(Text) if isinstance(text, Text) and not text.get_text().isascii()]
    if not texts:
        return ""
    installed = set(fontManager.get_font_names())
    families = [*matplotlib.rcParams["font.family"], *(name for name in WIDE_FONTS if name in installed)]
    lacking = {letter for text in texts for letter in text.get_text() if not letter.isspace()}
    for family in families:
        lacking -= {chr(code) for code in get_font(findfont(FontProperties(family=[family]))).get_charmap()}
    for text in texts:
        text.set_fontfamily(families)
    return "".join(sorted(lacking))


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Suppresses matplotlib's missing-glyph warnings, one per letter and text; `give_fonts` returns these letters."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield
