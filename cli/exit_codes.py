"""The exit codes of the command line."""

from __future__ import annotations

__all__ = ["FINE", "FOUND", "INTERRUPTED", "MISUSE", "PIPE_CLOSED", "UNREADABLE"]

FINE = 0
"""The command did what it was asked for, and found nothing wrong."""
FOUND = 1
"""The command found something: damage, a difference, a commit that is not in the table."""
MISUSE = 2
"""The call is wrong, so nothing was done."""
UNREADABLE = 3
"""The store or the table could not be read or written."""
INTERRUPTED = 130
"""Ctrl-C ended the command."""
PIPE_CLOSED = 141
"""The reader of the output went away."""
