"""Tables on S3, Azure and Google Cloud Storage, with Spark and without: only URL and conf differ.

No Hadoop connector for these schemes is on Spark's class path, so the arrow plane serves them.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs

import boto3
import deltalake
import pyarrow as pa
import pytest
from azure.storage.blob import (
    AccountSasPermissions,
    BlobServiceClient,
    ResourceTypes,
    generate_account_sas,
)
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client
from pyspark.sql import functions as sf

from optimist.core import DeltaLog
from optimist.core.errors import ConfigError, StorageError, TableError
from optimist.spark import DeltaTable, read, write
from optimist.spark.arrow.plane import ArrowPlane
from optimist.spark.planes.planes import plane_of
from optimist.spark.session.conf import open_log

SECRET = "hush-a-secret-that-nobody-may-see"


@dataclass(frozen=True, slots=True)
class Cloud:
    """A place for one table: its URL, the conf that reaches it, and another engine's options."""

    path: str
    conf: Mapping[str, str] = field(repr=False)
    secret: str = field(repr=False, default=SECRET)
    deltalake: Mapping[str, str] = field(repr=False, default_factory=dict)
    list_keys: Callable[[], list[str]] = field(repr=False, default=list)
    delete_key: Callable[[str], object] = field(repr=False, default=str)


@pytest.fixture
def s3(s3_server, fresh_name):
    client = boto3.client(
        "s3",
        endpoint_url=s3_server.endpoint,
        region_name=s3_server.region,
        aws_access_key_id=s3_server.access_key_id,
        aws_secret_access_key=SECRET,
    )
    client.create_bucket(Bucket=fresh_name)

    def keys():
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=fresh_name)
        return [item["Key"] for page in pages for item in page.get("Contents", [])]

    return Cloud(
        path=f"s3a://{fresh_name}/flights",
        conf={
            "fs.s3a.endpoint": s3_server.endpoint,
            "fs.s3a.endpoint.region": s3_server.region,
            "fs.s3a.access.key": s3_server.access_key_id,
            "fs.s3a.secret.key": SECRET,
            "fs.s3a.path.style.access": "true",
        },
        deltalake={
            "AWS_ENDPOINT_URL": s3_server.endpoint,
            "AWS_REGION": s3_server.region,
            "AWS_ACCESS_KEY_ID": s3_server.access_key_id,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "AWS_ALLOW_HTTP": "true",
        },
        list_keys=keys,
        delete_key=lambda key: client.delete_object(Bucket=fresh_name, Key=key),
    )


@pytest.fixture
def azure(azure_server, fresh_name):
    container = BlobServiceClient(
        azure_server.endpoint, credential=azure_server.key
    ).create_container(fresh_name)
    host = f"{azure_server.account}.dfs.core.windows.net"
    return Cloud(
        path=f"abfss://{fresh_name}@{host}/flights",
        conf={
            "spark.optimist.store.azure.account": azure_server.account,
            "spark.optimist.store.azure.endpoint": azure_server.endpoint,
            f"fs.azure.account.key.{host}": azure_server.key,
        },
        secret=azure_server.key,
        deltalake={
            "azure_storage_account_name": azure_server.account,
            "azure_storage_account_key": azure_server.key,
            "azure_storage_endpoint": azure_server.endpoint,
            "azure_allow_http": "true",
        },
        list_keys=lambda: list(container.list_blob_names()),
        delete_key=container.delete_blob,
    )


@pytest.fixture
def gcs(gcs_server, fresh_name):
    client = Client(
        project=gcs_server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": gcs_server.endpoint},
    )
    bucket = client.create_bucket(fresh_name)
    return Cloud(
        path=f"gs://{fresh_name}/flights",
        conf={"spark.optimist.store.gcs.emulatorHost": gcs_server.endpoint},
        list_keys=lambda: [blob.name for blob in bucket.list_blobs()],
        delete_key=lambda key: bucket.blob(key).delete(),
    )


CLOUDS = ["s3", *(pytest.param(name, marks=pytest.mark.again) for name in ("azure", "gcs"))]


@pytest.fixture(params=CLOUDS)
def cloud(request, conf):
    place = request.getfixturevalue(request.param)
    for key, value in place.conf.items():
        conf(key, value)
    return place


def flights(spark, start=0, end=1200):
    rows = spark.range(start, end, 1, 2)
    return rows.selectExpr(
        "id",
        "CAST(id % 3 AS INT) AS month",
        "concat('N ', id % 7, '%/ü') AS tail",
        "CAST(id % 100 AS DOUBLE) AS delay",
        "if(id % 5 = 0, null, named_struct('from', 'JFK', 'legs', array(id, null))) AS route",
        "timestamp_seconds(id * 3600) AS at",
    )


def checksum(frame):
    return frame.agg(sf.count("*"), sf.sum("id"), sf.sum("delay")).first()


