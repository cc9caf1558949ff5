"""Logs as other engines leave them behind: checkpoints of every kind, compacted commits, damage.

The writers here are as plain as can be, and so is the model: row by row, in dictionaries.
"""

import io
import itertools
import json
import logging
import uuid
from collections import Counter
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from optimist.core import DeltaLog
from optimist.core.errors import OptimistError, TableError
from optimist.core.log.file_table import canonical_path
from optimist.core.log.names import (
    LAST_CHECKPOINT,
    classic_checkpoint_name,
    commit_name,
    compacted_name,
    log_path_of,
    multi_part_checkpoint_name,
    v2_checkpoint_name,
)
from optimist.core.options import EngineOptions
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


_paths = st.sampled_from(["a", "b", "p=1/c", "x y", "x%20y", "file:/d/e", "/d/e"])
_vectors = st.sampled_from([None, None, vector(1), vector(2)])
_actions = st.one_of(
    st.builds(add, _paths, st.integers(0, 9), _vectors),
    st.builds(remove, _paths, _vectors),
    st.builds(
        lambda app, version: {"txn": {"appId": app, "version": version}},
        st.sampled_from("ab"),
        st.integers(0, 5),
    ),
    st.builds(
        lambda name, removed: {
            "domainMetadata": {"domain": name, "configuration": name * 2, "removed": removed}
        },
        st.sampled_from("de"),
        st.booleans(),
    ),
    st.builds(lambda name: {"metaData": metadata(name)}, st.sampled_from(["m1", "m2"])),
)
_commits = st.lists(st.lists(_actions, min_size=1, max_size=4), min_size=1, max_size=9)


@settings(deadline=None, max_examples=60)
@given(_commits, st.data())
def test_a_random_log_with_random_checkpoints_reads_like_the_naive_model(commits, data):
    table = created()
    reader = table.open()
    for actions in commits:
        table.commit(*actions)
        kinds = st.sampled_from([None, None, *KINDS])
        kind = data.draw(kinds, label="checkpoint")
        if kind:
            table.checkpoint(kind, hint=data.draw(st.booleans(), label="hint"))
        elif table.version > 2 and data.draw(st.booleans(), label="compact"):
            first = data.draw(st.integers(0, table.version - 1), label="first")
            table.compact(first, table.version)
        if data.draw(st.booleans(), label="look"):
            ensure_equal(reader.update(), table.model)
    ensure_equal(reader.update(), table.model)
    ensure_equal(table.open().update(), table.model)


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


@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_of_any_kind_stands_in_for_the_commits_before_it(kind):
    table, _ = busy_table(kind)
    for version in range(2):
        table.store.delete(f"{table.log}/{commit_name(version)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    ensure_equal(table.open().update(), table.model)


@pytest.mark.parametrize("kind", KINDS)
def test_opening_asks_for_one_list_page_the_hint_the_checkpoint_and_the_commits_since(kind):
    table = created()
    for number in range(40):
        table.commit(add(f"f{number}"))
    names = table.checkpoint(kind)
    table.commit(add("x"))
    table.commit(add("y"))
    for number in range(30):
        table.put(f"{number:020d}.json.{number}.tmp", b"?")
    table.store.requests.clear()
    table.store.listed = 0
    snapshot = table.open().update()
    top = [name for name in names if not name.startswith("_sidecars/")]
    opened = Counter({f"read {name}": 1 for name in top})
    opened |= {f"list {40:020d}": 0, f"read {LAST_CHECKPOINT}": 1, f"list {40:020d}.": 1}
    opened |= {f"read {commit_name(version)}": 1 for version in (41, 42)}
    assert table.store.requests == +opened
    assert table.store.listed <= len(top) + 3 + 1
    table.store.requests.clear()
    assert snapshot.num_files == 42
    # Parquet is opened again for the columns of the files; nothing is listed again.
    files = [name.rpartition("/")[2] for name in names if not name.endswith(".json")]
    assert set(table.store.requests) <= {f"read {name}" for name in files}


def test_looking_again_lists_once_and_reads_only_what_came():
    table, _ = busy_table("v2 json")
    log = table.open()
    assert log.update().num_files == 7
    table.store.requests.clear()
    assert log.update().version == 3
    assert table.store.requests == {f"list {3:020d}.": 1}
    table.commit(add("one more"))
    table.store.requests.clear()
    assert log.update().num_files == 8
    assert table.store.requests == {f"list {3:020d}.": 1, f"read {commit_name(4)}": 1}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "v2 no sidecar"])
