"""Statements that run without Spark: what each does, and what it answers."""

from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from optimist.core import DeltaLog, run_sql
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    OptimistError,
    SchemaError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.statements import context

ROWS = pa.table({"id": [1, 2, 3], "p": [1, 1, 2], "s": ["a", "b", "c"]})
_SPARK, _ARITY = "OPTIMIST_NEEDS_SPARK", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"
_NO_PARTITION, _TWICE = "DELTA_PARTITION_COLUMN_NOT_FOUND", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"
_MISMATCH = "DELTA_REPLACE_WHERE_MISMATCH"


@pytest.fixture
def log(tmp_path):
    made = DeltaLog.for_path(tmp_path / "t")
    made.create(ROWS.schema, partition_by=["p"])
    made.append(ROWS)
    return made


def rows(log):
    return sorted((row["id"], row["p"], row["s"]) for row in log.to_arrow().to_pylist())


def answer(log, text, **given):
    return log.sql(text, **given).rows.to_pylist()


def test_a_path_names_a_table_and_options_go_with_it(tmp_path):
    path = tmp_path / "t"
    created = run_sql(
        f"CREATE TABLE delta.`{path}` (id BIGINT NOT NULL, s STRING DEFAULT 'd') USING delta "
        "COMMENT 'c' TBLPROPERTIES ('delta.feature.allowColumnDefaults' = 'supported')",
        {"spark.databricks.delta.properties.defaults.checkpointInterval": "7"},
    )
    assert (created.statement, created.rows.num_columns) == ("CREATE TABLE", 0)
    log = DeltaLog.for_path(path)
    assert log.metadata.description == "c"
    assert log.metadata.configuration["delta.checkpointInterval"] == "7"
    run_sql(f"INSERT INTO delta.`{path}` (id) VALUES (1)")
    assert log.to_arrow().to_pylist() == [{"id": 1, "s": "d"}]


def test_parameters_have_values_of_python(log):
    assert answer(log, "DELETE FROM this WHERE id = :id", args={"id": 2}) == [
        {"num_affected_rows": 1}
    ]
    assert answer(log, "UPDATE this SET s = ? WHERE id > ?", args=["it's", 2]) == [
        {"num_affected_rows": 1}
    ]
    assert rows(log) == [(1, 1, "a"), (3, 2, "it's")]


class TestRows:
    def test_delete_counts_rows_under_an_alias(self, log):
        assert answer(log, "DELETE FROM this AS x WHERE x.id >= 2 AND `x`.s <> 'x.s'") == [
            {"num_affected_rows": 2}
        ]
        assert rows(log) == [(1, 1, "a")]

    def test_the_table_is_its_own_alias(self, log):
        assert answer(log, "DELETE FROM this WHERE THIS.id = 3") == [{"num_affected_rows": 1}]

    def test_update_sets_columns_under_an_alias(self, log):
        text = "UPDATE this t SET t.s = concat(t.s, '!'), id = t.id + 10 WHERE t.p = 1"
        assert answer(log, text) == [{"num_affected_rows": 2}]
        assert rows(log) == [(3, 2, "c"), (11, 1, "a!"), (12, 1, "b!")]

    def test_truncate_removes_all_rows(self, log):
        assert log.sql("TRUNCATE TABLE this").rows.num_columns == 0
        assert rows(log) == []

    def test_merge_takes_rows_by_name(self, log):
        source = pa.table({"id": [3, 4, 1], "p": [2, 4, 1], "s": ["C", "D", "gone"]})
        text = (
            "MERGE INTO this AS t USING news n ON t.id = n.id "
            "WHEN MATCHED AND n.s = 'gone' THEN DELETE "
            "WHEN MATCHED THEN UPDATE SET t.s = n.s WHEN NOT MATCHED THEN INSERT *"
        )
        assert answer(log, text, sources={"News": source}) == [
            {
                "num_affected_rows": 3,
                "num_updated_rows": 1,
                "num_deleted_rows": 1,
                "num_inserted_rows": 1,
            }
        ]
        assert rows(log) == [(2, 1, "b"), (3, 2, "C"), (4, 4, "D")]

    def test_merge_takes_a_table_by_its_path(self, log, tmp_path):
        DeltaLog.for_path(tmp_path / "s").append(ROWS.slice(0, 1))
        text = f"MERGE INTO this USING delta.`{tmp_path}/s` AS s ON this.id = s.id"
        assert answer(log, f"{text} WHEN MATCHED THEN DELETE")[0]["num_deleted_rows"] == 1

    def test_merge_of_tables_without_names(self, log, tmp_path):
        DeltaLog.for_path(tmp_path / "s").append(pa.table({"key": [1]}))
        path, source = (f"delta.`{tmp_path}/{name}`" for name in ("t", "s"))
        run_sql(f"MERGE INTO {path} USING {source} ON id = key WHEN MATCHED THEN DELETE")
        assert rows(log) == [(2, 1, "b"), (3, 2, "c")]

    def test_a_merge_with_itself_sees_what_others_commit_meanwhile(self, log, monkeypatch):
        text = (
            f"MERGE INTO this USING delta.`{log.table_path}` AS s ON this.id = s.id "
            "WHEN MATCHED THEN UPDATE SET s = concat(s.s, s.s)"
        )
        assert answer(log, text)[0]["num_updated_rows"] == 3
        read = context.stored_source

        def read_late(*args, **kwargs):
            found = read(*args, **kwargs)
            DeltaLog.for_path(log.table_path, {"commitInfo.enabled": "true"}).append(ROWS)
            return found

        monkeypatch.setattr(context, "stored_source", read_late)
        with pytest.raises(DeltaConcurrentModificationException):
            log.sql(text)
        assert [row[2] for row in rows(log)].count("aa") == 1


