"""Texts of SQL expressions, usual and odd, over the columns of `odd_text_rows`; all from a seed."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal
from random import Random  # noqa: TID251  # each text comes from a printed seed

import pyarrow as pa

from optimist.core.expressions import functions

__all__ = ["KEYWORDS", "odd_text_rows", "odd_texts"]

UTC = dt.timezone.utc
STRUCT = pa.struct([("a", pa.int32()), ("B", pa.string())])
TYPES = {
    "i": pa.int32(),
    "l": pa.int64(),
    "y": pa.int8(),
    "d": pa.decimal128(10, 2),
    "w": pa.decimal128(38, 10),
    "f": pa.float32(),
    "g": pa.float64(),
    "s": pa.string(),
    "b": pa.bool_(),
    "dt": pa.date32(),
    "t": pa.timestamp("us", "UTC"),
    "n": pa.timestamp("us"),
    "x": pa.binary(),
    "st": STRUCT,
    "id": pa.int64(),
    "end": pa.int32(),
}
NAN, TOP = float("nan"), 2**31 - 1
ROWS: dict[str, list[object]] = {
    "i": [0, 1, -1, TOP, -TOP - 1, None],
    "l": [0, 2, -1, 2**63 - 1, -(2**63), None],
    "y": [0, 1, -128, 127, 5, None],
    "d": [Decimal("0.00"), Decimal("1.10"), Decimal("-1.50"), Decimal("99999999.99"), None, None],
    "w": [Decimal(0), Decimal("1.1"), Decimal("0.0000000001"), Decimal(10**27), None, Decimal(-1)],
    "f": [0.0, -0.0, NAN, 1.100000023841858, float("inf"), None],
    "g": [0.0, -0.0, NAN, 1.1, float("-inf"), None],
    "s": ["", "x", "1", "it's", "a%_\\b", None],
    "b": [True, False, None, True, False, None],
    "dt": [dt.date(1970, 1, 1), dt.date(2024, 2, 29), dt.date(1, 1, 1), None, None, None],
    "t": [dt.datetime(2024, 1, 1, tzinfo=UTC), dt.datetime(1970, 1, 1, tzinfo=UTC), *[None] * 4],
    "n": [dt.datetime(2024, 1, 1, 12, 30), dt.datetime(1970, 1, 1), *[None] * 4],
    "x": [b"", b"\x00", b"\xff\x01", b"abc", None, None],
    "st": [{"a": 1, "B": "x"}, {"a": None, "B": None}, None, {"a": -1, "B": ""}, None, None],
    "id": [1, 2, 3, 4, 5, 6],
    "end": [1, None, 0, -1, 2, 3],
}
_WORDS = """
    ADD AFTER ALL ALTER ALWAYS AND ANTI ANY ARRAY AS ASC AT BETWEEN BIGINT BOTH BY CASE CAST CHECK
    COLLATE COLUMN COMMENT CONSTRAINT CROSS CUBE CURRENT CURRENT_DATE CURRENT_TIMESTAMP
    CURRENT_TIME CURRENT_USER DATE DAY DEFAULT DELETE DESC DISTINCT DIV DOUBLE DROP ELSE END ESCAPE
    EXCEPT EXISTS EXTRACT FALSE FETCH FILTER FIRST FLOAT FOLLOWING FOR FROM FULL FUNCTION GLOB GROUP
    HAVING HOUR IDENTIFIER IF IGNORE ILIKE IN INNER INSERT INT INTERSECT INTERVAL INTO IS ISNULL
    JOIN LAST LATERAL LEADING LEFT LIKE LIMIT MAP MATCH MERGE MINUS MINUTE MONTH NATURAL NOT NOTNULL
    NULL NULLS OF OFFSET ON OR ORDER OUTER OVER OVERLAPS OVERLAY PARTITION PERCENT PIVOT PLACING
    POSITION PRIMARY QUALIFY QUARTER RANGE REGEXP REPLACE RESPECT RIGHT RLIKE ROW ROWS SELECT SEMI
    SESSION_USER SET SIMILAR SOME SOUNDS SQL STRING STRUCT SUBSTR SUBSTRING SYMMETRIC TABLE
    TABLESAMPLE THEN TIME TIMESTAMP TIMESTAMPADD TIMESTAMPDIFF TIMESTAMP_LTZ TIMESTAMP_NTZ TO
    TRAILING TRIM TRUE TRY_CAST UNBOUNDED UNION UNIQUE UNKNOWN UNPIVOT UPDATE USER USING VALUES VOID
    WEEK WHEN WHERE WINDOW WITH WITHIN X XOR YEAR ZONE
