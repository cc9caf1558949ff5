from __future__ import annotations

import dataclasses
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.errors import TableError
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
    UnknownAction,
    action_from_dict,
    action_from_json,
    action_to_dict,
    action_to_json,
    actions_from_bytes,
    actions_to_bytes,
)

_text = st.text(max_size=12)
_longs = st.integers(-(2**63), 2**63 - 1)
_counts = st.integers(0, 2**63 - 1)
_small_counts = st.integers(0, 2**31 - 1)
_json = st.recursive(
    st.none() | st.booleans() | _longs | _text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=5,
)
_extra = st.dictionaries(_text.map(lambda name: "unknown_" + name), _json.filter(bool), max_size=2)
_values = st.dictionaries(_text, st.none() | _text, max_size=3)
_maybe = st.none()
_vectors = st.builds(
    DeletionVectorDescriptor,
    storage_type=st.sampled_from(["u", "i", "p"]),
    path_or_inline_dv=_text,
    size_in_bytes=_small_counts,
    cardinality=_counts,
    offset=_maybe | _small_counts,
    max_row_index=_maybe | _longs,
    extra=_extra,
)
_file_fields = {
    "tags": _maybe | _values,
    "deletion_vector": _maybe | _vectors,
    "base_row_id": _maybe | _longs,
    "default_row_commit_version": _maybe | _longs,
    "stats": _maybe | _text,
    "extra": _extra,
}
_actions = st.one_of(
    st.builds(
        AddFile,
        path=_text,
        partition_values=_values,
        size=_counts,
        modification_time=_longs,
        data_change=st.booleans(),
        clustering_provider=_maybe | _text,
        **_file_fields,
    ),
    st.builds(
        RemoveFile,
        path=_text,
        deletion_timestamp=_maybe | _longs,
        data_change=st.booleans(),
        extended_file_metadata=_maybe | st.booleans(),
        partition_values=_maybe | _values,
        size=_maybe | _counts,
        **_file_fields,
    ),
    st.builds(
        AddCDCFile,
        path=_text,
        partition_values=_values,
        size=_counts,
        data_change=st.just(False),
        tags=_maybe | _values,
        extra=_extra,
    ),
    st.builds(
        Protocol,
        min_reader_version=st.integers(1, 3),
        min_writer_version=st.integers(1, 7),
        reader_features=_maybe | st.lists(_text).map(tuple),
        writer_features=_maybe | st.lists(_text).map(tuple),
        extra=_extra,
    ),
    st.builds(
        Metadata,
        id=_text,
        schema_string=_text,
        name=_maybe | _text,
        description=_maybe | _text,
        partition_columns=st.lists(_text).map(tuple),
        configuration=st.dictionaries(_text, _text, max_size=3),
        created_time=_maybe | _longs,
        extra=_extra,
    ),
    st.builds(
        SetTransaction,
        app_id=_text,
        version=_longs,
        last_updated=_maybe | _longs,
        extra=_extra,
    ),
    st.builds(
        DomainMetadata,
        domain=_text,
        configuration=_text,
        removed=st.booleans(),
        extra=_extra,
    ),
    st.builds(
        CommitInfo,
        in_commit_timestamp=_maybe | _longs,
        timestamp=_maybe | _longs,
        operation=_maybe | _text,
        operation_parameters=_maybe | st.dictionaries(_text, _json, max_size=3),
        operation_metrics=_maybe | st.dictionaries(_text, _text, max_size=3),
        is_blind_append=_maybe | st.booleans(),
        txn_id=_maybe | _text,
        extra=_extra,
    ),
    st.builds(
        UnknownAction, key=_text.map(lambda name: "unknown_" + name), body=_json.filter(bool)
    ),
)


@given(_actions)
def test_action_survives_json_with_its_unknown_fields(action) -> None:
    line = action_to_json(action)
    assert "\n" not in line
    assert action_from_json(line) == action


@given(st.lists(_actions, min_size=1, max_size=5))
def test_commit_file_keeps_all_actions_in_order(actions) -> None:
    assert actions_from_bytes(actions_to_bytes(actions), "0.json") == tuple(actions)


