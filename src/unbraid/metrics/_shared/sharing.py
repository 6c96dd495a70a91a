"""Compute once per score card what several metrics need.

A step marked `@shared` is an ordinary function; inside `with sharing():` its results are kept and
handed out again for the very same arguments (arrays by identity, everything else by value). That is sound only where
nobody writes to an array, so that functions of a user's own are called by `without_sharing`.
"""

from collections.abc import Callable, Hashable, Mapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from inspect import unwrap
from typing import Any, ParamSpec, TypeVar

from unbraid.base.threads import within

P = ParamSpec("P")
R = TypeVar("R")

Store = dict[Hashable, tuple[Any, Any]]
_scope: ContextVar[Store | None] = ContextVar("unbraid_shared_work", default=None)
_of_codes: ContextVar[Store | None] = ContextVar("unbraid_work_on_codes", default=None)


def sharing(store: Store | None = None) -> AbstractContextManager[None]:
    """Keep the results of `@shared` steps in `store`, by default until the block ends.

    Never `yield` within the block: whoever resumes a generator would work in its scope, and leave it out of turn.
    """
    return within(_scope, {} if store is None else store)


def sharing_of_codes() -> AbstractContextManager[None]:
    """Keep the results of `@of_codes` steps until the block ends, in which the same codes are scored many times."""
    return within(_of_codes, {})


def without_sharing(function: Callable[P, R]) -> Callable[P, R]:
    """The function with nothing shared within it, as for a user's, which may change its arrays between two calls."""

    @wraps(function)
    def unshared(*args: P.args, **kwargs: P.kwargs) -> R:
        with within(_scope, None):
            return function(*args, **kwargs)

    return unshared


def shared(function: Callable[P, R]) -> Callable[P, R]:
    """Mark a pure function whose result metrics of one score card may share; callers must not write to it."""

    @wraps(function)
    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        return _once(_scope.get(), function, *args, **kwargs)

    return once


def of_codes(function: Callable[P, R]) -> Callable[P, R]:
    """As `shared`, but for all shuffles of the factors; see `sharing_of_codes`.

    All arguments are codes as they are stored, what follows from them alone, and numbers.
    """

    @wraps(function)
    def once(*args: P.args, **kwargs: P.kwargs) -> R:
        return _once(None if _scope.get() is None else _of_codes.get(), function, *args, **kwargs)

    return once


def _once(store: Store | None, function: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    if store is None:
        return function(*args, **kwargs)
    key = _key(function, args, kwargs)
    if key not in store:
        # The arguments are kept so that no later array can take over the identity of one that died.
        store[key] = (function(*args, **kwargs), (args, kwargs))
    return store[key][0]


def put_cached(result: R, step: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> None:
    """Within `sharing`, let this call of a `@shared` step give a result that is known without it."""
    store = _scope.get()
    if store is not None:
        store[_key(unwrap(step), args, kwargs)] = (result, (args, kwargs))


def _key(function: object, args: tuple[object, ...], kwargs: Mapping[str, object]) -> Hashable:
    return (function, *map(_identity, args), *((name, _identity(kwargs[name])) for name in sorted(kwargs)))


def _identity(argument: object) -> Hashable:
    if argument is None or isinstance(argument, bool | int | float | str):
        return (type(argument), argument)
    if isinstance(argument, tuple):
        return tuple(map(_identity, argument))
    return ("id", id(argument))
