"""Writes a log without the engine, whatever it says, over data files that are what they are."""

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

SCHEMA_TEXT = json.dumps(
    {
        "type": "struct",
        "fields": [{"name": "x", "type": "long", "nullable": True, "metadata": {}}],
    }
)
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors"],
    "writerFeatures": ["deletionVectors", "changeDataFeed"],
}


def metadata(schema_text=SCHEMA_TEXT, **configuration):
    return {
        "metaData": {
            "id": "00000000-0000-0000-0000-000000000001",
            "format": {"provider": "parquet", "options": {}},
            "schemaString": schema_text,
            "partitionColumns": [],
            "configuration": configuration,
        }
    }


def add(path, size=1, rows=None, **others):
    stats = None if rows is None else json.dumps({"numRecords": rows})
    body = {"path": path, "partitionValues": {}, "size": size, "modificationTime": 0}
    return {"add": body | {"dataChange": True, "stats": stats} | others}


class HostileTable:
    """A table in a folder; `commit` writes the next version."""

    def __init__(self, folder, schema_text=SCHEMA_TEXT, **configuration):
        self.path = str(folder)
        self.log = Path(folder) / "_delta_log"
        self.log.mkdir(parents=True)
        self.version = -1
        self.commit({"protocol": PROTOCOL}, metadata(schema_text, **configuration))

    def commit(self, *actions):
        self.version += 1
        lines = "".join(f"{json.dumps(action)}\n" for action in actions)
        self.put(f"{self.version:020}.json", lines.encode())

    def put(self, name, data):
        (self.log / name).write_bytes(data)

    def data_file(self, name, values):
        """Writes a data file and gives its size."""
        path = Path(self.path) / name
        pq.write_table(pa.table({"x": pa.array(values, pa.int64())}), path)
        return path.stat().st_size
