"""The commands that change tables, or clean up after them."""

from __future__ import annotations

import sys
from enum import Enum
from typing import Annotated

import typer

from optimist.cli import by_need
from optimist.cli.commands.arguments import LARGEST, Url, Version, column_names
from optimist.cli.exit_codes import FINE, FOUND, MISUSE
from optimist.cli.failures import tell
from optimist.cli.session import Session

__all__ = ["COMMANDS"]


class CloneMode(str, Enum):
    """What happens to a table that is at the clone's place."""

    CREATE = "create"
    CREATE_IF_NOT_EXISTS = "create_if_not_exists"
    REPLACE = "replace"
    CREATE_OR_REPLACE = "create_or_replace"


class SourceFormat(str, Enum):
    """What is converted."""

    PARQUET = "parquet"
    ICEBERG = "iceberg"


class VacuumMode(str, Enum):
    """How dead files are found."""

    FULL = "full"
    LITE = "lite"


def checkpoint(session: Session, url: Url) -> int:
    """Write a checkpoint, so that opening the table reads fewer commits.

    Example: optimist checkpoint /data/flights
    """
    with by_need.progress_bar("checkpoint") as bar:
        last = session.open(url).checkpoint(
            lambda done: bar.advance(done.files_done, done.num_files)
        )
    facts = {"version": last.version, "actions": last.size, "bytes": last.size_in_bytes}
    session.show(facts)
    return FINE


def optimize(
    session: Session,
    url: Url,
    where: Annotated[
        str | None, typer.Option("--where", metavar="SQL", help="Only these partitions.")
    ] = None,
    z_order_by: Annotated[
        str | None, typer.Option("--z-order-by", metavar="A,B", help="Arrange rows by these.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Also arrange rows that are arranged by other columns.")
    ] = False,
) -> int:
    """Make few large files of many small ones. No row changes.

    Example: optimist optimize /data/flights --where "month = 1"
    """
    columns = column_names(z_order_by) or ()
    with by_need.progress_bar("optimize") as bar:
        done = session.open(url).optimize(
            where,
            z_order_by=[(name,) for name in columns],
            full=full,
            progress=bar,
        )
    facts = {
        "version": done.version,
        "filesAdded": done.added.num_files,
        "bytesAdded": done.added.total,
        "filesRemoved": done.removed.num_files,
        "bytesRemoved": done.removed.total,
    }
    session.show(facts)
    return FINE


def vacuum(
    session: Session,
    url: Url,
    delete: Annotated[
        bool, typer.Option("--delete", help="Delete the files, instead of only listing them.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before deleting.")] = False,
    retain_hours: Annotated[
        float | None,
        typer.Option("--retain-hours", metavar="N", help="As in VACUUM ... RETAIN N HOURS."),
    ] = None,
    mode: Annotated[VacuumMode | None, typer.Option("--mode", help="How files are found.")] = None,
) -> int:
    """Show the dead files, and with --delete delete them after a question.

    Versions that need a deleted file can't be read any more, nor restored.

    Example: optimist vacuum s3://bucket/flights --delete
    """
    log = session.open(url)
    how = None if mode is None else mode.value.upper()
    with by_need.progress_bar("list") as bar:
        found = log.vacuum(
            retain_hours,
            dry_run=True,
            mode=how,
            progress=lambda told: bar.advance(told.num_listed, None),
        )
    if delete and found.num_files:
        if not _is_agreed(yes, f"Delete {found.num_files} files ({found.size_bytes} bytes)?"):
            return MISUSE
        with by_need.progress_bar("delete") as bar:
            found = log.vacuum(
                retain_hours,
                mode=how,
                progress=lambda told: bar.advance(told.num_deleted, told.num_dead),
            )
    facts = {
        "dryRun": not delete,
        "files": found.num_files,
        "bytes": found.size_bytes,
        "writersAtWork": found.num_live_intents,
    }
    session.show(facts, paths=by_need.Answer.column(path=found.paths))
    return FINE


def restore(
    session: Session,
    url: Url,
    version: Version = None,
    timestamp: Annotated[
        str | None, typer.Option("--timestamp", metavar="TIME", help="A time, instead.")
    ] = None,
) -> int:
    """Make the table what it was at an older version. It can be undone in the same way.

    Example: optimist restore /data/flights --version 5
    """
    with by_need.progress_bar("restore") as bar:
        done = session.open(url).restore(
            version,
            timestamp,
            progress=bar,
        )
    facts = {
        "version": done and done.version,
        "filesRestored": done and done.num_restored_files,
        "bytesRestored": done and done.restored_files_size,
        "filesRemoved": done and done.num_removed_files,
        "bytesRemoved": done and done.removed_files_size,
    }
    session.show(facts)
    return FINE


