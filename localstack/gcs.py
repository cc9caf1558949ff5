"""fake-gcs-server, an emulator of Google Cloud Storage, built from its Go module."""

from __future__ import annotations

from asking import http_status
from emulator import Emulator, Launch, ServerCommand
from installing import Installation, find_tool

__all__ = ["GCS"]

_VERSION = "1.56.1"


def _install(installation: Installation) -> None:
    go = find_tool("go", "install Go 1.26 or newer (https://go.dev/doc/install)")
    installation.run(
        [go, "install", f"github.com/fsouza/fake-gcs-server@v{_VERSION}"],
        {"GOBIN": str(installation.home), "GOFLAGS": "-mod=mod"},
    )


def _command(launch: Launch) -> ServerCommand:
    address = f"127.0.0.1:{launch.port}"
    return ServerCommand(
        (
            str(launch.home / "fake-gcs-server"),
            *("-scheme", "http", "-backend", "memory"),
            *("-host", "127.0.0.1", "-port", str(launch.port)),
            *("-external-url", f"http://{address}", "-public-host", address),
        )
    )


def _is_ready(launch: Launch) -> bool:
    return http_status(launch.port, "/storage/v1/b?project=test") == 200


GCS = Emulator(
    name="gcs",
    title="fake-gcs-server",
    version=_VERSION,
    endpoint="http://127.0.0.1:{port}",
    install_limit_s=1200,
    start_limit_s=20,
    install=_install,
    command=_command,
    is_ready=_is_ready,
)
