"""Which table properties of a winner a running transaction adopts (spec 2.4)."""

from __future__ import annotations

import pytest

from optimist.core.protocol.actions import Metadata, Protocol
from optimist.core.transaction.conflicts.metadata_conflicts import metadata_difference

pytestmark = pytest.mark.sample(1)

SCHEMA = '{"type":"struct","fields":[]}'
OLD = Protocol(1, 2)


def with_features(*names):
    return Protocol(3, 7, names, names)


def difference(before, after, protocol):
    current = Metadata(id="t", schema_string=SCHEMA, configuration=before)
    winner = Metadata(id="t", schema_string=SCHEMA, configuration=after)
    return metadata_difference(current, winner, protocol)


@pytest.mark.parametrize(
    ("name", "value", "feature"),
    [
        ("delta.enableRowTracking", "true", "rowTracking"),
        ("delta.enableDeletionVectors", "TRUE", "deletionVectors"),
        ("delta.enableInCommitTimestamps", "true", "inCommitTimestamp"),
        ("delta.columnMapping.mode", "name", "columnMapping"),
        ("delta.checkpointPolicy", "v2", "v2Checkpoint"),
        ("io.unitycatalog.tableId", "an-id", "catalogManaged"),
    ],
)
def test_what_a_feature_brings_is_adopted_with_the_feature_only(name, value, feature):
    assert difference({}, {name: value}, with_features(feature)) is None
    assert name in difference({}, {name: value}, OLD)
    assert name in difference({name: value}, {name: "else"}, with_features(feature))
    assert name in difference({name: value}, {}, with_features(feature))


@pytest.mark.parametrize(
    "name",
    [
        "delta.inCommitTimestampEnablementVersion",
        "delta.inCommitTimestampEnablementTimestamp",
    ],
)
def test_where_times_in_commits_begin_is_adopted_once(name):
    assert difference({}, {name: "3"}, OLD) is None
    assert name in difference({name: "3"}, {name: "4"}, OLD)


@pytest.mark.parametrize("name", ["delta.appendOnly", "owner"])
def test_any_other_property_is_a_conflict(name):
    assert name in difference({}, {name: "true"}, with_features("appendOnly"))
    assert difference({name: "true"}, {name: "true"}, OLD) is None
