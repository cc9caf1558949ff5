"""The meaning of HDFS's exceptions: one table, searched by the name of Java's class.

After a rename was sent, `FileAlreadyExistsException` says that another writer was first. It is the
only conclusive error: the name node checks the source before the target, so a repeated request
whose first copy has succeeded gets "source is missing", never "target exists". Any other error
leaves the outcome unknown, and the engine reads the file back.
"""

from __future__ import annotations

from optimist.core.errors import StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.logstores.hdfs.client import REPLACED, HdfsClientError
from optimist.logstores.shared.answer_table import (
    ANY_OTHER,
    AnswerRow,
    AnswerTable,
    PutMeaning,
    error_of_row,
)

__all__ = ["HDFS_ANSWERS", "hdfs_error", "outcome_of_rename", "tells_existence"]

_UNKNOWN = PutMeaning.UNKNOWN

HDFS_ANSWERS = AnswerTable(
    AnswerRow(
        ("java.io.FileNotFoundException", "org.apache.hadoop.fs.PathNotFoundException"),
        _UNKNOWN,
        "OPTIMIST_FILE_NOT_FOUND",
        "the file, or the directory that it should be in, does not exist",
        "Check the path.",
    ),
    AnswerRow(
        (REPLACED,),
        _UNKNOWN,
        "OPTIMIST_FILE_CHANGED",
        "the file was replaced while it was being read",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("org.apache.hadoop.fs.FileAlreadyExistsException",),
        PutMeaning.EXISTS,
        "OPTIMIST_STORE_CONFLICT",
        "a request was sent twice, and the second met what the first had left",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("org.apache.hadoop.hdfs.protocol.AlreadyBeingCreatedException",),
        _UNKNOWN,
        "OPTIMIST_STORE_CONFLICT",
        "a request was sent twice, and the second met what the first had left",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        (
            "org.apache.hadoop.fs.ParentNotDirectoryException",
            "org.apache.hadoop.fs.PathIsNotDirectoryException",
        ),
        _UNKNOWN,
        "OPTIMIST_NOT_A_DIRECTORY",
        "a part of the path is a file, not a directory",
        "Check the path.",
    ),
    AnswerRow(
        (
            "org.apache.hadoop.fs.InvalidPathException",
            "org.apache.hadoop.hdfs.protocol.FSLimitException$PathComponentTooLongException",
        ),
        _UNKNOWN,
        "OPTIMIST_INVALID_PATH",
        "HDFS does not allow such a name",
        "Choose another path.",
    ),
    AnswerRow(
        (
            "org.apache.hadoop.security.AccessControlException",
            "org.apache.hadoop.fs.permission.AccessControlException",
            "org.apache.hadoop.hdfs.protocol.SnapshotAccessControlException",
            "org.apache.hadoop.security.authorize.AuthorizationException",
        ),
        _UNKNOWN,
        "OPTIMIST_PERMISSION_DENIED",
        "permission denied",
        "Ask for access to the directory of the table.",
    ),
    AnswerRow(
        (
            "javax.security.sasl.SaslException",
            "org.apache.hadoop.security.KerberosAuthException",
            "org.apache.hadoop.security.token.SecretManager$InvalidToken",
        ),
        _UNKNOWN,
        "OPTIMIST_INVALID_CREDENTIALS",
        "the Kerberos ticket or token is missing, or the name node does not accept it",
        "Get a new ticket or token.",
    ),
    AnswerRow(
        (
            "org.apache.hadoop.hdfs.protocol.DSQuotaExceededException",
            "org.apache.hadoop.hdfs.protocol.NSQuotaExceededException",
            "org.apache.hadoop.hdfs.protocol.QuotaByStorageTypeExceededException",
            "org.apache.hadoop.hdfs.protocol.FSLimitException$MaxDirectoryItemsExceededException",
        ),
        _UNKNOWN,
        "OPTIMIST_NO_SPACE",
        "a quota or a limit of HDFS is used up",
        "Make room, or raise the quota.",
    ),
    AnswerRow(
        (
            "org.apache.hadoop.hdfs.server.namenode.SafeModeException",
            "org.apache.hadoop.ipc.RetriableException",
            "org.apache.hadoop.ipc.StandbyException",
            "org.apache.hadoop.ipc.ObserverRetryOnActiveException",
        ),
        _UNKNOWN,
        "OPTIMIST_STORE_BUSY",
        "the name node is in safe mode, or no name node is active",
        "Run the operation again later.",
        retryable=True,
    ),
    AnswerRow(
        (
            "java.net.ConnectException",
            "java.net.NoRouteToHostException",
            "java.net.UnknownHostException",
            "org.apache.hadoop.net.ConnectTimeoutException",
        ),
        _UNKNOWN,
        "OPTIMIST_STORE_UNREACHABLE",
        "no name node could be reached",
        "Check the host, the port and the network.",
    ),
    AnswerRow(
        (
            "java.net.SocketException",
            "java.net.SocketTimeoutException",
            "java.io.EOFException",
        ),
        _UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "the connection was lost",
        "Run the operation again.",
        retryable=True,
    ),
    AnswerRow(
        ("py4j.protocol.Py4JNetworkError",),
        _UNKNOWN,
        "OPTIMIST_STORE_NO_ANSWER",
        "the JVM of the Spark session no longer answers",
        "Make a new session, and run the operation again.",
    ),
    AnswerRow(
        (ANY_OTHER,),
        _UNKNOWN,
        "OPTIMIST_STORAGE_FAILED",
        "HDFS refused the request",
        "Look at the log of the name node.",
    ),
)


def hdfs_error(error: HdfsClientError, *, doing: str, path: str) -> StorageError:
    """Translate a client's error into the store's.

    Args:
        error: The client's error.
        doing: The action, for the message: `read`, `list`, `write`.
        path: The path as the caller gave it.

    Returns:
        A `LogFileNotFoundError` for a missing path, else a `StorageError`; with the fields `path`
        and `java_class`.
    """
    return error_of_row(
        _row_of(error),
        doing=doing,
        path=path,
        service="HDFS",
        said=": ".join(text for text in (error.java_class, error.reason) if text),
        java_class=error.java_class,
    )


def outcome_of_rename(error: HdfsClientError) -> PutOutcome:
    """Return the outcome of a commit whose rename ended in this error."""
    return PutOutcome.EXISTS if tells_existence(error) else PutOutcome.UNKNOWN


def tells_existence(error: HdfsClientError) -> bool:
    """Check whether the error says that the name is taken already."""
    return _row_of(error).put is PutMeaning.EXISTS


def _row_of(error: HdfsClientError) -> AnswerRow:
    return HDFS_ANSWERS.find([error.java_class])
