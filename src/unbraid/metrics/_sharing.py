"""Compute once per score card what several metrics need.

A step marked `@shared` is an ordinary function; inside `with sharing():` its results are kept and
handed out again for the very same arguments (arrays by identity, everything else by value).
"""

from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_scope: ContextVar[dict[Hashable, tuple[Any, Any]] | None] = ContextVar("unbraid_shared_work", default=None)


@contextmanager
def sharing() -> Iterator[None]:
    """Keep the results of `@shared` steps until the block ends."""
    token = _scope.set({})
    try:
        yield
    finally:
        _scope.reset(token)


def shared(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a pure function whose result metrics of one score card may share; callers must not write to it."""

    @wraps(function)
    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        store = _scope.get()
        if store is None:
            return function(*args, **kwargs)
        key = (function, *map(_identity, args), *((name, _identity(kwargs[name])) for name in sorted(kwargs)))
        if key not in store:
            # The arguments are kept so that no later array can take over the identity of one that died.
            store[key] = (function(*args, **kwargs), (args, kwargs))
        return store[key][0]

    return once


def _identity(argument: object) -> Hashable:
    if argument is None or isinstance(argument, bool | int | float | str):
        return (type(argument), argument)
    if isinstance(argument, tuple):
        return tuple(map(_identity, argument))
    return ("id", id(argument))
