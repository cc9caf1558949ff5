"""Warnings about secrets that Spark shows in its UI and its event log.

Spark hides the values of keys whose names match `spark.redaction.regex`. Some names of secrets do
not match, such as Hadoop's `fs.azure.account.key…`. We can't hide such a value in the context's
conf, and we don't refuse it: a warning says what to write instead. A conf of the session, which
`enable` sets, hides the options of a call.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Mapping

from optimist.core.options.engine import STORE_PREFIX
from optimist.core.options.fields import SECRET_MARK

__all__ = ["SECRET_NAMES", "warn_of_shown_secrets"]

_LOG = logging.getLogger(__name__)

_SPARKS_REGEX = "(?i)secret|password|token|access[.]?key"
"""The default of `spark.redaction.regex` from Spark 3.3 on."""
SECRET_NAMES = (
    r"(?i)secret|password|token|(access|account|private|encryption)[._-]?key"
    r"|[._]sas\b|connection_?string|key_?json"
)
"""Matches all that Spark's default matches, and more.

Java reads it as Python does.

The warning advises users to set it, and `enable` uses it to hide options of calls.
"""
_IS_SECRET = re.compile(SECRET_NAMES)
_IS_ADDRESS = re.compile(r"(?i)ur[il]$|endpoint$|host$|proxy$")
_HAS_PASSWORD = re.compile(r"//[^/@\s]*:[^/@\s]+@|[?&;](password|sig|token)=", re.IGNORECASE)
_IS_KEY_ID = re.compile(r"arn:|alias/|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
"""The name of a key in Amazon's key service, which is not a secret."""
_OPTION = re.compile(rf"(?:spark\.)?{re.escape(STORE_PREFIX)}[^.]+\.")

_WARNED: set[tuple[str, str]] = set()


def warn_of_shown_secrets(entries: Mapping[str, str], regex: str | None) -> None:
    """Warn once about each key whose value is a secret that Spark does not hide.

    Args:
        entries: Options of the engine and its stores.
        regex: The session's `spark.redaction.regex`; None is Spark's default.
    """
    pattern = _SPARKS_REGEX if regex is None else regex
    for key in _shown_secrets(entries, pattern):
        if (key, pattern) in _WARNED:
            continue
        _WARNED.add((key, pattern))
        _LOG.warning(
            "Spark shows the value of %s in its UI and its event log, because the key does not "
            "match spark.redaction.regex. %s",
            key,
            _advice(key, pattern),
        )


def _shown_secrets(entries: Mapping[str, str], pattern: str) -> Iterator[str]:
    try:
        is_hidden = re.compile(pattern).search
    except re.error:  # some of Java's expressions are not valid in Python
        return
    for key, value in entries.items():
        is_secret = _IS_SECRET.search(key) or (
            _IS_ADDRESS.search(key) and _HAS_PASSWORD.search(value)
        )
        if is_secret and value and not _IS_KEY_ID.match(value) and not is_hidden(key):
            yield key


def _advice(key: str, pattern: str) -> str:
    prefix = _OPTION.match(key)
    better = f"{prefix[0]}{SECRET_MARK}{key[prefix.end() :]}" if prefix else key
    if re.search(pattern, better):
        return f"Write {better} instead."
    return f"Start Spark with spark.redaction.regex={SECRET_NAMES}"
