"""SQL that was written for deltalake, as SQL of Spark with the same meaning.

`quoting` translates the quotes. Here are the few operators and functions that both engines know,
and that choose other rows or give other values on Spark:

| | deltalake | Spark | here |
|---|---|---|---|
| `5 / 2` | 2 | 2.5 | `5 DIV 2` |
| `concat('a', NULL)` | `'a'` | null | `concat_ws('', 'a', NULL)` |
| `substr('abc', -1)` | a position before the text | `'c'` | refused |
| `left('abc', -1)`, `right('abc', -1)` | all but one | nothing | refused |
| `CAST(1.50 AS INT)` of a decimal column | 2 | 1 | refused |
| `CAST(1.5 AS STRING)`, and of times | `2020-01-01T00:00:00Z` | `2020-01-01 00:00:00` | refused |
| `isnan(NULL)` | null | false | `((NULL) = CAST('NaN' AS DOUBLE))` |
| `array_contains(array(NULL), 1)` | false | null | refused, except in `coalesce(..., false)` |
| `floor`, `ceil` of NaN | NaN | 0 | refused for floats, except in a cast to whole numbers |
| `round(1.005, 2)` of a double | 1.0 | 1.01 | refused |
| `initcap('o-b')` | `'O-B'` | `'O-b'` | refused |
| `regexp_replace`, `date_format`, `from_unixtime`, `to_date` with a format | | | refused |
| `list[1]` | the first element | the second | refused |
| `'a' 'b'` | `'a'` | `'ab'` | refused |
| `int '10'` | 10 | an error | `CAST('10' AS int)` |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress

import pyarrow as pa

from optimist.core.errors import OptimistError, SchemaError
from optimist.core.errors.argument_types import ensure_text
from optimist.core.errors.foreign_text import shown
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.tree import (
    Call,
    Cast,
    Constant,
    Expression,
    Name,
    Operation,
    Subscript,
    walk,
)
from optimist.core.local.value_building import ValueBuilder
from optimist.core.predicates.functions.value import INTEGERS
from optimist.core.predicates.parsing import literal_of
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.types import (
    DataType,
    DecimalType,
    MapType,
    PrimitiveType,
    StructField,
    StructType,
)
from optimist.deltalake.exceptions import not_supported
from optimist.deltalake.quoting import in_spark_sql, tokens

__all__ = ["Columns", "both_sides", "optional_same_meaning", "same_meaning", "stored_meaning"]

Columns = Callable[[], StructType]
"""Returns the columns that an expression may name. It is called only where types matter."""

_Edit = tuple[int, int, str]
_OTHERS = ("date_format", "from_unixtime", "initcap", "regexp_replace")
"""Functions with another result in deltalake."""
_PARTLY_OTHERS = ("array_contains", "ceil", "floor", "round", "to_date")
"""Functions with another result for some arguments."""
_SUSPECTS = re.compile(
    r"/|::|\[|\b(?:concat|isnan|substr|substring|left|right|cast|try_cast|"
    + "|".join((*_OTHERS, *_PARTLY_OTHERS))
    + r")\b",
    re.I,
)
_TYPE = re.compile(r"\b(tinyint|smallint|int|bigint|float|double|boolean)\s*$", re.I)
"""The name of a type before a text. For dates and times Spark has the same."""
_CONCAT = re.compile(r"concat\s*\(", re.I)
_WHOLE = tuple(map(PrimitiveType, INTEGERS))
_FRACTIONS = (PrimitiveType("float"), PrimitiveType("double"))
_SPELLED_TYPES = ("timestamp", "timestamp_ntz", "float", "double")
_INTEGER_NAMES = ("TINYINT", "SMALLINT", "INT", "BIGINT")
_OF_ONE_TYPE = (
    *("abs", "char_length", "character_length", "coalesce", "greatest", "ifnull", "least"),
    *("length", "mod", "nullif", "nvl", "octet_length"),
)
"""The functions whose results are whole numbers in both engines or in none."""


def same_meaning(sql: str, columns: Columns, argument: str = "predicate") -> str:
    """Return SQL of Spark with the meaning that SQL has in deltalake.

    Text that does not parse stays as it is, so that the engine says what is wrong with it.

    Args:
        sql: The text.
        columns: The columns that it may name.
        argument: The caller's argument, for the error.

    Raises:
        ArgumentTypeError: It is not text (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
        NotSupportedError: A part means something else on Spark, and is not translated.
    """
    ensure_text(sql, argument)
    _ensure_texts_apart(sql)
    text = in_spark_sql(_with_casts(sql))
    if not _SUSPECTS.search(text):
        return text
    while True:
        try:
            parts = list(walk(parse_expression(text)))
        except (NotSqlError, OptimistError, RecursionError):
            return text
        same = {id(part) for whole in parts for part in _same_within(whole)}
        _ensure_same_functions((part for part in parts if id(part) not in same), text, columns)
        # Inner parts first: the type of an outer part depends on theirs.
        edits = (_edit(part, text, columns) for part in reversed(parts))
        edit = next((each for each in edits if each is not None), None)
        if edit is None:
            return text
        start, end, new = edit
        text = text[:start] + new + text[end:]


def stored_meaning(sql: str, columns: Columns, argument: str) -> str:
    """Return SQL for the table's log, which every engine must read in the same way.

    Raises:
        NotSupportedError: deltalake reads a part in another way than Spark (see `same_meaning`).
    """
    ensure_text(sql, argument)
    found = same_meaning(sql, columns, argument)
    if found != in_spark_sql(sql):
        raise not_supported(
            f"{shown(sql)}, which deltalake and Spark read in different ways,",
            "Write it so that both read the same, with CAST(a AS DOUBLE) / b or concat_ws.",
        )
    return found


def optional_same_meaning(sql: str | None, columns: Columns) -> str | None:
    """Return SQL as `same_meaning` does, or None for None."""
    return None if sql is None else same_meaning(sql, columns)


def _with_casts(sql: str) -> str:
    """Write `int '10'`, a text with the name of a type, as a cast."""
    found, done = [], 0
    for token in tokens(sql):
        name = _TYPE.search(sql, done, token.start())
        if token.group()[0] == "'" and name is not None:
            found += [sql[done : name.start()], f"CAST({token.group()} AS {name.group(1)})"]
            done = token.end()
        else:
            found.append(sql[done : token.end()])
            done = token.end()
    return "".join([*found, sql[done:]])


def _ensure_texts_apart(sql: str) -> None:
    """Refuse two texts side by side, of which deltalake reads only the first one."""
    end = -1
    for token in tokens(sql):
        is_near = end >= 0 and not sql[end : token.start()].strip()
        is_comment = token.group()[0] in "-/"
        if is_near and token.group()[0] == "'":
            raise not_supported("Two texts side by side", "Join them with ||.")
        if not is_comment or is_near:
            end = token.end() if token.group()[0] == "'" or is_comment else -1


def _edit(part: Expression, text: str, columns: Columns) -> _Edit | None:
    """Return the change of the text that a part needs, or None."""
    if isinstance(part, Operation) and part.operator == "/":
        return _whole_division(part, text, columns)
    if isinstance(part, Cast):
        _ensure_same_cast(part, text, columns)
    if isinstance(part, Subscript) and not isinstance(
        _type_of(part.base, text, columns), MapType | StructType
    ):
        raise not_supported(
            f"{shown(_text_of(part, text))}, an index of an array,",
            "deltalake counts from 1, Spark from 0. Call element_at, which counts from 1.",
        )
    if isinstance(part, Call) and part.arguments:
        _ensure_same_positions(part, text)
        if part.name == "isnan":
            inner = _text_of(part.arguments[0], text)
            return part.start, part.end, f"(({inner}) = CAST('NaN' AS DOUBLE))"
        if part.name == "concat":
            found = _CONCAT.search(text, part.start, part.arguments[0].start)
            return None if found is None else (found.start(), found.end(), "concat_ws('', ")
    return None


def _whole_division(part: Operation, text: str, columns: Columns) -> _Edit | None:
    left, right = part.operands
    types = [_type_of(side, text, columns) for side in (left, right)]
    if any(isinstance(each, DecimalType) or each in _FRACTIONS for each in types):
        return None
    between = text[left.end : right.start]
    is_known = all(each in _WHOLE for each in types) and between.strip() == "/"
    if not is_known or not all(map(_has_one_type, (left, right))):
        raise not_supported(
            f"{shown(_text_of(part, text))}, whose sides may be whole numbers,",
            "Write a DIV b for the whole part of the quotient, or CAST(a AS DOUBLE) / b.",
        )
    slash = left.end + between.index("/")
    return slash, slash + 1, " DIV "


def _has_one_type(side: Expression) -> bool:
    calls = (each.name for each in walk(side) if isinstance(each, Call))
    return all(name in _OF_ONE_TYPE for name in calls)


def _same_within(whole: Expression) -> Iterator[Expression]:
    """Return the calls whose other result in deltalake the expression around them takes away."""
    if isinstance(whole, Call) and whole.name == "coalesce" and len(whole.arguments) == 2:
        part, other = whole.arguments
        if isinstance(other, Constant) and other.value is False and _calls(part, "array_contains"):
            yield part
    if isinstance(whole, Cast) and whole.target.name in _INTEGER_NAMES:
        yield from filter(lambda part: _calls(part, "ceil", "floor"), (whole.value,))


def _calls(part: Expression, *names: str) -> bool:
    return isinstance(part, Call) and part.name in names


def _ensure_same_functions(parts: Iterable[Expression], text: str, columns: Columns) -> None:
    for part in parts:
        if isinstance(part, Call) and part.arguments:
            remedy = _remedy(part, text, columns)
            if remedy is not None:
                raise not_supported(
                    f"{shown(_text_of(part, text))}, whose result is another one in deltalake,",
                    remedy,
                )


def _remedy(part: Call, text: str, columns: Columns) -> str | None:
    """Return what to do about a call with another result in deltalake, or None for the same."""
    of_fraction = part.name in _PARTLY_OTHERS and (
        _type_of(part.arguments[0], text, columns) in _FRACTIONS
    )
    if part.name == "array_contains":
        return "Write coalesce(array_contains(a, b), false), which is false for a null in the list."
    if part.name in ("ceil", "floor") and of_fraction:
        return f"Cast it to a whole number, CAST({part.name}(a) AS BIGINT)."
    has_more = len(part.arguments) > 1
    is_other = part.name in _OTHERS or (
        has_more and (part.name == "to_date" or (part.name == "round" and of_fraction))
    )
    return "Compute it before, in Python." if is_other else None


def _ensure_same_cast(part: Cast, text: str, columns: Columns) -> None:
    target = part.target
    if target.name == "STRING" and str(_type_of(part.value, text, columns)) in _SPELLED_TYPES:
        raise not_supported(
            f"{shown(_text_of(part, text))}, a text that deltalake spells in another way,",
            "Compare the value itself.",
        )
    if target.name not in (*_INTEGER_NAMES, "DECIMAL"):
        return
    if not any(isinstance(each, Name | Cast) for each in walk(part.value)):
        return
    inner = _type_of(part.value, text, columns)
    scale = target.parameters[1] if len(target.parameters) > 1 else 0
    if isinstance(inner, DecimalType) and inner.scale > scale:
        raise not_supported(
            f"{shown(_text_of(part, text))}, which cuts digits off a decimal,",
            "deltalake rounds, and Spark cuts. Call round or floor first.",
        )


def _ensure_same_positions(part: Call, text: str) -> None:
    least = {"substr": 1, "substring": 1, "left": 0, "right": 0}.get(part.name)
    position = literal_of(part.arguments[1]) if len(part.arguments) > 1 else None
    if least is None or position is None or not isinstance(position.value, int):
        return
    if position.value < least:
        raise not_supported(
            f"{shown(_text_of(part, text))}, with a number below {least},",
            "deltalake and Spark count such positions in different ways. Count from the beginning.",
        )


def _type_of(part: Expression, text: str, columns: Columns) -> DataType | None:
    """Return the type of a part, or None if only Spark knows it."""
    try:
        return ValueBuilder(text, columns()).sql(part).data_type
    except OptimistError:
        return None


def _text_of(part: Expression, text: str) -> str:
    return text[part.start : part.end]


def both_sides(aliases: tuple[str, str], source: pa.Schema, table: StructType) -> StructType:
    """Return what the SQL of a MERGE may name: both sides by their aliases, and their columns.

    Args:
        aliases: What SQL calls the source and the table.
        source: The source's columns. Those of types that no table holds are left out.
        table: The table's columns.
    """
    held = StructType(tuple(_held_columns(source)))
    found: dict[str, StructField] = {}
    for alias, side in zip(aliases, (held, table), strict=True):
        found.setdefault(alias.lower(), StructField(alias, side))
    for item in (*held, *table):
        found.setdefault(item.name.lower(), item)
    return StructType(tuple(found.values()))


def _held_columns(source: pa.Schema) -> Iterator[StructField]:
    for item in source:
        with suppress(SchemaError):
            yield from from_arrow_schema(pa.schema([item]))
