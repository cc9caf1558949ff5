"""What scripts do to Delta tables ends as it does under delta-spark: in the same values or errors.

`python benchmarks/record_delta_spark.py` makes the record, with Delta's jar. What differs, and why,
is listed below; anything else fails.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from habits import DATABASE, HABITS, Habits
from optimist.spark import DeltaTable, disable, enable

_RECORD = Path(__file__).parents[1] / "delta_spark_habits.json"
TOLD = json.loads(_RECORD.read_text("utf-8"))["told"]
_ODD = {
    "enableChangeDataFeed' = 'true')": "changes from before a rule may break it",
    '"dynamic").option("overwriteSchema"': "two wishes that contradict each other",
    'forPath(spark, folder + "/by_p/p=1")': "a partition is no table that could be changed",
    'save(folder + "/by_p/p=1")': "it would be a table within a table",
    'save(folder + "/by_p/p=5")': "the same",
    "REPLACE COLUMNS (id STRING": "the condition of a change of a column",
    "CHECK (plus_one(id) > 0)": "no other session could check it",
    'delete(large("id"))': "all files are found in which a function of Python chooses rows",
    '{"id": double("id")}': "the same",
    '"DELETE FROM of_part"': "one condition for views of something else than a whole table",
    '"UPDATE of_renamed SET k = 1"': "the same",
    '"DELETE FROM of_version"': "the same",
}
"""Parts of habits that end otherwise, and why."""
DIFFERENT = {
    'sql("DESCRIBE HISTORY of_parquet")': "one condition for whatever is no Delta table",
    'sql("DESCRIBE HISTORY a_view")': "the same",
    'sql("DESCRIBE HISTORY a_temporary_view")': "the same",
    'sql("SHOW CATALOGS")': "the catalog for paths is one that Spark lists",
    "[one.name for one in spark.catalog.listCatalogs()]": "the same",
    "sql(\"SHOW CATALOGS LIKE 'd*'\")": "the same",
    **{habit: _ODD[part] for habit in TOLD for part in _ODD if part in habit},
}
"""What ends otherwise, and why."""


@pytest.fixture(scope="module")
def habits(spark, tmp_path_factory):
    enable(spark)
    yield Habits(spark, str(tmp_path_factory.mktemp("habits")), DeltaTable)
    spark.catalog.clearCache()
    spark.sql("USE default")
    spark.sql(f"DROP DATABASE {DATABASE} CASCADE")
    spark.sql("DROP TEMPORARY VARIABLE IF EXISTS a_variable")
    for table in spark.catalog.listTables():
        if table.isTemporary:
            spark.catalog.dropTempView(table.name)
    for name in ("plus_one", "small", "in_range", "is_large", "is_odd"):
        spark.sql(f"DROP TEMPORARY FUNCTION IF EXISTS {name}")
    disable(spark)


def is_same(ours, theirs):
    """Whether a script that decides by an answer goes on in the same way."""
    if not isinstance(theirs, dict) or not isinstance(ours, dict):
        return ours == theirs
    return set(theirs["error"].split()) <= set(ours["error"].split())


def test_the_record_is_of_these_habits():
    assert list(TOLD) == HABITS
    assert DIFFERENT.keys() <= TOLD.keys()


@pytest.mark.again
@pytest.mark.filterwarnings("ignore::FutureWarning")  # PySpark's, of sf.years and its like
def test_scripts_go_on_as_under_delta_spark(habits):
    """One test, since a habit may need what one before it has left."""
    answers = {habit: habits.answer(habit) for habit in HABITS}
    found = {habit for habit in HABITS if not is_same(answers[habit], TOLD[habit])}
    assert found == DIFFERENT.keys(), {habit: answers[habit] for habit in found - DIFFERENT.keys()}


def test_a_difference_is_noticed():
    theirs = {"error": "PATH_NOT_FOUND", "text": "said"}
    assert is_same({"error": "PATH_NOT_FOUND", "text": "said otherwise"}, theirs)
    assert not is_same({"error": "OTHER", "text": "said"}, theirs)
    assert is_same({"error": "TypeError ValueError", "text": ""}, {"error": "TypeError"})
    assert not is_same(["['1']"], ["['2']"])
    assert not is_same(["['1']"], theirs)
