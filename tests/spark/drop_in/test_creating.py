"""CREATE, REPLACE and AS SELECT, by names and paths: rows, history, failures, races."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from pyspark.errors import AnalysisException, PySparkException

from optimist.core import DeltaLog
from optimist.core.commands.create.existing_definition import definition_of
from optimist.core.errors import OptimistError, SchemaError, UsageError
from optimist.core.schema.types import schema_from_json
from optimist.spark import DeltaTable
from optimist.spark.commands.catalog import catalog_entries
from optimist.spark.commands.table_builder import IdentityGenerator
from optimist.spark.drop_in.classic import staged_tables, writes


def _told(path):
    """What the history says, the newest commit first."""
    return [record.info.operation for record in DeltaLog.for_path(path, {}).history()]


@pytest.mark.again
def test_a_table_is_made_as_it_is_declared(enabled, database, tmp_path):
    enabled.sql(
        f"""CREATE TABLE {database}.`Odd` (
            id BIGINT GENERATED ALWAYS AS IDENTITY (START WITH 10 INCREMENT BY 5),
            `a.b` VARCHAR(3) NOT NULL COMMENT 'short', d INT DEFAULT 7,
            twice INT GENERATED ALWAYS AS (d * 2), P STRING)
        USING delta PARTITIONED BY (p) COMMENT 'odd'
        TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported', 'Own.Key' = 'v')"""
    )
    enabled.sql(f"INSERT INTO {database}.odd (`A.B`) VALUES ('x')")
    enabled.sql(
        f"INSERT INTO {database}.odd (P, `a.b`, d) VALUES ('q', 'y', DEFAULT), ('', 'z', 1)"
    )
    rows = {(r["a.b"], r.d, r.twice, r.P) for r in enabled.table(f"{database}.odd").collect()}
    assert rows == {("x", 7, 14, None), ("y", 7, 14, "q"), ("z", 1, 2, None)}
    assert {r.id % 5 for r in enabled.table(f"{database}.odd").collect()} == {0}
    log = DeltaLog.for_path(f"{tmp_path}/shop/odd", {})
    metadata = log.snapshot().metadata
    assert (metadata.description, metadata.partition_columns) == ("odd", ("P",))
    assert metadata.configuration["Own.Key"] == "v"
    field = schema_from_json(metadata.schema_string).find("a.b")
    assert (field.nullable, field.metadata["comment"]) == (False, "short")
    with pytest.raises(SchemaError, match="varchar"):
        enabled.sql(f"INSERT INTO {database}.odd (`a.b`) VALUES ('long')")
    with pytest.raises(OptimistError, match="NOT NULL"):
        enabled.sql(f"INSERT INTO {database}.odd (P) VALUES ('q')")
    assert _told(log.table_path) == ["WRITE", "WRITE", "CREATE TABLE"]


def test_tables_made_and_replaced_with_rows_have_one_commit_each(enabled, database, tmp_path):
    name, path = f"{database}.t", f"{tmp_path}/shop/t"
    enabled.sql(f"CREATE TABLE {name} USING delta PARTITIONED BY (p) AS SELECT 1 AS id, 2 AS p")
    enabled.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT id + 1 AS `n.n` FROM {name}")
    assert enabled.table(name).collect() == [(2,)]
    enabled.sql(f"REPLACE TABLE {name} USING delta AS SELECT * FROM {name} UNION ALL SELECT 9")
    assert sorted(enabled.table(name).collect()) == [(2,), (9,)]
    enabled.sql(f"REPLACE TABLE {name} (x INT) USING delta CLUSTER BY (x)")
    enabled.sql(f"CREATE OR REPLACE TABLE {name} (y INT) USING delta")
    assert enabled.table(name).collect() == []
    assert _told(path) == [
        "CREATE OR REPLACE TABLE",
        "REPLACE TABLE",
        "REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
        "CREATE TABLE AS SELECT",
    ]
    record = DeltaLog.for_path(path, {}).history()[-1].info
    assert record.operation_parameters["partitionBy"] == '["p"]'
    assert record.operation_parameters["isManaged"] == "true"
    assert record.operation_metrics["numOutputRows"] == "1"
    enabled.sql(f"CREATE TABLE IF NOT EXISTS {name} USING delta AS SELECT 1 AS z")
    assert len(_told(path)) == 5
    with pytest.raises(AnalysisException) as caught:
        enabled.sql(f"CREATE TABLE {name} (id INT) USING delta")
    assert caught.value.getCondition() == "TABLE_OR_VIEW_ALREADY_EXISTS"


