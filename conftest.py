"""The one Spark session of a test process, confs that are put back, and who runs what.

A session takes seconds to start and minutes to get warm, and up to 4.5 GB: the tests with one are
dealt to `_SESSIONS` workers, however many there are. Other tests go to any worker, by class or
module, since that is how far their fixtures are shared.
"""

from __future__ import annotations

import gc
import inspect
import logging
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from pyspark.sql import SparkSession
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

from optimist.spark.session.conf import engine_options

_SESSIONS = 2
_ONE_CASE_IN = 3
_ONE_CASE_OF_A_SESSION_IN = 6
_CONNECT = "_connect.py"
"""How files end whose tests wait for one script, which takes minutes, in a process of its own."""
_MINUTES = ("tests/exhaustive/", "integration/exhaustive/")
_PROOFS = (*_MINUTES, "tests/spark/exhaustive/")
_RACE = re.compile(
    r"^(integration|tests/(locks|logstores/s3))/(?!exhaustive).*"
    r"(_many_threads_|_processes_|_many_that_complete_|_forked_at_any_moment_)"
)
"""The races of the suites, where a server is between the racers; on disks and in memory they cost
little."""
# Only the client compiler and the smallest collector: no JVM here lives long enough for more.
os.environ.setdefault(
    "SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=256m"
)
_LEFT_BY_THE_ENGINE = "spark.databricks.delta.lastCommitVersionInSession"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option for a part of the long tests, so that a gate ends in time."""
    parser.addoption(
        "--one-in",
        type=int,
        default=1,
        metavar="N",
        help="of the tests and cases that prove rather than check, run one in N",
    )
    parser.addoption(
        "--of-all", action="store_true", help="with --one-in: of all tests, whatever they are for"
    )


def pytest_configure() -> None:
    """Let a flush to the disk do nothing but check the file, since it takes milliseconds.

    No test outlives a power failure. Tests of flushes count the calls.
    """
    os.fsync = _check_file


def _check_file(descriptor: int) -> None:
    os.fstat(descriptor)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Keep the garbage collector away from the tests, which live as long as their process.

    It would look at all of them again and again, for a third of the time that collecting takes.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Let each worker begin in another place, so that it finds compiled what others came to first.

    In a fresh clone all of them would compile all tests, for as long as they then take to collect.
    """
    report = yield
    if isinstance(collector, pytest.Directory):
        found, (worker, workers) = report.result, _worker_of_how_many()
        first = len(found) * worker // workers
        report.result = found[first:] + found[:first]
    return report


def _worker_of_how_many() -> tuple[int, int]:
    name = os.environ.get("PYTEST_XDIST_WORKER", "gw0")
    return int(name.removeprefix("gw")), int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@pytest.hookimpl(tryfirst=True)  # before pytest deselects by mark
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves out; put what takes longest first: sessions, what waits."""
    items.sort(key=lambda item: _file_of(item.nodeid))  # the same order in each worker
    cases: Counter[str] = Counter()
    for item in items:
        if _RACE.search(item.nodeid):
            item.add_marker("race")
        if sample := item.get_closest_marker("sample"):
            test = _test_of(item)
            if cases[test] % sample.args[0]:
                item.add_marker("again")
            cases[test] += 1
    for item in _beyond_the_sample(items):
        item.add_marker("again")
    drawn_from = items if config.getoption("--of-all") else [i for i in items if _proves(i)]
    left_out = _left_out(drawn_from, config.getoption("--one-in"))
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
    sizes = Counter(_file_of(item.nodeid) for item in items)
    items.sort(key=lambda item: _rank(item.nodeid, sizes))


def _beyond_the_sample(items: list[pytest.Item]) -> Iterator[pytest.Item]:
    """Yield all but a third of the cases of each test; two at least, so that they differ.

    With a session, where a case costs half a second, all but a sixth; one at least. The checksums
    of the names draw the sample: every n-th case could be the one with the same value of an inner
    parameter. The mark `sample` overrides it.
    """
    cases: defaultdict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        marked = item.get_closest_marker("sample") or item.get_closest_marker("again")
        if not marked and not _costs_little(item):
            cases[_test_of(item)].append(item)
    for several in cases.values():
        several.sort(key=lambda item: crc32(item.nodeid.encode()))
        if _has_session(several[0]):
            kept = -(-len(several) // _ONE_CASE_OF_A_SESSION_IN)
        else:
            kept = max(2, -(-len(several) // _ONE_CASE_IN))
        yield from several[kept:]


def _costs_little(item: pytest.Item) -> bool:
    """Return whether a test takes no fixture itself, such as a table or a server, nor searches."""
    test, case = getattr(item, "function", None), getattr(item, "callspec", None)
    if test is None or hasattr(test, "is_hypothesis_test"):
        return False
    return inspect.signature(test).parameters.keys() <= set(case.params if case else ())


def _has_session(item: pytest.Item) -> bool:
    """Return whether a test itself uses the session, and not only another one of its module."""
    return "spark" in getattr(item, "fixturenames", ())


def _test_of(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def _proves(item: pytest.Item) -> bool:
    """Return whether a test belongs to what proves rather than checks, which may take hours."""
    return item.nodeid.startswith(_PROOFS) or item.get_closest_marker("again") is not None


def _left_out(items: list[pytest.Item], one_in: int) -> set[pytest.Item]:
    """Return what a part does without: checksums of the names draw one in N.

    So what is the first case of many tests, such as a kind of store, is not always the one. The
    tests of one script of Connect are drawn together, since its minutes are spent for one of them.
    """
    return {item for item in items if crc32(_drawn_by(item).encode()) % one_in}


def _drawn_by(item: pytest.Item) -> str:
    file = _file_of(item.nodeid)
    together = file.endswith(_CONNECT) and not item.get_closest_marker("alone")
    return file if together else item.nodeid


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Where classes and modules stay together, sessions do so, too."""
    return _Sharing(config, log) if config.getvalue("dist") == "loadscope" else None


