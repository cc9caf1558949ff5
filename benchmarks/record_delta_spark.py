"""Records what delta-spark does, for the tests that hold ours against it.

`python benchmarks/record_delta_spark.py` runs with Delta's jar what `tests/spark/support` tells,
and writes below `tests/spark`:

| record | what |
|---|---|
| `delta_spark_history.json` | what each command writes into the history |
| `delta_spark_care.json` | what commands that care for a table answer, and do to its files |
| `delta_spark_answers.json` | what odd statements answer, and what they leave in their table |
| `delta_spark_habits.json` | what scripts' habits answer: errors, formats, names, arguments |
| `delta_spark_schema_log.json` | what a stream's checkpoint holds while the schema changes |
| `delta_spark_confs.json` | each key of the conf: its default, and which values it takes |

With the name of one of them it makes only that one. The odd statements take 20 minutes; those that
the record has, of the same versions, are not run again.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from delta_spark import DELTA_SPARK, PYSPARK, run_delta_spark

_SPARK_TESTS = Path(__file__).resolve().parent.parent / "tests" / "spark"
_VERSIONS = {"delta-spark": DELTA_SPARK, "pyspark": PYSPARK}
_BEGIN = """
import json

sys.path.insert(0, sys.argv[2])
for key in ("spark.databricks.delta.snapshotPartitions", "spark.sql.shuffle.partitions"):
    spark.conf.set(key, "2")  # the tables are small
known, told = json.load(open(sys.argv[4])), {}
"""
_END = """
json.dump(told, open(sys.argv[4], "w"))
"""
_RECORDS = {
    "delta_spark_history.json": """
from history_scenarios import SCENARIOS, History

history = History(spark, sys.argv[3])
for name, scenario in SCENARIOS.items():
    try:
        told[name] = history.told(scenario)
    except Exception as error:
        told[name] = str(error).split("\\n")[0]
""",
    "delta_spark_care.json": """
from care_answers import CARE, CareAnswers
from history_scenarios import History

answers = CareAnswers(History(spark, sys.argv[3]))
for name, scenario in CARE.items():
    told[name] = known.get(name) or answers.answer(scenario)
""",
    "delta_spark_answers.json": """
from odd_statements import CASES, OddStatements

spark.conf.set("spark.sql.session.timeZone", "UTC")
odd = OddStatements(spark, sys.argv[3])
for case in CASES:
    name = "; ".join(case)
    told[name] = known.get(name) or odd.answers(case)
""",
    "delta_spark_habits.json": """
from delta.tables import DeltaTable
from habits import HABITS, Habits

spark.conf.set("spark.sql.session.timeZone", "UTC")
habits = Habits(spark, sys.argv[3], DeltaTable)
for habit in HABITS:
    told[habit] = known.get(habit) or habits.answer(habit)
""",
    "delta_spark_schema_log.json": """
from schema_log_story import told_by

told = told_by(spark, sys.argv[3])
""",
    "delta_spark_confs.json": """
from known_keys import answers

spark.conf.unset("spark.databricks.delta.snapshotPartitions")
spark._jvm.org.apache.spark.util.Utils.classForName(
    "org.apache.spark.sql.delta.sources.DeltaSQLConf$", True, False
).getField("MODULE$").get(None)
conf = spark._jvm.java.lang.Class.forName("org.apache.spark.sql.internal.SQLConf$")
entries = conf.getField("MODULE$").get(None).getConfigEntries().iterator()
while entries.hasNext():
    key = entries.next().key()
    if key.startswith("spark.databricks."):
        told[key] = answers(spark, key)
told = dict(sorted(told.items()))
""",
}


def main(names: list[str]) -> None:
    """Make the records of these names, a line for each thing that was tried."""
    for name in names or _RECORDS:
        record = _SPARK_TESTS / name
        with tempfile.TemporaryDirectory() as scratch:
            answers = Path(scratch, "answers.json")
            answers.write_text(json.dumps(_known(record)))
            support = str(_SPARK_TESTS / "support")
            work = _BEGIN + _RECORDS[name] + _END
            run_delta_spark(work, [support, f"{scratch}/tables", str(answers)])
            told = json.loads(answers.read_text())
        lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in told.items()]
        head = f'{{\n "delta-spark": "{DELTA_SPARK}",\n "pyspark": "{PYSPARK}",\n "told": {{\n'
        record.write_text(head + ",\n".join(lines) + "\n }\n}\n", encoding="utf-8")


def _known(record: Path) -> Any:
    """Return the answers in a record of the same versions."""
    kept = json.loads(record.read_text("utf-8")) if record.exists() else {}
    same = {name: kept.get(name) for name in _VERSIONS} == _VERSIONS
    return kept["told"] if same else {}


if __name__ == "__main__":
    main(sys.argv[1:])
