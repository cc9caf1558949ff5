"""CREATE TABLE, REPLACE TABLE and CREATE OR REPLACE TABLE (spec 10.6).

`begin_creation` alone decides what a definition does, by what exists at the path:

| at the path | `create` | `create_if_not_exists` | `replace` | `create_or_replace` |
|---|---|---|---|---|
| nothing | make | make | error | make |
| files, no table | error | error | error | error |
| a table | error | keep | replace | replace |
| a table, and the name is new | keep if it fits | keep if it fits | error | keep if it fits |

`create_table` commits it. A write that makes or replaces a table, such as CREATE TABLE AS SELECT,
begins with the same function, and commits its files together with the result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from optimist.core.commands.alter.constant_sql import ensure_constant
from optimist.core.commands.alter.default_values import ensure_value_of
from optimist.core.commands.clustering import ensure_may_cluster_by
from optimist.core.commands.create.existing_table import ensure_table_fits
from optimist.core.commands.create.vacant_place import ensure_vacant, not_vacant
from optimist.core.commands.stored_sql import (
    canonical_schema,
    canonical_sql,
    ensure_constraint_sound,
)
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    SchemaError,
    TableNotFoundError,
    UsageError,
)
from optimist.core.errors.foreign_text import listed
from optimist.core.log.file_table import add_files
from optimist.core.protocol.actions import Action, AddFile, DomainMetadata, Metadata
from optimist.core.protocol.clustering import (
    clustering_columns,
    clustering_domain,
)
from optimist.core.protocol.domains import CLUSTERING_DOMAIN
from optimist.core.protocol.gates import supports
from optimist.core.protocol.properties import constraint_keys, normalize_configuration
from optimist.core.protocol.table_metadata import TableMetadata
from optimist.core.requests.table_definition import CreateMode, TableDefinition
from optimist.core.schema.generated_columns import ensure_functions_known, generation_expression
from optimist.core.schema.types import StructType, schema_to_json
from optimist.core.transaction.conflicts.operations import Operation, json_text
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = [
    "Creation",
    "begin_creation",
    "create_table",
    "nothing_to_replace",
    "table_exists",
    "table_parameters",
]

_CLUSTERING = "clustering"
_DEFAULT = "CURRENT_DEFAULT"


@dataclass(frozen=True, slots=True)
class Creation:
    """A table that a transaction makes or replaces, with its metadata already set.

    Attributes:
        definition: The requested table.
        txn: The transaction.
        as_select: Whether the commit adds rows.
        removed: The files of the replaced table.
        domains: The metadata domains that the commit sets or removes.
    """

    definition: TableDefinition
    txn: OptimisticTransaction
    as_select: bool = False
    removed: tuple[AddFile, ...] = ()
    domains: tuple[DomainMetadata, ...] = ()

    def actions(self, now_ms: int) -> tuple[Action, ...]:
        """Return the actions to commit besides metadata, protocol and new files."""
        return (*(add.remove(now_ms) for add in self.removed), *self.domains)

    def operation(self, user_metadata: str | None = None) -> Operation:
        """Return the operation for the history, with Delta's name (spec 8.1)."""
        live = {item.domain: item for item in self.domains if not item.removed}
        parameters = table_parameters(
            self.txn.metadata, live, is_managed=self.definition.is_managed
        )
        return Operation(self._operation_name(), parameters, user_metadata=user_metadata)

    def _operation_name(self) -> str:
        names = {
            CreateMode.REPLACE: "REPLACE TABLE",
            CreateMode.CREATE_OR_REPLACE: "CREATE OR REPLACE TABLE",
        }
        name = names.get(self.definition.mode, "CREATE TABLE")
        return f"{name} AS SELECT" if self.as_select else name


def table_parameters(
    metadata: Metadata, domains: Mapping[str, DomainMetadata], *, is_managed: bool
) -> dict[str, object]:
    """Return the history's parameters for a table that is made or replaced (spec 8.1).

    Args:
        metadata: The table's metadata.
        domains: Its metadata domains.
        is_managed: Whether a catalog manages the files.
    """
    clustered = clustering_columns(domains, TableMetadata.of(metadata).schema)
    return {
        "isManaged": str(is_managed).lower(),
        "description": metadata.description,
        "partitionBy": json_text(metadata.partition_columns),
        "clusterBy": json_text([".".join(path) for path in clustered]),
        "properties": json_text(metadata.configuration),
    }


