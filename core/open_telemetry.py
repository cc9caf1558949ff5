"""Spans and metrics of OpenTelemetry for commits, the opening of tables, scans, and requests.

It needs the extra `otel`, and a program that has set up an SDK of OpenTelemetry; without an SDK
the API does nothing. docs/observability.md lists the names.
"""

from __future__ import annotations

from collections.abc import Callable

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import MeterProvider
from opentelemetry.trace import Status, StatusCode, TracerProvider

from optimist.core.errors import (
    DeltaConcurrentModificationException,
    MaxCommitAttemptsExceededError,
    OptimistError,
)
from optimist.core.runtime.observers import Ended, Fact, Work, WorkName, observe

__all__ = ["observe_with_open_telemetry", "stop_open_telemetry"]

_NAME = "optimist"
_DURATIONS: dict[WorkName, str] = {
    "commit": "How long a commit took",
    "open": "How long finding a version took",
    "scan": "How long choosing files took",
    "request": "How long a store worked on a request",
}
_BOUNDARIES_S = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)
"""The SDK's own boundaries are for milliseconds."""


def observe_with_open_telemetry(
    tracer_provider: TracerProvider | None = None, meter_provider: MeterProvider | None = None
) -> None:
    """Report the work of this process to OpenTelemetry from now on.

    A second call replaces the providers.

    Args:
        tracer_provider: Where spans go; None for the program's global provider.
        meter_provider: Where metrics go; None for the program's global provider.
    """
    observe(_NAME, _Reporter(tracer_provider, meter_provider).begin)


def stop_open_telemetry() -> None:
    """Report nothing more to OpenTelemetry."""
    observe(_NAME, None)


class _Reporter:
    """Makes a span of each piece of work, and counts it."""

    def __init__(
        self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None
    ) -> None:
        self._tracer = trace.get_tracer(_NAME, tracer_provider=tracer_provider)
        meter = metrics.get_meter(_NAME, meter_provider=meter_provider)
        self._commits = meter.create_counter(
            "optimist.commits", unit="{commit}", description="Commits, by how they ended"
        )
        self._retries = meter.create_counter(
            "optimist.commit.retries", unit="{retry}", description="Attempts after the first"
        )
        self._conflicts = meter.create_counter(
            "optimist.commit.conflicts",
            unit="{conflict}",
            description="Commits that another commit stopped",
        )
        self._requests = meter.create_counter(
            "optimist.requests", unit="{request}", description="Requests to stores"
        )
        self._bytes = meter.create_counter(
            "optimist.request.bytes", unit="By", description="What requests wrote and read"
        )
        self._durations = {
            name: meter.create_histogram(
                f"optimist.{name}.duration",
                unit="s",
                description=description,
                explicit_bucket_boundaries_advisory=_BOUNDARIES_S,
            )
            for name, description in _DURATIONS.items()
        }

    def begin(self, work: Work) -> Callable[[Ended], None]:
        """Begin a span, which spans of a store's SDK then belong to.

        They belong to the commit or the opening, not to the request: a listing is a request that
        goes on while its caller does something else.
        """
        span = self._tracer.start_span(f"optimist.{work.name}", attributes=_table_of(work))
        is_current = work.name != "request"
        token = context.attach(trace.set_span_in_context(span)) if is_current else None

        def end(ended: Ended) -> None:
            if token is not None:
                context.detach(token)
            try:
                self._describe(span, ended)
            finally:
                span.end()
            self._count(work, ended)

        return end

    def _describe(self, span: trace.Span, ended: Ended) -> None:
        for name, value in (*ended.facts.items(), *_facts_of(ended.error).items()):
            span.set_attribute(name if name == "error.type" else f"optimist.{name}", value)
        if ended.error is not None:
            span.set_status(Status(StatusCode.ERROR))  # messages of SDKs may hold signed URLs

    def _count(self, work: Work, ended: Ended) -> None:
        about = _table_of(work)
        error = _facts_of(ended.error)
        if error:
            about["error.type"] = error["error.type"]
        if work.name == "commit":
            about["optimist.outcome"] = ended.facts.get("outcome", "unknown")
            self._commits.add(1, about)
            self._count_attempts(work, ended)
        elif work.name == "request":
            self._count_request(about, ended)
        self._durations[work.name].record(ended.elapsed_s, about)

    def _count_request(self, about: dict[str, Fact], ended: Ended) -> None:
        for name in ("store", "store.operation"):
            about[f"optimist.{name}"] = ended.facts.get(name, "unknown")
        self._requests.add(1, about)
        size_bytes = ended.facts.get("store.bytes")
        if isinstance(size_bytes, int):
            self._bytes.add(size_bytes, about)

    def _count_attempts(self, work: Work, ended: Ended) -> None:
        about = _table_of(work)
        attempts = ended.facts.get("attempts", 1)
        if isinstance(attempts, int) and attempts > 1:
            self._retries.add(attempts - 1, about)
        if _is_conflict(ended.error):
            kind = _facts_of(ended.error).get("error.kind", "")
            self._conflicts.add(1, {**about, "optimist.error.kind": kind})


def _table_of(work: Work) -> dict[str, Fact]:
    return {"optimist.table": work.table_path} if work.table_path else {}


def _is_conflict(error: BaseException | None) -> bool:
    """Tell whether another commit stopped this one."""
    return isinstance(error, DeltaConcurrentModificationException | MaxCommitAttemptsExceededError)


def _facts_of(error: BaseException | None) -> dict[str, Fact]:
    if error is None:
        return {}
    facts: dict[str, Fact] = {"error.type": type(error).__name__}
    if isinstance(error, OptimistError):
        facts["error.kind"] = error.kind
    return facts
