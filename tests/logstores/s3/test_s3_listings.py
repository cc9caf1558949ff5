"""Listings that would never end, or break off."""

import datetime

import pytest

from optimist.core.errors import StorageError
from optimist.logstores import S3LogStore
from optimist.logstores.s3.bucket import S3Bucket

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
