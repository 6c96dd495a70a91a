"""Templates of pages; every value that they print is escaped.

A page extends `base.html`: blocks `title`, `header`, `main`, `footer`, `styles` (beside page.css), `data` (JSON for
the script, in <script type="application/json" id=...>{{ data | tojson }}</script>) and `script`. Its policy forbids
the browser every request; a page that is served overrides the block `connect` with 'self'.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

import jinja2

from unbraid.base.printable import printable


def render(template: str, content: Mapping[str, Any]) -> str:
    """The template filled in; a name that it asks for and `content` lacks is an error."""
    return _environment().get_template(template).render(content)


def _shown(value: Any) -> Any:
    """A text with what is no character, or turns the direction of what follows, written out."""
    return printable(value, keep="\n\t\r") if type(value) is str else value


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("unbraid.show"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
