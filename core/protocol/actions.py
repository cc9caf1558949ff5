"""The actions of a Delta log as frozen values; JSON in, JSON out (protocol "Actions", spec 8.4).

Field names are the protocol's in snake case. What this version does not know is kept: unknown
fields of a
known action in `extra`, unknown actions as `UnknownAction`; both come out again as they went in.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias, cast

from optimist.core.errors import TableError

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
]


@dataclass(frozen=True, slots=True)
class DeletionVectorDescriptor:
    """Where the deleted rows of a data file are recorded (spec 10.10)."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None
    max_row_index: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    @property
    def unique_id(self) -> str:
        """Tells two vectors of one file apart; part of a logical file's key (spec 5.6)."""
        base = self.storage_type + self.path_or_inline_dv
        return base if self.offset is None else f"{base}@{self.offset}"


@dataclass(frozen=True, slots=True)
class Protocol:
    """Which reader and writer versions, and which features, the table demands (spec 6)."""

    KEY: ClassVar[str] = "protocol"

    min_reader_version: int
    min_writer_version: int
    reader_features: tuple[str, ...] | None = None
    writer_features: tuple[str, ...] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """Schema, partitioning and properties of the table. `created_time` is in epoch milliseconds."""

    KEY: ClassVar[str] = "metaData"

    id: str
    schema_string: str
    name: str | None = None
    description: str | None = None
    format: Mapping[str, object] = field(
        default_factory=lambda: {"provider": "parquet", "options": {}}
    )
    partition_columns: tuple[str, ...] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    created_time: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddFile:
    """A data file that is part of the table from this version on.

    `path` is a URI reference relative to the table; `partition_values` is keyed by physical names
    and has
    an entry (maybe None) for every partition column; `stats` is JSON text (spec 9.1).
    """

    KEY: ClassVar[str] = "add"

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)

    def remove(self, deletion_timestamp_ms: int, *, data_change: bool = True) -> RemoveFile:
        """The complete remove of this file (`extendedFileMetadata` true)."""
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
    """A data file that is no longer part of the table; a tombstone until vacuum (spec 5.6)."""

    KEY: ClassVar[str] = "remove"

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str | None] | None = None
    deletion_vector: DeletionVectorDescriptor | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AddCDCFile:
    """A file of row changes, for the change data feed only (spec 10.11)."""

    KEY: ClassVar[str] = "cdc"

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    data_change: bool = False
    tags: Mapping[str, str | None] | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SetTransaction:
    """How far an application has got: makes its writes idempotent (spec 2.6)."""

    KEY: ClassVar[str] = "txn"

    app_id: str
    version: int
    last_updated: int | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """Named configuration beside the table's metadata (spec 2.5)."""

    KEY: ClassVar[str] = "domainMetadata"

    domain: str
    configuration: str
    removed: bool = False
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """Who committed what, and how (spec 1.10). Values of `operation_parameters` are any JSON.

    Any writer may put anything here. A value that has not the type of its field stays in `extra`
    under its JSON key, as if the field were absent.
    """

    KEY: ClassVar[str] = "commitInfo"

    in_commit_timestamp: int | None = None
    timestamp: int | None = None
    user_id: str | None = None
    user_name: str | None = None
    operation: str | None = None
    operation_parameters: Mapping[str, object] | None = None
    read_version: int | None = None
    isolation_level: str | None = None
    is_blind_append: bool | None = None
    data_change: bool | None = None
    operation_metrics: Mapping[str, str] | None = None
    user_metadata: str | None = None
    tags: Mapping[str, str | None] | None = None
    engine_info: str | None = None
    txn_id: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnknownAction:
    """An action this version does not know, kept as it is."""

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
    # Old writers leave these out; the protocol says how to read the absence.
    ("add", "partitionValues"): {},
    ("cdc", "partitionValues"): {},
    ("add", "dataChange"): True,
    ("add", "modificationTime"): 0,
    ("domainMetadata", "configuration"): "",
}


def action_from_json(line: str) -> Action:
    """One line of a commit file as an action.

    Raises:
        TableError: The line is not a JSON object with one action, or the action lacks a needed
            field
            (kind `OPTIMIST_MALFORMED_ACTION`).
    """
    try:
        parsed = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise _malformed(line, f"it is no JSON ({error})") from None
    if not isinstance(parsed, dict):
        raise _malformed(line, "it is no JSON object")
    return action_from_dict(parsed)


def action_from_dict(wrapped: Mapping[str, object]) -> Action:
    """An action from its parsed JSON, `{"add": {...}}` and so on; see `action_from_json`."""
    key, body = _single_entry(wrapped)
    cls = _TYPES.get(key)
    if cls is None:
        return UnknownAction(key, body)
    if not isinstance(body, dict):
        raise _malformed(str(wrapped), f"the value of {key!r} is no JSON object")
    return cast(Action, _decode(cls, key, body))