def alter(
    session: Session,
    url: Url,
    change: Annotated[
        str, typer.Argument(metavar="CHANGE", help="What follows ALTER TABLE name in SQL.")
    ],
) -> int:
    """Change columns, properties or constraints of a table.

    Example: optimist alter /data/flights "ADD COLUMNS (note STRING)"
    """
    log = session.open(url)
    log.sql(f"ALTER TABLE this {change}")
    session.show({"version": log.snapshot().version})
    return FINE


def clone(
    session: Session,
    source: Annotated[str, typer.Argument(metavar="SRC", help="The table that is copied.")],
    target: Annotated[str, typer.Argument(metavar="DST", help="The place of the copy.")],
    shallow: Annotated[
        bool, typer.Option("--shallow", help="Copy no files: the copy needs those of the source.")
    ] = False,
    version: Version = None,
    mode: Annotated[
        CloneMode, typer.Option("--mode", help="What to do with a table at DST.")
    ] = CloneMode.CREATE,
) -> int:
    """Make another table with the same rows.

    Example: optimist clone /data/flights /data/copy --version 5
    """
    log = session.open(source)
    with by_need.progress_bar("clone") as bar:
        done = log.clone(
            target,
            is_shallow=shallow,
            version=version,
            mode=mode.value,
            progress=bar,
        )
    facts = {
        "version": done and done.version,
        "sourceFiles": done and done.source_num_of_files,
        "sourceBytes": done and done.source_table_size,
        "filesCopied": done and done.num_copied_files,
        "bytesCopied": done and done.copied_files_size,
    }
    session.show(facts)
    return FINE


def convert(
    session: Session,
    url: Url,
    partition_by: Annotated[
        list[str] | None,
        typer.Option(
            "--partition-by",
            metavar="'NAME TYPE'",
            help="A column that the directories name. May be repeated, in their order.",
        ),
    ] = None,
    source_format: Annotated[
        SourceFormat, typer.Option("--from", help="What the files are.")
    ] = SourceFormat.PARQUET,
) -> int:
    """Make a Delta table of Parquet files, or of a table of Iceberg, where they are.

    Example: optimist convert /data/old --partition-by "month INT"
    """
    columns = [_pair(text) for text in partition_by or ()]
    with by_need.progress_bar("convert") as bar:
        done = session.open(url).convert(
            columns,
            source_format=source_format.value,
            progress=bar,
        )
    session.show({"version": None if done is None else done.version})
    return FINE


def commit_status(
    session: Session,
    url: Url,
    txn_id: Annotated[str, typer.Argument(metavar="TXN_ID", help="The id that the error names.")],
    version: Annotated[
        int | None,
        typer.Option("--version", metavar="N", help="The error's version.", min=0, max=LARGEST),
    ] = None,
) -> int:
    """Tell whether a transaction of unknown outcome landed. The exit code is 0 if it did.

    Example: optimist commit-status /data/flights 6f1b9c1e-... --version 12
    """
    found = session.open(url).resolve_commit(txn_id, version)
    facts = {"txnId": txn_id, "state": found.state.value, "version": found.version}
    session.show(facts)
    return FINE if found.state.value == "landed" else FOUND


def _is_agreed(is_sure: bool, question: str) -> bool:
    """Ask a person, or refuse where there is nobody to ask."""
    if is_sure:
        return True
    if not sys.stdin.isatty():
        tell("Nothing was deleted: there is no terminal to ask at. Add --yes.")
        return False
    try:
        is_agreed = typer.confirm(question, err=True)
    except typer.Abort as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise KeyboardInterrupt from None
        is_agreed = False  # the terminal was closed
    if not is_agreed:
        tell("Nothing was deleted.")
    return is_agreed


def _pair(text: str) -> tuple[str, str]:
    name, _, data_type = text.strip().partition(" ")
    return name, data_type.strip() or "string"


COMMANDS = (checkpoint, optimize, vacuum, restore, alter, clone, convert, commit_status)
"""In the order of the help."""
