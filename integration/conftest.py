"""The emulators as session fixtures: what a client needs to reach each, and nothing else.

A server that is up is used; one that is installed is started, and stopped when the session ends.
None is installed here: `python3 localstack/up.py` does that. Without its server a test skips with
the reason, or fails where `REQUIRE_EMULATORS=1`. `EMULATOR_S3=http://host:port` (likewise for the
other names) points the tests at a server of one's own, such as one of `localstack/compose.yaml`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest

from optimist.core.transaction.hooks import default_hooks

pytest.register_assert_rewrite("hostile_entries")  # its assertions are the tests'

ROOT = Path(__file__).resolve().parent.parent
UP = ROOT / "localstack" / "up.py"
STATE = ROOT / "build" / "localstack" / "state.json"

AZURE_ACCOUNT = "devstoreaccount1"
# Azurite's own, printed in its manual; it opens nothing else.
AZURE_KEY = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)


@pytest.fixture(autouse=True)
def checkpoints_are_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit returns after its checkpoint, so that a test need not wait for it."""
    monkeypatch.setattr(default_hooks, "_LATE_BY_DEFAULT", frozenset())


@dataclass(frozen=True, slots=True)
class AwsServer:
    """Where a server that speaks S3 or DynamoDB is, with credentials it takes."""

    endpoint: str
    region: str = "us-east-1"
    access_key_id: str = "test"
    secret_access_key: str = "test"

    def client(self, service: str) -> Any:
        """A plain client, for what goes past the store under test."""
        import boto3  # not where s3fs is tried: it pins a botocore of its own

        return boto3.client(
            service,
            endpoint_url=self.endpoint,
            region_name=self.region,
            aws_access_key_id=self.access_key_id,
            aws_secret_access_key=self.secret_access_key,
        )

    @property
    def s3a_options(self) -> dict[str, str]:
        """The keys of S3A that lead here."""
        return {
            "fs.s3a.endpoint": self.endpoint,
            "fs.s3a.endpoint.region": self.region,
            "fs.s3a.access.key": self.access_key_id,
            "fs.s3a.secret.key": self.secret_access_key,
        }


@dataclass(frozen=True, slots=True)
class AzureServer:
    """Where Azurite is; `endpoint` ends with the account's name."""

    endpoint: str
    account: str = AZURE_ACCOUNT
    key: str = AZURE_KEY

    @property
    def connection_string(self) -> str:
        """All of it in one string, as the SDK and most tools take it."""
        return (
            f"DefaultEndpointsProtocol=http;AccountName={self.account};AccountKey={self.key};"
            f"BlobEndpoint={self.endpoint};"
        )


@dataclass(frozen=True, slots=True)
class GcsServer:
    """Where fake-gcs-server is; it wants no credentials."""

    endpoint: str
    project: str = "test"


@dataclass(frozen=True, slots=True)
class RedisServer:
    """Where Redis is, as `redis://host:port/database`."""

    endpoint: str


@dataclass(frozen=True, slots=True)
class HdfsServer:
    """Where the name node is, as `hdfs://host:port`; it checks no permissions."""

    endpoint: str


Reach = Callable[[str], str]


@pytest.fixture(scope="session")
def reach_emulator() -> Iterator[Reach]:
    """A function from an emulator's name to its endpoint; it skips or fails if there is none."""
    found: dict[str, str] = {}
    reasons: dict[str, str] = {}
    started: list[str] = []

    def reach(name: str) -> str:
        if name not in found and name not in reasons:
            _look_for(name, found, reasons, started)
        if name in reasons:
            _give_up(reasons[name])
        return found[name]

    yield reach
    if started:
        _run_up("--stop", *started)


@pytest.fixture(scope="session")
def s3_server(reach_emulator: Reach) -> AwsServer:
    """LocalStack S3."""
    return AwsServer(reach_emulator("s3"))


@pytest.fixture(scope="session")
def dynamodb_server(reach_emulator: Reach) -> AwsServer:
    """DynamoDB Local. Each access key and region sees tables of its own."""
    return AwsServer(reach_emulator("dynamodb"))


@pytest.fixture(scope="session")
def redis_server(reach_emulator: Reach) -> RedisServer:
    """Redis, in memory."""
    return RedisServer(reach_emulator("redis"))


@pytest.fixture(scope="session")
def azure_server(reach_emulator: Reach) -> AzureServer:
    """Azurite, the blob service."""
    return AzureServer(reach_emulator("azurite"))


@pytest.fixture(scope="session")
def gcs_server(reach_emulator: Reach) -> GcsServer:
    """fake-gcs-server."""
    return GcsServer(reach_emulator("gcs"))


@pytest.fixture(scope="session")
def hdfs_server(reach_emulator: Reach) -> HdfsServer:
    """The HDFS mini cluster."""
    return HdfsServer(reach_emulator("hdfs"))


@pytest.fixture
def fresh_name() -> str:
    """A name for a bucket, container, table, directory or key prefix that nobody has used."""
    return f"optimist-{uuid.uuid4().hex}"


@pytest.fixture
def container(azure_server: AzureServer, fresh_name: str) -> Iterator[Any]:
    """A container of its own, as the SDK's client."""
    from azure.storage.blob import ContainerClient  # not where drivers of fsspec are tried

    client = ContainerClient.from_connection_string(azure_server.connection_string, fresh_name)
    with client:
        client.create_container()
        yield client
        client.delete_container()


@pytest.fixture
def bucket(gcs_server: GcsServer, fresh_name: str) -> Iterator[Any]:
    """A bucket of its own, as the SDK has it."""
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.storage import Client

    client = Client(
        project=gcs_server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": gcs_server.endpoint},
    )
    yield client.create_bucket(fresh_name)
    client.close()


@pytest.fixture
def s3(s3_server: AwsServer, fresh_name: str) -> tuple[str, dict[str, str]]:
    """The URL of a bucket, and the options that lead there."""
    s3_server.client("s3").create_bucket(Bucket=fresh_name)
    return f"s3a://{fresh_name}", {**s3_server.s3a_options, "delta.logStore.s3a.impl": "s3"}


@pytest.fixture
def gcs(gcs_server: GcsServer, bucket: Any) -> tuple[str, dict[str, str]]:
    """The URL of a bucket, and the options that lead there."""
    return f"gs://{bucket.name}", {"optimist.store.gcs.emulatorHost": gcs_server.endpoint}


def _look_for(
    name: str, found: dict[str, str], reasons: dict[str, str], started: list[str]
) -> None:
    given = os.environ.get(f"EMULATOR_{name.upper()}")
    if given:
        found[name] = given
        return
    pid_before = _state().get(name, {}).get("pid")
    done = _run_up("--no-install", name)
    if done.returncode:
        reasons[name] = " ".join((done.stdout or done.stderr).split())
        return
    entry = _state()[name]
    found[name] = str(entry["endpoint"])
    if entry["pid"] != pid_before:
        started.append(name)


def _give_up(reason: str) -> NoReturn:
    if os.environ.get("REQUIRE_EMULATORS") == "1":
        pytest.fail(f"REQUIRE_EMULATORS=1, and there is no emulator: {reason}")
    pytest.skip(f"no emulator: {reason}")


def _state() -> dict[str, dict[str, object]]:
    entries: dict[str, dict[str, object]] = json.loads(STATE.read_text()) if STATE.exists() else {}
    return entries


def _run_up(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(UP), *arguments], capture_output=True, text=True, check=False
    )
