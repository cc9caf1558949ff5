"""VACUUM whose files are deleted on the executors, because `parallelDelete.enabled` asks for it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from optimist.core.data.storage.data_paths import DataPaths
from optimist.core.errors import TableError
from optimist.core.maintenance.vacuum import file_deletion
from optimist.logstores.s3 import S3LogStore
from optimist.spark import DeltaTable, disable, enable, write
from optimist.spark.commands.maintenance import vacuum as module
from optimist.spark.rows.local_rows import local_frame

PREFIX = "spark.databricks.delta"
SECRET = "hunter2"


@pytest.fixture(scope="module")
def delta(spark):
    yield enable(spark)
    disable(spark)


@pytest.fixture
def dead(delta, table_path, conf, monkeypatch):
    """Nine files that no version has, in two directories; two of them are one request."""
    write(delta.range(4), table_path)
    paths = [Path(table_path, "odd é%20 [x]" if number % 2 else ".") for number in range(9)]
    paths = [folder / f"{number} 'q'.parquet" for number, folder in enumerate(paths)]
    for path in paths:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    conf(f"{PREFIX}.retentionDurationCheck.enabled", "false")
    conf(f"{PREFIX}.vacuum.parallelDelete.enabled", "true")
    monkeypatch.setattr(file_deletion, "_BATCH", 2)
    return paths


@pytest.fixture
def driver_can_not(monkeypatch):
    monkeypatch.setattr(module, "delete_here", None)


def newest_of(delta, table_path):
    return DeltaTable.forPath(delta, table_path).history(1).collect()[0]


def num_tasks_of(delta, group):
    tracker = delta.sparkContext.statusTracker()
    stages = [
        tracker.getStageInfo(stage)
        for job in tracker.getJobIdsForGroup(group)
        for stage in tracker.getJobInfo(job).stageIds
    ]
    return [stage.numTasks for stage in stages if stage is not None]


@pytest.mark.again
@pytest.mark.parametrize(("parallelism", "num_tasks"), [(None, 5), ("2", 2), ("100", 5)])
def test_executors_delete_the_files_and_the_history_counts_them(
    delta, dead, table_path, conf, driver_can_not, parallelism, num_tasks
):
    if parallelism is not None:
        conf(f"{PREFIX}.vacuum.parallelDelete.parallelism", parallelism)
    group = f"vacuum-{parallelism}"
    delta.sparkContext.setJobGroup(group, "")
    try:
        delta.sql(f"VACUUM delta.`{table_path}` RETAIN 0 HOURS")
    finally:
        delta.sparkContext.setLocalProperty("spark.jobGroup.id", None)
    assert num_tasks in num_tasks_of(delta, group)
    assert not any(path.exists() for path in dead)
    assert sorted(delta.read.format("delta").load(table_path).toPandas()["id"]) == [0, 1, 2, 3]
    newest = newest_of(delta, table_path)
    assert newest.operationParameters == {"status": "COMPLETED"}
    assert newest.operationMetrics["numDeletedFiles"] == "9"


@pytest.mark.again
def test_the_method_deletes_as_the_statement_does(delta, dead, table_path, driver_can_not):
    DeltaTable.forPath(delta, table_path).vacuum(0)
    assert not any(path.exists() for path in dead)


def test_one_request_is_no_job(delta, dead, table_path, monkeypatch):
    monkeypatch.setattr(file_deletion, "_BATCH", 9)
    monkeypatch.setattr(module, "_DeletionTask", None)
    DeltaTable.forPath(delta, table_path).vacuum(0)
    assert not any(path.exists() for path in dead)


def test_an_error_of_a_task_is_that_of_the_driver_and_the_history_says_failed(
    delta, dead, table_path, tmp_path, monkeypatch
):
    outside = tmp_path / "outside"
    inside = dead[1].parent
    by_job = module.SparkDeletions._by_job

    def swapped(self, batches, rule):
        inside.rename(outside)
        inside.symlink_to(outside)
        return by_job(self, batches, rule)

    monkeypatch.setattr(module.SparkDeletions, "_by_job", swapped)
    with pytest.raises(TableError) as caught:
        delta.sql(f"VACUUM delta.`{table_path}` RETAIN 0 HOURS")
    assert caught.value.kind == "OPTIMIST_LINK_OUT_OF_TABLE"
    assert len(list(outside.iterdir())) == 4
    assert newest_of(delta, table_path).operationParameters == {"status": "FAILED"}
    inside.unlink()
    outside.rename(inside)
    monkeypatch.setattr(module.SparkDeletions, "_by_job", by_job)
    DeltaTable.forPath(delta, table_path).vacuum(0)
    assert not any(path.exists() for path in dead)


def test_credentials_show_neither_in_the_plan_nor_in_the_task(delta):
    path = "s3a://bucket/table"
    keys = {"access.key": "AKIA", "secret.key": SECRET, "endpoint.region": "us-east-1"}
    store = S3LogStore({f"fs.s3a.{key}": value for key, value in keys.items()})
    rule = file_deletion.DeletionRule(DataPaths.of(path), store.data_access(path), 1)
    task = module._DeletionTask(rule)
    rows = local_frame(delta, pa.table({"paths": [["x.parquet"]]}), module._BATCHES)
    plan = rows.mapInArrow(task, module._COUNT)._jdf.queryExecution().toString()
    assert "MapInArrow" in plan
    assert SECRET not in plan + repr(task) + repr(rule)