@pytest.mark.parametrize("cloud", CLOUDS, indirect=True)
def test_a_table_is_written_changed_and_read(spark, cloud):
    write(flights(spark), cloud.path, partitionBy=["month", "tail"])
    write(flights(spark, 1200, 1500), cloud.path, mode="append")
    assert checksum(read(spark, cloud.path)) == checksum(flights(spark, 0, 1500))
    table = DeltaTable.forPath(spark, cloud.path)
    table.delete("month = 1 AND delay > 50")
    table.update("id < 10", {"tail": "'N 1'", "delay": "delay + 0.5"})
    left = flights(spark, 0, 1500).where("NOT (month = 1 AND delay > 50)")
    expected = left.withColumn("delay", sf.expr("if(id < 10, delay + 0.5, delay)")).withColumn(
        "tail", sf.expr("if(id < 10, 'N 1', tail)")
    )
    rows = read(spark, cloud.path)
    assert rows.exceptAll(expected).count() == 0
    assert expected.exceptAll(rows).count() == 0
    assert read(spark, cloud.path, versionAsOf=0).count() == 1200
    assert [row.operation for row in table.history().collect()] == [
        "UPDATE",
        "DELETE",
        "WRITE",
        "WRITE",
    ]


def test_filters_choose_files_by_the_log(spark, cloud):
    write(flights(spark), cloud.path, partitionBy="month")
    for key in cloud.list_keys():
        if "/month=2/" in key:
            cloud.delete_key(key)
    frame = read(spark, cloud.path)
    assert frame.where("month = 1 AND id < 100").count() == 33
    assert frame.where("month IN (0, 1)").count() == 800


@pytest.mark.again
def test_an_overwrite_of_a_part_replaces_only_it(spark, cloud):
    write(flights(spark), cloud.path, partitionBy="month")
    fresh = flights(spark, 5000, 5300).where("month = 1")
    write(fresh, cloud.path, mode="overwrite", replaceWhere="month = 1")
    expected = flights(spark).where("month <> 1").union(fresh)
    assert checksum(read(spark, cloud.path)) == checksum(expected)


@pytest.mark.again
@pytest.mark.parametrize("cloud", CLOUDS[:2], indirect=True)
def test_deltalake_reads_what_spark_wrote(spark, cloud):
    write(flights(spark), cloud.path, partitionBy=["month", "tail"])
    DeltaTable.forPath(spark, cloud.path).delete("id % 2 = 0")
    found = deltalake.DeltaTable(cloud.path, storage_options=dict(cloud.deltalake))
    rows = found.to_pyarrow_table(columns=["id", "delay"])
    expected = checksum(read(spark, cloud.path))
    assert (rows.num_rows, sum(rows["id"].to_pylist()), sum(rows["delay"].to_pylist())) == tuple(
        expected
    )


def test_tables_are_appended_to_and_read_without_spark(spark, cloud):
    rows = pa.table({"id": range(1000), "p": ["a b", "x=y/%", None, "ü"] * 250})
    log = DeltaLog.for_path(cloud.path, cloud.conf)
    log.append(rows, partition_by=["p"])
    log.append(rows.slice(0, 10))
    found = log.to_arrow("p = 'x=y/%' AND id < 100")
    assert sorted(found["id"].to_pylist()) == sorted([*range(1, 100, 4), 1, 5, 9])
    assert log.to_arrow(columns=["p"]).num_rows == 1010
    assert read(spark, cloud.path).where("p IS NULL").count() == 252


def test_a_write_that_fails_leaves_no_data_file(spark, cloud):
    write(flights(spark), cloud.path, partitionBy="month")
    before = {key for key in cloud.list_keys() if key.endswith(".parquet")}
    # One task: others that are still running when a write fails may end a file after the clean-up.
    bad = (
        flights(spark)
        .coalesce(1)
        .withColumn("delay", sf.expr("if(id = 1199, raise_error('boom'), delay)"))
    )
    with pytest.raises(Exception, match="boom"):
        write(bad, cloud.path, mode="append")
    assert {key for key in cloud.list_keys() if key.endswith(".parquet")} == before
    assert read(spark, cloud.path).count() == 1200


def test_no_secret_shows_in_plans_errors_or_reprs(spark, cloud, capsys):
    write(flights(spark), cloud.path)
    frame = read(spark, cloud.path).where("id < 100")
    frame.explain("extended")
    log = open_log(spark, cloud.path)
    plan = frame._jdf.queryExecution().toString()
    shown = [
        capsys.readouterr().out,
        plan,
        repr(log.store.data_access(cloud.path)),
        repr(plane_of(spark, log.table)),
        str(log.store.describe()),
    ]
    (parquet, *_) = (key for key in cloud.list_keys() if key.endswith(".parquet"))
    cloud.delete_key(parquet)
    with pytest.raises(Exception, match="DELTA_FILE_NOT_FOUND_DETAILED") as caught:
        read(spark, cloud.path).collect()
    shown.append(str(caught.value))
    assert isinstance(plane_of(spark, log.table), ArrowPlane)
    assert not [text for text in shown if cloud.secret in text]


