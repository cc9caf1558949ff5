"""Spans and metrics of OpenTelemetry, and the dashboard that shows them."""

import json
import re
from pathlib import Path

import pyarrow as pa
import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from optimist.core import DeltaLog
from optimist.core.errors import (
    DeltaConcurrentModificationException,
    LogFileNotFoundError,
    TableNotFoundError,
)
from optimist.core.log.file_table import add_files
from optimist.core.open_telemetry import observe_with_open_telemetry, stop_open_telemetry
from optimist.core.runtime.observers import observe, observed
from optimist.core.transaction.conflicts.operations import Operation
from optimist.logstores import LocalLogStore

DASHBOARD = Path(__file__).resolve().parents[2] / "docs" / "dashboards" / "grafana.json"
PAGE = DASHBOARD.parents[1] / "observability.md"
ROWS = pa.table({"x": [1, 2, 3]})
COMMIT = f"_delta_log/{0:020}.json"


class Seen:
    """What an SDK in memory has got."""

    def __init__(self):
        self._spans = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        self.tracers = TracerProvider()
        self.tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        self.meters = MeterProvider([self._reader])

    def spans(self, name):
        return [each for each in self._spans.get_finished_spans() if each.name == name]

    def metrics(self):
        data = self._reader.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics if data else []
        return {each.name: each for each in found}

    def sums(self, name):
        points = self.metrics()[name].data.data_points
        return [(dict(each.attributes), each.value) for each in points]


@pytest.fixture
def seen():
    found = Seen()
    observe_with_open_telemetry(found.tracers, found.meters)
    yield found
    stop_open_telemetry()


def lose_a_race(log):
    """Let a DELETE lose to another one, and return its error."""
    log.append(ROWS)
    late = log.start_transaction()
    (add,) = add_files(late.filter_files())
    log.delete("x = 1")
    with pytest.raises(DeltaConcurrentModificationException) as caught:
        late.commit([add.remove(1)], Operation("DELETE"))
    return caught.value


def win_at_the_second_attempt(log):
    log.append(ROWS)
    late = log.start_transaction()
    log.append(ROWS)
    return late.commit([], Operation("WRITE"))


