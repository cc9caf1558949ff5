"""The options of `write`, parsed once, and their values in the session's conf (spec 10.6).

An option that a call leaves out falls back to a conf of the session, if there is one for it:
`WRITE_OPTIONS` names it. Delta's confs are read by the engine (`EngineOptions`), because they hold
for every command; `session_value` reads Spark's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from pyspark.sql import Column, SparkSession

from optimist.core.errors import ArgumentTypeError, UsageError
from optimist.core.options.values import at_least, one_of, parse_bool, parse_whole
from optimist.core.secrets import Options
from optimist.spark.commands.writing.streamed_batch import StreamedBatch
from optimist.spark.session.call_options import CallOptions

__all__ = ["MODES", "WRITE_OPTIONS", "WriteOption", "WriteRequest", "session_value"]

MODES = ("append", "overwrite", "error", "errorifexists", "ignore")


def _parse_sql(value: object) -> str:
    if isinstance(value, str):
        return value
    raise ValueError("must be SQL text")


def _parse_flag(value: object) -> bool:
    return parse_bool(str(value))


def _parse_count(value: object) -> int:
    return at_least(0)(str(value))


def _parse_limit(value: object) -> int:
    """Parse a limit, where 0 means none: Spark takes anything below 1 for none."""
    return max(0, parse_whole(str(value)))


def _parse_column_names(value: object) -> tuple[str, ...]:
    names = tuple(part.strip() for part in _parse_sql(value).split(","))
    if not all(names):
        raise ValueError("must not contain empty column names")
    return names


def _parse_overwrite_mode(value: object) -> str:
    return one_of("static", "dynamic")(str(value))


@dataclass(frozen=True, slots=True)
class WriteOption:
    """One option of `write`.

    Attributes:
        parse: Parses the value of the caller or the conf.
        conf: The session's conf that applies if the caller gives no value.
    """

    parse: Callable[[object], Any]
    conf: str | None = None


_DELTA = "spark.databricks.delta."
WRITE_OPTIONS: Mapping[str, WriteOption] = {
    "mergeSchema": WriteOption(_parse_flag, _DELTA + "schema.autoMerge.enabled"),
    "overwriteSchema": WriteOption(_parse_flag),
    "replaceWhere": WriteOption(_parse_sql),
    "replaceOn": WriteOption(_parse_sql),
    "replaceUsing": WriteOption(_parse_column_names),
    "targetAlias": WriteOption(_parse_sql),
    "dataChange": WriteOption(_parse_flag),
    "partitionOverwriteMode": WriteOption(
        _parse_overwrite_mode, "spark.sql.sources.partitionOverwriteMode"
    ),
    "userMetadata": WriteOption(str, _DELTA + "commitInfo.userMetadata"),
    "txnAppId": WriteOption(str, _DELTA + "write.txnAppId"),
    "txnVersion": WriteOption(_parse_count, _DELTA + "write.txnVersion"),
    "optimizeWrite": WriteOption(_parse_flag, _DELTA + "optimizeWrite.enabled"),
    "maxRecordsPerFile": WriteOption(_parse_limit, "spark.sql.files.maxRecordsPerFile"),
    "compression": WriteOption(str, "spark.sql.parquet.compression.codec"),
}
"""The options of `write`, in Spark's spelling; callers may use any case."""


def session_value(spark: SparkSession, name: str) -> Any:
    """Return the session's value of an option that a call leaves out, or None.

    The value always parses, since Spark checks its own confs when they are set.
    """
    option = WRITE_OPTIONS[name]
    text = spark.conf.get(option.conf, None) if option.conf else None
    return None if text is None else option.parse(text)


