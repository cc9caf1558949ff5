"""Constraints that are added and dropped without Spark."""

from __future__ import annotations

import json

import pyarrow as pa
import pytest

from altered_tables import commit_metadata, configuration, said, table
from optimist.core import DeltaLog
from optimist.core.protocol.actions import Protocol
from optimist.core.protocol.gates import supports
from refusals import fails


def test_a_constraint_is_added_where_all_rows_satisfy_it_and_holds_from_then_on(tmp_path):
    log = table(tmp_path)
    error = fails("DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", log.alter.add_constraint, "c", "id < 3")
    assert error.fields["values"] == '{"id":3}'
    error = fails(
        "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION", log.alter.add_constraint, "c", "s < 'z' AND id > 0"
    )
    assert json.loads(error.fields["values"]) == {"id": 3, "s": None}
    log.alter.add_constraint("Small", "id < 10")
    assert said(log) == ("ADD CONSTRAINT", {"name": "Small", "expr": "id < 10"})
    assert configuration(log) == {"delta.constraints.small": "id < 10"}
    assert supports(log.protocol, "checkConstraints")
    fails("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", log.append, pa.table({"id": [10]}))
    fails("DELTA_CONSTRAINT_ALREADY_EXISTS", log.alter.add_constraint, "SMALL", "id > 0")
    log.alter.drop_constraint("SMALL")
    assert said(log) == (
        "DROP CONSTRAINT",
        {"name": "SMALL", "expr": "id < 10", "existed": "true"},
    )
    log.append(pa.table({"id": [10]}))
    fails("DELTA_CONSTRAINT_DOES_NOT_EXIST", log.alter.drop_constraint, "small")
    log.alter.drop_constraint("small", if_exists=True)
    assert said(log) == ("DROP CONSTRAINT", {"name": "small", "existed": "false"})


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("id", "DELTA_NON_BOOLEAN_CHECK_CONSTRAINT"),
        ("soundex(s) > 'a'", "OPTIMIST_NEEDS_SPARK"),
        ("unknown > 0", "OPTIMIST_INVALID_EXPRESSION"),
        ("id >", "OPTIMIST_INVALID_EXPRESSION"),
        ("1 = 2", "DELTA_NEW_CHECK_CONSTRAINT_VIOLATION"),
    ],
)
def test_a_constraint_that_this_process_can_not_judge_is_refused(tmp_path, sql, kind):
    log = table(tmp_path)
    fails(kind, log.alter.add_constraint, "c", sql)
    assert log.snapshot().version == 0


def test_constraints_whose_names_or_keys_differ_in_case_all_hold_and_are_dropped_one_by_one(
    tmp_path,
):
    rules = {"delta.constraints.C": "id > 0", "delta.constraints.c": "id < 9"}
    rules["Delta.Constraints.x"] = "id <> 5"
    log = table(tmp_path)
    commit_metadata(log, configuration=rules, protocol=Protocol(1, 3))
    log = DeltaLog.for_path(str(tmp_path))
    for bad in (0, 9, 5):
        fails("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", log.append, pa.table({"id": [bad]}))
    fails("DELTA_CONSTRAINT_ALREADY_EXISTS", log.alter.add_constraint, "X", "id > 1")
    log.alter.drop_constraint("c")
    assert list(configuration(log)) == ["delta.constraints.C", "Delta.Constraints.x"]
    log.append(pa.table({"id": [9]}))
    fails("DELTA_VIOLATE_CONSTRAINT_WITH_VALUES", log.append, pa.table({"id": [0]}))
    log.alter.drop_constraint("X")
    log.append(pa.table({"id": [5]}))
    log.alter.drop_constraint("c")
    assert configuration(log) == {}


@pytest.mark.parametrize("if_exists", [False, True])
def test_a_name_that_two_constraints_share_but_for_its_case_drops_neither(tmp_path, if_exists):
    rules = {"delta.constraints.Low": "id > 0", "delta.constraints.low": "id > 1"}
    log = table(tmp_path)
    commit_metadata(log, configuration=rules, protocol=Protocol(1, 3))
    drop = DeltaLog.for_path(str(tmp_path)).alter.drop_constraint
    error = fails("DELTA_CONSTRAINT_DOES_NOT_EXIST", drop, "LOW", if_exists=if_exists)
    assert "Low, low" in str(error)
