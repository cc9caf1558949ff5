"""`QueryBuilder`: SQL over tables, run by DuckDB (the extra `deltalake`)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from optimist.core.errors import ConfigError
from optimist.core.errors.argument_types import ensure_kind, ensure_text
from optimist.core.imports import import_by_need
from optimist.deltalake.exceptions import errors_translated, refuse_given
from optimist.deltalake.table import DeltaTable

__all__ = ["QueryBuilder"]


class QueryBuilder:
    """Runs SQL of DuckDB over tables. deltalake has that of DataFusion.

    Only the tables that are registered have names in it: variables of the caller have none.

    Args:
        session_config: Not supported: it sets up DataFusion.

    Raises:
        DeltaError: DuckDB is not installed (kind `OPTIMIST_MISSING_PACKAGE`).
    """

    def __init__(self, session_config: dict[str, str] | None = None) -> None:
        refuse_given("session_config", session_config, "Leave it out: DuckDB runs the query.")
        with errors_translated():
            self._connection = _connect()

    def register(self, table_name: str, delta_table: DeltaTable) -> QueryBuilder:
        """Give a table a name in SQL, at the version that it has now.

        Args:
            table_name: The name.
            delta_table: The table.
        """
        with errors_translated():
            ensure_text(table_name, "table_name")
            ensure_kind(delta_table, "delta_table", DeltaTable, "a DeltaTable")
        self._connection.register(table_name, delta_table.to_pyarrow_dataset())
        return self

    def execute(self, sql: str) -> pa.RecordBatchReader:
        """Run SQL, and return its rows as a stream.

        Args:
            sql: The query.
        """
        with errors_translated():
            ensure_text(sql, "sql")
        found = self._connection.sql(sql)
        if found is None:  # a statement without rows
            return pa.RecordBatchReader.from_batches(pa.schema([]), [])
        return found.to_arrow_reader()


def _connect() -> Any:
    try:
        duckdb = import_by_need("duckdb")
    except ImportError:
        raise ConfigError(
            "QueryBuilder needs DuckDB. Run: pip install 'optimist[deltalake]'",
            kind="OPTIMIST_MISSING_PACKAGE",
            package="duckdb",
        ) from None
    return duckdb.connect(config={"python_enable_replacements": "false"})
