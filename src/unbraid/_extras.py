"""Optional packages: imported at use, and named with their extra when absent."""

from importlib import import_module
from typing import Any


def require(module: str, extra: str, purpose: str) -> Any:
    """The imported module.

    Raises:
        ImportError: it is not installed; the message names the extra that brings it.
    """
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        raise ImportError(f"{purpose} needs {error.name}: pip install 'unbraid[{extra}]'") from error