@dataclass(frozen=True, slots=True)
class WriteRequest:
    """One write.

    Attributes:
        mode: One of `MODES`; `errorifexists` is kept as `error`.
        partition_by: The partition columns; None if the caller gives none.
        merge_schema: New columns may be added; None leaves it to the conf.
        overwrite_schema: Schema and partitioning may be replaced, but not if only some rows are
            replaced, as by `replace_where`.
        replace_where: Only matching rows are replaced; SQL text or a column. Like the next two, it
            has an effect only on an overwrite. In other modes only the history shows it, as in
            Delta.
        replace_on: SQL text: a row is replaced if the text is true for it and a new row.
        replace_using: Columns: a row is replaced if it equals a new row in them.
        target_alias: The name of the table in `replace_on`.
        is_rearrangement: The rows are the replaced rows in another arrangement, so that readers of
            changes see nothing (`dataChange` is false).
        is_dynamic: Only the written partitions are replaced; None leaves it to the session.
        user_metadata: Text for the history.
        txn: Application id and version, for writes that may be repeated.
        max_records_per_file: Split files that would hold more rows; 0 never splits, None leaves it
            to the session.
        optimize_write: Bring rows together first; see `DataWriter.optimizes`.
        compression: Parquet's codec; None leaves it to the table, and then to the session.
        filesystem_options: Keys that start with `fs.` or `dfs.`.
        properties: Properties (`delta.*`) of the table if the write creates it.
        saves_managed_table: For `saveAsTable` in mode overwrite, True if the catalog manages the
            table's files: the history names such a write as Delta does. None for other writes.
        batch: The stream's batch that is written; None for other writes.
        needs_table: The write may not create the table, as INSERT may not.
    """

    mode: str
    partition_by: tuple[str, ...] | None = None
    merge_schema: bool | None = None
    overwrite_schema: bool = False
    replace_where: str | Column | None = None
    replace_on: str | None = None
    replace_using: tuple[str, ...] | None = None
    target_alias: str | None = None
    is_rearrangement: bool = False
    is_dynamic: bool | None = None
    user_metadata: str | None = None
    txn: tuple[str, int] | None = None
    max_records_per_file: int | None = None
    optimize_write: bool | None = None
    compression: str | None = None
    filesystem_options: Options = field(default_factory=Options)
    properties: Mapping[str, str] = field(default_factory=dict)
    saves_managed_table: bool | None = None
    batch: StreamedBatch | None = None
    needs_table: bool = False

    @property
    def is_overwrite(self) -> bool:
        """True if the write replaces existing rows."""
        return self.mode == "overwrite"

    @property
    def replaces_matches(self) -> bool:
        """True if rows are replaced that match new ones, by `replaceOn` or `replaceUsing`."""
        return self.is_overwrite and self._names_matches

    @property
    def replaces_schema(self) -> bool:
        """True if schema and partitioning may be replaced, together with all rows."""
        return self.overwrite_schema and self.replace_where is None

    @property
    def _names_matches(self) -> bool:
        return self.replace_on is not None or self.replace_using is not None

    def replaces_partitions(self, spark: SparkSession) -> bool:
        """Check whether an overwrite replaces only the partitions that it writes.

        The call's options on the rows to replace win over the session's conf.
        """
        if not self.is_overwrite or self.replace_where is not None or self.replaces_matches:
            return False
        if self.is_dynamic is not None:
            return self.is_dynamic
        return bool(session_value(spark, "partitionOverwriteMode") == "dynamic")

    def replacing(self, condition: Column) -> WriteRequest:
        """Return this write as one that replaces the rows for which a condition is true.

        Raises:
            UsageError: Other options exclude this.
        """
        request = replace(self, replace_where=condition)
        _ensure_consistent(request)
        return request

    @classmethod
    def of(
        cls, mode: str, partition_by: str | Sequence[str] | None, options: Mapping[str, object]
    ) -> WriteRequest:
        """Parse the arguments of a call.

        Raises:
            UsageError: A mode or option is unknown, a value does not parse, or options exclude each
                other.
        """
        given = CallOptions.sort(options, tuple(WRITE_OPTIONS), takes_properties=True)
        values = {name: _parse_option(name, value) for name, value in given.named.items()}
        overwrite_mode = values.get("partitionOverwriteMode")
        request = cls(
            mode=_parse_mode(mode),
            partition_by=_parse_names(partition_by),
            merge_schema=values.get("mergeSchema"),
            overwrite_schema=values.get("overwriteSchema", False),
            replace_where=values.get("replaceWhere"),
            replace_on=values.get("replaceOn"),
            replace_using=values.get("replaceUsing"),
            target_alias=values.get("targetAlias"),
            is_rearrangement=not values.get("dataChange", True),
            is_dynamic=None if overwrite_mode is None else overwrite_mode == "dynamic",
            user_metadata=values.get("userMetadata"),
            txn=_pair_of_txn(values.get("txnAppId"), values.get("txnVersion")),
            max_records_per_file=values.get("maxRecordsPerFile"),
            optimize_write=values.get("optimizeWrite"),
            compression=values.get("compression"),
            filesystem_options=given.filesystem,
            properties=given.properties,
        )
        _ensure_consistent(request)
        return request


