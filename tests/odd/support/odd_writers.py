"""Tables of a writer that keeps to the protocol and has habits of its own, one `Habit` each.

Nothing of the engine takes part, so that what a table holds is known from its rows alone.
"""
# ruff: noqa: E501 - one habit a line

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from foreign_tables import ForeignTable, field
from naive_log import COLUMNS, LIST, Model, struct
from naive_log import as_parquet as naive_parquet
from optimist.core.log.names import LAST_CHECKPOINT, classic_checkpoint_name, commit_path
from seed_tables import bitmap as bitmap
from seed_tables import z85 as z85

__all__ = ["HABITS", "SCHEMA", "Habit", "OddWriter", "Row"]

Row: TypeAlias = dict[str, Any]
Body: TypeAlias = dict[str, Any]
UTC = dt.timezone.utc
SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("p", pa.string()),
        ("n", pa.int32()),
        ("x", pa.float64()),
        ("s", pa.string()),
        ("t", pa.timestamp("us", "UTC")),
    ]
)
_KINDS = {
    "id": "long",
    "p": "string",
    "n": "integer",
    "x": "double",
    "s": "string",
    "t": "timestamp",
}
_VECTOR = struct(
    "storageType pathOrInlineDv",
    cardinality=pa.int64(),
    **dict.fromkeys(("offset", "sizeInBytes"), pa.int32()),
)
_VERSIONS = dict.fromkeys(("minReaderVersion", "minWriterVersion"), pa.int32())
_FOR_READERS = ("deletionVectors", "v2Checkpoint", "typeWidening", "columnMapping")
_GHOSTS = 2
_BOUNDED = ("id", "n", "x", "s", "t")


def _same(*_: Any) -> None:
    pass


@dataclass(frozen=True)
class Habit:
    """One thing that the writer does otherwise than most do.

    Attributes:
        name: What it is.
        features: What the protocol must list for it.
        metadata, fields, add, remove, info: Change the body of an action, or the schema's fields;
            the statistics of an `add` are a dictionary still.
        line: Changes a whole line of a commit, as text.
        is_refused_as: The kind of error with which the whole table may be refused, where its
            protocol has lists of features that agree with less than the metadata says.
        may_refuse: The kinds of errors with which writes may be refused because of it.
    """

    name: str
    features: tuple[str, ...] = ()
    metadata: Callable[[Body], None] = _same
    fields: Callable[[list[Body]], None] = _same
    protocol: Callable[[Body], None] = _same
    add: Callable[[Body], None] = _same
    remove: Callable[[Body], None] = _same
    line: Callable[[str], str] = str
    may_refuse: tuple[str, ...] = ()
    is_refused_as: str = ""

    def __repr__(self) -> str:
        return self.name


def _set(**values: Any) -> Callable[[Body], None]:
    return lambda body: body.update(values)


def _without(*names: str) -> Callable[[Body], None]:
    def change(body: Body) -> None:
        for name in names:
            body.pop(name, None)

    return change


def _properties(**values: str) -> Callable[[Body], None]:
    named = {f"delta.{name.replace('__', '.')}": text for name, text in values.items()}
    return lambda body: body["configuration"].update(named)


def _stats(change: Callable[[Body], None]) -> Callable[[Body], None]:
    """Changes the statistics where there are some."""
    return lambda body: change(body["stats"]) if isinstance(body.get("stats"), dict) else None


def _wide(stats: Body) -> None:
    stats["tightBounds"] = False
    for name, wider in (("minValues", {"n": -100}), ("maxValues", {"n": 100, "id": 10**8})):
        bounds = stats.get(name, {})
        bounds |= {column: value for column, value in wider.items() if column in bounds}


def _cut_texts(stats: Body) -> None:
    """As Spark cuts them: a prefix, and above it a character that is greater than what follows."""
    for name, end in (("minValues", ""), ("maxValues", "\U0010ffff")):
        text = stats.get(name, {}).get("s")
        if text is not None and len(text) > 4:
            stats[name]["s"] = text[:4] + end


def _null_bounds(stats: Body) -> None:
    for name in ("minValues", "maxValues"):
        stats[name] = dict.fromkeys(_BOUNDED) | stats.get(name, {})


def _offsets(stats: Body) -> None:
    for name in ("minValues", "maxValues"):
        if text := stats.get(name, {}).get("t"):
            moved = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
            zone = dt.timezone(dt.timedelta(hours=-8))
            stats[name]["t"] = moved.astimezone(zone).isoformat(timespec="milliseconds")


