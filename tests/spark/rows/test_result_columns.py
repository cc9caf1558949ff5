"""The columns of statements in Spark's types, as delta-spark 4.4 has them."""

from __future__ import annotations

import pytest

from optimist.core.statements import result_columns as columns
from optimist.core.statements.shows import CREATE_STATEMENT
from optimist.spark.rows.local_rows import spark_columns

DELTAS = {
    "HISTORY": (
        "struct<version:bigint,timestamp:timestamp,userId:string,userName:string,operation:string,"
        "operationParameters:map<string,string>,job:struct<jobId:string,jobName:string,"
        "jobRunId:string,runId:string,jobOwnerId:string,triggerType:string>,"
        "notebook:struct<notebookId:string>,clusterId:string,readVersion:bigint,"
        "isolationLevel:string,isBlindAppend:boolean,operationMetrics:map<string,string>,"
        "userMetadata:string,engineInfo:string>"
    ),
    "DETAIL": (
        "struct<format:string,id:string,name:string,description:string,location:string,"
        "createdAt:timestamp,lastModified:timestamp,partitionColumns:array<string>,"
        "clusteringColumns:array<string>,numFiles:bigint,sizeInBytes:bigint,"
        "properties:map<string,string>,minReaderVersion:int,minWriterVersion:int,"
        "tableFeatures:array<string>>"
    ),
    "VACUUMED": "struct<path:string>",
    "RESTORED": (
        "struct<table_size_after_restore:bigint,num_of_files_after_restore:bigint,"
        "num_removed_files:bigint,num_restored_files:bigint,removed_files_size:bigint,"
        "restored_files_size:bigint>"
    ),
    "CLONED": (
        "struct<source_table_size:bigint,source_num_of_files:bigint,num_removed_files:bigint,"
        "num_copied_files:bigint,removed_files_size:bigint,copied_files_size:bigint>"
    ),
    "ROWS_AFFECTED": "struct<num_affected_rows:bigint>",
    "MERGED": (
        "struct<num_affected_rows:bigint,num_updated_rows:bigint,num_deleted_rows:bigint,"
        "num_inserted_rows:bigint>"
    ),
    "NO_COLUMNS": "struct<>",
}


@pytest.mark.parametrize("name", DELTAS)
def test_columns_have_these_names_and_types(name):
    schema = spark_columns(getattr(columns, name))
    assert schema.simpleString() == DELTAS[name]
    assert all(field.nullable and not field.metadata for field in schema)


def test_metrics_are_those_of_the_record():
    metrics = spark_columns(columns.OPTIMIZED)["metrics"].dataType
    assert len(metrics) == 22
    assert metrics["filesAdded"].dataType.simpleString() == (
        "struct<min:bigint,max:bigint,avg:double,totalFiles:bigint,totalSize:bigint>"
    )
    assert metrics["preserveInsertionOrder"].dataType.simpleString() == "boolean"


def test_the_text_of_a_create_statement_is_never_null():
    (field,) = spark_columns(CREATE_STATEMENT)
    assert (field.dataType.simpleString(), field.nullable) == ("string", False)
