"""What does not fit a field of an action neither comes into a log nor out of one."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import TableError, UsageError
from optimist.core.log.commit_lines import parse_commit_lines
from optimist.core.log.file_table import ACTIONS_SCHEMA, DELETION_VECTOR_TYPE, file_actions_batch
from optimist.core.protocol.actions import (
    AddCDCFile,
    AddFile,
    CommitInfo,
    DeletionVectorDescriptor,
    DomainMetadata,
    Metadata,
    Protocol,
    RemoveFile,
    SetTransaction,
    action_from_dict,
    action_to_dict,
    action_to_json,
    actions_to_bytes,
)
from optimist.core.schema.types import schema_from_json
from optimist.logstores import LocalLogStore

_VECTOR = DeletionVectorDescriptor("u", "x" * 20, 1, 1, offset=1, max_row_index=1)
_SAMPLES = (
    Protocol(1, 2, ("a",), ("b",)),
    Metadata("id", "{}", "name", "text", created_time=1),
    AddFile("f", {"p": None}, 1, 1, True, "{}", {"t": "x"}, _VECTOR, 1, 1, "c"),
    RemoveFile("f", 1, True, True, {"p": "1"}, 1, "{}", {"t": None}, _VECTOR, 1, 1),
    AddCDCFile("f", {"p": None}, 1, tags={"t": "x"}),
    SetTransaction("app", 1, 1),
    DomainMetadata("d", "{}"),
)
_UNFIT: dict[str, tuple[object, ...]] = {
    "str": (1, True, [], {}, 1.0),
    "bool": (1, 0, "true", [], {}, 1.0),
    "Int": (1 << 31, -(1 << 31) - 1, 1.5, True, "1", [], {}, 1e300),
    "Long": (1 << 63, -(1 << 63) - 1, 1 << 70, 1.5, True, "1", [], {}),
    "SmallCount": (-1, 1 << 31, 1.5, True, "1", [], {}),
    "Count": (-1, 1 << 63, 1.5, True, "1", [], {}),
    "tuple[str, ...]": ([1], [None], [["a"]], {}, "a", 1),
    "Mapping[str, object]": ([], "a", 1),
    "Mapping[str, str]": ({"a": 1}, {"a": None}, {"a": {}}, [], [["a", "b"]], "a"),
    "Mapping[str, str | None]": ({"a": 1}, {"a": True}, {"a": {}}, [], [["a", "b"]], "a"),
    "TableFormat": (
        [],
        "a",
        1,
        {"provider": 7},
        {"provider": {"add": {}}},
        {"options": "x"},
        {"options": [{}]},
        {"options": {"a": 1}},
    ),
    "DeletionVectorDescriptor": ([], "x", 1, True),
}
_CASES = [
    pytest.param(sample, item.name, wrong, id=f"{sample.KEY}.{item.name}={str(wrong)[:12]}")
    for sample in _SAMPLES
    for item in dataclasses.fields(sample)
    if item.name != "extra"
    for wrong in _UNFIT[str(item.type).removesuffix(" | None")]
]


def _key_of(sample: Any, attribute: str) -> str:
    """The field's JSON key, found by what a change of it changes."""
    changed = dataclasses.replace(sample, **{attribute: None})
    before, after = (action_to_dict(item)[sample.KEY] for item in (sample, changed))
    (key,) = set(before) - set(after)  # type: ignore[arg-type]
    return str(key)


@pytest.mark.parametrize(("sample", "attribute", "wrong"), _CASES)
def test_an_unfit_value_is_refused_both_ways(sample: Any, attribute: str, wrong: object) -> None:
    with pytest.raises(UsageError) as refused:
        actions_to_bytes([dataclasses.replace(sample, **{attribute: wrong})])
    assert refused.value.kind == "OPTIMIST_INVALID_ACTION"
    if attribute == "format":
        sample = dataclasses.replace(sample, configuration={"a": "b"})
    body = dict(action_to_dict(sample)[sample.KEY])  # type: ignore[call-overload]
    body[_key_of(sample, attribute)] = wrong
    with pytest.raises(TableError) as malformed:
        action_from_dict({sample.KEY: body})
    assert malformed.value.kind == "OPTIMIST_MALFORMED_ACTION"
    line = json.dumps({sample.KEY: body}).encode()
    with pytest.raises(TableError) as damaged:
        parse_commit_lines(line, "0.json")
    assert damaged.value.kind == "OPTIMIST_MALFORMED_COMMIT"


