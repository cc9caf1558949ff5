"""Azurite, Microsoft's emulator of Azure Blob Storage, from npm."""

from __future__ import annotations

from asking import http_status
from emulator import Emulator, Launch, ServerCommand
from installing import Installation, find_tool

__all__ = ["AZURITE"]

_VERSION = "3.37.0"
_ADVICE = "install Node.js 20 (Debian: apt-get install nodejs npm)"


def _install(installation: Installation) -> None:
    find_tool("node", _ADVICE)
    npm = find_tool("npm", _ADVICE)
    home = str(installation.home)
    installation.run(
        [npm, "install", "--prefix", home, "--no-audit", "--no-fund", f"azurite@{_VERSION}"]
    )


def _command(launch: Launch) -> ServerCommand:
    return ServerCommand(
        (
            find_tool("node", _ADVICE),
            str(launch.home / "node_modules" / "azurite" / "dist" / "src" / "blob" / "main.js"),
            *("--silent", "--blobHost", "127.0.0.1", "--blobPort", str(launch.port)),
            # The SDK speaks a newer version of the API than Azurite knows the name of.
            *("--disableTelemetry", "--skipApiVersionCheck", "--inMemoryPersistence"),
        )
    )


def _is_ready(launch: Launch) -> bool:
    return http_status(launch.port, "/") in (400, 403)


AZURITE = Emulator(
    name="azurite",
    title="Azurite",
    version=_VERSION,
    endpoint="http://127.0.0.1:{port}/devstoreaccount1",
    install_limit_s=600,
    start_limit_s=60,
    install=_install,
    command=_command,
    is_ready=_is_ready,
)
