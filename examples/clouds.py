"""Where the flights can live: one conf file per store, as a user's own would be.

`examples/clouds/NAME.conf` holds Spark conf keys; `${EMULATOR_...}` in it stands for the address of
an emulator that `localstack/up.py` started.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import boto3
from azure.storage.blob import ContainerClient
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from conf_file import read_conf

__all__ = ["EMULATED", "Cloud", "emulated_cloud"]

_FOLDER = Path(__file__).with_name("clouds")
_STATE = Path(__file__).resolve().parent.parent / "build" / "localstack" / "state.json"


@dataclass(frozen=True, slots=True)
class Cloud:
    """A store for the flights.

    Attributes:
        name: What the demonstration calls it.
        url: The folder; tables are made below it.
        conf: The Spark conf entries that it needs; they are all that differs between stores.
    """

    name: str
    url: str
    conf: Mapping[str, str]


def emulated_cloud(name: str) -> Cloud:
    """One of `EMULATED`, with a fresh bucket, container or directory.

    Raises:
        KeyError: Its emulator is not up: `python3 localstack/up.py` brings it up.
    """
    addresses = _addresses()
    conf = read_conf(_FOLDER / f"{name}.conf", addresses)
    bucket = f"flights-{uuid.uuid4().hex[:8]}"
    return Cloud(name, EMULATED[name](bucket, {**addresses, **conf}), conf)


def _addresses() -> dict[str, str]:
    state = json.loads(_STATE.read_text()) if _STATE.exists() else {}
    found = {f"EMULATOR_{name.upper()}": str(item["endpoint"]) for name, item in state.items()}
    given = {key: value for key, value in os.environ.items() if re.match("EMULATOR_[A-Z0-9]+", key)}
    return {**found, **given}


def _s3(bucket: str, known: Mapping[str, str]) -> str:
    boto3.client(
        "s3",
        endpoint_url=known["EMULATOR_S3"],
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    ).create_bucket(Bucket=bucket)
    return f"s3a://{bucket}"


def _azure(bucket: str, known: Mapping[str, str]) -> str:
    connection = known["spark.optimist.store.azure.connectionString"]
    with ContainerClient.from_connection_string(connection, bucket) as client:
        client.create_container()
    return f"abfss://{bucket}@devstoreaccount1.dfs.core.windows.net"


def _gcs(bucket: str, known: Mapping[str, str]) -> str:
    options = {"api_endpoint": known["EMULATOR_GCS"]}
    nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]
    client = Client("test", nobody, client_options=options)
    client.create_bucket(bucket)
    return f"gs://{bucket}"


def _hdfs(bucket: str, known: Mapping[str, str]) -> str:
    return f"{known['EMULATOR_HDFS']}/{bucket}"


EMULATED = {"s3": _s3, "s3-dynamodb": _s3, "azure": _azure, "gcs": _gcs, "hdfs": _hdfs}
"""The stores that have an emulator, each with the function that makes a fresh bucket there."""
