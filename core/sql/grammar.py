"""`parse_command`: the statements that Spark's own parser lacks, or takes for something else.

Each function below reads one statement from behind its first words. Keywords may be names where
the grammar asks for a name. Spark itself reads `DESCRIBE HISTORY t` as a column of a table called
`history`; so Delta's statements are tried first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Literal

from optimist.core.errors import UsageError
from optimist.core.sql.alterations import alteration
from optimist.core.sql.clones import clone, time_travel
from optimist.core.sql.first_words import begin_of
from optimist.core.sql.parameters import Parameters
from optimist.core.sql.reader import Reader
from optimist.core.sql.statements import (
    Analyze,
    ColumnPath,
    ColumnType,
    Command,
    ConvertToDelta,
    DescribeDetail,
    DescribeHistory,
    Generate,
    Optimize,
    Reorg,
    Restore,
    SqlText,
    TableName,
    Vacuum,
)

__all__ = ["parse_command"]

_FIRST_WORDS = re.compile(
    r"(?:analyze|optimize|vacuum|generate|convert|restore|reorg|alter|desc|describe|create|replace"
    r"|explain)\b",
    re.IGNORECASE,
)
_FIRST_OF_SPARK = ("ALTER", "ANALYZE", "CREATE", "DESC", "DESCRIBE", "REPLACE")
_TRAVEL_WORDS = ("FOR", "VERSION", "SYSTEM_VERSION", "TIMESTAMP", "SYSTEM_TIME")


def parse_command(
    text: str,
    parameters: Parameters | None = None,
    *,
    is_of_spark: Callable[[], bool] = lambda: False,
) -> Command | None:
    """Parse a statement of Delta that Spark's parser lacks or misreads.

    Args:
        text: The statement; it may end with semicolons.
        parameters: The values of its parameters. Without them, parameters may stand only within
            conditions, which then keep them.
        is_of_spark: Whether Spark's parser can read the text; asked where this grammar can't finish
            a statement that begins as one of Spark's, too.

    Returns:
        The statement; None for one that is Spark's, which costs one match of its first word.

    Raises:
        UsageError: The statement begins like one of Delta's and goes on otherwise (kind
            `PARSE_SYNTAX_ERROR`, with `line`, `column` and `fragment`), or it is EXPLAIN of one
            (kind `OPTIMIST_UNSUPPORTED_STATEMENT`).
    """
    start = begin_of(text, _FIRST_WORDS)
    if start is None:
        return None
    reader = Reader(text, parameters, start)
    if reader.is_at("EXPLAIN"):
        _refuse_explained(text, reader, is_of_spark)
        return None
    first = reader.peek().text.upper()
    try:
        command = _STATEMENTS[first](reader)
        if command is not None:
            reader.end()
    except UsageError:
        if first in _FIRST_OF_SPARK and is_of_spark():
            return None
        raise
    return command


def _refuse_explained(text: str, reader: Reader, is_of_spark: Callable[[], bool]) -> None:
    """Refuse EXPLAIN of a statement of ours, which Spark's parser would call an error of syntax."""
    reader.advance()
    if reader.is_at_any("EXTENDED", "CODEGEN", "COST", "FORMATTED", "LOGICAL"):
        reader.advance()
    command = parse_command(text[reader.peek().start :], is_of_spark=is_of_spark)
    if command is not None:
        raise UsageError(
            f"{command.statement} can't be explained: it is not a query, so Spark has no plan "
            "to show. Nothing was run. Leave EXPLAIN out to run it.",
            kind="OPTIMIST_UNSUPPORTED_STATEMENT",
            statement=command.statement,
        )


def _analyze(reader: Reader) -> Command | None:
    reader.expect("ANALYZE")
    if not reader.take("TABLE") or not reader.is_at_table():
        return None
    table = reader.table()
    if not reader.take("COMPUTE", "DELTA"):
        return None  # the statistics that Spark computes
    reader.expect("STATISTICS")
    return Analyze(table)


def _optimize(reader: Reader) -> Command:
    reader.expect("OPTIMIZE")
    table = reader.table(takes_text=True)
    is_full = reader.take("FULL")
    where = _where(reader, "ZORDER", "BY")
    zorder_by: tuple[ColumnPath, ...] = ()
    if reader.take("ZORDER", "BY"):
        in_brackets = reader.take("(")
        zorder_by = reader.paths("a column")
        if in_brackets:
            reader.expect(")")
    return Optimize(table, is_full, where, zorder_by)


