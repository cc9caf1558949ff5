"""MERGE row by row, in Python: what a table holds afterwards, and how many rows changed.

Random merges are made of a few conditions and values, each as SQL and as a function.
"""

from __future__ import annotations

import math
import random  # noqa: TID251 - a case is its seed: the same chance each time it is run
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.spark import DeltaTable

NINES, FEWER, BELOW = Decimal("9" * 38), Decimal("9" * 37 + "8"), Decimal("-" + "9" * 38)
KEYS = {
    "long": (pa.int64(), [None, 0, 1, 2, 3, 4, 5, -(2**63), 2**63 - 1]),
    "double": (pa.float64(), [None, math.nan, 0.0, 1.5, -1.5, math.inf, 1e300]),
    "decimal": (pa.decimal128(38, 0), [None, NINES, FEWER, BELOW, *map(Decimal, range(4))]),
    "text": (pa.string(), [None, "", "a", "A", "ü`.'", "b\u0000", "c"]),
}
ODD = "a.`b"
QUOTED = "`a.``b`"
COLUMNS = ("key", ODD, "s")
KINDS_OF_UPDATE = ("update_preimage", "update_postimage")


class SeveralMatchesError(Exception):
    pass


def equal(one, other):
    """SQL's `=`: NaN equals itself, and null makes null."""
    if one is None or other is None:
        return None
    if isinstance(one, float) and math.isnan(one):
        return math.isnan(other)
    return one == other


def same(one, other):
    return one is other if one is None or other is None else equal(one, other)


def above(one, other):
    return None if one is None or other is None else one > other


ON = [
    ("t.key = s.key", lambda t, s: equal(t["key"], s["key"])),
    ("s.key <=> t.key", lambda t, s: same(t["key"], s["key"])),
    (
        f"t.key = s.key AND t.{QUOTED} > 1",
        lambda t, s: equal(t["key"], s["key"]) and above(t[ODD], 1),
    ),
]
CONDITIONS = {
    "MATCHED": [
        (f"t.{QUOTED} > s.{QUOTED}", lambda t, s: above(t[ODD], s[ODD])),
        ("s.s = 'x'", lambda t, s: equal(s["s"], "x")),
        ("t.s IS NULL", lambda t, s: t["s"] is None),
    ],
    "NOT MATCHED": [
        (f"{QUOTED} > 2", lambda t, s: above(s[ODD], 2)),
        ("s = 'x'", lambda t, s: equal(s["s"], "x")),
    ],
    "NOT MATCHED BY SOURCE": [
        (f"{QUOTED} > 2", lambda t, s: above(t[ODD], 2)),
        ("t.s = 'y'", lambda t, s: equal(t["s"], "y")),
    ],
}
UPDATES = [
    ({QUOTED: f"coalesce(t.{QUOTED}, 0) + 10"}, lambda t, s: {**t, ODD: (t[ODD] or 0) + 10}),
    (
        {"S": "s.s", "key": "s.key", f"t.{QUOTED}": "1"},
        lambda t, s: {"key": s["key"], ODD: 1, "s": s["s"]},
    ),
    (None, lambda t, s: dict(s)),
]
INSERTS = [
    ({"key": "key", "s": "'new'"}, lambda t, s: {"key": s["key"], ODD: None, "s": "new"}),
    ({"t.key": "s.key", QUOTED: "CAST(7 AS BIGINT)"}, lambda t, s: {**s, ODD: 7, "s": None}),
    (None, lambda t, s: dict(s)),
]
CHANGES_BY_SOURCE = [
    ({"s": "'alone'", QUOTED: f"{QUOTED} + 1"}, lambda t, s: {**t, "s": "alone", ODD: add(t[ODD])}),
]


def add(value):
    return None if value is None else value + 1


@dataclass
class Clause:
    kind: str
    action: str
    sql: str | None
    matches: object
    values: object = None
    change: object = None

    def on(self, builder):
        name = {
            "MATCHED": "whenMatched",
            "NOT MATCHED": "whenNotMatched",
            "NOT MATCHED BY SOURCE": "whenNotMatchedBySource",
        }[self.kind] + self.action.title()
        if self.action == "delete":
            return getattr(builder, name)(self.sql)
        if self.values is None:
            return getattr(builder, name + "All")(self.sql)
        return getattr(builder, name)(self.sql, self.values)