class TestInserts:
    def test_values_become_the_types_of_their_columns(self, tmp_path):
        log = DeltaLog.for_path(tmp_path / "t")
        columns = "a TINYINT, b DECIMAL(5, 2), c DATE, d TIMESTAMP, e STRING, f DOUBLE, g BOOLEAN"
        run_sql(f"CREATE TABLE delta.`{tmp_path}/t` ({columns})")
        log.sql(
            "INSERT INTO this VALUES (-1, 1.5, DATE '2026-01-02', "
            "TIMESTAMP '2026-01-02 03:04:05Z', 'x', 2.5, TRUE), "
            "(NULL, NULL, NULL, NULL, NULL, NULL, NULL)"
        )
        first, second = sorted(log.to_arrow().to_pylist(), key=lambda row: row["a"] is None)
        assert first == {
            "a": -1,
            "b": Decimal("1.50"),
            "c": dt.date(2026, 1, 2),
            "d": dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.timezone.utc),
            "e": "x",
            "f": 2.5,
            "g": True,
        }
        assert set(second.values()) == {None}

    def test_columns_stand_in_the_order_of_the_statement(self, log):
        log.sql("INSERT INTO this (s, id, p) VALUES ('z', 9, 3)")
        log.sql("INSERT INTO this PARTITION (p = 7) VALUES (8, 'y')")
        assert rows(log)[3:] == [(8, 7, "y"), (9, 3, "z")]

    @pytest.mark.parametrize(
        ("text", "kept", "new"),
        [
            ("INSERT OVERWRITE this VALUES (9, 1, 'z'), (8, NULL, 'y')", "", ["z", "y"]),
            ("INSERT OVERWRITE TABLE this PARTITION (p = 1) VALUES (9, 'z')", "cd", ["z"]),
            ("INSERT OVERWRITE this PARTITION (P = '2') (s, id) VALUES ('z', 9)", "abd", ["z"]),
            ("INSERT OVERWRITE this PARTITION (p = NULL) VALUES (9, 'z')", "abc", ["z"]),
            ("INSERT OVERWRITE this PARTITION (p) VALUES (9, 2, 'z')", "", ["z"]),
            ("INSERT INTO this REPLACE WHERE id = 1 AND p = 1 VALUES (1, 1, 'z')", "bcd", ["z"]),
            ("INSERT INTO this REPLACE WHERE p IS NULL VALUES (9, NULL, 'z')", "abc", ["z"]),
        ],
    )
    def test_rows_are_replaced_in_the_same_commit(self, log, text, kept, new):
        log.append(pa.table({"id": [4], "p": pa.array([None], pa.int64()), "s": ["d"]}))
        version = log.version()
        log.sql(text)
        assert sorted(log.to_arrow()["s"].to_pylist()) == sorted([*kept, *new])
        assert log.version() == version + 1

    def test_one_value_needs_no_brackets(self, log):
        log.sql("INSERT INTO this (id) VALUES 5, 6")
        assert rows(log)[3:] == [(5, None, None), (6, None, None)]

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("INSERT INTO this VALUES (1, 2)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
            ("INSERT INTO this (id) VALUES (1), (1, 2)", "DELTA_INSERT_COLUMN_ARITY_MISMATCH"),
            ("INSERT INTO this (nope) VALUES (1)", "DELTA_COLUMN_NOT_FOUND"),
            ("INSERT INTO this (id, ID) VALUES (1, 2)", "DELTA_DUPLICATE_COLUMNS_ON_INSERT"),
            ("INSERT INTO this PARTITION (p = 1) (p) VALUES (2)", None),
            ("INSERT INTO this SELECT 1, 2, 'x'", "OPTIMIST_NEEDS_SPARK"),
            ("INSERT INTO this PARTITION (s = 'x') VALUES (1, 2)", _NO_PARTITION),
            ("INSERT OVERWRITE this PARTITION (nope) VALUES (1, 2)", _NO_PARTITION),
            ("INSERT OVERWRITE this PARTITION (p = 1, P = 2) VALUES (1, 'x')", _TWICE),
            ("INSERT OVERWRITE this SELECT 1, 2, 'x'", _SPARK),
            ("INSERT OVERWRITE this PARTITION (p = 1) VALUES (1)", _ARITY),
            ("INSERT INTO this REPLACE WHERE p = 1 VALUES (1, 2, 'x')", _MISMATCH),
            ("INSERT INTO this REPLACE WHERE p = 1 VALUES (1, NULL, 'x')", _MISMATCH),
            ("INSERT INTO this REPLACE WHERE soundex(s) = 'x' VALUES (1, 2, 'x')", _SPARK),
            ("INSERT INTO this BY NAME VALUES (1)", "OPTIMIST_NEEDS_SPARK"),
            ("INSERT WITH SCHEMA EVOLUTION INTO this VALUES (1)", "OPTIMIST_NEEDS_SPARK"),
            ("INSERT INTO this (id, p) VALUES (1, DEFAULT), (2, 2)", "OPTIMIST_NEEDS_SPARK"),
            ("INSERT INTO this (id) VALUES (rand())", "OPTIMIST_NEEDS_SPARK"),
            ("INSERT INTO this (id) VALUES ('x')", None),
        ],
    )
    def test_what_does_not_fit_writes_nothing(self, log, text, kind):
        with pytest.raises((SchemaError, UsageError)) as caught:
            log.sql(text)
        assert kind is None or caught.value.kind == kind
        assert len(rows(log)) == 3


