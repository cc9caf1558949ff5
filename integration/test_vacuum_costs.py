"""VACUUM of a table on S3: what is deleted, and by how many requests."""

from __future__ import annotations

import pyarrow as pa
import pytest

from counting import counting_clients, summary
from optimist.core import DeltaLog
from optimist.core.data.intents import stored_intents
from optimist.core.errors import StorageError

UNCHECKED = {"spark.databricks.delta.retentionDurationCheck.enabled": "false"}


@pytest.fixture
def table(s3_server, fresh_name):
    """A table with ten live files, and how to put others beside them."""
    s3_server.client("s3").create_bucket(Bucket=fresh_name)
    options = {**s3_server.s3a_options, "delta.logStore.s3a.impl": "s3", **UNCHECKED}
    log = DeltaLog.for_path(f"s3a://{fresh_name}/table", options)
    for number in range(10):
        log.append(pa.table({"id": [number]}))
    return log


@pytest.mark.again
def test_dead_files_go_by_thousands_and_the_living_stay(table, s3_server, fresh_name, monkeypatch):
    client = s3_server.client("s3")
    names = [f"part-{number:05}.parquet" for number in range(2090)]
    odd = ["a b%20c/é.parquet", "x\ty.parquet", "_p/hidden.parquet", "sub/part.parquet"]
    for name in (*names, *odd, "sub/_delta_log/0.json"):
        client.put_object(Bucket=fresh_name, Key=f"table/{name}", Body=b"x")
    client.put_object(Bucket=fresh_name, Key="table2/part.parquet", Body=b"x")
    with counting_clients(monkeypatch) as counter, counter.during() as sent:
        assert table.vacuum(0).num_files == len(names) + 2
    assert summary(sent)["DeleteObjects"] <= 4
    listed = client.get_paginator("list_objects_v2").paginate(Bucket=fresh_name)
    left = {item["Key"] for page in listed for item in page.get("Contents", [])}
    assert not left & {f"table/{name}" for name in names}
    assert {"table/_p/hidden.parquet", "table/sub/part.parquet", "table2/part.parquet"} <= left
    assert sorted(table.to_arrow().column("id").to_pylist()) == list(range(10))
    assert table.restore(5) is not None
    assert table.count() == 6


def test_a_file_that_can_not_be_deleted_is_an_error(table, s3_server, fresh_name, monkeypatch):
    from botocore.client import BaseClient
    from botocore.exceptions import ClientError

    s3_server.client("s3").put_object(Bucket=fresh_name, Key="table/dead.parquet", Body=b"x")
    call = BaseClient._make_api_call

    def denied(self, name, given):
        if name == "DeleteObjects":
            return {"Errors": [{"Key": "table/dead.parquet", "Code": "AccessDenied"}]}
        if name == "DeleteObject":  # what was not deleted together is deleted alone
            raise ClientError({"Error": {"Code": "AccessDenied"}}, name)
        return call(self, name, given)

    monkeypatch.setattr(BaseClient, "_make_api_call", denied)
    with pytest.raises(StorageError) as caught:
        table.vacuum(0)
    assert caught.value.fields["code"] == "AccessDenied"


def test_ten_writes_announce_themselves_by_one_request_and_a_vacuum_elsewhere_heeds_it(
    table, s3_server, fresh_name, monkeypatch
):
    client = s3_server.client("s3")
    with counting_clients(monkeypatch) as counter, counter.during() as sent:
        stored_intents.forget_ended(table.table)
        for number in range(10):
            table.append(pa.table({"id": [number]}))
    assert sum("_optimist_intents" in str(request) for request in sent) <= 2
    client.put_object(Bucket=fresh_name, Key="table/young.parquet", Body=b"x")
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(stored_intents, "_TABLES", {})
        done = table.vacuum(0)
    assert (done.num_files, done.num_live_intents) == (0, 1)
    done = table.vacuum(0)
    assert (done.num_files, done.num_live_intents) == (1, 0)
    assert len(table.to_arrow()) == 20


def test_files_that_are_gone_are_found_by_listings(table, s3_server, fresh_name):
    client = s3_server.client("s3")
    gone = table.snapshot().files.column("path").to_pylist()[0]
    table.delete()
    client.delete_object(Bucket=fresh_name, Key=f"table/{gone}")
    with pytest.raises(Exception, match="1 are gone"):
        table.restore(9)
