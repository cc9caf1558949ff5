"""Commits, checksums and hints that are cut or changed: the right answer or a clear error."""

import itertools
import json
import logging

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, TableError
from optimist.core.log.checksum import VersionChecksum
from optimist.core.log.commit_lines import parse_commit_lines
from optimist.core.log.last_checkpoint import LastCheckpoint
from optimist.core.log.names import checksum_name, commit_name, log_path_of
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    SetTransaction,
    actions_to_bytes,
)
from optimist.core.testing import ManualClock
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
STRICT = {"optimist.checksum.mismatchFatalForReads": "true"}
NEWEST = 3
SCHEMA_TEXT = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
    }
)


def add(name, size=10):
    return AddFile(name, {}, size, 1, True, stats='{"numRecords":1}')


class Table:
    """Four versions, each with its checksum, written by the engine."""

    def __init__(self):
        self.path = f"memory://damage/t{next(_COUNTER)}"
        self.log = log_path_of(self.path)
        self.clock = ManualClock(now_ms=1_800_000_000_000)
        self.store = MemoryLogStore(clock=self.clock, namespace="log damage")
        log = self.open()
        start = (Protocol(1, 2), Metadata("id", SCHEMA_TEXT))
        for number, actions in enumerate([start, (add("a"),), (add("b"),)]):
            self._commit(log, f"OP {number}", actions)
        last = (add("a").remove(5), add("c"), add("d"), SetTransaction("app", 4))
        self._commit(log, "LAST", last)

    def _commit(self, log, operation, actions):
        version = log.start_transaction().read_version + 1
        info = CommitInfo(operation=operation, timestamp=version, txn_id=f"txn-{version}")
        data = actions_to_bytes((info, *actions))
        assert (
            self.store.put_if_absent(f"{self.log}/{commit_name(version)}", data).name == "CREATED"
        )
        checksum = log.snapshot().checksum or _summed(log.snapshot())
        self.put(checksum_name(version), f"{checksum.to_json()}\n".encode())

    def put(self, name, data):
        self.store.put_overwrite(f"{self.log}/{name}", data)

    def read(self, name):
        return self.store.read_bytes(f"{self.log}/{name}")

    def open(self, options=None):
        given = EngineOptions.from_options(options or {})
        return DeltaLog(self.path, self.store, given, clock=self.clock)

    def answer(self, options=None):
        """All that a reader sees, one that takes no answer which differs from the checksum."""
        snapshot = self.open(STRICT if options is None else options).snapshot()
        return (
            snapshot.version,
            sorted(snapshot.files["path"].to_pylist()),
            {app: txn.version for app, txn in snapshot.set_transactions.items()},
            snapshot.metadata,
            snapshot.protocol,
        )


def _summed(snapshot):
    assert snapshot.num_files >= 0  # with the files at hand the checksum can be summed up
    return snapshot.checksum


TABLE = Table()
ANSWER = TABLE.answer()
LAST = TABLE.read(commit_name(NEWEST))
CHECKSUM = TABLE.read(checksum_name(NEWEST))


def test_the_table_reads_right_before_it_is_damaged():
    assert ANSWER[:3] == (NEWEST, ["b", "c", "d"], {"app": 4})
    assert VersionChecksum.from_json(CHECKSUM.decode()).num_files == 3


def test_a_commit_cut_at_any_byte_is_a_clear_error():
    kinds = {length: kind_of_answer(LAST[:length]) for length in range(len(LAST))}
    ends = {len(LAST[: LAST.rindex(b"\n")])}
    assert {length for length, kind in kinds.items() if kind is None} == ends
    assert set(kinds.values()) == {
        None,
        "OPTIMIST_MALFORMED_COMMIT",
        "DELTA_TXN_LOG_FAILED_INTEGRITY",
    }


def kind_of_answer(commit):
    """The kind of the error with this as newest commit; None for the right answer."""
    TABLE.put(commit_name(NEWEST), commit)
    try:
        assert TABLE.answer() == ANSWER
    except TableError as error:
        return error.kind
    finally:
        TABLE.put(commit_name(NEWEST), LAST)
    return None


@pytest.mark.parametrize("lines", range(1, 5))
def test_a_commit_cut_at_a_lines_end_is_found_by_the_checksum(lines):
    table = Table()
    table.put(commit_name(NEWEST), b"".join(LAST.splitlines(keepends=True)[:lines]))
    with pytest.raises(TableError, match="does not agree with its version checksum") as caught:
        table.answer()
    assert caught.value.kind == "DELTA_TXN_LOG_FAILED_INTEGRITY"
    assert caught.value.fields["version"] == NEWEST
    with pytest.raises(TableError, match="does not agree"):
        table.open(STRICT).to_arrow()


def test_an_older_version_is_read_while_the_newest_is_damaged():
    table = Table()
    table.put(commit_name(NEWEST), b"")
    with pytest.raises(TableError, match="read an older version"):
        table.open().snapshot()
    assert sorted(table.open().snapshot(version=2).files["path"].to_pylist()) == ["a", "b"]
    with pytest.raises(TableError):
        table.open().snapshot(version=NEWEST)


