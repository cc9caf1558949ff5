"""The actions of a Delta log as frozen values; JSON in, JSON out (protocol "Actions", spec 8.4).

Field names are the protocol's in snake case. Nothing unknown is lost: `extra` keeps unknown fields
of a known action, and `UnknownAction` keeps an unknown action. Both are written out unchanged.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, cast

from optimist.core.errors import TableError, UsageError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.errors.kinds import MALFORMED_ACTION, MALFORMED_COMMIT
from optimist.core.errors.short_repr import short_repr
from optimist.core.values.field_types import Count, Int, Long, SmallCount, TableFormat, fitting
from optimist.core.values.foreign_json import parse_log_json
from optimist.core.values.unicode_text import ensure_unicode, is_unicode

__all__ = [
    "Action",
    "AddCDCFile",
    "AddFile",
    "CommitInfo",
    "DeletionVectorDescriptor",
    "DomainMetadata",
    "FileAction",
    "Metadata",
    "Protocol",
    "RemoveFile",
    "SetTransaction",
    "UnknownAction",
    "action_from_dict",
    "action_from_json",
    "action_to_dict",
    "action_to_json",
    "actions_from_bytes",
    "actions_to_bytes",
    "ensure_types",
]


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """The location of the deletion vector of a data file (spec 10.10)."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: SmallCount
    cardinality: Count
    offset: SmallCount | None = None
    max_row_index: Long | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def unique_id(self) -> str:
        """The id that distinguishes two vectors of one file, a part of a file's key (spec 5.6)."""
        base = self.storage_type + self.path_or_inline_dv
        return base if self.offset is None else f"{base}@{self.offset}"


@dataclass(frozen=True, slots=True)
class Protocol:
    """The reader and writer versions, and the features, that the table demands (spec 6)."""

    KEY: ClassVar[str] = "protocol"

    min_reader_version: Int
    min_writer_version: Int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class Metadata:
    """The table's schema, partitioning and properties; `created_time` is in epoch milliseconds."""

    KEY: ClassVar[str] = "metaData"

    id: str
    schema_string: str
    name: str | None = None
    description: str | None = None
    format: TableFormat = field(default_factory=lambda: {"provider": "parquet", "options": {}})
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: Long | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class AddFile:
    """A data file that is part of the table from this version on.

    `path` is a URI reference relative to the table. `partition_values` is keyed by physical names
    and has an entry (maybe None) for every partition column. `stats` is JSON text (spec 9.1).
    """

    KEY: ClassVar[str] = "add"

    path: str
    partition_values: Mapping[str, str | None]
    size: Count
    modification_time: Long
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    clustering_provider: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr

    def remove(self, deletion_timestamp_ms: int, *, data_change: bool = True) -> RemoveFile:
        """Return the remove action for this file, with its full metadata."""
        return RemoveFile(
            path=self.path,
            deletion_timestamp=deletion_timestamp_ms,
            data_change=data_change,
            extended_file_metadata=True,
            partition_values=self.partition_values,
            size=self.size,
            stats=self.stats,
            tags=self.tags,
            deletion_vector=self.deletion_vector,
            base_row_id=self.base_row_id,
            default_row_commit_version=self.default_row_commit_version,
        )


