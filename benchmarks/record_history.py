"""Records what delta-spark writes into the history, for the tests that hold ours against it.

`python benchmarks/record_history.py` runs the scenarios of `tests/spark/support` with Delta's jar,
and writes `tests/spark/delta_spark_history.json`.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from delta_spark import DELTA_SPARK, PYSPARK, run_delta_spark

_SPARK_TESTS = Path(__file__).resolve().parent.parent / "tests" / "spark"
_RECORDED = """
import json

sys.path.insert(0, sys.argv[2])
from history_scenarios import SCENARIOS, History

for key in ("spark.databricks.delta.snapshotPartitions", "spark.sql.shuffle.partitions"):
    spark.conf.set(key, "2")  # the tables are small
history, told = History(spark, sys.argv[3]), {}
for name, scenario in SCENARIOS.items():
    try:
        told[name] = history.told(scenario)
    except Exception as error:
        told[name] = str(error).split("\\n")[0]
json.dump(told, open(sys.argv[4], "w"))
"""


def main() -> None:
    """Run the scenarios and write the record, a line for each."""
    with tempfile.TemporaryDirectory() as scratch:
        answers = Path(scratch, "answers.json")
        support = str(_SPARK_TESTS / "support")
        run_delta_spark(_RECORDED, [support, f"{scratch}/tables", str(answers)])
        told = json.loads(answers.read_text())
    lines = [f"  {json.dumps(name)}: {json.dumps(told[name])}" for name in told]
    head = f'{{\n "delta-spark": "{DELTA_SPARK}",\n "pyspark": "{PYSPARK}",\n "told": {{\n'
    text = head + ",\n".join(lines) + "\n }\n}\n"
    (_SPARK_TESTS / "delta_spark_history.json").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
