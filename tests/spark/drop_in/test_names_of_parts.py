"""Names that mean less than a table, or could mean more than one thing of it."""

from __future__ import annotations

from optimist.spark import read, write


_NAMESAKES = """
SELECT 1 AS id, 1 AS x, 1 AS a,
       named_struct('s', named_struct('x', 1), 'x', 1, 'a', 1) AS s,
       named_struct('s', 1) AS t
"""
_MATCHED = "USING (SELECT 1 AS k) AS o ON true WHEN MATCHED THEN UPDATE SET"
_ASSIGNED = {
    "UPDATE {t} AS s SET s.s.x = 2": ("s.x", 2),
    "UPDATE {t} AS s SET s.s.s.x = 3": ("s.s.x", 3),
    "UPDATE {t} AS s SET s.s.a = 4, s.a = s.a + 0": ("s.a", 4),
    "UPDATE {t} AS s SET s.x = 5": ("x", 5),
    "UPDATE {t} AS t SET t.t.s = 6": ("t.s", 6),
    "UPDATE {t} AS t SET t.s.x = t.t.s + 1": ("s.x", 7),
    f"MERGE INTO {{t}} AS s {_MATCHED} s.s.x = s.s.x + 1": ("s.x", 8),
    f"MERGE INTO {{t}} AS s {_MATCHED} s.s.a = 9, s.a = s.a": ("s.a", 9),
    f"MERGE INTO {{t}} AS t {_MATCHED} t.s.x = 10, t.x = 5": ("s.x", 10),
    f"MERGE INTO {{t}} AS id {_MATCHED} t.s = id.t.s + 5": ("t.s", 11),
}


def test_a_name_means_the_column_that_spark_takes_it_for(enabled, table_path, log_of, plane):
    """A struct, the table's alias and a field of the struct have one name, in each combination."""
    write(enabled.sql(_NAMESAKES), table_path)
    (row,) = log_of(table_path).to_arrow().to_pylist()
    for statement, (path, value) in _ASSIGNED.items():
        enabled.sql(statement.format(t=f"delta.`{table_path}`"))
        *above, last = path.split(".")
        parent = row
        for name in above:
            parent = parent[name]
        parent[last] = value
        assert log_of(table_path).to_arrow().to_pylist() == [row], statement


def test_all_columns_of_a_source_are_taken_by_their_very_names(enabled, conf, table_path, plane):
    """Where a session tells `id` from `ID`, a source may have both, in either order."""
    conf("spark.sql.caseSensitive", "true")
    write(enabled.sql("SELECT 1 AS id, 'old' AS v"), table_path)
    for first in ("'new' AS v, 'wrong' AS V", "'wrong' AS V, 'new' AS v"):
        source = enabled.sql(f"SELECT explode(array(1, 2)) AS id, {first}")
        source.createOrReplaceTempView("both")
        enabled.sql(
            f"MERGE INTO delta.`{table_path}` AS t USING both AS s ON t.id = s.id "
            "WHEN MATCHED THEN UPDATE SET * WHEN NOT MATCHED THEN INSERT *"
        )
        rows = read(enabled, table_path).collect()
        assert sorted(map(tuple, rows)) == [(1, "new"), (2, "new")]
    enabled.catalog.dropTempView("both")
