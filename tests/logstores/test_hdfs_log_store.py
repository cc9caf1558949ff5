"""HDFSLogStore without a cluster: options, refusals, the algorithm over a client in memory."""

from __future__ import annotations

import gc
import posixpath
import sys

import pytest

from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import ManualClock
from optimist.logstores.hdfs.client import (
    REPLACED,
    HdfsClient,
    HdfsClientError,
    HdfsEntry,
    HdfsParts,
    locate,
)
from optimist.logstores.hdfs.errors import HDFS_ANSWERS, hdfs_error, outcome_of_rename
from optimist.logstores.hdfs.options import HDFSOptions
from optimist.logstores.hdfs.store import HDFSLogStore

EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"
MISSING = "java.io.FileNotFoundException"
PATH = "hdfs://nn:8020/t/_delta_log/00000000000000000000.json"


class MemoryClient(HdfsClient):
    """A name node in a dictionary, with one directory; `failures` are raised by method, once."""

    def __init__(self):
        self.files = {}
        self.failures = {}
        self.renames = 0
        self.is_stopped = False

    def is_usable(self):
        return not self.is_stopped

    def ensure_exclusive(self, directory):
        pass

    def create(self, path, content):
        self._fail("create")
        self.files[path] = b"".join(content)

    def rename(self, source, target, *, overwrite):
        self.renames += 1
        self._fail("rename before")
        if source not in self.files:
            raise HdfsClientError(MISSING, "rename source is not found")
        if target in self.files and not overwrite:
            raise HdfsClientError(EXISTS, "rename destination already exists")
        self.files[target] = self.files.pop(source)
        self._fail("rename after")

    def delete(self, path):
        self.files.pop(path, None)

    def exists(self, path):
        self._fail("exists")
        return path in self.files

    def read(self, path):
        self._fail("read")
        if path not in self.files:
            raise HdfsClientError(MISSING, path)
        return self.files[path]

    def open(self, path):
        whole = self.read(path)

        def fetch(offset, length):
            self._fail("fetch")
            return whole[offset : offset + length]

        return HdfsParts(len(whole), fetch)

    def list_from(self, directory, first):
        self._fail("list")
        names = sorted(posixpath.basename(path) for path in self.files)
        return iter(HdfsEntry(name, 1, 1, False) for name in names if name >= first)

    def make_directories(self, path):
        self._fail("mkdirs")

    def discard(self, temporary):
        self.delete(temporary)

    def let_observers_catch_up(self):
        pass

    def _fail(self, where):
        if where in self.failures:
            raise HdfsClientError(self.failures.pop(where), "as planned")


class StoreInMemory(HDFSLogStore):
    def __init__(self):
        super().__init__({}, clock=ManualClock())
        self.clients = []

    def _connect(self, path, place):
        self.clients.append(MemoryClient())
        return self.clients[-1]


@pytest.fixture
def store():
    return StoreInMemory()


@pytest.fixture
def client(store):
    return store._client(PATH, locate(PATH))


# The algorithm


def test_file_is_created_once_and_nothing_is_left_beside_it(store, client):
    assert store.put_if_absent(PATH, b"first") is PutOutcome.CREATED
    assert store.put_if_absent(PATH, b"second") is PutOutcome.EXISTS
    assert client.files == {"/t/_delta_log/00000000000000000000.json": b"first"}
    assert client.renames == 1  # the loser did not write at all


def test_race_lost_at_the_rename_is_exists(store, client):
    client.failures["rename before"] = EXISTS
    assert store.put_if_absent(PATH, b"late") is PutOutcome.EXISTS
    assert client.files == {}


@pytest.mark.parametrize(
    "java_class",
    [MISSING, "java.net.SocketTimeoutException", "org.apache.hadoop.ipc.StandbyException", ""],
)
def test_rename_without_a_clear_answer_is_unknown(store, client, java_class):
    client.failures["rename after"] = java_class
    assert store.put_if_absent(PATH, b"there") is PutOutcome.UNKNOWN
    assert store.read_bytes(PATH) == b"there"


@pytest.mark.parametrize("where", ["exists", "list"])
def test_question_that_was_not_answered_is_asked_again(store, client, where):
    client.failures[where] = "java.net.SocketTimeoutException"
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED
    assert [status.path for status in store.list_from(PATH)] == [PATH]
    assert not client.failures


