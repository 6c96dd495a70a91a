"""A Ray cluster: to join one and to leave it."""

import logging
import os
import socket
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from unbraid.base.current_folder import importable

ANSWER_SECONDS = 5.0  # for the cluster to accept a connection


def join(ray: Any, address: str) -> bool:
    """Whether this process joined the cluster here; False where it was part of one already.

    Raises:
        ValueError: no cluster answers at the address.
    """
    if ray.is_initialized():
        return False
    silent = f"address {address}: no Ray cluster answers there; `ray start --head` starts one"
    if address.startswith("ray://"):
        raise ValueError(f"address {address}: Ray's client is not supported; start this on a node of the cluster")
    host, _, port = _recorded(address).rpartition(":")
    if port.isdigit():
        # Ray itself would try for minutes, and then end this process.
        try:
            socket.create_connection((host, int(port)), ANSWER_SECONDS).close()
        except OSError as error:
            raise ValueError(f"{silent} ({error})") from None
    elif address != "auto":
        raise ValueError(f"address {address}: write auto, or host:port")
    try:
        ray.init(address=address, job_config=_job(ray), log_to_driver=False, logging_level=logging.ERROR)
    except ConnectionError:
        raise ValueError(silent) from None
    except RuntimeError as error:  # such as another version of Ray or Python
        raise ValueError(f"address {address}: {' '.join(str(error).split())}") from None
    return True


def leave(ray: Any, joined: bool) -> None:
    """Leave the cluster if `join` said that it joined it."""
    if joined:
        ray.shutdown()


def _job(ray: Any) -> Any:
    """A job whose tasks import from no folder that this process does not import from.

    Ray would have them look first of all in the current folder, where a stranger's `queue.py` may lie.
    """

    class Known(list[str]):
        def extend(self, folders: Iterable[str]) -> None:
            super().extend(folder for folder in folders if folder in importable())

    job = ray.job_config.JobConfig()
    job._py_driver_sys_path = Known()
    return job


def _recorded(address: str) -> str:
    """What "auto" stands for, as far as that is written down; Ray finds others by looking at the processes here."""
    if address != "auto":
        return address
    record = Path(os.environ.get("RAY_TMPDIR", tempfile.gettempdir())) / "ray" / "ray_current_cluster"
    return os.environ.get("RAY_ADDRESS") or (record.read_text(encoding="utf-8") if record.is_file() else "")
