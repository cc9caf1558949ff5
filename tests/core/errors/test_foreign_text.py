"""What others wrote into a table drowns no log, and steers no terminal that shows our errors."""

from __future__ import annotations

import json
import pickle
import re
from collections.abc import Callable

import pyarrow as pa
import pytest

from optimist.core.data.partition_values import parse_partition_value, partition_schema
from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.data.storage.filesystem import filesystem_for
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.vectors.deletion_vectors import deletion_vector_path, read_deletion_vector
from optimist.core.errors import Conflict, OptimistError, TableError
from optimist.core.errors.foreign_text import FOREIGN_LIMIT, listed, quoted, shown
from optimist.core.log.commit_lines import parse_commit_lines
from optimist.core.predicates import Predicate, ensure_columns
from optimist.core.predicates.parsing import parse_column_path
from optimist.core.protocol.actions import (
    DeletionVectorDescriptor,
    action_from_dict,
    actions_from_bytes,
)
from optimist.core.protocol.properties import (
    IsolationLevel,
    normalize_configuration,
)
from optimist.core.protocol.schema_checks import (
    ensure_no_duplicate_columns,
    ensure_partition_columns_exist,
)
from optimist.core.schema.arrow_types import from_arrow_schema
from optimist.core.schema.stats_property import bounded_columns
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_from_json
from optimist.core.transaction.conflicts.messages import explain

_RUN = "Z" * 200_000
_HOSTILE = f"a\nWARN forged\r\x1b[2J\x9b1m\u202e\u2028\x00{_RUN}"
_PATHS = DataPaths.of("/t")


def _vector(kind: str, text: str) -> DeletionVectorDescriptor:
    return DeletionVectorDescriptor(kind, text, size_in_bytes=4, cardinality=1, offset=1)


def _fail_on_disk() -> None:
    with storage_errors("read", f"/t/{_HOSTILE}"):
        raise OSError(_HOSTILE)


def _explain() -> None:
    conflict = Conflict("metadata", 3, _HOSTILE, _HOSTILE, paths=(_HOSTILE,), num_paths=1)
    text = explain(conflict, "/t", "WRITE")
    raise TableError(text, kind="K", operation=_HOSTILE, paths=(_HOSTILE,) * 2_000)


def _named(*names: str) -> StructType:
    return StructType(tuple(StructField(name, PrimitiveType("long")) for name in names))


def _unknown_type(name: str) -> str:
    field = {"name": "a", "type": name, "nullable": True, "metadata": {}}
    return json.dumps({"type": "struct", "fields": [field]})


