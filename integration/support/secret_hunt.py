"""Looks for a secret wherever a report of a crash would show it."""

from __future__ import annotations

import traceback
from pathlib import Path

SECRET = "TopSecret/Zm9v+0123=="
_ROOT = Path(__file__).resolve().parents[2]
_ROOMS = tuple(
    str(_ROOT / room) for room in ("cli", "core", "deltalake_api", "locks", "logstores", "spark")
)


def assert_untold(error: BaseException) -> None:
    """Neither the error, nor what led to it, nor a local variable of our code shows the secret."""
    told = traceback.TracebackException.from_exception(error, capture_locals=True)
    seen: list[str] = [repr(error), str(dict(getattr(error, "fields", {})))]
    here: traceback.TracebackException | None = told
    while here is not None:
        seen += here.format_exception_only()
        seen += [
            f"{frame.name}: {frame.locals}"
            for frame in here.stack
            if str(Path(frame.filename).resolve()).startswith(_ROOMS)
        ]
        here = here.__cause__ or (None if here.__suppress_context__ else here.__context__)
    found = [text for text in seen if SECRET in text or SECRET.replace("/", "") in text]
    assert not found, found
