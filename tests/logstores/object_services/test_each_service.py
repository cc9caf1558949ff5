"""What the stores of Azure and Google do alike, each on a fake of its service."""

import pytest

from object_services import AZURE, GCS, S3
from optimist.core.errors import ConfigError, LogFileNotFoundError, StorageError
from optimist.core.log.file_identity import identity_of
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.shared.answer_dates import ms_of_date
from optimist.logstores.shared.create_probe import known_verdict
from scripted_http import LOST

# The time by the service's clock


@pytest.mark.parametrize("kind", [AZURE, GCS, S3], ids=lambda kind: kind.name, indirect=True)
def test_the_time_of_the_service_is_told_by_one_request(kind, service, store, monkeypatch):
    store.put_if_absent(kind.url("t/_delta_log/x"), b"x")
    service.requests.clear()
    monkeypatch.setattr(service.RequestHandlerClass, "date_time_string", lambda _: DATE)
    for directory in ("t/_delta_log/", "none/_delta_log/"):
        assert store.service_time_ms(kind.url(directory)) == 1_782_907_205_000
    assert [each.method for each in service.requests] == ["GET", "GET"]


DATE = "Wed, 01 Jul 2026 12:00:05 GMT"


@pytest.mark.parametrize(
    ("text", "told_ms"),
    [
        (DATE, 1_782_907_205_000),
        ("Wed, 01 Jul 2026 12:00:05 -0000", 1_782_907_205_000),
        ("Wed, 01 Jul 2026 99:00:05 GMT", None),
        ("Wed, 01 Jul 99999 12:00:05 GMT", None),
        ("\x1b[31m soon", None),
        ("1" * 60_000, None),
        ("", None),
        (None, None),
    ],
    ids=lambda value: str(value)[:30],
)
@pytest.mark.sample(1)
def test_a_header_that_is_no_date_tells_no_time(text, told_ms):
    assert ms_of_date(text) == told_ms


def test_a_service_that_refuses_tells_no_time(kind, service, store):
    service.script = [kind.no_bucket]
    with pytest.raises(StorageError) as caught:
        store.service_time_ms(kind.url("t/_delta_log/"))
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"


# One request, and what each answer means


@pytest.mark.parametrize(
    ("kind", "answer", "outcome"),
    [
        (AZURE, (409, "BlobAlreadyExists"), PutOutcome.EXISTS),
        (AZURE, (403, "UnauthorizedBlobOverwrite"), PutOutcome.EXISTS),
        (AZURE, (412, "ConditionNotMet"), PutOutcome.EXISTS),
        (AZURE, (412, "LeaseIdMissing"), PutOutcome.EXISTS),
        (AZURE, (409, "SnapshotsPresent"), PutOutcome.UNKNOWN),
        (AZURE, (408, "RequestTimeout"), PutOutcome.UNKNOWN),
        (AZURE, (500, "InternalError"), PutOutcome.UNKNOWN),
        (AZURE, (500, "OperationTimedOut"), PutOutcome.UNKNOWN),
        (AZURE, (502, "Whatever"), PutOutcome.UNKNOWN),
        (AZURE, (503, "Whatever"), PutOutcome.UNKNOWN),
        (AZURE, LOST, PutOutcome.UNKNOWN),
        (GCS, (412, "conditionNotMet"), PutOutcome.EXISTS),
        (GCS, (429, "rateLimitExceeded"), PutOutcome.UNKNOWN),
        (GCS, (403, "rateLimitExceeded"), PutOutcome.UNKNOWN),
        (GCS, (503, "backendError"), PutOutcome.UNKNOWN),
        (GCS, (500, "internalError"), PutOutcome.UNKNOWN),
        (GCS, (502, ""), PutOutcome.UNKNOWN),
        (GCS, (504, ""), PutOutcome.UNKNOWN),
        (GCS, (408, ""), PutOutcome.UNKNOWN),
        (GCS, (307, ""), PutOutcome.UNKNOWN),
        (GCS, (409, "conflict"), PutOutcome.UNKNOWN),
        (GCS, LOST, PutOutcome.UNKNOWN),
    ],
    indirect=["kind"],
)
def test_answer_to_a_put_is_told_as_it_is_and_never_retried(
    service, probed, clock, commit, answer, outcome
):
    service.script = [answer]
    assert probed.put_if_absent(commit, b"x") is outcome
    assert len(service.requests) == 1
    assert clock.sleeps == ()


