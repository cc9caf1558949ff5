"""What three commands make of six rows, and whether one of them is in a table whole or not at all.

The rows have the ids 0 to 5 in two files, and the change data feed is on.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from urllib.parse import unquote

import deltalake

from optimist.core import DeltaLog
from optimist.core.data.intents.intents import INTENTS

BEFORE = {0: 0, 1: 0, 2: 0, 3: 3, 4: 3, 5: 3}
AFTER = {
    "delete": {0: 0, 2: 0, 3: 3, 5: 3},
    "update": {**BEFORE, 1: 10, 4: 13},
    "merge": {0: 0, 2: 0, 3: 3, 4: 101, 5: 3, 7: 102},
}
CHANGES = {
    "delete": [("delete", 1, 0), ("delete", 4, 3)],
    "update": [
        *(("update_preimage", 1, 0), ("update_postimage", 1, 10)),
        *(("update_preimage", 4, 3), ("update_postimage", 4, 13)),
    ],
    "merge": [
        *(("delete", 1, 0), ("insert", 7, 102)),
        *(("update_preimage", 4, 3), ("update_postimage", 4, 101)),
    ],
}


def ensure_whole(path, command, *, staging=()):
    """The table is as before the command or as after it, and all that was left can be found.

    Args:
        path: The table, of whose newest version nobody knows.
        command: The command, by name.
        staging: Names of hidden directories in which files may be left.

    Returns:
        Whether the command is in the table.
    """
    log = DeltaLog.for_path(str(path))
    version = log.snapshot().version
    assert version in (1, 2)
    rows = {row["id"]: row["v"] for row in log.to_arrow().to_pylist()}
    assert rows == (AFTER[command] if version == 2 else BEFORE)
    if version == 2:
        found = log.changes(columns=["_change_type", "id", "v"], starting_version=2)
        assert Counter(map(tuple, map(dict.values, found.to_pylist()))) == Counter(CHANGES[command])
    ensure_leftovers_are_found(Path(path), log, staging)
    assert log.delete("id = 5").num_deleted == 1
    return version == 2


def ensure_leftovers_are_found(path, log, staging):
    """A vacuum lists each file that is not in the newest version; none is in a hidden directory.

    But for intents, which our own vacuum removes.
    """
    files = [file.relative_to(path) for file in path.rglob("*") if file.is_file()]
    apart = ("_delta_log", INTENTS)
    data = [file for file in files if file.parts[0] not in apart and file.suffix != ".crc"]
    hidden = {part for file in data for part in file.parts if part.startswith(("_", "."))}
    assert hidden <= {"_change_data", *staging}
    listed = deltalake.DeltaTable(path).vacuum(
        retention_hours=0, dry_run=True, full=True, enforce_retention_duration=False
    )
    live = map(unquote, log.snapshot().files["path"].to_pylist())
    assert set(map(str, data)) <= {*listed, *live}
