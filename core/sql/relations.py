"""`path_relations`: where a statement names Delta tables, and at which version.

For sessions that have no parser of Spark at hand. The text is not parsed, but walked through once,
token by token, with a note for each open bracket of whether a relation may stand there: behind
FROM, JOIN and TABLE, and behind the commas of a FROM clause. So nothing that Spark may learn to
read is refused here, and all of the text but the relations stays the user's own. A name that stands
elsewhere and means one of these relations, as the first part of a column's name, is found as well.

A table may be named by its path, or by a name whose place a catalog knows. A name of one part may
also be that of a common table expression, which comes first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from optimist.core.expressions.tokens import Token, read_name
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.path_names import parts_of_name, path_in_name
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import Span, SqlText, TableName

__all__ = [
    "PathRelation",
    "PlaceOf",
    "markers_of",
    "names_of_relations",
    "path_relations",
    "travel_of_relation",
]

PlaceOf: TypeAlias = Callable[[tuple[str, ...]], str | None]
"""Returns the path of the table with a name, or None for a name that is none of a Delta table."""

_BEFORE_A_RELATION = ("FROM", "JOIN", "TABLE", "USING")
_CHANGES = ("table_changes", "table_changes_by_path")
_MAY_BE_COMPUTED = re.compile("table_changes|identifier", re.IGNORECASE)
_MAY_READ = re.compile(rf"\b(?:{'|'.join((*_BEFORE_A_RELATION, *_CHANGES))})\b", re.IGNORECASE)
_MAKES_A_NAME = ("CREATE", "REPLACE", "EXTERNAL", "CACHE", "LAZY")
"""What stands before TABLE where the name behind it is made."""
_WITH_FROM = frozenset(("EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "OVERLAY"))
"""Functions among whose arguments FROM may stand."""
_NO_NAMES = frozenset(("FROM", "IDENTIFIER", "LATERAL", "SELECT", "TABLE", "VALUES", "WITH"))
_MAX_PARTS = 3
_BEFORE_A_TARGET = ("INTO", "OVERWRITE")
_AFTER_RELATIONS = frozenset(
    (
        *("SELECT", "WHERE", "GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE"),
        *("WINDOW", "LIMIT", "VALUES", "SET"),
    )
)
_OPERATORS = frozenset(("+", "-", "*", "/", "%", "||", "|", "&", "^", ".", "::", "DIV"))
_TIMES = ("YEAR", "MONTH", "WEEK", "DAY", "HOUR", "MINUTE", "SECOND", "MILLISECOND", "MICROSECOND")
_NAMES = ("word", "name")
_NO_TOKEN = Token("mark", "", 0, 0)
_UNITS = frozenset(("TO", *_TIMES, *(f"{unit}S" for unit in _TIMES)))


@dataclass(frozen=True, slots=True)
class PathRelation:
    """A Delta table that a query names.

    Attributes:
        path: Its path, which may end with `@v3`.
        span: Its name, and the clause behind it that names a version.
        version: The SQL of the version, if there is one.
        timestamp: The SQL of the time.
        changes: The SQL of start and end, for the changes of these versions.
        is_target: The statement inserts into it.
        is_qualifier: The name stands before a column's; it means a relation of the same name.
        name: The parts of its name; none for a path.
        is_bare: It stands behind TABLE, where a query can't give it another name.
    """

    path: str
    span: Span = field(compare=False)
    version: SqlText | None = None
    timestamp: SqlText | None = None
    changes: tuple[SqlText, ...] = ()
    is_target: bool = False
    is_qualifier: bool = False
    name: tuple[str, ...] = field(default=(), compare=False)
    is_bare: bool = field(default=False, compare=False)


@dataclass(slots=True)
class _Level:
    """What is known within one pair of brackets.

    Attributes:
        is_expected: A relation may stand here, at least one that is named by its path.
        takes_names: So may any name of a table.
        lists_names: So may names behind the next commas.
        is_from: A comma stands between relations.
        is_target: The relation is one that the statement inserts into.
        is_bare: The relation stands behind TABLE.
        opener: The word before the bracket.
        tables: The common table expressions that are known here.
        awaits_name: The name of a common table expression follows.
        awaits_query: The one whose name was read, and whose query follows in a bracket.
        defines: The one whose query this level is.
        is_recursive: Its definition may name itself.
    """

    is_expected: bool = False
    takes_names: bool = False
    lists_names: bool = False
    is_from: bool = False
    is_target: bool = False
    is_bare: bool = False
    opener: str = ""
    tables: set[str] = field(default_factory=set)
    awaits_name: bool = False
    awaits_query: str | None = None
    defines: str | None = None
    is_recursive: bool = False


def names_of_relations(
    text: str, parameters: Parameters | None = None
) -> frozenset[tuple[str, ...]]:
    """Return the names that may be those of tables which a query reads, without paths.

    Args:
        text: Any statement.
        parameters: The values of its parameters.

    Raises:
        UsageError: A text, a name or a comment is not closed (kind `PARSE_SYNTAX_ERROR`).
    """
    found: set[tuple[str, ...]] = set()
    if _MAY_READ.search(text) is None:
        return frozenset()  # rows as constants, say, of which there may be many

    def note(name: tuple[str, ...]) -> None:
        found.add(name)

    # Only these names may be parameters, and each value has to become SQL.
    given = parameters if _MAY_BE_COMPUTED.search(text) else None
    for _ in _Walk(Reader(text, given), note, is_search=True).relations():
        pass  # a path
    return frozenset(found)


def path_relations(
    text: str, parameters: Parameters | None = None, place_of: PlaceOf | None = None
) -> tuple[PathRelation, ...]:
    """Return the Delta tables that a query names, in the order of the text.

    Args:
        text: Any statement.
        parameters: The values of its parameters.
        place_of: Where the table of a name is; without it, only paths are looked for.

    Raises:
        UsageError: A clause that names a version can't be parsed, or a text, a name or a comment is
            not closed (kind `PARSE_SYNTAX_ERROR`).
    """
    found = tuple(_Walk(Reader(text, parameters), place_of).relations())
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


@dataclass(slots=True)
class _Walk:
    """One walk through a statement.

    Attributes:
        reader: The statement.
        place_of: Where the table of a name is; None if only paths are looked for.
        is_search: Names before columns are not asked about.
    """

    reader: Reader
    place_of: PlaceOf | None = None
    is_search: bool = False
    levels: list[_Level] = field(default_factory=lambda: [_Level()])
    before: tuple[Token, Token] = (_NO_TOKEN, _NO_TOKEN)
    is_merge: bool = False

    def relations(self) -> Iterator[PathRelation]:
        """Return the relations, and the names before columns."""
        self.is_merge = self.reader.is_at("MERGE")
        while self.reader.peek().kind != "end":
            level, is_field = self.levels[-1], self.before[1].text == "."
            relation = None if is_field else self._relation(level)
            if relation is not None:
                yield replace(relation, is_target=level.is_target) if level.is_target else relation
                level.is_expected = level.is_target = level.is_bare = False
                self.before = (_NO_TOKEN, _NO_TOKEN)
                continue
            token = self.reader.advance()
            self._follow(token, is_field)
            self.before = (self.before[1], token)

    def _relation(self, level: _Level) -> PathRelation | None:
        """Read the relation that follows, or return None if none does."""
        reader = self.reader
        start = reader.peek()
        if level.is_expected and start.text.lower() in _CHANGES and reader.peek(1).text == "(":
            return self._changes(level, start)
        if start.kind not in ("word", "name"):
            return None
        if level.is_expected and not level.is_target and reader.is_at_identifier():
            return self._identified(level)
        parts = self._parts()
        path = TableName(parts[:2]).path
        if path is not None and reader.peek(2).kind == "name":
            is_longer = reader.peek(3).text == "."
            if level.is_expected != is_longer:
                return self._read(path, 2, is_qualifier=is_longer)
            return None
        return self._named(level, parts)

    def _identified(self, level: _Level) -> PathRelation | None:
        """Read `IDENTIFIER('name')`, or go past it if it is none of a Delta table."""
        table = self.reader.table()
        path, name = table.path, () if table.path is not None else table.parts
        is_name = level.takes_names and not self.reader.is_at("(") and self._is_no_query(name)
        if name and is_name and self.place_of is not None:
            path = self.place_of(name)
        if path is None:
            level.is_expected = False
            return None
        return self._travelled(path, table.span, name=name, is_bare=level.is_bare)

    def _parts(self) -> tuple[str, ...]:
        """Return the parts of the name that follows, without going past it."""
        parts, at = [read_name(self.reader.peek())], 1
        while self.reader.peek(at).text == "." and self.reader.peek(at + 1).kind in _NAMES:
            parts.append(read_name(self.reader.peek(at + 1)))
            at += 2
        return tuple(parts)

    def _named(self, level: _Level, parts: tuple[str, ...]) -> PathRelation | None:
        """Read a relation by its name, or the name of one before a column's."""
        if self.place_of is None:
            return None
        if level.is_expected:
            if level.takes_names and not level.is_target and self._may_be_table(parts):
                path = self.place_of(parts)
                if path is not None:
                    return self._read(path, len(parts), name=parts, is_bare=level.is_bare)
            return None
        if not self.is_search:
            is_star = self.reader.peek(2 * len(parts) - 1).text == "."
            for length in range(min(_MAX_PARTS, len(parts) - (not is_star)), 1, -1):
                path = self.place_of(parts[:length])
                if path is not None:
                    return self._read(path, length, name=parts[:length], is_qualifier=True)
        return None

    def _may_be_table(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name can be a table's, and not a function's or one of the query's."""
        if len(parts) > _MAX_PARTS or self.reader.peek(2 * len(parts) - 1).text in (".", "("):
            return False
        is_keyword = self.reader.peek().kind == "word" and parts[0].upper() in _NO_NAMES
        return len(parts) > 1 or (not is_keyword and self._is_no_query(parts))

    def _is_no_query(self, parts: tuple[str, ...]) -> bool:
        """Return whether a name is not that of a common table expression."""
        name = parts[0].lower() if len(parts) == 1 else None
        return not any(name in level.tables for level in self.levels)

    def _read(
        self,
        path: str,
        num_parts: int,
        *,
        name: tuple[str, ...] = (),
        is_qualifier: bool = False,
        is_bare: bool = False,
    ) -> PathRelation:
        start = end = self.reader.peek().start
        for _ in range(2 * num_parts - 1):
            end = self.reader.advance().end
        if is_qualifier:
            return PathRelation(path, Span(start, end), is_qualifier=True, name=name)
        return self._travelled(path, Span(start, end), name=name, is_bare=is_bare)

    def _travelled(
        self, path: str, named: Span, *, name: tuple[str, ...], is_bare: bool
    ) -> PathRelation:
        """Return a relation with the version that may stand behind it."""
        version, timestamp = travel_of_relation(self.reader)
        ends = [named.end, *(sql.span.end for sql in (version, timestamp) if sql is not None)]
        span = Span(named.start, max(ends))
        return PathRelation(path, span, version, timestamp, name=name, is_bare=is_bare)

    def _changes(self, level: _Level, start: Token) -> PathRelation | None:
        """Read `table_changes('name', start[, end])`, or return None for another's name."""
        reader = self.reader
        is_path = reader.advance().text.lower() == _CHANGES[1]
        reader.expect("(")
        told = reader.text("the name of a table")
        path = told if is_path else path_in_name(told)
        if path is None and self.place_of is not None:
            path = self.place_of(parts_of_name(told))
        if path is None:
            level.is_expected = False
            self._open(level)
            return None
        bounds = []
        while reader.take(","):
            bounds.append(reader.sql("a version or a time", lambda: reader.is_at(",")))
        if not 1 <= len(bounds) <= 2:
            reader.fail("table_changes takes a name, a start and, if wanted, an end")
        end = reader.peek().end
        reader.expect(")")
        return PathRelation(path, Span(start.start, end), changes=tuple(bounds))

    def _follow(self, token: Token, is_field: bool) -> None:
        """Note what a token says of those behind it."""
        level, word = self.levels[-1], token.text.upper()
        if word == "(":
            self._open(level)
            return
        if word == ")":
            self._close()
            return
        is_word = token.kind == "word" and not is_field
        level.is_bare = is_word and word == "TABLE"
        if is_word and word in _BEFORE_A_RELATION:
            level.is_expected = level.is_from = True
            level.takes_names = self._takes_names(level, word)
            level.lists_names = level.lists_names or (word == "FROM" and level.takes_names)
            level.is_target = level.is_target and word == "TABLE"
        elif is_word and word in _BEFORE_A_TARGET:
            level.is_expected = level.is_target = True
        elif is_word and word in _AFTER_RELATIONS:
            level.is_expected = level.is_from = level.is_target = level.lists_names = False
        else:
            level.is_target = False
            self._follow_other(level, word)
        self._follow_definitions(level, token, word, is_word)

    def _follow_other(self, level: _Level, word: str) -> None:
        """Note whether a relation may stand behind a comma, or behind LATERAL."""
        before = self.before[1].text.upper()
        if (word == "VIEW" and before == "LATERAL") or (word == ">" and before == "|"):
            level.lists_names = False  # what follows are names of columns
        # LATERAL may stand before a relation; hints and names may not.
        is_comma = word == "," and level.is_from
        level.is_expected = is_comma or (word == "LATERAL" and level.is_expected)
        if is_comma:
            level.takes_names = level.lists_names

    def _takes_names(self, level: _Level, word: str) -> bool:
        """Return whether a word that begins a relation may stand before any name."""
        before = self.before[1].text.upper()
        if word == "FROM":
            is_distinct = before == "DISTINCT" and self.before[0].text.upper() in ("IS", "NOT")
            return not is_distinct and level.opener not in _WITH_FROM
        if word == "USING":  # of MERGE; that of a join has columns, and others have formats
            return self.is_merge and self.reader.peek().text != "("
        return word != "TABLE" or before not in _MAKES_A_NAME

    def _follow_definitions(self, level: _Level, token: Token, word: str, is_word: bool) -> None:
        """Note the names of common table expressions."""
        if level.awaits_name and token.kind in _NAMES:
            if is_word and word == "RECURSIVE" and self._is_at_name(0):
                level.is_recursive = True
                return
            level.awaits_name, level.awaits_query = False, read_name(token).lower()
        elif is_word and word == "WITH" and self._is_at_definition():
            level.awaits_name, level.is_recursive = True, False

    def _is_at_definition(self) -> bool:
        """Return whether WITH begins common table expressions, and no other clause."""
        at = int(self.reader.is_at("RECURSIVE") and self._is_at_name(1))
        behind = self.reader.peek(at + 1).text.upper()
        return self.reader.peek(at).kind in _NAMES and behind in ("AS", "(", "MAX")

    def _is_at_name(self, distance: int) -> bool:
        """Return whether the name of a common table expression follows."""
        token = self.reader.peek(distance)
        return token.kind in _NAMES and token.text.upper() != "AS"

    def _open(self, level: _Level) -> None:
        inner = _Level(
            level.is_expected,
            level.takes_names,
            level.takes_names and level.is_expected,
            level.is_expected,
            is_bare=level.is_bare,
            opener=self.before[1].text.upper(),
        )
        if level.awaits_query is not None and not self._is_at_columns():
            inner.defines, level.awaits_query = level.awaits_query, None
            if level.is_recursive:
                level.tables.add(inner.defines)
        level.is_bare = False
        self.levels.append(inner)

    def _is_at_columns(self) -> bool:
        """Return whether names of columns follow, and no query, for which AS is not needed."""
        return self.reader.peek().kind in _NAMES and self.reader.peek(1).text in (",", ")")

    def _close(self) -> None:
        closed = self.levels.pop() if len(self.levels) > 1 else self.levels[-1]
        level = self.levels[-1]
        level.is_expected = False
        if closed is not level and closed.defines is not None:
            level.tables.add(closed.defines)
            level.awaits_name = self.reader.peek().text == ","


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
