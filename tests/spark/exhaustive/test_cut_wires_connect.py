"""A Spark Connect server that is gone at some step of a command: what is told is so.

"Nothing was written" is told only where nothing was; a version that is told is there; and whatever
is told, the table is as before the command or as after it.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from connect_process import results_of
from cut_commands import GROUPS

pytestmark = pytest.mark.alone
SCRIPT = Path(__file__).with_name("connect_cut_script.py")
LOST, MIDWAY = "OPTIMIST_SPARK_SERVER_LOST", "OPTIMIST_SPARK_SERVER_LOST_MIDWAY"
ENDED = "SparkConnectGrpcException"
"""What Spark says of a query, which the server runs by itself."""


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("group", GROUPS)
def test_what_is_told_of_a_server_that_is_gone_is_so(tmp_path, group):
    told = results_of(SCRIPT, tmp_path, group, timeout_s=3500)
    assert told.keys() == GROUPS[group].keys()
    assert {name: problems for name, (_, problems) in told.items() if problems} == {}
    for name, (outcomes, _) in told.items():
        assert outcomes["done"] >= 1, name
        assert outcomes.keys() & {LOST, MIDWAY, ENDED}, name


@pytest.mark.timeout(3600)
@pytest.mark.parametrize(
    ("group", "command"),
    [("writes", "append"), ("merges", "merge"), ("care", "OPTIMIZE"), ("definitions", "CTAS")],
)
def test_what_is_told_of_a_server_that_is_killed_is_so(tmp_path, group, command):
    told, problem = results_of(SCRIPT, tmp_path, group, command)[command]
    assert problem is None
    # Requests are not numbered alike each time, so the kill may come after the commit.
    assert told in (LOST, "done")
