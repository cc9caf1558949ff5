"""Which errors say that nothing reached a proxy, with the classes of the real clients."""

import http.client

import pytest
from botocore.exceptions import EndpointConnectionError, ProxyConnectionError
from urllib3.exceptions import ConnectTimeoutError, NameResolutionError, NewConnectionError
from urllib3.exceptions import ProxyError as Urllib3ProxyError

from optimist.core.runtime.unsent_requests import was_proxy_unreachable


def behind_proxy(cause):
    return ProxyConnectionError(proxy_url="http://proxy", error=Urllib3ProxyError("text", cause))


@pytest.mark.parametrize(
    "cause",
    [
        NewConnectionError(None, "refused"),
        NameResolutionError("proxy", None, OSError("unknown name")),
        ConnectTimeoutError(None, "slow"),
    ],
)
def test_proxy_that_was_not_connected_was_sent_nothing(cause):
    assert was_proxy_unreachable(behind_proxy(cause))


@pytest.mark.parametrize(
    "error",
    [
        behind_proxy(http.client.RemoteDisconnected("Remote end closed connection")),
        behind_proxy(ConnectionResetError(104, "reset")),
        ProxyConnectionError(proxy_url="http://proxy", error=None),
        EndpointConnectionError(endpoint_url="http://store", error=None),
        ValueError("no error of a client"),
    ],
)
def test_every_other_error_does_not_say_so(error):
    assert not was_proxy_unreachable(error)
