"""Processes that kill themselves in the middle of their work, at a step that the test names.

A step is one thing that a store does and others may see: a request over HTTP, a command to Redis, a
statement to a database, a system call, a call to HDFS, the beginning and the end of a data file.
`record_steps` lets the work, a commit unless another is named, run to its end and tells its steps;
`kill_at` runs the same in a fresh process, which gives itself SIGKILL right before or right after
one of them: no `finally`, no `atexit`, no flush.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

import hdfs_native
import redis
import sqlalchemy.engine.default
import urllib3

from fleet import append_to
from optimist.core import DeltaLog
from optimist.core.data.storage.new_file import _LocalFile
from optimist.logstores.hdfs.native_client import NativeWriter

__all__ = ["KILLED", "SURVIVOR", "Kill", "append_elsewhere", "kill_at", "record_steps"]

KILLED = "killed.parquet"
"""The file that the killed commit adds."""
SURVIVOR = "survivor.parquet"
"""The file that the commit after it adds."""

Work = Callable[[DeltaLog], object]
"""What a process does to a table; a function of a module."""

_LIMIT_S = 60
_LOCK = threading.Lock()
"""An exit code can be read once, and starting a process reads those of all others; whoever comes
second would be told 255."""

_PRELOADED = (
    "fleet",
    "optimist.core.local.commands",
    "optimist.logstores.azure.store",
    "optimist.logstores.gcs.store",
    "optimist.logstores.hdfs.native_store",
    "optimist.logstores.local.store",
    "optimist.logstores.s3.dynamodb",
    "optimist.logstores.s3.redis",
    "optimist.locks.dynamodb_arbiter",
    "optimist.locks.redis_arbiter",
    "optimist.locks.sql_arbiter",
    "crashing",
)


@dataclass(frozen=True, slots=True)
class Kill:
    """Where a process dies: at which step, counted from 0, and on which side of it."""

    step: int
    is_after: bool

    def __str__(self) -> str:
        return f"{'after' if self.is_after else 'before'} step {self.step}"


def _append_survivor(log: DeltaLog) -> object:
    return append_to(log, SURVIVOR)


def _append_killed(log: DeltaLog) -> object:
    return append_to(log, KILLED)


def record_steps(path: str, options: Mapping[str, str], work: Work = _append_survivor) -> list[str]:
    """Work on a table in another process; the steps that it took, as text."""
    steps, code = _run(path, options, work, kill=None)
    assert code == 0, f"the process ended with {code}"
    assert steps is not None
    return steps


def kill_at(path: str, options: Mapping[str, str], kill: Kill, work: Work = _append_killed) -> None:
    """Work on a table in another process, which dies on the way."""
    _, code = _run(path, options, work, kill=kill)
    assert code == -signal.SIGKILL, f"the process was to be killed {kill} and ended with {code}"


def append_elsewhere(path: str, options: Mapping[str, str]) -> None:
    """Append `SURVIVOR` to a table, in another process that knows nothing of the one before."""
    _, code = _run(path, options, _append_survivor, kill=None)
    assert code == 0, f"the process after it ended with {code}"


def _run(
    path: str, options: Mapping[str, str], work: Work, *, kill: Kill | None
) -> tuple[list[str] | None, int | None]:
    context = get_context("forkserver")
    context.set_forkserver_preload(list(_PRELOADED))
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(
        target=_work, args=(path, dict(options), work, kill, theirs), daemon=True
    )
    with _LOCK:
        process.start()
    theirs.close()
    has_ended = wait([process.sentinel], _LIMIT_S)
    if not has_ended:
        process.kill()
        wait([process.sentinel])
    with _LOCK:
        code = process.exitcode
    if not has_ended:
        raise TimeoutError(f"a commit took more than {_LIMIT_S} s: the table is blocked")
    steps = ours.recv() if code == 0 else None
    ours.close()
    return steps, code


def _work(
    path: str, options: dict[str, str], work: Work, kill: Kill | None, answer: Connection
) -> None:
    steps = _Steps(kill)
    _watch_all(steps)
    log = DeltaLog.for_path(path, options)
    log.snapshot()
    steps.is_armed = True
    work(log)
    steps.is_armed = False
    answer.send(steps.seen)


class _Steps:
    """Counts steps once it is armed, and kills the process at the one that was named."""

    def __init__(self, kill: Kill | None) -> None:
        self.is_armed = False
        self.seen: list[str] = []
        self._kill = kill

    def watch(self, owner: Any, name: str, label: Callable[..., str]) -> None:
        """Make every call of a function or method a step."""
        original = getattr(owner, name)

        @wraps(original)
        def watched(*args: Any, **kwargs: Any) -> Any:
            if not self.is_armed:
                return original(*args, **kwargs)
            number = len(self.seen)
            self.seen.append(label(*args, **kwargs))
            self._die_if(Kill(number, is_after=False))
            try:
                return original(*args, **kwargs)
            finally:  # "there is no such file" is an answer, too
                self._die_if(Kill(number, is_after=True))

        setattr(owner, name, watched)

    def _die_if(self, here: Kill) -> None:
        if here == self._kill:
            os.kill(os.getpid(), signal.SIGKILL)


def _watch_all(steps: _Steps) -> None:
    # boto3, azure-storage-blob and google-cloud-storage all send through urllib3.
    steps.watch(urllib3.HTTPConnectionPool, "urlopen", _request)
    steps.watch(redis.Redis, "execute_command", lambda _, *args, **__: f"redis {args[0]}")
    dialect = sqlalchemy.engine.default.DefaultDialect
    steps.watch(dialect, "do_execute", lambda _, __, sql, *___: f"sql {sql.split()[0]}")
    steps.watch(dialect, "do_commit", lambda *_: "sql COMMIT")
    for call in ("open", "fsync", "link", "unlink"):
        steps.watch(os, call, lambda *args, call=call, **_: f"os.{call}")
    for call in ("__init__", "publish"):
        steps.watch(_LocalFile, call, lambda *_, call=call: f"data file {call}")
    for call in ("get_file_info", "create", "rename", "delete", "list_status", "read"):
        steps.watch(hdfs_native.Client, call, lambda *_, call=call, **__: f"hdfs {call}")
    for call in ("write", "close"):
        steps.watch(NativeWriter, call, lambda *_, call=call: f"hdfs {call}")


def _request(_: Any, method: str, url: str, body: Any = None, *__: Any, **more: Any) -> str:
    """Method and path; DynamoDB's operation stands in a header, Google's object in the body."""
    headers = {key.lower(): value for key, value in (more.get("headers") or {}).items()}
    operation = headers.get("x-amz-target", b"")
    if operation:
        return f"dynamodb {operation.decode().rpartition('.')[2]}"
    name = re.search(rb'"name": "([^"]*)"', body) if isinstance(body, bytes) else None
    return f"{method} {url} {name[1].decode() if name else ''}".rstrip()
