"""A listing that would never end: a page that comes again with its token, or names none."""

import itertools
import json

import pytest

from fake_blob_service import FakeBlobService
from optimist.core.errors import StorageError

ENOUGH = 50
"""Requests after which a listing counts as endless; then the fake gives up, not the test."""


def pages_in_a_circle(service, tokens):
    """Make a fake list its one file again and again, each page with the next of these tokens."""
    usual = service.listing
    following = itertools.islice(itertools.cycle(tokens), ENOUGH)

    def page(query):
        token = next(following)
        found = usual({**query, "marker": "", "pageToken": ""})
        if isinstance(service, FakeBlobService):
            empty, marker = b"<NextMarker></NextMarker>", f"<NextMarker>{token}</NextMarker>"
            return found.replace(empty, marker.encode())
        return {**found, "nextPageToken": token}

    service.listing = page


@pytest.mark.parametrize("tokens", [["a"], ["a", "b"]])
def test_a_listing_that_goes_in_circles_ends(kind, service, store, tokens):
    service.put("t/1", b"x")
    pages_in_a_circle(service, tokens)
    with pytest.raises(StorageError) as caught:
        list(store.list_from(kind.url("t/0")))
    assert caught.value.kind == "OPTIMIST_BROKEN_LISTING"
    assert caught.value.retryable
    assert len(service.requests) <= len(tokens) + 2
    assert json.dumps(dict(caught.value.fields))
