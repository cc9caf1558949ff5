"""Random MERGEs without Spark whose source has other columns and types than the table."""

from __future__ import annotations

import pyarrow as pa
import pytest

from evolving_merges import Case, ensure_as_expected, made
from evolving_types import DoesNotFitError
from exhaustive_cases import in_proportion
from optimist.core.errors import SchemaError, UsageError


@pytest.mark.parametrize("seed", range(in_proportion(1_000)))
def test_a_merge_without_spark_gives_the_rows_and_columns_of_the_model(tmp_path, seed):
    case = Case.of(seed)
    log = made(tmp_path / "t", case)
    before = log.snapshot().version
    source = pa.Table.from_pylist(case.rows, pa.schema(list(case.source)))
    merge = log.merge(source, "t.id = s.id")
    for clause in case.clauses:
        name = f"when_{clause.kind.lower().replace(' ', '_')}_{clause.action}"
        if clause.action == "delete":
            merge = getattr(merge, name)(clause.condition)
        elif clause.items is None:
            merge = getattr(merge, f"{name}_all")(clause.condition)
        else:
            values = {item.name: item.sql for item in clause.items}
            merge = getattr(merge, name)(values, clause.condition)
    merge = merge.with_schema_evolution() if case.evolves else merge
    try:
        outcome = case.expected()
    except DoesNotFitError:
        with pytest.raises((SchemaError, UsageError)) as caught:
            merge.execute()
        assert caught.value.kind in ("OPTIMIST_VALUE_DOES_NOT_FIT", "OPTIMIST_NEEDS_SPARK")
        assert log.snapshot().version == before
        return
    try:
        merge.execute()
    except UsageError as error:
        assert error.kind == "OPTIMIST_NEEDS_SPARK"  # for casts that only Spark does
        assert log.snapshot().version == before
        return
    ensure_as_expected(log, case, before, outcome)
