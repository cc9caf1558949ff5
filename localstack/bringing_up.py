"""Bringing one emulator from whatever it is now to installed, started and answering."""

from __future__ import annotations

import shutil
import threading
import time
from pathlib import Path

import places
from emulator import Emulator, Launch
from installing import CANCELLED, Installation, SetupError
from processes import birth_of, free_port, start_server, stop_group
from state import Running, forget, read_state, remember

__all__ = ["bring_down", "bring_up", "is_installed", "is_up"]

_PAUSE_S = 0.05
_STARTS = 2
_STAMP = "installed"


def is_up(emulator: Emulator) -> bool:
    """Whether the server of the state file is of the pinned version, runs and answers."""
    running = read_state().get(emulator.name)
    return (
        running is not None
        and running.version == emulator.version
        and running.is_alive()
        and emulator.is_ready(_launch(emulator, running.port))
    )


def is_installed(emulator: Emulator) -> bool:
    """Whether an installation of the pinned version was finished here."""
    return (_home(emulator) / _STAMP).exists()


def bring_up(emulator: Emulator, *, may_install: bool) -> Running:
    """Have the server running; it is installed first where it is not yet, and we may.

    Raises:
        SetupError: It could not be installed, or started and did not answer in time.
    """
    if not is_installed(emulator):
        if not may_install:
            raise SetupError(f"not installed; `python3 localstack/up.py {emulator.name}` does it")
        _install(emulator)
    bring_down(emulator.name)
    for _ in range(_STARTS - 1):
        try:
            return _start(emulator)
        except SetupError:
            if CANCELLED.is_set():
                raise
            # Another program may have taken the port since we found it free: once more.
    return _start(emulator)


def bring_down(name: str) -> bool:
    """Stop the server of that name; whether there was one."""
    running = read_state().get(name)
    if running is None:
        return False
    was_alive = running.is_alive()
    if was_alive:
        stop_group(running.pid)
    forget(name)
    shutil.rmtree(places.scratch_folder(name), ignore_errors=True)
    return was_alive


def _install(emulator: Emulator) -> None:
    home = _home(emulator)
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(parents=True)
    log = places.log_file(f"{emulator.name}-install")
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    emulator.install(Installation(home, log, time.monotonic() + emulator.install_limit_s))
    # Written last: an installation that was cut short is never taken for a finished one.
    (home / _STAMP).write_text(f"{emulator.title} {emulator.version}\n")


def _start(emulator: Emulator) -> Running:
    launch = _launch(emulator, free_port())
    shutil.rmtree(launch.scratch, ignore_errors=True)
    launch.scratch.mkdir(parents=True)
    log = places.log_file(emulator.name)
    log.parent.mkdir(parents=True, exist_ok=True)
    log.unlink(missing_ok=True)
    command = emulator.command(launch)
    process = start_server(
        command.arguments, environment=command.environment, folder=launch.scratch, log=log
    )
    running = Running(
        endpoint=emulator.endpoint.format(port=launch.port),
        port=launch.port,
        pid=process.pid,
        birth=birth_of(process.pid) or "",
        version=emulator.version,
        log=str(log),
    )
    # Before it answers: if we are ended now, the next run still knows whom to stop.
    remember(emulator.name, running)
    reason = _wait_until_ready(emulator, launch, running)
    if reason:
        bring_down(emulator.name)
        process.wait()
        raise SetupError(f"{reason}: {_last_line(log)} (see {log})")
    return running


def _wait_until_ready(emulator: Emulator, launch: Launch, running: Running) -> str | None:
    """Wait for the first answer; what went wrong if there was none."""
    deadline = time.monotonic() + emulator.start_limit_s
    while not emulator.is_ready(launch):
        if not running.is_alive():
            return "the server ended as it started"
        if time.monotonic() > deadline:
            return f"the server did not answer within {emulator.start_limit_s} s"
        if CANCELLED.is_set():
            return "cancelled"
        threading.Event().wait(_PAUSE_S)
    return None


def _launch(emulator: Emulator, port: int) -> Launch:
    return Launch(_home(emulator), places.scratch_folder(emulator.name), port)


def _home(emulator: Emulator) -> Path:
    return places.SERVERS / f"{emulator.name}-{emulator.version}"


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines()]
    return next((line[-300:] for line in reversed(lines) if line), "it said nothing")
