"""HDFSLogStore against a mini cluster of real HDFS, through both of its clients."""

from __future__ import annotations

import socket

import hdfs_native
import pyarrow as pa
import pytest

from fleet import append_to, create_table, files_in, race_of_processes
from jvm_store import QUICK_CLOSE, jvm_store
from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.core.testing.forked_children import run_in_forked_children
from optimist.core.testing.logstore_races import (
    append_commits,
    commit_path,
    payload_of,
    run_in_processes,
)
from optimist.logstores.hdfs.jvm import JvmHdfsClient
from optimist.logstores.hdfs.jvm import _translate_failures as jvm_failures
from optimist.logstores.hdfs.native_client import NativeHdfsClient
from optimist.logstores.hdfs.native_store import HDFSNativeLogStore
from optimist.logstores.hdfs.store import HDFSLogStore
from optimist.spark import DeltaTable, read, write

NATIVE = {
    "delta.logStore.class": "optimist.logstores.hdfs:HDFSLogStore",
    "optimist.store.hdfs.client": "native",
}
JVM = {
    "delta.logStore.class": "optimist.logstores.hdfs:HDFSLogStore",
    "optimist.store.hdfs.client": "jvm",
    **QUICK_CLOSE,
}


def inner(url):
    """A path as the cluster's own clients want it: without scheme and name node."""
    return "/" + url.removeprefix("hdfs://").partition("/")[2]


@pytest.fixture
def raw(hdfs_server):
    """The cluster, past the stores."""
    return hdfs_native.Client(hdfs_server.endpoint)


@pytest.fixture
def home(hdfs_server, raw, fresh_name):
    raw.mkdirs(f"/{fresh_name}", 0o755, True)
    yield f"{hdfs_server.endpoint}/{fresh_name}"
    raw.delete(f"/{fresh_name}", True)


class OnMiniCluster(LogStoreSuite):
    survives_forks = False  # neither a session's JVM nor the threads of hdfs-native do

    @pytest.fixture(autouse=True)
    def at_server(self, raw):
        self.raw = raw

    @pytest.fixture
    def directory(self, home):
        return home

    def peek(self, path):
        try:
            return self.raw.read(inner(path)).read()
        except FileNotFoundError:
            return None

    def poke(self, path, data):
        with self.raw.create(inner(path)) as file:
            if data:
                file.write(data)


class TestHDFSLogStoreOverHdfsNative(OnMiniCluster):
    store_factory = HDFSNativeLogStore
    # Every second file that is closed on the mini cluster takes half a second.
    process_rounds = 10
    commits = 3


@pytest.mark.again  # one table is written, read and changed this way in every run
class TestHDFSLogStoreOverTheJvm(OnMiniCluster):
    store_factory = staticmethod(jvm_store)
    # A child has no session; two JVMs race in a test of their own below.
    supports_processes = False
    # A racing put takes a third of a second on the mini cluster.
    rounds = 25
    commits = 3

    @pytest.fixture(autouse=True)
    def in_session(self, spark):
        self.spark = spark


@pytest.fixture(params=["native", "jvm"])
def store(request):
    if request.param == "native":
        return HDFSNativeLogStore()
    request.getfixturevalue("spark")
    return jvm_store()


def test_processes_with_a_jvm_each_win_each_version_once(home, raw):
    won = run_in_processes(
        jvm_store,
        append_commits,
        [{"directory": home, "count": 5, "worker": worker} for worker in range(2)],
    )
    assert sorted(won[0] + won[1]) == list(range(10))
    reader = HDFSNativeLogStore()
    for worker, versions in enumerate(won):
        for number, version in enumerate(versions):
            assert reader.read_bytes(commit_path(home, version)) == payload_of(worker, number)


def test_both_clients_exclude_each_other(spark, home):
    native, jvm = HDFSNativeLogStore(), jvm_store()
    for version, (first, second) in enumerate([(native, jvm), (jvm, native)]):
        path = commit_path(home, version)
        assert first.put_if_absent(path, b"first") is PutOutcome.CREATED
        assert second.put_if_absent(path, b"second") is PutOutcome.EXISTS
        assert second.read_bytes(path) == b"first"