class TestMaintenance:
    def test_history_has_the_newest_first(self, log):
        told = log.sql("DESCRIBE HISTORY this LIMIT 1")
        assert told.statement == "DESCRIBE HISTORY"
        assert told.rows["operation"].to_pylist() == ["WRITE"]
        assert answer(log, "DESCRIBE HISTORY this")[1]["operationParameters"]

    def test_detail_has_no_name_for_a_path(self, log):
        (told,) = answer(log, "DESCRIBE DETAIL this")
        assert (told["name"], told["numFiles"]) == (None, 2)
        assert told["partitionColumns"] == ["p"]
        assert told["location"] == log.table_path

    def test_optimize_of_a_partition(self, log):
        log.append(ROWS)
        (told,) = answer(log, "OPTIMIZE this WHERE p = 1")
        assert told["path"] == f"file:{log.table_path}"
        assert told["metrics"]["numFilesAdded"] == 1
        assert told["metrics"]["numFilesRemoved"] == 2
        (again,) = answer(log, "OPTIMIZE this ZORDER BY (id)")
        assert again["metrics"]["zOrderStats"]["strategyName"] == "all"

    def test_reorg_purges_vectors(self, log):
        log.alter.set_properties({"delta.enableDeletionVectors": "true"})
        log.delete("id = 1")
        (told,) = answer(log, "REORG TABLE this APPLY (PURGE)")
        assert told["metrics"]["deletionVectorStats"]["numDeletionVectorsRemoved"] == 1
        with pytest.raises(UsageError) as caught:
            log.sql("REORG TABLE this APPLY (UPGRADE UNIFORM (ICEBERG_COMPAT_VERSION = 2))")
        assert caught.value.kind == "OPTIMIST_NOT_BUILT_YET"

    def test_restore_answers_numbers_or_nothing(self, log):
        log.delete("id = 1")
        (told,) = answer(log, "RESTORE this TO VERSION AS OF 1")
        assert told["num_restored_files"] == 1
        assert answer(log, "RESTORE TABLE this TO VERSION AS OF 3") == []
        assert len(rows(log)) == 3

    def test_restore_to_a_time_is_in_utc(self, log):
        stamp = log.history()[1].timestamp_ms
        text = dt.datetime.fromtimestamp(stamp / 1000, dt.timezone.utc).isoformat()
        log.sql(f"RESTORE this TO TIMESTAMP AS OF '{text}'")
        assert rows(log) == []

    def test_vacuum_answers_paths(self, log):
        assert answer(log, "VACUUM this") == [{"path": f"file:{log.table_path}"}]
        pq.write_table(ROWS, f"{log.table_path}/old.parquet")
        inventory = pa.table(
            {
                "path": [f"{log.table_path}/old.parquet"],
                "length": [10],
                "isDir": [False],
                "modificationTime": [1],
            }
        )
        text = "VACUUM this USING INVENTORY files RETAIN 168 HOURS DRY RUN"
        told = answer(log, text, sources={"files": inventory})
        assert told == [{"path": f"file:{log.table_path}/old.parquet"}]

    def test_statistics_manifests_and_features(self, log):
        for text in (
            "ANALYZE TABLE this COMPUTE DELTA STATISTICS",
            "GENERATE symlink_format_manifest FOR TABLE this",
            "ALTER TABLE this SET TBLPROPERTIES ('delta.enableChangeDataFeed' = 'true')",
        ):
            assert log.sql(text).rows.num_columns == 0
        with pytest.raises(UsageError) as caught:
            log.sql("ALTER TABLE this DROP FEATURE deletionVectors")
        assert caught.value.kind == "DELTA_FEATURE_DROP_FEATURE_NOT_PRESENT"