_VICTIMS: dict[str, Callable[[], object]] = {
    "line that is no JSON": lambda: actions_from_bytes(_HOSTILE.encode(), f"/t/{_HOSTILE}"),
    "line with unknown types": lambda: action_from_dict({"add": {"path": {_HOSTILE: [_HOSTILE]}}}),
    "action that is no object": lambda: action_from_dict({"add": _HOSTILE}),
    "line of two actions": lambda: action_from_dict({_HOSTILE: 1, "other": {_HOSTILE: 2}}),
    "line of a replay": lambda: parse_commit_lines(_HOSTILE.encode(), f"/t/{_HOSTILE}"),
    "add without a size": lambda: parse_commit_lines(
        json.dumps({"add": {"path": _HOSTILE}}).encode(), "/t"
    ),
    "kind of vector": lambda: deletion_vector_path(_vector(_HOSTILE, "x"), _PATHS),
    "name of a vector": lambda: deletion_vector_path(_vector("u", f"{_HOSTILE}~"), _PATHS),
    "path of a vector": lambda: read_deletion_vector(_vector("p", f"/t/{_RUN}"), _PATHS),
    "scheme of a path": lambda: filesystem_for(f"zz{_RUN}://{_HOSTILE}", None),
    "path of another scheme": lambda: _PATHS.full_path(f"zz{_RUN}://{_HOSTILE}"),
    "failing disk": _fail_on_disk,
    "type of a column": lambda: schema_from_json(_unknown_type(_HOSTILE)),
    "schema that is no JSON": lambda: schema_from_json(_HOSTILE),
    "schema that is no struct": lambda: schema_from_json(
        json.dumps({"type": "array", "elementType": _HOSTILE})
    ),
    "partition column": lambda: partition_schema(
        schema_from_json(_unknown_type("long")), [_HOSTILE]
    ),
    "partition value": lambda: parse_partition_value(_HOSTILE, PrimitiveType("long"), column=_RUN),
    "isolation level": lambda: IsolationLevel.parse(_HOSTILE),
    "property": lambda: normalize_configuration({f"delta.{_HOSTILE}": "1"}, allow_arbitrary=False),
    "value of a property": lambda: normalize_configuration(
        {"delta.appendOnly": _HOSTILE}, allow_arbitrary=False
    ),
    "columns with statistics": lambda: bounded_columns(
        [_HOSTILE], schema_from_json(_unknown_type("long")), ()
    ),
    "predicate": lambda: Predicate.parse(f"a = '{_HOSTILE}"),
    "name of a column": lambda: parse_column_path(f"a b '{_HOSTILE}"),
    "winner of a race": _explain,
    "columns to partition by": lambda: ensure_partition_columns_exist(
        _named(_HOSTILE), ["no such column"]
    ),
    "one column twice": lambda: ensure_no_duplicate_columns(_named(_HOSTILE, _HOSTILE)),
    "column of a predicate": lambda: ensure_columns(Predicate.parse("b = 1"), _named(_HOSTILE)),
    "type of a column in Arrow": lambda: from_arrow_schema(
        pa.schema([(_HOSTILE, pa.struct([(_HOSTILE, pa.month_day_nano_interval())]))])
    ),
}


@pytest.mark.parametrize("victim", list(_VICTIMS))
def test_an_error_shows_little_of_a_foreign_text_and_no_control_character(victim: str) -> None:
    with pytest.raises(OptimistError) as caught:
        _VICTIMS[victim]()
    error = caught.value
    text = str(error)
    assert text.isprintable()
    assert max(map(len, re.findall("Z+", text)), default=0) <= FOREIGN_LIMIT
    assert len(text) < 5_000
    assert len(repr(dict(error.fields))) < 20_000_000
    assert all(len(v) <= 20_000 for v in error.fields.values() if isinstance(v, str))
    assert str(pickle.loads(pickle.dumps(error))) == text


def test_of_a_long_text_the_begin_and_the_end_are_shown() -> None:
    path = f"s3://bucket/{'d/' * 500}part-0.parquet"
    text = shown(path)
    assert len(text) == FOREIGN_LIMIT
    assert text.startswith("s3://bucket/d/")
    assert text.endswith("d/part-0.parquet")
    assert shown("as it is") == "as it is"


def test_any_value_can_be_shown() -> None:
    assert quoted(10**5_000) == "'a whole number of 16610 bits'"
    deep: list[object] = []
    for _ in range(100_000):
        deep = [deep]
    assert len(quoted(deep)) <= FOREIGN_LIMIT + 2
    assert len(quoted({"a": {"b": _RUN}})) <= FOREIGN_LIMIT + 2
    assert quoted("half a character: \ud800") == "'half a character: \\ud800'"


def test_a_password_is_masked_before_the_text_is_cut() -> None:
    secret = "S" * 300
    assert "SSS" not in shown(f"s3://user:{secret}@bucket/table")


def test_of_very_many_names_the_first_are_listed() -> None:
    text = listed([f"n{number}\n" for number in range(1_000)])
    assert text.startswith("n0\\n, n1\\n, ")
    assert text.endswith(", n49\\n, and 950 more")
    assert listed([_RUN]) == shown(_RUN)
    assert listed(["a", "b"]) == "a, b"
