"""Run by test_odd_on_connect.py in a process of its own: prints what happened as JSON lines.

A session of Spark Connect can't live beside a classic one.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pyarrow as pa
from pyspark.sql import SparkSession

from bad_commands import MISTAKES, append_rows, kind_of_mistake
from connect_process import kind_of, tell
from hostile_log import HostileTable
from merge_session import tell_merges
from odd_session import (
    frame_of_rows,
    odd_rows,
    tell_names,
    wrong_answers,
)
from odd_tables import spelled
from odd_values import COLUMNS
from optimist.core import DeltaLog
from optimist.core.log.names import commit_path
from optimist.core.protocol.actions import AddFile, actions_to_bytes
from optimist.core.schema.types import MAX_TYPE_DEPTH
from optimist.spark import DeltaTable, read, write
from read_back import ids


def main(folder: str) -> None:
    spark = SparkSession.builder.remote("local[2]").getOrCreate()
    spark.conf.set("spark.sql.session.timeZone", "UTC")
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    tell_merges(spark, f"{folder}/merges")
    tell("odd names", tell_names(spark, f"{folder}/odd"))
    odd = odd_rows()
    write(frame_of_rows(spark, odd), f"{folder}/odd/values", maxRecordsPerFile=4)
    frame = read(spark, f"{folder}/odd/values")
    tell("odd values", spelled(frame.toArrow().to_pylist()) == spelled(odd.to_pylist()))
    tell("wrong answers", wrong_answers(frame, odd, COLUMNS))
    foreign_paths(spark, folder)
    odd_schemas(spark, folder)
    mistakes(spark, f"{folder}/mistakes")
    spark.stop()


def mistakes(spark: SparkSession, path: str) -> None:
    """What users get wrong, where it ends differently than in a classic session."""
    append_rows(path)
    found = {name: kind_of_mistake(spark, path, run) for name, (run, _) in MISTAKES.items()}
    tell("mistakes", {name: found[name] for name in MISTAKES if found[name] != MISTAKES[name][1]})
    tell("after the mistakes", DeltaLog.for_path(path).snapshot().version)


def foreign_paths(spark: SparkSession, folder: str) -> None:
    """Files that are not the table's: another scheme's, and those of a table beside it."""
    path, other = f"{folder}/foreign/t", f"{folder}/foreign/other"
    write(spark.range(3), path)
    write(spark.range(100, 103).coalesce(1), other)
    (name,) = DeltaLog.for_path(other).files()["path"].to_pylist()
    secret = Path(other) / name
    before = secret.read_bytes()
    log = DeltaLog.for_path(path)
    size = secret.stat().st_size

    def put(version: int, *actions) -> None:
        log.store.put_if_absent(commit_path(log.log_path, version), actions_to_bytes(actions))

    put(1, AddFile(secret.as_uri(), {}, size, 1, True))
    table = DeltaTable.forPath(spark, path)
    tell("outside read", ids(read(spark, path)))
    tell("outside rewritten", kind_of(lambda: table.delete("id = 101")))
    spark.conf.set("spark.optimist.paths.outsideTable", "never")
    tell("outside never", asked_kind(lambda: ids(read(spark, path))))
    spark.conf.unset("spark.optimist.paths.outsideTable")
    put(2, AddFile("reference://k::file:///refs.json", {}, 10, 1, True))
    tell("foreign read", asked_kind(lambda: ids(read(spark, path))))
    tell("foreign delete", kind_of(lambda: table.delete("id = 1")))
    tell("canary", secret.read_bytes() == before)


def odd_schemas(spark: SparkSession, folder: str) -> None:
    """Structs as deep in each other as they may be, and deeper; a collation that nobody knows."""
    deepest = HostileTable(f"{folder}/deepest", schema_of_structs(MAX_TYPE_DEPTH))
    log = DeltaLog.for_path(deepest.path)
    rows = [{"id": 1, "s": nested(7)}, {"id": 2, "s": nested(8)}]
    log.append(pa.Table.from_pylist(rows, schema=log.to_arrow().schema))
    frame = read(spark, deepest.path)
    tell("deepest", frame.orderBy("id").toArrow().to_pylist() == rows)
    tell("deepest row", frame.where("id = 1").collect()[0].asDict(recursive=True) == rows[0])
    leaf = "s" + ".a" * MAX_TYPE_DEPTH
    tell("deepest leaf", ids(frame.where(f"{leaf} = 8")))
    write(frame.where("id = 1"), deepest.path, mode="append")
    DeltaTable.forPath(spark, deepest.path).delete("id = 2")
    tell("deepest written", log.to_arrow().to_pylist() == [rows[0], rows[0]])
    for name, text in (
        ("too deep", schema_of_structs(MAX_TYPE_DEPTH + 1)),
        ("far too deep", schema_of_structs(20_000)),
        ("nobody's collation", collated("nobody.UNICODE")),
        ("unknown collation", collated("icu.NO_SUCH_COLLATION")),
        ("known collation", collated("icu.UNICODE_CI")),
    ):
        path = HostileTable(f"{folder}/{name}", text).path
        tell(name, kind_of(lambda path=path: read(spark, path)))


def schema_of_structs(depth: int) -> str:
    kind = '{"type":"struct","fields":[{"name":"a","type":' * depth + '"long"'
    kind += ',"nullable":true,"metadata":{}}]}' * depth
    fields = (
        f'{{"name":"{name}","type":{kind},"nullable":true,"metadata":{{}}}}'
        for name, kind in (("id", '"long"'), ("s", kind))
    )
    return f'{{"type":"struct","fields":[{",".join(fields)}]}}'


def nested(value: object) -> object:
    for _ in range(MAX_TYPE_DEPTH):
        value = {"a": value}
    return value


def collated(name: str) -> str:
    metadata = {"__COLLATIONS": {"c": name}}
    field = {"name": "c", "type": "string", "nullable": True, "metadata": metadata}
    return json.dumps({"type": "struct", "fields": [field]})


def asked_kind(call) -> str:
    """The kind within what Spark makes of an error of a frame that the user acts on."""
    try:
        call()
    except Exception as error:  # noqa: BLE001 - the test looks at what came
        found = re.search(r"\[(OPTIMIST_\w+)\]", str(error))
        return found[1] if found else repr(error)
    return "nothing"


if __name__ == "__main__":
    main(sys.argv[1])
