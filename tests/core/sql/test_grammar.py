"""Each statement of the grammar: what it means, and where a wrong one is wrong."""

from __future__ import annotations

import tracemalloc
from decimal import Decimal
from typing import get_args

import pytest

from optimist.core.errors import UsageError
from optimist.core.requests.alterations import (
    AddConstraint,
    ClusterBy,
    DropConstraint,
    DropFeature,
    SyncIdentity,
)
from optimist.core.requests.merge_clauses import Clause
from optimist.core.requests.table_definition import CreateMode
from optimist.core.sql import Command, Parameters, RowChange, parse_command, parse_row_change
from optimist.core.sql.statements import (
    AlterTable,
    Analyze,
    Assignment,
    Clone,
    ColumnType,
    ConvertToDelta,
    CreateLike,
    Delete,
    DescribeDetail,
    DescribeHistory,
    Generate,
    Merge,
    Optimize,
    Reorg,
    Restore,
    SqlText,
    TableName,
    TimeTravel,
    Update,
    Vacuum,
)

T = TableName(("t",))
P = TableName(("delta", "/a/b"))
TEXT = TableName(("/a/b",), is_text=True)


def parse(text, parameters=None):
    return parse_command(text, parameters) or parse_row_change(text, parameters)


HITS = {
    "OPTIMIZE t": Optimize(T),
    "optimize delta.`/a/b` FULL": Optimize(P, is_full=True),
    "OPTIMIZE '/a/b' WHERE d = 'zorder by' ZORDER BY (a, s.`b.c`)": Optimize(
        TEXT, where=SqlText("d = 'zorder by'"), zorder_by=(("a",), ("s", "b.c"))
    ),
    "OPTIMIZE t ZORDER BY a, b;": Optimize(T, zorder_by=(("a",), ("b",))),
    "VACUUM t": Vacuum(T),
    'VACUUM "/a/b" LITE DRY RUN': Vacuum(TEXT, "LITE", is_dry_run=True),
    "VACUUM t FULL USING INVENTORY (SELECT f(')') FROM u) RETAIN 0 HOURS": Vacuum(
        T, "FULL", SqlText("SELECT f(')') FROM u"), Decimal(0)
    ),
    "VACUUM t RETAIN -1.5 HOURS USING INVENTORY a.b": Vacuum(
        T, None, TableName(("a", "b")), Decimal("-1.5")
    ),
    "DESC HISTORY delta.`/a/b` LIMIT 5": DescribeHistory(P, 5),
    "DESCRIBE HISTORY history": DescribeHistory(TableName(("history",))),
    "DESCRIBE DETAIL '/a/b'": DescribeDetail(TEXT),
    "DESC DETAIL IDENTIFIER('delta.`/a/b`')": DescribeDetail(P),
    "GENERATE symlink_format_manifest FOR TABLE t": Generate("symlink_format_manifest", T),
    "CONVERT TO DELTA parquet.`/a/b`": ConvertToDelta(TableName(("parquet", "/a/b"))),
    "CONVERT TO DELTA t NO STATISTICS PARTITIONED BY (d DECIMAL(5, 2) NOT NULL COMMENT 'x', "
    "e INT)": (
        ConvertToDelta(
            T,
            False,
            (
                ColumnType("d", SqlText("DECIMAL(5, 2)"), False, "x"),
                ColumnType("e", SqlText("INT")),
            ),
        )
    ),
    "RESTORE TABLE t TO VERSION AS OF 3": Restore(T, TimeTravel(version=3)),
    "RESTORE t TIMESTAMP AS OF '2026-01-01'": Restore(T, TimeTravel(timestamp="2026-01-01")),
    "RESTORE table TO VERSION AS OF '7'": Restore(TableName(("table",)), TimeTravel(version=7)),
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1 AND f(b))": AlterTable(
        T, AddConstraint("c", "a > 1 AND f(b)")
    ),
    "ALTER TABLE t DROP CONSTRAINT c": AlterTable(T, DropConstraint("c")),
    "ALTER TABLE t DROP CONSTRAINT IF EXISTS `c d`": AlterTable(
        T, DropConstraint("c d", if_exists=True)
    ),
    "ALTER TABLE t DROP FEATURE deletionVectors": AlterTable(T, DropFeature("deletionVectors")),
    "ALTER TABLE t DROP FEATURE 'x-preview' TRUNCATE HISTORY": AlterTable(
        T, DropFeature("x-preview", True)
    ),
    "ALTER TABLE delta.`/a/b` CLUSTER BY (a, b.c)": AlterTable(P, ClusterBy((("a",), ("b", "c")))),
    "ALTER TABLE t CLUSTER BY NONE": AlterTable(T, ClusterBy()),
    "ALTER TABLE t ALTER COLUMN c SYNC IDENTITY": AlterTable(T, SyncIdentity(("c",))),
    "ALTER TABLE t CHANGE c SYNC IDENTITY": AlterTable(T, SyncIdentity(("c",))),
    "ANALYZE TABLE t COMPUTE DELTA STATISTICS": Analyze(T),
    "analyze table delta.`/a b` compute delta statistics;": Analyze(TableName(("delta", "/a b"))),
    "REORG TABLE t APPLY (PURGE)": Reorg(T),
    "REORG TABLE t WHERE apply = 1 APPLY (PURGE)": Reorg(T, SqlText("apply = 1")),
    "REORG TABLE t APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))": Reorg(T, None, 2),
    "CREATE TABLE t SHALLOW CLONE delta.`/a/b`": Clone(T, CreateMode.CREATE, P, True),
    "CREATE OR REPLACE TABLE t SHALLOW CLONE s FOR SYSTEM_VERSION AS OF 2 TBLPROPERTIES "
    "('a.b' = 'c', d.e true, f -1) LOCATION '/x'": Clone(
        T,
        CreateMode.CREATE_OR_REPLACE,
        TableName(("s",)),
        True,
        TimeTravel(version=2),
        (("a.b", "c"), ("d.e", "true"), ("f", "-1")),
        "/x",
    ),
    "CREATE TABLE IF NOT EXISTS t DEEP CLONE s": Clone(
        T, CreateMode.CREATE_IF_NOT_EXISTS, TableName(("s",)), False
    ),
    "REPLACE TABLE t SHALLOW CLONE s": Clone(T, CreateMode.REPLACE, TableName(("s",)), True),
    "CREATE TABLE t LIKE delta.`/a/b`": CreateLike(T, P),
    "create table if not exists t LIKE s LOCATION '/x' USING Delta TBLPROPERTIES (a = 'b')": (
        CreateLike(T, TableName(("s",)), True, "Delta", "/x", (("a", "b"),))
    ),
    "DELETE FROM t": Delete(T),
    "DELETE FROM delta.`/a/b` AS x WHERE x.a = 'where' -- ?": Delete(
        P, "x", SqlText("x.a = 'where'")
    ),
    "UPDATE t x SET x.a = CASE WHEN b THEN 1 END, b.`c d` = f(1, 2) WHERE a IN (1, 2);": Update(
        T,
        (
            Assignment(("x", "a"), SqlText("CASE WHEN b THEN 1 END")),
            Assignment(("b", "c d"), SqlText("f(1, 2)")),
        ),
        "x",
        SqlText("a IN (1, 2)"),
    ),
    "MERGE WITH SCHEMA EVOLUTION INTO t USING (SELECT 1 AS a) AS s ON t.a = s.a "
    "WHEN MATCHED AND s.when THEN DELETE WHEN MATCHED THEN UPDATE SET * "
    "WHEN NOT MATCHED BY TARGET THEN INSERT (a, b) VALUES (s.a, (1)) "
    "WHEN NOT MATCHED BY SOURCE AND t.a < 1 THEN UPDATE SET b = DEFAULT": Merge(
        T,
        SqlText("SELECT 1 AS a"),
        SqlText("t.a = s.a"),
        (
            Clause("MATCHED", "delete", SqlText("s.when")),
            Clause("MATCHED", "update"),
            Clause(
                "NOT MATCHED",
                "insert",
                None,
                (Assignment(("a",), SqlText("s.a")), Assignment(("b",), SqlText("(1)"))),
            ),
            Clause(
                "NOT MATCHED BY SOURCE",
                "update",
                SqlText("t.a < 1"),
                (Assignment(("b",), SqlText("DEFAULT")),),
            ),
        ),
        None,
        "s",
        True,
    ),
    "MERGE INTO t USING s ON true WHEN NOT MATCHED THEN INSERT *": Merge(
        T, TableName(("s",)), SqlText("true"), (Clause("NOT MATCHED", "insert"),)
    ),
}


