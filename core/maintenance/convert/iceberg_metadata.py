"""The reader of an Iceberg table's metadata, by pyiceberg.

It is imported only to convert or clone such a table.

The table's own store reads the files, and only those below the table's directory.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator

from pyiceberg.io import FileIO, InputFile, OutputFile
from pyiceberg.manifest import DataFile, FileFormat, ManifestContent, ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.serializers import FromInputFile
from pyiceberg.table.metadata import TableMetadata
from pyiceberg.transforms import IdentityTransform, VoidTransform

from optimist.core.data.partition_values import serialize_partition_value
from optimist.core.data.storage.storage_errors import storage_errors
from optimist.core.data.storage.unreadable_files import read_surely
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import OptimistError, TableError
from optimist.core.errors.foreign_text import shown
from optimist.core.maintenance.convert.iceberg_schema import delta_schema
from optimist.core.maintenance.convert.iceberg_table import IcebergFile, IcebergTable, refused
from optimist.core.paths import join, strip_file_scheme, without_dots
from optimist.core.schema.column_mapping import with_mapping
from optimist.core.schema.types import COLUMN_ID, StructField, StructType

__all__ = ["read_iceberg"]

_NEWEST_FORMAT = 2
_REWRITE = "Rewrite its data files with an engine of Iceberg, and convert it again"
_COPY = "Read it with an engine of Iceberg, and write the rows to a new table"


def read_iceberg(table: TableRef, metadata_path: str) -> IcebergTable:
    """Read one version of an Iceberg table (see `IcebergTable.at`)."""
    files = _TableFiles(table)
    try:
        metadata = FromInputFile.table_metadata(files.new_input(metadata_path))
        return _Version(table, files, metadata).read()
    except OptimistError:
        raise  # it already says what is wrong
    except Exception as error:  # a parser of foreign files may raise anything
        raise TableError(
            f"The metadata of the table of Iceberg at {shown(table.table_path)} can't be read: "
            f"{shown(str(error))}. Nothing was written. Check the table with an engine of Iceberg.",
            kind="OPTIMIST_DAMAGED_ICEBERG_TABLE",
            path=table.table_path,
        ) from error


class _Version:
    """One version of an Iceberg table."""

    def __init__(self, table: TableRef, files: _TableFiles, metadata: TableMetadata) -> None:
        self._table = table
        self._files = files
        self._metadata = metadata

    def read(self) -> IcebergTable:
        metadata = self._metadata
        if metadata.format_version > _NEWEST_FORMAT:
            found = f"the format version {metadata.format_version}"
            raise refused(self._table, found, _COPY)
        schema = self._delta_schema()
        spec = metadata.spec()
        fields = self._partition_fields(spec, schema)
        snapshot = metadata.current_snapshot()
        manifests = [] if snapshot is None else snapshot.manifests(self._files)
        files = [
            IcebergFile(
                self._files.relative(found.file_path),
                found.file_size_in_bytes,
                self._partition_values(found, fields),
            )
            for manifest in manifests
            for found in self._data_files(manifest, spec.spec_id)
        ]
        if len({file.path for file in files}) < len(files):
            raise refused(self._table, "a data file that it names twice", _REWRITE)
        return IcebergTable(
            schema=schema,
            partition_columns=tuple(item.name for item in fields.values()),
            last_column_id=metadata.last_column_id,
            files=tuple(sorted(files, key=lambda file: file.path)),
            modified_ms=metadata.last_updated_ms if snapshot is None else snapshot.timestamp_ms,
            comment=metadata.properties.get("comment"),
        )

    def _delta_schema(self) -> StructType:
        """Return the columns, with physical names that no file has.

        Spark's reader finds a column by its id, but it also checks the type of the column that has
        the same name as in the file. That may be another column by now.
        """
        return with_mapping(
            delta_schema(self._metadata.schema(), self._table),
            StructType(),
            max_id=self._metadata.last_column_id,
            new_uuid=self._table.clock.new_uuid,
        )

    def _partition_fields(self, spec: PartitionSpec, schema: StructType) -> dict[int, StructField]:
        """Return the partition columns, by their index in the partition spec."""
        by_id = {item.metadata[COLUMN_ID]: item for item in schema}
        fields = {}
        for index, found in enumerate(spec.fields):
            if isinstance(found.transform, VoidTransform):
                continue
            column = by_id.get(found.source_id)
            if column is None or not isinstance(found.transform, IdentityTransform):
                name = self._metadata.schema().find_column_name(found.source_id)
                by = f"partitions by {found.transform} of the column {shown(name)}"
                raise refused(self._table, by, _COPY)
            fields[index] = column
        return fields

    def _data_files(self, manifest: ManifestFile, spec_id: int) -> Iterator[DataFile]:
        for entry in manifest.fetch_manifest_entry(self._files):
            found = entry.data_file
            if manifest.content != ManifestContent.DATA:
                raise refused(self._table, "deleted rows (position or equality deletes)", _REWRITE)
            if manifest.partition_spec_id != spec_id:
                raise refused(self._table, "files of an older partitioning", _REWRITE)
            if found.file_format != FileFormat.PARQUET:
                raise refused(self._table, f"files of the format {found.file_format}", _REWRITE)
            if found.key_metadata is not None:
                raise refused(self._table, "encrypted files", _COPY)
            yield found

    def _partition_values(
        self, file: DataFile, fields: dict[int, StructField]
    ) -> dict[str, str | None]:
        values = {}
        for index, item in fields.items():
            value = file.partition[index]
            if value in ("", b""):
                empty = f"empty values of the partition column {shown(item.name)}, which a log has"
                raise refused(self._table, f"{empty} as null", _COPY)
            values[item.physical_name] = serialize_partition_value(
                value, item.data_type, column=item.name
            )
        return values


class _TableFiles(FileIO):
    """The files of a table for pyiceberg, read-only."""

    def __init__(self, table: TableRef) -> None:
        super().__init__()
        self._table = table

    def relative(self, location: str) -> str:
        """Return the path below the table's directory.

        Raises:
            UsageError: The file is outside the directory.
        """
        table = self._table
        path = without_dots(strip_file_scheme(location))
        own = _store_key(table, table.table_path)
        found = None if path is None else _store_key(table, path)
        if own is None or found is None or not found.startswith(f"{own}/"):
            index = f"files outside its directory, {shown(location)}"
            raise refused(table, index, "Copy it with an engine of Iceberg into one directory")
        return found[len(own) + 1 :]

    def new_input(self, location: str) -> InputFile:
        return _File(location, self._table, self.relative(location))

    def new_output(self, location: str) -> OutputFile:
        raise NotImplementedError(location)

    def delete(self, location: str | InputFile | OutputFile) -> None:
        raise NotImplementedError(location)


class _File(InputFile):
    """One file, read at once, since metadata files are small."""

    def __init__(self, location: str, table: TableRef, relative: str) -> None:
        super().__init__(location)
        self._table = table
        self._path = join(table.table_path, relative)

    def __len__(self) -> int:
        return len(self._read_content())

    def exists(self) -> bool:
        raise NotImplementedError(self.location)

    def open(self, seekable: bool = True) -> io.BytesIO:  # noqa: ARG002 - any stream can
        """Return the file's content as a stream."""
        return io.BytesIO(self._read_content())

    def _read_content(self) -> bytes:
        with storage_errors("read", self._path):
            found: bytes = read_surely(
                self._path, self._table.data_access(), lambda source: source.read()
            )
        return found


def _store_key(table: TableRef, path: str) -> str | None:
    """Return the path within the table's store, with a disk's symbolic links resolved."""
    origin = table.data_paths.origin
    return origin.key_of(os.path.realpath(path) if origin.is_local else path)
