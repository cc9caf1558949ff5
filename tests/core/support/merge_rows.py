"""MERGE row by row, in Python: what becomes of the rows, and what its change feed tells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from hypothesis import strategies as st

from command_rows import (
    ASSIGNMENTS,
    OPERATORS,
    ROW_TYPE,
    Assigned,
    Condition,
    Row,
    assignments,
    conditions,
    is_true,
    leaves,
    rank,
    updated,
    value_of,
)

SEVERAL = "DELTA_MULTIPLE_SOURCE_ROW_MATCHING_TARGET_ROW_IN_MERGE"


def as_float(value: int | None) -> float | None:
    return None if value is None else float(value)


def joined(one: str | None, other: str | None) -> str | None:
    return None if one is None or other is None else one + other


def greater(row: Row) -> Any:
    own, other = row["t"]["d"], row["src"]["d"]
    return own if None not in (own, other) and own > other else other


@dataclass(frozen=True)
class Join:
    """What a MERGE is given to tell which rows match, and whether two rows do."""

    given: Any
    matches: Callable[[Row, Row], bool | None]


def equal(one: Any, other: Any) -> bool | None:
    return None if one is None or other is None else rank(one) == rank(other)


def same(one: Any, other: Any) -> bool:
    return one is other if one is None or other is None else rank(one) == rank(other)


EQUALITIES = [
    Join(["id"], lambda t, s: equal(t["id"], s["id"])),
    Join(
        "t.s = src.s AND src.p <=> t.P",
        lambda t, s: equal(t["s"], s["s"]) and same(t["p"], s["p"]),
    ),
    Join("t.`x.y` <=> src.`x.y`", lambda t, s: same(t["x.y"], s["x.y"])),
    Join("t.d = src.d", lambda t, s: equal(t["d"], s["d"])),
    Join("t.n.a = src.p", lambda t, s: equal(value_of(t, "n.a"), s["p"])),
    Join("t.n.`b.c` <=> src.s", lambda t, s: same(value_of(t, "n.`b.c`"), s["s"])),
]


def compared(column: str, op: str, *, is_flipped: bool) -> Condition:
    """A comparison of a column of the table with the same column of the source."""

    def rule(row: Row) -> bool | None:
        own, other = value_of(row["t"], column), value_of(row["src"], column)
        if op == "<=>":
            return same(own, other)
        if None in (own, other):
            return None
        one, two = (other, own) if is_flipped else (own, other)
        return OPERATORS[op](rank(one), rank(two))

    names = ("src", "t") if is_flipped else ("t", "src")
    return Condition(f" {op} ".join(f"{name}.{column}" for name in names), rule)


def joined_by(condition: Condition) -> Join:
    return Join(condition.sql, lambda own, other: condition.rule({"t": own, "src": other}))


def joins() -> Any:
    """Any ON: equalities, ranges, terms over one side or both, with AND, OR and NOT."""
    pair = st.builds(
        compared,
        st.sampled_from(["id", "p", "`x.y`", "d", "s", "n.a", "n.`b.c`"]),
        st.sampled_from(["=", "=", "<=>", *OPERATORS]),
        is_flipped=st.booleans(),
    )
    return st.sampled_from(EQUALITIES) | conditions(pair | pair | side("t") | side("src")).map(
        joined_by
    )


BOTH = [
    Assigned("id", "src.id", lambda row: row["src"]["id"]),
    Assigned("`x.y`", "t.p", lambda row: as_float(row["t"]["p"])),
    Assigned("s", "concat(t.s, src.s)", lambda row: joined(row["t"]["s"], row["src"]["s"])),
    Assigned("n.a", "src.id", lambda row: row["src"]["id"]),
    Assigned("d", "CASE WHEN t.d > src.d THEN t.d ELSE src.d END", greater),
]


@dataclass(frozen=True)
class Clause:
    """A clause; `items` are None for a DELETE, and for all columns."""

    kind: str
    action: str
    condition: Condition | None
    items: tuple[Assigned, ...] | None

    @property
    def sql(self) -> str | None:
        return None if self.condition is None else self.condition.sql

    @property
    def takes_all(self) -> bool:
        return self.action != "delete" and self.items is None


EVOLVED = [*ROW_TYPE][-1].with_type(
    pa.struct([("a", pa.int64()), ("b.c", pa.string()), ("c", pa.string())])
)
"""The struct of the rows with a field that only a source has."""
SOURCE_TYPE = pa.schema([("extra", pa.int64()), EVOLVED, *[*ROW_TYPE][:-1]])
"""The columns of a source with more than the table has, in another order."""


def with_more(rows: list[Row]) -> list[Row]:
    """Rows of a source with more columns and fields than the table has."""

    def struct(row: Row, number: int) -> Row | None:
        return None if row["n"] is None else {**row["n"], "c": f"c{number}"}

    return [{**row, "extra": at, "n": struct(row, at)} for at, row in enumerate(rows)]


def schema_after(found: list[Clause]) -> pa.Schema:
    """The table's columns after a MERGE of such a source with schema evolution."""
    if any(clause.takes_all for clause in found):
        return pa.schema([*[*ROW_TYPE][:-1], EVOLVED, ("extra", pa.int64())])
    assigned = {item.column for clause in found for item in clause.items or ()}
    return pa.schema([*[*ROW_TYPE][:-1], EVOLVED]) if "n" in assigned else ROW_TYPE


def clauses(kind: str, action: str, condition: Any, items: Any = None) -> Any:
    given = st.none() if items is None else items
    return st.builds(Clause, st.just(kind), st.just(action), st.none() | condition, given)


