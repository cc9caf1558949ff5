"""Pages of a listing without an object that are not the last ones."""

import pytest

from fake_s3_service import FakeS3Service
from object_services import GCS, S3
from optimist.core.errors import ConfigError
from scripted_http import Reply

_CUT = (
    b"<IsTruncated>true</IsTruncated><NextContinuationToken>!</NextContinuationToken>"
    b"<EncodingType>url</EncodingType>"
)
_BOTH = pytest.mark.parametrize("kind", [GCS, S3], ids=lambda kind: kind.name, indirect=True)


def with_empty_pages(service):
    """Make a fake begin each listing with a page of no objects."""
    usual = service.listing

    def page(query):
        if "pageToken" in query or "continuation-token" in query:
            return usual(query)
        if isinstance(service, FakeS3Service):
            body = b"<ListBucketResult>" + _CUT + b"</ListBucketResult>"
            return Reply(200, body, {"Content-Type": "application/xml"})
        return {"kind": "storage#objects", "nextPageToken": query.get("startOffset", "!")}

    service.listing = page


@_BOTH
def test_a_directory_whose_files_all_come_before_the_start_is_there(kind, service, store):
    service.put("t/_delta_log/1.json", b"x")
    with_empty_pages(service)
    assert list(store.list_from(kind.url("t/_delta_log/2.json"))) == []
    assert [each.name for each in store.list_from(kind.url("t/_delta_log/0"))] == ["1.json"]


@pytest.mark.parametrize("kind", [S3], ids=lambda kind: kind.name, indirect=True)
def test_commits_that_wait_for_an_arbiter_are_found(kind, service, store):
    service.put("t/_delta_log/.tmp/00000000000000000001.json.abc", b"x")
    with_empty_pages(service)
    with pytest.raises(ConfigError) as caught:
        store.put_if_absent(kind.url("t/_delta_log/00000000000000000002.json"), b"x")
    assert caught.value.kind == "OPTIMIST_FOREIGN_ARBITER"
