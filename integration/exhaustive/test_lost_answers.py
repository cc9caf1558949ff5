"""Answers lost on the way: each request of a commit, each fault, each store; never a lie.

What is asked of the engine, whatever the network did:

- `commit` returned: the transaction is in the log, once, at the version it said.
- `CommitOutcomeUnknownError`: `resolve_commit` tells which, once the network is back.
- any other error: the transaction is not in the log, also after recovery.

The log is read past the stores, and past the proxy that did the harm.
"""

from __future__ import annotations

import contextlib
import uuid
from dataclasses import dataclass

import azure.storage.blob._download
import botocore.endpoint
import pytest

from landed_commits import txn_ids
from lossy_places import (
    QuickClock,
    azure_place,
    gcs_place,
    s3_dynamodb_place,
    s3_place,
    s3_redis_place,
)
from lossy_proxy import (
    CLOSE,
    CUT_ANSWER,
    CUT_REQUEST,
    DROP_ANSWER,
    DUPLICATE,
    HOLD_ANSWER,
    HOLD_REQUEST,
    PASS,
    answer_after,
    answer_instead,
)
from optimist.core import DeltaLog
from optimist.core.errors import CommitOutcomeUnknownError, OptimistError
from optimist.core.log.names import commit_path
from optimist.core.options.engine import EngineOptions
from optimist.core.protocol.actions import (
    AddFile,
    Metadata,
    Protocol,
    actions_from_bytes,
    actions_to_bytes,
)
from optimist.core.schema.types import PrimitiveType, StructField, StructType, schema_to_json
from optimist.core.table.commit_resolution import CommitState
from optimist.core.transaction.conflicts.operations import Operation

FAULTS = (
    DROP_ANSWER,
    CLOSE,
    HOLD_REQUEST,
    HOLD_ANSWER,
    DUPLICATE,
    CUT_REQUEST,
    CUT_ANSWER,
    *(answer_instead(status) for status in (409, 429, 500, 503)),
    *(answer_after(status) for status in (500, 503)),
)
LASTING = (DROP_ANSWER, CLOSE, CUT_ANSWER, answer_instead(503), answer_after(500))
STORES = ("s3", "s3-dynamodb", "azure", "gcs")
STEPS = {
    "s3": ("create", "read-back", "list"),
    "s3-dynamodb": (
        "list",
        "stage",
        "copy",
        "read-back",
        "arbiter-latest",
        "arbiter-get",
        "arbiter-create",
        "arbiter-complete",
    ),
    "azure": ("create", "read-back", "list"),
    "gcs": ("create", "read-back", "list"),
}
EACH_STEP = [(store, step) for store in STORES for step in STEPS[store]]
CREATES = [("s3", "create"), ("s3-dynamodb", "copy"), ("azure", "create"), ("gcs", "create")]
READ_FAULTS = (
    DROP_ANSWER,
    CLOSE,
    HOLD_ANSWER,
    CUT_ANSWER,
    *(answer_instead(status) for status in (429, 500, 503)),
)
"""To a request that changes nothing, the other faults are one of these."""
# DynamoDB has no 409.
WITHOUT_409 = tuple(fault for fault in FAULTS if fault.status != 409)
FAULTS_OF = {
    **dict.fromkeys(("list", "read-back", "arbiter-latest", "arbiter-get"), READ_FAULTS),
    **dict.fromkeys(("create", "stage", "copy"), FAULTS),
    "arbiter-create": WITHOUT_409,
    "arbiter-complete": WITHOUT_409,
}
EACH_FAULT = [(store, step, fault) for store, step in EACH_STEP for fault in FAULTS_OF[step]]
EACH_LASTING = [
    (store, step, fault)
    for store, step in EACH_STEP
    for fault in LASTING
    if fault in FAULTS_OF[step]
]
# Who owns the version if a rival comes at that moment: with an arbiter our entry decides it, and
# the rival finishes our commit before its own.
RACES = [
    *((store, "create", fault, 2) for store in ("s3", "azure", "gcs") for fault in FAULTS),
    *(("s3-dynamodb", "copy", fault, 1) for fault in FAULTS),
    *(("s3-dynamodb", "arbiter-create", fault, 2) for fault in FAULTS_OF["arbiter-create"]),
]
PROBE_FAULTS = (
    DROP_ANSWER,
    CLOSE,
    DUPLICATE,
    CUT_ANSWER,
    answer_instead(503),
    answer_after(500),
)
ALWAYS = range(1, 1_000_000)
WITHOUT_ARBITER = ("s3", "azure", "gcs")


@pytest.fixture(scope="module")
def place_of(request):
    """The place of a store, made when first asked for."""
    with pytest.MonkeyPatch.context() as patch:
        for sdk in (botocore.endpoint, azure.storage.blob._download):
            patch.setattr(sdk, "time", QuickClock())  # their retries sleep by it
        opened = {}

        def open_place(name):
            if name not in opened:
                opened[name] = _open(name, request.getfixturevalue)
            return opened[name][1]

        yield open_place
        for context, _ in opened.values():
            context.__exit__(None, None, None)