@dataclass(frozen=True, slots=True)
class RemoveFile:
    """A data file that left the table: a tombstone until vacuum (spec 5.6)."""

    KEY: ClassVar[str] = "remove"

    path: str
    deletion_timestamp: Long | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: Count | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: Long | None = None
    default_row_commit_version: Long | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """A file of row changes, for the change data feed only (spec 10.11)."""

    KEY: ClassVar[str] = "cdc"

    path: str
    partition_values: Mapping[str, str | None]
    size: Count
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """The progress of an application, which makes its writes idempotent (spec 2.6)."""

    KEY: ClassVar[str] = "txn"

    app_id: str
    version: Long
    last_updated: Long | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A named piece of configuration, kept apart from the table's metadata (spec 2.5)."""

    KEY: ClassVar[str] = "domainMetadata"

    domain: str
    configuration: str
    removed: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Who committed what, and how (spec 1.10). Values of `operation_parameters` are any JSON.

    Writers may put anything here. A value without its field's type stays in `extra` under its JSON
    key, as if the field were absent.
    """

    KEY: ClassVar[str] = "commitInfo"

    in_commit_timestamp: Long | None = None
    timestamp: Long | None = None
    user_id: str | None = None
    user_name: str | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, object] | None = None
    read_version: Long | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    data_change: bool | None = None
    operation_metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str | None] | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    __repr__ = short_repr


@dataclass(frozen=True, slots=True)
class UnknownAction:
    """An action that this engine does not know, kept unchanged."""

    key: str
    body: object


FileAction: TypeAlias = AddFile | RemoveFile | AddCDCFile
Action: TypeAlias = (
    FileAction | Protocol | Metadata | SetTransaction | DomainMetadata | CommitInfo | UnknownAction
)

_TYPES: dict[str, type[Any]] = {
    cls.KEY: cls
    for cls in (
        CommitInfo,
        Protocol,
        Metadata,
        AddFile,
        RemoveFile,
        AddCDCFile,
        SetTransaction,
        DomainMetadata,
    )
}
_REQUIRED_ABSENT_AS: dict[tuple[str, str], object] = {
    # Old writers leave these out, and the protocol says how to read the absence.
    ("add", "partitionValues"): {},
    ("cdc", "partitionValues"): {},
    ("add", "dataChange"): True,
    ("add", "modificationTime"): 0,
    ("domainMetadata", "configuration"): "",
    # Databricks' pipelines create tables like this, and a later commit names the columns.
    ("metaData", "schemaString"): '{"type":"struct","fields":[]}',
}


def action_from_json(line: str) -> Action:
    """Parse one line of a commit file.

    Raises:
        TableError: The line is not a JSON object with one action, or the action lacks a needed
            field (kind `OPTIMIST_MALFORMED_ACTION`).
    """
    try:
        parsed = parse_log_json(line)
    except ValueError as error:
        raise _malformed_action(line, f"it is not JSON ({shown(error)})") from None
    if not isinstance(parsed, dict):
        raise _malformed_action(line, "it is not a JSON object")
    return action_from_dict(parsed)


def action_from_dict(wrapped: Mapping[str, object]) -> Action:
    """Make an action from its parsed JSON (`{"add": {...}}` etc.), like `action_from_json`."""
    key, body = _single_entry(wrapped)
    cls = _TYPES.get(key)
    if cls is None:
        return UnknownAction(key, body)
    if not isinstance(body, dict):
        raise _malformed_action(wrapped, f"the value of {quoted(key)} is not a JSON object")
    return cast(Action, _decode(cls, key, body))


def action_to_json(action: Action) -> str:
    """Return the action as one line of a commit file, without the line end.

    Raises:
        UsageError: A value does not fit its field, or can't be written as JSON (kind
            `OPTIMIST_INVALID_ACTION`).
    """
    body = action_to_dict(action)
    try:
        return json.dumps(body, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError) as error:
        (kind,) = body
        raise UsageError(
            f"An action {kind!r} holds a value that JSON can't hold ({shown(error)}). Nothing was "
            "written. Correct the value at its source.",
            kind="OPTIMIST_INVALID_ACTION",
            action=kind,
        ) from None


def action_to_dict(action: Action) -> dict[str, object]:
    """Return the action as the JSON object of its line.

    Raises:
        UsageError: A value does not fit its field (kind `OPTIMIST_INVALID_ACTION`).
    """
    if isinstance(action, UnknownAction):
        return {action.key: action.body}
    return {action.KEY: _encode(action)}


def actions_to_bytes(actions: Sequence[Action]) -> bytes:
    """Return the content of a commit file with these actions.

    Raises:
        UsageError: A text holds half a character, which UTF-8 can't encode (kind
            `OPTIMIST_INVALID_TEXT`), or a value does not fit its field (`OPTIMIST_INVALID_ACTION`).
    """
    text = "".join(f"{action_to_json(action)}\n" for action in actions)
    ensure_unicode(text)
    return text.encode()


def actions_from_bytes(data: bytes, path: str) -> tuple[Action, ...]:
    """Return the actions of a commit file, in the order of its lines, without blank lines.

    Raises:
        TableError: The file is empty or a line is damaged (kind `OPTIMIST_MALFORMED_COMMIT`, field
            `path`).
    """
    lines = [line for line in data.split(b"\n") if line.strip()]
    if not lines:
        raise malformed_commit(path, "it is empty")
    try:
        return tuple(action_from_json(line.decode("utf-8")) for line in lines)
    except UnicodeDecodeError:
        raise malformed_commit(path, "it is not UTF-8 text") from None
    except TableError as error:
        raise malformed_commit(path, str(error.args[0])) from None


def malformed_commit(path: str, reason: str) -> TableError:
    """Return the error for a commit file that is torn, empty or otherwise unreadable."""
    return TableError(
        f"The commit file {shown(path)} can't be read: {reason}. It was damaged after it was "
        "written, or its writer does not write atomically. Restore the file from a backup, or "
        "read an older version.",
        kind=MALFORMED_COMMIT,
        path=path,
    )


def _malformed_action(line: object, reason: str) -> TableError:
    return TableError(f"the line {quoted(line)} is not an action: {reason}", kind=MALFORMED_ACTION)


def _single_entry(wrapped: Mapping[str, object]) -> tuple[str, object]:
    # A line holds one action. If it has several keys, readers must ignore those they do not know.
    present = [(key, body) for key, body in wrapped.items() if body is not None]
    known = [entry for entry in present if entry[0] in _TYPES]
    if len(present) == 1:
        return present[0]
    if len(known) == 1:
        return known[0]
    raise _malformed_action(wrapped, f"it holds {len(present)} actions instead of one")


def _camel(name: str) -> str:
    if name == "path_or_inline_dv":
        return "pathOrInlineDv"
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True, slots=True)
class _JsonField:
    """A field of an action, and the check of its values other than null."""

    attribute: str
    key: str
    is_required: bool
    accepts: Callable[[object], bool]


def _json_fields(cls: type[Any]) -> tuple[_JsonField, ...]:
    """Return all fields of an action except `extra`."""
    return tuple(
        _JsonField(item.name, _camel(item.name), _is_required(item), fitting(str(item.type)))
        for item in dataclasses.fields(cls)
        if item.name != "extra"
    )


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


_JSON_FIELDS: Mapping[type[Any], tuple[_JsonField, ...]] = {
    cls: _json_fields(cls) for cls in (*_TYPES.values(), DeletionVectorDescriptor)
}


_CHECKS: Mapping[str, Mapping[str, Callable[[object], bool]]] = {
    key: {item.key: item.accepts for item in _JSON_FIELDS[cls]} for key, cls in _TYPES.items()
}
_VECTOR_CHECKS = {item.key: item.accepts for item in _JSON_FIELDS[DeletionVectorDescriptor]}


def ensure_types(key: str, body: Mapping[str, object]) -> None:
    """Refuse the parsed body of an action if a protocol field has a value of another type.

    Use it for the many actions that never become an `AddFile` or a `RemoveFile`. Fields that are
    null or absent pass, except those without which nobody finds a deletion vector.

    Raises:
        TableError: A value has the wrong type, or a deletion vector lacks a part (kind
            `OPTIMIST_MALFORMED_ACTION`).
    """
    _ensure_each(key, body, _CHECKS[key])
    vector = body.get("deletionVector")
    if isinstance(vector, dict):
        _ensure_each("deletionVector", vector, _VECTOR_CHECKS)
        for item in _JSON_FIELDS[DeletionVectorDescriptor]:
            if item.is_required and vector.get(item.key) is None:
                raise _malformed_action(vector, f"'deletionVector' lacks {item.key!r}")


def _ensure_each(
    key: str, body: Mapping[str, object], checks: Mapping[str, Callable[[object], bool]]
) -> None:
    for name, value in body.items():
        if value is not None and name in checks and not checks[name](value):
            raise _malformed_action(body, f"{name!r} of {key!r} has the wrong type")


def _decode(cls: type[Any], key: str, body: dict[str, object]) -> Any:
    values: dict[str, Any] = {}
    rest = dict(body)
    for item in _JSON_FIELDS[cls]:
        value = rest.pop(item.key, None)
        if value is None:
            value = _REQUIRED_ABSENT_AS.get((key, item.key))
        if value is None:
            if item.is_required:
                raise _malformed_action(body, f"{key!r} lacks {item.key!r}")
            continue
        if not item.accepts(value):
            if cls is not CommitInfo:
                raise _malformed_action(body, f"{item.key!r} of {key!r} has the wrong type")
            rest[item.key] = value
            continue
        if item.key == "deletionVector" and isinstance(value, dict):
            value = _decode(DeletionVectorDescriptor, item.key, value)
        values[item.attribute] = tuple(value) if isinstance(value, list) else value
    if rest and cls is not CommitInfo and not is_unicode(_as_text(rest)):
        raise _malformed_action(body, f"a field of {key!r} holds half a character")
    return cls(**values, extra=rest)


def _as_text(value: object) -> str:
    # An action from a Parquet checkpoint may hold values that JSON does not have.
    return json.dumps(value, ensure_ascii=False, default=str)


def _unfit_value(action: object, field: str, value: object) -> UsageError:
    kind = getattr(type(action), "KEY", "deletionVector")
    return UsageError(
        f"The value {shown(value)} can't be the {field!r} of an action {kind!r}: the type of that "
        "field in a Delta log has no such value. Nothing was written. Correct the value at its "
        "source.",
        kind="OPTIMIST_INVALID_ACTION",
        action=kind,
        field=field,
    )


def _encode(value: Any) -> dict[str, object]:
    out: dict[str, object] = {}
    for field_of in _JSON_FIELDS[type(value)]:
        item = getattr(value, field_of.attribute)
        if item is None:
            continue
        if not field_of.accepts(item):
            if isinstance(item, str):
                ensure_unicode(item)
            raise _unfit_value(value, field_of.key, item)
        if isinstance(item, DeletionVectorDescriptor):
            item = _encode(item)
        elif isinstance(item, tuple):
            item = list(item)
        elif isinstance(item, Mapping):
            item = dict(item)
        out[field_of.key] = item
    out.update(value.extra)
    return out
