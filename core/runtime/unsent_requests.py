"""Which errors of an HTTP client say that a request was never sent to a proxy.

urllib3 calls every broken connection to a proxy a `ProxyError`, and botocore calls that a
`ProxyConnectionError`: "Failed to connect to proxy". But the connection may also break after the
whole request was sent, while the client waits for the answer. Then the server may have done it.

Only two causes are certain: the connection could not be made, or not in time. They are known by the
names of urllib3's classes, because this package does not import it.
"""

from __future__ import annotations

__all__ = ["was_proxy_unreachable"]

_NOT_CONNECTED = frozenset({"NewConnectionError", "ConnectTimeoutError"})


def was_proxy_unreachable(error: BaseException) -> bool:
    """Tell whether a `ProxyConnectionError` of botocore came before the first byte was sent.

    Args:
        error: The error; it keeps that of urllib3, and that one its cause.
    """
    wrapped = getattr(error, "kwargs", {}).get("error")
    cause = getattr(wrapped, "original_error", None)
    return any(each.__name__ in _NOT_CONNECTED for each in type(cause).__mro__)
