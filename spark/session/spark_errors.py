"""Our errors as PySpark's, so that scripts which catch `AnalysisException` catch ours, too.

The core does not know Spark, so its classes do not derive from PySpark's. When an error leaves one
of our calls (`callback_errors`), it gets a class with two bases: its own class, which says what to
do about it, and PySpark's class for the error that Delta's jar raises there.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    IllegalArgumentException,
    ParseException,
    PySparkException,
    QueryContext,
    QueryContextType,
    UnsupportedOperationException,
)
from pyspark.errors.exceptions.captured import SQLQueryContext

from optimist.core.errors import (
    ArgumentTypeError,
    ConfigError,
    OptimistError,
    TableNotFoundError,
    UsageError,
)

__all__ = ["as_spark_error", "class_of_spark", "place_in_sql"]

_OWN_KIND = "OPTIMIST_"
_ANALYSED = (TableNotFoundError, UsageError)
"""Errors of a statement, a schema or a name, which Delta lets Spark's analyzer raise."""
_LISTED: Mapping[type[PySparkException], tuple[str, ...]] = MappingProxyType(
    {
        ParseException: ("PARSE_SYNTAX_ERROR",),
        ArithmeticException: ("DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",),
        AnalysisException: (
            "DELTA_MISSING_CHANGE_DATA",
            "DELTA_NO_COMMITS_FOUND",
            "DELTA_NO_RECREATABLE_HISTORY_FOUND",
            "DELTA_SCHEMA_CHANGE_SINCE_ANALYSIS",
            "DELTA_TIMESTAMP_EARLIER_THAN_COMMIT_RETENTION",
            "DELTA_TIMESTAMP_GREATER_THAN_COMMIT",
            "DELTA_VERSION_NOT_FOUND",
            "OPTIMIST_EMPTY_UPDATE",
            "OPTIMIST_INVALID_EXPRESSION",
            "OPTIMIST_INVALID_PREDICATE",
            "OPTIMIST_NOT_FOR_A_PATH",
            "OPTIMIST_NO_COLUMN_OF_THE_TABLE",
        ),
        IllegalArgumentException: (
            "DELTA_CDC_START_VERSION_AFTER_LATEST",
            "DELTA_DOMAIN_METADATA_NOT_SUPPORTED",
            "DELTA_DUPLICATE_SET_TRANSACTION",
            "DELTA_ILLEGAL_OPTION",
            "DELTA_INCONSISTENT_LOGSTORE_CONFS",
            "DELTA_INVALID_CDC_RANGE",
            "DELTA_INVALID_IDEMPOTENT_WRITES_OPTIONS",
            "DELTA_INVALID_ISOLATION_LEVEL",
            "DELTA_MODE_NOT_SUPPORTED",
            "DELTA_ONEOF_IN_TIMETRAVEL",
            "DELTA_OVERWRITE_SCHEMA_WITH_DYNAMIC_PARTITION_OVERWRITE",
            "DELTA_REPLACE_WHERE_WITH_DYNAMIC_PARTITION_OVERWRITE",
            "DELTA_TIME_TRAVEL_INVALID_BEGIN_VALUE",
            "OPTIMIST_CONTRADICTING_OPTIONS",
            "OPTIMIST_INVALID_OPTION",
            "OPTIMIST_INVALID_TABLE_PROPERTY",
            "OPTIMIST_NO_TABLE_PATH",
            "OPTIMIST_UNKNOWN_MODE",
            "OPTIMIST_UNKNOWN_OPTION",
            "OPTIMIST_UNSUPPORTED_OPTION",
        ),
        UnsupportedOperationException: (
            "DELTA_ADDING_DELETION_VECTORS_DISALLOWED",
            "DELTA_CANNOT_MODIFY_APPEND_ONLY",
            "DELTA_CANNOT_MODIFY_TABLE_PROPERTY",
            "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE_SCHEMA_CHANGE",
            "DELTA_ENABLING_COLUMN_MAPPING_DISALLOWED_WHEN_COLUMN_MAPPING_METADATA_ALREADY_EXISTS",
            "DELTA_IDENTITY_COLUMNS_UNSUPPORTED_DATA_TYPE",
            "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE",
            "DELTA_UNIVERSAL_FORMAT_VIOLATION",
            "DELTA_UNSUPPORTED_COLUMN_MAPPING_MODE_CHANGE",
            "OPTIMIST_CATALOG_NAMES_UNSUPPORTED",
            "OPTIMIST_NOT_BUILT_YET",
            "OPTIMIST_UNSUPPORTED_STATEMENT",
        ),
    }
)
_JVM_ONLY_KINDS = frozenset(
    {
        "DELTA_ADDING_COLUMN_WITH_INTERNAL_NAME_FAILED",
        "DELTA_ADDING_DELETION_VECTORS_WITH_TIGHT_BOUNDS_DISALLOWED",
        "DELTA_DELETION_VECTOR_MISSING_NUM_RECORDS",
        "DELTA_DUPLICATE_ACTIONS_FOUND",
        "DELTA_EXCEED_CHAR_VARCHAR_LIMIT",
        "DELTA_INVALID_PARTITIONING_SCHEMA",
        "DELTA_NOT_NULL_COLUMN_NOT_FOUND_IN_STRUCT",
        "DELTA_NOT_NULL_CONSTRAINT_VIOLATED",
        "DELTA_ROW_ID_ASSIGNMENT_WITHOUT_STATS",
        "DELTA_TABLE_ALREADY_CONTAINS_CDC_COLUMNS",
        "DELTA_UNSUPPORTED_FEATURES_IN_CONFIG",
        "DELTA_UNSUPPORTED_FEATURE_STATUS",
        "DELTA_VIOLATE_CONSTRAINT_WITH_VALUES",
        "RESERVED_CDC_COLUMNS_ON_WRITE",
    }
)
"""Kinds that Delta raises in Java classes for which PySpark has none."""
_BY_KIND = MappingProxyType({kind: cls for cls, kinds in _LISTED.items() for kind in kinds})


