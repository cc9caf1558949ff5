"""Partition values: the log's text, typed Arrow columns, directory names (spec 9.4, 10.2)."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias
from urllib.parse import quote

import pyarrow as pa

from optimist.core.data.hive_names import HIVE_NULL, escape_hive
from optimist.core.data.wide_timestamps import (
    CYCLE_DAYS,
    date_text,
    days_since_1970,
    in_known_years,
    time_text,
)
from optimist.core.errors import SchemaError, TableError
from optimist.core.errors.foreign_text import quoted, shown
from optimist.core.errors.kinds import MALFORMED_PARTITION_VALUE
from optimist.core.predicates.constants import round_to_float32
from optimist.core.schema.arrow_types import to_arrow_type
from optimist.core.schema.types import DataType, DecimalType, PrimitiveType, StructField, StructType
from optimist.core.values.decimals import exactly_at_scale, is_in_range
from optimist.core.values.field_types import LARGEST_LONG, SMALLEST_LONG
from optimist.core.values.map_texts import values_of_key
from optimist.core.values.time_zones import instant, parse_zone, session_zone

__all__ = [
    "arrow_type_of",
    "canonical_partition_value",
    "parse_partition_value",
    "partition_column_of",
    "partition_columns_of",
    "partition_directory",
    "partition_scalar",
    "partition_schema",
    "serialize_partition_value",
    "serialize_partition_values",
    "uri_reference",
    "value_for_text",
]

Value: TypeAlias = bool | int | float | Decimal | str | bytes | dt.date | dt.datetime

_NOT_COMPARABLE = ("void", "variant")
_INTEGER_BITS = {"byte": 7, "short": 15, "integer": 31, "long": 63}
_INTEGER = re.compile(r"^[+-]?[0-9]+$")
# Python's own rules accept more: underscores, and digits of other scripts.
_NOT_FINITE = re.compile(r"^([+-]?inf(inity)?|nan)$", re.ASCII | re.IGNORECASE)
_NUMBER = re.compile(r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$")
_TIMESTAMP = re.compile(
    r"^([+-]?\d{4,6})-(\d{2})-(\d{2})"
    r"(?:[ T](\d{1,2}):(\d{2}):(\d{2})(?:\.(\d{1,9}))?)?(Z|[+-]\d{2}:\d{2})?$",
    re.ASCII,
)
_DATE = re.compile(r"^([+-]?\d{4,6})(?:-(\d{1,2}))?(?:-(\d{1,2}))?$", re.ASCII)
_COUNTED = {"date": pa.int32(), "timestamp": pa.int64(), "timestamp_ntz": pa.int64()}
_EPOCH = dt.datetime(1970, 1, 1)
_MICROS_PER_DAY = 86_400_000_000
_URI_SAFE = "/=-_.!~*'():@&+$,;"


def arrow_type_of(data_type: DataType) -> pa.DataType | None:
    """Return the Arrow type of a partition or statistics column, or None for other types."""
    if isinstance(data_type, PrimitiveType) and data_type.name in _NOT_COMPARABLE:
        return None
    return to_arrow_type(data_type) if isinstance(data_type, PrimitiveType | DecimalType) else None


def partition_schema(schema: StructType, partition_columns: Sequence[str]) -> StructType:
    """Return the fields of the partition columns, in the order of partitioning.

    Raises:
        SchemaError: The schema lacks one of them (kind `DELTA_PARTITION_COLUMN_NOT_FOUND`).
    """
    fields = []
    for name in partition_columns:
        field = schema.find(name)
        if field is None:
            raise SchemaError(
                f"The partition column {shown(name)} is not in the table's schema. The columns are "
                f"{shown(schema.names)}.",
                kind="DELTA_PARTITION_COLUMN_NOT_FOUND",
                column=name,
            )
        fields.append(field)
    return StructType(tuple(fields))


def partition_columns_of(
    files: pa.Table, partition_fields: StructType, *, zone: str = "UTC"
) -> pa.Table:
    """Return a files table's partition values as typed columns, by logical name, one row per file.

    Args:
        files: A table with a column `partitionValues`, a map from physical name to text.
        partition_fields: The fields of the partition columns (see `partition_schema`).
        zone: The time zone in which timestamps without one were written.

    Raises:
        TableError: A text does not fit its type (kind `OPTIMIST_MALFORMED_PARTITION_VALUE`).
    """
    columns = {
        field.name: partition_column_of(files, field, zone=zone) for field in partition_fields
    }
    return pa.table(columns) if columns else files.select([])


def partition_column_of(
    files: pa.Table, field: StructField, *, zone: str = "UTC"
) -> pa.ChunkedArray:
    """Return one column of `partition_columns_of`."""
    texts = values_of_key(files.column("partitionValues"), field.physical_name)
    encoded = texts.dictionary_encode().unify_dictionaries()
    target = arrow_type_of(field.data_type)
    if target is None:
        raise _malformed_value(field.name, str(field.data_type), field.data_type)
    if encoded.num_chunks == 0:
        return pa.chunked_array([], type=target)
    # Parse each distinct value once. A table has few of them.
    texts = encoded.chunk(0).dictionary.to_pylist()
    dictionary = _parse_column(texts, field.data_type, zone=zone, column=field.name)
    return pa.chunked_array(
        [dictionary.take(chunk.indices) for chunk in encoded.chunks], type=target
    )


def partition_scalar(
    text: str | None, data_type: DataType, *, zone: str = "UTC", column: str = ""
) -> pa.Scalar:
    """Return one value of any year in Arrow's form (see `parse_partition_value`)."""
    return _parse_column([text], data_type, zone=zone, column=column)[0]