class TestCopies:
    def test_the_table_of_a_handle_is_made(self, tmp_path):
        log = DeltaLog.for_path(tmp_path / "new")
        log.sql("CREATE TABLE this (a INT) PARTITIONED BY (p INT)")
        assert log.metadata.partition_columns == ("p",)
        log.sql("REPLACE TABLE this (b INT)")
        assert log.snapshot().schema.names == ("b",)
        (tmp_path / "f").mkdir()
        pq.write_table(ROWS, tmp_path / "f" / "a.parquet")
        DeltaLog.for_path(tmp_path / "f").sql("CONVERT TO DELTA this NO STATISTICS")
        assert DeltaLog.for_path(tmp_path / "f").count() == 3

    def test_a_clone_answers_what_it_named(self, log, tmp_path):
        (told,) = answer(log, f"CREATE TABLE delta.`{tmp_path}/c` SHALLOW CLONE this")
        assert (told["source_num_of_files"], told["num_copied_files"]) == (2, 0)
        assert DeltaLog.for_path(tmp_path / "c").count() == 3
        kept = f"CREATE TABLE IF NOT EXISTS delta.`{tmp_path}/c` SHALLOW CLONE this"
        assert answer(log, kept) == []

    def test_a_deep_clone_of_an_old_version(self, log, tmp_path):
        log.delete("id = 1")
        run_sql(
            f"CREATE TABLE delta.`{tmp_path}/c` DEEP CLONE delta.`{log.table_path}` "
            "VERSION AS OF 1 TBLPROPERTIES ('a' = 'b')"
        )
        assert len(rows(DeltaLog.for_path(tmp_path / "c"))) == 3
        assert DeltaLog.for_path(tmp_path / "c").metadata.configuration["a"] == "b"

    def test_files_are_cloned_and_converted(self, tmp_path):
        (tmp_path / "f" / "p=1").mkdir(parents=True)
        pq.write_table(ROWS.select(["id", "s"]), tmp_path / "f" / "p=1" / "a.parquet")
        files = f"parquet.`{tmp_path}/f`"
        run_sql(f"CONVERT TO DELTA {files} PARTITIONED BY (p INT)")
        assert DeltaLog.for_path(tmp_path / "f").count("p = 1") == 3
        (tmp_path / "g").mkdir()
        pq.write_table(ROWS, tmp_path / "g" / "a.parquet")
        run_sql(f"CREATE TABLE delta.`{tmp_path}/c` SHALLOW CLONE parquet.`{tmp_path}/g`")
        assert DeltaLog.for_path(tmp_path / "c").count() == 3

    def test_a_table_like_another(self, log, tmp_path):
        log.sql(f"CREATE TABLE delta.`{tmp_path}/l` LIKE this TBLPROPERTIES ('a' = 'b')")
        made = DeltaLog.for_path(tmp_path / "l")
        assert made.metadata.partition_columns == ("p",)
        assert (made.count(), made.metadata.configuration) == (0, {"a": "b"})

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("CREATE TABLE {t} AS SELECT 1", "OPTIMIST_NEEDS_SPARK"),
            ("CREATE TABLE {t} (a INT) OPTIONS (b 'c')", "OPTIMIST_NEEDS_SPARK"),
            (
                "CREATE TABLE {t} (a INT) LOCATION '/elsewhere'",
                "DELTA_CREATE_TABLE_IDENTIFIER_LOCATION_MISMATCH",
            ),
            (
                "CREATE TABLE {t} SHALLOW CLONE this LOCATION '/elsewhere'",
                "DELTA_CLONE_AMBIGUOUS_TARGET",
            ),
            (
                "CREATE TABLE {t} LIKE this LOCATION '/elsewhere'",
                "DELTA_AMBIGUOUS_PATHS_IN_CREATE_TABLE",
            ),
            ("CREATE TABLE db.t (a INT)", "OPTIMIST_CATALOG_NAMES_UNSUPPORTED"),
            ("CREATE TABLE db.t SHALLOW CLONE this", "OPTIMIST_CATALOG_NAMES_UNSUPPORTED"),
            ("CREATE TABLE {t} SHALLOW CLONE db.t", "OPTIMIST_CATALOG_NAMES_UNSUPPORTED"),
            ("CONVERT TO DELTA db.t", "OPTIMIST_CATALOG_NAMES_UNSUPPORTED"),
            ("CONVERT TO DELTA csv.`/p`", "DELTA_CONVERT_NON_PARQUET_TABLE"),
        ],
    )
    def test_what_can_not_be_made_here_is_refused(self, log, tmp_path, text, kind):
        with pytest.raises(UsageError) as caught:
            log.sql(text.format(t=f"delta.`{tmp_path}/new`"))
        assert caught.value.kind == kind
        assert not (tmp_path / "new").exists()


