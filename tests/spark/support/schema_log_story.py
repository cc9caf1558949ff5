"""One stream with a log of schemas over a table whose columns change: what its checkpoint holds.

It runs with delta-spark for the record, and with Optimist for the test that holds it against that.
"""

import json
import re
from pathlib import Path

__all__ = ["told_by"]

NAMES = "'delta.columnMapping.mode'='name', 'delta.enableTypeWidening'='true'"
RENAME = {"allowSourceColumnRename": "always"}
DROP_AT_5 = {"allowSourceColumnDrop": "5"}
CONF = {"spark.databricks.delta.streaming.allowSourceColumnRenameAndDrop": "always"}
_NOTES = r'(,\\"delta\.typeChanges\\":\[.*?\]|,\\"comment\\":\\".*?\\")'
_PHYSICAL_NAME = r'(,\\"delta\.columnMapping\.physicalName\\":\\"[^"]*\\")'
STORY = [
    # What happens to the table, and the options and the conf of each run of the stream after it.
    (
        [
            f"CREATE TABLE {{t}} (id INT, b STRING, c STRING) USING delta TBLPROPERTIES({NAMES})",
            "INSERT INTO {t} VALUES (1, 'b1', 'c1')",
        ],
        [({}, {}), ({}, {})],
    ),
    (
        [
            "INSERT INTO {t} VALUES (2, 'b2', 'c2')",
            "ALTER TABLE {t} RENAME COLUMN b TO bb",
            "INSERT INTO {t} VALUES (3, 'b3', 'c3')",
        ],
        [({}, {}), ({}, {}), (RENAME, {})],
    ),
    (
        ["ALTER TABLE {t} DROP COLUMN c", "INSERT INTO {t} VALUES (4, 'b4')"],
        [(RENAME, {}), ({"allowSourceColumnDrop": "4"}, {}), (DROP_AT_5, {})],
    ),
    (
        ["ALTER TABLE {t} ADD COLUMN d INT", "INSERT INTO {t} VALUES (5, 'b5', 5)"],
        [(DROP_AT_5, {}), ({}, {})],
    ),
    (
        ["ALTER TABLE {t} ALTER COLUMN id TYPE BIGINT", "INSERT INTO {t} VALUES (6, 'b6', 6)"],
        [({}, {}), ({}, {}), ({"allowSourceColumnTypeChange": "always"}, {})],
    ),
    (
        [
            "ALTER TABLE {t} RENAME COLUMN bb TO b",
            "ALTER TABLE {t} RENAME COLUMN d TO dd",
            "ALTER TABLE {t} ADD COLUMN e INT",
            "INSERT INTO {t} VALUES (7, 'b7', 7, 7)",
            "ALTER TABLE {t} SET TBLPROPERTIES('foo'='bar')",
            "INSERT INTO {t} VALUES (8, 'b8', 8, 8)",
            "ALTER TABLE {t} ALTER COLUMN e COMMENT 'the last'",
            "INSERT INTO {t} VALUES (9, 'b9', 9, 9)",
        ],
        [
            ({"allowSourceColumnTypeChange": "always"}, {}),
            ({"allowSourceColumnRenameAndDrop": "always"}, {}),  # no option, only a key of the conf
            ({}, CONF),
            ({}, {}),
        ],
    ),
]


def told_by(spark, folder):
    """What each run of the stream gives, and what its checkpoint holds in the end.

    Ids that are chosen at random are named by their order. Features and the metadata of columns,
    which the table's own log has in one order or another, stand in one.
    """
    table, checkpoint, told = f"{folder}/table", f"{folder}/checkpoint", {}
    for place, (statements, runs) in enumerate(STORY):
        for statement in statements:
            spark.sql(statement.format(t=f"delta.`{table}`"))
        told[f"runs {place}"] = [
            _run(spark, table, checkpoint, options, conf) for options, conf in runs
        ]
    names = {str(folder): "{folder}"}
    for kind, files in (
        ("log", sorted(Path(checkpoint, "log").glob("_schema_log_*/[0-9]*"))),
        ("offsets", _numbered(Path(checkpoint, "offsets"))),
    ):
        for file in files:
            text = file.read_text("utf-8")
            line = text if kind == "log" else text.splitlines()[-1]
            told[f"{kind} {file.name}"] = _named(line, names)
    return told


def _numbered(folder):
    return sorted(
        (path for path in folder.iterdir() if path.name.isdigit()), key=lambda path: int(path.name)
    )


def _run(spark, table, checkpoint, options, conf):
    seen = []

    def each(batch, number):
        seen.append([number, batch.columns, sorted(map(list, batch.collect()))])

    for key, value in conf.items():
        spark.conf.set(key, value)
    frame = spark.readStream.format("delta").options(**options)
    frame = frame.option("schemaTrackingLocation", f"{checkpoint}/log").load(table)
    writer = frame.writeStream.foreachBatch(each).option("checkpointLocation", checkpoint)
    kind = None
    try:
        writer.trigger(availableNow=True).start().awaitTermination(120)
    except Exception as error:  # noqa: BLE001 - of either engine
        kind = getattr(error, "kind", None) or re.findall(r"\[(DELTA_\w+)\]", str(error))[0]
    for key in conf:
        spark.conf.unset(key)
    return [frame.columns, seen, kind]


def _named(text, names):
    for found in re.findall(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", text):
        names.setdefault(found, f"{{id {len(names)}}}")
    for found, name in names.items():
        text = text.replace(found, name)
    text = re.sub(r'Features\\":\[(.*?)\]', _in_order, text)
    return re.sub(_NOTES + _PHYSICAL_NAME, r"\2\1", text)


def _in_order(listed):
    features = json.loads(f"[{listed[1]}]".replace("\\", ""))
    return 'Features\\":' + json.dumps(sorted(features), separators=(",", ":")).replace('"', '\\"')
