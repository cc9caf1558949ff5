"""An Iceberg table's columns and files, as a Delta table can have them (spec 10.13).

`newest_metadata` finds the newest metadata file, and `IcebergTable.at` reads it and the manifests
that it names. Features that a Delta table can't have, or that are not converted, are refused by
name.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import cast

from optimist.core.data.storage.stored_files import names_in
from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ConfigError, TableNotFoundError, UsageError
from optimist.core.errors.foreign_text import listed, shown
from optimist.core.errors.kinds import MISSING_PACKAGE
from optimist.core.paths import join, name_of
from optimist.core.schema.types import StructType

__all__ = ["IcebergFile", "IcebergTable", "newest_metadata", "refused"]

_READER = "optimist.core.maintenance.convert.iceberg_metadata"
_FOLDER = "metadata"
_NAME = re.compile(r"^(?:v(?P<version>\d+)|(?P<number>\d+)-.+)(?:\.gz)?\.metadata\.json(?:\.gz)?$")


@dataclass(frozen=True, slots=True)
class IcebergFile:
    """One data file.

    Attributes:
        path: The path below the table's directory, not percent-encoded.
        size_bytes: Its length.
        partition_values: The partition values, as in `add.partitionValues`.
    """

    path: str
    size_bytes: int
    partition_values: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """The content of one version of an Iceberg table.

    Attributes:
        schema: The columns, mapped by Iceberg's ids.
        partition_columns: The names of the partition columns.
        last_column_id: The largest id that a column or a nested field has ever had.
        files: The data files, in the order of their paths.
        modified_ms: The time of the version, in epoch milliseconds.
        comment: The table's own comment.
    """

    schema: StructType
    partition_columns: tuple[str, ...]
    last_column_id: int
    files: tuple[IcebergFile, ...]
    modified_ms: int
    comment: str | None

    @classmethod
    def at(cls, table: TableRef, metadata_file: str) -> IcebergTable:
        """Read a version.

        Args:
            table: The table's directory.
            metadata_file: The name of the version's metadata file.

        Raises:
            ConfigError: pyiceberg is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
            TableError: The metadata are damaged, or a file that they name is gone (kind
                `OPTIMIST_DAMAGED_ICEBERG_TABLE`).
            UsageError: The version has something that can't be converted; see `refused`.
            StorageError: The store failed.
        """
        try:
            module = importlib.import_module(_READER)
        except ModuleNotFoundError as error:
            raise ConfigError(
                f"Tables of Iceberg are read by a package that is not installed: {error.name}. "
                "Nothing was written. Run: pip install optimist[iceberg]",
                kind=MISSING_PACKAGE,
            ) from error
        read = cast(Callable[[TableRef, str], IcebergTable], module.read_iceberg)
        return read(table, join(table.table_path, _FOLDER, metadata_file))


def newest_metadata(table: TableRef) -> str:
    """Return the name of the newest metadata file.

    File system tables of Iceberg write `v7.metadata.json`, and the highest number counts. A catalog
    stores the name of a file such as `00007-<uuid>.metadata.json` itself. The highest of these may
    be from a commit that the catalog refused; if two have the highest number, one certainly is.

    Raises:
        TableNotFoundError: There is no metadata file (kind `DELTA_EMPTY_DIRECTORY`).
        UsageError: Several files have the highest number (kind `OPTIMIST_AMBIGUOUS_ICEBERG_TABLE`).
    """
    names = names_in(join(table.table_path, _FOLDER), table.data_access())
    found = [match for match in map(_NAME.match, names) if match is not None]
    numbers = [int(match["version"] or match["number"]) for match in found]
    last = [
        match.string for match, number in zip(found, numbers, strict=True) if number == max(numbers)
    ]
    if not last:
        raise TableNotFoundError(
            f"There is no table of Iceberg at {shown(table.table_path)}: the directory "
            f"{_FOLDER} has no metadata file. Nothing was written. Check the path.",
            kind="DELTA_EMPTY_DIRECTORY",
            path=table.table_path,
        )
    if len(last) > 1:
        raise UsageError(
            f"The table of Iceberg at {shown(table.table_path)} has several metadata files that "
            f"could be the newest: {listed(last)}. Nothing was written. Give the path of the one "
            "that the catalog names.",
            kind="OPTIMIST_AMBIGUOUS_ICEBERG_TABLE",
            path=table.table_path,
        )
    return name_of(last[0])


def refused(table: TableRef, feature: str, remedy: str) -> UsageError:
    """Return the error for a table with a feature that can't be converted."""
    return UsageError(
        f"The table of Iceberg at {shown(table.table_path)} can't be converted: it has "
        f"{feature}. Nothing was written. {remedy}.",
        kind="OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE",
        path=table.table_path,
        feature=feature,
    )
