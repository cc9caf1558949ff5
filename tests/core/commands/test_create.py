"""Tables made and replaced without Spark: modes, history, protocol, clustering, what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest
from deltalake import DeltaTable as OtherTable

from optimist.core import DeltaLog
from optimist.core.commands.create.create import begin_creation, create_table
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    SchemaError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.local.write import write
from optimist.core.local.write_request import LocalWrite
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features
from optimist.core.requests.table_definition import Column, CreateMode, Identity, TableDefinition
from optimist.core.schema.types import DecimalType, PrimitiveType, StructField, StructType
from refusals import kind_of

LONG, TEXT = PrimitiveType("long"), PrimitiveType("string")
ID, NAME = Column("id", LONG), Column("name", TEXT)
MODES = [mode.value for mode in CreateMode]


@pytest.fixture
def log(tmp_path):
    return DeltaLog.for_path(str(tmp_path / "t"), {})


def last(log):
    return log.history(limit=1)[0].info


def columns(*names):
    return [Column(name, LONG) for name in names]


# What is at the place, and what the mode makes of it


@pytest.mark.parametrize(
    ("mode", "operation"),
    [
        ("create", "CREATE TABLE"),
        ("create_if_not_exists", "CREATE TABLE"),
        ("create_or_replace", "CREATE OR REPLACE TABLE"),
    ],
)
def test_each_mode_but_replace_makes_a_table(log, mode, operation):
    result = log.create([ID, NAME], mode=mode)
    assert result is not None
    assert (result.version, last(log).operation) == (0, operation)
    assert log.snapshot().schema.names == ("id", "name")
    assert log.to_arrow().num_rows == 0


def test_replacing_nothing_is_refused(log):
    with pytest.raises(TableNotFoundError) as caught:
        log.create([ID], mode="replace")
    assert caught.value.kind == "DELTA_CANNOT_REPLACE_MISSING_TABLE"
    assert not log.table_exists()


def test_a_table_that_exists_is_an_error_is_kept_or_is_replaced(log):
    log.append(pa.table({"x": [1]}))
    assert kind_of(lambda: log.create([ID])) == "DELTA_TABLE_ALREADY_EXISTS"
    assert log.create([ID], mode="create_if_not_exists") is None
    assert log.snapshot().version == 0
    assert log.create([ID], mode="replace").version == 1
    assert last(log).operation == "REPLACE TABLE"
    assert log.create([NAME], mode="create_or_replace").version == 2
    assert log.snapshot().schema.names == ("name",)


@pytest.mark.parametrize("mode", MODES[:2] + MODES[3:])
def test_other_files_at_the_place_are_refused(tmp_path, mode):
    (tmp_path / "t" / "p=1").mkdir(parents=True)
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    found = kind_of(lambda: log.create([ID], mode=mode))
    assert found == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"
    assert not log.table_exists()


def test_what_a_failed_write_left_behind_is_no_obstacle(tmp_path):
    (tmp_path / "t" / "_delta_log").mkdir(parents=True)
    (tmp_path / "t" / "part-0.parquet").write_bytes(b"")
    assert DeltaLog.for_path(str(tmp_path / "t"), {}).create([ID]).version == 0


def test_an_unknown_mode_is_refused(log):
    assert kind_of(lambda: log.create([ID], mode="overwrite")) == "OPTIMIST_INVALID_ARGUMENT"


# What stands in the log


def test_the_history_tells_what_delta_tells(log):
    log.create(
        [ID, NAME],
        partition_by=["NAME"],
        properties={"DELTA.appendonly": "true", "mine": "1"},
        comment="people",
        user_metadata="by me",
    )
    told = last(log)
    assert told.operation_parameters == {
        "isManaged": "false",
        "description": "people",
        "partitionBy": '["name"]',
        "clusterBy": "[]",
        "properties": '{"delta.appendOnly":"true","mine":"1"}',
    }
    assert told.user_metadata == "by me"
    metadata = log.metadata
    assert (metadata.description, metadata.partition_columns) == ("people", ("name",))
    assert metadata.configuration == {"delta.appendOnly": "true", "mine": "1"}


def test_a_table_without_a_comment_says_so(log):
    log.create([ID])
    assert last(log).operation_parameters["description"] is None


def test_columns_keep_what_is_said_of_them(log):
    log.create(
        [
            Column("id", "bigint", nullable=False, comment="the key"),
            Column("n", "BIGINT", identity=Identity(5, 2)),
            Column("m", LONG, identity=Identity(always=False)),
            Column("day", "date"),
            Column("year", "int", generated_as="year(day)"),
            Column("city", "varchar(7)", default="'Rome'", metadata={"mine": 1}),
        ],
        properties={"delta.feature.allowColumnDefaults": "supported"},
    )
    schema = log.snapshot().schema
    told = {item.name: dict(item.metadata) for item in schema}
    assert not schema.find("id").nullable
    assert told["id"] == {"comment": "the key"}
    assert told["n"] == {
        "delta.identity.start": 5,
        "delta.identity.step": 2,
        "delta.identity.allowExplicitInsert": False,
    }
    assert told["m"]["delta.identity.allowExplicitInsert"] is True
    assert told["year"] == {"delta.generationExpression": "year(day)"}
    assert told["city"] == {
        "mine": 1,
        "__CHAR_VARCHAR_TYPE_STRING": "varchar(7)",
        "CURRENT_DEFAULT": "'Rome'",
    }
    assert {"invariants", "identityColumns", "generatedColumns", "allowColumnDefaults"} <= (
        implied_features(log.protocol)
    )


def test_schemas_of_arrow_and_of_delta_are_taken(tmp_path):
    arrow = pa.schema([("a", pa.int64()), ("d", pa.decimal128(38, 3))])
    one = DeltaLog.for_path(str(tmp_path / "1"), {})
    one.create(arrow)
    other = DeltaLog.for_path(str(tmp_path / "2"), {})
    other.create(one.snapshot().schema)
    assert other.snapshot().schema == one.snapshot().schema
    assert other.snapshot().schema.find("d").data_type == DecimalType(38, 3)


def test_what_columns_say_of_the_table_they_come_from_is_left_out(tmp_path):
    mapped = DeltaLog.for_path(str(tmp_path / "1"), {})
    mapped.create([ID], properties={"delta.columnMapping.mode": "name"})
    plain = DeltaLog.for_path(str(tmp_path / "2"), {})
    plain.create(mapped.snapshot().schema)
    assert dict(plain.snapshot().schema.find("id").metadata) == {}


def test_the_sessions_defaults_count_for_what_is_not_given(tmp_path):
    defaults = "spark.databricks.delta.properties.defaults."
    conf = {f"{defaults}appendOnly": "true", f"{defaults}checkpointInterval": "3"}
    log = DeltaLog.for_path(str(tmp_path / "t"), conf)
    log.create([ID], properties={"delta.checkpointInterval": "7"})
    wanted = {"delta.appendOnly": "true", "delta.checkpointInterval": "7"}
    assert log.metadata.configuration == wanted


def test_a_table_without_columns_is_made_and_gets_them_later(log):
    log.create([])
    assert log.snapshot().schema.names == ()
    assert kind_of(lambda: log.create([], mode="create_or_replace")) == "DELTA_SCHEMA_NOT_PROVIDED"


# Replacing


def test_replacing_keeps_the_history_and_begins_anew(log):
    log.create([ID], properties={"mine": "1"}, comment="old")
    log.append(pa.table({"id": [1, 2]}))
    log.append(pa.table({"id": [3]}))
    before = log.metadata
    log.create([NAME], mode="replace", properties={"delta.appendOnly": "true"})
    after = log.metadata
    assert after.id != before.id
    assert (after.description, after.configuration) == (None, {"delta.appendOnly": "true"})
    assert log.to_arrow().num_rows == 0
    assert log.files().num_rows == 0
    older = log.snapshot(version=2)
    assert older.schema.names == ("id",)
    assert older.scan(None).files.num_rows == 2


def test_replacing_keeps_the_protocol(log):
    log.create([ID], properties={"delta.enableDeletionVectors": "true"})
    log.create([ID], mode="replace")
    assert "deletionVectors" in implied_features(log.protocol)


@pytest.mark.parametrize("before", ["none", "name", "id"])
@pytest.mark.parametrize("after", ["none", "name", "id"])
def test_a_replaced_table_may_have_another_mode_of_column_mapping(log, before, after):
    log.create([ID, NAME], properties={"delta.columnMapping.mode": before})
    log.append(pa.table({"id": [1], "name": ["a"]}))
    log.create([NAME, ID], mode="replace", properties={"delta.columnMapping.mode": after})
    log.append(pa.table({"name": ["b"], "id": [2]}))
    assert log.to_arrow().to_pylist() == [{"name": "b", "id": 2}]
    assert log.snapshot(version=1).scan(None).files.num_rows == 1
    keys = set(log.snapshot().schema.find("id").metadata)
    assert bool(keys) == (after != "none")


def test_ids_of_columns_are_never_given_to_others(log):
    mapped = {"delta.columnMapping.mode": "name"}
    log.create(columns("a", "b", "c"), properties=mapped)
    log.create(columns("x", "a"), mode="replace", properties=mapped)
    ids = [item.metadata["delta.columnMapping.id"] for item in log.snapshot().schema]
    assert ids == [4, 1]
    assert log.metadata.configuration["delta.columnMapping.maxColumnId"] == "4"


def test_a_table_for_appends_only_is_not_replaced(log):
    log.create([ID], properties={"delta.appendOnly": "true"})
    log.append(pa.table({"id": [1]}))
    assert kind_of(lambda: log.create([ID], mode="replace")) == "DELTA_CANNOT_MODIFY_APPEND_ONLY"


def test_a_replaced_table_may_begin_to_track_its_rows(log):
    log.append(pa.table({"id": [1, 2]}))
    log.create([ID], mode="replace", properties={"delta.enableRowTracking": "true"})
    log.append(pa.table({"id": [7]}))
    row = log.to_arrow(columns=["id", "_metadata.row_id"]).to_pylist()
    assert [item["id"] for item in row] == [7]


def test_a_replaced_table_may_begin_to_compute_and_number_its_columns(log):
    log.create([ID])
    numbered = Column("n", LONG, identity=Identity(start=5))
    log.create([ID, Column("twice", LONG, generated_as="id * 2"), numbered], mode="replace")
    log.append(pa.table({"id": [4]}))
    assert log.to_arrow().to_pylist() == [{"id": 4, "twice": 8, "n": 5}]
    assert {"generatedColumns", "identityColumns"} <= set(implied_features(log.protocol))


def test_numbers_of_a_replaced_table_begin_anew(log):
    counted = Column("n", LONG, identity=Identity())
    log.create([counted, ID])
    log.append(pa.table({"id": [1, 2]}))
    log.create([counted, ID], mode="replace")
    log.append(pa.table({"id": [3]}))
    assert log.to_arrow(columns=["n"])["n"].to_pylist() == [1]


# Clustering


def clustering(log):
    snapshot = log.snapshot()
    return clustering_columns(snapshot.domain_metadata, snapshot.schema)


@pytest.mark.parametrize("mode", ["none", "name"])
def test_a_clustered_table_says_by_which_columns(log, mode):
    inner = StructType((StructField("f g", LONG), StructField("h", TEXT)))
    named = "f g" if mode == "name" else "h"
    fields = [ID, Column("s", inner if mode == "name" else StructType(inner.fields[1:]))]
    log.create(
        fields,
        cluster_by=["ID", f"s.`{named}`"],
        properties={"delta.columnMapping.mode": mode},
    )
    assert clustering(log) == (("id",), ("s", named))
    assert {"clustering", "domainMetadata"} <= implied_features(log.protocol)
    assert json.loads(str(last(log).operation_parameters["clusterBy"])) == ["id", f"s.{named}"]
    log.append(pa.table({"id": [1]}))


def test_a_replaced_table_is_clustered_anew_or_no_more(log):
    log.create(columns("a", "b"), cluster_by=["a"])
    log.create(columns("b", "c"), cluster_by=["c"], mode="replace")
    assert clustering(log) == (("c",),)
    log.create(columns("b"), mode="replace")
    assert clustering(log) == ()
    found = kind_of(lambda: log.create(columns("a", "b"), partition_by=["a"], mode="replace"))
    assert found == "DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE"


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({"cluster_by": ["a", "b", "c", "d", "e"]}, "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        ({"cluster_by": ["nope"]}, "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        ({"cluster_by": ["a", "A"]}, "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ({"cluster_by": ["a"], "partition_by": ["b"]}, "DELTA_CLUSTER_BY_WITH_PARTITIONED_BY"),
        ({"partition_by": ["nope"]}, "DELTA_PARTITION_COLUMN_NOT_FOUND"),
        ({"partition_by": list("abcde")}, "DELTA_NON_PARTITION_COLUMN_ABSENT"),
        ({"properties": {"delta.nope": "1"}}, "DELTA_UNKNOWN_CONFIGURATION"),
        ({"properties": {"delta.checkpointInterval": "0"}}, "OPTIMIST_INVALID_TABLE_PROPERTY"),
        (
            {"properties": {"delta.feature.nope": "supported"}},
            "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        ),
        (
            {"properties": {"delta.feature.clustering": "supported"}},
            "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED",
        ),
    ],
)
def test_what_is_not_sound_is_refused_and_nothing_is_made(log, asked, kind):
    assert kind_of(lambda: log.create(columns(*"abcde"), **asked)) == kind
    assert not log.table_exists()


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ([ID, Column("ID", TEXT)], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        ([Column("a b", LONG)], "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES"),
        ([Column("a", "nope")], "DELTA_UNSUPPORTED_DATA_TYPES"),
        ([Column("a", TEXT, identity=Identity())], "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE"),
        ([Column("a", LONG, identity=Identity(1, 0))], "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP"),
        (
            [Column("a", LONG, generated_as="id", identity=Identity()), ID],
            "DELTA_IDENTITY_COLUMNS_WITH_GENERATED_EXPRESSION",
        ),
        ([Column("a", LONG, generated_as="nope + 1")], "DELTA_INVALID_GENERATED_COLUMN_REFERENCES"),
        (
            [Column("a", LONG, default="1")],
            "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
        ),
    ],
)
def test_columns_that_no_table_can_have_are_refused(log, given, kind):
    assert kind_of(lambda: log.create(given)) == kind
    assert not log.table_exists()


# A new name for a place that has a table


def named(log, *given, **more):
    definition = TableDefinition(tuple(given), is_new_name=True, **more)
    return create_table(log.start_transaction, definition)


@pytest.fixture
def known(log):
    log.create(
        [ID, Column("name", TEXT, comment="of a person")],
        partition_by=["name"],
        properties={"delta.columnMapping.mode": "name", "mine": "1"},
    )
    return log


@pytest.mark.parametrize("mode", [CreateMode.CREATE, CreateMode.CREATE_OR_REPLACE])
def test_a_new_name_takes_the_table_that_is_there(known, mode):
    same = [Column("name", "string", comment="of a person"), Column("ID", "bigint")]
    assert named(known, mode=mode) is None
    assert named(known, *same, partition_by=("name",), mode=mode) is None
    properties = {"DELTA.columnMapping.MODE": "name", "mine": "1"}
    assert named(known, mode=mode, properties=properties) is None
    assert named(known, mode=mode, properties={"mine": "1"}) is None
    assert known.snapshot().version == 0


@pytest.mark.parametrize(
    ("given", "more", "kind"),
    [
        ([ID], {}, "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        ([ID, NAME], {"partition_by": ("name",)}, "DELTA_CREATE_TABLE_SCHEME_MISMATCH"),
        (
            [ID, Column("name", TEXT, comment="of a person")],
            {},
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING",
        ),
        (
            [ID, Column("name", TEXT, comment="of a person")],
            {"partition_by": ("name",), "cluster_by": ("id",)},
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING",
        ),
        ([], {"properties": {"mine": "2"}}, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"),
        ([], {"properties": {"other": "1"}}, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY"),
        (
            [],
            {"properties": {"mine": "1", "delta.columnMapping.mode": "id"}},
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
        ),
        (
            [],
            {"properties": {"mine": "1", "delta.feature.deletionVectors": "supported"}},
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
        ),
    ],
)
def test_a_definition_that_the_table_does_not_have_is_refused(known, given, more, kind):
    with pytest.raises(SchemaError) as caught:
        named(known, *given, **more)
    assert caught.value.kind == kind
    assert known.snapshot().version == 0


def test_a_managed_table_is_not_made_over_another(known):
    found = kind_of(lambda: named(known, is_managed=True))
    assert found == "DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION"


def test_rows_are_not_put_under_a_new_name_unless_they_replace(known):
    taken = TableDefinition((ID,), is_new_name=True)
    with pytest.raises(UsageError):
        begin_creation(known.start_transaction(), taken, as_select=True)
    replacing = TableDefinition((ID,), is_new_name=True, mode=CreateMode.CREATE_OR_REPLACE)
    creation = begin_creation(known.start_transaction(), replacing, as_select=True)
    assert creation.operation().name == "CREATE OR REPLACE TABLE AS SELECT"


# Races


def test_of_several_creators_one_makes_the_table(tmp_path):
    def make(number):
        log = DeltaLog(str(tmp_path / "t"), DeltaLog.for_path(str(tmp_path / "t"), {}).store)
        try:
            return log.create([Column(f"c{number}", LONG)]).version
        except (DeltaConcurrentModificationException, UsageError):
            return None

    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(make, range(8)))
    assert sorted(made, key=str) == [0, *[None] * 7]
    winner = DeltaLog.for_path(str(tmp_path / "t"), {})
    assert winner.snapshot().version == 0
    assert winner.snapshot().schema.names == (f"c{made.index(0)}",)


def racing(log, first, second):
    """Two commands that both begin before either commits; the outcome of the second."""
    started = log.start_transaction()
    begun = [started]
    first()
    return create_table(lambda: begun.pop() if begun else log.start_transaction(), second)


def test_create_against_create_is_a_conflict(log):
    with pytest.raises(DeltaConcurrentModificationException):
        racing(log, lambda: log.create([ID]), TableDefinition((NAME,)))
    assert log.snapshot().schema.names == ("id",)


def test_create_against_an_append_is_a_conflict(log):
    with pytest.raises(DeltaConcurrentModificationException):
        racing(log, lambda: log.append(pa.table({"x": [1]})), TableDefinition((NAME,)))
    assert log.to_arrow().to_pylist() == [{"x": 1}]


def test_create_if_not_exists_that_loses_finds_the_winners_table(log):
    second = TableDefinition((NAME,), mode=CreateMode.CREATE_IF_NOT_EXISTS)
    assert racing(log, lambda: log.create([ID]), second) is None
    assert (log.snapshot().version, log.snapshot().schema.names) == (0, ("id",))


def test_replace_against_an_append_is_a_conflict(log):
    log.create([ID])
    second = TableDefinition((NAME,), mode=CreateMode.REPLACE)
    with pytest.raises(DeltaConcurrentModificationException):
        racing(log, lambda: log.append(pa.table({"id": [1]})), second)
    assert log.to_arrow().to_pylist() == [{"id": 1}]


def test_an_append_against_replace_is_a_conflict(log):
    log.create([ID])
    stale = log.start_transaction()
    log.create([NAME], mode="replace")
    with pytest.raises(DeltaConcurrentModificationException):
        write(stale, pa.table({"id": [1]}).to_reader(), LocalWrite())
    assert log.to_arrow().num_rows == 0


# Other engines


def test_another_engine_reads_what_was_made_and_replaced(tmp_path):
    log = DeltaLog.for_path(str(tmp_path / "t"), {})
    log.create([ID, Column("day", "date")], partition_by=["day"], comment="c")
    log.append(pa.table({"id": [1], "day": pa.array([None], pa.date32())}))
    log.create([Column("d", DecimalType(38, 10)), NAME], mode="replace")
    log.append(pa.table({"name": ["x"]}))
    table = OtherTable(str(tmp_path / "t"))
    assert [field.name for field in table.schema().fields] == ["d", "name"]
    assert table.to_pyarrow_table().to_pylist() == [{"d": None, "name": "x"}]
    assert [item["operation"] for item in table.history()][::-1] == [
        "CREATE TABLE",
        "WRITE",
        "REPLACE TABLE",
        "WRITE",
    ]
    old = OtherTable(str(tmp_path / "t"), version=1)
    assert old.to_pyarrow_table().num_rows == 1


def test_a_table_is_made_with_its_constraints(log):
    properties = {"Delta.Constraints.Small": "ID < 9"}
    log.create([ID, NAME], properties=properties)
    assert log.snapshot().properties.constraints == {"small": "id < 9"}
    assert "checkConstraints" in implied_features(log.snapshot().protocol)
    assert kind_of(lambda: log.append(pa.table({"id": [9]}))) == (
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES"
    )
    properties = {"delta.constraints.c": "gone > 0 AND id > 0"}
    with pytest.raises(SchemaError, match="gone"):
        log.create([ID], mode="replace", properties=properties)
    assert log.snapshot().version == 0
    # A table that is there has rows, so the constraint must come by a command that checks them.
    assert kind_of(lambda: log.alter.set_properties(properties)) == "DELTA_ADD_CONSTRAINTS"
