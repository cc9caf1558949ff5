"""A Spark Connect server that is killed within a command: the client says what became of it."""

from __future__ import annotations

from pathlib import Path

from connect_process import results_of

SCRIPT = Path(__file__).with_name("connect_killed_script.py")
LOST = "StorageError OPTIMIST_SPARK_SERVER_LOST"


def test_a_killed_server_leaves_the_table_as_it_was_and_the_client_says_so(tmp_path):
    told = results_of(SCRIPT, tmp_path)
    assert told["a write"] == told["a command"] == LOST
    assert told["its table"] == [0, 1]
    assert told["a query"] == "SparkConnectGrpcException"  # not ours: it may have written
