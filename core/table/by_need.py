"""What a table's handle needs for some of its methods only: transactions, upkeep, streams.

These names are imported on first use, so that a program that only looks at a table does not load
them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from optimist.core.imports import names_by_need

if TYPE_CHECKING:
    from optimist.core.changes.bounds import ChangeBounds
    from optimist.core.changes.change_scan import scan_changes
    from optimist.core.changes.feed import change_feed
    from optimist.core.commands.alter.table_changes import TableChanges
    from optimist.core.commands.create.create import create_table
    from optimist.core.commands.manifests import generate_manifests
    from optimist.core.commands.reruns import run_until_it_lands
    from optimist.core.commands.written_schema import NewTable
    from optimist.core.expressions.moments import Moment
    from optimist.core.local.commands import CommandOptions, delete, merge, update
    from optimist.core.local.compaction import LocalBins
    from optimist.core.local.merge.builder import LocalMerge
    from optimist.core.local.merge.request import LocalMergeRequest
    from optimist.core.local.merge.stored_source import source_rows
    from optimist.core.local.partition_choice import files_in_partitions
    from optimist.core.local.recomputed_statistics import recompute_statistics
    from optimist.core.local.target import LocalTarget
    from optimist.core.local.write import write
    from optimist.core.local.write_request import LocalWrite
    from optimist.core.log_upkeep.checkpoint import write_checkpoint
    from optimist.core.maintenance.convert.conversion_commit import ConvertRequest
    from optimist.core.maintenance.convert.convert import convert, read_footers
    from optimist.core.maintenance.copies.clone import CloneRequest, clone
    from optimist.core.maintenance.copies.clone_source import FilesSource, VersionSource
    from optimist.core.maintenance.copies.copied_files import copy_here
    from optimist.core.maintenance.copies.restore import RestoreTo, restore
    from optimist.core.maintenance.features.drop_feature import DropRequest, drop_feature
    from optimist.core.maintenance.features.feature_removal import CaredFor
    from optimist.core.maintenance.fsck.fsck import check_table
    from optimist.core.maintenance.fsck.missing_files_commit import drop_missing_files
    from optimist.core.maintenance.fsck.repair import RepairCommits, repair_table
    from optimist.core.maintenance.fsck.sample import Sample
    from optimist.core.maintenance.fsck.undo import undo_repair
    from optimist.core.maintenance.fsck.undone_commits import UndoCommits
    from optimist.core.maintenance.optimize.arrangements import Rearrangement
    from optimist.core.maintenance.optimize.dropped_columns import columns_by_footers
    from optimist.core.maintenance.optimize.optimize import optimize
    from optimist.core.maintenance.vacuum.vacuum import VacuumRequest, vacuum
    from optimist.core.predicates.tree import Predicate
    from optimist.core.requests.columns import path_of
    from optimist.core.requests.table_definition import (
        CreateMode,
        TableDefinition,
        columns_given,
        properties_given,
        schema_given,
    )
    from optimist.core.runtime.progress import ProgressReport
    from optimist.core.snapshot.row_scan import RowScan
    from optimist.core.streams.follow import follow
    from optimist.core.streams.followed_schemas import FollowedSchemas
    from optimist.core.streams.options import StreamOptions, ensure_stream_options, start_options
    from optimist.core.streams.planner import StreamPlanner
    from optimist.core.streams.schema_log import logs_at
    from optimist.core.streams.unblocked import Allowed
    from optimist.core.table.auto_compaction import AutoCompaction
    from optimist.core.table.own_commits import OwnCommits
    from optimist.core.table.sql_statements import parse_with, run_over
    from optimist.core.table.table_transaction import TableTransaction
    from optimist.core.transaction.groups.queue import CommitQueue
    from optimist.core.transaction.log_committer import LogCommitter
    from optimist.core.transaction.optimistic import OptimisticTransaction
    from optimist.core.transaction.several import SeveralSteps

__all__ = [
    "Allowed",
    "AutoCompaction",
    "CaredFor",
    "ChangeBounds",
    "CloneRequest",
    "CommandOptions",
    "CommitQueue",
    "ConvertRequest",
    "CreateMode",
    "DropRequest",
    "FilesSource",
    "FollowedSchemas",
    "LocalBins",
    "LocalMerge",
    "LocalMergeRequest",
    "LocalTarget",
    "LocalWrite",
    "LogCommitter",
    "Moment",
    "NewTable",
    "OptimisticTransaction",
    "OwnCommits",
    "Predicate",
    "ProgressReport",
    "Rearrangement",
    "RepairCommits",
    "RestoreTo",
    "RowScan",
    "Sample",
    "SeveralSteps",
    "StreamOptions",
    "StreamPlanner",
    "TableChanges",
    "TableDefinition",
    "TableTransaction",
    "UndoCommits",
    "VacuumRequest",
    "VersionSource",
    "change_feed",
    "check_table",
    "clone",
    "columns_by_footers",
    "columns_given",
    "convert",
    "copy_here",
    "create_table",
    "delete",
    "drop_feature",
    "drop_missing_files",
    "ensure_stream_options",
    "files_in_partitions",
    "follow",
    "generate_manifests",
    "logs_at",
    "merge",
    "optimize",
    "parse_with",
    "path_of",
    "properties_given",
    "read_footers",
    "recompute_statistics",
    "repair_table",
    "restore",
    "run_over",
    "run_until_it_lands",
    "scan_changes",
    "schema_given",
    "source_rows",
    "start_options",
    "undo_repair",
    "update",
    "vacuum",
    "write",
    "write_checkpoint",
]

_MODULES = {
    "Allowed": "optimist.core.streams.unblocked",
    "AutoCompaction": "optimist.core.table.auto_compaction",
    "CaredFor": "optimist.core.maintenance.features.feature_removal",
    "ChangeBounds": "optimist.core.changes.bounds",
    "CloneRequest": "optimist.core.maintenance.copies.clone",
    "CommandOptions": "optimist.core.local.commands",
    "CommitQueue": "optimist.core.transaction.groups.queue",
    "ConvertRequest": "optimist.core.maintenance.convert.conversion_commit",
    "CreateMode": "optimist.core.requests.table_definition",
    "DropRequest": "optimist.core.maintenance.features.drop_feature",
    "FilesSource": "optimist.core.maintenance.copies.clone_source",
    "FollowedSchemas": "optimist.core.streams.followed_schemas",
    "LocalBins": "optimist.core.local.compaction",
    "LocalMerge": "optimist.core.local.merge.builder",
    "LocalMergeRequest": "optimist.core.local.merge.request",
    "LocalTarget": "optimist.core.local.target",
    "LocalWrite": "optimist.core.local.write_request",
    "LogCommitter": "optimist.core.transaction.log_committer",
    "Moment": "optimist.core.expressions.moments",
    "NewTable": "optimist.core.commands.written_schema",
    "OptimisticTransaction": "optimist.core.transaction.optimistic",
    "OwnCommits": "optimist.core.table.own_commits",
    "Predicate": "optimist.core.predicates.tree",
    "ProgressReport": "optimist.core.runtime.progress",
    "Rearrangement": "optimist.core.maintenance.optimize.arrangements",
    "RepairCommits": "optimist.core.maintenance.fsck.repair",
    "RestoreTo": "optimist.core.maintenance.copies.restore",
    "RowScan": "optimist.core.snapshot.row_scan",
    "Sample": "optimist.core.maintenance.fsck.sample",
    "SeveralSteps": "optimist.core.transaction.several",
    "StreamOptions": "optimist.core.streams.options",
    "StreamPlanner": "optimist.core.streams.planner",
    "TableChanges": "optimist.core.commands.alter.table_changes",
    "TableDefinition": "optimist.core.requests.table_definition",
    "TableTransaction": "optimist.core.table.table_transaction",
    "UndoCommits": "optimist.core.maintenance.fsck.undone_commits",
    "VacuumRequest": "optimist.core.maintenance.vacuum.vacuum",
    "VersionSource": "optimist.core.maintenance.copies.clone_source",
    "change_feed": "optimist.core.changes.feed",
    "check_table": "optimist.core.maintenance.fsck.fsck",
    "clone": "optimist.core.maintenance.copies.clone",
    "columns_by_footers": "optimist.core.maintenance.optimize.dropped_columns",
    "columns_given": "optimist.core.requests.table_definition",
    "convert": "optimist.core.maintenance.convert.convert",
    "copy_here": "optimist.core.maintenance.copies.copied_files",
    "create_table": "optimist.core.commands.create.create",
    "delete": "optimist.core.local.commands",
    "drop_feature": "optimist.core.maintenance.features.drop_feature",
    "drop_missing_files": "optimist.core.maintenance.fsck.missing_files_commit",
    "ensure_stream_options": "optimist.core.streams.options",
    "files_in_partitions": "optimist.core.local.partition_choice",
    "follow": "optimist.core.streams.follow",
    "generate_manifests": "optimist.core.commands.manifests",
    "logs_at": "optimist.core.streams.schema_log",
    "merge": "optimist.core.local.commands",
    "optimize": "optimist.core.maintenance.optimize.optimize",
    "parse_with": "optimist.core.table.sql_statements",
    "path_of": "optimist.core.requests.columns",
    "properties_given": "optimist.core.requests.table_definition",
    "read_footers": "optimist.core.maintenance.convert.convert",
    "recompute_statistics": "optimist.core.local.recomputed_statistics",
    "repair_table": "optimist.core.maintenance.fsck.repair",
    "restore": "optimist.core.maintenance.copies.restore",
    "run_over": "optimist.core.table.sql_statements",
    "run_until_it_lands": "optimist.core.commands.reruns",
    "scan_changes": "optimist.core.changes.change_scan",
    "schema_given": "optimist.core.requests.table_definition",
    "source_rows": "optimist.core.local.merge.stored_source",
    "start_options": "optimist.core.streams.options",
    "undo_repair": "optimist.core.maintenance.fsck.undo",
    "update": "optimist.core.local.commands",
    "vacuum": "optimist.core.maintenance.vacuum.vacuum",
    "write": "optimist.core.local.write",
    "write_checkpoint": "optimist.core.log_upkeep.checkpoint",
}
__getattr__ = names_by_need(__name__, _MODULES)
