"""A log written without the engine, and a model of what it says.

The writers here are as plain as can be, and so is the model: row by row, in dictionaries.
"""

import io
import itertools
import json
import uuid
from collections import Counter
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from foreign_tables import multi_part_checkpoint_name
from optimist.core import DeltaLog
from optimist.core.log.file_table import canonical_path
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    classic_checkpoint_name,
    commit_name,
    compacted_name,
    log_path_of,
    v2_checkpoint_name,
)
from optimist.core.options.engine import EngineOptions
from optimist.core.testing import ManualClock
from optimist.logstores import MemoryLogStore

_COUNTER = itertools.count()
KINDS = ("classic", "multi-part", "v2 json", "v2 parquet", "v2 classic name", "v2 no sidecar")
PROTOCOL = {
    "minReaderVersion": 3,
    "minWriterVersion": 7,
    "readerFeatures": ["deletionVectors", "v2Checkpoint"],
    "writerFeatures": ["deletionVectors", "v2Checkpoint"],
}
SCHEMA_TEXT = json.dumps(
    {
        "type": "struct",
        "fields": [
            {"name": "p", "type": "string", "nullable": True, "metadata": {}},
            {"name": "x", "type": "long", "nullable": True, "metadata": {}},
        ],
    }
)

MAP = pa.map_(pa.string(), pa.string())
LIST = pa.list_(pa.string())


def struct(text="", longs="", **others):
    columns = dict.fromkeys(text.split(), pa.string()) | dict.fromkeys(longs.split(), pa.int64())
    return pa.struct(columns | others)


VECTOR_TYPE = struct("storageType pathOrInlineDv", "offset sizeInBytes cardinality")
FILE = {"dataChange": pa.bool_(), "deletionVector": VECTOR_TYPE}
COLUMNS = {
    "txn": struct("appId", "version"),
    "add": struct("path stats", "size modificationTime", partitionValues=MAP, **FILE),
    "remove": struct("path", "deletionTimestamp", **FILE),
    "metaData": struct(
        "id schemaString",
        format=struct("provider", options=MAP),
        partitionColumns=LIST,
        configuration=MAP,
    ),
    "protocol": struct(
        "", "minReaderVersion minWriterVersion", readerFeatures=LIST, writerFeatures=LIST
    ),
    "domainMetadata": struct("domain configuration", removed=pa.bool_()),
    "checkpointMetadata": struct("", "version", tags=MAP),
    "sidecar": struct("path", "sizeInBytes modificationTime"),
}


def metadata(name="m0"):
    return {
        "id": name,
        "format": {"provider": "parquet", "options": {}},
        "schemaString": SCHEMA_TEXT,
        "partitionColumns": ["p"],
        "configuration": {"note": name},
    }


def add(path, size=1, vector=None):
    body = {"path": path, "partitionValues": {"p": "1"}, "size": size, "modificationTime": 7}
    body |= {"dataChange": True, "stats": '{"numRecords":3}'}
    return {"add": body | ({"deletionVector": vector} if vector else {})}


def remove(path, vector=None):
    body = {"path": path, "deletionTimestamp": 1 << 60, "dataChange": True}
    return {"remove": body | ({"deletionVector": vector} if vector else {})}


def vector(number):
    return {
        "storageType": "u",
        "pathOrInlineDv": f"ab^-aqEH.-t@S}}K{{vb[*k^{number}",
        "offset": 4,
        "sizeInBytes": 40,
        "cardinality": 2,
    }


class Model:
    """The state, one dictionary entry at a time."""

    def __init__(self):
        self.live, self.gone, self.txns, self.domains = {}, {}, {}, {}
        self.protocol = self.metadata = None

    def apply(self, actions):
        for action in actions:
            ((kind, body),) = action.items()
            if kind in ("add", "remove"):
                dv = body.get("deletionVector")
                key = canonical_path(body["path"]), dv and dv["pathOrInlineDv"]
                into, out_of = (self.live, self.gone)[:: 1 if kind == "add" else -1]
                out_of.pop(key, None)
                into[key] = body
            elif kind == "txn":
                self.txns[body["appId"]] = body
            elif kind == "domainMetadata":
                self.domains[body["domain"]] = body
            elif kind == "protocol":
                self.protocol = body
            elif kind == "metaData":
                self.metadata = body

    def others(self):
        domains = [body for body in self.domains.values() if not body.get("removed")]
        yield {"protocol": self.protocol}
        yield {"metaData": self.metadata}
        yield from ({"txn": body} for body in self.txns.values())
        yield from ({"domainMetadata": body} for body in domains)

    def files(self):
        yield from ({"add": body | {"dataChange": False}} for body in self.live.values())
        yield from ({"remove": body | {"dataChange": False}} for body in self.gone.values())