def _open(name, server):
    if name == "s3":
        context = s3_place(server("s3_server").endpoint)
    elif name == "s3-dynamodb":
        endpoints = (server("s3_server").endpoint, server("dynamodb_server").endpoint)
        context = s3_dynamodb_place(*endpoints)
    elif name == "azure":
        azurite = server("azure_server")
        context = azure_place(azurite.endpoint, azurite.account, azurite.key)
    else:
        context = gcs_place(server("gcs_server").endpoint)
    return context, context.__enter__()


@dataclass(frozen=True)
class Attempt:
    """How a commit ended: `version` if it returned, else the error; `file` is what it added."""

    file: str
    version: int | None
    error: OptimistError | None


class Table:
    """One table of version 0, seen through the network, past it, and as raw files."""

    def __init__(self, place, *, is_probed=True):
        self.place = place
        self.prefix = f"t-{uuid.uuid4().hex}"
        self.url = f"{place.url}/{self.prefix}"
        options = EngineOptions(write_checksum_enabled=False)
        self.ours = DeltaLog(self.url, place.lossy, options, clock=QuickClock())
        self.theirs = DeltaLog(self.url, place.direct, options, clock=QuickClock())
        self.rivals = []
        place.direct.put_if_absent(commit_path(self.ours.log_path, 0), _version_0())
        if is_probed:  # the first write to a place is more than one request
            place.lossy.put_if_absent(f"{self.ours.log_path}/first", b"x")

    def commit(self, log=None):
        """A blind append through the network; never raises."""
        file = f"part-{uuid.uuid4().hex}.parquet"
        try:
            done = (
                (log or self.ours)
                .start_transaction()
                .commit([AddFile(file, {}, 1, 1, True)], Operation.write("Append"))
            )
        except OptimistError as error:
            return Attempt(file, None, error)
        return Attempt(file, done.version, None)

    def let_rival_win(self):
        """A commit of another machine, whose network is in order."""
        attempt = self.commit(self.theirs)
        assert attempt.error is None
        self.rivals.append(attempt)

    def versions(self):
        """The files that each commit adds, by version, read past the stores."""
        files = self.place.files(f"{self.prefix}/_delta_log/")
        commits = {
            int(name.rpartition("/")[2].removesuffix(".json")): data
            for name, data in files.items()
            if name.endswith(".json") and "/.tmp/" not in name
        }
        return {
            version: list(actions_from_bytes(data, str(version)))
            for version, data in commits.items()
        }

    def ensure_truth(self, attempt):
        """What the commit said of itself is so, now that the network is back."""
        self.place.heal()
        self.theirs.snapshot()  # a reader finishes what a crash or an error left behind
        versions = self.versions()
        assert sorted(versions) == list(range(len(versions)))
        for rival in self.rivals:
            assert _homes(versions, rival.file) == [rival.version]
        homes = _homes(versions, attempt.file)
        if attempt.error is None:
            assert homes == [attempt.version]
        elif isinstance(attempt.error, CommitOutcomeUnknownError):
            self._ensure_resolved(attempt.error, homes)
        else:
            assert homes == [], f"it said: {attempt.error}"
        self._ensure_read(homes, attempt.file)

    def _ensure_resolved(self, error, homes):
        txn_id = error.fields["txn_id"]
        for log in (self.ours, self.theirs):
            resolution = log.resolve_commit(txn_id)
            assert (resolution.state is CommitState.LANDED) == bool(homes)
            assert len(homes) <= 1
        assert bool(homes) == (txn_id in txn_ids(self.versions()))

    def _ensure_read(self, homes, file):
        """A reader of another machine agrees, and the table takes the next commit."""
        live = self.theirs.snapshot().files.column("path").to_pylist()
        assert live.count(file) == len(homes)
        assert self.commit(self.theirs).error is None
        assert self.commit(self.ours).error is None


def _version_0():
    schema = StructType((StructField("x", PrimitiveType("long")),))
    metadata = Metadata(id="table", schema_string=schema_to_json(schema), created_time=1)
    return actions_to_bytes((Protocol(1, 2), metadata))


def _homes(versions, file):
    return [
        version
        for version, actions in sorted(versions.items())
        for action in actions
        if isinstance(action, AddFile) and action.path == file
    ]


@pytest.fixture
def open_table(place_of):
    tables = []

    def open_at(store):
        tables.append(Table(place_of(store)))
        return tables[-1]

    yield open_at
    for table in tables:
        table.place.heal()


def lose_create(table):
    """For the step that follows a put without an answer only: have one."""
    proxy, rule = table.place.proxy_of("create" if "create" in table.place.steps else "copy")
    proxy.plan(rule, DROP_ANSWER)


ONLY_AFTER = {"read-back": lose_create}


