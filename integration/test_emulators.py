"""Every emulator answers, and refuses the second create of one name in a race."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path

import boto3
import botocore.config
import botocore.exceptions
import py4j.java_gateway
import py4j.protocol
import pyspark
import pytest
import redis
from azure.core.exceptions import ResourceExistsError
from azure.storage.blob import BlobServiceClient
from google.api_core.exceptions import PreconditionFailed
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from py4j.java_gateway import GatewayParameters, JavaGateway, launch_gateway
from py4j.protocol import Py4JJavaError

from jvm_store import QUICK_CLOSE

CLIENTS = 8
ROUNDS = 10
ROOT = Path(__file__).resolve().parent.parent
PYSPARK_JARS = Path(pyspark.__file__).parent / "jars" / "*"
ONE_ATTEMPT = botocore.config.Config(
    retries={"total_max_attempts": 1}, max_pool_connections=CLIENTS, s3={"addressing_style": "path"}
)

# (name of the thing to create, what to put there) -> whether this client created it
Create = Callable[[str, bytes], bool]


def race(create: Create, read: Callable[[str], bytes]) -> None:
    """All clients create the same name at once, several times; exactly one may be told it did."""
    start = threading.Barrier(CLIENTS)

    def client(number: int) -> list[bool]:
        won = []
        for turn in range(ROUNDS):
            start.wait(timeout=60)
            won.append(create(f"round-{turn}", content(number)))
        return won

    with ThreadPoolExecutor(CLIENTS) as pool:
        clients = [pool.submit(client, number) for number in range(CLIENTS)]
        for ended in as_completed(clients):
            if ended.exception():
                start.abort()  # the others need not wait for a client that is gone
            ended.result()
        per_client = [ended.result() for ended in clients]
    for turn, told in enumerate(zip(*per_client, strict=True)):
        winners = [number for number, won in enumerate(told) if won]
        assert len(winners) == 1, f"round {turn}: {winners} were all told that they created it"
        assert read(f"round-{turn}") == content(winners[0])


def content(number: int) -> bytes:
    return f"client {number} ".encode() * 200


def test_s3_refuses_the_second_conditional_put(s3_server, fresh_name):
    client = aws_client("s3", s3_server)
    client.create_bucket(Bucket=fresh_name)

    def create(key: str, body: bytes) -> bool:
        try:
            client.put_object(Bucket=fresh_name, Key=key, Body=body, IfNoneMatch="*")
        except botocore.exceptions.ClientError as error:
            assert error.response["Error"]["Code"] == "PreconditionFailed"
            return False
        return True

    race(create, lambda key: client.get_object(Bucket=fresh_name, Key=key)["Body"].read())


def test_dynamodb_refuses_the_second_conditional_put(dynamodb_server, fresh_name):
    client = aws_client("dynamodb", dynamodb_server)
    client.create_table(
        TableName=fresh_name,
        AttributeDefinitions=[{"AttributeName": "key", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "key", "KeyType": "HASH"}],
        BillingMode="PAY_PER_REQUEST",
    )

    def create(key: str, body: bytes) -> bool:
        try:
            client.put_item(
                TableName=fresh_name,
                Item={"key": {"S": key}, "body": {"B": body}},
                ConditionExpression="attribute_not_exists(#key)",
                ExpressionAttributeNames={"#key": "key"},
            )
        except client.exceptions.ConditionalCheckFailedException:
            return False
        return True

    def read(key: str) -> bytes:
        got = client.get_item(TableName=fresh_name, Key={"key": {"S": key}}, ConsistentRead=True)
        return got["Item"]["body"]["B"]

    race(create, read)


def test_redis_refuses_the_second_set_nx(redis_server, fresh_name):
    with redis.Redis.from_url(redis_server.endpoint) as client:
        race(
            lambda key, body: client.set(f"{fresh_name}:{key}", body, nx=True) is True,
            lambda key: client.get(f"{fresh_name}:{key}"),
        )


def test_azurite_refuses_the_second_put_blob(azure_server, fresh_name):
    connection_string = azure_server.connection_string
    with BlobServiceClient.from_connection_string(connection_string, retry_total=0) as service:
        container = service.create_container(fresh_name)

        def create(key: str, body: bytes) -> bool:
            try:
                container.upload_blob(key, body, overwrite=False)
            except ResourceExistsError as error:
                assert error.error_code == "BlobAlreadyExists"
                return False
            return True

        race(create, lambda key: container.download_blob(key).readall())


def test_gcs_refuses_the_second_upload_of_generation_0(gcs_server, fresh_name):
    client = storage.Client(
        project=gcs_server.project,
        credentials=AnonymousCredentials(),
        client_options={"api_endpoint": gcs_server.endpoint},
    )
    bucket = client.create_bucket(fresh_name)

    def create(key: str, body: bytes) -> bool:
        try:
            bucket.blob(key).upload_from_string(body, if_generation_match=0, retry=None)
        except PreconditionFailed:
            return False
        return True

    race(create, lambda key: bucket.blob(key).download_as_bytes(retry=None))
    client.close()


def test_hdfs_refuses_the_second_rename_without_overwrite(hdfs_server, hadoop, fresh_name):
    jvm = hadoop.jvm
    configuration = jvm.org.apache.hadoop.conf.Configuration()
    configuration.set("dfs.replication", "1")
    for key, value in QUICK_CLOSE.items():
        configuration.set(key, value)
    uri = jvm.java.net.URI(hdfs_server.endpoint)
    files = jvm.org.apache.hadoop.fs.FileSystem.get(uri, configuration)
    context = jvm.org.apache.hadoop.fs.FileContext.getFileContext(uri, configuration)
    no_overwrite = rename_options(hadoop)

    def path(name: str) -> object:
        return jvm.org.apache.hadoop.fs.Path(f"{hdfs_server.endpoint}/{fresh_name}/{name}")

    def create(key: str, body: bytes) -> bool:
        staged = path(f"{key}.{threading.get_ident()}")
        out = files.create(staged, True)
        out.write(body)
        out.close()
        try:
            context.rename(staged, path(key), no_overwrite)
        except Py4JJavaError as error:
            assert error.java_exception.getClass().getSimpleName() == "FileAlreadyExistsException"
            return False
        return True

    def read(key: str) -> bytes:
        stream = files.open(path(key))
        try:
            return stream.readAllBytes()
        finally:
            stream.close()

    race(create, read)


@pytest.mark.parametrize("name", ["s3", "dynamodb", "redis", "azurite", "gcs", "hdfs"])
def test_compose_runs_the_version_that_up_installs(name):
    told = run([sys.executable, str(ROOT / "localstack" / "up.py"), "--list", name])
    version = re.search(r" (\d+\.\d+\.\d+), ", told).group(1)
    blocks = (ROOT / "localstack" / "compose.yaml").read_text().split("\n\n")
    (service,) = (block for block in blocks if f"\n  {name}:\n" in f"\n{block}")
    assert version in service


def test_a_missing_emulator_fails_where_emulators_are_required(session_without_emulators):
    outcome = session_without_emulators(REQUIRE_EMULATORS="1")
    assert "1 error in" in outcome
    assert "redis NOT UP: no such server here" in outcome


def test_a_missing_emulator_skips_with_its_reason_on_a_laptop(session_without_emulators):
    outcome = session_without_emulators(REQUIRE_EMULATORS="0")
    assert "1 skipped in" in outcome
    assert "redis NOT UP: no such server here" in outcome


def test_a_server_of_ones_own_is_taken_from_the_environment(session_without_emulators):
    outcome = session_without_emulators(REQUIRE_EMULATORS="1", EMULATOR_REDIS="redis://own:1/0")
    assert "1 passed in" in outcome


@pytest.fixture
def session_without_emulators(tmp_path):
    """Runs pytest over one test that wants Redis, with our conftest, where up.py finds nothing."""
    (tmp_path / "integration").mkdir()
    (tmp_path / "localstack").mkdir()
    shutil.copy(ROOT / "integration" / "conftest.py", tmp_path / "integration")
    (tmp_path / "integration" / "test_one.py").write_text(
        "def test_one(redis_server):\n    assert redis_server.endpoint == 'redis://own:1/0'\n"
    )
    (tmp_path / "localstack" / "up.py").write_text(
        "import sys\nprint('redis  NOT UP: no such server here')\nsys.exit(1)\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def session(**environment: str) -> str:
        command = [sys.executable, "-m", "pytest", "-ra", "-p", "no:cacheprovider", "integration"]
        return run(command, cwd=tmp_path, env={**os.environ, **environment})

    return session


@pytest.fixture(scope="module")
def hadoop() -> Iterator[JavaGateway]:
    """A JVM with the Hadoop client that PySpark brings."""
    port, token = launch_gateway(
        classpath=str(PYSPARK_JARS), die_on_exit=True, enable_auth=True, javaopts=["-Xmx256m"]
    )
    parameters = GatewayParameters(port=port, auth_token=token, auto_convert=True)
    gateway = JavaGateway(gateway_parameters=parameters)
    with pytest.MonkeyPatch.context() as patch:
        # Once this process has had a session, PySpark explains errors by asking Spark's classes in
        # the JVM, and this JVM runs none of them.
        patch.setattr(py4j.java_gateway, "get_return_value", py4j.protocol.get_return_value)
        yield gateway
    gateway.shutdown()


def rename_options(hadoop: JavaGateway) -> object:
    rename = getattr(hadoop.jvm.org.apache.hadoop.fs, "Options$Rename")
    options = hadoop.new_array(rename, 1)
    options[0] = rename.NONE
    return options


def aws_client(service: str, server):
    return boto3.client(
        service,
        endpoint_url=server.endpoint,
        region_name=server.region,
        aws_access_key_id=server.access_key_id,
        aws_secret_access_key=server.secret_access_key,
        config=ONE_ATTEMPT,
    )


def run(command: list[str], **how) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False, **how).stdout