def test_a_commit_an_opening_and_a_scan_have_spans(seen, tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(ROWS)
    log.snapshot().scan("x = 7")
    (commit,) = seen.spans("optimist.commit")
    assert dict(commit.attributes) == {
        "optimist.table": log.table_path,
        "optimist.operation": "WRITE",
        "optimist.outcome": "committed",
        "optimist.attempts": 1,
        "optimist.version": 0,
    }
    (opened,) = seen.spans("optimist.open")
    assert opened.attributes["optimist.version"] == 0
    (scan,) = seen.spans("optimist.scan")
    assert (scan.attributes["optimist.version"], scan.attributes["optimist.files"]) == (0, 0)
    assert {each.status.status_code for each in (commit, opened, scan)} == {StatusCode.UNSET}


def test_a_rebased_commit_is_counted_with_its_retry(seen, tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    result = win_at_the_second_attempt(log)
    assert (result.version, result.attempts) == (2, 2)
    span = seen.spans("optimist.commit")[-1]
    assert (span.attributes["optimist.attempts"], span.attributes["optimist.version"]) == (2, 2)
    table = {"optimist.table": log.table_path}
    assert seen.sums("optimist.commits") == [({**table, "optimist.outcome": "committed"}, 3)]
    assert seen.sums("optimist.commit.retries") == [(table, 1)]
    assert "optimist.commit.conflicts" not in seen.metrics()


def test_a_conflict_is_counted_by_its_kind(seen, tmp_path):
    error = lose_a_race(DeltaLog.for_path(str(tmp_path)))
    span = seen.spans("optimist.commit")[-1]
    assert span.status.status_code is StatusCode.ERROR
    assert span.attributes["optimist.outcome"] == "not committed"
    assert span.attributes["error.type"] == type(error).__name__
    assert span.attributes["optimist.error.kind"] == error.kind
    assert "optimist.version" not in span.attributes
    ((about, number),) = seen.sums("optimist.commit.conflicts")
    assert (about["optimist.error.kind"], number) == (error.kind, 1)
    outcomes = {about["optimist.outcome"]: n for about, n in seen.sums("optimist.commits")}
    assert outcomes == {"committed": 2, "not committed": 1}


def test_requests_are_counted_by_store_and_operation(seen, tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    log.append(ROWS)
    DeltaLog(log.table_path, LocalLogStore()).snapshot()
    (put,) = [
        each
        for each in seen.spans("optimist.request")
        if each.attributes["optimist.store.operation"] == "put_if_absent"
        and "optimist.store.outcome" in each.attributes
        and each.attributes["optimist.store.bytes"] == (tmp_path / COMMIT).stat().st_size
    ]
    assert put.attributes["optimist.table"] == log.table_path
    assert put.attributes["optimist.store"] == "LocalLogStore"
    assert put.attributes["optimist.store.outcome"] == "created"
    counted = {
        (about["optimist.store.operation"], about.get("error.type")): number
        for about, number in seen.sums("optimist.requests")
        if about.get("optimist.table") == log.table_path
    }
    assert counted["read_bytes", None] >= 1
    assert counted["list_from", None] >= 1
    assert sum(number for _, number in seen.sums("optimist.requests")) == len(
        seen.spans("optimist.request")
    )
    read = [n for about, n in seen.sums("optimist.request.bytes") if "read_bytes" in about.values()]
    assert read[0] >= (tmp_path / COMMIT).stat().st_size


def test_a_request_within_a_request_and_one_left_early_count_once(seen, tmp_path):
    class Twice(LocalLogStore):
        def read_bytes(self, path):
            return super().read_bytes(path)[: len(super().read_bytes(path))]

    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    store = Twice()
    assert store.read_bytes(f"{tmp_path}/a") == b"a"
    listing = store.list_from(f"{tmp_path}/a")
    assert next(listing).name == "a"
    assert store.read_bytes(f"{tmp_path}/b") == b"b"
    del listing
    with pytest.raises(LogFileNotFoundError):
        store.read_bytes(f"{tmp_path}/none")
    told = [each.attributes["optimist.store.operation"] for each in seen.spans("optimist.request")]
    assert sorted(told) == ["list_from", "read_bytes", "read_bytes", "read_bytes"]
    assert seen.spans("optimist.request")[-1].attributes["error.type"] == "LogFileNotFoundError"


def test_spans_of_others_belong_to_ours_while_the_work_goes_on(seen):
    with observed("commit", "memory://spans/t"):
        seen.tracers.get_tracer("sdk").start_span("request").end()
    assert not trace.get_current_span().get_span_context().is_valid
    (request,), (commit,) = seen.spans("request"), seen.spans("optimist.commit")
    assert request.parent.span_id == commit.context.span_id


def test_no_secret_gets_into_a_span(seen):
    secret = "hidden-word"
    with pytest.raises(ValueError), observed("open", f"s3://user:{secret}@bucket/t?sig={secret}"):
        raise ValueError(secret)
    (span,) = seen.spans("optimist.open")
    assert secret not in span.to_json()


def test_a_missing_table_is_an_error_of_its_opening(seen):
    with pytest.raises(TableNotFoundError):
        DeltaLog.for_path("memory://spans/missing").snapshot()
    (span,) = seen.spans("optimist.open")
    assert span.attributes["error.type"] == "TableNotFoundError"


@pytest.mark.parametrize("at_end", [False, True])
def test_an_observer_that_raises_changes_nothing(at_end, caplog):
    def end(_):
        raise RuntimeError("the end")

    def begin(_):
        if not at_end:
            raise RuntimeError("the start")
        return end

    observe("broken", begin)
    try:
        done = DeltaLog.for_path(f"memory://observers/t{at_end}").append(ROWS)
    finally:
        observe("broken", None)
    assert done.version == 0
    assert "The observer broken failed" in caplog.text


def test_members_of_a_group_count_as_commits_each(seen, tmp_path):
    log = DeltaLog.for_path(str(tmp_path), {"optimist.commit.group.enabled": "true"})
    log.append(ROWS)
    log.append(ROWS)
    versions = [each.attributes["optimist.version"] for each in seen.spans("optimist.commit")]
    assert versions == [0, 1]


def test_nothing_is_reported_after_the_end(seen):
    stop_open_telemetry()
    DeltaLog.for_path("memory://spans/unseen").append(ROWS)
    assert not seen.spans("optimist.commit")


def prometheus_names(seen):
    """The names of the metrics and attributes as an exporter for Prometheus writes them."""
    names = set()
    for name, metric in seen.metrics().items():
        plain = name.replace(".", "_")
        is_counter = metric.unit != "s"
        suffixes = ("_total",) if is_counter else ("_seconds_bucket",)
        names |= {f"{plain}{suffix}" for suffix in suffixes}
        for point in metric.data.data_points:
            names |= {key.replace(".", "_") for key in point.attributes}
    return names


def test_the_dashboard_and_the_page_name_what_there_is(seen, tmp_path):
    log = DeltaLog.for_path(str(tmp_path))
    lose_a_race(log)
    win_at_the_second_attempt(log)
    log.snapshot().scan("x = 1")
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    queries = [each["expr"] for panel in dashboard["panels"] for each in panel["targets"]]
    queries += [each["query"]["query"] for each in dashboard["templating"]["list"][1:]]
    used = {name for each in queries for name in re.findall(r"\boptimist_\w+", each)}
    assert used <= prometheus_names(seen)
    assert {name for name in prometheus_names(seen) if "_total" in name} <= used
    row = re.compile(r"^\| `(optimist[\w.]+)` \| (?:counter|histogram)", re.M)
    told = set(row.findall(PAGE.read_text(encoding="utf-8")))
    assert told == set(seen.metrics())