def _only(*names: str) -> Callable[[Body], None]:
    def change(stats: Body) -> None:
        for name in [*stats]:
            if name not in names:
                del stats[name]

    return change


def _widened(fields: list[Body]) -> None:
    change = {"fromType": "float", "toType": "double"}
    next(f for f in fields if f["name"] == "x")["metadata"]["delta.typeChanges"] = [change]


def _again(body: Body) -> None:
    """Each feature twice."""
    for name in ("readerFeatures", "writerFeatures"):
        if name in body:
            body[name] = [*body[name], *body[name]]


_ODD = "OPTIMIST_MALFORMED_TABLE_PROPERTY"
_LISTS = "DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH"
_MISMATCH = {"is_refused_as": _LISTS, "may_refuse": (_LISTS,)}
_BINDING = {"may_refuse": (_ODD,)}
HABITS: tuple[Habit, ...] = (
    Habit("no stats", add=_without("stats")),
    Habit("null stats", add=_set(stats=None)),
    Habit("empty stats", add=_set(stats="")),
    Habit("stats of nothing", add=_set(stats="{}")),
    Habit("only counts", add=_stats(_only("numRecords"))),
    Habit("no null counts", add=_stats(_only("numRecords", "minValues", "maxValues"))),
    Habit("no counts", add=_stats(_only("minValues", "maxValues", "nullCount"))),
    Habit("only maxima", add=_stats(_only("numRecords", "maxValues"))),
    Habit("wide bounds", add=_stats(lambda s: (s.update(tightBounds=False), _wide(s)))),  # type: ignore[arg-type, func-returns-value]
    Habit("cut texts", add=_stats(_cut_texts)),
    Habit("null bounds", add=_stats(_null_bounds)),
    Habit("unknown stats", add=_stats(lambda s: s.update(sketch={"x": [1]}, tightBounds=None))),
    Habit("other offsets", add=_stats(_offsets)),
    Habit("spaced stats", add=lambda b: b.update(stats=_spaced(b.get("stats")))),
    Habit("unknown fields", add=_set(future={"a": [1]}), protocol=_set(future=1), metadata=_set(future="x"), remove=_set(future=[])),
    Habit("nulls", add=lambda b: b.update({"tags": None, "deletionVector": b.get("deletionVector"), "baseRowId": None, "defaultRowCommitVersion": None, "clusteringProvider": None}), remove=_set(tags=None, size=None, partitionValues=None, extendedFileMetadata=None)),
    Habit("bare removes", remove=_without("deletionTimestamp", "extendedFileMetadata", "partitionValues", "size")),
    Habit("full removes", remove=_set(extendedFileMetadata=True, size=1, partitionValues={"p": "?"})),
    Habit("no creation time", metadata=_without("createdTime")),
    Habit("odd names", metadata=_set(name="\u202e`a`", description=None)),
    Habit("bare format", metadata=_set(format={"provider": "parquet"})),
    Habit("spaced lines", line=lambda text: "  " + json.dumps(json.loads(text), indent=None, separators=(" , ", " : ")) + " \r"),
    Habit("plain letters", line=lambda text: json.dumps(json.loads(text), ensure_ascii=False)),
    Habit("keys turned", line=lambda text: json.dumps(_turned(json.loads(text)))),
    Habit("features twice", ("deletionVectors",), protocol=_again),
    Habit("features of others", ("appendOnly", "invariants", "changeDataFeed", "checkConstraints", "generatedColumns")),
    Habit("vectors", ("deletionVectors",)),
    Habit("floats", ("typeWidening",), fields=_widened),
    Habit("fields without nullable", fields=lambda all_: [f.pop("nullable") for f in all_]),  # type: ignore[arg-type, return-value]
    Habit("columns turned"),
    Habit("columns left out"),
    Habit("more columns"),
    Habit("hive folders"),
    Habit("encoded paths"),
    Habit("absolute paths"),
    Habit("added twice"),
    Habit("removed twice"),
    Habit("removed and added"),
    Habit("no info"),
    Habit("info last"),
    Habit("unknown actions"),
    Habit("checkpointed"),
    Habit("checkpointed as structs"),
    Habit("transactions", metadata=_properties(setTransactionRetentionDuration="interval 1 days")),
    Habit("odd interval", metadata=_properties(checkpointInterval="often", logRetentionDuration="soon")),
    Habit("odd counts", metadata=_properties(dataSkippingNumIndexedCols="few", targetFileSize="x")),
    Habit("odd isolation", metadata=_properties(isolationLevel="Whatever"), **_BINDING),  # type: ignore[arg-type]
    Habit("odd appendOnly", metadata=_properties(appendOnly="yes"), **_BINDING),  # type: ignore[arg-type]
    Habit("odd vectors", metadata=_properties(enableDeletionVectors="yes"), **_BINDING),  # type: ignore[arg-type]
    Habit("odd feed", metadata=_properties(enableChangeDataFeed="1"), **_BINDING),  # type: ignore[arg-type]
    Habit("odd policy", metadata=_properties(checkpointPolicy="V3", checkpoint__writeStatsAsStruct="si")),
    Habit("other case of a property", metadata=lambda b: b["configuration"].update({"DELTA.enableDeletionVectors": "true", "delta.APPENDONLY": "false"})),
    Habit("stale stats columns", metadata=_properties(dataSkippingStatsColumns="gone,N,s.x")),
    Habit("stats of two", metadata=_properties(dataSkippingStatsColumns="`id`, n")),
    Habit("row tracking without feature", metadata=_properties(enableRowTracking="true"), **_MISMATCH),  # type: ignore[arg-type]
    Habit("widening without feature", metadata=_properties(enableTypeWidening="true"), **_MISMATCH),  # type: ignore[arg-type]
    Habit("vectors without feature", metadata=_properties(enableDeletionVectors="true"), **_MISMATCH),  # type: ignore[arg-type]
    Habit("timestamps without feature", metadata=_properties(enableInCommitTimestamps="true"), **_MISMATCH),  # type: ignore[arg-type]
    Habit("v2 without feature", metadata=_properties(checkpointPolicy="v2"), **_MISMATCH),  # type: ignore[arg-type]
    Habit("v2 checkpoints", ("v2Checkpoint",), metadata=_properties(checkpointPolicy="v2")),
    Habit("mapping without version", metadata=_properties(columnMapping__mode="none", columnMapping__maxColumnId="9")),
    Habit("checks by case", ("checkConstraints",), metadata=_properties(constraints__a="n IS NULL OR n < 50", constraints__A="n IS NULL OR n > -50")),
    Habit("void column", fields=lambda fields: fields.append(field("v", "void")), may_refuse=("DELTA_MERGE_UNRESOLVED_EXPRESSION",)),
    Habit("mapping of names without version", metadata=_properties(columnMapping__mode="name"), **_MISMATCH),  # type: ignore[arg-type]
    Habit("unknown property", metadata=_properties(future="1", constraintsx="no")),
    Habit("structs in checkpoints", metadata=_properties(checkpoint__writeStatsAsStruct="true", checkpoint__writeStatsAsJson="false")),
)  # fmt: skip