def create_table(
    start: Callable[[], OptimisticTransaction],
    definition: TableDefinition,
    *,
    user_metadata: str | None = None,
) -> CommitResult | None:
    """Make or replace a table, in one commit.

    If several callers create one table, one wins. For the others, CREATE is a conflict, and CREATE
    IF NOT EXISTS accepts the winner's table.

    Args:
        start: Begins a transaction at the path; see `DeltaLog.start_transaction`.
        definition: The table, and what to do if one exists.
        user_metadata: A text for the history.

    Returns:
        The commit, or None if an existing table is kept.

    Raises:
        UsageError, TableNotFoundError, SchemaError: See `begin_creation`. Nothing was written.
        DeltaConcurrentModificationException: Another commit won. Nothing was written.
    """
    txn = start()
    creation = begin_creation(txn, definition)
    if creation is None:
        return None
    actions = creation.actions(txn.table.clock.now_ms())
    try:
        return txn.commit(actions, creation.operation(user_metadata))
    except DeltaConcurrentModificationException:
        if definition.mode is not CreateMode.CREATE_IF_NOT_EXISTS:
            raise
        begin_creation(start(), definition)  # the winner's table must fit
        return None


def begin_creation(
    txn: OptimisticTransaction, definition: TableDefinition, *, as_select: bool = False
) -> Creation | None:
    """Check a definition against the path's content, and set the transaction's metadata.

    The metadata are entirely new, with another id. A replaced table keeps its history, and its
    protocol, which only gains features. All its files count as read.

    Args:
        txn: A transaction that has just begun.
        definition: The table, and what to do if one exists.
        as_select: Whether the commit adds rows, so that the operation is ... AS SELECT.

    Returns:
        What to commit with the new files; None if an existing table is kept as it is.

    Raises:
        UsageError: A table exists already (`DELTA_TABLE_ALREADY_EXISTS`), or the path has other
            files (`DELTA_CREATE_TABLE_WITH_NON_EMPTY_LOCATION`).
        TableNotFoundError: The table to replace does not exist
            (`DELTA_CANNOT_REPLACE_MISSING_TABLE`).
        SchemaError: The definition is not valid, or the existing table does not fit it; see
            `ensure_table_fits`.
        ConfigError, ProtocolError: A property is not valid.
    """
    if txn.read_version < 0:
        return _begin_new(txn, definition, as_select=as_select)
    if definition.is_new_name:
        return _begin_under_new_name(txn, definition, as_select=as_select)
    if definition.mode.replaces:
        return _begin_replacement(txn, definition, as_select=as_select)
    if definition.mode is CreateMode.CREATE_IF_NOT_EXISTS:
        return None
    raise table_exists(txn)


def table_exists(txn: OptimisticTransaction) -> UsageError:
    """Return the error for a path that already has a table."""
    return UsageError(
        f"The table {txn.table.table_path} exists already. Nothing was written. Create it only if "
        "it does not exist, or replace it.",
        kind="DELTA_TABLE_ALREADY_EXISTS",
        path=txn.table.table_path,
    )


def nothing_to_replace(txn: OptimisticTransaction) -> TableNotFoundError:
    """Return the error for a path that has no table to replace."""
    return TableNotFoundError(
        f"There is no table at {txn.table.table_path} to replace. Nothing was written. Create it, "
        "or use the mode that creates a table or replaces it.",
        kind="DELTA_CANNOT_REPLACE_MISSING_TABLE",
        path=txn.table.table_path,
    )


def _begin_new(
    txn: OptimisticTransaction, definition: TableDefinition, *, as_select: bool
) -> Creation:
    """Begin a table at a path that has none."""
    if definition.mode is CreateMode.REPLACE:
        raise nothing_to_replace(txn)
    if definition.mode is CreateMode.CREATE_OR_REPLACE or as_select:
        _ensure_columns(definition)
    if as_select and definition.mode.replaces:
        txn.read_whole_table()  # a replacement is not a blind append, even of no rows
    else:
        ensure_vacant(txn.table)
    return Creation(definition, txn, as_select, domains=_set_metadata(txn, definition))


