"""`Session`: one run of a command, with the options that all commands share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from optimist.cli import by_need
from optimist.core.secrets import Options

if TYPE_CHECKING:
    import pyarrow as pa

    from optimist.core import DeltaLog

__all__ = ["Session"]


@dataclass(frozen=True, slots=True)
class Session:
    """One run of a command.

    Attributes:
        options: The options of the tables.
        as_json: Whether the answer is JSON.
    """

    options: Options
    as_json: bool

    def open(self, url: str) -> DeltaLog:
        """Return the handle of a table.

        Raises:
            UsageError: The URL, or an option, is wrong.
        """
        return by_need.DeltaLog.for_path(url, self.options)

    def show(
        self,
        facts: Mapping[str, object] | None = None,
        *,
        folded: tuple[str, ...] = (),
        **rows: pa.Table,
    ) -> None:
        """Write the answer of the command: single facts, and long parts by their names.

        Args:
            facts: The facts.
            folded: The columns whose long values a terminal shows on several lines.
            **rows: The long parts.
        """
        by_need.show(by_need.Answer(facts or {}, rows, folded), as_json=self.as_json)
