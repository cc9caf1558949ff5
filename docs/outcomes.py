"""Write docs/outcomes.md from the tables in which the stores look up answers.

Run `python docs/outcomes.py` from the root after a change of such a table, with all stores
installed (`pip install -e .[stores]`).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError, EndpointConnectionError
from redis.exceptions import AuthenticationError, NoPermissionError, RedisError, ResponseError

from optimist.locks import dynamodb_table, redis_server
from optimist.logstores.azure.errors import AZURE_ANSWERS
from optimist.logstores.gcs.errors import GCS_ANSWERS
from optimist.logstores.hdfs.errors import HDFS_ANSWERS
from optimist.logstores.local.store import NOTHING_DONE
from optimist.logstores.s3.errors import NO_PROXY, S3_ANSWERS
from optimist.logstores.shared.answer_table import ANY_OTHER, AnswerTable, PutMeaning
from optimist.logstores.shared.http_answers import NO_ANSWER, NO_TOKEN, NOT_SENT, NOT_TRUSTED
from optimist.logstores.shared.os_errors import storage_error

PAGE = Path(__file__).with_suffix(".md")

_INTRODUCTION = """\
# What each answer means

<!-- Made by `python docs/outcomes.py` from the tables in the code. Do not edit. -->

Each store has one table of answers.
It looks up every answer other than success in this table, by the answer's code, never by its \
text.
The table says two things.
The column *creating* says what happened to a file that should be **created** only if it did not \
exist (a commit).
The column *error* says which **error** any other request raises.
Creating a file has one of these outcomes:

| outcome | meaning | what the engine does |
|---|---|---|
| `CREATED` | the file is there with our bytes | the commit has landed |
| `EXISTS` | another file was there first; our file was not written | reads the winner, \
checks for conflicts, tries the next version |
| `UNKNOWN` | the answer does not say whether the file was written | reads the file back and \
looks for our `txnId`; if there is no file, writes it again; raises \
`CommitOutcomeUnknownError` if it can't find out |
| error | nothing was written, for certain | tries again if that can help, then raises the error |

*Sent again* means that the store repeats the request after a pause, a limited number of times; \
then the last answer counts.
If an earlier request may have succeeded (the server was busy), `EXISTS` could mean our own file.
So it counts as `UNKNOWN`, and Optimist reads the file.

[errors.md](errors.md) says what each kind means and what to do.
"""

_MEANINGS = {
    PutMeaning.EXISTS: "`EXISTS`",
    PutMeaning.NOTHING_WRITTEN: "error",
    PutMeaning.CONFLICT: "sent again, then error",
    PutMeaning.SLOW_DOWN: "sent again, then `UNKNOWN`",
    PutMeaning.UNKNOWN: "`UNKNOWN`",
}
_IN_WORDS = {
    NOT_SENT: "no connection",
    NOT_TRUSTED: "certificate refused",
    NO_ANSWER: "no answer",
    NO_TOKEN: "no token from the credentials",
    NO_PROXY: "no connection to the proxy",
    ANY_OTHER: "anything else",
}
_HEADER = ("answer", "creating", "error", "tried again", "cause")

Row = tuple[str, str, str, bool, str]


def page() -> str:
    """Return the text of the page."""
    parts = [
        _INTRODUCTION,
        _section("S3: `S3LogStore` and the stores with an arbiter", _rows(S3_ANSWERS, "the store")),
        _section("Azure: `AzureLogStore`", _rows(AZURE_ANSWERS, "the container")),
        _section("Google Cloud Storage: `GCSLogStore`", _rows(GCS_ANSWERS, "the bucket")),
        _section(
            "HDFS: `HDFSLogStore`",
            _rows(HDFS_ANSWERS, "HDFS"),
            "The answer is the class of Java's exception.\n"
            "'Creating' applies after the rename was sent; earlier failures wrote nothing.",
        ),
        _section(
            "Local files: `LocalLogStore`, and `FsspecLogStore` on local paths",
            _local_rows(),
            "The answer is the `errno`.\n"
            "'Creating' applies after the link was tried; earlier failures wrote nothing.\n"
            "If the directory can't be synced after the link, the outcome is `UNKNOWN`.\n"
            "Without hard links the file is renamed; if that fails and the source is gone, the "
            "outcome is `UNKNOWN`, too.",
        ),
        _section(
            "Arbiter in DynamoDB",
            _dynamodb_rows(),
            "Here the arbiter creates the entry of a version.\n"
            "After that, an error of the store is `UNKNOWN`: the next reader or writer finishes "
            "the commit.",
        ),
        _section(
            "Arbiter in Redis", _redis_rows(), "The answer is the first word of Redis's error."
        ),
    ]
    return "\n".join(parts)


def _section(title: str, rows: Iterable[Row], note: str = "") -> str:
    lines = [f"## {title}", ""]
    if note:
        lines += [note, ""]
    lines += [f"| {' | '.join(_HEADER)} |", "|" + "---|" * len(_HEADER)]
    for answer, creating, kind, is_retryable, cause in rows:
        again = "yes" if is_retryable else "no"
        lines.append(f"| {answer} | {creating} | `{kind}` | {again} | {cause} |")
    return "\n".join((*lines, ""))


def _rows(table: AnswerTable, place: str) -> Iterable[Row]:
    names = [name for row in table for name in row.answers]
    for row in table:
        shown = ", ".join(dict.fromkeys(_shown(name, names) for name in row.answers))
        cause = row.cause.format(service=place)
        yield shown, _MEANINGS[row.put], row.kind, row.retryable, cause


def _shown(name: str, names: Iterable[str]) -> str:
    """Return the name of an answer, after `any other` if another row's name is more exact."""
    status, _, code = name.partition(" ")
    if name in _IN_WORDS:
        return _IN_WORDS[name]
    if not status[0].isdigit():
        return f"`{status.rpartition('.')[2]}`"
    if code:
        return f"{status} `{code}`"
    if status.endswith("xx"):
        return f"any other {status}"
    return f"any other {status}" if any(each.startswith(f"{status} ") for each in names) else status


