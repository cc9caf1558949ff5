"""Tables whose log names files that are not the table's: nothing of that is opened or touched."""

from __future__ import annotations

import itertools
import json
import os
import sys
import threading
import urllib.parse
from pathlib import Path

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from optimist.core import DeltaLog
from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.errors import PostCommitHookError, TableError
from optimist.core.log.names import commit_path
from optimist.core.log.sidecars import Sidecar
from optimist.core.protocol.actions import AddFile, DeletionVectorDescriptor, actions_to_bytes
from optimist.core.secrets import Secret
from optimist.logstores import MemoryLogStore
from optimist.logstores.fsspec.store import FsspecLogStore
from refusals import kind_if_refused

FOREIGN, OUTSIDE = "OPTIMIST_FOREIGN_DATA_PATH", "OPTIMIST_PATH_OUTSIDE_TABLE"
ROWS = pa.table({"x": pa.array([1, 2], pa.int64())})
SECRET_ROWS = pa.table({"x": pa.array([666], pa.int64())})
DEFAULTS = "spark.databricks.delta.properties.defaults"
_COUNTER = itertools.count()


@pytest.fixture
def canary(tmp_path):
    """A file of rows that are nobody's business, and proof that it stays as it is."""
    place = tmp_path / "private" / "canary.parquet"
    place.parent.mkdir()
    pq.write_table(SECRET_ROWS, place)
    before = place.read_bytes()
    yield place
    assert place.read_bytes() == before
    assert [item.name for item in place.parent.iterdir()] == [place.name]


@pytest.fixture
def looked_up(monkeypatch):
    """The drivers that fsspec is asked for."""
    names = []
    real = fsspec.get_filesystem_class

    def noted(protocol):
        names.append(protocol)
        return real(protocol)

    for module in ("fsspec.registry", "fsspec.core"):  # fsspec.registry itself is a mapping
        monkeypatch.setattr(sys.modules[module], "get_filesystem_class", noted)
    return names


@pytest.fixture(params=["local", "memory"])
def table(request, tmp_path):
    """A table of two rows with a change data feed."""
    place = str(tmp_path / "t") if request.param == "local" else f"memory://t{next(_COUNTER)}/t"
    log = DeltaLog.for_path(place, {f"{DEFAULTS}.enableChangeDataFeed": "true"})
    log.append(ROWS)
    return log


def add(path, **more):
    return AddFile(path, {}, 500, 1, True, **more)


def line_of(action):
    is_ours = isinstance(action, AddFile)
    return actions_to_bytes([action]) if is_ours else json.dumps(action).encode() + b"\n"


def put(log, *actions):
    """What another writer commits next, whatever it is."""
    version = log.snapshot().version + 1
    lines = b"".join(map(line_of, actions))
    log.store.put_if_absent(commit_path(log.log_path, version), lines)


def foreign_paths(canary, scheme):
    """Texts that mean another scheme, a chain of drivers, or in memory a path of this machine."""
    refs = canary.parent / "refs.json"
    yield f"reference://k::file://{refs}"
    yield f"reference%3A%2F%2Fk::file://{refs}"
    yield f"simplecache::file://{canary}"
    yield "http://127.0.0.1:9/x.parquet"
    yield "jar:file:///a.jar!/x"
    yield "../" * 30 + str(canary)[1:]
    if scheme == "memory":
        for local in (str(canary), canary.as_uri(), f"FILE:{canary}", f"file:{canary}"):
            yield local
            yield urllib.parse.quote(local, safe="")
        yield f"x::reference://k::file://{refs}"
        yield "part-1::reference"
        yield f"local://{canary}"


PLACES = ["add", "vector", "cdc", "feed add", "feed remove"]


def harmed(log, text, place):
    """A log with the text in one of the places; returns what a reader asks of it."""
    version = log.snapshot().version + 1
    (own,) = log.files()["path"].to_pylist()
    if place in ("add", "feed add"):
        put(log, add(text))
    elif place == "vector":
        vector = DeletionVectorDescriptor("p", text, 40, 1, 1)
        put(log, add(own, deletion_vector=vector))
    elif place == "cdc":
        change = {"path": text, "partitionValues": {}, "size": 1, "dataChange": False}
        put(log, {"cdc": change}, {"commitInfo": {"timestamp": 1}})
    else:
        gone = {"path": text, "deletionTimestamp": 1, "dataChange": True}
        put(log, {"remove": {**gone, "partitionValues": {}, "size": 1}})
    if place in ("cdc", "feed add", "feed remove"):
        return lambda: log.changes(starting_version=version)
    return log.to_arrow


