"""What commits and reads cost in requests on Azure and GCS, as the tables in the docs tell it."""

import re
from collections import Counter
from pathlib import Path

import pytest

from fleet import append_to, create_table
from lossy_proxy import LossyProxy
from optimist.core import DeltaLog
from slowness import every_look_is_fresh, no_look_is_fresh

DOCS = Path(__file__).parents[1] / "docs"
COLUMNS = ("PUT", "LIST", "GET", "DELETE")
COMMIT = "commit, nobody else writing"
IS_BUCKET = re.compile(r"/storage/v1/b/[^/]+$")
WITHOUT_CHECKSUM = {"spark.databricks.delta.writeChecksumFile.enabled": "false"}


@pytest.fixture
def azure(azure_server, container):
    """The proxy that counts, the URL of a table, and the options that lead there."""
    with LossyProxy(azure_server.endpoint) as proxy:
        given = {
            "account": azure_server.account,
            "accountKey": azure_server.key,
            "endpoint": proxy.endpoint,
        }
        options = {f"optimist.store.azure.{name}": value for name, value in given.items()}
        yield proxy, f"az://{container.container_name}/table", options


@pytest.fixture
def gcs(gcs_server, bucket):
    with LossyProxy(gcs_server.endpoint) as proxy:
        options = {"optimist.store.gcs.emulatorHost": proxy.endpoint}
        yield proxy, f"gs://{bucket.name}/table", options


def documented(store):
    """The rows of the store's table: what it is about, and the requests by column."""
    text = (DOCS / f"{store}.md").read_text(encoding="utf-8")
    section = text[text.index(f"<!-- costs: {store} -->") :]
    header, _, *rows = re.findall(r"^\|.*\|$", section.partition("\n\n")[0], re.MULTILINE)
    assert tuple(cell.strip() for cell in header.strip("|").split("|"))[1:] == COLUMNS
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    return {row[0]: tuple(map(int, row[1:])) for row in cells}


def column_of(request):
    is_listing = "comp=list" in request.path or "/o?" in request.path
    is_upload = "/upload/" in request.path
    return {("GET", True): "LIST", ("POST", False): "PUT"}.get(
        (request.method, is_listing and not is_upload), request.method
    )


@pytest.mark.parametrize("store", ["azure", "gcs"])
def test_requests_are_those_of_the_docs(store, request, monkeypatch):
    every_look_is_fresh(monkeypatch)
    proxy, path, options = request.getfixturevalue(store)

    def count(what):
        proxy.forget_requests()
        what()
        # Google's SDK asks for the bucket in the background, for its own traces; no one waits.
        of_objects = (each for each in proxy.requests if not IS_BUCKET.search(each.path))
        return Counter(column_of(each) for each in of_objects)

    full = DeltaLog.for_path(path, options)
    bare = DeltaLog.for_path(path, {**options, **WITHOUT_CHECKSUM})
    other = DeltaLog.for_path(f"{path}-2", {**options, **WITHOUT_CHECKSUM})
    measured = {}
    first = count(lambda: create_table(bare))
    measured["first write to a custom endpoint: the probe"] = first - count(
        lambda: create_table(other)
    )
    append_to(full, "1")
    whole = count(lambda: append_to(full, "2"))
    bare.snapshot()
    measured[COMMIT] = count(lambda: append_to(bare, "3"))
    measured["its checksum `N.crc`"] = whole - measured[COMMIT]
    bare.snapshot()
    measured["`snapshot()`, nothing new"] = count(bare.snapshot)
    append_to(full, "4")
    measured["`snapshot()`, one new commit"] = count(bare.snapshot)
    assert {
        what: tuple(counts[column] for column in COLUMNS) for what, counts in measured.items()
    } == documented(store)


@pytest.mark.parametrize("store", ["azure", "gcs"])
def test_where_requests_are_slow_the_log_is_listed_before_each_put(store, request, monkeypatch):
    proxy, path, options = request.getfixturevalue(store)
    log = DeltaLog.for_path(path, options)
    create_table(log)
    append_to(log, "1")
    no_look_is_fresh(monkeypatch)
    proxy.forget_requests()
    append_to(log, "2")
    sent = (each for each in proxy.requests if not IS_BUCKET.search(each.path))
    assert Counter(map(column_of, sent)) == {"PUT": 2, "LIST": 2}


@pytest.mark.parametrize("store", ["azure", "gcs"])
def test_commit_is_one_put_and_at_most_one_listing(store):
    put, listed, *rest = documented(store)[COMMIT]
    assert (put, rest) == (1, [0, 0])
    assert listed <= 1
