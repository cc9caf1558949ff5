"""Random MERGEs without Spark, held against the model that goes through the rows one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import strategies as st

from command_rows import ROW_TYPE, Row, as_table, counted, rows_strategy
from local_tables import (
    FEED,
    PROPERTIES,
    Fate,
    changes_since,
    counted_changes,
    live_rows,
    make,
    metrics_of,
)
from merge_rows import (
    CLAUSES,
    SEVERAL,
    SOURCE_TYPE,
    Clause,
    Join,
    SeveralMatchesError,
    joins,
    merged,
    schema_after,
    with_clause,
    with_more,
)
from optimist.core import DeltaLog
from optimist.core.errors import SchemaError, UsageError
from optimist.core.local import row_pieces
from optimist.core.local import target as local_target
from optimist.core.local.merge import (
    inserted_rows,
    keys,
    matches,
    source_rows,
    stored_source,
    update_values,
)


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
        in_pieces: Rows are handled in pieces of few, and the source is a stream that is stored.
        evolves: The source has more columns than the table, which the table gets.
    """

    fate: Fate
    files: list[list[Row]]
    rows: list[Row]
    join: Join
    clauses: list[Clause]
    properties: dict[str, str]
    in_pieces: bool
    evolves: bool


TRACKED = {**FEED, "enableRowTracking": "true"}
CASES = st.builds(
    Case,
    fate=st.sampled_from(Fate),
    files=st.lists(rows_strategy(6), min_size=1, max_size=3),
    rows=rows_strategy(5),
    join=joins(),
    clauses=CLAUSES,
    properties=PROPERTIES | st.just(TRACKED),
    in_pieces=st.booleans(),
    evolves=st.booleans(),
)


@contextmanager
def pieces_of_few_rows() -> Iterator[None]:
    """Blocks, runs, batches and pairs of rows are cut where a large MERGE would cut them."""
    sizes = [
        (row_pieces, "_ROWS", 2),
        (stored_source, "_MEMORY_BYTES", 1),
        (source_rows, "_BLOCK_ROWS", 2),
        (update_values, "_HELD_BYTES", 1),
        (update_values, "_BATCH_ROWS", 2),
        (keys, "_PAIRS", 3),
        (matches, "_RUN_BYTES", 1),
        (local_target, "_BATCH_ROWS", 2),
        (inserted_rows, "_BYTES_TOGETHER", 1),
    ]
    with pytest.MonkeyPatch.context() as patch:
        for module, name, size in sizes:
            patch.setattr(module, name, size)
        yield


def row_ids(log: DeltaLog, properties: dict[str, str]) -> set[int]:
    """The ids of the rows, if the table tracks them; each row has one of its own."""
    if "enableRowTracking" not in properties:
        return set()
    found = log.to_arrow(columns=["_metadata.row_id"])["_metadata.row_id"].to_pylist()
    assert len(set(found)) == len(found)
    return set(found)


def ensure_as_the_model(path: Path, case: Case) -> None:
    """Run a MERGE, and compare rows, counts, metrics and changes with the model's."""
    source, schema = (with_more(case.rows), SOURCE_TYPE) if case.evolves else (case.rows, ROW_TYPE)
    found, join, properties = case.clauses, case.join, case.properties
    log = make(path, case.fate, case.files, **properties)
    model, before, changes = live_rows(log), log.snapshot().version, []
    ids, rows = row_ids(log, properties), as_table(source, schema)
    with pieces_of_few_rows() if case.in_pieces else nullcontext():
        given = rows.to_reader(max_chunksize=2) if case.in_pieces else rows
        merge = log.merge(given, join.given, source_alias="src")
    merge, schema = merge.with_schema_evolution() if case.evolves else merge, ROW_TYPE
    for clause in found:
        merge = with_clause(merge, clause)
    try:
        after = merged(model, source, join, found)
    except SeveralMatchesError:
        sizes = pieces_of_few_rows() if case.in_pieces else nullcontext()
        with sizes, pytest.raises(UsageError) as caught:
            merge.execute()
        assert caught.value.kind == SEVERAL
    except OverflowError:
        with pytest.raises((SchemaError, UsageError)) as caught:
            merge.execute()
        assert caught.value.kind in ("OPTIMIST_VALUE_DOES_NOT_FIT", SEVERAL)
    else:
        with pieces_of_few_rows() if case.in_pieces else nullcontext():
            done = merge.execute()
        told = (done.num_updated, done.num_deleted, done.num_inserted)
        assert told == tuple(map(after.number, ("update", "delete", "insert")))
        after = after.stored(case.fate.partition_by)
        if log.snapshot().version > before:
            expected = after.metrics(source)
            assert metrics_of(log, *expected) == tuple(expected.values())
        model, changes = after.rows, after.changes
        assert not ids or len(ids - row_ids(log, properties)) == after.number("delete")
        schema = schema_after(found) if case.evolves else ROW_TYPE
    assert list(log.snapshot().schema.names) == schema.names
    assert counted(live_rows(log), schema) == counted(model, schema)
    if properties:
        assert changes_since(log, before, schema) == counted_changes(changes, schema)