def test_a_file_that_is_replaced_while_it_is_read_is_read_from_its_start(store, client):
    store.put_overwrite(PATH, b"the new one")
    client.failures["read"] = REPLACED
    assert store.read_bytes(PATH) == b"the new one"
    assert not client.failures


def test_a_part_that_was_lost_on_the_way_is_read_again(store, client):
    store.put_overwrite(PATH, b"text")
    with store.open_read(PATH) as file:
        client.failures["fetch"] = "java.net.SocketTimeoutException"
        assert file.read() == b"text"
    assert not client.failures


@pytest.mark.parametrize(
    ("java_class", "kind"),
    [
        (REPLACED, "OPTIMIST_FILE_CHANGED"),
        ("org.apache.hadoop.security.AccessControlException", "OPTIMIST_PERMISSION_DENIED"),
    ],
)
def test_a_part_that_cannot_be_read_is_an_error_of_the_store(store, client, java_class, kind):
    store.put_overwrite(PATH, b"text")
    with store.open_read(PATH) as file:
        client.failures["fetch"] = java_class
        with pytest.raises(StorageError) as caught:
            file.read()
    assert (caught.value.kind, caught.value.fields["path"]) == (kind, PATH)


def test_failure_before_the_rename_says_that_nothing_was_written(store, client):
    client.failures["create"] = "java.net.SocketTimeoutException"
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(PATH, b"x")
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"
    assert caught.value.retryable
    assert client.files == {}


def test_missing_directory_is_not_found(store, client):
    client.failures["create"] = MISSING
    with pytest.raises(LogFileNotFoundError) as caught:
        store.put_if_absent(PATH, b"x")
    assert caught.value.fields["path"] == PATH
    assert "Nothing was written." in str(caught.value)


def test_overwrite_is_a_rename_too(store, client):
    store.put_overwrite(PATH, b"first")
    store.put_overwrite(PATH, b"second")
    assert list(client.files.values()) == [b"second"]


def test_file_in_place_of_a_directory_is_told(store, client):
    client.failures["mkdirs"] = EXISTS
    with pytest.raises(StorageError) as caught:
        store.ensure_directory("hdfs://nn:8020/t")
    assert caught.value.kind == "OPTIMIST_NOT_A_DIRECTORY"


def test_client_that_stopped_is_made_anew(store, client):
    store.put_if_absent(PATH, b"x")
    client.is_stopped = True
    assert store.put_if_absent(PATH, b"x") is PutOutcome.CREATED
    assert len(store.clients) == 2


def test_partial_writes_are_admitted(store):
    assert store.is_partial_write_visible(PATH)


# Errors


def test_only_an_existing_target_decides_a_race():
    for row in HDFS_ANSWERS:
        for java_class in row.answers:
            outcome = outcome_of_rename(HdfsClientError(java_class, ""))
            assert outcome is (PutOutcome.EXISTS if java_class == EXISTS else PutOutcome.UNKNOWN)


def test_error_tells_class_and_first_line():
    error = hdfs_error(HdfsClientError("a.B", "it broke"), doing="read", path=PATH)
    assert (error.kind, error.fields["java_class"]) == ("OPTIMIST_STORAGE_FAILED", "a.B")
    assert "a.B: it broke" in str(error)


# Paths


@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("hdfs://nn:8020/a/b/", "hdfs://nn:8020/a/b"),
        ("hdfs://nn:8020//a//./c/../b", "hdfs://nn:8020/a/b"),
        ("HDFS://nn/a b%20c", "hdfs://nn/a b%20c"),
        ("viewfs://fleet/t", "viewfs://fleet/t"),
        ("hdfs:///t", "hdfs:///t"),
        ("hdfs:/t", "hdfs:///t"),
        ("hdfs://nn", "hdfs://nn/"),
    ],
)
def test_spellings_of_a_path_are_one(path, url):
    assert HDFSLogStore().resolve_path(path) == url
    assert HDFSLogStore().resolve_path(url) == url


@pytest.mark.parametrize("path", ["/tmp/t/0.json", "file:///tmp/t/0.json", "s3a://b/t/0.json"])
def test_path_of_another_store_is_refused(path):
    with pytest.raises(ConfigError) as caught:
        HDFSLogStore().put_if_absent(path, b"x")
    assert caught.value.kind == "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"
    assert "LocalLogStore" in str(caught.value)


# Options