"""
KEYWORDS = tuple(_WORDS.split())
_FUNCTIONS = tuple(
    sorted(
        functions.ROW_FUNCTIONS
        | functions.AGGREGATES
        | functions.OF_THE_MOMENT
        | functions.NON_DETERMINISTIC
        | functions.GENERATORS
        | functions.WINDOWS
    )
)
_NUMBERS = (
    *("0", "1", "-1", "2.5", "1.10", "1e2", "1E-2", ".5", "1.", "-.5", "1e400", "128Y", "-128Y"),
    *("1L", "3S", "1.1F", "1.1D", "1.1BD", "1e3BD", "1e400D", "3.5e38F", "40000S", "1_000", "0x1"),
    *("2147483648", "9223372036854775808", "99999999999999999999L", "1d", "1x", "1e", "- 1", "+1"),
    "1" * 39,
    "1." + "1" * 38,
)
_TEXTS = (
    *("''", "'x'", "'1'", "'it''s'", r"'it\'s'", '"x"', "r'x'", "R'a\\b'", "'a' 'b'", "'x' \"y\""),
    *(r"'\u0041'", r"'a\%'", "'2024-01-01'", "'2024-01-01Z'", "'2024-01-01+05:00'", "E'x'", "N'x'"),
    *("'2024-01-01 UTC'", "'2024-01-01 00:00:00'", "'2024-01-01T00:00:00Z'", "'1970'", "' 1 '"),
    *("'2024-01-01 00:00:00+05:00'", "'true'", "'NaN'", "'x", "'1e400'", "'infinity'", "'today'"),
)
_TYPED = (
    *("DATE'2024-02-29'", "DATE '2024-13-01'", "date '1970'", "TIMESTAMP '2024-01-01 00:00:00'"),
    *("TIMESTAMP '2024-01-01Z'", "TIMESTAMP_NTZ '2024-01-01 12:30:00'", "X'ff01'", "x'0g'", "X'1'"),
    *("TIMESTAMP '2024-01-01 00:00:00Z'", "INTERVAL 1 DAY", "INTERVAL '1' YEAR", "interval 1"),
    *("INTERVAL '1'", "INTERVAL 'x' DAY", "INTERVAL '1-2' YEAR TO MONTH", "INTERVAL 1 DAY 2 HOURS"),
    *("NULL", "TRUE", "false", "CURRENT_DATE", "current_timestamp", "TIME '10:00:00'"),
)
_NAMES = (
    *("i", "l", "y", "d", "w", "f", "g", "s", "b", "dt", "t", "n", "x", "st", "id", "end", "I"),
    *("st.a", "ST.b", "`st`.`a`", "`i`", "(i)", "t.id", "q.i", "st.zz", "i.a", "nope", "`st.a`"),
    *("(st).a", "end.x", "st.a.b", "st['a']", "x -> x"),
)
_BINARY = (
    *("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>", "AND", "OR", "+", "-", "*", "/", "%"),
    *("DIV", "||", "&", "|", "^", "<<", ">>", ">>>", "LIKE", "ILIKE", "RLIKE", "NOT LIKE", "!<"),
    *("IS DISTINCT FROM", "IS NOT DISTINCT FROM", "&&", "~", "**", "//", "XOR", "SIMILAR TO", "^@"),
    *("NOT RLIKE", "REGEXP", "! LIKE", "IS", "IS NOT", "=>", "->", ":", "::", ".", ",", "= ANY"),
)
_SQL_TYPES = (
    *("INT", "BIGINT", "LONG", "TINYINT", "BYTE", "SHORT", "DOUBLE", "REAL", "FLOAT", "STRING"),
    *("DECIMAL(10,2)", "DEC", "NUMERIC(5)", "DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "BOOLEAN"),
    *("BINARY", "CHAR(3)", "VARCHAR(2)", "int8", "TEXT", "VARCHAR", "TIMESTAMP WITH TIME ZONE"),
    *("TIMESTAMP WITHOUT TIME ZONE", "ARRAY<INT>", "STRUCT<a:int>", "MAP<INT,INT>", "DECIMAL(39)"),
    *("STRING COLLATE nonsense", "STRING COLLATE unicode_CI_AI", "INTERVAL DAY"),
    *("INT(3)", "UNSIGNED", "INTEGER", "VOID", "DECIMAL(3,5)", "STRING COLLATE UTF8_BINARY"),
)


def odd_text_rows() -> pa.Table:
    """Rows with odd values of most types."""
    arrays = [pa.array(ROWS[name], data_type) for name, data_type in TYPES.items()]
    return pa.table(arrays, names=list(TYPES))


def odd_texts(count: int, seed: int) -> list[str]:
    """So many texts: each function and each keyword in some places first, then random ones."""
    chance = Random(seed)
    fixed = [*_of_functions(), *_of_keywords()]
    chance.shuffle(fixed)
    drawn = list(dict.fromkeys(fixed))[: count // 3]
    known = set(drawn)
    while len(drawn) < count:
        text = _likely(chance) if chance.random() < 0.5 else _condition(chance, 3)
        if chance.random() < 0.3:
            text = _harmed(chance, text)
        if text not in known:
            known.add(text)
            drawn.append(text)
    return drawn


def _of_functions() -> Iterator[str]:
    for name in _FUNCTIONS:
        for arguments in ("", "i", "s", "dt", "s, 1", "s, 'x'", "i, 1, 2", "DISTINCT i", "*"):
            yield f"{name}({arguments})"
        yield f"{name}(i) = 1"
        yield name
        yield f"{name.upper()}(s) IS NULL"


def _of_keywords() -> Iterator[str]:
    for word in KEYWORDS:
        for shape in ("{}", "{} = 1", "i {} 1", "i {}", "{} i", "{}(i)", "i = 1 {}", "(i {})"):
            yield shape.format(word)
        yield f"i = 1 AND {word.lower()} > 0"
        yield f"`{word}` = 1"
        yield f"s {word} 'x'"


def _condition(chance: Random, depth: int) -> str:
    kind = chance.randrange(12)
    if depth == 0 or kind == 0:
        return _value(chance, 0)
    left, right = _value(chance, depth - 1), _value(chance, depth - 1)
    if kind < 5:
        return f"{left} {chance.choice(_BINARY)} {right}"
    if kind == 5:
        listed = ", ".join(_value(chance, 0) for _ in range(chance.randrange(4)))
        return f"{left} {chance.choice(('IN', 'NOT IN', 'in', '! IN'))} ({listed})"
    if kind == 6:
        between = chance.choice(("BETWEEN", "NOT BETWEEN", "BETWEEN SYMMETRIC"))
        return f"{left} {between} {right} AND {_value(chance, 0)}"
    if kind == 7:
        tail = chance.choice(
            ("IS NULL", "IS NOT NULL", "IS TRUE", "IS NOT FALSE", "IS UNKNOWN", "ISNULL", "NOTNULL")
        )
        return f"{left} {tail}"
    if kind == 8:
        return f"{chance.choice(('NOT', '!', 'NOT NOT', '~'))} {_condition(chance, depth - 1)}"
    if kind == 9:
        pattern = f"{left} LIKE {chance.choice(_TEXTS)} ESCAPE {chance.choice(_TEXTS)}"
        return chance.choice((pattern, f"{left} LIKE ANY ('x', 's%')", f"{left} LIKE ALL ()"))
    joined = chance.choice(("AND", "OR", "and", "Or"))
    return f"({_condition(chance, depth - 1)}) {joined} {_condition(chance, depth - 1)}"


# Columns, and constants that Spark compares with them.
_ALIKE = (
    (
        ("i", "l", "y", "d", "w", "f", "g", "st.a", "id", "`end`", "end"),
        (*_NUMBERS, "'1'", "' 1 '", "'1.0'", "NULL", "CAST('NaN' AS DOUBLE)"),
    ),
    (("s", "st.b"), (*_TEXTS, "NULL", "1")),
    (
        ("dt", "t", "n"),
        (
            *(text for text in _TYPED if text.upper().startswith(("DATE", "TIME", "NULL"))),
            *(text for text in _TEXTS if "19" in text or "20" in text),
        ),
    ),
    (("b", "st IS NULL"), ("true", "FALSE", "NULL", "'true'")),
    (("x",), ("X'ff01'", "X''", "X'1'", "x'00'", "'abc'")),
)


def _likely(chance: Random) -> str:
    """A condition or a value that may well have a meaning."""
    columns, constants = chance.choice(_ALIKE)
    column, one, other = chance.choice(columns), chance.choice(constants), chance.choice(constants)
    if chance.random() < 0.1:
        column = f"CAST({column} AS {_type(chance)})"
    second = chance.choice(columns)
    kind = chance.randrange(12)
    if kind < 3:
        return f"{column} {chance.choice(_BINARY[:9])} {one}"
    if kind == 3:
        return f"{one} {chance.choice(_BINARY[:9])} {column}"
    if kind == 4:
        listed = ", ".join(chance.choice(constants) for _ in range(chance.randrange(1, 4)))
        return f"{column} {chance.choice(('IN', 'NOT IN'))} ({listed})"
    if kind == 5:
        return f"{column} {chance.choice(('', 'NOT '))}BETWEEN {one} AND {other}"
    if kind == 6:
        return f"{column} {chance.choice(_BINARY[:9])} {second}"
    if kind == 7:
        return f"CASE WHEN {column} = {one} THEN {second} ELSE {other} END"
    if kind == 8:
        return f"{chance.choice(('coalesce', 'concat', 'nvl', 'ifnull'))}({column}, {one})"
    if kind == 9:
        return f"{column} {chance.choice('+-*')} {chance.choice((one, second))}"
    if kind == 10:
        tested = chance.choice(("LIKE", "NOT LIKE", "RLIKE", "||"))
        return f"{column} {tested} {one}"
    negated = chance.choice(("NOT ", "! ", ""))
    return f"{negated}({_likely(chance)} {chance.choice(('AND', 'OR'))} {_likely(chance)})"


def _value(chance: Random, depth: int) -> str:
    kind = chance.randrange(14)
    if depth == 0 or kind < 8:
        names = (_NAMES, _NAMES, _NUMBERS, _TEXTS, _TYPED)
        return chance.choice(chance.choice(names))
    if kind == 8:
        return f"{chance.choice(('CAST', 'TRY_CAST'))}({_value(chance, 0)} AS {_type(chance)})"
    if kind == 9:
        return f"{_value(chance, 0)}::{_type(chance)}"
    if kind == 10:
        condition = _condition(chance, depth - 1)
        return f"CASE WHEN {condition} THEN {_value(chance, 0)} ELSE {_value(chance, 0)} END"
    if kind == 11:
        name = chance.choice(("coalesce", "concat", "if", "year", "nvl", chance.choice(_FUNCTIONS)))
        return f"{name}({', '.join(_value(chance, 0) for _ in range(chance.randrange(1, 4)))})"
    if kind == 12:
        return f"({_value(chance, depth - 1)} {chance.choice('+-*')} {_value(chance, 0)})"
    return f"{chance.choice(('-', '+', '~', '- -'))}{_value(chance, 0)}"


def _type(chance: Random) -> str:
    return chance.choice(_SQL_TYPES)


def _harmed(chance: Random, text: str) -> str:
    """The text with a piece too much, too few, or another one."""
    words = text.split(" ")
    place = chance.randrange(len(words))
    odd = (";", ",", "-- c\n", "/* c */", "{# c #}", "{{ i }}", ")", "(", "@i", "$1", ":p", "?")
    change = chance.randrange(4)
    if change == 0:
        del words[place]
    elif change == 1:
        words.insert(place, chance.choice((*odd, *KEYWORDS)))
    elif change == 2:
        words[place] = chance.choice((*odd, *KEYWORDS, *_BINARY))
    else:
        words.append(chance.choice((*odd, "x", "AS x", ", i")))
    return " ".join(words)