def test_lost_answer_leaves_the_file(service, probed, commit):
    service.script = [LOST]
    assert probed.put_if_absent(commit, b"ours") is PutOutcome.UNKNOWN
    assert probed.read_bytes(commit) == b"ours"
    assert probed.put_if_absent(commit, b"ours") is PutOutcome.EXISTS


@pytest.mark.parametrize(
    ("kind", "answer", "error"),
    [
        (AZURE, (404, "ContainerNotFound"), "OPTIMIST_BUCKET_NOT_FOUND"),
        (AZURE, (409, "ContainerBeingDeleted"), "OPTIMIST_BUCKET_NOT_FOUND"),
        (AZURE, (401, "NoAuthenticationInformation"), "OPTIMIST_INVALID_CREDENTIALS"),
        (AZURE, (403, "AuthenticationFailed"), "OPTIMIST_INVALID_CREDENTIALS"),
        (AZURE, (409, "PublicAccessNotPermitted"), "OPTIMIST_INVALID_CREDENTIALS"),
        (AZURE, (403, "AuthorizationPermissionMismatch"), "OPTIMIST_PERMISSION_DENIED"),
        (AZURE, (403, "AuthorizationFailure"), "OPTIMIST_PERMISSION_DENIED"),
        (AZURE, (409, "ResourceTypeMismatch"), "OPTIMIST_NOT_A_FILE"),
        (AZURE, (400, "InvalidResourceName"), "OPTIMIST_INVALID_PATH"),
        (AZURE, (413, "RequestBodyTooLarge"), "OPTIMIST_FILE_TOO_LARGE"),
        (AZURE, (400, "InvalidHeaderValue"), "OPTIMIST_REQUEST_REFUSED"),
        (GCS, (404, "notFound"), "OPTIMIST_BUCKET_NOT_FOUND"),
        (GCS, (403, "forbidden"), "OPTIMIST_PERMISSION_DENIED"),
        (GCS, (413, "uploadTooLarge"), "OPTIMIST_FILE_TOO_LARGE"),
        (GCS, (400, "invalid"), "OPTIMIST_REQUEST_REFUSED"),
    ],
    indirect=["kind"],
)
def test_refused_put_raises_and_wrote_nothing(service, probed, commit, answer, error):
    service.script = [answer]
    with pytest.raises(StorageError) as caught:
        probed.put_if_absent(commit, b"x")
    assert caught.value.kind == error
    assert "Nothing was written." in str(caught.value)
    assert caught.value.fields["status"] == answer[0]
    assert not caught.value.retryable
    assert service.objects == {}


def test_endpoint_that_is_down_is_told_within_bounded_tries(kind, clock, commit):
    with kind.fake() as gone:
        options = gone.options()
    store = kind.store(options, clock=clock)
    for call in (
        lambda: store.put_if_absent(commit, b"x"),
        lambda: store.read_bytes(commit),
        lambda: list(store.list_from(commit)),
    ):
        with pytest.raises(StorageError) as caught:
            call()
        assert caught.value.kind == "OPTIMIST_STORE_UNREACHABLE"
        assert caught.value.retryable
    assert len(clock.sleeps) == 8  # reading and listing, five tries each


def test_reads_are_tried_again_and_give_up(kind, service, probed, clock):
    service.put("f", b"x")
    service.script = [kind.failed, kind.busy, (429, "")]
    assert probed.read_bytes(kind.url("f")) == b"x"
    service.script = [kind.failed] * 5
    with pytest.raises(StorageError) as caught:
        probed.read_bytes(kind.url("f"))
    assert caught.value.retryable
    assert len(clock.sleeps) == 7


# Listing and reading


def test_missing_bucket_is_told_from_a_missing_table(kind, service, probed, commit):
    service.script = [kind.no_bucket]
    with pytest.raises(StorageError) as caught:
        list(probed.list_from(commit))
    assert caught.value.kind == "OPTIMIST_BUCKET_NOT_FOUND"
    assert not isinstance(caught.value, FileNotFoundError)