def test_unknown_fields_of_known_actions_come_out_as_they_went_in() -> None:
    line = {"add": {"path": "a", "size": 1, "fresh": {"deep": [1, None]}, "partitionValues": {}}}
    action = action_from_dict(line)
    assert action.extra == {"fresh": {"deep": [1, None]}}
    assert action_to_dict(action)["add"]["fresh"] == {"deep": [1, None]}


def test_unknown_fields_inside_a_deletion_vector_are_kept() -> None:
    vector = {
        "storageType": "u",
        "pathOrInlineDv": "ab^-aqEH.-t@S}K{vb[*k^",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 6,
        "novel": 1,
    }
    action = action_from_dict(
        {"remove": {"path": "a", "dataChange": True, "deletionVector": vector}}
    )
    assert action.deletion_vector.unique_id == "uab^-aqEH.-t@S}K{vb[*k^@4"
    assert action_to_dict(action)["remove"]["deletionVector"] == vector


def test_unknown_action_is_kept_as_it_is() -> None:
    line = '{"checkpointMetadata":{"version":3,"tags":{"a":"b"}}}'
    action = action_from_json(line)
    assert action == UnknownAction("checkpointMetadata", {"version": 3, "tags": {"a": "b"}})
    assert action_to_json(action) == line


def test_known_action_wins_over_unknown_neighbours_and_nulls_count_for_nothing() -> None:
    action = action_from_dict(
        {"add": None, "future": {"x": 1}, "txn": {"appId": "a", "version": 2}}
    )
    assert action == SetTransaction("a", 2)


def test_absent_fields_of_old_writers_get_the_protocols_meaning() -> None:
    add = action_from_dict({"add": {"path": "a", "size": 1}})
    assert (add.partition_values, add.data_change, add.modification_time) == ({}, True, 0)


def test_null_and_empty_lists_of_features_are_told_apart() -> None:
    legacy = action_from_dict({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7}})
    listed = action_from_dict(
        {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": []}}
    )
    assert legacy.reader_features is None
    assert listed.reader_features == ()
    assert action_to_dict(listed)["protocol"]["readerFeatures"] == []


def test_none_is_not_written_and_false_is() -> None:
    body = action_to_dict(RemoveFile("a", data_change=False))["remove"]
    assert body == {"path": "a", "dataChange": False}


def test_null_partition_value_is_written() -> None:
    add = AddFile("a", {"p": None}, 1, 2, True)
    assert json.loads(action_to_json(add))["add"]["partitionValues"] == {"p": None}


def test_remove_of_a_file_carries_all_that_is_known_of_it() -> None:
    vector = DeletionVectorDescriptor("i", "abc", 3, 1)
    add = AddFile("a", {"p": "1"}, 10, 5, True, '{"numRecords":1}', {"t": "x"}, vector, 7, 8)
    remove = add.remove(99, data_change=False)
    assert remove == RemoveFile(
        "a", 99, False, True, {"p": "1"}, 10, '{"numRecords":1}', {"t": "x"}, vector, 7, 8
    )


def test_line_separators_inside_strings_do_not_end_a_line() -> None:
    action = SetTransaction("a\u2028b\x85c\nd", 1)
    assert actions_from_bytes(actions_to_bytes([action]), "0.json") == (action,)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "{",
        "[]",
        "17",
        "{}",
        '{"add":null}',
        '{"add":[]}',
        '{"add":"x"}',
        '{"add":{"size":1}}',
        '{"add":{"path":"a","size":1},"txn":{"appId":"a","version":1}}',
        '{"protocol":{"minReaderVersion":1}}',
        '{"metaData":{"schemaString":"{}"}}',
    ],
)
def test_line_that_is_no_action_is_a_table_error(line: str) -> None:
    with pytest.raises(TableError) as caught:
        action_from_json(line)
    assert caught.value.kind == "OPTIMIST_MALFORMED_ACTION"


@pytest.mark.parametrize("data", [b"", b"\n \n", b'{"add":{"path":"a","si', b"\xff\xfe{}"])
def test_torn_or_empty_commit_file_is_named(data: bytes) -> None:
    with pytest.raises(TableError) as caught:
        actions_from_bytes(data, "/t/_delta_log/00000000000000000003.json")
    assert caught.value.kind == "OPTIMIST_MALFORMED_COMMIT"
    assert caught.value.fields["path"] == "/t/_delta_log/00000000000000000003.json"


def test_actions_are_values() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SetTransaction("a", 1).version = 2
