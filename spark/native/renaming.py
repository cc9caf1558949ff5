"""Renaming of a directory by Hadoop, whose committers have put files there."""

from __future__ import annotations

from py4j.protocol import Py4JJavaError

from optimist.core.errors import StorageError
from optimist.core.errors.foreign_text import shown
from optimist.spark.native.listing import hadoop_path
from optimist.spark.session.jvm import Jvm

__all__ = ["rename_directory"]


def rename_directory(jvm: Jvm, source: str, target: str) -> bool:
    """Rename a directory, and return False if it does not exist.

    On local disks and HDFS this is one atomic step; connectors of object stores copy file by file.

    Args:
        jvm: The session's handles.
        source: The directory.
        target: Its new path, which must not exist; the directories above it are created.

    Raises:
        StorageError: The file system failed (kind `OPTIMIST_STORAGE_FAILED`); files may be at
            both paths.
    """
    path = jvm.root.org.apache.hadoop.fs.Path
    before, after = path(hadoop_path(source)), path(hadoop_path(target))
    try:
        filesystem = before.getFileSystem(jvm.hadoop_settings())
        if not filesystem.exists(before):
            return False
        if filesystem.mkdirs(after.getParent()) and filesystem.rename(before, after):
            return True
        reason = "Hadoop's file system does not say why"
    except Py4JJavaError as error:
        reason = str(error.java_exception.getMessage())
    raise StorageError(
        f"The directory {shown(source)} could not be renamed to {shown(target)}: {shown(reason)}. "
        "Nothing was committed. Check the store, and run the operation again.",
        kind="OPTIMIST_STORAGE_FAILED",
        path=source,
        retryable=False,
    )
