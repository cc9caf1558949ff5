"""Our history is delta-spark's: operation, parameters and metrics, by a record of what it told.

`python benchmarks/record_delta_spark.py` makes the record, with Delta's jar. What differs on
purpose, or because the work is done another way, is listed below with its reason; anything else
fails.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from history_scenarios import SCENARIOS, History
from optimist.spark import disable, enable

RECORD = json.loads(Path(__file__).with_name("delta_spark_history.json").read_text("utf-8"))["told"]
_CONDITIONS = {
    f"parameters.{name}"
    for name in (
        "predicate",
        "matchedPredicates",
        "notMatchedPredicates",
        "notMatchedBySourcePredicates",
    )
}
DIFFERENT = [
    # Conditions are told as SQL, with qualifiers and casts; Delta tells them as its plan's text.
    (r"DELETE|UPDATE|MERGE|REPLACE|[rR]eplaceWhere|INSERT OVERWRITE|writeTo", _CONDITIONS),
    # Delta rewrites by its tasks, so how many files there are depends on these.
    (
        r"^(UPDATE|MERGE|DELETE|overwrite|INSERT|replaceWhere|dynamic)",
        {
            "metrics.numAddedFiles",
            "metrics.numAddedChangeFiles",
            "metrics.numTargetFilesAdded",
            "metrics.numTargetChangeFilesAdded",
        },
    ),
    # A file that only gets a vector is not removed, and its rows are neither copied nor written.
    (r"^UPDATE .*vectors", {"metrics.numRemovedFiles"}),
    (
        r"^(replaceWhere|REPLACE WHERE) .*vectors",
        {"metrics.numCopiedRows", "metrics.numFiles", "metrics.numOutputRows"},
    ),
    # Only files with rows that a clause changes are rewritten.
    (
        r"^MERGE, (all clauses|by source with a condition) \((plain|feed)\)",
        {
            "metrics.numOutputRows",
            "metrics.numTargetFilesRemoved",
            "metrics.numTargetRowsCopied",
        },
    ),
    # Each write of ours has a directory of its own.
    (r"^VACUUM", {"metrics.numVacuumedDirectories"}),
    # One attempt at a version is never told as a blind append, so that those who lose look at it.
    (r"^DROP FEATURE", {"isBlindAppend"}),
    # The two keys of the enablement go with the property, which names them for Delta alone.
    (r"^DROP FEATURE inCommitTimestamp", {"parameters.properties"}),
    (r"^ALTER COLUMNS", {"parameters.columns"}),  # Delta tells the last first
]
_MADE_UP = re.compile(r'("delta\.columnMapping\.physicalName":"col-)[^"]*')
REFUSED = {"ALTER COLUMN, not null", "REPLACE COLUMNS"}
"""Refused by both."""


@pytest.fixture(scope="module")
def history(spark, tmp_path_factory):
    enable(spark)
    yield History(spark, str(tmp_path_factory.mktemp("history")))
    spark.sql("DROP DATABASE told CASCADE")
    disable(spark)


def differences(ours, theirs):
    """The names of what two histories tell differently."""
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        for part in ("operation", "isBlindAppend"):
            if mine[part] != other[part]:
                yield part
        for part in ("parameters", "metrics"):
            for name in mine[part].keys() | other[part].keys():
                both = [part_told.get(name, part_told) for part_told in (mine[part], other[part])]
                if compared(both[0]) != compared(both[1]):
                    yield f"{part}.{name}"


def compared(told):
    """What is told, without physical names, which are made up, and the order of keys in JSON."""
    try:
        return json.loads(_MADE_UP.sub(r"\1", told))
    except (TypeError, ValueError):
        return told


def test_the_record_is_of_these_scenarios():
    assert list(RECORD) == list(SCENARIOS)
    assert {name for name in RECORD if isinstance(RECORD[name], str)} == REFUSED


@pytest.mark.sample(40)
@pytest.mark.parametrize("name", [name for name in SCENARIOS if name not in REFUSED])
def test_our_history_says_what_that_of_delta_spark_says(history, name):
    known = set().union(*(keys for pattern, keys in DIFFERENT if re.search(pattern, name)))
    ours, theirs = history.told(SCENARIOS[name]), RECORD[name]
    assert set(differences(ours, theirs)) <= known, (ours, theirs)


@pytest.mark.parametrize("changed", [{"operation": "X"}, {"metrics": {}}, {"parameters": {"a": 1}}])
def test_a_difference_is_noticed(changed):
    (told,) = RECORD["append"]
    assert not set(differences([told], [told]))
    assert set(differences([{**told, **changed}], [told]))