class _Sharing(LoadScopeScheduling):
    """Gives the modules with a session to `_SESSIONS` workers, each the next one when it is free.

    Of what takes minutes each test goes to any worker.
    """

    def _split_scope(self, nodeid: str) -> str:
        if _needs_session(nodeid):
            return _file_of(nodeid)
        return nodeid if nodeid.startswith(_MINUTES) else super()._split_scope(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        scope = next((scope for scope in self.workqueue if self._may_take(node, scope)), None)
        if scope is None:  # what is left needs a session, and others have theirs
            node.shutdown()
            return
        self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)

    def _may_take(self, node: WorkerController, scope: str) -> bool:
        if not _needs_session(scope):
            return True
        with_session = {
            other for other, units in self.assigned_work.items() if any(map(_needs_session, units))
        }
        return node in with_session or len(with_session) < _SESSIONS


def _rank(nodeid: str, sizes: Counter[str]) -> tuple[int, int]:
    """Of the modules with a session the large ones come first, since few workers share them."""
    if _needs_session(nodeid):
        return 0, -sizes[_file_of(nodeid)]
    if _file_of(nodeid).endswith(_CONNECT):
        return 0, 0
    return (1 if nodeid.startswith("integration/") else 2), 0


def _needs_session(nodeid: str) -> bool:
    file = _file_of(nodeid)
    if file.endswith(_CONNECT):
        return False
    return file.startswith("tests/spark/") or _takes_session(file)


def _file_of(nodeid: str) -> str:
    return nodeid.partition("::")[0]


@cache
def _takes_session(file: str) -> bool:
    """Who hands out the tests knows their names only."""
    text = (Path(__file__).parent / file).read_text(encoding="utf-8")
    return re.search(r"^ *def \w+\([^)]*\bspark\b", text, re.MULTILINE) is not None


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Start a classic session of two cores, whose Python workers have the same packages."""
    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .appName("optimist-tests")
        .config("spark.driver.memory", "2g")  # hundreds of tests fill 1 GB
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.default.parallelism", "2")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL)
    yield session
    session.stop()


@pytest.fixture
def quiet_log() -> Iterator[None]:
    """For code under test that warns of every mishap, in each of thousands of runs."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(autouse=True)
def a_session_that_is_left_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """Check that a test leaves no conf behind, which would send tables to another store."""
    if "spark" not in request.fixturenames:
        yield
        return
    session: SparkSession = request.getfixturevalue("spark")
    before = _options_of(session)
    yield
    assert _options_of(session) == before


def _options_of(session: SparkSession) -> dict[str, str]:
    options = dict(engine_options(session))
    options.pop(_LEFT_BY_THE_ENGINE, None)
    return options


@pytest.fixture
def conf(spark: SparkSession) -> Iterator[Callable[[str, str], None]]:
    """Set a conf of the session for one test."""
    before: dict[str, str | None] = {}

    def change(key: str, value: str) -> None:
        before.setdefault(key, spark.conf.get(key, None))
        spark.conf.set(key, value)

    yield change
    for key, value in before.items():
        if value is None:
            spark.conf.unset(key)
        else:
            spark.conf.set(key, value)


_ON_THE_OTHER = pytest.param("arrow", marks=pytest.mark.again)


@pytest.fixture(params=["native", _ON_THE_OTHER])
def plane(request: pytest.FixtureRequest, conf: Callable[[str, str], None]) -> str:
    """Run a test on either plane; on the second one in `make exhaustive`.

    Spark does all of the work, even where it is little.
    """
    return _use(str(request.param), conf)


@pytest.fixture(params=["native", pytest.param("driver", marks=pytest.mark.again), _ON_THE_OTHER])
def every_plane(request: pytest.FixtureRequest, conf: Callable[[str, str], None]) -> str:
    """As `plane`, and once more, in `make exhaustive`, where the driver does itself what it can."""
    return _use(str(request.param), conf)


def _use(name: str, conf: Callable[[str, str], None]) -> str:
    conf("spark.optimist.spark.plane", "native" if name == "driver" else name)
    conf("spark.optimist.spark.driverShortcut.maxBytes", str(1 << 30) if name == "driver" else "0")
    return name
