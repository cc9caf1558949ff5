"""`query_needs`: what a query surely leaves unread of the tables that it names by their paths.

For Spark Connect, whose server tells a Python data source neither columns nor filters nor limits.
The text is not parsed, but walked through once, so each answer rests on a rule that holds whatever
else the text says:

- A query can't read a column without naming it, but by a star and a few clauses that take columns
  by themselves (NATURAL, PIVOT, TABLE, FROM without SELECT, `|>`, names that are computed, and
  lists that give columns other names). Without any of these, the names in the text are all that is
  read. Where each mention of a name is followed by a field, only these fields are.
- `FROM table [alias] WHERE condition`: no other table stands in that FROM, so rows for which the
  condition is not true take no part in anything.
- `SELECT names FROM table [alias] LIMIT n`, without brackets, DISTINCT or set operations: any n
  rows will do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from optimist.core.errors import UsageError
from optimist.core.expressions.tokens import Token, read_name, read_text
from optimist.core.schema.types import DataType, StructType
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.relation_aliases import SETS, read_alias
from optimist.core.sql.relations import PathRelation, markers_of
from optimist.core.sql.statements import Span, SqlText

__all__ = ["Mentions", "QueryNeeds", "RowNeeds", "folded", "mentions_of_expression", "query_needs"]

_TAKES_COLUMNS = frozenset(("NATURAL", "PIVOT", "UNPIVOT", "TABLE", "IDENTIFIER"))
_QUERIES = ("SELECT", "WITH", "(", "EXPLAIN", "INSERT")
_BEFORE_A_STAR = frozenset(("SELECT", "DISTINCT", "ALL", "SET", "INSERT", "(", ",", "."))
_WITH_FROM = frozenset(("EXTRACT", "SUBSTRING", "SUBSTR", "TRIM", "OVERLAY"))
_AFTER_WHERE = ("GROUP", "HAVING", "ORDER", "SORT", "CLUSTER", "DISTRIBUTE", "WINDOW", "LIMIT")
_PATTERN_MARKS = frozenset(".*+?|()[]{}^$\\")
Fields = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mentions:
    """The names in a query's text.

    Attributes:
        fields: By each name, folded: the names that stand behind it, separated by dots; nothing
            behind it where it stands alone.
        has_patterns: A name in back-ticks may be a pattern, where the session says that they are.
    """

    fields: Mapping[str, frozenset[Fields]]
    has_patterns: bool

    def has(self, name: str) -> bool:
        """Return whether a name is among them."""
        return folded(name) in self.fields

    @classmethod
    def of_chains(cls, chains: Iterable[Sequence[str]]) -> Mentions:
        """Return the mentions of names that are given as tuples."""
        fields: dict[str, set[Fields]] = {}
        for chain in chains:
            names = tuple(map(folded, chain))
            for place, name in enumerate(names):
                fields.setdefault(name, set()).add(names[place + 1 :])
        return cls({name: frozenset(found) for name, found in fields.items()}, has_patterns=False)

    def chains(self) -> Iterator[Fields]:
        """Return each name, with those that stand behind it."""
        return ((name, *behind) for name, found in self.fields.items() for behind in found)

    def paths(self, schema: StructType) -> tuple[Fields, ...]:
        """Return the columns and struct fields that can be read, as the table spells them."""
        return tuple(
            path
            for item in schema
            if self.has(item.name)
            for path in _paths((item.name,), item.data_type, self.fields[folded(item.name)])
        )


@dataclass(frozen=True, slots=True)
class RowNeeds:
    """Which rows of a table a query needs at most.

    Attributes:
        where: The condition; None for all rows.
        alias: The name that the condition may use for the table.
        limit: How many rows are enough; None for all.
    """

    where: SqlText | None = None
    alias: str | None = None
    limit: int | None = None


@dataclass(frozen=True, slots=True)
class QueryNeeds:
    """The rows and columns that a query needs of its tables, by default all of them.

    Attributes:
        mentions: The names of the columns that it can read; None if it may read others.
        rows: Which rows, by the places of the tables in the text.
    """

    mentions: Mentions | None = None
    rows: Mapping[Span, RowNeeds] = field(default_factory=dict)

    def rows_of(self, relation: PathRelation) -> RowNeeds:
        """Return the rows of a table that are needed."""
        return self.rows.get(relation.span, RowNeeds())


def query_needs(
    text: str, relations: Sequence[PathRelation], parameters: Parameters | None = None
) -> QueryNeeds:
    """Return what a query needs of the tables that it names by their paths.

    Args:
        text: A statement.
        relations: What `path_relations` has found in it.
        parameters: The values of its parameters.
    """
    if not Reader(text).is_at_any(*_QUERIES):
        return QueryNeeds()
    walk = _Walk(text, relations, parameters)
    return QueryNeeds(walk.mentions(), walk.rows)


def mentions_of_expression(text: str) -> Mentions | None:
    """Return the names in an expression, or None if it may read other columns."""
    return _Walk(f"SELECT {text}", (), None).mentions()


def folded(name: str) -> str:
    """Fold a name, so that names are equal that Java takes for equal in any case."""
    return "".join(map(_folded_letter, name))


def _paths(path: Fields, data_type: DataType, behind: frozenset[Fields]) -> Iterator[Fields]:
    """Return the paths that are read of a column, by the names behind its mentions."""
    firsts = {names[0] for names in behind if names}
    if not isinstance(data_type, StructType) or () in behind:
        yield path
        return
    found = [item for item in data_type if folded(item.name) in firsts]
    if len(found) != len(firsts):
        yield path  # a mention means something else, or two fields differ in case alone
        return
    for item in found:
        rest = frozenset(names[1:] for names in behind if names[0] == folded(item.name))
        yield from _paths((*path, item.name), item.data_type, rest)


def _folded_letter(letter: str) -> str:
    upper = letter.upper()
    return (upper if len(upper) == 1 else letter).lower()[:1]


@dataclass(slots=True)
class _Level:
    """What is known within one pair of brackets.

    Attributes:
        opener: The word before the bracket.
        has_select: SELECT has come since the last set operation.
        is_plain: Nothing but names stands between that SELECT and FROM.
        has_sets: There is a set operation.
    """

    opener: str = ""
    has_select: bool = False
    is_plain: bool = False
    has_sets: bool = False


@dataclass(slots=True)
class _Walk:
    text: str
    relations: Sequence[PathRelation]
    parameters: Parameters | None
    rows: dict[Span, RowNeeds] = field(default_factory=dict)
    _chains: list[Sequence[str]] = field(default_factory=list)
    _has_patterns: bool = False

    def mentions(self) -> Mentions | None:
        """Walk through the text, and return None if it may read columns that it does not name."""
        levels, previous = [_Level()], (_NONE, _NONE)
        takes_more = False
        chain: list[str] = []
        for token in self._tokens():
            if isinstance(token, PathRelation):
                takes_more |= self._is_renamed(token)
                self.rows[token.span] = self._rows(token, levels[-1], previous[1])
                token = _NONE
            takes_more |= self._takes_more(token, previous, levels)
            self._follow(levels, token, previous[1])
            chain = self._mention(chain, token, previous[1])
            previous = (previous[1], token)
        if takes_more:
            return None
        return replace(Mentions.of_chains(self._chains), has_patterns=self._has_patterns)

    def _tokens(self) -> Iterator[Token | PathRelation]:
        """Return the tokens, with each relation as a whole."""
        start = 0
        for relation in (*self.relations, None):
            reader = Reader(self.text, None, start)
            end = len(self.text) if relation is None else relation.span.start
            while reader.peek().kind != "end" and reader.peek().start < end:
                yield reader.advance()
            if relation is not None:
                yield relation
                start = relation.span.end

    def _takes_more(
        self, token: Token, previous: tuple[Token, Token], levels: Sequence[_Level]
    ) -> bool:
        """Return whether the text from here on may read columns that it does not name."""
        before, word = previous[1], token.text.upper()
        if token.kind == "word" and before.text != ".":
            if word == "FROM" and not levels[-1].has_select:
                is_distinct = before.text.upper() == "DISTINCT" and previous[0].text.upper() in (
                    "IS",
                    "NOT",
                )
                return not is_distinct and levels[-1].opener not in _WITH_FROM
            return word in _TAKES_COLUMNS
        if word == "*":
            is_star = before.kind == "hint" or before.text.upper() in _BEFORE_A_STAR
            return is_star and not self._counts_rows(token, before, levels[-1])
        return word == ">" and before.text == "|"

    def _counts_rows(self, star: Token, before: Token, level: _Level) -> bool:
        """Return whether a star is that of `count(*)`."""
        is_alone = before.text == "(" and Reader(self.text, None, star.end).is_at(")")
        return is_alone and level.opener == "COUNT"

    def _follow(self, levels: list[_Level], token: Token, before: Token) -> None:
        level, word = levels[-1], token.text.upper()
        if word == "(":
            level.is_plain = False
            levels.append(_Level(before.text.upper()))
        elif word == ")" and len(levels) > 1:
            levels.pop()
        elif token.kind == "word" and before.text != ".":
            if word == "SELECT":
                level.has_select = level.is_plain = True
            elif word == "DISTINCT":
                level.is_plain = False
            elif word in SETS:
                level.has_select, level.has_sets = False, True

    def _mention(self, chain: list[str], token: Token, before: Token) -> list[str]:
        """Read names separated by dots, from a token on."""
        if token.text == ".":
            return chain
        name = self._name(token)
        if name is None:
            return []
        if not chain or before.text != ".":
            chain = []
            self._chains.append(chain)
        chain.append(name)
        return chain

    def _name(self, token: Token) -> str | None:
        """Return the name in a token: a word, or the text in back-ticks or double quotes."""
        if token.kind == "text" and '"' in token.text[:2]:
            return read_text(token)
        if token.kind not in ("word", "name"):
            return None
        name = read_name(token)
        self._has_patterns |= token.kind == "name" and not _PATTERN_MARKS.isdisjoint(name)
        return name

    def _is_renamed(self, relation: PathRelation) -> bool:
        """Return whether a list of column aliases follows a table."""
        if relation.is_qualifier:
            return False
        reader = Reader(self.text, None, relation.span.end)
        _ = read_alias(reader)
        return reader.is_at("(")

    def _rows(self, relation: PathRelation, level: _Level, before: Token) -> RowNeeds:
        if relation.is_qualifier or before.text.upper() != "FROM" or not level.has_select:
            return RowNeeds()
        reader = Reader(self.text, self._parameters_from(relation.span.end), relation.span.end)
        with suppress(UsageError):  # Spark says what is wrong with the text
            alias = read_alias(reader)
            if reader.take("WHERE"):
                own = relation.name[-1] if relation.name else None
                return RowNeeds(_condition(reader), alias or own)
            if level.is_plain and not level.has_sets and reader.take("LIMIT"):
                return RowNeeds(limit=_limit(reader))
        return RowNeeds()

    def _parameters_from(self, start: int) -> Parameters | None:
        """Return the values of the parameters behind a position."""
        given = self.parameters
        if given is None or not given.positional:
            return given
        num_before = sum(marker.start < start for marker in markers_of(self.text))
        return Parameters(positional=given.positional[num_before:])


_NONE = Token("mark", "", 0, 0)


def _condition(reader: Reader) -> SqlText:
    def is_end() -> bool:
        return reader.is_at_any(*_AFTER_WHERE, *SETS) or reader.is_at("|", ">")

    return reader.sql("a condition", is_end)


def _limit(reader: Reader) -> int | None:
    """Read the number behind LIMIT, if nothing but the query's end follows it."""
    if reader.peek().kind not in ("number", "marker"):
        return None
    limit = reader.whole_number("a number of rows")
    return limit if reader.peek().kind == "end" or reader.is_at_any(")", ";") else None