class TestAlterations:
    def test_each_change_is_made(self, log):
        for text in (
            "ADD COLUMNS (q INT COMMENT 'new', r STRUCT<a: INT>)",
            "ALTER COLUMN s COMMENT 'text'",
            "ADD CONSTRAINT positive CHECK (id > 0)",
            "DROP CONSTRAINT IF EXISTS nope",
            "SET TBLPROPERTIES ('a' = 'b', 'delta.columnMapping.mode' = 'name', 'c' = 'd')",
            "UNSET TBLPROPERTIES IF EXISTS ('c', 'e')",
            "RENAME COLUMN q TO w",
            "DROP COLUMN r",
        ):
            done = log.sql(f"ALTER TABLE this {text}")
            assert done.statement.startswith("ALTER TABLE ")
            assert done.rows.num_columns == 0
        log.sql("COMMENT ON TABLE this IS 'flights'")
        metadata = log.metadata
        assert log.snapshot().schema.names == ("id", "p", "s", "w")
        assert metadata.description == "flights"
        assert metadata.configuration["delta.constraints.positive"] == "id > 0"
        assert "c" not in metadata.configuration

    def test_clustering_and_identities(self, tmp_path):
        path = f"delta.`{tmp_path}/t`"
        run_sql(f"CREATE TABLE {path} (i BIGINT GENERATED BY DEFAULT AS IDENTITY, a INT)")
        run_sql(f"ALTER TABLE {path} CLUSTER BY (a)")
        run_sql(f"INSERT INTO {path} VALUES (7, 1)")
        run_sql(f"ALTER TABLE {path} ALTER COLUMN i SYNC IDENTITY")
        run_sql(f"INSERT INTO {path} (a) VALUES (2)")
        log = DeltaLog.for_path(tmp_path / "t")
        assert log.detail().clustering_columns == ("a",)
        assert sorted(log.to_arrow()["i"].to_pylist()) == [7, 8]


