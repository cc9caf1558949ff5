"""Writers and readers of each store while a tenth of all messages is harmed; never a lie.

On the wires between the SDKs and the servers, by a seed that is printed: resets, connections that
are closed or stay silent, requests and answers that are cut in two, come late or twice, errors of
the server before and after it did the work. What is asked of the engine:

- a commit that returned is in the log once, at the version it said; one that raised is not, or its
  outcome is said to be unknown, and `resolve_commit` tells once the wire is whole;
- nothing comes out but errors of ours which say that trying again can help: no damaged table, no
  missing table, no `KeyError`;
- no operation outlives its budget;
- readers see whole versions meanwhile, and in the end every version, to the last byte.

`FAULTY_WIRE_ROUNDS` rounds per store (1), the first with the seed `FAULTY_WIRE_SEED` (1).
"""

import contextlib
import itertools
import os
import sys
import threading
import uuid
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pytest

from faulty_wires import hdfs_wires, s3_redis_wires, s3_sql_wires, wires_of
from landed_commits import txn_ids
from lossy_places import QuickClock, azure_place, gcs_place, s3_dynamodb_place, s3_place
from optimist.core import DeltaLog
from optimist.core.errors import CommitOutcomeUnknownError, StorageError
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddFile,
    CommitInfo,
    Metadata,
    Protocol,
    actions_from_bytes,
    actions_to_bytes,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.table.commit_resolution import CommitState
from optimist.core.transaction.conflicts.operations import Operation
from private_servers import postgresql_driver, private_postgresql, skip_or_fail

ROUNDS = int(os.environ.get("FAULTY_WIRE_ROUNDS", "1"))
SEED = int(os.environ.get("FAULTY_WIRE_SEED", "1"))
RATE = 0.1
WRITERS = 3
COMMITS = 6
BUDGET_S = 20.0
SLACK_S = 60.0
"""How much longer than its budget an operation may take where machines are slow."""
STORES = ("s3", "s3-dynamodb", "s3-redis", "s3-sql", "azure", "gcs", "hdfs")
WITHOUT_DATA = ("hdfs",)
"""Where data nodes serve the data, past every wire that we could disturb."""


@contextlib.contextmanager
def _opened(store, server, directory):
    if store == "s3":
        with s3_place(server("s3_server").endpoint) as place:
            yield wires_of(place)
    elif store == "s3-dynamodb":
        endpoints = (server("s3_server").endpoint, server("dynamodb_server").endpoint)
        with s3_dynamodb_place(*endpoints) as place:
            yield wires_of(place)
    elif store == "s3-redis":
        endpoints = (server("s3_server").endpoint, server("redis_server").endpoint)
        with s3_redis_wires(*endpoints) as wires:
            yield wires
    elif store == "s3-sql":
        driver = postgresql_driver() or skip_or_fail("no driver of PostgreSQL is installed")
        with private_postgresql(directory) as address:
            if address is None:
                pytest.skip("PostgreSQL is not installed")
            with s3_sql_wires(server("s3_server").endpoint, address, driver) as wires:
                yield wires
    elif store == "azure":
        azurite = server("azure_server")
        with azure_place(azurite.endpoint, azurite.account, azurite.key) as place:
            yield wires_of(place)
    elif store == "gcs":
        with gcs_place(server("gcs_server").endpoint) as place:
            yield wires_of(place)
    else:
        with hdfs_wires(server("hdfs_server").endpoint) as wires:
            yield wires


@pytest.fixture
def wires(request, store, tmp_path):
    with _opened(store, request.getfixturevalue, tmp_path) as opened:
        yield opened


@dataclass(frozen=True)
class Attempt:
    """How a commit ended: `version` if it returned, else the error; `row` is what it added."""

    row: int
    version: int | None
    error: BaseException | None


