"""As much of Google Cloud Storage's JSON API as GCSLogStore needs, in this process."""

import base64
import hashlib
import json
import re
from email.message import Message

import google_crc32c

from scripted_http import Reply, Request, ScriptedService

_PART = re.compile(
    rb"--(?P<mark>\S+)\r\n.*?\r\n\r\n(?P<about>.*?)\r\n--(?P=mark)\r\n.*?\r\n\r\n", re.S
)
_BATCHED = re.compile(r"Content-ID: <(.*?)>\r\n\r\n(\S+) (\S+) HTTP/1.1\r\n")


class FakeJsonApi(ScriptedService):
    """The objects of the bucket `box`, each with a generation that preconditions are about.

    `refused` holds the answers to parts of a batch: a status and an error code, by object.
    """

    def __init__(self, *, page_size=1000, honours_condition=True):
        super().__init__()
        self.objects = {}
        self.uploads = []
        self.refused = {}
        self.page_size = page_size
        self.honours_condition = honours_condition
        self.generation = 100

    def options(self, **own):
        given = {"emulatorHost": self.endpoint, **own}
        return {f"optimist.store.gcs.{name}": value for name, value in given.items()}

    def put(self, name, data):
        self.generation += 1
        self.objects[name] = (data, self.generation)
        return self.about(name)

    def about(self, name):
        data, generation = self.objects[name]
        return {
            "kind": "storage#object",
            "name": name,
            "bucket": "box",
            "generation": str(generation),
            "size": str(len(data)),
            "updated": "2026-11-20T10:00:00.123Z",
            "md5Hash": base64.b64encode(hashlib.md5(data).digest()).decode(),
            "crc32c": base64.b64encode(google_crc32c.Checksum(data).digest()).decode(),
        }

    def refusal(self, status, code):
        error = {"code": status, "message": "no", "errors": [{"reason": code, "message": "no"}]}
        return Reply(status, json.dumps({"error": error}).encode())

    def aside(self, request):
        # The client library asks about the bucket by itself, in a thread, for its traces.
        is_about_bucket = request.path == "/storage/v1/b/box"
        return self.refusal(403, "forbidden") if is_about_bucket else None

    def work(self, request):
        if request.path == "/upload/storage/v1/b/box/o":
            return self.upload(request)
        if request.path == "/storage/v1/b/box/o":
            return Reply(200, json.dumps(self.listing(request.query)).encode())
        if request.path == "/batch/storage/v1":
            return self.batch(request)
        path = re.fullmatch(r"(/download)?/storage/v1/b/box/o/(.*)", request.path)
        media, name = path.groups()
        if name not in self.objects:
            return self.refusal(404, "notFound")
        if request.method == "DELETE":
            del self.objects[name]
            return Reply(204)
        if media:
            return self.media(name, request)
        return Reply(200, json.dumps(self.about(name)).encode())

    def batch(self, request):
        answers = [self.batched(*part) for part in _BATCHED.findall(request.body.decode())]
        body = "".join(f"--parts\r\n{answer}\r\n" for answer in reversed(answers)) + "--parts--"
        return Reply(200, body.encode(), {"Content-Type": "multipart/mixed; boundary=parts"})

    def batched(self, number, method, target):
        inner = Request(method, target, Message(), b"")
        name = inner.path.removeprefix("/storage/v1/b/box/o/")
        planned = self.refused.get(name)
        reply = self.work(inner) if planned is None else self.refusal(*planned)
        return (
            f"Content-Type: application/http\r\nContent-ID: <response-{number}>\r\n\r\n"
            f"HTTP/1.1 {reply.status} Whatever\r\n\r\n{reply.body.decode()}"
        )

    def upload(self, request):
        if request.query["uploadType"] == "resumable":
            return self.upload_piece(request)
        part = _PART.match(request.body)
        data = request.body[part.end() : -len(b"\r\n--" + part["mark"] + b"--\r\n")]
        about = json.loads(part["about"])
        assert base64.b64decode(about["md5Hash"]) == hashlib.md5(data).digest()
        return self.create(about["name"], data, request.query)

    def upload_piece(self, request):
        if request.method == "POST":
            name = json.loads(request.body)["name"]
            assert not name.endswith(".json"), "a commit is one request"
            self.uploads.append((name, request.query, bytearray()))
            link = f"{self.endpoint}{request.target}&upload_id={len(self.uploads) - 1}"
            return Reply(200, headers={"Location": link})
        name, begun_with, received = self.uploads[int(request.query["upload_id"])]
        received += request.body
        if not request.headers["Content-Range"].endswith(f"/{len(received)}"):
            return Reply(308, headers={"Range": f"bytes=0-{len(received) - 1}"})
        return self.create(name, bytes(received), begun_with)

    def create(self, name, data, query):
        is_conditional = query.get("ifGenerationMatch") == "0" and self.honours_condition
        if is_conditional and name in self.objects:
            return self.refusal(412, "conditionNotMet")
        return Reply(200, json.dumps(self.put(name, data)).encode())

    def media(self, name, request):
        data, generation = self.objects[name]
        if request.query.get("ifGenerationMatch", str(generation)) != str(generation):
            return self.refusal(412, "conditionNotMet")
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range", ""))
        said = {"X-Goog-Generation": str(generation)}
        if asked is None:
            return Reply(200, data, said)
        start, end = int(asked[1]), min(int(asked[2]) + 1, len(data))
        said["Content-Range"] = f"bytes {start}-{end - 1}/{len(data)}"
        return Reply(206, data[start:end], said)

    def listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        start = max(query.get("startOffset", ""), query.get("pageToken", ""))
        names = {}
        for name in sorted(self.objects):
            if name.startswith(prefix) and name >= start:
                below = name[len(prefix) :]
                is_deeper = delimiter is not None and delimiter in below
                names[prefix + below.split("/")[0] + "/" if is_deeper else name] = is_deeper
        size = min(self.page_size, int(query.get("maxResults", 1000)))
        page, rest = list(names)[:size], list(names)[size:]
        return {
            "kind": "storage#objects",
            "items": [self.about(name) for name in page if not names[name]],
            "prefixes": [name for name in page if names[name]],
            **({"nextPageToken": rest[0]} if rest else {}),
        }
