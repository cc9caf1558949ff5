"""As much of Amazon's S3 as S3LogStore needs, in this process."""

import hashlib
import re
from urllib.parse import quote
from xml.sax.saxutils import escape, unescape

from scripted_http import Reply, ScriptedService

_XML = {"Content-Type": "application/xml"}
_NAMESPACE = "http://s3.amazonaws.com/doc/2006-03-01/"


class FakeS3Service(ScriptedService):
    """The objects of the bucket `box`, each with its entity tag.

    `refused` holds the error codes for keys of a request that deletes many.
    """

    def __init__(self, *, page_size=1000, honours_condition=True):
        super().__init__()
        self.objects = {}
        self.uploads = {}
        self.refused = {}
        self.page_size = page_size
        self.honours_condition = honours_condition

    def options(self, **own):
        given = {"endpoint": self.endpoint, "region": "us-east-1", **own}
        keys = {"accessKey": "test", "secretKey": "test"}
        return {f"optimist.store.s3.{name}": value for name, value in {**keys, **given}.items()}

    def put(self, name, data):
        tag = f'"{hashlib.md5(data).hexdigest()}"'
        self.objects[name] = (data, tag)
        return tag

    def refusal(self, status, code):
        return Reply(status, f"<Error><Code>{code}</Code></Error>".encode(), _XML)

    def work(self, request):
        query, name = request.every_query, request.path.removeprefix("/box").removeprefix("/")
        if "list-type" in query:
            return self.listing(query)
        if "uploads" in query and request.method == "GET":
            return _answer("ListMultipartUploadsResult", "<IsTruncated>false</IsTruncated>")
        if "delete" in query:
            return self.delete_many(request)
        if "uploads" in query or "uploadId" in query:
            return self.in_parts(name, query, request)
        return getattr(self, f"object_{request.method.lower()}")(name, request)

    def object_put(self, name, request):
        if self.is_taken(name, request):
            return self.refusal(412, "PreconditionFailed")
        return Reply(200, headers={"ETag": self.put(name, request.body)})

    def is_taken(self, name, request):
        is_conditional = request.headers.get("If-None-Match") == "*" and self.honours_condition
        return is_conditional and name in self.objects

    def object_delete(self, name, request):
        self.objects.pop(name, None)
        return Reply(204)

    def object_get(self, name, request):
        if name not in self.objects:
            return self.refusal(404, "NoSuchKey")
        data, tag = self.objects[name]
        if request.headers.get("If-Match") not in (None, tag):
            return self.refusal(412, "PreconditionFailed")
        span = _span(request.headers.get("Range", ""), len(data))
        if span is None:
            return Reply(200, data, {"ETag": tag})
        start, end = span
        if start >= len(data):
            return self.refusal(416, "InvalidRange")
        said = {"ETag": tag, "Content-Range": f"bytes {start}-{end - 1}/{len(data)}"}
        return Reply(206, data[start:end], said)

    def in_parts(self, name, query, request):
        if "uploads" in query:
            self.uploads[str(len(self.uploads))] = {}
            said = f"<Key>{escape(name)}</Key><UploadId>{len(self.uploads) - 1}</UploadId>"
            return _answer("InitiateMultipartUploadResult", said)
        parts = self.uploads.get(query["uploadId"])
        if parts is None:
            return self.refusal(404, "NoSuchUpload")
        if request.method == "PUT":
            parts[query["partNumber"]] = request.body
            return Reply(200, headers={"ETag": f'"{hashlib.md5(request.body).hexdigest()}"'})
        if request.method == "DELETE":
            del self.uploads[query["uploadId"]]
            return Reply(204)
        if self.is_taken(name, request):
            return self.refusal(412, "PreconditionFailed")
        wanted = re.findall(r"<PartNumber>(\d+)</PartNumber>", request.body.decode())
        tag = self.put(name, b"".join(parts[number] for number in wanted))
        del self.uploads[query["uploadId"]]
        said = f"<Bucket>box</Bucket><Key>{escape(name)}</Key><ETag>{escape(tag)}</ETag>"
        return _answer("CompleteMultipartUploadResult", said)

    def delete_many(self, request):
        text = request.body.decode()
        answers = []
        for key in re.findall(r"<Key>(.*?)</Key>", text):
            code = self.refused.get(unescape(key))
            if code is not None:
                answers.append(f"<Error><Key>{key}</Key><Code>{code}</Code></Error>")
                continue
            self.objects.pop(unescape(key), None)
            answers.append(f"<Deleted><Key>{key}</Key></Deleted>")
        if "<Quiet>true</Quiet>" in text:
            answers = [each for each in answers if each.startswith("<Error>")]
        return _answer("DeleteResult", "".join(reversed(answers)))

    def listing(self, query):
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter")
        after = max(query.get("start-after", ""), query.get("continuation-token", ""))
        entries = {}
        for name, (data, tag) in sorted(self.objects.items()):
            below = name[len(prefix) :]
            if not name.startswith(prefix):
                continue
            if delimiter and delimiter in below:
                common = prefix + below.split(delimiter)[0] + delimiter
                entries[common] = (
                    f"<CommonPrefixes><Prefix>{quote(common)}</Prefix></CommonPrefixes>"
                )
            else:
                entries[name] = _entry(name, len(data), tag)
        names = [name for name in entries if name > after]
        size = min(self.page_size, int(query.get("max-keys", 1000)))
        is_cut = len(names) > size
        last = "".join(names[size - 1 : size])
        more = f"<NextContinuationToken>{quote(last)}</NextContinuationToken>"
        return _answer(
            "ListBucketResult",
            f"<Name>box</Name><Prefix>{quote(prefix)}</Prefix><EncodingType>url</EncodingType>"
            f"<IsTruncated>{str(is_cut).lower()}</IsTruncated>{more if is_cut else ''}"
            + "".join(entries[name] for name in names[:size]),
        )


def _answer(root, inner):
    body = f'<?xml version="1.0" encoding="UTF-8"?>\n<{root} xmlns="{_NAMESPACE}">{inner}</{root}>'
    return Reply(200, body.encode(), _XML)


def _entry(name, size, tag):
    return (
        f"<Contents><Key>{quote(name)}</Key><LastModified>2026-11-20T10:00:00.000Z</LastModified>"
        f"<ETag>{escape(tag)}</ETag><Size>{size}</Size></Contents>"
    )


def _span(text, size):
    """Start and end of a range; the end is behind the last byte."""
    asked = re.fullmatch(r"bytes=(\d*)-(\d*)", text)
    if asked is None:
        return None
    if not asked[1]:
        return max(size - int(asked[2]), 0), size
    return int(asked[1]), min(int(asked[2]) + 1, size)