def test_a_missing_part_or_sidecar_is_passed_over_for_an_older_checkpoint_once(kind, caplog):
    table, names = busy_table(kind)
    table.store.delete(f"{table.log}/{names[-1]}")
    with caplog.at_level(logging.WARNING, logger="optimist.core.log"):
        log = table.open()
        ensure_equal(log.update(), table.model)
        ensure_equal(log.update(), table.model)
    assert len(caplog.records) == (1 if kind.startswith("v2") and len(names) > 1 else 0)


def test_a_missing_sidecar_that_nothing_stands_in_for_is_named():
    table, names = busy_table("v2 json")
    table.store.delete(f"{table.log}/{names[-1]}")
    table.store.delete(f"{table.log}/{commit_name(0)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    snapshot = table.open().update()
    with pytest.raises(TableError, match=r"side car .*which is not there") as caught:
        _ = snapshot.files
    assert caught.value.kind == "DELTA_MISSING_PART_FILES"
    assert caught.value.fields == {"path": f"{table.log}/{names[-1]}", "version": 2}


def test_a_part_too_few_with_nothing_older_is_an_error():
    table, names = busy_table("multi-part")
    table.store.delete(f"{table.log}/{names[0]}")
    table.store.delete(f"{table.log}/{commit_name(0)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    with pytest.raises(TableError) as caught:
        table.open().update()
    assert caught.value.kind == "DELTA_MISSING_PART_FILES"


def test_a_sidecar_is_found_by_its_name_wherever_its_checkpoint_says_it_was():
    table = created()
    table.commit(add("a"))
    sidecar = table.put("_sidecars/one file.parquet", as_parquet([add("a")]))
    path = "s3://old-bucket/t/_delta_log/" + quote(sidecar)
    table.put(
        v2_checkpoint_name(1, "u", "json"),
        as_lines(
            [
                {"checkpointMetadata": {"version": 1}},
                {"sidecar": {"path": path, "sizeInBytes": 1, "modificationTime": 1}},
                {"protocol": PROTOCOL},
                {"metaData": metadata()},
            ]
        ),
    )
    table.store.delete(f"{table.log}/{commit_name(0)}")
    assert table.open().update().files["path"].to_pylist() == ["a"]


@pytest.mark.parametrize(
    "lines",
    [
        [{"checkpointMetadata": {"version": 2}}, {"protocol": PROTOCOL}, {"metaData": metadata()}],
        [{"checkpointMetadata": {"version": 1}}, {"protocol": PROTOCOL}],
        [{"checkpointMetadata": {"version": 1}}, {"metaData": metadata()}],
        [{"checkpointMetadata": 1}, {"protocol": PROTOCOL}, {"metaData": metadata()}],
        [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"sidecar": {"path": ""}}],
        [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"sidecar": {}}],
        [{"protocol": PROTOCOL}, {"metaData": metadata()}, {"add": {"path": "a", "size": "1"}}],
    ],
)
def test_a_top_level_file_that_contradicts_itself_is_passed_over(lines):
    table = created()
    table.commit(add("right"))
    table.put(v2_checkpoint_name(1, "u", "json"), as_lines(lines))
    ensure_equal(table.open().update(), table.model)
    table.store.delete(f"{table.log}/{commit_name(0)}")
    with pytest.raises(TableError) as caught:
        _ = table.open().update().files
    assert caught.value.kind == "OPTIMIST_MALFORMED_CHECKPOINT"


