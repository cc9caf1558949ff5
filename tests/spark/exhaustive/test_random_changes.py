"""Random DELETEs, UPDATEs and INSERTs in SQL, held against a model that goes row by row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from command_rows import (
    VALUES,
    Row,
    as_table,
    assignments,
    conditions,
    counted,
    is_true,
    rows_strategy,
    updated,
)
from exhaustive_cases import in_proportion
from local_tables import PROPERTIES, Fate, changes_since, counted_changes, live_rows, make
from merge_rows import Merged
from optimist.core.errors import OptimistError

EXAMPLES = in_proportion(2)
REFUSED = (
    *("ARITHMETIC_OVERFLOW", "CAST_OVERFLOW", "CAST_OVERFLOW_IN_TABLE_INSERT"),
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
    "DELTA_REPLACE_WHERE_MISMATCH",
)
SOURCE = "rows_of_the_statement"


class MismatchError(Exception):
    """A row is not one of those that a REPLACE WHERE replaces."""


@dataclass(frozen=True)
class Statement:
    """A statement with `{t}` for its table, and what it makes of rows."""

    sql: str
    apply: Callable[[list[Row]], tuple[list[Row], list[tuple[str, Row]]]] = field(repr=False)
    source: list[Row] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)


def deletes(condition):
    def apply(rows):
        gone = [("delete", row) for row in rows if is_true(condition, row)]
        return [row for row in rows if not is_true(condition, row)], gone

    return Statement(f"DELETE FROM {{t}}{where(condition)}", apply)


def updates(condition, items):
    def apply(rows):
        old = [row for row in rows if is_true(condition, row)]
        new = [updated(row, items) for row in old]
        kept = [row for row in rows if not is_true(condition, row)]
        changes = [("update_preimage", row) for row in old]
        return kept + new, changes + [("update_postimage", row) for row in new]

    values, texts = {}, []
    for item in items:
        text = item.given
        if not isinstance(text, str):
            text, name = f":v{len(values)}", f"v{len(values)}"
            values[name] = item.given.as_py() if isinstance(item.given, pa.Scalar) else item.given
        texts.append(f"{item.column} = {text}")
    return Statement(f"UPDATE {{t}} SET {', '.join(texts)}{where(condition)}", apply, [], values)


def inserts(new, names, way):
    """INSERT of some columns, by a list of columns or by their names in the query."""
    listed = ", ".join(f"`{name}`" for name in names)
    into = f"({listed})" if way == "list" else "BY NAME"
    added = [{name: row[name] if name in names else None for name in VALUES} for row in new]

    def apply(rows):
        return rows + added, [("insert", row) for row in added]

    return Statement(f"INSERT INTO {{t}} {into} SELECT {listed} FROM {SOURCE}", apply, new)


def overwrites(new):
    def apply(rows):
        return new, [*(("delete", row) for row in rows), *(("insert", row) for row in new)]

    return Statement(f"INSERT OVERWRITE {{t}} SELECT * FROM {SOURCE}", apply, new)


def replaces(new, condition, strict):
    found = [row for row in new if is_true(condition, row)] if strict else new

    def apply(rows):
        if not all(is_true(condition, row) for row in found):
            raise MismatchError
        kept, gone = [row for row in rows if not is_true(condition, row)], deletes(condition)
        return kept + found, [*gone.apply(rows)[1], *(("insert", row) for row in found)]

    sql = f"INSERT INTO {{t}} REPLACE{where(condition)} SELECT * FROM {SOURCE}"
    return Statement(sql, apply, found)


def where(condition):
    return "" if condition is None else f" WHERE {condition.sql}"


ROWS = rows_strategy(5)
NAMES = st.lists(st.sampled_from(sorted(VALUES)), min_size=1, unique=True)
STATEMENTS = st.one_of(
    st.builds(deletes, st.none() | conditions()),
    st.builds(updates, st.none() | conditions(), assignments()),
    st.builds(updates, conditions(), assignments()),
    st.builds(inserts, ROWS, NAMES, st.sampled_from(["list", "name"])),
    st.builds(overwrites, ROWS),
    st.builds(replaces, ROWS, conditions(), st.sampled_from([True, True, False])),
)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)
@given(
    st.sampled_from(Fate),
    st.lists(rows_strategy(6), min_size=1, max_size=3),
    st.lists(STATEMENTS, min_size=1, max_size=4),
    PROPERTIES,
)
def test_statements_make_what_the_model_makes(
    enabled, tmp_path_factory, every_plane, fate, files, statements, properties
):
    path = tmp_path_factory.mktemp("model") / "t"
    note(f"{path} on {every_plane}")
    log = make(path, fate, files, **properties)
    model = live_rows(log)
    for statement in statements:
        model = ensure_as_the_model(enabled, log, model, statement, fate, properties)


def ensure_as_the_model(spark, log, model, statement, fate, properties):
    note(statement.sql)
    before = log.snapshot().version
    spark.createDataFrame(as_table(statement.source)).createOrReplaceTempView(SOURCE)
    text = statement.sql.format(t=f"delta.`{log.table_path}`")
    try:
        rows, changes = statement.apply(model)
    except (OverflowError, MismatchError):
        with pytest.raises((OptimistError, PySparkException)) as caught:
            spark.sql(text, args=statement.values or None)
        error = caught.value
        kind = error.kind if isinstance(error, OptimistError) else error.getCondition()
        assert kind in REFUSED
        assert log.snapshot().version == before
        return model
    spark.sql(text, args=statement.values or None)
    after = Merged(rows, changes, None).stored(fate.partition_by)
    assert counted(live_rows(log)) == counted(after.rows)
    assert log.count() == len(rows)
    if properties:
        assert changes_since(log, before) == counted_changes(after.changes)
    return after.rows