class TestShows:
    def test_properties(self, log):
        log.sql("ALTER TABLE this SET TBLPROPERTIES ('a' = 'b')")
        assert answer(log, "SHOW TBLPROPERTIES this ('a')") == [{"key": "a", "value": "b"}]
        (missing,) = answer(log, "SHOW TBLPROPERTIES this ('x')")
        assert missing["value"] == "Table `this` does not have property: x"
        assert {"key": "delta.minReaderVersion", "value": "1"} in answer(
            log, "SHOW TBLPROPERTIES this"
        )

    def test_the_comment_is_no_property(self, log):
        log.sql("COMMENT ON TABLE this IS 'words'")
        keys = {each["key"] for each in answer(log, "SHOW TBLPROPERTIES this")}
        assert keys == {"delta.minReaderVersion", "delta.minWriterVersion"}

    def test_columns_and_partitions(self, log):
        assert answer(log, "SHOW COLUMNS IN this") == [{"col_name": n} for n in ("id", "p", "s")]
        assert answer(log, "SHOW PARTITIONS this") == [{"p": 1}, {"p": 2}]

    def test_the_statement_makes_a_table_of_the_same_columns(self, tmp_path):
        first, second = (f"delta.`{tmp_path}/{name}`" for name in ("a", "b"))
        types = (
            "STRUCT<x: ARRAY<MAP<STRING, DECIMAL(3, 1)>> NOT NULL COMMENT 'in', `y``z`: BIGINT>",
            "TIMESTAMP_NTZ",
            "TINYINT",
            "VARCHAR(3)",
            "BINARY",
        )
        columns = ", ".join(f"c{at} {text}" for at, text in enumerate(types))
        run_sql(f"CREATE TABLE {first} ({columns}, i BIGINT GENERATED ALWAYS AS IDENTITY)")
        (text,) = run_sql(f"SHOW CREATE TABLE {first}").rows["createtab_stmt"].to_pylist()
        run_sql(text.replace(f"{tmp_path}/a", f"{tmp_path}/b"))
        schemas = [DeltaLog.for_path(tmp_path / name).snapshot().schema for name in ("a", "b")]
        assert schemas[0] == schemas[1]
        described = [run_sql(f"DESCRIBE TABLE {path}").rows for path in (first, second)]
        assert described[0] == described[1]
        assert described[0]["data_type"].to_pylist() == [
            "struct<x:array<map<string,decimal(3,1)>>,y`z:bigint>",
            "timestamp_ntz",
            "tinyint",
            "string",
            "binary",
            "bigint",
        ]

    def test_partitions_and_clustering_stand_behind_the_columns(self, log, tmp_path):
        told = [row["col_name"] for row in answer(log, "DESC this")]
        assert told == ["id", "p", "s", "# Partition Information", "# col_name", "p"]
        path = f"delta.`{tmp_path}/c`"
        run_sql(f"CREATE TABLE {path} (a INT, n STRUCT<`x-y`: INT>) CLUSTER BY (n.`x-y`)")
        last = run_sql(f"DESCRIBE {path}").rows.to_pylist()[-1]
        assert last == {"col_name": "n.`x-y`", "data_type": "int", "comment": None}

    def test_a_table_without_partitions_has_none_to_show(self, tmp_path):
        run_sql(f"CREATE TABLE delta.`{tmp_path}/t` (a INT)")
        with pytest.raises(UsageError) as caught:
            run_sql(f"SHOW PARTITIONS delta.`{tmp_path}/t`")
        assert caught.value.kind == "DELTA_SHOW_PARTITION_IN_NON_PARTITIONED_TABLE"


