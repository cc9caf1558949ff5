"""Clustering, domains and sequences of numbers, changed without Spark."""

from __future__ import annotations

import json

import pytest

from altered_tables import nested, said, table
from refusals import fails


def test_a_table_is_clustered_by_columns_and_by_none(tmp_path):
    log = nested(tmp_path)
    assert log.alter.cluster_by([]) is None
    log.alter.cluster_by(["P.A", "id"])
    assert said(log) == (
        "CLUSTER BY",
        {"oldClusteringColumns": "", "newClusteringColumns": "p.a,id"},
    )
    assert log.detail().clustering_columns == ("p.a", "id")
    domain = log.snapshot().domain_metadata["delta.clustering"]
    assert json.loads(domain.configuration) == {
        "clusteringColumns": [["p", "a"], ["id"]],
        "domainName": "delta.clustering",
    }
    fails("DELTA_UNSUPPORTED_DROP_CLUSTERING_COLUMN", log.alter.drop_columns, ["p"])
    log.alter.rename_column("p", "q")
    assert log.detail().clustering_columns == ("q.a", "id")
    log.alter.cluster_by([])
    assert said(log)[1] == {"oldClusteringColumns": "q.a,id", "newClusteringColumns": ""}
    assert log.detail().clustering_columns == ()
    log.alter.drop_columns(["q"])


@pytest.mark.parametrize(
    ("columns", "kind"),
    [
        (["a", "b", "c", "d", "e"], "DELTA_CLUSTER_BY_INVALID_NUM_COLUMNS"),
        (["a", "A"], "DELTA_DUPLICATE_COLUMNS_FOUND"),
        (["z"], "DELTA_COLUMN_NOT_FOUND_IN_SCHEMA"),
        (["l"], "DELTA_CLUSTERING_COLUMNS_DATATYPE_NOT_SUPPORTED"),
        (["e"], "DELTA_CLUSTERING_COLUMN_MISSING_STATS"),
    ],
)
def test_columns_that_no_table_can_be_clustered_by_are_refused(tmp_path, columns, kind):
    rows = {name: [1] for name in "abcde"} | {"l": [[1]]}
    log = table(tmp_path, rows, properties={"delta.dataSkippingNumIndexedCols": "4"})
    fails(kind, log.alter.cluster_by, columns)


def test_a_partitioned_table_is_not_clustered(tmp_path):
    log = table(tmp_path, partition_by=["s"])
    kind = "DELTA_ALTER_TABLE_CLUSTER_BY_ON_PARTITIONED_TABLE_NOT_ALLOWED"
    fails(kind, log.alter.cluster_by, ["id"])


def test_users_keep_texts_in_domains_of_their_own(tmp_path):
    log = table(tmp_path)
    fails("DELTA_DOMAIN_METADATA_NOT_SUPPORTED", log.alter.set_domain, "own", "{}")
    log.alter.add_feature("domainMetadata")
    log.alter.set_domain("own", '{"a": 1}')
    assert log.snapshot().domain_metadata["own"].configuration == '{"a": 1}'
    log.alter.remove_domain("own")
    assert "own" not in log.snapshot().domain_metadata
    fails("OPTIMIST_UNKNOWN_METADATA_DOMAIN", log.alter.remove_domain, "own")
    fails("OPTIMIST_RESERVED_METADATA_DOMAIN", log.alter.set_domain, "delta.clustering", "{}")
