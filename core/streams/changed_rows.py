"""The changes of the commits of a batch, as views of files (spec 10.11, 11.3)."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from optimist.core.changes.feed import changes_of
from optimist.core.data.table_ref import TableRef
from optimist.core.protocol.actions import Metadata
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.time_travel import list_commit_files
from optimist.core.streams.indexed_files import kept_paths
from optimist.core.streams.options import StreamOptions

__all__ = ["ChangeReader"]


@dataclass(frozen=True, slots=True)
class ChangeReader:
    """Reads changes for a stream.

    Attributes:
        table: The table.
        metadata: By which the rows are read.
        options: What the stream passes over.
    """

    table: TableRef
    metadata: Metadata
    options: StreamOptions

    def views(
        self, latest: Snapshot, versions: range, inserted: pa.Table
    ) -> tuple[FilesView, FilesView]:
        """The files with derived changes, and those in which a writer recorded them.

        Args:
            latest: The newest version.
            versions: The commits of the batch.
            inserted: Files whose rows come before these, as inserts.

        Raises:
            TableError, SchemaError, ProtocolError: As `change_feed`.
        """
        feed = changes_of(self.table, latest, self._held(versions), self.metadata)
        derived, recorded = (
            latest.with_other_files(view.metadata, self._kept(files))
            for view, files in (
                (feed.derived, pa.concat_tables([inserted, feed.derived.files])),
                (feed.recorded, feed.recorded.files),
            )
        )
        return derived, recorded

    def _held(self, versions: range) -> range:
        """The versions without those that the log has lost, where the stream goes on after them."""
        if self.options.fail_on_data_loss or not versions:
            return versions
        held = list_commit_files(self.table.store, self.table.log_path, versions[0], versions[-1])
        return range(held[0][0], versions.stop) if held else range(0)

    def _kept(self, files: pa.Table) -> pa.Table:
        wanted = self.options.exclude_regex
        if wanted is None or not files.num_rows:
            return files
        return files.filter(kept_paths(files, wanted))