@pytest.mark.again
def test_dropping_takes_the_files_of_a_managed_table_only(enabled, database, tmp_path):
    enabled.sql(f"CREATE TABLE {database}.m USING delta AS SELECT 1 AS id")
    enabled.sql(
        f"CREATE TABLE {database}.e USING delta LOCATION '{tmp_path}/ext' AS SELECT 1 AS id"
    )
    enabled.sql(f"DROP TABLE {database}.m")
    enabled.sql(f"DROP TABLE {database}.e")
    assert not Path(tmp_path, "shop", "m").exists()
    assert _told(f"{tmp_path}/ext") == ["CREATE TABLE AS SELECT"]
    enabled.sql(f"CREATE TABLE {database}.e USING delta LOCATION '{tmp_path}/ext'")
    assert enabled.table(f"{database}.e").collect() == [(1,)]
    enabled.sql(f"TRUNCATE TABLE {database}.e")
    assert enabled.table(f"{database}.e").count() == 0


def test_the_history_names_what_empties_and_replaces_tables_as_delta_does(enabled, database):
    name, df = f"{database}.t", enabled.range(3).coalesce(1)
    df.write.format("delta").mode("overwrite").saveAsTable(name)
    df.write.format("delta").mode("overwrite").saveAsTable(name)
    enabled.sql(f"DELETE FROM {name}")
    df.write.format("delta").mode("append").saveAsTable(name)
    enabled.sql(f"TRUNCATE TABLE {name}")
    enabled.sql(f"TRUNCATE TABLE {name}")  # nothing is left to remove
    told = enabled.sql(f"DESCRIBE HISTORY {name}").collect()
    assert [row.operation for row in told] == [
        "TRUNCATE",
        "WRITE",
        "DELETE",
        "CREATE OR REPLACE TABLE AS SELECT",
        "CREATE OR REPLACE TABLE AS SELECT",
    ]
    assert told[0].operationParameters == {}
    assert told[0].operationMetrics["numRemovedFiles"] == "1"
    assert told[2].operationParameters["predicate"] == '["true"]'
    assert told[3].operationParameters["isV1SaveAsTableOverwrite"] == "true"
    assert told[3].operationMetrics["numRemovedFiles"] == "1"


_ODD = """(
    id BIGINT GENERATED BY DEFAULT AS IDENTITY (START WITH 10 INCREMENT BY 5),
    `a.b` VARCHAR(3) NOT NULL COMMENT 'it\\'s short', d INT DEFAULT 7,
    twice INT GENERATED ALWAYS AS (d * 2), s STRUCT<`x y`: INT, z: ARRAY<STRING>>, P STRING)
    USING delta PARTITIONED BY (p) COMMENT 'odd' TBLPROPERTIES ('Own.Key' = 'v\\'',
    'delta.columnMapping.mode' = 'name', 'delta.feature.allowColumnDefaults' = 'supported')"""


def _defined(path):
    """What a table is, but for the numbers and names in its files."""
    return definition_of(DeltaLog.for_path(path, {}).snapshot())


def test_what_show_create_table_says_makes_the_table_again(enabled, database, tmp_path):
    enabled.sql(f"CREATE TABLE {database}.odd {_ODD}")
    enabled.sql(f"ALTER TABLE {database}.odd ADD CONSTRAINT Small CHECK (`a.b` <> 'it''s')")
    said = enabled.sql(f"SHOW CREATE TABLE {database}.odd").first().createtab_stmt
    enabled.sql(said.replace("`odd`", "`again`"))
    assert _defined(f"{tmp_path}/shop/again") == _defined(f"{tmp_path}/shop/odd")
    far = f"USING delta CLUSTER BY (c) LOCATION '{tmp_path}/far'"
    enabled.sql(f"CREATE TABLE {database}.far (c STRING) {far}")
    said = enabled.sql(f"SHOW CREATE TABLE {database}.far").first().createtab_stmt
    assert f"{tmp_path}/far'" in said and "CLUSTER BY (c)" in said
    enabled.sql(f"DROP TABLE {database}.far")
    enabled.sql(said)
    by_path = enabled.sql(f"SHOW CREATE TABLE delta.`{tmp_path}/far`").first().createtab_stmt
    enabled.sql(by_path.replace("/far`", "/near`"))
    assert _defined(f"{tmp_path}/near") == _defined(f"{tmp_path}/far")


