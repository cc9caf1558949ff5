"""`path_relations`: where a statement names tables by their paths, and at which version.

For sessions that have no parser of Spark at hand. The text is not parsed, but walked through once,
token by token, with a note for each open bracket of whether a relation may stand there: behind
FROM, JOIN and TABLE, and behind the commas of a FROM clause. So nothing that Spark may learn to
read is refused here, and all of the text but the relations stays the user's own. A name that stands
elsewhere and means one of these relations, as the first part of a column's name, is found as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from optimist.core.expressions.tokens import Token, read_name
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.path_names import path_in_name
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import Span, SqlText, TableName

__all__ = ["PathRelation", "markers_of", "path_relations", "travel_of_relation"]

_BEFORE_A_RELATION = ("FROM", "JOIN", "TABLE", "USING")
_BEFORE_A_TARGET = ("INTO", "OVERWRITE")
_AFTER_RELATIONS = frozenset(
    (
        *("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"),
        *("WINDOW", "LIMIT", "VALUES", "SET"),
    )
)
_CHANGES = ("table_changes", "table_changes_by_path")
_OPERATORS = frozenset(("+", "-", "*", "/", "%", "||", "|", "&", "^", ".", "::", "DIV"))
_TIMES = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_UNITS = frozenset(("TO", *_TIMES, *(f"{unit}S" for unit in _TIMES)))


@dataclass(frozen=True, slots=True)
class PathRelation:
    """A table that a query names by its path.

    Attributes:
        path: The path, which may end with `@v3`.
        span: Its name, and the clause behind it that names a version.
        version: The SQL of the version, if there is one.
        timestamp: The SQL of the time.
        changes: The SQL of start and end, for the changes of these versions.
        is_target: The statement inserts into it.
        is_qualifier: The name stands before a column's; it means a relation of the same name.
    """

    path: str
    span: Span = field(compare=False)
    version: SqlText | None = None
    timestamp: SqlText | None = None
    changes: tuple[SqlText, ...] = ()
    is_target: bool = False
    is_qualifier: bool = False


@dataclass(slots=True)
class _Level:
    """What is known within one pair of brackets."""

    is_expected: bool = False
    is_from: bool = False
    is_target: bool = False


def path_relations(text: str, parameters: Parameters | None = None) -> tuple[PathRelation, ...]:
    """Return the tables that a query names by their paths, in the order of the text.

    Args:
        text: Any statement.
        parameters: The values of its parameters.

    Raises:
        UsageError: A clause that names a version can't be parsed, or a text, a name or a comment is
            not closed (kind `PARSE_SYNTAX_ERROR`).
    """
    found = tuple(_relations(Reader(text, parameters)))
    names = {relation.path for relation in found if not relation.is_qualifier}
    return tuple(item for item in found if not item.is_qualifier or item.path in names)


def markers_of(text: str) -> tuple[Span, ...]:
    """Return the positions of the markers `?`, in their order."""
    reader, found = Reader(text), []
    while reader.peek().kind != "end":
        token = reader.advance()
        if token.kind == "marker" and token.text == "?":
            found.append(Span(token.start, token.end))
    return tuple(found)


def _relations(reader: Reader) -> Iterator[PathRelation]:
    levels = [_Level()]
    previous: Token | None = None
    while reader.peek().kind != "end":
        level, is_field = levels[-1], previous is not None and previous.text == "."
        relation = None if is_field else _relation(reader, level.is_expected)
        if relation is not None:
            yield replace(relation, is_target=level.is_target) if level.is_target else relation
            level.is_expected, level.is_target, previous = False, False, None
            continue
        previous = reader.advance()
        _follow(levels, previous, is_field)


def _follow(levels: list[_Level], token: Token, is_field: bool) -> None:
    """Note what a token says of those behind it."""
    level, word = levels[-1], token.text.upper()
    if word == "(":
        levels.append(_Level(level.is_expected, level.is_expected))
    elif word == ")":
        if len(levels) > 1:
            levels.pop()
        levels[-1].is_expected = False
    elif token.kind == "word" and not is_field and word in _BEFORE_A_RELATION:
        level.is_expected = level.is_from = True
        level.is_target = level.is_target and word == "TABLE"
    elif token.kind == "word" and not is_field and word in _BEFORE_A_TARGET:
        level.is_expected = level.is_target = True
    elif token.kind == "word" and not is_field and word in _AFTER_RELATIONS:
        level.is_expected = level.is_from = level.is_target = False
    else:
        level.is_target = False
        # LATERAL may stand before a relation; hints and names may not.
        level.is_expected = (word == "," and level.is_from) or (
            word == "LATERAL" and level.is_expected
        )


def _relation(reader: Reader, is_expected: bool) -> PathRelation | None:
    """Read the relation that follows, or return None if none does."""
    start = reader.peek()
    if is_expected and start.text.lower() in _CHANGES and reader.peek(1).text == "(":
        return _changes(reader, start)
    is_delta = start.kind in ("word", "name") and read_name(start).lower() == "delta"
    if not is_delta or reader.peek(1).text != "." or reader.peek(2).kind != "name":
        return None
    path = TableName(("delta", read_name(reader.peek(2)))).path
    is_longer = reader.peek(3).text == "."
    if path is None or (is_expected and is_longer) or not (is_expected or is_longer):
        return None
    for _ in range(3):
        end = reader.advance().end
    if not is_expected:
        return PathRelation(path, Span(start.start, end), is_qualifier=True)
    version, timestamp = travel_of_relation(reader)
    ends = [end, *(sql.span.end for sql in (version, timestamp) if sql is not None)]
    return PathRelation(path, Span(start.start, max(ends)), version, timestamp)


def _changes(reader: Reader, start: Token) -> PathRelation | None:
    """Read `table_changes('name', start[, end])`, or return None for a name of the catalog."""
    is_path = reader.advance().text.lower() == _CHANGES[1]
    reader.expect("(")
    name = reader.text("the name of a table")
    path = name if is_path else path_in_name(name)
    if path is None:
        return None
    bounds = []
    while reader.take(","):
        bounds.append(reader.sql("a version or a time", lambda: reader.is_at(",")))
    if not 1 <= len(bounds) <= 2:
        reader.fail("table_changes takes a name, a start and, if wanted, an end")
    end = reader.peek().end
    reader.expect(")")
    return PathRelation(path, Span(start.start, end), changes=tuple(bounds))


def travel_of_relation(reader: Reader) -> tuple[SqlText | None, SqlText | None]:
    """Read the version and the time behind a relation, each as SQL."""
    for kind in ("VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME"):
        if reader.take("FOR", kind, "AS", "OF") or reader.take(kind, "AS", "OF"):
            is_version = "VERSION" in kind
            sql = _value(reader, "a version" if is_version else "a time")
            return (sql, None) if is_version else (None, sql)
    return None, None


def _value(reader: Reader, what: str) -> SqlText:
    """Read one value, which ends where no operator follows an operand."""
    state = _Value()
    return reader.sql(what, lambda: state.is_over(reader))


@dataclass(slots=True)
class _Value:
    """The state of a value that is being read."""

    is_complete: bool = False
    in_interval: bool = False
    last: Token | None = None

    def is_over(self, reader: Reader) -> bool:
        """Return whether the next token, outside of brackets, is no part of the value."""
        token, last = reader.peek(), self.last
        self.last, word = token, token.text.upper()
        if word == "INTERVAL" and not self.is_complete:
            self.in_interval = True
        elif self.in_interval and (word in _UNITS or token.kind in ("number", "text")):
            self.is_complete = token.kind != "number"
        elif token.text in ("(", "["):
            self.is_complete = True  # what stands in brackets is not asked about
        elif word in _OPERATORS:
            self.is_complete = self.in_interval = False
        elif token.kind == "text" and last is not None and last.kind == "word":
            self.is_complete = True  # TIMESTAMP '2026-01-01'
        elif self.is_complete or token.kind == "mark":
            return True
        else:
            self.is_complete = True
        return False
