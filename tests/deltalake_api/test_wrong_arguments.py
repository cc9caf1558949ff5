"""A wrong argument of a public method is one clear error, whatever a caller passes.

A raw error comes from where the argument is used. A clear one is raised on purpose.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import optimist.deltalake as ours
from optimist.core import DeltaLog
from optimist.core.errors import OptimistError
from optimist.deltalake.exceptions import DeltaError

ROWS = pa.table({"a": [1, 2], "b": ["x", "y"]})
WRONG: tuple[Any, ...] = (
    None,
    -1,
    10**30,
    float("nan"),
    b"x",
    "",
    "bad((",
    "\ud800",
    [None],
    {5: 5},
    [("a", "=", object())],
    object(),
    pc.field("a") > 1,
    np.datetime64("NaT"),
)


def is_clear(error: Exception) -> bool:
    if isinstance(error, OptimistError | DeltaError):
        return True
    frames = traceback.extract_tb(error.__traceback__)
    is_on_purpose = (frames[-1].line or "").startswith("raise ") and "tests" not in str(frames[-1])
    return len(frames) == 1 or (isinstance(error, TypeError | ValueError) and is_on_purpose)


def plain(path: str) -> dict[str, Callable[[Any], object]]:
    """Calls of the plain interface, each with one wrong argument."""
    log = DeltaLog.for_path(path)
    snapshot = log.snapshot()
    return {
        "for_path": lambda x: DeltaLog.for_path(x).store if not isinstance(x, str) else None,
        "options": lambda x: DeltaLog.for_path(path, x),
        "option": lambda x: DeltaLog.for_path(path, {"spark.optimist.conflict.readFiles": x}),
        "to_arrow": lambda x: log.to_arrow(x, limit=1),
        "columns": lambda x: log.to_arrow(None, x, limit=1),
        "limit": lambda x: log.head(x),
        "version": lambda x: log.to_arrow(version=x, limit=1),
        "timestamp": lambda x: log.count(timestamp=x),
        "in_order": lambda x: log.scan(in_order=x),
        "count": lambda x: log.count(x),
        "files": lambda x: log.files(x),
        "history": lambda x: log.history(x),
        "dataset": lambda x: log.scan().to_dataset().to_table(columns=x),
        "filter": lambda x: log.scan().to_dataset().scanner(filter=x),
        "changes": lambda x: log.changes(starting_version=x),
        "changes_at": lambda x: log.scan_changes(starting_timestamp=x),
        "change_order": lambda x: log.scan_changes(starting_version=0, in_order=x),
        "follow": lambda x: next(iter(log.follow(starting_version=0, changes=x))),
        "scan": lambda x: snapshot.scan(x, limit=1),
        "scan_rows": lambda x: snapshot.scan_rows(columns=x),
        "iter_files": lambda x: list(snapshot.iter_files(x)),
        "mode": lambda x: log.write(ROWS.slice(0, 0), mode=x),
        "schema_mode": lambda x: log.append(ROWS.slice(0, 0), schema_mode=x),
        "file_size": lambda x: log.write(ROWS.slice(0, 0), target_file_size=x),
        "txn": lambda x: log.write(ROWS.slice(0, 0), txn=x),
        "delete": lambda x: log.delete(x) if x is not None else None,
        "update": lambda x: log.update(set=x, predicate="a = 77"),
        "merge": lambda x: log.merge(x, ["a"]),
        "merge_on": lambda x: log.merge(ROWS, x),
        "optimize": lambda x: log.optimize(full=x),
        "vacuum": lambda x: log.vacuum(x, dry_run=True),
        "dry_run": lambda x: log.vacuum(dry_run=x),
        "inventory": lambda x: log.vacuum(dry_run=True, inventory=x),
        "fsck": lambda x: log.fsck(deep=x),
        "restore": lambda x: log.restore(x),
        "clone": lambda x: log.clone(f"{path}-clone", mode=x),
        "source_format": lambda x: log.convert(source_format=x),
        "create": lambda x: log.create({"a": "int"}, mode=x),
        "if_exists": lambda x: log.alter.drop_constraint("none", if_exists=x),
    }


def of_deltalake(path: str) -> dict[str, Callable[[Any], object]]:
    """Calls by the names of deltalake, each with one wrong argument."""
    table = ours.DeltaTable(path)
    merge = table.merge(ROWS, "t.a = s.a", "s", "t")
    return {
        "load": lambda x: table.load_as_version(x),
        "filters": lambda x: table.file_uris(file_pruning_predicate=x),
        "dataset": lambda x: table.to_pyarrow_dataset(file_pruning_predicate=x),
        "pyarrow": lambda x: table.to_pyarrow_table(filters=x),
        "types_mapper": lambda x: table.to_pandas(types_mapper=x),
        "scan": lambda x: table.scan(predicate=x),
        "load_cdf": lambda x: table.load_cdf(x),
        "out_of_range": lambda x: table.load_cdf(0, allow_out_of_range=x),
        "app_id": lambda x: table.transaction_version(x),
        "delete": lambda x: table.delete(x) if x is not None else None,
        "commit": lambda x: table.delete("a = 77", commit_properties=x),
        "hooks": lambda x: table.delete("a = 77", post_commithook_properties=x),
        "writer": lambda x: table.delete("a = 77", writer_properties=x),
        "txns": lambda x: table.delete(
            "a = 77", commit_properties=ours.CommitProperties(app_transactions=x)
        ),
        "retries": lambda x: table.delete(
            "a = 77", commit_properties=ours.CommitProperties(max_commit_retries=x)
        ),
        "custom": lambda x: table.delete(
            "a = 77", commit_properties=ours.CommitProperties(custom_metadata=x)
        ),
        "row_group": lambda x: table.delete(
            "a = 77", writer_properties=ours.WriterProperties(max_row_group_size=x)
        ),
        "updates": lambda x: table.update(x, predicate="a = 77"),
        "new_values": lambda x: table.update(new_values=x, predicate="a = 77"),
        "merge": lambda x: table.merge(ROWS, x),
        "except_cols": lambda x: merge.when_matched_update_all(except_cols=x),
        "restore": lambda x: table.restore(x),
        "vacuum": lambda x: table.vacuum(x, enforce_retention_duration=False),
        "full": lambda x: table.vacuum(full=x),
        "compact_logs": lambda x: table.compact_logs(0, x),
        "target_size": lambda x: table.optimize.compact(target_size=x),
        "z_order": lambda x: table.optimize.z_order(x),
        "add_feature": lambda x: table.alter.add_feature(x),
        "add_columns": lambda x: table.alter.add_columns(x),
        "add_constraint": lambda x: table.alter.add_constraint(x),
        "metadata": lambda x: table.alter.set_column_metadata("a", x),
        "write": lambda x: ours.write_deltalake(path, ROWS.slice(0, 0), mode=x),
        "rows": lambda x: ours.write_deltalake(path, x, mode="append"),
        "create": lambda x: ours.DeltaTable.create(path, x, mode="ignore"),
        "Schema": lambda x: ours.Schema(x),
        "from_json": lambda x: ours.Field.from_json(x),
        "register": lambda x: ours.QueryBuilder().register("t", x),
    }


@pytest.mark.parametrize("calls", [plain, of_deltalake])
def test_no_wrong_argument_ends_in_a_raw_error(
    tmp_path: Path, calls: Callable[[str], dict[str, Callable[[Any], object]]]
) -> None:
    DeltaLog.for_path(str(tmp_path)).create(
        ROWS.schema, properties={"delta.enableChangeDataFeed": "true"}
    )
    raw = []
    for name, call in calls(str(tmp_path)).items():
        for wrong in WRONG:
            try:
                call(wrong)
            except Exception as error:  # noqa: BLE001 - whatever it is
                if not is_clear(error):
                    raw.append((name, wrong, repr(error)))
    assert raw == []
