"""What only S3LogStore does, on a fake of S3."""

import io

import pytest

from object_services import S3
from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.s3 import bucket as s3_bucket
from scripted_http import Reply


@pytest.fixture
def kind():
    return S3


PAGE = b"<html xmlns='http://www.w3.org/1999/xhtml'><body>Sign in.</body></html>"
LITTLE = [
    Reply(200),
    Reply(200, b"<CompleteMultipartUploadResult/>"),
    Reply(200, PAGE, {"Content-Type": "text/html"}),
]
LITTLE_IDS = ["empty", "without a tag", "a page"]


@pytest.mark.parametrize("reply", LITTLE, ids=LITTLE_IDS)
def test_upload_in_parts_whose_end_says_little_has_no_known_outcome(
    service, probed, monkeypatch, reply
):
    monkeypatch.setattr(s3_bucket, "MAX_PUT_BYTES", 10)
    work = service.in_parts

    def in_parts(name, query, request):
        is_end = request.method == "POST" and "uploadId" in query
        return reply if is_end else work(name, query, request)

    monkeypatch.setattr(service, "in_parts", in_parts)
    outcome = probed.put_data_file("s3://box/t/part-1.parquet", io.BytesIO(bytes(100)))
    assert outcome is PutOutcome.UNKNOWN


@pytest.mark.parametrize("reply", LITTLE, ids=LITTLE_IDS)
def test_commit_without_a_tag_has_no_known_outcome(service, probed, monkeypatch, commit, reply):
    monkeypatch.setattr(service, "object_put", lambda *_: reply)
    assert probed.put_if_absent(commit, b"x") is PutOutcome.UNKNOWN


@pytest.mark.parametrize("reply", LITTLE, ids=LITTLE_IDS)
def test_listing_that_is_none_is_not_an_empty_one(service, probed, monkeypatch, commit, reply):
    service.put("t/_delta_log/0", b"x")
    monkeypatch.setattr(service, "listing", lambda _: reply)
    with pytest.raises(StorageError) as caught:
        list(probed.list_from(commit))
    assert caught.value.kind == "OPTIMIST_STORE_NO_ANSWER"


def test_object_that_a_batch_could_not_delete_is_named(service, probed):
    for name in "abc":
        service.put(f"t/{name}", b"x")
    service.refused = {"t/b": "AccessDenied"}
    service.object_delete = lambda *_: service.refusal(403, "AccessDenied")
    with pytest.raises(StorageError) as caught:
        probed.delete_data_files([f"s3://box/t/{name}" for name in "abc"])
    assert caught.value.kind == "OPTIMIST_PERMISSION_DENIED"
    assert caught.value.fields["path"] == "s3://box/t/b"
    assert list(service.objects) == ["t/b"]


def test_every_upload_carries_its_digest(service, probed, commit):
    """Buckets with Object Lock refuse others."""
    probed.put_if_absent(commit, b"x")
    probed.put_overwrite(commit, b"y")
    puts = [request for request in service.requests if request.method == "PUT"]
    assert len(puts) == 2
    assert all(request.headers["Content-MD5"] for request in puts)


def test_server_that_ignores_ranges_is_read_all_the_same(service, probed, monkeypatch):
    data = bytes(range(256)) * 8192
    service.put("t/large", data)
    with probed.open_read("s3://box/t/large") as file:
        whole = service.object_get

        def object_get(name, request):
            del request.headers["Range"]
            return whole(name, request)

        monkeypatch.setattr(service, "object_get", object_get)
        file.seek(5000)
        assert file.read(1000) == data[5000:6000]
