"""Random queries over a random table, as SQL in which `{t}` is the table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from random import Random  # noqa: TID251 - a case is its seed
from typing import Any

from odd_names import quoted
from random_tables import KINDS, Version

__all__ = ["RandomQueries"]

_NUMBERS = ("byte", "short", "int", "long", "dec5", "dec38", "dec38_10", "float", "double")
_TEXTS = ("text", "varchar", "char")
_DATES = ("date", "time", "wall")
_FLOATING = ("float", "double")
_OPERATORS = ("=", "<>", "<", "<=", ">", ">=", "<=>", "!=")


@dataclass(frozen=True)
class _Leaf:
    """A plain value of a row: SQL, and its kind."""

    sql: str
    kind: str


class RandomQueries:
    """Makes queries over one version of a table.

    Each gives its columns the names `c0`, `c1`, and so on; where it has an order, `id` is the last
    part of it.
    """

    def __init__(self, version: Version, random: Random) -> None:
        """Queries over these columns, whose constants are often values that the table holds."""
        self._random = random
        self._version = version
        self._leaves: list[_Leaf] = []
        for name, kind in version.columns.items():
            inner = KINDS[kind].leaves
            sql = quoted(name)
            self._leaves += [_Leaf(path.format(c=sql), of) for path, of in inner.items()]
            self._leaves += [] if inner else [_Leaf(sql, kind)]

    def query(self) -> str:
        """A query; rows that are not ordered may come in any order."""
        return self._random.choice(
            (
                self._rows, self._rows, self._rows, self._rows, self._ordered, self._grouped,
                self._counted, self._extremes, self._joined, self._within, self._exists,
                self._compared_with_scalar, self._windowed, self._set_of_two, self._distinct,
                self._common,
            )
        )()  # fmt: skip

    def condition(self, depth: int = 2, prefix: str = "") -> str:
        """A condition on a row."""
        random = self._random
        if depth and random.random() < 0.55:
            parts = [self.condition(depth - 1, prefix) for _ in range(random.choice((2, 2, 3)))]
            return random.choice(
                (
                    lambda: f"({' AND '.join(parts)})",
                    lambda: f"({' OR '.join(parts)})",
                    lambda: f"NOT ({parts[0]})",
                    lambda: f"CASE WHEN {parts[0]} THEN {parts[1]} ELSE {parts[-1]} END",
                    lambda: f"if({parts[0]}, {parts[1]}, {parts[-1]})",
                    lambda: f"coalesce({parts[0]}, {parts[1]})",
                    lambda: f"(({parts[0]}) IS NOT TRUE)",
                    lambda: f"(({parts[0]}) <=> ({parts[1]}))",
                    lambda: f"(({parts[0]}) = ({parts[1]}))",
                )
            )()
        return self._test(prefix)

    # Parts of conditions

    def _leaf(self, prefix: str = "", kinds: tuple[str, ...] = ()) -> _Leaf:
        found = [leaf for leaf in self._leaves if not kinds or leaf.kind in kinds]
        leaf = self._random.choice(found or self._leaves)
        return _Leaf(self._with(leaf, prefix), leaf.kind) if prefix else leaf

    def _constant(self, kind: str) -> str:
        random = self._random
        found = KINDS[kind]
        if random.random() < 0.05:
            return f"CAST(NULL AS {found.plain_sql or found.sql})"
        value = random.choice(found.values)
        if random.random() < 0.25:
            value = _near(value, kind, random.choice((-1, 1)))
        return found.spell(value)

    def _test(self, prefix: str) -> str:
        random = self._random
        leaf = self._leaf(prefix)
        tests: list[Callable[[_Leaf], str]] = [
            self._compared, self._compared, self._compared, self._listed, self._between,
            self._null, self._cast, self._changed, self._beside,
        ]  # fmt: skip
        if leaf.kind in _TEXTS:
            tests += [self._like, self._like, self._text_function]
        if leaf.kind in _DATES:
            tests += [self._part_of_time, self._part_of_time]
        if leaf.kind in _FLOATING:
            tests.append(lambda of: f"isnan({of.sql})")
        if leaf.kind == "bool":
            tests.append(lambda of: random.choice((of.sql, f"NOT {of.sql}", f"{of.sql} IS TRUE")))
        return random.choice(tests)(leaf)

    def _compared(self, leaf: _Leaf) -> str:
        sides = [leaf.sql, self._constant(leaf.kind)]
        if self._random.random() < 0.3:
            sides.reverse()
        return f"{sides[0]} {self._random.choice(_OPERATORS)} {sides[1]}"

    def _listed(self, leaf: _Leaf) -> str:
        count = self._random.choice((1, 2, 3, 12))
        constants = ", ".join(self._constant(leaf.kind) for _ in range(count))
        return f"{leaf.sql} {self._random.choice(('', 'NOT '))}IN ({constants})"

    def _between(self, leaf: _Leaf) -> str:
        low, high = self._constant(leaf.kind), self._constant(leaf.kind)
        word = self._random.choice(("", "NOT "))
        return f"{leaf.sql} {word}BETWEEN {low} AND {high}"

    def _null(self, leaf: _Leaf) -> str:
        name = quoted(self._random.choice(list(self._version.columns)))
        of = leaf.sql if self._random.random() < 0.8 or "." in leaf.sql else name
        return f"{of} IS {self._random.choice(('', 'NOT '))}NULL"

    def _cast(self, leaf: _Leaf) -> str:
        target = self._random.choice(("string", "bigint", "double", "decimal(20,3)", "int", "date"))
        constant = {
            "string": "'1'", "bigint": "0", "double": "0.5D", "decimal(20,3)": "-1.5",
            "int": "-1", "date": "DATE '1970-01-01'",
        }[target]  # fmt: skip
        operator = self._random.choice(_OPERATORS)
        return f"try_cast({leaf.sql} AS {target}) {operator} {constant}"

    def _changed(self, leaf: _Leaf) -> str:
        random, sql, kind = self._random, leaf.sql, leaf.kind
        constant, operator = self._constant(kind), random.choice(_OPERATORS)
        ways = [
            f"coalesce({sql}, {constant}) {operator} {constant}",
            f"nullif({sql}, {constant}) {operator} {self._constant(kind)}",
            f"greatest({sql}, {constant}) {operator} {self._constant(kind)}",
            f"least({sql}, {constant}) {operator} {self._constant(kind)}",
            f"ifnull({sql} {operator} {constant}, {random.choice(('true', 'false'))})",
            f"CASE {sql} WHEN {constant} THEN 1 WHEN {self._constant(kind)} THEN 2 END = 1",
            f"hash({sql}) % 2 = 0",
        ]
        if kind in _NUMBERS:
            ways += [
                f"try_add({sql}, 1) {operator} {constant}",
                f"try_subtract(0, {sql}) {operator} {constant}",
                f"try_multiply({sql}, 2) {operator} {constant}",
                f"CASE WHEN {sql} IS NULL THEN -1 ELSE 1 END {operator} 1",
                f"sign({sql}) {operator} 0",
            ]
        return random.choice(ways)

    def _beside(self, leaf: _Leaf) -> str:
        """Two columns of one kind, or a column with itself."""
        other = self._leaf(kinds=(leaf.kind,)).sql if "." not in leaf.sql else leaf.sql
        return f"{leaf.sql} {self._random.choice(_OPERATORS)} {other}"

    def _like(self, leaf: _Leaf) -> str:
        patterns = ("a%", "%a", "%b%", "_", "%", "", "a_%", "__", "%\\\\_", "é%", "x%", "%x", " %")
        pattern = self._random.choice(patterns)
        word = self._random.choice(("LIKE", "NOT LIKE", "ILIKE"))
        if self._random.random() < 0.2:
            return f"{leaf.sql} RLIKE '^[a-x]'"
        return f"{leaf.sql} {word} '{pattern}'"

    def _text_function(self, leaf: _Leaf) -> str:
        function = self._random.choice(("upper", "lower", "trim", "rtrim", "reverse"))
        operator, constant = self._random.choice(_OPERATORS), self._constant("text")
        return self._random.choice(
            (
                f"{function}({leaf.sql}) {operator} {constant}",
                f"length({leaf.sql}) {operator} {self._random.randrange(5)}",
                f"substring({leaf.sql}, 1, 1) {operator} {constant}",
                f"startswith({leaf.sql}, {constant})",
                f"contains({leaf.sql}, {constant})",
                f"concat({leaf.sql}, 'x') {operator} {constant}",
            )
        )

    def _part_of_time(self, leaf: _Leaf) -> str:
        part, constant = self._random.choice(
            (
                ("year", "1970"), ("year", "1"), ("year", "9999"), ("month", "12"), ("day", "1"),
                ("dayofweek", "4"), ("quarter", "4"),
            )
        )  # fmt: skip
        operator, value = self._random.choice(_OPERATORS), self._constant(leaf.kind)
        return self._random.choice(
            (
                f"{part}({leaf.sql}) {operator} {constant}",
                f"CAST({leaf.sql} AS DATE) {operator} CAST({value} AS DATE)",
                f"trunc({leaf.sql}, 'YEAR') {operator} CAST({value} AS DATE)",
                f"date_trunc('MONTH', {leaf.sql}) {operator} {value}",
            )
        )

    # Queries

    def _columns(self, prefix: str = "") -> str:
        """Some columns and fields, in any order, and now and then an expression."""
        random = self._random
        names = list(self._version.columns)
        dot = f"{prefix}." if prefix else ""
        items = [dot + quoted(n) for n in random.sample(names, random.randrange(1, len(names) + 1))]
        if random.random() < 0.5:
            items.append(self._leaf(prefix).sql)
        if random.random() < 0.2:
            items.append(self.condition(1, prefix))
        return ", ".join(f"{item} AS c{at}" for at, item in enumerate(items))

    def _rows(self) -> str:
        return f"SELECT {self._columns()} FROM {{t}} WHERE {self.condition()}"

    def _ordered(self) -> str:
        random = self._random
        direction = random.choice(("ASC", "DESC", "ASC NULLS LAST", "DESC NULLS FIRST"))
        by = f"{self._leaf().sql} {direction}"
        where = f" WHERE {self.condition()}" if random.random() < 0.7 else ""
        limit = f"LIMIT {random.choice((0, 1, 3))}"
        offset = random.choice(("", " OFFSET 1"))
        return f"SELECT {self._columns()} FROM {{t}}{where} ORDER BY {by}, id {limit}{offset}"

    def _grouped(self) -> str:
        key = self._leaf().sql
        aggregates = f"count(*) AS c1, count({self._leaf().sql}) AS c2, sum(id) AS c3"
        having = self._random.choice(("", " HAVING count(*) > 1"))
        where = f" WHERE {self.condition()}" if self._random.random() < 0.7 else ""
        return f"SELECT hash({key}) AS c0, {aggregates} FROM {{t}}{where} GROUP BY {key}{having}"

    def _counted(self) -> str:
        where = f" WHERE {self.condition()}" if self._random.random() < 0.8 else ""
        distinct = self._leaf().sql
        return f"SELECT count(*) AS c0, count(DISTINCT {distinct}) AS c1 FROM {{t}}{where}"

    def _extremes(self) -> str:
        """Of the two zeros and of texts that collate alike either may come; these have no such."""
        leaves = [leaf for leaf in self._leaves if leaf.kind not in _FLOATING]
        of = self._random.choice(leaves).sql
        where = f" WHERE {self.condition()}" if self._random.random() < 0.6 else ""
        return f"SELECT min({of}) AS c0, max({of}) AS c1, count({of}) AS c2 FROM {{t}}{where}"

    def _joined(self) -> str:
        random = self._random
        how = random.choice(("JOIN", "LEFT JOIN", "FULL JOIN", "LEFT SEMI JOIN", "LEFT ANTI JOIN"))
        key = self._leaf()
        left, right = self._with(key, "a"), self._with(key, "b")
        on = f"{left} {random.choice(('=', '<=>'))} {right}"
        if random.random() < 0.4:
            on += f" AND {self.condition(1, 'b')}"
        both = "" if "SEMI" in how or "ANTI" in how else ", b.id AS c1"
        where = f" WHERE {self.condition(1, 'a')}" if random.random() < 0.7 else ""
        return f"SELECT a.id AS c0{both} FROM {{t}} a {how} {{t}} b ON {on}{where}"

    def _with(self, leaf: _Leaf, prefix: str) -> str:
        """The value under the alias of a table, in which its column stands in back-ticks."""
        name = next(
            quoted(n)
            for n in sorted(self._version.columns, key=len, reverse=True)
            if quoted(n) in leaf.sql
        )
        return leaf.sql.replace(name, f"{prefix}.{name}", 1)

    def _within(self) -> str:
        key = self._leaf().sql
        word = self._random.choice(("IN", "NOT IN"))
        inner = f"SELECT {key} FROM {{t}} WHERE {self.condition(1)}"
        return f"SELECT id AS c0 FROM {{t}} WHERE {key} {word} ({inner})"

    def _exists(self) -> str:
        key = self._leaf()
        word = self._random.choice(("EXISTS", "NOT EXISTS"))
        inner = f"SELECT 1 FROM {{t}} b WHERE {self._with(key, 'b')} = {self._with(key, 'a')}"
        inner += f" AND b.id <> a.id AND {self.condition(1, 'b')}"
        return f"SELECT a.id AS c0 FROM {{t}} a WHERE {word} ({inner})"

    def _compared_with_scalar(self) -> str:
        leaf = self._leaf().sql
        function = self._random.choice(("min", "max"))
        inner = f"SELECT {function}({leaf}) FROM {{t}} WHERE {self.condition(1)}"
        operator = self._random.choice(_OPERATORS)
        return f"SELECT id AS c0 FROM {{t}} WHERE {leaf} {operator} ({inner})"

    def _windowed(self) -> str:
        key, where = self._leaf().sql, f" WHERE {self.condition()}"
        over = f"OVER (PARTITION BY {key} ORDER BY id)"
        rows = f"row_number() {over} AS c1, lag(id) {over} AS c2, sum(id) {over} AS c3"
        inner = f"SELECT id AS c0, {rows} FROM {{t}}{where}"
        return f"SELECT * FROM ({inner}) WHERE {self._random.choice(('true', 'c1 = 1', 'c0 > 2'))}"

    def _set_of_two(self) -> str:
        word = self._random.choice(("UNION ALL", "UNION", "INTERSECT", "EXCEPT"))
        one, two = (f"SELECT id AS c0 FROM {{t}} WHERE {self.condition()}" for _ in range(2))
        return f"{one} {word} {two}"

    def _distinct(self) -> str:
        leaves = [leaf.sql for leaf in self._leaves if leaf.kind not in _FLOATING]
        return f"SELECT DISTINCT {self._random.choice(leaves)} AS c0 FROM {{t}}"

    def _common(self) -> str:
        chosen = f"WITH some AS (SELECT * FROM {{t}} WHERE {self.condition()})"
        return f"{chosen} SELECT {self._columns()} FROM some WHERE {self.condition(1)}"


def _near(value: Any, kind: str, step: int) -> Any:
    """A value next to one, of which statistics may tell less than the whole."""
    if isinstance(value, bool):
        return not value
    bits = {"byte": 8, "short": 16, "int": 32, "long": 64}.get(kind)
    if bits is not None:
        return max(-(2 ** (bits - 1)), min(2 ** (bits - 1) - 1, value + step))
    if isinstance(value, str) and kind == "text":
        return value[:-1] if step < 0 else value + "a"
    if isinstance(value, dt.datetime) and value.year not in (1, 9999):
        return value + dt.timedelta(microseconds=step)
    if isinstance(value, dt.date) and value.year not in (1, 9999):
        return value + dt.timedelta(days=step)
    if isinstance(value, Decimal) and kind == "dec5":
        return Decimal(f"{value}") + Decimal(step) / 10 if abs(value) < 9000 else value
    return value
