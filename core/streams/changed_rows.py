"""The row changes of a batch's commits, as views of files (spec 10.11, 11.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.changes.feed import ChangeFeed, DescribedVersion, changes_of
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import TableError
from optimist.core.log.file_table import canonical_paths
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.files_view import FilesView
from optimist.core.snapshot.one_version import NOT_RECREATABLE
from optimist.core.snapshot.time_travel import list_commit_files
from optimist.core.streams.indexed_files import IndexedFiles, kept_paths
from optimist.core.streams.options import StreamOptions
from optimist.core.streams.schema_rules import StreamSchema

__all__ = ["ChangeReader", "ChangedRun"]

_MOST_ENDS = 4
"""The number of batches whose end state is kept, since Spark may ask for the last one again."""


@dataclass(frozen=True, slots=True)
class ChangedRun:
    """A range of consecutive commits.

    Attributes:
        versions: The versions of the commits.
        paths: The chosen files of a run of one commit; None for all files of the run.
    """

    versions: range
    paths: pa.ChunkedArray | None = None

    @classmethod
    def part(cls, version: int, files: IndexedFiles) -> ChangedRun:
        """Choose some files of one commit."""
        return cls(range(version, version + (1 if len(files) else 0)), files.files["path"])

    def among(self, files: pa.Table) -> pa.Table:
        """Return the chosen files."""
        if self.paths is None:
            return files
        # A remove without all its fields is matched by its add, which may spell the path
        # differently.
        wanted = canonical_paths(self.paths.combine_chunks())
        return files.filter(pc.is_in(canonical_paths(files["path"]), value_set=wanted))


@dataclass(frozen=True, slots=True)
class ChangeReader:
    """Reads changes for a stream.

    Attributes:
        table: The table.
        schema: The schema that the rows are read by.
        options: The stream's options.
    """

    table: TableRef
    schema: StreamSchema
    options: StreamOptions
    _ends: dict[int, DescribedVersion] = field(default_factory=dict)

    def forget(self) -> None:
        """Forget the table that was read before."""
        self._ends.clear()

    def views(
        self, latest: Snapshot, runs: Sequence[ChangedRun], inserted: pa.Table
    ) -> tuple[FilesView, FilesView]:
        """Return the files with derived changes, and the files with recorded changes.

        Args:
            latest: The newest version.
            runs: The commits of the batch.
            inserted: Files whose rows come before these, as inserts.

        Raises:
            TableError, SchemaError, ProtocolError: See `change_feed`.
        """
        shape = changes_of(self.table, latest, range(0), self.schema.metadata)
        derived, recorded = [inserted], [shape.recorded.files]
        for run in runs:
            for versions in self._versions_in_log(run.versions):
                feed = self._read_changes(latest, versions)
                derived.append(self._without_excluded(run.among(feed.derived.files)))
                recorded.append(self._without_excluded(run.among(feed.recorded.files)))
        return (
            latest.with_other_files(shape.derived.metadata, pa.concat_tables(derived)),
            latest.with_other_files(shape.recorded.metadata, pa.concat_tables(recorded)),
        )

    def _read_changes(self, latest: Snapshot, versions: range) -> ChangeFeed:
        """Read the changes of versions.

        Nothing is loaded if they follow the last ones read.
        """
        metadata = self.schema.metadata
        before = self._ends.get(versions[0] - 1)
        try:
            feed = changes_of(self.table, latest, versions, metadata, before=before)
        except TableError as error:
            if self.options.fail_on_data_loss or error.kind not in NOT_RECREATABLE:
                raise
            # After lost commits a stream continues with its own schema, as a stream of rows does.
            before = DescribedVersion(versions[0] - 1, metadata, self.schema.protocol)
            feed = changes_of(self.table, latest, versions, metadata, before=before)
        if feed.end is not None:
            self._ends[feed.end.version] = feed.end
            for version in sorted(self._ends)[:-_MOST_ENDS]:
                del self._ends[version]
        return feed

    def _versions_in_log(self, versions: range) -> list[range]:
        """Return the versions that the log has, in runs.

        Versions after lost commits are a run of their own.
        """
        if not versions:
            return []
        if self.options.fail_on_data_loss:
            return [versions]
        found: list[range] = []
        held = list_commit_files(self.table.store, self.table.log_path, versions[0], versions[-1])
        for version, _ in held:
            is_next = bool(found) and found[-1].stop == version
            first = found.pop().start if is_next else version
            found.append(range(first, version + 1))
        return found

    def _without_excluded(self, files: pa.Table) -> pa.Table:
        wanted = self.options.exclude_regex
        if wanted is None or not files.num_rows:
            return files
        return files.filter(kept_paths(files, wanted))
