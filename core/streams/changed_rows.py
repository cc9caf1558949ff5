"""The changes of the commits of a batch, as views of files (spec 10.11, 11.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.changes.feed import changes_of
from optimist.core.data.table_ref import TableRef
from optimist.core.protocol.actions import Metadata
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.time_travel import list_commit_files
from optimist.core.streams.indexed_files import IndexedFiles, kept_paths
from optimist.core.streams.options import StreamOptions

__all__ = ["ChangeReader", "ChangedRun"]


@dataclass(frozen=True, slots=True)
class ChangedRun:
    """Commits that follow each other.

    Attributes:
        versions: Their versions.
        paths: The files of the only commit that are meant; None for all of all.
    """

    versions: range
    paths: pa.ChunkedArray | None = None

    @classmethod
    def part(cls, version: int, files: IndexedFiles) -> ChangedRun:
        """Some of the files of a commit."""
        return cls(range(version, version + (1 if len(files) else 0)), files.files["path"])

    def among(self, files: pa.Table) -> pa.Table:
        """The files that are meant."""
        if self.paths is None:
            return files
        return files.filter(pc.is_in(files["path"], value_set=self.paths.combine_chunks()))


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
        self, latest: Snapshot, runs: Sequence[ChangedRun], inserted: pa.Table
    ) -> tuple[FilesView, FilesView]:
        """The files with derived changes, and those in which a writer recorded them.

        Args:
            latest: The newest version.
            runs: The commits of the batch.
            inserted: Files whose rows come before these, as inserts.

        Raises:
            TableError, SchemaError, ProtocolError: As `change_feed`.
        """
        shape = changes_of(self.table, latest, range(0), self.metadata)
        derived, recorded = [inserted], [shape.recorded.files]
        for run in runs:
            feed = changes_of(self.table, latest, self._held(run.versions), self.metadata)
            derived.append(self._kept(run.among(feed.derived.files)))
            recorded.append(self._kept(run.among(feed.recorded.files)))
        return (
            latest.with_other_files(shape.derived.metadata, pa.concat_tables(derived)),
            latest.with_other_files(shape.recorded.metadata, pa.concat_tables(recorded)),
        )

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