class TestRefusals:
    @pytest.mark.parametrize(
        "text",
        [
            "OPTIMIZE db.t",
            "DELETE FROM t",
            "DESCRIBE HISTORY that",
            "MERGE INTO this USING u ON this.id = u.id WHEN MATCHED THEN DELETE",
            "VACUUM this USING INVENTORY u",
            "SHOW COLUMNS IN spark_catalog.db.t",
            "OPTIMIZE 'this'",
        ],
    )
    def test_a_name_that_nobody_knows(self, log, text):
        with pytest.raises(OptimistError) as caught:
            log.sql(text)
        if text == "OPTIMIZE 'this'":
            assert caught.value.kind == "DELTA_MISSING_DELTA_TABLE"
        else:
            assert caught.value.kind == "OPTIMIST_CATALOG_NAMES_UNSUPPORTED"
            assert "delta.`/path`" in str(caught.value)

    def test_this_is_no_name_without_a_handle(self):
        with pytest.raises(UsageError) as caught:
            run_sql("OPTIMIZE this")
        assert caught.value.kind == "OPTIMIST_CATALOG_NAMES_UNSUPPORTED"

    @pytest.mark.parametrize(
        "text",
        [
            "MERGE INTO this USING (SELECT 1 id) s ON this.id = s.id WHEN MATCHED THEN DELETE",
            "DELETE FROM this WHERE id = rand()",
            "UPDATE this SET s = soundex(s)",
            "VACUUM this USING INVENTORY (SELECT 1)",
            "OPTIMIZE this WHERE p = length(soundex(p))",
        ],
    )
    def test_what_only_spark_can_run(self, log, text):
        with pytest.raises(UsageError) as caught:
            log.sql(text, sources={"u": ROWS})
        assert caught.value.kind == "OPTIMIST_NEEDS_SPARK"
        assert len(log.history()) == 2

    @pytest.mark.parametrize("text", ["SELECT 1", "", "USE db", "DROP TABLE this", "SHOW TABLES"])
    def test_what_is_no_statement_of_ours(self, log, text):
        with pytest.raises(UsageError) as caught:
            log.sql(text)
        assert caught.value.kind == "OPTIMIST_UNSUPPORTED_STATEMENT"

    def test_a_wrong_statement_says_where(self, log):
        with pytest.raises(UsageError) as caught:
            log.sql("OPTIMIZE this ZORDR BY (a)")
        assert caught.value.kind == "PARSE_SYNTAX_ERROR"

    @pytest.mark.parametrize(
        ("text", "kind"),
        [
            ("DESCRIBE HISTORY {t}", "DELTA_TABLE_ONLY_OPERATION"),
            ("DESCRIBE DETAIL {t}", "DELTA_MISSING_DELTA_TABLE"),
            ("OPTIMIZE {t}", "DELTA_MISSING_DELTA_TABLE"),
            ("DELETE FROM {t}", "DELTA_MISSING_DELTA_TABLE"),
            ("INSERT INTO {t} VALUES (1)", "DELTA_MISSING_DELTA_TABLE"),
            ("ALTER TABLE {t} ADD COLUMN a INT", "DELTA_MISSING_DELTA_TABLE"),
            ("SHOW COLUMNS IN {t}", "DELTA_MISSING_DELTA_TABLE"),
            ("CREATE TABLE {n} SHALLOW CLONE {t}", "DELTA_MISSING_DELTA_TABLE"),
        ],
    )
    def test_a_missing_table(self, tmp_path, text, kind):
        with pytest.raises((TableNotFoundError, UsageError)) as caught:
            run_sql(text.format(t=f"delta.`{tmp_path}/t`", n=f"delta.`{tmp_path}/n`"))
        assert caught.value.kind == kind


def test_a_missing_table_of_a_handle_is_told_by_its_path(tmp_path):
    path = str(tmp_path / "nothing")
    with pytest.raises(TableNotFoundError, match=re.escape(f"`{path}` is not a Delta table")):
        DeltaLog.for_path(path).sql("OPTIMIZE this")


def test_times_without_a_zone_are_in_that_of_the_options(tmp_path):
    noon, options = "TIMESTAMP '2026-01-01 12:00:00'", {"spark.sql.session.timeZone": "+02:00"}
    instant = dt.datetime(2026, 1, 1, 10, tzinfo=dt.timezone.utc)
    log = DeltaLog.for_path(tmp_path / "t", options)
    log.create([("id", "long"), ("at", "timestamp")], partition_by=["at"])
    log.sql(f"INSERT INTO this VALUES (1, {noon}), (2, TIMESTAMP_NTZ '2026-01-01 12:00:00')")
    log.sql(f"INSERT INTO this PARTITION (at = {noon}) VALUES (3)")
    assert log.to_arrow()["at"].to_pylist() == [instant] * 3
    assert log.count(f"at = {noon}") == 3
    log.sql(f"INSERT OVERWRITE this PARTITION (at = {noon}) VALUES (4)")
    assert log.to_arrow().to_pylist() == [{"id": 4, "at": instant}]

    files = tmp_path / "files" / "at=2026-01-01 12%3A00%3A00"
    files.mkdir(parents=True)
    pq.write_table(pa.table({"id": [1]}), files / "a.parquet")
    run_sql(
        f"CONVERT TO DELTA parquet.`{tmp_path / 'files'}` PARTITIONED BY (at TIMESTAMP)", options
    )
    found = run_sql(f"SHOW PARTITIONS delta.`{tmp_path / 'files'}`", options).rows
    assert found.to_pylist() == [{"at": instant}]
