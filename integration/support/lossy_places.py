"""The stores of the lost-answer tests, each behind proxies, with a way round to the raw files."""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import boto3
from azure.storage.blob import ContainerClient
from botocore.config import Config
from google.auth.credentials import AnonymousCredentials
from google.cloud.storage import Client

from lossy_proxy import LossyProxy, Request
from lossy_redis import LossyRedis
from optimist.core.plugins.logstore import LogStore
from optimist.core.runtime.clock import SystemClock
from optimist.locks.dynamodb_arbiter import DynamoDBArbiter
from optimist.locks.redis_arbiter import RedisArbiter
from optimist.logstores.azure.store import AzureLogStore
from optimist.logstores.gcs.store import GCSLogStore
from optimist.logstores.s3.dynamodb import S3DynamoDBLogStore
from optimist.logstores.s3.redis import S3RedisLogStore
from optimist.logstores.s3.store import S3LogStore

__all__ = [
    "Place",
    "QuickClock",
    "azure_place",
    "gcs_place",
    "new_bucket",
    "s3_dynamodb_place",
    "s3_error",
    "s3_files",
    "s3_options",
    "s3_place",
    "s3_redis_place",
]

TIMEOUT_S = 1.0
"""How long a client waits for an answer: far more than an emulator needs for one."""
_COMMIT_1 = "_delta_log/00000000000000000001.json"
_CODES = {409: "ConditionalRequestConflict", 429: "SlowDown", 500: "InternalError", 503: "SlowDown"}

Rule = Callable[[Request], bool]


class QuickClock(SystemClock):
    """The machine's time and chance, without its patience: `sleep` returns at once."""

    def sleep(self, duration_s: float) -> None:
        pass


@dataclass(frozen=True)
class Place:
    """One store, with proxies before its servers.

    Attributes:
        url: The place of the tables.
        lossy: A store that goes through the proxies.
        direct: A store of the same kind that does not, like another machine's.
        proxies: By the name of the server.
        steps: The requests of a commit of version 1: the server, and which of its requests.
        files: The files under a prefix, past every store.
        past_proxies: The same place for who goes past the proxies, where a URL names the server.
    """

    url: str
    lossy: LogStore
    direct: LogStore
    proxies: Mapping[str, LossyProxy]
    steps: Mapping[str, tuple[str, Rule]]
    files: Callable[[str], dict[str, bytes]]
    past_proxies: str = ""

    @property
    def direct_url(self) -> str:
        """The place as the direct store names it: `past_proxies`, where the URL has a host."""
        return self.past_proxies or self.url

    def proxy_of(self, step: str) -> tuple[LossyProxy, Rule]:
        """Where a step can be disturbed."""
        server, rule = self.steps[step]
        return self.proxies[server], rule

    def heal(self) -> None:
        """All proxies pass everything again, and what they held has arrived."""
        for proxy in self.proxies.values():
            proxy.heal()


# S3


@contextmanager
def s3_place(endpoint: str) -> Iterator[Place]:
    bucket, client = new_bucket(endpoint)
    with LossyProxy(endpoint, error_answer=s3_error) as proxy:
        yield Place(
            f"s3://{bucket}",
            S3LogStore(s3_options(proxy.endpoint), clock=QuickClock()),
            S3LogStore(s3_options(endpoint), clock=QuickClock()),
            {"s3": proxy},
            {
                "probe": ("s3", _request("PUT", "probe-")),
                "create": ("s3", _request("PUT", _COMMIT_1)),
                "read-back": ("s3", _request("GET", _COMMIT_1)),
                "list": ("s3", _request("GET", "list-type=2")),
            },
            partial(s3_files, client, bucket),
        )


