"""Tables that another engine may write, if oddly: what the protocol allows is read and written."""

from __future__ import annotations

import pyarrow as pa
import pytest
from deltalake import DeltaTable

from foreign_tables import ForeignTable, field, metadata, protocol
from optimist.core.errors import ProtocolError, SchemaError, TableError, UsageError
from optimist.core.protocol.actions import (
    AddFile,
    DeletionVectorDescriptor,
    DomainMetadata,
    RemoveFile,
    UnknownAction,
)
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.requests.table_definition import Column
from optimist.core.schema.types import COLUMN_ID, PHYSICAL_NAME
from optimist.core.transaction.conflicts.operations import Operation

ICT = {"delta.enableInCommitTimestamps": "true"}
ENABLED_AT = "delta.inCommitTimestampEnablementVersion"
ENABLED_MS = "delta.inCommitTimestampEnablementTimestamp"
LONGS = {"type": "array", "elementType": "long", "containsNull": True}
FEED = {"delta.enableChangeDataFeed": "true"}


@pytest.fixture
def table(tmp_path):
    return ForeignTable(tmp_path / "table")


def created_with_stray_property(table, *, features=(), **properties):
    """Commits that carry no timestamps, under a property that asks for them without the feature."""
    names = ("changeDataFeed", *features)
    table.commit(
        protocol(1, 7, *names), metadata(properties=ICT | FEED | properties), table.add({"a": [1]})
    )
    table.commit({"commitInfo": {"operation": "WRITE"}}, table.add({"a": [2]}))
    return table.open()


def test_the_property_alone_does_not_make_commits_carry_timestamps(table):
    log = created_with_stray_property(table)
    times = [log.snapshot(version=version).timestamp_ms for version in (0, 1)]
    assert [record.timestamp_ms for record in log.history()] == times[::-1]
    assert log.detail().last_modified_ms == times[1]
    assert log.snapshot(timestamp=times[1]).version == 1
    assert log.changes(starting_version=0).num_rows == 2


@pytest.mark.parametrize("writer", [2, 4])
def test_a_change_that_brings_the_feature_to_a_stray_property_records_since_when(table, writer):
    table.commit(protocol(1, writer), metadata(properties=ICT), table.add({"a": [1]}))
    log = table.open()
    before_ms = log.snapshot().timestamp_ms
    version = log.alter.set_properties({"note": "x"}).version
    (info,) = table.bodies(version, "commitInfo")
    (changed,) = table.bodies(version, "metaData")
    assert info["inCommitTimestamp"] > before_ms
    assert changed["configuration"][ENABLED_AT] == str(version)
    assert changed["configuration"][ENABLED_MS] == str(info["inCommitTimestamp"])
    assert log.snapshot(timestamp=before_ms).version == 0


def test_adding_the_feature_alone_under_a_stray_property_records_since_when(table):
    table.commit(protocol(), metadata(properties=ICT), table.add({"a": [1]}))
    log = table.open()
    before_ms = log.snapshot().timestamp_ms
    version = log.alter.add_feature("inCommitTimestamp").version
    (changed,) = table.bodies(version, "metaData")
    assert changed["configuration"][ENABLED_AT] == str(version)
    assert next(iter(table.lines(version)[0])) == "commitInfo"
    assert log.snapshot(timestamp=before_ms).version == 0


NO_ACTION = dict.fromkeys(["txn", "add", "remove", "metaData", "protocol", "cdc", "domainMetadata"])


def test_a_line_that_names_every_kind_of_action_has_its_commit_info(table):
    log = table.open()
    enabled = ICT | {ENABLED_AT: "1", ENABLED_MS: "5000"}
    table.commit(protocol(1, 7, "inCommitTimestamp"), metadata(), table.add({"a": [1]}))
    table.commit(
        {**NO_ACTION, "commitInfo": {"inCommitTimestamp": 5000}}, metadata(properties=enabled)
    )
    table.commit(table.add({"a": [2]}), {**NO_ACTION, "commitInfo": {"inCommitTimestamp": 7000}})
    assert [record.timestamp_ms for record in log.history(2)] == [7000, 5000]
    assert [log.snapshot(timestamp=ms).version for ms in (5000, 6999, 7000)] == [1, 1, 2]


