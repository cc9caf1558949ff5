"""Answers that say little, given to any request of a store; what is told is held against the truth.

A `Case` is one call of a store, of whose requests one, or all from one on, are answered by a harm:
cut off, empty, a page of a proxy, the answer to another request, a redirect. The service has done
the work, has not, or does it when the call is over. A store may say that it does not know, or fail;
it must not tell what is not so, and must not ask another host.
"""

import copy
import io
import re
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, replace
from email.message import Message

from optimist.core.errors import LogFileNotFoundError, OptimistError, StorageError
from optimist.core.plugins.logstore import PutOutcome
from optimist.core.testing import ManualClock
from optimist.logstores.gcs import store as gcs_store
from optimist.logstores.s3 import bucket as s3_bucket
from optimist.logstores.s3 import reader as s3_reader
from optimist.logstores.shared import file_pieces, object_store_log
from scripted_http import Bytes, Reply, ScriptedService

PIECE_BYTES = 256 * 1024
OURS = b"ours" * 100
IN_PIECES = bytes(range(251)) * 1500
LARGE = bytes(range(256)) * 2400
OTHERS = dict.fromkeys(("taken", "a", "b", "c", "d/e", "d/f"), b"theirs" * 70)
PAGE = (
    b'<?xml version="1.0"?><!DOCTYPE html><html xmlns="http://www.w3.org/1999/xhtml"><head>'
    b"<title>Sign in</title></head><body><p>Sign in to go on.</p></body></html>"
)
SOUP = b"<!doctype html><html><body><p>Sign in<br>to go on."
_HTML = {"Content-Type": "text/html"}


def fickle(fake):
    """A service whose answers a test harms."""

    class Fickle(fake):
        """`harm` says which requests are harmed, and how; `late` holds work that is still due."""

        def __init__(self, **given):
            super().__init__(**given)
            self.harm = None
            self.late = []

        def reply(self, request):
            if self.harm is None or self.aside(request) is not None:
                return super().reply(request)
            with self.lock:
                self.requests.append(request)
                return self.harm.reply(self, request, len(self.requests) - 1)

        def finish(self):
            """Do the work that came too late for its answer."""
            waiting, self.late = self.late, []
            for request in waiting:
                self.work(request)

        def state(self):
            kept = ("objects", "uploads", "staged")
            return {name: copy.deepcopy(vars(self)[name]) for name in kept if name in vars(self)}

    return Fickle


class Elsewhere(ScriptedService):
    """Another host, which no store has any business with."""

    def work(self, request):
        return Reply(200, b"{}", {"ETag": '"1"', "Content-Type": "application/json"})


@dataclass(frozen=True)
class Harm:
    """How requests are answered.

    `first` is the number of the first harmed request, `is_lasting` whether all after it are harmed
    too. `work` is `done`, `undone` or `late`.
    """

    how: Callable
    first: int
    is_lasting: bool
    work: str
    elsewhere: str

    def reply(self, service, request, number):
        if number < self.first or (number > self.first and not self.is_lasting):
            return service.work(request)
        before = service.state()
        other = service.work(_of_other(request))
        vars(service).update(copy.deepcopy(before))
        reply = service.work(request)
        after = service.state()
        harmed = other if self.how is another_object else self.how(reply, request, service, self)
        is_lie = self.work != "done" and _says_all(harmed, reply)
        vars(service).update(after if self.work == "done" or is_lie else before)
        if self.work == "late" and not is_lie:
            service.late.append(request)
        return harmed


def _says_all(harmed, reply):
    """Whether the answer has all of its evidence in spite of the harm, so that it must be true."""
    if not isinstance(harmed, Bytes):
        # The parts of a batch say the same in any order.
        lines = (sorted(each.body.splitlines()) for each in (harmed, reply))
        return harmed == reply or (
            harmed.status == reply.status and len(set(map(tuple, lines))) == 1
        )
    end = b"\r\n\r\n" if reply.body else b"Content-Length"
    whole = reply.wire if reply.body else reply.wire[: reply.wire.index(end)]
    return harmed.sent.startswith(whole)


