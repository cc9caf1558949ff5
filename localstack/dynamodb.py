"""DynamoDB Local, Amazon's own, from Maven."""

from __future__ import annotations

import places
from asking import http_status
from emulator import Emulator, Launch, ServerCommand
from installing import Installation, find_java
from maven import copy_jars

__all__ = ["DYNAMODB"]

_MAIN = "com.amazonaws.services.dynamodbv2.local.main.ServerRunner"
_LIST_TABLES = {
    "Content-Type": "application/x-amz-json-1.0",
    "X-Amz-Target": "DynamoDB_20120810.ListTables",
    # It wants a signature's shape and does not check it.
    "Authorization": "AWS4-HMAC-SHA256 Credential=test/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
}


def _install(installation: Installation) -> None:
    copy_jars(installation, "dynamodb-pom.xml")


def _command(launch: Launch) -> ServerCommand:
    lib = launch.home / "lib"
    return ServerCommand(
        (
            find_java(places.ROOT),
            "-Xmx256m",
            *("-cp", f"{lib}/*", _MAIN),
            *("-inMemory", "-port", str(launch.port), "-disableTelemetry"),
        )
    )


def _is_ready(launch: Launch) -> bool:
    return http_status(launch.port, "/", body="{}", headers=_LIST_TABLES) == 200


DYNAMODB = Emulator(
    name="dynamodb",
    title="DynamoDB Local",
    version="2.6.1",
    endpoint="http://127.0.0.1:{port}",
    install_limit_s=600,
    start_limit_s=60,
    install=_install,
    command=_command,
    is_ready=_is_ready,
)
