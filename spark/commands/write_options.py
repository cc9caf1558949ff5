"""What a call of `write` asks for, parsed once (spec 10.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from optimist.core.errors import UsageError
from optimist.core.options import EngineOptions, parse_bool

__all__ = ["KNOWN_OPTIONS", "MODES", "WriteRequest", "conf_txn"]

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")
_FS_PREFIXES = ("fs.", "dfs.")


def _text(value: object) -> str:
    return str(value)


def _flag(value: object) -> bool:
    return value if isinstance(value, bool) else parse_bool(str(value))


def _count(value: object) -> int:
    number = int(str(value))
    if number < 0:
        raise ValueError("must not be negative")
    return number


def _overwrite_mode(value: object) -> str:
    folded = str(value).lower()
    if folded not in ("static", "dynamic"):
        raise ValueError("must be static or dynamic")
    return folded


_PARSERS: Mapping[str, Callable[[object], Any]] = {
    "mergeSchema": _flag,
    "overwriteSchema": _flag,
    "replaceWhere": _text,
    "partitionOverwriteMode": _overwrite_mode,
    "userMetadata": _text,
    "txnAppId": _text,
    "txnVersion": _count,
    "maxRecordsPerFile": _count,
    "compression": _text,
}
KNOWN_OPTIONS = tuple(_PARSERS)
"""The options of `write`; Spark's spelling, any case."""


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write.

    Attributes:
        mode: One of `MODES`; `errorifexists` is kept as `error`.
        partition_by: The partition columns asked for; None if the caller says nothing.
        merge_schema: New columns may be added; None leaves it to the conf.
        overwrite_schema: Schema and partitioning may be replaced.
        replace_where: Only rows that match are replaced; SQL text.
        is_dynamic: Only the partitions that are written are replaced.
        user_metadata: Text for the history.
        txn: Application id and version, for writes that may be played again.
        max_records_per_file: Split files that would hold more rows.
        compression: Parquet's codec; None leaves it to the table, and then to the session.
        filesystem_options: Keys that start with `fs.` or `dfs.`.
    """

    mode: str
    partition_by: tuple[str, ...] | None = None
    merge_schema: bool | None = None
    overwrite_schema: bool = False
    replace_where: str | None = None
    is_dynamic: bool = False
    user_metadata: str | None = None
    txn: tuple[str, int] | None = None
    max_records_per_file: int | None = None
    compression: str | None = None
    filesystem_options: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_overwrite(self) -> bool:
        """Whether existing rows go."""
        return self.mode == "overwrite"

    @property
    def operation_mode(self) -> str:
        """The mode as commitInfo spells it."""
        return {"append": "Append", "overwrite": "Overwrite", "ignore": "Ignore"}.get(
            self.mode, "ErrorIfExists"
        )

    @classmethod
    def of(
        cls, mode: str, partition_by: str | Sequence[str] | None, options: Mapping[str, object]
    ) -> WriteRequest:
        """Parse the arguments of a call.

        Raises:
            UsageError: An unknown mode or option, a value that does not parse, or options that do
                not go together.
        """
        values = _parsed(options)
        request = cls(
            mode=_mode(mode),
            partition_by=(partition_by,) if isinstance(partition_by, str) else _tuple(partition_by),
            merge_schema=values.get("mergeSchema"),
            overwrite_schema=values.get("overwriteSchema", False),
            replace_where=values.get("replaceWhere"),
            is_dynamic=values.get("partitionOverwriteMode") == "dynamic",
            user_metadata=values.get("userMetadata"),
            txn=_txn(values),
            max_records_per_file=values.get("maxRecordsPerFile"),
            compression=values.get("compression"),
            filesystem_options={
                key: str(value) for key, value in options.items() if key.startswith(_FS_PREFIXES)
            },
        )
        _ensure_consistent(request)
        return request


def conf_txn(options: EngineOptions) -> tuple[str, int] | None:
    """`write.txnAppId` and `write.txnVersion` of the conf.

    Raises:
        UsageError: Only one of them is set (kind `DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS`).
    """
    return _both(options.write_txn_app_id, options.write_txn_version)


def _parsed(options: Mapping[str, object]) -> dict[str, Any]:
    by_folded = {name.lower(): name for name in KNOWN_OPTIONS}
    values: dict[str, Any] = {}
    for key, value in options.items():
        if key.startswith(_FS_PREFIXES) or value is None:
            continue
        name = by_folded.get(key.lower())
        if name is None:
            raise UsageError(
                f"Unknown option {key}. Known: {', '.join(KNOWN_OPTIONS)}, and keys that start "
                "with "
                f"{' or '.join(_FS_PREFIXES)}. Nothing was written.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=key,
                known=KNOWN_OPTIONS,
            )
        try:
            values[name] = _PARSERS[name](value)
        except ValueError as error:
            raise UsageError(
                f"The value {value!r} of the option {name} does not parse: {error}. Nothing was "
                "written.",
                kind="DELTA_ILLEGAL_OPTION",
                key=name,
            ) from None
    return values


def _mode(mode: str) -> str:
    folded = mode.lower() if isinstance(mode, str) else ""
    if folded == "default":
        return "error"
    if folded not in MODES:
        raise UsageError(
            f"Unknown mode {mode!r}. Known: {', '.join(MODES)}.",
            kind="OPTIMIST_UNKNOWN_MODE",
            mode=mode,
        )
    return "error" if folded == "errorifexists" else folded


def _tuple(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(names) if names else None


def _txn(values: Mapping[str, Any]) -> tuple[str, int] | None:
    return _both(values.get("txnAppId"), values.get("txnVersion"))


def _both(app_id: str | None, version: int | None) -> tuple[str, int] | None:
    if app_id is not None and version is not None:
        return app_id, version
    if app_id is None and version is None:
        return None
    raise UsageError(
        "txnAppId and txnVersion go together: give both or neither. Nothing was written.",
        kind="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
    )


def _ensure_consistent(request: WriteRequest) -> None:
    if request.replace_where is not None and not request.is_overwrite:
        raise _illegal("replaceWhere needs mode overwrite", "DELTA_REPLACE_WHERE_IN_APPEND")
    if request.replace_where is not None and request.is_dynamic:
        raise _illegal(
            "replaceWhere and partitionOverwriteMode=dynamic exclude each other",
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    if request.overwrite_schema and request.is_dynamic:
        raise _illegal(
            "overwriteSchema and partitionOverwriteMode=dynamic exclude each other",
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
        )
    if request.overwrite_schema and request.replace_where is not None:
        raise _illegal(
            "overwriteSchema replaces the whole table, replaceWhere a part of it",
            "DELTA_OVERWRITE_SCHEMA_WITH_REPLACE_WHERE",
        )


def _illegal(reason: str, kind: str) -> UsageError:
    return UsageError(f"{reason}. Nothing was written.", kind=kind)
