"""`_last_checkpoint` (spec 5.2; vector 13.1)."""

import itertools
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from optimist.core.log.last_checkpoint import (
    LastCheckpoint,
    canonical_text,
    checksum_of,
    read_last_checkpoint,
    write_last_checkpoint,
)
from optimist.core.log.names import LAST_CHECKPOINT, log_path_of
from optimist.core.options.engine import EngineOptions
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
VECTOR = (
    '{"k0":"\'v 0\'", "checksum":"x", '
    '"k1":{"k2":2,"k3":["v3",[1,2],{"k4":"v4","k5":["v5","v6","v7"]}]}}'
)
PATH = log_path_of("memory://hints/t")


@pytest.fixture
def store():
    return MemoryLogStore()


@pytest.fixture
def log_path():
    return log_path_of(f"memory://hints/t{next(_COUNTER)}")


def test_the_protocols_own_vector():
    assert canonical_text(VECTOR).startswith('"k0"="%27v%200%27","k1"+"k2"=2,"k1"+"k3"+0="v3",')
    assert checksum_of(VECTOR) == "6a92d155a59bf2eecbd4b4ec7fd1f875"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        (
            '{"a":1.0,"b":-1e3,"c":12345678901234567890}',
            '"a"=1.0,"b"=-1e3,"c"=12345678901234567890',
        ),
        ('{"a":true,"b":null,"c":false}', '"a"=true,"b"=null,"c"=false'),
        ('{"b":"~a-b_c.d","a":"é/+"}', '"a"="%C3%A9%2F%2B","b"="~a-b_c.d"'),
        ('{"a":{},"b":[],"c":{"checksum":1}}', '"c"+"checksum"=1'),
        ('{"a":{"b":1},"a b":2}', '"a"+"b"=1,"a%20b"=2'),
    ],
)
def test_the_canonical_form_of_each_kind_of_value(text, canonical):
    assert canonical_text(text) == canonical


def test_what_is_written_is_read_back(store, log_path):
    last = LastCheckpoint(10, 7, size_in_bytes=900, num_of_add_files=5, extra={"tags": {"a": "b"}})
    write_last_checkpoint(store, log_path, last, options=EngineOptions())
    assert read_last_checkpoint(store, log_path, clock=ManualClock()) == last
    text = store.read_bytes(f"{log_path}/{LAST_CHECKPOINT}").decode()
    assert list(json.loads(text))[:2] == ["version", "size"]
    assert json.loads(text)["checksum"] == checksum_of(text)


def test_optional_fields_can_be_left_out():
    options = EngineOptions.from_options(
        {"spark.databricks.delta.lastCheckpoint.suppressOptionalFields": "true"}
    )
    text = LastCheckpoint(10, 7, parts=2, size_in_bytes=9).to_json(options)
    assert json.loads(text) == {"version": 10, "size": 7, "parts": 2}


def test_the_checksum_can_be_left_out():
    options = EngineOptions.from_options(
        {"spark.databricks.delta.lastCheckpoint.checksum.enabled": "false"}
    )
    assert "checksum" not in json.loads(LastCheckpoint(10, 7).to_json(options))


def test_without_the_file_there_is_no_hint_and_no_waiting(store, log_path):
    clock = ManualClock()
    assert read_last_checkpoint(store, log_path, clock=clock) is None
    assert clock.sleeps == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        '{"version":1',
        "[]",
        '{"version":"1","size":2}',
        '{"size":2}',
        '{"version":1,"size":2,"checksum":"00"}',
        "\udcff",
    ],
)
def test_a_corrupt_hint_is_tried_three_times_more_and_then_passed_over(store, log_path, text):
    clock = ManualClock()
    store.put_overwrite(f"{log_path}/{LAST_CHECKPOINT}", text.encode("utf-8", "surrogateescape"))
    assert read_last_checkpoint(store, log_path, clock=clock) is None
    assert clock.sleeps == (1.0, 1.0, 1.0)


def test_a_hint_that_is_whole_at_the_second_look_is_taken(store, log_path):
    class Mended(ManualClock):
        def sleep(self, duration_s):
            super().sleep(duration_s)
            store.put_overwrite(f"{log_path}/{LAST_CHECKPOINT}", b'{"version":4,"size":2}')

    store.put_overwrite(f"{log_path}/{LAST_CHECKPOINT}", b'{"ver')
    assert read_last_checkpoint(store, log_path, clock=Mended()).version == 4


def test_a_hint_without_checksum_and_with_unknown_keys_is_taken(store, log_path):
    store.put_overwrite(f"{log_path}/{LAST_CHECKPOINT}", b'{"version":4,"size":2,"new":[1]}')
    found = read_last_checkpoint(store, log_path, clock=ManualClock())
    assert found.extra == {"new": [1]}


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=4), _json, max_size=4))
def test_the_checksum_depends_on_neither_order_nor_white_space(value):
    turned = dict(reversed(list(value.items())))
    assert checksum_of(json.dumps(value, indent=2)) == checksum_of(json.dumps(turned))


def test_a_hint_of_hundreds_of_kilobytes_is_passed_over_at_once(store, log_path):
    # To verify it takes many times its size, and it would be verified four times.
    clock = ManualClock()
    text = json.dumps({"version": 1, "size": 2, "x": [0] * 70_000})
    store.put_overwrite(f"{log_path}/{LAST_CHECKPOINT}", text.encode())
    assert read_last_checkpoint(store, log_path, clock=clock) is None
    assert clock.sleeps == ()
