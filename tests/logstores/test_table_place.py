"""One name for each place: for handles, locks and the entries of an arbiter, on every store."""

from __future__ import annotations

import json
from collections import Counter
from threading import Barrier, Thread

import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, LogFileNotFoundError, UsageError
from optimist.core.log.names import commit_path
from optimist.core.plugins.arbiter import CommitEntry
from optimist.core.plugins.data_origin import DataOrigin
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.plugins.table_path import resolve_table_path
from optimist.core.plugins.table_place import other_spellings, place_of
from optimist.locks import SQLArbiter
from optimist.logstores import (
    AzureLogStore,
    FsspecLogStore,
    GCSLogStore,
    HDFSLogStore,
    LocalLogStore,
    MemoryLogStore,
    S3LogStore,
)
from optimist.logstores.fsspec.arbiter import FsspecArbiterLogStore

AZURE = {"optimist.store.azure.account": "acct"}
SPELLINGS = {
    "s3://b/t": (
        S3LogStore,
        ("s3:/b/t", "s3a://b/t", "S3N://b//t/", "s3a://b/./t", "s3a://b/x/../t"),
    ),
    "gs://b/t": (GCSLogStore, ("GS://b/t", "gs://b//t//", "gs://b/x/../t", "gs://b/./t")),
    "abfss://c@acct.dfs.core.windows.net/t": (
        lambda: AzureLogStore(AZURE),
        (
            "abfs://c@ACCT.dfs.core.windows.net/t/",
            "wasbs://c@acct.blob.core.windows.net//t",
            "az://c/t",
            "abfss://c@acct.dfs.core.windows.net/x/../t",
        ),
    ),
    "hdfs://nn:8020/t": (HDFSLogStore, ("HDFS://nn:8020//t/", "hdfs://nn:8020/x/./../t")),
    "memory:///a/t": (
        MemoryLogStore,
        ("memory://a/t", "memory:/a//t", "MEMORY:///a/t/", "memory:///a/x/../t"),
    ),
    "memory:///tab": (FsspecLogStore, ("memory://tab", "memory:/tab/", "memory:////tab")),
}


@pytest.mark.parametrize("place", SPELLINGS)
def test_every_spelling_of_a_place_has_one_name(place):
    make, spellings = SPELLINGS[place]
    store = make()
    found = {each: place_of(each, store) for each in (place, *spellings)}
    assert set(found.values()) == {place}
    assert place_of(resolve_table_path(spellings[-1], store), store) == place
    assert ".." not in resolve_table_path(spellings[-1], store).split("/")


OUTSIDE = {
    "s3a://b/../other/t": S3LogStore,
    "gs://b/t/../../u": GCSLogStore,
    "abfss://c@acct.dfs.core.windows.net/../other/t": AzureLogStore,
    "hdfs://nn/../t": HDFSLogStore,
    "memory://tab/../x": MemoryLogStore,
    "file://localhost/x": LocalLogStore,
    "simplecache::memory://a/../t": FsspecLogStore,
    # An HTTP client takes these for steps, too.
    "s3://../t": S3LogStore,
    "gs://./b/t": GCSLogStore,
    "abfss://..@acct.dfs.core.windows.net/t": AzureLogStore,
    "memory://../t": MemoryLogStore,
}


@pytest.mark.parametrize("path", OUTSIDE)
def test_a_path_that_leads_out_of_its_store_is_refused(path):
    store = OUTSIDE[path]()
    for ask in (resolve_table_path, place_of):
        with pytest.raises(UsageError) as caught:
            ask(path, store)
        assert caught.value.kind == "OPTIMIST_NO_TABLE_PATH"


def test_handles_and_locks_of_all_spellings_are_one():
    handles = {id(DeltaLog.for_path(path)) for path in ("memory:///one/t", "memory:/one//t/")}
    assert len(handles) == 1


class OtherHost:
    """As much as is asked of a driver that forgets the host of its URLs."""

    def __init__(self, **known):
        self.__dict__.update(known)


def test_tables_on_two_hosts_are_two_places(monkeypatch):
    """Many drivers strip the host, or Azure's account, from what they call a path."""
    store = FsspecLogStore()
    monkeypatch.setattr(
        FsspecLogStore, "_driver", lambda _self, path: (OtherHost(), "/" + path.rpartition("/")[2])
    )
    places = [f"sftp://me:secret@{host}/t" for host in ("one", "two")]
    assert [place_of(each, store) for each in places] == ["sftp://me@one/t", "sftp://me@two/t"]
    azure = {place_of(f"abfss://c@{name}.dfs.core.windows.net/t", store) for name in ("one", "two")}
    assert len(azure) == 2