@dataclass
class Merge:
    seed: int
    rows: list = field(default_factory=list)
    source: list = field(default_factory=list)
    clauses: list = field(default_factory=list)
    changes: list = field(default_factory=list)

    @classmethod
    def of(cls, seed, kinds=None):
        chance = random.Random(seed)
        self = cls(seed)
        self.key_type, keys = KEYS[chance.choice(sorted(KEYS))]
        self.partition_by = chance.choice([None, None, ["s"], [ODD]])
        self.on_sql, self.is_match = chance.choice(ON)

        def row(key):
            return {
                "key": key,
                ODD: chance.choice([None, 0, 1, 2, 3, 4]),
                "s": chance.choice([None, "x", "y"]),
            }

        self.rows = [row(chance.choice(keys)) for _ in range(chance.randint(4, 14))]
        chosen = chance.sample(keys, chance.randint(1, len(keys) - 1))
        self.source = [row(key) for key in chosen]
        if chance.random() < 0.2:
            self.source.append(dict(self.source[0]))
        for kind in kinds or chance.sample(sorted(CONDITIONS), chance.randint(1, 3)):
            self.clauses += some_clauses(chance, kind)
        return self

    def table(self, rows):
        types = (self.key_type, pa.int64(), pa.string())
        columns = [[row[name] for row in rows] for name in COLUMNS]
        arrays = [pa.array(values, kind) for values, kind in zip(columns, types, strict=True)]
        return pa.table(arrays, names=list(COLUMNS))

    def write(self, path, conf=None):
        log = DeltaLog.for_path(path, conf or {})
        half = len(self.rows) // 2
        log.append(self.table(self.rows[:half]), partition_by=self.partition_by)
        log.append(self.table(self.rows[half:]))

    def run(self, spark, path, source=None):
        """The row of counts that the command returns."""
        if source is None:
            source = spark.createDataFrame(self.table(self.source))
        if self.seed % 3 == 0:
            source = source.where("rand() < 2")  # which must be materialised
        table = DeltaTable.forPath(spark, path)
        builder = table.alias("t").merge(source.alias("s"), self.on_sql)
        for clause in self.clauses:
            builder = clause.on(builder)
        (row,) = builder.execute().collect()
        return row.asDict()

    def expected(self):
        """The rows afterwards, and counts by kind of row and action; tells `changes`, too."""
        sole = [(c.action, c.sql) for c in self.clauses if c.kind == "MATCHED"]
        only_inserts = all(c.kind == "NOT MATCHED" for c in self.clauses)
        rows, counts, met, self.changes = [], Counter(), set(), []
        for t in self.rows:
            found = [at for at, s in enumerate(self.source) if self.is_match(t, s)]
            met.update(found)
            kind = "MATCHED" if found else "NOT MATCHED BY SOURCE"
            changing = [at for at in found if self._takes(kind, t, self.source[at])]
            if len(changing) > 1 and sole != [("delete", None)] and not only_inserts:
                raise SeveralMatchesError
            found = changing or found
            s = self.source[found[0]] if found else None
            rows += self._changed(kind, t, s, counts, [t])
        for at, s in enumerate(self.source):
            if at not in met:
                rows += self._changed("NOT MATCHED", None, s, counts, [])
        return rows, counts

    def _takes(self, kind, t, s):
        return any(clause.kind == kind and clause.matches(t, s) for clause in self.clauses)

    def _changed(self, kind, t, s, counts, otherwise):
        for clause in self.clauses:
            if clause.kind == kind and clause.matches(t, s):
                counts[kind, clause.action] += 1
                after = [] if clause.action == "delete" else [clause.change(t, s)]
                is_update = clause.action == "update"
                gone, new = KINDS_OF_UPDATE if is_update else ("delete", "insert")
                self.changes += [{**t, "_change_type": gone}] if t else []
                self.changes += [{**row, "_change_type": new} for row in after]
                return after
        return otherwise

    def recorded(self):
        """The changes, as a table."""
        kinds = pa.array([row["_change_type"] for row in self.changes], pa.string())
        return self.table(self.changes).append_column("_change_type", kinds)


def some_clauses(chance, kind):
    """One to three clauses of a kind; the last may take every row."""
    actions = {
        "MATCHED": ["update", "delete", "update"],
        "NOT MATCHED": ["insert"],
        "NOT MATCHED BY SOURCE": ["update", "delete"],
    }[kind]
    number = chance.randint(1, 3)
    for at in range(number):
        action = chance.choice(actions)
        takes_all = at == number - 1 and chance.random() < 0.6
        sql, matches = (None, lambda t, s: True) if takes_all else chance.choice(CONDITIONS[kind])
        pool = {"insert": INSERTS, "update": UPDATES, "delete": [(None, None)]}[action]
        pool = CHANGES_BY_SOURCE if (kind, action) == (_BY_SOURCE, "update") else pool
        yield Clause(kind, action, sql, matches, *chance.choice(pool))


_BY_SOURCE = "NOT MATCHED BY SOURCE"


def changed(counts, *wanted):
    return sum(number for (kind, action), number in counts.items() if action in wanted)
