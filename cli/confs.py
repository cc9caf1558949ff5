"""The options of a table, from the environment, a file and the command line.

Values may be secrets, so no error shows one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from optimist.core.errors import ConfigError
from optimist.core.errors.foreign_text import quoted
from optimist.core.secrets import Options

__all__ = ["CONF_FILE_VARIABLE", "CONF_VARIABLE", "gathered_options"]

CONF_VARIABLE = "OPTIMIST_CONF"
"""The environment variable with options, one `key=value` a line."""
CONF_FILE_VARIABLE = "OPTIMIST_CONF_FILE"
"""The environment variable with the path of a file of options."""

_PAIR = re.compile(r"(?P<key>[^\s=]+)(?:\s*=\s*|\s+)(?P<value>.*)")
"""A line of a file: `key=value`, or `key value` as in Spark's own spark-defaults.conf."""
_INVALID = "OPTIMIST_INVALID_OPTION"


def gathered_options(
    given: Iterable[str], file: str | None, environment: Mapping[str, str]
) -> Options:
    """Return the options of all sources. A later source wins: environment, file, command line.

    Args:
        given: The texts `key=value` of the command line.
        file: The path of a file of options. None means the file that the environment names.
        environment: The environment variables.

    Raises:
        ConfigError: A text is no option, or the file can't be read.
    """
    found = _options_of_lines(environment.get(CONF_VARIABLE, ""), f"the variable {CONF_VARIABLE}")
    path = file or environment.get(CONF_FILE_VARIABLE)
    if path:
        found |= _options_of_lines(_text_of(path), f"the file {quoted(path)}")
    for number, text in enumerate(given, 1):
        key, separator, value = text.partition("=")
        if not separator or not key.strip():
            raise ConfigError(
                f"The {number}. --conf is no option. Nothing was done. Write it as "
                "--conf key=value.",
                kind=_INVALID,
                key="--conf",
            )
        found[key.strip()] = value
    return Options(found)


def _options_of_lines(text: str, source: str) -> dict[str, str]:
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        pair = _PAIR.fullmatch(line)
        if pair is None:
            raise ConfigError(
                f"Line {number} of {source} is no option. Nothing was done. Write it as key=value.",
                kind=_INVALID,
                key=source,
            )
        found[pair["key"]] = pair["value"]
    return found


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8 text"
        raise ConfigError(
            f"The file of options {quoted(path)} can't be read: {reason}. Nothing was done.",
            kind=_INVALID,
            key="--conf-file",
        ) from None
