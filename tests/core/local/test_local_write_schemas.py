"""Writes that change the schema, one after the other, against a model of columns and rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import deltalake
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import SchemaError

VALUES = {
    "a": (pa.int64(), [None, 0, -1, 2**63 - 1]),
    "b": (pa.string(), [None, "", "é"]),
    "c": (pa.float64(), [None, -0.0, 1e300]),
    "p": (pa.string(), [None, "x", "a/b=c"]),
}
FIELDS = {"x": pa.int64(), "y": pa.string(), "z": pa.list_(pa.int64())}
PARTS: dict[str, list[Any]] = {"x": [None, 1], "y": [None, "n"], "z": [None, [], [None, 2]]}


@dataclass
class Model:
    """A table: its columns, the fields of its struct `s`, its partitioning, and its rows."""

    columns: list[str] = field(default_factory=list)
    fields: list[str] = field(default_factory=list)
    partition_by: list[str] = field(default_factory=list)
    rows: list[dict[str, Any]] = field(default_factory=list)

    def content(self) -> Counter[str]:
        return Counter(map(self._text, self.rows))

    def _text(self, row: dict[str, Any]) -> str:
        found = {name: row.get(name) for name in self.columns}
        if found.get("s") is not None:
            found["s"] = {name: found["s"].get(name) for name in self.fields}
        return repr(found)


@dataclass
class Write:
    """One write, with the columns and fields of its rows."""

    mode: str
    schema_mode: str | None
    columns: list[str]
    fields: list[str]
    is_partitioned: bool
    is_upper: bool
    rows: list[dict[str, Any]]

    @property
    def partition_by(self) -> list[str]:
        may = self.is_partitioned and "p" in self.columns and len(self.columns) > 1
        return ["p"] if may and self.schema_mode == "overwrite" else []

    def table(self) -> pa.Table:
        kinds = {name: kind for name, (kind, _) in VALUES.items()}
        kinds["s"] = pa.struct([(name, FIELDS[name]) for name in self.fields])
        schema = pa.schema([(name, kinds[name]) for name in self.columns])
        found = pa.Table.from_pylist(self.rows, schema=schema)
        return found.rename_columns([n.upper() for n in self.columns]) if self.is_upper else found

    def change(self, model: Model) -> bool:
        """Change the model as the write does, and tell whether it is possible."""
        fields = self.fields if "s" in self.columns else []
        replaces = self.schema_mode == "overwrite"
        columns = self.columns if replaces else _more(model.columns, self.columns)
        fields = fields if replaces else _more(model.fields, fields)
        if self.schema_mode is None and (columns, fields) != (model.columns, model.fields):
            return False
        model.columns, model.fields = list(columns), list(fields)
        model.partition_by = self.partition_by if replaces else model.partition_by
        new = [{**row, **({"p": row["p"] or None} if "p" in row else {})} for row in self.rows]
        model.rows = new if self.mode == "overwrite" else model.rows + new
        return True


def _more(known: list[str], given: list[str]) -> list[str]:
    return [*known, *(name for name in given if name not in known)]


@st.composite
def writes(draw, *, first: bool = False) -> Write:
    columns = draw(st.lists(st.sampled_from([*VALUES, "s"]), min_size=1, unique=True))
    fields = draw(st.lists(st.sampled_from(list(FIELDS)), min_size=1, unique=True))
    kinds = [("overwrite", "overwrite")]
    if not first:
        kinds += [(mode, how) for mode in ("append", "overwrite") for how in (None, "merge")]
    mode, schema_mode = draw(st.sampled_from(kinds))
    struct = st.none() | st.fixed_dictionaries({n: st.sampled_from(PARTS[n]) for n in fields})
    row = st.fixed_dictionaries(
        {n: struct if n == "s" else st.sampled_from(VALUES[n][1]) for n in columns}
    )
    rows = draw(st.lists(row, max_size=4))
    is_upper = not first and schema_mode != "overwrite" and draw(st.booleans())
    return Write(mode, schema_mode, columns, fields, draw(st.booleans()), is_upper, rows)


@given(writes(first=True), st.lists(writes(), min_size=1, max_size=4))
@settings(max_examples=max(5, settings.default.max_examples // 4), deadline=None)
def test_schemas_and_rows_are_those_of_the_model(tmp_path_factory, first, steps):
    log = DeltaLog.for_path(str(tmp_path_factory.mktemp("schemas") / "t"))
    model = Model()
    for step in [first, *steps]:
        known = model.columns
        if step.is_upper and step.schema_mode == "merge" and not {*step.columns} <= {*known}:
            step.is_upper = False  # new columns would be spelled otherwise
        version = log.snapshot().version if known else -1
        arguments = {"schema_mode": step.schema_mode, "partition_by": step.partition_by}
        if not step.change(model):
            try:
                log.write(step.table(), step.mode, **arguments)
            except SchemaError as error:
                assert error.kind == "DELTA_METADATA_MISMATCH"
                assert log.snapshot().version == version
                continue
            raise AssertionError("columns that the table lacks were written")
        assert log.write(step.table(), step.mode, **arguments).version == version + 1
        found = log.to_arrow()
        assert found.column_names == model.columns
        assert list(log.snapshot().partition_columns) == model.partition_by
        assert Counter(map(repr, found.to_pylist())) == model.content()
    theirs = deltalake.DeltaTable(log.table_path).to_pyarrow_table()
    ordered = theirs.select(model.columns).to_pylist()
    assert Counter(map(repr, ordered)) == model.content()