def test_another_checkpoint_of_the_same_version_serves_as_well(caplog):
    table, names = busy_table("v2 parquet")
    table.version -= 1
    table.model.live.pop(("after", None))
    table.checkpoint("classic")
    table.model.apply([add("after")])
    table.cut(names[0], 100)
    for version in (0, 1):
        table.store.delete(f"{table.log}/{commit_name(version)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    ensure_equal(table.open().update(), table.model)


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_a_checkpoint_cut_anywhere_never_gives_a_wrong_answer(kind, data):
    table, names = busy_table(kind)
    name = data.draw(st.sampled_from(names))
    whole = table.store.read_bytes(f"{table.log}/{name}")
    # A cut at the very end of a line of JSON may leave a whole checkpoint of less.
    lengths = [n for n in range(len(whole)) if whole[n - 1 : n] != b"\n"]
    table.cut(name, data.draw(st.sampled_from(lengths)))
    ensure_equal(table.open().update(), table.model)
    for version in (0, 1):
        table.store.delete(f"{table.log}/{commit_name(version)}")
    table.store.delete(f"{table.log}/{classic_checkpoint_name(1)}")
    with pytest.raises(OptimistError) as caught:
        ensure_equal(table.open().update(), table.model)
    assert caught.value.kind in ("OPTIMIST_MALFORMED_CHECKPOINT", "DELTA_MISSING_PART_FILES")


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_a_hint_that_is_cut_or_changed_never_gives_a_wrong_answer(data):
    table, _ = busy_table("classic")
    good = json.dumps({"version": 2, "size": 9, "sizeInBytes": 77}).encode()
    edited = bytearray(good)
    for _ in range(data.draw(st.integers(0, 3))):
        edited[data.draw(st.integers(0, len(good) - 1))] = data.draw(st.integers(0, 255))
    table.put(LAST_CHECKPOINT, bytes(edited[: data.draw(st.integers(0, len(good)))]))
    ensure_equal(table.open().update(), table.model)


@pytest.mark.parametrize("version", [0, 1, 3, 5, 10**6, 10**15, 10**30, -1])
def test_a_hint_that_lies_costs_little(version):
    table, _ = busy_table("classic")
    table.put(LAST_CHECKPOINT, json.dumps({"version": version, "size": 1}).encode())
    table.store.requests.clear()
    ensure_equal(table.open().update(), table.model)
    assert sum(n for what, n in table.store.requests.items() if what.startswith("list")) <= 3


def test_compacted_commits_are_read_in_place_of_commits():
    table = created()
    for number in range(8):
        table.commit(add(f"f{number}"), {"txn": {"appId": "a", "version": number}})
    table.commit(remove("f3"), {"domainMetadata": {"domain": "d", "configuration": "dd"}})
    table.compact(2, 4)
    table.compact(2, 6)
    table.compact(5, 8)
    table.compact(7, 8)
    table.compact(7, 8)
    table.store.requests.clear()
    ensure_equal(table.open().update(), table.model)
    read = {what[5:] for what in table.store.requests if what.startswith("read")}
    expected = {commit_name(0), commit_name(1), compacted_name(2, 6), compacted_name(7, 8)}
    assert read == {*expected, commit_name(9), LAST_CHECKPOINT}
    off = {"spark.databricks.delta.deltaLog.minorCompaction.useForReads": "false"}
    table.store.requests.clear()
    ensure_equal(table.open(off).update(), table.model)
    assert not any("compacted" in what for what in table.store.requests)


@pytest.mark.parametrize("length", [0, 1, 40, -2])
def test_compacted_commits_that_are_damaged_are_passed_over(length, caplog):
    table = created()
    for number in range(5):
        table.commit(add(f"f{number}"))
    table.compact(1, 4)
    table.cut(compacted_name(1, 4), length)
    with caplog.at_level(logging.WARNING, logger="optimist.core.log"):
        ensure_equal(table.open().update(), table.model)
    assert len(caplog.records) == (1 if length else 0)


def test_versions_without_padding_are_read_from_the_first_on():
    table = created()
    table.commit(add("a"))
    table.commit(add("b"))
    for version in range(3):
        path = f"{table.log}/{commit_name(version)}"
        table.put(f"{version}.json", table.store.read_bytes(path))
        table.store.delete(path)
    ensure_equal(table.open().update(), table.model)
    assert table.open().snapshot(version=1).num_files == 1


def test_foreign_and_empty_files_do_no_harm():
    table, _ = busy_table("v2 json")
    for name in ("2.checkpoint.parquet.crc", ".hidden", "x.json", f"{9:020d}.json.tmp", "é"):
        table.put(name, b"?")
    for name in (classic_checkpoint_name(3), v2_checkpoint_name(3, "u", "json"), f"{3:020d}.crc"):
        table.put(name, b"")
    ensure_equal(table.open().update(), table.model)


def test_a_gap_between_checkpoint_and_commits_names_both_versions():
    table, _ = busy_table("multi-part")
    table.commit(add("z"))
    table.store.delete(f"{table.log}/{commit_name(3)}")
    with pytest.raises(TableError) as caught:
        table.open().update()
    assert caught.value.kind == "DELTA_TRUNCATED_TRANSACTION_LOG"
    assert caught.value.fields["missing_version"] == 3
