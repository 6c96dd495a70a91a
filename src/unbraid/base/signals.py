"""Asked to stop, by Ctrl-C or as schedulers and containers ask: SIGINT and SIGTERM are heard alike."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Terminated(KeyboardInterrupt):
    """Stopped by SIGTERM."""


RAISED: dict[int, type[KeyboardInterrupt]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


@contextmanager
def terminable() -> Iterator[None]:
    """Within the block SIGTERM raises Terminated, as SIGINT raises KeyboardInterrupt, so that files are closed."""
    with _heard({signal.SIGTERM: _raise}):
        yield


@contextmanager
def stop_requests() -> Iterator[list[int]]:
    """The signals that asked to stop while the block runs; the same once more raises at once."""
    signals: list[int] = []

    def request(number: int, frame: object) -> None:
        if number in signals:
            _raise(number, frame)
        signals.append(number)

    with _heard(dict.fromkeys(RAISED, request)):
        yield signals


def _raise(number: int, _: object) -> None:
    raise RAISED[number]


@contextmanager
def _heard(handlers: "dict[int, signal._HANDLER]") -> Iterator[None]:
    """Only the main thread hears signals; in another nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
