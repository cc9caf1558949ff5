"""The values of a statement's parameters as SQL: what a Spark Connect client would send for them.

PySpark alone says what a Python value means: a datetime without a zone is of the zone in which
Python runs, say. So each value becomes the message that PySpark makes of it, and that becomes text.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from types import MappingProxyType
from typing import Any, TypeAlias

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from optimist.core.errors import UsageError
from optimist.core.predicates.constants import date_of_days, time_of_micros
from optimist.core.predicates.text import quote_identifier, quote_literal
from optimist.core.predicates.tree import Literal
from optimist.core.sql import Parameters
from optimist.spark.session.conf import is_on

__all__ = ["Arguments", "SentParameters"]

Arguments: TypeAlias = dict[str, Any] | list[Any]
_ESCAPED = "spark.sql.parser.escapedStringLiterals"
_OF_CONSTANTS = frozenset(
    ("array", "map", "struct", "named_struct", "map_from_arrays", "map_from_entries")
)
"""Functions that Spark allows in the value of a parameter."""
_SUFFIXES = {"byte": "Y", "short": "S", "integer": "", "long": "L"}
_LARGEST_INTEGER = 2**31


@dataclass(frozen=True, slots=True)
class SentParameters(Parameters):
    """The arguments of `spark.sql`, each read where its marker stands.

    Attributes:
        spark: The client's session.
        args: The values, by name or by place.
    """

    spark: SparkSession | None = None
    args: Arguments | None = None

    def sql_of(self, marker: str, place: int) -> str | None:
        """See `Parameters.sql_of`.

        Raises:
            UsageError: The value is a column that is not made of constants (kind
                `INVALID_SQL_ARG`).
            pyspark.errors.PySparkException: PySpark knows no constant of this Python type.
        """
        if isinstance(self.args, dict):
            found = {marker[1:]: self.args[marker[1:]]} if marker[1:] in self.args else {}
        else:
            values = self.args or []
            found = {marker: values[place]} if marker == "?" and place < len(values) else {}
        return next((self._sql(name, value) for name, value in found.items()), None)

    def _sql(self, name: str, value: object) -> str:
        client: Any = self.spark
        column: Any = sf.lit(value)
        text = _Texts(self._has_plain_texts).of(column.to_plan(client.client))
        if text is None:
            raise UsageError(
                f"The argument {name} is not a constant: {column}. Nothing was run. Give a value, "
                "or a column made of values by array, map or struct.",
                kind="INVALID_SQL_ARG",
                name=name,
            )
        return text

    def _has_plain_texts(self) -> bool:
        """Return whether a backslash in a text is nothing but that."""
        spark: Any = self.spark
        return is_on(spark, _ESCAPED)


@dataclass(frozen=True, slots=True)
class _Texts:
    has_plain_texts: Callable[[], bool]

    def of(self, message: Any) -> str | None:
        """Return a message `Expression` as SQL, or None if it is not made of constants."""
        kind = message.WhichOneof("expr_type")
        if kind == "literal":
            return self.constant(message.literal)
        if kind == "alias":
            return self.of(message.alias.expr)
        if kind == "cast":
            return self._cast(message.cast)
        if kind != "unresolved_function":
            return None
        call = message.unresolved_function
        name = call.function_name.lower()
        parts = [self._part(item) for item in call.arguments] if name in _OF_CONSTANTS else [None]
        texts = [part for part in parts if part is not None]
        return None if len(texts) < len(parts) else f"{name}({', '.join(texts)})"

    def constant(self, literal: Any) -> str | None:
        """Return a message `Literal` as SQL, or None for a type that Python has not."""
        kind = literal.WhichOneof("literal_type")
        value = getattr(literal, kind)
        if kind in _SUFFIXES:
            is_plain = kind == "long" and not -_LARGEST_INTEGER <= value < _LARGEST_INTEGER
            return f"{value}{'' if is_plain else _SUFFIXES[kind]}"
        if kind == "array":
            parts = [self.constant(item) for item in value.elements]
            texts = [part for part in parts if part is not None]
            return None if len(texts) < len(parts) else f"array({', '.join(texts)})"
        if kind == "string":
            return self._text(value)
        made = _CONSTANTS.get(kind)
        return None if made is None else made(value)

    def _part(self, message: Any) -> str | None:
        """Return an argument of a function, which in a struct may have a name."""
        text = self.of(message)
        if text is None or message.WhichOneof("expr_type") != "alias":
            return text
        return f"{text} AS {quote_identifier(message.alias.name[0])}"

    def _cast(self, cast: Any) -> str | None:
        from pyspark.sql.connect.types import proto_schema_to_pyspark_data_type

        inner = self.of(cast.expr)
        kind = cast.type_str or proto_schema_to_pyspark_data_type(cast.type).simpleString()
        return None if inner is None else f"CAST({inner} AS {kind})"

    def _text(self, value: str) -> str:
        is_escaped = bool({"'", "\\"} & set(value)) or "${" in value
        if is_escaped and self.has_plain_texts():
            return f"CAST(X'{value.encode().hex()}' AS STRING)"
        return quote_literal(value, "string")


def _shown(literal: Literal | None) -> str | None:
    return None if literal is None else str(literal)


def _interval(micros: int) -> str:
    sign, micros = ("-", -micros) if micros < 0 else ("", micros)
    seconds, rest = divmod(micros, 1_000_000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    return f"INTERVAL '{sign}{days} {hour:02}:{minute:02}:{second:02}.{rest:06}' DAY TO SECOND"


def _time(value: Any) -> str:
    moment = dt.datetime.min + dt.timedelta(microseconds=value.nano // 1000)
    return f"TIME '{moment.time().isoformat(timespec='microseconds')}'"


_CONSTANTS: Mapping[str, Callable[[Any], str | None]] = MappingProxyType(
    {
        "null": lambda _: "NULL",
        "boolean": lambda value: quote_literal(value, "boolean"),
        "binary": lambda value: quote_literal(value, "binary"),
        "float": lambda value: quote_literal(value, "float"),
        "double": lambda value: quote_literal(value, "double"),
        "decimal": lambda value: quote_literal(Decimal(value.value), "decimal"),
        "date": lambda value: _shown(date_of_days(value)),
        "timestamp": lambda value: _shown(time_of_micros(value, "timestamp")),
        "timestamp_ntz": lambda value: _shown(time_of_micros(value, "timestamp_ntz")),
        "day_time_interval": _interval,
        "time": _time,
    }
)
