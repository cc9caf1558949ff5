"""Logs of schemas of streams on each kind of server, as on a local disk (spec 11.5)."""

import pytest

from tracked_streams import EVOLVED, Query, add, entries, mapped_table, schema_log


@pytest.fixture
def azure(azure_server, container):
    options = {"optimist.store.azure.connectionString": azure_server.connection_string}
    return f"az://{container.container_name}/table", options


@pytest.fixture
def gcs(gcs_server, bucket):
    options = {"optimist.store.gcs.emulatorHost": gcs_server.endpoint}
    return f"gs://{bucket.name}/table", options


@pytest.fixture
def s3(s3_server, fresh_name):
    s3_server.client("s3").create_bucket(Bucket=fresh_name)
    options = {f"spark.hadoop.{key}": value for key, value in s3_server.s3a_options.items()}
    return f"s3a://{fresh_name}/table", options


@pytest.mark.sample(3)
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
