"""Our errors from Spark's Python workers, which keep their class.

A worker's error reaches the driver as the text of another error. So the text carries the error
itself, as a token at its end. Our entry points look for the token and raise the original error.
Users who run their own queries see the text, which says what happened.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from optimist.core import errors
from optimist.core.data.directory_names import too_long_name
from optimist.core.errors import ConfigError, OptimistError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.spark.session.listed_files import is_listed

__all__ = ["error_of_task", "portable_errors"]

_TOKEN = re.compile(r"optimist-task-error:(?P<data>[A-Za-z0-9+/=]+);")
_MISSING_FILE = re.compile(
    r"FAILED_READ_FILE\.FILE_NOT_EXIST\].*? file (?P<path>\S.*?)\. +File does not exist", re.DOTALL
)
_UNNAMEABLE = re.compile(
    r"Mkdirs failed to create (?P<local>.*?) \(exists="
    r"|maximum path component name limit of (?P<hdfs>.*?) in directory",
    re.DOTALL,
)
"""The messages of Hadoop's file systems, for disks and HDFS, if a directory can't be made."""
_NOT_INSTALLED = re.compile(r"No module named '(?P<package>optimist|pyarrow)\b")
_PLAIN = (str, int, float, bool, type(None))


@contextmanager
def portable_errors() -> Iterator[None]:
    """Wrap code that runs in a worker, so that `error_of_task` can restore its errors."""
    try:
        yield
    except OptimistError as error:
        raise RuntimeError(f"{error} (optimist-task-error:{_encode(error)};)") from None


def error_of_task(texts: Iterable[str]) -> OptimistError | None:
    """Restore a worker's error from the texts of Spark's error, or return None.

    A worker without this package, or without pyarrow, gives a `ConfigError` (kind
    `OPTIMIST_MISSING_PACKAGE`). Some of Spark's own errors become ours: a missing data file of a
    table (kind `DELTA_FILE_NOT_FOUND_DETAILED`), and a directory whose name is too long (kind
    `OPTIMIST_INVALID_PATH`). For other files, such as those of a user's source, the error stays
    Spark's.
    """
    for text in texts:
        if match := _TOKEN.search(text):
            return _decode(match["data"], text[: match.start()])
        if (match := _MISSING_FILE.search(text)) and is_listed(match["path"]):
            return _missing_data_file(match["path"])
        match = _UNNAMEABLE.search(text)
        if match and (found := too_long_name(match["local"] or match["hdfs"])):
            return found
        match = _NOT_INSTALLED.search(text)
        if match and "optimist" in text:  # else another library's code misses it
            return _missing_package(match["package"])
    return None


def _missing_package(package: str) -> ConfigError:
    return ConfigError(
        f"Spark's Python workers can't import {package}. Nothing was written. Install it where "
        "they run: on every machine of the cluster. For a local session, set PYSPARK_PYTHON to "
        "this Python (sys.executable) before the session starts.",
        kind="OPTIMIST_MISSING_PACKAGE",
        package=package,
    )


def _missing_data_file(path: str) -> TableError:
    return TableError(
        f"The data file {shown(path)} is missing, although the table's log names it. It was "
        "removed by hand, or by VACUUM while an old version was read. Nothing was written. Restore "
        "it, or read a newer version.",
        kind="DELTA_FILE_NOT_FOUND_DETAILED",
        path=path,
    )


def _encode(error: OptimistError) -> str:
    fields = {key: value for key, value in error.fields.items() if isinstance(value, _PLAIN)}
    body = {"class": type(error).__name__, "kind": error.kind, "fields": fields}
    return base64.b64encode(json.dumps(body).encode()).decode()


def _decode(data: str, before: str) -> OptimistError | None:
    try:
        body = json.loads(base64.b64decode(data))
    except ValueError:
        return None  # the token was cut short: only Spark's error is left
    message = before.rpartition(f"[{body['kind']}] ")[2].removesuffix(" (")
    found = getattr(errors, body["class"], OptimistError)
    kind = found if isinstance(found, type) and issubclass(found, OptimistError) else OptimistError
    return kind(message, kind=body["kind"], **body["fields"])
