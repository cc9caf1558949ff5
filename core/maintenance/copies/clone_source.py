"""What CLONE copies or names: a version of a Delta table, or the files of a table of another kind.

Files of Parquet, and those of a table of Iceberg, are found as CONVERT TO DELTA finds them; but the
session's defaults for new tables don't count, as they don't for any clone (spec 10.13).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import pyarrow as pa

from optimist.core.commands.clones import clone_properties, ensure_own_rows
from optimist.core.data.storage.stored_files import names_in
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.log.file_table import files_table
from optimist.core.log.names import LOG_DIRECTORY
from optimist.core.maintenance.convert.conversion_commit import (
    ICEBERG,
    PARQUET,
    ConvertRequest,
    ReadFooters,
    asked_properties,
)
from optimist.core.maintenance.convert.convert import files_found, read_footers
from optimist.core.maintenance.copies.copied_files import copies_directory
from optimist.core.maintenance.copies.files_there import ensure_files_there
from optimist.core.paths import with_file_scheme
from optimist.core.protocol.actions import DomainMetadata, Metadata, Protocol
from optimist.core.protocol.gates import protocol_for_new_table
from optimist.core.snapshot import Snapshot

__all__ = ["CloneContent", "CloneSource", "FilesSource", "VersionSource"]

_NO_VERSION = -1
"""What delta-spark has as the version of a source that is no Delta table."""
_WITHOUT_DEFAULTS = {"delta.ignoreProtocolDefaults": "true"}


@dataclass(frozen=True, slots=True)
class CloneContent:
    """What a clone gets of its source.

    Attributes:
        metadata: The source's.
        protocol: The source's.
        files: Its files, as rows of `FILES_SCHEMA` with paths as the source's log has them.
        version: Its version; -1 if it has none.
        domains: Its metadata domains.
        ensure_unchanged: Looks again at files that no log guards; raises a `UsageError` where
            somebody has written to them meanwhile.
    """

    metadata: Metadata
    protocol: Protocol
    files: pa.Table
    version: int = _NO_VERSION
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    ensure_unchanged: Callable[[], None] = lambda: None


class CloneSource(ABC):
    """A table that can be cloned.

    Attributes:
        table: Where it is, as a Delta table.
    """

    table: TableRef

    @property
    @abstractmethod
    def name(self) -> str:
        """How the history of a clone names it."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """What tells it from other tables that were at its place before."""

    @property
    def origin(self) -> Mapping[str, str]:
        """The properties by which a shallow clone remembers it; none where no log names files."""
        return {}

    @property
    def copies(self) -> str:
        """The name of the directory, in a deep clone, of the copies of its files."""
        return copies_directory(self.table.table_path, self.identity)

    @abstractmethod
    def read(self, target: TableRef, *, is_copied: bool) -> CloneContent:
        """What is to be cloned.

        Args:
            target: The place of the clone.
            is_copied: Whether the files will be copied, and not only named.

        Raises:
            OptimistError: See `clone`.
        """


@dataclass(frozen=True, slots=True)
class VersionSource(CloneSource):
    """A version of a Delta table.

    Attributes:
        table: See `CloneSource`.
        version: The version.
        is_newest: Whether it is the newest one, whose files nobody may have removed.
    """

    table: TableRef
    version: Snapshot
    is_newest: bool = True

    @property
    def name(self) -> str:
        """Its path."""
        return f"delta.`{with_file_scheme(self.table.table_path)}`"

    @property
    def origin(self) -> Mapping[str, str]:
        """See `CloneSource`."""
        return clone_properties(with_file_scheme(self.table.table_path), self.version.version)

    @property
    def identity(self) -> str:
        """The id of the table."""
        return self.version.metadata.id

    def read(self, target: TableRef, *, is_copied: bool) -> CloneContent:  # noqa: ARG002 - it may be anywhere
        """The version, if its files are there, and are its own where they are to be copied."""
        found = self.version
        if not self.is_newest:
            ensure_files_there(self.table, found.version, found.files, "Clone a newer version.")
        if is_copied:
            ensure_own_rows(self.table, found, found.files, "CLONE")
        return CloneContent(
            found.metadata, found.protocol, found.files, found.version, found.domain_metadata
        )


@dataclass(frozen=True, slots=True)
class FilesSource(CloneSource):
    """The files of a table that is none of Delta's.

    Attributes:
        table: See `CloneSource`.
        request: What the files are.
        read_footers: Reads their footers.
    """

    table: TableRef
    request: ConvertRequest
    read_footers: ReadFooters = read_footers

    @classmethod
    def of(
        cls,
        table: TableRef,
        request: ConvertRequest,
        read: ReadFooters = read_footers,
        *,
        is_newest: bool = True,
    ) -> FilesSource:
        """The files at a path.

        Raises:
            UsageError: They are of a format that can't be cloned, or an older version of them is
                asked for (kind `DELTA_CLONE_UNSUPPORTED_SOURCE`).
        """
        source = cls(table, request, read)
        known = (PARQUET, ICEBERG)
        if request.source_format not in known:
            raise source._unsupported(f"tables of {listed(known)} and Delta tables can be cloned")
        if not is_newest:
            raise source._unsupported("only Delta tables can be cloned as they were before")
        return source

    @property
    def name(self) -> str:
        """Its name in the catalog, or its format and path."""
        path = with_file_scheme(self.table.table_path)
        return self.request.catalog_table or f"{self.request.source_format}.`{path}`"

    @property
    def identity(self) -> str:
        """What kind of table it is."""
        return self.request.source_format

    def read(self, target: TableRef, *, is_copied: bool) -> CloneContent:  # noqa: ARG002 - they are its own
        """The files that are there now."""
        self._ensure_apart(target)
        if LOG_DIRECTORY in names_in(self.table.table_path, self.table.data_access()):
            raise self._unsupported(
                f"it has a {LOG_DIRECTORY}, and files may be there that the Delta table no longer "
                "has. Clone the Delta table"
            )
        found = files_found(self.table, self.request, self.read_footers)
        metadata = found.metadata(asked_properties(self.table, self.request))
        return CloneContent(
            metadata,
            protocol_for_new_table(_WITHOUT_DEFAULTS, metadata, self.table.options),
            files_table(found.adds),
            ensure_unchanged=found.ensure_unchanged,
        )

    def _ensure_apart(self, target: TableRef) -> None:
        """Refuse a clone whose files readers of the source would take for files of the source."""
        origin = self.table.store.data_origin(self.table.table_path)
        ours, theirs = (origin.key_of(table.table_path) for table in (self.table, target))
        if ours is not None and theirs is not None and f"{theirs}/".startswith(f"{ours}/"):
            raise UsageError(
                f"The clone {shown(target.table_path)} would be within the directory "
                f"{shown(self.table.table_path)}, whose readers would find its files. Nothing was "
                "written. Clone it to another place.",
                kind="OPTIMIST_TABLE_WITHIN_DIRECTORY",
                path=target.table_path,
            )

    def _unsupported(self, reason: str) -> UsageError:
        return UsageError(
            f"{shown(self.name)} can't be cloned: {reason}. Nothing was written.",
            kind="DELTA_CLONE_UNSUPPORTED_SOURCE",
            name=self.name,
        )
