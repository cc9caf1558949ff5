"""A table that grows by one file with each version, with whatever features its properties say."""

from __future__ import annotations

import json
from dataclasses import replace

import pyarrow as pa

from hand_made_tables import data_file, field, inline_vector, make_table
from optimist.core.protocol.actions import actions_to_bytes

ID, NAME = field("id", "long"), field("name", "string")


class GrownTable:
    """Version 0 has the properties, given by names whose dots are two underscores."""

    def __init__(self, root, fields, *, partitions=(), features=(), **configuration):
        self.root = make_table(
            root,
            fields,
            (),
            partition_columns=partitions,
            configuration={
                f"delta.{key.replace('__', '.')}": value for key, value in configuration.items()
            },
            features=("deletionVectors", *features),
            writer_features=("rowTracking", "domainMetadata"),
        )
        self.version = 1

    @property
    def path(self):
        return str(self.root)

    def add(self, name, rows, *, deleted=None, vector=None, values=None, stats=None, **more):
        """Write a file and commit it; `deleted` rows become an inline vector."""
        vector = vector if deleted is None else inline_vector(deleted)
        file = f"{name}.parquet"
        add = data_file(self.root, file, rows, partition=values, vector=vector, row_group_size=1000)
        told = json.dumps({"numRecords": rows.num_rows, **(stats or {})})
        commit = actions_to_bytes((replace(add, stats=told, **more),))
        (self.root / "_delta_log" / f"{self.version:020}.json").write_bytes(commit)
        self.version += 1


def numbers(start, count):
    """Rows of `ID` and `NAME`."""
    ids = pa.array(range(start, start + count), pa.int64())
    return pa.table({"id": ids, "name": [f"n{i}" for i in range(start, start + count)]})
