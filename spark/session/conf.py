"""The Spark session's conf as the plain options that the engine takes, and back."""

from __future__ import annotations

import logging
import weakref
from collections.abc import Iterator, Mapping, MutableMapping

from pyspark.sql import SparkSession

from optimist.core.commands.idempotence import conf_txn
from optimist.core.errors import ConfigError, UsageError
from optimist.core.forking import ForkSafeLock
from optimist.core.options.engine import EngineOptions
from optimist.core.secrets import Options
from optimist.core.table.delta_log import DeltaLog
from optimist.spark.session.call_options import FILESYSTEM_PREFIXES
from optimist.spark.session.jvm import conf_entries
from optimist.spark.session.pyspark_versions import ensure_supported
from optimist.spark.session.redaction import warn_of_shown_secrets

__all__ = [
    "OPTION_PREFIXES",
    "SessionConf",
    "engine_options",
    "is_on",
    "open_log",
    "reset_session_version",
    "session_zone_name",
]

OPTION_PREFIXES = (
    "spark.databricks.delta.",
    "spark.databricks.io.skipping.",
    "spark.delta.logStore.",
    "delta.logStore.",
    "spark.optimist.",
    "optimist.",
    "spark.hadoop.",
    "fs.",
    "io.delta.storage.",
    "spark.io.delta.storage.",
)
"""Prefixes of keys for the engine or its stores. All other keys of the conf are Spark's."""

_TXN_VERSION = "spark.databricks.delta.write.txnVersion"
_LOCK = ForkSafeLock()
_LOG = logging.getLogger(__name__)
_ADAPTERS: weakref.WeakKeyDictionary[SparkSession, SessionConf] = weakref.WeakKeyDictionary()


class SessionConf(MutableMapping[str, str]):
    """The conf of one session as a mapping, with one object per session.

    The engine sets `lastCommitVersionInSession` in it. Get it with `SessionConf.of`, so that
    handles of tables can be shared.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = weakref.ref(spark)

    @classmethod
    def of(cls, spark: SparkSession) -> SessionConf:
        """Return the one adapter of this session."""
        with _LOCK:
            if spark not in _ADAPTERS:
                _ADAPTERS[spark] = cls(spark)
            return _ADAPTERS[spark]

    def __getitem__(self, key: str) -> str:
        value = self._session().conf.get(key, None)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: str, value: str) -> None:
        self._session().conf.set(key, value)

    def __delitem__(self, key: str) -> None:
        self._session().conf.unset(key)

    def __iter__(self) -> Iterator[str]:
        return iter(conf_entries(self._session()))

    def __len__(self) -> int:
        return len(conf_entries(self._session()))

    def _session(self) -> SparkSession:
        spark = self._spark()
        if spark is None:
            raise UsageError(
                "The Spark session was stopped. Create a new one.", kind="OPTIMIST_SESSION_STOPPED"
            )
        return spark


def engine_options(spark: SparkSession, extra: Mapping[str, str] | None = None) -> Options:
    """Return the entries of the session's and context's conf that concern the engine.

    Args:
        spark: The session.
        extra: Entries for this call alone; they override the session's.
    """
    entries = conf_entries(spark)
    options = {key: value for key, value in entries.items() if key.startswith(OPTION_PREFIXES)}
    warn_of_shown_secrets(options, entries.get("spark.redaction.regex"))
    return Options({**options, **(extra or {})})


def open_log(spark: SparkSession, path: str, extra: Mapping[str, str] | None = None) -> DeltaLog:
    """Return the handle of the table at a path, with the session's options.

    Args:
        spark: A classic session, or a Spark Connect client.
        path: The table's path.
        extra: Options of this call: keys that start with `fs.` or `dfs.`.

    Raises:
        UsageError: PySpark is too old.
        ConfigError: An option is wrong, or has another prefix (kind `OPTIMIST_UNKNOWN_OPTION`).
    """
    ensure_supported(spark)
    for key in extra or {}:
        if not key.startswith(FILESYSTEM_PREFIXES):
            raise ConfigError(
                f"The key {key} is not an option for the file system. Use keys that start with "
                f"{' or '.join(FILESYSTEM_PREFIXES)}.",
                kind="OPTIMIST_UNKNOWN_OPTION",
                key=key,
            )
    return DeltaLog.for_path(path, engine_options(spark, extra), session=SessionConf.of(spark))


def reset_session_version(spark: SparkSession, options: EngineOptions) -> None:
    """Remove the transaction version from the conf after its write, if an option says so.

    Call it after a write that succeeded, or that was skipped because it had succeeded before. The
    next write then needs its own version and can't be skipped by mistake
    (`write.txnVersion.autoReset.enabled`). A write that failed keeps its version for the next try.
    """
    if options.write_txn_auto_reset and conf_txn(options) is not None:
        try:
            spark.conf.unset(_TXN_VERSION)
        except Exception:  # noqa: BLE001 - the commit stands whatever happens here
            _LOG.warning("The write was committed, but %s is still set.", _TXN_VERSION)


def is_on(spark: SparkSession, key: str) -> bool:
    """Check whether an entry of the conf is true, in any case, as Spark reads it."""
    return str(spark.conf.get(key, "false")).strip().lower() == "true"


def session_zone_name(spark: SparkSession) -> str:
    """Return the session's time zone, for timestamps that name no zone."""
    return spark.conf.get("spark.sql.session.timeZone") or "UTC"
