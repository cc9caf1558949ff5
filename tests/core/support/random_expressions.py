"""Random expressions of Spark's SQL, each operand and operator in one of the ways to write it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import zip_longest
from random import Random  # noqa: TID251 - a case is its seed

from optimist.core.commands.stored_sql import canonical_sql
from optimist.core.expressions import NotSqlError, parse_expression
from optimist.core.expressions.plain_text import tokens_between
from optimist.core.expressions.tokens import next_token, read_text
from optimist.core.expressions.tree import (
    Call,
    Expression,
    Extracted,
    Interval,
    Name,
    Parameter,
    Subquery,
    walk,
)
from optimist.core.schema.types import ArrayType, MapType, PrimitiveType, StructField, StructType

STRING, LONG = PrimitiveType("string"), PrimitiveType("long")
SCHEMA = StructType(
    (
        StructField("id", LONG),
        StructField("Name", STRING),
        StructField("adress", StructType((StructField("City", STRING), StructField("zip", LONG)))),
        StructField("Odd Name", LONG),
        StructField("not", LONG),
        StructField("flag", PrimitiveType("boolean")),
        StructField("list", ArrayType(LONG, True)),
        StructField("map", MapType(STRING, LONG, True)),
        StructField("Day", PrimitiveType("date")),
    )
)
_NAMES = (
    ("id",),
    ("ID",),
    ("`id`",),
    ("NAME",),
    ("`name`",),
    ("adress", ".", "CITY"),
    ("`Adress`", ".", "`zip`"),
    ("(", "adress", ")", ".", "city"),
    ("`odd name`",),
    ("`NOT`",),
    ("Flag",),
    ("list", "[", "0", "]"),
    ("MAP", "[", "'k'", "]"),
    ("current_date",),
    ("CURRENT_DATE", "(", ")"),
)
_TEXTS = (
    "'a'",
    '"a"',
    "''",
    '""',
    "r'a'",
    'R"a"',
    r"'it\'s'",
    "'it''s'",
    '"it\'s"',
    '"say ""x"""',
    "'say \"x\"'",
    r"'\u0041'",
    r"'\\d'",
    r"r'\d'",
    r"'\%'",
    r"'a\nb'",
    "'-- no comment'",
    "'/*'",
    '"é"',
    "'`'",
)
_NUMBERS = ("1", "1L", "1S", "2Y", "1.5", ".5", "1.", "1BD", "1e3", "2F", "1.5D", "007")
_TYPES = ("long", "BIGINT", "byte", "SHORT", "string", "decimal(5,2)", "array<long>", "date")
_BLANKS = ("", "", "", " ", " ", "  ", "\n", "/* c */", "/**/", " -- c\n", "/* /* n */ */")
_COMPARISONS = ("=", "==", "<>", "!=", "<", "<=", ">", ">=", "<=>")
_OPERATORS = ("+", "-", "*", "/", "%", "DIV", "||", "&", "|", "^", "<<", ">>", ">>>")


def random_text(random: Random, depth: int = 3) -> str:
    """A random expression; it may be none that Spark can resolve."""
    text = ""
    for token in _condition(random, depth):
        blank = random.choice(_BLANKS)
        if not blank and text and not _stand_apart(text, token):
            blank = " "
        text += blank + token
    return text


def changed_meaning(sql: str) -> str | None:
    """The canonical form where it means something else or changes again; None where all is well."""
    try:
        parsed = parse_expression(sql)
    except NotSqlError:
        return None
    stored = canonical_sql(sql, SCHEMA)
    try:
        is_same = all(
            _shape(one, sql) == _shape(other, stored)
            for one, other in zip_longest(walk(parsed), walk(parse_expression(stored)))
        )
    except NotSqlError:
        return stored
    return None if is_same and canonical_sql(stored, SCHEMA) == stored else stored


def _shape(node: Expression | None, sql: str) -> object:
    """What a node says by itself: without its children, and names in any case."""
    if node is None:
        return None
    if isinstance(node, Name) and node.is_call:
        return Call, [node.path[0].lower(), (), True, ()]
    if isinstance(node, Name):
        return Name, tuple(name.lower() for name in node.path)
    if isinstance(node, Interval | Parameter | Extracted | Subquery):
        tokens = tokens_between(sql, node.start, node.end)
        return type(node), [
            read_text(token) if token.kind == "text" else token.text.lower().strip("`")
            for token in tokens
        ]
    values = [getattr(node, item.name) for item in fields(node) if item.compare]
    plain = [
        value
        for value in values
        if not isinstance(value, Expression)
        and not (isinstance(value, tuple) and any(isinstance(each, Expression) for each in value))
    ]
    return type(node), plain