def test_whole_numbers_of_actions_may_be_written_with_a_point_or_an_exponent(table):
    add = table.add({"a": [1, 2]}, modificationTime=1.7e12)
    add["add"]["size"] = float(add["add"]["size"])
    feature = protocol(1, 7, "domainMetadata")["protocol"] | {"minReaderVersion": 1.0}
    table.commit({"protocol": feature}, metadata(createdTime=1.0), add)
    table.commit({"txn": {"appId": "x", "version": 3.0}}, {"commitInfo": {"readVersion": 0.0}})
    assert DeltaTable(str(table.path)).to_pyarrow_table().num_rows == 2
    log = table.open()
    assert log.to_arrow().num_rows == 2
    assert log.snapshot().set_transactions["x"].version == 3
    assert log.history(1)[0].info.read_version == 0
    log.append(pa.table({"a": [3]}))
    log.checkpoint()
    assert table.open().snapshot().files["modificationTime"].to_pylist()[0] == 1_700_000_000_000


@pytest.mark.parametrize("number", [492.5, 1e300, 2.0**63, -1.0])
def test_numbers_that_are_no_count_stay_refused(table, number):
    table.commit(protocol(), metadata(), table.add({"a": [1]}, size=number))
    with pytest.raises(TableError) as caught:
        table.open().to_arrow()
    assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"


def test_a_variant_inside_an_array_may_be_an_object_as_the_protocol_shows_it(table):
    variants = {"type": "array", "elementType": {"type": "variant"}, "containsNull": False}
    names = ["variantType"]
    table.commit(
        protocol(3, 7, for_readers=names),
        metadata(field("a"), field("v", variants)),
        table.add({"a": [1]}),
    )
    assert table.open().to_arrow(columns=["a"]).to_pydict() == {"a": [1]}


@pytest.mark.parametrize("provider", ["parquet", "PARQUET", None])
def test_a_table_of_parquet_files_may_say_so_in_any_case_or_not_at_all(table, provider):
    form = {} if provider is None else {"provider": provider}
    table.commit(protocol(), metadata(format=form), table.add({"a": [1]}))
    table.open().append(pa.table({"a": [2]}))
    assert sorted(table.open().to_arrow()["a"].to_pylist()) == [1, 2]


@pytest.mark.parametrize("provider", ["orc", "csv"])
def test_a_table_of_other_files_is_neither_read_nor_written(table, provider):
    table.commit(protocol(), metadata(format={"provider": provider}), table.add({"a": [1]}))
    for use in (table.open().to_arrow, lambda: table.open().append(pa.table({"a": [2]}))):
        with pytest.raises(ProtocolError) as caught:
            use()
        assert caught.value.kind == "OPTIMIST_UNSUPPORTED_FILE_FORMAT"
        assert caught.value.fields["format"] == provider


@pytest.mark.parametrize("removed", [False, True])
@pytest.mark.parametrize("domain", ["delta.feature.ofTomorrow", "Delta.x", "delta.rowTracking"])
def test_a_commit_leaves_the_domains_of_the_system_alone(table, domain, removed):
    kept = {"domain": domain, "configuration": "{}", "removed": False}
    table.commit(protocol(1, 7, "domainMetadata"), metadata(), {"domainMetadata": kept})
    txn = table.open().start_transaction()
    with pytest.raises(UsageError) as caught:
        txn.commit([DomainMetadata(domain, "mine", removed)], Operation("Manual Update"))
    assert caught.value.kind == "OPTIMIST_RESERVED_METADATA_DOMAIN"
    assert table.open().snapshot().stored_domains[domain].configuration == "{}"


@pytest.mark.parametrize("kind", ["sidecar", "checkpointMetadata"])
def test_a_commit_has_no_actions_of_checkpoints(table, kind):
    table.commit(protocol(), metadata())
    txn = table.open().start_transaction()
    with pytest.raises(UsageError) as caught:
        txn.commit([UnknownAction(kind, {"path": "x"})], Operation("Manual Update"))
    assert caught.value.kind == "OPTIMIST_INVALID_ACTION"
    assert table.open().snapshot().version == 0


def test_a_new_column_gets_no_id_that_the_part_of_an_array_has(table):
    parts = {"delta.columnMapping.nested.ids": {"b.element": 7, "b.element.element": 8}}
    mapped = [
        field(name, kind, **{COLUMN_ID: number, PHYSICAL_NAME: name}, **extra)
        for number, name, kind, extra in [(1, "a", "long", {}), (2, "b", LONGS, parts)]
    ]
    table.commit(
        protocol(2, 7, "columnMapping"),
        metadata(*mapped, properties={"delta.columnMapping.mode": "name"}),
    )
    log = table.open()
    log.alter.add_columns([NewColumn("c", "long")])
    assert log.snapshot().schema.find("c").metadata["delta.columnMapping.id"] == 9
    assert log.snapshot().schema.find("b").metadata.items() >= parts.items()


