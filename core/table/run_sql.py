"""`run_sql`: one statement over tables that it names by their paths."""

from __future__ import annotations

from collections.abc import Mapping

from optimist.core.errors import ConfigError, StorageError
from optimist.core.options.engine import EngineOptions
from optimist.core.options.handles import options_given
from optimist.core.requests.arguments import Rows
from optimist.core.runtime.budget import shortened, within_budget
from optimist.core.runtime.clock import SystemClock
from optimist.core.statements.run import StatementResult
from optimist.core.table.delta_log import DeltaLog
from optimist.core.table.sql_statements import StatementArguments, parse_with, run_over

__all__ = ["run_sql"]


def run_sql(
    text: str,
    options: Mapping[str, str] | None = None,
    *,
    args: StatementArguments | None = None,
    sources: Mapping[str, Rows] | None = None,
) -> StatementResult:
    """Run a statement of SQL over tables that it names by their paths.

    Args:
        text: The statement, such as ``OPTIMIZE delta.`/data/flights` ``; docs/sql.md lists them.
        options: The options of the tables, as for `DeltaLog.for_path`.
        args: The values of parameters: a mapping for `:name`, a list for `?`.
        sources: Rows by names, for `MERGE INTO ... USING name` and `USING INVENTORY name`.

    Returns:
        The rows, as Arrow, with the columns that Delta has.

    Raises:
        TableNotFoundError: There is no table at a path.
        UsageError: The text is no such statement (kind `OPTIMIST_UNSUPPORTED_STATEMENT`) or a
            wrong one (`PARSE_SYNTAX_ERROR`); it names a table of a catalog
            (`OPTIMIST_CATALOG_NAMES_UNSUPPORTED`); or only Spark can run it
            (`OPTIMIST_NEEDS_SPARK`).
        ConfigError: An option is wrong.
        OptimistError: See the method of `DeltaLog` for the same command.
    """
    given = options_given(options)
    statement = parse_with(text, args)
    budget_s = EngineOptions.from_options(given).storage_budget_s
    try:
        with within_budget(SystemClock(), budget_s):
            return run_over(statement, lambda path: DeltaLog.for_path(path, given), sources)
    except (StorageError, ConfigError) as error:
        raise shortened(error, "run_sql") from None
