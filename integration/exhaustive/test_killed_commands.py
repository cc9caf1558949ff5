"""kill -9 at each step of a DELETE, UPDATE or MERGE: the table is as before, or as after.

What a killed command leaves is data that no version names, below the table's directory and under a
name by which VACUUM finds it.
"""

from __future__ import annotations

import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import deltalake
import pyarrow as pa
import pytest

from crashing import Kill, kill_at, record_steps
from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS

FILES = 2
ROWS = 6_000
_AT_ONCE = 4


def make_table(path, *, vectors):
    key = "spark.databricks.delta.properties.defaults.enableDeletionVectors"
    log = DeltaLog.for_path(str(path), {key: str(vectors).lower()})
    for number in range(FILES):
        keys = range(number * ROWS, (number + 1) * ROWS)
        rows = {"key": keys, "group": [key * 7919 % 10 for key in keys], "value": keys}
        log.append(pa.table({name: pa.array(values, pa.int64()) for name, values in rows.items()}))
    return path


def delete(log):
    return log.delete("group = 3")


def update(log):
    return log.update(set={"value": "value + 1"}, predicate="group = 3")


def merge(log):
    keys = [*range(0, FILES * ROWS, 9), *range(10**6, 10**6 + 100)]
    source = pa.table({"key": keys, "group": [5] * len(keys), "value": [0] * len(keys)})
    merging = log.merge(source, ["key"])
    return merging.when_matched_update_all().when_not_matched_insert_all().execute()


def rows_of(path):
    rows = DeltaLog(str(path), DeltaLog.for_path(str(path)).store).to_arrow()
    return sorted(zip(*(rows[name].to_pylist() for name in ("key", "group", "value")), strict=True))


def ensure_leftovers_can_be_found(path):
    for file in path.rglob("*"):
        parts = file.relative_to(path).parts
        # VACUUM finds intents where they are: that of a process that is dead is stale.
        if file.is_file() and parts[0] not in ("_delta_log", INTENTS):
            assert not any(part.startswith(("_", ".")) for part in parts), file


def check_kill(original, after, work, point, kill):
    path = original.with_name(f"{original.name}-{kill.step}-{kill.is_after}")
    shutil.copytree(original, path)
    before = rows_of(path)
    kill_at(str(path), {}, kill, work)
    has_passed = kill.step > point or (kill.step == point and kill.is_after)
    assert rows_of(path) == (after if has_passed else before), str(kill)
    assert deltalake.DeltaTable(str(path)).version() == FILES - 1 + has_passed
    ensure_leftovers_can_be_found(path)
    if not has_passed:  # nothing of it stands in the way of another run
        work(DeltaLog.for_path(str(path)))
        assert rows_of(path) == after, str(kill)
    shutil.rmtree(path)


@pytest.mark.parametrize("vectors", [True, False], ids=["vectors", "rewriting"])
@pytest.mark.parametrize("work", [delete, update, merge])
def test_a_command_killed_at_any_step_is_there_whole_or_not_at_all(tmp_path, work, vectors):
    original = make_table(tmp_path / "table", vectors=vectors)
    recorded = tmp_path / "recorded"
    shutil.copytree(original, recorded)
    steps = record_steps(str(recorded), {}, work)
    assert any("data file" in step for step in steps)
    after = rows_of(recorded)
    assert after != rows_of(original)
    point = steps.index("os.link")
    # Between two steps nothing happens that others see, so that after one is before the next.
    kills = [Kill(step, False) for step in range(len(steps))]
    kills += [Kill(point, True), Kill(len(steps) - 1, True)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(partial(check_kill, original, after, work, point), kills))
