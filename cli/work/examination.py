"""What this machine and a table's store have: versions, the store's choice, whether it answers."""

from __future__ import annotations

import os
import platform
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pyarrow as pa

from optimist.cli.work.credentials import found_credentials
from optimist.cli.work.rehearsal import rehearse
from optimist.core.errors import ConfigError, OptimistError, StorageError, UsageError
from optimist.core.imports import own_version
from optimist.core.options.engine import EngineOptions
from optimist.core.options.handles import ensure_for_handle
from optimist.core.paths import join
from optimist.core.plugins.lock_registry import find_lease
from optimist.core.plugins.logstore_registry import choose_store
from optimist.core.runtime.clock import SystemClock
from optimist.core.secrets import Options, without_secrets
from optimist.core.table.delta_log import DeltaLog

__all__ = ["Examination", "examine"]

_PACKAGES = (
    *("pyarrow", "numpy", "fsspec", "pyroaring", "typer", "rich", "pyspark", "pandas", "boto3"),
    *("azure-storage-blob", "google-cloud-storage", "hdfs-native", "redis", "SQLAlchemy"),
    *("pyiceberg", "deltalake"),
)
_OLDEST_JAVA = 17
_MOST_SKEW_MS = 10_000
_WHOLE_SECOND_MS = 999
_CLOCK_UNKNOWN = (
    "this store's answers do not tell its time: --rehearse DIR compares the clocks by a file that "
    "it writes"
)
_NAME = re.compile(r"[^A-Za-z0-9_.-]")
_WRONG_STORE_KEYS = ("DELTA_INVALID_LOGSTORE_CONF", "DELTA_INCONSISTENT_LOGSTORE_CONFS")
_CHECKS = pa.schema([("check", pa.string()), ("ok", pa.bool_()), ("detail", pa.string())])


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found.

    Attributes:
        facts: Facts about this machine.
        packages: The packages that a store, a lock or Spark needs: `name`; `version`, which is null
            for one that is not installed; and `install`, the line to type then.
        credentials: The credentials of clouds that were found: `service`, `kind` and `source`, and
            no value.
        store: What the store says of itself: `fact` and `value`. No row without a URL.
        checks: What was tried: `check`, `ok` and `detail`.
    """

    facts: Mapping[str, object]
    packages: pa.Table
    credentials: pa.Table
    store: pa.Table
    checks: pa.Table

    @property
    def is_fine(self) -> bool:
        """Whether all that was tried went well."""
        return all(self.checks.column("ok").to_pylist())


def examine(url: str | None, options: Options, rehearse_in: str | None = None) -> Examination:
    """Look at this machine and the options, and if a URL is given at its store and table.

    Args:
        url: A table, or where one will be.
        options: The options of the table and its store.
        rehearse_in: The directory in which one commit is tried; None writes nothing.

    Raises:
        UsageError: A URL is wrong, or the choice of its store.
    """
    java = _java()
    java_version = None if java is None else _version_of_java(Path(java))
    facts: dict[str, object] = {
        "optimist": own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "java": java,
        "javaVersion": java_version,
        "options": sorted(options),
    }
    checks = [_check_options(url or rehearse_in or "/", options), *_check_java(java, java_version)]
    is_usable = bool(checks[0]["ok"])
    log = DeltaLog.for_path(url, options) if url is not None and is_usable else None
    told = {} if log is None else log.store.describe()
    store = {
        "fact": pa.array(told, pa.string()),
        "value": pa.array([without_secrets(value) for value in told.values()], pa.string()),
    }
    skew_ms = None
    if log is not None:
        read, is_answered = _try_reading(log)
        checks.append(read)
        skew_ms = _skew_by_answer(log) if is_answered else None
    if rehearse_in is not None and is_usable:
        done = rehearse(rehearse_in, options)
        checks.append({"check": "rehearse a commit", "ok": done.is_fine, "detail": done.told})
        skew_ms = done.skew_ms if skew_ms is None else skew_ms
    facts["clockSkewMs"] = skew_ms
    if skew_ms is not None:
        checks.append(_check_clock(skew_ms))
    elif log is not None and rehearse_in is None:
        checks.append({"check": "compare the clocks", "ok": True, "detail": _CLOCK_UNKNOWN})
    checks_table = pa.Table.from_pylist(checks, schema=_CHECKS)
    credentials = found_credentials(options, os.environ, Path.home())
    return Examination(facts, _packages(), credentials, pa.table(store), checks_table)


def _check_options(url: str, options: Options) -> dict[str, object]:
    """Tell whether options contradict each other, are unknown or have values that do not parse."""
    try:
        ensure_for_handle(options)
        EngineOptions.from_options(options)
        find_lease(options)
    except ConfigError as error:
        return {"check": "read the options", "ok": False, "detail": str(error)}
    try:
        choose_store(url, options)
    except ConfigError as error:
        if error.kind not in _WRONG_STORE_KEYS:
            raise
        return {"check": "read the options", "ok": False, "detail": str(error)}
    detail = f"{len(options)} options; none contradicts another" if options else "none is given"
    return {"check": "read the options", "ok": True, "detail": detail}


def _check_java(program: str | None, version: str | None) -> list[dict[str, object]]:
    """Tell what is wrong with Java, if PySpark is installed and could not start it."""
    spark = _version_of("pyspark")
    if spark is None or (program is not None and version is None):
        return []
    number = re.match(r"(?:1\.)?(\d+)", version or "")
    if number is not None and int(number[1]) >= _OLDEST_JAVA:
        return []
    found = "there is none" if version is None else f"it is version {version}"
    detail = (
        f"PySpark {spark} needs Java {_OLDEST_JAVA} or newer, and {found}: install it, such as by "
        f"`apt-get install openjdk-{_OLDEST_JAVA}-jre-headless`, and let JAVA_HOME name it"
    )
    return [{"check": "find Java for Spark", "ok": False, "detail": detail}]


def _check_clock(skew_ms: int) -> dict[str, object]:
    """Judge how far the store's clock is from this machine's."""
    seconds = abs(skew_ms) / 1000
    where = "ahead of" if skew_ms > 0 else "behind"
    detail = (
        f"the store's clock is {seconds:.1f} s {where} this machine's: set them right, since "
        "timestamps of versions and the age of files are the store's"
        if abs(skew_ms) > _MOST_SKEW_MS
        else f"the clocks of the store and of this machine differ by {seconds:.1f} s at most"
    )
    return {"check": "compare the clocks", "ok": abs(skew_ms) <= _MOST_SKEW_MS, "detail": detail}


def _packages() -> pa.Table:
    versions = [_version_of(name) for name in _PACKAGES]
    wanted = _requirements()
    lines = [
        None if version else f"pip install '{wanted.get(name.lower(), name)}'"
        for name, version in zip(_PACKAGES, versions, strict=True)
    ]
    columns = [pa.array(values, pa.string()) for values in (_PACKAGES, versions, lines)]
    return pa.table(columns, ["name", "version", "install"])


def _requirements() -> dict[str, str]:
    """Return which versions of each package this one needs, as `pip install` takes them."""
    try:
        lines = metadata.requires("optimist") or ()
    except metadata.PackageNotFoundError:
        return {}
    texts = [line.partition(";")[0].strip() for line in lines]
    return {_NAME.split(text, maxsplit=1)[0].lower(): text for text in reversed(texts)}


def _try_reading(log: DeltaLog) -> tuple[dict[str, object], bool]:
    """Read the newest version twice; the second look is one round trip to the store.

    Returns:
        The check, and whether the store has answered at all.
    """
    clock = SystemClock()
    try:
        snapshot = log.snapshot()
        begun_s = clock.monotonic_s()
        log.snapshot()
        took_ms = (clock.monotonic_s() - begun_s) * 1000
    except OptimistError as error:
        is_answered = not isinstance(error, StorageError | UsageError)
        return {"check": "read the table", "ok": False, "detail": str(error)}, is_answered
    told = f"version {snapshot.version}; a look for a newer one takes {took_ms:.0f} ms"
    return {"check": "read the table", "ok": True, "detail": told}, True


def _skew_by_answer(log: DeltaLog) -> int | None:
    """Return how far the store's clock is ahead of this machine's, as an answer of it tells.

    The answer tells whole seconds, and it was made at some time between the request and its arrival
    here. A difference that both explain is 0.
    """
    clock = SystemClock()
    begun_ms = clock.now_ms()
    try:
        told_ms = log.store.service_time_ms(join(log.log_path, ""))
    except OptimistError:
        return None
    if told_ms is None:
        return None
    ahead_ms, behind_ms = told_ms - clock.now_ms(), told_ms + _WHOLE_SECOND_MS - begun_ms
    return max(0, ahead_ms) + min(0, behind_ms)


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    program = Path(home or "", "bin", "java")
    return str(program) if home and program.exists() else shutil.which("java")


def _version_of_java(program: Path) -> str | None:
    """Return what the installation of a Java program says of its version, without starting it."""
    try:
        text = (program.resolve().parent.parent / "release").read_text(encoding="utf-8")
    except (OSError, ValueError):
        return None
    found = re.search(r'^JAVA_VERSION="([^"\n]*)"', text, re.MULTILINE)
    return None if found is None else found[1]