@pytest.mark.parametrize(("store", "step", "fault"), EACH_FAULT, ids=str)
def test_commit_tells_the_truth_when_one_message_is_lost(open_table, store, step, fault):
    table = open_table(store)
    ONLY_AFTER.get(step, lambda _: None)(table)
    proxy, rule = table.place.proxy_of(step)
    plan = proxy.plan(rule, fault)
    attempt = table.commit()
    assert plan.was_met
    table.ensure_truth(attempt)
    assert attempt.version == 1, "one lost message is no reason to give up"


@pytest.mark.parametrize(("store", "step", "fault", "version"), RACES, ids=str)
def test_commit_tells_the_truth_when_a_rival_comes_meanwhile(
    open_table, store, step, fault, version
):
    table = open_table(store)
    proxy, rule = table.place.proxy_of(step)
    plan = proxy.plan(rule, fault, before=table.let_rival_win)
    attempt = table.commit()
    assert plan.was_met
    table.ensure_truth(attempt)
    assert attempt.version == version


@pytest.mark.parametrize(("store", "step", "fault"), EACH_LASTING, ids=str)
def test_commit_tells_the_truth_when_a_step_never_succeeds(open_table, store, step, fault):
    table = open_table(store)
    ONLY_AFTER.get(step, lambda _: None)(table)
    proxy, rule = table.place.proxy_of(step)
    plan = proxy.plan(rule, fault, numbers=ALWAYS)
    attempt = table.commit()
    assert plan.was_met
    table.ensure_truth(attempt)


@pytest.mark.parametrize("fault", PROBE_FAULTS, ids=str)
@pytest.mark.parametrize("store", WITHOUT_ARBITER)
def test_first_commit_tells_the_truth_when_the_probe_is_disturbed(request, store, fault):
    context, place = _open(store, request.getfixturevalue)
    with contextlib.ExitStack() as stack:
        stack.push(context)
        table = Table(place, is_probed=False)
        proxy, rule = place.proxy_of("probe")
        plan = proxy.plan(rule, fault)
        attempt = table.commit()
        assert plan.was_met
        table.ensure_truth(attempt)
        assert attempt.version == 1


@pytest.mark.parametrize(("store", "step"), CREATES)
def test_put_that_arrives_between_the_read_back_and_the_next_put_is_ours(open_table, store, step):
    table = open_table(store)
    proxy, rule = table.place.proxy_of(step)
    late = proxy.plan(rule, HOLD_REQUEST)
    again = proxy.plan(rule, PASS, before=late.release)
    attempt = table.commit()
    assert again.was_met
    table.ensure_truth(attempt)
    assert attempt.version == 1


@pytest.mark.parametrize(("store", "step"), CREATES)
def test_put_that_arrives_after_all_was_over_changes_nothing(open_table, store, step):
    table = open_table(store)
    proxy, rule = table.place.proxy_of(step)
    late = proxy.plan(rule, HOLD_REQUEST, before=table.let_rival_win)
    attempt = table.commit()
    before = table.versions()
    late.release()
    assert table.versions() == before
    table.ensure_truth(attempt)
    assert attempt.error is None


@pytest.mark.parametrize(("store", "step"), CREATES)
def test_put_that_arrives_after_the_commit_gave_up_is_found_by_its_id(open_table, store, step):
    table = open_table(store)
    proxy, rule = table.place.proxy_of(step)
    late = proxy.plan(rule, HOLD_REQUEST)
    reading, read_rule = table.place.proxy_of("read-back")
    reading.plan(read_rule, CLOSE, numbers=ALWAYS)
    attempt = table.commit()
    assert isinstance(attempt.error, CommitOutcomeUnknownError)
    late.release()
    table.ensure_truth(attempt)
    txn_id = attempt.error.fields["txn_id"]
    assert table.ours.resolve_commit(txn_id).state is CommitState.LANDED


# Redis, which speaks no HTTP


@pytest.fixture(scope="module")
def redis_place(request):
    server = request.getfixturevalue
    with s3_redis_place(server("s3_server").endpoint, server("redis_server").endpoint) as opened:
        yield opened


@pytest.mark.parametrize("is_run", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 6))
def test_commit_tells_the_truth_when_redis_is_lost_around_one_script(redis_place, number, is_run):
    place, redis = redis_place
    table = Table(place)
    redis.lose(range(number, number + 1), is_run=is_run)
    attempt = table.commit()
    assert redis.was_met
    redis.heal()
    table.ensure_truth(attempt)
    assert attempt.version == 1


@pytest.mark.parametrize("is_run", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("number", range(1, 6))
def test_commit_tells_the_truth_when_redis_stays_lost(redis_place, number, is_run):
    place, redis = redis_place
    table = Table(place)
    redis.lose(range(number, 1_000_000), is_run=is_run)
    attempt = table.commit()
    assert redis.was_met
    redis.heal()
    table.ensure_truth(attempt)
