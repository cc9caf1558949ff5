"""Data files on a faulty wire: whatever comes late, twice or not at all, none is left empty.

The requests go through a proxy that can send one of them again, later. Until data files were
created as commits are, the first request of a file made it empty, and undid it when it came last.
"""

from __future__ import annotations

import contextlib
import secrets
from dataclasses import dataclass

import pyarrow as pa
import pytest
from azure.storage.blob import ContainerClient
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from lossy_proxy import (
    CLOSE,
    CUT_ANSWER,
    CUT_REQUEST,
    DROP_ANSWER,
    DUPLICATE,
    LossyProxy,
    answer_after,
    answer_instead,
)
from optimist.core import DeltaLog
from optimist.logstores.s3 import bucket as s3_bucket
from optimist.spark import write

STORES = ("s3", "azure", "gcs")
TIMEOUT_S = "2"
FAULTS = (
    DROP_ANSWER,
    CLOSE,
    DUPLICATE,
    CUT_REQUEST,
    CUT_ANSWER,
    answer_instead(503),
    answer_after(500),
)
WRITES = {"PUT", "POST", "PATCH"}


@dataclass(frozen=True)
class Wire:
    """A place for tables, with a proxy on the way; what was written is read without it."""

    proxy: LossyProxy
    path: str
    key: str
    endpoint: str
    more: dict[str, str]

    @property
    def options(self):
        return {**self.more, self.key: self.proxy.endpoint}

    def log(self):
        return DeltaLog.for_path(self.path, self.options)

    def rows(self):
        direct = DeltaLog.for_path(self.path, {**self.more, self.key: self.endpoint})
        return direct.to_arrow().sort_by("id")

    def requests(self):
        """Those that wrote data files, in order."""
        return [each for each in self.proxy.requests if is_of_data(each)]


def is_of_data(request):
    named = request.path + request.body[:400].decode("latin-1")  # GCS has the name in the body
    is_file = "/part-" in named or "upload_id=" in request.path
    return request.method in WRITES and is_file and "/_delta_log/" not in named


@pytest.fixture
def s3(s3_server, fresh_name):
    s3_server.client("s3").create_bucket(Bucket=fresh_name)
    with LossyProxy(s3_server.endpoint) as proxy:
        options = {
            **s3_server.s3a_options,
            "fs.s3a.path.style.access": "true",
            "optimist.store.s3.readTimeoutSeconds": TIMEOUT_S,
        }
        path = f"s3a://{fresh_name}/table"
        yield Wire(proxy, path, "fs.s3a.endpoint", s3_server.endpoint, options)


@pytest.fixture
def azure(azure_server, fresh_name):
    with ContainerClient.from_connection_string(azure_server.connection_string, fresh_name) as made:
        made.create_container()
    with LossyProxy(azure_server.endpoint) as proxy:
        given = {
            "account": azure_server.account,
            "accountKey": azure_server.key,
            "readTimeoutSeconds": TIMEOUT_S,
        }
        options = {f"optimist.store.azure.{name}": value for name, value in given.items()}
        key = "optimist.store.azure.endpoint"
        yield Wire(proxy, f"az://{fresh_name}/table", key, azure_server.endpoint, options)


@pytest.fixture
def gcs(gcs_server, fresh_name):
    with contextlib.closing(
        Client(
            project=gcs_server.project,
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": gcs_server.endpoint},
        )
    ) as client:
        client.create_bucket(fresh_name)
    with LossyProxy(gcs_server.endpoint) as proxy:
        options = {"optimist.store.gcs.readTimeoutSeconds": TIMEOUT_S}
        key = "optimist.store.gcs.emulatorHost"
        yield Wire(proxy, f"gs://{fresh_name}/table", key, gcs_server.endpoint, options)


@pytest.fixture(params=STORES)
def wire(request):
    return request.getfixturevalue(request.param)


SMALL = pa.table({"id": range(1000), "text": [f"row {number}" for number in range(1000)]})
LARGE = pa.table({"id": range(9), "text": [secrets.token_hex(1_000_000) for _ in range(9)]})
"""More than two pieces of 8 MiB, as text that the codec can do nothing about."""


def in_pieces(monkeypatch):
    """What is sent in pieces elsewhere is sent in parts to S3 too."""
    monkeypatch.setattr(s3_bucket, "MAX_PUT_BYTES", 8 << 20)


def test_small_data_file_is_one_request(wire):
    log = wire.log()
    log.append(SMALL)
    wire.proxy.forget_requests()
    log.append(SMALL)
    assert len(wire.requests()) == 1


@pytest.mark.parametrize("rows", [SMALL, LARGE], ids=["small", "large"])
def test_request_of_a_data_file_that_comes_again_later_changes_nothing(wire, rows, monkeypatch):
    in_pieces(monkeypatch)
    wire.log().append(rows)
    for request in wire.requests():
        wire.proxy.send_again(request)
        assert wire.rows().equals(rows)


@pytest.mark.parametrize("rows", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("which", ["first", "last"])
def test_data_file_is_whole_whatever_befalls_a_request_of_it(wire, fault, which, rows, monkeypatch):
    in_pieces(monkeypatch)
    log = wire.log()
    log.append(rows)
    number = 1 if which == "first" else len(wire.requests())
    plan = wire.proxy.plan(is_of_data, fault, numbers=range(number, number + 1))
    log.append(rows)
    assert plan.was_met
    wire.proxy.heal()
    assert log.snapshot().version == 1
    assert wire.rows().equals(pa.concat_tables([rows, rows]).sort_by("id"))


def test_data_files_of_spark_tasks_are_created_in_the_same_way(wire, spark, conf):
    for key, value in wire.options.items():
        conf(f"spark.{key}" if key.startswith("optimist.") else key, value)
    write(spark.range(100).repartition(2), wire.path)
    written = wire.requests()
    assert len(written) == 2
    for request in written:
        wire.proxy.send_again(request)
    assert wire.rows()["id"].to_pylist() == [*range(100)]
