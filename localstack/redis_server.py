"""Redis: the system's own, or Debian's packages unpacked into our folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

from asking import talk
from emulator import Emulator, Launch, ServerCommand
from installing import Installation, SetupError

__all__ = ["REDIS"]

_OLDEST_MAJOR = 7
_ADVICE = (
    "install Redis 7 or newer (Debian: apt-get install redis-server, macOS: brew install redis)"
)


def _install(installation: Installation) -> None:
    server = installation.home / "redis-server"
    own = shutil.which("redis-server")
    if own and _major(own) >= _OLDEST_MAJOR:
        server.symlink_to(own)
        return
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise SetupError(f"needs `redis-server`, which is not on PATH: {_ADVICE}")
    _unpack(installation)
    server.symlink_to(installation.home / "root" / "usr" / "bin" / "redis-server")
    if _major(str(server), _libraries(installation.home)) < _OLDEST_MAJOR:
        raise SetupError(f"the packages of this system hold an older Redis: {_ADVICE}")


def _unpack(installation: Installation) -> None:
    """Unpack, not install: the package's own script would start a server on the usual port."""
    if os.geteuid() == 0:
        installation.run(["apt-get", "update", "--quiet"])
    wanted = subprocess.run(
        ["apt-get", "install", "--simulate", "--no-install-recommends", "redis-server"],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    missing = re.findall(r"^Inst (\S+)", wanted, re.MULTILINE)
    if not missing:
        raise SetupError(f"apt-get knows no package redis-server: {_ADVICE}")
    installation.run(["apt-get", "download", *missing])
    for package in sorted(installation.home.glob("*.deb")):
        installation.run(["dpkg-deb", "-x", str(package), str(installation.home / "root")])


def _major(server: str, libraries: str = "") -> int:
    """Return the major version that the server reports, or 0 if it does not run."""
    told = subprocess.run(
        [server, "--version"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **({"LD_LIBRARY_PATH": libraries} if libraries else {})},
    )
    found = re.search(r"v=(\d+)", told.stdout)
    return int(found.group(1)) if found else 0


def _libraries(home: Path) -> str:
    return ":".join(str(folder) for folder in home.glob("root/usr/lib/*-linux-gnu*"))


def _command(launch: Launch) -> ServerCommand:
    libraries = _libraries(launch.home)
    return ServerCommand(
        (
            str(launch.home / "redis-server"),
            *("--port", str(launch.port), "--bind", "127.0.0.1"),
            *("--save", "", "--appendonly", "no", "--dir", str(launch.scratch)),
        ),
        {"LD_LIBRARY_PATH": libraries} if libraries else {},
    )


def _is_ready(launch: Launch) -> bool:
    return talk(launch.port, b"PING\r\n") == b"+PONG\r\n"


REDIS = Emulator(
    name="redis",
    title="Redis",
    version="7.0.15",
    endpoint="redis://127.0.0.1:{port}/0",
    install_limit_s=180,
    start_limit_s=20,
    install=_install,
    command=_command,
    is_ready=_is_ready,
)
