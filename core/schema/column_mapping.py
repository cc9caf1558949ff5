"""Column mapping for writers: ids, physical names, the schema of files (spec 10.8).

Every field at any depth has an id and a physical name, which it keeps for life. Data files,
statistics and partition values know columns only by these. So a column can be renamed, and a
dropped column never comes back under its old name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from optimist.core.schema.types import (
    COLUMN_ID,
    COLUMN_MAPPING_PREFIX,
    PHYSICAL_NAME,
    ArrayType,
    DataType,
    MapType,
    StructField,
    StructType,
    walk_fields,
)

__all__ = [
    "file_schema",
    "is_mapped",
    "largest_column_id",
    "mapping_problems",
    "with_mapping",
    "without_mapping",
]

_NESTED_IDS = COLUMN_MAPPING_PREFIX + "nested.ids"
_NEW_NAME = "col-"
_LARGEST_PARQUET_ID = 2**31 - 1


def with_mapping(
    schema: StructType,
    known: StructType,
    *,
    max_id: int,
    new_uuid: Callable[[], str],
    is_overwrite: bool = False,
) -> StructType:
    """Return the schema with an id and a physical name for every field.

    A field that has none takes those of the field at its path in the known schema. Else it gets the
    next id, and `col-<uuid>` as its physical name. Ids go depth first.

    Args:
        schema: The new schema.
        known: The table's schema until now. On a table that is not mapped yet, its names become the
            physical names, because the files use these names.
        max_id: The largest id that the table has ever used.
        new_uuid: Makes UUIDs for new names.
        is_overwrite: Whether no file of the known schema is left. A field whose type differs is
            then another field.
    """
    by_path = {_fold_path(path): item for path, item in walk_fields(known)}
    return _Assignment(by_path, new_uuid, is_overwrite, max_id).struct(schema, ())


def is_mapped(schema: StructType) -> bool:
    """Return whether columns carry ids, as only those of a mapped table do."""
    return any(COLUMN_ID in item.metadata for item in schema)


def largest_column_id(schema: StructType) -> int:
    """Return the largest id of a field at any depth, or 0 without ids.

    The parts of arrays and maps count, too: tables that are also kept as Iceberg number these.
    """
    fields = [item for _, item in walk_fields(schema)]
    nested = [part for item in fields for part in _nested_ids_of(item)]
    return max((*nested, *(_id_of(item) or 0 for item in fields)), default=0)


def mapping_problems(schema: StructType) -> Iterator[str]:
    """Yield the faults in the ids and physical names of a mapped schema.

    The engine can't write to a table with such faults: files could confuse one column with another.
    """
    ids: dict[int | None, str] = {}
    names: dict[tuple[str, ...], str] = {}
    for path, parents, item in _with_physical_parents(schema, (), ()):
        column, number, name = ".".join(path), _id_of(item), item.metadata.get(PHYSICAL_NAME)
        if number is None or number > _LARGEST_PARQUET_ID:
            yield f"the column {column} has no id that a Parquet file can hold"
        elif number in ids:
            yield f"the columns {ids[number]} and {column} have the id {number}"
        physical_path = (*parents, str(name))
        if not isinstance(name, str) or not name:
            yield f"the column {column} has no physical name"
        elif physical_path in names:
            yield f"the columns {names[physical_path]} and {column} have the physical name {name}"
        ids[number], names[physical_path] = column, column


def without_mapping(schema: StructType) -> StructType:
    """Remove ids and physical names: readers then find the columns by the table's names."""
    return schema.without_field_keys(lambda key: key.startswith(COLUMN_MAPPING_PREFIX))


def file_schema(schema: StructType) -> StructType:
    """Return the columns as data files have them: by their physical names, with their ids.

    In this schema, a field's physical name is the table's name for it. So one function brings rows
    of the table into the shape of its files, and rows of a file into the shape of the table.
    """

    def to_stored(item: StructField) -> StructField:
        metadata: dict[str, object] = {PHYSICAL_NAME: item.name}
        if COLUMN_ID in item.metadata:
            metadata[COLUMN_ID] = item.metadata[COLUMN_ID]
        return replace(item, name=item.physical_name, metadata=metadata)

    return schema.map_fields(to_stored)


@dataclass(slots=True)
class _Assignment:
    """The assignment of ids and physical names to the fields of one schema."""

    known: Mapping[tuple[str, ...], StructField]
    new_uuid: Callable[[], str]
    is_overwrite: bool
    max_id: int = field(default=0)

    def struct(self, struct: StructType, path: tuple[str, ...]) -> StructType:
        return StructType(tuple(self.field(item, (*path, item.name)) for item in struct))

    def field(self, item: StructField, path: tuple[str, ...]) -> StructField:
        before = self.known.get(_fold_path(path))
        if before is not None and self.is_overwrite and not _has_same_type(before, item):
            before = None
        metadata = dict(item.metadata)
        if COLUMN_ID not in metadata:
            metadata[COLUMN_ID] = self.id_of(before)
        if PHYSICAL_NAME not in metadata:
            name = _NEW_NAME + self.new_uuid() if before is None else before.physical_name
            metadata[PHYSICAL_NAME] = name
        return replace(item, metadata=metadata, data_type=self.inside(item.data_type, path))

    def id_of(self, before: StructField | None) -> object:
        if before is not None and COLUMN_ID in before.metadata:
            return before.metadata[COLUMN_ID]
        self.max_id += 1
        return self.max_id

    def inside(self, data_type: DataType, path: tuple[str, ...]) -> DataType:
        if isinstance(data_type, StructType):
            return self.struct(data_type, path)
        if isinstance(data_type, ArrayType):
            element = self.inside(data_type.element_type, (*path, "element"))
            return replace(data_type, element_type=element)
        if isinstance(data_type, MapType):
            return replace(
                data_type,
                key_type=self.inside(data_type.key_type, (*path, "key")),
                value_type=self.inside(data_type.value_type, (*path, "value")),
            )
        return data_type


def _fold_path(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in path)


def _has_same_type(before: StructField, after: StructField) -> bool:
    plain = (StructType((replace(item, name=""),)).as_nullable() for item in (before, after))
    first, second = (schema.without_field_keys(lambda _: True) for schema in plain)
    return first == second


def _id_of(item: StructField) -> int | None:
    value = item.metadata.get(COLUMN_ID)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _nested_ids_of(item: StructField) -> list[int]:
    ids = item.metadata.get(_NESTED_IDS)
    values = ids.values() if isinstance(ids, Mapping) else ()
    return [value for value in values if type(value) is int]


def _with_physical_parents(
    data_type: DataType, path: tuple[str, ...], parents: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], StructField]]:
    """Yield every field at any depth, with its path, and the physical names around it."""
    if isinstance(data_type, StructType):
        for item in data_type:
            yield (*path, item.name), parents, item
            inside = ((*path, item.name), (*parents, item.physical_name))
            yield from _with_physical_parents(item.data_type, *inside)
    elif isinstance(data_type, ArrayType):
        yield from _with_physical_parents(
            data_type.element_type, (*path, "element"), (*parents, "element")
        )
    elif isinstance(data_type, MapType):
        for part, inner in (("key", data_type.key_type), ("value", data_type.value_type)):
            yield from _with_physical_parents(inner, (*path, part), (*parents, part))
