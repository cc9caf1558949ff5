"""Servers as processes: starting one that outlives us, knowing it again, stopping it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["birth_of", "free_port", "is_same_process", "start_server", "stop_group"]

_PAUSE_S = 0.05


def free_port() -> int:
    """Return a port of 127.0.0.1 that nobody listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def start_server(
    arguments: Sequence[str], *, environment: Mapping[str, str], folder: Path, log: Path
) -> subprocess.Popen[bytes]:
    """Start a server in a session of its own, so that it goes on when we end."""
    with log.open("ab") as output:
        return subprocess.Popen(
            list(arguments),
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def birth_of(pid: int) -> str | None:
    """When a process began, in the system's own words; None if it is gone or a zombie."""
    stat = Path(f"/proc/{pid}/stat")
    if Path("/proc/self/stat").exists():
        try:
            # The name, in parentheses, may hold spaces: count from the last parenthesis.
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if fields[0] == "Z" else fields[19]
    told = subprocess.run(
        ["ps", "-o", "state=,lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return None if not told or told.startswith("Z") else told.partition(" ")[2].strip()


def is_same_process(pid: int, birth: str) -> bool:
    """Whether the process with this number is the one that began then, and it runs.

    The system gives the number of a process that has ended to another one; to signal by number
    alone would some day end a stranger's.
    """
    return birth_of(pid) == birth


def stop_group(pid: int, *, grace_s: float = 10) -> None:
    """Ask a process that leads its group to end, with its children; after the grace, end it."""
    birth = birth_of(pid)
    if birth is None:
        return
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, number)
        deadline = time.monotonic() + grace_s
        while is_same_process(pid, birth) and time.monotonic() < deadline:
            threading.Event().wait(_PAUSE_S)
        if not is_same_process(pid, birth):
            return
