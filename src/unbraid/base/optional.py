"""Optional packages: imported at use, and named with their extra when absent."""

from importlib import import_module
from typing import Any, NoReturn


class Missing:
    """Stands for what an absent package would bring: it can be imported and looked at, and says so when it is used."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise ImportError(self._reason)

    def __getattr__(self, name: str) -> NoReturn:
        # Not ImportError, which hasattr would let through.
        raise AttributeError(self._reason, name=name, obj=self)

    def __repr__(self) -> str:
        return f"<missing: {self._reason}>"


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
