"""Readings of SQL texts that a client of Spark Connect sends, without Spark's parser.

Only texts that Spark reads alike under every setting are understood. For all others we know only
the columns that they may read, since a text must name each column that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from optimist.core.errors import SchemaError, UsageError
from optimist.core.errors.foreign_text import shown
from optimist.core.expressions.functions import NON_DETERMINISTIC
from optimist.core.expressions.plain_text import tokens_between
from optimist.core.predicates import Predicate
from optimist.core.predicates.resolution import map_columns, map_leaves
from optimist.core.predicates.tree import Column, Opaque
from optimist.core.schema.types import StructType
from optimist.spark.conditions.condition_reading import Obstacle

__all__ = ["SentTexts", "changing_confs", "text_has_subquery"]

_CALL = re.compile(rf"\b(?:{'|'.join(NON_DETERMINISTIC)})\s*\(", re.IGNORECASE)
_SUBQUERY = re.compile(r"\(\s*(?:select|with|values|table|from)\b", re.IGNORECASE)
_BRACKET = re.compile("[()]")
_STAR = re.compile(r"(?:^|[(,])\s*\*|(?:\b[^\W\d]\w*|'')\s*\.\s*\*")
_COMPUTED_NAME = re.compile(r"\bidentifier\s*\(|\$\{", re.IGNORECASE)
_WORD = re.compile(r"\w+")
_PATTERN = re.compile(r"`[^`]*[^`\w][^`]*`")


@dataclass(frozen=True, slots=True)
class SentTexts:
    """A reader of SQL texts over the columns of one table.

    Attributes:
        schema: The table's schema.
        alias: The table's alias, if it has one.
        confs: The session's conf; some keys change how texts are read.
        has_others: True if a text may name columns of others than the table.
    """

    schema: StructType
    alias: str | None
    confs: Mapping[str, str]
    has_others: bool = field(default=False, kw_only=True)

    def obstacle(self, text: str) -> Obstacle | None:
        """Find a part of the text that no command accepts, or return None."""
        bare = _remove_quoted(text)
        if _CALL.search(bare):
            return "non-deterministic"
        outer = _remove_subqueries(bare)
        is_pattern = self._is_on("spark.sql.parser.quotedRegexColumnNames")
        if _STAR.search(outer) or (is_pattern and _PATTERN.search(text)):
            return "star"
        return "subquery" if outer != bare else None

    def names(self, text: str) -> frozenset[str]:
        """Return the columns that the text reads, and perhaps more, in lower case."""
        predicate = self.predicate(text)
        if not predicate.is_exact:
            return self._mentioned_columns(text)
        return frozenset(path[0].lower() for path in predicate.columns())

    def predicate(self, text: str) -> Predicate:
        """Translate the text to a predicate, in which parts are opaque if Spark may differ."""
        opaque = self.opaque(text, self._mentioned_columns(text))
        if self._is_read_in_another_way(text):
            return opaque
        with suppress(UsageError):
            return map_leaves(
                Predicate.parse(text), lambda leaf: self._in_names_of_table(leaf, opaque)
            )
        return opaque

    def opaque(self, text: str, names: frozenset[str]) -> Opaque:
        """Make the placeholder for a condition that is unknown and reads at most these columns."""
        known = (item.name for item in self.schema if item.name.lower() in names)
        return Opaque(text, frozenset((name,) for name in known), deterministic=True)

    def column(self, path: tuple[str, ...]) -> Column | None:
        """Return the column that Spark finds for a path of names.

        The first name may be the table's alias.
        """
        alias = self.alias.lower() if self.alias is not None else None
        if len(path) > 1 and path[0].lower() == alias and self.schema.find(path[1]):
            path = path[1:]
        found = self.schema.find(path[0])
        return None if found is None else Column((found.name, *path[1:]))

    def _mentioned_columns(self, text: str) -> frozenset[str]:
        """Return the columns whose names occur anywhere in the text, since it can't read others."""
        every = frozenset(item.name.lower() for item in self.schema)
        if _COMPUTED_NAME.search(text):
            return every
        folded = text.lower()
        words = frozenset(_WORD.findall(folded))
        odd = (name for name in every if not _WORD.fullmatch(name))
        return (every & words) | {name for name in odd if name.replace("`", "``") in folded}

    def _in_names_of_table(self, leaf: Predicate, opaque: Opaque) -> Predicate:
        is_other = self.has_others and any(self.column(path) is None for path in leaf.columns())
        return (
            opaque if is_other or isinstance(leaf, Opaque) else map_columns(leaf, self._own_column)
        )

    def _own_column(self, column: Column) -> Column:
        found = self.column(column.path)
        if found is None:
            raise SchemaError(
                f"The table has no column {shown(column)}.", kind="DELTA_COLUMN_NOT_FOUND"
            )
        return found

    def _is_on(self, key: str) -> bool:
        return self.confs.get(key, "").strip().lower() == "true"

    def _is_read_in_another_way(self, text: str) -> bool:
        """Check whether a conf makes Spark read the text differently from our parser."""
        return bool(_COMPUTED_NAME.search(text)) or any(map(self._is_on, changing_confs(text)))


def changing_confs(text: str) -> tuple[str, ...]:
    """Return the keys of the conf that make Spark read this text differently, if they are true."""
    return tuple(dict.fromkeys(key for mark, key in _CHANGING if mark.search(text)))


def text_has_subquery(text: str) -> bool:
    """Check whether SQL may hold a subquery."""
    return _SUBQUERY.search(_remove_quoted(text)) is not None


def _remove_subqueries(bare: str) -> str:
    """Remove the subqueries from a text without quoted parts."""
    pieces, end = [], 0
    for found in _SUBQUERY.finditer(bare):
        if found.start() < end:
            continue  # inside another subquery
        pieces.append(bare[end : found.start()])
        end = _end_of_brackets(bare, found.start())
    return "".join([*pieces, bare[end:]])


def _end_of_brackets(bare: str, start: int) -> int:
    depth = 0
    for mark in _BRACKET.finditer(bare, start):
        depth += 1 if mark[0] == "(" else -1
        if not depth:
            return mark.end()
    return len(bare)


def _remove_quoted(text: str) -> str:
    """Remove comments and quoted parts from a text."""
    # A quoted text ends at the same character under every setting; only its backslashes differ.
    tokens = tokens_between(text, 0, len(text))
    return " ".join("''" if token.kind in ("text", "name") else token.text for token in tokens)


_CHANGING = (
    (re.compile(r"[0-9.][eE]"), "spark.sql.legacy.exponentLiteralAsDecimal.enabled"),
    (re.compile("['\"]"), "spark.sql.legacy.typeCoercion.datetimeToString.enabled"),
    (re.compile('"'), "spark.sql.ansi.doubleQuotedIdentifiers"),
    (re.compile(r"""\\|[rR]['"]"""), "spark.sql.parser.escapedStringLiterals"),
    (re.compile("`"), "spark.sql.parser.quotedRegexColumnNames"),
)
"""What a text holds if a key of the conf can change its meaning."""
