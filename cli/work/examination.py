"""What this machine and a table's store have: versions, the store's choice, whether it answers."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pyarrow as pa

from optimist.core.errors import OptimistError
from optimist.core.imports import own_version
from optimist.core.runtime.clock import SystemClock
from optimist.core.secrets import without_secrets
from optimist.core.table.delta_log import DeltaLog

__all__ = ["Examination", "examine"]

_PACKAGES = (
    *("pyarrow", "numpy", "fsspec", "pyroaring", "typer", "rich", "pyspark", "pandas", "boto3"),
    *("azure-storage-blob", "google-cloud-storage", "hdfs-native", "redis", "SQLAlchemy"),
    *("pyiceberg", "deltalake"),
)
_CHECKS = pa.schema([("check", pa.string()), ("ok", pa.bool_()), ("detail", pa.string())])


@dataclass(frozen=True, slots=True)
class Examination:
    """What was found.

    Attributes:
        facts: Facts about this machine.
        packages: The packages that a store, a lock or Spark needs: `name` and `version`, which is
            null for one that is not installed.
        store: What the store says of itself: `fact` and `value`. No row without a URL.
        checks: What was tried: `check`, `ok` and `detail`. No row without a URL.
    """

    facts: Mapping[str, object]
    packages: pa.Table
    store: pa.Table
    checks: pa.Table

    @property
    def is_fine(self) -> bool:
        """Whether all that was tried went well."""
        return all(self.checks.column("ok").to_pylist())


def examine(url: str | None, options: Mapping[str, str]) -> Examination:
    """Look at this machine, and if a URL is given at its store and table. Nothing is written.

    Raises:
        UsageError: The URL or an option is wrong.
    """
    facts = {
        "optimist": own_version(),
        "python": platform.python_version(),
        "platform": platform.platform(),
        "java": _java(),
        "options": sorted(options),
    }
    log = None if url is None else DeltaLog.for_path(url, options)
    told = {} if log is None else log.store.describe()
    store = {
        "fact": pa.array(told, pa.string()),
        "value": pa.array([without_secrets(value) for value in told.values()], pa.string()),
    }
    versions = [_version_of(name) for name in _PACKAGES]
    packages = {"name": pa.array(_PACKAGES), "version": pa.array(versions, pa.string())}
    checks = [] if log is None else _try_reading(log)
    checks_table = pa.Table.from_pylist(checks, schema=_CHECKS)
    return Examination(facts, pa.table(packages), pa.table(store), checks_table)


def _try_reading(log: DeltaLog) -> list[dict[str, object]]:
    """Read the newest version twice; the second look is one round trip to the store."""
    clock = SystemClock()
    try:
        snapshot = log.snapshot()
        begun_s = clock.monotonic_s()
        log.snapshot()
        took_ms = (clock.monotonic_s() - begun_s) * 1000
    except OptimistError as error:
        return [{"check": "read the table", "ok": False, "detail": str(error)}]
    told = f"version {snapshot.version}; a look for a newer one takes {took_ms:.0f} ms"
    return [{"check": "read the table", "ok": True, "detail": told}]


def _version_of(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _java() -> str | None:
    home = os.environ.get("JAVA_HOME")
    program = Path(home or "", "bin", "java")
    return str(program) if home and program.exists() else shutil.which("java")
