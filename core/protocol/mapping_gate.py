"""The check that the log says how files name the table's columns (spec 6.1, 6.3)."""

from __future__ import annotations

from optimist.core.errors import ProtocolError, TableError
from optimist.core.errors.foreign_text import quoted
from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.protocol.table_metadata import TableMetadata

__all__ = ["MAPPING_READER_VERSION", "ensure_columns_can_be_found"]

MAPPING_READER_VERSION = 2
"""From this version on readers read the property (at version 3 if the feature is listed)."""
_MODE = "delta.columnMapping.mode"


def ensure_columns_can_be_found(
    protocol: Protocol, metadata: Metadata, *, table_path: str, version: int
) -> None:
    """Refuse metadata by which two readers could find different columns in the same files.

    Below reader version 2 readers look for columns under the table's names, by the protocol, while
    delta-spark follows the property at any version. If the mode does not parse, nobody knows the
    columns of the files. Neither matters if all ways lead to the same columns.

    Raises:
        ProtocolError: The table is mapped, but its protocol does not declare it (kind
            `DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH`, field `missing`).
        TableError: The mode does not parse (kind `OPTIMIST_MALFORMED_TABLE_PROPERTY`, field
            `properties`).
    """
    table = TableMetadata.of(metadata)
    text = table.properties.unparsed.get(_MODE)
    is_declared = protocol.min_reader_version >= MAPPING_READER_VERSION or not table.is_mapped
    if (text is None and is_declared) or table.is_found_alike:
        return
    if text is not None:
        raise TableError(
            f"The table {table_path} at version {version} has columns with other names in its "
            f"files, but the property {_MODE}, which says how to find them, is {quoted(text)}. "
            "Nothing was read or written. Read an older version, or repair the property with the "
            "engine that set it.",
            kind="OPTIMIST_MALFORMED_TABLE_PROPERTY",
            properties={_MODE: text},
        )
    raise ProtocolError(
        f"The table {table_path} at version {version} sets {_MODE}, which has an effect only from "
        f"reader version {MAPPING_READER_VERSION} on, but its protocol has version "
        f"{protocol.min_reader_version}. So its files may have the columns under either of two "
        "names. Nothing was read or written. Raise the protocol with the engine that set the "
        "property.",
        kind="DELTA_FEATURES_PROTOCOL_METADATA_MISMATCH",
        table_path=table_path,
        version=version,
        missing=("columnMapping",),
    )