def test_a_table_is_made_like_another(enabled, database, tmp_path):
    enabled.sql(f"CREATE TABLE {database}.odd {_ODD}")
    enabled.sql(f"ALTER TABLE {database}.odd ADD CONSTRAINT small CHECK (d < 100)")
    enabled.sql(f"INSERT INTO {database}.odd (`a.b`) VALUES ('x')")
    enabled.sql(f"CREATE TABLE {database}.a LIKE {database}.odd")
    enabled.sql(f"CREATE TABLE IF NOT EXISTS {database}.a LIKE {database}.odd")
    enabled.sql(f"CREATE TABLE delta.`{tmp_path}/b` LIKE delta.`{tmp_path}/shop/odd`")
    made = [_defined(f"{tmp_path}/{place}") for place in ("shop/odd", "shop/a", "b")]
    assert made[1] == made[2] == made[0]
    logs = [DeltaLog.for_path(f"{tmp_path}/{place}", {}) for place in ("shop/a", "b")]
    assert [log.snapshot().version for log in logs] == [0, 0]  # a kill leaves all of it, or nothing
    with pytest.raises(OptimistError, match="small"):
        enabled.sql(f"INSERT INTO {database}.a (`a.b`, d) VALUES ('x', 100)")
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        enabled.sql(f"CREATE TABLE {database}.a LIKE {database}.odd")
    assert enabled.table(f"{database}.a").count() == 0
    columns = "(id INT COMMENT 'c', p INT) USING parquet PARTITIONED BY (p)"
    enabled.sql(f"CREATE TABLE {database}.plain {columns}")
    enabled.sql(
        f"CREATE TABLE {database}.c LIKE {database}.plain USING delta LOCATION '{tmp_path}/c' "
        "TBLPROPERTIES ('own' = '1')"
    )
    found = _defined(f"{tmp_path}/c")
    assert [(column.name, column.comment) for column in found.columns] == [("id", "c"), ("p", None)]
    assert (found.partition_by, found.properties) == (("p",), {"own": "1"})
    enabled.sql(f"CREATE TABLE {database}.other LIKE {database}.plain")
    assert enabled.sql(f"SHOW CREATE TABLE {database}.other").first()[0].count("parquet") == 1
    with pytest.raises(UsageError, match=r"AS SELECT \* FROM .*odd") as caught:
        enabled.sql(f"CREATE TABLE {database}.files LIKE {database}.odd USING parquet")
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"
    assert not enabled.catalog.tableExists(f"{database}.files")


def test_a_name_moves_to_a_table_of_the_same_columns(enabled, database, tmp_path):
    name = f"{database}.t"
    for place, value in (("one", 1), ("two", 2)):
        enabled.range(value).write.format("delta").save(f"{tmp_path}/{place}")
    enabled.sql(f"CREATE TABLE {name} USING delta LOCATION '{tmp_path}/one'")
    enabled.sql(f"ALTER TABLE {name} SET LOCATION '{tmp_path}/two'")
    assert enabled.table(name).count() == 2
    enabled.range(1).selectExpr("id AS other").write.format("delta").save(f"{tmp_path}/three")
    for statement, kind in (
        (
            f"ALTER TABLE {name} SET LOCATION '{tmp_path}/three'",
            "DELTA_SET_LOCATION_SCHEMA_MISMATCH",
        ),
        (f"ALTER TABLE {name} SET LOCATION '{tmp_path}/nothing'", "PATH_NOT_FOUND"),
        (
            f"ALTER TABLE delta.`{tmp_path}/one` SET LOCATION '{tmp_path}/two'",
            "DELTA_CANNOT_SET_LOCATION_ON_PATH_IDENTIFIER",
        ),
    ):
        with pytest.raises(OptimistError) as caught:
            enabled.sql(statement)
        assert caught.value.kind == kind
    assert enabled.table(name).count() == 2