def parse_partition_value(
    text: str | None, data_type: DataType, *, zone: str = "UTC", column: str = ""
) -> Value | None:
    """Return one value from its text, in Python's form. The empty string is null.

    Raises:
        TableError: The text does not fit the type (kind `OPTIMIST_MALFORMED_PARTITION_VALUE`).
        SchemaError: The value has a year that Python lacks (kind `OPTIMIST_VALUE_DOES_NOT_FIT`).
    """
    value = _parse_value(text, data_type, zone=zone, column=column)
    if not isinstance(value, int) or str(data_type) not in _COUNTED:
        return value
    try:
        if data_type == PrimitiveType("date"):
            return (_EPOCH + dt.timedelta(days=value)).date()
        time = _EPOCH + dt.timedelta(microseconds=value)
    except OverflowError:
        raise SchemaError(
            f"The partition column {shown(column or '?')} holds {quoted(text or '')}, which is "
            "outside the years 1 to 9999. This operation can't compare such values. Nothing was "
            "written. Leave such partitions out, or use a condition on the column.",
            kind="OPTIMIST_VALUE_DOES_NOT_FIT",
            column=column,
            value=text,
        ) from None
    return time.replace(tzinfo=dt.timezone.utc) if str(data_type) == "timestamp" else time


def _parse_column(
    texts: Sequence[str | None], data_type: DataType, *, zone: str, column: str
) -> pa.Array:
    values = [_parse_value(text, data_type, zone=zone, column=column) for text in texts]
    target = arrow_type_of(data_type)
    counted = _COUNTED.get(str(data_type))
    return pa.array(values, target) if counted is None else pa.array(values, counted).cast(target)


def _parse_value(text: str | None, data_type: DataType, *, zone: str, column: str) -> Value | None:
    """Parse like `parse_partition_value`, but count dates in days and times in microseconds."""
    if text is None or text == "":
        return None
    try:
        if isinstance(data_type, DecimalType):
            return _parse_decimal(text, data_type)
        if not isinstance(data_type, PrimitiveType):
            raise ValueError(f"a partition column can't be of type {data_type}")  # noqa: TRY004
        if data_type.name in _INTEGER_BITS:
            return _parse_integer(text, _INTEGER_BITS[data_type.name])
        if data_type.name == "timestamp":
            return _parse_time(text, session_zone(zone))
        return _PARSERS[data_type.name](text)
    except (ValueError, KeyError, ArithmeticError):
        raise _malformed_value(column, text, data_type) from None


def serialize_partition_value(value: Any, data_type: DataType, *, column: str = "") -> str | None:
    """Return the text of a value for `add.partitionValues`. The empty string becomes null.

    A date or a time may be a count of days or microseconds since 1970, as `value_for_text` gives
    it, and then have any year. Else a timestamp must be an aware datetime or a wall-clock time in
    UTC. Its text is in ISO form with `Z`.

    Raises:
        SchemaError: The value is bytes that are not UTF-8, which no text can represent (kind
            `OPTIMIST_VALUE_DOES_NOT_FIT`).
    """
    if value is None or value in ("", b""):
        return None
    if isinstance(value, int) and str(data_type) in _COUNTED:
        return _text_of_count(value, data_type)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):
        return _binary_text(value, column)
    if isinstance(value, dt.datetime):
        is_instant = data_type == PrimitiveType("timestamp")
        return _instant_text(value) if is_instant else _wall_clock_text(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, float):
        return _float_text(value)
    return value.isoformat() if isinstance(value, dt.date) else str(value)


def value_for_text(value: pa.Scalar) -> Any:
    """Return the value for `serialize_partition_value`: a date or a time of any year."""
    if pa.types.is_date32(value.type):
        return value.value
    return value.cast(pa.int64()).as_py() if pa.types.is_timestamp(value.type) else value.as_py()


def serialize_partition_values(
    row: Mapping[str, Any], partition_fields: StructType
) -> dict[str, str | None]:
    """Return `add.partitionValues` for one partition, by physical name, for every column.

    Args:
        row: Python values by logical name.
        partition_fields: The partition columns' fields, in order.

    Raises:
        SchemaError: See `serialize_partition_value`.
    """
    return {
        field.physical_name: serialize_partition_value(
            row.get(field.name), field.data_type, column=field.name
        )
        for field in partition_fields
    }


