"""The commands that look for damage."""

from __future__ import annotations

from typing import Annotated

import typer

from optimist.cli import by_need
from optimist.cli.commands.arguments import Url
from optimist.cli.exit_codes import FINE, FOUND
from optimist.cli.session import Session

__all__ = ["COMMANDS"]


def fsck(
    session: Session,
    url: Url,
    deep: Annotated[
        bool,
        typer.Option("--deep", help="Also read data files and vectors, and compare statistics."),
    ] = False,
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
) -> int:
    """Check a table for damage. The exit code is 1 if there is any, or some is left.

    Nothing is changed without --repair. It saves what leaves the log below _delta_log/_repairs.

    Example: optimist fsck s3://bucket/flights --deep
    """
    log = session.open(url)
    checked = log.fsck(deep=deep, repair=repair, drop_missing_files=drop_missing_files)
    facts = {
        "version": checked.version,
        "commits": checked.num_commits,
        "files": checked.num_files,
        "deep": checked.is_deep,
        "found": checked.findings.num_rows,
    }
    rows = {"steps": checked.steps} if repair else {}
    folded = ("path", "proof", "repair", "savedAs")
    session.show(facts, folded=folded, **rows, findings=checked.findings)
    return FOUND if checked.findings.num_rows else FINE


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


COMMANDS = (fsck, doctor)
"""In the order of the help."""
