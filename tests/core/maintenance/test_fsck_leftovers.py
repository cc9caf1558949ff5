"""What fsck tells of dead writers' intents, and of a commit that only an arbiter remembers."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

from checked_tables import LateClock, found, log_file, opened
from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS, begin_intent
from optimist.core.log.names import checksum_name, commit_name
from optimist.locks.sql_arbiter import SQLArbiter
from optimist.logstores import LocalLogStore
from optimist.logstores.shared.external_arbiter import ExternalArbiterLogStore

ROWS = pa.table({"x": [1, 2]})


def test_the_intent_of_a_dead_writer_is_found_and_no_other(tmp_path):
    log = opened(tmp_path / "t")
    log.append(ROWS)
    living = begin_intent(log.table, None)
    (file,) = (tmp_path / "t" / INTENTS).iterdir()
    dead = file.with_name(file.name[:-1] + ("0" if file.name[-1] != "0" else "1"))
    shutil.copy(file, dead)
    assert log.fsck().findings.num_rows == 0, "it may not have its lock yet"
    assert found(tmp_path / "t") == [("stale-intent", dead.name)]
    assert dead.exists()
    log.vacuum()
    assert found(tmp_path / "t") == []
    living.end()


def arbitrated(path: Path) -> DeltaLog:
    arbiter = SQLArbiter({"optimist.store.sql.url": f"sqlite:///{path}/entries.db"})
    store = ExternalArbiterLogStore(store=LocalLogStore(), arbiter=arbiter)
    return DeltaLog(str(path / "t"), store, clock=LateClock())


def test_a_commit_that_only_the_arbiter_remembers_is_found(tmp_path):
    for _ in range(3):
        arbitrated(tmp_path).append(ROWS)
    assert arbitrated(tmp_path).fsck().findings.num_rows == 0
    log_file(tmp_path / "t", checksum_name(2)).unlink()
    log_file(tmp_path / "t", commit_name(2)).unlink()
    (told,) = arbitrated(tmp_path).fsck().findings.to_pylist()
    assert (told["kind"], told["version"]) == ("stale-entry", 2)
    assert Path(told["path"]).name == commit_name(2)
    assert "ends with version 1" in told["proof"]
    left = arbitrated(tmp_path).fsck(repair=True)
    assert (left.findings.num_rows, left.steps.num_rows) == (1, 0)