LENIENT = {"spark.databricks.delta.checksum.mismatch.fatal": "false"}


@pytest.fixture
def lying():
    """A table whose newest checksum lies about the number of files."""
    table = Table()
    parsed = json.loads(CHECKSUM) | {"numFiles": 7}
    table.put(checksum_name(NEWEST), json.dumps(parsed).encode())
    return table


def test_readers_go_on_where_a_checksum_lies_and_are_warned_once(lying, caplog):
    log = lying.open()
    with caplog.at_level(logging.WARNING):
        assert lying.answer({}) == ANSWER
        assert sorted(log.files()["path"].to_pylist()) == ["b", "c", "d"]
        log.files("x = 1")
        assert log.snapshot().checksum.num_files == 3
    told = [record for record in caplog.records if "numFiles is 3, not 7" in record.getMessage()]
    assert [record.levelname for record in told] == ["WARNING"] * 2  # one for each handle


def deleting_all(log):
    transaction = log.start_transaction()
    removed = [add(path).remove(5) for path in transaction.filter_files()["path"].to_pylist()]
    return transaction.commit(removed, Operation("DELETE"))


def appending_after_a_look(log):
    log.files()
    log.start_transaction().commit([add("e")], Operation("WRITE"))


@pytest.mark.parametrize("write", [deleting_all, appending_after_a_look, DeltaLog.checkpoint])
def test_writers_and_checkpoints_stop_where_a_checksum_lies(lying, write):
    before = sorted(status.name for status in lying.store.list_from(f"{lying.log}/"))
    with pytest.raises(TableError, match="numFiles is 3, not 7") as caught:
        write(lying.open())
    assert caught.value.kind == "DELTA_TXN_LOG_FAILED_INTEGRITY"
    assert sorted(status.name for status in lying.store.list_from(f"{lying.log}/")) == before
    write(lying.open(LENIENT))
    after = sorted(status.name for status in lying.store.list_from(f"{lying.log}/"))
    assert len(after) > len(before)


def test_the_lie_of_a_checksum_is_not_written_on(lying):
    log = lying.open(LENIENT)
    appending_after_a_look(log)
    found = VersionChecksum.from_json(lying.read(checksum_name(NEWEST + 1)).decode())
    assert (found.num_files, found.table_size_bytes) == (4, 40)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"numFiles": 2}, "numFiles is 3, not 2"),
        ({"tableSizeBytes": 1}, "tableSizeBytes is 30, not 1"),
        ({"setTransactions": [{"appId": "app", "version": 5}]}, "txn 'app' is 4, not 5"),
        ({"setTransactions": [{"appId": "new", "version": 1}]}, "txn 'new' is None"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 4}}, "minWriterVersion"),
        ({"metadata": {"id": "other", "schemaString": SCHEMA_TEXT}}, "metaData.id"),
        ({"metadata": {"id": "id", "schemaString": "{}"}}, "schemaString"),
    ],
)
def test_what_differs_is_named(changed, said):
    table = Table()
    parsed = json.loads(CHECKSUM) | changed
    table.put(checksum_name(NEWEST), json.dumps(parsed).encode())
    with pytest.raises(TableError, match=said):
        table.answer()


def test_a_checksum_that_an_overwritten_commit_left_is_passed_over(caplog):
    table = Table()
    parsed = json.loads(CHECKSUM) | {"txnId": "lost", "numFiles": 2}
    table.put(checksum_name(NEWEST), json.dumps(parsed).encode())
    with caplog.at_level(logging.WARNING):
        assert table.answer() == ANSWER
    assert "belongs to another commit (txnId lost)" in caplog.text


def test_what_another_writer_spells_otherwise_is_no_difference():
    parsed = json.loads(CHECKSUM)
    parsed["metadata"]["schemaString"] = json.dumps(json.loads(SCHEMA_TEXT), indent=1)
    parsed["metadata"]["createdTime"] = 77
    parsed["setTransactions"] = []
    del parsed["txnId"]
    TABLE.put(checksum_name(NEWEST), json.dumps(parsed).encode())
    assert TABLE.answer() == ANSWER
    TABLE.put(checksum_name(NEWEST), CHECKSUM)


@settings(deadline=None, max_examples=80)
@given(st.integers(0, len(CHECKSUM) - 1))
def test_a_checksum_cut_anywhere_changes_nothing(length):
    TABLE.put(checksum_name(NEWEST), CHECKSUM[:length])
    try:
        assert TABLE.answer() == ANSWER
    finally:
        TABLE.put(checksum_name(NEWEST), CHECKSUM)


def mutated(data):
    """Real content with a few bytes or words of it changed."""
    words = st.sampled_from(
        [b"null", b"-1", b"1e999", b'"x"', b"[]", b"{}", b"[[", b"NaN", b"\xff", b"true", b"9" * 40]
    )
    edits = st.tuples(st.integers(0, len(data)), st.integers(0, 12), words | st.binary(max_size=3))
    return st.lists(edits, min_size=1, max_size=4).map(lambda made: _edited(data, made))


