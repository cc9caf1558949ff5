from __future__ import annotations

import json
from dataclasses import replace

import pytest

from optimist.core.errors import ConfigError, ProtocolError, SchemaError
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.schema.char_types import replace_char_varchar
from optimist.core.schema.types import (
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_from_json,
    schema_to_json,
)
from optimist.core.testing import ManualClock
from optimist.core.transaction.metadata_update import (
    derive_metadata_and_protocol,
    new_table_metadata,
    with_global_config_defaults,
)

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
PLAIN = StructType((StructField("x", LONG),))
REQUIRED = StructType((StructField("y", LONG, False),))
OPTIONAL = StructType((StructField("y", LONG),))
OPTIONS = EngineOptions()
ROW_ID = "delta.rowTracking.materializedRowIdColumnName"
ROW_VERSION = "delta.rowTracking.materializedRowCommitVersionColumnName"
ICT_VERSION = "delta.inCommitTimestampEnablementVersion"
ICT_TIMESTAMP = "delta.inCommitTimestampEnablementTimestamp"


def metadata(*fields: StructField, **configuration: str) -> Metadata:
    schema = StructType(fields) if fields else PLAIN
    names = {"delta." + key.replace("__", "."): value for key, value in configuration.items()}
    return Metadata("id", schema_to_json(schema), configuration=names)


def created(new: Metadata, options: EngineOptions = OPTIONS) -> tuple[Metadata, Protocol]:
    derived, protocol = derive_metadata_and_protocol(
        new, current=None, protocol=None, options=options
    )
    assert protocol is not None
    return derived, protocol


def changed(
    new: Metadata, current: Metadata, protocol: Protocol, options: EngineOptions = OPTIONS
) -> tuple[Metadata, Protocol | None]:
    return derive_metadata_and_protocol(new, current=current, protocol=protocol, options=options)


def field_metadata(derived: Metadata) -> list[dict]:
    return [dict(item.metadata) for item in schema_from_json(derived.schema_string)]


def test_clustering_is_asked_for_by_its_command_alone() -> None:
    asked = metadata(feature__clustering="supported")
    with pytest.raises(ConfigError) as caught:
        created(asked)
    assert caught.value.kind == "DELTA_CREATE_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"
    with pytest.raises(ConfigError) as caught:
        changed(asked, metadata(), Protocol(1, 2))
    assert caught.value.kind == "DELTA_ALTER_TABLE_SET_CLUSTERING_TABLE_FEATURE_NOT_ALLOWED"


# New tables


def test_new_table_gets_id_time_and_defaults() -> None:
    clock = ManualClock()
    options = EngineOptions(property_defaults={"delta.APPENDONLY": "true"})
    made = new_table_metadata(Metadata("", schema_to_json(PLAIN)), options, clock)
    assert len(made.id) == 36
    assert made.created_time == clock.now_ms()
    assert made.configuration == {"delta.appendOnly": "true"}
    assert made.format == {"provider": "parquet", "options": {}}


def test_new_table_keeps_what_is_given() -> None:
    given = replace(metadata(appendOnly="false"), created_time=5)
    options = EngineOptions(property_defaults={"delta.appendOnly": "true"})
    assert new_table_metadata(given, options, ManualClock()) == given


def test_defaults_about_the_protocol_are_no_properties() -> None:
    defaults = {
        "delta.minWriterVersion": "4",
        "delta.feature.rowTracking": "supported",
        "delta.checkpointInterval": "5",
    }
    merged = with_global_config_defaults(metadata(), EngineOptions(property_defaults=defaults))
    assert merged.configuration == {"delta.checkpointInterval": "5"}


def test_default_that_is_no_property_is_passed_over() -> None:
    options = EngineOptions(
        property_defaults={"delta.noSuchThing": "1", "delta.appendOnly": "true"}
    )
    merged = with_global_config_defaults(metadata(), options)
    assert merged.configuration == {"delta.appendOnly": "true"}


def test_new_table_gets_its_protocol_and_the_requests_are_not_stored() -> None:
    new = metadata(
        minReaderVersion="1",
        minWriterVersion="3",
        ignoreProtocolDefaults="false",
        feature__inCommitTimestamp="supported",
        appendOnly="true",
    )
    derived, protocol = created(replace(new, configuration={**new.configuration, "mine": "1"}))
    assert derived.configuration == {"delta.appendOnly": "true", "mine": "1"}
    assert protocol == Protocol(
        1, 7, None, ("appendOnly", "checkConstraints", "inCommitTimestamp", "invariants")
    )


def test_timestamp_ntz_is_enabled_on_a_new_table_by_itself() -> None:
    _, protocol = created(metadata(StructField("t", PrimitiveType("timestamp_ntz"))))
    assert protocol.reader_features == ("timestampNtz",)


