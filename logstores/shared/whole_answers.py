"""HTTP by `requests` for the SDKs of Azure and Google, with only whole answers, in time.

An answer that was cut off in its headers looks whole to an SDK: an empty listing, an empty file. So
an answer to a GET is accepted only if it gives its length and has all its bytes. And no request
waits longer than its try may take (`try_limit_s`).

`requests` does two things by default that leak credentials. If `~/.netrc` has a line for a host, or
for all hosts (`default`), it replaces the service's credentials by that password. And it follows
redirects to any host that an answer names. Neither happens here. An SDK may also take an address
from an answer, so the session of a store sends requests only to the store's own endpoint.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import requests
from requests.adapters import BaseAdapter, HTTPAdapter

from optimist.core.runtime.budget import try_limit_s
from optimist.core.runtime.whole_answer import is_whole

__all__ = [
    "AnotherHostError",
    "WholeAnswers",
    "ensure_asked_range",
    "private_session",
    "whole_session",
]

_Session = TypeVar("_Session", bound=requests.Session)
_Ensure = Callable[[requests.PreparedRequest, requests.Response], None]

_RANGE: Final = re.compile(r"bytes[= ](\d+)-(\d+)")
_WITHOUT_BODY = (204, 304)
_BLOCK_BYTES = 32 * 1024


class AnotherHostError(requests.exceptions.InvalidURL):
    """An answer names another host for the next request, which is not sent."""


def whole_session(
    session: _Session,
    *,
    connect_timeout_s: float,
    read_timeout_s: float,
    endpoint: str | None = None,
    ensure: _Ensure | None = None,
) -> _Session:
    """Set up a session with `WholeAnswers`, which sends only the wanted requests.

    Args:
        session: The session.
        connect_timeout_s: See `WholeAnswers`.
        read_timeout_s: See `WholeAnswers`.
        endpoint: The only URL (scheme, host and port) to send requests to; None for any.
        ensure: Refuses an incomplete success, by an error of `requests`.
    """
    _make_private(session)
    adapter = WholeAnswers(
        connect_timeout_s=connect_timeout_s, read_timeout_s=read_timeout_s, ensure=ensure
    )
    for scheme in ("https://", "http://"):
        session.mount(scheme, adapter if endpoint is None else _Nowhere())
    if endpoint is not None:
        parts = urlsplit(endpoint)
        session.mount(f"{parts.scheme}://{parts.netloc}/".lower(), adapter)
    return session


def private_session() -> requests.Session:
    """Return a session that sends no password of `~/.netrc` and follows no redirect."""
    session = requests.Session()
    _make_private(session)
    return session


class WholeAnswers(HTTPAdapter):
    """An adapter that accepts only whole answers: `session.mount("https://", WholeAnswers(...))`.

    Args:
        connect_timeout_s: How long to wait for a connection at most.
        read_timeout_s: How long to wait for an answer at most.
        max_connections: Connections kept open.
        ensure: See `whole_session`.
    """

    def __init__(
        self,
        *,
        connect_timeout_s: float,
        read_timeout_s: float,
        max_connections: int = 32,
        ensure: _Ensure | None = None,
    ) -> None:
        super().__init__(pool_connections=max_connections, pool_maxsize=max_connections)
        self._connect_timeout_s = connect_timeout_s
        self._read_timeout_s = read_timeout_s
        self._ensure = ensure

    def init_poolmanager(self, *args: Any, **given: Any) -> None:
        """See `HTTPAdapter.init_poolmanager`.

        Large files are sent in larger blocks.
        """
        super().init_poolmanager(*args, blocksize=_BLOCK_BYTES, **given)

    def send(self, request: requests.PreparedRequest, *args: Any, **given: Any) -> Any:
        """See `HTTPAdapter.send`.

        Our time-outs replace those of the SDK.

        Raises:
            requests.ConnectionError: Also if the answer does not give its length.
            requests.exceptions.ChunkedEncodingError: The answer is shorter than it says.
        """
        given["timeout"] = (
            try_limit_s(self._connect_timeout_s),
            try_limit_s(self._read_timeout_s),
        )
        response = super().send(request, *args, **given)
        try:
            if request.method == "GET" and response.status_code not in _WITHOUT_BODY:
                _ensure_whole(response)
            if self._ensure is not None and 200 <= response.status_code < 300:
                self._ensure(request, response)
        except BaseException:
            response.close()
            raise
        return response


class _Nowhere(BaseAdapter):
    """An adapter that sends nothing."""

    def send(self, request: requests.PreparedRequest, *_args: Any, **_given: Any) -> Any:
        raise AnotherHostError("an answer names another host", request=request)

    def close(self) -> None:
        """Do nothing, since nothing is open."""


def ensure_asked_range(asked: str, response: requests.Response) -> None:
    """Refuse a part of an object that is not the wanted range.

    A 200 holds the whole object, from which `ranged_file` cuts the range.

    Args:
        asked: The range, as in `bytes=0-99`; empty if the request had none.
        response: The answer.

    Raises:
        requests.ConnectionError: The range differs, or is not given.
    """
    if response.status_code != 206:
        return
    wanted = _RANGE.match(asked)
    found = _RANGE.match(response.headers.get("Content-Range", ""))
    if not (wanted and found and wanted[1] == found[1] and int(found[2]) <= int(wanted[2])):
        raise requests.ConnectionError("another range was answered", request=response.request)


def _make_private(session: requests.Session) -> None:
    # Without its own `auth`, a session reads ~/.netrc. Proxies and certificates still come from the
    # environment, so `trust_env` stays.
    session.auth = _unchanged_request
    session.get_redirect_target = _no_redirect  # type: ignore[assignment,method-assign]


def _unchanged_request(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


def _no_redirect(_response: object) -> None:
    """Follow no redirect: storage services send none, and a proxy's would get our token."""


def _ensure_whole(response: requests.Response) -> None:
    if not is_whole(response.headers):
        raise requests.ConnectionError("the answer was cut off", request=response.request)
    if "Content-Encoding" not in response.headers:  # the SDK reads encoded bodies itself
        _ = response.content  # read now: a cut body fails here, not in an SDK