class Table:
    """One table of version 0, whose n-th version has n rows, each in a file of its own."""

    def __init__(self, place, *, has_data):
        self.place = place
        self.has_data = has_data
        self.rows = itertools.count()
        self.prefix = f"t-{uuid.uuid4().hex}"
        self.attempts = []
        self.problems = []
        self.longest_s = 0.0
        self.clock = QuickClock()
        self.direct = self.log(place.direct)
        place.direct.ensure_directory(self.direct.log_path)
        place.direct.put_if_absent(commit_path(self.direct.log_path, 0), _version_0())

    def log(self, store):
        """A handle of its own, as another process has it."""
        options = EngineOptions(storage_budget_s=BUDGET_S)
        url = self.place.url if store is self.place.lossy else self.place.direct_url
        return DeltaLog(f"{url}/{self.prefix}", store, options, clock=self.clock)

    def run(self, work):
        """One operation: its result, or an error that is allowed in bad weather; in time."""
        start_s = self.clock.monotonic_s()
        try:
            return work(), None
        except Exception as error:  # noqa: BLE001 - whatever comes out is what is judged here
            is_unknown = isinstance(error, CommitOutcomeUnknownError)
            if not is_unknown and not (isinstance(error, StorageError) and error.retryable):
                self.problems.append(error)
            return None, error
        finally:
            elapsed_s = self.clock.monotonic_s() - start_s
            self.longest_s = max(self.longest_s, elapsed_s)
            if elapsed_s > BUDGET_S + SLACK_S:
                self.problems.append(AssertionError(f"an operation took {elapsed_s:.0f} s"))

    def write(self):
        log = self.log(self.place.lossy)
        for _ in range(COMMITS):
            row = next(self.rows)
            done, error = self.run(partial(self._append, log, row))
            self.attempts.append(Attempt(row, done and done.version, error))

    def read(self, is_over):
        log, seen = self.log(self.place.lossy), -1
        while not is_over.is_set():
            snapshot, _ = self.run(log.snapshot)
            if snapshot is None:
                continue
            if snapshot.version < seen or snapshot.files.num_rows != snapshot.version:
                self.problems.append(AssertionError(f"read {snapshot} after version {seen}"))
            seen = snapshot.version
            is_over.wait(0.05)

    def _append(self, log, row):
        if self.has_data:
            return log.append(pa.table({"x": [row]}), user_metadata=str(row))
        operation = Operation.write("Append", user_metadata=str(row))
        added = AddFile(f"part-{row}.parquet", {}, 1, 1, True)
        return log.start_transaction().commit([added], operation)

    def ensure_truth(self):
        """What every commit said of itself is so, and every version is whole."""
        assert not self.problems, self.problems
        latest = self.direct.snapshot()  # a reader finishes what an error left behind
        versions = self._versions()
        assert sorted(versions) == list(range(latest.version + 1))
        for attempt in self.attempts:
            self._ensure_true(attempt, versions)
        for version in versions:
            assert self.log(self.place.direct).snapshot(version).files.num_rows == version
        assert len(self.direct.history()) == latest.version + 1
        if self.has_data:
            rows = [attempt.row for attempt in self.attempts if _homes(versions, attempt.row)]
            assert sorted(self.direct.to_arrow()["x"].to_pylist()) == sorted(rows)

    def _ensure_true(self, attempt, versions):
        homes = _homes(versions, attempt.row)
        if attempt.error is None:
            assert homes == [attempt.version]
        elif isinstance(attempt.error, CommitOutcomeUnknownError):
            txn_id = attempt.error.txn_id
            assert len(homes) <= 1
            state = self.direct.resolve_commit(txn_id).state
            assert (state is CommitState.LANDED) == bool(homes)
            assert bool(homes) == (txn_id in txn_ids(versions))
        else:
            assert homes == [], f"it said: {attempt.error}"

    def _versions(self):
        files = self.place.files(f"{self.prefix}/_delta_log/")
        return {
            int(name.rpartition("/")[2].removesuffix(".json")): list(actions_from_bytes(data, name))
            for name, data in files.items()
            if name.endswith(".json") and "/.tmp/" not in name
        }


@pytest.mark.parametrize("seed", range(SEED, SEED + ROUNDS))
@pytest.mark.parametrize("store", STORES)
def test_every_commit_tells_the_truth_and_every_version_can_be_read(wires, store, seed):
    table = Table(wires.place, has_data=store not in WITHOUT_DATA)
    is_over = threading.Event()
    writers = [threading.Thread(target=table.write) for _ in range(WRITERS)]
    reader = threading.Thread(target=table.read, args=(is_over,))
    with wires.disturbed(seed, RATE) as weather:
        for thread in (*writers, reader):
            thread.start()
        for thread in writers:
            thread.join()
        is_over.set()
        reader.join()
    told = [attempt for attempt in table.attempts if attempt.error is None]
    # For who has to find out what went wrong, and with `pytest -s` for who wants to know.
    sys.stdout.write(
        f"{store}, seed {seed}: {len(told)} of {len(table.attempts)} commits are in; the longest "
        f"operation took {table.longest_s:.1f} s; {'; '.join(map(str, weather))}\n"
    )
    table.ensure_truth()
    assert told, "with one message in ten harmed most commits get through"
    assert sum(len(each.met) for each in weather) > 3, "the weather was too fair to prove anything"


def _version_0():
    schema = StructType((StructField("x", PrimitiveType("long")),))
    configuration = {"delta.checkpointInterval": "4"}
    metadata = Metadata(
        id="table",
        schema_string=schema_to_json(schema),
        created_time=1,
        configuration=configuration,
    )
    return actions_to_bytes((Protocol(1, 2), metadata))


def _homes(versions, row):
    """The versions whose commit says that it added a row."""
    return [
        version
        for version, actions in versions.items()
        for action in actions
        if isinstance(action, CommitInfo) and action.user_metadata == str(row)
    ]
