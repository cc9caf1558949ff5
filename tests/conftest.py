"""Each test begins in a process that knows no server, store or table yet, and may take its time.

Fakes listen on free ports, and ports come again: what a process remembers of the place behind one
(does it refuse a second creation, which client and which handle belong to these options) would then
be another test's. And on a busy machine an example of Hypothesis may take a second: that proves
nothing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from optimist.core import errors
from optimist.core.data.storage import filesystem
from optimist.core.errors.kinds import CLASS_OF_KIND
from optimist.core.plugins import lock_registry, logstore_registry
from optimist.core.table import delta_log
from optimist.core.transaction.hooks import default_hooks
from optimist.logstores.shared import create_probe

# Their assertions are the tests' of several folders, which any worker may begin with.
pytest.register_assert_rewrite("hostile_entries", "naive_log")

_DOCS = Path(__file__).parents[1] / "docs"
_FILE = re.compile(r"<!-- file: (?P<name>\S+) -->\n```python\n(?P<code>.*?)```", re.DOTALL)
_UNHURRIED = settings(
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # The gate judges a change, not its luck; a run by hand and .ci/nightly draw new examples.
    derandomize="SAME_EXAMPLES" in os.environ,
)
# `--hypothesis-profile thorough` is what `make exhaustive` says.
settings.register_profile("thorough", _UNHURRIED, max_examples=100)
settings.register_profile("brief", _UNHURRIED, max_examples=10)
settings.load_profile("brief")


@pytest.hookimpl(trylast=True)  # Hypothesis itself starts in this hook
def pytest_sessionstart() -> None:
    """Let Hypothesis make its generator of random numbers before the tests are collected.

    At its first example it looks for what holds the generator, and fails the test if it finds
    nothing. Old versions do not find it once `conftest.py` above has frozen the objects.
    """
    given(st.none())(lambda _: None)()


@pytest.fixture(autouse=True)
def a_process_that_remembers_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Handles, stores, locks, data file systems and verdicts on endpoints are found anew."""
    monkeypatch.setattr(create_probe, "_VERDICTS", {})
    monkeypatch.setattr(create_probe, "_PROBING", {})
    monkeypatch.setattr(logstore_registry, "_STORES", logstore_registry._StoreCache())
    monkeypatch.setattr(delta_log, "_CACHE", delta_log.HandleCache())
    lock_registry._instance.cache_clear()
    filesystem._build.cache_clear()


@pytest.fixture(autouse=True)
def checkpoints_are_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit returns after its checkpoint, so that a test need not wait for it."""
    monkeypatch.setattr(default_hooks, "_LATE_BY_DEFAULT", frozenset())


@pytest.fixture(autouse=True)
def a_kind_of_error_has_one_class(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever makes errors from a table of answers must keep to the class of the kind, too."""
    build = errors.OptimistError.__init__
    wrong: list[str] = []

    def checked(self: errors.OptimistError, message: str, *, kind: str, **fields: object) -> None:
        build(self, message, kind=kind, **fields)
        known = next(cls for cls in type(self).__mro__ if cls.__module__ == errors.__name__)
        if CLASS_OF_KIND.get(kind, known) is not known:
            wrong.append(f"{known.__name__} of kind {kind}")

    monkeypatch.setattr(errors.OptimistError, "__init__", checked)
    yield
    assert wrong == []


@pytest.fixture
def modules_of_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[[str], Path]]:
    """Writes the modules that a page of the documentation shows, so that they can be imported."""
    names: list[str] = []

    def write(page: str) -> Path:
        directory = tmp_path / "own"
        directory.mkdir()
        for file in _FILE.finditer((_DOCS / page).read_text(encoding="utf-8")):
            (directory / file["name"]).write_text(file["code"], encoding="utf-8")
            names.append(Path(file["name"]).stem)
        monkeypatch.syspath_prepend(str(directory))
        return directory

    yield write
    for name in names:
        sys.modules.pop(name, None)
