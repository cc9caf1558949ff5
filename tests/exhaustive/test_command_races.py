"""Processes and threads that change rows of one table: one commit stands after the other."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path

import pytest

import row_histories
from optimist.core import DeltaLog
from optimist.core.testing import ManualClock
from optimist.core.testing.logstore_races import run_in_threads
from row_histories import (
    appends,
    copies,
    deletes,
    ensure_in_order_of_versions,
    make,
    run_until_landed,
    updates,
    upserts,
)

WRITERS, COMMANDS = 4, 6
SCRIPT = """
import json, sys
sys.path[:0] = sys.argv[1:3]
from optimist.core import DeltaLog
from row_histories import run_until_landed
from test_command_races import commands_of
path, seed, writer = sys.argv[3], int(sys.argv[4]), int(sys.argv[5])
sys.stdin.readline()
log = DeltaLog.for_path(path)
print(json.dumps([run_until_landed(log, command) for command in commands_of(seed, writer)]))
"""


def commands_of(seed, writer):
    """The commands of one writer; no two writers add a row with the same id by themselves."""
    clock = ManualClock(seed=1000 * seed + writer)

    def below(limit):
        return int(clock.uniform(0, limit))

    def any_command(number):
        low, place = below(8), COMMANDS * writer + number
        choices = [
            deletes(low, low + 1),
            updates(low, low + 2, [-3, 5][below(2)]),
            upserts({low: below(10), 700 + place: 4}),
            appends(800 + place, below(10)),
            copies(low, low + 1, 1000 << place),
        ]
        return choices[below(len(choices))]

    return [any_command(number) for number in range(COMMANDS)]


@pytest.mark.parametrize("seed", range(6))
def test_threads(tmp_path, seed):
    log = make(tmp_path / "t")
    barrier = threading.Barrier(WRITERS)

    def write(writer):
        barrier.wait()
        return [(run_until_landed(log, command), command) for command in commands_of(seed, writer)]

    made = run_in_threads([partial(write, writer) for writer in range(WRITERS)])
    ensure_in_order_of_versions(log, [pair for pairs in made for pair in pairs])


@pytest.mark.timeout(600)
@pytest.mark.parametrize("seed", range(100, 103))
def test_processes(tmp_path, seed):
    make(tmp_path / "t")
    folders = [str(Path(row_histories.__file__).parent), str(Path(__file__).parent)]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", SCRIPT, *folders, str(tmp_path / "t"), str(seed), str(writer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for writer in range(WRITERS)
    ]
    for process in started:  # all of them, before the first is waited for
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [json.loads(process.communicate(timeout=500)[0]) for process in started]
    made = [
        pair
        for writer, versions in enumerate(told)
        for pair in zip(versions, commands_of(seed, writer), strict=True)
    ]
    ensure_in_order_of_versions(DeltaLog.for_path(str(tmp_path / "t")), made)
