"""Keys of a caller join the commitInfo, and replace nothing that a commit says of itself."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError
from optimist.core.options.commit_keys import OWN_KEYS
from optimist.core.protocol.actions import CommitInfo, action_to_dict

KEY = "optimist.commitInfo.extra"


def test_every_key_that_a_commit_writes_is_its_own() -> None:
    written = CommitInfo(
        in_commit_timestamp=1,
        timestamp=1,
        operation="WRITE",
        operation_parameters={"a": 1},
        read_version=0,
        isolation_level="x",
        is_blind_append=True,
        data_change=True,
        operation_metrics={"a": "1"},
        user_metadata="x",
        tags={"a": "1"},
        engine_info="x",
        txn_id="x",
    )
    body = action_to_dict(written)["commitInfo"]
    assert isinstance(body, dict)
    assert set(body) == OWN_KEYS - {"version"}


def test_the_keys_are_in_the_log_and_in_the_history(tmp_path: Path) -> None:
    log = DeltaLog.for_path(tmp_path, {KEY: '{"userName": "ada", "job": {"id": 5}}'})
    log.append(pa.table({"a": [1]}))
    (record,) = log.history()
    assert record.info is not None
    assert record.info.user_name == "ada"
    assert record.info.extra == {"job": {"id": 5}}
    assert record.info.operation == "WRITE"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"txnId": "x"}', '{"a": NaN}', '{"userId": 5}', "[" * 100_000]
)
def test_other_texts_are_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match=r"commitInfo\.extra"):
        DeltaLog.for_path(tmp_path, {KEY: text})


def test_a_new_table_has_the_name_that_it_gets(tmp_path: Path) -> None:
    log = DeltaLog.for_path(tmp_path)
    log.create({"a": "bigint"}, name="people")
    assert log.detail().name == "people"
    log.create({"a": "bigint"}, mode="replace")
    assert log.detail().name is None
