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


@pytest.mark.parametrize("page_size", [2, 1000])
def test_a_listing_out_of_order_is_refused(kind, service, store, page_size):
    for name in ("t/1", "t/2", "t/3"):
        service.put(name, b"x")
    service.page_size = page_size
    usual = service.listing

    def page(query):
        found = usual(query)
        if isinstance(service, FakeBlobService):
            # As a server may list that sorts by something else: the first name comes last.
            return found.replace(b">t/1<", b">t/9<")
        items = [
            {**each, "name": each["name"].replace("1", "9")} for each in found.get("items", [])
        ]
        return {**found, "items": items}

    service.listing = page
    with pytest.raises(StorageError) as caught:
        list(store.list_from(kind.url("t/0")))
    assert caught.value.kind == "OPTIMIST_UNSORTED_LISTING"
    assert not caught.value.retryable
