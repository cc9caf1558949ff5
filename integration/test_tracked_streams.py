"""Logs of schemas of streams on each kind of server, as on a local disk (spec 11.5)."""

import pytest
from azure.storage.blob import ContainerClient
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from tracked_streams import EVOLVED, Query, add, entries, mapped_table, schema_log


@pytest.fixture
def azure(azure_server, fresh_name):
    with ContainerClient.from_connection_string(azure_server.connection_string, fresh_name) as made:
        made.create_container()
    options = {"optimist.store.azure.connectionString": azure_server.connection_string}
    return f"az://{fresh_name}/table", options


@pytest.fixture
def gcs(gcs_server, fresh_name):
    client = Client(
        project=gcs_server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": gcs_server.endpoint},
    )
    client.create_bucket(fresh_name)
    client.close()
    return f"gs://{fresh_name}/table", {"optimist.store.gcs.emulatorHost": gcs_server.endpoint}


@pytest.fixture
def s3(s3_server, fresh_name):
    s3_server.client("s3").create_bucket(Bucket=fresh_name)
    options = {f"spark.hadoop.{key}": value for key, value in s3_server.s3a_options.items()}
    return f"s3a://{fresh_name}/table", options


@pytest.mark.parametrize("store", ["s3", "azure", "gcs"])
def test_a_stream_goes_from_schema_to_schema(store, request):
    path, options = request.getfixturevalue(store)
    log = mapped_table(path, options)
    query = Query(log)
    assert query.run() is None
    for number in range(2, 12):
        old, new = ("name", "title") if number % 2 == 0 else ("title", "name")
        log.alter.rename_column(old, new)
        add(log, id=number, **{new: "x"})
        assert [query.run() for _ in range(2)] == [EVOLVED, None]
    assert [row["id"] for row in query.seen] == list(range(1, 12))
    assert len(entries(log)) == 11
    number, entry = schema_log(log).newest()
    assert (number, entry.version) == (10, 20)
    listed = [status.name for status in log.store.list_from(schema_log(log).path + "/")]
    assert sorted(map(int, listed)) == list(range(11))