@pytest.mark.parametrize("text", HITS)
def test_a_statement_means(text):
    assert parse(text) == HITS[text]


DELTA_CHANGES = {AddConstraint, DropConstraint, DropFeature, ClusterBy, SyncIdentity}
ERRORS = {  # the mark ^ stands where the error points at
    Analyze: "ANALYZE TABLE t COMPUTE DELTA ^STATS",
    Optimize: "OPTIMIZE t ^ZORDR BY (a)",
    Vacuum: "VACUUM t LITE ^FULL",
    DescribeHistory: "DESCRIBE HISTORY t LIMIT ^x",
    DescribeDetail: "DESCRIBE DETAIL t ^u",
    Generate: "GENERATE symlink_format_manifest FOR ^t",
    ConvertToDelta: "CONVERT TO DELTA t PARTITIONED BY (a ^, b INT)",
    Restore: "RESTORE t TO ^3",
    AddConstraint: "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1^",
    DropConstraint: "ALTER TABLE t DROP CONSTRAINT ^",
    DropFeature: "ALTER TABLE t DROP FEATURE f TRUNCATE ^HISTRY",
    ClusterBy: "ALTER TABLE t CLUSTER BY ^a",
    SyncIdentity: "ALTER TABLE t ALTER COLUMN c SYNC ^",
    Reorg: "REORG TABLE t APPLY (^VACUUM)",
    Clone: "CREATE TABLE t SHALLOW CLONE s VERSION AS OF ^'x'",
    CreateLike: "CREATE TABLE t LIKE s USING ^'x'",
    Delete: "DELETE FROM t WHERE ^",
    Update: "UPDATE t SET a ^1",
    Merge: "MERGE INTO t USING s ON a THAN^",
}
MORE_ERRORS = [
    "OPTIMIZE ^",
    "OPTIMIZE ^'/a",
    "OPTIMIZE t WHERE ^(a",
    "OPTIMIZE t WHERE a^) ZORDER BY b",
    "OPTIMIZE t WHERE a = ^CASE WHEN b THEN c ZORDER BY b",
    "OPTIMIZE ^/* t",
    "OPTIMIZE t WHERE ^/*+ t",
    "OPTIMIZE ^`t",
    "OPTIMIZE t.^",
    "OPTIMIZE t WHERE ^ZORDER BY a",
    "VACUUM t RETAIN ^x HOURS",
    "VACUUM t RETAIN 1 ^",
    "VACUUM t RETAIN 1 HOURS ^RETAIN 1 HOURS",
    "VACUUM t USING INVENTORY (^)",
    "DESCRIBE DETAIL IDENTIFIER(^'a b')",
    "RESTORE t FOR ^t",
    "DELETE ^t",
    "ALTER TABLE t CLUSTER BY ^AUTO",
    "MERGE INTO t USING s ON a = b WHEN MATCHED THEN ^INSERT *",
    "MERGE INTO t USING s ON a = b WHEN NOT MATCHED THEN INSERT (a, b) VALUES (1^)",
    "MERGE INTO t USING s ON a = b WHEN NOT MATCHED BY SOURCE THEN UPDATE SET ^*",
    "MERGE INTO t USING s ON a = b^",
    "UPDATE t SET ^",
]


