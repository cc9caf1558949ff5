"""What plans of a Spark Connect client need of a table: judged by messages, without a server."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from pyspark.sql.connect import functions as sf
from pyspark.sql.connect import plan as plans
from pyspark.sql.connect.dataframe import DataFrame
from pyspark.sql.connect.window import Window

from optimist.core.schema.types import StructField, StructType
from optimist.core.sql import Mentions
from optimist.spark.arrow.source import SOURCE_PREFIX
from optimist.spark.drop_in.connect.sent_needs import has_unknown_names, mentions, needs_of_scans

SESSION = SimpleNamespace(client=None, session_id="x")
INNER = StructType((StructField("a", "long"), StructField("x y", "long")))
TABLE = StructType(
    (
        StructField("id", "long"),
        StructField("n", "long"),
        StructField("p", "integer"),
        StructField("st", INNER),
    )
)


def table():
    scan = plans.DataSource(format=f"{SOURCE_PREFIX}x", schema="id long")
    return DataFrame(plans.SubqueryAlias(scan, "optimist_scan_x"), SESSION)


def other():
    return DataFrame(plans.Range(0, 3, 1), SESSION)


def windowed(frame):
    place = sf.row_number().over(Window.partitionBy("p").orderBy("n"))
    return frame.select("id", place.alias("r"))


def needed(frame):
    """For each scan its columns, or None for all; the columns that filters test; the limit.

    A column that has another name where the filter stands is shown under both.
    """
    relation = frame._plan.plan(None)
    names = mentions(relation)
    assert isinstance(names, Mentions)
    found = []
    for _, needs in needs_of_scans(relation, lambda part: False):
        columns = None if needs.takes_all else [".".join(path) for path in names.paths(TABLE)]
        meant = [item.names(TABLE.names).items() for item in needs.filters]
        tested = [[f"{k}={v}" if k != v else k for k, v in pairs] for pairs in meant]
        found.append((columns, tested, needs.limit))
    return found if len(found) > 1 else found[0]


EVERY = list(TABLE.names)
ALL = (None, [], None)
CASES = {
    "everything": (lambda t: t, ALL),
    "columns": (lambda t: t.select("id", sf.col("n") + 1), (["id", "n"], [], None)),
    "a field": (lambda t: t.select("st.`x y`"), (["st.x y"], [], None)),
    "a field and the whole": (lambda t: t.select("st.a", "st"), (["st"], [], None)),
    "any case": (lambda t: t.select("ID"), (["id"], [], None)),
    "texts": (lambda t: t.selectExpr("n + st.a AS p"), (["n", "p", "st.a"], [], None)),
    "a star": (lambda t: t.select("*", "id"), ALL),
    "a star in a text": (lambda t: t.selectExpr("struct(*)"), ALL),
    "a star of a name": (lambda t: t.select(sf.struct("st.*")), ALL),
    "a pattern": (lambda t: t.select(sf.expr("`i.*`")), ALL),
    "count(*)": (lambda t: t.agg(sf.count("*")), ([], [], None)),
    "a filter": (lambda t: t.where("id > 3"), (None, [EVERY], None)),
    "two filters": (lambda t: t.where("id > 3").where("n = 1"), (None, [EVERY] * 2, None)),
    "a filter above columns": (
        lambda t: t.select("id", "p").where("p = 2"),
        (["id", "p"], [["id", "p"]], None),
    ),
    "a column that is not chosen": (
        lambda t: t.select("id").where("p = 2").orderBy("n"),
        (["id", "n", "p"], [["id"]], None),
    ),
    "a column made anew": (
        lambda t: t.withColumn("id", sf.col("id") + 1).where("id = 4 AND p = 1").select("n"),
        (["id", "n", "p"], [["n", "p", "st"]], None),
    ),
    "a cast has the column's name": (
        lambda t: t.select(sf.col("id").cast("string"), "p").where("id = 'x'"),
        (["id", "p"], [["p"]], None),
    ),
    "another column's name": (
        lambda t: t.select(sf.col("id").alias("n"), "p").where("n = 1"),
        (["id", "n", "p"], [["n=id", "p"]], None),
    ),
    "two columns of one name": (
        lambda t: t.select(sf.col("id").alias("n"), "n", "p").where("p = 1"),
        (["id", "n", "p"], [["p"]], None),
    ),
    "renamed": (
        lambda t: t.withColumnRenamed("id", "k").where("k = 1").select("k"),
        (["id"], [["k=id", "n", "p", "st"]], None),
    ),
    "renamed twice, and chosen": (
        lambda t: (
            t.withColumnsRenamed({"id": "k", "n": "m"})
            .withColumn("two", sf.col("k"))
            .withColumnRenamed("k", "id2")
            .where("m = 1")
            .select("two")
        ),
        (["id", "n"], [["two=id", "id2=id", "m=n", "p", "st"]], None),
    ),
    "names that change places": (
        lambda t: t.withColumnsRenamed({"id": "n", "n": "id"}).where("id = 1").select("id"),
        (["id", "n"], [], None),
    ),
    "a name that was given away": (
        lambda t: t.withColumnRenamed("id", "k").withColumn("id", sf.lit(1)).where("id = 1"),
        (None, [["k=id", "n", "p", "st"]], None),
    ),
    "dropped": (
        lambda t: t.drop("n", sf.col("P")).where("id = 1"),
        (None, [["id", "st"]], None),
    ),
    "a window sees all rows": (
        lambda t: windowed(t).where("id = 4"),
        (["id", "n", "p"], [], None),
    ),
    "a filter below a window": (
        lambda t: windowed(t.where("p = 1")),
        (["id", "n", "p"], [EVERY], None),
    ),
    "random": (lambda t: t.select("id", sf.rand(1)).where("id = 4"), (["id"], [], None)),
    "a limit": (lambda t: t.limit(5).select("id").limit(3), (["id"], [], 3)),
    "a limit above a filter": (lambda t: t.where("id = 1").limit(3), (None, [EVERY], None)),
    "a filter above a limit": (lambda t: t.limit(3).where("id = 1"), (None, [], 3)),
    "a limit above a sort": (lambda t: t.orderBy("id").limit(3), ALL),
    "a limit above more rows": (
        lambda t: t.select(sf.explode(sf.array("id", "n"))).limit(3),
        (["id", "n"], [], None),
    ),
    "a limit above an aggregate": (lambda t: t.select(sf.sum("n")).limit(1), (["n"], [], None)),
    "a limit above an offset": (lambda t: t.offset(2).limit(1), ALL),
    "groups": (lambda t: t.groupBy(sf.col("p")).agg(sf.max("n")), (["n", "p"], [], None)),
    "a filter above groups": (
        lambda t: t.groupBy(sf.col("p")).agg(sf.sum("n").alias("n")).where("p = 1"),
        (["n", "p"], [["p"]], None),
    ),
    "a filter above groups by another name": (
        lambda t: t.groupBy(sf.col("p").alias("k"), sf.col("id") % 2).count().where("k = 1"),
        (["id", "p"], [["k=p"]], None),
    ),
    "a filter above a group that hides its key": (
        lambda t: t.groupBy(sf.col("p")).agg(sf.sum("n").alias("P")).where("p = 1"),
        (["n", "p"], [[]], None),
    ),
    "a filter above all rows as one": (
        lambda t: t.agg(sf.max("n").alias("n")).where("n = 1"),
        (["n"], [[]], None),
    ),
    "a filter above sets of groups": (
        lambda t: t.rollup(sf.col("p")).count().where("p = 1"),
        (["p"], [], None),
    ),
    "a filter above a pivot": (
        lambda t: t.groupBy(sf.col("p")).pivot("n", [1]).agg(sf.sum("id")).where("p = 1"),
        (["id", "n", "p"], [], None),
    ),
    "distinct": (lambda t: t.select("p").distinct(), (["p"], [], None)),
    "distinct rows": (lambda t: t.distinct(), ALL),
    "distinct of a column": (
        lambda t: t.dropDuplicates(["p"]).where("n = 1").select("id"),
        (["id", "n", "p"], [["p"]], None),
    ),
    "a filter above distinct rows": (
        lambda t: t.distinct().where("id = 1"),
        (None, [EVERY], None),
    ),
    "a union by place": (lambda t: t.union(t).select("id"), [ALL, ALL]),
    "a union of columns": (
        lambda t: t.select("id").union(t.where("p = 1").select("n")),
        [(["id", "n", "p"], [], None), (["id", "n", "p"], [EVERY], None)],
    ),
    "other names by place": (lambda t: t.toDF("a", "b", "c", "d").select("a"), ALL),
    "a join": (
        lambda t: t.where("p = 1").join(other(), "id").where("n = 2").select("id"),
        (["id", "n", "p"], [EVERY, EVERY], None),
    ),
    "a join whose other side has the column": (
        lambda t: t.drop("n").join(other().select(sf.col("id").alias("n"))).where("n = 2"),
        (None, [["id", "p", "st"]], None),
    ),
    "both sides of a join": (
        lambda t: t.select("id", "n").join(t.select("id", "p"), "id").where("id = 2"),
        [(["id", "n", "p"], [["id", "n"]], None), (["id", "n", "p"], [["p"]], None)],
    ),
    "a left join": (
        lambda t: t.select("id", "n").join(t.select("id", "p"), "id", "left").where("id = 2"),
        [(["id", "n", "p"], [["id", "n"]], None), (["id", "n", "p"], [], None)],
    ),
    "a right join": (
        lambda t: t.select("id", "n").join(t.select("id", "p"), "id", "right").where("id = 2"),
        [(["id", "n", "p"], [], None), (["id", "n", "p"], [["id", "p"]], None)],
    ),
    "a full join": (
        lambda t: t.select("id", "n").join(t.select("id", "p"), "id", "outer").where("id = 2"),
        [(["id", "n", "p"], [], None), (["id", "n", "p"], [], None)],
    ),
    "rows that meet none": (
        lambda t: t.select("id", "n").join(t.select("id"), "id", "anti").where("id = 2"),
        [(["id", "n"], [["id", "n"]], None), (["id", "n"], [], None)],
    ),
    "a random join": (
        lambda t: t.join(other(), sf.rand(1) < 0.5).where("n = 2"),
        (None, [], None),
    ),
    "all columns of a join": (lambda t: t.select("id").join(other(), "id"), (["id"], [], None)),
    "nulls dropped": (lambda t: t.dropna().select("id"), ALL),
    "nulls of a column dropped": (
        lambda t: t.dropna(subset=["n"]).select("id"),
        (["id", "n"], [], None),
    ),
    "a part of a split, which sorts rows by all columns": (
        lambda t: t.randomSplit([0.5, 0.5], 1)[0].where("id = 1").select("id"),
        ALL,
    ),
    "a part of a split of columns": (
        lambda t: t.select("p", "id").randomSplit([0.5, 0.5], 1)[0].select("id"),
        (["id", "p"], [], None),
    ),
    "a filter above a random one": (
        lambda t: t.where(sf.rand(1) < 0.5).where("id = 1").select("id"),
        (["id"], [], None),
    ),
    "a filter below a random one": (
        lambda t: t.where("id = 1").where("rand(1) < 0.5").where("n = 1"),
        (None, [EVERY], None),
    ),
    "a filter that is random in part": (
        lambda t: t.where("id = 1 AND `RAND`(1) < 0.5"),
        ALL,
    ),
    "a filter by a function that somebody has registered": (
        lambda t: t.where("mine(id)").where(sf.call_function("mine", sf.col("id"))),
        ALL,
    ),
    "a filter with a query in it": (lambda t: t.where("id IN (SELECT 1)"), ALL),
    "a filter above a random order": (lambda t: t.orderBy(sf.rand(1)).where("id = 1"), ALL),
    "filters by Spark's own functions": (
        lambda t: t.where("upper(n) IN ('A') AND NOT (p = 1)").where(~(sf.sqrt("id") > 1)),
        (None, [EVERY] * 2, None),
    ),
    "a sample": (
        lambda t: t.sample(0.5, 1).where("id = 1").select("id"),
        (["id"], [], None),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_plan_needs(name):
    make, expected = CASES[name]
    assert needed(make(table())) == expected


def test_an_alias_may_stand_in_a_filter():
    frame = table().alias("t").where("t.id = 1").alias("u").where("u.id = 2")
    ((_, needs),) = needs_of_scans(frame._plan.plan(None), lambda part: False)
    assert [item.alias for item in needs.filters] == ["u", "t"]


def test_names_above_a_join_may_be_those_of_another_table():
    left, right = table().alias("l"), other().alias("r")
    frame = left.join(right, sf.expr("l.id = r.id")).where("l.n = 1").where(left.n == 2)
    ((_, needs),) = needs_of_scans(frame._plan.plan(None), lambda part: False)
    by_frame, by_name = needs.filters
    assert [item.alias for item in needs.filters] == ["l", "l"]
    assert by_frame.names_plans() and not by_name.names_plans()
    assert by_name.is_of(("n",)) and not by_name.is_of(("r", "id"))


def test_what_is_kept_is_not_looked_into():
    relation = table().where("id = 1").select("id")._plan.plan(None)
    assert (
        list(needs_of_scans(relation, lambda part: part.WhichOneof("rel_type") == "filter")) == []
    )


@pytest.mark.parametrize(
    ("make", "is_unknown"),
    [
        (lambda t: t.select("id", "nope"), True),
        (lambda t: t.where(sf.col("nope.x") == 1).select("id"), True),
        (lambda t: t.alias("t").select("t.id", "st.nope"), False),
        (lambda t: t.withColumn("k", sf.lit(1)).select("K"), False),
        (lambda t: t.withColumnRenamed("id", "k").select("k"), False),
        (lambda t: t.groupBy(sf.col("p")).agg(sf.max("n")).select("max(n)"), False),
        (lambda t: t.join(other(), sf.col("nope") == 1).select("id"), False),
    ],
)
def test_a_name_that_nothing_has_is_unknown(make, is_unknown):
    relation = make(table())._plan.plan(None)
    assert has_unknown_names(relation, TABLE.names) is is_unknown
