"""S3 in this process: moto, one request at a time, since it can be raced."""

import logging
import threading
import uuid
from contextlib import contextmanager

import boto3
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import WSGIRequestHandler, make_server

logging.getLogger("werkzeug").setLevel(logging.ERROR)


class OneAtATime:
    """The server, with a lock, a record of requests, and a rule that can be told to misbehave."""

    def __init__(self):
        self.app = DomainDispatcherApplication(create_backend_app)
        self.lock = threading.Lock()
        self.requests = []
        self.ignores_condition = False
        self.refusals = []

    def __call__(self, environ, start_response):
        with self.lock:
            self.requests.append(
                (environ["REQUEST_METHOD"], environ["PATH_INFO"], environ["QUERY_STRING"])
            )
            if self.refusals and environ["REQUEST_METHOD"] == "PUT":
                return self._refuse(*self.refusals.pop(0), start_response)
            if self.ignores_condition:
                environ.pop("HTTP_IF_NONE_MATCH", None)
            return list(self.app(environ, start_response))

    def _refuse(self, status, code, start_response):
        body = f"<Error><Code>{code}</Code><Message>hunter2</Message></Error>".encode()
        start_response(f"{status} Refused", [("Content-Length", str(len(body)))])
        return [body]

    @contextmanager
    def counting(self):
        """The requests made meanwhile."""
        start = len(self.requests)
        made = []
        yield made
        made.extend(self.requests[start:])


class Quiet(WSGIRequestHandler):
    protocol_version = "HTTP/1.1"

    def log(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    app = OneAtATime()
    running = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    running.daemon_threads = True
    app.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    yield app
    running.shutdown()
    running.server_close()
    thread.join()


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
    client = boto3.client(
        "s3",
        endpoint_url=server.url,
        region_name="us-east-1",
        aws_access_key_id="test",
        aws_secret_access_key="test",
    )
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