@contextmanager
def s3_dynamodb_place(s3_endpoint: str, dynamodb_endpoint: str) -> Iterator[Place]:
    bucket, client = new_bucket(s3_endpoint)
    table = f"log-{uuid.uuid4().hex}"
    with ExitStack() as stack:
        s3 = stack.enter_context(LossyProxy(s3_endpoint, error_answer=s3_error))
        dynamodb = stack.enter_context(LossyProxy(dynamodb_endpoint, error_answer=_dynamodb_error))
        yield Place(
            f"s3://{bucket}",
            _s3_dynamodb(s3.endpoint, dynamodb.endpoint, table),
            _s3_dynamodb(s3_endpoint, dynamodb_endpoint, table),
            {"s3": s3, "dynamodb": dynamodb},
            {
                "list": ("s3", _request("GET", "list-type=2")),
                "stage": ("s3", _request("PUT", "/.tmp/")),
                "copy": ("s3", _request("PUT", _COMMIT_1)),
                "read-back": ("s3", _request("GET", _COMMIT_1)),
                "arbiter-latest": ("dynamodb", _operation("Query")),
                "arbiter-get": ("dynamodb", _operation("GetItem")),
                "arbiter-create": ("dynamodb", _operation("PutItem")),
                "arbiter-complete": ("dynamodb", _operation("UpdateItem")),
            },
            partial(s3_files, client, bucket),
        )


@contextmanager
def s3_redis_place(s3_endpoint: str, redis_url: str) -> Iterator[tuple[Place, LossyRedis]]:
    bucket, client = new_bucket(s3_endpoint)
    prefix = uuid.uuid4().hex

    def store(url: str) -> S3RedisLogStore:
        own = {"url": url, "prefix": prefix, "timeoutSeconds": str(TIMEOUT_S)}
        options = {f"optimist.store.redis.{name}": value for name, value in own.items()}
        arbiter = RedisArbiter(options, clock=QuickClock())
        return S3RedisLogStore(s3_options(s3_endpoint), arbiter=arbiter, clock=QuickClock())

    with LossyRedis(redis_url) as proxy:
        files = partial(s3_files, client, bucket)
        yield Place(f"s3://{bucket}", store(proxy.url), store(redis_url), {}, {}, files), proxy


def new_bucket(endpoint: str) -> tuple[str, Any]:
    bucket = f"lost-{uuid.uuid4().hex}"
    client = boto3.client("s3", endpoint_url=endpoint, **_KEYS)
    client.create_bucket(Bucket=bucket)
    return bucket, client


_KEYS: dict[str, str] = {
    "region_name": "us-east-1",
    "aws_access_key_id": "test",
    "aws_secret_access_key": "test",
}


def s3_options(endpoint: str) -> dict[str, str]:
    return {
        "fs.s3a.endpoint": endpoint,
        "fs.s3a.endpoint.region": "us-east-1",
        "fs.s3a.path.style.access": "true",
        "fs.s3a.access.key": "test",
        "fs.s3a.secret.key": "test",
        "optimist.store.s3.readTimeoutSeconds": str(TIMEOUT_S),
    }


def _s3_dynamodb(s3_endpoint: str, dynamodb_endpoint: str, table: str) -> S3DynamoDBLogStore:
    config = Config(read_timeout=TIMEOUT_S, retries={"total_max_attempts": 1, "mode": "standard"})
    client = boto3.client("dynamodb", endpoint_url=dynamodb_endpoint, config=config, **_KEYS)
    options = {"spark.io.delta.storage.S3DynamoDBLogStore.ddb.tableName": table}
    arbiter = DynamoDBArbiter(options, client=client, clock=QuickClock())
    return S3DynamoDBLogStore(s3_options(s3_endpoint), arbiter=arbiter, clock=QuickClock())


def _request(method: str, part: str) -> Rule:
    return lambda request: request.method == method and part in request.path


def _operation(name: str) -> Rule:
    target = ("x-amz-target", f"DynamoDB_20120810.{name}")
    return lambda request: target in {(key.lower(), value) for key, value in request.headers}


