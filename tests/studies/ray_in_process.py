"""What the executor asks of Ray, in one process: a task is done when somebody waits for it."""

import pickle
import traceback
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any


class RayError(Exception):
    """A process died."""


class RayTaskError(RayError):
    """A task raised an error."""

    def __init__(self, cause: Exception) -> None:
        super().__init__(str(cause))
        self.cause, self.traceback_str = cause, "".join(traceback.format_exception(cause))


class Killed(BaseException):
    """Ends a task as the death of its process would."""


def kill() -> None:
    raise Killed


class Reference:
    """To the value of a call, or to its error."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.call: Callable[[], Any] | None = call
        self.value: Any = None
        self.error: Exception | None = None

    def settle(self) -> None:
        call, self.call = self.call, None
        try:
            self.value = call() if call else self.value
        except Killed:
            self.error = RayError("The worker died. It says no more")
        except Exception as error:
            self.error = RayTaskError(error)


class Actor:
    """Its methods are called at once."""

    def __init__(self, made: object) -> None:
        self._made = made

    def __getattr__(self, name: str) -> "Remote":
        return Remote(getattr(self._made, name), at_once=True)


class Remote:
    """A function; what it is given and what it gives back is pickled, as between processes."""

    def __init__(self, function: Callable[..., Any], *, at_once: bool = False) -> None:
        self.function, self.at_once = function, at_once

    def options(self, **_: object) -> "Remote":
        return self

    def remote(self, *arguments: Any) -> Reference:
        sent = [each if isinstance(each, Reference | Actor) else _carried(each) for each in arguments]
        made = Reference(lambda: _carried(self.function(*(_get(each) for each in sent))))
        if self.at_once:
            made.settle()
        return made


def _carried(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def _get(reference: Any) -> Any:
    if isinstance(reference, list):
        return [_get(each) for each in reference]
    if not isinstance(reference, Reference):
        return reference
    reference.settle()
    if reference.error:
        raise reference.error
    return reference.value


def _wait(references: Sequence[Reference], **_: object) -> tuple[list[Reference], list[Reference]]:
    references[0].settle()
    return [references[0]], list(references[1:])


def _remote(**_: object) -> Callable[[Any], Any]:
    def known(what: Any) -> Any:
        return SimpleNamespace(remote=lambda: Actor(what())) if isinstance(what, type) else Remote(what)

    return known


def library() -> Any:
    """In place of the module `ray`, connected to a cluster of one node with one core."""
    node = {"Alive": True, "Resources": {"CPU": 1.0, "memory": 1e12}}
    affinity = SimpleNamespace(NodeAffinitySchedulingStrategy=lambda *_, **__: None)
    return SimpleNamespace(
        put=lambda value: Remote(lambda sent: sent).remote(value),
        get=_get,
        wait=_wait,
        remote=_remote,
        cancel=lambda *_, **__: None,
        kill=lambda _: None,
        nodes=lambda: [node],
        is_initialized=lambda: True,
        exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError),
        get_runtime_context=lambda: SimpleNamespace(get_node_id=lambda: "here"),
        util=SimpleNamespace(scheduling_strategies=affinity),
    )
