"""S3 in this process."""

import uuid

import pytest

from moto_server import running_s3


@pytest.fixture(scope="module")
def server():
    with running_s3() as server:
        yield server


@pytest.fixture(autouse=True)
def environment(server, monkeypatch):
    for key in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_REGION", "AWS_CONFIG_FILE"):
        monkeypatch.delenv(key, raising=False)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.url)


@pytest.fixture(scope="module")
def s3(server):
    client = server.client()
    client.create_bucket(Bucket="tables")
    return client


@pytest.fixture
def table(s3):
    return f"s3://tables/{uuid.uuid4()}"


@pytest.fixture
def log(table):
    return f"{table}/_delta_log"


@pytest.fixture
def unprobed_log(s3):
    """A log in a bucket of its own: no store of this process has written there."""
    bucket = f"bucket-{uuid.uuid4()}"
    s3.create_bucket(Bucket=bucket)
    return f"s3://{bucket}/table/_delta_log"
