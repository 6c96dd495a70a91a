"""Letters that the font of the figures lacks, such as Chinese ones, in a font of this machine that has them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import matplotlib
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, fontManager, get_font
from matplotlib.text import Text

# Of many letters, as they come with Linux, macOS and Windows; the first that is there has a letter first.
WIDE_FONTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans SC", "Source Han Sans SC", "WenQuanYi Micro Hei",
    "WenQuanYi Zen Hei", "Droid Sans Fallback", "PingFang SC", "Hiragino Sans GB", "Heiti TC", "Arial Unicode MS",
    "Microsoft YaHei", "SimHei", "Yu Gothic", "MS Gothic", "Malgun Gothic", "Nirmala UI", "Segoe UI", "Noto Sans",
)  # fmt: skip


def give_fonts(figure: Figure) -> str:
    """Let its texts take letters from all these fonts; returns the letters that none of them has."""
    texts = [each for each in figure.findobj(Text) if isinstance(each, Text) and not each.get_text().isascii()]
    if not texts:
        return ""
    there = set(fontManager.get_font_names())
    families = [*matplotlib.rcParams["font.family"], *(name for name in WIDE_FONTS if name in there)]
    lacking = {letter for each in texts for letter in each.get_text() if not letter.isspace()}
    for family in families:
        lacking -= {chr(code) for code in get_font(findfont(FontProperties(family=[family]))).get_charmap()}
    for each in texts:
        each.set_fontfamily(families)
    return "".join(sorted(lacking))


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """While a figure is drawn; what its fonts lack `give_fonts` tells once, matplotlib for every letter and text."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from")
        warnings.filterwarnings("ignore", message=r"Matplotlib currently does not support .* natively")
        yield
