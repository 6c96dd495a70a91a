"""A cluster and an object store for the tests that ask for them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

collect_ignore = ["audited", "sample_plugin"]  # what other processes load by itself
Cli: TypeAlias = Callable[..., tuple[int, str, str]]
MEMORY = 80_000_000  # bytes of the shared memory of a node; Ray asks for no less


def pytest_configure() -> None:
    # What a shell starts in the background ignores SIGINT and so do its children: nothing could be interrupted.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture
def unbraid_cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run the command in this process: (exit code, stdout, stderr)."""
    from unbraid.cli.app import main

    monkeypatch.setenv("COLUMNS", "160")

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["unbraid", *map(str, arguments)])
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        return code, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def s3() -> Iterator[str]:
    """Address of a server that speaks S3; the environment names it and what it takes for credentials."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    known = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1"}
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {**known, "AWS_ENDPOINT_URL": address}.items():
            patch.setenv(name, value)
        server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _await(port)
            yield address
        finally:
            server.kill()
            server.wait()


def _await(port: int) -> None:
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError("the server does not answer")


@pytest.fixture(scope="module")  # its processes hold hundreds of megabytes: it ends with the file that needs it
def cluster(request: pytest.FixtureRequest) -> Iterator[Any]:
    """A Ray cluster of one node with a GPU in its books, with `address` and `add_node`."""
    request.getfixturevalue("s3")  # nodes have the environment in which they are started
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 1, "num_gpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    started = Cluster(initialize_head=True, head_node_args=head)
    yield started
    started.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """One browser for the tests of pages."""
    from tests.show.browser import launched

    with launched() as opened:
        yield opened
