"""The table over time, as the report shows it, against each version of random histories."""

from __future__ import annotations

import random  # noqa: TID251 - each seed is the same history each time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.cli.report.over_time import table_over_time
from optimist.core import DeltaLog

_DEFAULTS = "spark.databricks.delta.properties.defaults."


def step(log: DeltaLog, chance: random.Random) -> None:
    number = chance.randrange(9)
    rows = {"a": [number, chance.randrange(9)], "p": [chance.choice(["x y", "ü", None]), "%41"]}
    steps: list[Callable[[], object]] = [
        lambda: log.append(pa.table(rows)),
        lambda: log.append(pa.table(rows)),
        lambda: log.delete(f"a = {number}"),
        lambda: log.update(set={"a": "a + 1"}, predicate=f"a < {number}"),
        log.optimize,
        log.purge,
        log.recompute_statistics,
        lambda: log.restore(chance.randrange(log.version() + 1)),
    ]
    chance.choice(steps)()


@pytest.mark.parametrize("seed", range(60))
def test_each_state_is_that_of_its_version(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    conf = {f"{_DEFAULTS}checkpointInterval": str(chance.choice([3, 10]))}
    conf[f"{_DEFAULTS}enableDeletionVectors"] = chance.choice(["true", "false"])
    log = DeltaLog.for_path(str(tmp_path / "t"), conf)
    parts = ("p",) if chance.random() < 0.5 else ()
    log.append(pa.table({"a": [1, 2], "p": ["x y", "ü"]}), partition_by=parts)
    for _ in range(12):
        step(log, chance)
    states = table_over_time(log, log.snapshot(), lambda *step: None).states.to_pylist()
    assert [state["version"] for state in states] == list(range(log.version() + 1))
    for state in states:
        version = log.snapshot(state["version"])
        known = (version.num_files, version.size_in_bytes, version.count_rows())
        assert (state["files"], state["bytes"], state["rows"]) == known
