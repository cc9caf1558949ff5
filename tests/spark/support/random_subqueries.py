"""Random conditions with subqueries over a table `t` (id, a, p), a view `r` (k, w) and itself."""

from __future__ import annotations

import random  # noqa: TID251 - a case is its seed: the same chance each time it is run

import pyarrow as pa

__all__ = ["other_rows", "own_rows", "random_condition"]

_COLUMNS = ("id", "a")
_WHERE = ("true", "k IS NOT NULL", "w > 1", "w = t.p", "k < t.a", "false")
_ASKING = (
    "t.{c} IN (SELECT k FROM r WHERE {w})",
    "t.{c} NOT IN (SELECT k FROM r WHERE {w})",
    "(t.id, t.a) IN (SELECT k, w FROM r WHERE {w})",
    "(t.id, t.a) NOT IN (SELECT k, w FROM r)",
    "EXISTS (SELECT 1 FROM r WHERE r.k = t.{c} AND {w})",
    "NOT EXISTS (SELECT 1 FROM r WHERE r.k = t.{c} AND r.w <= t.a)",
    "t.{c} > (SELECT {f}(x.{c}) FROM {own} x)",
    "t.{c} = (SELECT {f}(x.{c}) FROM {own} x WHERE x.p = t.p)",
    "t.a = (SELECT max(r.w) FROM r WHERE r.k = t.id)",
    "t.{c} IN (SELECT x.a FROM {own} x JOIN r ON x.id = r.k WHERE {w})",
    "t.{c} IN (WITH c AS (SELECT k + 1 AS k, w FROM r) SELECT k FROM c WHERE w > 0)",
    "t.{c} IN (SELECT k FROM r WHERE EXISTS (SELECT 1 FROM {own} x WHERE x.a = r.w))",
)
_PLAIN = ("t.a > 1", "t.p = 1", "t.p <> 0", "t.id IS NULL", "t.a + t.id < 6")


def random_condition(chance: random.Random, own: str, depth: int = 2) -> str:
    """SQL with one subquery at least.

    Args:
        chance: Decides.
        own: The name of the table.
        depth: How deep AND, OR and NOT stand within each other.
    """
    if depth == 0 or chance.random() < 0.3:
        text = chance.choice(_ASKING)
        return text.format(
            c=chance.choice(_COLUMNS),
            w=chance.choice(_WHERE),
            f=chance.choice(["min", "max", "avg"]),
            own=own,
        )
    one = random_condition(chance, own, depth - 1)
    other = chance.choice(_PLAIN)
    if chance.random() < 0.5:
        other = random_condition(chance, own, depth - 1)
    return chance.choice([f"{other} AND ({one})", f"({one}) OR {other}", f"NOT ({one})"])


def own_rows(chance: random.Random) -> pa.Table:
    """Rows of the table, some of them alike."""
    size = chance.randint(3, 12)
    ids = [chance.choice([None, *range(7)]) for _ in range(size)]
    numbers = [chance.choice([None, *range(5)]) for _ in range(size)]
    parts = [chance.choice([None, 0, 1, 2]) for _ in range(size)]
    return _table(id=(ids, pa.int64()), a=(numbers, pa.int32()), p=(parts, pa.int32()))


def other_rows(chance: random.Random) -> pa.Table:
    """Rows of the other table; mostly no key is null, which is what NOT IN goes by."""
    size = chance.randint(0, 5)
    keys = [chance.choice([*range(6), *([None] if size == 5 else [])]) for _ in range(size)]
    numbers = [chance.choice([None, *range(4)]) for _ in range(size)]
    return _table(k=(keys, pa.int64()), w=(numbers, pa.int32()))


def _table(**columns: tuple[list[int | None], pa.DataType]) -> pa.Table:
    return pa.table({name: pa.array(*given) for name, given in columns.items()})
