"""The commands that look for damage."""

from __future__ import annotations

from typing import Annotated

import typer

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
) -> int:
    """Check a table for damage, and change nothing. The exit code is 1 if there is any.

    Example: optimist fsck s3://bucket/flights --deep
    """
    checked = session.open(url).fsck(deep=deep)
    facts = {
        "version": checked.version,
        "commits": checked.num_commits,
        "files": checked.num_files,
        "deep": checked.is_deep,
        "found": checked.findings.num_rows,
    }
    session.show(facts, findings=checked.findings)
    return FOUND if checked.findings.num_rows else FINE


COMMANDS = (fsck,)
"""In the order of the help."""
