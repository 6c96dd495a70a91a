"""Mathematics without a script: MathML within text, outlines for formulas that stand alone."""

import html
from typing import Any

import matplotlib
import numpy as np
from docutils import nodes
from docutils.utils.math.latex2mathml import tex2mathml
from matplotlib.font_manager import FontProperties
from matplotlib.path import Path
from matplotlib.textpath import TextToPath

LETTERS = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C"}


def outlines(latex: str, size: float = 18.0) -> str:
    """A formula as one <svg> in the colour of the text: whatever fonts a reader has, it looks the same."""
    with matplotlib.rc_context({"mathtext.fontset": "cm"}):
        vertices, codes = TextToPath().get_text_path(FontProperties(), f"${latex}$", ismath=True)
    path = Path(np.asarray(vertices) * np.array([1, -1]) * size / TextToPath.FONT_SCALE, codes)
    corners = path.vertices[path.codes != Path.CLOSEPOLY]
    (left, top), (right, bottom) = corners.min(axis=0) - 1, corners.max(axis=0) + 1
    drawn = "".join(
        "Z" if letter == Path.CLOSEPOLY else LETTERS[int(letter)] + " ".join(f"{number:.2f}" for number in points)
        for points, letter in path.iter_segments(simplify=False)
    )
    across, down = right - left, bottom - top
    return (
        f'<svg role="img" aria-label="{html.escape(latex, quote=True)}" width="{across:.0f}" height="{down:.0f}" '
        f'viewBox="{left:.1f} {top:.1f} {across:.1f} {down:.1f}"><path fill="currentColor" d="{drawn}"/></svg>'
    )


def visit_inline(translator: Any, node: nodes.math) -> None:
    """Write `$...$` as MathML, which browsers draw by themselves."""
    latex = html.escape(node.astext(), quote=True)
    translator.body.append(tex2mathml(node.astext()).replace("<math", f'<math alttext="{latex}"', 1))
    raise nodes.SkipNode


def visit_block(translator: Any, node: nodes.math_block) -> None:
    r"""Write a block as outlines; statements parted by \qquad stand side by side where there is room."""
    parts = "".join(outlines(part.strip()) for part in node.astext().split(r"\qquad"))
    translator.body.append(f'<div class="formula" tabindex="0">{parts}</div>\n')
    raise nodes.SkipNode


def setup(app: Any) -> dict[str, bool]:
    """Register the renderer for `html_math_renderer = "offline"`."""
    app.add_html_math_renderer("offline", (visit_inline, None), (visit_block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
