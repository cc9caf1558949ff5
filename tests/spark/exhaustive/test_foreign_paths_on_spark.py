"""Files that are not the table's, on both planes: not opened, not copied, never touched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import TableError
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import (
    Action,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    actions_to_bytes,
)
from optimist.spark import DeltaTable, read, write

OUTSIDE, FOREIGN = "OPTIMIST_PATH_OUTSIDE_TABLE", "OPTIMIST_FOREIGN_DATA_PATH"
REWRITE = "OPTIMIST_REWRITE_OF_OUTSIDE_FILE"
OPTION = "spark.optimist.paths.outsideTable"
FIRST = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
SECRET = pa.table({"id": pa.array([6, 66, 666], pa.int64()), "s": ["x", "y", "z"]})


@dataclass
class Place:
    """A table in `t`, and beside it a table in `source` that is none of its business."""

    root: Path

    @property
    def path(self) -> str:
        return str(self.root / "t")

    @property
    def log(self) -> DeltaLog:
        return DeltaLog.for_path(self.path, {})

    @property
    def source(self) -> DeltaLog:
        return DeltaLog.for_path(str(self.root / "source"), {})

    @property
    def secret_add(self) -> AddFile:
        """The file of the other table, as this one would name it."""
        (row,) = self.source.files().to_pylist(maps_as_pydicts="strict")
        uri = (self.root / "source" / row["path"]).as_uri()
        return AddFile(uri, {}, row["size"], 1, True, stats=row["stats"])

    def put(self, *actions: Action) -> None:
        """What another writer commits, whatever it is."""
        version = self.log.snapshot().version + 1
        self.log.store.put_if_absent(
            commit_path(self.log.log_path, version), actions_to_bytes(actions)
        )

    def everything_else(self) -> dict[str, bytes]:
        """All files but the table's own."""
        files = (item for item in self.root.rglob("*") if item.is_file())
        own = Path(self.path)
        return {str(item): item.read_bytes() for item in files if own not in item.parents}


@pytest.fixture(params=["native", "arrow"])
def place(request, conf, tmp_path):
    conf("spark.optimist.spark.plane", request.param)
    made = Place(tmp_path)
    made.log.append(FIRST)
    made.source.append(SECRET)
    before = made.everything_else()
    yield made
    assert made.everything_else() == before


@pytest.fixture
def ids(spark) -> Callable[[str], list[int]]:
    return lambda path: sorted(row.id for row in read(spark, path).collect())


@pytest.mark.parametrize(
    "text",
    [
        "reference://k::file:///tmp/refs.json",
        "http://127.0.0.1:9/x.parquet",
        "jar:file:///a.jar!/x.parquet",
        "%68ttp://127.0.0.1:9/x.parquet",
        "../" * 40 + "x.parquet",
    ],
)
def test_a_foreign_path_of_a_file_or_a_vector_is_refused(spark, place, text):
    place.put(AddFile(text, {}, 10, 1, True))
    with pytest.raises(Exception, match=FOREIGN):
        read(spark, place.path).collect()
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, place.path).delete("s = 'q'")
    assert caught.value.kind == FOREIGN
    (own, _) = place.log.files()["path"].to_pylist()
    vector = DeletionVectorDescriptor("p", text, 40, 1, 1)
    place.put(AddFile(own, {}, 10, 1, True, deletion_vector=vector), AddFile(text, {}, 1, 1, True))
    place.put(AddFile(text, {}, 10, 1, True).remove(1))
    with pytest.raises(Exception, match=FOREIGN):
        read(spark, place.path).collect()


def test_rows_of_another_table_are_read_and_not_copied(spark, place, ids, conf):
    place.put(place.secret_add)
    table = DeltaTable.forPath(spark, place.path)
    assert ids(place.path) == [1, 2, 3, 6, 66, 666]
    before = sorted(Path(place.path).rglob("*"))
    for rewrite in (
        lambda: table.delete("id = 66"),
        lambda: table.update("id = 66", {"s": "'q'"}),
        lambda: write(
            spark.sql("SELECT 66L AS id, 'q' AS s"), place.path, mode="overwrite",
            replaceWhere="id = 66",
        ),
    ):  # fmt: skip
        with pytest.raises(TableError, match=r"optimist\.paths\.outsideTable=any") as caught:
            rewrite()
        assert caught.value.kind == REWRITE
    # What was only aimed at the table's own file is as it always was.
    assert sorted(Path(place.path).rglob("*")) == before
    table.delete("id = 1")
    assert ids(place.path) == [2, 3, 6, 66, 666]
    conf(OPTION, "never")
    with pytest.raises(Exception, match=OUTSIDE):
        ids(place.path)
    conf(OPTION, "any")
    DeltaTable.forPath(spark, place.path).delete("id = 66")
    assert ids(place.path) == [2, 3, 6, 666]


def test_a_whole_file_outside_leaves_the_table_and_stays_where_it_is(spark, place, ids):
    place.put(place.secret_add)
    DeltaTable.forPath(spark, place.path).delete()
    assert ids(place.path) == []
    place.put(place.secret_add)
    write(spark.sql("SELECT 9L AS id, 'n' AS s"), place.path, mode="overwrite")
    assert ids(place.path) == [9]


def clone_commit(path, version=0):
    return CommitInfo(
        operation="CLONE",
        operation_parameters={"source": f"delta.`{path}`", "sourceVersion": version},
    )


def test_a_clone_of_another_table_may_be_rewritten(spark, place, ids):
    place.put(clone_commit(f"file:{place.root}/source"), place.secret_add)
    table = DeltaTable.forPath(spark, place.path)
    table.delete("id = 66")
    table.update("id = 6", {"s": "'q'"})
    assert ids(place.path) == [1, 2, 3, 6, 666]


def test_a_clone_that_is_only_said_to_be_one_may_not(spark, place):
    """Forged: another version, no table there, and a table that the forger made within his own."""
    pq.write_table(SECRET, Path(place.path) / "own.parquet")
    add = place.secret_add
    inner = DeltaLog.for_path(f"{place.path}/inner", {})
    inner.append(SECRET)
    inner.store.put_if_absent(commit_path(inner.log_path, 1), actions_to_bytes([add]))
    place.put(add)
    (Path(place.path) / "link").symlink_to(place.root)
    for source, version in [
        (place.root / "source", 7),
        (place.root, 0),
        (inner.table_path, 1),
        (f"{place.root}/source/../t/inner", 1),
        (f"{place.path}/link/t/inner", 1),
        ("hdfs://elsewhere/t", 0),
    ]:
        place.put(clone_commit(source, version))
        with pytest.raises(TableError) as caught:
            DeltaTable.forPath(spark, place.path).delete("id = 66")
        assert caught.value.kind == REWRITE, source


def test_a_link_within_the_table_is_read_and_not_copied(spark, place, ids):
    add = place.secret_add
    link = Path(place.path) / "part-9.parquet"
    link.symlink_to(add.path.removeprefix("file://"))
    place.put(replace(add, path=link.name))
    assert ids(place.path) == [1, 2, 3, 6, 66, 666]
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, place.path).update("id = 6", {"s": "'q'"})
    assert caught.value.kind == REWRITE