def _edited(data, edits):
    for start, length, word in edits:
        data = data[:start] + word + data[start + length :]
    return data


@settings(deadline=None, max_examples=4 * settings.default.max_examples)
@given(mutated(LAST))
def test_a_mutated_commit_is_parsed_or_a_clear_error(data):
    for with_info in (True, False):
        try:
            parse_commit_lines(data, "t/_delta_log/3.json", with_info=with_info)
        except TableError as error:
            assert error.kind == "OPTIMIST_MALFORMED_COMMIT"
            assert error.fields["path"] == "t/_delta_log/3.json"


@settings(deadline=None, max_examples=2 * settings.default.max_examples)
@given(mutated(LAST))
def test_a_table_with_a_mutated_commit_is_read_or_refused(data):
    TABLE.put(commit_name(NEWEST), data)
    try:
        TABLE.answer()
    except OptimistError as error:
        assert error.kind
    finally:
        TABLE.put(commit_name(NEWEST), LAST)


@settings(deadline=None, max_examples=2 * settings.default.max_examples)
@given(mutated(TABLE.read(commit_name(0))))
def test_a_table_with_a_mutated_first_commit_is_read_or_refused(data):
    first = TABLE.read(commit_name(0))
    TABLE.put(commit_name(0), data)
    try:
        TABLE.answer()
    except OptimistError as error:
        assert error.kind
    finally:
        TABLE.put(commit_name(0), first)


@settings(deadline=None, max_examples=3 * settings.default.max_examples)
@given(mutated(CHECKSUM))
def test_a_mutated_checksum_is_parsed_or_no_checksum(data):
    try:
        VersionChecksum.from_json(data.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        assert str(error)


@settings(deadline=None, max_examples=3 * settings.default.max_examples)
@given(
    mutated(
        LastCheckpoint(10, 7, 2, 900, 5, {"tags": {"a": "b"}}).to_json(EngineOptions()).encode()
    )
)
def test_a_mutated_hint_is_corrupt_or_of_a_version_that_can_be(data):
    try:
        found = LastCheckpoint.from_json(data.decode("utf-8", "surrogateescape"))
    except ValueError as error:
        assert str(error)
    else:
        assert 0 <= found.version < 1 << 63


@pytest.mark.parametrize("opening", [b"[", b'{"a":', b'{"commitInfo":{"a":'])
def test_a_line_nested_too_deeply_is_a_clear_error(opening):
    with pytest.raises(TableError) as caught:
        parse_commit_lines(opening * 100_000, "1.json")
    assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"
    for parse in (LastCheckpoint.from_json, VersionChecksum.from_json):
        with pytest.raises(ValueError, match="it is"):
            parse((opening * 100_000).decode())


def test_actions_of_lines_that_name_every_kind_are_not_lost():
    lines = parse_commit_lines(
        b'{"add":{"path":"a","size":1},"remove":null,"txn":null}\n'
        b'{"add":null,"remove":{"path":"b"}}\n{"txn":{"appId":"x","version":1},"add":null}\n',
        "1.json",
    )
    assert [action.path for action in lines.file_actions] == ["a", "b"]
    assert lines.actions == (SetTransaction("x", 1),)


@pytest.mark.parametrize(
    "line",
    [
        {"protocol": {"minReaderVersion": "1", "minWriterVersion": 2}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": "x"}},
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": [1]}},
        {"metaData": {"id": 1, "schemaString": "{}"}},
        {"metaData": {"id": "1", "schemaString": {}}},
        {"metaData": {"id": "1", "schemaString": "{}", "configuration": {"a": 1}}},
        {"metaData": {"id": "1", "schemaString": "{}", "partitionColumns": "p"}},
        {"txn": {"appId": "a", "version": "1"}},
        {"txn": {"appId": "a", "version": True}},
        {"domainMetadata": {"domain": "d", "configuration": "", "removed": "no"}},
    ],
)
def test_a_field_of_another_type_is_a_clear_error(line):
    with pytest.raises(TableError, match="has the wrong type") as caught:
        parse_commit_lines(json.dumps(line).encode(), "1.json")
    assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"


def test_a_schema_that_is_no_json_is_a_clear_error():
    table = Table()
    table.put(commit_name(0), actions_to_bytes((Protocol(1, 2), Metadata("id", "no JSON"))))
    with pytest.raises(OptimistError, match="schema can't be read") as caught:
        table.open().snapshot()
    assert caught.value.kind == "OPTIMIST_MALFORMED_SCHEMA"


@pytest.mark.parametrize("version", [-1, 4, 10**12])
def test_a_version_outside_the_log_is_an_error_that_gives_the_range(version):
    with pytest.raises(TableError) as caught:
        TABLE.open().snapshot(version=version)
    assert caught.value.kind == "DELTA_VERSION_NOT_FOUND"
    assert (caught.value.fields["earliest"], caught.value.fields["latest"]) == (0, NEWEST)
