"""Tables written file by file: what no engine at hand writes."""

from __future__ import annotations

import base64
import json
import struct
import uuid
import zlib

import pyarrow.parquet as pq
from pyroaring import BitMap64

from foreign_tables import field
from optimist.core.protocol.actions import (
    AddFile,
    DeletionVectorDescriptor,
    Metadata,
    Protocol,
    actions_to_bytes,
)
from optimist.core.schema.types import schema_from_json

Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"


def z85(data):
    return base64.b85encode(data).decode().translate(str.maketrans(B85, Z85))


def struct_of(*fields):
    return {"type": "struct", "fields": list(fields)}


def array_of(kind):
    return {"type": "array", "elementType": kind, "containsNull": True}


def map_of(key, value):
    return {"type": "map", "keyType": key, "valueType": value, "valueContainsNull": True}


def make_table(
    root,
    fields,
    adds,
    *,
    partition_columns=(),
    configuration=None,
    features=(),
    writer_features=(),
):
    """Version 0 of a table, its data files written already; features are those of readers, too."""
    schema = json.dumps(struct_of(*fields))
    assert schema_from_json(schema)
    metadata = Metadata(
        id=str(uuid.uuid4()),
        schema_string=schema,
        partition_columns=tuple(partition_columns),
        configuration=configuration or {},
    )
    protocol = Protocol(3, 7, tuple(features), (*features, *writer_features))
    log = root / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    commit = actions_to_bytes((protocol, metadata, *adds))
    (log / f"{0:020}.json").write_bytes(commit)
    return root


def data_file(root, name, rows, *, partition=None, vector=None, **options):
    root.mkdir(parents=True, exist_ok=True)
    place = root / name
    pq.write_table(rows, place, **options)
    path = name if not name.startswith("/") else place.as_uri()
    stats = json.dumps({"numRecords": rows.num_rows, "tightBounds": vector is None})
    size = place.stat().st_size
    return AddFile(path, partition or {}, size, 1, True, stats=stats, deletion_vector=vector)


def bitmap(positions):
    return struct.pack("<i", 1681511377) + BitMap64(positions).serialize()


def inline_vector(positions):
    data = bitmap(positions)
    text = z85(data + b"\0" * (-len(data) % 4))
    return DeletionVectorDescriptor("i", text, len(data), len(positions))


def stored_vectors(root, *sets, prefix="", absolute=False):
    """Descriptors of vectors that stand in one file."""
    name = uuid.uuid4()
    folder = root / prefix
    folder.mkdir(parents=True, exist_ok=True)
    place = folder / f"deletion_vector_{name}.bin"
    content, found = b"\x01", []
    for positions in sets:
        data = bitmap(positions)
        kind, text = ("p", place.as_uri()) if absolute else ("u", prefix + z85(name.bytes))
        found.append(DeletionVectorDescriptor(kind, text, len(data), len(positions), len(content)))
        content += struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    place.write_bytes(content)
    return found


def mapped(name, kind, number, physical):
    return field(
        name,
        kind,
        **{"delta.columnMapping.id": number, "delta.columnMapping.physicalName": physical},
    )


def with_id(arrow_field, number):
    return arrow_field.with_metadata({b"PARQUET:field_id": str(number).encode()})
