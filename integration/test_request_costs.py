"""What commits and reads cost in requests; the tables of docs/s3.md are what is counted here."""

import re
from collections import Counter
from pathlib import Path

import pytest

from counting import counting_clients, summary
from fleet import append_to, create_table
from optimist.core import DeltaLog
from slowness import every_look_is_fresh

DOCS = Path(__file__).parents[1] / "docs" / "s3.md"
COLUMNS = {
    "PUT": ("PutObject",),
    "LIST": ("ListObjectsV2",),
    "GET": ("GetObject",),
    "DELETE": ("DeleteObject",),
    "DynamoDB": ("GetItem", "PutItem", "Query", "UpdateItem"),
}
WITHOUT_CHECKSUM = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}
PROTOCOL_MINIMUM = 3
"""The entry before, the entry, and its completion: what the DynamoDB protocol can't do without."""


@pytest.fixture
def options(s3_server, dynamodb_server, fresh_name):
    client = s3_server.client("s3")
    client.create_bucket(Bucket=fresh_name)
    return {
        **s3_server.s3a_options,
        "io.delta.storage.S3DynamoDBLogStore.ddb.tableName": fresh_name,
        "optimist.store.dynamodb.endpoint": dynamodb_server.endpoint,
        "optimist.store.dynamodb.accessKeyId": dynamodb_server.access_key_id,
        "optimist.store.dynamodb.secretAccessKey": dynamodb_server.secret_access_key,
    }


def documented(store):
    """The rows of one store's table in the docs: what it is about, and requests by column."""
    text = DOCS.read_text(encoding="utf-8")
    section = text[text.index(f"<!-- costs: {store} -->") :]
    header, _, *rows = re.findall(r"^\|.*\|$", section.partition("\n\n")[0], re.MULTILINE)
    names = [cell.strip() for cell in header.strip("|").split("|")]
    assert names[1:] == list(COLUMNS)
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0]: tuple(map(int, row[1:])) for row in cells}


def in_columns(counts):
    known = {operation for operations in COLUMNS.values() for operation in operations}
    assert set(counts) <= known, counts
    return tuple(sum(counts[each] for each in operations) for operations in COLUMNS.values())


@pytest.mark.parametrize("store", ["s3", "s3-dynamodb"])
def test_requests_are_those_of_the_docs(store, options, fresh_name, monkeypatch):
    every_look_is_fresh(monkeypatch)
    given = {**options, "delta.logStore.s3a.impl": store}
    path = f"s3a://{fresh_name}/table"
    plain, quick = {**given}, {**given, **WITHOUT_CHECKSUM}
    measured = {}
    with counting_clients(monkeypatch) as counter:

        def count(what):
            with counter.during() as sent:
                what()
                for log in handles:
                    log.wait_for_background_work()
            found = Counter(summary(sent))
            # Once per process: whether the table of the entries is there.
            for once in ("DescribeTable", "CreateTable"):
                found.pop(once, None)
            return found

        full, bare = handles = DeltaLog.for_path(path, plain), DeltaLog.for_path(path, quick)
        first = count(lambda: create_table(bare))
        other = DeltaLog.for_path(f"s3a://{fresh_name}/other", quick)
        second = count(lambda: create_table(other))
        measured["first write to a bucket: the probe"] = first - second
        for number in range(4):
            append_to(full, f"{number}")
        whole = count(lambda: append_to(full, "4"))
        bare.snapshot()
        commit = count(lambda: append_to(bare, "5"))
        measured["commit, nobody else writing"] = commit
        measured["its checksum `N.crc`"] = whole - commit
        append_to(full, "6")
        measured["`snapshot()`, nothing new"] = count(full.snapshot)
        append_to(full, "7")
        append_to(full, "8")
        bare.snapshot()
        measured["every tenth commit: checkpoint, cleanup"] = (
            count(lambda: append_to(bare, "9")) - commit
        )
        fresh = DeltaLog.for_path(path, {**given, "spark.optimist.engineInfo": "another handle"})
        measured["opening a table at its checkpoint"] = count(fresh.snapshot)
        append_to(full, "10")
        measured["`snapshot()`, one new commit"] = count(fresh.snapshot)
    assert full.snapshot().version == 11
    assert {what: in_columns(counts) for what, counts in measured.items()} == documented(store)


def test_commit_on_s3_is_one_put_and_at_most_one_listing():
    put, listed, *rest = documented("s3")["commit, nobody else writing"]
    assert (put, rest) == (1, [0, 0, 0])
    assert listed <= 1


def test_commit_through_dynamodb_is_near_the_protocols_minimum():
    *_, asked = documented("s3-dynamodb")["commit, nobody else writing"]
    assert asked <= PROTOCOL_MINIMUM + 2
