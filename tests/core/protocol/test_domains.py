"""A domain of the system says nothing where the protocol lacks the feature that it belongs to."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core import DeltaLog, Operation
from optimist.core.log.names import commit_path
from optimist.core.protocol.gates import with_features

CLUSTERED = {"domain": "delta.clustering", "configuration": '{"clusteringColumns":[["id"]]}'}
NUMBERED = {"domain": "delta.rowTracking", "configuration": "far too many"}


def with_strays(
    path: Path, *strays: dict[str, str], partition_by: tuple[str, ...] = ()
) -> DeltaLog:
    """A table of two rows, whose log another writer has given domains without their features."""
    log = DeltaLog.for_path(path, {})
    schema = pa.schema([("id", pa.int64()), ("p", pa.int64())])
    properties = {"delta.columnMapping.mode": "name", "delta.feature.domainMetadata": "supported"}
    log.create(schema, partition_by=partition_by, properties=properties)
    log.append(pa.table({"id": [1, 2], "p": [1, 2]}))
    lines = [json.dumps({"domainMetadata": {**each, "removed": False}}) for each in strays]
    name = commit_path(log.log_path, log.snapshot().version + 1)
    Path(name).write_text("\n".join(lines), encoding="utf-8")
    return DeltaLog.for_path(path, {})


def test_a_table_without_the_feature_is_not_clustered(tmp_path):
    log = with_strays(tmp_path / "t", CLUSTERED, partition_by=("p",))
    assert log.detail().clustering_columns == ()
    log.append(pa.table({"id": [3], "p": [1]}))
    assert log.optimize(z_order_by=["id"]).is_z_ordered
    log.alter.rename_column("id", "number")
    assert sorted(log.to_arrow()["number"].to_pylist()) == [1, 2, 3]


def test_a_stray_domain_stays_in_checkpoints_as_others_do(tmp_path):
    log = with_strays(tmp_path / "t", CLUSTERED)
    log.checkpoint()
    for version in range(2):
        Path(commit_path(log.log_path, version)).unlink()
    again = DeltaLog.for_path(log.table_path, {}).snapshot()
    assert set(again.stored_domains) == {"delta.clustering"}
    assert dict(again.domain_metadata) == {}


def test_a_stray_domain_does_not_begin_to_count_with_a_feature_that_comes(tmp_path):
    log = with_strays(tmp_path / "t", CLUSTERED)
    protocol = with_features(log.snapshot().protocol, ["clustering"])
    log.start_transaction().commit([protocol], Operation("UPGRADE PROTOCOL"))
    assert log.detail().clustering_columns == ()
    assert dict(log.snapshot().stored_domains) == {}
    log.alter.cluster_by(["p"])
    assert log.detail().clustering_columns == ("p",)


def test_cluster_by_replaces_a_stray_domain(tmp_path):
    log = with_strays(tmp_path / "t", CLUSTERED)
    log.alter.cluster_by(["p"])
    assert log.detail().clustering_columns == ("p",)
    log.restore(2)
    assert log.detail().clustering_columns == ()


def test_a_clone_of_a_table_with_a_stray_domain_is_not_clustered(tmp_path):
    log = with_strays(tmp_path / "t", CLUSTERED)
    log.clone(tmp_path / "clone")
    assert dict(DeltaLog.for_path(tmp_path / "clone", {}).snapshot().stored_domains) == {}


def test_a_mark_of_row_ids_without_the_feature_does_not_stop_writes(tmp_path):
    log = with_strays(tmp_path / "t", NUMBERED)
    log.append(pa.table({"id": [3], "p": [1]}))
    assert log.count() == 3


@pytest.mark.parametrize("stray", [CLUSTERED, NUMBERED], ids=["clustering", "row tracking"])
def test_stray_domains_go_with_the_feature_of_domains(tmp_path, stray):
    log = with_strays(tmp_path / "t", stray)
    log.alter.set_domain("mine", "{}")
    log.drop_feature("domainMetadata")
    assert "domainMetadata" not in (log.snapshot().protocol.writer_features or ())
    assert dict(log.snapshot().stored_domains) == {}