def test_a_builder_makes_a_table_of_a_name(enabled, database):
    made = (
        DeltaTable.create(enabled)
        .tableName(f"{database}.built")
        .addColumn("id", "BIGINT", generatedAlwaysAs=IdentityGenerator(5, 2))
        .addColumn("odd name", "STRING", comment="it's odd")
        .property("delta.columnMapping.mode", "name")
        .clusterBy("id")
        .execute()
    )
    enabled.sql(f"INSERT INTO {database}.built (`odd name`) VALUES ('x')")
    assert made.toDF().collect() == [(5, "x")]
    assert DeltaTable.forName(enabled, f"{database}.built").detail().first().clusteringColumns == [
        "id"
    ]
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_ALREADY_EXISTS"):
        DeltaTable.create(enabled).tableName(f"{database}.built").addColumn("a", "int").execute()
    DeltaTable.replace(enabled).tableName(f"{database}.built").addColumn("a", "int").execute()
    assert enabled.table(f"{database}.built").columns == ["a"]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "statement",
    [
        "CREATE TABLE shop.bad USING delta AS SELECT CAST('x' AS INT) AS n",
        "CREATE TABLE shop.bad USING delta AS SELECT 1 AS n, 2 AS N",
        "CREATE TABLE shop.bad (id INT, n INT GENERATED ALWAYS AS (nope + 1)) USING delta",
        "CREATE TABLE shop.bad (id INT) USING delta TBLPROPERTIES ('delta.nope' = '1')",
        "CREATE TABLE shop.bad (id INT) USING delta PARTITIONED BY (bucket(3, id))",
        "CREATE TABLE shop.bad (id INT) USING delta PARTITIONED BY (id)",
        "CREATE TABLE shop.bad USING delta AS SELECT * FROM shop.missing",
    ],
)
def test_a_statement_that_fails_leaves_no_table_and_no_name(enabled, database, tmp_path, statement):
    with pytest.raises((OptimistError, PySparkException)):
        enabled.sql(statement)
    assert not enabled.catalog.tableExists(f"{database}.bad")
    assert not list(Path(tmp_path).rglob("*.json"))
    # The place is free again, whatever the failure left there.
    enabled.sql(f"CREATE TABLE {database}.bad USING delta AS SELECT 1 AS id")
    assert enabled.table(f"{database}.bad").collect() == [(1,)]


def test_a_name_that_cannot_be_registered_leaves_no_files(enabled, database, tmp_path, monkeypatch):
    def refuse(*_):
        raise AnalysisException("the catalog is away")

    with monkeypatch.context() as patched:
        patched.setattr(catalog_entries, "register", refuse)
        with pytest.raises(AnalysisException, match="away"):
            enabled.sql(f"CREATE TABLE {database}.t USING delta AS SELECT 1 AS id")
        enabled.range(1).write.format("delta").save(f"{tmp_path}/source")
        with pytest.raises(AnalysisException, match="away"):
            enabled.sql(f"CREATE TABLE {database}.c SHALLOW CLONE delta.`{tmp_path}/source`")
    assert not Path(tmp_path, "shop", "t").exists()
    assert not Path(tmp_path, "shop", "c").exists()
    enabled.sql(f"CREATE TABLE {database}.t USING delta AS SELECT 2 AS id")
    assert enabled.table(f"{database}.t").collect() == [(2,)]


_WITHIN = {
    "INSERT INTO {name} VALUES (2)": (writes, "write_inserted"),
    "CREATE OR REPLACE TABLE {name} USING delta AS SELECT 3 AS id": (
        staged_tables,
        "create_as_select",
    ),
}


@pytest.mark.parametrize("statement", _WITHIN)
def test_a_table_that_is_dropped_within_a_statement_leaves_no_files_without_a_name(
    enabled, database, tmp_path, monkeypatch, statement
):
    name, (module, step) = f"{database}.t", _WITHIN[statement]
    original, outcome = getattr(module, step), "done"
    enabled.sql(f"CREATE TABLE {name} USING delta AS SELECT 1 AS id")

    def drop_first(*args, **named):
        enabled.sql(f"DROP TABLE {name}")
        return original(*args, **named)

    with monkeypatch.context() as patched:
        patched.setattr(module, step, drop_first)
        try:
            enabled.sql(statement.format(name=name))
        except OptimistError as error:
            outcome = type(error).__name__
    if step == "write_inserted":
        assert (outcome, enabled.catalog.tableExists(name)) == ("TableNotFoundError", False)
    else:
        assert (outcome, enabled.table(name).collect()) == ("done", [(3,)])
        enabled.sql(f"DROP TABLE {name}")
    assert not Path(tmp_path, "shop", "t", "_delta_log").exists()
    enabled.sql(f"CREATE TABLE {name} USING delta AS SELECT 4 AS id")
    assert enabled.table(name).collect() == [(4,)]