@pytest.mark.parametrize("place", PLACES)
def test_no_text_of_a_log_chooses_a_driver_or_reaches_this_machines_files(
    table, canary, looked_up, place
):
    scheme = "memory" if table.table_path.startswith("memory") else ""
    for text in foreign_paths(canary, scheme):
        asked = harmed(table, text, place)
        looked_up.clear()
        with pytest.raises(TableError) as caught:
            asked()
        assert caught.value.kind in (FOREIGN, "DELTA_FILE_NOT_FOUND_DETAILED"), text
        assert caught.value.kind == FOREIGN or not scheme
        assert set(looked_up) <= {scheme}, text
        table.store.delete(commit_path(table.log_path, table.snapshot().version))


def test_a_count_and_a_vector_of_the_feed_open_no_foreign_file(table, canary, looked_up):
    text = f"reference://k::file://{canary}"
    put(table, add(text))
    with pytest.raises(TableError) as caught:
        table.count()
    assert caught.value.kind == FOREIGN
    vector = DeletionVectorDescriptor("p", text, 40, 1, 1)
    put(table, add(text, deletion_vector=vector), {"remove": {"path": text, "dataChange": True}})
    with pytest.raises(TableError) as caught:
        table.changes(starting_version=2)
    assert caught.value.kind == FOREIGN
    assert set(looked_up) <= {"memory"}


def test_a_sidecar_that_chains_drivers_is_a_malformed_checkpoint(looked_up):
    for name in ("x::reference", "..", ".", "a%3A%3Areference", "a/..", ""):
        with pytest.raises(ValueError, match="sidecar"):
            Sidecar.of({"path": name})
    assert Sidecar.of({"path": "s3://b/_sidecars/a%20b.parquet"}).file_name == "a b.parquet"
    assert not looked_up


@pytest.mark.parametrize("place", ["add", "vector", "feed of counted rows"])
def test_a_named_pipe_keeps_no_reader_waiting(tmp_path, place):
    log = DeltaLog.for_path(str(tmp_path / "t"), {f"{DEFAULTS}.enableChangeDataFeed": "true"})
    log.append(ROWS)
    os.mkfifo(tmp_path / "t" / "pipe")
    vector = DeletionVectorDescriptor("p", str(tmp_path / "t" / "pipe"), 40, 1, 1)
    if place == "add":
        put(log, add("pipe"))
    elif place == "vector":
        (own,) = log.files()["path"].to_pylist()
        put(log, add(own, deletion_vector=vector))
    else:
        put(log, add("pipe"))
        gone = {"remove": {"path": "pipe", "deletionTimestamp": 1, "dataChange": True}}
        put(log, gone, add("pipe", deletion_vector=vector))
    found = []
    ask = (lambda: log.changes(starting_version=2)) if "feed" in place else log.to_arrow
    asker = threading.Thread(target=lambda: found.append(kind_if_refused(ask)), daemon=True)
    asker.start()
    asker.join(30)
    assert found, "it waits for a writer of the pipe"
    assert found[0] in ("OPTIMIST_UNREADABLE_DATA_FILE", "OPTIMIST_STORAGE_FAILED")


# Credentials


class AskedFileSystem(MemoryFileSystem):
    """A driver that notes what it is made with."""

    protocol = "asked"
    cachable = False
    made_with = []  # noqa: RUF012 - the test looks here

    def __init__(self, *args, **settings):
        self.made_with.append(settings)
        super().__init__(*args)

    @classmethod
    def _strip_protocol(cls, path):
        return "/" + path.removeprefix("asked://").lstrip("/")


def test_settings_reach_a_driver_for_the_tables_own_host_alone(monkeypatch):
    fsspec.register_implementation("asked", AskedFileSystem, clobber=True)
    monkeypatch.setattr(AskedFileSystem, "made_with", [])
    store = FsspecLogStore({"optimist.store.fsspec.password": "hush"})
    access = store.data_access("asked://good:21/t")
    for path in ("asked://evil/t/x", "asked://good:22/t/x", "asked://u@good:21/t/x", "asked:///t"):
        filesystem_for(path, access)
    assert "hush" not in repr(AskedFileSystem.made_with)
    assert len(AskedFileSystem.made_with) == 4
    filesystem_for("asked://good:21/u/x", access)
    assert AskedFileSystem.made_with[-1]["password"] == "hush"
    assert isinstance(dict(access.settings)["password"], Secret | str)


