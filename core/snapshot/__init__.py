"""One version of a table: how to find it, its files, and its rows in this process."""

from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.known_commits import KnownCommit
from optimist.core.snapshot.snapshot import Snapshot

__all__ = ["FilesView", "KnownCommit", "Snapshot"]