ONE_DELETED = DeletionVectorDescriptor("i", "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg0rr91", 34, 1)
WIDE = '{"numRecords":3,"tightBounds":false}'


@pytest.mark.parametrize("spelled", ["part-0.parquet", "%70art-0.parquet"])
def test_a_live_file_gets_another_vector_only_in_place_of_what_it_had(table, spelled):
    names = ["deletionVectors"]
    properties = {"delta.enableDeletionVectors": "true"}
    added = table.add({"a": [1, 2, 3]})
    table.commit(protocol(3, 7, for_readers=names), metadata(properties=properties), added)
    size = added["add"]["size"]
    add = AddFile(spelled, {}, size, 1, True, WIDE, deletion_vector=ONE_DELETED)
    with pytest.raises(UsageError) as caught:
        table.open().start_transaction().commit([add], Operation("Manual Update"))
    assert caught.value.kind == "DELTA_DUPLICATE_ACTIONS_FOUND"
    instead = [RemoveFile("part-0.parquet", 1, size=size), add]
    table.open().start_transaction().commit(instead, Operation("Manual Update"))
    assert table.open().to_arrow().to_pydict() == {"a": [1, 3]}
    table.open().start_transaction().commit([add], Operation("Manual Update"))
    assert table.open().to_arrow().to_pydict() == {"a": [1, 3]}


def test_one_file_in_two_spellings_is_named_twice(table):
    table.commit(protocol(), metadata())
    twice = [AddFile(path, {}, 1, 1, True) for path in ("x%20y.parquet", "x y.parquet")]
    with pytest.raises(UsageError) as caught:
        table.open().start_transaction().commit(twice, Operation("Manual Update"))
    assert caught.value.kind == "DELTA_DUPLICATE_ACTIONS_FOUND"


@pytest.mark.parametrize("sql", ["parse_json('1')", "5"])
def test_a_variant_gets_no_default_but_null(table, sql):
    kept = {"CURRENT_DEFAULT": "parse_json('2')"}
    table.commit(
        protocol(3, 7, "allowColumnDefaults", for_readers=["variantType"]),
        metadata(field("a"), field("v", "variant"), field("w", "variant", **kept)),
    )
    log = table.open()
    for call in (
        lambda: log.alter.change_columns([ColumnChange("v", default=sql)]),
        lambda: (
            ForeignTable(table.path / "new")
            .open()
            .create(
                [Column("a", "long"), Column("v", "variant", default=sql)],
                properties={"delta.feature.allowColumnDefaults": "supported"},
            )
        ),
    ):
        with pytest.raises(SchemaError) as caught:
            call()
        assert caught.value.kind == "INVALID_DEFAULT_VALUE"
    for null in ("NULL", "CAST(null AS VARIANT)"):
        log.alter.change_columns([ColumnChange("v", default=null)])
    assert log.snapshot().schema.find("w").metadata == kept


@pytest.mark.parametrize("given", [(1, 8), (1, 7, "featureOfTomorrow")])
def test_a_table_that_may_not_be_written_to_gets_no_checkpoint(table, given):
    written = protocol(*given)
    table.commit(written, metadata(), table.add({"a": [1]}), {"actionOfTomorrow": {"x": 1}})
    log = table.open()
    assert log.to_arrow().num_rows == 1
    with pytest.raises(ProtocolError):
        log.checkpoint()
    assert not list((table.path / "_delta_log").glob("*checkpoint*"))


STRAY_DEFAULT = {"CURRENT_DEFAULT": "7"}
NO_DEFAULTS = "WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED"


@pytest.mark.parametrize("given", [protocol(), protocol(1, 7, "invariants", "appendOnly")])
def test_a_default_without_its_feature_stays_and_hinders_nothing(table, given):
    fields = (field("id"), field("x", **STRAY_DEFAULT))
    table.commit(given, metadata(*fields), table.add({"id": [1, 2], "x": [1, 2]}))
    log = table.open()
    log.append(pa.table({"id": [3]}))
    log.update(set={"id": 4}, predicate="id = 1")
    log.delete("id = 2")
    log.alter.set_properties({"note": "x"})
    log.alter.add_columns([NewColumn("y", "long")])
    log.alter.change_columns([ColumnChange("x", comment="of old")])
    rows = sorted(log.to_arrow(columns=["id", "x"]).to_pylist(), key=lambda row: row["id"])
    assert rows == [{"id": 3, "x": 7}, {"id": 4, "x": 1}]
    for column, default in (("id", "3"), ("x", "8")):
        with pytest.raises(SchemaError) as caught:
            log.alter.change_columns([ColumnChange(column, default=default)])
        assert (caught.value.kind, caught.value.fields["columns"]) == (NO_DEFAULTS, (column,))
    log.alter.change_columns([ColumnChange("x", drop_default=True)])
    log.restore(0)
    assert log.snapshot().schema.find("x").metadata == STRAY_DEFAULT


