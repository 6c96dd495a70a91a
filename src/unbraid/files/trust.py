"""Code of a user's own, "package.module:function", and images by their path: used only where the user named them.

Whoever gives a name as an argument, an option or in a YAML file of his own means it to be run, or read; a folder or
file that somebody else made may name anything. So a name becomes code in one place, `imported`, and only as `Trusted`.
"""

import hashlib
import os
import pickle
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from unbraid.base.errors import UnbraidError
from unbraid.base.suggest import error_line


class Trusted(str):
    """A name of code, or a path of images, as the user gave it, and the folder in which he did.

    It goes through settings, tasks and other processes like any text. Written to a file and read back it is a plain
    `str` again, so that nothing which comes out of a file is ever taken for it.
    """

    __slots__ = ("folder",)

    def __new__(cls, name: str) -> "Trusted":
        made = super().__new__(cls, name)
        made.folder = name.folder if isinstance(name, Trusted) else os.getcwd()
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (str(self), self.folder, _OBJECTS.get(self))

    def spelled(self, name: str) -> "Trusted":
        """The same code by another spelling of its name."""
        made = Trusted(name)
        made.folder = self.folder
        return made


_OBJECTS: dict[str, Callable[..., Any]] = {}  # that the user gave in Python and no module holds, by `named`


def _restored(name: str, folder: str, target: Callable[..., Any] | None) -> Trusted:
    if target is not None:
        _OBJECTS[name] = target
    made = Trusted(name)
    made.folder = folder
    return made


def named(target: Callable[..., Any]) -> Trusted:
    """The name of a function of a module or script; of another object that of its class, and a digest of its content.

    Raises:
        ValueError: nothing could find it again, as with a lambda or a function inside another.
    """
    module, name = getattr(target, "__module__", ""), getattr(target, "__qualname__", "")
    if name and getattr(sys.modules.get(module), name, None) is target:
        return Trusted(f"{module}:{name}")
    try:
        digest = hashlib.sha256(pickle.dumps(target)).hexdigest()[:8]
    except (pickle.PicklingError, AttributeError, TypeError):
        raise ValueError(
            f"{name or type(target).__name__} cannot be found again when training resumes: give a function that is "
            "defined at the top of a module or script, not a lambda and not a function inside another"
        ) from None
    trusted = Trusted(f"{type(target).__module__}:{type(target).__name__}_{digest}")
    _OBJECTS[trusted] = target
    return trusted


class Untrusted(UnbraidError, ValueError):
    """Something names what the user did not, one thing or several; `option` of the command line does."""

    option = ""

    def __init__(self, reason: str, names: str | Sequence[str], remedy: str) -> None:
        super().__init__(f"{reason}: if you trust it, {remedy}")
        self.reason, self.names = reason, (names,) if isinstance(names, str) else tuple(names)


class UntrustedCode(Untrusted):
    """It is code."""

    option = "--trust-code"


class UntrustedData(Untrusted):
    """It is the path of images."""

    option = "--trust-data"


def is_code(name: str) -> bool:
    """Whether a text has the form "package.module:function"."""
    module, colon, function = name.partition(":")
    return bool(colon) and function.isidentifier() and all(part.isidentifier() for part in module.split("."))


def code_of(name: str) -> str:
    """A name without what stands in brackets behind it, such as "(direction=lower)", where that is code."""
    head, bracket, _ = name.partition("(")
    return head if bracket and name.endswith(")") and is_code(head) else name


def trusting(value: Any, names: Collection[str] | None = None) -> Any:
    """`value`, or what a list, tuple or mapping holds, with names marked: all those of code, or those in `names`."""
    from unbraid.base.arguments import list_of  # with NumPy, for which the help of commands does not wait

    if isinstance(value, str):
        code, names = code_of(value), None if names is None else list_of("trust", names)
        known = is_code(code) if names is None else value in names or code in map(code_of, names)
        return Trusted(value) if known else value
    if isinstance(value, list | tuple):
        return type(value)(trusting(item, names) for item in value)
    if isinstance(value, Mapping):
        return {key: trusting(item, names) for key, item in value.items()}
    return value


def trusted_in(value: Any) -> list[Trusted]:
    """The names of code in a list, tuple or mapping that the user gave; each once."""
    if isinstance(value, Trusted):
        return [value]
    if isinstance(value, Mapping):
        value = list(value.values())
    inner = value if isinstance(value, list | tuple) else []
    return list(dict.fromkeys(name for item in inner for name in trusted_in(item)))


def imported(name: str, what: str, remedy: str) -> Callable[..., Any]:
    """The function that a name stands for.

    Args:
        name: "package.module:function".
        what: it is to be, for errors: "metric".
        remedy: how the user trusts it, for errors.

    Raises:
        UntrustedCode: it is not `Trusted`. Nothing was imported.
        ValueError: it cannot be imported.
    """
    if not isinstance(name, Trusted):
        raise UntrustedCode(f"using the {what} {name!r} would execute that code", code_of(name), remedy)
    if name in _OBJECTS:
        return _OBJECTS[name]
    module, _, function = code_of(name).partition(":")
    try:
        with _importable(name.folder), exits_as_errors():
            return getattr(import_module(module), function)
    except Exception as error:  # whatever a module raises while it is executed
        reason = error_line(error, ImportError, AttributeError)
        raise ValueError(f"{what} {name!r} cannot be imported: {reason}") from error


@contextmanager
def exits_as_errors() -> Iterator[None]:
    """The end of the program, called for by code of the user's, is an error of that code; Ctrl-C is none."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(f"sys.exit({'' if error.code is None else repr(error.code)}) was called") from error


@contextmanager
def _importable(folder: str) -> Iterator[None]:
    """Modules of this folder can be imported; what is installed comes first."""
    sys.path.append(folder)
    try:
        yield
    finally:
        # The last of its kind: the user may have the folder on the path himself, and a module may put it there.
        places = [place for place, path in enumerate(sys.path) if path == folder]
        if places:
            del sys.path[places[-1]]


def is_called(function: Callable[..., Any], name: str) -> bool:
    """Whether `name` stands for this function, as far as that can be told without an import."""
    module, _, attribute = name.partition(":")
    return module in sys.modules and vars(sys.modules[module]).get(attribute) is function
