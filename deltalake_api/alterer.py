"""`TableAlterer`, the changes of a table except its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from optimist.core import ColumnChange, NewColumn, TableChanges
from optimist.core.commands.alter.alteration import Alteration
from optimist.core.errors import ProtocolError, UsageError
from optimist.core.errors.argument_types import ensure_kind, ensure_mapping, ensure_text, flag
from optimist.core.errors.foreign_text import listed
from optimist.core.protocol.actions import Protocol
from optimist.core.protocol.gates import with_features
from optimist.core.protocol.properties import FEATURE_PREFIX
from optimist.core.requests.columns import new_columns
from optimist.core.schema import types as core
from optimist.core.schema.types import GENERATION_EXPRESSION
from optimist.core.transaction.conflicts.operations import Operation
from optimist.core.transaction.optimistic import OptimisticTransaction
from optimist.deltalake.arguments import COMMIT_FIRST, call_of
from optimist.deltalake.dialect import stored_meaning
from optimist.deltalake.exceptions import errors_translated, not_supported
from optimist.deltalake.features import TableFeatures
from optimist.deltalake.handles import Call
from optimist.deltalake.schema import Field, StructType, core_schema
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties

if TYPE_CHECKING:
    from optimist.deltalake.table import DeltaTable

__all__ = ["TableAlterer"]

_Commit = CommitProperties | None
_Hooks = PostCommitHookProperties | None
_COMMENT = "comment"
_LONGEST_NAME = 255


class TableAlterer:
    """The methods of `DeltaTable.alter`, each of which makes one commit.

    All of them take the properties of the commit, by name or in the place where older callers of
    deltalake give them.

    Args:
        table: The table.
    """

    def __init__(self, table: DeltaTable) -> None:
        self.table = table

    def __repr__(self) -> str:
        return f"TableAlterer({self.table!r})"

    def add_feature(
        self,
        feature: TableFeatures | list[TableFeatures],
        allow_protocol_versions_increase: bool = False,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Add features to the table's protocol.

        Args:
            feature: One or several.
            allow_protocol_versions_increase: Whether the versions may rise, to 3 and 7.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.

        Raises:
            DeltaProtocolError: The versions would rise.
        """
        call = _call("add_feature", args, commit_properties, post_commithook_properties)
        given = feature if isinstance(feature, list) else [feature]
        with errors_translated():
            for item in given:
                ensure_kind(item, "feature", TableFeatures, "a TableFeatures, or a list of these")
            names = [item.in_protocol for item in given]
            if not flag(allow_protocol_versions_increase, "allow_protocol_versions_increase"):
                _ensure_versions_stay(self.table._log.protocol, names)
            properties = {FEATURE_PREFIX + name: "supported" for name in names}
            self._change(call, lambda alter: alter.set_properties(properties))

    def add_columns(
        self,
        fields: Field | list[Field],
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Add nullable columns, or fields to structs that the table has.

        Args:
            fields: One or several columns. A struct of the table's is given with its new fields,
                and may have those that are there.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("add_columns", args, commit_properties, post_commithook_properties)
        columns = core_schema(StructType([fields] if isinstance(fields, Field) else fields))
        if any(GENERATION_EXPRESSION in item.metadata for item in columns):
            raise not_supported("A generated column in add_columns", "Make a new table with it.")
        with errors_translated():
            found = list(_new_fields((), columns, self.table._log.snapshot().schema))
        if found:
            self._change(call, lambda alter: alter.add_columns(found))

    def add_constraint(
        self,
        constraints: dict[str, str],
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Add a CHECK constraint, which all rows of the table satisfy.

        Args:
            constraints: The name, with SQL over the columns of one row. Several are an error, since
                each is a commit of its own.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("add_constraint", args, commit_properties, post_commithook_properties)
        with errors_translated():
            ensure_mapping(constraints, "constraints", "a dict of a name and SQL")
        if len(constraints) != 1:
            raise ValueError("Give one constraint in a call: each is a commit of its own.")
        ((name, expression),) = constraints.items()
        log = self.table._log
        with errors_translated():
            condition = stored_meaning(expression, lambda: log.snapshot().schema, "constraints")
        self._change(call, lambda alter: alter.add_constraint(name, condition))

    def drop_constraint(
        self,
        name: str,
        raise_if_not_exists: bool = True,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Drop a CHECK constraint.

        Args:
            name: Its name.
            raise_if_not_exists: Whether it is an error if there is none.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("drop_constraint", args, commit_properties, post_commithook_properties)
        with errors_translated():
            may_lack = not flag(raise_if_not_exists, "raise_if_not_exists")
        self._change(call, lambda alter: alter.drop_constraint(name, if_exists=may_lack))

    def drop_column_not_null(
        self,
        column_name: str,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Let a column have nulls.

        Args:
            column_name: The column.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = Call(commit_properties, post_commithook_properties)
        with errors_translated():
            ensure_text(column_name, "column_name")
            found = self.table._log.snapshot().schema.find(column_name)
            if found is not None and found.nullable:
                raise _wrong("column_name", f"{column_name!r}, which may be null already")
        change = ColumnChange((column_name,), nullable=True)
        self._change(call, lambda alter: alter.change_columns([change]))

    def set_table_properties(
        self,
        properties: dict[str, str],
        raise_if_not_exists: bool = True,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Set table properties.

        Args:
            properties: The values by name.
            raise_if_not_exists: Whether a name of Delta's that is unknown is an error.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("set_table_properties", args, commit_properties, post_commithook_properties)
        with errors_translated():
            is_strict = flag(raise_if_not_exists, "raise_if_not_exists")
        options = {} if is_strict else {"allow_arbitrary_properties": True}
        self._change(call, lambda alter: alter.set_properties(properties), options)

    def set_table_name(
        self,
        name: str,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Set what the table calls itself. Its name in a catalog is another one.

        Args:
            name: The name, of 1 to 255 characters.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("set_table_name", args, commit_properties, post_commithook_properties)
        with errors_translated():
            ensure_text(name, "name")
            if not 1 <= len(name) <= _LONGEST_NAME:
                told = f"of {len(name)} characters, and may have 1 to {_LONGEST_NAME}"
                raise _wrong("name", told)

        def rename(txn: OptimisticTransaction) -> Alteration:
            done = Operation("UPDATE TABLE METADATA", {"name": name})
            return Alteration(done, replace(txn.metadata, name=name))

        self._change(call, lambda alter: alter.perform(rename))

    def set_table_description(
        self,
        description: str,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Set what the table is, for people.

        Args:
            description: The text.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("set_table_description", args, commit_properties, post_commithook_properties)
        self._change(call, lambda alter: alter.set_comment(description))

    def set_column_metadata(
        self,
        column: str,
        metadata: dict[str, str],
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> None:
        """Set the comment of a column; no other metadata can be set.

        Args:
            column: The column.
            metadata: The comment, under `comment`.
            *args: The properties of the commit, by position.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.
        """
        call = _call("set_column_metadata", args, commit_properties, post_commithook_properties)
        with errors_translated():
            ensure_mapping(metadata, "metadata", "a dict of names and texts")
        if set(metadata) != {_COMMENT}:
            raise not_supported("Metadata of a column but its comment", f"Set only {_COMMENT!r}.")
        change = ColumnChange((column,), comment=metadata[_COMMENT])
        self._change(call, lambda alter: alter.change_columns([change]))

    def _change(
        self,
        call: Call,
        change: Callable[[TableChanges], object],
        options: Mapping[str, object] | None = None,
    ) -> None:
        call.ensure_no_app_txn("alter")
        with errors_translated():
            change(call.handle(self.table._log, **(options or {})).alter)
        self.table._catch_up()


def _call(method: str, args: tuple[Any, ...], commit: _Commit, hooks: _Hooks) -> Call:
    return call_of(
        method, args, COMMIT_FIRST, commit_properties=commit, post_commithook_properties=hooks
    )


def _new_fields(
    parents: tuple[str, ...], given: core.StructType, known: core.StructType
) -> Iterator[NewColumn]:
    """Yield the columns, and the fields that structs of the table lack, with the way to each."""
    for item in given:
        path, found = (*parents, item.name), known.find(item.name)
        wanted, there = item.data_type, None if found is None else found.data_type
        if isinstance(wanted, core.StructType) and isinstance(there, core.StructType):
            yield from _new_fields(path, wanted, there)
        elif not parents or wanted != there:
            (column,) = new_columns([item])
            yield replace(column, column=path)


def _wrong(argument: str, told: str) -> UsageError:
    return UsageError(
        f"The argument {argument} is {told}. Nothing was written. Give another value.",
        kind="OPTIMIST_INVALID_ARGUMENT",
        argument=argument,
    )


def _ensure_versions_stay(protocol: Protocol, names: list[str]) -> None:
    after = with_features(protocol, names)
    if (after.min_reader_version, after.min_writer_version) > (
        protocol.min_reader_version,
        protocol.min_writer_version,
    ):
        raise ProtocolError(
            f"The features {listed(names)} need a protocol of reader {after.min_reader_version} "
            f"and writer {after.min_writer_version}. Nothing was written. Set "
            "allow_protocol_versions_increase=True.",
            kind="DELTA_FEATURES_REQUIRE_MANUAL_ENABLEMENT",
            features=tuple(names),
        )