class Table:
    """A table in memory, written without the engine."""

    def __init__(self):
        self.path = f"memory://any/t{next(_COUNTER)}"
        self.log = log_path_of(self.path)
        self.clock = ManualClock(now_ms=1_800_000_000_000)
        self.store = Counting(clock=self.clock)
        self.model = Model()
        self.version = -1
        self.checkpoints = itertools.count()

    def put(self, name, data):
        self.clock.advance(1)
        self.store.put_overwrite(f"{self.log}/{name}", data)
        return name

    def commit(self, *actions):
        self.version += 1
        self.model.apply(actions)
        info = {"commitInfo": {"timestamp": self.version, "operation": "WRITE"}}
        self.put(commit_name(self.version), as_lines([info, *actions]))

    def compact(self, first, last):
        lines = []
        for version in range(first, last + 1):
            data = self.store.read_bytes(f"{self.log}/{commit_name(version)}")
            lines += [json.loads(line) for line in data.splitlines()]
        run = Model()
        run.apply(lines)
        state = [({"protocol": run.protocol}), ({"metaData": run.metadata})]
        state += [{"txn": body} for body in run.txns.values()]
        state += [{"domainMetadata": body} for body in run.domains.values()]
        present = [item for item in state if all(item.values())]
        self.put(compacted_name(first, last), as_lines([*present, *run.files()]))

    def checkpoint(self, kind="classic", *, hint=True, parts=2):
        """Names of the files, top level first."""
        others, files = list(self.model.others()), list(self.model.files())
        names = self._written(kind, others, files, parts)
        if hint:
            size = len(others) + len(files)
            self.put(LAST_CHECKPOINT, json.dumps({"version": self.version, "size": size}).encode())
        return names

    def _written(self, kind, others, files, parts):
        unique = f"{uuid.UUID(int=next(self.checkpoints))}"
        if kind == "classic":
            return [self.put(classic_checkpoint_name(self.version), as_parquet(others + files))]
        shares = [files[part::parts] for part in range(parts)]
        if kind == "multi-part":
            shares[0] = others + shares[0]
            return [
                self.put(multi_part_checkpoint_name(self.version, part, parts), as_parquet(share))
                for part, share in enumerate(shares, 1)
            ]
        shares = [] if kind == "v2 no sidecar" else shares
        named = [(f"side car {unique}.{part}.parquet", share) for part, share in enumerate(shares)]
        sidecars = [self.put(f"_sidecars/{name}", as_parquet(share)) for name, share in named]
        tags = {"numOfAddFiles": str(len(self.model.live))}
        top = [{"checkpointMetadata": {"version": self.version, "tags": tags}}]
        for name, _ in named:
            top.append({"sidecar": {"path": quote(name), "sizeInBytes": 1, "modificationTime": 1}})
        top += others + ([] if named else files)
        name, data = {
            "v2 json": (v2_checkpoint_name(self.version, unique, "json"), as_lines),
            "v2 no sidecar": (v2_checkpoint_name(self.version, unique, "json"), as_lines),
            "v2 parquet": (v2_checkpoint_name(self.version, unique, "parquet"), as_parquet),
            "v2 classic name": (classic_checkpoint_name(self.version), as_parquet),
        }[kind]
        return [self.put(name, data(top)), *sidecars]

    def open(self, options=None):
        return DeltaLog(
            self.path, self.store, EngineOptions.from_options(options or {}), clock=self.clock
        )

    def cut(self, name, length):
        path = f"{self.log}/{name}"
        self.store.put_overwrite(path, self.store.read_bytes(path)[:length])


class Counting(MemoryLogStore):
    """Counts requests by what they ask for."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.requests = Counter()
        self.listed = 0

    def read_bytes(self, path):
        self.requests["read " + path.rpartition("/")[2]] += 1
        return super().read_bytes(path)

    def list_from(self, path):
        self.requests["list " + path.rpartition("/")[2]] += 1
        for status in super().list_from(path):
            self.listed += 1
            yield status


def as_lines(actions):
    return "".join(json.dumps(action) + "\n" for action in actions).encode()


def as_parquet(actions, columns=COLUMNS):
    sink = io.BytesIO()
    rows = [{key: paired(body) for key, body in action.items()} for action in actions]
    used = {name: kind for name, kind in columns.items() if any(name in row for row in rows)}
    schema = pa.schema(used or {"add": columns["add"]})
    pq.write_table(pa.Table.from_pylist(rows, schema=schema), sink, row_group_size=5)
    return sink.getvalue()


def paired(body):
    """Maps as the pairs that Arrow wants them in, and what holds maps."""
    maps = ("partitionValues", "configuration", "tags", "options")
    changed = {key: value for key, value in body.items() if isinstance(value, dict)}
    return body | {k: [*v.items()] if k in maps else paired(v) for k, v in changed.items()}


def created():
    table = Table()
    table.commit({"protocol": PROTOCOL}, {"metaData": metadata()})
    return table


def ensure_equal(snapshot, model):
    """The snapshot says what the model says, in every part of the state."""
    found = {
        (
            canonical_path(row["path"]),
            row["deletionVector"] and row["deletionVector"]["pathOrInlineDv"],
        ): row
        for row in snapshot.files.to_pylist()
    }
    assert len(found) == snapshot.num_files
    assert {key: row["size"] for key, row in found.items()} == {
        key: body["size"] for key, body in model.live.items()
    }
    assert sorted(snapshot.tombstones["path"].to_pylist()) == sorted(
        body["path"] for body in model.gone.values()
    )
    assert {app: txn.version for app, txn in snapshot.set_transactions.items()} == {
        app: body["version"] for app, body in model.txns.items()
    }
    assert {name: item.configuration for name, item in snapshot.domain_metadata.items()} == {
        name: body["configuration"]
        for name, body in model.domains.items()
        if not body.get("removed")
    }
    assert snapshot.metadata.id == model.metadata["id"]
    assert snapshot.metadata.configuration == model.metadata["configuration"]
    assert list(snapshot.protocol.reader_features or ()) == model.protocol["readerFeatures"]


def busy_table(kind, *, hint=True):
    table = created()
    table.commit(
        *(add(f"f{number}", number) for number in range(6)), {"txn": {"appId": "a", "version": 1}}
    )
    table.checkpoint("classic", hint=False)
    table.commit(remove("f0"), add("f1", 11, vector(1)), {"txn": {"appId": "a", "version": 2}})
    names = table.checkpoint(kind, hint=hint)
    table.commit(add("after"))
    return table, names
