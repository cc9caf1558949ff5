"""The statements of Delta that Spark's own parser lacks or misreads: text to frozen values."""

from optimist.core.sql.grammar import parse_command
from optimist.core.sql.own_names import OwnNames
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.path_names import parts_of_name, path_in_name
from optimist.core.sql.query_needs import (
    Mentions,
    QueryNeeds,
    RowNeeds,
    mentions_of_expression,
    query_needs,
)
from optimist.core.sql.relation_aliases import place_of_alias
from optimist.core.sql.relations import (
    PathRelation,
    markers_of,
    names_of_relations,
    path_relations,
)
from optimist.core.sql.spark_statements.inserts import values_left_to_default
from optimist.core.sql.spark_statements.path_statements import parse_path_statement
from optimist.core.sql.spark_statements.row_changes import parse_row_change
from optimist.core.sql.spark_statements.table_statements import PathStatement
from optimist.core.sql.statements import Command, RowChange, SqlText, TableName

__all__ = [
    "Command",
    "Mentions",
    "OwnNames",
    "Parameters",
    "PathRelation",
    "PathStatement",
    "QueryNeeds",
    "RowChange",
    "RowNeeds",
    "SqlText",
    "TableName",
    "markers_of",
    "mentions_of_expression",
    "names_of_relations",
    "parse_command",
    "parse_path_statement",
    "parse_row_change",
    "parts_of_name",
    "path_in_name",
    "path_relations",
    "place_of_alias",
    "query_needs",
    "values_left_to_default",
]