def test_column_mapping_metadata_of_another_table_is_dropped_from_a_new_one() -> None:
    alien = {"delta.columnMapping.id": 4, "delta.columnMapping.physicalName": "c", "comment": "k"}
    inner = StructType((StructField("y", LONG, True, alien),))
    derived, protocol = created(metadata(StructField("s", ArrayType(inner), True, alien)))
    assert "columnMapping" not in derived.schema_string
    assert field_metadata(derived) == [{"comment": "k"}]
    assert protocol == Protocol(1, 2)


# Existing tables


def test_unchanged_metadata_needs_no_new_protocol() -> None:
    current = metadata(appendOnly="true")
    assert changed(current, current, Protocol(1, 2)) == (current, None)


def test_automatic_feature_changes_the_protocol() -> None:
    current = metadata()
    derived, protocol = changed(metadata(enableInCommitTimestamps="true"), current, Protocol(1, 2))
    assert derived.configuration == {"delta.enableInCommitTimestamps": "true"}
    assert protocol == Protocol(1, 7, None, ("appendOnly", "inCommitTimestamp", "invariants"))


def test_feature_that_is_not_automatic_must_be_asked_for() -> None:
    new = metadata(StructField("t", PrimitiveType("timestamp_ntz")))
    with pytest.raises(ProtocolError) as caught:
        changed(new, metadata(), Protocol(1, 2))
    assert caught.value.kind == "DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT"
    asked = replace(new, configuration={"delta.feature.timestampNtz": "supported"})
    derived, protocol = changed(asked, metadata(), Protocol(1, 2))
    assert derived.configuration == {}
    assert protocol is not None
    assert protocol.reader_features == ("timestampNtz",)


def test_requested_versions_are_merged_and_lower_ones_ignored() -> None:
    current = metadata()
    _, raised = changed(metadata(minWriterVersion="3"), current, Protocol(1, 2))
    _, lowered = changed(metadata(minWriterVersion="1"), current, Protocol(1, 2))
    assert raised == Protocol(1, 3)
    assert lowered is None


def test_wrong_request_is_refused_on_existing_tables_too() -> None:
    with pytest.raises(ConfigError) as caught:
        changed(metadata(feature__nonsense="supported"), metadata(), Protocol(1, 2))
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG"


def test_catalog_managed_can_not_be_added_to_an_existing_table() -> None:
    new = metadata(feature__catalogManaged="supported")
    with pytest.raises(ProtocolError) as caught:
        changed(new, metadata(), Protocol(1, 2))
    assert caught.value.kind == "OPTIMIST_CATALOG_MANAGED_ON_EXISTING_TABLE"


def test_generation_expression_is_dropped_where_the_protocol_does_not_know_it() -> None:
    entry = {"delta.generationExpression": "x", "comment": "kept"}
    new = metadata(StructField("x", LONG), StructField("g", LONG, True, entry))
    derived, protocol = changed(new, metadata(), Protocol(1, 2))
    assert field_metadata(derived) == [{}, {"comment": "kept"}]
    assert protocol is None


@pytest.mark.parametrize(
    ("protocol", "request_key"),
    [(Protocol(1, 4), {}), (Protocol(1, 2), {"delta.feature.generatedColumns": "supported"})],
)
def test_generation_expression_stays_where_it_is_known_or_asked_for(protocol, request_key) -> None:
    entry = {"delta.generationExpression": "x"}
    new = metadata(StructField("x", LONG), StructField("g", LONG, True, entry))
    derived, _ = changed(replace(new, configuration=request_key), metadata(), protocol)
    assert field_metadata(derived) == [{}, entry]


def test_identity_metadata_is_dropped_where_the_protocol_does_not_know_it() -> None:
    new = metadata(StructField("x", LONG, True, {"delta.identity.start": 1}))
    derived, protocol = changed(new, metadata(), Protocol(1, 4))
    assert field_metadata(derived) == [{}]
    assert protocol is None


# In-commit timestamps


def test_disabling_in_commit_timestamps_removes_their_bookkeeping() -> None:
    configuration = {
        "enableInCommitTimestamps": "false",
        ICT_VERSION[6:]: "3",
        "appendOnly": "true",
    }
    derived, _ = changed(metadata(**configuration), metadata(), Protocol(1, 2))
    assert set(derived.configuration) == {"delta.enableInCommitTimestamps", "delta.appendOnly"}


def test_bookkeeping_of_in_commit_timestamps_is_carried_over() -> None:
    on = {"delta.enableInCommitTimestamps": "true"}
    kept = {ICT_VERSION: "3", ICT_TIMESTAMP: "99"}
    current = replace(metadata(), configuration={**on, **kept})
    protocol = Protocol(1, 7, None, ("inCommitTimestamp",))
    derived, _ = changed(replace(metadata(), configuration=on), current, protocol)
    assert derived.configuration == {**on, **kept}