def _spaced(stats: Any) -> Any:
    return json.dumps(stats, indent=1) if isinstance(stats, dict) else stats


def _turned(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _turned(value[key]) for key in reversed(value)}
    return value


class OddWriter(ForeignTable):
    """A table by a writer with some habits.

    Attributes:
        rows: What the table holds by this writer, without what others change.
    """

    def __init__(self, path: Path, habits: Sequence[Habit], *, is_partitioned: bool) -> None:
        super().__init__(path)
        self.habits = tuple(habits)
        self._names = {habit.name for habit in habits}
        self._is_partitioned = is_partitioned
        self._model = Model()
        self._dead: list[Body] = []
        self._written = 0
        self.save({"protocol": self._protocol()}, {"metaData": self._metadata()})

    def _protocol(self) -> Body:
        names = {name for habit in self.habits for name in habit.features}
        readers = sorted(names & set(_FOR_READERS))
        body: Body = {"minReaderVersion": 1, "minWriterVersion": 7 if names else 2}
        if names:
            body["writerFeatures"] = sorted(names)
        if readers:
            body |= {"minReaderVersion": 3, "readerFeatures": readers}
        self._change("protocol", body)
        return body

    def _metadata(self) -> Body:
        fields = [field(name, kind) for name, kind in _KINDS.items()]
        self._change("fields", fields)
        body: Body = {
            "id": "9f8d3a5c-3c9b-4c39-8f54-3f9d9b9a7d11",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": ["p"] if self._is_partitioned else [],
            "configuration": {},
            "createdTime": 1,
        }
        self._change("metadata", body)
        return body

    def _change(self, what: str, body: Any) -> None:
        for habit in self.habits:
            getattr(habit, what)(body)

    def save(self, *actions: Mapping[str, Any]) -> None:
        """The next version, with what the habits add to it."""
        self._model.apply(actions)
        lines: list[Mapping[str, Any]] = [*actions]
        info = {"commitInfo": {"timestamp": 7, "operation": "WRITE", "odd": {"a": None}}}
        if "no info" not in self._names:
            lines.insert(len(lines) if "info last" in self._names else 0, info)
        if "unknown actions" in self._names:
            lines.append({"future": {"x": [1, None]}})
        texts = [json.dumps(line) for line in lines]
        for habit in self.habits:
            texts = [habit.line(text) for text in texts]
        versions = [
            int(file.stem) for file in Path(self._log).glob("*.json") if file.stem.isdigit()
        ]
        self._next_version = max(versions, default=-1) + 1
        Path(commit_path(self._log, self._next_version)).write_text("\n".join(texts))

    def write(self, rows: Sequence[Row]) -> None:
        """Append the rows, a file for each value of the partition column."""
        parts = sorted({row["p"] or "" for row in rows}) if self._is_partitioned else [None]
        bodies = []
        for part in parts:
            own = [r for r in rows if part is None or (r["p"] or "") == part]
            bodies.append(self._file(own, part))
        others = []
        if "transactions" in self._names:
            others.append({"txn": {"appId": "odd", "version": self._written, "lastUpdated": 1}})
        self.save(*others, *({"add": body} for body in bodies))
        self._habits_of_files(bodies)

    def _habits_of_files(self, bodies: list[Body]) -> None:
        if "added twice" in self._names:
            self.save(*({"add": body | {"dataChange": False}} for body in bodies))
        if "removed and added" in self._names:
            self.save(*({"remove": self._remove(body)} for body in bodies))
            self.save(*({"add": body} for body in bodies))
        if "removed twice" in self._names:
            dead = self._file(
                [{**dict.fromkeys(SCHEMA.names), "id": 10**6}], self._is_partitioned and ""
            )
            self.save({"add": dead})
            self.save({"remove": self._remove(dead)})
            self.save({"remove": self._remove(dead)})

    def _remove(self, body: Body) -> Body:
        removed = {"path": body["path"], "dataChange": True, "deletionTimestamp": 1 << 42}
        removed |= {"size": body["size"], "partitionValues": body["partitionValues"]}
        if vector := body.get("deletionVector"):
            removed["deletionVector"] = vector
        self._change("remove", removed)
        return removed

    def _file(self, rows: Sequence[Row], part: str | None) -> Body:
        ghosts = self._ghosts(rows)
        table = pa.Table.from_pylist([*ghosts, *rows], schema=SCHEMA)
        name = self._name(part)
        (self.path / name).parent.mkdir(exist_ok=True)
        pq.write_table(self._stored(table), self.path / name)
        body: Body = {
            "path": self._spelled(name),
            "partitionValues": {"p": part or None} if self._is_partitioned else {},
            "size": (self.path / name).stat().st_size,
            "modificationTime": 7,
            "dataChange": True,
            "stats": self._statistics(table),
        }
        if ghosts:
            data = bitmap(range(_GHOSTS))
            text = z85(data + bytes(-len(data) % 4))
            body["deletionVector"] = {"storageType": "i", "pathOrInlineDv": text,
                                      "sizeInBytes": len(data), "cardinality": _GHOSTS}  # fmt: skip
        self._change("add", body)
        if isinstance(body.get("stats"), dict):
            body["stats"] = json.dumps(body["stats"])
        return body

    def _ghosts(self, rows: Sequence[Row]) -> list[Row]:
        """Rows that a vector deletes."""
        if "vectors" not in self._names or not rows:
            return []
        return [{**rows[0], "id": 10**7 + number, "n": 49} for number in range(_GHOSTS)]

    def _name(self, part: str | None) -> str:
        self._written += 1
        name = (
            f"f {self._written}%é.parquet"
            if "encoded paths" in self._names
            else f"f{self._written}.parquet"
        )
        if part is not None and "hive folders" in self._names:
            return f"p={quote(part or '__HIVE_DEFAULT_PARTITION__', safe='')}/{name}"
        return name

    def _spelled(self, name: str) -> str:
        if "absolute paths" in self._names:
            return f"file://{quote(str(self.path / name))}"
        return quote(name)

    def _stored(self, table: pa.Table) -> pa.Table:
        if self._is_partitioned:
            table = table.drop_columns(["p"])
        if "floats" in self._names:
            place = table.column_names.index("x")
            table = table.set_column(place, "x", table["x"].cast(pa.float32(), safe=False))
        if "columns left out" in self._names:
            empty = [n for n in table.column_names if table[n].null_count == len(table)]
            table = table.drop_columns(empty)
        if "columns turned" in self._names:
            table = table.select(table.column_names[::-1])
        if "more columns" in self._names:
            table = table.append_column("more", pa.array(range(len(table))))
        return table

    def _statistics(self, table: pa.Table) -> Body:
        low: Body = {}
        high: Body = {}
        for name in _BOUNDED:
            values = [v for v in table[name].to_pylist() if v is not None]
            if values and not (name == "x" and any(np.isnan(values))):
                low[name], high[name] = (
                    self._text(pick(values), up=up) for pick, up in ((min, False), (max, True))
                )
        nulls = {name: table[name].null_count for name in _BOUNDED}
        return {"numRecords": len(table), "minValues": low, "maxValues": high, "nullCount": nulls}

    def _text(self, value: Any, *, up: bool) -> Any:
        if isinstance(value, dt.datetime):  # to milliseconds, as Spark does, downwards both
            return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if isinstance(value, float) and "floats" in self._names:
            return float(str(np.float32(value)))  # the shortest text, which is another double
        return value

    def checkpoint(self) -> None:
        """A checkpoint of the newest version where a habit says so, and the hint."""
        kinds = {"checkpointed", "checkpointed as structs"} & self._names
        if not kinds:
            return
        as_structs = "checkpointed as structs" in kinds
        actions = [*self._model.others(), *self._model.files()]
        data = checkpoint_of(actions, as_structs=as_structs)
        version = self._next_version
        (Path(self._log) / classic_checkpoint_name(version)).write_bytes(data)
        hint = {"version": version, "size": len(actions), "odd": None}
        (Path(self._log) / LAST_CHECKPOINT).write_text(json.dumps(hint))


