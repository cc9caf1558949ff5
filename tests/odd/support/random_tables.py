"""Random Delta tables with a random history, and what every version holds as plain Arrow rows.

The rows are kept in Python beside the table: what a version holds is never read from it.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from random import Random  # noqa: TID251 - a case is its seed
from typing import Any

import pyarrow as pa

from odd_names import NEED_A_MAPPING, ON_SPARK, quoted
from odd_values import COLUMNS, UTC, OddColumn
from optimist.core import DeltaLog
from optimist.core.requests.columns import ColumnChange, NewColumn
from optimist.core.requests.table_definition import Column

__all__ = ["KINDS", "Kind", "RandomTable", "Version", "utc_rows"]


@dataclass(frozen=True)
class Kind:
    """A type: its SQL, its Arrow type, some values, and how SQL spells one of them.

    `leaves` are the plain values inside: SQL over a column `{c}` of this type, and their kinds.
    """

    sql: str
    arrow_type: pa.DataType
    values: tuple[Any, ...]
    spell: Callable[[Any], str]
    leaves: Mapping[str, str] = field(default_factory=dict)
    plain_sql: str | None = None
    may_part: bool = True


def _plain(sql: str, odd: OddColumn, values: tuple[Any, ...] | None = None) -> Kind:
    return Kind(sql, odd.arrow_type, odd.values if values is None else values, odd.sql)


def _declared(sql: str, values: tuple[str, ...]) -> Kind:
    text = COLUMNS["text"]
    return Kind(sql, text.arrow_type, values, text.sql, plain_sql="string")


_STRUCT = pa.struct(
    [
        ("a", pa.int32()),
        ("b.c", pa.string()),
        ("d", pa.struct([("e", pa.decimal128(38, 10)), ("F", pa.date32())])),
    ]
)
_TEXTS = tuple(text for text in COLUMNS["text"].values if "\0" not in text)
_TENTHS = tuple(Decimal(number) / 10 for number in (-99999, -1, 0, 1, 5, 99999))
KINDS: Mapping[str, Kind] = {
    "byte": _plain("tinyint", COLUMNS["byte"]),
    "short": _plain("smallint", COLUMNS["short"]),
    "int": _plain("int", COLUMNS["int"], (-(2**31), -7, 0, 3, 2**31 - 1)),
    "long": _plain("bigint", COLUMNS["long"]),
    "dec5": Kind("decimal(5,1)", pa.decimal128(5, 1), _TENTHS, COLUMNS["dec9"].sql),
    "dec38": _plain("decimal(38,0)", COLUMNS["dec38"]),
    "dec38_10": _plain("decimal(38,10)", COLUMNS["dec38_10"]),
    "dec38_38": _plain("decimal(38,38)", COLUMNS["dec38_38"]),
    "float": replace(_plain("float", COLUMNS["float"]), may_part=False),
    "double": replace(_plain("double", COLUMNS["double"]), may_part=False),
    "bool": _plain("boolean", COLUMNS["bool"]),
    "text": _plain("string", COLUMNS["text"], _TEXTS),
    "bytes": replace(_plain("binary", COLUMNS["bytes"]), may_part=False),
    "date": _plain("date", COLUMNS["date"]),
    "time": _plain("timestamp", COLUMNS["time"]),
    "wall": _plain("timestamp_ntz", COLUMNS["wall"]),
    "varchar": _declared("varchar(6)", ("", "a", "a ", "abcdef", "é", "%_")),
    "char": _declared("char(3)", ("   ", "a  ", "abc", "é  ", " b ")),
    "struct": Kind(
        "struct<a: int, `b.c`: string, d: struct<e: decimal(38,10), F: date>>",
        _STRUCT,
        (
            {"a": 1, "b.c": "x", "d": {"e": Decimal("1.5"), "F": dt.date(1, 1, 1)}},
            {"a": None, "b.c": None, "d": None},
            {"a": -5, "b.c": "", "d": {"e": None, "F": dt.date(9999, 12, 31)}},
            {"a": 2**31 - 1, "b.c": "é", "d": {"e": Decimal("-9.9"), "F": None}},
        ),
        str,
        {"{c}.a": "int", "{c}.`b.c`": "text", "{c}.d.e": "dec38_10", "{c}.d.f": "date"},
        may_part=False,
    ),
    "array": Kind(
        "array<int>",
        pa.list_(pa.int32()),
        ([], [1], [None], [3, 2**31 - 1, None], [-7, 3]),
        str,
        {"try_element_at({c}, 1)": "int", "size({c})": "int", "element_at({c}, -1)": "int"},
        may_part=False,
    ),
    "array_struct": Kind(
        "array<struct<x: double, y: string>>",
        pa.list_(pa.struct([("x", pa.float64()), ("y", pa.string())])),
        ([], [{"x": float("nan"), "y": "a"}], [{"x": -0.0, "y": None}, {"x": 1.1, "y": "b"}]),
        str,
        {"try_element_at({c}, 1).x": "double", "try_element_at({c}.y, 2)": "text"},
        may_part=False,
    ),
    "map": Kind(
        "map<string, int>",
        pa.map_(pa.string(), pa.int32()),
        ([], [("a", 1)], [("a", None), ("b.c", 3)], [("", -7)]),
        str,
        {"try_element_at({c}, 'a')": "int", "{c}['b.c']": "int", "size({c})": "int"},
        may_part=False,
    ),
}
_WIDER: Mapping[str, tuple[str, ...]] = {
    "byte": ("short", "int", "long"),
    "short": ("int", "long"),
    "int": ("long",),
    "float": ("double",),
    "dec5": ("dec38_10",),
    "date": ("wall",),
}
_NAMES = ("a", "B", "select", "_x", *(name for name in ON_SPARK if name not in ("a`.`b",)))


@dataclass(frozen=True)
class Version:
    """What a version holds.

    Attributes:
        columns: Its columns and the keys of their `KINDS`, in order.
        rows: Its rows, by names.
    """

    columns: Mapping[str, str]
    rows: tuple[Mapping[str, Any], ...]

    @property
    def arrow(self) -> pa.Table:
        """The rows."""
        types = {name: KINDS[kind].arrow_type for name, kind in self.columns.items()}
        return pa.table(
            {name: pa.array([row[name] for row in self.rows], of) for name, of in types.items()}
        )

    @property
    def ddl(self) -> str:
        """The columns as Spark's plain frames may have them."""
        kinds = {name: KINDS[kind] for name, kind in self.columns.items()}
        return ", ".join(f"{quoted(n)} {kind.plain_sql or kind.sql}" for n, kind in kinds.items())


