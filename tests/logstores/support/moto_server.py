"""S3 in this process: moto, one request at a time, since it can be raced."""

import logging
import threading
from contextlib import contextmanager

import boto3
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

    def client(self):
        """A plain client, for what goes past the store under test."""
        return boto3.client(
            "s3",
            endpoint_url=self.url,
            region_name="us-east-1",
            aws_access_key_id="test",
            aws_secret_access_key="test",
        )

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


@contextmanager
def running_s3():
    """The server, which knows its `url`."""
    app = OneAtATime()
    running = make_server("127.0.0.1", 0, app, threaded=True, request_handler=Quiet)
    running.daemon_threads = True
    app.url = f"http://127.0.0.1:{running.server_port}"
    thread = threading.Thread(target=running.serve_forever, daemon=True)
    thread.start()
    try:
        yield app
    finally:
        running.shutdown()
        running.server_close()
        thread.join()
