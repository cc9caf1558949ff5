"""Servers of one test's own, to be emptied and stopped: the emulators are shared, and are not."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from optimist.core.runtime.clock import SystemClock

__all__ = [
    "free_port",
    "postgresql_driver",
    "private_postgresql",
    "private_redis",
    "skip_or_fail",
]

_INSTALLED = Path(__file__).resolve().parents[2] / "localstack" / ".servers"
_SERVERS = Path(os.environ.get("EMULATORS_HOME", _INSTALLED))
_POLLS = 400
_POLL_S = 0.05
_DRIVERS = ("psycopg", "pg8000", "psycopg2")


def skip_or_fail(reason: str) -> NoReturn:
    """Skip on a laptop; fail where `REQUIRE_EMULATORS=1`, as in CI."""
    if os.environ.get("REQUIRE_EMULATORS") == "1":
        pytest.fail(f"REQUIRE_EMULATORS=1, and {reason}")
    pytest.skip(reason)


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def private_redis(directory: Path) -> Iterator[str | None]:
    """The URL of an empty Redis; None where there is no server to start."""
    found = sorted(_SERVERS.glob("redis-*/redis-server"))
    program = str(found[-1]) if found else shutil.which("redis-server")
    if program is None:
        yield None
        return
    libraries = ":".join(map(str, _SERVERS.glob("redis-*/root/usr/lib/*-linux-gnu*")))
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly"]
    environment = {"LD_LIBRARY_PATH": libraries} if libraries else {}
    with _running([*command, "no", "--dir", str(directory)], port, environment):
        yield f"redis://127.0.0.1:{port}/0"


def postgresql_driver() -> str | None:
    """The first driver that is installed, as SQLAlchemy's URLs name it; None without one."""
    found = (name for name in _DRIVERS if importlib.util.find_spec(name) is not None)
    return next(found, None)


@contextmanager
def private_postgresql(directory: Path) -> Iterator[str | None]:
    """`user@host:port/database` of an empty PostgreSQL; None where there is no server to start."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
    on_path = shutil.which("postgres")
    program = programs[-1] if programs else Path(on_path) if on_path else None
    if program is None:
        yield None
        return
    user = "postgres" if os.geteuid() == 0 else None  # it refuses to run as root
    if user is not None:
        for folder in (directory, *directory.parents):
            if folder == Path("/tmp"):
                break
            folder.chmod(folder.stat().st_mode | 0o011)
        shutil.chown(directory, user)
    data = directory / "data"
    subprocess.run(
        [str(program.parent / "initdb"), "-D", str(data), "-U", "optimist", "-A", "trust", "-N"],
        check=True,
        capture_output=True,
        user=user,
        cwd="/",
    )
    port = free_port()
    command = [str(program), "-D", str(data), "-p", str(port), "-h", "127.0.0.1", "-k", ""]
    # A polite SIGTERM makes it wait for its clients, and a pool keeps its connections.
    with _running(command, port, {}, user=user, stop=signal.SIGINT):
        yield f"optimist@127.0.0.1:{port}/postgres"


@contextmanager
def _running(
    command: list[str],
    port: int,
    environment: Mapping[str, str],
    *,
    user: str | None = None,
    stop: signal.Signals = signal.SIGTERM,
) -> Iterator[None]:
    server = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, **environment},
        user=user,
        cwd="/",
    )
    try:
        _wait_until_it_listens(server, port)
        yield
    finally:
        server.send_signal(stop)
        server.wait(30)


def _wait_until_it_listens(server: subprocess.Popen[bytes], port: int) -> None:
    clock = SystemClock()
    for _ in range(_POLLS):
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        if server.poll() is not None:
            raise RuntimeError(f"{server.args} ended with {server.returncode}")
        clock.sleep(_POLL_S)
    raise RuntimeError(f"{server.args} does not listen")
