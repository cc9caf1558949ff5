"""Where the writers write: a local disk, and the emulated stores that `localstack/up.py` starts."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import boto3
from azure.storage.blob import ContainerClient

__all__ = ["EMULATORS", "Location", "emulated_location", "local_location"]

STATE = Path(__file__).resolve().parent.parent / "build" / "localstack" / "state.json"
EMULATORS = {"s3": "LocalStack", "azurite": "Azurite"}
"""The emulators that are measured: their names in `localstack/`, and their full names."""

_REGION = "us-east-1"
_ACCOUNT = "devstoreaccount1"
# Azurite's well-known key, printed in its manual; it opens nothing else.
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True, slots=True)
class Location:
    """A folder for tables, and how each engine is told to reach it.

    Attributes:
        name: The name in the results.
        url: The folder; tables are made below it.
        ours: Our options.
        theirs: deltalake's `storage_options`.
    """

    name: str
    url: str
    ours: Mapping[str, str] = field(default_factory=dict)
    theirs: Mapping[str, str] = field(default_factory=dict)

    def table(self, name: str) -> Location:
        """Yield the location of one table."""
        return Location(self.name, f"{self.url}/{name}", self.ours, self.theirs)


def local_location(directory: Path) -> Location:
    """Make a directory on a local disk."""
    return Location("local disk", str(directory))


def emulated_location(emulator: str) -> Location:
    """Make a bucket or container of an emulator that is up."""
    endpoint = str(json.loads(STATE.read_text())[emulator]["endpoint"])
    name = f"bench-{uuid.uuid4().hex[:12]}"
    return _MAKERS[emulator](endpoint, name)


def _localstack(endpoint: str, bucket: str) -> Location:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=_REGION,
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
    client.create_bucket(Bucket=bucket)
    ours = {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": _REGION,
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
    }
    theirs = {
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_REGION": _REGION,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_ALLOW_HTTP": "true",
        "aws_conditional_put": "etag",
    }
    return Location(EMULATORS["s3"], f"s3://{bucket}", ours, theirs)


def _azurite(endpoint: str, container: str) -> Location:
    connection = (
        f"DefaultEndpointsProtocol=http;AccountName={_ACCOUNT};AccountKey={_KEY};"
        f"BlobEndpoint={endpoint};"
    )
    with ContainerClient.from_connection_string(connection, container) as client:
        client.create_container()
    theirs = {
        "azure_storage_account_name": _ACCOUNT,
        "azure_storage_account_key": _KEY,
        "azure_storage_endpoint": endpoint,
        "azure_allow_http": "true",
    }
    ours = {"optimist.store.azure.connectionString": connection}
    return Location(EMULATORS["azurite"], f"az://{container}", ours, theirs)


_MAKERS = {"s3": _localstack, "azurite": _azurite}
