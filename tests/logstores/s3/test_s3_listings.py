"""Listings that would never end, or break off."""

import datetime
import itertools

import pytest

from optimist.core.errors import StorageError
from optimist.logstores import S3LogStore
from optimist.logstores.s3.bucket import S3Bucket
from scripted_http import Reply, ScriptedService

WHEN = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
ENOUGH = 50


def item(name):
    return {"Key": f"t/{name}", "Size": 1, "LastModified": WHEN, "ETag": '"e"'}


@pytest.mark.parametrize("is_sorted", ["true", "false"])
@pytest.mark.parametrize(
    "pages",
    [
        [{"Contents": [item("1")], "IsTruncated": True, "NextContinuationToken": "a"}],
        [
            {"Contents": [], "IsTruncated": True, "NextContinuationToken": "a"},
            {"Contents": [], "IsTruncated": True, "NextContinuationToken": "b"},
        ],
        [{"Contents": [item("1")], "IsTruncated": True}],
        [{"Contents": [item("1")], "IsTruncated": True, "NextContinuationToken": ""}],
    ],
)
def test_a_listing_that_never_ends_or_breaks_off_is_told(monkeypatch, pages, is_sorted):
    asked = []

    def page(_bucket, _path, **_request):
        asked.append(1)
        assert len(asked) < ENOUGH
        return pages[(len(asked) - 1) % len(pages)]

    monkeypatch.setattr(S3Bucket, "_page", page)
    store = S3LogStore({"optimist.store.s3.sortedListing": is_sorted})
    with pytest.raises(StorageError) as caught:
        list(store.list_from("s3://tables/t/0"))
    assert caught.value.kind == "OPTIMIST_BROKEN_LISTING"


class EndlessUploads(ScriptedService):
    """Lists one upload again and again, each page with the next of some marks."""

    def __init__(self, marks):
        super().__init__()
        self._marks = itertools.cycle(marks)

    def work(self, request):
        assert len(self.requests) < ENOUGH
        if request.method == "DELETE":
            return Reply(204)
        more = f"<IsTruncated>true</IsTruncated><NextKeyMarker>{next(self._marks)}</NextKeyMarker>"
        upload = "<Upload><Key>t/1</Key><UploadId>u</UploadId></Upload>"
        page = f"<ListMultipartUploadsResult>{more}{upload}</ListMultipartUploadsResult>"
        return Reply(200, page.encode(), {"Content-Type": "application/xml"})


class OneUpload(ScriptedService):
    """Lists one upload, or answers with a page of a proxy."""

    def __init__(self, page=None):
        super().__init__()
        self._page = page

    def work(self, request):
        if request.method == "DELETE":
            return Reply(204)
        upload = "<Upload><Key>t/1</Key><UploadId>u</UploadId></Upload>"
        whole = f"<ListMultipartUploadsResult>{upload}</ListMultipartUploadsResult>".encode()
        return Reply(200, self._page or whole, {"Content-Type": "application/xml"})


@pytest.mark.parametrize("page", [b"<html>Sign in</html>", b"<ListMultipartUploadsResult><a"])
def test_a_page_of_a_proxy_leaves_uploads_with_a_warning(caplog, page):
    with OneUpload(page) as service:
        S3LogStore({"fs.s3a.endpoint": service.endpoint}).abort_uploads("s3://tables/t")
    assert "AbortIncompleteMultipartUpload" in caplog.text


def test_the_payer_of_requests_pays_for_aborting_uploads():
    with OneUpload() as service:
        given = {"fs.s3a.endpoint": service.endpoint, "fs.s3a.requester.pays.enabled": "true"}
        S3LogStore(given).abort_uploads("s3://tables/t")
        payers = [each.headers.get("x-amz-request-payer") for each in service.requests]
    assert payers == ["requester", "requester"]


@pytest.mark.parametrize("marks", ["a", "ab", "abc"])
def test_uploads_that_are_listed_in_circles_are_left_with_a_warning(caplog, marks):
    with EndlessUploads(marks) as service:
        S3LogStore({"fs.s3a.endpoint": service.endpoint}).abort_uploads("s3://tables/t")
        listed = [each for each in service.requests if each.method == "GET"]
    assert len(listed) == len(marks) + 1
    assert "AbortIncompleteMultipartUpload" in caplog.text
