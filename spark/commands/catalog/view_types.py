"""Types of the columns of views, as a Spark Connect server describes them, and casts to them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pyspark.sql import types as st

from optimist.spark.rows.row_shape import quoted

__all__ = ["ToldType", "is_up_cast", "plain_text", "type_text", "writes_decimals"]

ToldType: TypeAlias = Mapping[str, Any]
"""A type in the answer of DESCRIBE ... AS JSON."""

_INTEGERS = {"tinyint": 3, "smallint": 5, "int": 10, "bigint": 20}
"""Spark's integers, each with the digits of the decimal that holds it."""
_NUMBERS = (*_INTEGERS, "float", "double")
"""Spark's order of numbers: one that stands before another is cast to it in every mode."""
_TIMESTAMPS = ("timestamp", "timestamp_ltz", "timestamp_ntz")
_TEXTS = ("string", "char", "varchar")
_YEARS, _DAYS = ("year", "month"), ("day", "hour", "minute", "second")


def is_up_cast(found: st.DataType, told: ToldType) -> bool:
    """Return whether Spark casts a type to another one in each mode of a view.

    It is Spark's own rule (`UpCastRule`), but for what may be null within a type: this is not
    looked at, since a cast of it changes no value.

    Args:
        found: The type of the rows.
        told: The type of the view's column.
    """
    wanted = str(told["name"])
    if isinstance(found, st.StructType):
        fields = told["fields"] if wanted == "struct" else ()
        return len(found.fields) == len(fields) and all(
            is_up_cast(item.dataType, each["type"])
            for item, each in zip(found.fields, fields, strict=True)
        )
    if isinstance(found, st.ArrayType):
        return wanted == "array" and is_up_cast(found.elementType, told["element_type"])
    if isinstance(found, st.MapType):
        return (
            wanted == "map"
            and is_up_cast(found.keyType, told["key_type"])
            and is_up_cast(found.valueType, told["value_type"])
        )
    return _is_up_cast_of_value(found, told, wanted)


def _is_up_cast_of_value(found: st.DataType, told: ToldType, wanted: str) -> bool:
    """Return the same for a type without parts."""
    text = plain_text(found)
    if isinstance(found, st.NullType) or text == _plain(type_text(told)):
        return True
    if isinstance(found, st.VariantType):
        return False
    if wanted in _TEXTS:
        return True  # the server reads a view's text of a bounded length as one without
    if isinstance(found, st.DecimalType) or wanted == "decimal":
        return _is_up_cast_of_decimal(found, told, wanted)
    if text in _NUMBERS and wanted in _NUMBERS:
        return _NUMBERS.index(text) < _NUMBERS.index(wanted)
    if wanted == "interval":
        units = _DAYS if isinstance(found, st.DayTimeIntervalType) else _YEARS
        is_of_units = isinstance(found, (st.DayTimeIntervalType, st.YearMonthIntervalType))
        return is_of_units and told.get("start_unit") in units
    if wanted in _TIMESTAMPS:
        is_instant = text == "bigint" and wanted != "timestamp_ntz"
        return text in ("date", *_TIMESTAMPS) or is_instant
    return text == "timestamp" and wanted == "bigint"


def _is_up_cast_of_decimal(found: st.DataType, told: ToldType, wanted: str) -> bool:
    """Return the same for two types of which one is a decimal."""
    if wanted != "decimal":
        if not isinstance(found, st.DecimalType):
            return False
        return found.scale == 0 and found.precision < _INTEGERS.get(wanted, 0)
    if isinstance(found, st.DecimalType):
        digits, scale = found.precision, found.scale
    else:
        digits, scale = _INTEGERS.get(plain_text(found), 0), 0
    more_scale = int(told["scale"]) - scale
    return digits > 0 and int(told["precision"]) - digits >= more_scale >= 0


def writes_decimals(found: st.DataType, told: ToldType) -> bool:
    """Return whether an up-cast writes a decimal as text, which ANSI does in another way.

    Args:
        found: The type of the rows.
        told: The type of the view's column, to which it can be cast (`is_up_cast`).
    """
    if isinstance(found, st.StructType):
        pairs = zip(found.fields, told["fields"], strict=True)
        return any(writes_decimals(item.dataType, each["type"]) for item, each in pairs)
    if isinstance(found, st.ArrayType):
        return writes_decimals(found.elementType, told["element_type"])
    if isinstance(found, st.MapType):
        return writes_decimals(found.keyType, told["key_type"]) or writes_decimals(
            found.valueType, told["value_type"]
        )
    return isinstance(found, st.DecimalType) and told["name"] in _TEXTS


def plain_text(kind: st.DataType) -> str:
    """Return the text of a type without what only the way of writing adds."""
    return _plain(kind.simpleString())


def _plain(text: str) -> str:
    return text.lower().replace("`", "").replace(" ", "").replace("timestamp_ltz", "timestamp")


def type_text(told: ToldType) -> str:
    """Return a type as SQL, from the JSON by which Spark describes columns."""
    name = str(told["name"])
    if name == "struct":
        fields = (f"{quoted(each['name'])}: {type_text(each['type'])}" for each in told["fields"])
        return f"struct<{', '.join(fields)}>"
    if name == "array":
        return f"array<{type_text(told['element_type'])}>"
    if name == "map":
        return f"map<{type_text(told['key_type'])}, {type_text(told['value_type'])}>"
    if name == "decimal":
        return f"decimal({told['precision']}, {told['scale']})"
    if name in ("char", "varchar"):
        return "string"
    if name == "interval" and "start_unit" in told:
        start, end = told["start_unit"], told["end_unit"]
        return f"interval {start}" if start == end else f"interval {start} to {end}"
    if name == "string" and told.get("collation", "UTF8_BINARY") != "UTF8_BINARY":
        return f"string collate {told['collation']}"
    return name
