"""The state file: which servers are up, at which address, as which process."""

from __future__ import annotations

import contextlib
import fcntl
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import TextIO

import places
from processes import is_same_process

__all__ = ["Running", "forget", "only_one_runner", "read_state", "remember"]

_PAUSE_S = 0.2
_PATIENCE_S = 1800
_one_writer = threading.Lock()


@dataclass(frozen=True, slots=True)
class Running:
    """One server that was started.

    Attributes:
        endpoint: Its address.
        port: The port in it.
        pid: Its process, which leads a process group.
        birth: When that process began; see `processes.birth_of`.
        version: The pinned version that was started.
        log: The file it writes to.
    """

    endpoint: str
    port: int
    pid: int
    birth: str
    version: str
    log: str

    def is_alive(self) -> bool:
        """Whether the process still runs; it may not answer yet."""
        return is_same_process(self.pid, self.birth)


def read_state() -> dict[str, Running]:
    """Return the servers by name, though some may have ended. An unreadable file counts as none."""
    try:
        return {name: Running(**entry) for name, entry in json.loads(_text()).items()}
    except (ValueError, TypeError):
        return {}


def remember(name: str, running: Running) -> None:
    """Note a server that was started."""
    with _one_writer:
        _write({**read_state(), name: running})


def forget(name: str) -> None:
    """Strike a server out."""
    with _one_writer:
        _write({other: running for other, running in read_state().items() if other != name})


@contextlib.contextmanager
def only_one_runner(say: Callable[[str], None]) -> Iterator[None]:
    """Wait until no other process installs, starts or stops servers of this folder.

    Raises:
        TimeoutError: Another one has been at it for half an hour.
    """
    places.STATE.parent.mkdir(parents=True, exist_ok=True)
    with places.STATE.with_suffix(".lock").open("w") as lock:
        if not _try_lock(lock):
            say("another up.py or down.py is at work: waiting for it")
            _wait_for_lock(lock)
        yield


def _wait_for_lock(lock: TextIO) -> None:
    deadline = time.monotonic() + _PATIENCE_S
    while not _try_lock(lock):
        if time.monotonic() > deadline:
            raise TimeoutError("another up.py or down.py has been at work for half an hour")
        threading.Event().wait(_PAUSE_S)


def _try_lock(lock: TextIO) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _text() -> str:
    try:
        return places.STATE.read_text()
    except FileNotFoundError:
        return "{}"


def _write(state: dict[str, Running]) -> None:
    places.STATE.parent.mkdir(parents=True, exist_ok=True)
    new = places.STATE.with_suffix(".new")
    new.write_text(json.dumps({name: asdict(state[name]) for name in sorted(state)}, indent=2))
    new.replace(places.STATE)  # one step: who reads meanwhile sees the old or the new