def _columns() -> dict[str, pa.StructType]:
    """The columns of a checkpoint, with integers as wide as the protocol has them."""
    features = dict.fromkeys(("readerFeatures", "writerFeatures"), LIST)
    columns = COLUMNS | {"protocol": struct(**_VERSIONS, **features)}
    for name in ("add", "remove"):
        fields = [item for item in COLUMNS[name] if item.name != "deletionVector"]
        columns[name] = pa.struct([*fields, pa.field("deletionVector", _VECTOR)])
    return columns


def checkpoint_of(actions: Sequence[Mapping[str, Any]], *, as_structs: bool) -> bytes:
    """Lines of a log as a checkpoint; its statistics are JSON or structs, never both."""
    known = [{kind: _plain(kind, body) for kind, body in each.items()} for each in actions]
    if not as_structs:
        return naive_parquet(known, _columns())
    values = pa.struct([(name, SCHEMA.field(name).type) for name in _BOUNDED])
    counts = pa.struct([(name, pa.int64()) for name in _BOUNDED])
    parsed = pa.struct([("numRecords", pa.int64()), ("minValues", values), ("maxValues", values), ("nullCount", counts)])  # fmt: skip
    adds = pa.struct([*_columns()["add"], pa.field("stats_parsed", parsed)])
    for action in known:
        if text := action.get("add", {}).pop("stats", None):
            action["add"]["stats_parsed"] = _typed(json.loads(text))
    return naive_parquet(known, {**_columns(), "add": adds})


def _plain(kind: str, body: Body) -> Body:
    names = {item.name for item in COLUMNS[kind]}
    kept = {key: value for key, value in body.items() if key in names and value is not None}
    return (
        kept if kind != "metaData" else {**kept, "format": {"provider": "parquet", "options": {}}}
    )


def _typed(stats: Body) -> Body:
    for name in ("minValues", "maxValues"):
        if text := stats.get(name, {}).get("t"):
            stats[name]["t"] = dt.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return stats