def action_to_json(action: Action) -> str:
    """The action as one line of a commit file, without the line's end."""
    return json.dumps(action_to_dict(action), separators=(",", ":"), ensure_ascii=False)


def action_to_dict(action: Action) -> dict[str, object]:
    """The action as the JSON object of its line."""
    if isinstance(action, UnknownAction):
        return {action.key: action.body}
    return {action.KEY: _encode(action)}


def actions_to_bytes(actions: tuple[Action, ...] | list[Action]) -> bytes:
    """The content of a commit file."""
    return "".join(f"{action_to_json(action)}\n" for action in actions).encode()


def actions_from_bytes(data: bytes, path: str) -> tuple[Action, ...]:
    """The actions of a commit file, in the order of its lines; blank lines are passed over.

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
    """The error for a commit file that is torn, empty or otherwise unreadable."""
    return TableError(
        f"The commit file {path} can't be read: {reason}. It was damaged after it was written, or "
        "its writer does not write atomically; restore the file from a backup, or read an older "
        "version.",
        kind="OPTIMIST_MALFORMED_COMMIT",
        path=path,
    )


def _malformed(line: str, reason: str) -> TableError:
    shown = line if len(line) <= 80 else line[:80] + "..."
    return TableError(
        f"the line {shown!r} is no action: {reason}", kind="OPTIMIST_MALFORMED_ACTION"
    )


def _single_entry(wrapped: Mapping[str, object]) -> tuple[str, object]:
    # A line holds one action; of several keys the known one counts (unknown ones must be ignored).
    present = [(key, body) for key, body in wrapped.items() if body is not None]
    known = [entry for entry in present if entry[0] in _TYPES]
    if len(present) == 1:
        return present[0]
    if len(known) == 1:
        return known[0]
    raise _malformed(str(dict(wrapped)), f"it holds {len(present)} actions instead of one")


def _camel(name: str) -> str:
    if name == "path_or_inline_dv":
        return "pathOrInlineDv"
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


@dataclass(frozen=True, slots=True)
class _JsonField:
    """A field of an action, and what JSON must hold for it."""

    attribute: str
    key: str
    is_required: bool
    annotation: str

    def accepts(self, value: object) -> bool:
        """Whether a value that is not null is of the field's type."""
        annotation = self.annotation.removesuffix(" | None")
        expected = _JSON_TYPES[annotation.partition("[")[0]]
        if type(value) is not expected:
            return False
        if isinstance(value, list):
            return all(isinstance(item, str) for item in value)
        if isinstance(value, dict) and annotation == "Mapping[str, str]":
            return all(isinstance(item, str) for item in value.values())
        return True


_JSON_TYPES: Mapping[str, type[object]] = {
    "str": str,
    "int": int,
    "bool": bool,
    "Mapping": dict,
    "tuple": list,
    "DeletionVectorDescriptor": dict,
}


def _json_fields(cls: type[Any]) -> tuple[_JsonField, ...]:
    """The fields but `extra`."""
    return tuple(
        _JsonField(item.name, _camel(item.name), _is_required(item), str(item.type))
        for item in dataclasses.fields(cls)
        if item.name != "extra"
    )


def _is_required(item: dataclasses.Field[Any]) -> bool:
    return item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING


_JSON_FIELDS: Mapping[type[Any], tuple[_JsonField, ...]] = {
    cls: _json_fields(cls) for cls in (*_TYPES.values(), DeletionVectorDescriptor)
}


def _decode(cls: type[Any], key: str, body: dict[str, object]) -> Any:
    values: dict[str, Any] = {}
    rest = dict(body)
    for item in _JSON_FIELDS[cls]:
        value = rest.pop(item.key, None)
        if value is None:
            value = _REQUIRED_ABSENT_AS.get((key, item.key))
        if value is None:
            if item.is_required:
                raise _malformed(str(body), f"{key!r} lacks {item.key!r}")
            continue
        if not item.accepts(value):
            if cls is not CommitInfo:
                raise _malformed(str(body), f"{item.key!r} of {key!r} is not of its type")
            rest[item.key] = value
            continue
        if item.key == "deletionVector" and isinstance(value, dict):
            value = _decode(DeletionVectorDescriptor, item.key, value)
        values[item.attribute] = tuple(value) if isinstance(value, list) else value
    return cls(**values, extra=rest)


def _encode(value: Any) -> dict[str, object]:
    out: dict[str, object] = {}
    for field_of in _JSON_FIELDS[type(value)]:
        item = getattr(value, field_of.attribute)
        if item is None:
            continue
        if isinstance(item, DeletionVectorDescriptor):
            item = _encode(item)
        elif isinstance(item, tuple):
            item = list(item)
        elif isinstance(item, Mapping):
            item = dict(item)
        out[field_of.key] = item
    out.update(value.extra)
    return out
