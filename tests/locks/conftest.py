"""A server that lives in this process: moto's DynamoDB."""

from __future__ import annotations

import threading

import boto3
import pytest
from botocore.config import Config
from moto import mock_aws
from moto.dynamodb.responses import DynamoHandler


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