def _of_other(request):
    """The same request for what lies below `u/`, where everything differs."""
    target = re.sub(r"(box(?:/o)?(?:/|%2F)|=)t(/|%2F)", r"\1u\2", request.target)
    body = (
        request.body.replace(b">t/", b">u/").replace(b'"t/', b'"u/').replace(b"o/t%2F", b"o/u%2F")
    )
    headers = Message()
    for name, value in request.headers.items():
        if name.lower() not in ("if-match", "if-none-match"):
            headers[name] = value
    return replace(request, target=target, body=body, headers=headers)


def cut_in_the_status(reply, *_):
    return Bytes(reply.wire[:9])


def cut_after_the_status(reply, *_):
    return Bytes(reply.wire[: reply.wire.index(b"\r\n") + 2])


def cut_in_the_headers(reply, *_):
    """All headers but the length, which `Reply` sends last."""
    return Bytes(reply.wire[: reply.wire.index(b"Content-Length")])


def cut_before_the_body(reply, *_):
    return Bytes(reply.wire[: reply.wire.index(b"\r\n\r\n") + 4])


def cut_in_the_body(reply, *_):
    return Bytes(reply.wire[: -(len(reply.body) // 2) or None])


def empty(*_):
    return Reply(200)


def a_page(*_):
    return Reply(200, PAGE, _HTML)


def tag_soup(*_):
    return Reply(200, SOUP, _HTML)


def a_page_that_says_json(*_):
    return Reply(200, PAGE, {"Content-Type": "application/json"})


def braces(*_):
    return Reply(200, b"{}", {"Content-Type": "application/json"})


def another_object(*_):
    """The answer that another object would get; see `Harm.reply`."""


def whole_for_a_range(reply, request, service, _harm):
    """A 200 with the whole object where a part was asked for."""
    if reply.status != 206:
        return reply
    headers = Message()
    for name, value in request.headers.items():
        if name.lower() not in ("range", "x-ms-range"):
            headers[name] = value
    return service.work(replace(request, headers=headers))


def another_range(reply, *_):
    """The first bytes, where others were asked for; the headers tell."""
    if reply.status != 206 or reply.headers["Content-Range"].startswith("bytes 0-"):
        return reply
    total = reply.headers["Content-Range"].partition("/")[2]
    said = {**reply.headers, "Content-Range": f"bytes 0-{len(reply.body) - 1}/{total}"}
    return Reply(206, LARGE[: len(reply.body)], said)


def another_host(_reply, request, _service, harm):
    return Reply(307, headers={"Location": f"{harm.elsewhere}{request.target}"})


def another_host_named(reply, _request, service, harm):
    """Every address within the answer is one of another host."""
    ours, theirs = (text.partition("://")[2].partition("/")[0] for text in _hosts(service, harm))
    headers = {name: value.replace(ours, theirs) for name, value in reply.headers.items()}
    return Reply(reply.status, reply.body.replace(ours.encode(), theirs.encode()), headers)


def _hosts(service, harm):
    return service.endpoint, harm.elsewhere


def twice(reply, *_):
    return Bytes(reply.wire * 2, is_closed=False)


def reordered(reply, *_):
    """What it lists, or the parts of a batch, the other way round."""
    body = reply.body
    for pattern in (
        rb"(<Contents>.*?</Contents>)",
        rb"(--\S+\r\n.*?)(?=--)",
    ):
        found = re.findall(pattern, body, re.S)  # what stands between them stays in its place
        body = re.sub(pattern, lambda _, found=found: found.pop(), body, flags=re.S)
    return Reply(reply.status, body, reply.headers)


def lost(*_):
    return Bytes(b"")


HARMS = (
    cut_in_the_status,
    cut_after_the_status,
    cut_in_the_headers,
    cut_before_the_body,
    cut_in_the_body,
    empty,
    a_page,
    tag_soup,
    a_page_that_says_json,
    braces,
    another_object,
    whole_for_a_range,
    another_range,
    another_host,
    another_host_named,
    twice,
    reordered,
    lost,
)


# Calls, and what may be told of them


@dataclass(frozen=True)
class Call:
    """A call of a store, and what its result says about the objects."""

    name: str
    run: Callable
    judge: Callable


def _told_of_creation(key, data):
    def judge(outcome, before, objects):
        found = objects.get(key, (None,))[0]
        if outcome is PutOutcome.CREATED:
            assert found == data, "told as created"
            assert key not in before or before[key][0] == data, "created over another"
        if outcome is PutOutcome.EXISTS:
            assert key in before, "told as lost, against nobody"
        if isinstance(outcome, OptimistError):
            assert objects.get(key) == before.get(key), "told as not written"

    return judge


def _told_of_overwriting(outcome, _before, objects):
    if outcome is None:
        assert objects["t/taken"][0] == OURS, "told as written"


def _told_of_reading(data):
    def judge(found, _before, _objects):
        if isinstance(found, LogFileNotFoundError):
            assert data is None, "told as absent"
        elif not isinstance(found, OptimistError):
            assert found == data, "other bytes were read"

    return judge


def _told_of_listing(names):
    def judge(found, _before, _objects):
        if isinstance(found, LogFileNotFoundError):
            assert not names, "told as absent"
        elif not isinstance(found, OptimistError):
            assert found == names, "another listing"

    return judge


def _told_of_deleting(*keys):
    def judge(outcome, _before, objects):
        there = [key for key in keys if key in objects]
        if outcome is None:
            assert not there, "told as deleted"
        elif len(keys) > 1 and isinstance(outcome, StorageError):
            assert outcome.fields["path"].partition("box/")[2] in keys

    return judge


def _opened(store, path):
    with store.open_read(path) as file:
        file.seek(300_000)
        part = file.read(50_000)
        file.seek(0)
        return file.read(300_000) + part


CALLS = (
    Call(
        "create",
        lambda store, at: store.put_if_absent(at("t/new"), OURS),
        _told_of_creation("t/new", OURS),
    ),
    Call(
        "create what is there",
        lambda store, at: store.put_if_absent(at("t/taken"), OURS),
        _told_of_creation("t/taken", OURS),
    ),
    Call(
        "write a data file",
        lambda store, at: store.put_data_file(at("t/new"), io.BytesIO(OURS)),
        _told_of_creation("t/new", OURS),
    ),
    Call(
        "write a data file in pieces",
        lambda store, at: store.put_data_file(at("t/new"), io.BytesIO(IN_PIECES)),
        _told_of_creation("t/new", IN_PIECES),
    ),
    Call(
        "overwrite",
        lambda store, at: store.put_overwrite(at("t/taken"), OURS),
        _told_of_overwriting,
    ),
    Call(
        "read",
        lambda store, at: store.read_bytes(at("t/taken")),
        _told_of_reading(OTHERS["taken"]),
    ),
    Call(
        "read what is absent",
        lambda store, at: store.read_bytes(at("t/none")),
        _told_of_reading(None),
    ),
    Call(
        "open",
        lambda store, at: _opened(store, at("t/x/large")),
        _told_of_reading(LARGE[:300_000] + LARGE[300_000:350_000]),
    ),
    Call(
        "list",
        lambda store, at: [each.name for each in store.list_from(at("t/b"))],
        _told_of_listing(["b", "c", "taken"]),
    ),
    Call(
        "list what is absent",
        lambda store, at: [each.name for each in store.list_from(at("none/b"))],
        _told_of_listing([]),
    ),
    Call(
        "list below",
        lambda store, at: sorted(each.name for each in store.list_below(at("t/d"))),
        _told_of_listing(["e", "f"]),
    ),
    Call(
        "list names",
        lambda store, at: sorted(store.list_names(at("t"))),
        _told_of_listing(["a", "b", "c", "d", "taken", "x"]),
    ),
    Call("delete", lambda store, at: store.delete(at("t/a")), _told_of_deleting("t/a")),
    Call(
        "delete many",
        lambda store, at: store.delete_data_files([at(f"t/{each}") for each in "abc"]),
        _told_of_deleting("t/a", "t/b", "t/c"),
    ),
)


NAMES_NO_OBJECT = {
    ("s3", "create"),
    ("s3", "create what is there"),
    ("azure", "create what is there"),
    ("s3", "write a data file"),
    ("s3", "overwrite"),
    ("azure", "create"),
    ("azure", "write a data file"),
    ("azure", "write a data file in pieces"),
    ("azure", "overwrite"),
    ("azure", "delete many"),
    *((kind, call) for kind in ("s3", "azure", "gcs") for call in ("read", "open", "delete")),
}
"""Calls whose answers do not say which object they are about, so that another's looks the same."""


@dataclass(frozen=True)
class Case:
    """One call, of which some requests are answered by a harm."""

    call: Call
    how: Callable
    first: int
    is_lasting: bool
    work: str

    def __str__(self):
        often = "from" if self.is_lasting else "at"
        return f"{self.call.name}: {self.how.__name__} {often} {self.first}, {self.work}"


def fill(service):
    service.objects.clear()
    for directory, sign in (("t", b""), ("u", b"u")):
        for name, data in OTHERS.items():
            service.put(f"{directory}/{name}", data + sign)
        service.put(f"{directory}/x/large", LARGE[::-1] if sign else LARGE)


class Bench:
    """A service, a store on it, and the other host."""

    def __init__(self, kind, service, store, elsewhere):
        self.kind = kind
        self.service = service
        self.store = store
        self.elsewhere = elsewhere

    def cases(self, calls=CALLS):
        """All that can go wrong, with each call's own number of requests."""
        for call in calls:
            for first in range(self.run(call)):
                for how in HARMS:
                    if how is another_object and (self.kind.name, call.name) in NAMES_NO_OBJECT:
                        continue
                    for is_lasting in (False, True):
                        for work in ("done", "undone", "late"):
                            yield Case(call, how, first, is_lasting, work)

    def try_out(self, case):
        """Hold what is told in a case against what is there."""
        harm = Harm(case.how, case.first, case.is_lasting, case.work, self.elsewhere.endpoint)
        try:
            self.run(case.call, harm)
        except Exception as error:
            self.service.finish()
            self.elsewhere.requests.clear()
            raise AssertionError(f"{self.kind.name}: {case}: {error}") from error

    def run(self, call, harm=None):
        """Make a call, and hold what it tells against what is there; returns its requests."""
        fill(self.service)
        self.service.requests.clear()
        before = {**self.service.objects}
        self.service.harm = harm
        try:
            told = call.run(self.store, self.kind.url)
        except OptimistError as error:
            told = error
        finally:
            self.service.harm = None
        num_requests = len(self.service.requests)
        self.service.finish()
        call.judge(told, before, self.service.objects)
        if harm is None:
            assert not isinstance(told, OptimistError) or "absent" in call.name, told
        assert self.store.read_bytes(self.kind.url("t/d/e")) == OTHERS["d/e"], "the next answer"
        assert not self.elsewhere.requests, "another host was asked"
        return num_requests


@contextmanager
def bench_of(kind, monkeypatch):
    """A bench whose store sends files in pieces, and reads them by ranges, early."""
    for module in (file_pieces, object_store_log, gcs_store):
        monkeypatch.setattr(module, "PIECE_BYTES", PIECE_BYTES)
    monkeypatch.setattr(s3_bucket, "MAX_PUT_BYTES", 1000)
    monkeypatch.setattr(s3_reader, "TAIL_BYTES", 1000)
    own = {"readAheadBytes": "200000"} if kind.name == "s3" else {}
    with fickle(kind.fake)() as service, Elsewhere() as elsewhere:
        store = kind.store(service.options(**own), clock=ManualClock())
        store.put_if_absent(kind.url("probe"), b"x")
        yield Bench(kind, service, store, elsewhere)
