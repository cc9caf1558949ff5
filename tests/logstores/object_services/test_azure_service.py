"""What only AzureLogStore does, on a fake of the Blob service."""

import base64
import hashlib
import io
from functools import partial

import pyarrow as pa
import pytest

from fake_blob_service import KEY, FakeBlobService
from object_services import AZURE
from optimist.core import DeltaLog
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import LogStoreSuite
from optimist.logstores.azure.store import AzureLogStore
from scripted_http import LOST


@pytest.fixture
def kind():
    return AZURE


class TestAzureLogStore(LogStoreSuite):
    has_directories = False

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def running(cls):
        # Small pages, so that every longer listing is several requests.
        with FakeBlobService(page_size=7) as service:
            cls.service = service
            cls.store_factory = partial(AzureLogStore, service.options())
            yield

    @pytest.fixture
    def directory(self, request):
        self.service.objects.clear()
        return "abfss://box@acct.dfs.core.windows.net/" + str(abs(hash(request.node.name)))

    def peek(self, path):
        return self.service.objects.get(_name(path), (None,))[0]

    def poke(self, path, data):
        self.service.put(_name(path), data)


def _name(path):
    return path.removeprefix("abfss://box@acct.dfs.core.windows.net/")


def test_commit_is_one_conditional_put_blob(service, probed, commit):
    assert probed.put_if_absent(commit, b"data") is PutOutcome.CREATED
    [request] = service.requests
    assert request.method == "PUT"
    assert request.path == "/acct/box/t/_delta_log/00000000000000000000.json"
    assert request.headers["If-None-Match"] == "*"
    assert request.body == b"data"


def test_commit_larger_than_the_sdks_threshold_is_one_request_too(service, probed, commit):
    data = bytes(65 * 1024 * 1024)
    assert probed.put_if_absent(commit, data) is PutOutcome.CREATED
    assert len(service.requests) == 1


@pytest.mark.parametrize("busy", [(503, "ServerBusy"), (429, "TooManyRequests")])
def test_busy_service_is_asked_again_after_a_pause_by_the_clock(
    service, probed, clock, busy, commit
):
    service.script = [busy, busy]
    assert probed.put_if_absent(commit, b"x") is PutOutcome.CREATED
    assert len(service.requests) == 3
    assert len(clock.sleeps) == 2
    assert 0 < clock.sleeps[0] < clock.sleeps[1]


def test_existing_file_after_a_busy_answer_may_be_our_own(service, probed, commit):
    service.script = [(503, "ServerBusy"), (409, "BlobAlreadyExists")]
    assert probed.put_if_absent(commit, b"x") is PutOutcome.UNKNOWN


def test_refusal_after_a_busy_answer_is_not_a_refusal_of_both(service, probed, commit):
    service.script = [(503, "ServerBusy"), (403, "AuthenticationFailed")]
    assert probed.put_if_absent(commit, b"x") is PutOutcome.UNKNOWN


def test_service_that_stays_busy_leaves_the_outcome_open(service, probed, commit):
    service.script = [(503, "ServerBusy")] * 5
    assert probed.put_if_absent(commit, b"x") is PutOutcome.UNKNOWN
    assert len(service.requests) == 5


def test_listing_is_right_where_the_start_is_not_known():
    with FakeBlobService(page_size=7, knows_start_from=False) as service:
        for version in range(30):
            service.put(f"t/{version:020d}.json", b"x")
        store = AzureLogStore(service.options())
        listed = [status.name for status in store.list_from(f"az://box/t/{12:020d}.json")]
    assert listed == [f"{version:020d}.json" for version in range(12, 30)]


def test_refusal_tells_the_code_and_no_key(service, probed, commit):
    service.script = [(403, "AuthenticationFailed")]
    with pytest.raises(StorageError) as caught:
        probed.put_if_absent(commit, b"x")
    assert caught.value.fields["code"] == "AuthenticationFailed"
    assert KEY not in str(caught.value)


def test_signature_shows_in_no_error(clock, commit):
    with FakeBlobService() as gone:
        options = gone.options(sas="?sv=2026-01-01&sig=hunter2")
    del options["optimist.store.azure.accountKey"]
    store = AzureLogStore(options, clock=clock)
    with pytest.raises(StorageError) as caught:
        store.read_bytes(commit)
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert "hunter2" not in str(store.describe()) + repr(store._parsed)


def test_the_blocks_of_two_writers_of_one_checkpoint_are_told_apart(service, store):
    path = "abfss://box@acct.dfs.core.windows.net/t/_delta_log/0.checkpoint.parquet"
    contents = [bytes([number]) * (9 << 20) for number in (1, 2)]
    other = AzureLogStore(service.options())
    outcomes = [
        each.put_file_if_absent(path, io.BytesIO(content))
        for each, content in zip((store, other), contents, strict=True)
    ]
    assert outcomes == [PutOutcome.CREATED, PutOutcome.EXISTS]
    assert len(service.staged) == 4  # two blocks each, none of them replaced
    assert store.read_bytes(path) == contents[0]


def test_data_file_is_one_conditional_put_blob_with_its_checksum(service):
    log = DeltaLog.for_path("az://box/t", service.options())
    log.append(pa.table({"id": [1, 2]}))
    [sent] = [request for request in service.requests if "/part-" in request.path]
    assert (sent.method, sent.headers["If-None-Match"]) == ("PUT", "*")
    assert sent.headers["x-ms-blob-type"] == "BlockBlob"
    md5 = hashlib.md5(sent.body, usedforsecurity=False).digest()
    assert sent.headers["Content-MD5"] == base64.b64encode(md5).decode()


def test_data_file_whose_answer_was_lost_is_read_back(service):
    log = DeltaLog.for_path("az://box/t", service.options())
    log.append(pa.table({"id": [1]}))
    # Of the listing, of our commit in it, of the intent, and of the file.
    service.script = [None, None, None, LOST]
    assert log.append(pa.table({"id": [2]})).version == 1
    of_data = [request.method for request in service.requests if "/part-" in request.path]
    assert of_data[:2] == ["PUT", "PUT"]
    assert set(of_data[2:]) <= {"HEAD", "GET"}
    assert len(of_data) > 2


def test_deletions_of_a_batch_are_told_apart_by_their_number(service, probed):
    """The fake gives the last answer first."""
    for name in "abc":
        service.put(f"t/{name}", b"x")
    service.refused = {"t/a": (403, "AuthorizationPermissionMismatch")}
    probed.delete_data_files([f"az://box/t/{name}" for name in "abc"])
    single = [request.path for request in service.requests if request.method == "DELETE"]
    assert single == ["/acct/box/t/a"]
    assert service.objects == {}