@pytest.mark.again
def test_a_data_file_that_is_gone_keeps_its_error_class(spark, cloud):
    write(flights(spark), cloud.path)
    for key in cloud.list_keys():
        if key.endswith(".parquet"):
            cloud.delete_key(key)
    with pytest.raises(TableError) as caught:
        DeltaTable.forPath(spark, cloud.path).delete("delay = 3.0")
    assert caught.value.kind == "DELTA_FILE_NOT_FOUND_DETAILED"
    assert read(spark, cloud.path).dtypes == flights(spark).dtypes


def test_the_native_plane_without_a_connector_writes_nothing(spark, conf, cloud):
    conf("spark.optimist.spark.plane", "native")
    with pytest.raises(Exception, match=r"(?i)filesystem|ClassNotFound"):
        write(flights(spark), cloud.path)
    assert not DeltaLog.for_path(cloud.path, cloud.conf).table_exists()


def test_unfinished_uploads_of_a_failed_write_are_given_up(spark, s3, s3_server):
    client = boto3.client(
        "s3",
        endpoint_url=s3_server.endpoint,
        region_name=s3_server.region,
        aws_access_key_id=s3_server.access_key_id,
        aws_secret_access_key=SECRET,
    )
    bucket = s3.path.split("/")[2]
    kept = client.create_multipart_upload(Bucket=bucket, Key="flights/other/x.parquet")
    client.create_multipart_upload(Bucket=bucket, Key="flights/data-1/p=1/x.parquet")
    store = DeltaLog.for_path(s3.path, s3.conf).store
    store.abort_uploads(f"{s3.path}/data-1")
    found = client.list_multipart_uploads(Bucket=bucket).get("Uploads", [])
    assert [upload["UploadId"] for upload in found] == [kept["UploadId"]]


def test_encryption_that_is_asked_for_is_that_of_every_file(s3, s3_server):
    conf = {
        **s3.conf,
        "fs.s3a.encryption.algorithm": "SSE-KMS",
        "fs.s3a.encryption.key": "a-key",
    }
    DeltaLog.for_path(s3.path, conf).append(pa.table({"id": [1]}))
    client, bucket = s3_server.client("s3"), s3.path.split("/")[2]
    files = [key for key in s3.list_keys() if key.endswith((".json", ".parquet"))]
    heads = [client.head_object(Bucket=bucket, Key=key) for key in files]
    assert len(files) == 2
    assert {head.get("ServerSideEncryption") for head in heads} == {"aws:kms"}
    assert all(head["SSEKMSKeyId"].endswith("a-key") for head in heads)


def test_encryption_that_no_reader_could_undo_is_refused_before_writing(s3):
    key = base64.b64encode(bytes(32)).decode()
    conf = {
        **s3.conf,
        "fs.s3a.encryption.algorithm": "SSE-C",
        "fs.s3a.encryption.key": key,
    }
    with pytest.raises(ConfigError) as caught:
        DeltaLog.for_path(s3.path, conf).append(pa.table({"id": [1]}))
    assert caught.value.kind == "OPTIMIST_UNSUPPORTED_OPTION"
    assert key not in str(caught.value)
    assert s3.list_keys() == []


def test_a_signature_serves_and_never_shows(azure, azure_server):
    def conf_of(**allowed):
        return {
            "optimist.store.azure.account": azure_server.account,
            "optimist.store.azure.endpoint": azure_server.endpoint,
            "optimist.store.azure.sas": generate_account_sas(
                azure_server.account,
                azure_server.key,
                ResourceTypes(container=True, object=True),
                AccountSasPermissions(list=True, **allowed),
                "2100-01-01T00:00:00Z",
            ),
        }

    rows = pa.table({"id": [1, 2]})
    DeltaLog.for_path(azure.path, conf_of(read=True, write=True, create=True)).append(rows)
    reading = conf_of(read=True)
    assert DeltaLog.for_path(azure.path, reading).to_arrow().num_rows == 2
    with pytest.raises(StorageError) as caught:
        DeltaLog.for_path(azure.path, reading).append(rows)
    assert caught.value.kind == "OPTIMIST_PERMISSION_DENIED"
    signature = parse_qs(reading["optimist.store.azure.sas"])["sig"][0]
    parts = [part for part in signature.split("/") if len(part) > 3]
    assert parts
    assert not [part for part in parts if part in str(caught.value)]


@pytest.mark.again
def test_wrong_credentials_are_told(azure):
    conf = {key: "AAAA" if ".key." in key else value for key, value in azure.conf.items()}
    with pytest.raises(StorageError) as caught:
        DeltaLog.for_path(azure.path, conf).append(pa.table({"id": [1]}))
    assert azure.secret not in str(caught.value)
