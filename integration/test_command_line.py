"""The command line on every kind of store: each command that looks, and fsck with its repairs.

The names of the table and of its partitions are odd, since each store spells them in its own way,
and fsck compares what the log names with what a listing shows.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from checked_tables import LateClock
from optimist.cli.app import run
from optimist.cli.work.watched_streams import WatchedStream
from optimist.core import DeltaLog
from optimist.core.data.storage import listed_files, missing_files
from optimist.core.data.storage.stored_files import remove_file
from optimist.core.log.names import classic_checkpoint_name, commit_name
from optimist.core.paths import join, name_of
from optimist.core.streams.offset import StreamOffset

FEED = {"spark.databricks.delta.properties.defaults.enableChangeDataFeed": "true"}
PARTITIONS = ["a b", "x%y/z", "é+ü", "q?&#[1]"]


@pytest.fixture
def azure(azure_server, container):
    url = f"abfss://{container.container_name}@devstoreaccount1.dfs.core.windows.net"
    return url, {"optimist.store.azure.connectionString": azure_server.connection_string}


@pytest.fixture
def hdfs(hdfs_server, fresh_name):
    return f"{hdfs_server.endpoint}/{fresh_name}", {"optimist.store.hdfs.client": "native"}


@dataclass(frozen=True)
class Place:
    """A table in a directory of a store."""

    directory: str
    options: Mapping[str, str]
    capsys: pytest.CaptureFixture[str]

    @property
    def url(self) -> str:
        return join(self.directory, "ta ble%20")

    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.url, {**self.options, **FEED})

    def __call__(self, command: str, *arguments: object, status: int = 0) -> dict[str, Any]:
        """The answer of a command as JSON."""
        confs = [f"--conf={key}={value}" for key, value in self.options.items()]
        self.capsys.readouterr()
        given = [command, *map(str, arguments), *confs, "--output", "json"]
        done, written = run(given), self.capsys.readouterr()
        assert (done, written.err) == (status, "")
        answer: dict[str, Any] = json.loads(written.out)
        return answer

    def fsck(self, *how: str, status: int = 1) -> list[str]:
        found = self("fsck", self.url, *how, status=status)["findings"]
        return [each["kind"] for each in found]


@pytest.fixture(params=["s3", "azure", "gcs", "hdfs"])
def place(request, capsys):
    """Five commits: one file in each of the odd partitions, rows updated and deleted."""
    place = Place(*request.getfixturevalue(request.param), capsys)
    numbers = range(len(PARTITIONS) * 3)
    rows = pa.table({"id": numbers, "p": [PARTITIONS[n % len(PARTITIONS)] for n in numbers]})
    log = place.log()
    log.append(rows, partition_by=("p",))
    log.update(set={"id": "100"}, predicate="id = 1")
    log.delete("id = 2")
    return place


@pytest.mark.sample(2)
def test_every_command_that_looks_tells_the_same_of_every_store(place):
    url = place.url
    assert place.fsck("--deep", status=0) == []
    assert place.fsck("--repair", status=0) == []
    assert [each["version"] for each in place("history", url)["commits"]] == [2, 1, 0]
    assert place("conflicts", url)["numCommits"] == 3
    assert place("detail", url)["numFiles"] == len(PARTITIONS)
    assert [each["column"] for each in place("schema", url)["columns"]] == ["id", "p"]
    assert place("count", url)["rows"] == 11
    rows = place("head", url, "--where", "id > 9")["rows"]
    assert sorted(each["id"] for each in rows) == [10, 11, 100]
    for partition in PARTITIONS:
        told = place("files", url, "--where", f"p = '{partition}'")
        assert (told["filesRead"], told["filesLeftOut"]) == (1, len(PARTITIONS) - 1)
    assert place("log", url, 2)["operation"] == "DELETE"
    assert place("diff", url, 0, 2, status=1)["rowsTo"] == 11
    assert len(place("changes", url, "--from", 1)["rows"]) == 3
    (found,) = place("tables", place.directory)["tables"]
    assert (found["table"], found["version"], found["error"]) == (url, 2, None)
    (newest,) = place("sql", f"DESCRIBE HISTORY delta.`{url}` LIMIT 1")["rows"]
    assert (newest["version"], newest["operation"]) == (2, "DELETE")
    assert place("watch", url, "--from", 2, "--limit", 1)["version"] == 2
    told = place("doctor", url)
    # HDFS has no answer that tells the time; the emulators have the clock of this machine.
    assert told["clockSkewMs"] == (None if url.startswith("hdfs:") else 0)
    checks = told["checks"]
    assert [each for each in checks if not each["ok"]] == []


@pytest.mark.sample(2)
@pytest.mark.sample(2)
def test_the_lag_of_a_stream_whose_checkpoint_is_in_the_store(place):
    log, checkpoint = place.log(), join(place.directory, "check points")
    offset = StreamOffset.before(log.metadata.id, 1).to_json()
    for name, text in (("offsets", f"v1\n{{}}\n{offset}"), ("commits", "v1\n{}")):
        log.store.ensure_directory(join(checkpoint, name))
        log.store.put_if_absent(join(checkpoint, name, "7"), text.encode())
    log.store.put_if_absent(join(place.directory, "position"), offset.encode())
    for path, batch in ((checkpoint, 7), (join(place.directory, "position"), None)):
        stream = WatchedStream(log, DeltaLog.for_path(path, place.options))
        (told,) = stream.look(log.snapshot())
        assert (told["batch"], told["version"], told["versionsBehind"]) == (batch, 1, 2)
        assert (told["problem"], told["filesBehind"] > 0) == (None, True)
        assert told["rowsBehind"] == 3 + 2


def test_fsck_finds_each_missing_file_and_drops_it_if_that_is_wanted(place):
    log = place.log()
    files = log.snapshot().files.column("path").combine_chunks()
    for number, path in enumerate(log.table.data_paths.full_paths(files).to_pylist()[:-1], 1):
        remove_file(path, log.table.data_access())
        assert place.fsck() == ["missing-file"] * number
    assert place.fsck("--repair", "--drop-missing-files", status=0) == []
    left = place.log().to_arrow().column("p")
    assert pc.count_distinct(left).as_py() == 1
    assert place.fsck("--deep", status=0) == []


@pytest.mark.sample(2)
def test_fsck_looks_for_the_files_of_a_clone_in_the_directories_of_its_source(place):
    copy = join(place.directory, "co py")
    place.log().clone(copy, is_shallow=True)
    assert place("fsck", copy, "--deep")["findings"] == []
    source = place.log()
    file = source.snapshot().files.column("path").combine_chunks().slice(0, 1)
    (lost,) = source.table.data_paths.full_paths(file).to_pylist()
    remove_file(lost, source.table.data_access())
    (found,) = place("fsck", copy, status=1)["findings"]
    assert (found["kind"], found["path"]) == ("missing-file", lost)
    left = place("fsck", copy, "--repair", "--drop-missing-files")
    assert left["findings"] == []
    assert place("detail", copy)["numFiles"] == len(PARTITIONS) - 1


@pytest.mark.sample(2)
def test_a_file_that_a_listing_does_not_show_is_not_dropped(place, monkeypatch):
    log = place.log()
    hidden = name_of(log.snapshot().files.column("path")[0].as_py())
    shown = missing_files.files_below

    def files_below(*given):
        return (each for each in shown(*given) if name_of(each.path) != hidden)

    for module in (missing_files, listed_files):
        monkeypatch.setattr(module, "files_below", files_below)
    is_listed = not place.url.startswith("hdfs")  # a file system is asked for each file
    found = place.fsck("--repair", "--drop-missing-files", status=int(is_listed))
    assert found == ["missing-file"] * is_listed
    assert place.log().snapshot().version == log.snapshot().version


@pytest.mark.again
def test_fsck_finds_a_lost_change_file(place):
    log = place.log()
    access = log.table.data_access()
    lines = log.table.store.read(join(log.log_path, commit_name(2)))
    (path,) = (each["cdc"]["path"] for each in map(json.loads, lines) if "cdc" in each)
    remove_file(log.table.data_paths.full_path(path), access)
    assert place.fsck() == ["bad-change-file"]


def damaged(place: Place, name: str, change: Callable[[bytes], bytes]) -> None:
    log = place.log()
    path = join(log.log_path, name)
    log.table.store.put_overwrite(path, change(log.table.store.read_bytes(path)))


@pytest.mark.sample(2)
def test_fsck_names_a_torn_commit_and_repairs_nothing_of_it(place):
    damaged(place, commit_name(1), lambda data: data[:-20])
    assert place.fsck() == ["torn-commit"]
    assert place.fsck("--repair") == ["torn-commit"]


@pytest.mark.sample(2)
def test_a_damaged_checkpoint_is_saved_and_replaced(place):
    before = place.log().to_arrow().sort_by("id")
    place.log().checkpoint()
    name = classic_checkpoint_name(2)
    damaged(place, name, lambda data: data[:-100])
    log = DeltaLog(place.url, place.log().table.store, clock=LateClock())
    checked = log.fsck(repair=True)
    assert checked.findings.to_pylist() == []
    copies = [each for each in checked.steps.column("savedAs").to_pylist() if each is not None]
    assert copies
    for each in copies:
        assert log.table.store.read_bytes(each)
    assert place.fsck("--deep", status=0) == []
    assert place.log().to_arrow().sort_by("id") == before
