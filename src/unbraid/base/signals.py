"""Asked to stop, by Ctrl-C or as schedulers and containers ask: SIGINT and SIGTERM are heard alike."""

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import NoReturn


class Terminated(KeyboardInterrupt):
    """Stopped by SIGTERM."""


RAISED: dict[int, type[KeyboardInterrupt]] = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: Terminated}


END_SECONDS = 1.5  # for what an interrupt has to clean up
STOPPED: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "stopped by SIGTERM"}
_saving: list[bool] = []


@contextmanager
def saving() -> Iterator[None]:
    """Around work that saves what is finished when it is interrupted, however long that takes."""
    _saving.append(True)
    try:
        yield
    finally:
        _saving.pop()


@contextmanager
def ended_when_interrupted() -> Iterator[None]:
    """Within the block an interrupt ends this process soon, even where it waits for a long computation elsewhere."""
    signals, wakes = socket.socketpair()
    wakes.setblocking(False)

    def listen() -> None:
        while received := signals.recv(1):
            if (number := received[0]) in STOPPED:
                time.sleep(END_SECONDS)
                if not _saving and wakes.fileno() >= 0:
                    cursor = "\x1b[?25h" if sys.stderr.isatty() else ""
                    leave(f"{cursor}unbraid: {STOPPED[number]}; no file was left half-written", 128 + number)
        signals.close()

    before = signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    threading.Thread(target=listen, daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        wakes.close()


def leave(message: str, code: int) -> NoReturn:
    """End without waiting for threads and libraries."""
    if message:
        print(message, file=sys.stderr)
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):
            stream.flush()
    os._exit(code)


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
