"""The changes of the commits of a batch, as views of files (spec 10.11, 11.3)."""

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
"""Of how many batches the end is kept; the last one may be asked for again."""


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
        # A remove without all facts is told by its add, which may spell the path another way.
        wanted = canonical_paths(self.paths.combine_chunks())
        return files.filter(pc.is_in(canonical_paths(files["path"]), value_set=wanted))


@dataclass(frozen=True, slots=True)
class ChangeReader:
    """Reads changes for a stream.

    Attributes:
        table: The table.
        schema: By which the rows are read.
        options: What the stream passes over.
    """

    table: TableRef
    schema: StreamSchema
    options: StreamOptions
    _ends: dict[int, DescribedVersion] = field(default_factory=dict)

    def forget(self) -> None:
        """Keep nothing of the table that was read before."""
        self._ends.clear()

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
        shape = changes_of(self.table, latest, range(0), self.schema.metadata)
        derived, recorded = [inserted], [shape.recorded.files]
        for run in runs:
            for versions in self._held(run.versions):
                feed = self._read(latest, versions)
                derived.append(self._kept(run.among(feed.derived.files)))
                recorded.append(self._kept(run.among(feed.recorded.files)))
        return (
            latest.with_other_files(shape.derived.metadata, pa.concat_tables(derived)),
            latest.with_other_files(shape.recorded.metadata, pa.concat_tables(recorded)),
        )

    def _read(self, latest: Snapshot, versions: range) -> ChangeFeed:
        """The changes of versions; where the last ones that were read end, nothing is loaded."""
        metadata = self.schema.metadata
        before = self._ends.get(versions[0] - 1)
        try:
            feed = changes_of(self.table, latest, versions, metadata, before=before)
        except TableError as error:
            if self.options.fail_on_data_loss or error.kind not in NOT_RECREATABLE:
                raise
            # Behind lost commits a stream goes by what it has, as a stream of rows does.
            before = DescribedVersion(versions[0] - 1, metadata, self.schema.protocol)
            feed = changes_of(self.table, latest, versions, metadata, before=before)
        if feed.end is not None:
            self._ends[feed.end.version] = feed.end
            for version in sorted(self._ends)[:-_MOST_ENDS]:
                del self._ends[version]
        return feed

    def _held(self, versions: range) -> list[range]:
        """The versions; without those that the log has lost, where the stream goes on after them.

        What follows lost commits is read on its own.
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

    def _kept(self, files: pa.Table) -> pa.Table:
        wanted = self.options.exclude_regex
        if wanted is None or not files.num_rows:
            return files
        return files.filter(kept_paths(files, wanted))