def _parse_option(name: str, value: object) -> Any:
    try:
        return WRITE_OPTIONS[name].parse(value)
    except ValueError as error:
        raise UsageError(
            f"The value of the option {name} does not parse: it {error}. Nothing was written.",
            kind="DELTA_ILLEGAL_OPTION",
            key=name,
        ) from None


def _parse_mode(mode: str) -> str:
    folded = mode.lower() if isinstance(mode, str) else ""
    if folded == "default":
        return "error"
    if folded not in MODES:
        raise UsageError(
            f"The mode {mode!r} is unknown. Nothing was written. Use one of {', '.join(MODES)}.",
            kind="OPTIMIST_UNKNOWN_MODE",
            mode=mode,
        )
    return "error" if folded == "errorifexists" else folded


def _parse_names(given: str | Sequence[str] | None) -> tuple[str, ...] | None:
    names = (given,) if isinstance(given, str) else given or ()
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise ArgumentTypeError(
            "The argument partitionBy must be the name of a column or a list of names, not "
            f"{given!r}. Nothing was written.",
            kind="OPTIMIST_INVALID_ARGUMENT_TYPE",
            argument="partitionBy",
        )
    return tuple(names) or None


def _pair_of_txn(app_id: str | None, version: int | None) -> tuple[str, int] | None:
    if app_id is not None and version is not None:
        return app_id, version
    if app_id is None and version is None:
        return None
    raise UsageError(
        "The options txnAppId and txnVersion work only together. Nothing was written. Give both or "
        "neither.",
        kind="DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
    )


def _ensure_consistent(request: WriteRequest) -> None:
    for is_given, contradictions in (
        (request.replace_where is not None, _WITH_REPLACE_WHERE),
        (request._names_matches, _WITH_MATCHES),
        (request.is_dynamic, _WITH_DYNAMIC_PARTITIONS),
        (request.is_rearrangement, _WITH_REARRANGEMENT),
    ):
        for is_there, reason, kind in contradictions if is_given else ():
            if is_there(request):
                raise UsageError(
                    f"{reason}. Nothing was written. Change one of the two.", kind=kind
                )


_Contradiction: TypeAlias = tuple[Callable[[WriteRequest], object], str, str]
_TOGETHER = "can't be combined"
_WITH_REPLACE_WHERE: tuple[_Contradiction, ...] = (
    (
        lambda request: request.is_overwrite and request.is_dynamic,
        f"The options replaceWhere and partitionOverwriteMode=dynamic {_TOGETHER}",
        "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
    ),
)
_WITH_MATCHES: tuple[_Contradiction, ...] = (
    (
        lambda request: request.replace_on is not None and request.replace_using is not None,
        f"The options replaceOn and replaceUsing {_TOGETHER}",
        "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
    ),
    (
        lambda request: request.replace_where is not None,
        "An overwrite by a filter, such as replaceWhere, and replaceOn or replaceUsing "
        f"{_TOGETHER}",
        "DELTA_OVERWRITE_BY_FILTER_INCOMPATIBLE_REPLACE_ON_OR_USING",
    ),
    (
        lambda request: request.is_dynamic is not None,
        f"The options partitionOverwriteMode and replaceOn or replaceUsing {_TOGETHER}",
        "DELTA_DYNAMIC_PARTITION_OVERWRITE_INCOMPATIBLE_REPLACE_ON_OR_USING",
    ),
    (
        lambda request: request.overwrite_schema or request.is_rearrangement,
        "The options replaceOn and replaceUsing replace rows by others, so overwriteSchema or "
        f"dataChange=false and one of them {_TOGETHER}",
        "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
    ),
)
_WITH_DYNAMIC_PARTITIONS: tuple[_Contradiction, ...] = (
    (
        lambda request: request.overwrite_schema,
        f"The options overwriteSchema and partitionOverwriteMode=dynamic {_TOGETHER}",
        "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
    ),
)
_WITH_REARRANGEMENT: tuple[_Contradiction, ...] = (
    (
        lambda request: not request.is_overwrite,
        "With dataChange=false rows take the place of the same rows, which needs mode overwrite",
        "DELTA_INCOMPATIBLE_DATAFRAME_OPTIONS",
    ),
)