# Files outside the table, in its own store


def test_a_file_elsewhere_on_the_disk_is_read_or_not_as_the_option_says(tmp_path, canary):
    DeltaLog.for_path(str(tmp_path / "t")).append(ROWS)
    put(DeltaLog.for_path(str(tmp_path / "t")), add("../private/canary.parquet"))
    for rule in ("same-store", "any"):
        log = DeltaLog.for_path(str(tmp_path / "t"), {"optimist.paths.outsideTable": rule})
        assert sorted(log.to_arrow()["x"].to_pylist()) == [1, 2, 666]
    log = DeltaLog.for_path(str(tmp_path / "t"), {"optimist.paths.outsideTable": "never"})
    with pytest.raises(TableError, match="same-store") as caught:
        log.to_arrow()
    assert caught.value.kind == OUTSIDE


def test_a_vector_of_another_folder_follows_the_same_option(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"))
    log.append(ROWS)
    (own,) = log.files()["path"].to_pylist()
    prefix = "../elsewhere" + "^-aqEH.-t@S}K{vb[*k^"
    put(log, add(own, deletion_vector=DeletionVectorDescriptor("u", prefix, 36, 3, 1)))
    with pytest.raises(TableError) as caught:
        log.to_arrow()
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    strict = DeltaLog.for_path(str(tmp_path / "t"), {"optimist.paths.outsideTable": "never"})
    with pytest.raises(TableError) as caught:
        strict.to_arrow()
    assert caught.value.kind == OUTSIDE


# The symlink manifest


MANIFEST_KEY = f"{DEFAULTS}.compatibility.symlinkFormatManifest.enabled"


def test_a_foreign_path_is_in_the_manifest_and_fails_no_commit(tmp_path):
    place = str(tmp_path / "t")
    log = DeltaLog.for_path(place, {MANIFEST_KEY: "true"})
    log.append(ROWS)
    put(log, add("http://h/a%20b.parquet"), add("../u/x.parquet"), add("a%00b"))
    try:
        log.append(ROWS)
    except PostCommitHookError as error:  # pragma: no cover - what was wrong
        pytest.fail(str(error))
    lines = Path(place, "_symlink_format_manifest", "manifest").read_text().splitlines()
    own = [line for line in lines if line.startswith(place + "/")]
    assert len(own) == 3
    assert {*lines} - {*own} == {"http://h/a b.parquet", str(tmp_path / "u" / "x.parquet")}


@pytest.mark.parametrize("link", ["_symlink_format_manifest", "_symlink_format_manifest/manifest"])
def test_a_manifest_is_not_written_where_a_link_leads(tmp_path, link):
    log = DeltaLog.for_path(str(tmp_path / "t"), {MANIFEST_KEY: "true"})
    canary = tmp_path / "elsewhere" / "manifest"
    canary.parent.mkdir()
    canary.write_text("canary")
    place = tmp_path / "t" / link
    place.parent.mkdir(parents=True)
    place.symlink_to(canary if "/" in link else canary.parent)
    with pytest.raises(PostCommitHookError) as caught:
        log.append(ROWS)
    assert "OPTIMIST_LINK_OUT_OF_TABLE" in str(caught.value)
    assert canary.read_text() == "canary"
    assert log.count() == 2


def test_a_link_brings_no_commit_into_the_log_of_another_table(tmp_path):
    other = DeltaLog.for_path(str(tmp_path / "other"))
    other.append(ROWS)
    place = tmp_path / "t"
    place.mkdir()
    (place / "_delta_log").symlink_to(tmp_path / "other" / "_delta_log")
    with pytest.raises(TableError) as caught:
        DeltaLog.for_path(str(place)).append(ROWS)
    assert caught.value.kind == "OPTIMIST_LINK_OUT_OF_TABLE"
    assert other.snapshot().version == 0
    meant = DeltaLog.for_path(str(place), {"optimist.paths.outsideTable": "any"})
    assert meant.append(ROWS).version == 1


def test_a_memory_table_of_the_tests_is_in_the_memory_store(table):
    """Else the half of these tests that is about memory would prove nothing."""
    is_memory = table.table_path.startswith("memory")
    assert isinstance(table.store, MemoryLogStore) is is_memory