@pytest.mark.parametrize("marked", [*ERRORS.values(), *MORE_ERRORS])
def test_an_error_points_at_the_place(marked):
    place, text = marked.index("^"), marked.replace("^", "")
    for before, line in (("", 1), ("-- a comment\r\n /* and\n another */\n", 4)):
        with pytest.raises(UsageError) as caught:
            parse(before + text)
        error = caught.value
        assert error.kind == "PARSE_SYNTAX_ERROR"
        assert (error.fields["line"], error.fields["column"]) == (line, place + 1)
        word, start, stop = (error.fields[name] for name in ("word", "start", "stop"))
        assert (start, stop + 1 - start) == (len(before + text) if not word else start, len(word))
        assert (before + text)[len(before) + place :].lstrip().startswith(word)
        assert (before + text)[start : stop + 1] == word
        shown, caret = str(error.fields["fragment"]).split("\n")
        assert shown in text
        assert text.startswith(shown[len(caret) - 1 :], place)
        assert f"{shown[: len(caret) - 1]}^{shown[len(caret) - 1 :]}" in str(error)


def test_each_statement_has_a_hit_and_an_error():
    classes = set(get_args(Command)) | set(get_args(RowChange))
    classes = classes - {AlterTable} | DELTA_CHANGES
    hits = {type(getattr(value, "change", value)) for value in HITS.values()}
    assert hits == classes
    assert set(ERRORS) == classes


