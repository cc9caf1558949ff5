"""The check that a stream may continue after changes of existing columns (spec 11.5).

After columns were renamed, dropped or made wider, a stream's rows have other columns, and their
reader must be ready for them. So a stream with a log of schemas continues only if its options or
the session's conf say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from optimist.core.errors import SchemaError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.options.engine import DELTA_PREFIX
from optimist.core.schema.type_widening import is_widening
from optimist.core.schema.types import ArrayType, DataType, MapType, StructType
from optimist.core.streams.options import ALWAYS, StreamOptions
from optimist.core.streams.schema_log import TrackedMetadata

__all__ = ["Allowed", "ensure_unblocked"]

_CONF = DELTA_PREFIX + "streaming."
_RENAME_OR_DROP = "allowSourceColumnRenameAndDrop"
_RENAME, _DROP, _WIDEN = (
    "allowSourceColumnRename",
    "allowSourceColumnDrop",
    "allowSourceColumnTypeChange",
)
_KINDS = {_RENAME: "renamed", _DROP: "dropped", _WIDEN: "made wider"}
_DELTA_S_NAMES = {
    (_RENAME,): "RENAME COLUMN",
    (_DROP,): "DROP COLUMN",
    (_WIDEN,): "TYPE WIDENING",
    (_RENAME, _DROP): "RENAME AND DROP COLUMN",
    (_RENAME, _WIDEN): "RENAME AND TYPE WIDENING",
    (_DROP, _WIDEN): "DROP AND TYPE WIDENING",
    (_RENAME, _DROP, _WIDEN): "RENAME, DROP AND TYPE WIDENING",
}


@dataclass(frozen=True, slots=True)
class Allowed:
    """The changes after which a stream may continue.

    Attributes:
        options: The stream's options.
        conf: The session's conf, or the conf of a follower's handle.
    """

    options: StreamOptions
    conf: Mapping[str, str]

    def lets(self, key: str, checkpoint: str, version: int) -> bool:
        """Tell whether a stream may continue after one kind of change.

        Args:
            key: The option that allows the kind.
            checkpoint: The stream's name in keys of the conf.
            version: The version of the change.
        """
        by_option = {
            _RENAME: self.options.allowed_rename,
            _DROP: self.options.allowed_drop,
            _WIDEN: self.options.allowed_type_change,
        }
        if by_option[key] in (ALWAYS, str(version)):
            return True
        names = (key,) if key == _WIDEN else (key, _RENAME_OR_DROP)
        return any(
            self._conf_value(name) == ALWAYS
            or self._conf_value(f"{name}.{checkpoint}") in (ALWAYS, str(version))
            for name in names
        )

    def _conf_value(self, name: str) -> str:
        return self.conf.get(_CONF + name, "").strip().lower()


def ensure_unblocked(
    before: TrackedMetadata, after: TrackedMetadata, allowed: Allowed, stream: str
) -> None:
    """Check that a stream may continue from one entry of its log of schemas to the next.

    Args:
        before: The entry by which it has read.
        after: The entry by which it will read.
        allowed: The changes after which it may continue.
        stream: The stream's name for keys of the conf.

    Raises:
        SchemaError: It may not continue (kind
            `DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION`, field `changes`), or
            a column now has another type (kind `DELTA_SCHEMA_CHANGED_WITH_VERSION`).
    """
    found: dict[str, list[str]] = {}
    for key, change in _compare_structs(before.schema, after.schema, ""):
        if not key:
            raise _other_type(change, after.version)
        found.setdefault(key, []).append(change)
    kinds = tuple(key for key in _KINDS if key in found)
    checkpoint = f"ckpt_{_java_hash(stream)}"
    blocked = [key for key in kinds if not allowed.lets(key, checkpoint, after.version)]
    if not blocked:
        return
    described = "; ".join(f"{_KINDS[key]}: {listed(found[key])}" for key in kinds)
    ways = " and ".join(f"the option {key}" for key in blocked)
    keys = " and ".join(f"{_CONF}{key}.{checkpoint}" for key in blocked)
    raise SchemaError(
        f"The stream's table has had non-additive schema changes ({_DELTA_S_NAMES[kinds]}) between "
        f"the versions {before.version} and {after.version}: {described}. Nothing was read. "
        "Check whether the stream's target can take the new columns. Then start it again with "
        f"{ways} set to {after.version}, for these changes, or to always; or with the key {keys} "
        "of the conf set so.",
        kind="DELTA_STREAMING_CANNOT_CONTINUE_PROCESSING_POST_SCHEMA_EVOLUTION",
        opType=_DELTA_S_NAMES[kinds],
        previousSchemaChangeVersion=before.version,
        currentSchemaChangeVersion=after.version,
        changes=described,
    )


def _other_type(change: str, version: int) -> SchemaError:
    return SchemaError(
        f"Detected schema change in version {version}: {change}, which makes it another column. "
        "Nothing was read. Start the query with a new checkpoint, from the version of the change "
        "or from the whole table.",
        kind="DELTA_SCHEMA_CHANGED_WITH_VERSION",
        version=version,
        retryable=False,
    )


def _compare_structs(before: StructType, after: StructType, path: str) -> Iterator[tuple[str, str]]:
    """Yield the changes of one struct, each with the option that allows it."""
    now = {item.physical_name: item for item in after}
    for item in before:
        name, same = f"{path}{item.name}", now.get(item.physical_name)
        if same is None:
            yield _DROP, shown(name)
            continue
        if same.name != item.name:
            yield _RENAME, f"{shown(name)} to {shown(path + same.name)}"
        yield from _compare_types(item.data_type, same.data_type, name)


def _compare_types(before: DataType, after: DataType, path: str) -> Iterator[tuple[str, str]]:
    if isinstance(before, StructType) and isinstance(after, StructType):
        yield from _compare_structs(before, after, f"{path}.")
    elif isinstance(before, ArrayType) and isinstance(after, ArrayType):
        yield from _compare_types(before.element_type, after.element_type, f"{path}.element")
    elif isinstance(before, MapType) and isinstance(after, MapType):
        yield from _compare_types(before.key_type, after.key_type, f"{path}.key")
        yield from _compare_types(before.value_type, after.value_type, f"{path}.value")
    elif before != after:
        change = f"{shown(path)} from {shown(before)} to {shown(after)}"
        is_wider = is_widening(before, after)
        yield (_WIDEN, change) if is_wider else ("", f"the type of {change}")


def _java_hash(text: str) -> int:
    """Compute Java's `String.hashCode`, by which keys of the conf name a checkpoint."""
    units = text.encode("utf-16-be", "surrogatepass")
    found = 0
    for index in range(0, len(units), 2):
        found = (31 * found + int.from_bytes(units[index : index + 2], "big")) & 0xFFFFFFFF
    return found - (1 << 32) if found >= 1 << 31 else found