def _local_rows() -> Iterable[Row]:
    yield (
        _codes(["EEXIST"]),
        "`EXISTS`",
        "DELTA_FILE_ALREADY_EXISTS",
        False,
        "a file exists; if it is the file that was just linked, the outcome is `CREATED`",
    )
    groups: dict[tuple[str, str, bool, str], list[str]] = {}
    for number in sorted(errno.errorcode):
        error = storage_error(OSError(number, os.strerror(number)), doing="write", path="it")
        if number == errno.EEXIST or (error.kind == _OTHER and not error.retryable):
            continue
        meaning = "error" if number in NOTHING_DONE else "`UNKNOWN`"
        cause = str(error).partition(": ")[2].rstrip(".") if error.kind != _OTHER else "busy"
        cause = cause or "it does not exist"
        key = (meaning, error.kind, error.retryable, cause)
        groups.setdefault(key, []).append(errno.errorcode[number])
    for (meaning, kind, is_retryable, cause), names in groups.items():
        yield _codes(names), meaning, kind, is_retryable, cause
    yield "every other", "`UNKNOWN`", _OTHER, False, "what the system says"


_OTHER = "OPTIMIST_STORAGE_FAILED"


def _dynamodb_rows() -> Iterable[Row]:
    yield (
        _codes(["ConditionalCheckFailedException"]),
        "`EXISTS`",
        _OTHER,
        False,
        "the entry exists; if it names our own staged file, the outcome is `CREATED`",
    )
    groups: dict[tuple[str, str], list[str]] = {}
    for code, cause in dynamodb_table.CAUSES_BY_CODE.items():
        groups.setdefault(cause, []).append(code)
    samples: list[tuple[str, Exception]] = [
        (_codes(codes), _dynamodb_answer(codes[0], 400)) for codes in groups.values()
    ]
    samples.append(("every other 4xx", _dynamodb_answer("", 400)))
    samples.append(("no connection", EndpointConnectionError(endpoint_url="")))
    samples.append(("408, every other 5xx, or no clear answer", _dynamodb_answer("", 500)))
    for shown, sample in samples:
        meaning = "`UNKNOWN`" if dynamodb_table.is_unanswered(sample) else "error"
        yield shown, meaning, *_judged(dynamodb_table.dynamodb_error(sample, doing=_DOING))


def _dynamodb_answer(code: str, status: int) -> ClientError:
    answer: Any = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, "PutItem")


def _redis_rows() -> Iterable[Row]:
    samples: tuple[tuple[str, Exception], ...] = (
        ("`WRONGPASS`, `NOAUTH`", AuthenticationError()),
        ("`NOPERM`", NoPermissionError()),
        (_codes(sorted(redis_server.REFUSED_CODES)), ResponseError("OOM")),
        ("every other error answer", ResponseError("ERR")),
        ("no connection, or no answer", RedisError()),
    )
    for shown, sample in samples:
        meaning = "`UNKNOWN`" if redis_server.is_unanswered(sample) else "error"
        yield shown, meaning, *_judged(redis_server.redis_error(sample, doing=_DOING))


_DOING = "create the entry"


def _judged(error: Any) -> tuple[str, bool, str]:
    cause = str(error).partition(": ")[2].rpartition(" (")[0]
    return error.kind, error.retryable, cause.replace(" with status 400", "")


def _codes(codes: Iterable[str]) -> str:
    return ", ".join(f"`{code}`" for code in codes)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
