"""Checks of a table's metadata before a commit (spec 1.4 steps 9 and 10, 10.2).

Each check is a pure function that raises; `verify_new_metadata` runs them all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.gates import supports
from optimist.core.protocol.properties import TableProperties, ensure_retention_compatible
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.schema.generated_columns import (
    called_without_brackets,
    ensure_generated_columns_valid,
    generation_expression,
)
from optimist.core.schema.identity_columns import IDENTITY_PREFIX, is_identity_column
from optimist.core.schema.schema_edits import path_text
from optimist.core.schema.stats_property import bounded_columns
from optimist.core.schema.types import (
    COLLATIONS,
    COLUMN_ID,
    DataType,
    DecimalType,
    PrimitiveType,
    StructType,
    walk_fields,
)

__all__ = [
    "CDC_RESERVED_NAMES",
    "ILLEGAL_NAME_CHARACTERS",
    "ensure_carried_names_free",
    "ensure_column_defaults_allowed",
    "ensure_identity_columns_valid",
    "ensure_mapping_sound",
    "ensure_names_legal",
    "ensure_no_cdc_columns",
    "ensure_no_duplicate_columns",
    "ensure_no_new_collations",
    "ensure_partition_columns_exist",
    "ensure_partition_columns_usable",
    "ensure_properties_compatible",
    "ensure_variants_default_to_null",
    "verify_new_metadata",
]

_DEFAULT = "CURRENT_DEFAULT"
_OF_CONSTRAINT = "DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE"
_OF_GENERATED = "DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE"
CDC_RESERVED_NAMES = ("_change_type", "_commit_version", "_commit_timestamp")
ILLEGAL_NAME_CHARACTERS = " ,;{}()\n\t="


def verify_new_metadata(
    metadata: Metadata,
    protocol: Protocol,
    options: EngineOptions,
    *,
    previous: Metadata | None = None,
) -> None:
    """Run every check on metadata before its commit.

    Partition columns must always exist and leave a data column. The check reads their names only if
    `options.partition_column_validity_enabled` is set. It reads their types, and the collations of
    new columns, only if `options.schema_type_check_enabled` is set. The schema's parser has already
    refused unknown types.

    Args:
        metadata: The new metadata.
        protocol: The protocol that the table will have then.
        options: The engine's options.
        previous: The table's metadata until now, or None for a new table.

    Raises:
        SchemaError: A check failed. The functions of this module, `bounded_columns` and
            `ensure_generated_columns_valid` name the kinds.
        ConfigError: The table would keep deleted files longer than the log (kind
            `OPTIMIST_RETENTION_CONFLICT`).
    """
    table = TableMetadata.of(metadata)
    schema, properties = table.declared_schema, table.properties
    partition_columns = table.partition_columns
    ensure_no_duplicate_columns(schema)
    ensure_mapping_sound(metadata)
    ensure_partition_columns_exist(schema, partition_columns)
    if not table.is_mapped:
        ensure_names_legal(schema, partition_columns, options=options)
    known = None if previous is None else TableMetadata.of(previous).declared_schema
    if options.schema_type_check_enabled:
        ensure_partition_columns_usable(schema, partition_columns)
        ensure_no_new_collations(schema, previous=known)
    ensure_generated_columns_valid(schema, previous=known)
    if known is not None:
        _ensure_calls_stay_calls(schema, known, properties)
    ensure_identity_columns_valid(schema, partition_columns)
    ensure_variants_default_to_null(schema, previous=known)
    ensure_column_defaults_allowed(schema, protocol, previous=known)
    _ensure_stats_columns_usable(table, previous)
    ensure_properties_compatible(metadata, properties)
    ensure_carried_names_free(schema, properties)
    if options.enforce_retention_compatibility:
        before = {} if previous is None else previous.configuration
        changed = dict(metadata.configuration.items() - before.items())
        ensure_retention_compatible(changed, metadata.configuration)
    ensure_no_cdc_columns(metadata, previous=previous)


def _ensure_calls_stay_calls(
    schema: StructType, known: StructType, properties: TableProperties
) -> None:
    """Refuse a new column with a name by which a rule calls a function: `current_date`.

    Raises:
        SchemaError: There is such a column (kinds `DELTA_CONSTRAINT_DEPENDENT_COLUMN_CHANGE`,
            `DELTA_GENERATED_COLUMNS_DEPENDENT_COLUMN_CHANGE`; fields `column`, `expression`).
    """
    new = [item.name for item in schema if known.find(item.name) is None]
    rules = [(_OF_CONSTRAINT, sql) for sql in properties.constraints.values()]
    rules += [(_OF_GENERATED, sql) for sql in map(generation_expression, schema) if sql is not None]
    for kind, sql in rules if new else ():
        for name in new:
            if name.lower() in called_without_brackets(sql):
                raise SchemaError(
                    f"The column {shown(name)} can't be added, because {quoted(sql)} calls a "
                    "function by that name, and would read the column from then on. Nothing was "
                    "written. Choose another name, or make that rule anew with brackets behind "
                    "the name.",
                    kind=kind,
                    column=name,
                    expression=sql,
                )


def ensure_no_duplicate_columns(
    schema: StructType, *, kind: str = "DELTA_DUPLICATE_COLUMNS_FOUND", where: str = "the schema"
) -> None:
    """Refuse two fields of one struct whose names are equal or differ only in case.

    Raises:
        SchemaError: There are such fields at some depth (kind as given, field `columns`: their
            paths joined by dots).
    """
    seen: set[tuple[str, ...]] = set()
    duplicates: list[str] = []
    for path, _ in walk_fields(schema):
        folded = tuple(part.lower() for part in path)
        if folded in seen:
            duplicates.append(".".join(path))
        seen.add(folded)
    if duplicates:
        raise SchemaError(
            f"Column names occur more than once in {where} (upper and lower case are the same to "
            f"Delta): {listed(duplicates)}. Nothing was written. Rename or drop all but one.",
            kind=kind,
            columns=tuple(duplicates),
        )


def ensure_partition_columns_exist(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Refuse partition columns that do not exist, are repeated, or leave no column for files.

    Raises:
        SchemaError: `DELTA_PARTITION_COLUMN_NOT_FOUND` (fields `column`, `candidates`),
            `DELTA_DUPLICATE_COLUMNS_FOUND` (field `columns`) or
            `DELTA_NON_PARTITION_COLUMN_ABSENT`.
    """
    for name in partition_columns:
        if name not in schema.names:
            raise SchemaError(
                f"The column {shown(name)} to partition by does not exist; the columns are "
                f"{listed(schema.names) or 'none'}. Nothing was written. Partition by one of "
                "these.",
                kind="DELTA_PARTITION_COLUMN_NOT_FOUND",
                column=name,
                candidates=schema.names,
            )
    repeated = tuple(n for n in dict.fromkeys(partition_columns) if partition_columns.count(n) > 1)
    if repeated:
        raise SchemaError(
            f"Partition columns are named more than once: {listed(repeated)}. Nothing was written. "
            "Name each once.",
            kind="DELTA_DUPLICATE_COLUMNS_FOUND",
            columns=repeated,
        )
    if partition_columns and len(partition_columns) == len(schema):
        raise SchemaError(
            f"All columns are partition columns ({listed(partition_columns)}), so no column is "
            "left for the data files. Nothing was written. Leave at least one column out of the "
            "partitioning.",
            kind="DELTA_NON_PARTITION_COLUMN_ABSENT",
            partition_columns=tuple(partition_columns),
        )


