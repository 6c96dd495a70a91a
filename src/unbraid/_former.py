"""Names that were other names before: accepted for one minor version, with a warning."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar
from warnings import warn

Class = TypeVar("Class", bound=type)


def former_names(**names: str) -> Callable[[Class], Class]:
    """Let a class take and give its fields by their former names as well: `former_names(old="new")`."""

    def wrapped(cls: Class) -> Class:
        plain = cls.__init__

        @wraps(plain)
        def init(self: Any, *args: Any, **given: Any) -> None:
            for old, new in names.items():
                if old in given:
                    _announce(cls, old, new)
                    given[new] = given.pop(old)
            plain(self, *args, **given)

        def getattr_(self: Any, name: str) -> Any:
            if name in names:
                _announce(cls, name, names[name])
                return getattr(self, names[name])
            raise AttributeError(f"{cls.__name__!r} object has no attribute {name!r}")

        cls.__init__ = init
        cls.__getattr__ = getattr_  # pyright: ignore[reportAttributeAccessIssue]
        return cls

    return wrapped


def _announce(cls: type, old: str, new: str) -> None:
    warn(f"{old} of a {cls.__name__} is {new} now", FutureWarning, stacklevel=3)