def _begin_replacement(
    txn: OptimisticTransaction, definition: TableDefinition, *, as_select: bool
) -> Creation:
    """Begin the replacement of a table: the same commit removes all its files."""
    _ensure_columns(definition)
    if definition.partition_by and supports(txn.protocol, _CLUSTERING):
        raise SchemaError(
            f"The table {txn.table.table_path} has the feature clustering, so a table that is "
            f"partitioned (by {listed(definition.partition_by)}) can't replace it. Nothing was "
            "written. Leave the partitioning out, or make a new table.",
            kind="DELTA_CLUSTERING_REPLACE_TABLE_WITH_PARTITIONED_TABLE",
            partition_columns=definition.partition_by,
        )
    removed = add_files(txn.filter_files())
    before = txn.snapshot.domain_metadata
    domains = _set_metadata(txn, definition)
    if not domains and CLUSTERING_DOMAIN in before:
        domains = (replace(before[CLUSTERING_DOMAIN], removed=True),)
    return Creation(definition, txn, as_select, removed, domains)


def _begin_under_new_name(
    txn: OptimisticTransaction, definition: TableDefinition, *, as_select: bool
) -> Creation | None:
    """Decide what a new catalog name for the path of an existing table does."""
    if as_select and definition.mode.replaces:
        return _begin_replacement(txn, definition, as_select=as_select)
    if definition.mode is CreateMode.REPLACE:
        raise nothing_to_replace(txn)
    if as_select or definition.is_managed:
        raise not_vacant(txn.table, "a Delta table")
    allow_arbitrary = txn.table.options.allow_arbitrary_properties
    ensure_table_fits(txn.snapshot, definition, allow_arbitrary=allow_arbitrary)
    return None


def _set_metadata(
    txn: OptimisticTransaction, definition: TableDefinition
) -> tuple[DomainMetadata, ...]:
    """Set the metadata, and return the domains that belong to them."""
    options, is_local = txn.table.options, definition.is_local
    schema = canonical_schema(definition.schema(), keeps_texts=not is_local)
    if definition.cluster_by and definition.partition_by:
        raise SchemaError(
            "Clustering and partitioning cannot both be specified. Nothing was written. Leave the "
            "partitioning out to get a clustered table.",
            kind="DELTA_CLUSTER_BY_WITH_PARTITIONED_BY",
        )
    metadata = Metadata(
        id="",
        schema_string=schema_to_json(schema),
        name=definition.name,
        description=definition.comment,
        partition_columns=definition.partition_columns(schema),
        configuration=_with_canonical_constraints(
            normalize_configuration(
                definition.properties,
                allow_arbitrary=options.allow_arbitrary_properties,
                allow_constraints=True,
                enforce_retention=options.enforce_retention_compatibility,
            ),
            schema,
            definition,
        ),
    )
    features = (_CLUSTERING,) if definition.cluster_by else ()
    txn.update_metadata_for_new_table(metadata, features=features)
    _ensure_column_sql_sound(schema, definition)
    if not definition.cluster_by:
        return ()
    columns = ensure_may_cluster_by(definition.clustering_paths, txn.metadata)
    return (clustering_domain(columns, TableMetadata.of(txn.metadata).schema),)


def _with_canonical_constraints(
    configuration: Mapping[str, str], schema: StructType, definition: TableDefinition
) -> dict[str, str]:
    """Return the properties with checked CHECK constraints.

    There are no rows to check.
    """
    found = dict(configuration)
    for name, key in constraint_keys(configuration).items():
        sql = canonical_sql(found[key], schema, keeps_texts=not definition.is_local)
        ensure_constraint_sound(name, sql, schema, is_local=definition.is_local)
        found[key] = sql
    return found


def _ensure_column_sql_sound(schema: StructType, definition: TableDefinition) -> None:
    """Refuse invalid defaults and unknown functions, if no Spark checks them later."""
    for item in schema:
        default, generated = item.metadata.get(_DEFAULT), generation_expression(item)
        if default is not None:
            ensure_constant(item.name, str(default))
            if definition.is_local:
                ensure_value_of(item.name, str(default), item)
        if generated is not None and definition.is_local:
            ensure_functions_known(item, generated)


def _ensure_columns(definition: TableDefinition) -> None:
    if not definition.columns:
        raise SchemaError(
            "The table's columns are not given. Nothing was written. Name them, or give rows to "
            "take them from.",
            kind="DELTA_SCHEMA_NOT_PROVIDED",
        )
