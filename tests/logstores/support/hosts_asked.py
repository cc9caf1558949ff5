"""Servers that note who asked them for what, and a world outside that only notes its name."""

import contextlib
import ipaddress
import json
import socket
import threading
from email.utils import formatdate

from scripted_http import Reply, ScriptedService

XML = {"Content-Type": "application/xml", "Last-Modified": formatdate(0, usegmt=True)}


class Host(ScriptedService):
    """Knows no file, takes every upload, gives a token to whoever asks; notes all of it."""

    def __init__(self, name, *, redirects_to=None):
        super().__init__()
        self.name = name
        self.redirects_to = redirects_to

    def work(self, request):
        if self.redirects_to is not None:
            return Reply(302, b"", {"Location": self.redirects_to.endpoint + request.target})
        if "latest/api/token" in request.target:
            return Reply(200, b"metadata-token")
        if "iam/security-credentials" in request.target:
            return _json(_IAM if request.target.rstrip("/").endswith("/role") else "role")
        if "token" in request.path.rpartition("/")[2] or "/service-accounts/" in request.path:
            return _json({"access_token": "of-the-machine", "expires_in": 3600, "email": "e"})
        if request.path == "/" or request.path.startswith("/computeMetadata"):
            return Reply(404 if "universe" in request.path else 200, b"project", _GOOGLE)
        if request.method in ("PUT", "POST"):
            return Reply(201, b"{}", {**XML, "ETag": '"e"'})
        if request.method == "HEAD":  # Azure's SDK for C++ ends the process over XML without text
            return Reply(404, b"", _AZURE)
        return Reply(404, b"<Error><Code>NoSuchKey</Code></Error>", {**XML, **_AZURE})

    @property
    def authorizations(self):
        """What the requests carried as credentials, the kinds alone where they are signatures."""
        found = (each.headers.get("Authorization", "") for each in self.requests)
        return {
            each if each.startswith(("Bearer", "Basic")) else each.split(" ")[0] for each in found
        }


_GOOGLE = {"Metadata-Flavor": "Google", "Content-Type": "application/text"}
_AZURE = {"x-ms-error-code": "BlobNotFound", "x-ms-request-id": "r", "x-ms-version": "2024-01-01"}
_IAM = {
    "Code": "Success",
    "Type": "AWS-HMAC",
    "AccessKeyId": "OF-THE-ROLE",
    "SecretAccessKey": "hush",
    "Token": "tok",
    "Expiration": "2200-01-01T00:00:00Z",
    "LastUpdated": "2020-01-01T00:00:00Z",
}


def _json(value):
    return Reply(
        200,
        value.encode() if isinstance(value, str) else json.dumps(value).encode(),
        {"Content-Type": "application/json", "Metadata-Flavor": "Google"},
    )


@contextlib.contextmanager
def hosts(*names):
    """Listening servers of these names."""
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(Host(name)) for name in names]


class Outside:
    """Every host but this machine: its name is noted, and it can't be reached."""

    def __init__(self, monkeypatch):
        self.asked = []
        self._lock = threading.Lock()
        known = socket.getaddrinfo

        def look_up(host, *args, **named):
            name = host.decode() if isinstance(host, bytes) else host
            if name == "localhost" or _is_loopback(name):
                return known(host, *args, **named)
            with self._lock:
                self.asked.append(name)
            raise socket.gaierror(socket.EAI_NONAME, "nobody is reached from a test")

        monkeypatch.setattr(socket, "getaddrinfo", look_up)


def _is_loopback(name):
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