class _SparkErrorMethods:
    """The methods of PySpark's errors, for our errors."""

    kind: str
    fields: Mapping[str, object]
    args: tuple[Any, ...]
    _positions: tuple[QueryContext, ...] = ()

    def getCondition(self) -> str:
        """Return the kind."""
        return self.kind

    def getMessageParameters(self) -> dict[str, str]:
        """Return the fields as text."""
        return {name: str(value) for name, value in self.fields.items()}

    def getSqlState(self) -> None:
        """Return None, since the kind says more."""

    def getMessage(self) -> str:
        """Return the kind and the message."""
        return f"[{self.kind}] {self.args[0]}"

    def getBreakingChangeInfo(self) -> None:
        """Return None, since the cause is never a change of Spark."""

    def getQueryContext(self) -> list[QueryContext]:
        """Return the position in the SQL, if it is known."""
        return list(self._positions)

    def __str__(self) -> str:
        return "\n".join([self.getMessage(), *(position.summary() for position in self._positions)])

    def __reduce__(self) -> tuple[Any, ...]:
        error: Any = self
        rebuild, (_, *more) = OptimistError.__reduce__(error)
        return as_spark_error, (rebuild(_own_class(type(self)), *more),)


class _PositionInText(QueryContext):
    """The position at which a statement can't be parsed, by the fields of `syntax_error`."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        self._fields = fields

    def contextType(self) -> QueryContextType:
        """Return SQL."""
        return QueryContextType.SQL

    def objectType(self) -> str:
        """Return nothing, since the text is not a view's."""
        return ""

    def objectName(self) -> str:
        """Return nothing, as `objectType` does."""
        return ""

    def startIndex(self) -> int:
        """Return the index of the word's first character, counted from 0."""
        return int(self._fields["start"])

    def stopIndex(self) -> int:
        """Return the index of the word's last character.

        At the statement's end it is before the first.
        """
        return int(self._fields["stop"])

    def fragment(self) -> str:
        """Return the word, which is empty at the statement's end."""
        return str(self._fields["word"])

    def callSite(self) -> str:
        """Return nothing, since SQL has no call site."""
        return ""

    def summary(self) -> str:
        """Return the line with a mark below the position, as Spark shows it."""
        line, column = self._fields["line"], int(self._fields["column"]) - 1
        return f"== SQL (line {line}, position {column}) ==\n{self._fields['fragment']}"


def class_of_spark(error: OptimistError) -> type[PySparkException] | None:
    """Return PySpark's class for the error of Delta's jar, or None if PySpark has none."""
    if error.kind in _BY_KIND:
        return _BY_KIND[error.kind]
    is_of_delta = not error.kind.startswith(_OWN_KIND) and error.kind not in _JVM_ONLY_KINDS
    if is_of_delta and isinstance(error, _ANALYSED) and not isinstance(error, ArgumentTypeError):
        return AnalysisException
    return IllegalArgumentException if isinstance(error, ConfigError) else None


def as_spark_error(error: OptimistError, position: QueryContext | None = None) -> OptimistError:
    """Return the error as one of PySpark's, too, if PySpark has a class for it.

    Args:
        error: The error.
        position: Its position in the SQL, if that is known.
    """
    found: Any = class_of_spark(error)
    if isinstance(error, PySparkException) or found is None:
        return error
    ours: Any = type(error)
    if position is None and "word" in error.fields:
        position = _PositionInText(error.fields)
    spark_error: OptimistError = _make_class_of_both(ours, found)(
        error.args[0], kind=error.kind, **error.fields
    )
    if position is not None:
        spark_error._positions = (position,)  # type: ignore[attr-defined]
    return spark_error.with_traceback(error.__traceback__)


def place_in_sql(origin: Any) -> QueryContext | None:
    """Return the position of a plan's node in a statement, as Spark's own errors give it.

    Args:
        origin: The node's `Origin`, a Java object.
    """
    context = origin.context()
    is_known = str(context.getClass().getSimpleName()) == "SQLQueryContext" and context.isValid()
    return SQLQueryContext(context) if is_known else None


@cache
def _make_class_of_both(ours: type[Any], of_spark: type[Any]) -> type[Any]:
    return type(ours.__name__, (_SparkErrorMethods, ours, of_spark), {"__module__": __name__})


def _own_class(both: type[Any]) -> type[Any]:
    return next(cls for cls in both.__mro__ if cls.__module__ != __name__)