def _stand_apart(text: str, token: str) -> bool:
    """Whether a token behind a text, without a blank, leaves all tokens as they are."""
    before = tokens_between(text, 0, len(text))
    both = text + token
    if any(mark in both[len(text) - 1 :][:2] for mark in ("--", "/*", "*/")):
        return False
    after = tokens_between(both, 0, len(both))
    return [one.text for one in after] == [*(one.text for one in before), token] and (
        next_token(both, len(text)).start == len(text)
    )


def _condition(random: Random, depth: int) -> Iterator[str]:
    if depth == 0:
        yield from _operand(random, 0)
        return
    value, below = random.randrange(12), depth - 1
    if value < 3:
        yield from _condition(random, below)
        yield random.choice(("AND", "or", "And", "OR"))
        yield from _condition(random, below)
    elif value < 6:
        yield from random.choice((("NOT",), ("!",), ("not", "!"), ("!", "!"), ("!", "not")))
        if random.random() < 0.7:
            yield from _bracketed(_condition(random, below))
        else:
            yield from _operand(random, below)
    elif value < 9:
        yield from _operand(random, below)
        yield random.choice(_COMPARISONS)
        yield from _operand(random, below)
    elif value == 9:
        yield from _operand(random, below)
        yield from _behind(random, below)
    elif value == 10:
        yield from _bracketed(_condition(random, below))
    else:
        yield from _operand(random, depth)


def _behind(random: Random, depth: int) -> Iterator[str]:
    """A predicate behind a value."""
    negation = random.choice(((), ("NOT",), ("not",)))
    form = random.randrange(5)
    if form == 0:
        yield from ("IS", *negation, random.choice(("NULL", "true", "FALSE", "UNKNOWN")))
    elif form == 1:
        yield from ("IS", *negation, "DISTINCT", "FROM")
        yield from _operand(random, depth)
    elif form == 2:
        yield from (*negation, "IN", "(")
        yield from _operand(random, depth)
        yield ","
        yield from _condition(random, depth)
        yield ")"
    elif form == 3:
        yield from (*negation, "BETWEEN")
        yield from _operand(random, depth)
        yield "AND"
        yield from _operand(random, depth)
    else:
        yield from (*negation, random.choice(("LIKE", "ilike", "RLIKE", "regexp")))
        yield from _texts(random)


def _operand(random: Random, depth: int) -> Iterator[str]:
    form = random.randrange(14 if depth > 0 else 7)
    if form < 2:
        yield from random.choice(_NAMES)
    elif form < 4:
        yield from _texts(random)
    elif form == 4:
        yield random.choice(_NUMBERS)
    elif form == 5:
        yield from random.choice(
            (
                ("DATE", '"2024-01-02"'),
                ("X", '"0A"'),
                ("true",),
                ("NULL",),
                ("INTERVAL", '"1"', "DAY"),
                ("INTERVAL", "1", "year", "2", "months"),
                ("TIMESTAMP", "'2024-01-02 03:04:05'"),
            )
        )
    elif form == 6:
        yield from ("-", random.choice(_NUMBERS))
    elif form < 9:
        yield from _operand(random, depth - 1)
        yield random.choice(_OPERATORS)
        yield from _operand(random, depth - 1)
    elif form == 9:
        yield from _bracketed(_condition(random, depth - 1))
    elif form == 10:
        yield from (random.choice(("upper", "concat", "COALESCE")), "(")
        yield from _condition(random, depth - 1)
        yield ","
        yield from _operand(random, depth - 1)
        yield ")"
    elif form == 11:
        yield from _cast(random, depth - 1)
    elif form == 12:
        yield from ("CASE", "WHEN")
        yield from _condition(random, depth - 1)
        yield "THEN"
        yield from _operand(random, depth - 1)
        yield "ELSE"
        yield from _operand(random, depth - 1)
        yield "END"
    else:
        yield from ("exists", "(", "LIST", ",", "ID", "->")
        yield from ("ID", ">", "NAME", "OR", "!", "flag", ")")


def _cast(random: Random, depth: int) -> Iterator[str]:
    target = random.choice(_TYPES)
    if random.random() < 0.5:
        yield from (random.choice(("CAST", "try_cast")), "(")
        yield from _condition(random, depth)
        yield from ("AS", target, ")")
    else:
        yield from _bracketed(_operand(random, depth))
        yield from ("::", target)


def _texts(random: Random) -> Iterator[str]:
    for _ in range(random.choice((1, 1, 1, 2, 2, 3))):
        yield random.choice(_TEXTS)


def _bracketed(tokens: Iterator[str]) -> Iterator[str]:
    yield "("
    yield from tokens
    yield ")"
