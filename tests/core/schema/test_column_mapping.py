"""Ids and physical names of mapped columns: who gets which, and which mappings are refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ProtocolError, SchemaError
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.column_mapping import (
    file_schema,
    largest_column_id,
    mapping_problems,
    with_mapping,
)
from optimist.core.schema.types import (
    COLUMN_ID,
    PHYSICAL_NAME,
    ArrayType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
    schema_to_json,
    walk_fields,
)
from optimist.core.transaction.conflicts.operations import Operation

LONG, STRING = PrimitiveType("long"), PrimitiveType("string")
MODE, DEFAULT = "delta.columnMapping.mode", "spark.databricks.delta.properties.defaults."
ROWS = pa.table({"a b": pa.array([1, 2], pa.int64()), "t": ["x", None]})


def struct(**columns) -> StructType:
    return StructType(tuple(StructField(name, kind) for name, kind in columns.items()))


def mapped(schema, known=None, *, max_id=0, is_overwrite=False) -> StructType:
    numbers = count(1)
    return with_mapping(
        schema,
        known or StructType(),
        max_id=max_id,
        new_uuid=lambda: str(next(numbers)),
        is_overwrite=is_overwrite,
    )


def keys(schema) -> dict[str, tuple[object, object]]:
    return {
        ".".join(path): (item.metadata[COLUMN_ID], item.metadata[PHYSICAL_NAME])
        for path, item in walk_fields(schema)
    }


NESTED = struct(
    s=struct(x=LONG),
    l=ArrayType(ArrayType(struct(y=LONG))),
    m=MapType(struct(k=STRING), struct(v=LONG)),
)


def test_new_columns_are_numbered_depth_first_inside_arrays_and_maps_too():
    assert keys(mapped(NESTED)) == {
        "s": (1, "col-1"),
        "s.x": (2, "col-2"),
        "l": (3, "col-3"),
        "l.element.element.y": (4, "col-4"),
        "m": (5, "col-5"),
        "m.key.k": (6, "col-6"),
        "m.value.v": (7, "col-7"),
    }


def test_columns_that_are_known_keep_their_keys_and_new_ones_go_on_above():
    before = mapped(struct(a=LONG, s=struct(x=LONG)))
    bare = struct(A=LONG, s=struct(X=LONG, y=LONG), z=LONG)
    found = keys(mapped(bare, before, max_id=9))
    assert (found["A"], found["s"], found["s.X"]) == tuple(keys(before).values())
    assert (found["s.y"][0], found["z"][0]) == (10, 11)


def test_an_overwrite_takes_over_the_keys_of_equal_types_only():
    before = mapped(struct(a=LONG, b=LONG, s=struct(x=LONG)))
    after = struct(a=LONG, b=STRING, s=struct(x=LONG, y=LONG))
    found, old = keys(mapped(after, before, max_id=4, is_overwrite=True)), keys(before)
    assert {name for name in found if found[name] == old.get(name)} == {"a", "s.x"}
    assert sorted(number for number, _ in found.values()) == [1, 4, 5, 6, 7]


def test_a_table_that_becomes_mapped_keeps_its_names_in_files():
    found = keys(mapped(NESTED, NESTED))
    assert [name for _, name in found.values()] == ["s", "x", "l", "y", "m", "k", "v"]
    assert [number for number, _ in found.values()] == list(range(1, 8))


def test_the_schema_of_files_turns_names_round():
    table = mapped(NESTED)
    stored = file_schema(table)
    assert [".".join(path) for path, _ in walk_fields(stored)][:2] == ["col-1", "col-1.col-2"]
    assert [item.physical_name for _, item in walk_fields(stored)] == list("sxlymkv")
    assert largest_column_id(stored) == 7


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({COLUMN_ID: None}, "the column b has no id"),
        ({COLUMN_ID: "7"}, "the column b has no id"),
        ({COLUMN_ID: 2**31}, "the column b has no id"),
        ({COLUMN_ID: 1}, "the columns a and b have the id 1"),
        ({PHYSICAL_NAME: None}, "the column b has no physical name"),
        ({PHYSICAL_NAME: "col-1"}, "the columns a and b have the physical name col-1"),
    ],
)
def test_a_mapping_that_mixes_columns_up_is_told(changes, problem):
    first, second = mapped(struct(a=LONG, b=LONG))
    (found,) = mapping_problems(
        StructType((first, replace(second, metadata={**second.metadata, **changes})))
    )
    assert found.startswith(problem)


def test_equal_physical_names_in_different_structs_are_no_problem():
    first = mapped(struct(a=struct(x=LONG), b=struct(x=LONG)))
    numbers = iter(range(2, 6))

    def named_x(item):
        keys = {COLUMN_ID: next(numbers), PHYSICAL_NAME: item.physical_name}
        if item.name == "x":
            keys[PHYSICAL_NAME] = "x"
        return replace(item, metadata=keys)

    assert not list(mapping_problems(first.map_fields(named_x)))


# In transactions


def log_at(path, **defaults) -> DeltaLog:
    options = {DEFAULT + key: value for key, value in defaults.items()}
    return DeltaLog.for_path(str(path), options)


def test_a_damaged_mapping_is_refused_before_any_file_is_written(tmp_path):
    log = log_at(tmp_path, **{MODE[6:]: "name"})
    log.append(ROWS)
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    commit.write_text(commit.read_text().replace('columnMapping.id\\":2', 'columnMapping.id\\":1'))
    (tmp_path / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    before = sorted(tmp_path.rglob("*.parquet"))
    with pytest.raises(SchemaError, match="have the id 1") as caught:
        DeltaLog.for_path(str(tmp_path), {"x": "another handle"}).append(ROWS)
    assert caught.value.kind == "OPTIMIST_MALFORMED_COLUMN_MAPPING"
    assert sorted(tmp_path.rglob("*.parquet")) == before


@pytest.mark.parametrize(
    ("old", "new"), [("none", "id"), ("name", "none"), ("name", "id"), ("id", "name")]
)
def test_the_mode_of_a_table_only_goes_from_none_to_name(tmp_path, old, new):
    log = log_at(tmp_path, **{MODE[6:]: old})
    log.append(ROWS.rename_columns(["a", "t"]))
    begun = log.start_transaction()
    with pytest.raises(SchemaError) as caught:
        begun.update_metadata(
            replace(begun.metadata, configuration={**begun.metadata.configuration, MODE: new})
        )
    assert caught.value.kind == "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE"
    assert caught.value.fields["new_mode"] == new


def test_stray_ids_keep_a_table_from_being_mapped(tmp_path):
    log = log_at(tmp_path)
    schema = schema_to_json(mapped(struct(a=LONG)))
    commit = tmp_path / "_delta_log" / f"{0:020}.json"
    log.append(pa.table({"a": [1]}))
    plain = schema_to_json(log.snapshot().schema).replace('"', '\\"')
    commit.write_text(commit.read_text().replace(plain, schema.replace('"', '\\"')))
    (tmp_path / "_delta_log" / f"{0:020}.crc").unlink(missing_ok=True)
    begun = DeltaLog.for_path(str(tmp_path), {"x": "another handle"}).start_transaction()
    with pytest.raises(SchemaError, match="carry ids") as caught:
        begun.update_metadata(replace(begun.metadata, configuration={MODE: "name"}))
    assert "METADATA_ALREADY_EXISTS" in caught.value.kind


def test_a_change_of_other_properties_keeps_the_largest_id_and_all_keys(tmp_path):
    log = log_at(tmp_path, **{MODE[6:]: "name"})
    log.append(ROWS)
    begun = log.start_transaction()
    before = begun.metadata
    bare = TableMetadata.of(before).schema.without_field_keys(lambda _: True)
    begun.update_metadata(
        replace(before, schema_string=schema_to_json(bare), configuration={MODE: "name"})
    )
    begun.commit((), Operation("SET TBLPROPERTIES"))
    after = log.snapshot().metadata
    assert (after.schema_string, after.configuration) == (
        before.schema_string,
        before.configuration,
    )
    log.append(ROWS)
    assert log.to_arrow().to_pylist() == ROWS.to_pylist() * 2


def test_metadata_that_needs_a_feature_that_is_not_written_is_refused_at_once(tmp_path):
    log = log_at(tmp_path)
    begun = log.start_transaction()
    wanted = Metadata("id", schema_to_json(struct(a=LONG)))
    configuration = {"delta.enableIcebergCompatV2": "true", MODE: "name"}
    with pytest.raises(ProtocolError, match="icebergCompatV2") as caught:
        begun.update_metadata(replace(wanted, configuration=configuration))
    assert caught.value.kind == "DELTA_UNSUPPORTED_FEATURES_FOR_WRITE"


def test_rows_of_another_layout_are_found_by_the_names_of_the_table(tmp_path):
    log = log_at(tmp_path, **{MODE[6:]: "name"})
    inner = pa.struct([("x y", pa.int64()), ("t", pa.string())])
    whole = pa.array([[{"x y": 1, "t": "a"}]], pa.list_(inner))
    log.append(pa.table({"l": whole, "s": pa.array([{"x y": 2, "t": "b"}], inner)}))
    other = pa.struct([("T", pa.large_string()), ("x y", pa.uint32())])
    lists = pa.array([[{"T": "c", "x y": 3}, None]], pa.large_list(other))
    narrow = pa.array([{"x y": 4}], pa.struct([("x y", pa.int64())]))
    log.append(pa.table({"L": lists, "s": narrow}))
    assert log.to_arrow().to_pylist() == [
        {"l": [{"x y": 1, "t": "a"}], "s": {"x y": 2, "t": "b"}},
        {"l": [{"x y": 3, "t": "c"}, None], "s": {"x y": 4, "t": None}},
    ]