def test_whole_numbers_are_integers_for_programs_and_in_any_spelling_in_logs() -> None:
    with pytest.raises(UsageError) as refused:
        actions_to_bytes([SetTransaction("app", 7.0)])  # type: ignore[arg-type]
    assert refused.value.kind == "OPTIMIST_INVALID_ACTION"
    for text in ("7", "7.0", "7e0", "70E-1", "0.7e+1"):
        line = f'{{"txn":{{"appId":"app","version":{text},"lastUpdated":9007199254740993.0}}}}'
        (read,) = parse_commit_lines(line.encode(), "0.json").actions
        assert read == SetTransaction("app", 7, (1 << 53) + 1)


@pytest.mark.parametrize("sample", [item for item in _SAMPLES if hasattr(item, "deletion_vector")])
@pytest.mark.parametrize("attribute", ["size_in_bytes", "cardinality", "offset", "storage_type"])
def test_an_unfit_value_of_a_vector_is_refused_both_ways(sample: Any, attribute: str) -> None:
    for wrong in ("1", -1, 1 << 63, 2.5, True) if attribute != "storage_type" else (1, []):
        vector = dataclasses.replace(_VECTOR, **{attribute: wrong})
        with pytest.raises(UsageError):
            action_to_json(dataclasses.replace(sample, deletion_vector=vector))
        body = json.loads(action_to_json(sample))
        body[sample.KEY]["deletionVector"][_key_of_vector(attribute)] = wrong
        with pytest.raises(TableError):
            parse_commit_lines(json.dumps(body).encode(), "0.json")


def _key_of_vector(attribute: str) -> str:
    head, *rest = attribute.split("_")
    return head + "".join(part.capitalize() for part in rest)


def test_arrow_has_the_same_types_for_the_fields_of_files() -> None:
    sizes = {"Count": pa.int64(), "Long": pa.int64(), "SmallCount": pa.int32()}
    types = sizes | {"str": pa.string(), "bool": pa.bool_()}
    for cls, schema in (
        (AddFile, ACTIONS_SCHEMA),
        (RemoveFile, ACTIONS_SCHEMA),
        (DeletionVectorDescriptor, pa.schema(list(DELETION_VECTOR_TYPE))),
    ):
        for item in dataclasses.fields(cls):
            declared = str(item.type).removesuffix(" | None")
            key = "pathOrInlineDv" if "inline" in item.name else _key_of_vector(item.name)
            if declared in types and not (cls is RemoveFile and item.name in ("stats", "tags")):
                assert schema.field(key).type == types[declared], key


def test_what_a_commit_info_holds_is_its_writers_business() -> None:
    info = action_from_dict({"commitInfo": {"timestamp": 1 << 70, "operation": 5}})
    assert info == CommitInfo(extra={"timestamp": 1 << 70, "operation": 5})
    assert json.loads(action_to_json(info)) == {
        "commitInfo": {"timestamp": 1 << 70, "operation": 5}
    }


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_what_no_json_holds_is_not_written(value: object) -> None:
    with pytest.raises(UsageError) as refused:
        actions_to_bytes([CommitInfo(operation_parameters={"x": value})])
    assert refused.value.kind == "OPTIMIST_INVALID_ACTION"


def test_a_transaction_of_70_bits_is_not_committed_and_the_table_goes_on(tmp_path: Path) -> None:
    log = DeltaLog(f"{tmp_path}/t", LocalLogStore())
    rows = pa.table({"x": [1]})
    log.append(rows)
    with pytest.raises(UsageError) as refused:
        log.append(rows, txn=("app", 1 << 70))
    assert refused.value.kind == "OPTIMIST_INVALID_ACTION"
    assert log.snapshot().version == 0
    assert len(list(Path(f"{tmp_path}/t").glob("*.parquet"))) == 1
    log.append(rows, txn=("app", (1 << 63) - 1))
    log.checkpoint()
    assert DeltaLog(f"{tmp_path}/t", LocalLogStore()).snapshot().version == 1


def test_a_batch_of_bodies_that_fit_is_what_the_values_are() -> None:
    text = "".join(f"{action_to_json(item)}\n" for item in _SAMPLES[2:4]).encode()
    bodies = parse_commit_lines(text, "0.json").file_actions
    assert file_actions_batch(bodies).equals(file_actions_batch(_SAMPLES[2:4]))  # type: ignore[arg-type]
    assert schema_from_json('{"type":"struct","fields":[]}').names == ()
