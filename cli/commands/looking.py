"""The commands that look at tables and change nothing."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer

from optimist.cli import by_need
from optimist.cli.commands.arguments import (
    LARGEST,
    Columns,
    Destination,
    Limit,
    RowFormat,
    Url,
    Version,
    Where,
    column_names,
)
from optimist.cli.exit_codes import FINE, FOUND
from optimist.cli.session import Session
from optimist.core.errors import UsageError
from optimist.core.secrets import without_secrets

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["COMMANDS"]

_SHOWN_FILES = 20


def history(session: Session, url: Url, limit: Limit = None) -> int:
    """Show the commits of a table, newest first.

    Example: optimist history s3://bucket/flights --limit 20
    """
    commits = by_need.history_rows(session.open(url).history(limit))
    if not session.as_json:
        wanted = ["version", "timestamp", "operation", "engineInfo", "operationMetrics"]
        commits = commits.select(wanted)
    session.show(commits=commits)
    return FINE


def conflicts(
    session: Session,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="The table whose history is read.")
    ] = None,
    limit: Limit = None,
    log: Annotated[
        list[str] | None,
        typer.Option(
            "--log",
            metavar="FILE",
            help="Also read the conflicts that a program has logged; - is the standard input. "
            "May be repeated.",
        ),
    ] = None,
) -> int:
    """Show who lost to whom: commits that others overtook, and conflicts that were logged.

    A table's history tells of the first, and the logs of programs of the second.

    Example: optimist conflicts s3://bucket/flights --log driver.log
    """
    facts: dict[str, object] = {}
    rows: dict[str, pa.Table] = {}
    if url is None and (not log or limit is not None):
        raise UsageError(
            "Without a table there is no history to read. Nothing was done. Name the table, or "
            "logs by --log, or both.",
            kind="OPTIMIST_INVALID_ARGUMENT",
            argument="URL",
        )
    if log:
        logged = by_need.logged_conflicts(log)
        facts |= logged.facts
        rows |= {"losses": logged.losses, "lossHours": logged.loss_hours, "errors": logged.errors}
    if url is not None:
        found = by_need.overtaken_commits(by_need.history_rows(session.open(url).history(limit)))
        facts |= found.facts
        rows |= {"operations": found.operations, "hours": found.hours, "commits": found.commits}
    session.show(facts, **rows)
    return FINE


def detail(session: Session, url: Url) -> int:
    """Show the facts of a table: its size, properties, protocol and features.

    Example: optimist detail /data/flights
    """
    row = by_need.detail_rows(session.open(url).detail())
    session.show(by_need.json_facts(row))
    return FINE


def schema(session: Session, url: Url, version: Version = None) -> int:
    """Show the columns of a table.

    Example: optimist schema /data/flights --version 3
    """
    snapshot = session.open(url).snapshot(version)
    session.show(columns=by_need.schema_rows(snapshot))
    return FINE


def count(session: Session, url: Url, where: Where = None, version: Version = None) -> int:
    """Count the rows of a table, mostly by the log alone.

    Example: optimist count /data/flights --where "month = 1"
    """
    session.show({"rows": session.open(url).count(where, version=version)})
    return FINE


def head(
    session: Session,
    url: Url,
    limit: Annotated[int, typer.Option("--limit", "-n", metavar="N", min=0, max=LARGEST)] = 10,
    where: Where = None,
    columns: Columns = None,
    version: Version = None,
) -> int:
    """Show a few rows of a table.

    Example: optimist head /data/flights -n 3 --columns tail,delay
    """
    rows = session.open(url).to_arrow(where, column_names(columns), version=version, limit=limit)
    session.show(rows=rows)
    return FINE


def cat(  # noqa: PLR0913 - one argument per option
    session: Session,
    url: Url,
    where: Where = None,
    limit: Limit = None,
    columns: Columns = None,
    version: Version = None,
    row_format: Annotated[
        RowFormat, typer.Option("--format", help="The form of the rows.")
    ] = RowFormat.JSONL,
    file: Destination = None,
) -> int:
    """Write the rows of a table as JSON lines, CSV or Parquet.

    Example: optimist cat /data/flights --where "month = 1" --format csv
    """
    log = session.open(url)
    rows = log.scan(where, column_names(columns), version=version, limit=limit, in_order=True)
    by_need.write_rows(rows, row_format.value, file)
    return FINE


def files(
    session: Session, url: Url, where: Where = None, limit: Limit = None, version: Version = None
) -> int:
    """Show the files of a table: which a query reads, which not, and why.

    Example: optimist files /data/flights --where "month = 1 AND delay > 60"
    """
    log = session.open(url)
    snapshot = log.snapshot(version)
    found = by_need.explain_files(snapshot, where, use_statistics=log.options.stats_skipping)
    shown = found.files
    if limit is None and not session.as_json:
        limit = _SHOWN_FILES
    num_read, bytes_read = found.count(read=True)
    num_left_out, bytes_left_out = found.count(read=False)
    facts = {
        "version": snapshot.version,
        "predicate": where,
        "filesRead": num_read,
        "bytesRead": bytes_read,
        "filesLeftOut": num_left_out,
        "bytesLeftOut": bytes_left_out,
        "filesShown": min(shown.num_rows, shown.num_rows if limit is None else limit),
    }
    session.show(facts, folded=("rule",), rules=found.rules, files=shown.slice(0, limit))
    return FINE


def log(
    session: Session,
    url: Url,
    version: Annotated[int, typer.Argument(metavar="N", min=0, max=LARGEST)],
) -> int:
    """Show what one commit did, in words.

    Example: optimist log /data/flights 7
    """
    described = by_need.describe_commit(session.open(url), version)
    session.show(described.facts, files=described.files)
    return FINE


def diff(
    session: Session,
    url: Url,
    before: Annotated[int, typer.Argument(metavar="V1", min=0, max=LARGEST)],
    after: Annotated[int, typer.Argument(metavar="V2", min=0, max=LARGEST)],
) -> int:
    """Show what differs between two versions: files, columns, properties, the number of rows.

    The exit code is 1 if anything differs.

    Example: optimist diff /data/flights 3 7
    """
    log = session.open(url)
    found = by_need.difference_of(log.snapshot(before), log.snapshot(after))
    session.show(found.facts, changes=found.changes, files=found.files)
    return FINE if found.is_none else FOUND


def changes(
    session: Session,
    url: Url,
    start: Annotated[
        int, typer.Option("--from", metavar="N", help="The first version.", min=0, max=LARGEST)
    ],
    end: Annotated[
        int | None,
        typer.Option(
            "--to", metavar="N", help="The last version; else the newest.", min=0, max=LARGEST
        ),
    ] = None,
    where: Where = None,
    columns: Columns = None,
) -> int:
    """Show the rows that a range of versions inserted, updated and deleted.

    Example: optimist changes /data/flights --from 3 --to 5

    The table needs the property delta.enableChangeDataFeed.
    """
    names = column_names(columns)
    rows = session.open(url).changes(where, names, starting_version=start, ending_version=end)
    session.show(rows=rows)
    return FINE


def tables(
    session: Session,
    directory: Annotated[str, typer.Argument(metavar="DIR", help="Where to look.")],
) -> int:
    """Show every table below a directory. The exit code is 1 if one of them can't be read.

    Example: optimist tables s3://bucket/warehouse
    """
    found = by_need.tables_below(directory, session.options)
    session.show(folded=("table", "error"), tables=found)
    return FINE if found.column("error").null_count == found.num_rows else FOUND


def sql(
    session: Session,
    text: Annotated[str, typer.Argument(metavar="STATEMENT", help="The statement.")],
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="URL", help="The table that the statement calls `this`."),
    ] = None,
) -> int:
    """Run a statement of SQL. It can change tables.

    Example: optimist sql "DESCRIBE HISTORY delta.`/data/flights` LIMIT 3"
    """
    if table is None:
        done = by_need.run_sql(text, session.options)
    else:
        done = session.open(table).sql(text)
    session.show(rows=done.rows)
    return FINE


def watch(
    session: Session,
    url: Url,
    interval: Annotated[
        float, typer.Option("--interval", metavar="S", help="The seconds between looks.", min=0.1)
    ] = 2.0,
    start: Annotated[
        int | None,
        typer.Option(
            "--from", metavar="N", help="The first version; else the newest.", min=0, max=LARGEST
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option("--limit", "-n", metavar="N", help="End after so many.", min=1, max=LARGEST),
    ] = None,
    stream: Annotated[
        list[str] | None,
        typer.Option(
            "--stream",
            metavar="PATH",
            help="Also show the lag of this stream, by its checkpoint. May be repeated.",
        ),
    ] = None,
) -> int:
    """Show commits as they come, until Ctrl-C, and how far streams lag behind.

    In a pipe each commit is one line, with --output json one line of JSON.

    Example: optimist watch s3://bucket/flights --stream s3://bucket/checkpoints/copy
    """
    log = session.open(url)
    streams = [by_need.WatchedStream(log, session.open(path)) for path in stream or ()]
    looks = by_need.watch_commits(log, start, interval, streams)
    with suppress(KeyboardInterrupt):
        by_need.show_commits(looks, without_secrets(url), as_json=session.as_json, limit=limit)
    return FINE


COMMANDS = (
    history,
    conflicts,
    detail,
    schema,
    count,
    head,
    cat,
    files,
    log,
    diff,
    changes,
    tables,
    sql,
    watch,
)
"""In the order of the help."""