SPARKS = [
    "SELECT 1",
    "",
    "  -- nothing",
    "/* not closed",
    "(SELECT 1)",
    "optimizer",
    "CREATE TABLE t (a INT) USING delta",
    "CREATE TABLE IF NOT EXISTS t AS SELECT 1",
    "CREATE TABLE t LIKE s STORED AS parquet",
    "CREATE OR REPLACE TABLE t AS SELECT 1",
    "CREATE TABLE IDENTIFIER('a' || 'b') (c INT)",
    "CREATE VIEW v AS SELECT 1",
    "CREATE FUNCTION f AS 'x'",
    "ALTER TABLE t SET TBLPROPERTIES ('a' = 'b')",
    "ALTER TABLE IDENTIFIER('a' || 'b') ADD COLUMN c INT",
    "ALTER TABLE t ADD COLUMNS (a INT)",
    "ALTER TABLE t ADD CONSTRAINT c PRIMARY KEY (a)",
    "ALTER TABLE t DROP COLUMN a",
    "ALTER TABLE t ALTER COLUMN a TYPE BIGINT",
    "ALTER TABLE t ALTER a COMMENT 'x'",
    "ALTER VIEW v AS SELECT 1",
    "DESCRIBE t",
    "DESCRIBE history",
    "DESCRIBE history.t",
    "DESC TABLE EXTENDED detail",
    "DESCRIBE FUNCTION f",
    "EXPLAIN SELECT 1",
    "EXPLAIN EXTENDED SELECT 1",
    "INSERT INTO t VALUES (1)",
    "ANALYZE TABLE t COMPUTE STATISTICS",
    "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS delta",
    "ANALYZE TABLE t PARTITION (a = 1) COMPUTE STATISTICS NOSCAN",
    "ANALYZE TABLES IN d COMPUTE STATISTICS",
]


@pytest.mark.parametrize("text", SPARKS)
def test_what_spark_can_read_is_left_to_it(text):
    assert parse(text) is None


UNFINISHED = [
    "ALTER TABLE t ADD CONSTRAINT c CHECK (a > 1) NOT ENFORCED",
    "ALTER TABLE t DROP CONSTRAINT c CASCADE",
    "DESC history PARTITION (p = 1)",
    "CREATE TABLE t LIKE s OPTIONS ('a' = 'b')",
]


