"""`TableChanges`: a caller's changes of a table, except its rows (`DeltaLog.alter`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from itertools import count
from typing import Protocol

from optimist.core.commands.alter import columns as column_commands
from optimist.core.commands.alter import constraints, domains, identity, layout, properties
from optimist.core.commands.alter.alteration import Change, alter
from optimist.core.commands.alter.column_changes import change_columns
from optimist.core.commands.alter.column_replacement import replace_columns
from optimist.core.commands.alter.row_checks import LocalRowChecks, RowChecks
from optimist.core.commands.alter.row_numbering import (
    asks_for_row_ids,
    ensure_can_be_numbered,
    number_files,
    support_row_ids,
)
from optimist.core.errors.argument_types import flag, whole_number
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.properties import FEATURE_PREFIX
from optimist.core.requests.arguments import at_least_one, ensure_text, several
from optimist.core.requests.arguments import names as name_list
from optimist.core.requests.columns import (
    ColumnChanges,
    ColumnName,
    NewColumns,
    column_changes,
    new_columns,
    path_of,
)
from optimist.core.requests.table_definition import properties_given
from optimist.core.runtime.budget import one_operation
from optimist.core.runtime.clock import Clock
from optimist.core.snapshot import Snapshot
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.core.transaction.result import CommitResult

__all__ = ["AlterableTable", "TableChanges"]


class AlterableTable(Protocol):
    """The handle of a table, such as `DeltaLog`."""

    @property
    def clock(self) -> Clock:
        """The source of time."""

    @property
    def options(self) -> EngineOptions:
        """The engine's options."""

    def snapshot(self) -> Snapshot:
        """Return the newest version, which must exist."""

    def start_transaction(self, snapshot: Snapshot | None = None) -> OptimisticTransaction:
        """Begin a new transaction."""


