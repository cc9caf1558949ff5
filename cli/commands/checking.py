"""The commands that look for damage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from optimist.cli import by_need
from optimist.cli.commands.arguments import LARGEST, Url
from optimist.cli.exit_codes import FINE, FOUND
from optimist.cli.session import Session
from optimist.core.errors import UsageError

if TYPE_CHECKING:
    from optimist.core import DeltaLog

__all__ = ["COMMANDS"]


def fsck(  # noqa: PLR0913 - one argument per option
    session: Session,
    url: Url,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also read data files and vectors, and compare statistics."),
    ] = False,
    sample: Annotated[
        str | None,
        typer.Option(
            "--sample",
            metavar="N|N%",
            help="With --deep: read only so many of the data files, chosen at random.",
        ),
    ] = None,
    seed: Annotated[
        int | None,
        typer.Option(
            "--seed",
            metavar="N",
            help="With --sample: the number that chooses the same files again.",
            min=0,
            max=LARGEST,
        ),
    ] = None,
    repair: Annotated[
        bool,
        typer.Option("--repair", help="Repair what can be repaired without the loss of a row."),
    ] = False,
    drop_missing_files: Annotated[
        bool,
        typer.Option(
            "--drop-missing-files",
            help="With --repair: take files that are gone out of the table. Their rows are lost.",
        ),
    ] = False,
    undo: Annotated[
        str | None,
        typer.Option(
            "--undo",
            metavar="RECORD",
            help="Undo a repair instead, by its record below _delta_log/_repairs.",
        ),
    ] = None,
) -> int:
    """Check a table for damage. The exit code is 1 if there is any, or some is left.

    Nothing is changed without --repair. It saves what leaves the log below _delta_log/_repairs.

    Example: optimist fsck s3://bucket/flights --deep --sample 1%
    """
    log = session.open(url)
    if undo is not None:
        if any((deep, repair, drop_missing_files, sample, seed is not None)):
            raise UsageError(
                "--undo goes with no other option of fsck. Nothing was done.",
                kind="OPTIMIST_INVALID_ARGUMENT",
                argument="undo",
            )
        return _undo(session, log, undo)
    with by_need.progress_bar("fsck") as bar:
        checked = log.fsck(
            deep=deep,
            sample=sample,
            seed=seed,
            repair=repair,
            drop_missing_files=drop_missing_files,
            progress=bar,
        )
    facts: dict[str, object] = {
        "version": checked.version,
        "commits": checked.num_commits,
        "files": checked.num_files,
        "deep": checked.is_deep,
        "filesRead": checked.num_read,
        "found": checked.findings.num_rows,
    }
    if checked.seed is not None:
        facts["seed"] = checked.seed
        facts["sample"] = f"{checked.num_read} of {checked.num_files} files were read"
    if checked.record is not None:
        facts["record"] = checked.record
    rows = {"steps": checked.steps} if repair else {}
    folded = ("path", "proof", "repair", "savedAs")
    session.show(facts, folded=folded, **rows, findings=checked.findings)
    return FOUND if checked.findings.num_rows else FINE


def _undo(session: Session, log: DeltaLog, record: str) -> int:
    undone = log.undo_repair(record)
    facts = {"record": undone.record, "left": undone.num_left}
    session.show(facts, folded=("path", "leftBecause"), steps=undone.steps)
    return FOUND if undone.num_left else FINE


def doctor(
    session: Session,
    url: Annotated[
        str | None, typer.Argument(metavar="[URL]", help="A table, or where one will be.")
    ] = None,
    rehearse: Annotated[
        str | None,
        typer.Option(
            "--rehearse",
            metavar="DIR",
            help="Also commit to a new table in this directory, read it back and remove it.",
        ),
    ] = None,
) -> int:
    """Show what this machine has, and whether a table's store can be reached.

    Nothing is written without --rehearse. The exit code is 1 if something does not work.

    Example: optimist doctor s3://bucket/flights --rehearse s3://bucket/scratch
    """
    found = by_need.examine(url, session.options, rehearse)
    session.show(
        found.facts,
        folded=("value", "detail", "install", "source"),
        packages=found.packages,
        credentials=found.credentials,
        store=found.store,
        checks=found.checks,
    )
    return FINE if found.is_fine else FOUND


def report(
    session: Session,
    url: Url,
    file: Annotated[
        str, typer.Option("--file", metavar="PATH", help="The new file to write the page to.")
    ],
    query: Annotated[
        list[str] | None,
        typer.Option(
            "--query", metavar="SQL", help="The condition of a typical query. May be repeated."
        ),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Leave out fsck, doctor and the list of dead files.")
    ] = False,
) -> int:
    """Write a page about a table: how it grows, who writes, what queries read, what to do next.

    The page is one file of HTML that needs no network. Nothing in the table is changed.

    Example: optimist report /data/flights --query "month = 1" --file flights.html
    """
    log = session.open(url)
    with by_need.target_of(file) as stream:
        checks = [] if quick else by_need.examine(url, session.options).checks.to_pylist()
        with by_need.progress_bar("report") as bar:
            found = by_need.table_report(
                log,
                query or (),
                checks=not quick,
                examined=[(each["check"], each["ok"], each["detail"]) for each in checks],
                advance=bar.advance,
            )
        page = found.html.encode("utf-8", "replace")
        stream.write(page)
    facts = {"version": found.version, "file": file, "bytes": len(page)}
    session.show(facts, folded=("title", "why", "gain", "command"), advice=found.advice)
    return FINE


COMMANDS = (fsck, doctor, report)
"""In the order of the help."""
