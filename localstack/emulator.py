"""What the runner has to know of an emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from installing import Installation

__all__ = ["Emulator", "Launch", "ServerCommand"]


@dataclass(frozen=True, slots=True)
class Launch:
    """The places and the port that one start of a server is given.

    Attributes:
        home: The folder it was installed into.
        scratch: An empty folder that it may write to.
        port: A port of 127.0.0.1 that was free a moment ago.
    """

    home: Path
    scratch: Path
    port: int


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """A command line and what it needs in its environment beyond what we have."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Emulator:
    """One server: how it is installed, started and asked whether it serves.

    Attributes:
        name: What the command line and the state file call it.
        title: What people call it.
        version: The pinned version.
        endpoint: The address, with `{port}`.
        install_limit_s: Seconds after which an installation is given up.
        start_limit_s: Seconds after which a start is given up.
        install: Puts the server into the installation's folder, or raises `SetupError`.
        command: The command line that starts it in the foreground.
        is_ready: Whether it answers; asked again and again, so it must not wait for long.
    """

    name: str
    title: str
    version: str
    endpoint: str
    install_limit_s: int
    start_limit_s: int
    install: Callable[[Installation], None]
    command: Callable[[Launch], ServerCommand]
    is_ready: Callable[[Launch], bool]