class TableChanges:
    """Changes of a table's schema, properties, constraints, layout and protocol (spec 10.9).

    Each method makes one commit on the newest version, even if it changes nothing. Switching row
    tracking on makes more commits before it. The commit conflicts with every other commit that
    changes the metadata meanwhile. With the option `conflict.retry` the method then tries again.
    Most of these commits also make writes conflict that others have begun before (spec 2.4).

    A column is given as SQL text (``a.`b c` ``) or as the names of its path, `("a", "b c")`. Parts
    of arrays and maps are called `element`, `key` and `value`.

    All methods raise:
        TableNotFoundError: The table does not exist.
        DeltaConcurrentModificationException: Another commit changed something that this one relies
            on.
        SchemaError, ConfigError, ProtocolError: The change is not allowed; nothing was written.
    """

    def __init__(self, log: AlterableTable, checks: RowChecks | None = None) -> None:
        self._log = log
        self._checks = checks or LocalRowChecks()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._log!r})"

    @property
    def clock(self) -> Clock:
        """The source of time."""
        return self._log.clock

    @property
    def options(self) -> EngineOptions:
        """The engine's options."""
        return self._log.options

    # Properties

    def set_properties(self, values: Mapping[str, str | bool | int]) -> CommitResult:
        """Set table properties (SET TBLPROPERTIES).

        The features that they need join the protocol.

        Args:
            values: The values by name. `comment` is the table's description, `delta.feature.<name>`
                with the value `supported` adds a feature, and `delta.columnMapping.mode` may go
                from `none` to `name`. `delta.enableRowTracking` first gives ids to all rows that
                have none, in commits of their own (docs/alter.md).
        """
        wanted = properties_given(values, "values")
        if asks_for_row_ids(wanted):
            self._number_rows(wanted)
        return self._commit_change(lambda txn: properties.set_properties(txn, wanted))

    def unset_properties(self, names: Iterable[str], *, if_exists: bool = False) -> CommitResult:
        """Remove table properties (UNSET TBLPROPERTIES), so that their defaults apply again.

        Args:
            names: The properties; `comment` is the table's description.
            if_exists: Whether to ignore properties that the table does not have.
        """
        wanted = name_list(names, "names")
        return self._commit_change(
            lambda txn: properties.unset_properties(txn, wanted, if_exists=if_exists)
        )

    def set_comment(self, comment: str | None) -> CommitResult:
        """Set the table's description, or remove it by None."""
        if comment is None:
            return self.unset_properties(["comment"], if_exists=True)
        ensure_text(comment, "comment")
        return self.set_properties({"comment": comment})

    # Columns

    def add_columns(self, columns: NewColumns) -> CommitResult:
        """Add nullable columns (ADD COLUMNS).

        Existing rows get null.

        Args:
            columns: A list of `NewColumn`, or columns in any form that `DeltaLog.create` takes.
        """
        wanted = new_columns(columns)
        return self._commit_change(lambda txn: column_commands.add_columns(txn, wanted))

    def rename_column(self, column: ColumnName, new_name: str) -> CommitResult:
        """Rename a column or a field of a struct (RENAME COLUMN).

        Column mapping must be on.

        Args:
            column: The column.
            new_name: Its new name, without the names of its parents and without back-ticks.
        """
        ensure_text(new_name, "new_name")
        return self._commit_change(
            lambda txn: column_commands.rename_column(txn, path_of(column), new_name)
        )

    def drop_columns(
        self, columns: Iterable[ColumnName], *, if_exists: bool = False
    ) -> CommitResult:
        """Drop columns or fields of structs (DROP COLUMNS).

        Column mapping must be on.

        Files keep the values. A column that is added later under the same name is a new one.

        Args:
            columns: The columns.
            if_exists: Whether to ignore columns that the table does not have.
        """
        wanted = at_least_one(columns, "columns")
        return self._commit_change(
            lambda txn: column_commands.drop_columns(
                txn, tuple(map(path_of, wanted)), if_exists=if_exists
            )
        )

    def change_columns(self, changes: ColumnChanges) -> CommitResult:
        """Change types, NOT NULL, comments, defaults and positions of columns (CHANGE COLUMN).

        A type can only become wider, and only with type widening. Small integers can become wider
        without it. NOT NULL and new types of columns are checked against the existing rows and
        rules.

        Args:
            changes: A list of `ColumnChange`; for types alone also `{"n": "bigint"}`, or pairs of
                name and type.
        """
        wanted = column_changes(changes)
        return self._commit_change(lambda txn: change_columns(txn, wanted, self._checks))

    def replace_columns(self, columns: NewColumns) -> CommitResult:
        """Give the table exactly these columns, in this order (REPLACE COLUMNS).

        Existing columns keep their values, and change as by `change_columns`. Other columns are
        added. If column mapping is on and no column is added, columns that are not listed are
        dropped. They are given as for `add_columns`.
        """
        wanted = new_columns(columns)
        return self._commit_change(lambda txn: replace_columns(txn, wanted, self._checks))

    # Constraints

    def add_constraint(self, name: str, expression: str) -> CommitResult:
        """Add a CHECK constraint (ADD CONSTRAINT), which all rows of the table satisfy.

        Args:
            name: Its name; case does not matter.
            expression: SQL over the columns of one row. A row violates it if it is false or null.

        Raises:
            SchemaError: A row violates it (kind `DELTA_NEW_CHECK_CONSTRAINT_VIOLATION`, field
                `values`).
            UsageError: Only Spark can evaluate it (kind `OPTIMIST_NEEDS_SPARK`).
        """
        ensure_text(name, "name")
        ensure_text(expression, "expression")
        return self._commit_change(
            lambda txn: constraints.add_constraint(txn, name, expression, self._checks)
        )

    def drop_constraint(self, name: str, *, if_exists: bool = False) -> CommitResult:
        """Drop a CHECK constraint (DROP CONSTRAINT).

        Args:
            name: Its name in any case.
            if_exists: Whether to accept that it does not exist.
        """
        ensure_text(name, "name")
        may_lack = flag(if_exists, "if_exists")
        return self._commit_change(
            lambda txn: constraints.drop_constraint(txn, name, if_exists=may_lack)
        )

    # Layout, domains, numbers

    def cluster_by(self, columns: Iterable[ColumnName]) -> CommitResult | None:
        """Cluster the table by up to four columns (CLUSTER BY), or by none.

        Returns:
            The commit; None if no column is given and the table was never clustered.
        """
        wanted = several(columns, "columns")
        return self.perform(lambda txn: layout.cluster_by(txn, tuple(map(path_of, wanted))))

    def set_domain(self, domain: str, configuration: str) -> CommitResult:
        """Keep a text in the table under a name, separate from its metadata.

        Commits that set the same domain conflict with each other, and with no other commits. The
        table needs the feature `domainMetadata`.
        """
        ensure_text(domain, "domain")
        ensure_text(configuration, "configuration")
        return self._commit_change(lambda _: domains.set_domain(domain, configuration))

    def remove_domain(self, domain: str) -> CommitResult:
        """Remove the text that is kept under a name."""
        ensure_text(domain, "domain")
        return self._commit_change(lambda txn: domains.remove_domain(txn, domain))

    def sync_identity(self, column: ColumnName) -> CommitResult:
        """Move an identity column's mark past all numbers in the rows (SYNC IDENTITY)."""
        return self._commit_change(
            lambda txn: identity.sync_identity(txn, path_of(column), self._checks)
        )

    # Protocol

    def upgrade_protocol(self, reader_version: int, writer_version: int) -> CommitResult:
        """Upgrade the protocol to these versions.

        It never removes features.
        """
        return self.set_properties(
            {
                "delta.minReaderVersion": str(whole_number(reader_version, "reader_version")),
                "delta.minWriterVersion": str(whole_number(writer_version, "writer_version")),
            }
        )

    def add_feature(self, name: str) -> CommitResult:
        """Add a table feature, and those that it requires, to the protocol."""
        ensure_text(name, "name")
        return self.set_properties({FEATURE_PREFIX + name: "supported"})

    @one_operation
    def perform(self, change: Change) -> CommitResult | None:
        """Run one change to its commit, or return None if there was nothing to do."""
        return alter(self._begin, change)

    def _number_rows(self, values: Mapping[str, str]) -> None:
        def check_properties(txn: OptimisticTransaction) -> None:
            ensure_can_be_numbered(txn, values)

        self.perform(check_properties)
        self.perform(support_row_ids)
        for batch in count():
            if self.perform(partial(number_files, batch=batch)) is None:
                return

    def _commit_change(self, change: Change) -> CommitResult:
        committed = self.perform(change)
        if committed is None:
            raise TypeError("ALTER returned no commit; this is a bug, please report it")
        return committed

    @property
    def _begin(self) -> Callable[[], OptimisticTransaction]:
        return lambda: self._log.start_transaction(self._log.snapshot())