def test_a_default_without_its_feature_goes_with_a_column_that_gets_another_name(table):
    mapping = {"delta.columnMapping.mode": "name", "delta.columnMapping.maxColumnId": "2"}
    keys = ({COLUMN_ID: at, PHYSICAL_NAME: name} for at, name in ((1, "id"), (2, "x")))
    fields = (field("id", **next(keys)), field("x", **next(keys), **STRAY_DEFAULT))
    table.commit(protocol(2, 5), metadata(*fields, properties=mapping), table.add({"id": [1]}))
    log = table.open()
    log.alter.rename_column("x", "z")
    log.append(pa.table({"id": [2]}))
    assert log.to_arrow("id = 2").to_pylist() == [{"id": 2, "z": 7}]


GENERATED = {"delta.generationExpression": "id + 1"}
NUMBERED = {
    "delta.identity.start": 1,
    "delta.identity.step": 1,
    "delta.identity.allowExplicitInsert": False,
}


@pytest.mark.parametrize(
    ("key", "given"),
    [
        *((GENERATED, given) for given in (protocol(1, 1), protocol(), protocol(1, 3))),
        *((NUMBERED, given) for given in (protocol(), protocol(1, 4), protocol(2, 5))),
    ],
)
def test_keys_of_columns_mean_nothing_without_their_feature(table, key, given):
    fields = (field("id"), field("x", **key))
    table.commit(given, metadata(*fields), table.add({"id": [1, 2], "x": [50, 60]}))
    log = table.open()
    log.append(pa.table({"id": [3, 4], "x": [70, 80]}))
    log.append(pa.table({"id": [5]}))
    log.update(set={"x": "x + 1"}, predicate="id = 1")
    log.update(set={"id": 20}, predicate="id = 2")
    merge = log.merge(pa.table({"id": [3, 6], "x": [1, 2]}), "t.id = s.id")
    merge.when_matched_update({"x": "s.x"}).when_not_matched_insert_all().execute()
    rows = log.to_arrow().to_pylist()
    assert {row["id"]: row["x"] for row in rows} == {1: 51, 20: 60, 3: 1, 4: 80, 5: None, 6: 2}


@pytest.mark.parametrize(("key", "versions"), [(GENERATED, (1, 4)), (NUMBERED, (1, 6))])
def test_a_feature_that_comes_later_does_not_make_old_keys_count(table, key, versions):
    fields = (field("id"), field("x", **key))
    stray = table.commit(protocol(), metadata(*fields), table.add({"id": [1], "x": [50]}))
    log = table.open()
    log.alter.upgrade_protocol(*versions)
    assert log.snapshot().schema.find("x").metadata == {}
    log.append(pa.table({"id": [2], "x": [60]}))
    log.restore(stray)
    log.append(pa.table({"id": [3], "x": [70]}))
    assert log.snapshot().protocol.min_writer_version == versions[1]
    assert log.to_arrow()["x"].to_pylist() == [50, 70]


def test_a_clone_takes_no_keys_that_mean_nothing_into_a_table_that_has_the_feature(table, tmp_path):
    table.commit(
        protocol(), metadata(field("id"), field("x", **GENERATED)), table.add({"id": [1], "x": [5]})
    )
    there = str(tmp_path / "there")
    own = ForeignTable(tmp_path / "there")
    own.commit(protocol(1, 4), metadata(field("id")))
    table.open().clone(there, mode="replace")
    cloned = own.open()
    cloned.append(pa.table({"id": [2], "x": [9]}))
    assert cloned.to_arrow()["x"].to_pylist() == [5, 9]


def test_an_expression_without_its_feature_skips_no_partition(table):
    fields = (field("id"), field("p", **{"delta.generationExpression": "id"}))
    values = {"partitionValues": {"p": "9"}}
    table.commit(
        protocol(), metadata(*fields, partition_by=["p"]), table.add({"id": [1]}, **values)
    )
    assert table.open().to_arrow("id = 1").to_pylist() == [{"id": 1, "p": 9}]
