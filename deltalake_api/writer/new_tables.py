"""What a new table gets besides its columns, by the arguments that deltalake has for it."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.commands.written_schema import NewTable
from optimist.core.errors.argument_types import ensure_mapping, ensure_optional_text

__all__ = ["new_table"]


def new_table(
    name: str | None, description: str | None, configuration: Mapping[str, str | None] | None
) -> NewTable:
    """Return the name, the description and the properties of a new table.

    Args:
        name: What the table calls itself.
        description: What the table is, for people.
        configuration: The table properties. One without a value is left out.

    Raises:
        ArgumentTypeError: One of them has another type (kind `OPTIMIST_INVALID_ARGUMENT_TYPE`).
    """
    ensure_optional_text(name, "name")
    ensure_optional_text(description, "description")
    given = {} if configuration is None else configuration
    ensure_mapping(given, "configuration", "a dict of names and values, both of them text")
    known = {key: value for key, value in given.items() if value is not None}
    return NewTable(known, name, description)
