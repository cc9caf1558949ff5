"""The arrow plane reads what a query wants and nothing else, and the answer is the same."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as sf

from hand_made_tables import array_of, data_file, field, inline_vector, make_table, struct_of
from optimist.core.errors import ArgumentTypeError, SchemaError, UsageError
from optimist.spark import DeltaTable, read, write
from parts_of_rows import assert_parts_agree

BAD = "OPTIMIST_DATA_FILE_TYPE_MISMATCH"


@pytest.fixture(autouse=True)
def on_the_arrow_plane(conf):
    conf("spark.optimist.spark.plane", "arrow")


def harmed_table(root):
    """Values of `bad`, `st.bad` and `many.bad` do not fit; the rest of the rows does."""
    inner = pa.struct([("bad", pa.string()), ("a", pa.int64())])
    shredded = pa.struct([("metadata", "binary"), ("typed_value", "int64")])
    one = {"bad": "x", "a": 5}
    rows = pa.table(
        {
            "id": [1, 2, 3],
            "bad": ["x", "y", "z"],
            "st": pa.array([one, None, {"bad": "y", "a": None}], inner),
            "many": pa.array([[one, None], None, []], pa.list_(inner)),
            "v": pa.array([None] * 3, shredded),
        }
    )
    kind = struct_of(field("bad", "long"), field("a", "long"))
    fields = [
        field("id", "long"),
        field("bad", "long"),
        field("st", kind),
        field("many", array_of(kind)),
        field("v", "variant"),
    ]
    add = data_file(root, "f.parquet", rows, vector=inline_vector({2}))
    return str(make_table(root, fields, [add], features=["deletionVectors", "variantType"]))


@pytest.fixture(scope="module")
def harmed(tmp_path_factory):
    return harmed_table(tmp_path_factory.mktemp("harmed") / "t")


@pytest.mark.parametrize(
    ("wanted", "rows"),
    [
        (["id"], [(1,), (2,)]),
        (["count(*)"], [(2,)]),
        (["sum(id)", "sum(st.a)"], [(3, 5)]),
        (["st.a", "id", "st.a"], [(5, 1, 5), (None, 2, None)]),
        (["many.a"], [([5, None],), (None,)]),
        (["id", "_metadata.row_index"], [(1, 0), (2, 1)]),
        (["_metadata.file_name"], [("f.parquet",)] * 2),
    ],
)
def test_what_nobody_asked_for_is_not_decoded(spark, harmed, wanted, rows):
    assert [tuple(row) for row in read(spark, harmed).selectExpr(*wanted).collect()] == rows


@pytest.mark.sample(3)
@pytest.mark.parametrize("wanted", ["bad", "st.bad", "many[0].bad", "v", "st", "*"])
def test_what_is_asked_for_is_decoded(spark, harmed, wanted):
    with pytest.raises(Exception, match=BAD):
        read(spark, harmed).selectExpr(wanted).collect()


@pytest.mark.again
def test_filters_and_joins_read_their_columns_too(spark, harmed):
    frame = read(spark, harmed)
    assert frame.where("id = 2").select("st.a").collect() == [(None,)]
    with pytest.raises(Exception, match=BAD):
        frame.where("bad = 2").select("id").collect()
    pairs = frame.alias("l").join(frame.alias("r"), sf.expr("l.id = r.st.a - 3"))
    assert pairs.selectExpr("l.id", "r.id AS other").collect() == [(2, 1)]
    both = frame.selectExpr("id AS n").union(frame.selectExpr("st.a AS n"))
    assert sorted(both.collect(), key=repr) == [(1,), (2,), (5,), (None,)]


@pytest.fixture
def parts(spark, table_path):
    """Four files of 25 rows, ids in order, three partitions in each."""
    for start in range(0, 100, 25):
        rows = spark.range(start, start + 25, 1, 1).selectExpr(
            "id", "CAST(id % 3 AS INT) AS p", "named_struct('a', id, 'b', id % 7) AS st"
        )
        write(rows, table_path, mode="append", partitionBy="p")
    return table_path


def test_a_limit_reads_few_files(spark, parts):
    # The first version's files are enough for its rows, so the others may be gone.
    frame = read(spark, parts)
    assert (len(frame.limit(7).collect()), len(frame.take(1)), frame.limit(0).count()) == (7, 1, 0)
    assert frame.limit(1000).count() == 100
    assert len(frame.where("id >= 50").limit(30).collect()) == 30
    assert len(frame.orderBy(sf.desc("id")).limit(2).collect()) == 2
    assert frame.limit(5).union(frame.limit(6)).count() == 11
    assert frame.limit(10).where("id < 0").count() == 0
    assert frame.limit(3).selectExpr("count(p)").collect() == [(3,)]
    few = frame.limit(2)
    scan = few._jdf.queryExecution().executedPlan()
    assert frame.rdd.getNumPartitions() > few.rdd.getNumPartitions() == 1, scan.toString()
    for file in Path(parts).rglob("*.parquet"):
        if pq.read_metadata(file).num_rows and "p=0" not in str(file):
            file.unlink()
    assert len(read(spark, parts).where("p = 0").limit(2).collect()) == 2


@pytest.mark.again
def test_parts_of_partitioned_rows_agree_with_all(spark, parts):
    frame = read(spark, parts)
    assert_parts_agree(frame, frame.toArrow())
    assert frame.select("p").groupBy("p").count().count() == 3
    found = frame.where("p = 1 AND st.b = 1").select("st.a").collect()
    assert sorted(found) == [(i,) for i in range(100) if i % 3 == 1 and i % 7 == 1]


@pytest.mark.again
def test_one_frame_serves_queries_of_different_columns(spark, parts):
    frame = read(spark, parts)
    assert frame.selectExpr("sum(id)").collect() == [(4950,)]
    assert frame.selectExpr("sum(st.b)", "max(p)").collect() == [
        (sum(i % 7 for i in range(100)), 2)
    ]
    kept = frame.select("id", "st").cache()
    assert kept.selectExpr("sum(st.a)").collect() == kept.selectExpr("sum(id)").collect()
    assert frame.select("id", "st").where("st.a = 4").select("id").collect() == [(4,)]
    kept.unpersist()
    joined = frame.alias("a").join(frame.alias("b"), sf.expr("a.id = b.st.b AND b.id < 10"))
    assert joined.count() == 10
    same = frame.groupBy("p").agg(sf.sum("id").alias("n"))
    assert same.union(same).count() == 6
    other = frame.groupBy("p").agg(sf.sum("st.a").alias("n"))
    assert sorted(same.collect()) == sorted(other.collect())


def test_rows_tell_where_they_are_from_and_who_they_are(spark, table_path, conf):
    rows = spark.range(0, 10, 1, 1).selectExpr("id", "id AS `_metadata.row_id`")
    write(rows, table_path, **{"delta.enableRowTracking": "true"})
    table = DeltaTable.forPath(spark, table_path)
    table.delete("id = 1")
    table.update("id = 2", {"id": "20L"})
    asked = ["id", "_metadata.row_id", "_metadata.row_commit_version", "_metadata.row_index"]
    asked += [f"_metadata.{name}" for name in ("file_path", "file_name", "file_size")]
    found = {}
    for plane in ("arrow", "native"):
        conf("spark.optimist.spark.plane", plane)
        frame = read(spark, table_path)
        found[plane] = sorted(frame.select(*asked).collect())
        assert "_metadata" not in frame.columns
        assert frame.where("_metadata.row_id = 2").select("id").collect() == [(20,)]
    assert found["arrow"] == found["native"]
    conf("spark.optimist.spark.plane", "arrow")
    frame = read(spark, table_path, columns=["`_metadata`.`row_id`", "_metadata.row_id"])
    assert sorted(frame.collect())[2] == (3, 3)


def test_a_column_that_is_called_metadata_is_the_tables_own(spark, table_path):
    write(spark.sql("SELECT 1 AS id, named_struct('row_index', 'mine') AS _metadata"), table_path)
    assert read(spark, table_path).select("_metadata.row_index").collect() == [("mine",)]
    assert read(spark, table_path).select("id").collect() == [(1,)]


def test_columns_of_a_read_are_named_as_in_a_select(spark, parts):
    frame = read(spark, parts, columns=["ST.a", "P", "id", "id"])
    assert frame.columns == ["a", "p", "id", "id"]
    assert frame.where("a = 5").collect() == [(5, 2, 5, 5)]
    past = read(spark, parts, versionAsOf=0, columns=["id"])
    assert (past.count(), past.columns) == (25, ["id"])


def test_columns_that_are_no_names_are_refused(spark, parts):
    with pytest.raises(SchemaError) as caught:
        read(spark, parts, columns=["id", "gone"])
    assert caught.value.kind == "DELTA_COLUMN_NOT_FOUND"
    with pytest.raises(UsageError) as empty:
        read(spark, parts, columns=[])
    assert empty.value.kind == "OPTIMIST_NO_COLUMNS"
    for wrong in ("id", 7, [7]):
        with pytest.raises(ArgumentTypeError):
            read(spark, parts, columns=wrong)


@pytest.mark.again
def test_a_join_with_what_is_left_of_a_table_is_a_broadcast(spark, table_path, conf):
    rows = spark.sql("SELECT id, id % 5 AS p FROM range(0, 40, 1, 1)")
    write(rows, table_path, partitionBy="p")
    table = read(spark, table_path)
    some = table.where("p = 1")

    def size_of(frame):
        return int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))

    assert 0 < size_of(some) < size_of(table) < 10**6
    conf("spark.sql.autoBroadcastJoinThreshold", str(size_of(table) // 2))
    conf("spark.sql.adaptive.enabled", "false")
    joined = some.alias("l").join(table.alias("r"), sf.expr("l.id = r.id"))
    assert "BroadcastHashJoin" in joined._jdf.queryExecution().sparkPlan().toString()
    assert joined.count() == 8
    both = table.alias("l").join(table.alias("r"), sf.expr("l.id = r.id"))
    assert "SortMergeJoin" in both._jdf.queryExecution().sparkPlan().toString()
    assert size_of(table.where("p > 9")) < size_of(some)
