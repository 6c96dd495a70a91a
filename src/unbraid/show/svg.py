"""A matplotlib figure as an inline SVG element that takes on the colours and fonts of its page."""

import io
from typing import Any
from xml.etree import ElementTree

import matplotlib
from markupsafe import Markup
from matplotlib.figure import Figure

from unbraid.show.fonts import without_glyph_warnings
from unbraid.show.style import ACCENT, GRID, INK, MARK, MUTED

SVG = "{http://www.w3.org/2000/svg}"
XLINK = "{http://www.w3.org/1999/xlink}href"
ROLES = {INK: "var(--ink)", MUTED: "var(--muted)", GRID: "var(--grid)", ACCENT: "var(--accent)", MARK: "var(--mark)"}
RASTER_DPI = 150  # of the dense parts; the rest is vector
PIXELS_PER_POINT = 4 / 3


def inline_svg(figure: Figure, *, name: str, label: str, crop: bool = True) -> Markup:
    """The figure as one <svg> element.

    Args:
        figure: drawn with the colours of `unbraid.show.style`, which become those of the page.
        name: unlike that of any other figure on the page; keeps their internal links apart.
        label: what the figure shows, for those who cannot see it.
        crop: to what is drawn; without it figures of one size stay of one size.
    """
    root = ElementTree.fromstring(_save(figure, crop))
    for parent in list(root.iter()):
        for child in list(parent):
            if child.tag in {f"{SVG}metadata", f"{SVG}style"} or not isinstance(child.tag, str):
                parent.remove(child)
    linked = _linked(root)
    for element in root.iter():
        element.tag = element.tag.removeprefix(SVG)
        _rewrite(element, name, linked)
    width = float(root.attrib.pop("width").removesuffix("pt")) * PIXELS_PER_POINT
    root.attrib.pop("height")
    for attribute in list(root.attrib):
        if attribute != "viewBox":
            del root.attrib[attribute]
    natural = f"{width:.0f}"
    root.attrib.update({"role": "img", "aria-label": label, "width": natural, "style": f"--natural-width: {natural}px"})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _save(figure: Figure, crop: bool) -> bytes:
    buffer = io.BytesIO()
    settings: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": "unbraid", "image.composite_image": False}
    # The browser draws the text with its own fonts; what the font used for measuring lacks does not matter.
    with matplotlib.rc_context(settings), without_glyph_warnings():
        figure.savefig(
            buffer, format="svg", dpi=RASTER_DPI, transparent=True,
            bbox_inches="tight" if crop else None, pad_inches=0.03,
            metadata={"Date": None, "Creator": None, "Format": None, "Type": None},
        )  # fmt: skip
    return buffer.getvalue()


def _linked(root: ElementTree.Element) -> set[str]:
    """Ids that something in the figure points to; the others are matplotlib's own names of groups."""
    linked = set()
    for element in root.iter():
        for attribute, value in element.attrib.items():
            if attribute == XLINK and value.startswith("#"):
                linked.add(value[1:])
            elif "url(#" in value:
                linked.add(value.split("url(#")[1].split(")")[0])
    return linked


def _rewrite(element: ElementTree.Element, name: str, linked: set[str]) -> None:
    for attribute, value in list(element.attrib.items()):
        if attribute == "id":
            if value in linked:
                element.attrib["id"] = f"{name}-{value}"
            else:
                del element.attrib["id"]
        elif attribute == XLINK:
            del element.attrib[attribute]
            element.attrib["href"] = f"#{name}-{value[1:]}" if value.startswith("#") else value
        elif "url(#" in value:
            element.attrib[attribute] = value.replace("url(#", f"url(#{name}-")
        elif attribute == "style":
            element.attrib[attribute] = _style(value)


def _style(value: str) -> str:
    for colour, role in ROLES.items():
        value = value.replace(colour, role)
    if "font:" in value or "font-family" in value:
        return _page_font(value)
    return value


def _page_font(value: str) -> str:
    """Keep the size that matplotlib gave and leave the family to the page."""
    declarations = []
    for declaration in value.split(";"):
        prop, _, setting = (part.strip() for part in declaration.partition(":"))
        if prop == "font":
            size = next(word for word in setting.split() if word.endswith("px"))
            declarations.append(f"font-size: {size}")
        elif prop and prop != "font-family":
            declarations.append(f"{prop}: {setting}")
    return "; ".join(declarations)
