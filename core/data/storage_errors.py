"""What goes wrong between a data file and its store, as errors of ours without secrets.

Arrow's file systems put whole URLs into their texts, and a URL may carry a signature.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from optimist.core.errors import StorageError

__all__ = ["storage_errors", "without_secrets"]

_SIGNED = re.compile(r"\b(sig|signature|token|x-amz-[a-z-]+|x-goog-[a-z-]+)=[^&\s'\"]*", re.I)


@contextmanager
def storage_errors(doing: str, path: str) -> Iterator[None]:
    """Wrap what reaches for a data file.

    Args:
        doing: For the message, for example `written`.
        path: The file, or the table.

    Raises:
        StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`).
    """
    try:
        yield
    except OSError as error:
        raise StorageError(
            f"Data of {path} could not be {doing}: {without_secrets(str(error))}",
            kind="OPTIMIST_STORAGE_FAILED",
            path=path,
            retryable=False,
        ) from None


def without_secrets(text: str) -> str:
    """The text with the values of signatures and tokens in it masked."""
    return _SIGNED.sub(r"\1=***", text)
