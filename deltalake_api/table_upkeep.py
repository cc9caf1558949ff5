"""The commands of `DeltaTable` that look after the table's files and its log."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from optimist.core.errors import TableError
from optimist.core.errors.argument_types import ensure_kind, flag, whole_number
from optimist.core.log_upkeep.cleanup import LogCleaner
from optimist.core.log_upkeep.compaction import write_compaction
from optimist.core.requests.arguments import several
from optimist.deltalake.arguments import HOOKS_FIRST, by_position, call_of
from optimist.deltalake.exceptions import errors_translated
from optimist.deltalake.repair import repair_table
from optimist.deltalake.table_reads import TableReads
from optimist.deltalake.transaction import CommitProperties, PostCommitHookProperties
from optimist.deltalake.vacuum import vacuum_table

__all__ = ["TableUpkeep"]

_Commit = CommitProperties | None
_Hooks = PostCommitHookProperties | None


class TableUpkeep(TableReads):
    """The methods of `DeltaTable` that change no row."""

    @abstractmethod
    def _catch_up(self) -> None:
        """Load the newest version after a command."""

    def vacuum(
        self,
        retention_hours: int | None = None,
        dry_run: bool = True,
        enforce_retention_duration: bool = True,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
        full: bool | None = None,
        keep_versions: list[int] | None = None,
    ) -> list[str]:
        """Delete the files that no version needs any more, or only list them.

        Args:
            retention_hours: How long removed files are kept; None for the table's property.
            dry_run: Whether nothing is deleted.
            enforce_retention_duration: Whether a shorter time than the table's is an error.
            *args: The arguments that follow, by position, as older callers give them.
            commit_properties: How the commits are made.
            post_commithook_properties: What happens after them.
            full: Whether the directory is listed, so that files that no commit names go, too.
            keep_versions: Versions whose files are kept, too.

        Returns:
            The paths of the files, relative to the table.
        """
        order = (*HOOKS_FIRST, "full", "keep_versions")
        by_name = {
            "commit_properties": commit_properties,
            "post_commithook_properties": post_commithook_properties,
            "full": full,
            "keep_versions": keep_versions,
        }
        given = by_position("vacuum", args, order, by_name)
        is_full = flag(given.pop("full"), "full")
        keep_versions = given.pop("keep_versions")
        call = call_of("vacuum", (), **given)
        call.ensure_no_app_txn("vacuum")
        with errors_translated():
            if retention_hours is not None:
                ensure_kind(retention_hours, "retention_hours", (int, float), "a number of hours")
            is_dry = flag(dry_run, "dry_run")
            options: dict[str, Any] = {"vacuum_ignores_retention_window": False}
            if not flag(enforce_retention_duration, "enforce_retention_duration"):
                options["retention_duration_check_enabled"] = False
            log = call.handle(self._log, **options)
            kept = () if keep_versions is None else several(keep_versions, "keep_versions")
            found = vacuum_table(
                log,
                retention_hours,
                dry_run=is_dry,
                is_full=is_full,
                kept=[log.snapshot(whole_number(each, "keep_versions")) for each in kept],
            )
        self._catch_up()
        return found

    def generate(self) -> None:
        """Write lists of the newest version's files, for engines that read no Delta."""
        with errors_translated():
            self._log.generate()

    def create_checkpoint(self) -> None:
        """Write a checkpoint of the newest version."""
        with errors_translated():
            self._log.checkpoint()

    def compact_logs(self, starting_version: int, ending_version: int) -> None:
        """Write one file for a range of commits, from which readers open the table faster."""
        with errors_translated():
            log = self._log
            first = whole_number(starting_version, "starting_version", least=0)
            last = whole_number(ending_version, "ending_version", least=first + 1)
            if last > log.snapshot().version:
                raise TableError(
                    f"The version {last} is not in the log, whose newest is "
                    f"{log.snapshot().version}. Nothing was written. End at that version or "
                    "before.",
                    kind="DELTA_VERSION_NOT_FOUND",
                    version=last,
                )
            write_compaction(log.store, log.log_path, first, last)

    def cleanup_metadata(self) -> None:
        """Delete the files of the log that have expired (`delta.logRetentionDuration`)."""
        with errors_translated():
            log = self._log
            newest = log.snapshot()
            LogCleaner().clean_up(log.store, newest, options=log.options, clock=log.clock)

    def repair(
        self,
        dry_run: bool = False,
        *args: Any,
        commit_properties: _Commit = None,
        post_commithook_properties: _Hooks = None,
    ) -> dict[str, Any]:
        """Take files out of the table that are gone from the store, so that the others can be read.

        The rows of these files are lost. If an older version is whole, `restore` gets them back.

        Args:
            dry_run: Whether the files are only told.
            *args: The arguments that follow, by position, as older callers give them.
            commit_properties: How the commit is made.
            post_commithook_properties: What happens after it.

        Returns:
            `dry_run`, and `files_removed`, the paths of the files as the log has them.
        """
        call = call_of(
            "repair",
            args,
            HOOKS_FIRST,
            commit_properties=commit_properties,
            post_commithook_properties=post_commithook_properties,
        )
        call.ensure_no_app_txn("repair")
        with errors_translated():
            is_dry = flag(dry_run, "dry_run")
            found = repair_table(call.handle(self._log), dry_run=is_dry)
        self._catch_up()
        return {"dry_run": is_dry, "files_removed": found}
