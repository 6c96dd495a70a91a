"""Markdown to HTML: anchors on headings, coloured code, links that lead within the site."""

import html
import re
from collections.abc import Callable
from dataclasses import dataclass, field

import matplotlib
import numpy as np
from latex2mathml.converter import convert
from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}
Link = Callable[[str], str | None]  # what a target becomes; None: it leads nowhere on the site


@dataclass
class Page:
    """One rendered text."""

    title: str
    body: Markup
    headings: list[tuple[int, str, str]] = field(default_factory=list)  # level, anchor, text
    text: str = ""  # what the search looks at


def render(source: str, link: Link) -> Page:
    """A page from Markdown (CommonMark with tables).

    Args:
        source: the text; its first heading is the title.
        link: says what each target of a link or picture becomes.
    """
    parser = MarkdownIt("commonmark", {"highlight": _coloured}).enable("table")
    # A wide table scrolls by itself, and not the page with it; the keyboard can reach it.
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    tokens = parser.parse(source)
    headings: list[tuple[int, str, str]] = []
    words: list[str] = []
    for place, token in enumerate(tokens):
        if token.type == "heading_open":
            text = _plain(tokens[place + 1])
            anchor = _anchor(text, {each for _, each, _ in headings})
            token.attrSet("id", anchor)
            headings.append((int(token.tag[1]), anchor, text))
        if token.type == "inline":
            words.append(_plain(token))
            _relink(token, link)
    body = parser.renderer.render(tokens, parser.options, {})
    title = next((text for level, _, text in headings if level == 1), "")
    return Page(title, Markup(body), headings, " ".join(words))


def inline(source: str, link: Link = lambda target: target) -> Markup:
    """One paragraph without its <p>, with $...$ set as mathematics."""
    pieces = re.split(r"\$([^$]+)\$", source)
    parser = MarkdownIt("commonmark")
    made = []
    for number, piece in enumerate(pieces):
        if number % 2:
            made.append(mathematics(piece))
            continue
        tokens = parser.parseInline(piece)
        _relink(tokens[0], link)
        # Spaces next to mathematics would be lost.
        left, right = piece[: len(piece) - len(piece.lstrip())], piece[len(piece.rstrip()) :]
        made.append(
            left + parser.renderer.render(tokens, parser.options, {}).strip() + (right if piece.strip() else "")
        )
    return Markup("".join(made))


def mathematics(latex: str) -> Markup:
    """MathML within a line of text, which browsers draw by themselves."""
    spoken = f'<math alttext="{html.escape(latex, quote=True)}"'
    return Markup(convert(latex).replace("<math", spoken, 1))


def formula(latex: str, size: float = 18.0) -> Markup:
    """A formula of its own as outlines in the colour of the text: whatever fonts a reader has, it looks the same."""
    with matplotlib.rc_context({"mathtext.fontset": "cm"}):
        vertices, codes = TextToPath().get_text_path(FontProperties(), f"${latex}$", ismath=True)
    scale = size / TextToPath.FONT_SCALE
    path = Path(np.asarray(vertices) * [scale, -scale], codes)
    corners = path.vertices[path.codes != Path.CLOSEPOLY]
    (left, top), (right, bottom) = corners.min(axis=0) - 1, corners.max(axis=0) + 1
    drawn = "".join(
        "Z" if letter == Path.CLOSEPOLY else LETTERS[int(letter)] + " ".join(f"{number:.2f}" for number in points)
        for points, letter in path.iter_segments(simplify=False)
    )
    spoken = html.escape(latex, quote=True)
    size = f'width="{right - left:.0f}" height="{bottom - top:.0f}"'
    view = f'viewBox="{left:.1f} {top:.1f} {right - left:.1f} {bottom - top:.1f}"'
    return Markup(f'<svg role="img" aria-label="{spoken}" {size} {view}><path fill="currentColor" d="{drawn}"/></svg>')


def code(text: str, language: str) -> Markup:
    """A block of coloured code."""
    return Markup(f"<pre>{_coloured(text, language, '')}</pre>")


def code_colours() -> str:
    """The style sheet of coloured code, light and dark."""
    light = HtmlFormatter(style="friendly").get_style_defs("pre")
    dark = HtmlFormatter(style="github-dark").get_style_defs("pre")
    rules = [
        "\n".join(line for line in style.splitlines() if re.match(r"pre \.", line) and "linenos" not in line)
        for style in (light, dark)
    ]
    return f"{rules[0]}\n@media (prefers-color-scheme: dark) {{\n{rules[1]}\n}}\n"


def _coloured(text: str, language: str, _attributes: str) -> str:
    try:
        lexer = get_lexer_by_name({"sh": "bash"}.get(language, language or "text"))
    except ClassNotFound:
        lexer = get_lexer_by_name("text")
    return highlight(text, lexer, HtmlFormatter(nowrap=True)).rstrip("\n")


def _plain(token: Token) -> str:
    kinds = {"text", "code_inline"}
    breaks = {"softbreak", "hardbreak"}
    return "".join(
        child.content if child.type in kinds else " " if child.type in breaks else "" for child in token.children or ()
    )


def _anchor(text: str, taken: set[str]) -> str:
    """As GitHub makes them: lower case, hyphens for spaces, no punctuation; a number where it is taken."""
    base = re.sub(r"[^\w\- ]", "", text.lower()).strip().replace(" ", "-")
    anchor, number = base, 0
    while anchor in taken:
        number += 1
        anchor = f"{base}-{number}"
    return anchor


def _relink(token: Token, link: Link) -> None:
    children, kept, dropped = token.children or [], [], 0
    for child in children:
        if child.type == "link_open":
            target = link(str(child.attrGet("href")))
            if target is None:
                dropped += 1
                continue
            child.attrSet("href", target)
        elif child.type == "link_close" and dropped:
            dropped -= 1
            continue
        elif child.type == "image":
            child.attrSet("src", link(str(child.attrGet("src"))) or "")
            child.attrSet("loading", "lazy")
        kept.append(child)
    token.children = kept
