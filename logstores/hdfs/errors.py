"""What the exceptions of HDFS mean: one table, searched by the name of Java's class.

After a rename was sent, `FileAlreadyExistsException` says that another writer was first, and it is
the only answer that is believed: the name node looks for the source before it looks at the target,
so that a repeated request whose first copy has worked is told that the source is missing, never
that the target exists. Whatever else comes leaves the outcome open, and the engine reads the file
back.
"""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.errors import LogFileNotFoundError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.hdfs.client import HdfsClientError

__all__ = ["HDFS_ANSWERS", "HdfsAnswer", "hdfs_error", "outcome_of_rename", "tells_existence"]

_EXISTS = "org.apache.hadoop.fs.FileAlreadyExistsException"


@dataclass(frozen=True, slots=True)
class HdfsAnswer:
    """One row: what some Java classes mean, but not as the answer to a commit's rename.

    Attributes:
        java_classes: The classes it holds for; empty means all others.
        kind: The kind of the error.
        cause: The same in words.
        retryable: Whether the same call may succeed when made again.
    """

    java_classes: tuple[str, ...]
    kind: str
    cause: str
    retryable: bool = False


HDFS_ANSWERS: tuple[HdfsAnswer, ...] = (
    HdfsAnswer(
        ("java.io.FileNotFoundException", "org.apache.hadoop.fs.PathNotFoundException"),
        "OPTIMIST_FILE_NOT_FOUND",
        "it, or the directory that it should be in, does not exist",
    ),
    HdfsAnswer(
        (_EXISTS, "org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException"),
        "OPTIMIST_STORE_CONFLICT",
        "a request was repeated and met its own traces",
        retryable=True,
    ),
    HdfsAnswer(
        (
            "org.apache.hadoop.fs.ParentNotDirectoryException",
            "org.apache.hadoop.fs.PathIsNotDirectoryException",
        ),
        "OPTIMIST_NOT_A_DIRECTORY",
        "a file stands where a directory of its path should be",
    ),
    HdfsAnswer(
        (
            "org.apache.hadoop.fs.InvalidPathException",
            "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
        ),
        "OPTIMIST_INVALID_PATH",
        "HDFS takes no such name",
    ),
    HdfsAnswer(
        (
            "org.apache.hadoop.security.AccessControlException",
            "org.apache.hadoop.fs.permission.AccessControlException",
            "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException",
            "org.apache.hadoop.security.authorize.AuthorizationException",
        ),
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied",
    ),
    HdfsAnswer(
        (
            "javax.security.sasl.SaslException",
            "org.apache.hadoop.security.KerberosAuthException",
            "org.apache.hadoop.security.token.SecretManager$InvalidToken",
        ),
        "OPTIMIST_INVALID_CREDENTIALS",
        "the name node does not accept the Kerberos ticket or token, or there is none",
    ),
    HdfsAnswer(
        (
            "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
            "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
            "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException",
            "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException",
        ),
        "OPTIMIST_NO_SPACE",
        "a quota or a limit is used up",
    ),
    HdfsAnswer(
        (
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "org.apache.hadoop.ipc.RetriableException",
            "org.apache.hadoop.ipc.StandbyException",
            "org.apache.hadoop.ipc.ObserverRetryOnActiveException",
        ),
        "OPTIMIST_STORE_BUSY",
        "the name node is in safe mode, or no name node is active",
        retryable=True,
    ),
    HdfsAnswer(
        (
            "java.net.ConnectException",
            "java.net.NoRouteToHostException",
            "java.net.UnknownHostException",
            "org.apache.hadoop.net.ConnectTimeoutException",
        ),
        "OPTIMIST_STORE_UNREACHABLE",
        "no name node could be reached",
    ),
    HdfsAnswer(
        (
            "java.net.SocketException",
            "java.net.SocketTimeoutException",
            "java.io.EOFException",
        ),
        "OPTIMIST_STORE_NO_ANSWER",
        "the connection was lost",
        retryable=True,
    ),
    HdfsAnswer(
        ("py4j.protocol.Py4JNetworkError",),
        "OPTIMIST_SESSION_STOPPED",
        "the JVM of the Spark session does not answer any more",
    ),
    HdfsAnswer((), "OPTIMIST_STORAGE_FAILED", "HDFS refused"),
)


def hdfs_error(error: HdfsClientError, *, doing: str, path: str) -> StorageError:
    """Translate a client's error into the store's.

    Args:
        error: What the client raised.
        doing: What was tried, for the message: `read`, `list`, `write`.
        path: The path as the caller gave it.

    Returns:
        A `LogFileNotFoundError` where something is missing, else a `StorageError`; fields `path`
        and `java_class`.
    """
    answer = _answer(error)
    missing = answer.kind == "OPTIMIST_FILE_NOT_FOUND"
    error_class = LogFileNotFoundError if missing else StorageError
    said = ": ".join(text for text in (error.java_class, error.reason) if text)
    return error_class(
        f"Cannot {doing} {path}: {answer.cause} ({said}).",
        kind=answer.kind,
        path=path,
        java_class=error.java_class,
        retryable=answer.retryable,
    )


def outcome_of_rename(error: HdfsClientError) -> PutOutcome:
    """What became of a commit whose rename ended in this error."""
    return PutOutcome.EXISTS if tells_existence(error) else PutOutcome.UNKNOWN


def tells_existence(error: HdfsClientError) -> bool:
    """Whether the error says that the name is taken already."""
    return error.java_class == _EXISTS


def _answer(error: HdfsClientError) -> HdfsAnswer:
    return next(
        row for row in HDFS_ANSWERS if not row.java_classes or error.java_class in row.java_classes
    )