def _vacuum(reader: Reader) -> Command:
    reader.expect("VACUUM")
    table = reader.table(takes_text=True)
    mode: Literal["LITE", "FULL"] | None = None
    inventory, retain_hours, is_dry_run = None, None, False
    while not reader.is_at(";") and reader.peek().kind != "end":
        if mode is None and reader.is_at_any("LITE", "FULL"):
            mode = "LITE" if reader.advance().text.upper() == "LITE" else "FULL"
        elif inventory is None and reader.take("USING"):
            inventory = _inventory(reader)
        elif retain_hours is None and reader.take("RETAIN"):
            retain_hours = reader.number("a number of hours")
            reader.expect("HOURS")
        elif not is_dry_run and reader.take("DRY"):
            reader.expect("RUN")
            is_dry_run = True
        else:
            reader.fail("LITE, FULL, USING INVENTORY, RETAIN or DRY RUN is expected here, once")
    return Vacuum(table, mode, inventory, retain_hours, is_dry_run)


def _inventory(reader: Reader) -> TableName | SqlText:
    reader.expect("INVENTORY")
    if not reader.take("("):
        return reader.table(takes_text=True)
    query = reader.sql("a query")
    reader.expect(")")
    return query


def _describe(reader: Reader) -> Command | None:
    reader.advance()
    is_history = reader.is_at("HISTORY")
    if not is_history and not reader.is_at("DETAIL"):
        return None
    if reader.peek(1).kind not in ("word", "name", "text"):
        return None  # a table that is called so
    reader.advance()
    table = reader.table(takes_text=True)
    if not is_history:
        return DescribeDetail(table)
    return DescribeHistory(
        table, reader.whole_number("a number of commits") if reader.take("LIMIT") else None
    )


def _generate(reader: Reader) -> Command:
    reader.expect("GENERATE")
    mode = reader.name("the kind of manifest, symlink_format_manifest,")
    reader.expect("FOR", "TABLE")
    return Generate(mode, reader.table())


def _convert(reader: Reader) -> Command:
    reader.expect("CONVERT", "TO", "DELTA")
    table = reader.table()
    collects = not reader.take("NO")
    if not collects:
        reader.expect("STATISTICS")
    columns: tuple[ColumnType, ...] = ()
    if reader.take("PARTITIONED"):
        reader.expect("BY", "(")
        columns = reader.listed(lambda: _column_type(reader))
        reader.expect(")")
    return ConvertToDelta(table, collects, columns)


def _column_type(reader: Reader) -> ColumnType:
    name = reader.name("a column")
    type_text = reader.sql("a type", lambda: reader.is_at_any(",", "NOT", "COMMENT"))
    is_nullable = not reader.take("NOT")
    if not is_nullable:
        reader.expect("NULL")
    comment = reader.text("a comment") if reader.take("COMMENT") else None
    return ColumnType(name, type_text, is_nullable, comment)


def _restore(reader: Reader) -> Command:
    reader.expect("RESTORE")
    # A table may be called `table`; then nothing that could be a name follows it.
    is_name = any(_is_word(reader, 1, word) for word in (".", "TO", *_TRAVEL_WORDS))
    if not is_name:
        reader.take("TABLE")
    table = reader.table()
    reader.take("TO")
    travel = time_travel(reader)
    if travel is None:
        reader.fail("TO VERSION AS OF or TO TIMESTAMP AS OF is expected here")
    return Restore(table, travel)


def _is_word(reader: Reader, distance: int, word: str) -> bool:
    return reader.peek(distance).text.upper() == word


def _reorg(reader: Reader) -> Command:
    reader.expect("REORG", "TABLE")
    table = reader.table()
    where = _where(reader, "APPLY", "(")
    reader.expect("APPLY", "(")
    version = None
    if where is None and reader.take("UPGRADE"):
        reader.expect("UNIFORM", "(", "ICEBERG_COMPAT_VERSION", "=")
        version = reader.whole_number("a version")
        reader.expect(")")
    else:
        reader.expect("PURGE")
    reader.expect(")")
    return Reorg(table, where, version)


def _where(reader: Reader, *end: str) -> SqlText | None:
    """Read the condition behind WHERE, up to the keywords that may follow it."""
    return reader.sql("a condition", lambda: reader.is_at(*end)) if reader.take("WHERE") else None


_STATEMENTS: Mapping[str, Callable[[Reader], Command | None]] = {
    "ANALYZE": _analyze,
    "OPTIMIZE": _optimize,
    "VACUUM": _vacuum,
    "GENERATE": _generate,
    "CONVERT": _convert,
    "RESTORE": _restore,
    "REORG": _reorg,
    "ALTER": alteration,
    "DESC": _describe,
    "DESCRIBE": _describe,
    "CREATE": clone,
    "REPLACE": clone,
}
