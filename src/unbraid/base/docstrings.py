"""What docstrings say, to be shown elsewhere."""

import inspect
import re
from collections.abc import Callable
from typing import Any


def argument_texts(function: Callable[..., Any]) -> dict[str, str]:
    """What the docstring says of each argument, on one line."""
    section = re.search(r"^Args:\n(.*?)(?=^\S|\Z)", inspect.getdoc(function) or "", re.MULTILINE | re.DOTALL)
    if section is None:
        return {}
    entries = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", section[1], re.MULTILINE | re.DOTALL)
    return {name: " ".join(text.split()) for name, text in entries}