def s3_files(client: Any, bucket: str, prefix: str) -> dict[str, bytes]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    keys = [item["Key"] for page in pages for item in page.get("Contents", [])]
    return {key: client.get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def s3_error(status: int) -> tuple[dict[str, str], bytes]:
    body = f"<Error><Code>{_CODES[status]}</Code><Message>planned</Message></Error>"
    return {"Content-Type": "application/xml"}, body.encode()


def _dynamodb_error(status: int) -> tuple[dict[str, str], bytes]:
    kinds = {429: "ThrottlingException", 500: "InternalServerError", 503: "ServiceUnavailable"}
    kind = f"com.amazonaws.dynamodb.v20120810#{kinds.get(status, 'TransactionInProgress')}"
    return {"Content-Type": "application/x-amz-json-1.0"}, json.dumps({"__type": kind}).encode()


# Azure


@contextmanager
def azure_place(endpoint: str, account: str, key: str) -> Iterator[Place]:
    box = f"lost-{uuid.uuid4().hex}"
    credential = {"account_name": account, "account_key": key}
    with ExitStack() as stack:
        container = stack.enter_context(ContainerClient(endpoint, box, credential=credential))
        container.create_container()
        proxy = stack.enter_context(LossyProxy(endpoint, error_answer=_azure_error))

        def store(there: str) -> AzureLogStore:
            given = {
                "account": account,
                "accountKey": key,
                "endpoint": there,
                "readTimeoutSeconds": str(TIMEOUT_S),
            }
            options = {f"optimist.store.azure.{name}": value for name, value in given.items()}
            return AzureLogStore(options, clock=QuickClock())

        yield Place(
            f"abfss://{box}@{account}.dfs.core.windows.net",
            store(proxy.endpoint),
            store(endpoint),
            {"azure": proxy},
            {
                "probe": ("azure", _request("PUT", "probe-")),
                "create": ("azure", _request("PUT", _COMMIT_1)),
                "read-back": ("azure", _request("GET", _COMMIT_1)),
                "list": ("azure", _request("GET", "comp=list")),
            },
            lambda prefix: {
                blob.name: container.download_blob(blob.name).readall()
                for blob in container.list_blobs(prefix)
            },
        )


def _azure_error(status: int) -> tuple[dict[str, str], bytes]:
    codes = {409: "OperationNotAllowed", 429: "TooManyRequests", 500: "InternalError"}
    return {"x-ms-error-code": codes.get(status, "ServerBusy")}, b""


# GCS


@contextmanager
def gcs_place(endpoint: str) -> Iterator[Place]:
    with ExitStack() as stack:
        client = Client(
            project="test",
            credentials=AnonymousCredentials(),
            client_options={"api_endpoint": endpoint},
        )
        stack.callback(client.close)
        bucket = client.create_bucket(f"lost-{uuid.uuid4().hex}")
        proxy = stack.enter_context(LossyProxy(endpoint, error_answer=_gcs_error))

        def store(there: str) -> GCSLogStore:
            options = {
                "optimist.store.gcs.emulatorHost": there,
                "optimist.store.gcs.readTimeoutSeconds": str(TIMEOUT_S),
            }
            return GCSLogStore(options, clock=QuickClock())

        yield Place(
            f"gs://{bucket.name}",
            store(proxy.endpoint),
            store(endpoint),
            {"gcs": proxy},
            {
                "probe": ("gcs", _is_probe),
                "create": ("gcs", _is_upload),
                "read-back": ("gcs", _request("GET", f"{_COMMIT_1}?alt=media")),
                "list": ("gcs", lambda request: request.method == "GET" and "/o?" in request.path),
            },
            lambda prefix: {
                blob.name: blob.download_as_bytes() for blob in bucket.list_blobs(prefix=prefix)
            },
        )


def _is_upload(request: Request) -> bool:
    return request.method == "POST" and f'{_COMMIT_1}"'.encode() in request.body


def _is_probe(request: Request) -> bool:
    return request.method == "POST" and b".optimist-probe-" in request.body


def _gcs_error(status: int) -> tuple[dict[str, str], bytes]:
    reasons = {409: "conflict", 429: "rateLimitExceeded"}
    reason = reasons.get(status, "backendError")
    error = {"code": status, "message": "planned", "errors": [{"reason": reason}]}
    return {"Content-Type": "application/json"}, json.dumps({"error": error}).encode()
