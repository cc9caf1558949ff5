"""Handles as values: pickled, printed, asked for a version; and their errors as people see them."""

from __future__ import annotations

import importlib
import io
import logging
import pickle
import traceback
from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

import optimist.core
from optimist.core import DeltaLog, Operation, OptimistError, Snapshot, col
from optimist.core.errors import SchemaError, StorageError, UsageError
from optimist.core.plugins.logstore import FileStatus, PutOutcome
from optimist.logstores import LocalLogStore, MemoryLogStore

ROWS = pa.table({"id": [1, 2], "name": ["a", "b"]})
MODULES = (
    "optimist.core",
    "optimist.core.testing",
    "optimist.deltalake",
    "optimist.deltalake.writer",
    "optimist.locks",
    "optimist.logstores",
)


@pytest.fixture
def log(tmp_path):
    made = DeltaLog.for_path(tmp_path / "t", {"optimist.conflict.retry": "true"})
    made.create({"id": "bigint", "name": "string", "pos": "struct<lat: int>"})
    made.append(ROWS)
    return made


def test_a_handle_is_pickled_as_its_path_and_options(log):
    data = pickle.dumps(log)
    again = pickle.loads(data)
    assert again is log  # this process has the handle in its cache
    assert len(data) < 300
    assert again.options.conflict_retry


def test_a_handle_with_a_store_of_its_own_is_not_pickled(tmp_path):
    log = DeltaLog("memory://t", MemoryLogStore())
    with pytest.raises(UsageError, match="for_path"):
        pickle.dumps(log)


def test_version_and_schema_are_those_of_the_newest_version(log):
    assert log.version() == 1
    assert log.schema() == log.snapshot().schema
    with log.transaction() as txn:
        txn.append(ROWS)
        assert txn.version() == 2
    assert log.version() == 2


def test_a_handle_and_a_merge_print_as_what_they_are_of(log):
    merge = log.merge(ROWS, ["id"]).when_matched_delete()
    assert repr(log) == f"DeltaLog({log.table_path!r})"
    assert repr(merge) == "LocalMerge(on ('id',): MATCHED delete)"
    assert repr(col("a.b")) == "col('a.b')"


@pytest.mark.parametrize("name", MODULES)
def test_dir_shows_every_public_name(name):
    module = importlib.import_module(name)
    assert set(module.__all__) <= set(dir(module))


def test_the_package_has_a_version():
    assert optimist.core.__version__ == importlib.metadata.version("optimist")
    assert "__version__" in dir(optimist.core)


class _Unreachable(LocalLogStore):
    """A store whose bucket is missing."""

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return self._fail(30, path)

    def read_bytes(self, path: str) -> bytes:
        return self._fail(30, path)

    def _fail(self, depth: int, path: str):
        if depth:
            return self._fail(depth - 1, path)
        try:
            raise OSError("what the client of the store says")
        except OSError as error:
            raise StorageError(
                f"Cannot read {path}: no such bucket.", kind="OPTIMIST_BUCKET_NOT_FOUND"
            ) from error


@pytest.mark.parametrize("read", [DeltaLog.to_arrow, DeltaLog.table_exists, DeltaLog.version])
def test_an_error_of_a_store_is_short_and_comes_without_a_warning(tmp_path, caplog, read):
    log = DeltaLog(str(tmp_path / "t"), _Unreachable())
    # A handler of its own, since PySpark gives those of the root logger another format.
    told = io.StringIO()
    handler = logging.StreamHandler(told)
    logging.getLogger("optimist").addHandler(handler)
    with pytest.raises(StorageError) as caught, caplog.at_level(logging.DEBUG):
        read(log)
    logging.getLogger("optimist").removeHandler(handler)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len(lines) <= 20
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []
    assert "what the client of the store says" in told.getvalue()  # at level DEBUG


class _Cut(_Unreachable):
    """A store that serves its table until it is cut off."""

    finds_cheaply = False
    is_cut = False

    def list_from(self, path: str) -> Iterator[FileStatus]:
        return super().list_from(path) if self.is_cut else LocalLogStore.list_from(self, path)

    def read_bytes(self, path: str) -> bytes:
        return super().read_bytes(path) if self.is_cut else LocalLogStore.read_bytes(self, path)

    def put_if_absent(self, path: str, data: bytes) -> PutOutcome:
        return self._fail(30, path) if self.is_cut else super().put_if_absent(path, data)

    def cut(self) -> None:
        self.is_cut = True