def test_keys_of_hadoop_are_taken_in_either_spelling():
    options = HDFSOptions.from_options(
        {
            "spark.optimist.store.hdfs.client": "Native",
            "spark.hadoop.dfs.client.use.datanode.hostname": "true",
            "dfs.replication": "2",
            "fs.viewfs.mounttable.fleet.link./t": "hdfs://nn/t",
            "spark.hadoop.hadoop.security.authentication": "kerberos",
            "spark.hadoop.ipc.client.connect.max.retries": "1",
            "spark.hadoop.fs.s3a.secret.key": "not ours",
        }
    )
    assert options.client == "native"
    assert dict(options.hadoop) == {
        "dfs.client.use.datanode.hostname": "true",
        "dfs.replication": "2",
        "fs.viewfs.mounttable.fleet.link./t": "hdfs://nn/t",
        "hadoop.security.authentication": "kerberos",
        "ipc.client.connect.max.retries": "1",
    }


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"optimist.store.hdfs.client": "jni"}, "OPTIMIST_INVALID_OPTION"),
        ({"optimist.store.hdfs.cliant": "jvm"}, "OPTIMIST_UNKNOWN_OPTION"),
        (
            {"optimist.store.hdfs.client": "jvm", "spark.optimist.store.hdfs.client": "native"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
        (
            {"dfs.replication": "1", "spark.hadoop.dfs.replication": "2"},
            "OPTIMIST_CONTRADICTING_OPTIONS",
        ),
    ],
)
def test_bad_option_is_refused_when_the_store_is_built(given, kind):
    with pytest.raises(ConfigError) as caught:
        HDFSLogStore(given)
    assert caught.value.kind == kind


# Clients that can't be had


@pytest.fixture
def without_session(monkeypatch):
    jvm = pytest.importorskip("optimist.logstores.hdfs.jvm")
    monkeypatch.setattr(jvm, "active_context", lambda: None)


@pytest.fixture
def without_hdfs_native(monkeypatch):
    monkeypatch.setitem(sys.modules, "hdfs_native", None)
    monkeypatch.delitem(sys.modules, "optimist.logstores.hdfs.native_client", raising=False)


def test_jvm_without_a_session_names_the_ways_out(without_session):
    with pytest.raises(ConfigError) as caught:
        HDFSLogStore({"optimist.store.hdfs.client": "jvm"}).read_bytes(PATH)
    assert caught.value.kind == "OPTIMIST_CLASSIC_SPARK_NEEDED"
    assert "Spark Connect" in str(caught.value)
    assert "pip install 'hdfs-native>=0.14'" in str(caught.value)


def test_no_session_and_no_package_names_both_ways_out(without_session, without_hdfs_native):
    with pytest.raises(ConfigError) as caught:
        HDFSLogStore().read_bytes(PATH)
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "pip install 'hdfs-native>=0.14'" in str(caught.value)
    assert "session" in str(caught.value)


def test_native_without_its_package_names_the_command(without_hdfs_native):
    with pytest.raises(ConfigError) as caught:
        HDFSLogStore({"optimist.store.hdfs.client": "native"}).read_bytes(PATH)
    assert caught.value.kind == "OPTIMIST_MISSING_PACKAGE"
    assert "pip install 'hdfs-native>=0.14'" in str(caught.value)


def test_without_a_session_hdfs_native_serves(without_session):
    pytest.importorskip("hdfs_native")
    nowhere = "hdfs://127.0.0.1:1/t/0.json"
    store = HDFSLogStore({"dfs.client.failover.max.attempts": "1"})
    with pytest.raises(StorageError):
        store.read_bytes(nowhere)
    assert store.describe()["client"] == "hdfs://127.0.0.1:1: hdfs-native"


def test_description_before_the_first_use_asks_nothing():
    assert HDFSLogStore().describe()["client"] == "auto, not connected yet"


def test_who_collects_garbage_does_not_close_a_file_that_was_given_up():
    """hdfs-native's own finalizer asks the name node, and waits for ever if that is silent."""
    hdfs_native = pytest.importorskip("hdfs_native")
    native_client = pytest.importorskip("optimist.logstores.hdfs.native_client")
    asked = []

    class Raw:
        def close(self) -> None:
            asked.append("close")

    writer = native_client.NativeWriter(hdfs_native.FileWriter(Raw()))
    gc.collect()
    assert asked == []
    writer.close()
    del writer
    gc.collect()
    assert asked == ["close"]
