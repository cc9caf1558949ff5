"""Tables written by delta-spark: the Delta Acceptance Tests, where `OPTIMIST_DAT` says they are."""

import json
import os
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from optimist.core.log.last_checkpoint import read_last_checkpoint
from optimist.core.log.names import log_path_of
from optimist.core.log.segment import list_segment
from optimist.core.options.engine import EngineOptions
from optimist.core.runtime.clock import SystemClock
from optimist.core.snapshot import Snapshot
from optimist.core.snapshot.time_travel import commit_history, ensure_version_exists
from optimist.logstores import LocalLogStore

ROOT = os.environ.get("OPTIMIST_DAT")
TABLES = sorted(Path(ROOT).iterdir()) if ROOT else []
EXPECTED = [
    pytest.param(table, expected, id=f"{table.name}-{expected.name}")
    for table in TABLES
    for expected in sorted((table / "expected").iterdir())
]
pytestmark = pytest.mark.skipif(
    not ROOT, reason="set OPTIMIST_DAT to the folder of the Delta Acceptance Tests"
)
STORE = LocalLogStore()


def load(table, version=None):
    path = str(table / "delta")
    hint = read_last_checkpoint(STORE, log_path_of(path), clock=SystemClock())
    segment = list_segment(
        STORE, log_path_of(path), version=version, hint=hint.version if hint else None
    )
    return Snapshot.load(STORE, path, segment, options=EngineOptions(), clock=SystemClock())


def num_rows(snapshot):
    """By the statistics, less what deletion vectors delete; None where a file has no statistics."""
    files = snapshot.files
    if files["stats"].null_count:
        return None
    deleted = pc.struct_field(files["deletionVector"], "cardinality")
    physical = sum(json.loads(text)["numRecords"] for text in files["stats"].to_pylist())
    return physical - pc.sum(deleted, min_count=0).as_py()


@pytest.mark.parametrize(("table", "expected"), EXPECTED)
def test_version_protocol_and_properties_are_the_expected_ones(table, expected):
    facts = json.loads((expected / "table_version_metadata.json").read_text())
    wanted = None if expected.name == "latest" else facts["version"]
    snapshot = load(table, wanted)
    assert snapshot.version == facts["version"]
    assert snapshot.protocol.min_reader_version == facts["min_reader_version"]
    assert snapshot.protocol.min_writer_version == facts["min_writer_version"]
    configuration = dict(snapshot.metadata.configuration)
    assert {key: configuration[key] for key in facts["properties"]} == facts["properties"]


@pytest.mark.parametrize(("table", "expected"), EXPECTED)
def test_the_live_files_are_there_and_hold_the_expected_rows(table, expected):
    facts = json.loads((expected / "table_version_metadata.json").read_text())
    snapshot = load(table, facts["version"])
    paths = [
        Path(snapshot.data_paths.full_path(path)) for path in snapshot.files["path"].to_pylist()
    ]
    assert all(path.is_file() for path in paths)
    assert [path.stat().st_size for path in paths] == snapshot.files["size"].to_pylist()
    content = pa.concat_tables(
        [pq.read_table(file) for file in (expected / "table_content").glob("*.parquet")],
        promote_options="default",
    )
    assert num_rows(snapshot) in (None, content.num_rows)


@pytest.mark.parametrize("table", [pytest.param(table, id=table.name) for table in TABLES])
def test_the_history_is_dense_and_says_what_was_done(table):
    latest = load(table).version
    log_path = log_path_of(str(table / "delta"))
    ensure_version_exists(STORE, log_path, latest, latest_version=latest)
    records = commit_history(STORE, log_path, latest_version=latest)
    assert [record.version for record in records] == list(
        range(latest, records[-1].version - 1, -1)
    )
    assert all(record.info is not None and record.info.operation for record in records)