def test_stale_bookkeeping_is_not_carried_over_when_timestamps_were_off() -> None:
    current = replace(metadata(), configuration={ICT_VERSION: "3"})
    new = metadata(enableInCommitTimestamps="true")
    derived, _ = changed(new, current, Protocol(1, 7, None, ("inCommitTimestamp",)))
    assert derived.configuration == {"delta.enableInCommitTimestamps": "true"}


# Row tracking


def test_row_tracking_gets_its_hidden_columns_once() -> None:
    derived, protocol = created(metadata(enableRowTracking="true"))
    assert derived.configuration[ROW_ID].startswith("_row-id-col-")
    assert derived.configuration[ROW_VERSION].startswith("_row-commit-version-col-")
    again, unchanged = changed(metadata(enableRowTracking="true"), derived, protocol)
    assert again.configuration == derived.configuration
    assert unchanged is None


def test_hidden_columns_are_named_by_the_clock_that_is_given() -> None:
    new = metadata(enableRowTracking="true")
    names = [
        derive_metadata_and_protocol(
            new, current=None, protocol=None, options=OPTIONS, clock=ManualClock()
        )[0].configuration[ROW_ID]
        for _ in range(2)
    ]
    assert names[0] == names[1]


def test_without_row_tracking_there_are_no_hidden_columns() -> None:
    derived, _ = created(metadata(enableRowTracking="false"))
    assert ROW_ID not in derived.configuration


# The schema


@pytest.mark.parametrize(
    ("data_type", "part", "dropped"),
    [
        (ArrayType(REQUIRED, False), "element", ArrayType(OPTIONAL, False)),
        (ArrayType(ArrayType(LONG, False)), "element", ArrayType(ArrayType(LONG))),
        (MapType(REQUIRED, LONG), "key", MapType(OPTIONAL, LONG)),
        (MapType(STRING, REQUIRED, False), "value", MapType(STRING, OPTIONAL, False)),
    ],
)
def test_not_null_inside_arrays_and_maps_is_refused_or_dropped(data_type, part, dropped) -> None:
    outer = StructType((StructField("deep", data_type, False),))
    new = metadata(StructField("x", LONG), StructField("s", outer))
    with pytest.raises(SchemaError) as caught:
        created(new)
    assert caught.value.kind == "DELTA_NESTED_NOT_NULL_CONSTRAINT"
    assert caught.value.fields["column"] == "deep"
    assert caught.value.fields["part"] == part
    derived, _ = created(new, EngineOptions(allow_unenforced_not_null=True))
    kept = StructType((StructField("deep", dropped, False),))
    assert schema_from_json(derived.schema_string).fields[1].data_type == kept


def test_not_null_that_can_be_enforced_and_required_elements_stay() -> None:
    inner = StructType((StructField("y", LONG, False),))
    new = metadata(
        StructField("s", inner, False),
        StructField("l", ArrayType(LONG, False), False),
    )
    assert created(new)[0].schema_string == new.schema_string


def test_unenforceable_not_null_that_was_there_before_hinders_no_other_change() -> None:
    current = metadata(StructField("l", ArrayType(StructType((StructField("y", LONG, False),)))))
    new = replace(current, configuration={"delta.appendOnly": "true"})
    assert changed(new, current, Protocol(1, 2)) == (new, None)


def test_char_and_varchar_become_strings_with_their_declaration() -> None:
    text = json.dumps(
        {
            "type": "struct",
            "fields": [
                {"name": "c", "type": "char(5)", "nullable": True, "metadata": {"comment": "k"}},
                {
                    "name": "m",
                    "type": {
                        "type": "map",
                        "keyType": "integer",
                        "valueType": {
                            "type": "array",
                            "elementType": "varchar(3)",
                            "containsNull": True,
                        },
                        "valueContainsNull": True,
                    },
                    "nullable": True,
                    "metadata": {},
                },
                {
                    "name": "s",
                    "type": {
                        "type": "struct",
                        "fields": [
                            {"name": "v", "type": "varchar(9)", "nullable": False, "metadata": {}}
                        ],
                    },
                    "nullable": True,
                    "metadata": {},
                },
            ],
        }
    )
    derived, _ = created(Metadata("id", text))
    schema = schema_from_json(derived.schema_string)
    key = "__CHAR_VARCHAR_TYPE_STRING"
    assert schema.fields[0] == StructField("c", STRING, True, {"comment": "k", key: "char(5)"})
    assert schema.fields[1].data_type == MapType(PrimitiveType("integer"), ArrayType(STRING))
    assert schema.fields[1].metadata == {key: "map<int,array<varchar(3)>>"}
    # As Spark has it: the declaration stands on the column, whatever holds the text.
    assert schema.fields[2].metadata == {key: "struct<v:varchar(9)>"}
    assert schema.fields[2].data_type == StructType((StructField("v", STRING, False),))


@pytest.mark.parametrize("text", [schema_to_json(PLAIN), "no json with char(3)"])
def test_schema_without_declared_lengths_comes_back_as_it_is(text: str) -> None:
    assert replace_char_varchar(text) == text
