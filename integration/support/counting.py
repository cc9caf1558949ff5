"""What boto3 sends while a block runs, counted request by request, repetitions included."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import boto3
import pytest

__all__ = ["RequestCounter", "counting_clients", "summary"]


@dataclass(slots=True)
class RequestCounter:
    """The requests of all clients that were made while it was in place.

    Attributes:
        sent: `(operation, subject)` in order: `("PutObject", "table/_delta_log/0.json")`.
    """

    sent: list[tuple[str, str]] = field(default_factory=list)

    @contextmanager
    def during(self) -> Iterator[list[tuple[str, str]]]:
        """The requests of the block; the list is filled when it ends."""
        start = len(self.sent)
        seen: list[tuple[str, str]] = []
        yield seen
        seen.extend(self.sent[start:])

    def note(self, request: Any, event_name: str, **_: Any) -> None:
        """What botocore calls before it sends."""
        operation = event_name.rpartition(".")[2]
        url = urlsplit(request.url)
        prefix = parse_qs(url.query).get("prefix", [""])[0]
        key = unquote(url.path).lstrip("/").partition("/")[2]
        self.sent.append((operation, prefix or key))


@contextmanager
def counting_clients(monkeypatch: pytest.MonkeyPatch) -> Iterator[RequestCounter]:
    """Count the requests of every boto3 client that is made inside of the block."""
    counter = RequestCounter()
    make = boto3.Session.client

    def counted(session: boto3.Session, *arguments: Any, **named: Any) -> Any:
        client = make(session, *arguments, **named)
        client.meta.events.register("before-send.*", counter.note)
        return client

    with monkeypatch.context() as patch:
        patch.setattr(boto3.Session, "client", counted)
        yield counter


def summary(sent: list[tuple[str, str]]) -> Counter[str]:
    """How many of each operation."""
    return Counter(operation for operation, _ in sent)
