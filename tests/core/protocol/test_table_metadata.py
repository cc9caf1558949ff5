"""A table's metadata is parsed once, however often and by whomever it is asked for."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace

import pytest

from optimist.core.errors import SchemaError
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.properties import TableProperties
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema import types
from optimist.core.transaction.conflicts.operations import Operation

WRITE = Operation.write("Append")
TRACKED = Protocol(1, 7, None, ("domainMetadata", "rowTracking", "inCommitTimestamp"))
ROW_TRACKING = {
    "delta.enableRowTracking": "true",
    "delta.rowTracking.materializedRowIdColumnName": "_row-id-col-1",
    "delta.rowTracking.materializedRowCommitVersionColumnName": "_row-commit-version-col-1",
}


@pytest.fixture
def parses(monkeypatch):
    """How often each schema and each configuration was parsed, by any module."""
    counted: Counter[object] = Counter()
    parse_json, parse = types.parse_json, TableProperties.from_configuration

    def counting_schemas(text):
        counted[text] += 1
        return parse_json(text)

    def counting_properties(configuration):
        counted[tuple(configuration.items())] += 1
        return parse(configuration)

    monkeypatch.setattr(types, "parse_json", counting_schemas)
    monkeypatch.setattr(TableProperties, "from_configuration", counting_properties)
    return counted


def fields(*items: dict[str, object]) -> str:
    return json.dumps({"type": "struct", "fields": list(items)})


def column(name: str, **metadata: object) -> dict[str, object]:
    return {"name": name, "type": "long", "nullable": True, "metadata": metadata}


def test_a_rebase_past_a_hundred_winners_parses_each_metadata_once(make_table, parses):
    # The text of this schema is no other test's, so that nothing of it is in memory already.
    table = make_table(protocol=TRACKED, configuration={"test": "a hundred winners"})
    described = json.dumps(json.loads(table.metadata.schema_string), indent=3)
    table.metadata = replace(table.metadata, schema_string=described)
    table.create(table.add("old"))
    txn = table.log.start_transaction()
    switched = {**table.metadata.configuration, **ROW_TRACKING}
    for number in range(1, 101):
        change = [replace(table.metadata, configuration=switched)] if number == 50 else []
        table.poke(number, (*change, table.add(f"theirs{number}")))
    assert txn.commit([table.add("ours")], WRITE).version == 101
    assert parses[described] == 1
    assert parses[tuple(table.metadata.configuration.items())] == 1
    assert parses[tuple(switched.items())] == 1
    assert max(parses.values()) == 1


def test_equal_metadata_share_one_value():
    one, two = (Metadata("a", fields(column("x")), configuration={"k": "v"}) for _ in range(2))
    assert TableMetadata.of(one) is TableMetadata.of(replace(two, id="b"))
    assert TableMetadata.of(one) is not TableMetadata.of(replace(one, configuration={}))
    assert TableMetadata.of(one) is not TableMetadata.of(replace(one, partition_columns=("x",)))


def test_a_change_of_properties_does_not_parse_the_schema_again(parses):
    text = fields(column("only_here"))
    for number in range(5):
        metadata = Metadata("a", text, configuration={"n": str(number)})
        assert TableMetadata.of(metadata).schema.names == ("only_here",)
    assert parses[text] == 1


def test_properties_are_known_where_the_schema_is_damaged():
    metadata = Metadata("a", "{", configuration={"delta.appendOnly": "true"})
    table = TableMetadata.of(metadata)
    assert table.properties.append_only
    for _ in range(2):
        with pytest.raises(SchemaError) as raised:
            _ = table.schema
        assert raised.value.kind == "OPTIMIST_MALFORMED_SCHEMA"


def test_a_column_that_stands_there_twice_is_refused():
    table = TableMetadata.of(Metadata("a", fields(column("x"), column("x"))))
    assert table.declared_schema.names == ("x", "x")
    with pytest.raises(SchemaError, match="twice"):
        _ = table.schema


@pytest.mark.parametrize(("mode", "physical"), [("none", "x"), ("name", "col-1"), ("id", "col-1")])
def test_physical_names_count_only_with_column_mapping(mode, physical):
    text = fields(column("x", **{types.PHYSICAL_NAME: "col-1", types.COLUMN_ID: 1, "note": "kept"}))
    metadata = Metadata("a", text, configuration={"delta.columnMapping.mode": mode})
    table = TableMetadata.of(metadata)
    (item,) = table.schema
    assert (table.is_mapped, item.physical_name) == (mode != "none", physical)
    assert item.metadata["note"] == "kept"
    assert table.declared_schema.fields[0].physical_name == "col-1"