@pytest.mark.parametrize("text", UNFINISHED)
def test_what_only_spark_can_finish_is_left_to_it(text):
    with pytest.raises(UsageError):
        parse_command(text)
    for whole in (text, f"EXPLAIN EXTENDED {text}"):
        assert parse_command(whole, is_of_spark=lambda: True) is None
    with pytest.raises(UsageError):
        parse_command("VACUUM t TWICE", is_of_spark=lambda: True)


def test_properties_keep_their_spelling_and_no_key_stands_twice():
    pairs = "a = 0030, b.c = 1.50, d = -1.0, e TRUE, 'f' 'g' r'h'"
    text = f"CREATE TABLE t LIKE s TBLPROPERTIES ({pairs})"
    given = dict(parse_command(text).properties)
    assert given == {"a": "0030", "b.c": "1.50", "d": "-1.0", "e": "true", "f": "gh"}
    with pytest.raises(UsageError, match="twice") as caught:
        parse_command(twice := "CREATE TABLE t LIKE s TBLPROPERTIES (a = 1, 'b' = 2, 'a' = 3)")
    assert caught.value.fields["column"] - 1 == twice.index("'a'")


def test_an_older_source_of_a_merge_is_a_query():
    when = "ON a = b WHEN MATCHED THEN DELETE"
    for clause, sql in {
        "s VERSION AS OF 1 x": "`s` VERSION AS OF 1",
        "delta.`/p` FOR SYSTEM_TIME AS OF now() - INTERVAL 1 DAY AS x": (
            "`delta`.`/p` TIMESTAMP AS OF now() - INTERVAL 1 DAY"
        ),
    }.items():
        found = parse(f"MERGE INTO t USING {clause} {when}")
        assert (found.source, found.source_alias) == (SqlText(f"SELECT * FROM {sql}"), "x")
    assert parse(f"MERGE INTO t USING s version {when}").source_alias == "version"


@pytest.mark.parametrize("how", ["", "EXTENDED ", "FORMATTED "])
def test_a_statement_of_delta_can_not_be_explained(how):
    with pytest.raises(UsageError, match="OPTIMIZE can't be explained") as caught:
        parse_command(f"EXPLAIN {how}OPTIMIZE t")
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"


def test_parameters_stand_for_constants():
    named = Parameters({"hours": "12", "low": "-1", "t": "'delta.`/a/b`'", "v": "3L"})
    assert parse("VACUUM t RETAIN :hours HOURS", named).retain_hours == 12
    assert parse("RESTORE t TO VERSION AS OF :v", named).travel == TimeTravel(version=3)
    assert parse("DESCRIBE DETAIL IDENTIFIER(:t)", named).table == P
    positional = Parameters(positional=["'x?'", "TIMESTAMP '2026-01-01'"])
    deleted = parse("DELETE FROM t WHERE a = ':no ?' AND b::int - ? = '?'", positional)
    assert deleted.condition.sql == "a = ':no ?' AND b::int - 'x?' = '?'"
    assert parse("DELETE FROM t WHERE a - :low = b", named).condition.sql == "a - (-1) = b"
    assert parse(
        "RESTORE t TO TIMESTAMP AS OF ?", Parameters(positional=["DATE '2026-01-01'"])
    ) == (Restore(T, TimeTravel(timestamp="2026-01-01")))


@pytest.mark.parametrize(
    ("condition", "meant"),
    [
        ("CAST(s AS STRUCT<a:int, `b`:map<int,int>, c :array<int>>).a = :x", "7"),
        ("CAST(s AS struct<a: struct<b:int>>).a.b = :x AND struct < :x", "7"),
        ("v:a.b = :x", "7"),
        ("f(v):a = :x", "7"),
        ("`v`:a[0] = :x", "7"),
        ("a=:x OR b IN(:x,:x) OR b LIKE:x", "7"),
    ],
)
def test_a_colon_within_types_and_values_is_no_parameter(condition, meant):
    found = parse(f"DELETE FROM t WHERE {condition}", Parameters(named={"x": meant}))
    assert found.condition.sql == condition.replace(":x", meant)


