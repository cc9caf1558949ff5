"""Random MERGEs of random rows on Spark, held against a model that goes row by row."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import functions as sf

from command_rows import ROW_TYPE, VALUES, Row, as_table, counted, rank, rows_strategy
from exhaustive_cases import in_proportion
from local_tables import (
    PROPERTIES,
    Fate,
    changes_since,
    counted_changes,
    live_rows,
    make,
    metrics_of,
)
from merge_model import add
from merge_rows import (
    CLAUSES,
    EQUALITIES,
    SEVERAL,
    SOURCE_TYPE,
    Clause,
    Join,
    SeveralMatchesError,
    equal,
    merged,
    same,
    schema_after,
    with_more,
)
from optimist.core.errors import OptimistError
from optimist.spark import DeltaTable

EXAMPLES = in_proportion(4)
VALUE_DOES_NOT_FIT = (
    "ARITHMETIC_OVERFLOW",
    "CAST_OVERFLOW",
    "CAST_OVERFLOW_IN_TABLE_INSERT",
    "DELTA_CAST_OVERFLOW_IN_TABLE_WRITE",
)


def above(one, other):
    return None if one is None or other is None else rank(one) > rank(other)


JOINS = [
    Join("t.id = src.id", EQUALITIES[0].matches),
    *EQUALITIES[1:],
    Join("t.id = src.id AND t.p > 0", lambda t, s: equal(t["id"], s["id"]) and above(t["p"], 0)),
    Join("t.p = src.p AND src.s = 'a'", lambda t, s: equal(t["p"], s["p"]) and s["s"] == "a"),
    Join("t.p > src.p", lambda t, s: above(t["p"], s["p"])),
    Join("t.p = 7", lambda t, s: equal(t["p"], 7)),
    Join("t.p + 1 = src.id", lambda t, s: equal(add(t["p"]), s["id"])),
    Join(
        "t.s = src.s OR t.`x.y` > src.`x.y`",
        lambda t, s: equal(t["s"], s["s"]) or above(t["x.y"], s["x.y"]),
    ),
    Join(
        "t.id = src.p AND t.d <=> src.d",
        lambda t, s: equal(t["id"], s["p"]) and same(t["d"], s["d"]),
    ),
]
SAME_STRUCTS = Join("t.n <=> src.n", lambda t, s: t["n"] == s["n"])


def column_of(given):
    return sf.lit(given.as_py() if isinstance(given, pa.Scalar) else given)


def with_clause(merge, clause):
    words = ["when", *clause.kind.title().split(), clause.action.title()]
    if clause.action == "delete":
        return getattr(merge, "".join(words))(clause.sql)
    if clause.items is None:
        return getattr(merge, "".join([*words, "All"]))(clause.sql)
    values = {
        item.column: item.given if isinstance(item.given, str) else column_of(item.given)
        for item in clause.items
    }
    return getattr(merge, "".join(words))(clause.sql, values)


@dataclass(frozen=True)
class Case:
    """A table, a source, and a MERGE of them.

    Attributes:
        fate: What becomes of rows that are deleted.
        files: The rows of the table, file by file.
        rows: The rows of the source.
        join: When rows match.
        clauses: What is done.
        properties: Properties of the table.
        is_stored: The source is one that has to be stored.
        evolves: The source has more columns than the table, which the table gets.
    """

    fate: Fate
    files: list[list[Row]]
    rows: list[Row]
    join: Join
    clauses: list[Clause]
    properties: dict[str, str]
    is_stored: bool
    evolves: bool

    @property
    def source(self) -> list[Row]:
        return with_more(self.rows) if self.evolves else self.rows

    @property
    def schema_after(self) -> pa.Schema:
        return schema_after(self.clauses) if self.evolves else ROW_TYPE

    def builder(self, spark, path):
        schema = SOURCE_TYPE if self.evolves else ROW_TYPE
        frame = spark.createDataFrame(as_table(self.source, schema))
        if self.is_stored:
            frame = frame.where("rand() < 2")
        table = DeltaTable.forPath(spark, path).alias("t")
        merge = table.merge(frame.alias("src"), self.join.given)
        for clause in self.clauses:
            merge = with_clause(merge, clause)
        return merge.withSchemaEvolution() if self.evolves else merge


def cases(joins, evolves):
    return st.builds(
        Case,
        fate=st.sampled_from(Fate),
        files=st.lists(rows_strategy(6), min_size=1, max_size=3),
        rows=rows_strategy(5),
        join=st.sampled_from(joins),
        clauses=CLAUSES,
        properties=PROPERTIES,
        is_stored=st.booleans(),
        evolves=st.just(evolves),
    )


CASES = cases([*JOINS, SAME_STRUCTS], False) | cases(JOINS, True)


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # to shrink takes minutes
    suppress_health_check=list(HealthCheck),
)
@given(CASES)
def test_a_merge_gives_the_rows_of_the_model(spark, tmp_path_factory, every_plane, case):
    path = tmp_path_factory.mktemp("model") / "t"
    note(f"{path} on {every_plane}")
    ensure_as_the_model(spark, path, case)


def ensure_as_the_model(spark, path, case):
    log = make(path, case.fate, case.files, **case.properties)
    model, before, changes, schema = live_rows(log), log.snapshot().version, [], ROW_TYPE
    merge = case.builder(spark, log.table_path)
    try:
        after = merged(model, case.source, case.join, case.clauses)
    except (SeveralMatchesError, OverflowError):
        with pytest.raises((OptimistError, PySparkException)) as caught:
            merge.execute()
        ensure_kind(caught.value)
        assert log.snapshot().version == before
    else:
        (told,) = merge.execute().collect()
        numbers = [after.number(action) for action in ("update", "delete", "insert")]
        assert tuple(told) == (sum(numbers), *numbers)
        after = after.stored(case.fate.partition_by)
        if log.snapshot().version > before:
            ensure_metrics(log, after, case)
        model, changes, schema = after.rows, after.changes, case.schema_after
    assert list(log.snapshot().schema.names) == schema.names
    assert counted(live_rows(log), schema) == counted(model, schema)
    assert log.count() == len(model)
    for value in VALUES["p"][1:]:
        assert log.count(f"p = {value}") == sum(row["p"] == value for row in model)
    if case.properties:
        assert changes_since(log, before, schema) == counted_changes(changes, schema)


def ensure_kind(error):
    """Whether values or matches are looked at first is not told."""
    kind = error.kind if isinstance(error, OptimistError) else error.getCondition()
    assert kind in (SEVERAL, *VALUE_DOES_NOT_FIT)


def ensure_metrics(log, after, case):
    expected = after.metrics(case.source)
    assert metrics_of(log, *expected) == tuple(expected.values())
    names = ("numOutputRows", "numTargetRowsCopied")
    output, copied = metrics_of(log, *names)
    assert output == after.number("insert") + after.number("update") + copied
    assert not (case.fate.has_vectors and copied)
