"""The statements of Delta that Spark's own parser lacks or misreads: text to frozen values."""

from optimist.core.sql.grammar import parse_command
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.relations import PathRelation, markers_of, path_relations
from optimist.core.sql.row_changes import parse_row_change
from optimist.core.sql.statements import Command, RowChange, SqlText, TableName

__all__ = [
    "Command",
    "Parameters",
    "PathRelation",
    "RowChange",
    "SqlText",
    "TableName",
    "markers_of",
    "parse_command",
    "parse_row_change",
    "path_relations",
]
