"""Files that a commit writes while it is moved past others, before any version names them."""

from __future__ import annotations

from optimist.core.data.intents.intents import Intent, begin_intent
from optimist.core.data.storage.stored_files import try_remove_file
from optimist.core.data.table_ref import TableRef

__all__ = ["RebaseFiles"]


class RebaseFiles:
    """The vector files that a rebase makes for one transaction, guarded by an intent of their own.

    A command looks after these files together with its own (`OptimisticTransaction.tell_of_files`).
    Any other transaction, a block of several operations among them, has these.

    Args:
        table: The table.
        table_id: The id in its metadata; None of a new one.
    """

    def __init__(self, table: TableRef, table_id: str | None) -> None:
        self._table = table
        self._table_id = table_id
        self._intent: Intent | None = None
        self._paths: list[str] = []

    def register(self, path: str) -> None:
        """Tell VACUUM that a file is about to be written to this full path.

        Raises:
            StorageError: The store or the file system failed; the file may not be written.
        """
        if not self._paths:
            self._intent = begin_intent(self._table, self._table_id)
        self._paths.append(path)

    def end(self, *, removes: bool) -> None:
        """End the intent, once it is known what became of the commit.

        Args:
            removes: Whether the files go, as no version holds them or ever will.
        """
        if removes:
            for path in self._paths:
                try_remove_file(path, self._table.data_access())
        if self._intent is not None:
            self._intent.end()
        self._intent, self._paths = None, []
