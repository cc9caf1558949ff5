"""The check that stops writes while a binding property does not parse (spec 7.1)."""

from __future__ import annotations

from optimist.core.errors import TableError
from optimist.core.errors.foreign_text import listed, quoted
from optimist.core.protocol.actions import Metadata
from optimist.core.protocol.properties import PROPERTIES, canonical_name
from optimist.core.protocol.table_metadata import TableMetadata

__all__ = ["ensure_properties_parse"]


def ensure_properties_parse(metadata: Metadata, *, table_path: str, version: int) -> None:
    """Refuse to write under metadata whose binding properties do not parse.

    Readers go on: for them, such a property means nothing, or has a check of its own.

    Args:
        metadata: The metadata after the write, so that a change of the properties can repair them.
        table_path: For the message.
        version: The version that has the metadata, or the version that the write reads.

    Raises:
        TableError: Such a property exists (kind `OPTIMIST_MALFORMED_TABLE_PROPERTY`, field
            `properties`: names and texts).
    """
    unparsed = TableMetadata.of(metadata).properties.unparsed_binding
    if not unparsed:
        return
    problems = (
        f"{name} = {quoted(text)} {_required_form(name, text)}" for name, text in unparsed.items()
    )
    raise TableError(
        f"The table {table_path} at version {version} has properties whose values can't be "
        f"understood: {listed(problems)}. Nothing was written, because a write that ignores them "
        "could break a rule of the table. Set them to allowed values, or unset them, all in one "
        "ALTER TABLE; if only an engine may set a property, repair it with the one that set it.",
        kind="OPTIMIST_MALFORMED_TABLE_PROPERTY",
        properties=dict(unparsed),
    )


def _required_form(name: str, text: str) -> str:
    try:
        PROPERTIES[canonical_name(name)].kind.parse(text)
    except ValueError as error:
        return f"({error})"
    return ""
