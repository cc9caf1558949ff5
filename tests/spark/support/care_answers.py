"""Commands that care for a table, which two engines must answer alike: delta-spark, once, and ours.

It needs PySpark alone: `benchmarks/record_delta_spark.py` runs it beside Delta's jar, in another
environment, and writes what the jar answered into `delta_spark_care.json`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from history_scenarios import PROPERTIES, History, Scenario, Step, merging, vacuuming, writing
from odd_statements import condition_of

__all__ = ["CARE", "CareAnswers"]

_DELETED = "DELETE FROM {t} WHERE id % 7 = 0"
_CLUSTERED = (
    "CREATE TABLE {t} (id LONG, p INT, s STRING) USING delta CLUSTER BY (id, p)",
    writing("append", 0, 10),
    writing("append", 10, 20),
)
_AGAIN = ("OPTIMIZE {t}", writing("append", 20, 30), writing("append", 30, 40))
_NO_STATISTICS = "ALTER TABLE {t} SET TBLPROPERTIES ('delta.dataSkippingStatsColumns' = 'id')"
_EMPTY = "CREATE TABLE {t} (id LONG, p INT, s STRING) USING delta"

OPTIMIZING: Mapping[str, Sequence[Step]] = {
    "OPTIMIZE": ["OPTIMIZE {t}"],
    "OPTIMIZE again": ["OPTIMIZE {t}", "OPTIMIZE {t}"],
    "OPTIMIZE of a file more": ["OPTIMIZE {t}", writing("append"), "OPTIMIZE {t}"],
    "OPTIMIZE after a DELETE": [_DELETED, "OPTIMIZE {t}"],
    "OPTIMIZE of one file after a DELETE": ["OPTIMIZE {t}", _DELETED, "OPTIMIZE {t}"],
    "OPTIMIZE without rows": ["DELETE FROM {t}", "OPTIMIZE {t}"],
    "ZORDER BY": ["OPTIMIZE {t} ZORDER BY (s, ID)"],
    "ZORDER BY again": ["OPTIMIZE {t} ZORDER BY id", "OPTIMIZE {t} ZORDER BY id"],
    "ZORDER BY after a DELETE": [_DELETED, "OPTIMIZE {t} ZORDER BY id"],
    "ZORDER BY twice the same": ["OPTIMIZE {t} ZORDER BY (id, id)"],
    "ZORDER BY no column": ["OPTIMIZE {t} ZORDER BY (nope)"],
    "ZORDER BY a column without statistics": [_NO_STATISTICS, "OPTIMIZE {t} ZORDER BY (id, s)"],
    "WHERE on a column of the data": ["OPTIMIZE {t} WHERE id > 3"],
    "WHERE on no column": ["OPTIMIZE {t} WHERE nope = 3"],
    "WHERE true": ["OPTIMIZE {t} WHERE true"],
    "FULL": ["OPTIMIZE {t} FULL"],
    "PURGE": ["REORG TABLE {t} APPLY (PURGE)"],
    "PURGE after a DELETE": [_DELETED, "REORG TABLE {t} APPLY (PURGE)"],
    "PURGE after an UPDATE": [
        "UPDATE {t} SET s = 'x' WHERE id = 3",
        "REORG TABLE {t} APPLY (PURGE)",
    ],
    "PURGE after a MERGE": [
        merging("WHEN MATCHED THEN DELETE", 25, 27),
        "REORG TABLE {t} APPLY (PURGE)",
    ],
}
"""Run on tables of three files, with and without vectors."""

OF_PARTITIONS: Mapping[str, Sequence[Step]] = {
    "OPTIMIZE of partitions": [writing("append", 0, 30), "OPTIMIZE {t}"],
    "OPTIMIZE WHERE": [writing("append", 0, 30), "OPTIMIZE {t} WHERE P = 1"],
    "OPTIMIZE WHERE, of texts": [writing("append", 0, 30), "OPTIMIZE {t} WHERE p >= '1'"],
    "OPTIMIZE WHERE nothing": ["OPTIMIZE {t} WHERE p = 9"],
    "OPTIMIZE WHERE a part is of the data": ["OPTIMIZE {t} WHERE p = 1 AND id = 3"],
    "ZORDER BY in a partition": ["OPTIMIZE {t} WHERE p < 2 ZORDER BY (id)"],
    "ZORDER BY the partition's column": ["OPTIMIZE {t} ZORDER BY (id, p)"],
    "PURGE in a partition": [_DELETED, "REORG TABLE {t} WHERE p = 1 APPLY (PURGE)"],
    "PURGE where rows are": [_DELETED, "REORG TABLE {t} WHERE id = 1 APPLY (PURGE)"],
}
"""Run on tables of three partitions, with and without vectors."""

CLUSTERING: Mapping[str, Sequence[Step]] = {
    "clustering": [*_CLUSTERED, "OPTIMIZE {t}"],
    "clustering again": [*_CLUSTERED, "OPTIMIZE {t}", "OPTIMIZE {t}"],
    "clustering of more": [*_CLUSTERED, *_AGAIN, "OPTIMIZE {t}"],
    "clustering of one file": [*_CLUSTERED[:2], "OPTIMIZE {t}"],
    "clustering, all of it": [*_CLUSTERED, "OPTIMIZE {t} FULL"],
    "clustering, all of it again": [*_CLUSTERED, *_AGAIN, "OPTIMIZE {t} FULL", "OPTIMIZE {t} FULL"],
    "clustering by other columns": [
        *_CLUSTERED,
        "OPTIMIZE {t}",
        "ALTER TABLE {t} CLUSTER BY (s)",
        "OPTIMIZE {t}",
    ],
    "clustering by other columns, of more": [
        *_CLUSTERED,
        "OPTIMIZE {t}",
        "ALTER TABLE {t} CLUSTER BY (s)",
        *_AGAIN[1:],
        "OPTIMIZE {t}",
    ],
    "clustering by other columns, all of it": [
        *_CLUSTERED,
        "OPTIMIZE {t}",
        "ALTER TABLE {t} CLUSTER BY (s)",
        "OPTIMIZE {t} FULL",
    ],
    "clustering no more": [*_CLUSTERED, "ALTER TABLE {t} CLUSTER BY NONE", "OPTIMIZE {t}"],
    "clustering no more, all of it": [
        *_CLUSTERED,
        "ALTER TABLE {t} CLUSTER BY NONE",
        "OPTIMIZE {t} FULL",
    ],
    "clustering after a DELETE": [*_CLUSTERED, "OPTIMIZE {t}", _DELETED, "OPTIMIZE {t}"],
    "clustering, then PURGE": [
        *_CLUSTERED,
        "OPTIMIZE {t}",
        _DELETED,
        "REORG TABLE {t} APPLY (PURGE)",
    ],
    "clustering with ZORDER BY": [*_CLUSTERED, "OPTIMIZE {t} ZORDER BY (id)"],
    "clustering with WHERE": [*_CLUSTERED, "OPTIMIZE {t} WHERE id > 3"],
    "OPTIMIZE of an empty table": [_EMPTY, "OPTIMIZE {t}"],
    "OPTIMIZE of no table": ["OPTIMIZE {t}"],
    "OPTIMIZE of no name": ["OPTIMIZE {n}"],
}
"""Run where there is no table."""

OTHERS: Mapping[str, Sequence[Step]] = {
    "RESTORE": [_DELETED, "RESTORE TABLE {t} TO VERSION AS OF 1"],
    "RESTORE of nothing": ["RESTORE TABLE {t} TO VERSION AS OF 1"],
    "RESTORE to a version to come": ["RESTORE TABLE {t} TO VERSION AS OF 9"],
    "VACUUM": ["VACUUM {t}"],
    "VACUUM without retention": ["VACUUM {t} RETAIN 0 HOURS"],
    "VACUUM of a dry run": [_DELETED, vacuuming("VACUUM {t} RETAIN 0 HOURS DRY RUN")],
}
"""Run on tables of three files, with and without vectors."""

CARE: Mapping[str, Scenario] = {
    **{
        f"{name} ({what})": Scenario(steps, PROPERTIES[what], partitioned=partitioned)
        for what in ("plain", "vectors")
        for cases, partitioned in ((OPTIMIZING, False), (OF_PARTITIONS, True), (OTHERS, False))
        for name, steps in cases.items()
    },
    **{name: Scenario(steps, None) for name, steps in CLUSTERING.items()},
}
_HIDDEN = re.compile(r"Time|[sS]ize|^(min|max|avg)$")


class CareAnswers:
    """Runs commands in a session, each on a table of its own."""

    def __init__(self, history: History) -> None:
        self._history = history

    def answer(self, scenario: Scenario) -> dict[str, object]:
        """What the last step answers, writes into the history, and tells of its files.

        Sizes and times are told by their names alone, and an error by its condition.
        """
        try:
            done = self._history.run(scenario)
        except Exception as error:  # noqa: BLE001 - any may come, and the caller compares it
            return {"error": condition_of(error)}
        rows = [_plain(row.asDict(recursive=True), done.path) for row in done.rows]
        return {
            "answer": rows,
            "history": done.told,
            "files": [_files(commit) for commit in done.commits],
        }


def _plain(value: object, path: str) -> object:
    if isinstance(value, Mapping):
        return {
            name: None
            if _HIDDEN.search(name) and not isinstance(each, Mapping)
            else _plain(each, path)
            for name, each in value.items()
        }
    return value.replace(path, "PATH") if isinstance(value, str) else value


def _files(commit: Path) -> list[object]:
    """How a commit tells of files, each kind once."""
    kinds = {}
    for line in commit.read_text(encoding="utf-8").splitlines():
        for action, told in json.loads(line).items():
            if action in ("add", "remove"):
                tags = {
                    name: value if name != "ZCUBE_ID" else None
                    for name, value in sorted((told.get("tags") or {}).items())
                }
                kind = {
                    "action": action,
                    "dataChange": told["dataChange"],
                    "clusteringProvider": told.get("clusteringProvider"),
                    "tags": tags,
                    "hasVector": told.get("deletionVector") is not None,
                }
                kinds[json.dumps(kind, sort_keys=True)] = kind
    return [kinds[key] for key in sorted(kinds)]
