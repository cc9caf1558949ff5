"""The old files below a table's directory that no version names: VACUUM would delete them."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from optimist.core.data.table_ref import TableRef
from optimist.core.maintenance.fsck.log_content import NAMED
from optimist.core.maintenance.fsck.openable_files import with_known_vectors
from optimist.core.maintenance.vacuum.heeded_intents import HeededIntents
from optimist.core.maintenance.vacuum.hidden_names import HiddenNames
from optimist.core.maintenance.vacuum.kept_paths import relative_paths, relative_vector_paths

__all__ = ["UnnamedFiles"]

_AT_A_TIME = 1 << 16


class UnnamedFiles:
    """Listed files, without those that the log is seen to name.

    Args:
        table: The table.
        names: Which names VACUUM ignores.
        listed: The listed files, rows of `LISTED_SCHEMA`.
        kept_ms: How long a file is kept after its last change.
    """

    def __init__(self, table: TableRef, names: HiddenNames, listed: pa.Table, kept_ms: int) -> None:
        self._table = table
        modified_ms = listed.column("modified_ms")
        is_old = pc.and_(
            pc.greater(modified_ms, 0), pc.less(modified_ms, table.clock.now_ms() - kept_ms)
        )
        self._names = names
        self._files = listed.filter(is_old)
        self._waiting: list[pa.RecordBatch] = []
        self._num_waiting = 0

    def note(self, named: pa.RecordBatch) -> None:
        """Take files that the log names, rows of `NAMED`, off the list."""
        if self._files.num_rows:
            self._waiting.append(named)
            self._num_waiting += named.num_rows
            if self._num_waiting >= _AT_A_TIME:
                self._take_off()

    def left(self) -> pa.Table:
        """Return the files that are left, and that no living writer may have made.

        Writers' intents are listed after the files, as VACUUM does it.
        """
        self._take_off()
        is_ours = [
            self._names.shows(each) and not self._names.lies_apart(each)
            for each in self._files.column("path").to_pylist()
        ]
        files = self._files.filter(pa.array(is_ours, pa.bool_()))
        if files.num_rows:
            since_ms = HeededIntents.find(self._table, removes_stale=False).since_ms
            if since_ms is not None:
                files = files.filter(pc.less(files.column("modified_ms"), since_ms))
        return files

    def _take_off(self) -> None:
        if not self._waiting:
            return
        rows = pa.Table.from_batches(self._waiting, NAMED)
        self._waiting, self._num_waiting = [], 0
        paths = self._table.data_paths
        for batch in rows.to_batches():
            self._keep_others(relative_paths(batch.column("path"), paths))
        if rows.column("deletionVector").null_count < rows.num_rows:
            self._keep_others(relative_vector_paths(with_known_vectors(rows, paths), paths))

    def _keep_others(self, paths: pa.Array) -> None:
        is_named = pc.is_in(self._files.column("path"), value_set=paths.drop_null())
        self._files = self._files.filter(pc.invert(is_named))