@pytest.mark.parametrize("text", ["DELETE FROM t WHERE a = ^:y", "DELETE FROM t WHERE ? = ^?"])
def test_a_parameter_without_a_value_is_pointed_at(text):
    with pytest.raises(UsageError) as caught:
        parse(text.replace("^", ""), Parameters({"x": "1"}, ["1"]))
    assert caught.value.fields["column"] == text.index("^") + 1


def test_a_parser_that_is_told_of_no_parameters_says_so():
    with pytest.raises(UsageError, match="the parser was told of no parameters"):
        parse("DESCRIBE HISTORY t LIMIT :n")


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (r"'a\'b'", "a'b"),
        ("'a''b'", "a'b"),
        (r"'a\''''", "a''"),
        ("\"a''b\"", "a''b"),
        (r"'\n\t\\\x'", "\n\t\\x"),
        (r"'100\%\_'", r"100\%\_"),
        (r"'\u00e4\U0001F600\101'", "ä😀A"),
        (r"'\ud83d\ude00'", "😀"),
        (r"r'a\n'", r"a\n"),
        (r"'\Uffffffff'", r"\Uffffffff"),
    ],
)
def test_texts_are_read_as_spark_reads_them(written, value):
    assert parse(f"DESCRIBE DETAIL {written}").table.path == value


@pytest.mark.parametrize(
    ("parts", "path"),
    [
        (("delta", "/p"), "/p"),
        (("DELTA", "s3://b/p"), "s3://b/p"),
        (("delta", "t"), None),
        (("parquet", "/p"), None),
        (("/p",), None),
    ],
)
def test_which_names_are_paths(parts, path):
    assert TableName(parts).path == path


HOSTILE = {  # what stands before a run, the run, what stands behind it
    "brackets": ("OPTIMIZE t WHERE ", "(", ""),
    "closed brackets": ("OPTIMIZE t WHERE ", "()", ""),
    "comments": ("OPTIMIZE ", "/*", ""),
    "a comment first": ("", "/*", ""),
    "comments one after the other": ("", "-- x\n", "OPTIMIZE t"),
    "continued comments": ("", "--\\\n", ""),
    "doubled quotes": ("OPTIMIZE t WHERE '", "''", ""),
    "escapes": ("OPTIMIZE t WHERE '", "\\", "'"),
    "back-ticks": ("OPTIMIZE `", "``", ""),
    "cases": ("OPTIMIZE t WHERE ", "CASE ", ""),
    "names": ("OPTIMIZE ", "a.", ""),
    "a name": ("OPTIMIZE ", "a", ""),
    "digits": ("VACUUM t RETAIN ", "9", " HOURS"),
    "digits of a version": ("RESTORE t TO VERSION AS OF '", "9", "'"),
    "lists": ("OPTIMIZE t ZORDER BY a", ", a", ""),
    "markers": ("DELETE FROM t WHERE ", "?", ""),
    "clauses": ("MERGE INTO t USING s ON a ", "WHEN MATCHED THEN DELETE ", ""),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_costs_no_more_than_its_size(name):
    before, run, after = HOSTILE[name]
    text = before + run * (20_000 // len(run)) + after
    tracemalloc.start()
    try:
        parse(text)
    except UsageError as error:
        assert len(str(error)) < 2_000
        assert len(str(error.fields["fragment"])) < 500
    finally:
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert peak < 200 * len(text)


@pytest.mark.again
def test_a_megabyte_of_brackets_is_refused_without_recursion():
    with pytest.raises(UsageError, match="this bracket is not closed"):
        parse("OPTIMIZE t WHERE " + "(" * 1_000_000)