def test_what_a_killed_statement_left_is_not_in_the_way(enabled, database, tmp_path):
    left = Path(tmp_path, "shop", "t")
    (left / "_delta_log").mkdir(parents=True)
    (left / "data-of-a-killed-statement").mkdir()
    enabled.sql(f"CREATE TABLE {database}.t USING delta AS SELECT 1 AS id")
    assert enabled.table(f"{database}.t").collect() == [(1,)]


@pytest.mark.again
def test_of_two_sessions_that_create_a_table_at_once_one_makes_it(enabled, database, tmp_path):
    outcomes, barrier = [], threading.Barrier(4)

    def create(session, number):
        barrier.wait()
        try:
            session.sql(f"CREATE TABLE {database}.t USING delta AS SELECT {number} AS id")
            outcomes.append(number)
        except (OptimistError, PySparkException):
            outcomes.append(None)

    sessions = [enabled.newSession() for _ in range(4)]
    threads = [
        threading.Thread(target=create, args=(session, at)) for at, session in enumerate(sessions)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (winner,) = [outcome for outcome in outcomes if outcome is not None]
    assert enabled.table(f"{database}.t").collect() == [(winner,)]
    assert _told(f"{tmp_path}/shop/t") == ["CREATE TABLE AS SELECT"]


def test_paths_are_tables_without_a_name(enabled, tmp_path):
    name = f"delta.`{tmp_path}/p q`"
    enabled.sql(f"CREATE TABLE {name} (id INT) USING delta")
    enabled.sql(f"CREATE OR REPLACE TABLE {name} USING delta AS SELECT 5 AS id")
    assert enabled.table(name).collect() == [(5,)]
    create = f"CREATE TABLE delta.`{tmp_path}/q` (id INT) USING delta LOCATION"
    for place in (f"{tmp_path}/z", f"{tmp_path}/z{tmp_path}/q"):
        with pytest.raises(UsageError) as caught:
            enabled.sql(f"{create} '{place}'")
        assert caught.value.kind == "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE"
    enabled.sql(f"{create} 'file:{tmp_path}/q'")
    assert enabled.table(f"delta.`{tmp_path}/q`").columns == ["id"]


def test_other_formats_stay_with_spark(enabled, database):
    enabled.sql(f"CREATE TABLE {database}.plain USING parquet AS SELECT 1 AS id")
    with pytest.raises(UsageError) as caught:
        enabled.sql(f"CREATE OR REPLACE TABLE {database}.plain USING delta AS SELECT 2 AS id")
    assert caught.value.kind == "DELTA_NOT_A_DELTA_TABLE"
    assert enabled.table(f"{database}.plain").collect() == [(1,)]


@pytest.mark.again
def test_alter_goes_through_the_catalog(enabled, database, tmp_path):
    name, path = f"{database}.t", f"{tmp_path}/shop/t"
    enabled.sql(f"CREATE TABLE {name} (id INT, s STRUCT<x: INT>) USING delta")
    enabled.sql(f"ALTER TABLE {name} ADD COLUMNS (c VARCHAR(3) COMMENT 'new' FIRST, s.y STRING)")
    enabled.sql(f"ALTER TABLE {name} ALTER COLUMN id COMMENT 'key'")
    enabled.sql(f"ALTER TABLE {name} SET TBLPROPERTIES ('a' = '1', 'delta.appendOnly' = 'true')")
    enabled.sql(f"ALTER TABLE {name} UNSET TBLPROPERTIES ('a', 'b')")
    enabled.sql(f"COMMENT ON TABLE {name} IS 'said'")
    metadata = DeltaLog.for_path(path, {}).snapshot().metadata
    schema = schema_from_json(metadata.schema_string)
    assert schema.names == ("c", "id", "s")
    assert str(schema.find("s").data_type) == "struct<x:integer,y:string>"
    assert dict(metadata.configuration) == {"delta.appendOnly": "true"}
    assert metadata.description == "said"
    enabled.sql(f"ALTER TABLE {name} RENAME TO {database}.u")
    assert enabled.table(f"{database}.u").count() == 0
