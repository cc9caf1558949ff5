"""Writers of other engines beside ours on one S3 table: no commit of ours lost, none destroyed."""

import json
import re
import threading
from collections import Counter

import deltalake
import pyarrow as pa
import pytest
from deltalake import CommitProperties, write_deltalake

from fleet import append_to, create_table, files_in
from foreign_writers import DynamoDBWriter, Step, VersionTakenError, WriterDiedError, commit_of
from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, StorageError
from optimist.core.testing import ArbiterFault, FaultyArbiter, When
from optimist.core.testing.logstore_races import run_in_threads
from optimist.locks import DynamoDBArbiter
from optimist.logstores.s3.dynamodb import S3DynamoDBLogStore

THREADS = 3
COMMITS = 6
DELTA_KEY = "io.delta.storage.S3DynamoDBLogStore"


class PowerCutError(BaseException):
    """Our own process ends here."""


class Place:
    """One empty table, and everybody's way to it."""

    def __init__(self, s3_server, dynamodb_server, name):
        self.s3_server, self.dynamodb_server, self.name = s3_server, dynamodb_server, name
        self.s3 = s3_server.client("s3")
        self.dynamodb = dynamodb_server.client("dynamodb")
        self.s3.create_bucket(Bucket=name)
        self.options = {
            **s3_server.s3a_options,
            f"{DELTA_KEY}.ddb.tableName": name,
            f"{DELTA_KEY}.ddb.region": dynamodb_server.region,
            "optimist.store.dynamodb.endpoint": dynamodb_server.endpoint,
            "optimist.store.dynamodb.accessKeyId": dynamodb_server.access_key_id,
            "optimist.store.dynamodb.secretAccessKey": dynamodb_server.secret_access_key,
        }

    def log(self, store, scheme="s3a"):
        """Ours."""
        key = f"delta.logStore.{scheme}.impl"
        return DeltaLog.for_path(f"{scheme}://{self.name}/table", {**self.options, key: store})

    def dying_log(self, *faults):
        """Ours, of a process that ends at the planned place."""
        arbiter = FaultyArbiter(DynamoDBArbiter(self.options), *faults)
        store = S3DynamoDBLogStore(self.options, arbiter=arbiter)
        return DeltaLog(f"s3a://{self.name}/table", store)

    def foreign(self):
        """A writer that speaks the DynamoDB protocol, as delta-spark does."""
        return DynamoDBWriter(self.s3, self.dynamodb, self.name, self.name, "table")

    def deltalake_options(self, **more):
        return {
            "AWS_ENDPOINT_URL": self.s3_server.endpoint,
            "AWS_ALLOW_HTTP": "true",
            "AWS_REGION": self.s3_server.region,
            "AWS_ACCESS_KEY_ID": self.s3_server.access_key_id,
            "AWS_SECRET_ACCESS_KEY": self.s3_server.secret_access_key,
            **more,
        }

    def commits(self):
        """Every commit's bytes, by version, past every store."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(
            Bucket=self.name, Prefix="table/_delta_log/0"
        )
        keys = [item["Key"] for page in pages for item in page["Contents"]]
        return {
            int(key[-25:-5]): self.s3.get_object(Bucket=self.name, Key=key)["Body"].read()
            for key in keys
            if key.endswith(".json")
        }


@pytest.fixture
def place(s3_server, dynamodb_server, fresh_name):
    return Place(s3_server, dynamodb_server, fresh_name)


def added(commits):
    """How often each file was added."""
    lines = (json.loads(line) for data in commits.values() for line in data.splitlines())
    return Counter(line["add"]["path"] for line in lines if "add" in line)


def assert_dense_and_each_once(place, wanted):
    commits = place.commits()
    assert sorted(commits) == list(range(len(commits)))
    assert added(commits) == Counter(list(wanted))


# deltalake


def append_by_deltalake(url, storage_options, worker):
    for number in range(COMMITS):
        properties = CommitProperties(
            custom_metadata={"writer": f"{worker}-{number}"}, max_commit_retries=200
        )
        write_deltalake(
            url,
            pa.table({"a": pa.array([number], pa.int64())}),
            mode="append",
            storage_options=storage_options,
            commit_properties=properties,
        )


@pytest.mark.parametrize("store", ["s3", "s3-dynamodb"])
def test_deltalake_and_ours_append_at_once(place, store, caplog):
    ours = place.log(store, "s3")
    theirs = place.deltalake_options(aws_conditional_put="etag")
    if store == "s3-dynamodb":
        # What such a fleet has in its conf; deltalake says that it no longer asks DynamoDB.
        theirs |= {"AWS_S3_LOCKING_PROVIDER": "dynamodb", "DELTA_DYNAMO_TABLE_NAME": place.name}
    create_table(ours)
    url = f"s3://{place.name}/table"
    barrier = threading.Barrier(2 * THREADS)

    def write_ours(worker):
        barrier.wait(60)
        for number in range(COMMITS):
            append_to(ours, f"ours-{worker}-{number}")

    def write_theirs(worker):
        barrier.wait(60)
        append_by_deltalake(url, theirs, worker)

    run_in_threads(
        [lambda w=w: write_ours(w) for w in range(THREADS)]
        + [lambda w=w: write_theirs(w) for w in range(THREADS)]
    )
    commits = place.commits()
    assert sorted(commits) == list(range(2 * THREADS * COMMITS + 1))
    every = [f"{w}-{n}" for w in range(THREADS) for n in range(COMMITS)]
    files = added(commits)
    assert {name: n for name, n in files.items() if name.startswith("ours")} == {
        f"ours-{each}": 1 for each in every
    }
    writers = [
        json.loads(line)["commitInfo"].get("writer")
        for data in commits.values()
        for line in data.splitlines()
        if b'"commitInfo"' in line
    ]
    assert Counter(name for name in writers if name) == dict.fromkeys(every, 1)
    assert set(files.values()) == {1}
    assert ours.snapshot().version == max(commits)
    assert deltalake.DeltaTable(url, storage_options=theirs).version() == max(commits)
    past = [
        each
        for each in caplog.records
        if re.search(r"by delta-rs\S*, which did not ask the arbiter", each.getMessage())
    ]
    assert bool(past) == (store == "s3-dynamodb")


# A writer that speaks the DynamoDB protocol


def test_writers_of_the_protocol_and_ours_append_at_once(place):
    ours, theirs = place.log("s3-dynamodb"), place.foreign()
    create_table(ours)
    barrier = threading.Barrier(2 * THREADS)
    told = {}

    def write(append, who):
        barrier.wait(60)
        for number in range(COMMITS):
            name = f"{who}-{number}"
            told[name] = append(name)

    run_in_threads(
        [lambda w=w: write(lambda n: append_to(ours, n), f"ours-{w}") for w in range(THREADS)]
        + [lambda w=w: write(theirs.append, f"theirs-{w}") for w in range(THREADS)]
    )
    assert_dense_and_each_once(place, told)
    commits = place.commits()
    for name, version in told.items():
        assert f'"{name}"'.encode() in commits[version]


@pytest.mark.parametrize("step", list(Step))
@pytest.mark.parametrize("finder", ["ours", "theirs"])
def test_writer_of_the_protocol_that_dies_is_finished_by_whoever_comes(place, step, finder):
    ours, theirs = place.log("s3-dynamodb"), place.foreign()
    create_table(ours)
    append_to(ours, "before")
    with pytest.raises(WriterDiedError):
        theirs.write(2, commit_of("dead"), dies_before=step)
    append = (lambda name: append_to(ours, name)) if finder == "ours" else theirs.append
    has_claimed = step in (Step.COPY, Step.COMPLETE)
    assert append("after") == (3 if has_claimed else 2)
    assert append_to(ours, "last") == (4 if has_claimed else 3)
    assert_dense_and_each_once(place, ["before", "after", "last", *["dead"] * has_claimed])
    assert files_in(ours) == sorted(added(place.commits()))
    assert all(
        theirs.entry(version)["complete"]["S"] == "true" for version in range(len(place.commits()))
    )


@pytest.mark.parametrize(
    ("operation", "when", "has_claimed"),
    [
        ("create", When.BEFORE, False),
        ("create", When.AFTER, True),
        ("complete", When.BEFORE, True),
        ("complete", When.AFTER, True),
    ],
)
@pytest.mark.parametrize("finder", ["ours", "theirs"])
def test_our_writer_that_dies_is_finished_by_whoever_comes(
    place, operation, when, has_claimed, finder
):
    ours, theirs = place.log("s3-dynamodb"), place.foreign()
    create_table(ours)
    dying = place.dying_log(ArbiterFault(operation, when, error=PowerCutError()))
    with pytest.raises(PowerCutError):
        append_to(dying, "dead")
    append = (lambda name: append_to(ours, name)) if finder == "ours" else theirs.append
    assert append("after") == (2 if has_claimed else 1)
    assert_dense_and_each_once(place, ["after", *["dead"] * has_claimed])


def test_copy_of_a_claimed_commit_that_comes_late_changes_nothing(place):
    """Recovery by theirs puts without a condition: what it puts is what is there."""
    ours, theirs = place.log("s3-dynamodb"), place.foreign()
    create_table(ours)
    dying = place.dying_log(ArbiterFault("create", When.AFTER, error=PowerCutError()))
    with pytest.raises(PowerCutError):
        append_to(dying, "dead")
    item = theirs.entry(1)
    assert append_to(ours, "after") == 2
    staged = f"table/_delta_log/{item['tempPath']['S']}"
    data = place.s3.get_object(Bucket=place.name, Key=staged)["Body"].read()
    theirs.overwrite(1, data)  # it had looked before ours finished the commit
    theirs.fix(item)
    assert place.commits()[1] == data
    assert append_to(ours, "last") == 3
    assert_dense_and_each_once(place, ["dead", "after", "last"])


def test_version_that_theirs_has_claimed_is_not_ours(place):
    ours, theirs = place.log("s3-dynamodb"), place.foreign()
    create_table(ours)
    transaction = ours.start_transaction()
    assert theirs.append("theirs") == 1
    assert transaction.read_version == 0
    assert append_to(ours, "ours") == 2
    with pytest.raises(VersionTakenError):
        theirs.write(2, commit_of("again"))
    assert_dense_and_each_once(place, ["theirs", "ours"])


def test_table_of_the_protocol_is_refused_without_the_arbiter(place):
    create_table(place.log("s3-dynamodb"))
    place.foreign().append("theirs")
    with pytest.raises(ConfigError) as caught:
        append_to(place.log("s3"), "ours")
    assert caught.value.kind == "OPTIMIST_FOREIGN_ARBITER"
    assert_dense_and_each_once(place, ["theirs"])


def test_dynamodb_is_left_in_the_steps_that_the_docs_name(place):
    """docs/s3.md, "Leaving DynamoDB": the last writer of the protocol died half-way."""
    by_entry, plain, theirs = place.log("s3-dynamodb"), place.log("s3"), place.foreign()
    create_table(by_entry)
    with pytest.raises(WriterDiedError):
        theirs.write(1, commit_of("dead"), dies_before=Step.COPY)
    assert plain.snapshot().version == 0, "whoever asks no arbiter does not see its commit"
    assert by_entry.snapshot().version == 1
    assert theirs.entry(1)["complete"]["S"] == "true"
    with pytest.raises(ConfigError):
        append_to(plain, "too early")
    staged = place.s3.list_objects_v2(Bucket=place.name, Prefix="table/_delta_log/.tmp/")
    for item in staged["Contents"]:
        place.s3.delete_object(Bucket=place.name, Key=item["Key"])
    assert append_to(plain, "plain") == 2
    assert append_to(by_entry, "not told yet") == 3
    assert append_to(plain, "goes on") == 4
    assert_dense_and_each_once(place, ["dead", "plain", "not told yet", "goes on"])


# Writers that ask nobody


@pytest.mark.parametrize("store", ["s3", "s3-dynamodb"])
def test_commit_of_ours_that_was_overwritten_is_named_at_the_next_update(place, store):
    ours = place.log(store)
    create_table(ours)
    append_to(ours, "lost")
    place.foreign().overwrite(1, commit_of("winner"))
    with pytest.raises(StorageError) as caught:
        ours.snapshot()
    assert caught.value.kind == "OPTIMIST_COMMIT_REPLACED"
    fields = caught.value.fields
    assert fields["lost_txn_id"] != fields["found_txn_id"] == "winner"
    assert fields["found_engine"] == "Apache-Spark/4.0 Delta-Lake/4.4"
    assert fields["lost_txn_id"] in str(caught.value)
    assert "winner" in str(caught.value)
    # Said once; from then on the table is what it is.
    assert files_in(ours) == ["winner"]


def test_commit_of_another_engine_that_was_overwritten_is_named_too(place):
    ours, theirs = place.log("s3"), place.foreign()
    create_table(ours)
    theirs.overwrite(1, commit_of("first", engine="one"))
    assert files_in(ours) == ["first"]
    theirs.overwrite(1, commit_of("second one", engine="two"))
    with pytest.raises(StorageError) as caught:
        ours.snapshot()
    assert caught.value.kind == "OPTIMIST_COMMIT_REPLACED"
    assert caught.value.fields["lost_txn_id"] == "first"
    assert caught.value.fields["found_engine"] == "two"


def test_commit_past_the_arbiter_is_reported_with_its_engine(place, caplog):
    ours = place.log("s3-dynamodb")
    create_table(ours)
    place.foreign().overwrite(1, commit_of("past", engine="Careless/1.0"))
    assert ours.snapshot().version == 1
    reports = [
        each for each in caplog.records if "which did not ask the arbiter" in each.getMessage()
    ]
    assert len(reports) == 1
    assert "Careless/1.0" in reports[0].getMessage()
    assert append_to(ours, "after") == 2
    assert_dense_and_each_once(place, ["past", "after"])