def test_listing_starts_at_the_name(store, home, raw):
    for version in range(12):
        raw.create(inner(commit_path(home, version))).close()
    listed = [status.name for status in store.list_from(commit_path(home, 9))]
    assert listed == [f"{version:020d}.json" for version in (9, 10, 11)]


def test_file_where_a_directory_should_be_is_told(store, home):
    store.put_if_absent(f"{home}/file", b"")
    for call in (
        lambda: store.ensure_directory(f"{home}/file"),
        lambda: store.put_if_absent(commit_path(f"{home}/file", 0), b"x"),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_NOT_A_DIRECTORY"


@pytest.mark.parametrize("options", [NATIVE, JVM])
def test_directory_with_the_name_of_the_next_version_is_told(spark, home, raw, options):
    log = DeltaLog.for_path(f"{home}/table", options)
    log.store.ensure_directory(log.log_path)
    create_table(log)
    raw.mkdirs(inner(commit_path(log.log_path, 1)), 0o755, True)
    with pytest.raises(StorageError) as caught:
        append_to(log, "a.parquet")
    assert caught.value.kind == "OPTIMIST_NOT_A_FILE"
    assert commit_path(log.log_path, 1) in str(caught.value)
    assert log.snapshot().version == 0


def test_name_that_hdfs_refuses_is_told(store, home):
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(f"{home}/a:b", b"x")
    assert caught.value.kind == "OPTIMIST_INVALID_PATH"


@pytest.mark.parametrize("options", [NATIVE, JVM])
def test_name_node_that_is_down_is_told(spark, options):
    quick = {"dfs.client.failover.max.attempts": "1", "ipc.client.connect.max.retries": "1"}
    store = HDFSLogStore({**options, **quick})
    with pytest.raises(StorageError) as caught:
        store.put_if_absent("hdfs://127.0.0.1:1/table/_delta_log/0.json", b"x")
    assert caught.value.kind in ("OPTIMIST_STORE_UNREACHABLE", "OPTIMIST_STORE_NO_ANSWER")


def mounts(links, fallback):
    """A mount table; hdfs-native takes none without a fallback."""
    table = "fs.viewfs.mounttable.fleet"
    named = {f"{table}.link./{name}": url for name, url in links.items()}
    return {**named, f"{table}.linkFallback": fallback}


@pytest.mark.parametrize("options", [NATIVE, JVM])
def test_mount_of_viewfs_is_served(spark, options, home):
    store = HDFSLogStore({**options, **mounts({"tables": home}, home)})
    store.ensure_directory("viewfs://fleet/tables/t")
    path = "viewfs://fleet/tables/t/0.json"
    assert store.put_if_absent(path, b"x") is PutOutcome.CREATED
    assert store.put_if_absent(path, b"y") is PutOutcome.EXISTS
    assert [status.path for status in store.list_from(path)] == [path]
    assert HDFSNativeLogStore().read_bytes(f"{home}/t/0.json") == b"x"


def test_mount_of_a_local_directory_is_refused(spark, home, tmp_path):
    links = {"hdfs": home, "local": f"file://{tmp_path}"}
    store = HDFSLogStore({**JVM, **mounts(links, home)})
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent("viewfs://fleet/local/0.json", b"x")
    assert caught.value.kind == "DELTA_INCORRECT_LOG_STORE_IMPLEMENTATION"
    assert list(tmp_path.iterdir()) == []


def test_session_that_was_active_serves_without_an_option(spark, home):
    store = HDFSLogStore(QUICK_CLOSE)
    store.put_if_absent(commit_path(home, 0), b"x")
    assert store.describe()["client"].endswith("the Spark session's JVM")


@pytest.mark.parametrize(("client", "options"), [(NativeHdfsClient, NATIVE), (JvmHdfsClient, JVM)])
def test_rename_that_worked_and_was_repeated_is_settled(spark, home, monkeypatch, client, options):
    # The clients repeat a request whose answer was lost; the second time its source is gone.
    log = DeltaLog.for_path(f"{home}/table", options)
    log.store.ensure_directory(log.log_path)
    create_table(log)
    rename = client.rename

    def rename_twice(self, source, target, *, overwrite):
        rename(self, source, target, overwrite=overwrite)
        rename(self, source, target, overwrite=overwrite)

    monkeypatch.setattr(client, "rename", rename_twice)
    assert log.store.put_if_absent(f"{home}/alone.json", b"x") is PutOutcome.UNKNOWN
    assert append_to(log, "once.parquet") == 1
    assert files_in(log) == ["once.parquet"]
    assert log.snapshot().version == 1


def test_hadoop_reader_that_finds_other_blocks_begins_anew(spark, home, monkeypatch):
    # Hadoop's own words, for which HDFS has no class of exception.
    words = f"Blocklist for {inner(home)}/_last_checkpoint has changed!"
    failure = spark._jvm.scala.util.Failure(spark._jvm.java.io.IOException(words))
    store, path = HDFSLogStore(JVM), f"{home}/_last_checkpoint"
    store.put_overwrite(path, b"the new one")
    read, failures = JvmHdfsClient.read, [failure]

    def read_late(self, path):
        with jvm_failures():
            if failures:
                failures.pop().get()
        return read(self, path)

    monkeypatch.setattr(JvmHdfsClient, "read", read_late)
    assert store.read_bytes(path) == b"the new one"
    assert not failures


def test_commits_of_sixteen_processes_are_dense_and_each_is_there_once(home):
    # Every second close of a file on the mini cluster takes half a second, the pause of hdfs-native
    # before it asks again; and a loser writes its file anew.
    race_of_processes(f"{home}/table", NATIVE, commits=3)


def test_table_is_written_read_and_changed_from_spark(spark, conf, home, raw):
    path = f"{home}/table"
    for key, value in JVM.items():
        conf(f"spark.{key}" if key.startswith("optimist") else key, value)
    frame = spark.range(100).selectExpr("id", "id % 3 AS part")
    write(frame, path, mode="append", partitionBy=["part"])
    write(frame, path, mode="append")
    DeltaTable.forPath(spark, path).delete("id < 10 AND part = 0")
    rows = sorted((row.id, row.part) for row in read(spark, path).collect())
    expected = [(n, n % 3) for n in range(100) if not (n < 10 and n % 3 == 0)]
    assert rows == sorted(expected * 2)
    # Our log by hdfs-native, and the files that it names by Spark's own reader.
    live = DeltaLog.for_path(path, NATIVE).snapshot().files["path"].to_pylist()
    plain = spark.read.option("recursiveFileLookup", "true")
    found = plain.parquet(*(f"{path}/{each}" for each in live)).select("id").collect()
    assert sorted(row.id for row in found) == sorted(row[0] for row in rows)
    names = [each.path for each in raw.list_status(inner(f"{path}/_delta_log"))]
    assert [name for name in names if "/." in name.rpartition("_delta_log")[2]] == []


def test_name_node_that_never_answers_is_given_up_when_the_budget_is_spent():
    """hdfs-native by itself waits for ever."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"hdfs://127.0.0.1:{silent.getsockname()[1]}/t"
        options = {"optimist.store.hdfs.client": "native", "optimist.storage.budgetSeconds": "1"}
        with pytest.raises(StorageError) as caught:
            DeltaLog.for_path(url, options).snapshot()
    assert caught.value.kind in ("OPTIMIST_STORE_BUDGET_SPENT", "OPTIMIST_STORE_NO_ANSWER")


def test_children_forked_after_data_was_read_end(home):
    """fsspec destroys its clients in a child, where hdfs-native waits for threads that are gone."""
    log = DeltaLog.for_path(f"{home}/table", NATIVE)
    log.append(pa.table({"id": [1]}))
    assert log.to_arrow().num_rows == 1
    run_in_forked_children(lambda _: None, children=1)
