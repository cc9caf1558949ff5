"""A trial of the user's own stores, arbiters and leases in a Spark worker, before a write.

Spark opens a table again in a Python worker: beside the driver, or on Spark Connect beside the
server, which may be another machine than the client's. With a class that only this process can
import, a commit would succeed, and nobody could read it.
"""

from __future__ import annotations

import weakref
from typing import Any, ClassVar

from pyspark.sql import SparkSession
from pyspark.sql.datasource import DataSource

from optimist.core.data.table_ref import TableRef
from optimist.core.errors import ConfigError
from optimist.core.forking import ForkSafeLock
from optimist.core.plugins.lock_registry import ARBITER_KEY, LEASE_KEY, choose_lock
from optimist.core.plugins.logstore_registry import choose_store
from optimist.core.secrets import Options
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.session.callback_errors import original_errors
from optimist.spark.session.task_errors import portable_errors

__all__ = ["ensure_own_classes"]

_OURS = "optimist."
_SOURCE = "optimist_own_classes"
_LOCK = ForkSafeLock()
_TRIED: weakref.WeakKeyDictionary[SparkSession, set[Options]] = weakref.WeakKeyDictionary()


def ensure_own_classes(spark: SparkSession, table: TableRef) -> None:
    """Let a worker open the table, once per session and options, without a job.

    Raises:
        ConfigError: The worker can't import or build a class that the options name; the kind is
            that of the worker's error. Nothing was written.
    """
    options = Options(table.store.options)
    with _LOCK:
        is_known = options in _TRIED.get(spark, ())
    if is_known or not _list_own_classes(table.table_path, options):
        return
    members: dict[str, Any] = {"table_path": table.table_path, "store_options": options}
    spark.dataSource.register(type("OwnClasses", (_Trial,), members))
    try:
        with original_errors():
            _ = spark.read.format(_SOURCE).load().schema
    except ConfigError as error:
        raise ConfigError(
            f"{error.args[0]} Nothing was written. Install the class on Spark's Python workers "
            "too, as on the process that writes; without it, they can't read the table "
            "(docs/stores.md).",
            kind=error.kind,
            **error.fields,
        ) from None
    with _LOCK:
        _TRIED.setdefault(spark, set()).add(options)


class _Trial(DataSource):
    """A source that opens the table when Spark asks for its schema, which happens in a worker."""

    table_path: ClassVar[str] = ""
    store_options: ClassVar[Options] = Options()

    @classmethod
    def name(cls) -> str:
        return _SOURCE

    def schema(self) -> str:
        with portable_errors():
            DeltaLog.for_path(self.table_path, self.store_options)
        return "is_importable boolean"


def _list_own_classes(path: str, options: Options) -> list[str]:
    locks = (choose_lock(key, options) for key in (ARBITER_KEY, LEASE_KEY))
    chosen = [choose_store(path, options), *(each for each in locks if each is not None)]
    return [each.class_path for each in chosen if not each.class_path.startswith(_OURS)]
