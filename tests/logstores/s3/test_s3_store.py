"""S3LogStore against S3 in this process: the contract, listings, ranges, what a commit costs."""

import io

import pyarrow as pa
import pytest
from botocore.exceptions import ClientError
from moto.core import DEFAULT_ACCOUNT_ID
from moto.s3.models import s3_backends

from optimist.core import DeltaLog
from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores.s3 import bucket as s3_bucket
from optimist.logstores.s3.dynamodb import S3DynamoDBLogStore
from optimist.logstores.s3.store import S3LogStore
from s3_tables import BY_S3, append, commit, create, put


class S3Suite(LogStoreSuite):
    has_directories = False

    @pytest.fixture(autouse=True)
    def bind(self, s3):
        self.s3 = s3

    @pytest.fixture
    def directory(self, log):
        return log

    def peek(self, path):
        bucket, _, key = path.partition("://")[2].partition("/")
        try:
            return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        except ClientError as error:
            assert error.response["Error"]["Code"] == "NoSuchKey"
            return None

    def poke(self, path, data):
        bucket, _, key = path.partition("://")[2].partition("/")
        self.s3.put_object(Bucket=bucket, Key=key, Body=data)


@pytest.mark.again  # on servers instead of the stand-in: integration/test_s3_stores.py
class TestS3LogStore(S3Suite):
    store_factory = S3LogStore
    # The stand-in answers one request at a time; so do most emulators.
    rounds = 10
    process_rounds = 10
    commits = 3


class TestS3DynamoDBLogStore(TestS3LogStore):
    store_factory = S3DynamoDBLogStore
    forgets_deleted = False


# Paths and listings


@pytest.mark.parametrize("scheme", ["s3", "s3a", "s3n", "S3A"])
def test_all_schemes_and_slashes_mean_one_object(s3, table, scheme):
    path = table.replace("s3:", f"{scheme}:").replace("/tables/", "/tables//") + "//f"
    S3LogStore().put_overwrite(path, b"x")
    assert S3LogStore().read_bytes(f"{table}/f") == b"x"
    assert S3LogStore().resolve_path(path) == f"{table}/f"


def test_listing_names_files_as_the_caller_does(s3, log):
    put(s3, commit(log, 3))
    spelled = log.replace("s3:", "s3a:")
    assert [status.path for status in S3LogStore().list_from(commit(spelled, 1))] == [
        commit(spelled, 3)
    ]


def test_listing_is_paged_as_the_caller_comes_to_it(server, log):
    # Past the server: a request takes moto 18 ms.
    bucket, _, directory = log.partition("://")[2].partition("/")
    objects = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
    for version in range(1005):
        objects.put_object(bucket, f"{directory}/{version:020d}.json", b"x")
    with server.counting() as made:
        listing = S3LogStore().list_from(commit(log, 0))
        assert next(listing).name == f"{0:020d}.json"
    assert len(made) == 1
    with server.counting() as made:
        assert sum(1 for _ in listing) == 1004
    assert len(made) == 1
    with server.counting() as made:
        assert len(list(S3LogStore().list_from(commit(log, 1003)))) == 2
    assert len(made) == 1


def test_listing_past_the_last_file_of_a_directory_is_empty(s3, log):
    put(s3, commit(log, 0))
    assert list(S3LogStore().list_from(commit(log, 1))) == []
    with pytest.raises(LogFileNotFoundError):
        list(S3LogStore().list_from(f"{log}/missing/0"))


def test_listing_of_a_directory_with_only_directories_is_empty(s3, table):
    put(s3, f"{table}/part=1/file")
    assert list(S3LogStore().list_from(f"{table}/")) == []


def test_directory_markers_are_not_files(s3, log):
    put(s3, f"{log}/", b"")
    put(s3, commit(log, 0))
    assert [status.name for status in S3LogStore().list_from(f"{log}/")] == [f"{0:020d}.json"]


def test_unsorted_store_is_listed_without_a_start_and_sorted(server, s3, log):
    for version in (2, 0, 1):
        put(s3, commit(log, version))
    store = S3LogStore({"optimist.store.s3.sortedListing": "false"})
    with server.counting() as made:
        names = [status.name for status in store.list_from(commit(log, 1))]
    assert names == [f"{1:020d}.json", f"{2:020d}.json"]
    assert "start-after" not in made[0][2]


# Reading by ranges


