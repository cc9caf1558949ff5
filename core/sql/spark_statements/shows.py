"""SHOW and DESCRIBE TABLE over a table of ours."""

from __future__ import annotations

from dataclasses import dataclass

from optimist.core.sql.own_names import PATHS_ALONE, OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import TableName

__all__ = ["Show", "parse_show"]

_BEGINNINGS = (
    "SHOW TBLPROPERTIES",
    "SHOW CREATE TABLE",
    "SHOW COLUMNS IN",
    "SHOW COLUMNS FROM",
    "SHOW PARTITIONS",
    "DESCRIBE TABLE",
    "DESC TABLE",
    "DESCRIBE",
    "DESC",
)


@dataclass(frozen=True, slots=True)
class Show:
    """A statement that asks for facts about a table.

    Attributes:
        what: Its words before the table.
        table: The table.
        key: The property that SHOW TBLPROPERTIES asks for.
    """

    what: str
    table: TableName
    key: str | None = None

    @property
    def statement(self) -> str:
        """The words of the statement."""
        return self.what

    @property
    def name(self) -> str:
        """The name of the table, as SQL writes it."""
        if self.table.path is None or self.table.location is not None:
            return str(self.table)
        escaped = self.table.path.replace("`", "``")
        return f"delta.`{escaped}`"


def parse_show(
    text: str, parameters: Parameters | None = None, *, own_names: OwnNames = PATHS_ALONE
) -> Show | None:
    """Parse SHOW TBLPROPERTIES, CREATE TABLE, COLUMNS or PARTITIONS, or DESCRIBE TABLE.

    Args:
        text: The statement.
        parameters: The values of its parameters.
        own_names: Which names of tables are ours.

    Returns:
        The statement; None for any other, such as DESCRIBE of a column.

    Raises:
        UsageError: The table, or the property, is no name (kind `PARSE_SYNTAX_ERROR`).
    """
    reader = Reader(text, parameters, own_names=own_names)
    what = next((words for words in _BEGINNINGS if reader.take(*words.split())), None)
    if what is None:
        return None
    table = reader.own_table()
    if table is None:
        return None
    key = None
    if what == "SHOW TBLPROPERTIES" and reader.take("("):
        is_text = reader.peek().kind == "text"
        key = reader.text("a property") if is_text else ".".join(reader.path("a property"))
        reader.expect(")")
    return Show(what, table, key) if reader.is_at_end() else None