def ensure_names_legal(
    schema: StructType, partition_columns: Sequence[str], *, options: EngineOptions
) -> None:
    """Refuse names that some Parquet readers reject. Column mapping allows such names.

    Raises:
        SchemaError: `DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES`, or
            `DELTA_INVALID_PARTITION_COLUMN_NAME` for partition columns; field `columns`.
    """
    illegal = {".".join(p): p[0] for p, item in walk_fields(schema) if _is_illegal(item.name)}
    data = tuple(path for path, top in illegal.items() if top not in partition_columns)
    if data:
        raise _illegal_names(data, "DELTA_INVALID_CHARACTERS_IN_COLUMN_NAMES")
    if illegal and options.partition_column_validity_enabled:
        raise _illegal_names(tuple(illegal), "DELTA_INVALID_PARTITION_COLUMN_NAME")


def ensure_partition_columns_usable(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Refuse partition columns that are structs, arrays, maps, variants or void.

    A partition value is text in the log, so its type must have one spelling per value. Binary
    columns pass, because Delta lets them pass.

    Raises:
        SchemaError: A column has such a type (kind `DELTA_INVALID_PARTITION_COLUMN_TYPE`, fields
            `column`, `type`).
    """
    for name in partition_columns:
        item = schema.find(name)
        if item is not None and not _is_partitionable(item.data_type):
            raise SchemaError(
                f"The column {shown(name)} has the type {shown(item.data_type)}, by which a table "
                "can't be partitioned. Nothing was written. Partition by a number, a string, a "
                "boolean, a date or a timestamp.",
                kind="DELTA_INVALID_PARTITION_COLUMN_TYPE",
                column=name,
                type=str(item.data_type),
            )


def ensure_identity_columns_valid(schema: StructType, partition_columns: Sequence[str]) -> None:
    """Refuse identity columns that are nested, not long, partitioned by, or of step 0 (spec 10.7).

    Raises:
        SchemaError: `DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE`,
            `DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP`, `DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED`,
            or `OPTIMIST_NESTED_IDENTITY_COLUMN`; field `column`.
    """
    for path, item in walk_fields(schema):
        if not is_identity_column(item):
            continue
        column = ".".join(path)
        if len(path) > 1:
            raise _bad_identity(
                column, "must be at the top level", "OPTIMIST_NESTED_IDENTITY_COLUMN"
            )
        if item.data_type != PrimitiveType("long"):
            raise _bad_identity(
                column,
                f"must be of type long, not {shown(item.data_type)}",
                "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            )
        if item.metadata.get(IDENTITY_PREFIX + "step") == 0:
            raise _bad_identity(
                column, "can't have the step 0", "DELTA_IDENTITY_COLUMNS_ILLEGAL_STEP"
            )
        if item.name in partition_columns:
            raise _bad_identity(
                column,
                "can't be a partition column",
                "DELTA_IDENTITY_COLUMNS_PARTITION_NOT_SUPPORTED",
            )


def ensure_mapping_sound(metadata: Metadata) -> None:
    """Refuse a mapped table whose files could confuse one column with another (spec 10.8).

    Raises:
        SchemaError: A column has no id or no physical name, or shares it with another column (kind
            `OPTIMIST_MALFORMED_COLUMN_MAPPING`, field `problems`).
    """
    problems = TableMetadata.of(metadata).mapping_problems
    if problems:
        raise SchemaError(
            f"The table's column mapping is damaged: {listed(problems)}. Nothing was written, "
            "because files could confuse one column with another. Repair the table with the engine "
            "that wrote its metadata, or write to an older version of it.",
            kind="OPTIMIST_MALFORMED_COLUMN_MAPPING",
            problems=problems,
        )


def ensure_variants_default_to_null(schema: StructType, *, previous: StructType | None) -> None:
    """Refuse a new default of a variant column unless it is null, as the protocol demands.

    Args:
        schema: The new schema.
        previous: The table's schema until now, whose defaults may stay. None for a new table.

    Raises:
        SchemaError: A new default is not null (kind `INVALID_DEFAULT_VALUE`; fields `column`,
            `expression`).
    """
    for item in schema:
        sql = item.metadata.get(_DEFAULT)
        if sql is None or item.data_type != PrimitiveType("variant") or _is_null(str(sql)):
            continue
        before = None if previous is None else previous.find(item.name)
        if before is None or before.metadata.get(_DEFAULT) != sql:
            raise SchemaError(
                f"The column {shown(item.name)} is a variant, and can't have the default "
                f"{quoted(sql)}: such columns must default to null. Nothing was written. Leave the "
                "default out.",
                kind="INVALID_DEFAULT_VALUE",
                column=item.name,
                expression=sql,
            )


def _is_null(sql: str) -> bool:
    return (
        re.fullmatch(r"(null|cast\s*\(\s*null\s+as\s+variant\s*\))", sql.strip().lower())
        is not None
    )


def ensure_column_defaults_allowed(
    schema: StructType, protocol: Protocol, *, previous: StructType | None
) -> None:
    """Refuse new column defaults without the feature `allowColumnDefaults` (spec 1.7 step 13).

    Existing defaults stay: delta-spark takes over those of a Parquet table, without the feature.

    Args:
        schema: The new schema.
        protocol: The table's new protocol.
        previous: The table's schema until now, whose defaults may stay. None for a new table.

    Raises:
        SchemaError: The feature is missing (kind
            `WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED`, field `columns`).
    """
    if supports(protocol, "allowColumnDefaults"):
        return
    known = (
        set() if previous is None else {key for _, keys in _default_keys(previous) for key in keys}
    )
    named = tuple(path for path, keys in _default_keys(schema) if known.isdisjoint(keys))
    if named:
        raise SchemaError(
            f"Columns get default values ({listed(named)}), but the table does not have the "
            "feature allowColumnDefaults. Nothing was written. Set the table property "
            "delta.feature.allowColumnDefaults = 'supported'.",
            kind="WRONG_COLUMN_DEFAULTS_FOR_DELTA_FEATURE_NOT_ENABLED",
            columns=named,
        )


def _default_keys(schema: StructType) -> Iterator[tuple[str, set[tuple[object, ...]]]]:
    """Return the columns with defaults, each with the keys that identify its default.

    A key is the default's text together with the column's path, or with its id, which stays when
    the column gets a new name.
    """
    for path, item in walk_fields(schema):
        if _DEFAULT in item.metadata:
            sql, name = str(item.metadata[_DEFAULT]), ".".join(path)
            number = item.metadata.get(COLUMN_ID)
            by_id = set() if number is None else {("id", number, sql)}
            yield name, {("path", name.lower(), sql), *by_id}


def _ensure_stats_columns_usable(table: TableMetadata, previous: Metadata | None) -> None:
    """Check `delta.dataSkippingStatsColumns`, unless it is unchanged and was invalid before."""
    names = table.properties.data_skipping_stats_columns or ()
    if previous is not None:
        before = TableMetadata.of(previous)
        try:
            if before.properties.data_skipping_stats_columns == names:
                bounded_columns(names, before.declared_schema, before.partition_columns)
        except SchemaError:
            return
    bounded_columns(names, table.declared_schema, table.partition_columns)


def ensure_no_new_collations(schema: StructType, *, previous: StructType | None) -> None:
    """Refuse new texts with a collation, as Delta does.

    No feature of the protocol tells other engines of a collation: they would compare such texts
    byte by byte, and partitions would separate equal values.

    Raises:
        SchemaError: A new column has one (kind `DELTA_UNSUPPORTED_DATA_TYPES`, field `columns`).
    """
    known = set() if previous is None else _collated_columns(previous)
    found = sorted({column for column, text in _collated_columns(schema) - known})
    if found:
        raise SchemaError(
            f"The columns {listed(found)} are texts with a collation, which Delta tables do not "
            "have. Nothing was written. Cast them to STRING COLLATE UTF8_BINARY, and give a "
            "collation where they are compared.",
            kind="DELTA_UNSUPPORTED_DATA_TYPES",
            columns=tuple(found),
        )


def _collated_columns(schema: StructType) -> set[tuple[str, str]]:
    """Return the columns with collations, each with its collation."""
    pairs = ((path, item.metadata.get(COLLATIONS)) for path, item in walk_fields(schema))
    return {(path_text(path), str(text)) for path, text in pairs if text}


def ensure_properties_compatible(metadata: Metadata, properties: TableProperties) -> None:
    """Refuse properties that exclude each other.

    Raises:
        SchemaError: Deletion vectors are enabled on files that are not Parquet, or together with
            symlink manifests (kind `DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED`). Or row
            tracking is both enabled and suspended
            (`DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION`). Field `properties`.
    """
    if properties.enable_row_tracking and properties.row_tracking_suspended:
        raise _incompatible_properties(
            ("delta.enableRowTracking", "delta.rowTrackingSuspended"),
            "can't both be true",
            "DELTA_ROW_TRACKING_ILLEGAL_PROPERTY_COMBINATION",
        )
    if not properties.enable_deletion_vectors:
        return
    if metadata.format.get("provider", "parquet") != "parquet":
        raise _incompatible_properties(
            ("delta.enableDeletionVectors",),
            "needs a table whose files are Parquet",
            "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        )
    if properties.symlink_format_manifest_enabled:
        raise _incompatible_properties(
            ("delta.enableDeletionVectors", "delta.compatibility.symlinkFormatManifest.enabled"),
            "can't both be true: readers of the manifest would see deleted rows",
            "DELTA_VIOLATE_TABLE_PROPERTY_VALIDATION_FAILED",
        )


def ensure_carried_names_free(schema: StructType, properties: TableProperties) -> None:
    """Refuse columns with the names that files use for ids and versions of moved rows.

    Raises:
        SchemaError: A column has such a name in the table or in its files (kind
            `DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED`, field `columns`; see spec 6.5).
    """
    carried = (
        properties.materialized_row_id_column,
        properties.materialized_row_commit_version_column,
    )
    reserved = {name.lower() for name in carried if name}
    used = tuple(
        item.name for item in schema if {item.name.lower(), item.physical_name.lower()} & reserved
    )
    if used:
        raise SchemaError(
            f"Columns have names that the table uses to track its rows: {listed(used)}. Nothing "
            "was written. Rename them.",
            kind="DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
            columns=used,
        )


def ensure_no_cdc_columns(metadata: Metadata, *, previous: Metadata | None = None) -> None:
    """Refuse columns with the names of the change data feed's own columns, if the feed is on.

    Raises:
        SchemaError: `RESERVED_CDC_COLUMNS_ON_WRITE` if the feed was on before, else
            `DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS`; field `columns`.
    """
    if not _has_change_data_feed(metadata):
        return
    schema = TableMetadata.of(metadata).declared_schema
    used = tuple(name for name in schema.names if name.lower() in CDC_RESERVED_NAMES)
    if not used:
        return
    was_on = previous is not None and _has_change_data_feed(previous)
    advice = "Rename them" if was_on else "Rename them, or leave delta.enableChangeDataFeed off"
    raise SchemaError(
        f"Columns have names that the change data feed reserves: {listed(used)}. Nothing was "
        f"written. {advice}.",
        kind=(
            "RESERVED_CDC_COLUMNS_ON_WRITE"
            if was_on
            else "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS"
        ),
        columns=used,
    )


def _has_change_data_feed(metadata: Metadata) -> bool:
    return TableMetadata.of(metadata).properties.enable_change_data_feed


def _is_illegal(name: str) -> bool:
    return any(character in name for character in ILLEGAL_NAME_CHARACTERS)


def _illegal_names(columns: tuple[str, ...], kind: str) -> SchemaError:
    return SchemaError(
        "Column names hold characters that Parquet readers do not accept (any of "
        f"{ILLEGAL_NAME_CHARACTERS!r}): {listed(columns)}. Nothing was written. Rename the "
        "columns.",
        kind=kind,
        columns=columns,
    )


def _is_partitionable(data_type: DataType) -> bool:
    if isinstance(data_type, PrimitiveType):
        return data_type.name not in ("variant", "void")
    return isinstance(data_type, DecimalType)


def _bad_identity(column: str, problem: str, kind: str) -> SchemaError:
    return SchemaError(
        f"The identity column {shown(column)} {problem}. Nothing was written.",
        kind=kind,
        column=column,
    )


def _incompatible_properties(names: tuple[str, ...], problem: str, kind: str) -> SchemaError:
    return SchemaError(
        f"The table properties {' and '.join(names)} {problem}. Nothing was written."
        if len(names) > 1
        else f"The table property {names[0]} {problem}. Nothing was written.",
        kind=kind,
        properties=names,
    )
