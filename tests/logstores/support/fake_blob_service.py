"""As much of Azure's Blob service as AzureLogStore needs, in this process."""

import email.utils
import re
from email.message import Message
from urllib.parse import unquote
from xml.sax.saxutils import escape

from scripted_http import Reply, Request, ScriptedService

KEY = "c2VjcmV0LWtleS1vZi10aGUtdGVzdA=="

_BATCHED = re.compile(r"Content-ID: (\d+)\r\n.*?\r\n\r\n(\S+) (\S+) HTTP/1.1\r\n", re.S)
_EMPTY = {"Content-Type": "binary/x", "x-ms-request-id": "1"}


class FakeBlobService(ScriptedService):
    """The blobs of the container `box` of the account `acct`, each with its entity tag.

    `refused` holds the answers to parts of a batch: a status and an error code, by blob.
    """

    def __init__(self, *, page_size=5000, honours_condition=True, knows_start_from=True):
        super().__init__()
        self.objects = {}
        self.staged = {}
        self.refused = {}
        self.page_size = page_size
        self.honours_condition = honours_condition
        self.knows_start_from = knows_start_from
        self.changes = 0

    @property
    def endpoint(self):
        return f"{super().endpoint}/acct"

    def options(self, **own):
        given = {"account": "acct", "accountKey": KEY, "endpoint": self.endpoint, **own}
        return {f"optimist.store.azure.{name}": value for name, value in given.items()}

    def put(self, name, data):
        self.changes += 1
        self.objects[name] = (data, f'"0x{self.changes}"')

    def refusal(self, status, code):
        return Reply(status, headers={**_EMPTY, **({"x-ms-error-code": code} if code else {})})

    def work(self, request):
        query = request.query
        if query.get("comp") == "list":
            return _found(self.listing(query), {"Content-Type": "application/xml"})
        if query.get("comp") == "batch":
            return self.batch(request)
        name = request.path.removeprefix("/acct/box/")
        if query.get("comp") == "block":
            assert not name.endswith(".json"), "a commit is one request"
            self.staged[name, query["blockid"]] = request.body
            return _done(201)
        if query.get("comp") == "blocklist":
            wanted = re.findall(r"<Latest>(.*?)</Latest>", request.body.decode())
            data = b"".join(self.staged[name, each] for each in wanted)
            return self.create(name, data, request)
        assert "comp" not in query, request.target
        return getattr(self, f"blob_{request.method.lower()}")(name, request)

    def batch(self, request):
        answers = [self.batched(*part) for part in _BATCHED.findall(request.body.decode())]
        body = "".join(f"--parts\r\n{answer}\r\n" for answer in reversed(answers)) + "--parts--"
        kind = {"Content-Type": "multipart/mixed; boundary=parts"}
        return Reply(202, body.encode(), {**_EMPTY, **kind})

    def batched(self, number, method, target):
        inner = Request(method, target, Message(), b"")
        name = unquote(inner.path.partition("box/")[2])
        planned = self.refused.get(name)
        reply = self.blob_delete(name, inner) if planned is None else self.refusal(*planned)
        code = reply.headers.get("x-ms-error-code")
        return (
            f"Content-Type: application/http\r\nContent-ID: {number}\r\n\r\n"
            f"HTTP/1.1 {reply.status} Whatever\r\n"
            + (f"x-ms-error-code: {code}\r\n" if code else "")
            + "\r\n"
        )

    def blob_put(self, name, request):
        assert request.headers["x-ms-blob-type"] == "BlockBlob"
        return self.create(name, request.body, request)

    def create(self, name, data, request):
        is_conditional = request.headers.get("If-None-Match") == "*" and self.honours_condition
        if is_conditional and name in self.objects:
            return self.refusal(409, "BlobAlreadyExists")
        self.put(name, data)
        return _done(201)

    def blob_delete(self, name, request):
        if self.objects.pop(name, None) is None:
            return self.refusal(404, "BlobNotFound")
        return _done(202)

    def blob_get(self, name, request):
        if name not in self.objects:
            return self.refusal(404, "BlobNotFound")
        data, etag = self.objects[name]
        if request.headers.get("If-Match") not in (None, etag):
            return self.refusal(412, "ConditionNotMet")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("x-ms-range", ""))
        if asked is None or request.method == "HEAD":
            return _found(data, {"ETag": etag})
        start, end = int(asked[1]), min(int(asked[2]), len(data) - 1)
        if start >= len(data):
            return self.refusal(416, "InvalidRange")
        span = {"ETag": etag, "Content-Range": f"bytes {start}-{end}/{len(data)}"}
        return _found(data[start : end + 1], span, status=206)

    blob_head = blob_get

    def listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        start = query.get("startFrom", "") if self.knows_start_from else ""
        start = max(start, query.get("marker", ""))
        items = {}
        for name, (data, etag) in sorted(self.objects.items()):
            if not name.startswith(prefix) or name < start:
                continue
            below = name[len(prefix) :]
            if delimiter and delimiter in below:
                items[prefix + below.split(delimiter)[0] + delimiter] = None
            else:
                items[name] = (len(data), etag)
        names = list(items)
        size = min(self.page_size, int(query.get("maxresults", 5000)))
        entries = "".join(_entry(name, items[name]) for name in names[:size])
        marker = escape(names[size]) if len(names) > size else ""
        return (
            '<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="box">'
            f"<Prefix>{escape(prefix)}</Prefix><Blobs>{entries}</Blobs>"
            f"<NextMarker>{marker}</NextMarker></EnumerationResults>"
        ).encode()


def _done(status):
    return _found(b"", {}, status=status)


def _found(body, headers, *, status=200):
    usual = {
        **_EMPTY,
        "Last-Modified": "Fri, 20 Nov 2026 10:00:00 GMT",
        "ETag": '"0x0"',
        "x-ms-blob-type": "BlockBlob",
    }
    return Reply(status, body, {**usual, **headers})


def _entry(name, found):
    if found is None:
        return f"<BlobPrefix><Name>{escape(name)}</Name></BlobPrefix>"
    size, etag = found
    when = email.utils.formatdate(1_790_000_000, usegmt=True)
    return (
        f"<Blob><Name>{escape(name)}</Name><Properties><Last-Modified>{when}</Last-Modified>"
        f"<Etag>{escape(etag)}</Etag><Content-Length>{size}</Content-Length>"
        "<BlobType>BlockBlob</BlobType></Properties></Blob>"
    )
