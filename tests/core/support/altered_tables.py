"""Tables for tests of ALTER TABLE, and what their last commit says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from optimist.core import DeltaLog
from optimist.core.protocol.actions import action_to_dict

MAPPED = {"delta.columnMapping.mode": "name"}


def table(path, rows=None, *, properties=None, **options):
    log = DeltaLog.for_path(str(path))
    rows = rows if rows is not None else {"id": pa.array([1, 2, 3]), "s": ["a", "b", None]}
    log.append(pa.table(rows), **options)
    if properties:
        log.alter.set_properties(properties)
    return log


def nested(path, *, properties=MAPPED):
    kind = pa.struct([("a", pa.int32()), ("b", pa.list_(pa.struct([("c", pa.string())])))])
    values = [{"a": 1, "b": [{"c": "x"}]}, None]
    return table(path, {"id": pa.array([1, 2]), "p": pa.array(values, kind)}, properties=properties)


def said(log):
    """The last commit's operation and parameters, with the JSON inside of these read."""
    info = log.history(1)[0].info
    assert info is not None
    parameters = {
        key: json.loads(value) if isinstance(value, str) and value.startswith(("[", "{")) else value
        for key, value in (info.operation_parameters or {}).items()
    }
    return info.operation, parameters


def configuration(log):
    return log.metadata.configuration


def commit_metadata(log, *, protocol=None, **changed):
    """Commit other metadata, and perhaps a protocol, around every check, as any engine may."""
    newest = log.snapshot()
    actions = [replace(newest.metadata, **changed), *([protocol] if protocol else [])]
    lines = (json.dumps(action_to_dict(action)) for action in actions)
    file = Path(log.log_path) / f"{newest.version + 1:020}.json"
    file.write_text("".join(f"{line}\n" for line in lines))