def _follow(log: DeltaLog, cut: Callable[[], None]) -> None:
    following = log.follow()
    next(following)
    cut()
    list(following)


def _begin(log: DeltaLog, cut: Callable[[], None]) -> None:
    cut()
    log.start_transaction()


def _commit(log: DeltaLog, cut: Callable[[], None]) -> None:
    txn = log.start_transaction()
    cut()
    txn.commit([], Operation.write("Append"))


def _commit_a_block(log: DeltaLog, cut: Callable[[], None]) -> None:
    with log.transaction() as txn:
        txn.append(ROWS)
        cut()


def _merge(log: DeltaLog, cut: Callable[[], None]) -> None:
    merge = log.merge(ROWS, ["id"]).when_matched_update_all()
    cut()
    merge.execute()


def _alter(log: DeltaLog, cut: Callable[[], None]) -> None:
    cut()
    log.alter.set_comment("x")


@pytest.mark.parametrize("work", [_follow, _begin, _commit, _commit_a_block, _merge, _alter])
def test_an_error_of_a_store_is_short_in_the_midst_of_work(tmp_path, work):
    store = _Cut()
    log = DeltaLog(str(tmp_path / "t"), store)
    log.append(ROWS)
    with pytest.raises(StorageError) as caught:
        work(log, store.cut)
    lines = "".join(traceback.format_exception(caught.value)).splitlines()
    assert len(lines) <= 20, "\n".join(lines)


@pytest.mark.parametrize(
    ("value", "near"),
    [
        ("nme", ("name",)),
        ("concat(nme, 'x')", ("name",)),
        ("upper(nme)", ("name",)),
        ("CASE WHEN idd = 1 THEN 'x' END", ("id",)),
        ("lat", ("pos.lat",)),
        ("pos.lot", ("pos.lat",)),
    ],
)
def test_update_by_an_unknown_name_says_what_is_near(log, value, near):
    with pytest.raises(SchemaError) as caught:
        log.update(set={"name": value})
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
    assert caught.value.fields["near"][: len(near)] == near
    assert "Spark" not in str(caught.value)


def test_merge_by_an_unknown_name_says_what_is_near(log):
    merge = log.merge(ROWS, ["id"]).when_matched_update({"name": "s.nme"})
    with pytest.raises(SchemaError, match=r"Did you mean s\.name"):
        merge.execute()


def test_update_takes_a_column_as_its_value(log):
    log.update(set={"pos.lat": 7})
    log.update(set={"id": col("pos.lat")})
    assert log.to_arrow(columns=["id"])["id"].to_pylist() == [7, 7]


@pytest.mark.parametrize(
    "call",
    [
        lambda log: log.append(pa.table({"id": [1], "x": [1]})),
        lambda log: log.append(pa.table({"id": ["x"]})),
        lambda log: log.append(ROWS, partition_by=["id"]),
        lambda log: log.changes(),
        lambda log: next(log.follow(starting_version=0, starting_timestamp=0)),
        lambda log: next(log.follow(starting_version="first")),
    ],
)
def test_errors_of_plain_python_name_no_options_of_spark(log, call):
    with pytest.raises(OptimistError) as caught:
        call(log)
    message = str(caught.value).replace("startingVersion or startingTimestamp on Spark", "")
    for name in ("mergeSchema", "overwriteSchema", "mode overwrite", "startingVersion"):
        assert name not in message


def test_columns_are_given_in_any_form(tmp_path):
    forms = [
        {"id": "bigint", "name": "string"},
        [("id", "bigint"), ("name", "string")],
        [("id", pa.int64()), pa.field("name", pa.string())],
        ROWS.schema,
    ]
    found = []
    for number, form in enumerate(forms):
        log = DeltaLog.for_path(tmp_path / str(number))
        log.create(form)
        found.append(log.schema().names)
        log.alter.add_columns({"a": "int"})
        log.alter.add_columns([("b", pa.int32())])
        log.alter.add_columns(pa.schema({"c.d": pa.int32()}))
        assert isinstance(log.snapshot(), Snapshot)
        assert log.schema().names[2:] == ("a", "b", "c.d")
    assert found == [("id", "name")] * len(forms)
