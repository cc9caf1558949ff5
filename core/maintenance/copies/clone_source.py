"""The sources of CLONE: a version of a Delta table, or the files of a table of another format.

Files of Parquet and of Iceberg are found as CONVERT TO DELTA finds them. The session's defaults for
new tables do not apply, as for every clone (spec 10.13).
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
from optimist.core.log.many_files import FilesOrigin
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
from optimist.core.paths import LOG_DIRECTORY, with_file_scheme
from optimist.core.protocol.actions import DomainMetadata, Metadata, Protocol
from optimist.core.protocol.gates import protocol_for_new_table
from optimist.core.snapshot import Snapshot

__all__ = ["CloneContent", "CloneSource", "FilesSource", "VersionSource"]

_NO_VERSION = -1
"""The version that delta-spark reports for a source that is not a Delta table."""
_WITHOUT_DEFAULTS = {"delta.ignoreProtocolDefaults": "true"}


@dataclass(frozen=True, slots=True)
class CloneContent:
    """The content of the source that a clone takes.

    Attributes:
        metadata: The source's metadata.
        protocol: The source's protocol.
        files: The source's files, as rows of `FILES_SCHEMA` with the paths of the source's log.
        version: The source's version; -1 if it has none.
        domains: The source's metadata domains.
        origin: The version of the files, if a Delta log has them.
        ensure_unchanged: Lists files again that no log protects; raises a `UsageError` if somebody
            has written to them meanwhile.
    """

    metadata: Metadata
    protocol: Protocol
    files: pa.Table
    version: int = _NO_VERSION
    domains: Mapping[str, DomainMetadata] = field(default_factory=dict)
    origin: FilesOrigin | None = None
    ensure_unchanged: Callable[[], None] = lambda: None


class CloneSource(ABC):
    """A table that can be cloned.

    Attributes:
        table: The path of the source, as a Delta table.
    """

    table: TableRef

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the source in the clone's history."""

    @property
    @abstractmethod
    def identity(self) -> str:
        """A text that distinguishes the source from earlier tables at the same path."""

    @property
    def origin(self) -> Mapping[str, str]:
        """The properties that record the source in a shallow clone, if it has a Delta log."""
        return {}

    @property
    def copies(self) -> str:
        """The name of the directory for copies of its files, in a deep clone."""
        return copies_directory(self.table.table_path, self.identity)

    @abstractmethod
    def read(self, target: TableRef, *, is_copied: bool) -> CloneContent:
        """Read the content that a clone takes.

        Args:
            target: The path of the clone.
            is_copied: Whether the files are copied, and not only named.

        Raises:
            OptimistError: See `clone`.
        """


@dataclass(frozen=True, slots=True)
class VersionSource(CloneSource):
    """A version of a Delta table.

    Attributes:
        table: See `CloneSource`.
        version: The version to clone.
        is_newest: Whether it is the newest version; nobody may have removed its files.
    """

    table: TableRef
    version: Snapshot
    is_newest: bool = True

    @property
    def name(self) -> str:
        """The path of the table, as in SQL."""
        return f"delta.`{with_file_scheme(self.table.table_path)}`"

    @property
    def origin(self) -> Mapping[str, str]:
        """The properties that record the source."""
        return clone_properties(with_file_scheme(self.table.table_path), self.version.version)

    @property
    def identity(self) -> str:
        """The table's id."""
        return self.version.metadata.id

    def read(self, target: TableRef, *, is_copied: bool) -> CloneContent:  # noqa: ARG002 - it may be anywhere
        """Return the version, if all files exist and, for copies, belong to its table."""
        found = self.version
        if not self.is_newest:
            ensure_files_there(self.table, found.version, found.files, "Clone a newer version.")
        if is_copied:
            ensure_own_rows(self.table, found, found.files, "CLONE")
        segment = found.segment
        return CloneContent(
            found.metadata,
            found.protocol,
            found.files,
            version=found.version,
            domains=found.domain_metadata,
            origin=None if segment is None else FilesOrigin(self.table.store, segment),
        )


@dataclass(frozen=True, slots=True)
class FilesSource(CloneSource):
    """The files of a table that is not a Delta table.

    Attributes:
        table: See `CloneSource`.
        request: The format of the files and how they are read.
        read_footers: Reads the footers of the files.
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
        """Make a source from the files at a path.

        Raises:
            UsageError: Their format can't be cloned, or an older version of them is asked for (kind
                `DELTA_CLONE_UNSUPPORTED_SOURCE`).
        """
        source = cls(table, request, read)
        known = (PARQUET, ICEBERG)
        if request.source_format not in known:
            raise source._cannot_be_cloned(
                f"tables of {listed(known)} and Delta tables can be cloned"
            )
        if not is_newest:
            raise source._cannot_be_cloned("only Delta tables can be cloned at an older version")
        return source

    @property
    def name(self) -> str:
        """Its name in the catalog, or its format and path."""
        path = with_file_scheme(self.table.table_path)
        return self.request.catalog_table or f"{self.request.source_format}.`{path}`"

    @property
    def identity(self) -> str:
        """The format of the table."""
        return self.request.source_format

    def read(self, target: TableRef, *, is_copied: bool) -> CloneContent:  # noqa: ARG002 - they are its own
        """Read the files that exist now."""
        self._ensure_apart(target)
        if LOG_DIRECTORY in names_in(self.table.table_path, self.table.data_access()):
            raise self._cannot_be_cloned(
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
        """Refuse a clone inside the source's directory, whose readers would see its files."""
        origin = self.table.store.data_origin(self.table.table_path)
        ours, theirs = (origin.key_of(table.table_path) for table in (self.table, target))
        if ours is not None and theirs is not None and f"{theirs}/".startswith(f"{ours}/"):
            raise UsageError(
                f"The clone {shown(target.table_path)} would be within the directory "
                f"{shown(self.table.table_path)}, whose readers would find its files. Nothing was "
                "written. Clone it to another path.",
                kind="OPTIMIST_TABLE_WITHIN_DIRECTORY",
                path=target.table_path,
            )

    def _cannot_be_cloned(self, reason: str) -> UsageError:
        return UsageError(
            f"{shown(self.name)} can't be cloned: {reason}. Nothing was written.",
            kind="DELTA_CLONE_UNSUPPORTED_SOURCE",
            name=self.name,
        )