def side(name: str) -> Any:
    return leaves(f"{name}.", lambda row: row[name])


def some(items: list[Assigned]) -> Any:
    return st.lists(st.sampled_from(items), min_size=1, max_size=3).map(
        lambda found: tuple({item.column.lower(): item for item in found}.values())
    )


def in_order(found: list[Clause]) -> list[Clause]:
    """Only the last clause of a kind may have no condition."""
    kept = []
    for at, clause in enumerate(found):
        later = any(other.kind == clause.kind for other in found[at + 1 :])
        if clause.condition is not None or not later:
            kept.append(clause)
    return kept


_WHOLE = [item for item in ASSIGNMENTS if not item.column.startswith("n.")]
_ON_BOTH = conditions(side("t") | side("src"))
_CLAUSE = st.one_of(
    clauses("MATCHED", "update", _ON_BOTH, st.none() | some(BOTH)),
    clauses("MATCHED", "delete", _ON_BOTH),
    clauses("NOT MATCHED", "insert", conditions(leaves("src.")), st.none() | some(_WHOLE)),
    clauses("NOT MATCHED BY SOURCE", "update", conditions(leaves("t.")), assignments().map(tuple)),
    clauses("NOT MATCHED BY SOURCE", "delete", conditions(leaves("t."))),
)
CLAUSES = st.lists(_CLAUSE, min_size=1, max_size=4).map(in_order)


class SeveralMatchesError(Exception):
    pass


Change = tuple[str, Row]


@dataclass(frozen=True)
class Merged:
    """The rows afterwards, what changed, and how many rows by kind and action."""

    rows: list[Row]
    changes: list[Change]
    counts: Counter[tuple[str, str]]

    def number(self, action: str) -> int:
        return sum(count for (_, own), count in self.counts.items() if own == action)

    def stored(self, partition_by: Sequence[str]) -> Merged:
        """As a table holds it: empty text is null in a partition."""

        def kept(row: Row) -> Row:
            return {
                name: None if name in partition_by and v == "" else v for name, v in row.items()
            }

        changes = [(kind, kept(row)) for kind, row in self.changes]
        return replace(self, rows=list(map(kept, self.rows)), changes=changes)

    def metrics(self, source: list[Row]) -> dict[str, int]:
        """Those that do not tell how the work was done."""
        by_source = "NOT MATCHED BY SOURCE"
        return {
            "numSourceRows": len(source),
            "numTargetRowsInserted": self.number("insert"),
            "numTargetRowsUpdated": self.number("update"),
            "numTargetRowsMatchedUpdated": self.counts["MATCHED", "update"],
            "numTargetRowsNotMatchedBySourceUpdated": self.counts[by_source, "update"],
            "numTargetRowsDeleted": self.number("delete"),
            "numTargetRowsMatchedDeleted": self.counts["MATCHED", "delete"],
            "numTargetRowsNotMatchedBySourceDeleted": self.counts[by_source, "delete"],
        }


def merged(model: list[Row], source: list[Row], join: Join, found: list[Clause]) -> Merged:
    """What a MERGE makes of the rows.

    Raises:
        SeveralMatchesError: Several rows of the source match one of the table.
        OverflowError: A value does not fit its column.
    """
    result, changes, counts = [], [], Counter[tuple[str, str]]()

    def chosen(kind: str, row: Row) -> Clause | None:
        return next((c for c in found if c.kind == kind and is_true(c.condition, row)), None)

    def first(kind: str, row: Row) -> Clause | None:
        clause = chosen(kind, row)
        if clause is not None:
            counts[kind, clause.action] += 1
        return clause

    for own in model:
        others = [other for other in source if join.matches(own, other)]
        changing = [other for other in others if chosen("MATCHED", {"t": own, "src": other})]
        if len(changing) > 1 and not _takes_several(found):
            raise SeveralMatchesError
        others = changing or others
        seen = {"t": own, "src": others[0]} if others else own
        clause = first("MATCHED" if others else "NOT MATCHED BY SOURCE", seen)
        if clause is None:
            result.append(own)
        elif clause.action == "update":
            new = others[0] if clause.items is None else changed(own, seen, clause.items)
            result.append(new)
            changes += [("update_preimage", own), ("update_postimage", new)]
        else:
            changes.append(("delete", own))
    for other in source:
        if any(join.matches(own, other) for own in model):
            continue
        if clause := first("NOT MATCHED", other):
            nothing = dict.fromkeys(other)
            new = other if clause.items is None else changed(nothing, other, clause.items)
            result.append(new)
            changes.append(("insert", new))
    return Merged(result, changes, counts)


def _takes_several(found: list[Clause]) -> bool:
    matched = [(c.action, c.condition) for c in found if c.kind == "MATCHED"]
    return matched == [("delete", None)] or all(c.kind == "NOT MATCHED" for c in found)


def changed(own: Row, seen: Row, items: tuple[Assigned, ...]) -> Row:
    fixed = [Assigned(i.column, i.given, lambda _, i=i: i.value(seen)) for i in items]
    return updated(own, fixed)


def with_clause(merge: Any, clause: Clause) -> Any:
    """The MERGE with one more clause."""
    name = f"when_{clause.kind.lower().replace(' ', '_')}_{clause.action}"
    if clause.action == "delete":
        return getattr(merge, name)(clause.sql)
    if clause.items is None:
        return getattr(merge, f"{name}_all")(clause.sql)
    return getattr(merge, name)({item.column: item.given for item in clause.items}, clause.sql)
