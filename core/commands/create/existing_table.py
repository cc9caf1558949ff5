"""The check that an existing table is the one that a CREATE TABLE defines (spec 10.6).

A catalog may give a new name to the path of an existing table. The table must then fit the
statement. Parts that the statement leaves out are taken from the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, quoted, shown
from optimist.core.protocol.clustering import clustering_columns
from optimist.core.protocol.gates import implied_features, requested_protocol
from optimist.core.protocol.properties import (
    PROPERTIES,
    UNKEPT_PROPERTIES,
    canonical_name,
    normalize_configuration,
)
from optimist.core.requests.table_definition import TableDefinition
from optimist.core.schema.types import StructField, StructType
from optimist.core.snapshot import Snapshot

__all__ = ["ensure_properties_held", "ensure_table_fits"]

_KEPT_BY_THE_ENGINE = ("delta.columnMapping.", "delta.identity.highWaterMark", "delta.typeChanges")
_MAPPING_MODE = "delta.columnMapping.mode"


def ensure_table_fits(
    snapshot: Snapshot, definition: TableDefinition, *, allow_arbitrary: bool
) -> None:
    """Refuse a definition that differs from the table.

    Without columns, the table's schema and partitioning are taken; without properties, the table's
    properties are taken. The engine's internal values, such as ids of columns, are not compared.

    Args:
        snapshot: The table.
        definition: The definition in a statement.
        allow_arbitrary: Whether to accept unknown `delta.*` properties.

    Raises:
        SchemaError: They differ: `DELTA_CREATE_TABLE_SCHEME_MISMATCH` (field `differences`),
            `DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING`,
            `DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING` or
            `DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY`.
        ConfigError: A property is not valid.
    """
    if definition.columns:
        _ensure_same_columns(snapshot, definition)
    if definition.properties:
        given = normalize_configuration(
            definition.properties,
            allow_arbitrary=allow_arbitrary,
            allow_constraints=True,
            enforce_retention=False,
        )
        _ensure_same_properties(snapshot, given)


def _ensure_same_columns(snapshot: Snapshot, definition: TableDefinition) -> None:
    wanted = definition.schema()
    differences = tuple(_compare_schemas(snapshot.schema, wanted))
    if differences:
        raise _differs_error(
            snapshot,
            "schema",
            listed(differences),
            "DELTA_CREATE_TABLE_SCHEME_MISMATCH",
            differences,
        )
    partitions = definition.partition_columns(snapshot.schema)
    if partitions != snapshot.partition_columns:
        found = f"{shown(list(snapshot.partition_columns))}, not {shown(list(partitions))}"
        raise _differs_error(
            snapshot, "partitioning", found, "DELTA_CREATE_TABLE_WITH_DIFFERENT_PARTITIONING"
        )
    known = clustering_columns(snapshot.domain_metadata, snapshot.schema)
    clustering = definition.clustering_paths
    if _fold_case(known) != _fold_case(clustering):
        names = [".".join(path) for path in known], [".".join(path) for path in clustering]
        found = f"{shown(names[0])}, not {shown(names[1])}"
        raise _differs_error(
            snapshot, "clustering", found, "DELTA_CREATE_TABLE_WITH_DIFFERENT_CLUSTERING"
        )


def ensure_properties_held(
    snapshot: Snapshot, given: Mapping[str, str], *, allow_arbitrary: bool
) -> None:
    """Refuse properties that a table does not have. It may have others.

    Args:
        snapshot: The table.
        given: The properties.
        allow_arbitrary: Whether to accept unknown `delta.*` properties.

    Raises:
        SchemaError: They differ (kind `DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY`).
        ConfigError: One is not valid.
    """
    known = normalize_configuration(given, allow_arbitrary=allow_arbitrary, enforce_retention=False)
    _ensure_same_properties(snapshot, known, may_have_others=True)


def _ensure_same_properties(
    snapshot: Snapshot, given: Mapping[str, str], *, may_have_others: bool = False
) -> None:
    missing = implied_features(requested_protocol(given)) - implied_features(snapshot.protocol)
    wanted, known = (
        _comparable_properties(given),
        _comparable_properties(snapshot.metadata.configuration),
    )
    if _MAPPING_MODE not in wanted:
        known.pop(_MAPPING_MODE, None)  # as in Delta, it may be left out
    compared = wanted.keys() if may_have_others else wanted.keys() | known.keys()
    names = {key for key in compared if wanted.get(key) != known.get(key)}
    differences = (
        *(
            f"{key} is {_shown_value(known, key)}, not {_shown_value(wanted, key)}"
            for key in sorted(names)
        ),
        *(f"it lacks the feature {name}" for name in sorted(missing)),
    )
    if differences:
        raise _differs_error(
            snapshot,
            "properties",
            listed(differences),
            "DELTA_CREATE_TABLE_WITH_DIFFERENT_PROPERTY",
            differences,
        )


def _compare_schemas(
    table: StructType, wanted: StructType, path: tuple[str, ...] = ()
) -> Iterator[str]:
    """Yield the differences between two schemas, ignoring the order of columns."""
    for item in wanted:
        if table.find(item.name) is None:
            yield f"the table has no column {'.'.join((*path, item.name))}"
    for item in table:
        name = ".".join((*path, item.name))
        other = wanted.find(item.name)
        if other is None:
            yield f"the table has a column {name} as well"
            continue
        yield from _compare_fields(name, item, other)


def _compare_fields(name: str, item: StructField, other: StructField) -> Iterator[str]:
    if item.nullable != other.nullable:
        yield f"{name} may {'' if item.nullable else 'not '}be null"
    if isinstance(item.data_type, StructType) and isinstance(other.data_type, StructType):
        yield from _compare_schemas(item.data_type, other.data_type, (name,))
    elif str(item.data_type) != str(other.data_type):
        yield f"{name} is of type {item.data_type}, not {other.data_type}"
    kept, given = _without_internal(item.metadata), _without_internal(other.metadata)
    if kept != given:
        yield f"{name} has the metadata {quoted(kept)}, not {quoted(given)}"


def _without_internal(metadata: Mapping[str, object]) -> dict[str, object]:
    return {k: v for k, v in metadata.items() if not k.startswith(_KEPT_BY_THE_ENGINE)}


def _comparable_properties(configuration: Mapping[str, str]) -> dict[str, str]:
    """Return the properties that a user sets and that stay in the log."""
    return {
        key: value
        for key, value in configuration.items()
        if not key.startswith("delta.feature.") and _is_compared(canonical_name(key))
    }


def _is_compared(name: str) -> bool:
    row = PROPERTIES.get(name)
    return row is None or (row.user_settable and name not in UNKEPT_PROPERTIES)


def _shown_value(configuration: Mapping[str, str], key: str) -> str:
    return quoted(configuration[key]) if key in configuration else "unset"


def _fold_case(paths: tuple[tuple[str, ...], ...]) -> list[tuple[str, ...]]:
    return [tuple(part.lower() for part in path) for path in paths]


def _differs_error(
    snapshot: Snapshot, what: str, found: str, kind: str, differences: tuple[str, ...] = ()
) -> SchemaError:
    return SchemaError(
        f"The table at {snapshot.table_path} has another {what} than the one given: {found}. "
        f"Nothing was written. Leave the {what} out to take the table as it is, or choose another "
        "location.",
        kind=kind,
        path=snapshot.table_path,
        differences=differences,
    )