class RandomTable:
    """A table that is made and changed at random.

    Attributes:
        log: The table.
        versions: What each version holds.
    """

    def __init__(self, path: str, random: Random) -> None:
        """Make the table and its history."""
        self.log = DeltaLog.for_path(path, {})
        self._random = random
        self._next_id = 0
        self._is_mapped = random.random() < 0.6
        self._widens = random.random() < 0.5
        self._partitions: tuple[str, ...] = ()
        self.versions: list[Version] = [self._created()]
        self._append()
        for _ in range(random.randrange(7)):
            random.choice(self._steps())()

    @property
    def newest(self) -> Version:
        """What the table holds now."""
        return self.versions[-1]

    def _created(self) -> Version:
        random = self._random
        names = [*_NAMES, *NEED_A_MAPPING] if self._is_mapped else list(_NAMES)
        chosen = random.sample(names, random.randrange(2, 7))
        columns = {"id": "long", **{name: random.choice(list(KINDS)) for name in chosen}}
        may_part = [n for n in chosen if KINDS[columns[n]].may_part and n not in NEED_A_MAPPING]
        self._partitions = tuple(may_part[: random.choice((0, 0, 1, 1, 2))])
        if len(self._partitions) == len(chosen):
            self._partitions = ()
        properties = {
            "delta.columnMapping.mode": random.choice(("name", "id"))
            if self._is_mapped
            else "none",
            "delta.enableDeletionVectors": str(random.random() < 0.6).lower(),
            "delta.feature.timestampNtz": "supported",
            "delta.enableTypeWidening": str(self._widens).lower(),
            "delta.enableRowTracking": str(random.random() < 0.2).lower(),
            "delta.dataSkippingNumIndexedCols": random.choice(("32", "32", "-1", "2", "0")),
            "delta.checkpoint.writeStatsAsStruct": str(random.random() < 0.5).lower(),
            "delta.checkpoint.writeStatsAsJson": str(random.random() < 0.7).lower(),
        }
        self.log.create(
            [Column(name, KINDS[kind].sql) for name, kind in columns.items()],
            partition_by=self._partitions,
            properties=properties,
        )
        return Version(columns, ())

    def _steps(self) -> list[Callable[[], object]]:
        steps: list[Callable[[], object]] = [
            self._append,
            self._append,
            self._delete,
            self._update,
            self._add,
            self.log.checkpoint,
        ]
        steps += [self._rename, self._drop] if self._is_mapped else []
        return [*steps, self._widen] if self._widens else steps

    def _value(self, name: str, kind: str) -> Any:
        random = self._random
        values = KINDS[kind].values
        if name in self._partitions:
            values = tuple(value for value in values if value != "" and value != "   ")
        return None if random.random() < 0.2 else random.choice(values)

    def _append(self) -> None:
        columns, random = self.newest.columns, self._random
        lots: dict[str, list[Any]] = {}
        for name, kind in columns.items():
            # Files of few values have narrow bounds, by which they can be skipped.
            lots[name] = [self._value(name, kind) for _ in range(random.choice((1, 2, 4)))]
        rows = []
        for _ in range(random.choice((1, 2, 5, 9))):
            row = {name: random.choice(lot) for name, lot in lots.items()}
            row["id"] = self._next_id
            self._next_id += 1
            rows.append(row)
        self.log.append(Version(columns, tuple(rows)).arrow)
        self.versions.append(Version(columns, (*self.newest.rows, *rows)))

    def _some_ids(self) -> list[int]:
        ids = [row["id"] for row in self.newest.rows]
        return self._random.sample(ids, self._random.randrange(len(ids) + 1))

    def _delete(self) -> None:
        ids = self._some_ids()
        if ids:
            self.log.delete(f"id IN ({', '.join(map(str, ids))})")
            kept = tuple(row for row in self.newest.rows if row["id"] not in ids)
            self.versions.append(replace(self.newest, rows=kept))

    def _update(self) -> None:
        ids, columns = self._some_ids(), self.newest.columns
        names = [name for name, kind in columns.items() if not KINDS[kind].leaves]
        name = self._random.choice(names)
        if not ids or name == "id":
            return
        value = self._value(name, columns[name])
        spelled = "NULL" if value is None else KINDS[columns[name]].spell(value)
        self.log.update(
            set={quoted(name): spelled}, predicate=f"id IN ({', '.join(map(str, ids))})"
        )
        rows = tuple({**r, name: value} if r["id"] in ids else r for r in self.newest.rows)
        self.versions.append(replace(self.newest, rows=rows))

    def _add(self) -> None:
        name, kind = f"added {len(self.versions)}", self._random.choice(list(KINDS))
        name = name if self._is_mapped else name.replace(" ", "_")
        self.log.alter.add_columns([NewColumn((name,), KINDS[kind].sql)])
        rows = tuple({**row, name: None} for row in self.newest.rows)
        self.versions.append(Version({**self.newest.columns, name: kind}, rows))

    def _changeable(self) -> list[str]:
        return [name for name in self.newest.columns if name not in ("id", *self._partitions)]

    def _rename(self) -> None:
        columns = self.newest.columns
        old = self._random.choice(self._changeable() or [""])
        # The name of a column that is there no more is a name like any other.
        used = {name for version in self.versions for name in version.columns}
        new = self._random.choice(sorted(used | set(_NAMES)))
        if not old or new.lower() in {name.lower() for name in columns}:
            return
        self.log.alter.rename_column((old,), new)
        named = {new if name == old else name: kind for name, kind in columns.items()}
        rows = tuple(
            {new if name == old else name: value for name, value in row.items()}
            for row in self.newest.rows
        )
        self.versions.append(Version(named, rows))

    def _drop(self) -> None:
        names = self._changeable()
        if len(names) < 2:
            return
        gone = self._random.choice(names)
        self.log.alter.drop_columns([(gone,)])
        columns = {name: kind for name, kind in self.newest.columns.items() if name != gone}
        rows = tuple({name: row[name] for name in columns} for row in self.newest.rows)
        self.versions.append(Version(columns, rows))

    def _widen(self) -> None:
        columns = self.newest.columns
        names = [name for name in self._changeable() if columns[name] in _WIDER]
        if not names:
            return
        name = self._random.choice(names)
        kind = self._random.choice(_WIDER[columns[name]])
        self.log.alter.change_columns([ColumnChange((name,), KINDS[kind].sql)])
        rows = tuple({**row, name: _widened(row[name], kind)} for row in self.newest.rows)
        self.versions.append(Version({**columns, name: kind}, rows))


def _widened(value: Any, kind: str) -> Any:
    if value is None or kind != "wall":
        return value
    return dt.datetime.combine(value, dt.time())


def utc_rows(table: pa.Table) -> list[tuple[Any, ...]]:
    """The rows by position, with times in UTC, so that equal rows are equal values."""
    columns = [[_utc(value) for value in column.to_pylist()] for column in table.columns]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _utc(value: Any) -> Any:
    if isinstance(value, dt.datetime) and value.tzinfo is not None:
        return value.astimezone(UTC)
    return value
