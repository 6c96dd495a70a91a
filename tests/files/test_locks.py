"""Locks hold between threads, processes and forks, and say so where a file system has none."""

import errno
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from tests.processes import holder_elsewhere, started
from unbraid.files.locks import Held, NoLocksWarning, is_held, locked

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="forks, and asks for what Windows does not hold")


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    return tmp_path / ".lock"


@contextmanager
def in_a_thread(lock: Path) -> Iterator[None]:
    """Another thread holds it while the block runs."""
    begun, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with locked(lock):
            begun.set()
            ended.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    assert begun.wait(30)
    try:
        yield
    finally:
        ended.set()
        thread.join()


def test_threads_keep_each_other_out_and_asking_frees_nothing(lock: Path) -> None:
    other = lock.with_name(".other")
    with in_a_thread(lock):
        with pytest.raises(Held, match="another thread holds the lock"), locked(lock):
            pass
        assert [is_held(lock), is_held(other)] == [True, False]
        with locked(other):
            assert holder_elsewhere(lock, other) == "another process, another process"
        assert holder_elsewhere(lock, other) == "another process, free"
    assert not is_held(lock)


def test_who_holds_it_is_told_so_and_asks_without_losing_it(lock: Path) -> None:
    with locked(lock):
        assert is_held(lock)
        for wait in ("never", "threads"):
            with pytest.raises(Held, match="this thread"), locked(lock, wait=wait):
                pass
        with pytest.raises(RuntimeError, match="Deadlock"), locked(lock, wait="always"):
            pass
        assert holder_elsewhere(lock) == "another process"
    assert holder_elsewhere(lock) == "free"


def test_a_file_that_is_read_and_closed_by_others_stays_held(lock: Path) -> None:
    with locked(lock):
        lock.read_bytes()
        assert holder_elsewhere(lock) == "another process"


def test_a_file_that_is_not_there_is_held_by_nobody_and_is_not_made(lock: Path) -> None:
    assert not is_held(lock)
    assert not lock.exists()


def test_a_thread_that_is_waited_for_is_followed_and_a_process_is_not(lock: Path) -> None:
    order = []

    def follow() -> None:
        with locked(lock, wait="threads"):
            order.append("second")

    with locked(lock):
        thread = threading.Thread(target=follow)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
    with holding(lock), pytest.raises(Held, match="another process"), locked(lock, wait="threads"):
        pass


def test_a_thread_that_frees_the_lock_after_its_name_is_followed(lock: Path) -> None:
    held = FileLock(lock, thread_local=False)
    held.acquire()
    leaving = threading.Timer(0.3, held.release)
    leaving.start()
    with locked(lock, wait="threads") as alone:
        assert alone
    leaving.join()


@contextmanager
def holding(lock: Path) -> Iterator[None]:
    with script("with locked(path):\n    print('held', flush=True)\n    sys.stdin.readline()", lock) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield


HEAD = """
import os, signal, sys, threading
from pathlib import Path
from unbraid.files.locks import Held, is_held, locked
path = Path(sys.argv[1])
"""


def script(text: str, *arguments: object) -> AbstractContextManager[subprocess.Popen[str]]:
    return started("-c", HEAD + text, *map(str, arguments), stdin=subprocess.PIPE, stdout=subprocess.PIPE)


FORKS = """
def child():
    try:
        with locked(path):
            return "taken"
    except Held as error:
        return error.by if is_held(path) else "not seen"

with locked(path):
    pid = os.fork()
    if pid == 0:
        said = child()
    else:
        os.waitpid(pid, 0)
        print("ended", flush=True)
        sys.stdin.readline()
if pid == 0:
    print(said, flush=True)
"""


def test_a_forked_child_holds_nothing_and_its_end_frees_nothing(lock: Path) -> None:
    with script(FORKS, lock) as process:
        assert process.stdout
        assert process.stdout.readline() == "another process\n"
        assert process.stdout.readline() == "ended\n"
        assert holder_elsewhere(lock) == "another process"
        process.communicate("\n")
    assert holder_elsewhere(lock) == "free"


OUTLIVES = """
with locked(path):
    if os.fork() == 0:
        print("child", flush=True)
        sys.stdin.readline()
        with locked(path):
            print("taken", flush=True)
        os._exit(0)
    signal.pause()
"""


def test_a_child_that_outlives_its_parent_holds_nothing_up(lock: Path) -> None:
    with script(OUTLIVES, lock) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "child\n"
        assert holder_elsewhere(lock) == "another process"
        process.kill()
        process.wait()
        assert holder_elsewhere(lock) == "free"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "taken\n"


COUNTS = """
counter = path.with_name("counter")

def count():
    for _ in range(20):
        with locked(path, wait="always"):
            number = int(counter.read_text())
            os.sched_yield()
            counter.write_text(str(number + 1))

threads = [threading.Thread(target=count) for _ in range(4)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""


def test_threads_of_several_processes_count_without_a_miss(lock: Path) -> None:
    (lock.parent / "counter").write_text("0")
    with ExitStack() as stack:
        processes = [stack.enter_context(script(COUNTS, lock)) for _ in range(3)]
        assert [process.wait(60) for process in processes] == [0, 0, 0]
    assert (lock.parent / "counter").read_text() == "240"


def refusing(number: int) -> Callable[..., None]:
    def refuse(*_: object) -> None:
        raise OSError(number, "injected")

    return refuse


@pytest.mark.parametrize("name", ["ENOLCK", "EOPNOTSUPP", "EINVAL", "ENOSYS"])
def test_a_file_system_without_locks_says_so(lock: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("fcntl.flock", refusing(getattr(errno, name)))
    told = re.escape(f"{lock.parent}: this file system has no locks; do not let two processes work in this folder")
    with ExitStack() as stack:
        with pytest.warns(NoLocksWarning, match=told):
            assert not stack.enter_context(locked(lock))
        assert not is_held(lock)


def test_any_other_fault_is_told_and_nothing_is_held(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("fcntl.flock", refusing(errno.EIO))
        with pytest.raises(OSError, match="injected"), locked(lock):
            pass
    assert not is_held(lock)


def test_a_lock_that_is_removed_at_its_end_passes_to_who_waits(lock: Path) -> None:
    order = []

    def follow() -> None:
        with locked(lock, wait="always", remove=True):
            order.append("second")

    with locked(lock, remove=True):
        thread = threading.Thread(target=follow)
        thread.start()
        thread.join(0.2)
        order.append("first")
    thread.join(30)
    assert order == ["first", "second"]
    assert not lock.exists()