def test_page_that_fails_is_asked_again(kind, service, probed):
    service.page_size = 3
    for version in range(8):
        service.put(f"t/{version}", b"x")
    listing = probed.list_from(kind.url("t/1"))
    names = [next(listing).name for _ in range(3)]
    service.script = [kind.busy]
    assert names + [status.name for status in listing] == list("1234567")


def test_listing_asks_from_the_name_on(kind, service, probed):
    for version in range(100):
        service.put(f"t/{version:020d}.json", b"x")
    assert len(list(probed.list_from(kind.url(f"t/{95:020d}.json")))) == 5
    [request] = service.requests
    assert f"t/{95:020d}.json" in (
        request.query.get("startFrom"),
        request.query.get("startOffset"),
    )


@pytest.mark.parametrize("size", [10, 1 << 20])
def test_an_opened_file_says_by_which_tag_listings_know_it(kind, service, probed, size):
    service.put("t/f", bytes(size))
    listed = next(iter(probed.list_from(kind.url("t/f"))))
    with probed.open_read(listed.path) as file:
        assert identity_of(file).strip('"') == listed.etag.strip('"') != ""
    service.put("t/f", bytes(size))
    with probed.open_read(listed.path) as file:
        assert identity_of(file).strip('"') != listed.etag.strip('"')


def test_opened_file_fetches_ranges_of_one_version(kind, service, probed):
    data = bytes(range(256)) * 8192
    service.put("f", data)
    with probed.open_read(kind.url("f")) as file:
        file.seek(-1000, 2)
        assert file.read(10) == data[-1000:-990]
        assert [request.method for request in service.requests] == ["GET", "GET"]
        service.put("f", data)
        file.seek(0)
        with pytest.raises(StorageError) as caught:
            file.read(10)
    assert caught.value.kind == "OPTIMIST_FILE_CHANGED"


# The probe of custom endpoints


def test_custom_endpoint_is_probed_once_and_cleaned(kind, service, store, commit):
    assert store.put_if_absent(commit, b"x") is PutOutcome.CREATED
    assert list(service.objects) == ["t/_delta_log/00000000000000000000.json"]
    create, again, delete, put = [request.method for request in service.requests]
    assert (again, delete, put) == (create, "DELETE", create)
    kind.store(service.options()).put_if_absent(commit, b"x")
    assert len(service.requests) == 5
    assert "box refuses a second creation" in store.describe()["probed"]


def test_endpoint_that_ignores_the_condition_is_not_written(kind, commit):
    with kind.fake(honours_condition=False) as service:
        store = kind.store(service.options())
        for _ in range(2):
            with pytest.raises(ConfigError) as caught:
                store.put_if_absent(commit, b"x")
            assert caught.value.kind == "OPTIMIST_NO_ATOMIC_CREATE"
            assert service.objects == {}
        assert len(service.requests) == 3
        assert "accepts a second creation" in store.describe()["probed"]
        with pytest.raises(LogFileNotFoundError):
            store.read_bytes(commit)


def test_refusal_can_be_overridden_and_every_commit_is_logged(kind, caplog):
    with kind.fake(honours_condition=False) as service:
        store = kind.store(service.options(allowUnsafeWrites="true"))
        for version in range(2):
            store.put_if_absent(kind.url(f"t/{version}"), b"x")
        assert set(service.objects) == {"t/0", "t/1"}
    assert len([each for each in caplog.records if each.levelname == "WARNING"]) == 2
    assert "allowUnsafeWrites" in caplog.text


def test_probe_without_an_answer_decides_nothing(service, store, commit):
    service.script = [LOST, LOST]
    with pytest.raises(StorageError) as caught:
        store.put_if_absent(commit, b"x")
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"
    assert caught.value.retryable
    assert known_verdict(service.endpoint, "box") is None
    assert store.put_if_absent(commit, b"x") is PutOutcome.CREATED


def test_probe_needs_no_permission_to_delete(service, store, commit):
    service.script = [None, None, (403, "forbidden")]
    assert store.put_if_absent(commit, b"x") is PutOutcome.CREATED