def test_an_azure_driver_tells_the_account_that_a_url_leaves_out(monkeypatch):
    store = FsspecLogStore()
    driver = OtherHost(account_name="acct")
    monkeypatch.setattr(FsspecLogStore, "_driver", lambda _self, path: (driver, path))
    spellings = (
        "az://c/t",
        "abfs://c/t/",
        "abfss://c@acct.dfs.core.windows.net//t",
        "abfss://c@acct.blob.core.windows.net/t",
    )
    assert {place_of(each, store) for each in spellings} == {
        "abfss://c@acct.dfs.core.windows.net/t"
    }
    named = set(other_spellings("az://c//t", store, name="abfss://c@acct.dfs.core.windows.net/t"))
    assert {"az://c//t", "az://c/t", "abfs://c@acct.dfs.core.windows.net/t"} <= named


# Behind an arbiter


@pytest.fixture
def arbiter(tmp_path):
    return SQLArbiter({"optimist.store.sql.url": f"sqlite:///{tmp_path}/entries.db"})


def arbitrated(arbiter):
    return FsspecArbiterLogStore({}, arbiter=arbiter)


def test_two_spellings_of_one_table_have_one_winner(arbiter):
    stores = {path: arbitrated(arbiter) for path in ("memory:///two", "memory://two")}
    barrier, found = Barrier(2), Counter()

    def put(path, store):
        barrier.wait()
        outcome = store.put_if_absent(commit_path(f"{path}/_delta_log", 0), path.encode())
        found[outcome] += 1

    threads = [Thread(target=put, args=item) for item in stores.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[PutOutcome.CREATED] == 1
    assert arbiter.latest("memory:///two").complete
    assert arbiter.latest("memory://two") is None


@pytest.mark.parametrize("is_complete", [True, False])
def test_entries_under_another_spelling_stop_the_first_write(arbiter, is_complete):
    store = arbitrated(arbiter)
    table = f"memory://old{is_complete}"
    log = f"{table}/_delta_log"
    data = json.dumps({"commitInfo": {"timestamp": 0}}).encode()
    staged = ".tmp/00000000000000000000.json.x"
    store.put_overwrite(f"{log}/{staged}", data)
    entry = CommitEntry(table, "00000000000000000000.json", staged, complete=False)
    arbiter.create(entry)
    if is_complete:
        store.put_overwrite(commit_path(log, 0), data)
        arbiter.complete(entry.completed(9_999_999_999))
    for path in (table, table.replace("//", "///")):
        with pytest.raises(ConfigError) as caught:
            store.put_if_absent(commit_path(f"{path}/_delta_log", 1), b"{}")
        assert caught.value.kind == "OPTIMIST_ARBITER_PATH_MISMATCH"
        assert caught.value.fields["other_path"] == table
    # What its writer was promised is kept, also when the entry is deleted as advised.
    assert store.read_bytes(commit_path(log, 0)) == data
    assert arbiter.latest(table).complete
    with pytest.raises(LogFileNotFoundError):
        store.read_bytes(commit_path(log, 1))


def test_entries_under_the_right_spelling_stay_valid(arbiter):
    first = arbitrated(arbiter)
    created = first.put_if_absent(commit_path("memory:///kept/_delta_log", 0), b"{}")
    assert created is PutOutcome.CREATED
    again = arbitrated(arbiter)
    found = again.put_if_absent(commit_path("memory://kept/_delta_log", 1), b"{}")
    assert found is PutOutcome.CREATED


def test_an_origin_names_its_paths_in_all_ways():
    origin = DataOrigin(("abfss", "az"), "a.dfs.h", is_account=True, is_default=True)
    assert origin.spellings_of("az://c/t") == (
        "abfss://c@a.dfs.h/t",
        "abfss://c@a.blob.h/t",
        "abfss://c/t",
        "az://c@a.dfs.h/t",
        "az://c@a.blob.h/t",
        "az://c/t",
    )
    assert origin.spellings_of("az://c@b.dfs.h/t") == ()
