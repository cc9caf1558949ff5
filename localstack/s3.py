"""LocalStack's S3, in a venv of its own, with the gap in its create-if-absent closed."""

from __future__ import annotations

import sys

import places
from asking import http_status
from emulator import Emulator, Launch, ServerCommand
from installing import Installation

__all__ = ["S3"]

_VERSION = "4.7.0"
_PACKAGES = (
    f"localstack-core[base-runtime]=={_VERSION}",
    "moto-ext==5.1.6.post2",
    "service_identity",
    "pymongo",
)


def _install(installation: Installation) -> None:
    venv = installation.home / "venv"
    installation.run([sys.executable, "-m", "venv", str(venv)])
    constraints = places.RECIPES / "localstack-constraints.txt"
    installation.run(
        [
            str(venv / "bin" / "python"),
            *("-m", "pip", "install", "--disable-pip-version-check", "--no-input"),
            *("--progress-bar=off", "--constraint", str(constraints)),
            *_PACKAGES,
        ]
    )


def _command(launch: Launch) -> ServerCommand:
    return ServerCommand(
        (
            str(launch.home / "venv" / "bin" / "python"),
            "-I",  # no package of the folder or of PYTHONPATH may get between
            str(places.RECIPES / "guarded_s3.py"),
        ),
        {
            "SERVICES": "s3",
            "GATEWAY_LISTEN": f"127.0.0.1:{launch.port}",
            "FILESYSTEM_ROOT": str(launch.scratch),
            # Without it LocalStack may take this machine for its container, and write to /var/lib.
            "OVERRIDE_IN_DOCKER": "0",
            "SKIP_SSL_CERT_DOWNLOAD": "1",
            "DISABLE_EVENTS": "1",
            "PERSISTENCE": "0",
        },
    )


def _is_ready(launch: Launch) -> bool:
    return http_status(launch.port, "/_localstack/health") == 200


S3 = Emulator(
    name="s3",
    title="LocalStack S3",
    version=_VERSION,
    endpoint="http://127.0.0.1:{port}",
    install_limit_s=600,
    start_limit_s=60,
    install=_install,
    command=_command,
    is_ready=_is_ready,
)
