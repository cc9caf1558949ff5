"""A table of Iceberg as a Delta table could have it: its columns and its files (spec 10.13).

`newest_metadata` finds the file that tells what the table is now, and `IcebergTable.at` reads it
and the manifests that it names. What no Delta table can have, or what this does not carry over, is
refused by its name.
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
        path: Its path below the table's directory, not percent-encoded.
        size_bytes: Its length.
        partition_values: As `add.partitionValues`.
    """

    path: str
    size_bytes: int
    partition_values: dict[str, str | None]


@dataclass(frozen=True, slots=True)
class IcebergTable:
    """What one version of a table is.

    Attributes:
        schema: The columns, mapped by Iceberg's ids.
        partition_columns: The names of those that it is partitioned by.
        last_column_id: The largest id that a column or a part of one has ever had.
        files: The data files, in the order of their paths.
        modified_ms: When the version was made, in epoch milliseconds.
        comment: What the table says of itself, for people.
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
            TableError: The metadata are damaged, or a file of them is gone (kind
                `OPTIMIST_DAMAGED_ICEBERG_TABLE`).
            UsageError: It has what can't be carried over; see `refused`.
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
    """The name of the file of metadata that tells what the table is now.

    A commit of Iceberg's file system tables makes `v7.metadata.json`, of which the last counts. A
    catalog keeps the name of one such as `00007-<uuid>.metadata.json` itself; the last one can be
    of a commit that the catalog has refused, and where there are two, that is certain.

    Raises:
        TableNotFoundError: There is none (kind `DELTA_EMPTY_DIRECTORY`).
        UsageError: Several are the last (kind `OPTIMIST_AMBIGUOUS_ICEBERG_TABLE`).
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
    """The error for a table that has what can't be carried over."""
    return UsageError(
        f"The table of Iceberg at {shown(table.table_path)} can't be converted: it has "
        f"{feature}. Nothing was written. {remedy}.",
        kind="OPTIMIST_INCOMPATIBLE_ICEBERG_TABLE",
        path=table.table_path,
        feature=feature,
    )