def canonical_partition_value(
    text: str | None, data_type: DataType, *, zone: str = "UTC"
) -> str | None:
    """Return one spelling for all texts of one value, for grouping and comparing (spec 10.2)."""
    value = _parse_value(text, data_type, zone=zone, column="")
    return serialize_partition_value(value, data_type)


def partition_directory(values: Mapping[str, str | None]) -> str:
    """Return `a=1/b=x` with Hive's escapes, from physical names and texts, or "" for none."""
    return "/".join(
        f"{escape_hive(name)}={HIVE_NULL if not text else escape_hive(text)}"
        for name, text in values.items()
    )


def uri_reference(relative_path: str) -> str:
    """Return a file's relative path as `add.path`: percent-encoded once more (spec 10.2, 13)."""
    return quote(relative_path, safe=_URI_SAFE)


def _malformed_value(column: str, text: str, data_type: DataType) -> TableError:
    return TableError(
        f"The log holds {quoted(text)} as the value of the partition column "
        f"{shown(column or '?')}, which is of type {shown(data_type)}. The commit that wrote it is "
        "damaged. Restore an older version of the table.",
        kind=MALFORMED_PARTITION_VALUE,
        column=column,
        value=text,
    )


def _parse_integer(text: str, bits: int) -> int:
    if not _INTEGER.match(text.strip()):
        raise ValueError(text)
    value = int(text)
    if not -(2**bits) <= value < 2**bits:
        raise ValueError(text)
    return value


def _parse_decimal(text: str, data_type: DecimalType) -> Decimal:
    if not _NUMBER.match(text.strip()):
        raise ValueError(text)
    value = exactly_at_scale(Decimal(text.strip()), data_type.scale)
    if not is_in_range(value, data_type.precision, data_type.scale):
        raise InvalidOperation(text)
    return value


def _parse_float(text: str) -> float:
    if not (_NUMBER.match(text.strip()) or _NOT_FINITE.match(text.strip())):
        raise ValueError(text)
    return float(text)


def _parse_date(text: str) -> int:
    match = _DATE.match(text.strip(" "))
    if match is None:
        raise ValueError(text)
    year, month, day = (int(part or 1) for part in match.groups())
    return days_since_1970(year, month, day)


def _parse_boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.strip().lower()]


def _parse_time(text: str, zone: dt.tzinfo) -> int:
    """Return the microseconds since 1970 of a time, read in the zone if it names none."""
    match = _TIMESTAMP.match(text.strip())
    if match is None:
        raise ValueError(text)
    year, month, day, hour, minute, second, fraction, own_zone = match.groups()
    known, cycles = in_known_years(int(year))
    micros = int((fraction or "0").ljust(6, "0")[:6])
    clock = dt.datetime(
        known, int(month), int(day), int(hour or 0), int(minute or 0), int(second or 0), micros
    )
    moment = instant(clock, zone if own_zone is None else parse_zone(own_zone))
    found = (moment.replace(tzinfo=None) - _EPOCH) // dt.timedelta(microseconds=1)
    found += cycles * CYCLE_DAYS * _MICROS_PER_DAY
    if not SMALLEST_LONG <= found <= LARGEST_LONG:
        raise ValueError(text)
    return found


def _parse_wall_clock(text: str) -> int:
    return _parse_time(text, dt.timezone.utc)


_PARSERS: dict[str, Callable[[str], Value]] = {
    "string": str,
    # The text may have fewer digits than the number: 1.1 means the float nearest to it.
    "float": lambda text: round_to_float32(_parse_float(text)),
    "double": _parse_float,
    "boolean": _parse_boolean,
    "binary": str.encode,
    "date": _parse_date,
    "timestamp_ntz": _parse_wall_clock,
}


def _binary_text(value: bytes, column: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise SchemaError(
            f"The partition column {shown(column or '?')} is binary, and the value "
            f"X'{shown(value.hex())}' is not UTF-8 text. The log holds partition values as text, "
            "so the value would be lost. Nothing was written. Partition by hex() of the column "
            "instead.",
            kind="OPTIMIST_VALUE_DOES_NOT_FIT",
            column=column,
            value=value.hex(),
        ) from None


def _text_of_count(count: int, data_type: DataType) -> str:
    if data_type == PrimitiveType("date"):
        return date_text(count)
    day, time = time_text(count)
    if data_type == PrimitiveType("timestamp"):
        return f"{day}T{time}Z"
    return f"{day} {time}".rstrip("0") if not time.endswith(".000000") else f"{day} {time[:8]}"


def _instant_text(value: dt.datetime) -> str:
    in_utc = value.astimezone(dt.timezone.utc) if value.tzinfo else value
    return in_utc.replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def _wall_clock_text(value: dt.datetime) -> str:
    text = value.replace(tzinfo=None).isoformat(sep=" ")
    return text.rstrip("0") if "." in text else text


def _float_text(value: float) -> str:
    """Return a float's text as Java prints it: `NaN`, `Infinity`."""
    names = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
    return names.get(repr(value), repr(value))
