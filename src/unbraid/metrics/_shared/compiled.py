"""What functions compiled by numba do to an interrupt, and where their counters begin.

The first call in a new installation waits until they are compiled, and much of that is for a few expressions. In a
compiled function an assignment of one array to a slice of another takes 2 seconds (it may raise an error, whose message
is compiled as well), `max`, `sum`, `bincount` or `sort` of an array half a second each, a loop over numbers 0.02: so
these functions are loops, and what NumPy does as fast around them is left to NumPy.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, cached_property, update_wrapper
from threading import Lock
from typing import Any, TypeVar, cast

import numpy as np

Function = TypeVar("Function", bound=Callable[..., Any])

# A plain 0 is a constant: numba would compile each function that takes it once for that, and again for other numbers.
START = cast("int", np.int64(0))

# What numba is to know of functions before it compiles one that calls them.
declarations: list[Callable[[], object]] = []
before_compiling: list[Callable[[], None]] = []
_declaring = Lock()

# Passes of numba's compiler over a function, for what none of these has where references are not counted: functions
# defined within it, expressions of whole arrays, branches of constants, where each variable ends, and variables of two
# types (a signed and an unsigned number in one variable would become a float). Without them a first score takes a
# seventh less.
UNUSED_PASSES = {
    "inline_closure_likes", "dead_branch_prune", "reconstruct_ssa", "inline_overloads", "nopython_rewrites",
    "ir_legalization",
}  # fmt: skip


@contextmanager
def interruptible() -> Iterator[None]:
    """Around calls of compiled functions: a Ctrl-C during one arrives as a SystemError, which looks like a fault.

    Raises:
        KeyboardInterrupt: in its place.
    """
    try:
        yield
    except SystemError as error:
        if isinstance(error.__cause__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        raise


class Kernel:
    """A function that numba compiles as it is called: only then is numba imported, which takes longer than a score."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        update_wrapper(self, function)
        self.py_func, self._options = function, options

    def __call__(self, *arguments: Any) -> Any:
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Any:
        import numba

        with _declaring:
            while declarations:
                declarations[-1]()
                declarations.pop()  # only now: an interrupt loses none
        dispatcher = numba.njit(pipeline_class=_compiler(), **self._options)(self.py_func)
        if before_compiling and not _stored(dispatcher):
            for hook in before_compiling:
                hook()
        return dispatcher

    @property
    def _numba_type_(self) -> Any:  # where another kernel calls it
        return self.dispatcher._numba_type_

    def stored(self) -> bool:
        """Whether it has been compiled in this installation, from this source."""
        return _stored(self.dispatcher)


@cache
def _compiler() -> type:
    """Numba's compiler without `UNUSED_PASSES`."""
    from numba.core.compiler import CompilerBase, DefaultPassBuilder

    class Compiler(CompilerBase):
        def define_pipelines(self) -> list[Any]:
            pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
            if not self.state.flags.nrt:
                pipeline.passes = [item for item in pipeline.passes if item[0].name() not in UNUSED_PASSES]
                pipeline.finalize()
            return [pipeline]

    return Compiler


def _stored(dispatcher: Any) -> bool:
    return bool(dispatcher._cache._cache_file._load_index())  # which is empty where the source is another


def kernel(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that Python calls, once in an installation.

    Unless with `_nrt`, no references are counted in it: what it is handed stays, and it makes no array.
    """
    defaults = {"cache": True, "nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True, "_nrt": False}
    return lambda function: cast(Any, Kernel(function, defaults | options))


def helper(**options: Any) -> Callable[[Function], Function]:
    """Compile a function that kernels call: once by itself, and once more with each of them."""

    def declared(function: Function) -> Function:
        def declare() -> None:
            from numba.extending import register_jitable

            register_jitable(no_cfunc_wrapper=True, pipeline_class=_compiler(), **options)(function)

        declarations.append(declare)
        return function

    return declared