def test_large_file_is_read_in_parts(server, s3, log):
    data = bytes(range(256)) * 8 * 1024  # 2 MiB
    put(s3, f"{log}/large", data)
    store = S3LogStore({"optimist.store.s3.readAheadBytes": str(256 * 1024)})
    with server.counting() as made, store.open_read(f"{log}/large") as file:
        assert file.seek(-8, 2) == len(data) - 8
        assert file.read() == data[-8:]
        file.seek(1000)
        assert file.read(5000) == data[1000:6000]
    assert len(made) == 2
    with store.open_read(f"{log}/large") as file:
        assert file.read() == data


def test_file_replaced_while_it_is_read_is_noticed(s3, log):
    put(s3, f"{log}/large", b"a" * 1_000_000)
    with S3LogStore().open_read(f"{log}/large") as file:
        put(s3, f"{log}/large", b"b" * 1_000_000)
        with pytest.raises(StorageError) as caught:
            file.read(10)
    assert caught.value.kind == "OPTIMIST_FILE_CHANGED"
    assert caught.value.retryable


def test_commit_copied_again_by_recovery_is_read_on(s3, log):
    data = b"x" * 400_000 + b"y" * 600_000
    put(s3, commit(log, 0), data[::-1])
    with S3LogStore(has_arbiter=True).open_read(commit(log, 0)) as file:
        put(s3, commit(log, 0), data)
        assert file.read(10) == data[:10]


# What a commit costs


def test_commit_is_one_put_once_the_place_is_known(server, s3, log):
    store = S3LogStore()
    store.put_if_absent(commit(log, 0), b"x")
    with server.counting() as made:
        assert store.put_if_absent(commit(log, 1), b"x") is PutOutcome.CREATED
    assert [method for method, _, _ in made] == ["PUT"]


def test_append_of_a_warm_handle_is_one_put_of_a_commit_and_at_most_one_listing(server, table):
    delta = DeltaLog.for_path(table, options=BY_S3)
    create(delta)
    append(delta, "first")
    with server.counting() as made:
        append(delta, "second")
    assert sum(method == "PUT" and path.endswith(".json") for method, path, _ in made) == 1
    assert sum("list-type" in query for _, _, query in made) <= 1


def test_large_file_goes_in_parts_and_appears_by_the_last_request_once(
    server, s3, log, monkeypatch
):
    monkeypatch.setattr(s3_bucket, "MAX_PUT_BYTES", 1000)
    store, path = S3LogStore(), f"{log}/0.checkpoint.parquet"
    put(s3, f"{log}/other")
    store.put_if_absent(f"{log}/probed", b"x")
    content = bytes(range(251)) * 40_000  # 10 MB
    with server.counting() as made:
        assert store.put_file_if_absent(path, io.BytesIO(content)) is PutOutcome.CREATED
    assert [method for method, _, _ in made] == ["POST", "PUT", "PUT", "POST"]
    assert store.read_bytes(path) == content
    other = io.BytesIO(content[:-1])
    assert store.put_file_if_absent(path, other) is PutOutcome.EXISTS
    assert store.read_bytes(path) == content
    bucket, _, key = path.removeprefix("s3://").partition("/")
    left = s3.list_multipart_uploads(Bucket=bucket, Prefix=key)
    assert not left.get("Uploads")


def test_data_file_is_one_request_and_nothing_is_probed_for_it(server, s3, unprobed_log):
    path = f"{unprobed_log.removesuffix('/_delta_log')}/part-1.parquet"
    with server.counting() as made:
        assert S3LogStore().put_data_file(path, io.BytesIO(b"rows")) is PutOutcome.CREATED
    assert [method for method, _, _ in made] == ["PUT"]


def test_data_file_needs_no_condition_where_none_is_known(server, s3, unprobed_log):
    path = f"{unprobed_log.removesuffix('/_delta_log')}/part-1.parquet"
    server.refusals.append((501, "NotImplemented"))
    assert S3LogStore().put_data_file(path, io.BytesIO(b"rows")) is PutOutcome.CREATED
    assert S3LogStore().read_bytes(path) == b"rows"


def test_copies_of_a_deep_clone_are_encrypted_as_was_asked_for(server, s3, table):
    options = {
        **BY_S3,
        "fs.s3a.endpoint": server.url,
        "fs.s3a.encryption.algorithm": "SSE-KMS",
        "fs.s3a.encryption.key": "our-key",
    }
    source = DeltaLog.for_path(f"{table}/source", options)
    source.append(pa.table({"id": [1, 2]}))
    source.clone(f"{table}/clone")
    bucket, _, prefix = f"{table}/clone".partition("://")[2].partition("/")
    for found in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)["Contents"]:
        said = s3.head_object(Bucket=bucket, Key=found["Key"])
        assert said["SSEKMSKeyId"].endswith("our-key"), found["Key"]
