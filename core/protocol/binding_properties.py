"""Refuses writes while a property that binds writers has a value that does not parse (spec 7.1)."""

from __future__ import annotations

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import PROPERTIES, canonical_name
from optimist.core.protocol.table_metadata import TableMetadata

__all__ = ["ensure_properties_parse"]


def ensure_properties_parse(metadata: Metadata, *, table_path: str, version: int) -> None:
    """Refuse to write under metadata whose binding properties can't be understood.

    Readers go on: to them, such a property says nothing, or has a check of its own.

    Args:
        metadata: The metadata that counts after the write, so that a change of the properties can
            mend them.
        table_path: For the message.
        version: The version that has the metadata, or that is read for the write.

    Raises:
        TableError: There is such a property (kind `OPTIMIST_MALFORMED_TABLE_PROPERTY`, field
            `properties`: names and texts).
    """
    unparsed = TableMetadata.of(metadata).properties.unparsed_binding
    if not unparsed:
        return
    problems = (f"{name} = {quoted(text)} {_wanted(name, text)}" for name, text in unparsed.items())
    raise TableError(
        f"The table {table_path} at version {version} has properties whose values can't be "
        f"understood: {listed(problems)}. Nothing was written, because a write that ignores them "
        "could break a rule of the table. Set them to allowed values, or unset them, all in one "
        "ALTER TABLE; if only an engine may set a property, repair it with the one that set it.",
        kind="OPTIMIST_MALFORMED_TABLE_PROPERTY",
        properties=dict(unparsed),
    )


def _wanted(name: str, text: str) -> str:
    try:
        PROPERTIES[canonical_name(name)].kind.parse(text)
    except ValueError as error:
        return f"({error})"
    return ""
