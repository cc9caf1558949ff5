"""Servers that live for the test run: moto's DynamoDB in this process, Redis if there is one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import threading
from contextlib import closing

import boto3
import fakeredis
import pytest
import redis
from botocore.config import Config
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler

from optimist.core.clock import SystemClock


@pytest.fixture
def dynamodb(monkeypatch):
    """A client of a DynamoDB that nobody else uses.

    moto checks a condition and then acts, and threads can pass the check together, which no
    DynamoDB lets them. So its requests are served one by one.
    """
    one_by_one = threading.Lock()
    serve = DynamoHandler.call_action

    def call_action(handler):
        with one_by_one:
            return serve(handler)

    monkeypatch.setattr(DynamoHandler, "call_action", call_action)
    with mock_aws():
        yield boto3.client(
            "dynamodb",
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(retries={"total_max_attempts": 1, "mode": "standard"}),
        )


@pytest.fixture
def redis_client():
    """A Redis that nobody else uses, in this process."""
    with closing(fakeredis.FakeRedis(decode_responses=True)) as client:
        yield client


@pytest.fixture(scope="session")
def redis_url(tmp_path_factory):
    """The URL of a real Redis server."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("there is no redis-server on the PATH")
    port = free_port()
    directory = tmp_path_factory.mktemp("redis")
    arguments = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(directory)]
    server = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    try:
        wait_until_up(port)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(30)


def free_port():
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until_up(port):
    clock = SystemClock()
    for _ in range(200):
        with closing(redis.Redis(port=port)) as client:
            try:
                client.ping()
            except redis.ConnectionError:
                clock.sleep(0.05)
            else:
                return
    pytest.fail("the Redis server did not come up")
